"""Reduction engines: void(dst, a, b, row, count), dst[r] = the fold of the `row` elements a[r * row ...], for `count` rows.

Float sums and products follow the order of `isa` (docs/numerics.md): in a block, lane j of 32 folds elements j, j + 32, ...
from its first element, then lanes fold in halves 16, 8, 4, 2, 1; absent lanes are skipped. One call folds one block a row
(1 <= row <= 4096); the stream engine folds the results of several blocks by the same rule. Minimum, maximum and integer
reductions are order-free.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from loom_core.isa.sce import SceOp
from loom_sim.bits import NAN32, bits32, canonical32, float32_from_bits, scalar, select
from loom_sim.memory import wrapping_add

LANES: Final = 32
BLOCK: Final = 4096
_I1 = ir.IntType(1)
_I32 = ir.IntType(32)
_I64 = ir.IntType(64)
_F32 = ir.FloatType()
_Combine = Callable[[ir.IRBuilder, ir.Value, ir.Value], ir.Value]
_LEAST32: Final = np.int32(-(1 << 31))
_MOST32: Final = np.int32((1 << 31) - 1)


# ---- ordered float folds --------------------------------------------------------------------------------------------------


def _iota(count: int, start: int = 0) -> ir.Constant:
    return ir.Constant(ir.VectorType(_I64, count), [start + i for i in range(count)])


def _splat(builder: ir.IRBuilder, value: ir.Value, count: int) -> ir.Value:
    kind = ir.VectorType(value.type, count)
    single = builder.insert_element(ir.Constant(kind, ir.Undefined), value, _I32(0))
    zeros = ir.Constant(ir.VectorType(_I32, count), [0] * count)
    return builder.shuffle_vector(single, ir.Constant(kind, ir.Undefined), zeros)


def _half(builder: ir.IRBuilder, vector: ir.Value, start: int, count: int) -> ir.Value:
    indices = ir.Constant(ir.VectorType(_I32, count), list(range(start, start + count)))
    return builder.shuffle_vector(vector, ir.Constant(vector.type, ir.Undefined), indices)


def _fold_lanes(builder: ir.IRBuilder, combine: _Combine, lanes: ir.Value, row: ir.Value | None) -> ir.Value:
    """Element type value of folding 32 lanes in halves; `row` is the number of lanes present, None for all."""
    count = LANES // 2
    while count:
        low, high = _half(builder, lanes, 0, count), _half(builder, lanes, count, count)
        folded = combine(builder, low, high)
        if row is not None:
            present = builder.icmp_signed("<", _iota(count, count), _splat(builder, row, count))
            folded = builder.select(present, folded, low)
        lanes = folded
        count //= 2
    return builder.extract_element(lanes, _I32(0))


def _partial_load(builder: ir.IRBuilder, pointer: ir.Value, vector: ir.VectorType, present: ir.Value) -> ir.Value:
    """The first lanes of a vector; absent ones are not read and come out as zero."""
    mask = ir.VectorType(_I1, vector.count)
    kind = ir.FunctionType(vector, [pointer.type, _I32, mask, vector])
    load = cgutils.get_or_insert_function(builder.module, kind, f"llvm.masked.load.v{vector.count}f32.p0")
    return builder.call(load, [pointer, _I32(4), present, ir.Constant(vector, [0.0] * vector.count)])


def _emit_fold(builder: ir.IRBuilder, combine: _Combine, address: ir.Value, row: ir.Value) -> ir.Value:
    """The fold of `row` floats at `address`, 1 <= row <= 4096."""
    vector = ir.VectorType(_F32, LANES)
    base = builder.inttoptr(address, vector.as_pointer())
    whole = builder.lshr(row, _I64(5))
    rest = builder.and_(row, _I64(LANES - 1))
    short, first, loop, after, tail, lanes_done, done = (
        builder.append_basic_block(f"fold.{name}")
        for name in ("short", "first", "loop", "after", "tail", "lanes", "done")
    )
    builder.cbranch(builder.icmp_signed("==", whole, _I64(0)), short, first)

    builder.position_at_end(short)
    present = builder.icmp_signed("<", _iota(LANES), _splat(builder, row, LANES))
    few = _fold_lanes(builder, combine, _partial_load(builder, base, vector, present), row)
    builder.branch(done)

    builder.position_at_end(first)
    head = builder.load(base, align=4)
    builder.cbranch(builder.icmp_signed(">", whole, _I64(1)), loop, after)

    builder.position_at_end(loop)
    index, lanes = builder.phi(_I64), builder.phi(vector)
    next_lanes = combine(builder, lanes, builder.load(builder.gep(base, [index]), align=4))
    next_index = builder.add(index, _I64(1))
    index.add_incoming(_I64(1), first)
    index.add_incoming(next_index, loop)
    lanes.add_incoming(head, first)
    lanes.add_incoming(next_lanes, loop)
    builder.cbranch(builder.icmp_signed("<", next_index, whole), loop, after)

    builder.position_at_end(after)
    folded = builder.phi(vector)
    folded.add_incoming(head, first)
    folded.add_incoming(next_lanes, loop)
    builder.cbranch(builder.icmp_signed("==", rest, _I64(0)), lanes_done, tail)

    builder.position_at_end(tail)
    present = builder.icmp_signed("<", _iota(LANES), _splat(builder, rest, LANES))
    last = combine(builder, folded, _partial_load(builder, builder.gep(base, [whole]), vector, present))
    with_last = builder.select(present, last, folded)
    builder.branch(lanes_done)

    builder.position_at_end(lanes_done)
    lanes = builder.phi(vector)
    lanes.add_incoming(folded, after)
    lanes.add_incoming(with_last, tail)
    many = _fold_lanes(builder, combine, lanes, None)
    builder.branch(done)

    builder.position_at_end(done)
    result = builder.phi(_F32)
    result.add_incoming(few, short)
    result.add_incoming(many, lanes_done)
    return result


def _make_fold(combine: _Combine) -> Any:
    @intrinsic
    def fold(typing_context, address, row):  # type: ignore[no-untyped-def]
        """f32: the ordered fold of `row` floats at `address`."""

        def generate(context: Any, builder: ir.IRBuilder, signature: Any, values: Sequence[ir.Value]) -> ir.Value:
            return _emit_fold(builder, combine, values[0], values[1])

        return types.float32(types.int64, types.int64), generate

    return fold


_ORDERED: Final[dict[str, Any]] = {
    "reduce_sum": _make_fold(lambda builder, x, y: builder.fadd(x, y)),
    "reduce_prod": _make_fold(lambda builder, x, y: builder.fmul(x, y)),
}


def _ordered(fold: Any, store: Any) -> Callable[..., None]:
    def engine(dst, a, b, row, count):  # type: ignore[no-untyped-def]
        for r in range(count):
            store(dst, r, canonical32(fold(a + r * row * 4, row)))

    return engine


# ---- order-free folds: over integers, or over integers that order as the floats do -----------------------------------------


@scalar
def _key(x):  # type: ignore[no-untyped-def]
    """Involution between float patterns and integers of the same order (-0 just below +0)."""
    return x ^ ((x >> np.int32(31)) & _MOST32)


def _float_key(nan_key: np.int32) -> Callable[..., Any]:
    return lambda x: select(x != x, nan_key, np.int32(_key(bits32(x))))


def _float_value(nan_key: np.int32) -> Callable[..., Any]:
    return lambda key: select(key == nan_key, NAN32, float32_from_bits(np.int32(_key(key))))


_MAXIMUM: Final = lambda x, y: select(y > x, y, x)  # noqa: E731 - rows of tables
_MINIMUM: Final = lambda x, y: select(y < x, y, x)  # noqa: E731

# function -> (pairwise fold, key of NaN). The keys of the extremes are patterns of NaNs: no number has them.
_FLOAT_EXTREMES: Final[dict[str, tuple[Callable[..., Any], np.int32]]] = {
    "reduce_max": (_MAXIMUM, _LEAST32),
    "reduce_min": (_MINIMUM, _MOST32),
    "reduce_maxp": (_MAXIMUM, _MOST32),
    "reduce_minp": (_MINIMUM, _LEAST32),
}
_INTEGER_FOLDS: Final[dict[str, Callable[..., Any]]] = {
    "reduce_sum": lambda x, y: wrapping_add(np.int64(x), np.int64(y)),
    "reduce_max": _MAXIMUM,
    "reduce_min": _MINIMUM,
    "reduce_and": lambda x, y: x & y,
    "reduce_or": lambda x, y: x | y,
    "reduce_xor": lambda x, y: x ^ y,
}


def _order_free(
    load: Any, store: Any, to_key: Any, combine: Any, from_key: Any, wrap: Any, element_bytes: int
) -> Callable[..., None]:
    def engine(dst, a, b, row, count):  # type: ignore[no-untyped-def]
        for r in range(count):
            start = a + r * row * element_bytes
            folded = wrap(to_key(load(start, 0)))
            for i in range(1, row):
                folded = wrap(combine(folded, to_key(load(start, i))))
            store(dst, r, from_key(folded))

    return engine


def build_reduction(op: SceOp, load: Any, store: Any, compiled: Callable[[Any], Any]) -> Callable[..., None]:
    """The Python function of a reduction's engine. `load`, `store`: element access; `compiled`: lambda -> numba function."""
    dtype = op.result
    if dtype == "f32":
        if op.function in _ORDERED:
            return _ordered(_ORDERED[op.function], store)
        combine, nan_key = _FLOAT_EXTREMES[op.function]
        to_key, from_key, wrap, element_bytes = _float_key(nan_key), _float_value(nan_key), np.int32, 4
    else:
        combine = _INTEGER_FOLDS[op.function]
        to_key = from_key = lambda x: x
        wrap, element_bytes = (np.int32, 4) if dtype == "i32" else (np.int64, 8)
    return _order_free(
        load,
        store,
        compiled(to_key),
        compiled(combine),
        compiled(from_key),
        wrap,
        element_bytes,
    )
