"""What a Python function is, so that equal ones share compiled kernels: code, and the outside values that it names.

Code objects are compared by value, so that a lambda written in a function that runs twice is one. Followed in turn are
closures, defaults and globals; functions and methods; containers and arrays; attributes of classes and objects; and
what is read of modules. So a key differs as soon as anything that a trace could read has changed. Libraries are taken
as they are, and what keeps its state out of Python's sight counts by identity.
"""

from __future__ import annotations

import dataclasses
import dis
import functools
import itertools
import sys
import sysconfig
from argparse import Namespace
from collections.abc import Hashable, Iterator
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType, SimpleNamespace
from typing import Any, Final

import numpy as np

from loom_core.base.diagnostics import INTERNAL_PACKAGES
from palladium.arguments import numpy_of

_PLAIN: Final = (bool, int, str, bytes, type(None), type(Ellipsis))
_LIBRARIES: Final = frozenset(
    {*INTERNAL_PACKAGES, *sys.stdlib_module_names, "numpy", "jax", "jaxlib", "torch", "ml_dtypes"} - {"__main__"}
)
_INSTALLED: Final = tuple({sysconfig.get_path("purelib"), sysconfig.get_path("platlib")})
_MISSING: Final = object()


def fingerprint(value: Any) -> Hashable:
    """A key that is equal for functions, or tuples of them, that do the same."""
    return _Walk().key(value)


