"""A kernel's declaration: grids, specs, outputs and scratch in one form, whatever way they were given in."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from loom_core.base.diagnostics import UserError
from loom_core.base.dtype import DType
from loom_core.base.location import Location, from_code
from loom_core.isa.machine import MachineConfig
from loom_core.trace.context import caller
from palladium import promotion
from palladium.specs import (
    BlockSpec,
    GridSpec,
    Scratch,
    Semaphore,
    dimension,
    known_size,
    leaves,
    rebuild,
    wrong_spec,
)


class WrongDeclaration(UserError):
    code = "LOOM-R124"
    template = "{name}: {problem}"
    hint = "{advice}"


class WrongAlias(UserError):
    code = "LOOM-R125"
    template = "input_output_aliases of {name}: {problem}"
    hint = "an alias takes the number of an operand (prefetched ones count) and of an output of its shape and dtype"


DIMENSION_SEMANTICS: Final = ("arbitrary", "parallel", "permitted")


@dataclass(frozen=True)
class Output:
    """Shape and dtype of an output."""

    shape: tuple[int, ...]
    dtype: DType


@dataclass(frozen=True, eq=False)
class Declaration:
    """A kernel as declared.

    `in_specs` are trees of specs, one for each operand after the prefetched ones, one spec for all, or None; `out_tree`
    says what a call gives.
    """

    function: Callable[..., Any]
    name: str
    grid: tuple[int, ...]
    in_specs: Any
    out_specs: tuple[BlockSpec, ...]
    outputs: tuple[Output, ...]
    out_tree: Any
    scratch: tuple[Scratch | Semaphore, ...]
    scratch_tree: Any
    prefetched: int
    aliases: Mapping[int, int]
    machine: MachineConfig
    out_of_bounds_reads: str
    dimension_semantics: tuple[str, ...]
    axis_names: tuple[str, ...]
    key: Hashable

    @cached_property
    def functions(self) -> tuple[Any, ...]:
        """What a trace runs: the function and the index maps of all specs."""
        specs = [block_spec(one) for one in _spec_leaves(self.in_specs)] + list(self.out_specs)
        return (self.function, *(one.index_map for one in specs))

    @property
    def location(self) -> Location:
        """Where the function is defined."""
        return from_code(getattr(innermost(self.function), "__code__", None))

    @cached_property
    def parameters(self) -> tuple[str, ...]:
        """Names of the function's positional parameters."""
        code = getattr(innermost(self.function), "__code__", None)
        return () if code is None else code.co_varnames[: code.co_argcount]

    def operand_names(self, operands: Sequence[Any]) -> list[str]:
        """A name for each leaf of the operands."""
        names: list[str] = []
        for i, operand in enumerate(operands):
            own = self.parameters[i] if i < len(self.parameters) else f"operand{i}"
            count = len(leaves(operand))
            names += [own] if count == 1 else [f"{own}_{j}" for j in range(count)]
        return names

    def output_names(self, operands: int) -> list[str]:
        """A name for each output."""
        known = self.parameters[operands : operands + len(self.outputs)]
        return [known[i] if i < len(known) else f"output{i}" for i in range(len(self.outputs))]

    def specs_of(self, operands: Sequence[Any]) -> list[BlockSpec]:
        """A spec for each leaf of the operands after the prefetched ones. WrongDeclaration where they do not fit."""
        if self.in_specs is None:
            return [BlockSpec()] * len(leaves(list(operands)))
        given = self.in_specs if isinstance(self.in_specs, (tuple, list)) else [self.in_specs] * len(operands)
        if len(given) != len(operands):
            problem = f"{len(operands)} operands for {len(given)} specs"
            raise WrongDeclaration(caller(), name=self.name, problem=problem, advice="give one spec for each operand")
        return [spec for tree, operand in zip(given, operands, strict=True) for spec in self._matched(tree, operand)]

    def _matched(self, tree: Any, operand: Any) -> list[BlockSpec]:
        if isinstance(operand, (tuple, list)) and isinstance(tree, (tuple, list)):
            return [spec for one, item in zip(tree, operand, strict=True) for spec in self._matched(one, item)]
        if isinstance(operand, dict) and isinstance(tree, dict):
            return [spec for key in sorted(operand) for spec in self._matched(tree[key], operand[key])]
        return [block_spec(tree)] * len(leaves(operand))

    def result(self, values: Sequence[Any]) -> Any:
        """What a call gives, of the outputs."""
        return rebuild(self.out_tree, iter(values), is_output)


