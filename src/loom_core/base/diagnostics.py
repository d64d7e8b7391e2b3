"""Diagnostics as values, the errors that carry them, their rendering, and the catalogue of codes.

A code is declared next to the layer that raises it, as one class with its template:

    class TileTooLarge(UserError):
        code = "LOOM-C101"
        template = "a tile of {size} bytes does not fit the {limit} bytes of SRAM"
        hint = "use smaller block sizes, or a machine with more SRAM"

and raised with the values of the template's fields: `raise TileTooLarge(location, size=..., limit=...)`.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import linecache
import re
import string
import unicodedata
import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, ClassVar, Final, Literal, TypeVar

from loom_core.base.cells import shown_file
from loom_core.base.location import UNKNOWN, Location

Severity = Literal["error", "warning", "note"]

CODE_RANGES: Final = {
    "F": "frontends",
    "I": "Tile IR and its verifier",
    "C": "compiler",
    "O": "object file",
    "R": "runtime and launches",
    "S": "simulator",
    "K": "knobs and command-line tools",
    "T": "TensorLoom",
    "X": "internal errors",
}
"""What the letter of a code stands for; a new layer adds its letter here."""

_CATALOGUE: dict[str, type[LoomError]] = {}
_CODE: Final = re.compile(rf"LOOM-[{''.join(CODE_RANGES)}]\d{{3}}")


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One finding: what is wrong, where, what else is known, and what to do about it."""

    code: str
    message: str
    location: Location = UNKNOWN
    severity: Severity = "error"
    notes: tuple[str, ...] = ()
    hint: str = ""

    def __str__(self) -> str:
        return render(self)

    def _repr_html_(self) -> str:
        from loom_core.base.html import coloured, document, tag

        return document(tag("pre", coloured(render(self, color=True))))


def _register(cls: type[LoomError]) -> None:
    if not _CODE.fullmatch(cls.code):
        letters = ", ".join(CODE_RANGES)
        raise TypeError(f"{cls.__qualname__}: {cls.code!r} is not a code: LOOM-, one of {letters}, three digits")
    if not cls.template:
        raise TypeError(f"{cls.__qualname__}: a code needs a template")
    other = _CATALOGUE.get(cls.code)
    # A module that is reloaded declares its classes anew; any other second claim is a mistake.
    if other is not None and (other.__module__, other.__qualname__) != (cls.__module__, cls.__qualname__):
        raise TypeError(f"{cls.__qualname__}: {cls.code} already belongs to {other.__module__}.{other.__qualname__}")
    _CATALOGUE[cls.code] = cls


class LoomError(Exception):
    """An error that carries one or more diagnostics; its text is their rendering."""

    code: ClassVar[str] = ""
    template: ClassVar[str] = ""
    hint: ClassVar[str] = ""
    severity: ClassVar[Severity] = "error"

    diagnostics: tuple[Diagnostic, ...]

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "code" in cls.__dict__:
            _register(cls)

    def __init__(
        self, location: Location | None = None, *, notes: Iterable[str] = (), hint: str | None = None, **fields: object
    ) -> None:
        self._adopt((type(self).diagnostic(location, notes=notes, hint=hint, **fields),))

    @classmethod
    def diagnostic(
        cls,
        location: Location | None = None,
        *,
        notes: Iterable[str] = (),
        hint: str | None = None,
        **fields: object,
    ) -> Diagnostic:
        """The diagnostic of this code as a value, for callers that collect findings instead of raising.

        `hint` replaces the hint of the class. TypeError if `fields` lacks one that the template or the hint names, or
        holds one that neither names.
        """
        if not cls.code:
            raise TypeError(f"{cls.__name__} has no code of its own: raise a subclass, or build it with `of`")
        needed, optional = template_fields(cls.template), template_fields(cls.hint)
        if hint is None:
            needed |= optional
        if not needed <= fields.keys() <= needed | optional:
            raise TypeError(f"{cls.__name__} takes the fields {sorted(needed)}, not {sorted(fields)}")
        text = cls.hint.format(**fields) if hint is None else hint
        where = UNKNOWN if location is None else location
        return Diagnostic(cls.code, cls.template.format(**fields), where, cls.severity, tuple(notes), text)

    @classmethod
    def of(cls, diagnostics: Iterable[Diagnostic]) -> LoomError:
        """An error that carries diagnostics built before, at least one."""
        found = tuple(diagnostics)
        if not found:
            raise ValueError("an error needs at least one diagnostic")
        error = cls.__new__(cls)
        error._adopt(found)
        return error

    def _adopt(self, diagnostics: tuple[Diagnostic, ...]) -> None:
        Exception.__init__(self, *(d.message for d in diagnostics))
        self.diagnostics = diagnostics

    @property
    def location(self) -> Location:
        """Where the first diagnostic points."""
        return self.diagnostics[0].location

    def __str__(self) -> str:
        return "\n".join(render(diagnostic) for diagnostic in self.diagnostics)

    def _repr_html_(self) -> str:
        return "".join(diagnostic._repr_html_() for diagnostic in self.diagnostics)

    def _render_traceback_(self) -> Any:
        """The traceback as IPython draws it, of the user's frames alone."""
        from IPython import get_ipython

        error = without_internal_frames(self)
        return get_ipython().InteractiveTB.structured_traceback(type(self), error, error.__traceback__)

    def __reduce__(self) -> tuple[Any, tuple[Any, ...]]:
        return _rebuild, (type(self), self.diagnostics)


class UserError(LoomError):
    """Something that the user wrote, passed or asked for cannot be done."""


class InternalError(LoomError):
    """Loom broke one of its own rules: a defect to report, never the user's fault."""

    code = "LOOM-X001"
    template = "internal error: {what}"
    hint = "this is a defect in Loom; please report it with the code that shows it"