class _Identity:
    """An object by identity; keeps it alive, so that no other takes its address."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Identity) and other.value is self.value

    def __hash__(self) -> int:
        return id(self.value)


class _Walk:
    """One walk over what a value reaches; what comes again stands for its first place, so that cycles end."""

    def __init__(self) -> None:
        self._places: dict[int, int] = {}
        self._kept: list[Any] = []

    def key(self, value: Any) -> Hashable:
        kind = type(value)
        if kind in _PLAIN:
            return kind, value
        if kind is FunctionType and _known(value.__code__).alone and value.__defaults__ is value.__kwdefaults__ is None:
            return _known(value.__code__).number
        if kind in (float, complex):
            return kind, repr(value)  # tells -0.0 from 0.0, and NaN is NaN
        if isinstance(value, tuple):
            return (kind, *map(self.key, value))
        if isinstance(value, (np.dtype, np.generic)):
            return kind, str(value), getattr(value, "dtype", None)
        place = self._places.get(id(value))
        if place is not None:
            return "again", place
        self._places[id(value)] = len(self._places)
        self._kept.append(value)
        if kind is FunctionType:
            return self._function(value)
        if isinstance(value, (list, set, frozenset)):
            parts = map(self.key, value)
            return (kind, *parts) if isinstance(value, list) else (kind, frozenset(parts))
        if isinstance(value, dict):
            return (kind, *((self.key(name), self.key(item)) for name, item in value.items()))
        if kind is MethodType:
            return kind, self.key(value.__func__), self.key(value.__self__)
        if kind is functools.partial:
            return kind, self.key(value.func), self.key(value.args), self.key(dict(sorted(value.keywords.items())))
        if isinstance(value, np.ndarray) or _is_tensor(value):
            data = numpy_of(value)
            return kind, data.dtype, data.shape, data.tobytes()
        if isinstance(value, (staticmethod, classmethod)):
            return kind, self.key(value.__func__)
        if isinstance(value, property):
            return kind, self.key(value.fget)
        if isinstance(value, ModuleType):
            return _Identity(value)
        return self._object(value)

    def _object(self, value: Any) -> Hashable:
        """An object or class: the object itself, what its attributes are, and its class."""
        kind = type(value)
        if isinstance(value, type):
            if _is_library(value.__module__):
                return _Identity(value)
            return (_Identity(value), *map(self.key, value.__bases__), *self._attributes(_of_class(value)))
        if kind in (SimpleNamespace, Namespace) or dataclasses.is_dataclass(kind):
            return (self.key(kind), *self._attributes(_of_object(value)))
        if _is_library(kind.__module__):
            return _Identity(value)
        return (_Identity(value), self.key(kind), *self._attributes(_of_object(value)))

    def _attributes(self, found: Iterator[tuple[str, Any]]) -> Iterator[Hashable]:
        return ((name, self.key(value)) for name, value in found)

    def _function(self, function: FunctionType) -> Hashable:
        if _is_library(function.__module__ or ""):
            return _Identity(function)
        code = _known(function.__code__)
        found: list[Hashable] = [code.number, self.key(function.__defaults__), self.key(function.__kwdefaults__)]
        namespace = function.__globals__
        if function.__closure__:
            cells = dict(zip(function.__code__.co_freevars, map(_content, function.__closure__), strict=True))
            found += map(self.key, cells.values())
            namespace = {**namespace, **cells} if code.names else namespace
        for name, attributes in code.names:
            value = namespace.get(name, _MISSING)
            if value is _MISSING:  # a builtin, or nothing
                found.append(name)
            elif type(value) is ModuleType and _is_library(value.__name__):
                found.append(_Identity(value))
            else:
                found.append(self._read(value, name, attributes))
        return tuple(found)

    def _read(self, value: Any, name: str, attributes: tuple[str, ...]) -> Hashable:
        """A global or closure variable as code reads it: of modules what it takes of them."""
        passed: list[Hashable] = [name]
        for attribute in attributes:
            if isinstance(value, ModuleType):
                if _is_library(value.__name__):
                    break
                value = getattr(value, attribute, _MISSING)
            else:
                passed.append(self.key(value))
                value = dict(_of_object(value)).get(attribute, _MISSING)
            passed.append(attribute)
        if isinstance(value, ModuleType) and not _is_library(value.__name__):
            # It goes on under another name: everything in it that is a number or a text may be read.
            plain = ((key, item) for key, item in vars(value).items() if isinstance(item, (bool, int, float, str)))
            passed += [(key, self.key(item)) for key, item in plain if not key.startswith("__")]
        return (*passed, None if value is _MISSING else self.key(value))


class Unchanged:
    """Whether functions would have the fingerprint that they had: a look at the identity of what they read.

    `known` is false where some of it may change inside (lists, arrays, objects): then only a fingerprint tells.
    """

    def __init__(self, functions: tuple[Any, ...]) -> None:
        self.known = True
        self._codes: list[tuple[FunctionType, CodeType, Any, Any]] = []
        self._cells: list[tuple[Any, Any]] = []
        self._names: list[tuple[dict[str, Any], str, Any]] = []
        self._seen: set[int] = set()
        for function in functions:
            self._add(function)

    def holds(self) -> bool:
        """Whether all is as it was."""
        for function, code, defaults, named in self._codes:
            if (
                function.__code__ is not code
                or function.__defaults__ is not defaults
                or function.__kwdefaults__ is not named
            ):
                return False
        for namespace, name, value in self._names:
            if namespace.get(name, _MISSING) is not value:
                return False
        return not self._cells or all(_content(cell) is value for cell, value in self._cells)

    def _add(self, value: Any) -> None:
        kind = type(value)
        if kind in _PLAIN or kind in (float, complex) or isinstance(value, (np.dtype, np.generic)):
            return
        if kind is tuple:
            for item in value:
                self._add(item)
        elif kind is FunctionType and not _is_library(value.__module__ or ""):
            if id(value) not in self._seen:
                self._seen.add(id(value))
                self._follow(value)
        else:
            # Functions and classes of libraries are known by identity; all else may change inside.
            steady = isinstance(value, (type, FunctionType, BuiltinFunctionType, np.ufunc))
            self.known &= steady and _is_library(getattr(value, "__module__", None) or "numpy")

    def _follow(self, function: FunctionType) -> None:
        self._codes.append((function, function.__code__, function.__defaults__, function.__kwdefaults__))
        self.known &= function.__kwdefaults__ is None
        self._add(function.__defaults__)
        for cell in function.__closure__ or ():
            self._cells.append((cell, _content(cell)))
            self._add(_content(cell))
        inner = function.__code__.co_freevars
        for name, attributes in _known(function.__code__).names:
            if name in inner:
                self.known &= not attributes or not isinstance(_content_of(function, name), ModuleType)
                continue
            namespace = function.__globals__
            value = namespace.get(name, _MISSING)
            self._names.append((namespace, name, value))
            for attribute in attributes:
                if not isinstance(value, ModuleType) or _is_library(value.__name__):
                    break
                namespace, value = vars(value), vars(value).get(attribute, _MISSING)
                self._names.append((namespace, attribute, value))
            if isinstance(value, ModuleType):
                self.known &= _is_library(value.__name__)
            elif value is not _MISSING:
                self._add(value)


def _content_of(function: FunctionType, name: str) -> Any:
    return _content((function.__closure__ or ())[function.__code__.co_freevars.index(name)])


def _content(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # not assigned yet
        return None


def _of_object(value: Any) -> Iterator[tuple[str, Any]]:
    """The attributes that an object of Python has of its own; for a class, those of the class."""
    if isinstance(value, type):
        yield from _of_class(value)
        return
    if isinstance(getattr(value, "__dict__", None), dict):
        yield from list(vars(value).items())
    for kind in type(value).__mro__:
        slots = vars(kind).get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            if not name.startswith("__") and not _is_library(kind.__module__):
                yield name, getattr(value, name, _MISSING)


def _of_class(kind: type) -> Iterator[tuple[str, Any]]:
    for name, value in list(vars(kind).items()):
        if isinstance(value, FunctionType) or not name.startswith("__"):
            yield name, value


def _is_tensor(value: Any) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


@functools.lru_cache(maxsize=4096)
def _is_library(module: str) -> bool:
    package = module.split(".", 1)[0]
    file = getattr(sys.modules.get(package), "__file__", None) or ""
    return package in _LIBRARIES or file.startswith(_INSTALLED)


class _Code:
    """A code object: `number` is that of all equal ones, `names` what it loads from outside.

    `alone`: it loads nothing.
    """

    __slots__ = ("alone", "code", "names", "number")

    def __init__(self, code: CodeType, number: int) -> None:
        self.code = code
        self.number = number
        self.names = tuple((name, tuple(attributes)) for name, *attributes in _names(code))
        self.alone = not self.names and not code.co_freevars


def _known(code: CodeType) -> _Code:
    """What is known of a code object; by identity, since comparing code is slow."""
    found = _CODES.get(id(code))
    if found is None or found.code is not code:
        if len(_CODES) >= _CODES_KEPT:
            _CODES.clear()
            _NUMBERS.clear()
        found = _CODES[id(code)] = _Code(code, _NUMBERS.setdefault(code, next(_COUNTER)))
    return found


_CODES_KEPT: Final = 4096
_CODES: Final[dict[int, _Code]] = {}
_NUMBERS: Final[dict[CodeType, int]] = {}
_COUNTER: Final = itertools.count()


def _names(code: CodeType) -> tuple[tuple[str, ...], ...]:
    """Globals and closure variables that code and the functions in it load, each with the attributes read of it."""
    found: dict[tuple[str, ...], None] = {}
    instructions = list(dis.get_instructions(code))
    for position, instruction in enumerate(instructions):
        if instruction.opname not in ("LOAD_GLOBAL", "LOAD_NAME", "LOAD_DEREF", "LOAD_CLASSDEREF"):
            continue
        chain = [instruction.argval]
        for following in instructions[position + 1 :]:
            if following.opname not in ("LOAD_ATTR", "LOAD_METHOD"):
                break
            chain.append(following.argval)
        found[tuple(chain)] = None
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            found.update(dict.fromkeys(_names(constant)))
    return tuple(found)
