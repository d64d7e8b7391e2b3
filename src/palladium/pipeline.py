"""Pipelines inside of a kernel: a grid of its own over blocks of refs, whose loads run ahead as those of kernels do."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from loom_core.base import dtype as core
from loom_core.ir.block import Block
from loom_core.ir.op import Op
from loom_core.ir.types import TileType
from loom_core.ir.value import Value
from palladium import refs
from palladium.blocks import Movement, check_range, check_revisits, movement
from palladium.errors import NotStatic, WrongDtype, WrongShape, WrongSpec, fail
from palladium.index_maps import definition, indices, trace_index_map
from palladium.program import Building, Operand, Placed, Program
from palladium.signature import block_dimensions, block_spec, innermost
from palladium.specs import BlockSpec, leaves, rebuild
from palladium.trace import KernelTrace, kernel_trace
from palladium.values import array, convert
from palladium.views import Ref, Storage


def emit_pipeline(
    body: Callable[..., Any], *, grid: Any, in_specs: Any = (), out_specs: Any = ()
) -> Callable[..., None]:
    """A function of refs that runs `body` on their blocks, over a grid whose sizes may be known only at run time.

    The refs are those of the operands, then of the outputs. In the body program_id and num_programs are the pipeline's.
    """

    def run(*operands: Any) -> None:
        trace = kernel_trace("emit_pipeline")
        sizes = tuple(_size(one) for one in (grid if isinstance(grid, (tuple, list)) else (grid,)))
        ins, outs = _specs(in_specs), _specs(out_specs)
        flat = leaves(list(operands), lambda one: isinstance(one, Ref))
        if len(flat) != len(ins) + len(outs) or not all(isinstance(one, Ref) for one in flat):
            given = f"{len(flat)} operands for {len(ins)} in_specs and {len(outs)} out_specs"
            fail(WrongDtype, function="a pipeline", given=given, takes="it takes a ref for each spec")
        placing = _Placing(trace, sizes)
        for i, (ref, spec) in enumerate(zip(flat, [*ins, *outs], strict=True)):
            placing.add(ref, spec, is_output=i >= len(ins))
        places = rebuild(list(operands), iter(range(len(flat))), lambda one: isinstance(one, Ref))

        def arrange(found: list[Ref]) -> tuple[Sequence[Any], dict[str, Any]]:
            return rebuild(places, iter(found)), {}

        shown = str(getattr(innermost(body), "__name__", "pipeline"))
        program = Program(
            shown, body, sizes, (), lambda found: [], tuple(placing.inputs), tuple(placing.outputs), (), arrange,
            trace.location(),
        )  # fmt: skip
        _Nested(program, trace, trace.function, sources=placing.sources, levels=placing.levels).run()

    return run


def _size(given: Any) -> Any:
    """A grid size: an int, or a run-time integer scalar."""
    value = refs.require_scalar(given, "a pipeline's grid")
    if not value.core.is_integer:
        fail(NotStatic, what="a grid size", instead="it is an integer, which may be known only at run time")
    if value.known is None:
        return convert(value, core.i32)
    if value.known < 1:
        fail(WrongShape, function="a pipeline", problem=f"a grid size of {value.known}")
    return int(value.known)


def _specs(given: Any) -> list[BlockSpec]:
    specs = given if isinstance(given, (tuple, list)) else (given,)
    return [block_spec(one) for one in leaves(list(specs), lambda one: isinstance(one, BlockSpec))]


@dataclass
class _Placing:
    """Operands of refs: what is known of their blocks, where they are, and the grid axis on which they depend."""

    trace: KernelTrace
    grid: tuple[Any, ...]
    inputs: list[Operand] = field(default_factory=list)
    outputs: list[Operand] = field(default_factory=list)
    sources: list[Ref] = field(default_factory=list)
    levels: list[int] = field(default_factory=list)

    def add(self, ref: Ref, spec: BlockSpec, *, is_output: bool) -> None:
        name, shape = ref.buffer.name, ref.shape
        if ref.gathers:
            fail(WrongSpec, what="a pipeline", problem=f"{name} is indexed by a tile", advice="give a ref of slices")
        if is_output:
            refs.require_writable(ref)
        ref.buffer.is_read = True  # what a pipeline reads or writes stays where it is
        dimensions = block_dimensions(spec, shape)
        strides = tuple(dim.step * ref.buffer.storage.strides[dim.axis] for dim in ref.dims)
        operand = Operand(name, shape, ref.core, strides, dimensions, spec.index_map, slots=spec.slots)
        level = -1
        if dimensions is not None:
            if len(dimensions) != len(shape):
                problem = f"the block shape of {name} has {len(dimensions)} dimensions, the ref {len(shape)}"
                fail(WrongSpec, what="a pipeline", problem=problem, advice="give one size for each")
            known = self._known(name, spec, dimensions, shape, is_output)
            level = self._level(name, spec, len(dimensions)) if known is None else known.level
            slots = min(spec.slots, 1) if level < 0 else spec.slots
            operand = Operand(name, shape, ref.core, strides, dimensions, spec.index_map, known, slots=slots)
        (self.outputs if is_output else self.inputs).append(operand)
        self.sources.append(ref)
        self.levels.append(level)

    def _known(
        self, name: str, spec: BlockSpec, dimensions: Any, shape: tuple[int, ...], is_output: bool
    ) -> Movement | None:
        """The movement of blocks whose grid is known and whose index map reads nothing of the kernel."""
        if not all(isinstance(size, int) for size in self.grid) or _reads_values(spec.index_map):
            return None
        index_map = trace_index_map(name, spec.index_map, len(dimensions), self.grid, [], lambda found: [])
        location = self.trace.location() if spec.index_map is None else definition(spec.index_map)
        found = index_map.over_grid(self.grid, [])
        check_range(name, dimensions, shape, self.grid, found, location)
        if is_output and not spec.revisits:
            check_revisits(name, self.grid, found, location)
        return movement(dimensions, shape, self.grid, found)

    def _level(self, name: str, spec: BlockSpec, rank: int) -> int:
        """The last grid axis that the index map reads."""
        block = Block((TileType(core.i32),) * len(self.grid))
        self.trace.attempt(block)
        try:
            found = indices(name, spec.index_map, rank, [array(value) for value in block.arguments], [])
            values = [one.value for one in found if one.known is None]
            return max((i for i, value in enumerate(block.arguments) if _depends(values, value)), default=-1)
        finally:
            self.trace.forget()


def _reads_values(index_map: Any) -> bool:
    """Whether a function's closure holds values of a kernel."""
    cells = getattr(innermost(index_map), "__closure__", None) or ()
    held = [cell.cell_contents for cell in cells]
    held += list(getattr(index_map, "args", ()))
    return any(isinstance(one, (array, Ref)) for one in leaves(held))


