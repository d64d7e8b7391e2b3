"""Triton's rules for operands: lifting of numbers, promotion, broadcasting, casts.

Numbers of Python (literals, constexprs) are weak: they take the dtype of a tile of the same or a higher kind
(bool < integer < float). Run-time scalars promote as tiles do.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from loom_core.base import dtype as core
from loom_core.base.dtype import DType
from loom_core.ir.types import PointerType, TileType
from loom_core.ir.value import Value
from loom_core.ops.elementwise import Bitcast, Cast, Compare
from loom_core.ops.shape import Broadcast, ExpandDims, Splat
from loom_core.trace.context import current
from loom_core.trace.values import is_number
from ltl import dtypes
from ltl.constant import constexpr
from ltl.errors import MixedSigns, OutOfRange, ShapesDiffer, WrongDtype, WrongValue, fail, here
from ltl.tensor import tensor

_KINDS: Final = {"bool": 0, "uint": 1, "int": 1, "float": 2}
_SMALLEST_NORMAL: Final = 2.0**-126
_LARGEST: Final = (2 - 2.0**-23) * 2.0**127


# ---- numbers ---------------------------------------------------------------------------------------------------------


def number_dtype(value: bool | int | float) -> DType:
    """The dtype that a Python number has on its own: bool, i32 (or the first of u32, i64, u64 that holds it), f32.

    A float outside the normal range of f32 is f64, as in Triton. OutOfRange for an integer beyond 64 bits.
    """
    if isinstance(value, bool):
        return core.bool_
    if isinstance(value, int):
        for dtype in (core.i32, core.u32, core.i64, core.u64):
            if dtype.min_value <= value <= dtype.max_value:
                return dtype
        return fail(OutOfRange, value=value, dtype="64 bits", hint="integers in a kernel have at most 64 bits")
    size = abs(value)
    normal = size == 0 or size != size or size == float("inf") or _SMALLEST_NORMAL <= size <= _LARGEST
    return core.f32 if normal else core.f64


def known_scalar(value: bool | int | float, dtype: DType) -> tensor:
    """A scalar of known value."""
    return tensor(TileType(dtype), None, value, here())


def lift(value: bool | int | float) -> tensor:
    """A Python number as a scalar of its own dtype."""
    return known_scalar(value, number_dtype(value))


def full(value: bool | int | float, dtype: DType, shape: tuple[int, ...]) -> tensor:
    """A tile with `value` in every element."""
    if not shape:
        return known_scalar(value, dtype)
    type = TileType(dtype, shape)
    return tensor(type, current().constant(type, value))


def unwrap(value: Any) -> Any:
    """The plain value of a constexpr; anything else as it is."""
    return value.value if isinstance(value, constexpr) else value


def operand(value: Any, function: str, argument: str) -> Any:
    """What may be computed with: a tensor or a Python number. WrongValue for anything else."""
    value = unwrap(value)
    if isinstance(value, tensor) or is_number(value):
        return value
    return fail(WrongValue, function=function, argument=argument, given=_named(value), expected="a tile or a number")


def to_tensor(value: Any, function: str = "to_tensor", argument: str = "the value") -> tensor:
    """A tensor as it is, a number as a scalar. WrongValue for anything else."""
    value = operand(value, function, argument)
    return value if isinstance(value, tensor) else lift(value)


def _named(value: Any) -> str:
    return "None" if value is None else f"a {type(value).__name__}"


# ---- promotion -------------------------------------------------------------------------------------------------------


def promote_integers(a: DType, b: DType) -> DType:
    """The wider; of equal width and different signs the unsigned one (C's usual arithmetic conversions)."""
    unsigned_a, unsigned_b = a.kind != "int", b.kind != "int"
    if unsigned_a == unsigned_b:
        return a if a.bits > b.bits else b
    if unsigned_a:
        return a if a.bits >= b.bits else b
    return b if b.bits >= a.bits else a


def computation_dtype(a: DType, weak_a: bool, b: DType, weak_b: bool, division: bool, function: str) -> DType:
    """The dtype in which an operation of `a` and `b` computes; `weak` marks Python numbers."""
    if weak_a != weak_b:
        weak, strong = (a, b) if weak_a else (b, a)
        if _KINDS[weak.kind] <= _KINDS[strong.kind]:
            a = b = strong
    pair = (a, b)
    if core.f64 in pair:
        return core.f64
    if division and (a.is_float or b.is_float):
        return core.f32
    if core.f32 in pair:
        return core.f32
    if core.f16 in pair:
        return core.f16
    if core.bf16 in pair:
        return core.bf16 if a is b else core.f32
    if a.is_float and b.is_float:
        return a if a is b else core.f16
    if a.is_float or b.is_float:
        eight = a if a.is_float else b
        fail(WrongDtype, function=function, given=f"{dtypes.of_core(eight)} with an integer tile", takes="convert one")
    if division and (a.kind == "int") != (b.kind == "int"):
        fail(MixedSigns, function=function, first=dtypes.of_core(a), second=dtypes.of_core(b))
    return promote_integers(a, b)


def _computed(value: Any, dtype: DType) -> tensor:
    if isinstance(value, tensor):
        return cast(value, dtype)
    if dtype.is_integer and not dtype.min_value <= value <= dtype.max_value:
        fail(OutOfRange, value=value, dtype=dtypes.of_core(dtype))
    return known_scalar(value, dtype)


def _own_dtype(value: Any, function: str) -> tuple[DType, bool]:
    """The dtype of an operand and whether it is weak."""
    if not isinstance(value, tensor):
        return number_dtype(value), True
    if value.ir_type.is_pointer:
        fail(WrongDtype, function=function, given="a pointer", takes="load from it first, or add an integer to it")
    return value.ir_type.dtype, False


def promote(a: Any, b: Any, function: str, division: bool = False) -> tuple[tensor, tensor]:
    """Both operands in their common dtype and shape."""
    a, b = operand(a, function, "the first operand"), operand(b, function, "the second operand")
    (dtype_a, weak_a), (dtype_b, weak_b) = _own_dtype(a, function), _own_dtype(b, function)
    dtype = computation_dtype(dtype_a, weak_a, dtype_b, weak_b, division, function)
    return broadcast_pair(_computed(a, dtype), _computed(b, dtype), function)


def promote_three(a: Any, b: Any, c: Any, function: str) -> tuple[tensor, tensor, tensor]:
    """Three operands in their common dtype and shape; tiles agree first, then numbers join them."""
    values = [operand(value, function, f"operand {i + 1}") for i, value in enumerate((a, b, c))]
    strong: DType | None = None
    weak: DType | None = None
    for value in values:
        own, is_weak = _own_dtype(value, function)
        if is_weak:
            weak = own if weak is None else computation_dtype(weak, True, own, True, False, function)
        else:
            strong = own if strong is None else computation_dtype(strong, False, own, False, False, function)
    if strong is None or weak is None:
        dtype = strong or weak
    else:
        dtype = computation_dtype(strong, False, weak, True, False, function)
    assert dtype is not None
    x, y, z = broadcast_all([_computed(value, dtype) for value in values], function)
    return x, y, z


# ---- shapes ----------------------------------------------------------------------------------------------------------


def common_shape(a: tuple[int, ...], b: tuple[int, ...], function: str) -> tuple[int, ...]:
    """The shape that both broadcast to; dimensions are added in front. ShapesDiffer if there is none."""
    rank = max(len(a), len(b))
    padded_a, padded_b = (1,) * (rank - len(a)) + a, (1,) * (rank - len(b)) + b
    if any(x != y and 1 not in (x, y) for x, y in zip(padded_a, padded_b, strict=True)):
        fail(ShapesDiffer, function=function, first=a, second=b)
    return tuple(y if x == 1 else x for x, y in zip(padded_a, padded_b, strict=True))


def broadcast_pair(a: tensor, b: tensor, function: str) -> tuple[tensor, tensor]:
    """Both operands in their common shape."""
    if a.shape == b.shape:
        return a, b
    shape = common_shape(a.shape, b.shape, function)
    return to_shape(a, shape), to_shape(b, shape)


def broadcast_all(values: Sequence[tensor], function: str) -> list[tensor]:
    """All operands in their common shape."""
    shape: tuple[int, ...] = ()
    for value in values:
        shape = common_shape(shape, value.shape, function)
    return [to_shape(value, shape) for value in values]


def to_shape(value: tensor, shape: tuple[int, ...]) -> tensor:
    """A tensor whose shape broadcasts to `shape`, in that shape."""
    if value.shape == shape:
        return value
    if value.known is not None:
        return full(value.known, value.ir_type.dtype, shape)
    create = current().builder.create
    ir: Value = value.value
    if not value.shape:
        ir = create(Splat, ir, shape=shape)
    else:
        while len(ir.type.shape) < len(shape):
            ir = create(ExpandDims, ir, axis=0)
        if ir.type.shape != shape:
            ir = create(Broadcast, ir, shape=shape)
    return tensor(ir.type, ir)


# ---- casts -----------------------------------------------------------------------------------------------------------


def cast(value: tensor, dtype: DType) -> tensor:
    """Convert to `dtype`: floats round to nearest even, float to integer truncates, to bool is `!= 0`."""
    own = value.ir_type.element
    if own is dtype:
        return value
    if isinstance(own, PointerType):
        fail(WrongDtype, function="cast", given="a pointer", takes="pointers are not converted to numbers")
    if value.known is not None and not own.is_float and not dtype.is_float:
        # Integer conversions are exact modulo 2**bits, so a known value stays known.
        known = bool(value.known) if dtype.is_bool else wrap(int(value.known), dtype)
        return known_scalar(known, dtype)
    create = current().builder.create
    ir: Value
    if dtype.is_bool:
        zero = full(0, own, value.shape).value
        ir = create(Compare, value.value, zero, predicate="ne")
    else:
        ir = create(Cast, value.value, dtype=dtype)
    return tensor(ir.type, ir)


def bitcast(value: tensor, dtype: DType) -> tensor:
    """The same bits as another dtype of equal width."""
    own = value.ir_type.element
    if own is dtype:
        return value
    if isinstance(own, PointerType) or own.bits != dtype.bits:
        fail(
            WrongDtype,
            function=f"a bitcast to {dtypes.of_core(dtype)}",
            given=str(value.type),
            takes="both types must have the same width",
        )
    ir: Value = current().builder.create(Bitcast, value.value, dtype=dtype)
    return tensor(ir.type, ir)


def wrap(value: int, dtype: DType) -> int:
    """An integer modulo 2**bits of an integer dtype."""
    reduced = value & ((1 << dtype.bits) - 1)
    return reduced - (1 << dtype.bits) if dtype.kind == "int" and reduced >> (dtype.bits - 1) else reduced


def truth(value: tensor) -> tensor:
    """A tensor as int1: itself, or whether it is not 0."""
    return cast(value, core.bool_)
