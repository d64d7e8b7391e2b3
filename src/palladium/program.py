"""One kernel over one grid: Python function and specs to Tile IR.

The grid becomes nested loops, its last axis innermost. The blocks of operands move as their index maps say:

  inputs    are read where they are used; a read of a whole block is placed in the loop of the last grid axis on which
            the block depends, where it is loaded ahead
  outputs   that a kernel only writes are written in place; one that it also reads (an accumulator) is a window of SRAM
            in that loop, and is written back at its end
  scratch   is windows of SRAM around all loops
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from loom_core.base import dtype as core
from loom_core.base.dtype import DType
from loom_core.base.location import Location
from loom_core.ir.block import Block, Function
from loom_core.ir.types import PointerType, TileType
from loom_core.ir.value import Value
from loom_core.ir.verifier import verify_function
from loom_core.ops.control import For, Return, Yield
from loom_core.passes.fold_dot import fold_dot_accumulator
from loom_core.trace.context import tracing
from palladium import scalars
from palladium.blocks import Dimension, Movement, padding_of, scale_of, size_of
from palladium.copies import begin, check_tokens
from palladium.errors import PalladiumError
from palladium.index_maps import Prefetched, check_parameters, indices
from palladium.refs import read, window, write
from palladium.scalars import Scalar
from palladium.semaphores import semaphore_buffer, settle
from palladium.specs import MemorySpace, Scratch, Semaphore, Squeezed
from palladium.trace import KernelTrace, user_faults
from palladium.values import array, convert, known_scalar, to_array
from palladium.views import Buffer, Ref, Storage, whole_ref


class KernelReturns(PalladiumError):
    code = "LOOM-F214"
    template = "{function} returns {given}"
    hint = "kernels return nothing; write to the ref of an output"


PREFETCHED_BYTES: Final = 1 << 16
"""What a prefetched operand may take of SRAM."""


@dataclass(frozen=True)
class Operand:
    """An array of a kernel: its shape, dtype, strides in elements, and how it comes in blocks.

    `dimensions` is None where the ref is of the whole array in place; `movement` what is known of the blocks (None
    where prefetched operands decide it at the launch). `begins` says that an output begins with contents of its own, of
    a prefetched operand that the kernel may write to its copy of it,
    `slots` how many blocks are in SRAM at once (0: the compiler chooses).
    """

    name: str
    shape: tuple[int, ...]
    dtype: DType
    strides: tuple[int, ...]
    dimensions: tuple[Dimension, ...] | None = None
    index_map: Callable[..., Any] | None = None
    movement: Movement | None = None
    begins: bool = False
    slots: int = 0

    @property
    def pointer_type(self) -> TileType:
        return TileType(PointerType(self.dtype))

    @property
    def in_place(self) -> bool:
        return self.dimensions is None


@dataclass(frozen=True)
class Program:
    """Everything that decides the IR of a kernel. `parallel`: for each grid axis, whether it is declared so."""

    name: str
    body: Callable[..., Any]
    grid: tuple[Any, ...]
    prefetched: tuple[Operand, ...]
    arrange_prefetched: Callable[[list[Ref]], list[Any]]
    inputs: tuple[Operand, ...]
    outputs: tuple[Operand, ...]
    scratch: tuple[Scratch | Semaphore, ...]
    arrange: Callable[[list[Ref]], tuple[Sequence[Any], dict[str, Any]]]
    location: Location
    parallel: tuple[bool, ...] = ()
    axis_names: tuple[str, ...] = ()


@dataclass
class Traced:
    """A kernel's IR. `written`: for each output, whether every grid point writes all of its block."""

    function: Function
    written: tuple[bool, ...]


def trace_program(program: Program) -> Traced:
    """Run the kernel's function once; a verified function, its products folded into their accumulators."""
    operands = (*program.prefetched, *program.inputs, *program.outputs)
    types = tuple(operand.pointer_type for operand in operands)
    names = tuple(operand.name for operand in operands)
    function = Function(program.name, types, names, program.location)
    trace = KernelTrace(function)
    trace.grid, trace.axis_names = program.grid, program.axis_names
    building = Building(program, trace, function)
    with tracing(trace):
        with user_faults():
            building.run()
        trace.builder.create(Return, location=function.location)
    verify_function(function)
    return Traced(fold_dot_accumulator(function), tuple(output.always_written for output in building.outputs))


