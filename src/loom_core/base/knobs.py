"""The knobs: one typed table of the settings that the environment may change.

`knobs.debug` reads LOOM_DEBUG at each access, so a change of the environment takes effect at once;
`with knobs.override(debug=2): ...` wins over the environment, for the current thread (context) only.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, Generic, Literal, TypeVar, overload

from loom_core.base.diagnostics import UserError

T = TypeVar("T")

# `os.environ.get` raises and catches a KeyError for an absent variable, 0.7 us: too much for each kernel launch.
# CPython keeps the encoded names in a dictionary, which is many times faster to ask.
environment: Final[Any] = getattr(os.environ, "_data", os.environ)
"""What the environment holds: its keys are names as `encode_name` gives them."""
encode_name: Final[Callable[[str], Any]] = getattr(os.environ, "encodekey", str)


class BadKnobValue(UserError):
    code = "LOOM-K001"
    template = "{variable} is {text!r}, which is not {expected}"
    hint = "unset {variable} to get the default"


class UnknownKnob(UserError):
    code = "LOOM-K002"
    template = "there is no knob called {name!r}"
    hint = "the knobs are: {known}"


@dataclass(frozen=True)
class ValueType(Generic[T]):
    """How the text of an environment variable becomes a value; `parse` raises ValueError for what it does not take."""

    description: str
    parse: Callable[[str], T]


def _parse_flag(text: str) -> bool:
    lowered = text.strip().lower()
    if lowered in ("1", "true", "yes", "on"):
        return True
    if lowered in ("0", "false", "no", "off", ""):
        return False
    raise ValueError(text)


def _parse_natural(text: str) -> int:
    value = int(text)
    if value < 0:
        raise ValueError(text)
    return value


def _parse_folder(text: str) -> Path:
    if not text:
        raise ValueError(text)
    return Path(text).expanduser()


def _parse_verify(text: str) -> Literal["end", "each", "off"]:
    match text.strip().lower():
        case "each":
            return "each"
        case "end":
            return "end"
        case "off":
            return "off"
    raise ValueError(text)


FLAG: Final = ValueType("a flag (0 or 1)", _parse_flag)
NATURAL: Final = ValueType("a whole number from 0", _parse_natural)
FOLDER: Final = ValueType("a folder", _parse_folder)
OPTIONAL_FOLDER: Final = ValueType("a folder", lambda text: _parse_folder(text) if text else None)
VERIFY: Final = ValueType("one of each, end, off", _parse_verify)


def _user_cache() -> Path:
    import platformdirs

    return Path(platformdirs.user_cache_dir("loom", appauthor=False))


@dataclass(frozen=True)
class Knob(Generic[T]):
    """One row of the table; as a class attribute of `Knobs` it reads its current value."""

    variable: str
    value_type: ValueType[T]
    default: Callable[[], T]
    default_text: str
    doc: str
    name: str = field(default="", init=False)
    encoded: Any = field(default=None, init=False, repr=False)

    def __set_name__(self, owner: type, name: str) -> None:
        object.__setattr__(self, "name", name)
        object.__setattr__(self, "encoded", encode_name(self.variable))

    @overload
    def __get__(self, instance: None, owner: type) -> Knob[T]: ...
    @overload
    def __get__(self, instance: Knobs, owner: type) -> T: ...
    def __get__(self, instance: Knobs | None, owner: type) -> Knob[T] | T:
        if instance is None:
            return self
        overrides = _OVERRIDES.get()
        if overrides and self.name in overrides:
            value: T = overrides[self.name]
            return value
        text = os.environ.get(self.variable) if self.encoded in environment else None
        return self.default() if text is None else self.parse(text)

    def parse(self, text: str) -> T:
        try:
            return self.value_type.parse(text)
        except ValueError:
            raise BadKnobValue(variable=self.variable, text=text, expected=self.value_type.description) from None


def _constant(value: T) -> Callable[[], T]:
    return lambda: value


_OVERRIDES: Final[ContextVar[Mapping[str, Any]]] = ContextVar("loom_knob_overrides", default=MappingProxyType({}))


class Knobs:
    """The table. Each attribute is a knob; reading it gives its value now."""

    debug: Knob[int] = Knob(
        "LOOM_DEBUG", NATURAL, _constant(0), "0",
        "1 shows launches, 2 what is compiled and how long it takes, 3 the final IR and the commands, "
        "4 the IR after each pass that changed it, 5 each rewrite. A level includes those below it.",
    )  # fmt: skip
    verify: Knob[Literal["end", "each", "off"]] = Knob(
        "LOOM_VERIFY", VERIFY, _constant("end"), "end",
        "When the IR verifier runs: after each pass, only on the traced and the final IR, or never.",
    )  # fmt: skip
    dump_dir: Knob[Path | None] = Knob(
        "LOOM_DUMP_DIR", OPTIONAL_FOLDER, _constant(None), "none",
        "A folder that receives the IR after each pass, the disassembly and the object of each compiled kernel; "
        "while it is set, and from LOOM_DEBUG=2 on, kernels are compiled even if the disk cache has them.",
    )  # fmt: skip
    interpret: Knob[bool] = Knob(
        "LOOM_INTERPRET", FLAG, _constant(False), "0",
        "Run kernels by the NumPy reference semantics of the IR instead of compiling them.",
    )  # fmt: skip
    check: Knob[bool] = Knob(
        "LOOM_CHECK", FLAG, _constant(False), "0",
        "Look at every access of compiled kernels as they run, and raise for what is wrong: missing waits, reads of "
        "what nothing has written, programs of a grid that meet in memory, results that depend on masked elements.",
    )  # fmt: skip
    check_nan: Knob[bool] = Knob(
        "LOOM_CHECK_NAN", FLAG, _constant(False), "0",
        "Whether a checked launch that leaves a NaN or an infinity says which operation made the first one.",
    )  # fmt: skip
    check_replay: Knob[int] = Knob(
        "LOOM_CHECK_REPLAY", NATURAL, _constant(0), "0",
        "How many further runs with other engine speeds a checked launch makes; all must leave the same bytes.",
    )  # fmt: skip
    profile: Knob[bool] = Knob(
        "LOOM_PROFILE", FLAG, _constant(False), "0",
        "Run kernels under the cycle model, and show on standard error what each launch costs.",
    )  # fmt: skip
    cores: Knob[int] = Knob(
        "LOOM_CORES", NATURAL, _constant(0), "0",
        "How many simulated cores share the programs of a launch, where that is proved to change nothing; 0: as many "
        "as the machine and the CPUs of this process allow, where there is enough work. At most 64.",
    )  # fmt: skip
    cache: Knob[bool] = Knob(
        "LOOM_CACHE", FLAG, _constant(True), "1",
        "Whether compiled objects are kept on disk; the cache in memory is always used.",
    )  # fmt: skip
    cache_dir: Knob[Path] = Knob(
        "LOOM_CACHE_DIR", FOLDER, _user_cache, "the user's cache folder",
        "Where compiled objects and simulator engines are kept.",
    )  # fmt: skip
    cache_limit_mb: Knob[int] = Knob(
        "LOOM_CACHE_LIMIT_MB", NATURAL, _constant(1024), "1024",
        "The size in MiB past which the least recently used objects leave the disk cache; 0 for no limit.",
    )  # fmt: skip
    full_traceback: Knob[bool] = Knob(
        "LOOM_FULL_TRACEBACK", FLAG, _constant(False), "0",
        "Keep Loom's own frames in the traceback of a user error.",
    )  # fmt: skip

    @contextlib.contextmanager
    def override(self, **values: Any) -> Iterator[None]:
        """Give knobs other values inside a `with` block, in this thread (context) only.

        A text is read as the environment's would be. UnknownKnob for a name that is not in the table.
        """
        table = {knob.name: knob for knob in all_knobs()}
        for name in values:
            if name not in table:
                raise UnknownKnob(name=name, known=", ".join(table))
        read = {name: table[name].parse(value) if isinstance(value, str) else value for name, value in values.items()}
        token = _OVERRIDES.set({**_OVERRIDES.get(), **read})
        try:
            yield
        finally:
            _OVERRIDES.reset(token)


def overrides() -> Mapping[str, Any]:
    """The values that `override` blocks give to knobs in this context; empty outside of them."""
    return _OVERRIDES.get()


def all_knobs() -> tuple[Knob[Any], ...]:
    """Every row of the table, in the order of their declaration."""
    return tuple(row for row in vars(Knobs).values() if isinstance(row, Knob))


knobs: Final = Knobs()
