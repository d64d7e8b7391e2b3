"""IEEE arithmetic with the machine's rules for NaN: NumPy's operations, fused multiply-adds made of exact steps.

NumPy has no fused multiply-add. `fma32` computes in float64: the product of two float32 is exact there, the sum is
made exact by two-sum and rounded to odd, and rounding that to float32 equals one rounding of the exact value, because
53 bits are at least two more than 24 (S. Boldo, G. Melquiond, "Emulation of FMA and correctly rounded sums: proved
algorithms using rounding to odd", 2008). `fma64` is their algorithm for the working precision itself.

Arrays of any shapes that broadcast; results are new arrays. A NaN result is the canonical one.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

Float32s: TypeAlias = NDArray[np.float32]
Float64s: TypeAlias = NDArray[np.float64]
Bools: TypeAlias = NDArray[np.bool_]

CANONICAL_NAN_BITS32 = 0x7FC00000
CANONICAL_NAN_BITS64 = 0x7FF8000000000000
_NAN32 = np.uint32(CANONICAL_NAN_BITS32).view(np.float32)
_NAN64 = np.uint64(CANONICAL_NAN_BITS64).view(np.float64)

# With operands below the first and a product between the others, the error-free steps of `fma64` neither overflow nor
# lose bits.
_OPERAND_HIGH = 2.0**990
_PRODUCT_LOW = 2.0**-960
_PRODUCT_HIGH = 2.0**1000
_VELTKAMP = 2.0**27 + 1.0


def _quiet() -> Any:
    return np.errstate(all="ignore")


def f32(x: ArrayLike) -> Float32s:
    """`x` as a float32 array; arrays must hold float32 or narrower floats, Python numbers are rounded."""
    if type(x) in (int, float):
        return np.asarray(x, np.float32)
    array = np.asarray(x)
    if array.dtype == np.float64 or array.dtype.kind not in "fb":
        raise TypeError(f"float32 expected, got {array.dtype}")
    return array.astype(np.float32)


def canonical32(x: ArrayLike) -> Float32s:
    """Every NaN replaced by 0x7fc00000."""
    array = np.asarray(x, np.float32)
    return np.where(np.isnan(array), _NAN32, array)


def canonical64(x: ArrayLike) -> Float64s:
    """Every NaN replaced by 0x7ff8000000000000."""
    array = np.asarray(x, np.float64)
    return np.where(np.isnan(array), _NAN64, array)


def bits32(x: ArrayLike) -> NDArray[np.int32]:
    """The bit patterns of float32 values."""
    return np.asarray(x, np.float32).view(np.int32)


def from_bits32(pattern: ArrayLike) -> Float32s:
    """The float32 values with these bit patterns (int32)."""
    return np.asarray(pattern, np.int32).view(np.float32)


def two_sum(a: Float64s, b: Float64s) -> tuple[Float64s, Float64s]:
    """(s, e): s the rounded sum, e its exact error (D. Knuth)."""
    s = a + b
    back = s - a
    return s, (a - (s - back)) + (b - back)


def round_to_odd(s: Float64s, error: Float64s) -> Float64s:
    """s + error, where s is its nearest float64, rounded to odd: truncated, and the last bit set if inexact."""
    pattern = s.view(np.int64)
    inexact_even = (error != 0) & np.isfinite(s) & (pattern & 1 == 0)
    step = np.where(np.signbit(error) == np.signbit(s), 1, -1)
    return np.where(inexact_even, pattern + step, pattern).view(np.float64)


def fma32(a: ArrayLike, b: ArrayLike, c: ArrayLike) -> Float32s:
    """a * b + c rounded once to float32."""
    with _quiet():
        product = np.asarray(a, np.float32).astype(np.float64) * np.asarray(b, np.float32)
        addend = np.asarray(c, np.float32).astype(np.float64)
        s, error = two_sum(*np.broadcast_arrays(product, addend))
        return canonical32(round_to_odd(s, error).astype(np.float32))


def _two_product(a: Float64s, b: Float64s) -> tuple[Float64s, Float64s]:
    """(p, e): p the rounded product, e its exact error (G. Veltkamp, T. Dekker)."""
    p = a * b
    a_scaled, b_scaled = a * _VELTKAMP, b * _VELTKAMP
    a_high, b_high = a_scaled - (a_scaled - a), b_scaled - (b_scaled - b)
    a_low, b_low = a - a_high, b - b_high
    return p, a_low * b_low - (((p - a_high * b_high) - a_low * b_high) - a_high * b_low)


def _fma64_exact(a: float, b: float, c: float) -> float:
    """fma of finite float64 by rational arithmetic, for exponents near the ends of the range."""
    exact = Fraction(a) * Fraction(b) + Fraction(c)
    try:
        return float(exact)
    except OverflowError:
        return np.inf if exact > 0 else -np.inf


def fma64(a: ArrayLike, b: ArrayLike, c: ArrayLike) -> Float64s:
    """a * b + c rounded once to float64."""
    a64, b64, c64 = np.broadcast_arrays(*(np.asarray(x, np.float64) for x in (a, b, c)))
    with _quiet():
        high, low = _two_product(a64, b64)
        t, t_low = two_sum(c64, low)
        v, v_low = two_sum(high, t)
        w, w_low = two_sum(t_low, v_low)
        result = v + round_to_odd(w, w_low)
        # A finite product, however large, does not change an infinite addend.
        plain = np.where(np.isfinite(a64) & np.isfinite(b64) & np.isinf(c64), c64, a64 * b64 + c64)
        # With a zero factor or a value that is not finite nothing is fused; the plain sum has the right sign of zero.
        trivial = ~np.isfinite(a64 * 0.0 + b64 * 0.0 + c64 * 0.0) | (a64 == 0) | (b64 == 0)
        largest = np.maximum(np.maximum(np.abs(a64), np.abs(b64)), np.abs(c64))
        magnitude = np.abs(high)
        safe = (largest < _OPERAND_HIGH) & (magnitude > _PRODUCT_LOW) & (magnitude < _PRODUCT_HIGH)
    result = np.where(trivial, plain, result)
    flat = result.ravel()
    for index in np.flatnonzero(~safe & ~trivial):
        flat[index] = _fma64_exact(*(float(x.flat[index]) for x in (a64, b64, c64)))
    return canonical64(flat.reshape(result.shape))


def add32(a: ArrayLike, b: ArrayLike) -> Float32s:
    """a + b."""
    with _quiet():
        return canonical32(f32(a) + f32(b))


def sub32(a: ArrayLike, b: ArrayLike) -> Float32s:
    """a - b."""
    with _quiet():
        return canonical32(f32(a) - f32(b))


def mul32(a: ArrayLike, b: ArrayLike) -> Float32s:
    """a * b."""
    with _quiet():
        return canonical32(f32(a) * f32(b))


def div32(a: ArrayLike, b: ArrayLike) -> Float32s:
    """a / b; x / 0 is an infinity, 0 / 0 a NaN."""
    with _quiet():
        return canonical32(f32(a) / f32(b))


def sqrt32(x: ArrayLike) -> Float32s:
    """Square root; NaN below zero, -0 at -0."""
    with _quiet():
        return canonical32(np.sqrt(f32(x)))


def recip32(x: ArrayLike) -> Float32s:
    """1 / x."""
    return div32(np.float32(1), x)


def rsqrt32(x: ArrayLike) -> Float32s:
    """1 / sqrt(x), two roundings."""
    return recip32(sqrt32(x))


def neg32(x: ArrayLike) -> Float32s:
    """The sign flipped."""
    return canonical32(-f32(x))


def abs32(x: ArrayLike) -> Float32s:
    """The sign cleared."""
    return canonical32(np.abs(f32(x)))


def floor32(x: ArrayLike) -> Float32s:
    """Largest integral value <= x."""
    with _quiet():
        return canonical32(np.floor(f32(x)))


def ceil32(x: ArrayLike) -> Float32s:
    """Smallest integral value >= x."""
    with _quiet():
        return canonical32(np.ceil(f32(x)))


def rint32(x: ArrayLike) -> Float32s:
    """Nearest integral value, ties to even."""
    with _quiet():
        return canonical32(np.rint(f32(x)))


def trunc32(x: ArrayLike) -> Float32s:
    """x without its fraction."""
    with _quiet():
        return canonical32(np.trunc(f32(x)))


def round32(x: ArrayLike) -> Float32s:
    """Nearest integral value, ties away from zero."""
    value = f32(x)
    with _quiet():
        fraction, whole = np.modf(value)
    up = np.where(np.abs(fraction) >= 0.5, np.copysign(np.float32(1), value), np.float32(0))
    return canonical32(np.copysign(whole + up, value))


def copysign32(x: ArrayLike, y: ArrayLike) -> Float32s:
    """The magnitude of x with the sign bit of y."""
    return canonical32(np.copysign(f32(x), f32(y)))


def nextafter32(x: ArrayLike, y: ArrayLike) -> Float32s:
    """The float next to x in the direction of y."""
    return canonical32(np.nextafter(f32(x), f32(y)))


def isnan32(x: ArrayLike) -> Bools:
    """Whether x is a NaN."""
    return np.isnan(f32(x))


def select32(condition: ArrayLike, x: ArrayLike, y: ArrayLike) -> Float32s:
    """x where the condition holds, else y."""
    return canonical32(np.where(np.asarray(condition, np.bool_), f32(x), f32(y)))


def _order_key(x: Float32s) -> NDArray[np.int64]:
    """Integers ordered as the numbers are, -0 just below +0."""
    pattern = x.view(np.int32).astype(np.int64)
    return np.where(pattern < 0, -(pattern & 0x7FFFFFFF) - 1, pattern)


def _extreme(x: ArrayLike, y: ArrayLike, sign: int, propagate: bool) -> Float32s:
    a, b = np.broadcast_arrays(f32(x), f32(y))
    result = np.where(sign * _order_key(a) <= sign * _order_key(b), a, b)
    if propagate:
        result = np.where(np.isnan(a) | np.isnan(b), _NAN32, result)
    else:
        result = np.where(np.isnan(a), b, np.where(np.isnan(b), a, result))
    return canonical32(result)


def min32(x: ArrayLike, y: ArrayLike) -> Float32s:
    """The smaller; a number wins over a NaN; -0 < +0."""
    return _extreme(x, y, 1, propagate=False)


def max32(x: ArrayLike, y: ArrayLike) -> Float32s:
    """The larger; a number wins over a NaN; -0 < +0."""
    return _extreme(x, y, -1, propagate=False)


def minp32(x: ArrayLike, y: ArrayLike) -> Float32s:
    """The smaller; a NaN wins over a number; -0 < +0."""
    return _extreme(x, y, 1, propagate=True)


def maxp32(x: ArrayLike, y: ArrayLike) -> Float32s:
    """The larger; a NaN wins over a number; -0 < +0."""
    return _extreme(x, y, -1, propagate=True)
