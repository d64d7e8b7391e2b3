"""Scalar and index arithmetic from the operations of Tile IR, which has unsigned types instead of unsigned operations.

A row takes the builder, the operands (all scalars or all tiles) and the operation, and gives the result.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from loom_core.base.dtype import DType, bool_
from loom_core.importers.workgroups.lanes import BOOLS_ARE_NO_NUMBERS, UNSIGNED, Lanes, Unmapped
from loom_core.interchange.attributes import CanonicalAttrDict
from loom_core.ir.op import Op
from loom_core.ir.value import Value
from loom_core.ops import bits
from loom_core.ops import elementwise as e
from loom_core.ops import special as s

Row = Callable[[Lanes, list[Value], CanonicalAttrDict, DType], Value]
"""Operands, attributes, dtype of the result -> the result."""


def direct(kind: type[Op]) -> Row:
    """One operation of Tile IR."""

    def build(b: Lanes, v: list[Value], attributes: CanonicalAttrDict, dtype: DType) -> Value:
        if v[0].type.dtype is bool_ and kind not in (e.And, e.Or, e.Xor):
            raise Unmapped(BOOLS_ARE_NO_NUMBERS)
        found: Value = b.make(kind, *v)
        return found

    return build


def unsigned(kind: type[Op]) -> Row:
    """One operation of Tile IR, on unsigned integers."""

    def build(b: Lanes, v: list[Value], attributes: CanonicalAttrDict, dtype: DType) -> Value:
        if v[0].type.dtype is bool_:
            raise Unmapped(BOOLS_ARE_NO_NUMBERS)
        return b.bits_as(b.make(kind, *map(b.unsigned, v)), v[0].type.dtype)

    return build


def counted(build_count: Callable[[Lanes, Value], Value]) -> Row:
    """A count of bits, of the type of the operand."""

    def build(b: Lanes, v: list[Value], attributes: CanonicalAttrDict, dtype: DType) -> Value:
        if v[0].type.dtype is bool_:
            raise Unmapped(BOOLS_ARE_NO_NUMBERS)
        return b.cast(build_count(b, v[0]), v[0].type.dtype)

    return build


def _trailing_zeros(b: Lanes, x: Value) -> Value:
    lowest = b.make(e.And, x, b.make(e.Negate, x))
    found: Value = b.make(bits.BitCount, b.make(e.Sub, lowest, b.like(1, x)))
    return found


def _rotate(forward: type[Op], left: bool) -> Row:
    def build(b: Lanes, v: list[Value], attributes: CanonicalAttrDict, dtype: DType) -> Value:
        x, count = map(b.unsigned, v)
        width = v[0].type.dtype.bits
        inside = b.like(width - 1, count)
        count = b.make(e.And, count, inside)
        back = b.make(e.And, b.make(e.Sub, b.like(width, count), count), inside)
        first, second = (count, back) if left else (back, count)
        rotated = b.make(e.Or, b.make(e.ShiftLeft, x, first), b.make(e.ShiftRight, x, second))
        return b.bits_as(rotated, v[0].type.dtype)

    return build


def _rounded(up: bool, signed: bool) -> Row:
    """The quotient cut off, then moved by 1 where something is left on the other side; all ones for a zero divisor."""

    def build(b: Lanes, v: list[Value], attributes: CanonicalAttrDict, dtype: DType) -> Value:
        if dtype is bool_:
            raise Unmapped(BOOLS_ARE_NO_NUMBERS)
        x, y = v if signed else map(b.unsigned, v)
        zero = b.like(0, y)
        quotient, left = b.make(e.Div, x, y), b.make(e.Rem, x, y)
        moves = b.make(e.And, *(b.make(e.Compare, part, zero, predicate="ne") for part in (left, y)))
        if signed:
            apart = b.make(e.Compare, b.make(e.Xor, left, y), zero, predicate="ge" if up else "lt")
            moves = b.make(e.And, moves, apart)
        moved = b.make(e.Add if up else e.Sub, quotient, b.cast(moves, quotient.type.dtype))
        return b.bits_as(moved, v[0].type.dtype)

    return build


def _sign(b: Lanes, v: list[Value], attributes: CanonicalAttrDict, dtype: DType) -> Value:
    (x,) = v
    zero = b.like(0, x)
    above = b.make(
        e.Select, b.make(e.Compare, x, zero, predicate="gt"), b.like(1, x), x if x.type.dtype.is_float else zero
    )
    found: Value = b.make(e.Select, b.make(e.Compare, x, zero, predicate="lt"), b.like(-1, x), above)
    return found


def _silu(b: Lanes, v: list[Value], attributes: CanonicalAttrDict, dtype: DType) -> Value:
    found: Value = b.make(e.Mul, v[0], b.make(e.Sigmoid, v[0]))
    return found


def _softplus(b: Lanes, v: list[Value], attributes: CanonicalAttrDict, dtype: DType) -> Value:
    """max(x, 0) + log1p(exp(-|x|))."""
    (x,) = v
    tail = b.make(s.Log1p, b.make(e.Exp, b.make(e.Negate, b.make(e.Abs, x))))
    found: Value = b.make(e.Add, b.make(e.MaxPropagate, x, b.like(0, x)), tail)
    return found


def _multiply_add(b: Lanes, v: list[Value], attributes: CanonicalAttrDict, dtype: DType) -> Value:
    found: Value = b.make(e.Add, b.make(e.Mul, v[0], v[1]), v[2])
    return found


def _clamp(b: Lanes, v: list[Value], attributes: CanonicalAttrDict, dtype: DType) -> Value:
    x, low, high = v
    mode = attributes["mode"]
    if mode == "ordered":
        x = b.make(e.Select, b.make(e.Compare, x, low, predicate="lt"), low, x)
        found: Value = b.make(e.Select, b.make(e.Compare, x, high, predicate="gt"), high, x)
        return found
    least, most = (e.Min, e.Max) if mode == "number" else (e.MinPropagate, e.MaxPropagate)
    clamped: Value = b.make(least, b.make(most, x, low), high)
    return clamped


# ---- comparisons ----


def _compare_integers(b: Lanes, v: list[Value], attributes: CanonicalAttrDict, dtype: DType) -> Value:
    predicate = attributes["predicate"]
    if predicate in ("eq", "ne"):
        found: Value = b.make(e.Compare, *v, predicate=predicate)
        return found
    if v[0].type.dtype is bool_:
        raise Unmapped(BOOLS_ARE_NO_NUMBERS)
    x, y = map(b.unsigned, v) if predicate.startswith("u") else v
    ordered: Value = b.make(e.Compare, x, y, predicate=predicate[1:])
    return ordered


_UNORDERED: Final = {"ueq": "one", "ugt": "ole", "uge": "olt", "ult": "oge", "ule": "ogt", "uno": "ord"}
"""An unordered comparison holds where this one does not."""


def _compare_floats(b: Lanes, v: list[Value], attributes: CanonicalAttrDict, dtype: DType) -> Value:
    return _compare_as(b, v, attributes["predicate"])


def _compare_as(b: Lanes, v: list[Value], predicate: str) -> Value:
    found: Value
    if predicate in _UNORDERED:
        return b.negated(_compare_as(b, v, _UNORDERED[predicate]))
    if predicate == "ord":
        found = b.negated(b.make(e.Or, *(b.make(e.IsNan, x) for x in v)))
    elif predicate == "one":
        found = b.make(e.Or, *(b.make(e.Compare, *v, predicate=side) for side in ("lt", "gt")))
    else:
        # Tile IR's `ne` is the unordered one, its others are ordered.
        found = b.make(e.Compare, *v, predicate=predicate[1:])
    return found


def _is_infinite(b: Lanes, v: list[Value], attributes: CanonicalAttrDict, dtype: DType) -> Value:
    found: Value = b.make(e.Compare, b.make(e.Abs, v[0]), b.like(float("inf"), v[0]), predicate="eq")
    return found


def _is_finite(b: Lanes, v: list[Value], attributes: CanonicalAttrDict, dtype: DType) -> Value:
    found: Value = b.make(e.Compare, b.make(e.Abs, v[0]), b.like(float("inf"), v[0]), predicate="lt")
    return found


# ---- conversions ----


def _cast(b: Lanes, v: list[Value], attributes: CanonicalAttrDict, dtype: DType) -> Value:
    return b.cast(v[0], dtype)


def _from_unsigned(b: Lanes, v: list[Value], attributes: CanonicalAttrDict, dtype: DType) -> Value:
    return b.cast(v[0] if v[0].type.dtype is bool_ else b.unsigned(v[0]), dtype)


def _to_unsigned(b: Lanes, v: list[Value], attributes: CanonicalAttrDict, dtype: DType) -> Value:
    if dtype is bool_:
        raise Unmapped("a float to i1 has no counterpart")
    return b.bits_as(b.cast(v[0], UNSIGNED[dtype]), dtype)


def _sign_extend(b: Lanes, v: list[Value], attributes: CanonicalAttrDict, dtype: DType) -> Value:
    widened = b.cast(v[0], dtype)
    if v[0].type.dtype is bool_:
        negated: Value = b.make(e.Negate, widened)
        return negated
    return widened


def _zero_extend(b: Lanes, v: list[Value], attributes: CanonicalAttrDict, dtype: DType) -> Value:
    if v[0].type.dtype is bool_:
        return b.cast(v[0], dtype)
    return b.bits_as(b.cast(b.unsigned(v[0]), UNSIGNED[dtype]), dtype)


def _truncate(b: Lanes, v: list[Value], attributes: CanonicalAttrDict, dtype: DType) -> Value:
    (x,) = v
    if dtype is not bool_ or x.type.dtype is bool_:
        return b.cast(x, dtype)
    lowest = b.make(e.And, x, b.like(1, x))
    found: Value = b.make(e.Compare, lowest, b.like(0, x), predicate="ne")
    return found


def _bitcast(b: Lanes, v: list[Value], attributes: CanonicalAttrDict, dtype: DType) -> Value:
    return b.bits_as(v[0], dtype)


def _integer_cast(b: Lanes, v: list[Value], attributes: CanonicalAttrDict, dtype: DType) -> Value:
    """Between integers and addresses: the sign is kept, i1 is 0 or 1."""
    if v[0].type.dtype.is_float or dtype.is_float:
        raise Unmapped("a cast of floats is none of indices")
    return _truncate(b, v, attributes, dtype) if dtype is bool_ else b.cast(v[0], dtype)


def _field(signed: bool) -> Row:
    def build(b: Lanes, v: list[Value], attributes: CanonicalAttrDict, dtype: DType) -> Value:
        (x,) = v
        width, bits_ = attributes["width"], x.type.dtype.bits
        up = b.like(bits_ - attributes["offset"] - width, x)
        down = b.like(bits_ - width, x)
        shifted = b.make(e.ShiftLeft, x, up)
        if signed:
            return b.cast(b.make(e.ShiftRight, shifted, down), dtype)
        shifted = b.make(e.ShiftRight, b.unsigned(shifted), b.unsigned(down))
        return b.cast(b.bits_as(shifted, x.type.dtype), dtype)

    return build


_SHARED: Final[dict[str, Row]] = {
    "andi": direct(e.And), "ori": direct(e.Or), "xori": direct(e.Xor), "shli": direct(e.ShiftLeft),
    "shrsi": direct(e.ShiftRight), "shrui": unsigned(e.ShiftRight), "rotli": _rotate(e.ShiftLeft, True),
    "rotri": _rotate(e.ShiftRight, False), "ctlzi": counted(lambda b, x: b.make(bits.LeadingZeros, x)),
    "cttzi": counted(_trailing_zeros), "ctpopi": counted(lambda b, x: b.make(bits.BitCount, x)),
}  # fmt: skip
_INDEX: Final[dict[str, Row]] = {
    "cast": _integer_cast, "add": direct(e.Add), "sub": direct(e.Sub), "mul": direct(e.Mul), "scale": direct(e.Mul),
    "div": direct(e.Div), "rem": direct(e.Rem), "min": direct(e.Min), "max": direct(e.Max), "madd": _multiply_add,
    "cmp": _compare_integers,
}  # fmt: skip
_SCALAR: Final[dict[str, Row]] = {
    "addi": direct(e.Add), "subi": direct(e.Sub), "muli": direct(e.Mul), "divsi": direct(e.Div),
    "divui": unsigned(e.Div), "remsi": direct(e.Rem), "remui": unsigned(e.Rem), "ceildivsi": _rounded(True, True),
    "ceildivui": _rounded(True, False), "floordivsi": _rounded(False, True),
    "minsi": direct(e.Min), "maxsi": direct(e.Max),
    "minui": unsigned(e.Min), "maxui": unsigned(e.Max), "negi": direct(e.Negate), "absi": direct(e.Abs),
    "signi": _sign, "fmai": _multiply_add, "cmpi": _compare_integers,
    "addf": direct(e.Add), "subf": direct(e.Sub), "mulf": direct(e.Mul), "divf": direct(e.Div), "remf": direct(s.Fmod),
    "minimumf": direct(e.MinPropagate), "maximumf": direct(e.MaxPropagate), "minnumf": direct(e.Min),
    "maxnumf": direct(e.Max), "copysignf": direct(s.CopySign), "powf": direct(s.Power), "atan2f": direct(s.Atan2),
    "negf": direct(e.Negate), "absf": direct(e.Abs), "signf": _sign, "expf": direct(e.Exp), "exp2f": direct(e.Exp2),
    "expm1f": direct(s.Expm1), "logf": direct(e.Log), "log2f": direct(e.Log2), "log10f": direct(s.Log10),
    "log1pf": direct(s.Log1p), "sqrtf": direct(e.Sqrt), "rsqrtf": direct(e.Rsqrt), "cbrtf": direct(s.CubeRoot),
    "sinf": direct(e.Sin), "cosf": direct(e.Cos), "tanf": direct(s.Tan), "asinf": direct(s.Asin),
    "acosf": direct(s.Acos), "atanf": direct(s.Atan), "sinhf": direct(s.Sinh), "coshf": direct(s.Cosh),
    "tanhf": direct(e.Tanh), "asinhf": direct(s.Asinh), "acoshf": direct(s.Acosh), "atanhf": direct(s.Atanh),
    "erff": direct(e.Erf), "erfcf": direct(s.Erfc), "logisticf": direct(e.Sigmoid), "siluf": _silu,
    "softplusf": _softplus, "ceilf": direct(e.Ceil), "floorf": direct(e.Floor), "roundf": direct(s.RoundAway),
    "roundevenf": direct(e.RoundEven), "truncf": direct(e.Truncate), "fmaf": direct(e.Fma), "clampf": _clamp,
    "cmpf": _compare_floats, "isnanf": direct(e.IsNan), "isinff": _is_infinite, "isfinitef": _is_finite,
    "sitofp": _cast, "uitofp": _from_unsigned, "fptosi": _cast, "fptoui": _to_unsigned, "extf": _cast,
    "fptrunc": _cast, "extsi": _sign_extend, "extui": _zero_extend, "trunci": _truncate, "bitcast": _bitcast,
    "bitfield.extractu": _field(False), "bitfield.extracts": _field(True),
}  # fmt: skip
ROWS: Final[dict[str, Row]] = {
    **{f"index.{name}": row for name, row in (_SHARED | _INDEX).items()},
    **{f"scalar.{name}": row for name, row in (_SHARED | _SCALAR).items()},
}
"""Operation -> how it is built."""
UNMAPPED_SCALARS: Final = {
    "scalar.geluf": "Tile IR has no function of these bits",
    "scalar.sinturnsf": "Tile IR has no function of these bits",
    "scalar.costurnsf": "Tile IR has no function of these bits",
    "scalar.bitfield.insert": "it is not yet mapped",
    "scalar.poison": "nothing may use its value",
}
