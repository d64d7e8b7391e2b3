"""What one SCE instruction does to one element: mnemonic of `isa.sce` -> scalar function, for every opcode but
reductions.

A function takes values of its row's operand types and returns one that is converted to the result type (integers wrap,
bools are 0 or 1). Float functions return the canonical NaN. They have no branches, so that LLVM vectorises the loops
around them. Adding a dtype is adding a family table; adding a function is adding a row.
"""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np

from loom_core.isa.sce import DTYPE_LOG2_BYTES, SceOp
from loom_sim import bits
from loom_sim.bits import canonical32, scalar, select
from loom_sim.memory import divide, remainder, wrapping_add, wrapping_multiply, wrapping_subtract

if TYPE_CHECKING:
    from loom_sim.elementary import Ordinary

Scalar: TypeAlias = Callable[..., Any]

_LEAST32: Final = np.int32(-(1 << 31))
_ZERO32: Final = np.float32(0.0)
_ONE32: Final = np.float32(1.0)


@scalar
def quotient32(a: Any, b: Any) -> Any:
    """a / b of int32, truncated: a / 0 = -1, least / -1 = least."""
    unsafe = (b == 0) | ((b == -1) & (a == _LEAST32))
    divisor = select(unsafe, np.int32(1), b)
    return select(b == 0, np.int32(-1), np.int32(bits.div64(np.float64(a), np.float64(divisor))))


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

# Sums and products of two int32 are computed in int64, where they cannot overflow; int64 has wrapping ones.
_INTEGER: Final[dict[str, Scalar]] = {
    **_COMPARISONS,
    "mov": lambda a: a,
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "div": lambda a, b: divide(a, b),
    "rem": lambda a, b: remainder(a, b),
    "min": lambda a, b: select(a < b, a, b),
    "max": lambda a, b: select(a > b, a, b),
    "and": lambda a, b: a & b,
    "or": lambda a, b: a | b,
    "xor": lambda a, b: a ^ b,
    "not": lambda a: ~a,
    "neg": lambda a: -a,
    "abs": lambda a: select(a < 0, -a, a),
    "select": lambda condition, a, b: select(condition, a, b),
}

_INTEGER32: Final[dict[str, Scalar]] = {
    **_INTEGER,
    # A quotient of 32-bit integers is exact in float64 arithmetic once truncated: 1 / |b| from the next integer is more
    # than the rounding error. Unlike an integer division it vectorises.
    "div": lambda a, b: quotient32(a, b),
    "rem": lambda a, b: a - quotient32(a, b) * b,
    "shl": lambda a, b: select((b >= 0) & (b < 32), np.int64(a) << np.int64(b & 31), np.int64(0)),
    "shr": lambda a, b: np.int64(a) >> np.int64(select((b >= 0) & (b < 32), b, np.int32(31))),
    "shru": lambda a, b: select((b >= 0) & (b < 32), np.int64(np.uint32(a)) >> np.int64(b & 31), np.int64(0)),
    "ltu": lambda a, b: np.uint32(a) < np.uint32(b),
    "leu": lambda a, b: np.uint32(a) <= np.uint32(b),
}

_INTEGER64: Final[dict[str, Scalar]] = {
    **_INTEGER,
    "add": lambda a, b: wrapping_add(a, b),
    "sub": lambda a, b: wrapping_subtract(a, b),
    "mul": lambda a, b: wrapping_multiply(a, b),
    "shl": lambda a, b: select((b >= 0) & (b < 64), a << (b & 63), 0),
    "shr": lambda a, b: a >> select((b >= 0) & (b < 64), b, 63),
    "shru": lambda a, b: select((b >= 0) & (b < 64), np.int64(np.uint64(a) >> np.uint64(b & 63)), 0),
    "ltu": lambda a, b: np.uint64(a) < np.uint64(b),
    "leu": lambda a, b: np.uint64(a) <= np.uint64(b),
}

_BOOL: Final[dict[str, Scalar]] = {
    "mov": lambda a: a,
    "and": lambda a, b: a & b,
    "or": lambda a, b: a | b,
    "xor": lambda a, b: a ^ b,
    "not": lambda a: not a,
    "select": lambda condition, a, b: select(condition, a, b),
    "eq": lambda a, b: a == b,
}

_FAMILIES: Final[dict[str, dict[str, Scalar]]] = {
    "f32": _FLOAT32,
    "i32": _INTEGER32,
    "i64": _INTEGER64,
    "bool": _BOOL,
}


def _narrow_cast(low: int, high: int) -> Scalar:
    """float32 -> an integer type whose bounds are float32 numbers: clamped, then exact but for the fraction."""
    least, most = np.float32(low), np.float32(high)
    return lambda x: np.int32(select(x != x, _ZERO32, select(x < least, least, select(x > most, most, x))))


def _wide_cast(integer: Any, bits_: int) -> Scalar:
    """float32 -> an integer type whose upper bound is no float32: 2^(bits-1) is the first float past it."""
    past, least, most = np.float32(2.0 ** (bits_ - 1)), integer(-(1 << (bits_ - 1))), integer((1 << (bits_ - 1)) - 1)

    def cast(x):  # type: ignore[no-untyped-def]
        converted = integer(select((x >= -past) & (x < past), x, _ZERO32))  # 0 for NaN too
        return select(x >= past, most, select(x < -past, least, converted))

    return cast


# Not `llvm.fptosi.sat`, which LLVM does not vectorise well.
_FROM_F32: Final[dict[str, Scalar]] = {
    "i64": _wide_cast(np.int64, 64),
    "i32": _wide_cast(np.int32, 32),
    "i16": _narrow_cast(-(1 << 15), (1 << 15) - 1),
    "i8": _narrow_cast(-(1 << 7), (1 << 7) - 1),
    "u8": _narrow_cast(0, (1 << 8) - 1),
}


def scalar_of(op: SceOp) -> Scalar:
    """The numba function of an opcode that is no reduction. Raises KeyError if there is none; a test asks for all."""
    return compiled_scalar(_select_scalar(op))


def compiled_scalar(function: Scalar) -> Scalar:
    """A plain function compiled for use inside engines; an intrinsic or a compiled function as it is."""
    return scalar(function) if isinstance(function, FunctionType) else function


def _select_scalar(op: SceOp) -> Scalar:
    if op.function == "cast":
        return _cast(op.operands[0], op.result)
    if op.mnemonic.removeprefix("mov.").isdigit():
        return _INTEGER["mov"]
    family = op.mnemonic.rpartition(".")[2]
    if op.function in _FAMILIES[family]:
        return _FAMILIES[family][op.function]
    from loom_sim.elementary import FUNCTIONS_F32  # at the first need: its tables take a while to build

    return {"f32": FUNCTIONS_F32}[family][op.function]


def ordinary_of(op: SceOp) -> Ordinary | None:
    """A faster function for ordinary arguments, where an opcode has one."""
    if op.function == "cast" or op.result != "f32":
        return None
    from loom_sim.elementary import ORDINARY_F32

    return ORDINARY_F32.get(op.function)


def _cast(source: str, result: str) -> Scalar:
    if result == "bool":
        return lambda x: x != 0
    if source == "f32":
        return _FROM_F32[result]
    if result == "f32":
        if source == "bool":
            return lambda x: select(x, _ONE32, _ZERO32)
        if DTYPE_LOG2_BYTES[source] == 3:
            return bits.i64_to_f32
        return lambda x: bits.i32_to_f32(np.int32(x))
    return _INTEGER["mov"]  # the store wraps
