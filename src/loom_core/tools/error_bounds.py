"""How far a device's results may be from ours: a run of the IR that carries an error bound with every value.

Each elementwise float operation may be off by 4 units in the last place; a sum of K values by 2 K u times the sum of
their magnitudes, a product of matrices by 2 K u times the product of the magnitudes (u: unit roundoff of the
accumulator), or 2^-9 times it where it was recorded with tf32. What an operation makes of the errors of its operands is
found by trying: it is evaluated once more with each operand moved by its error to either side. Integers and moves have
no error of their own.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from loom_core.base.dtype import from_numpy
from loom_core.interp.memory import Buffer, Pointer, choose, read, write
from loom_core.ir.block import Block, Function
from loom_core.ir.op import Op
from loom_core.ir.value import Value
from loom_core.ops import atomic, control, elementwise, matmul, memory, rearrange, reduction, shape
from loom_core.ops.distance import unit
from loom_core.ops.formats import is_float, widen
from loom_core.tools.comparison import ULPS
from loom_core.tools.recording import Argument, Memory, Recording, elements

Array = npt.NDArray[Any]
TF32: Final = 2.0**-9

_EXACT: Final = frozenset(
    {"neg", "abs", "min", "max", "minp", "maxp", "copy", "floor", "ceil", "rint", "trunc", "round", "copysign", "isnan",
     "select", "bitcast", "cmp", "frexp_fraction", "frexp_exponent", "nextafter"}
)  # fmt: skip
"""Elementwise operations that do not round: they only pass errors on."""


_IEEE: Final[dict[type[Op], Callable[[Array, Array], Array]]] = {
    elementwise.Add: np.add,
    elementwise.Sub: np.subtract,
    elementwise.Mul: np.multiply,
}


@dataclass(frozen=True)
class Bounded:
    """A value with the absolute error of each element, float64; None where it is exact."""

    value: Any
    error: Array | None = None


@dataclass(eq=False)
class Shadow:
    """A buffer with the errors of what was stored in it, at the first byte of each element."""

    buffer: Buffer
    errors: Array


Environment = dict[Value, Bounded]


def bounds_of_launch(recording: Recording, kernel: Any, taken: Sequence[Argument]) -> Mapping[str, Array]:
    """For each array of a recorded launch the errors of its elements; `kernel` takes the arguments `taken`."""
    held = Memory(recording)
    fresh = [held.argument(argument) for argument in taken]
    function = kernel.lower(*fresh)
    views, scalars = kernel.leaves(fresh, {})
    tf32 = "tf32" in (recording.folder / "kernel.ttir").read_text(encoding="utf-8", errors="replace")
    shadows: dict[int, Shadow] = {}
    values = _parameters(function, iter(views), iter(scalars), shadows)
    grid = (*recording.grid, 1, 1)[:3]
    for z in range(grid[2]):
        for y in range(grid[1]):
            for x in range(grid[0]):
                _Run((x, y, z), grid, shadows, tf32).block(function.body, dict(values))
    return {argument.name: _errors_of(held, argument, shadows) for argument in recording.tensors}


def _parameters(function: Function, views: Any, scalars: Any, shadows: dict[int, Shadow]) -> Environment:
    values: Environment = {}
    for parameter in function.arguments:
        if not parameter.type.is_pointer:
            _, number = next(scalars)
            values[parameter] = Bounded(np.asarray(number).astype(parameter.type.dtype.numpy))
            continue
        view = next(views)
        start, size = view.address + view.low, view.high - view.low
        data = np.frombuffer((ctypes.c_uint8 * size).from_address(start), np.uint8) if size else np.zeros(0, np.uint8)
        # Arguments that share memory share the errors too: they are kept by address.
        whole = next(
            (s for s in shadows.values() if _address(s.buffer) <= start < _address(s.buffer) + s.errors.size), None
        )
        offset = view.address - (_address(whole.buffer) if whole is not None else start)
        if whole is None:
            whole = shadows[start] = Shadow(Buffer(parameter.name or "", data, 0), np.zeros(size))
        values[parameter] = Bounded(Pointer(whole.buffer, np.asarray(offset, np.int64)))
    return values


def _address(buffer: Buffer) -> int:
    return int(buffer.data.__array_interface__["data"][0])


def _errors_of(held: Memory, argument: Any, shadows: dict[int, Shadow]) -> Array:
    data = held.bytes_of(argument)
    start = int(data.__array_interface__["data"][0])
    count = elements(data, argument.dtype).size
    for shadow in shadows.values():
        low = _address(shadow.buffer)
        if low <= start < low + shadow.errors.size:
            place = start - low + np.arange(count) * argument.dtype.itemsize
            return np.asarray(shadow.errors[place])
    return np.zeros(count)


class _Run:
    """One program."""

    def __init__(
        self, program: tuple[int, int, int], grid: tuple[int, ...], shadows: dict[int, Shadow], tf32: bool
    ) -> None:
        self.program = program
        self.grid = grid
        self.shadow_of = {id(shadow.buffer): shadow for shadow in shadows.values()}
        self.tf32 = tf32

    def block(self, block: Block, values: Environment) -> list[Bounded]:
        for op in block.operations:
            if op.terminator:
                return [values[value] for value in op.operands]
            results = self.operation(op, [values[value] for value in op.operands], values)
            for result, value in zip(op.results, results, strict=True):
                values[result] = value
        return []

    def operation(self, op: Op, operands: list[Bounded], values: Environment) -> list[Bounded]:
        rule = _RULES.get(type(op))
        if rule is not None:
            return rule(self, op, operands, values)
        if any(isinstance(operand.value, Pointer) for operand in operands):
            return [_on_pointer(op, operands)]
        if op.elementwise:
            return [elementwise_bounds(op, operands)]
        return [_moved(op, operands)]

    # -- control -------------------------------------------------------------------------------------------------------

    def loop(self, op: control.For, operands: list[Bounded], values: Environment) -> list[Bounded]:
        lower, upper, step = (int(operand.value) for operand in operands[:3])
        carried, body = operands[3:], op.regions[0]
        counter = op.lower.type.dtype.numpy
        for i in range(lower, upper, step):
            inner = dict(zip(body.arguments, [Bounded(np.asarray(i, counter)), *carried], strict=True))
            carried = self.block(body, {**values, **inner})
        return carried

    def while_loop(self, op: control.While, operands: list[Bounded], values: Environment) -> list[Bounded]:
        condition, body = op.regions
        carried = operands
        while True:
            inner = dict(zip(condition.arguments, carried, strict=True))
            holds, *handed = self.block(condition, {**values, **inner})
            if not holds.value:
                return handed
            carried = self.block(body, {**values, **dict(zip(body.arguments, handed, strict=True))})

    def branch(self, op: control.If, operands: list[Bounded], values: Environment) -> list[Bounded]:
        return self.block(op.regions[0 if operands[0].value else 1], dict(values))

    def position(self, op: Any, operands: list[Bounded], values: Environment) -> list[Bounded]:
        source = self.program if isinstance(op, control.ProgramId) else self.grid
        return [Bounded(np.asarray(source[op.axis], np.int32))]

    # -- memory --------------------------------------------------------------------------------------------------------

    def window(self, op: memory.Window, operands: list[Bounded], values: Environment) -> list[Bounded]:
        data = np.full(op.shape, op.dtype.poison, op.dtype.numpy)
        buffer = Buffer(op.result.name or op.name, np.frombuffer(bytearray(data.tobytes()), np.uint8))
        self.shadow_of[id(buffer)] = Shadow(buffer, np.zeros(buffer.data.size))
        return [Bounded(Pointer(buffer, np.zeros((), np.int64)))]

    def load(self, op: memory.Load, operands: list[Bounded], values: Environment) -> list[Bounded]:
        pointer, dtype = values[op.pointer], op.result.type.dtype
        mask = values[op.mask] if op.mask is not None else Bounded(np.ones(op.result.type.shape, bool))
        other = values[op.other] if op.other is not None else Bounded(np.zeros((), dtype.numpy))
        value = read(pointer.value, mask.value, other.value, dtype, op.location)
        errors = self._stored_errors(pointer.value, mask.value)
        fill = 0.0 if other.error is None else other.error
        error = np.where(mask.value, errors, fill)
        if pointer.error is not None:
            error = error + self._neighbours(op, pointer, mask.value, value)
        return [Bounded(value, _unless_zero(_or_unknown(error, mask.error)))]

    def _neighbours(self, op: memory.Load, pointer: Bounded, mask: Array, value: Array) -> Array:
        """How far what stands at the addresses within the pointers' error is from `value`."""
        assert pointer.error is not None
        dtype, known = op.result.type.dtype, np.isfinite(pointer.error)
        worst = np.zeros(value.shape)
        for sign in (-1, 1):
            offsets = pointer.value.offsets + np.where(known, sign * pointer.error, 0).astype(np.int64)
            for buffer, doubtful in pointer.value.parts(mask & (pointer.error > 0)):
                start = offsets + buffer.origin
                inside = doubtful & (start >= 0) & (start + dtype.itemsize <= buffer.data.size) & known
                other = read(Pointer(buffer, offsets), inside, value, dtype, op.location)
                worst = np.maximum(worst, _distance(other, value) + np.where(doubtful & ~inside, np.inf, 0))
        return worst

    def store(self, op: memory.Store, operands: list[Bounded], values: Environment) -> list[Bounded]:
        pointer, value = values[op.pointer], values[op.value]
        mask = values[op.mask] if op.mask is not None else Bounded(np.ones(op.value.type.shape, bool))
        write(pointer.value, mask.value, value.value, op.value.type.dtype, op.location)
        error = _or_unknown(_error(value), pointer.error, mask.error)
        self._note_errors(pointer.value, mask.value, error)
        return []

    def atomic_rmw(self, op: atomic.AtomicRmw, operands: list[Bounded], values: Environment) -> list[Bounded]:
        from loom_core.interp.effects import atomic_rmw

        pointer, value = values[op.pointer], values[op.value]
        mask = values[op.mask].value if op.mask is not None else np.ones(op.value.type.shape, bool)
        (old,) = atomic_rmw(op, {key: bounded.value for key, bounded in values.items()})
        dtype = op.value.type.dtype
        # Programs add in another order on a device, so that what counts are the magnitudes that were added.
        largest = np.abs(_wide(old)) + np.abs(_wide(value.value))
        grown = _error(value) + (ULPS * unit(largest, dtype) if dtype.is_float else 0.0)
        for errors, places, there in self._shadows(pointer.value, mask):
            np.add.at(errors, places, np.broadcast_to(grown, mask.shape)[there])
        return [Bounded(old)]

    def atomic_cas(self, op: atomic.AtomicCas, operands: list[Bounded], values: Environment) -> list[Bounded]:
        from loom_core.interp.effects import atomic_cas

        return [Bounded(old) for old in atomic_cas(op, {key: bounded.value for key, bounded in values.items()})]

    def _shadows(self, pointer: Pointer, mask: Array) -> Iterator[tuple[Array, Array, Array]]:
        """For each buffer that elements point into its errors, the places in them, and which elements those are."""
        for buffer, there in pointer.parts(mask):
            yield self.shadow_of[id(buffer)].errors, pointer.offsets[there].astype(np.int64) + buffer.origin, there

    def _stored_errors(self, pointer: Pointer, mask: Array) -> Array:
        found = np.zeros(pointer.offsets.shape)
        for errors, places, there in self._shadows(pointer, mask):
            found[there] = errors[places]
        return found

    def _note_errors(self, pointer: Pointer, mask: Array, error: Array) -> None:
        for errors, places, there in self._shadows(pointer, mask):
            errors[places] = np.broadcast_to(error, mask.shape)[there]

    # -- folds ---------------------------------------------------------------------------------------------------------

    def reduce(self, op: reduction.Reduce, operands: list[Bounded], values: Environment) -> list[Bounded]:
        (x,) = operands
        value = op.ref(x.value)
        return [Bounded(value, _unless_zero(_fold_error(op.kind, x, value, op.axis)))]

    def scan(self, op: reduction.Scan, operands: list[Bounded], values: Environment) -> list[Bounded]:
        (x,) = operands
        value = op.ref(x.value)
        if not is_float(x.value):
            return [Bounded(value, _unknown_if(x, value))]

        def running(array: Array) -> Array:
            flipped = np.flip(array, op.axis) if op.reverse else array
            summed = np.cumsum(flipped, op.axis)
            return np.flip(summed, op.axis) if op.reverse else summed

        count = running(np.ones(x.value.shape))
        roundoff = 2.0 * _roundoff(x.value) * count
        if op.kind == "sum":
            error = running(_error_full(x)) + roundoff * running(np.abs(widen(x.value).astype(np.float64)))
        else:
            error = running(_error_full(x)) + roundoff * np.abs(widen(value).astype(np.float64))
        return [Bounded(value, _unless_zero(error))]

    def region(self, op: Any, operands: list[Bounded], values: Environment) -> list[Bounded]:
        """A fold or scan by a region, its steps one after another with their errors, in the order of our own run."""
        moved = [Bounded(np.moveaxis(x.value, op.axis, 0), _moved_axis(x, op.axis)) for x in operands]
        if isinstance(op, reduction.ReduceRegion):
            return self._tree(op, moved)
        return self._sequence(op, moved)

    def _tree(self, op: Any, parts: list[Bounded]) -> list[Bounded]:
        while len(parts[0].value) > 1:
            even = len(parts[0].value) // 2 * 2
            left = [_rows(x, slice(0, even, 2)) for x in parts]
            right = [_rows(x, slice(1, even, 2)) for x in parts]
            paired = self._step(op, left, right)
            parts = [_behind(new, _rows(old, slice(even, None))) for new, old in zip(paired, parts, strict=True)]
        return [_rows(x, 0) for x in parts]

    def _sequence(self, op: Any, parts: list[Bounded]) -> list[Bounded]:
        order = range(len(parts[0].value))
        rows: dict[int, list[Bounded]] = {}
        carried: list[Bounded] | None = None
        for index in reversed(order) if op.reverse else order:
            elements_here = [_rows(x, index) for x in parts]
            carried = elements_here if carried is None else self._step(op, carried, elements_here)
            rows[index] = carried
        results = []
        for i in range(len(parts)):
            value = np.stack([rows[index][i].value for index in order])
            error = np.stack([np.broadcast_to(_error(rows[index][i]), rows[index][i].value.shape) for index in order])
            results.append(Bounded(np.moveaxis(value, 0, op.axis), _unless_zero(np.moveaxis(error, 0, op.axis))))
        return results

    def _step(self, op: Any, left: list[Bounded], right: list[Bounded]) -> list[Bounded]:
        block = op.regions[0]
        given = self.block(block, dict(zip(block.arguments, [*left, *right], strict=True)))
        size = left[0].value.shape
        return [Bounded(np.broadcast_to(x.value, size), x.error) for x in given]

    def dot(self, op: matmul.Dot, operands: list[Bounded], values: Environment) -> list[Bounded]:
        a, b = operands[:2]
        acc = operands[2] if len(operands) > 2 else None
        value = op.ref(*(operand.value for operand in operands))
        if not is_float(value):
            return [Bounded(value, _unknown_if(a, value))]
        left, right = (np.abs(widen(x.value).astype(np.float64)) for x in (a, b))
        depth = a.value.shape[-1]
        scale = 2.0 * depth * _roundoff(np.zeros(0, np.float32))
        if self.tf32 and a.value.dtype == np.float32:
            scale += TF32
        error = scale * (left @ right) + left @ _error_full(b) + _error_full(a) @ right
        if acc is not None:
            error = error + _error(acc) + scale * np.abs(widen(acc.value).astype(np.float64))
        return [Bounded(value, _unless_zero(error))]


