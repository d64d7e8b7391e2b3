"""Rules of the operations that change memory in place, talk to the user, or stop the run."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from loom_core.base.diagnostics import UserError
from loom_core.interp.memory import Array, Pointer, read, write
from loom_core.ir.value import Value
from loom_core.ops import atomic, debug
from loom_core.ops.reduction import combine_arrays

Environment = dict[Value, Any]


class AssertionFailed(UserError):
    code = "LOOM-R212"
    template = "device assertion failed{message} in program {program}{element}"
    hint = "the condition was false at run time"


def _ones(shape: tuple[int, ...]) -> Array:
    return np.ones(shape, bool)


def atomic_rmw(op: atomic.AtomicRmw, values: Environment) -> list[Any]:
    """Elements of distinct addresses are independent, so all first uses of an address go together, then the second."""
    pointer, value = values[op.pointer], values[op.value]
    mask = values[op.mask] if op.mask is not None else _ones(op.value.type.shape)
    dtype = op.value.type.dtype
    kind = atomic.fold_kind(op.kind)
    old = np.zeros(value.shape, dtype.numpy)
    for turn in _turns(pointer, mask):
        before = read(pointer, turn, old, dtype, op.location)
        after = value if kind is None else combine_arrays(kind, before[turn], value[turn])
        updated = np.array(value)
        updated[turn] = after[turn] if kind is None else after
        write(pointer, turn, updated, dtype, op.location)
        old[turn] = before[turn]
    return [old]


def atomic_cas(op: atomic.AtomicCas, values: Environment) -> list[Any]:
    pointer, compare, value = values[op.pointer], values[op.compare], values[op.value]
    dtype = op.value.type.dtype
    old = np.zeros(value.shape, dtype.numpy)
    for turn in _turns(pointer, _ones(op.value.type.shape)):
        before = read(pointer, turn, old, dtype, op.location)
        same = turn & (_bits(before) == _bits(compare))
        write(pointer, same, value, dtype, op.location)
        old[turn] = before[turn]
    return [old]


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
    """One line a value: `pid (0, 0, 0) prefix: value`, the elements of a tile in NumPy's form."""
    place = f"pid {program}"
    if not op.values:
        print(f"{place} {op.prefix}", file=sys.stdout)
    for operand in op.values:
        array = values[operand]
        if isinstance(array, Pointer):
            array = array.offsets
        if op.hex and array.dtype.kind in "iu":
            shown = np.array2string(array, formatter={"int": hex})
        else:
            shown = np.array2string(array)
        print(f"{place} {op.prefix}: {shown}", file=sys.stdout)
    return []


def check(op: debug.Assert, values: Environment, program: tuple[int, int, int]) -> list[Any]:
    condition = values[op.condition]
    if not condition.all():
        message = f": {op.message}" if op.message else ""
        index = tuple(int(i) for i in np.unravel_index(int(np.argmin(condition)), condition.shape))
        element = f", first for element {index}" if condition.shape else ""
        raise AssertionFailed(op.location, message=message, program=program, element=element)
    return []
