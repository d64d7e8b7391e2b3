"""How an elementwise operation's NumPy meaning is put together: one function per kind of element.

float32 and float64 come from `loom_core.reference`. Floats of 8 and 16 bits are widened, computed in float32 and
rounded once. Integers are here: they need no more than NumPy and the division rules.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from loom_core.ops.formats import canonical, dtype_of, is_float, round_float, widen
from loom_core.reference.double import REFERENCE_F64

Array = npt.NDArray[Any]
Function = Callable[..., Any]


class NoReference(NotImplementedError):
    """The operation has no reference for this element type."""


def by_kind(float32: Function | None = None, integer: Function | None = None, boolean: Function | None = None) -> Any:
    """A `ref` that picks by the type of its last operand; integer results wrap to that type."""

    def ref(op: Any, *operands: Array) -> Array:
        dtype = operands[-1].dtype
        if dtype.kind == "b" and boolean is not None:
            return np.asarray(boolean(*operands))
        if dtype.kind in "iu" and integer is not None:
            with np.errstate(all="ignore"):
                return np.asarray(integer(*operands)).astype(dtype)
        if float32 is not None and is_float(operands[-1]):
            return on_floats(op.name, float32, operands)
        raise NoReference(f"{op.name} on {dtype}")

    return ref


def on_floats(name: str, float32: Function, operands: tuple[Array, ...]) -> Array:
    """A function of floats by its float32 form; float64 by its name."""
    dtype = dtype_of(operands[-1])
    if dtype.itemsize == 8:
        if name == "copy":
            return canonical(operands[0])
        if name not in REFERENCE_F64:
            raise NoReference(f"{name} on {dtype.name}")
        return np.asarray(REFERENCE_F64[name](*operands))
    result = np.asarray(float32(*(widen(operand) for operand in operands)))
    return round_float(result, dtype, saturate=False) if dtype.itemsize < 4 and result.dtype == np.float32 else result


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


def multiply_high(a: Array, b: Array) -> Array:
    """The upper half of the double-width product, signed or unsigned as the operands are."""
    bits = a.dtype.itemsize * 8
    if bits < 64:
        wide = np.int64 if a.dtype.kind == "i" else np.uint64
        return (a.astype(wide) * b.astype(wide)) >> wide(bits)
    x, y = np.broadcast_arrays(a, b)
    return np.array([(int(p) * int(q)) >> bits for p, q in zip(x.flat, y.flat, strict=True)], a.dtype).reshape(x.shape)


def bits_of(a: Array) -> Array:
    """The elements as unsigned integers of their width."""
    return a.view(f"u{a.dtype.itemsize}")


def count_ones(a: Array) -> Array:
    """How many bits are set."""
    return np.bitwise_count(bits_of(a))


def leading_zeros(a: Array) -> Array:
    """How many zero bits stand above the highest that is set; the width for 0."""
    spread, step = bits_of(a).copy(), 1
    while step < a.dtype.itemsize * 8:
        spread |= spread >> spread.dtype.type(step)
        step *= 2
    return a.dtype.itemsize * 8 - np.bitwise_count(spread)


def reverse_bits(a: Array) -> Array:
    """The bits in reverse order."""
    octets = np.ascontiguousarray(bits_of(a)).reshape(*a.shape, 1).view(np.uint8)
    flipped = np.packbits(np.unpackbits(octets[..., ::-1], axis=-1, bitorder="little"), axis=-1, bitorder="big")
    return np.ascontiguousarray(flipped).view(a.dtype).reshape(a.shape)