class LoomWarning(UserWarning):
    """The category of every warning that Loom gives."""


def warn(diagnostic: Diagnostic) -> None:
    """Give `diagnostic` as a Python warning that points at the first caller outside Loom."""
    level = 2
    frame = inspect.currentframe()
    caller = frame.f_back if frame is not None else None
    while caller is not None and _is_internal(caller.f_code.co_filename):
        caller = caller.f_back
        level += 1
    warnings.warn(render(diagnostic), LoomWarning, stacklevel=level)


def catalogue() -> tuple[type[LoomError], ...]:
    """Every declared code of the modules imported so far, sorted by code."""
    return tuple(_CATALOGUE[code] for code in sorted(_CATALOGUE))


def template_fields(template: str) -> set[str]:
    """The names of the fields of a format string."""
    names = (name for _, name, _, _ in string.Formatter().parse(template) if name is not None)
    return {re.split(r"[.\[]", name, maxsplit=1)[0] for name in names}


def _rebuild(cls: type[LoomError], diagnostics: tuple[Diagnostic, ...]) -> LoomError:
    return cls.of(diagnostics)


# ---- rendering -------------------------------------------------------------------------------------------------------

_COLOURS: Final = {"error": "\033[1;31m", "warning": "\033[1;33m", "note": "\033[1;36m", "caret": "\033[1;32m"}
_RESET: Final = "\033[0m"


def render(diagnostic: Diagnostic, color: bool = False) -> str:
    """The diagnostic as text: position, code, message, source line with a caret span, call chain, notes and hint."""

    def paint(text: str, style: str) -> str:
        return f"{_COLOURS[style]}{text}{_RESET}" if color else text

    tag = paint(f"{diagnostic.severity}[{diagnostic.code}]", diagnostic.severity)
    where = f"{_position(diagnostic.location)}: " if diagnostic.location != UNKNOWN else ""
    lines = [f"{where}{tag}: {diagnostic.message}", *_snippet(diagnostic.location, paint)]
    for parent in list(diagnostic.location.chain())[1:]:
        inside = f", in {parent.function}" if parent.function else ""
        lines.append(f"  inlined from {_position(parent)}{inside}")
        lines.extend(_snippet(parent, paint))
    lines.extend(_labelled(paint("note", "note"), note) for note in diagnostic.notes)
    if diagnostic.hint:
        lines.append(_labelled(paint("hint", "note"), diagnostic.hint))
    return "\n".join(lines)


def _labelled(label: str, text: str) -> str:
    return f"  {label}: " + text.replace("\n", "\n        ")


def _position(location: Location) -> str:
    if not location.known:
        return str(location)
    place = f"{shown_file(location.file)}:{location.line}"
    if location.column < 0:
        return place
    source = _source_line(location)
    column = len(_prefix(source, location.column)) if source is not None else location.column
    return f"{place}:{column + 1}"


def _source_line(location: Location) -> str | None:
    if not location.known:
        return None
    # linecache also holds the cells of notebooks and interactive sessions.
    line = linecache.getline(location.file, location.line)
    return line.rstrip("\r\n") if line.strip() else None


def _prefix(line: str, byte_offset: int) -> str:
    return line.encode()[:byte_offset].decode(errors="ignore")


def _snippet(location: Location, paint: Any) -> list[str]:
    source = _source_line(location)
    if source is None:
        return []
    number = f"{location.line:>5}"
    lines = [f"{number} | {source}"]
    if location.column >= 0:
        before = _prefix(source, location.column)
        span = _prefix(source, max(location.end_column, location.column + 1))[len(before) :].rstrip()
        # Tabs stay tabs and wide characters count twice, so that the carets stand under what they mean.
        padding = "".join("\t" if c == "\t" else " " * _cells(c) for c in before)
        carets = "^" * max(1, sum(_cells(c) for c in span))
        lines.append(f"{' ' * len(number)} | {padding}{paint(carets, 'caret')}")
    return lines


def _cells(character: str) -> int:
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


# ---- tracebacks ------------------------------------------------------------------------------------------------------

_SOURCES: Final = Path(__file__).resolve().parents[2]
INTERNAL_PACKAGES: Final = ("loom", "loom_core", "loom_sim", "libloom", "ltl", "palladium", "tensorloom")
_INTERNAL: Final = tuple(str(_SOURCES / package) + sep for package in INTERNAL_PACKAGES for sep in ("/", "\\"))
_BETWEEN: Final = (contextlib.__file__, functools.__file__)
"""Files of Python whose frames stand between internal ones."""

Error = TypeVar("Error", bound=BaseException)


def _is_internal(filename: str) -> bool:
    return filename.startswith(_INTERNAL)


def without_internal_frames(error: Error) -> Error:
    """`error` with the frames of Loom's own files removed from its traceback, the user's left.

    For use where a frontend returns to user code: `raise without_internal_frames(error) from None`. Internal errors
    keep their whole traceback, and so does everything under `LOOM_FULL_TRACEBACK=1`.
    """
    from loom_core.base.knobs import knobs

    if isinstance(error, InternalError) or knobs.full_traceback:
        return error
    kept: list[TracebackType] = []
    entry, inside = error.__traceback__, False
    while entry is not None:
        file = entry.tb_frame.f_code.co_filename
        inside = _is_internal(file) or (inside and file in _BETWEEN)
        if not inside:
            kept.append(entry)
        entry = entry.tb_next
    chain: TracebackType | None = None
    for part in reversed(kept):
        chain = TracebackType(chain, part.tb_frame, part.tb_lasti, part.tb_lineno)
    return error.with_traceback(chain)