def innermost(function: Any) -> Any:
    """The function inside of partial applications."""
    while hasattr(function, "func") and hasattr(function, "args"):
        function = function.func
    return function


def is_output(value: Any) -> bool:
    """Whether a node of a tree describes an output."""
    return hasattr(value, "shape") and hasattr(value, "dtype")


def _is_spec(value: Any) -> bool:
    return not isinstance(value, (tuple, list, dict)) and value is not None


def declare(
    function: Callable[..., Any], *, out_shape: Any, grid: Any, in_specs: Any, out_specs: Any, scratch: Any,
    grid_spec: Any, num_scalar_prefetch: int, aliases: Mapping[int, int], name: str | None, machine: MachineConfig,
    out_of_bounds_reads: str, dimension_semantics: Any = None,
    axis_names: Any = None,
) -> Declaration:  # fmt: skip
    """The declaration of a kernel. WrongDeclaration, WrongAlias for what cannot be one."""
    if grid_spec is not None:
        if not isinstance(grid_spec, GridSpec):
            wrong_spec("grid_spec", f"{grid_spec!r} is no GridSpec", "give GridSpec(grid, in_specs, out_specs)")
        grid, in_specs, out_specs = grid_spec.grid, grid_spec.in_specs, grid_spec.out_specs
        scratch, num_scalar_prefetch = grid_spec.scratch_shapes or (), grid_spec.num_scalar_prefetch
    shown = str(name or getattr(innermost(function), "__name__", "kernel"))
    if shown == "<lambda>":
        shown = "kernel"

    def wrong(problem: str, advice: str) -> WrongDeclaration:
        return WrongDeclaration(caller(), name=shown, problem=problem, advice=advice)

    if not callable(function):
        raise wrong(f"a {type(function).__name__} is no function", "give the function that the kernel runs")
    outputs = [_output(one, wrong) for one in leaves(out_shape, is_output)]
    if not outputs:
        raise wrong("there is no output", "give out_shape the shape and dtype of what the kernel writes")
    sizes = _grid(grid, wrong)
    ins = in_specs
    outs = [BlockSpec()] * len(outputs) if out_specs is None else _output_specs(out_specs, out_shape)
    if len(outs) != len(outputs):
        raise wrong(f"{len(outs)} out_specs for {len(outputs)} outputs", "give one spec for each output")
    buffers = tuple(scratch_of(one) for one in leaves(scratch, is_buffer))
    if not isinstance(aliases, Mapping) or not all(type(number) is int for pair in aliases.items() for number in pair):
        raise WrongAlias(caller(), name=shown, problem=f"{aliases!r} is no dictionary of an operand to an output")
    for one, output in aliases.items():
        if not 0 <= output < len(outputs):
            raise WrongAlias(caller(), name=shown, problem=f"{one} -> {output}, and there are {len(outputs)} outputs")
    if out_of_bounds_reads not in ("raise", "uninitialized"):
        problem = f"out_of_bounds_reads is {out_of_bounds_reads!r}"
        raise wrong(problem, 'say "raise", or "uninitialized" for poison')
    semantics = tuple(dimension_semantics or ())
    for one in semantics:
        if one not in DIMENSION_SEMANTICS:
            raise wrong(
                f"dimension_semantics holds {one!r}", "an axis is " + " or ".join(map(repr, DIMENSION_SEMANTICS))
            )
    if semantics and len(semantics) != len(sizes):
        problem = f"{len(semantics)} dimension_semantics for {len(sizes)} grid axes"
        raise wrong(problem, "say of each axis whether it is parallel or arbitrary")
    names = tuple(axis_names or ())
    if names and (len(names) != len(sizes) or len(set(names)) != len(names)):
        raise wrong(f"axis_names {names} for {len(sizes)} grid axes", "give each axis a name of its own")
    specs = [block_spec(one) for one in _spec_leaves(ins)] + list(outs)
    key = (
        sizes,
        None if ins is None else len(specs),
        tuple((one.block_shape, one.memory_space, one.pipeline_mode) for one in specs),
        tuple(outputs),
        str(out_shape),
        buffers,
        num_scalar_prefetch,
        tuple(sorted(aliases.items())),
        shown,
        machine.digest(),
        out_of_bounds_reads,
        semantics,
        names,
    )
    return Declaration(
        function, shown, sizes, ins, tuple(outs), tuple(outputs), out_shape, buffers, scratch,
        known_size(num_scalar_prefetch, "num_scalar_prefetch", 0), dict(aliases), machine, out_of_bounds_reads,
        semantics, names, key,
    )  # fmt: skip


