"""What one SCE instruction does to one element: a scalar function for every opcode of `isa.sce` but reductions.

A function takes values of its row's operand types (`element_types`) and returns one of its result type. Float functions
return the canonical NaN. They have no branches, so that LLVM vectorises the loops around them. Adding a dtype is adding
what its family is made of; adding a function is adding a row to one of the tables.
"""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from llvmlite import ir

from loom_core.isa.sce import SceOp
from loom_sim import bits
from loom_sim.bits import canonical32, scalar
from loom_sim.casts import cast_function
from loom_sim.element_types import VALUE_TYPES
from loom_sim.integers import emitted, integer_function
from loom_sim.narrow import FORMATS, Format, direct_function, emit_narrow, emit_widen

if TYPE_CHECKING:
    from loom_sim.elementary import Ordinary

Scalar: TypeAlias = Callable[..., Any]

_COMPARISONS: Final[dict[str, Scalar]] = {
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
}

# The rest of the float functions are those of `elementary`.
_FLOAT32: Final[dict[str, Scalar]] = {
    **_COMPARISONS,
    "mov": canonical32,
    "add": lambda a, b: canonical32(a + b),
    "sub": lambda a, b: canonical32(a - b),
    "mul": lambda a, b: canonical32(a * b),
    "div": lambda a, b: canonical32(bits.div32(a, b)),
    "fma": lambda a, b, c: canonical32(bits.fma32(a, b, c)),
}


def scalar_of(op: SceOp) -> Scalar:
    """The numba function of an opcode that is no reduction. Raises KeyError if there is none; a test asks for all."""
    return compiled_scalar(_select_scalar(op))


def compiled_scalar(function: Scalar) -> Scalar:
    """A plain function compiled for use inside engines; an intrinsic or a compiled function as it is."""
    return scalar(function) if isinstance(function, FunctionType) else function


def family_of(op: SceOp) -> str:
    """The dtype whose functions an opcode belongs to; of a plain move the number of bits."""
    return op.mnemonic.rpartition(".")[2]


def _select_scalar(op: SceOp) -> Scalar:
    if op.function.startswith("cast"):
        return cast_function(op)
    if op.function == "round_mantissa":
        return emitted(op.result, [VALUE_TYPES[name] for name in op.operands], _emit_round_mantissa)
    family = family_of(op)
    if family == "f32":
        return _float32(op.function)
    if family == "f64":
        return _float64(op.function)
    if family in FORMATS:
        return _narrow(op, FORMATS[family])
    return integer_function(op)


def _float32(function: str) -> Scalar:
    if function in _FLOAT32:
        return _FLOAT32[function]
    from loom_sim.elementary import FUNCTIONS_F32  # at the first need: its tables take a while to build

    return FUNCTIONS_F32[function]


def _float64(function: str) -> Scalar:
    if function in _COMPARISONS:
        return _COMPARISONS[function]
    from loom_sim.elementary.double import FUNCTIONS_F64

    return FUNCTIONS_F64[function]


def ordinary_of(op: SceOp) -> Ordinary | None:
    """A faster function for ordinary arguments, where an opcode has one."""
    family = family_of(op)
    if op.function.startswith("cast") or not (family in ("f32", "f64") or family in FORMATS):
        return None
    if family == "f64":
        from loom_sim.elementary.double import ORDINARY_F64

        return ORDINARY_F64.get(op.function)
    from loom_sim.elementary import ORDINARY_F32, Ordinary

    found = ORDINARY_F32.get(op.function)
    if found is None or family == "f32":
        return found
    form = FORMATS[family]
    return Ordinary(_through_f32(op, form, found.function), _through_f32(op, form, found.holds, "bool"))


def _emit_round_mantissa(builder: ir.IRBuilder, values: Any) -> ir.Value:
    """(f32, i32) -> f32: rounded to so many bits of the mantissa, to nearest even; unchanged for others than 0..22."""
    value, kept = values
    word = ir.IntType(32)
    pattern = builder.bitcast(value, word)
    inside = builder.icmp_unsigned("<", kept, word(23))
    dropped = builder.select(inside, builder.sub(word(23), kept), word(1))
    odd = builder.and_(builder.lshr(pattern, dropped), word(1))
    half = builder.sub(builder.shl(word(1), builder.sub(dropped, word(1))), word(1))
    raised = builder.add(builder.add(pattern, half), odd)
    rounded = builder.and_(raised, builder.shl(word(-1), dropped))
    is_infinite = builder.icmp_unsigned("==", builder.and_(pattern, word(0x7FFFFFFF)), word(0x7F800000))
    result = builder.select(builder.or_(is_infinite, builder.not_(inside)), pattern, rounded)
    is_nan = builder.fcmp_unordered("uno", value, value)
    return builder.bitcast(builder.select(is_nan, word(0x7FC00000), result), ir.FloatType())


# ---- floats of 8 and 16 bits -----------------------------------------------------------------------------------------


def _narrow(op: SceOp, form: Format) -> Scalar:
    direct = direct_function(op, form)
    return _through_f32(op, form, _float32(op.function)) if direct is None else direct


def _through_f32(op: SceOp, form: Format, function: Scalar, result: str | None = None) -> Scalar:
    """`function` of f32 between the widening of its float operands and, where its result is a float, the rounding."""
    function = compiled_scalar(function)
    widen = emitted("f32", [VALUE_TYPES[form.name]], lambda builder, values: emit_widen(builder, form, values[0]))
    narrow = emitted(form.name, [VALUE_TYPES["f32"]], lambda builder, values: emit_narrow(builder, form, values[0]))
    rounds = (result or op.result) == form.name
    shape = tuple(name == form.name for name in op.operands)
    if shape == (True,):
        return (lambda a: narrow(function(widen(a)))) if rounds else (lambda a: function(widen(a)))
    if shape == (True, True):
        if rounds:
            return lambda a, b: narrow(function(widen(a), widen(b)))
        return lambda a, b: function(widen(a), widen(b))
    assert shape == (True, False) and rounds, op.mnemonic  # ldexp
    return lambda a, b: narrow(function(widen(a), b))
