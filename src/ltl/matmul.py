"""Matrix products."""

from __future__ import annotations

from typing import Any, Final

from loom_core.base import dtype as core
from loom_core.base.dtype import DType
from loom_core.trace.context import current
from loom_core.trace.products import PRECISIONS, multiply
from loom_core.trace.scaled import FORMATS, operand_problem, product_dtype, scaled_operand
from ltl import dtypes, semantic
from ltl.arguments import dtype_argument, static
from ltl.errors import ShapesDiffer, WrongDtype, WrongRank, WrongValue, fail
from ltl.tensor import tensor

_FLOATS: Final = (core.f32, core.f16, core.bf16, core.f64, core.f8e4m3, core.f8e5m2)
_OPERANDS: Final = (*_FLOATS, core.i8, core.u8, core.i32, core.u32, core.i64, core.u64)


def dot(
    input: Any,
    other: Any,
    acc: Any = None,
    input_precision: Any = None,
    allow_tf32: Any = None,
    max_num_imprecise_acc: Any = None,
    out_dtype: Any = None,
) -> tensor:
    """input[M, K] times other[K, N], plus acc[M, N] where it is given; with a third dimension in front, of each pair.

    Any sizes. Accumulates in float32 (int32 for 8-bit integers; float64 and integers of 32 and 64 bits in their own
    dtype) in the order of docs/numerics.md; the result has the dtype of `acc`, else `out_dtype`, else that of the
    accumulator.

    input_precision says what float32 operands become: "ieee" (the default) takes them exactly; "tf32" (or allow_tf32)
    rounds them to 10 mantissa bits; "tf32x3", "bf16x3" and "bf16x6" add 3 or 6 products of their leading parts.
    """
    trace = current("ltl.dot")
    a, b = _operands(input, other)
    precision = _precision(input_precision, allow_tf32, a.ir_type.dtype)
    inner = _accumulator(a.ir_type.dtype)
    start = None if semantic.unwrap(acc) is None else semantic.to_tensor(acc, "dot", "acc")
    result_dtype = _result_dtype(start, static(out_dtype, "out_dtype of dot"), inner)
    shape = (*a.shape[:-1], b.shape[-1])
    if start is not None:
        if start.shape != shape:
            fail(ShapesDiffer, function="dot", first=f"{shape} of the product", second=f"{start.shape} of acc")
        start = semantic.cast(start, inner)
    made = multiply(trace.builder, a.value, b.value, None if start is None else start.value, precision, inner)
    return semantic.cast(tensor(made.type, made), result_dtype)


def dot_scaled(
    lhs: Any,
    lhs_scale: Any,
    lhs_format: Any,
    rhs: Any,
    rhs_scale: Any,
    rhs_format: Any,
    acc: Any = None,
    fast_math: Any = False,
    lhs_k_pack: Any = True,
    rhs_k_pack: Any = True,
    out_dtype: Any = dtypes.float32,
) -> tensor:
    """lhs[M, K] times rhs[K, N], plus acc[M, N], float32, of microscaled operands; also of pairs of them, as `dot`.

    Formats are "e2m1" (pairs in bytes, the first in the lower half), "e4m3", "e5m2" (or bytes), "bf16" and "fp16".
    Scales, uint8 [M, K / 32] and [N, K / 32] (or K / 16), are powers of two, 2 to their value less 127, 255 for NaN;
    float8e4nv scales are taken as they are; None for no scales. Without `k_pack` pairs lie along M or N. The operands
    are decoded and scaled in bf16 (fp16 where one of them is that), each product rounded, and multiplied as by `dot`.
    """
    trace = current("ltl.dot_scaled")
    wanted = static(out_dtype, "out_dtype of dot_scaled")
    if dtype_argument(wanted, "dot_scaled") is not core.f32:
        fail(WrongDtype, function="dot_scaled", given=str(wanted), takes="its result is float32")
    names = _format(lhs_format, "lhs_format"), _format(rhs_format, "rhs_format")
    given = ((lhs, lhs_scale, lhs_k_pack, "lhs"), (rhs, rhs_scale, rhs_k_pack, "rhs"))
    tiles = [semantic.to_tensor(value, "dot_scaled", name) for value, _, _, name in given]
    rank, inner = len(tiles[0].shape), product_dtype(names)
    sides = []
    for axis, tile, name, (_, scale, packed, what) in zip((rank - 1, rank - 2), tiles, names, given, strict=True):
        value = _in_format(tile, name).value
        along = bool(static(packed, f"{what}_k_pack of dot_scaled"))
        factors = None if semantic.unwrap(scale) is None else semantic.to_tensor(scale, "dot_scaled", "a scale").value
        problem = operand_problem(value.type, name, None if factors is None else factors.type, axis, along)
        if problem is not None:
            fail(WrongValue, function="dot_scaled", argument=what, given=problem, expected="see its documentation")
        made = scaled_operand(trace.builder, value, name, factors, axis, along, inner)
        sides.append(tensor(made.type, made))
    return dot(sides[0], sides[1], acc, out_dtype=dtypes.float32)


