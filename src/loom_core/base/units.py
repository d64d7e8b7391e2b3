"""Quantities as text."""

from __future__ import annotations

from typing import Final

_UNITS: Final = ("B", "KiB", "MiB", "GiB", "TiB")


def byte_count(value: float) -> str:
    """A number of bytes with a binary unit: 1536 -> "1.5 KiB"."""
    step = 0
    while abs(value) >= 1024 and step < len(_UNITS) - 1:
        value /= 1024
        step += 1
    return f"{value:.0f} {_UNITS[step]}" if value == int(value) else f"{value:.1f} {_UNITS[step]}"
