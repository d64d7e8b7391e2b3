"""Signatures of layers, functions and models, and the matching of arguments with them."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from tensorloom.diagnostics import TensorLoomError, WrongArguments


class _Required:
    def __repr__(self) -> str:
        return "REQUIRED"


REQUIRED: Final = _Required()


class Issue(Exception):
    """A rule is broken; whoever knows the place makes a diagnostic of it."""

    def __init__(self, kind: type[TensorLoomError], hint: str | None = None, **fields: object) -> None:
        super().__init__(kind.__name__)
        self.kind = kind
        self.hint = hint
        self.fields = fields


@dataclass(frozen=True, slots=True)
class Signature:
    """Parameters in order with their defaults; `rest` takes further positional arguments, with `named` all of them."""

    parameters: tuple[tuple[str, Any], ...]
    rest: str = ""
    named: bool = False

    def bind(self, callee: str, positional: Sequence[Any], named: Iterable[tuple[str, Any]]) -> dict[str, Any]:
        """The value of each parameter. Raises Issue where the arguments do not fit."""
        names = [name for name, _ in self.parameters]
        by_place = [] if self.named else names
        bound = dict(zip(by_place, positional, strict=False))
        if len(positional) > len(by_place):
            if not self.rest:
                many = f"it takes at most {len(names)} positional arguments, and gets {len(positional)}"
                raise Issue(WrongArguments, callee=callee, reason=many)
            bound[self.rest] = tuple(positional[len(by_place) :])
        for name, value in named:
            if name in bound:
                raise Issue(WrongArguments, callee=callee, reason=f"{name} is given twice")
            if name not in names:
                hint = nearest_hint(name, names)
                raise Issue(WrongArguments, hint, callee=callee, reason=f"there is no parameter {name}")
            bound[name] = value
        for name, default in self.parameters:
            if name not in bound:
                if default is REQUIRED:
                    raise Issue(WrongArguments, callee=callee, reason=f"{name} is missing")
                bound[name] = default
        if self.rest:
            bound.setdefault(self.rest, ())
        return bound


def signature(text: str, rest: str = "", named: bool = False) -> Signature:
    """From `"in_features out_features bias=True"`: parameters, and Python literals as defaults."""
    found = []
    for part in text.split():
        name, equals, default = part.partition("=")
        found.append((name, _DEFAULTS[default] if equals else REQUIRED))
    return Signature(tuple(found), rest, named)


_DEFAULTS: Final[dict[str, Any]] = {
    "None": None, "True": True, "False": False, "0": 0, "1": 1, "-1": -1, "2": 2, "0.0": 0.0, "0.1": 0.1, "0.5": 0.5,
    "1.0": 1.0, "0.01": 0.01, "1e-5": 1e-5, "64": 64, "1000": 1000, "zeros": "zeros", "tanh": "tanh", "none": "none",
    "mean": "mean",
}  # fmt: skip


def nearest(name: str, names: Iterable[str]) -> str | None:
    """The known name that is most like `name`, if one is."""
    known = {known.lower(): known for known in names}
    found = difflib.get_close_matches(name.lower(), known, 1, 0.6)
    return known[found[0]] if found else None


def nearest_hint(name: str, names: Iterable[str]) -> str:
    """A hint that proposes the nearest name, or lists what there is."""
    known = sorted(set(names))
    found = nearest(name, known)
    if found is not None:
        return f"did you mean {found}?"
    return f"there are: {', '.join(known)}" if 0 < len(known) <= 30 else ""
