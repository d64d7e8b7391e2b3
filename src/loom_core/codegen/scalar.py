"""Integer scalars on the command processor."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from loom_core.base.dtype import DType
from loom_core.codegen.context import NARROW, constant_bits
from loom_core.codegen.emitter import Emitter, Operand
from loom_core.ir.op import Op
from loom_core.ops import elementwise as ew
from loom_core.ops.bits import MultiplyHigh

_BINARY: dict[type[Op], str] = {
    ew.Add: "add",
    ew.Sub: "sub",
    ew.Mul: "mul",
    ew.Div: "div",
    ew.FloorDiv: "fdiv",
    ew.Rem: "rem",
    ew.Min: "min",
    ew.Max: "max",
    ew.And: "and",
    ew.Or: "or",
    ew.Xor: "xor",
    ew.ShiftLeft: "shl",
}

# predicate -> (mnemonic, operands swapped)
_COMPARE = {
    "eq": ("eq", False),
    "ne": ("ne", False),
    "lt": ("lt", False),
    "le": ("le", False),
    "gt": ("lt", True),
    "ge": ("le", True),
}


def emit_scalar(emitter: Emitter, op: Op, operands: Sequence[Operand]) -> Operand:
    """Emit one of SCALAR_OPS on `operands`, unless its result is known; returns where the result is.

    Unsigned values of up to 32 bits are held zero-extended, signed ones sign-extended, so that signed 64-bit
    arithmetic and comparisons serve all types but u64.
    """
    dtype = op.results[0].type.dtype
    known = _known(op, operands)
    if known is not None:
        return known
    handler = _HANDLERS.get(type(op))
    if handler is not None:
        return handler(emitter, op, operands, dtype)
    return emitter.scalar(_BINARY[type(op)], *operands, narrow=NARROW[dtype.name], name=op.name)


# The right operand that leaves the left one as it is.
_NEUTRAL: dict[type[Op], int] = {ew.Add: 0, ew.Sub: 0, ew.Mul: 1}


def _known(op: Op, operands: Sequence[Operand]) -> Operand | None:
    """The result where no command is needed for it: of numbers, and of neutral ones (the first iteration's counter)."""
    if op.ref is not None and all(isinstance(operand, int) for operand in operands):
        values = (
            np.asarray(operand).astype(value.type.dtype.numpy)
            for operand, value in zip(operands, op.operands, strict=True)
        )
        return constant_bits(op.ref(*values), op.results[0].type.dtype)
    if type(op) in _NEUTRAL and operands[1] == _NEUTRAL[type(op)]:
        return operands[0]
    return None


def _compare(emitter: Emitter, op: Op, operands: Sequence[Operand], dtype: DType) -> Operand:
    mnemonic, swapped = _COMPARE[op.attributes["predicate"]]
    if op.operands[0].type.dtype.name == "u64" and mnemonic in ("lt", "le"):
        mnemonic += "u"
    a, b = reversed(operands) if swapped else operands
    return emitter.scalar(mnemonic, a, b, name="cmp")


def _select(emitter: Emitter, op: Op, operands: Sequence[Operand], dtype: DType) -> Operand:
    return emitter.scalar("sel", *operands, name="select")


def _cast(emitter: Emitter, op: Op, operands: Sequence[Operand], dtype: DType) -> Operand:
    source = op.operands[0].type.dtype
    if dtype.kind == "bool":
        return emitter.scalar("ne", operands[0], 0, name="cast")
    widens = dtype.bits > source.bits and (source.kind != "int" or dtype.kind == "int")
    if widens or dtype.bits == 64:
        return operands[0]
    return emitter.scalar("mov", operands[0], narrow=NARROW[dtype.name], name="cast")


def _bitcast(emitter: Emitter, op: Op, operands: Sequence[Operand], dtype: DType) -> Operand:
    return emitter.scalar("mov", operands[0], narrow=NARROW[dtype.name], name="bitcast")


def _negate(emitter: Emitter, op: Op, operands: Sequence[Operand], dtype: DType) -> Operand:
    return emitter.scalar("sub", 0, operands[0], narrow=NARROW[dtype.name], name="neg")


def _abs(emitter: Emitter, op: Op, operands: Sequence[Operand], dtype: DType) -> Operand:
    if dtype.kind == "uint":
        return operands[0]
    negative = emitter.scalar("sub", 0, operands[0], narrow=NARROW[dtype.name])
    return emitter.scalar("max", operands[0], negative, name="abs")


def _not(emitter: Emitter, op: Op, operands: Sequence[Operand], dtype: DType) -> Operand:
    if dtype.kind == "bool":
        return emitter.scalar("eq", operands[0], 0, name="not")
    return emitter.scalar("xor", operands[0], -1, narrow=NARROW[dtype.name], name="not")


def _shift_right(emitter: Emitter, op: Op, operands: Sequence[Operand], dtype: DType) -> Operand:
    mnemonic = "shru" if dtype.kind == "uint" else "shr"
    return emitter.scalar(mnemonic, *operands, narrow=NARROW[dtype.name], name="shr")


def _multiply_high(emitter: Emitter, op: Op, operands: Sequence[Operand], dtype: DType) -> Operand:
    """The product of types of up to 32 bits fits the 64 of a register."""
    product = emitter.scalar("mul", *operands)
    return emitter.scalar("shru" if dtype.kind == "uint" else "shr", product, dtype.bits, name=op.name)


def _copy(emitter: Emitter, op: Op, operands: Sequence[Operand], dtype: DType) -> Operand:
    return operands[0]


_HANDLERS: dict[type[Op], Callable[[Emitter, Op, Sequence[Operand], DType], Operand]] = {
    ew.Compare: _compare,
    ew.Select: _select,
    ew.Cast: _cast,
    ew.Bitcast: _bitcast,
    ew.Negate: _negate,
    ew.Abs: _abs,
    ew.Not: _not,
    ew.ShiftRight: _shift_right,
    ew.Copy: _copy,
    MultiplyHigh: _multiply_high,
}
