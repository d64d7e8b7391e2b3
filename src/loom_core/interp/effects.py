"""Rules of the operations that change memory in place, talk to the user, or stop the run."""

from __future__ import annotations

from typing import Any

import numpy as np

from loom_core.base.reports import AssertionFailed, failed_assertion, print_value
from loom_core.interp.memory import Array, Pointer, read, write
from loom_core.ir.op import Op
from loom_core.ir.value import Value
from loom_core.ops import atomic, debug, memory
from loom_core.ops.reduction import combine_arrays

Environment = dict[Value, Any]


def _ones(shape: tuple[int, ...]) -> Array:
    return np.ones(shape, bool)


def atomic_rmw(op: atomic.AtomicRmw, values: Environment) -> list[Any]:
    mask = values[op.mask] if op.mask is not None else _ones(op.value.type.shape)
    return [_read_modify_write(op, op.kind, values[op.pointer], values[op.value], mask)]


def scatter_reduce(op: memory.DmaScatterReduce, values: Environment) -> list[Any]:
    return [_read_modify_write(op, op.kind, indexed_pointer(op, values), values[op.value], _mask(op, values))]


def _read_modify_write(op: Op, kind_name: str, pointer: Pointer, value: Array, mask: Array) -> Array:
    """Elements of distinct addresses are independent, so all first uses of an address go together, then the second."""
    dtype = op.results[0].type.dtype
    kind = atomic.fold_kind(kind_name)
    old = np.zeros(value.shape, dtype.numpy)
    for turn in _turns(pointer, mask):
        before = read(pointer, turn, old, dtype, op.location)
        after = value if kind is None else combine_arrays(kind, before[turn], value[turn])
        updated = np.array(value)
        updated[turn] = after[turn] if kind is None else after
        write(pointer, turn, updated, dtype, op.location)
        old[turn] = before[turn]
    return old


def atomic_cas(op: atomic.AtomicCas, values: Environment) -> list[Any]:
    return [_compare_and_swap(op, values[op.pointer], values[op.compare], values[op.value])]


def compare_swap(op: memory.DmaCompareSwap, values: Environment) -> list[Any]:
    return [_compare_and_swap(op, indexed_pointer(op, values), values[op.compare], values[op.value])]


def _compare_and_swap(op: Op, pointer: Pointer, compare: Array, value: Array) -> Array:
    dtype = op.results[0].type.dtype
    old = np.zeros(value.shape, dtype.numpy)
    for turn in _turns(pointer, _ones(value.shape)):
        before = read(pointer, turn, old, dtype, op.location)
        same = turn & (_bits(before) == _bits(compare))
        write(pointer, same, value, dtype, op.location)
        old[turn] = before[turn]
    return old


def gather(op: memory.DmaGather, values: Environment) -> list[Any]:
    dtype = op.result.type.dtype
    fill = values[op.fill] if op.fill is not None else np.zeros((), dtype.numpy)
    return [read(indexed_pointer(op, values), _mask(op, values), fill, dtype, op.location)]


def scatter(op: memory.DmaScatter, values: Environment) -> list[Any]:
    write(indexed_pointer(op, values), _mask(op, values), values[op.value], op.value.type.dtype, op.location)
    return []


def indexed_pointer(op: memory.IndexedAccess, values: Environment) -> Pointer:
    """The addresses of an indexed access."""
    base: Pointer = values[op.base]  # type: ignore[attr-defined]
    offsets = np.full(op.shape, int(values[op.offset]), np.int64)  # type: ignore[attr-defined]
    for d, stride in enumerate(op.strides):  # type: ignore[attr-defined]
        index = np.arange(op.shape[d], dtype=np.int64).reshape([-1 if e == d else 1 for e in range(len(op.shape))])
        offsets = offsets + index * int(values[stride])
    if op.index is not None:  # type: ignore[attr-defined]
        size = op.base.type.pointee.itemsize  # type: ignore[attr-defined]
        offsets = offsets + values[op.index].astype(np.int64) * size  # type: ignore[attr-defined]
    return base.moved(offsets)


def _mask(op: memory.IndexedAccess, values: Environment) -> Array:
    return values[op.mask] if op.mask is not None else _ones(op.shape)  # type: ignore[attr-defined]


def _bits(x: Array) -> Array:
    return np.ascontiguousarray(x).reshape(x.shape).view(f"u{x.dtype.itemsize}")


def _turns(pointer: Pointer, mask: Array) -> list[Array]:
    """Masks that part the masked elements: the i-th holds the i-th element, in row-major order, of each address."""
    flat = np.flatnonzero(mask)
    addresses = pointer.offsets.reshape(-1)[flat]
    order = np.argsort(addresses, kind="stable")
    ordered = addresses[order]
    starts = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]]) if ordered.size else np.zeros(0, np.int64)
    lengths = np.diff(np.r_[starts, ordered.size])
    rank = np.empty(flat.size, np.int64)
    rank[order] = np.arange(ordered.size) - np.repeat(starts, lengths)
    turns = []
    for turn in range(int(rank.max()) + 1 if rank.size else 0):
        chosen = np.zeros(mask.size, bool)
        chosen[flat[rank == turn]] = True
        turns.append(chosen.reshape(mask.shape))
    return turns


def print_values(op: debug.Print, values: Environment, program: tuple[int, int, int]) -> list[Any]:
    """One line a value, or the prefix alone."""
    for value in [values[operand] for operand in op.values] or [None]:
        print_value(program, op.prefix, value, op.hex)
    return []


def check(op: debug.Assert, values: Environment, program: tuple[int, int, int]) -> list[Any]:
    condition = values[op.condition]
    if not condition.all():
        raise AssertionFailed(op.location, **failed_assertion(program, op.message, condition))
    return []
