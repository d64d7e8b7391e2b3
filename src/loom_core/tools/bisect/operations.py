"""The references of a kernel's operations against what its object computes, operation by operation."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from libloom.arrays import view_array
from libloom.kernel import LoadedKernel, register_value
from loom_core.base.diagnostics import LoomError
from loom_core.base.location import Location
from loom_core.checks.launch import Copies, Numbers, bytes_of, interpreter_arguments
from loom_core.compile import compile_kernel
from loom_core.interp import interpret
from loom_core.ir.block import Function
from loom_core.ir.op import Op
from loom_core.ir.rewriter import clone_function
from loom_core.ir.value import Value
from loom_core.isa.machine import MachineConfig
from loom_core.ops import atomic, memory
from loom_core.ops.formats import is_float, widen
from loom_core.passes.fold_dot import fold_dot_accumulator
from loom_core.tools.bisect.history import element, history, name_of, where
from loom_core.tools.bisect.probes import Grid, Probe, loops_around, probed
from loom_core.tools.diagnostics import TooMuchToCompare

Array = npt.NDArray[Any]
MOST_BYTES: Final = 1 << 30
PROBES: Final = 12
"""Values that one object stores beside its results."""
_STORES: Final = (memory.Store, atomic.AtomicRmw, atomic.AtomicCas)


@dataclass(frozen=True)
class Divergence:
    """The first value that the object computes otherwise.

    `program`, `iterations` (of the counted loops around it) and `index` say which element; `lines` are the operands
    there. `left_out`: operations whose values could not be seen, since no object has room for a look at them.
    """

    location: Location
    what: str
    program: Grid
    iterations: tuple[int, ...]
    index: tuple[int, ...]
    got: str
    wanted: str
    lines: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()

    def __str__(self) -> str:
        loops = f", iteration {', '.join(map(str, self.iterations))}" if self.iterations else ""
        shown = [
            f"{where(self.location)}: {self.what} is the first that differs",
            f"  program {self.program}{loops}, element {list(self.index)}",
            f"  the object gives   {self.got}",
            f"  its reference says {self.wanted}",
        ]
        shown += [f"    {line}" for line in self.lines]
        if self.left_out:
            names = ", ".join(f"`{name}`" for name in dict.fromkeys(self.left_out))
            shown.append(f"  not compared, since the object with a look at them does not fit the machine: {names}")
        return "\n".join(shown)


@dataclass(frozen=True)
class Launch:
    """A kernel's IR as traced, for a machine, with arrays, numbers and a grid; `overlap`: the arrays may overlap."""

    function: Function
    machine: MachineConfig
    views: Sequence[Any]
    numbers: Numbers
    grid: Grid
    overlap: bool = False


def bisect(launch: Launch, say: Callable[[str], None] = lambda text: None) -> Divergence | None:
    """The first tile that differs; None where memory afterwards is the same. The arrays stay as they are."""
    function = fold_dot_accumulator(clone_function(launch.function))
    record = Record(function)
    copies = Copies(launch.views)
    wanted, got = copies.moved(), copies.moved()
    interpret(function, interpreter_arguments(function, wanted, launch.numbers), launch.grid, watch=record.watch)
    _run(launch, function, got)
    if all(np.array_equal(bytes_of(a), bytes_of(b)) for a, b in zip(wanted, got, strict=True)):
        return None
    say("memory differs; comparing the operations")
    search = _Search(launch, function, record, copies)
    found = search.first(say) or _in_memory(function, record, wanted, got)
    return replace(found, left_out=tuple(search.left_out))


def _run(launch: Launch, function: Function, views: Sequence[Any]) -> None:
    """Compile and run a function on arrays."""
    options = {"assume_noalias": False} if launch.overlap else {}
    kernel = LoadedKernel(compile_kernel(clone_function(function), machine=launch.machine, options=options))
    kernel.run(views, [register_value(dtype, number) for dtype, number in launch.numbers], launch.grid)


@dataclass(frozen=True)
class Visit:
    """One execution of an operation: when, where, and the values of its block."""

    sequence: int
    op: Op
    program: Grid
    iterations: tuple[int, ...]
    values: Mapping[Value, Any]


class Record:
    """What a run by the references gave."""

    def __init__(self, function: Function) -> None:
        self.operations = list(function.walk())
        self.visits: dict[Op, list[Visit]] = {op: [] for op in self.operations}
        self.trips: dict[Op, tuple[int, ...]] = {}
        self.stores: list[Visit] = []
        self._loops = {op: loops_around(op) for op in self.operations}
        self._sequence = 0
        self._bytes = 0

    def watch(self, program: Grid, op: Op, values: dict[Value, Any]) -> None:
        self._sequence += 1
        iterations = tuple(
            (int(values[loop.regions[0].arguments[0]]) - int(values[loop.lower])) // int(values[loop.step])
            for loop in self._loops[op]
        )
        most = self.trips.get(op, (1,) * len(iterations))
        self.trips[op] = tuple(max(a, b + 1) for a, b in zip(most, iterations, strict=True))
        self._bytes += sum(values[result].nbytes for result in op.results if isinstance(values[result], np.ndarray))
        if self._bytes > MOST_BYTES:
            raise TooMuchToCompare(op.location, limit=MOST_BYTES >> 20)
        visit = Visit(self._sequence, op, program, iterations, values)
        self.visits[op].append(visit)
        if isinstance(op, _STORES):
            self.stores.append(visit)