def elementwise_bounds(op: Op, operands: Sequence[Bounded]) -> Bounded:
    """The result of an elementwise operation, and its error: what the operands' errors do to it, and its own."""
    values = [operand.value for operand in operands]
    result = np.asarray(op.ref(*values))  # type: ignore[misc]
    if isinstance(op, elementwise.Select):
        return Bounded(result, _unless_zero(_select_error(operands, result)))
    error = np.zeros(result.shape)
    with np.errstate(all="ignore"):
        for i, operand in enumerate(operands):
            if operand.error is None:
                continue
            tried = [op.ref(*values[:i], moved, *values[i + 1 :]) for moved in _moved_by(operand)]  # type: ignore[misc]
            error = error + np.max([_distance(np.asarray(other), result) for other in tried], axis=0)
        if isinstance(op, elementwise.Compare) and all(o.error is not None for o in operands):
            gap = np.abs(_wide(values[0]) - _wide(values[1]))
            error = np.where(gap <= _error(operands[0]) + _error(operands[1]), 1.0, error)
        error = error + own_error(op, operands, result)
    return Bounded(result, _unless_zero(error))


def own_error(op: Op, operands: Sequence[Bounded], result: Array) -> Any:
    """The error that an operation adds: 4 units in the last place of a float that it rounds."""
    if not is_float(result) or op.name in _EXACT:
        return 0.0
    if isinstance(op, elementwise.Cast):
        source = operands[0].value
        if is_float(source) and source.dtype.itemsize <= result.dtype.itemsize:
            return 0.0
    wide = _wide(result)
    rounded = np.isfinite(wide)
    if type(op) in _IEEE and result.dtype.itemsize < 8:
        # Where nothing is rounded, every device gives the same.
        rounded &= _IEEE[type(op)](_wide(operands[0].value), _wide(operands[1].value)) != wide
    return np.where(rounded, ULPS * unit(np.where(rounded, wide, 0), from_numpy(result.dtype)), 0.0)


