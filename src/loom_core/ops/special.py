"""Less common elementwise functions of floats: what a device's math library has beyond `elementwise`."""

from __future__ import annotations

import numpy as np

from loom_core.base.dtype import i32
from loom_core.ir.op import attribute, operand
from loom_core.ir.types import TileType
from loom_core.ops.elementwise import Binary, Elementwise, FloatUnary
from loom_core.ops.formats import dtype_of, round_float, widen
from loom_core.ops.references import Array, by_kind
from loom_core.reference import arith
from loom_core.reference.double import REFERENCE_F64
from loom_core.reference.elementary import REFERENCE_F32


class FloatBinary(Binary):
    """A function of two floats."""

    allowed = ("float",)


class Expm1(FloatUnary):
    """e to the power x, minus 1, accurate near 0."""

    name = "expm1"
    ref = by_kind(REFERENCE_F32["expm1"])


class Log10(FloatUnary):
    """Logarithm to base 10."""

    name = "log10"
    ref = by_kind(REFERENCE_F32["log10"])


class Log1p(FloatUnary):
    """Natural logarithm of 1 + x, accurate near 0."""

    name = "log1p"
    ref = by_kind(REFERENCE_F32["log1p"])


class Tan(FloatUnary):
    """Tangent of x radians."""

    name = "tan"
    ref = by_kind(REFERENCE_F32["tan"])


class Asin(FloatUnary):
    """Arc sine in radians."""

    name = "asin"
    ref = by_kind(REFERENCE_F32["asin"])


class Acos(FloatUnary):
    """Arc cosine in radians."""

    name = "acos"
    ref = by_kind(REFERENCE_F32["acos"])


class Atan(FloatUnary):
    """Arc tangent in radians."""

    name = "atan"
    ref = by_kind(REFERENCE_F32["atan"])


class Sinh(FloatUnary):
    """Hyperbolic sine."""

    name = "sinh"
    ref = by_kind(REFERENCE_F32["sinh"])


class Cosh(FloatUnary):
    """Hyperbolic cosine."""

    name = "cosh"
    ref = by_kind(REFERENCE_F32["cosh"])


class Asinh(FloatUnary):
    """Inverse hyperbolic sine."""

    name = "asinh"
    ref = by_kind(REFERENCE_F32["asinh"])


class Acosh(FloatUnary):
    """Inverse hyperbolic cosine."""

    name = "acosh"
    ref = by_kind(REFERENCE_F32["acosh"])


class Atanh(FloatUnary):
    """Inverse hyperbolic tangent."""

    name = "atanh"
    ref = by_kind(REFERENCE_F32["atanh"])


class Erfc(FloatUnary):
    """1 minus the error function, accurate in the tail."""

    name = "erfc"
    ref = by_kind(REFERENCE_F32["erfc"])


class ErfInverse(FloatUnary):
    """Inverse of the error function."""

    name = "erfinv"
    ref = by_kind(REFERENCE_F32["erfinv"])


class CubeRoot(FloatUnary):
    """Cube root."""

    name = "cbrt"
    ref = by_kind(REFERENCE_F32["cbrt"])


class LogGamma(FloatUnary):
    """Natural logarithm of |gamma(x)|."""

    name = "lgamma"
    ref = by_kind(REFERENCE_F32["lgamma"])


class Digamma(FloatUnary):
    """Derivative of the logarithm of the gamma function."""

    name = "digamma"
    ref = by_kind(REFERENCE_F32["digamma"])


class RoundAway(FloatUnary):
    """Nearest integer, halves away from zero."""

    name = "round"
    ref = by_kind(arith.round32)


class Atan2(FloatBinary):
    """Angle in radians of the point with ordinate lhs and abscissa rhs."""

    name = "atan2"
    ref = by_kind(REFERENCE_F32["atan2"])


class Power(FloatBinary):
    """lhs to the power rhs."""

    name = "pow"
    ref = by_kind(REFERENCE_F32["pow"])


class Fmod(FloatBinary):
    """lhs - rhs * trunc(lhs / rhs), exact; it has the sign of lhs."""

    name = "fmod"
    ref = by_kind(REFERENCE_F32["fmod"])


class FloatRemainder(FloatBinary):
    """lhs - rhs * n, n the integer nearest to lhs / rhs (halves to even), exact."""

    name = "remainder"
    ref = by_kind(REFERENCE_F32["remainder"])


class CopySign(FloatBinary):
    """The magnitude of lhs with the sign of rhs."""

    name = "copysign"
    ref = by_kind(arith.copysign32)


