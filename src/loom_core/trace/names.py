"""Values that kernels read from outside: globals, closure variables, builtins, attributes of modules and classes.

Each is noted as a `Watch`, so that a later call can tell by identity whether the traced program is still the right one.
"""

from __future__ import annotations

import ast
import builtins as python_builtins
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from types import CellType
from typing import Any

from loom_core.trace.errors import BadGlobal, PythonName
from loom_core.trace.source import FunctionSource
from loom_core.trace.values import same_static

_MISSING = object()


@dataclass
class Watch:
    """One outside value that a kernel depends on: `name` in `owner` (a namespace, cell, module or class) is `value`."""

    owner: Any
    name: str
    value: Any

    @property
    def absent(self) -> bool:
        """Whether what was read is that there is no such name (a builtin that a global would hide)."""
        return self.value is _MISSING

    def now(self) -> Any:
        """What a kernel would read today; a private marker if nothing."""
        owner = self.owner
        if isinstance(owner, dict):
            return owner.get(self.name, _MISSING)
        if isinstance(owner, CellType):
            try:
                return owner.cell_contents
            except ValueError:  # an empty cell
                return _MISSING
        return getattr(owner, self.name, _MISSING)

    def unchanged(self) -> bool:
        """Whether the value is the one that was traced; an equal number or string takes the old one's place."""
        value = self.now()
        if value is self.value:
            return True
        if isinstance(value, (bool, int, float, str)) and same_static(value, self.value):
            self.value = value
            return True
        return False


def outside_namespace(
    function: Callable[..., Any],
    source: FunctionSource,
    names: Iterable[str],
    builtins: Mapping[str, Any],
    convert: Callable[[Any], Any],
) -> tuple[dict[str, Any], list[Watch]]:
    """The namespace for a rewritten function: each free name's present value, converted; and the watches on them.

    Names that exist nowhere are left out, so that reading them fails at the user's line. BadGlobal where `convert`
    raises TypeError.
    """
    namespace: dict[str, Any] = {}
    watches: list[Watch] = []
    cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
    for name in names:
        watch = _find(name, cells, function.__globals__)
        if watch is None:
            if name in builtins:
                namespace[name] = builtins[name]
                # A global of this name would hide the builtin.
                watches.append(Watch(function.__globals__, name, _MISSING))
            elif hasattr(python_builtins, name):
                raise PythonName(_first_use(source, name), name=name)
            continue
        try:
            namespace[name] = convert(watch.value)
        except TypeError as error:
            raise BadGlobal(_first_use(source, name), name=name, kind=str(error)) from None
        watches.append(watch)
    return namespace, watches


def _find(name: str, cells: Mapping[str, CellType], global_names: dict[str, Any]) -> Watch | None:
    owner: Any = cells.get(name, global_names)
    watch = Watch(owner, name, _MISSING)
    watch.value = watch.now()
    return None if watch.value is _MISSING else watch


def _first_use(source: FunctionSource, name: str) -> Any:
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Name) and node.id == name:
            return source.locate(node)
    return source.location