def _moved_by(operand: Bounded) -> list[Array]:
    """The operand moved by its error down and up, at least by one step of its type where there is an error."""
    value, error = operand.value, operand.error
    assert error is not None
    if value.dtype.kind == "b":
        return [np.where(error > 0, ~value, value)]
    if not is_float(value):
        limits = np.iinfo(value.dtype)
        step = np.ceil(np.where(np.isfinite(error), error, 0))
        wide = value.astype(np.float64)
        return [np.clip(wide + sign * step, limits.min, float(limits.max) / 2).astype(value.dtype) for sign in (-1, 1)]
    wide, dtype = _wide(value), from_numpy(value.dtype)
    step = np.maximum(error, np.where(error > 0, unit(np.where(np.isfinite(wide), wide, 0), dtype), 0))
    return [np.where(error > 0, (wide + sign * step), wide).astype(value.dtype) for sign in (-1, 1)]


def _select_error(operands: Sequence[Bounded], result: Array) -> Array:
    condition, first, second = operands
    chosen = np.where(condition.value, _error(first), _error(second))
    if condition.error is None:
        return np.broadcast_to(chosen, result.shape)
    apart = _distance(np.asarray(first.value), np.asarray(second.value)) + _error(first) + _error(second)
    return np.asarray(np.where(condition.error > 0, apart, chosen))


