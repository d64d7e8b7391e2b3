"""How an elementwise operation's NumPy meaning is put together: one function per kind of element.

Floats come from `loom_core.reference`; integers are here, they need no more than NumPy and the division rules.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Function = Callable[..., Any]


class NoReference(NotImplementedError):
    """The operation has no reference for this element type."""


def by_kind(float32: Function | None = None, integer: Function | None = None, boolean: Function | None = None) -> Any:
    """A `ref` that picks by the type of its last operand; integer results wrap to that type."""

    def ref(op: Any, *operands: Array) -> Array:
        dtype = operands[-1].dtype
        if dtype == np.float32 and float32 is not None:
            return np.asarray(float32(*operands))
        if dtype.kind == "b" and boolean is not None:
            return np.asarray(boolean(*operands))
        if dtype.kind in "iu" and integer is not None:
            with np.errstate(all="ignore"):
                return np.asarray(integer(*operands)).astype(dtype)
        raise NoReference(f"{op.name} on {dtype}")

    return ref


def divide(a: Array, b: Array) -> Array:
    """Truncated quotient; x / 0 is all ones, the smallest integer / -1 is itself."""
    zero = b == 0
    safe = np.where(zero, 1, b)
    if a.dtype.kind == "u":
        quotient = a // safe
        return np.where(zero, np.iinfo(a.dtype).max, quotient)
    overflow = (a == np.iinfo(a.dtype).min) & (b == -1)
    safe = np.where(overflow, 1, safe)
    floor = a // safe
    rounded_down = (a - floor * safe != 0) & ((a < 0) != (safe < 0))
    return np.where(zero, -1, floor + rounded_down)


def remainder(a: Array, b: Array) -> Array:
    """a - b * divide(a, b); a where b is 0."""
    return np.where(b == 0, a, a - b * divide(a, b))


def floor_divide(a: Array, b: Array) -> Array:
    """Quotient rounded towards minus infinity; x / 0 is all ones."""
    quotient = divide(a, b)
    rest = a - b * quotient
    return np.where((b != 0) & (rest != 0) & ((rest < 0) != (b < 0)), quotient - 1, quotient)


def shift_left(a: Array, b: Array) -> Array:
    """a << b; 0 where b is outside [0, bits)."""
    legal = (b >= 0) & (b < a.dtype.itemsize * 8)
    return np.where(legal, a << np.where(legal, b, 0), 0)


def shift_right(a: Array, b: Array) -> Array:
    """a >> b, arithmetic for signed types; where b is outside [0, bits) the sign, or 0."""
    bits = a.dtype.itemsize * 8
    legal = (b >= 0) & (b < bits)
    return a >> np.where(legal, b, bits - 1) if a.dtype.kind == "i" else np.where(legal, a >> np.where(legal, b, 0), 0)