@dataclass
class _Search:
    launch: Launch
    function: Function
    record: Record
    copies: Copies
    left_out: list[str] = field(default_factory=list)

    def first(self, say: Callable[[str], None]) -> Divergence | None:
        """The difference that comes first in the order of execution."""
        probes = [probe for number, op in enumerate(self.record.operations) for probe in self._probes(number, op)]
        best: tuple[int, Divergence] | None = None
        for start in range(0, len(probes), PROBES):
            for sequence, found in self._differences(probes[start : start + PROBES]):
                if best is None or sequence < best[0]:
                    best = sequence, found
            say(f"{min(start + PROBES, len(probes))} of {len(probes)} values")
            # Operations are in order: what comes later in the text runs later, but for loops.
            if best is not None and not self._in_loop(probes[start : start + PROBES]):
                break
        return None if best is None else best[1]

    def _in_loop(self, probes: Sequence[Probe]) -> bool:
        return any(self.record.operations[probe.op].parent is not self.function.body for probe in probes)

    def _probes(self, number: int, op: Op) -> Iterator[Probe]:
        if op.terminator or not self.record.visits[op]:
            return
        for result in op.results:
            if not result.type.is_pointer:
                yield Probe(number, result.index, self.record.trips[op])

    def _differences(self, probes: Sequence[Probe]) -> Iterator[tuple[int, Divergence]]:
        programs = prod(self.launch.grid)
        arrays = []
        for probe in probes:
            type = self.record.operations[probe.op].results[probe.result].type
            shape = (programs, probe.visits, *type.shape)
            if prod(shape) * type.dtype.itemsize > MOST_BYTES:
                raise TooMuchToCompare(self.record.operations[probe.op].location, limit=MOST_BYTES >> 20)
            arrays.append(np.zeros(shape, type.dtype.numpy))
        try:
            views = [*self.copies.moved(), *(view_array(array) for array in arrays)]
            _run(self.launch, probed(self.function, probes, self.launch.grid), views)
        except LoomError:
            # Too much for one object: the machine's memory, say. One by one, what does not go is left out.
            if len(probes) > 1:
                for probe in probes:
                    yield from self._differences([probe])
            else:
                self.left_out.append(self.record.operations[probes[0].op].name)
            return
        for probe, array in zip(probes, arrays, strict=True):
            yield from self._compare(probe, array)

    def _compare(self, probe: Probe, array: Array) -> Iterator[tuple[int, Divergence]]:
        op = self.record.operations[probe.op]
        gx, gy, _ = self.launch.grid
        last = {(visit.program, visit.iterations): visit for visit in self.record.visits[op]}
        for visit in last.values():  # of iterations of a `while`, the last
            x, y, z = visit.program
            number = 0
            for trips, iteration in zip(probe.trips, visit.iterations, strict=True):
                number = number * trips + iteration
            got, wanted = array[(z * gy + y) * gx + x, number], np.asarray(visit.values[op.results[probe.result]])
            wrong = np.argwhere(_differs(got, wanted))
            if len(wrong):
                index = tuple(int(i) for i in wrong[0])
                yield visit.sequence, self._divergence(op, probe, visit, index, got)
                return

    def _divergence(self, op: Op, probe: Probe, visit: Visit, index: tuple[int, ...], got: Array) -> Divergence:
        value = op.results[probe.result]
        lines = history(value, index, visit.values.get)
        wanted = element(visit.values[value], index)
        what = f"`{op.name}` {name_of(value)}"
        return Divergence(
            op.location, what, visit.program, visit.iterations, index, element(got, index), wanted, tuple(lines[1:])
        )


def _differs(got: Array, wanted: Array) -> Array:
    unsigned = f"u{wanted.dtype.itemsize}"
    a, b = (np.ascontiguousarray(array).reshape(wanted.shape) for array in (got, wanted))
    differs: Array = a.view(unsigned) != b.view(unsigned)
    if is_float(wanted):
        differs = differs & ~(np.isnan(widen(a)) & np.isnan(widen(b)))
    return differs


def _in_memory(function: Function, record: Record, wanted: Sequence[Any], got: Sequence[Any]) -> Divergence:
    """No operation differs by itself: the first byte that does, and who stores it."""
    pointers = [argument for argument in function.arguments if argument.type.is_pointer]
    for argument, a, b in zip(pointers, wanted, got, strict=True):
        places = np.flatnonzero(bytes_of(a) != bytes_of(b))
        if not len(places):
            continue
        size = argument.type.pointee.itemsize
        number = (int(places[0]) + a.low) // size
        mine, theirs = (_element_at(view, number, argument.type.pointee.numpy) for view in (b, a))
        visit = last_store(record.stores, argument.name or "", number * size)
        if visit is None:
            what = f"{argument.name}, which nothing should store to,"
            return Divergence(function.location, what, (0, 0, 0), (), (number,), mine, theirs)
        what = f"`{visit.op.name}` to {argument.name}"
        return Divergence(visit.op.location, what, visit.program, visit.iterations, (number,), mine, theirs)
    raise AssertionError("memory differs")


def _element_at(view: Any, number: int, dtype: Any) -> str:
    start = number * dtype.itemsize - view.low
    return element(bytes_of(view)[start : start + dtype.itemsize].view(dtype), (0,))


def last_store(stores: Sequence[Visit], name: str, offset: int) -> Visit | None:
    """The last visit that stores to a byte of an argument."""
    for visit in reversed(stores):
        pointer = stored_through(visit)
        if pointer is not None and pointer.buffer.name == name and offset in pointer.offsets:
            return visit
    return None


def stored_through(visit: Visit) -> Any:
    """The pointers of a store at a visit."""
    value = getattr(visit.op, "pointer", None)
    return None if value is None else visit.values.get(value)
