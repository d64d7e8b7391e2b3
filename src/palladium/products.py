"""Matrix products, and the contractions that are made of them."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from loom_core.base import dtype as core
from loom_core.base.dtype import DType
from loom_core.ops.matmul import Dot
from palladium import promotion, shaping
from palladium.errors import ShapesDiffer, WrongAxis, WrongDtype, WrongShape, fail
from palladium.operators import multiply
from palladium.values import array, common_shape, convert, emit, to_array, to_shape

OPERANDS = (
    core.f32, core.f16, core.bf16, core.f64, core.i8, core.u8, core.f8e4m3, core.f8e5m2,
    core.i32, core.u32, core.i64, core.u64,
)  # fmt: skip
_WIDER = {"bool": core.i8, "i4": core.i8, "u4": core.i8, "i16": core.i32, "u16": core.u32}
"""What products of types without an engine are computed in."""

Axes = Sequence[int]


def dot(
    a: Any, b: Any, *, precision: Any = None, preferred_element_type: Any = None, out_sharding: Any = None
) -> array:
    """a[M, K] times b[K, N]; of further dimensions the last of a with the last but one of b.

    Accumulates in float32 (int32 for integers of up to 32 bits) in the order of docs/numerics.md, whatever `precision`
    says, and rounds once to `preferred_element_type`, by default the operands' dtype.
    """
    left, right = to_array(a, "dot"), to_array(b, "dot")
    if not left.shape or not right.shape:
        return multiply(left, right)
    axes = ((left.ndim - 1,), (max(right.ndim - 2, 0),))
    return contract(left, right, axes, ((), ()), preferred_element_type, "dot")


def matmul(
    a: Any, b: Any, *, precision: Any = None, preferred_element_type: Any = None, out_sharding: Any = None
) -> array:
    """a[..., M, K] times b[..., K, N] for each index of the dimensions before, which broadcast; accumulates as dot."""
    return product(a, b, preferred_element_type, "matmul")


def product(a: Any, b: Any, dtype: Any, function: str) -> array:
    """`matmul` with its result in `dtype`."""
    left, right = to_array(a, function), to_array(b, function)
    if not left.shape or not right.shape:
        fail(ShapesDiffer, function=function, first=left.shape, second=right.shape)
    if left.ndim > 2 or right.ndim > 2:
        batch = common_shape([left.shape[:-2], right.shape[:-2]], function)
        left, right = (
            value if value.ndim == 1 else to_shape(value, (*batch, *value.shape[-2:]), function)
            for value in (left, right)
        )
        if left.ndim == right.ndim:
            every = tuple(range(len(batch)))
            return contract(left, right, ((left.ndim - 1,), (right.ndim - 2,)), (every, every), dtype, function)
    return contract(left, right, ((left.ndim - 1,), (max(right.ndim - 2, 0),)), ((), ()), dtype, function)


def accumulator_dtype(dtype: DType) -> DType:
    """What products of a dtype add up in."""
    if dtype.bits == 64 or dtype is core.u32:
        return dtype
    return core.f32 if dtype.is_float else core.i32


def dot_operands(a: Any, b: Any, function: str) -> tuple[array, array]:
    """Two tiles in their common dtype; 8-bit floats of two kinds stay as they are."""
    left, right = to_array(a, function), to_array(b, function)
    common, _ = promotion.result_dtype([(left.core, left.weak), (right.core, right.weak)], function)
    if all(value.core.is_float and value.core.bits == 8 for value in (left, right)):
        return left, right
    return convert(left, common), convert(right, common)


def contract(
    a: Any, b: Any, contracted: tuple[Axes, Axes], batch: tuple[Axes, Axes], dtype: Any, function: str
) -> array:
    """Sums of products over the contracted dimensions, for each index of the batch dimensions.

    The result has the batch dimensions, then the other ones of a, then those of b; several contracted dimensions run in
    row-major order.
    """
    left, right = dot_operands(a, b, function)
    common, _ = promotion.result_dtype([(left.core, left.weak), (right.core, right.weak)], function)
    sides = []
    for value, mine, shared in ((left, contracted[0], batch[0]), (right, contracted[1], batch[1])):
        kept = [d for d in range(value.ndim) if d not in mine and d not in shared]
        sides.append((value, list(mine), list(shared), kept))
    (_, _, _, rows), (_, _, _, columns) = sides
    for mine, shared in zip(contracted, batch, strict=True):
        if len({*mine, *shared}) != len(mine) + len(shared):
            fail(WrongShape, function=function, problem=f"dimensions {tuple(mine)} and {tuple(shared)} repeat")
    for mine, theirs in ((contracted[0], contracted[1]), (batch[0], batch[1])):
        if [left.shape[d] for d in mine] != [right.shape[d] for d in theirs]:
            fail(ShapesDiffer, function=function, first=left.shape, second=right.shape)
    counts = [left.shape[d] for d in batch[0]]
    depth = prod(left.shape[d] for d in contracted[0])
    outer = [prod(counts)] if counts else []
    first = _arranged(left, [*batch[0], *rows, *contracted[0]], (*outer, prod(left.shape[d] for d in rows), depth))
    second = _arranged(
        right, [*batch[1], *contracted[1], *columns], (*outer, depth, prod(right.shape[d] for d in columns))
    )
    made = _multiply(first, second, common if dtype is None else promotion.as_dtype(dtype), function)
    return shaping.reshape(made, (*counts, *(left.shape[d] for d in rows), *(right.shape[d] for d in columns)))


def _arranged(value: array, order: Sequence[int], sizes: tuple[int, ...]) -> array:
    return shaping.reshape(shaping.transpose(value, list(order)), sizes)


def _multiply(left: array, right: array, dtype: DType, function: str) -> array:
    wider = _WIDER.get(left.core.name)
    if wider is not None:
        left, right = convert(left, wider), convert(right, wider)
    for value in (left, right):
        if value.core not in OPERANDS:
            names = ", ".join(one.name for one in OPERANDS)
            fail(WrongDtype, function=function, given=str(value), takes=f"it takes {names}")
    return convert(emit(Dot, left, right, dtype=accumulator_dtype(left.core)), dtype)


def dot_general(
    a: Any,
    b: Any,
    dimension_numbers: Any,
    precision: Any = None,
    preferred_element_type: Any = None,
    *,
    out_sharding: Any = None,
) -> array:
    """lax.dot_general: ((contracted of a, of b), (batch of a, of b))."""
    left, right = to_array(a, "dot_general"), to_array(b, "dot_general")
    (contract_a, contract_b), (batch_a, batch_b) = dimension_numbers
    axes = [
        tuple(shaping.axis_of(axis, value.ndim, "dot_general") for axis in given)
        for value, given in ((left, contract_a), (right, contract_b), (left, batch_a), (right, batch_b))
    ]
    return contract(left, right, (axes[0], axes[1]), (axes[2], axes[3]), preferred_element_type, "dot_general")


def tensordot(a: Any, b: Any, axes: Any = 2, *, precision: Any = None, preferred_element_type: Any = None) -> array:
    """Sums of products over so many last dimensions of a and first ones of b, or over pairs of them."""
    left, right = to_array(a, "tensordot"), to_array(b, "tensordot")
    if isinstance(axes, int):
        if not 0 <= axes <= min(left.ndim, right.ndim):
            fail(WrongAxis, function="tensordot", axis=axes, rank=min(left.ndim, right.ndim))
        pairs = list(range(left.ndim - axes, left.ndim)), list(range(axes))
    else:
        pairs = tuple([one] if isinstance(one, int) else list(one) for one in axes)  # type: ignore[assignment]
    mine = [shaping.axis_of(axis, left.ndim, "tensordot") for axis in pairs[0]]
    theirs = [shaping.axis_of(axis, right.ndim, "tensordot") for axis in pairs[1]]
    return contract(left, right, (mine, theirs), ((), ()), preferred_element_type, "tensordot")


def einsum(subscripts: str, *operands: Any, precision: Any = None, preferred_element_type: Any = None) -> array:
    """Sums of products by letters: "mk,kn->mn". Three operands and more multiply from the left, two at a time."""
    values = [to_array(operand, "einsum") for operand in operands]
    inputs, result = _letters(subscripts, values)
    value, letters = values[0], inputs[0]
    if len(values) == 1:
        return _ordered(*_reduced(value, letters, result), result)
    for i, (other, own) in enumerate(zip(values[1:], inputs[1:], strict=True), 2):
        later = result + "".join(inputs[i:])
        value, letters = _reduced(value, letters, later + own)
        other, own = _reduced(other, own, later + letters)
        shared = [letter for letter in letters if letter in own]
        batch = [letter for letter in shared if letter in later]
        summed = [letter for letter in shared if letter not in later]
        dtype = preferred_element_type
        value = contract(
            value, other, (_places(summed, letters), _places(summed, own)),
            (_places(batch, letters), _places(batch, own)), dtype, "einsum",
        )  # fmt: skip
        kept = [letter for one in (letters, own) for letter in one if letter not in shared]
        letters = "".join([*batch, *kept])
    return _ordered(value, letters, result)


def _places(wanted: Sequence[str], letters: str) -> list[int]:
    return [letters.index(letter) for letter in wanted]


def _letters(subscripts: str, values: Sequence[array]) -> tuple[list[str], str]:
    """The letters of each operand and of the result, of spaces and `...` in the place of dimensions in front."""
    text = subscripts.replace(" ", "")
    left, arrow, right = text.partition("->")
    inputs = left.split(",")
    if len(inputs) != len(values):
        problem = f"{subscripts!r} names {len(inputs)} operands, and {len(values)} are given"
        fail(WrongShape, function="einsum", problem=problem)
    spare = [letter for letter in "ABCDEFGHIJKLMNOPQRSTUVWXYZ" if letter not in text]
    ranks = [
        value.ndim - len(one.replace("...", "")) for one, value in zip(inputs, values, strict=True) if "..." in one
    ]
    dots = "".join(spare[: max(ranks, default=0)])
    found = []
    for one, value in zip(inputs, values, strict=True):
        here = value.ndim - len(one.replace("...", ""))
        full = one.replace("...", dots[len(dots) - here :] if here > 0 else "")
        if len(full) != value.ndim:
            fail(WrongShape, function="einsum", problem=f"{one!r} does not name the dimensions of {value.shape}")
        found.append(full)
    if arrow:
        return found, right.replace("...", dots)
    every = "".join(found)
    return found, dots + "".join(sorted(letter for letter in set(every) - set(dots) if every.count(letter) == 1))


def _reduced(value: array, letters: str, wanted: str) -> tuple[array, str]:
    """The sum over letters that nothing wants; of a letter that comes twice the diagonal."""
    from palladium import arranging, reductions

    while len(set(letters)) < len(letters):
        twice = next(letter for letter in letters if letters.count(letter) > 1)
        first, second = (i for i, letter in enumerate(letters) if letter == twice)
        value = arranging.diagonal(value, axis1=first, axis2=second)
        letters = letters[:first] + letters[first + 1 : second] + letters[second + 1 :] + twice
    gone = tuple(i for i, letter in enumerate(letters) if letter not in wanted)
    if gone:
        value = reductions.sum(value, axis=gone, dtype=value.core)
    return value, "".join(letter for letter in letters if letter in wanted)


def _ordered(value: array, letters: str, result: str) -> array:
    if set(letters) != set(result):
        fail(WrongShape, function="einsum", problem=f"the result {result!r} is not made of {letters!r}")
    return shaping.transpose(value, [letters.index(letter) for letter in result])


def kernel_dot(
    a: Any, b: Any, trans_a: bool = False, trans_b: bool = False, allow_tf32: Any = None, precision: Any = None
) -> array:
    """Pallas's dot: a times b, either of them transposed, accumulated and given in float32 (int32 for integers)."""
    left, right = to_array(a, "dot"), to_array(b, "dot")
    left = shaping.transpose(left) if trans_a else left
    right = shaping.transpose(right) if trans_b else right
    return product(left, right, accumulator_dtype(left.core), "dot")