def _distance(a: Array, b: Array) -> Array:
    """|a - b| in float64; 0 for equal infinities and for two NaN, infinity where just one is not finite."""
    wide_a, wide_b = _wide(a), _wide(b)
    same = (wide_a == wide_b) | (np.isnan(wide_a) & np.isnan(wide_b))
    with np.errstate(all="ignore"):
        gap = np.abs(wide_a - wide_b)
    return np.where(same, 0.0, np.where(np.isnan(gap), np.inf, gap))


def _wide(x: Array) -> Array:
    return widen(x).astype(np.float64)


def _error(x: Bounded) -> Any:
    return 0.0 if x.error is None else x.error


def _error_full(x: Bounded) -> Array:
    return np.broadcast_to(_error(x), np.shape(x.value))


def _unless_zero(error: Any) -> Array | None:
    array = np.asarray(error)
    return array if array.any() else None


def _or_unknown(error: Any, *doubts: Array | None) -> Array:
    """The error, infinite where an address or mask is in doubt."""
    for doubt in doubts:
        if doubt is not None:
            error = np.where(doubt > 0, np.inf, error)
    return np.asarray(error)


def _unknown_if(x: Bounded, value: Array) -> Array | None:
    return None if x.error is None else np.full(np.shape(value), np.inf)


