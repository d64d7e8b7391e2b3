"""`tt.dot` and `tt.dot_scaled`."""

from __future__ import annotations

from typing import Any, Final

from loom_core.base import dtype as core
from loom_core.importers.ttir.arith import bits_as, cast
from loom_core.importers.ttir.attributes import plain
from loom_core.importers.ttir.importer import Importer, row
from loom_core.importers.ttir.shapes import integer_attribute, result_type
from loom_core.importers.ttir.syntax import Operation
from loom_core.ir.value import Value
from loom_core.ops.shape import Constant
from loom_core.trace.products import PRECISIONS, multiply
from loom_core.trace.scaled import FORMATS, decode_e2m1, operand_problem, product_dtype, scaled_operand

_OLD_PRECISIONS: Final = {0: "tf32", 1: "tf32x3", 2: "ieee"}


@row("tt.dot", operands=3, types="free", attributes=("inputPrecision", "maxNumImpreciseAcc", "allowTF32"))
def _dot(importer: Importer, op: Operation, operands: list[Any]) -> Value:
    for value, type in zip(operands[:2], op.types, strict=False):
        importer.check_type(op, value, type, "an operand")
    return dot(importer, op, operands)


def dot(importer: Importer, op: Operation, operands: list[Any]) -> Value:
    """The product of two tiles, plus an accumulator, by the precision that the operation names."""
    a, b, acc = operands
    if not op.result_types:
        importer.wrong(op, "the type of its result is missing")
    importer.check_type(op, acc, op.result_types[0], "the accumulator")
    check_product(importer, op, a, b, acc)
    precision = _precision(importer, op) if a.type.dtype is core.f32 else "ieee"
    result, inner = acc.type.dtype, accumulator(a.type.dtype)
    # Sums begin at +0 where there is no accumulator.
    zero = isinstance(acc.defining_op, Constant) and repr(acc.defining_op.value) in ("0", "0.0")
    start = None if zero else cast(importer, acc, inner)
    made = multiply(importer.trace.builder, a, b, start, precision, inner)
    return cast(importer, made, result)


def accumulator(dtype: core.DType) -> core.DType:
    """What products of a dtype are added in."""
    if dtype is core.f64:
        return core.f64
    return core.f32 if dtype.is_float else core.i32


def check_product(importer: Importer, op: Operation, a: Any, b: Any, acc: Any) -> None:
    """WrongOperands for tiles that cannot be multiplied and added."""
    if not all(isinstance(value, Value) for value in (a, b, acc)):
        importer.wrong(op, "it takes tiles")
    shapes = [value.type.shape for value in (a, b, acc)]
    rank = len(shapes[0])
    fits = (
        rank in (2, 3)
        and all(len(shape) == rank for shape in shapes)
        and shapes[0][-1] == shapes[1][-2]
        and shapes[2] == (*shapes[0][:-1], shapes[1][-1])
        and shapes[0][:-2] == shapes[1][:-2]
        and not any(value.type.is_pointer or value.type.dtype.is_bool for value in (a, b, acc))
    )
    if fits:
        first, second, third = (value.type.dtype for value in (a, b, acc))
        alike = first is second or (first.is_float and second.is_float and first.bits == second.bits == 8)
        narrow = first.is_float or first.bits == 8
        fits = alike and narrow and (third.is_float if first.is_float else third is core.i32)
    if not fits:
        importer.wrong(op, f"it does not take {a.type}, {b.type} and {acc.type}")


def _precision(importer: Importer, op: Operation) -> str:
    given = plain(op.attributes.get("inputPrecision", "tf32" if op.attributes.get("allowTF32") else "ieee"))
    word = _OLD_PRECISIONS.get(given, given) if isinstance(given, int) else str(given).lower()
    return word if word in PRECISIONS else importer.refuse(op, f"Loom does not know the precision {given}")


# ---- products with scales ----


@row("tt.dot_scaled", operands=(3, 5), types="free", words=True,
     attributes=("lhs", "rhs", "fastMath", "lhs_k_pack", "rhs_k_pack"))  # fmt: skip
def _dot_scaled(importer: Importer, op: Operation, operands: list[Any]) -> Value:
    """The operands are decoded and scaled in bf16, or f16 where one of them is that, and then multiplied."""
    a, b, acc, scales = _scaled_operands(importer, op, operands)
    first, second = (str(plain(op.attributes.get(side, ""))) for side in ("lhs", "rhs"))
    if first not in FORMATS or second not in FORMATS:
        importer.refuse(op, f"Loom does not know the types {first} and {second}")
    packed = [plain(op.attributes.get(side, True)) is True for side in ("lhs_k_pack", "rhs_k_pack")]
    dtype, rank = product_dtype((first, second)), len(a.type.shape)
    sides = []
    axes = zip((rank - 1, rank - 2), (a, b), (first, second), scales, packed, strict=True)
    for axis, value, name, scale, along in axes:
        value = _in_format(importer, op, value, name)
        problem = operand_problem(value.type, name, None if scale is None else scale.type, axis, along)
        if problem is not None:
            importer.wrong(op, problem)
        sides.append(scaled_operand(importer.trace.builder, value, name, scale, axis, along, dtype))
    return dot(importer, op, [*sides, acc])


def _in_format(importer: Importer, op: Operation, value: Value, name: str) -> Value:
    """An operand in the dtype of its format; floats may be given as their bits."""
    wanted = core.i8 if name == "e2m1" else FORMATS[name]
    if not value.type.is_pointer and value.type.dtype.is_integer and value.type.dtype.bits == wanted.bits:
        return bits_as(importer, value, wanted)
    return value if value.type.element is wanted else importer.wrong(op, f"it does not take {value.type} as {name}")


@row("ttg.fp4_to_fp", operands=1, attributes=("axis",))
def _from_e2m1(importer: Importer, op: Operation, operands: list[Any]) -> Value:
    """Pairs of 4-bit floats in bytes, decoded."""
    (value,) = operands
    axis, target = integer_attribute(importer, op, "axis"), result_type(importer, op)
    if value.type.element is not core.i8 or not 0 <= axis < len(value.type.shape) or not target.dtype.is_float:
        importer.wrong(op, f"it does not take {value.type} along axis {axis}")
    return cast(importer, decode_e2m1(importer.trace.builder, value, axis), target.dtype)


def _scaled_operands(
    importer: Importer, op: Operation, operands: list[Any]
) -> tuple[Value, Value, Value, list[Value | None]]:
    """Both operands, the accumulator, and the scales: `%a scale %s, %b scale %t, %c`, either scale may be missing."""
    values = list(operands)
    scales: list[Value | None] = [None, None]
    places = [place for word, place in zip(op.words, op.word_places, strict=True) if word == "scale"]
    if len(places) != len(op.words) or len(values) != 3 + len(places) or not all(isinstance(v, Value) for v in values):
        importer.wrong(op, "it is not of the form %a scale %s, %b scale %t, %c")
    for taken, place in enumerate(places):
        side = place - taken - 1
        if side not in (0, 1) or scales[side] is not None:
            importer.wrong(op, "it is not of the form %a scale %s, %b scale %t, %c")
        scales[side] = values.pop(side + 1)
    a, b, acc = values
    return a, b, acc, scales
