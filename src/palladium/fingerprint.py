"""What a Python function is, so that equal ones share compiled kernels: code, and the outside values that it names.

Code objects are compared by value, so that a lambda written in a function that runs twice is one; closures, defaults
and globals are followed, functions among them in turn, and so are tuples, lists, dictionaries, arrays, dataclasses and
namespaces. Other objects are taken by identity: what they hold is read when the kernel is traced.
"""

from __future__ import annotations

import dataclasses
import dis
import functools
from collections.abc import Hashable
from types import CodeType, FunctionType, MethodType, ModuleType, SimpleNamespace
from typing import Any, Final

import numpy as np

from loom_core.base.diagnostics import INTERNAL_PACKAGES

_PLAIN: Final = (bool, int, float, complex, str, bytes, type(None), type(Ellipsis))


def fingerprint(value: Any) -> Hashable:
    """A key that is equal for functions that do the same."""
    return _key(value, ())


class _Identity:
    """An object by identity; keeps it alive, so that no other takes its address."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Identity) and other.value is self.value

    def __hash__(self) -> int:
        return id(self.value)


def _key(value: Any, within: tuple[int, ...]) -> Hashable:
    """`within`: the functions around, by identity, so that recursion ends."""
    kind = type(value)
    if kind in _PLAIN:
        return (kind, repr(value)) if kind is float else (kind, value)
    if kind is FunctionType:
        return _Identity(value) if id(value) in within else _function(value, (*within, id(value)))
    if kind is functools.partial:
        named = tuple((key, _key(item, within)) for key, item in sorted(value.keywords.items()))
        return ("partial", _key(value.func, within), tuple(_key(item, within) for item in value.args), named)
    if isinstance(value, (tuple, list)):
        return (kind, *(_key(item, within) for item in value))
    if kind is dict:
        return (kind, *((_key(key, within), _key(item, within)) for key, item in value.items()))
    if isinstance(value, (np.dtype, np.generic)):
        return (kind, str(value), getattr(value, "dtype", None))
    if kind is np.ndarray:
        return (kind, value.dtype, value.shape, value.tobytes())
    if id(value) in within:
        return _Identity(value)
    if kind is MethodType:
        return (kind, _key(value.__func__, within), _key(value.__self__, (*within, id(value))))
    if kind is SimpleNamespace or (dataclasses.is_dataclass(value) and not isinstance(value, type)):
        return (kind, _key(dict(vars(value)), (*within, id(value)))) if hasattr(value, "__dict__") else _Identity(value)
    return _Identity(value)


def _function(function: FunctionType, within: tuple[int, ...]) -> Hashable:
    if _is_ours(function.__module__ or ""):
        return _Identity(function)
    code = function.__code__
    cells = tuple(_cell(cell, within) for cell in function.__closure__ or ())
    defaults = _key(function.__defaults__, within), _key(function.__kwdefaults__, within)
    return ("function", code, cells, defaults, _outside(code, function.__globals__, within))


def _cell(cell: Any, within: tuple[int, ...]) -> Hashable:
    try:
        return _key(cell.cell_contents, within)
    except ValueError:
        return "empty"


def _outside(code: CodeType, namespace: dict[str, Any], within: tuple[int, ...]) -> Hashable:
    """The globals that code names, and for modules the attributes that it reads of them."""
    found: list[tuple[str, str | None, Hashable]] = []
    for name, attribute in _names(code):
        value = namespace.get(name, _MISSING)
        if value is _MISSING:
            continue
        if isinstance(value, ModuleType):
            if attribute is None or _is_ours(value.__name__):
                found.append((name, attribute, _Identity(value)))
                continue
            value = getattr(value, attribute, _MISSING)
        found.append((name, attribute, _key(value, within)))
    return tuple(found)


_MISSING: Final = object()


def _is_ours(module: str) -> bool:
    return module.split(".", 1)[0] in (*INTERNAL_PACKAGES, "numpy", "jax", "jaxlib", "builtins", "functools", "math")


@functools.lru_cache(maxsize=4096)
def _names(code: CodeType) -> tuple[tuple[str, str | None], ...]:
    """Globals that code and the functions in it load, with the attribute read right after, if any."""
    found: dict[tuple[str, str | None], None] = {}
    instructions = list(dis.get_instructions(code))
    for position, instruction in enumerate(instructions):
        if instruction.opname not in ("LOAD_GLOBAL", "LOAD_NAME"):
            continue
        following = instructions[position + 1 : position + 2]
        attribute = following[0].argval if following and following[0].opname in ("LOAD_ATTR", "LOAD_METHOD") else None
        found[instruction.argval, attribute] = None
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            found.update(dict.fromkeys(_names(constant)))
    return tuple(found)