class NextAfter(FloatBinary):
    """The next value of the type after lhs in the direction of rhs."""

    name = "nextafter"

    def ref(self, lhs: Array, rhs: Array) -> Array:
        if lhs.dtype.itemsize >= 4:
            return by_kind(REFERENCE_F32["nextafter"])(self, lhs, rhs)  # type: ignore[no-any-return]
        return _next_narrow(lhs, rhs)


class Hypot(FloatBinary):
    """sqrt(lhs^2 + rhs^2) without overflow in between."""

    name = "hypot"
    ref = by_kind(REFERENCE_F32["hypot"])


class Ldexp(Elementwise):
    """fraction * 2^exponent, rounded once; the exponent is i32."""

    name = "ldexp"
    allowed = ("float",)
    fraction = operand()
    exponent = operand()

    def ref(self, fraction: Array, exponent: Array) -> Array:
        with np.errstate(all="ignore"):
            if fraction.dtype == np.float64:
                return np.asarray(REFERENCE_F64["ldexp"](fraction, exponent))
            scaled = np.ldexp(widen(fraction).astype(np.float64), np.clip(exponent, -600, 600))
        return round_float(scaled, dtype_of(fraction), saturate=False)

    def verify(self) -> str | None:
        if self.exponent.type != self.fraction.type.with_element(i32):
            return f"the exponent is {self.exponent.type}, i32 of the fraction's shape is needed"
        if self.fraction.type.is_pointer or not self.fraction.type.dtype.is_float:
            return f"{self.name} does not take {self.fraction.type}"
        return None


class FrexpFraction(FloatUnary):
    """x / 2^frexp_exponent(x), in [0.5, 1) by magnitude; zeros, infinities and NaN as they are."""

    name = "frexp_fraction"
    ref = by_kind(REFERENCE_F32["frexp_fraction"])


class FrexpExponent(FloatUnary):
    """The exponent e, i32, for which |x| / 2^e is in [0.5, 1); 0 for zeros, infinities and NaN."""

    name = "frexp_exponent"

    def ref(self, x: Array) -> Array:
        if x.dtype == np.float64:
            return np.asarray(REFERENCE_F64["frexp_exponent"](x))
        return np.asarray(REFERENCE_F32["frexp_exponent"](widen(x)))

    def infer(self) -> tuple[TileType, ...]:
        return (self.operand.type.with_element(i32),)


class RoundMantissa(FloatUnary):
    """x of f32 rounded to `bits` mantissa bits, to nearest even; 10 gives tf32. Infinities and NaN stay."""

    name = "round_mantissa"
    bits = attribute()

    def ref(self, x: Array) -> Array:
        dropped = 23 - self.bits
        pattern = np.ascontiguousarray(x).reshape(x.shape).view(np.uint32)
        odd = (pattern >> np.uint32(dropped)) & np.uint32(1)
        raised = pattern + odd + np.uint32((1 << (dropped - 1)) - 1)
        kept = (raised & np.uint32(0xFFFF_FFFF << dropped & 0xFFFF_FFFF)).view(np.float32)
        return arith.canonical32(np.where(np.isfinite(x), kept, x))

    def verify(self) -> str | None:
        if not 0 < self.bits < 23:
            return f"{self.bits} mantissa bits are not fewer than float32 has"
        dtype = self.operand.type.element
        return None if getattr(dtype, "name", "") == "f32" else f"{self.name} does not take {self.operand.type}"


class CastTowardZero(FloatUnary):
    """Convert a float to the narrower float type `dtype`, truncating; no finite value becomes infinite."""

    name = "cast_toward_zero"
    dtype = attribute()

    def ref(self, x: Array) -> Array:
        return round_float(widen(x), self.dtype, toward_zero=True)

    def infer(self) -> tuple[TileType, ...]:
        return (self.operand.type.with_element(self.dtype),)


def _next_narrow(x: Array, y: Array) -> Array:
    """nextafter for the 8- and 16-bit formats, by steps of their bit patterns."""
    unsigned = np.dtype(f"u{x.dtype.itemsize}")
    wide_x, wide_y = widen(x), widen(y)
    pattern = np.ascontiguousarray(x).reshape(x.shape).view(unsigned).astype(np.int64)
    away = (wide_y > wide_x) == (wide_x > 0)
    stepped = (pattern + np.where(away, 1, -1)).astype(unsigned)
    smallest = np.where(wide_y > 0, 1, 1 | (1 << (8 * unsigned.itemsize - 1))).astype(unsigned)
    moved = np.where(wide_x == 0, smallest, stepped).view(x.dtype)
    result = np.where(wide_x == wide_y, y, moved)
    return np.where(
        np.isnan(wide_x) | np.isnan(wide_y), round_float(np.full(x.shape, np.nan, np.float32), dtype_of(x)), result
    )
