"""What an exception of a running kernel becomes."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from types import TracebackType
from typing import Any, Final

from loom_core.base.diagnostics import INTERNAL_PACKAGES, InternalError, LoomError
from loom_core.base.location import END_OF_LINE, UNKNOWN, Location
from loom_core.trace.errors import BadCall, KernelFault, UndefinedName, UnknownName


def fault(error: Exception, find: Callable[[str], Callable[..., Any] | None]) -> LoomError:
    """What an exception of the running kernel becomes: the user's where the user's code raised it, else internal.

    `find` gives the language's function of a name, for the signature that a wrong call is shown with.
    """
    entries: list[TracebackType] = []
    entry = error.__traceback__
    while entry is not None:
        entries.append(entry)
        entry = entry.tb_next
    location = UNKNOWN
    for entry in entries:
        if not _is_loom(entry):
            location = _entry_location(entry)
    if not entries or _is_loom(entries[-1]):
        raise InternalError(location, what=f"{type(error).__name__}: {error}") from error
    if isinstance(error, NameError):
        return UndefinedName(location, name=getattr(error, "name", None) or str(error))
    if isinstance(error, AttributeError) and error.name:
        owner = type(error.obj).__name__
        article = "an" if owner[0] in "aeiou" else "a"
        suggestion = "see dir() of it for what it has"
        return UnknownName(location, owner=f"{article} {owner}", name=error.name, suggestion=suggestion)
    if isinstance(error, TypeError) and (call := _WRONG_CALL.match(str(error))):
        function = find(call["name"])
        if inspect.isfunction(function):
            signature = f"{call['name']}{_plain_signature(function)}"
            return BadCall(location, function=call["name"], problem=call["problem"], signature=signature)
    return KernelFault(location, kind=type(error).__name__, message=str(error))


_WRONG_CALL: Final = re.compile(r"(?:\w+\.)*(?P<name>\w+)\(\) (?P<problem>(?:missing|got|takes) .*)")
"""What Python says of a call whose arguments do not fit the function."""


def _plain_signature(function: Callable[..., Any]) -> inspect.Signature:
    """The signature without types."""
    signature = inspect.signature(function)
    plain = [parameter.replace(annotation=inspect.Parameter.empty) for parameter in signature.parameters.values()]
    return signature.replace(parameters=plain, return_annotation=inspect.Signature.empty)


def _is_loom(entry: TracebackType) -> bool:
    module = entry.tb_frame.f_globals.get("__name__", "")
    return isinstance(module, str) and module.split(".", 1)[0] in INTERNAL_PACKAGES


def _entry_location(entry: TracebackType) -> Location:
    code = entry.tb_frame.f_code
    positions = list(code.co_positions())
    line, end_line, column, end_column = positions[entry.tb_lasti // 2]
    if line is None or column is None or end_column is None:
        return Location(code.co_filename, entry.tb_lineno, function=code.co_name)
    return Location(code.co_filename, line, column, end_column if end_line == line else END_OF_LINE, code.co_name)
