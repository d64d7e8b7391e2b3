"""Names for what foreign programs call otherwise."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable
from typing import Any, Final

_FOREIGN: Final = re.compile(r"[^0-9A-Za-z_]+")
_SELF_KEYED: Final = (str, int, float, bool, bytes, complex, type(None))


def _words(text: str) -> str:
    return _FOREIGN.sub("_", text).strip("_")


def sanitize_identifier(name: str, *, fallback: str = "v") -> str:
    """A value name: one leading `%` dropped, other characters become `_`, a leading digit gets `_` before it."""
    found = _words(name.removeprefix("%")) or fallback
    return f"_{found}" if found[0].isdigit() else found


def sanitize_symbol(name: str | None, *, fallback: str = "symbol") -> str:
    """A symbol name; `fallback` where nothing is left, and before a leading digit."""
    found = _words(name or "") or fallback
    return f"{fallback}_{found}" if found[0].isdigit() else found


def source_name(source: Any) -> str:
    """What a foreign object is called: its `get_name()`, else its text."""
    getter = getattr(source, "get_name", None)
    return (getter() if getter is not None else None) or str(source)


def source_key(source: Any) -> Hashable:
    """A key of a foreign object: itself if it is a simple immutable, else its identity, whatever its `==` says."""
    if isinstance(source, _SELF_KEYED) and type(source) in _SELF_KEYED:
        return type(source), source
    return "object", id(source)


class NameAllocator:
    """Gives each name once: base, base_2, base_3, ..."""

    def __init__(self, reserved: Iterable[str] = ()) -> None:
        self._used = set(reserved)
        self._last: dict[str, int] = {}

    @property
    def used(self) -> frozenset[str]:
        return frozenset(self._used)

    def capture(self, name: str) -> None:
        """Take a name out of use."""
        self._used.add(name)

    def fresh(self, base: str, *, fallback: str = "v") -> str:
        """A new name made of `base`, sanitised."""
        name = base = sanitize_identifier(base, fallback=fallback)
        number = self._last.get(base, 1)
        while name in self._used:
            number += 1
            name = f"{base}_{number}"
        self._last[base] = number
        self._used.add(name)
        return name

    def reserve_or_fresh(self, name: str, *, fallback: str = "v") -> str:
        """`name` itself where it is free, else a new one."""
        if name and name not in self._used:
            self._used.add(name)
            return name
        return self.fresh(name, fallback=fallback)

    def fresh_from_source(self, source: Any, *, fallback: str = "v") -> str:
        """A new name for a foreign object."""
        return self.fresh(source_name(source), fallback=fallback)
