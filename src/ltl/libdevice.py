"""`ltl.extra.libdevice`: functions of the CUDA math library by their names, and `ltl.math`'s.

Each is one operation, or the few that its definition says. What Loom has no algorithm for is refused, see REFUSED.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from loom_core.base import dtype as core
from loom_core.base.dtype import DType
from loom_core.ir.op import Op
from loom_core.ops import bits, special
from loom_core.ops import elementwise as ops
from loom_core.trace.context import current
from ltl import semantic
from ltl.dtypes import of_core
from ltl.errors import Refused, WrongDtype, fail
from ltl.operators import add, and_, compare, emit, mul, or_, shl, shr, sub, where
from ltl.tensor import tensor

Function = Callable[..., Any]

_FLOATS: Final = (core.f32, core.f64)
_WIDE_INTEGERS: Final = (core.i32, core.u32, core.i64, core.u64)


def _operand(value: Any, allowed: tuple[DType, ...], function: str) -> tensor:
    operand = semantic.to_tensor(value, f"libdevice.{function}", "an argument")
    if operand.ir_type.is_pointer or operand.ir_type.dtype not in allowed:
        names = ", ".join(str(of_core(dtype)) for dtype in allowed)
        fail(
            WrongDtype,
            function=f"libdevice.{function}",
            given=str(operand.type),
            takes=f"it takes {names}; use .to(...)",
        )
    return operand


def _operands(values: tuple[Any, ...], allowed: tuple[DType, ...], function: str) -> list[tensor]:
    """Operands in one dtype and shape."""
    numbers = [semantic.operand(value, f"libdevice.{function}", "an argument") for value in values]
    if len(numbers) == 1:
        return [_operand(numbers[0], allowed, function)]
    found: tuple[tensor, ...]
    if len(numbers) == 2:
        found = semantic.promote(numbers[0], numbers[1], f"libdevice.{function}")
    else:
        found = semantic.promote_three(numbers[0], numbers[1], numbers[2], f"libdevice.{function}")
    return [_operand(value, allowed, function) for value in found]


def _direct(name: str, kind: type[Op], arity: int = 1, allowed: tuple[DType, ...] = _FLOATS) -> Function:
    def function(*args: Any) -> tensor:
        current(f"libdevice.{name}")
        if len(args) != arity:
            raise TypeError(f"libdevice.{name} takes {arity} arguments, {len(args)} given")
        return emit(kind, *_operands(args, allowed, name))

    return _named(function, name, f"{(kind.__doc__ or '').strip()} Of {_kinds(allowed)}.")


def _kinds(allowed: tuple[DType, ...]) -> str:
    return " or ".join(str(of_core(dtype)) for dtype in allowed)


def _named(function: Function, name: str, doc: str) -> Function:
    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    return function


_UNARY: Final[dict[str, type[Op]]] = {
    "acos": special.Acos, "acosh": special.Acosh, "asin": special.Asin, "asinh": special.Asinh, "atan": special.Atan,
    "atanh": special.Atanh, "cbrt": special.CubeRoot, "ceil": ops.Ceil, "cos": ops.Cos, "cosh": special.Cosh,
    "erf": ops.Erf, "erfc": special.Erfc, "erfinv": special.ErfInverse, "exp": ops.Exp, "exp2": ops.Exp2,
    "expm1": special.Expm1, "fast_cosf": ops.Cos, "fast_expf": ops.Exp, "fast_log10f": special.Log10,
    "fast_log2f": ops.Log2, "fast_logf": ops.Log, "fast_sinf": ops.Sin, "fast_tanf": special.Tan,
    "fast_tanhf": ops.Tanh, "floor": ops.Floor, "lgamma": special.LogGamma, "log": ops.Log, "log10": special.Log10,
    "log1p": special.Log1p, "log2": ops.Log2, "nearbyint": ops.RoundEven, "rcp_rn": ops.Reciprocal,
    "rint": ops.RoundEven, "round": special.RoundAway, "rsqrt": ops.Rsqrt, "rsqrt_rn": ops.Rsqrt, "sin": ops.Sin,
    "sinh": special.Sinh, "sqrt": ops.Sqrt, "sqrt_rn": ops.Sqrt, "tan": special.Tan, "tanh": ops.Tanh,
    "trunc": ops.Truncate,
}  # fmt: skip
_BINARY: Final[dict[str, type[Op]]] = {
    "add_rn": ops.Add, "atan2": special.Atan2, "copysign": special.CopySign, "div_rn": ops.Div,
    "fast_dividef": ops.Div, "fast_powf": special.Power, "fmod": special.Fmod, "hypot": special.Hypot,
    "mul_rn": ops.Mul, "nextafter": special.NextAfter, "remainder": special.FloatRemainder, "sub_rn": ops.Sub,
}  # fmt: skip


# ---- values and signs ------------------------------------------------------------------------------------------------


def abs(x: Any) -> tensor:
    """|x| of floats and signed integers."""
    return emit(ops.Abs, _operand(x, (*_FLOATS, core.i32, core.i64), "abs"))


def fma(x: Any, y: Any, z: Any) -> tensor:
    """x * y + z, rounded once."""
    return emit(ops.Fma, *_operands((x, y, z), _FLOATS, "fma"))


def fma_rn(x: Any, y: Any, z: Any) -> tensor:
    """x * y + z, rounded once."""
    return fma(x, y, z)


def fdim(x: Any, y: Any) -> tensor:
    """x - y where x is above y, else 0; NaN for NaN."""
    a, b = _operands((x, y), _FLOATS, "fdim")
    return where(compare("le", a, b), 0.0, sub(a, b))


def saturatef(x: Any) -> tensor:
    """x limited to [0, 1]; 0 for NaN."""
    value = _operand(x, (core.f32,), "saturatef")
    return emit(ops.Min, emit(ops.Max, value, semantic.full(0.0, core.f32, value.shape)),
                semantic.full(1.0, core.f32, value.shape))  # fmt: skip


def pow(x: Any, y: Any) -> tensor:
    """x to the power y; y a float or an int32."""
    base = _operand(x, _FLOATS, "pow")
    exponent = semantic.to_tensor(y, "libdevice.pow", "y")
    if not exponent.ir_type.is_pointer and exponent.ir_type.dtype.is_integer:
        exponent = semantic.cast(exponent, base.ir_type.dtype)
    return emit(special.Power, *_operands((base, exponent), _FLOATS, "pow"))


def ldexp(x: Any, exponent: Any) -> tensor:
    """x * 2^exponent, the exponent an int32."""
    value = _operand(x, _FLOATS, "ldexp")
    power = _operand(exponent, (core.i32,), "ldexp")
    return emit(special.Ldexp, *semantic.broadcast_pair(value, power, "libdevice.ldexp"))


def scalbn(x: Any, exponent: Any) -> tensor:
    """x * 2^exponent, the exponent an int32."""
    return ldexp(x, exponent)


def ilogb(x: Any) -> tensor:
    """The exponent of x as int32: floor(log2(|x|)); the smallest integer for 0 and NaN, the largest for infinities."""
    value = _operand(x, _FLOATS, "ilogb")
    exponent = sub(emit(special.FrexpExponent, value), 1)
    special_value = where(isinf(value), core.i32.max_value, core.i32.min_value)
    odd = or_(or_(isinf(value), isnan(value)), compare("eq", value, 0.0))
    return where(odd, special_value, exponent)


def logb(x: Any) -> tensor:
    """The exponent of x as a float: floor(log2(|x|)); -inf for 0."""
    value = _operand(x, _FLOATS, "logb")
    exponent = semantic.cast(sub(emit(special.FrexpExponent, value), 1), value.ir_type.dtype)
    infinite = emit(ops.Abs, value)
    exponent = where(or_(isinf(value), isnan(value)), infinite, exponent)
    return where(compare("eq", value, 0.0), float("-inf"), exponent)


def isnan(x: Any) -> tensor:
    """Whether x is NaN, int1."""
    return emit(ops.IsNan, _operand(x, _FLOATS, "isnan"))


def isinf(x: Any) -> tensor:
    """Whether x is infinite, int1."""
    return compare("eq", emit(ops.Abs, _operand(x, _FLOATS, "isinf")), float("inf"))


def isfinited(x: Any) -> tensor:
    """Whether x is neither infinite nor NaN, int1."""
    return compare("lt", emit(ops.Abs, _operand(x, _FLOATS, "isfinited")), float("inf"))


def finitef(x: Any) -> tensor:
    """Whether x is neither infinite nor NaN, int1."""
    return isfinited(x)


def signbit(x: Any) -> tensor:
    """1 where the sign of x is set, int32; a NaN has none."""
    value = _operand(x, _FLOATS, "signbit")
    integer = core.i32 if value.ir_type.dtype is core.f32 else core.i64
    return semantic.cast(compare("lt", semantic.bitcast(value, integer), 0), core.i32)


# ---- integers --------------------------------------------------------------------------------------------------------


def mulhi(x: Any, y: Any) -> tensor:
    """The upper half of the product of twice the width."""
    return emit(bits.MultiplyHigh, *_operands((x, y), _WIDE_INTEGERS, "mulhi"))


def mul24(x: Any, y: Any) -> tensor:
    """The product of the low 24 bits of x and y, signed or unsigned as they are."""
    a, b = _operands((x, y), (core.i32, core.u32), "mul24")
    return mul(shr(shl(a, 8), 8), shr(shl(b, 8), 8))  # type: ignore[no-any-return]


def ffs(x: Any) -> tensor:
    """The position of the lowest bit that is set, from 1; 0 for 0."""
    value = _operand(x, (core.i32, core.i64), "ffs")
    below = emit(bits.BitCount, sub(and_(value, emit(ops.Negate, value)), 1))
    return where(compare("eq", value, 0), 0, add(below, 1))


def sad(x: Any, y: Any, z: Any) -> tensor:
    """|x - y| + z."""
    a, b = _operands((x, y), (core.i32, core.u32), "sad")
    difference = sub(emit(ops.Max, a, b), emit(ops.Min, a, b))
    third = semantic.cast(_operand(z, (core.i32, core.u32), "sad"), a.ir_type.dtype)
    return add(difference, third)  # type: ignore[no-any-return]


def hadd(x: Any, y: Any) -> tensor:
    """(x + y) / 2 rounded down, without overflow in between."""
    a, b = _operands((x, y), (core.i32, core.u32), "hadd")
    return add(and_(a, b), shr(a ^ b, 1))  # type: ignore[no-any-return]


def rhadd(x: Any, y: Any) -> tensor:
    """(x + y) / 2 rounded up, without overflow in between."""
    a, b = _operands((x, y), (core.i32, core.u32), "rhadd")
    return sub(or_(a, b), shr(a ^ b, 1))  # type: ignore[no-any-return]


# ---- conversions -----------------------------------------------------------------------------------------------------


def llrint(x: Any) -> tensor:
    """The nearest integer, halves to even, as int64."""
    return _to_integer("llrint", _FLOATS, ops.RoundEven, core.i64)(x)  # type: ignore[no-any-return]


def llround(x: Any) -> tensor:
    """The nearest integer, halves away from 0, as int64."""
    return _to_integer("llround", _FLOATS, special.RoundAway, core.i64)(x)  # type: ignore[no-any-return]


def _to_integer(name: str, sources: tuple[DType, ...], rounding: type[Op], target: DType) -> Function:
    def function(x: Any) -> tensor:
        current(f"libdevice.{name}")
        converted = semantic.cast(emit(rounding, _operand(x, sources, name)), target)
        # Triton types the unsigned conversions as signed.
        signed = core.i32 if target.bits == 32 else core.i64
        return semantic.bitcast(converted, signed) if target.kind == "uint" else converted

    return _named(function, name, f"x as {of_core(target)}: {(rounding.__doc__ or '').strip()}")


def _cast_to(name: str, source: DType, target: DType) -> Function:
    def function(x: Any) -> tensor:
        current(f"libdevice.{name}")
        return semantic.cast(_operand(x, (source,), name), target)

    return _named(function, name, f"x of {of_core(source)} as {of_core(target)}, rounded to nearest even.")


def _bits_as(name: str, source: DType, target: DType) -> Function:
    def function(x: Any) -> tensor:
        current(f"libdevice.{name}")
        return semantic.bitcast(_operand(x, (source,), name), target)

    return _named(function, name, f"The bits of {of_core(source)} as {of_core(target)}.")


_ROUNDINGS: Final = {"rn": ops.RoundEven, "rz": ops.Truncate, "rd": ops.Floor, "ru": ops.Ceil}
_INTEGERS: Final = {"int": core.i32, "uint": core.u32, "ll": core.i64, "ull": core.u64}
_SOURCES: Final = {"float": core.f32, "double": core.f64}
_DIRECTED: Final = "Loom rounds floats to nearest even; other directions are not available"
_NO_ALGORITHM: Final = "Loom has no algorithm for it; write it with the functions that there are"

REFUSED: Final[dict[str, str]] = {
    **{f"{op}_{way}": _DIRECTED for op in ("add", "sub", "mul", "div", "fma", "rcp", "sqrt")
       for way in ("rz", "rd", "ru")},
    **{f"{i}2{f}_{way}": _DIRECTED for i in ("int", "uint", "ll", "ull") for f in ("float", "double")
       for way in ("rz", "rd", "ru") if (i, f) not in (("int", "double"), ("uint", "double"))},
    **{f"double2float_{way}": _DIRECTED for way in ("rd", "ru")},
    **dict.fromkeys(
        ("cyl_bessel_i0", "cyl_bessel_i1", "j0", "j1", "jn", "y0", "y1", "yn", "cospi", "sinpi", "erfcinv", "erfcx",
         "normcdf", "normcdfinv", "tgamma", "exp10", "fast_exp10f", "norm3d", "norm4d", "rnorm3d", "rnorm4d", "rhypot",
         "rcbrt", "rcp64h", "byte_perm"),
        _NO_ALGORITHM,
    ),
}  # fmt: skip
"""Functions of the library that LTL knows and refuses, with the reason."""


def _install() -> list[str]:
    """Define the functions of the tables; gives the names of all that this module has."""
    made: dict[str, Function] = {name: _direct(name, kind) for name, kind in _UNARY.items()}
    made |= {name: _direct(name, kind, 2) for name, kind in _BINARY.items()}
    made["popc"] = _direct("popc", bits.BitCount, 1, (core.i32, core.i64))
    made["clz"] = _direct("clz", bits.LeadingZeros, 1, (core.i32, core.i64))
    made["brev"] = _direct("brev", bits.ReverseBits, 1, (core.i32, core.i64))
    for source, dtype in _SOURCES.items():
        for integer, target in _INTEGERS.items():
            for way, rounding in _ROUNDINGS.items():
                name = f"{source}2{integer}_{way}"
                made[name] = _to_integer(name, (dtype,), rounding, target)
            made[f"{integer}2{source}_rn"] = _cast_to(f"{integer}2{source}_rn", target, dtype)
    made["double2float_rn"] = _cast_to("double2float_rn", core.f64, core.f32)
    made["double2float_rz"] = _named(
        lambda x: emit(special.CastTowardZero, _operand(x, (core.f64,), "double2float_rz"), dtype=core.f32),
        "double2float_rz", "x of fp64 as fp32, rounded towards 0.",
    )  # fmt: skip
    for name, first, second in (
        ("int_as_float", core.i32, core.f32), ("uint_as_float", core.u32, core.f32),
        ("float_as_int", core.f32, core.i32), ("float_as_uint", core.f32, core.i32),
        ("longlong_as_double", core.i64, core.f64), ("double_as_longlong", core.f64, core.i64),
    ):  # fmt: skip
        made[name] = _bits_as(name, first, second)
    globals().update(made)
    own = ("abs", "fdim", "ffs", "finitef", "fma", "fma_rn", "hadd", "hiloint2double", "ilogb", "isfinited", "isinf",
           "isnan", "ldexp", "llrint", "llround", "logb", "mul24", "mulhi", "pow", "rhadd", "sad", "saturatef",
           "scalbn", "signbit", "double2hiint", "double2loint")  # fmt: skip
    return sorted({*made, *own})


def hiloint2double(high: Any, low: Any) -> tensor:
    """The fp64 whose upper and lower 32 bits are given."""
    upper = semantic.cast(_operand(high, (core.i32,), "hiloint2double"), core.i64)
    lower = semantic.cast(semantic.cast(_operand(low, (core.i32,), "hiloint2double"), core.u32), core.i64)
    return semantic.bitcast(or_(shl(upper, 32), lower), core.f64)


def double2hiint(x: Any) -> tensor:
    """The upper 32 bits of an fp64."""
    pattern = semantic.bitcast(_operand(x, (core.f64,), "double2hiint"), core.i64)
    return semantic.cast(shr(pattern, 32), core.i32)


def double2loint(x: Any) -> tensor:
    """The lower 32 bits of an fp64."""
    return semantic.cast(semantic.bitcast(_operand(x, (core.f64,), "double2loint"), core.i64), core.i32)


__all__ = _install()  # noqa: PLE0605 - the names are those of the tables above


def __getattr__(name: str) -> Any:
    """Functions that are refused, with the reason; AttributeError for what the library does not have."""
    if name not in REFUSED:
        raise AttributeError(f"libdevice has no {name!r}")

    def refused(*args: Any, **kwargs: Any) -> Any:
        fail(Refused, what=f"libdevice.{name}", reason=REFUSED[name], instead="use another function")

    return _named(refused, name, f"Refused: {REFUSED[name]}.")