@dataclass
class Placed:
    """An operand in the kernel: where the array is, its ref, and the loop level at which its block changes."""

    operand: Operand
    array: Storage
    level: int
    ref: Ref | None = None
    memory: Storage | None = None
    block: Block | None = None
    always_written: bool = False


@dataclass
class Building:
    program: Program
    trace: KernelTrace
    function: Function
    inputs: list[Placed] = field(default_factory=list)
    outputs: list[Placed] = field(default_factory=list)

    def run(self) -> None:
        program, arguments = self.program, iter(self.function.arguments)
        self.prefetched = [self._prefetched(operand, next(arguments)) for operand in program.prefetched]
        self.tree = program.arrange_prefetched(self.prefetched)
        self.inputs = [self._placed(operand, next(arguments)) for operand in program.inputs]
        self.outputs = [self._placed(operand, next(arguments)) for operand in program.outputs]
        self.scratch = [self._scratch(i, one) for i, one in enumerate(program.scratch)]
        self.level(-1)
        check_tokens(self.trace)
        settle(self.trace)

    def _prefetched(self, operand: Operand, pointer: Value) -> Ref:
        """A prefetched operand in SRAM, where index maps and the kernel find it; a large one stays where it is."""
        there = Prefetched(operand.name, operand.shape, operand.dtype, operand.strides).ref(pointer)
        if not 0 < there.size * operand.dtype.itemsize <= PREFETCHED_BYTES:
            return there
        near = window(operand.name, operand.shape, operand.dtype)
        begin(there, whole_ref(near))
        return whole_ref(replace(near, writable=operand.begins))

    def _placed(self, operand: Operand, pointer: Value) -> Placed:
        array = Storage(pointer, operand.strides)
        if operand.in_place:
            return Placed(operand, array, -1)
        last = len(self.program.grid) - 1
        return Placed(operand, array, last if operand.movement is None else operand.movement.level)

    def _scratch(self, position: int, one: Scratch | Semaphore) -> Ref:
        if isinstance(one, Semaphore) or one.space is MemorySpace.SEMAPHORE:
            return whole_ref(semaphore_buffer(f"semaphore{position}", one))
        return whole_ref(window(f"scratch{position}", one.shape, one.core))

    # ---- the grid's loops ----

    def level(self, level: int) -> None:
        """Inside the loop of grid axis `level` (-1: outside all): its operands, then what is inside, then the rest."""
        operands = [*self.inputs, *self.outputs]
        for placed in operands:
            if placed.level == level:
                self._begin(placed, level)
        if level + 1 == len(self.program.grid):
            self._body()
        else:
            self._loop(level + 1)
        for placed in self.outputs:
            if placed.level == level:
                self._end(placed)

    def _loop(self, axis: int) -> None:
        size, trace = self.program.grid[axis], self.trace
        if isinstance(size, int) and size == 1:
            trace.program_ids.append(known_scalar(0, core.i32))
            self.level(axis)
            return
        block = Block((TileType(core.i32),), (f"i{axis}",))
        with trace.region(block):
            last = size if isinstance(size, int) else size.interval[1] if size.interval else None
            interval = None if last is None else (0, max(last - 1, 0))
            trace.program_ids.append(array(block.arguments[0], interval=interval))
            self.level(axis)
            trace.builder.create(Yield, [], location=self.program.location)
        bounds = [convert(to_array(number, "a grid"), core.i32).value for number in (0, size, 1)]
        trace.builder.create(For, *bounds, [], regions=[block], location=self.program.location, **self.marks(axis))

    def marks(self, axis: int) -> dict[str, Any]:
        """What tells the loop of a grid axis from others: cores may share it."""
        parallel = axis < len(self.program.parallel) and self.program.parallel[axis]
        return {"axis": f"i{axis}", "parallel": parallel}

    def _body(self) -> None:
        refs = [*self.prefetched, *(placed.ref for placed in (*self.inputs, *self.outputs)), *self.scratch]
        args, kwargs = self.program.arrange(refs)  # type: ignore[arg-type]
        advice = "it takes the refs of the operands, then of the outputs, then of the scratch"
        check_parameters(self.program.body, self.program.name, args, kwargs, "refs", advice, self.program.location)
        result = self.program.body(*args, **kwargs)
        if result is not None:
            raise KernelReturns(self.program.location, function=self.program.name, given=result)

    # ---- blocks ----

    def _begin(self, placed: Placed, level: int) -> None:
        """Make the operand's ref at the beginning of the loop in which its block changes."""
        operand, is_output = placed.operand, placed in self.outputs
        placed.block = self.trace.builder.block
        if operand.dimensions is None:
            if placed.ref is None:
                placed.ref = whole_ref(Buffer(operand.name, operand.shape, operand.dtype, placed.array, is_output))
            return
        placed.memory = self._storage(placed, level)
        shape = tuple(size_of(dimension) for dimension in operand.dimensions)
        dropped = [axis for axis, dimension in enumerate(operand.dimensions) if isinstance(dimension, Squeezed)]
        if not is_output:
            home = self.trace.builder.block
            buffer = Buffer(operand.name, shape, operand.dtype, placed.memory, False, home, operand.slots)
        elif operand.movement is None or not operand.movement.regular:
            # Several steps of this loop may have one block, so it stays where the next one finds it.
            buffer = Buffer(operand.name, shape, operand.dtype, placed.memory)
        else:
            buffer = window(operand.name, shape, operand.dtype)
            if operand.begins:
                whole = whole_ref(buffer)
                write(whole, read(whole, placed.memory), None, buffer.storage)
        placed.ref = whole_ref(buffer, dropped)

    def _storage(self, placed: Placed, level: int) -> Storage:
        """Where the block is in the array at this step."""
        operand = placed.operand
        assert operand.dimensions is not None
        ids = [*self.trace.program_ids, *[known_scalar(0, core.i32)] * (len(self.program.grid) - level - 1)]
        found = indices(operand.name, operand.index_map, len(operand.dimensions), ids, self.tree)
        whole = placed.array
        origin = whole.origin
        lows: list[Scalar | None] = []
        limits: list[Scalar | None] = []
        for axis, (dimension, index) in enumerate(zip(operand.dimensions, found, strict=True)):
            start = scalars.multiply(_scalar(index), scale_of(dimension))
            start = scalars.subtract(start, padding_of(dimension)[0])
            origin = scalars.add(origin, scalars.multiply(start, whole.strides[axis]))
            ragged = operand.movement is None or operand.movement.ragged[axis]
            least, most = whole.range_of(axis)
            least = scalars.greatest(least, 0 if ragged and padding_of(dimension)[0] else None)
            most = scalars.least(most, operand.shape[axis] if ragged else None)
            lows.append(None if least is None else scalars.subtract(least, start))
            limits.append(None if most is None else scalars.subtract(most, start))
        return Storage(whole.pointer, whole.strides, origin, tuple(lows), tuple(limits))

    def _end(self, placed: Placed) -> None:
        """Write an output's block back, or have its stores write in place where it is never read."""
        ref, memory = placed.ref, placed.memory
        assert ref is not None
        buffer = ref.buffer
        if memory is None or buffer.storage is memory:
            # What is read in place may be read before it is written.
            placed.always_written = not buffer.is_read and any(self._writes_all(one, placed) for one in buffer.writes)
            return
        if buffer.is_read or placed.operand.begins:
            with self.trace.located(self.program.location):
                whole = whole_ref(buffer)
                write(whole, read(whole), None, memory, placed.operand.slots)
            placed.always_written = True
            return
        for one in buffer.writes:
            block = one.op.parent
            assert block is not None
            with self.trace.located(one.op.location), self.trace.elsewhere(block, one.op):
                write(one.ref, one.value, one.mask, memory, placed.operand.slots)
            placed.always_written |= self._writes_all(one, placed)
            one.op.erase()

    def _writes_all(self, one: Any, placed: Placed) -> bool:
        """Whether a store writes the whole block at each step of the loop in which the block changes."""
        block = one.op.parent
        while block is not placed.block and block is not None and isinstance(block.parent, For):
            if block not in self._grid_blocks():
                return False
            block = block.parent.parent
        return block is placed.block and one.mask is None and one.ref.is_whole

    def _grid_blocks(self) -> list[Block]:
        found = [one.home for one in self.trace.program_ids if one.known is None]
        return [block for block in found if block is not None]


def _scalar(index: array) -> Scalar:
    return int(index.known) if index.known is not None else convert(to_array(index, "an index"), core.i64).value
