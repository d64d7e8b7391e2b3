"""Operations of `arith` and `math` that are several of ours."""

from __future__ import annotations

from typing import Any, Final

from loom_core.base import dtype as core
from loom_core.base.dtype import DType
from loom_core.importers.ttir.arith import bits_as, cast, dtype_of, unsigned
from loom_core.importers.ttir.importer import Importer, row
from loom_core.importers.ttir.shapes import result_type
from loom_core.importers.ttir.syntax import Operation
from loom_core.ir.value import Value
from loom_core.ops import bits, special
from loom_core.ops import elementwise as ops


def _zero(importer: Importer, value: Value) -> Value:
    return importer.constant(value.type, 0)


def _one_where(importer: Importer, flag: Value, like: Value) -> Value:
    """1 where a flag holds, else 0."""
    return importer.create(ops.Select, flag, importer.constant(like.type, 1), _zero(importer, like))  # type: ignore[no-any-return]


def _compare(importer: Importer, a: Value, b: Value, predicate: str) -> Value:
    return importer.create(ops.Compare, a, b, predicate=predicate)  # type: ignore[no-any-return]


# ---- integers ----


@row("arith.ceildivsi", "arith.ceildivui", operands=2, types="same")
def _divide_upwards(importer: Importer, op: Operation, operands: list[Any]) -> Value:
    """The quotient, and one more where it left a rest that points upwards."""
    dtype = dtype_of(importer, op, operands[0], "int")
    signed = op.name == "arith.ceildivsi"
    a, b = operands if signed else [unsigned(importer, value) for value in operands]
    quotient = importer.create(ops.Div, a, b)
    more = _compare(importer, importer.create(ops.Rem, a, b), _zero(importer, a), "ne")
    if signed:
        signs = [_compare(importer, value, _zero(importer, value), "lt") for value in (a, b)]
        more = importer.create(ops.And, more, importer.create(ops.Not, importer.create(ops.Xor, *signs)))
    return bits_as(importer, importer.create(ops.Add, quotient, _one_where(importer, more, quotient)), dtype)


@row("arith.mulsi_extended", "arith.mului_extended", operands=2, types="input")
def _multiply_wide(importer: Importer, op: Operation, operands: list[Any]) -> list[Value]:
    """The lower and the upper half of a product."""
    dtype = dtype_of(importer, op, operands[0], "int")
    wide = operands if op.name == "arith.mulsi_extended" else [unsigned(importer, value) for value in operands]
    upper = importer.create(bits.MultiplyHigh, *wide)
    return [importer.create(ops.Mul, *operands), bits_as(importer, upper, dtype)]


@row("arith.addui_extended", "arith.subui_extended", operands=2, types="free")
def _with_carry(importer: Importer, op: Operation, operands: list[Any]) -> list[Value]:
    """A sum or difference, and whether it does not fit."""
    dtype_of(importer, op, operands[0], "int")
    if not op.types:
        importer.wrong(op, "its types are missing")
    for number, value in enumerate(operands, 1):
        importer.check_type(op, value, op.types[0], f"operand {number}")
    added = op.name == "arith.addui_extended"
    result = importer.create(ops.Add if added else ops.Sub, *operands)
    first, second = (result, operands[0]) if added else operands
    return [result, _compare(importer, unsigned(importer, first), unsigned(importer, second), "lt")]


@row("math.cttz", operands=1, types="same")
def _trailing_zeros(importer: Importer, op: Operation, operands: list[Any]) -> Value:
    """The ones of what lies below the lowest one."""
    (value,) = operands
    dtype = dtype_of(importer, op, value, "int")
    below = importer.create(ops.Sub, value, importer.constant(value.type, 1))
    pattern = importer.create(ops.And, importer.create(ops.Not, value), below)
    return cast(importer, importer.create(bits.BitCount, pattern), dtype)


# ---- floats ----


def _least_normal(importer: Importer, value: Value, dtype: DType) -> Value:
    import ml_dtypes

    information: Any = ml_dtypes.finfo
    return importer.constant(value.type, float(information(dtype.numpy).smallest_normal))


@row("arith.flush_denormals", operands=1, types="same")
def _flush(importer: Importer, op: Operation, operands: list[Any]) -> Value:
    dtype_of(importer, op, operands[0], "float")
    return flushed(importer, operands[0])


def flushed(importer: Importer, value: Value) -> Value:
    """Subnormal numbers as zeros of their sign."""
    dtype = value.type.dtype
    small = _compare(importer, importer.create(ops.Abs, value), _least_normal(importer, value, dtype), "lt")
    zero = importer.create(special.CopySign, _zero(importer, value), value)
    return importer.create(ops.Select, small, zero, value)  # type: ignore[no-any-return]


@row("math.isnan", "math.isinf", "math.isfinite", "math.isnormal", operands=1, types="input")
def _class_of(importer: Importer, op: Operation, operands: list[Any]) -> Value:
    (value,) = operands
    dtype = dtype_of(importer, op, value, "float")
    if op.name == "math.isnan":
        return importer.create(ops.IsNan, value)  # type: ignore[no-any-return]
    magnitude = importer.create(ops.Abs, value)
    infinity = importer.constant(value.type, float("inf"))
    if op.name == "math.isinf":
        return _compare(importer, magnitude, infinity, "eq")
    finite = _compare(importer, magnitude, infinity, "lt")
    if op.name == "math.isfinite":
        return finite
    large = _compare(importer, magnitude, _least_normal(importer, value, dtype), "ge")
    return importer.create(ops.And, finite, large)  # type: ignore[no-any-return]


@row("math.sincos", operands=1, types="input")
def _sine_and_cosine(importer: Importer, op: Operation, operands: list[Any]) -> list[Value]:
    dtype_of(importer, op, operands[0], "float")
    return [importer.create(kind, operands[0]) for kind in (ops.Sin, ops.Cos)]


_SAME_WIDTH: Final = (core.f16, core.bf16)


@row("arith.convertf", operands=1, words=True)
def _convert(importer: Importer, op: Operation, operands: list[Any]) -> Value:
    """Between floats of one width."""
    (value,) = operands
    source, target = dtype_of(importer, op, value, "float"), result_type(importer, op).dtype
    if op.words or source not in _SAME_WIDTH or target not in _SAME_WIDTH:
        importer.refuse(op, f"Loom does not convert {source.name} to {target.name} {' '.join(op.words)}".strip())
    return cast(importer, value, target)