def _roundoff(x: Array) -> float:
    return float(2.0 ** -(from_numpy(x.dtype).mantissa + 1))


def _fold_error(kind: str, x: Bounded, value: Array, axis: int) -> Any:
    errors = _error_full(x)
    if not is_float(x.value):
        if kind in ("max", "min", "sum"):
            return np.sum(errors, axis) if kind == "sum" else np.max(errors, axis)
        return np.where(np.max(errors, axis) > 0, np.inf, 0.0)
    if kind in ("max", "min", "maxp", "minp"):
        return np.max(errors, axis)
    magnitudes = np.abs(_wide(x.value))
    growth = 2.0 * x.value.shape[axis] * _roundoff(x.value)
    if kind == "sum":
        return np.sum(errors, axis) + growth * np.sum(magnitudes, axis)
    with np.errstate(all="ignore"):
        relative = np.where(errors > 0, errors / magnitudes, 0.0)
    return np.abs(_wide(value)) * (np.sum(relative, axis) + growth)


def _moved_axis(x: Bounded, axis: int) -> Array | None:
    return None if x.error is None else np.moveaxis(_error_full(x), axis, 0)


def _rows(x: Bounded, index: Any) -> Bounded:
    return Bounded(x.value[index], None if x.error is None else x.error[index])