def _depends(values: Sequence[Value], argument: Value) -> bool:
    pending, seen = list(values), set(values)
    while pending:
        value = pending.pop()
        if value is argument:
            return True
        if isinstance(value.owner, Op):
            pending += [operand for operand in value.owner.operands if operand not in seen]
            seen.update(value.owner.operands)
    return False


@dataclass
class _Nested(Building):
    """The grid of a pipeline: its operands lie in refs."""

    sources: list[Ref] = field(default_factory=list)
    levels: list[int] = field(default_factory=list)

    def run(self) -> None:
        trace, program = self.trace, self.program
        self.prefetched, self.tree, self.scratch = [], [], []
        operands = [*program.inputs, *program.outputs]
        placed = [
            Placed(operand, _storage(ref), level, ref if operand.in_place else None)
            for operand, ref, level in zip(operands, self.sources, self.levels, strict=True)
        ]
        self.inputs, self.outputs = placed[: len(program.inputs)], placed[len(program.inputs) :]
        saved = trace.grid, trace.program_ids, trace.axis_names
        trace.grid, trace.program_ids, trace.axis_names = program.grid, [], ()
        try:
            self.level(-1)
        finally:
            trace.grid, trace.program_ids, trace.axis_names = saved

    def marks(self, axis: int) -> dict[str, Any]:
        """The loops of a pipeline are those of one core."""
        return {}


def _storage(ref: Ref) -> Storage:
    """Where a ref's elements are; one whose place does not exist has none."""
    at = refs.address(ref, ref.buffer.storage)
    lows, limits = [low for _, _, low, _ in at.dims], [limit for _, _, _, limit in at.dims]
    if at.guard is not None and at.dims:
        from palladium import scalars

        limits[0] = scalars.choose(at.guard, ref.shape[0] if limits[0] is None else limits[0], 0)
    bounded = any(one is not None for one in (*lows, *limits))
    strides = tuple(stride for _, stride, _, _ in at.dims)
    return Storage(at.pointer, strides, at.offset, tuple(lows) if bounded else (), tuple(limits) if bounded else ())
