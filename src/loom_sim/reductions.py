"""Reduction engines: void(dst, a, b, row, count), dst[r] = the fold of the `row` elements a[r * row ...], for `count`
rows.

Floats fold in the order of docs/numerics.md: in a block, lane j of 32 folds elements j, j + 32, ... from its first
element, then lanes fold in halves 16, 8, 4, 2, 1; absent lanes are skipped. One call folds one block a row (1 <= row <=
4096); the stream engine folds the results of several blocks by the same rule. For minimum and maximum the order does
not matter, nor for integers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from loom_core.isa.sce import SceOp
from loom_sim.bits import canonical32, select
from loom_sim.memory import wrapping_add

LANES: Final = 32
BLOCK: Final = 4096
_I1 = ir.IntType(1)
_I32 = ir.IntType(32)
_I64 = ir.IntType(64)
_F32 = ir.FloatType()
_LEAST: Final = -(1 << 31)
_MOST: Final = (1 << 31) - 1
_Unary = Callable[[ir.IRBuilder, ir.Value], ir.Value]
_Combine = Callable[[ir.IRBuilder, ir.Value, ir.Value], ir.Value]


@dataclass(frozen=True)
class _Fold:
    """`combine` works on what `prepare` makes of a vector of floats; `finish` makes the float of the last element."""

    combine: _Combine
    prepare: _Unary = lambda builder, x: x
    finish: _Unary = lambda builder, x: x


# ---- float folds -----------------------------------------------------------------------------------------------------


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


def _emit_fold(builder: ir.IRBuilder, fold: _Fold, address: ir.Value, row: ir.Value) -> ir.Value:
    """The fold of `row` floats at `address`, 1 <= row <= 4096."""
    combine = fold.combine
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
    few = _fold_lanes(builder, combine, fold.prepare(builder, _partial_load(builder, base, vector, present)), row)
    builder.branch(done)

    builder.position_at_end(first)
    head = fold.prepare(builder, builder.load(base, align=4))
    builder.cbranch(builder.icmp_signed(">", whole, _I64(1)), loop, after)

    builder.position_at_end(loop)
    index, lanes = builder.phi(_I64), builder.phi(head.type)
    loaded = builder.load(builder.gep(base, [index]), align=4)
    next_lanes = combine(builder, lanes, fold.prepare(builder, loaded))
    next_index = builder.add(index, _I64(1))
    index.add_incoming(_I64(1), first)
    index.add_incoming(next_index, loop)
    lanes.add_incoming(head, first)
    lanes.add_incoming(next_lanes, loop)
    builder.cbranch(builder.icmp_signed("<", next_index, whole), loop, after)

    builder.position_at_end(after)
    folded = builder.phi(head.type)
    folded.add_incoming(head, first)
    folded.add_incoming(next_lanes, loop)
    builder.cbranch(builder.icmp_signed("==", rest, _I64(0)), lanes_done, tail)

    builder.position_at_end(tail)
    present = builder.icmp_signed("<", _iota(LANES), _splat(builder, rest, LANES))
    loaded = _partial_load(builder, builder.gep(base, [whole]), vector, present)
    last = combine(builder, folded, fold.prepare(builder, loaded))
    with_last = builder.select(present, last, folded)
    builder.branch(lanes_done)

    builder.position_at_end(lanes_done)
    lanes = builder.phi(head.type)
    lanes.add_incoming(folded, after)
    lanes.add_incoming(with_last, tail)
    many = _fold_lanes(builder, combine, lanes, None)
    builder.branch(done)

    builder.position_at_end(done)
    result = builder.phi(few.type)
    result.add_incoming(few, short)
    result.add_incoming(many, lanes_done)
    return fold.finish(builder, result)


def _make_fold(rule: _Fold) -> Any:
    @intrinsic
    def fold(typing_context, address, row):  # type: ignore[no-untyped-def]
        """f32: the ordered fold of `row` floats at `address`."""

        def generate(context: Any, builder: ir.IRBuilder, signature: Any, values: Sequence[ir.Value]) -> ir.Value:
            return _emit_fold(builder, rule, values[0], values[1])

        return types.float32(types.int64, types.int64), generate

    return fold


def _flip_negative(builder: ir.IRBuilder, pattern: ir.Value) -> ir.Value:
    """Involution between float patterns and integers of the same order (-0 just below +0)."""
    sign = builder.ashr(pattern, ir.Constant(pattern.type, _fill(pattern.type, 31)))
    return builder.xor(pattern, builder.and_(sign, ir.Constant(pattern.type, _fill(pattern.type, _MOST))))


def _fill(kind: ir.Type, value: int) -> int | list[int]:
    return [value] * kind.count if isinstance(kind, ir.VectorType) else value


def _extreme(less: str, nan_key: int) -> _Fold:
    """The extreme of integers that order as the floats do; the key of NaN is one that no number has."""

    def combine(builder: ir.IRBuilder, x: ir.Value, y: ir.Value) -> ir.Value:
        return builder.select(builder.icmp_signed(less, x, y), y, x)

    def prepare(builder: ir.IRBuilder, x: ir.Value) -> ir.Value:
        integers = ir.VectorType(_I32, x.type.count)
        key = _flip_negative(builder, builder.bitcast(x, integers))
        nan = ir.Constant(integers, _fill(integers, nan_key))
        return builder.select(builder.fcmp_unordered("uno", x, x), nan, key)

    def finish(builder: ir.IRBuilder, key: ir.Value) -> ir.Value:
        return builder.bitcast(_flip_negative(builder, key), _F32)

    return _Fold(combine, prepare, finish)


_FLOAT_FOLDS: Final[dict[str, Any]] = {
    "reduce_sum": _make_fold(_Fold(lambda builder, x, y: builder.fadd(x, y))),
    "reduce_prod": _make_fold(_Fold(lambda builder, x, y: builder.fmul(x, y))),
    "reduce_max": _make_fold(_extreme("<", _LEAST)),
    "reduce_min": _make_fold(_extreme(">", _MOST)),
    "reduce_maxp": _make_fold(_extreme("<", _MOST)),
    "reduce_minp": _make_fold(_extreme(">", _LEAST)),
}


def _by_lanes(fold: Any, store: Any) -> Callable[..., None]:
    def engine(dst, a, b, row, count):  # type: ignore[no-untyped-def]
        for r in range(count):
            store(dst, r, canonical32(fold(a + r * row * 4, row)))

    return engine


# ---- integer folds ---------------------------------------------------------------------------------------------------

_MAXIMUM: Final = lambda x, y: select(y > x, y, x)  # noqa: E731 - rows of tables
_MINIMUM: Final = lambda x, y: select(y < x, y, x)  # noqa: E731

_INTEGER_FOLDS: Final[dict[str, Callable[..., Any]]] = {
    "reduce_sum": lambda x, y: wrapping_add(np.int64(x), np.int64(y)),
    "reduce_max": _MAXIMUM,
    "reduce_min": _MINIMUM,
    "reduce_and": lambda x, y: x & y,
    "reduce_or": lambda x, y: x | y,
    "reduce_xor": lambda x, y: x ^ y,
}


def _order_free(load: Any, store: Any, combine: Any, wrap: Any, element_bytes: int) -> Callable[..., None]:
    def engine(dst, a, b, row, count):  # type: ignore[no-untyped-def]
        for r in range(count):
            start = a + r * row * element_bytes
            folded = wrap(load(start, 0))
            for i in range(1, row):
                folded = wrap(combine(folded, load(start, i)))
            store(dst, r, folded)

    return engine


def build_reduction(op: SceOp, load: Any, store: Any, compiled: Callable[[Any], Any]) -> Callable[..., None]:
    """The Python function of a reduction's engine.

    `load`, `store`: element access; `compiled`: lambda -> numba function.
    """
    if op.result == "f32":
        return _by_lanes(_FLOAT_FOLDS[op.function], store)
    wrap, element_bytes = (np.int32, 4) if op.result == "i32" else (np.int64, 8)
    return _order_free(load, store, compiled(_INTEGER_FOLDS[op.function]), wrap, element_bytes)