def _format(given: Any, argument: str) -> str:
    name = static(given, f"the {argument} of dot_scaled")
    if name not in FORMATS:
        expected = "one of " + ", ".join(map(repr, FORMATS))
        fail(WrongValue, function="dot_scaled", argument=argument, given=repr(name), expected=expected)
    return str(name)


def _in_format(tile: tensor, name: str) -> tensor:
    """An operand in the dtype of its format; floats may be given as their bits."""
    wanted, dtype = FORMATS[name], tile.ir_type.element
    if dtype is wanted:
        return tile
    if not isinstance(dtype, DType) or not dtype.is_integer or dtype.bits != wanted.bits:
        takes = f"{name} is held by {dtypes.of_core(wanted)}"
        fail(WrongDtype, function="dot_scaled", given=str(tile.type), takes=takes)
    return semantic.bitcast(tile, wanted)


def _operands(input: Any, other: Any) -> tuple[tensor, tensor]:
    a, b = semantic.to_tensor(input, "dot", "input"), semantic.to_tensor(other, "dot", "other")
    for operand in (a, b):
        if operand.ir_type.is_pointer or operand.ir_type.dtype not in _OPERANDS:
            names = ", ".join(str(dtypes.of_core(d)) for d in _OPERANDS)
            fail(WrongDtype, function="dot", given=str(operand.type), takes=f"it takes {names}")
    if not len(a.shape) == len(b.shape) in (2, 3):
        expected = "two tiles of two dimensions, or of three"
        fail(WrongRank, function="dot", expected=expected, given=f"{a.shape} and {b.shape}")
    if a.shape[-1] != b.shape[-2] or a.shape[:-2] != b.shape[:-2]:
        hint = "the columns of the first must be as many as the rows of the second"
        fail(ShapesDiffer, function="dot", first=a.shape, second=b.shape, hint=hint)
    eights = all(operand.ir_type.dtype.is_float and operand.ir_type.dtype.bits == 8 for operand in (a, b))
    if a.ir_type.dtype is not b.ir_type.dtype and not eights:
        given = f"{a.dtype} and {b.dtype}"
        fail(WrongDtype, function="dot", given=given, takes="both operands must have one dtype; use .to(...)")
    return a, b


def _accumulator(dtype: DType) -> DType:
    if dtype is core.f64 or (dtype.is_integer and dtype.bits > 8):
        return dtype
    return core.f32 if dtype.is_float else core.i32


def _result_dtype(acc: tensor | None, out_dtype: Any, inner: DType) -> DType:
    if out_dtype is None:
        return inner if acc is None else acc.ir_type.dtype
    wanted = dtype_argument(out_dtype, "dot")
    if acc is not None and acc.ir_type.dtype is not wanted:
        given = f"an acc of {acc.dtype} with out_dtype {dtypes.of_core(wanted)}"
        fail(WrongDtype, function="dot", given=given, takes="they must be equal")
    return wanted if inner.is_float else inner


def _precision(input_precision: Any, allow_tf32: Any, dtype: DType) -> str:
    wanted = static(input_precision, "input_precision of dot")
    allowed = static(allow_tf32, "allow_tf32 of dot")
    if wanted is not None and allowed is not None:
        expected = "left out where allow_tf32 is given"
        fail(WrongValue, function="dot", argument="input_precision", given=repr(wanted), expected=expected)
    if wanted is None:
        wanted = "tf32" if allowed else "ieee"
    if not isinstance(wanted, str) or wanted.lower() not in PRECISIONS:
        expected = "one of " + ", ".join(PRECISIONS)
        fail(WrongValue, function="dot", argument="input_precision", given=repr(wanted), expected=expected)
    # The precisions only say what becomes of float32 operands.
    return wanted.lower() if dtype is core.f32 else "ieee"
