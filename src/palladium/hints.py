"""Arguments of upstream's functions that are taken without a meaning here, and what becomes of all others."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable, Collection, Mapping
from typing import Any, Final

from palladium.errors import Refused, UnknownArgument, fail

KERNEL_HINTS: Final = frozenset({"debug", "interpret", "cost_estimate", "backend", "metadata", "name_and_src_info"})
LOAD_HINTS: Final = frozenset({"cache_modifier", "eviction_policy", "volatile"})
STORE_HINTS: Final = frozenset({"cache_modifier", "eviction_policy"})
PRINT_HINTS: Final = frozenset({"ordered", "partitioned"})
SCAN_HINTS: Final = frozenset({"_split_transpose"})


def check_hints(function: Callable[..., Any], given: Mapping[str, Any], hints: Collection[str]) -> None:
    """UnknownArgument for a keyword that is neither a parameter of `function` nor one of its hints."""
    if not given.keys() - hints:
        return
    parameters = inspect.signature(function).parameters.values()
    names = [one.name for one in parameters if one.kind not in (one.VAR_KEYWORD, one.VAR_POSITIONAL)]
    check_names(function.__name__, given, hints, names)


def check_names(function: str, given: Collection[str], hints: Collection[str], names: Collection[str] = ()) -> None:
    """UnknownArgument for the first of `given` that is not in `hints`; `names` are further ones to propose."""
    for name in given:
        if name not in hints:
            near = difflib.get_close_matches(name, [*names, *hints], 1)
            advice = f"did you mean {near[0]!r}?" if near else "it takes " + ", ".join([*names, *sorted(hints)])
            fail(UnknownArgument, function=function, name=name, advice=advice)


def refuse_option(function: str, name: str, value: Any, without: Any = None, instead: str = "leave it out") -> None:
    """Refused for an option with another value than the one that changes nothing."""
    if value is not without and value != without:
        fail(Refused, what=f"{name}={value!r} of {function}", reason="it would change the result", instead=instead)