def _output(given: Any, wrong: Callable[[str, str], WrongDeclaration]) -> Output:
    if not is_output(given):
        advice = "give the dtype with the shape: ShapeDtypeStruct((64, 64), float32)"
        raise wrong(f"out_shape holds {given!r}, which has no shape and dtype", advice)
    sizes = tuple(known_size(size, "a size of out_shape", least=0) for size in given.shape)
    return Output(sizes, promotion.as_dtype(given.dtype))


def _grid(grid: Any, wrong: Callable[[str, str], WrongDeclaration]) -> tuple[int, ...]:
    given = () if grid is None else grid if isinstance(grid, (tuple, list)) else (grid,)
    sizes = []
    for size in given:
        try:
            number = int(size.__index__())
        except (AttributeError, TypeError):
            raise wrong(f"grid size {size!r} is no int", "grids are known before a kernel is compiled") from None
        if number < 0:
            raise wrong(f"grid size {number} is negative", "an axis of size 0 is an empty grid")
        sizes.append(number)
    return tuple(sizes)


def _spec_leaves(specs: Any) -> list[Any]:
    """Specs of a tree; None in a sequence is a spec of its own."""
    if isinstance(specs, (tuple, list)):
        return [found for one in specs for found in (_spec_leaves(one) if one is not None else [None])]
    return leaves(specs, _is_spec) if specs is not None else [None]


def _output_specs(specs: Any, outputs: Any) -> list[BlockSpec]:
    """The specs of the outputs; what stands for an output that is None is left out."""
    if isinstance(specs, (tuple, list)) and isinstance(outputs, (tuple, list)) and len(specs) == len(outputs):
        return [
            found
            for spec, output in zip(specs, outputs, strict=True)
            if output is not None
            for found in _output_specs(spec, output)
        ]
    return [block_spec(one) for one in _spec_leaves(specs)]


def block_spec(given: Any) -> BlockSpec:
    """A spec, or for None that of the whole array. WrongSpec for anything else."""
    if given is None:
        return BlockSpec()
    if not isinstance(given, BlockSpec):
        wrong_spec("a spec", f"{given!r} is no BlockSpec", "write BlockSpec(block_shape, index_map), or None")
    return given


def block_dimensions(spec: BlockSpec, shape: tuple[int, ...]) -> tuple[Any, ...] | None:
    """The dimensions of a spec's blocks of an array; None for the whole array in place."""
    if spec.whole:
        return None
    if spec.block_shape is None:
        return tuple(dimension(size) for size in shape)
    return tuple(dimension(size) for size in spec.block_shape)


def is_buffer(value: Any) -> bool:
    """Whether a node of a tree of scratch is a buffer."""
    return not isinstance(value, (tuple, list, dict))


def scratch_of(given: Any) -> Scratch | Semaphore:
    """A buffer of a tree of scratch. WrongSpec for anything else."""
    if not isinstance(given, (Scratch, Semaphore)):
        wrong_spec("scratch", f"{given!r} is no buffer", "write SRAM(shape, dtype) or Semaphore()")
    return given
