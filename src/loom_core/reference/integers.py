"""Integer and bool functions of arrays, total and wrapping: NumPy's operations with the machine's division and shifts.

Operands of one function have one dtype (8 to 64 bits, signed or unsigned, or bool) and broadcast; the result has it
too, except that comparisons give bools and counts int32.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

Integers = NDArray[Any]


def _pair(a: ArrayLike, b: ArrayLike) -> tuple[Integers, Integers]:
    x, y = np.asarray(a), np.asarray(b)
    if x.dtype != y.dtype or x.dtype.kind not in "iu":
        raise TypeError(f"integers of one type expected, got {x.dtype} and {y.dtype}")
    return x, y


def _one(a: ArrayLike) -> Integers:
    x = np.asarray(a)
    if x.dtype.kind not in "iu":
        raise TypeError(f"integers expected, got {x.dtype}")
    return x


def width(x: Integers) -> int:
    """Bits of an element."""
    return 8 * x.dtype.itemsize


def unsigned(x: Integers) -> Integers:
    """The same bits as unsigned integers."""
    return np.asarray(x).view(f"u{x.dtype.itemsize}")


def add(a: ArrayLike, b: ArrayLike) -> Integers:
    """a + b modulo 2^bits."""
    x, y = _pair(a, b)
    with np.errstate(over="ignore"):
        return np.asarray(x + y)


def sub(a: ArrayLike, b: ArrayLike) -> Integers:
    """a - b modulo 2^bits."""
    x, y = _pair(a, b)
    with np.errstate(over="ignore"):
        return np.asarray(x - y)


def mul(a: ArrayLike, b: ArrayLike) -> Integers:
    """a * b modulo 2^bits."""
    x, y = _pair(a, b)
    with np.errstate(over="ignore"):
        return np.asarray(x * y)


def neg(a: ArrayLike) -> Integers:
    """-a modulo 2^bits."""
    x = _one(a)
    with np.errstate(over="ignore"):
        return np.asarray(np.negative(x))


def absolute(a: ArrayLike) -> Integers:
    """|a|; the least integer stays itself."""
    with np.errstate(over="ignore"):
        return np.asarray(np.abs(_one(a)))


def div(a: ArrayLike, b: ArrayLike) -> Integers:
    """The truncated quotient; x / 0 is all ones, the least integer divided by -1 is itself."""
    x, y = np.broadcast_arrays(*_pair(a, b))
    ones = ~np.zeros_like(x)
    divisor = np.where(y == 0, np.ones_like(y), y)
    if x.dtype.kind == "u":
        return np.where(y == 0, ones, x // divisor)
    negative = (x < 0) != (divisor < 0)
    with np.errstate(over="ignore"):
        # Magnitudes as unsigned integers, in which that of the least integer has room.
        quotient = (unsigned(np.abs(x)) // unsigned(np.abs(divisor))).view(x.dtype)
        return np.where(y == 0, ones, np.where(negative, -quotient, quotient))


def rem(a: ArrayLike, b: ArrayLike) -> Integers:
    """a - b * div(a, b): the sign of a; x % 0 is x, the least integer modulo -1 is 0."""
    return sub(a, mul(b, div(a, b)))


def mulhi(a: ArrayLike, b: ArrayLike) -> Integers:
    """The upper half of the product of twice the width."""
    x, y = np.broadcast_arrays(*_pair(a, b))
    bits = width(x)
    if bits < 64:
        wide = np.int64 if x.dtype.kind == "i" else np.uint64
        return np.asarray((x.astype(wide) * y.astype(wide) >> wide(bits)).astype(x.dtype))
    # Schoolbook multiplication of halves; a signed product is the unsigned one less what the sign bits stand for.
    half, low = np.uint64(32), np.uint64(0xFFFFFFFF)
    ux, uy = unsigned(x), unsigned(y)
    xh, xl, yh, yl = ux >> half, ux & low, uy >> half, uy & low
    middle = (xl * yl >> half) + (xh * yl & low) + (xl * yh & low)
    high = xh * yh + (xh * yl >> half) + (xl * yh >> half) + (middle >> half)
    if x.dtype.kind == "i":
        zero = np.uint64(0)
        high = high - np.where(x < 0, uy, zero) - np.where(y < 0, ux, zero)
    return np.asarray(high).view(x.dtype)


def shl(a: ArrayLike, b: ArrayLike) -> Integers:
    """a << b; 0 where b is outside [0, bits)."""
    x, count = _pair(a, b)
    inside = (count >= 0) & (count < width(x))
    return np.where(inside, x << np.where(inside, count, 0).astype(x.dtype), np.zeros_like(x))


def shr(a: ArrayLike, b: ArrayLike) -> Integers:
    """a >> b, arithmetic for signed types; outside [0, bits) all bits are the sign, or 0 for unsigned types."""
    x, count = _pair(a, b)
    inside = (count >= 0) & (count < width(x))
    shifted = x >> np.where(inside, count, width(x) - 1).astype(x.dtype)
    return shifted if x.dtype.kind == "i" else np.where(inside, shifted, np.zeros_like(x))


def shru(a: ArrayLike, b: ArrayLike) -> Integers:
    """a >> b of the bits as an unsigned integer; 0 where b is outside [0, bits)."""
    x, count = _pair(a, b)
    return shr(unsigned(x), unsigned(count)).view(x.dtype)


def popcount(a: ArrayLike) -> NDArray[np.int32]:
    """How many bits are set."""
    pattern = unsigned(_one(a)).astype(np.uint64)
    result = np.zeros(pattern.shape, np.int32)
    for bit in range(64):
        result += (pattern >> np.uint64(bit) & np.uint64(1)).astype(np.int32)
    return result


def clz(a: ArrayLike) -> NDArray[np.int32]:
    """How many zero bits stand above the highest one; the width for 0."""
    x = _one(a)
    pattern = unsigned(x).astype(np.uint64)
    result = np.full(pattern.shape, width(x), np.int32)
    for bit in range(width(x)):
        result[pattern >> np.uint64(bit) != 0] = width(x) - 1 - bit
    return result


def brev(a: ArrayLike) -> Integers:
    """The bits in reverse order."""
    x = _one(a)
    pattern = unsigned(x).astype(np.uint64)
    result = np.zeros_like(pattern)
    for bit in range(width(x)):
        result |= (pattern >> np.uint64(bit) & np.uint64(1)) << np.uint64(width(x) - 1 - bit)
    return result.astype(unsigned(x).dtype).view(x.dtype)


def select(condition: ArrayLike, a: ArrayLike, b: ArrayLike) -> NDArray[Any]:
    """a where the condition holds, else b."""
    return np.where(np.asarray(condition, np.bool_), a, b)


_COMPARISONS: dict[str, Callable[..., Any]] = {
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
}
INTEGER: Final[dict[str, Callable[..., Any]]] = {
    **_COMPARISONS,
    "mov": np.copy,
    "add": add,
    "sub": sub,
    "mul": mul,
    "div": div,
    "rem": rem,
    "min": np.minimum,
    "max": np.maximum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "not": np.invert,
    "shl": shl,
    "shr": shr,
    "shru": shru,
    "neg": neg,
    "abs": absolute,
    "ltu": lambda a, b: unsigned(np.asarray(a)) < unsigned(np.asarray(b)),
    "leu": lambda a, b: unsigned(np.asarray(a)) <= unsigned(np.asarray(b)),
    "select": select,
    "mulhi": mulhi,
    "popcount": popcount,
    "clz": clz,
    "brev": brev,
}
"""Function name of the command table -> reference, for every integer type."""

BOOL: Final[dict[str, Callable[..., Any]]] = {
    **_COMPARISONS,
    "mov": np.copy,
    "and": np.logical_and,
    "or": np.logical_or,
    "xor": np.logical_xor,
    "not": np.logical_not,
    "select": select,
}
"""The same for bool arrays."""