def _behind(first: Bounded, rest: Bounded) -> Bounded:
    value = np.concatenate([first.value, rest.value])
    return Bounded(value, _unless_zero(np.concatenate([_error_full(first), _error_full(rest)])))


def _on_pointer(op: Op, operands: list[Bounded]) -> Bounded:
    if isinstance(op, memory.AddPointer):
        pointer, offset = operands
        moved = pointer.value.offsets + offset.value.astype(np.int64) * op.pointer.type.pointee.itemsize
        doubt = _unless_zero(_error(pointer) + _error(offset) * op.pointer.type.pointee.itemsize)
        return Bounded(pointer.value.moved(moved), None if doubt is None else np.broadcast_to(doubt, moved.shape))
    if isinstance(op, elementwise.Select):
        return Bounded(choose(*(operand.value for operand in operands)), operands[0].error)
    pointer = operands[0]
    error = None if pointer.error is None else op.ref(pointer.error)  # type: ignore[misc]
    return Bounded(pointer.value.rearranged(op.ref), error)


def _moved(op: Op, operands: list[Bounded]) -> Bounded:
    """An operation that moves elements: errors move with them."""
    value = op.ref(*(operand.value for operand in operands))  # type: ignore[misc]
    if all(operand.error is None for operand in operands):
        return Bounded(value)
    if isinstance(op, rearrange.Gather):
        return Bounded(value, op.ref(_error_full(operands[0]), operands[1].value))
    if isinstance(op, rearrange.Sort):
        # Sorted values move by no more than the largest error among them.
        worst = np.max(_error_full(operands[0]), axis=-1, keepdims=True)
        return Bounded(value, np.broadcast_to(worst, value.shape))
    if isinstance(op, (shape.AffineTile, rearrange.Histogram)):
        return Bounded(value, np.full(value.shape, np.inf))
    return Bounded(value, op.ref(*(_error_full(operand) for operand in operands)))  # type: ignore[misc]


Rule = Callable[[_Run, Any, list[Bounded], Environment], list[Bounded]]

_RULES: Final[dict[type[Op], Rule]] = {
    control.For: _Run.loop,
    control.While: _Run.while_loop,
    control.If: _Run.branch,
    control.ProgramId: _Run.position,
    control.NumPrograms: _Run.position,
    memory.Window: _Run.window,
    memory.Load: _Run.load,
    memory.Store: _Run.store,
    atomic.AtomicRmw: _Run.atomic_rmw,
    atomic.AtomicCas: _Run.atomic_cas,
    reduction.Reduce: _Run.reduce,
    reduction.Scan: _Run.scan,
    reduction.ReduceRegion: _Run.region,
    reduction.ScanRegion: _Run.region,
    matmul.Dot: _Run.dot,
}

__all__ = ["Bounded", "bounds_of_launch", "elementwise_bounds"]
