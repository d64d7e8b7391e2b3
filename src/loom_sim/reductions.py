"""Reduction engines: void(dst, a, b, row, count), dst[r] = the fold of the `row` elements a[r * row ...], for `count`
rows.

Floats fold in the order of docs/numerics.md: in a block, lane j of 32 folds elements j, j + 32, ... from its first
element, then lanes fold in halves 16, 8, 4, 2, 1; absent lanes are skipped. One call folds one block a row (1 <= row <=
4096); the stream engine folds the results of several blocks by the same rule. Floats of 8 and 16 bits round after every
step. For minimum and maximum the order does not matter, nor for integers.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from loom_core.base.dtype import by_name
from loom_core.isa.sce import SceOp
from loom_sim.element_types import VALUE_TYPES, memory_type
from loom_sim.integers import combine_function
from loom_sim.narrow import FORMATS, emit_canonical, emit_is_nan, emit_narrow, emit_widen, filled, like

LANES: Final = 32
GROUP: Final = 8  # rows folded together
BLOCK: Final = 4096
_I1 = ir.IntType(1)
_I32 = ir.IntType(32)
_I64 = ir.IntType(64)
_Unary = Callable[[ir.IRBuilder, ir.Value], ir.Value]
_Combine = Callable[[ir.IRBuilder, ir.Value, ir.Value], ir.Value]


@dataclass(frozen=True)
class _Quick:
    """`fold` gives what the exact one gives, but for rows whose result compares equal to one of `doubtful`, or whose
    fold by `test`, where there is one, is NaN."""

    fold: _Fold
    doubtful: tuple[float, ...]
    test: _Fold | None = None

    def emit_doubt(self, builder: ir.IRBuilder, results: ir.Value, tested: ir.Value | None) -> ir.Value:
        """Where a vector of results, or one, does not hold."""
        found = [builder.fcmp_ordered("==", results, filled(results.type, value)) for value in self.doubtful]
        if tested is not None:
            found.append(builder.fcmp_unordered("uno", tested, tested))
        return functools.reduce(builder.or_, found)


@dataclass(frozen=True)
class _Fold:
    """`combine` works on what `prepare` makes of a vector of elements, of type `prepared`; `finish` makes elements of
    it again, with canonical NaNs. `begin` is what becomes of a row's first vector, and `quick`, where there is one, a
    fold that costs less and says when it does not hold."""

    element: ir.Type
    prepared: ir.Type
    combine: _Combine
    prepare: _Unary
    finish: _Unary
    begin: _Unary = lambda builder, x: x
    quick: _Quick | None = None

    @property
    def row_type(self) -> ir.VectorType:
        """A vector of elements, one a lane."""
        return ir.VectorType(self.element, LANES)

    @property
    def half_type(self) -> ir.VectorType:
        """What `prepare` makes of the first half of the lanes."""
        return ir.VectorType(self.prepared, LANES // 2)


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
    element = vector.element
    suffix = f"i{element.width}" if isinstance(element, ir.IntType) else f"f{64 if element == ir.DoubleType() else 32}"
    load = cgutils.get_or_insert_function(builder.module, kind, f"llvm.masked.load.v{vector.count}{suffix}.p0")
    zeros = ir.Constant(vector, [0 if isinstance(element, ir.IntType) else 0.0] * vector.count)
    return builder.call(load, [pointer, _I32(1), present, zeros])


def _emit_lanes(builder: ir.IRBuilder, fold: _Fold, base: ir.Value, row: ir.Value) -> ir.Value:
    """The 32 lanes of a row of at least 32 elements, prepared; `base` points to vectors of 32."""
    combine = fold.combine
    whole = builder.lshr(row, _I64(5))
    rest = builder.and_(row, _I64(LANES - 1))
    loop, after, tail, done = (
        builder.append_basic_block(f"lanes.{name}") for name in ("loop", "after", "tail", "done")
    )
    head = fold.begin(builder, fold.prepare(builder, builder.load(base, align=1)))
    first = builder.block
    builder.cbranch(builder.icmp_signed(">", whole, _I64(1)), loop, after)

    builder.position_at_end(loop)
    index, lanes = builder.phi(_I64), builder.phi(head.type)
    loaded = builder.load(builder.gep(base, [index]), align=1)
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
    builder.cbranch(builder.icmp_signed("==", rest, _I64(0)), done, tail)

    builder.position_at_end(tail)
    present = builder.icmp_signed("<", _iota(LANES), _splat(builder, rest, LANES))
    loaded = _partial_load(builder, builder.gep(base, [whole]), base.type.pointee, present)
    last = combine(builder, folded, fold.prepare(builder, loaded))
    with_last = builder.select(present, last, folded)
    builder.branch(done)

    builder.position_at_end(done)
    result = builder.phi(head.type)
    result.add_incoming(folded, after)
    result.add_incoming(with_last, tail)
    return result


def _emit_fold(builder: ir.IRBuilder, fold: _Fold, address: ir.Value, row: ir.Value) -> ir.Value:
    """The fold of `row` elements at `address`, 1 <= row <= 4096."""
    vector = fold.row_type
    base = builder.inttoptr(address, vector.as_pointer())
    short, long, done = (builder.append_basic_block(f"fold.{name}") for name in ("short", "long", "done"))
    builder.cbranch(builder.icmp_signed("<", row, _I64(LANES)), short, long)

    builder.position_at_end(short)
    present = builder.icmp_signed("<", _iota(LANES), _splat(builder, row, LANES))
    lanes = fold.begin(builder, fold.prepare(builder, _partial_load(builder, base, vector, present)))
    few = _fold_lanes(builder, fold.combine, lanes, row)
    builder.branch(done)

    builder.position_at_end(long)
    many = _fold_lanes(builder, fold.combine, _emit_lanes(builder, fold, base, row), None)
    long_end = builder.block
    builder.branch(done)

    builder.position_at_end(done)
    result = builder.phi(few.type)
    result.add_incoming(few, short)
    result.add_incoming(many, long_end)
    return fold.finish(builder, result)


def _emit_quick_fold(builder: ir.IRBuilder, fold: _Fold, address: ir.Value, row: ir.Value) -> ir.Value:
    """`_emit_fold`, quickly where that holds."""
    quick = fold.quick
    if quick is None:
        return _emit_fold(builder, fold, address, row)
    result = _emit_fold(builder, quick.fold, address, row)
    tested = None if quick.test is None else _emit_fold(builder, quick.test, address, row)
    place = cgutils.alloca_once_value(builder, result)
    with builder.if_then(quick.emit_doubt(builder, result, tested), likely=False):
        builder.store(_emit_fold(builder, fold, address, row), place)
    return builder.load(place)


def _emit_quick_group(builder: ir.IRBuilder, fold: _Fold, address: ir.Value, row: ir.Value) -> ir.Value:
    """`_emit_group`, quickly where that holds for all its rows."""
    quick = fold.quick
    if quick is None:
        return _emit_group(builder, fold, address, row)
    results = _emit_group(builder, quick.fold, address, row)
    tested = None if quick.test is None else _emit_group(builder, quick.test, address, row)
    doubt = builder.bitcast(quick.emit_doubt(builder, results, tested), ir.IntType(GROUP))
    place = cgutils.alloca_once_value(builder, results)
    with builder.if_then(builder.icmp_unsigned("!=", doubt, doubt.type(0)), likely=False):
        builder.store(_emit_group(builder, fold, address, row), place)
    return builder.load(place)


def _emit_group(builder: ir.IRBuilder, fold: _Fold, address: ir.Value, row: ir.Value) -> ir.Value:
    """The folds of GROUP consecutive rows of at least 32 elements, as a vector.

    Rows share instructions: a vector holds 16 lanes of one row, then 8 of two, 4 of four, 2 of eight, 1 of eight.
    """
    pointer = fold.row_type.as_pointer()
    halves = cgutils.alloca_once(builder, fold.half_type, GROUP)
    with cgutils.for_range(builder, _I64(GROUP)) as loop:
        first = builder.gep(builder.inttoptr(address, fold.element.as_pointer()), [builder.mul(loop.index, row)])
        lanes = _emit_lanes(builder, fold, builder.bitcast(first, pointer), row)
        low, high = _half(builder, lanes, 0, LANES // 2), _half(builder, lanes, LANES // 2, LANES // 2)
        builder.store(fold.combine(builder, low, high), builder.gep(halves, [loop.index]))
    rows = [builder.load(builder.gep(halves, [_I64(i)])) for i in range(GROUP)]
    count = LANES // 4  # lanes of a row that the next step leaves
    while count:
        undefined = ir.Constant(rows[0].type, ir.Undefined)
        others = rows[1::2] or [undefined]
        rows = [_fold_groups(builder, fold.combine, *pair, count) for pair in zip(rows[::2], others, strict=True)]
        count //= 2
    return _half(builder, fold.finish(builder, rows[0]), 0, GROUP)


def _fold_groups(builder: ir.IRBuilder, combine: _Combine, one: ir.Value, other: ir.Value, count: int) -> ir.Value:
    """The groups of 2 * count lanes of two vectors, each folded in halves to `count` lanes; those of `one` first."""
    starts = range(0, LANES, 2 * count)
    low, high = ([start + offset + i for start in starts for i in range(count)] for offset in (0, count))
    kind = ir.VectorType(_I32, LANES // 2)
    return combine(
        builder,
        builder.shuffle_vector(one, other, ir.Constant(kind, low)),
        builder.shuffle_vector(one, other, ir.Constant(kind, high)),
    )


def _make_fold(rule: _Fold, dtype: str) -> Any:
    value = VALUE_TYPES[dtype]

    @intrinsic
    def fold(typing_context, address, row):  # type: ignore[no-untyped-def]
        """The ordered fold of `row` elements at `address`."""

        def generate(context: Any, builder: ir.IRBuilder, signature: Any, values: Sequence[ir.Value]) -> ir.Value:
            return _emit_quick_fold(builder, rule, values[0], values[1])

        return value(types.int64, types.int64), generate

    return fold


def _make_group_fold(rule: _Fold) -> Any:
    @intrinsic
    def fold_group(typing_context, dst, address, row):  # type: ignore[no-untyped-def]
        """The ordered folds of GROUP rows of at least 32 elements at `address`, to `dst`."""

        def generate(context: Any, builder: ir.IRBuilder, signature: Any, values: Sequence[ir.Value]) -> ir.Value:
            results = _emit_quick_group(builder, rule, *values[1:])
            builder.store(results, builder.inttoptr(values[0], results.type.as_pointer()), align=1)
            return context.get_dummy_value()

        return types.void(types.int64, types.int64, types.int64), generate

    return fold_group


def _canonical(builder: ir.IRBuilder, x: ir.Value) -> ir.Value:
    """Every NaN of a float type that LLVM has becomes the canonical one."""
    return builder.select(builder.fcmp_unordered("uno", x, x), filled(x.type, float("nan")), x)


def _arithmetic(dtype: str, operation: str) -> _Fold:
    """A sum ("fadd") or product ("fmul")."""

    def plain(builder: ir.IRBuilder, x: ir.Value, y: ir.Value) -> ir.Value:
        return getattr(builder, operation)(x, y)

    element, form = memory_type(dtype), FORMATS.get(dtype)
    if form is None:
        return _Fold(element, element, plain, lambda builder, x: x, _canonical)

    def rounded(builder: ir.IRBuilder, x: ir.Value, y: ir.Value) -> ir.Value:
        return emit_widen(builder, form, emit_narrow(builder, form, plain(builder, x, y)))

    return _Fold(
        element,
        ir.FloatType(),
        rounded,
        lambda builder, x: emit_widen(builder, form, x),
        lambda builder, x: emit_narrow(builder, form, x),
    )


def _extreme(dtype: str, less: str, nan_wins: bool) -> _Fold:
    """The extreme of integers that order as the floats do; the key of NaN is one that no number has."""
    width, form = by_name(dtype).bits, FORMATS.get(dtype)
    integer = ir.IntType(width)
    least, most = -(1 << (width - 1)), (1 << (width - 1)) - 1
    nan_key = most if (less == "<") == nan_wins else least

    def flip_negative(builder: ir.IRBuilder, pattern: ir.Value) -> ir.Value:
        """Involution between float patterns and integers of the same order (-0 just below +0)."""
        sign = builder.ashr(pattern, filled(pattern.type, width - 1))
        return builder.xor(pattern, builder.and_(sign, filled(pattern.type, most)))

    def combine(builder: ir.IRBuilder, x: ir.Value, y: ir.Value) -> ir.Value:
        return builder.select(builder.icmp_signed(less, x, y), y, x)

    def prepare(builder: ir.IRBuilder, x: ir.Value) -> ir.Value:
        pattern = builder.bitcast(x, like(integer, x))
        is_nan = builder.fcmp_unordered("uno", x, x) if form is None else emit_is_nan(builder, form, x)
        return builder.select(is_nan, filled(pattern.type, nan_key), flip_negative(builder, pattern))

    def finish(builder: ir.IRBuilder, key: ir.Value) -> ir.Value:
        pattern = flip_negative(builder, key)
        if form is not None:
            return emit_canonical(builder, form, pattern)
        return _canonical(builder, builder.bitcast(pattern, like(memory_type(dtype), pattern)))

    quick = _quick_extreme(dtype, less, nan_wins) if form is None else None
    return _Fold(memory_type(dtype), integer, combine, prepare, finish, quick=quick)


def _quick_extreme(dtype: str, less: str, nan_wins: bool) -> _Quick:
    """The extreme by comparing floats, which passes over NaNs once the first vector has none: right unless a NaN should
    win, or the result is a zero, whose sign may be the wrong one, or what NaNs of the first vector became.
    """
    element = memory_type(dtype)
    worst = -math.inf if less == "<" else math.inf

    def combine(builder: ir.IRBuilder, x: ir.Value, y: ir.Value) -> ir.Value:
        return builder.select(builder.fcmp_ordered(">" if less == "<" else "<", y, x), y, x)

    def begin(builder: ir.IRBuilder, x: ir.Value) -> ir.Value:
        return builder.select(builder.fcmp_unordered("uno", x, x), filled(x.type, worst), x)

    same: _Unary = lambda builder, x: x  # noqa: E731
    fold = _Fold(element, element, combine, same, same, begin)
    return _Quick(fold, (0.0, worst), _arithmetic(dtype, "fadd") if nan_wins else None)


_FLOAT_FOLDS: Final[dict[str, Callable[[str], _Fold]]] = {
    "reduce_sum": lambda dtype: _arithmetic(dtype, "fadd"),
    "reduce_prod": lambda dtype: _arithmetic(dtype, "fmul"),
    "reduce_max": lambda dtype: _extreme(dtype, "<", nan_wins=False),
    "reduce_min": lambda dtype: _extreme(dtype, ">", nan_wins=False),
    "reduce_maxp": lambda dtype: _extreme(dtype, "<", nan_wins=True),
    "reduce_minp": lambda dtype: _extreme(dtype, ">", nan_wins=True),
}


def _by_lanes(rule: _Fold, dtype: str, store: Any) -> Callable[..., None]:
    fold, fold_group, element_bytes = _make_fold(rule, dtype), _make_group_fold(rule), by_name(dtype).itemsize

    def engine(dst, a, b, row, count):  # type: ignore[no-untyped-def]
        done = 0
        if row >= LANES:
            while count - done >= GROUP:
                fold_group(dst + done * element_bytes, a + done * row * element_bytes, row)
                done += GROUP
        for r in range(done, count):
            store(dst, r, fold(a + r * row * element_bytes, row))

    return engine


# ---- integer folds ---------------------------------------------------------------------------------------------------

_INTEGER_FOLDS: Final = {
    "reduce_sum": "add",
    "reduce_prod": "mul",
    "reduce_max": "max",
    "reduce_min": "min",
    "reduce_and": "and",
    "reduce_or": "or",
    "reduce_xor": "xor",
}


def _order_free(load: Any, store: Any, combine: Any, element_bytes: int) -> Callable[..., None]:
    def engine(dst, a, b, row, count):  # type: ignore[no-untyped-def]
        for r in range(count):
            start = a + r * row * element_bytes
            folded = load(start, 0)
            for i in range(1, row):
                folded = combine(folded, load(start, i))
            store(dst, r, folded)

    return engine


def build_reduction(op: SceOp, load: Any, store: Any) -> Callable[..., None]:
    """The Python function of a reduction's engine; `load`, `store`: element access."""
    dtype = by_name(op.result)
    if dtype.is_float:
        return _by_lanes(_FLOAT_FOLDS[op.function](op.result), op.result, store)
    return _order_free(load, store, combine_function(_INTEGER_FOLDS[op.function], op.result), dtype.itemsize)
