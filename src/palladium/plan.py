"""A kernel for operands of certain shapes: traced, checked, compiled; and its runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from libloom.arrays import ArrayView
from loom_core.base.dtype import DType
from loom_core.base.knobs import knobs
from loom_core.base.location import Location
from loom_core.launch import Variant, explain_variant, interpret_variant, run_variant, trace_variant
from loom_core.trace.context import caller
from palladium.arguments import Array, Given, given_operand, maker_of
from palladium.blocks import Dimension, Movement, check_range, check_revisits, movement, not_parallel, shared_along
from palladium.index_maps import IndexMap, Numbers, Prefetched, definition, trace_index_map
from palladium.program import Operand, Program, trace_program
from palladium.signature import (
    Declaration,
    Output,
    WrongAlias,
    WrongDeclaration,
    block_dimensions,
    is_buffer,
    is_output,
)
from palladium.specs import BlockSpec, leaves, rebuild
from palladium.views import Ref

ONE_PROGRAM = (1, 1, 1)
"""The launch grid: a kernel's own grid is loops inside it."""


@dataclass(frozen=True)
class _Check:
    """What has to be checked at each call, because prefetched operands decide the blocks."""

    name: str
    index_map: IndexMap
    dimensions: tuple[Dimension, ...]
    shape: tuple[int, ...]
    visits_once: bool
    location: Location


@dataclass(eq=False)
class Plan:
    """A compiled kernel. `fills[i]`: whether output i must be poison where the kernel does not write.

    `prefetched`: how many leaves of the operands are prefetched.
    """

    declaration: Declaration
    variant: Variant
    fills: tuple[bool, ...]
    checks: tuple[_Check, ...]
    prefetched: int

    def run(self, given: Sequence[Given]) -> Any:
        """Run on operands; gives the outputs in the kind of the operands."""
        outputs = self._launch(given, interpret_variant if knobs.interpret else run_variant)
        make = maker_of([one.original for one in given])
        return self.declaration.result([make(output) for output in outputs])

    def trace(self, given: Sequence[Given]) -> Any:
        """Run under the cycle model; gives the trace."""
        traces: list[Any] = []
        self._launch(given, lambda *args: traces.append(trace_variant(*args)))
        return traces[0] if traces else None

    def explain(self, given: Sequence[Given]) -> Any:
        """How a run would be divided among cores."""
        found: list[Any] = []
        self._launch(given, lambda *args: found.append(explain_variant(*args)))
        return found[0] if found else None

    def prepare(self, given: Sequence[Given]) -> tuple[Variant, list[ArrayView]]:
        """What a run takes: the compiled kernel, and all arrays, new outputs included; none where nothing runs."""
        found: list[tuple[Variant, list[ArrayView]]] = []
        self._launch(given, lambda variant, views, *_: found.append((variant, views)))
        return found[0] if found else (self.variant, [])

    def _launch(self, given: Sequence[Given], run: Callable[..., Any]) -> list[Array]:
        outputs = self._outputs(given)
        if 0 not in self.declaration.grid:
            self._check(given)
            written = [given_operand("an output", output) for output in outputs]
            run(self.variant, [one.view for one in (*given, *written)], [], ONE_PROGRAM)
        return outputs

    def _outputs(self, given: Sequence[Given]) -> list[Array]:
        declaration = self.declaration
        begins = {output: operand for operand, output in declaration.aliases.items()}
        outputs = []
        for i, output in enumerate(declaration.outputs):
            if i in begins:
                outputs.append(np.array(given[begins[i]].as_numpy(), order="C", copy=True))
            elif self.fills[i] or 0 in declaration.grid:
                outputs.append(np.full(output.shape, output.dtype.poison, output.dtype.numpy))
            else:
                outputs.append(np.empty(output.shape, output.dtype.numpy))
        return outputs

    def _check(self, given: Sequence[Given]) -> None:
        if not self.checks:
            return
        grid = self.declaration.grid
        prefetched = [one.as_numpy() for one in given[: self.prefetched]]
        for check in self.checks:
            found = check.index_map.over_grid(grid, prefetched)
            check_range(check.name, check.dimensions, check.shape, grid, found, check.location)
            if check.visits_once:
                check_revisits(check.name, grid, found, check.location)


def make_plan(declaration: Declaration, operands: Sequence[Any], given: Sequence[Given]) -> Plan:
    """Trace, check and wrap a kernel for such operands, of which `given` are the leaves."""
    where = caller()
    names = declaration.operand_names(operands)
    _check_aliases(declaration, given, where)
    ahead = declaration.prefetched
    if ahead > len(operands):
        problem = f"num_scalar_prefetch is {ahead}, and there are {len(operands)} operands"
        raise WrongDeclaration(where, name=declaration.name, problem=problem, advice="prefetched operands come first")
    tree = list(operands[:ahead])
    count = len(leaves(tree))
    arrange = _arranged_by(rebuild(tree, iter(range(count))))
    prefetched = [
        Prefetched(name, one.shape, one.dtype, one.strides) for name, one in zip(names, given[:count], strict=False)
    ]
    making = _Making(declaration, prefetched, arrange, where)
    specs = declaration.specs_of(operands[ahead:])
    inputs = [
        making.operand(name, spec, one.shape, one.dtype, one.strides, is_output=False)
        for name, spec, one in zip(names[count:], specs, given[count:], strict=True)
    ]
    outputs = [
        making.output(i, name, spec, output)
        for i, (name, spec, output) in enumerate(
            zip(declaration.output_names(len(operands)), declaration.out_specs, declaration.outputs, strict=True)
        )
    ]
    program = Program(
        declaration.name,
        declaration.function,
        declaration.grid,
        tuple(
            Operand(one.name, one.shape, one.dtype, one.strides, begins=i not in making.deciding)
            for i, one in enumerate(prefetched)
        ),
        arrange,
        tuple(inputs),
        tuple(outputs),
        declaration.scratch,
        _arrangement(declaration, operands, len(given)),
        declaration.location,
        tuple(
            meaning != "arbitrary" and axis not in making.ordered
            for axis, meaning in enumerate(declaration.dimension_semantics)
        ),
        declaration.axis_names,
    )
    if 0 in declaration.grid:
        # Nothing runs; the kernel is traced over one point, so that what is wrong with it shows.
        program = replace(program, grid=tuple(max(size, 1) for size in declaration.grid))
    traced = trace_program(program)
    fills = tuple(
        not (written and (output.in_place or (output.movement is not None and output.movement.covers)))
        for written, output in zip(traced.written, outputs, strict=True)
    )
    shown = tuple(_kind(one.dtype.name, one.shape) for one in given)
    variant = Variant(shown, traced.function, [], declaration.machine, declaration.name)
    return Plan(declaration, variant, fills, tuple(making.checks), count)


def _check_aliases(declaration: Declaration, given: Sequence[Given], where: Location) -> None:
    for operand, output in declaration.aliases.items():
        if not 0 <= operand < len(given):
            problem = f"{operand} -> {output}, and there are {len(given)} operands"
            raise WrongAlias(where, name=declaration.name, problem=problem)
        one, target = given[operand], declaration.outputs[output]
        if one.shape != target.shape or one.dtype is not target.dtype:
            first, second = _kind(one.dtype.name, one.shape), _kind(target.dtype.name, target.shape)
            raise WrongAlias(
                where, name=declaration.name, problem=f"operand {operand} is {first}, output {output} is {second}"
            )


def _kind(dtype: str, shape: tuple[int, ...]) -> str:
    return f"{dtype}[{', '.join(map(str, shape))}]"


@dataclass
class _Making:
    """Operands of a program, with what is known of their blocks, and the checks that are left to calls."""

    declaration: Declaration
    prefetched: list[Prefetched]
    arrange: Callable[[list[Ref]], list[Any]]
    where: Location

    def __post_init__(self) -> None:
        self.checks: list[_Check] = []
        self.ordered: set[int] = set()  # grid axes along which an output accumulates
        self.deciding: set[int] = set()  # numbers of the prefetched operands that index maps read

    def output(self, position: int, name: str, spec: BlockSpec, output: Output) -> Operand:
        strides = [1] * len(output.shape)
        for d in range(len(strides) - 2, -1, -1):
            strides[d] = strides[d + 1] * output.shape[d + 1]
        made = self.operand(name, spec, output.shape, output.dtype, tuple(strides), is_output=True)
        return replace(made, begins=position in self.declaration.aliases.values())

    def operand(
        self, name: str, spec: BlockSpec, shape: tuple[int, ...], dtype: DType, strides: tuple[int, ...], *,
        is_output: bool,
    ) -> Operand:  # fmt: skip
        dimensions = block_dimensions(spec, shape)
        plain = Operand(name, shape, dtype, strides)
        if dimensions is None:
            return plain
        if len(dimensions) != len(shape):
            problem = f"the block shape of {name} has {len(dimensions)} dimensions, the array {len(shape)}"
            raise WrongDeclaration(
                self.where, name=self.declaration.name, problem=problem, advice="give one size for each"
            )
        grid = self.declaration.grid
        index_map = trace_index_map(name, spec.index_map, len(dimensions), grid, self.prefetched, self.arrange)
        location = definition(spec.index_map) if spec.index_map is not None else self.where
        known: Movement | None = None
        self.deciding |= index_map.reads
        if index_map.reads:
            once = is_output and not spec.revisits
            self.checks.append(_Check(name, index_map, dimensions, shape, once, location))
        elif 0 in grid:
            known = Movement(-1, (False,) * len(shape), True, False)
        else:
            found = index_map.over_grid(grid, [])
            if is_output or self.declaration.out_of_bounds_reads == "raise":
                check_range(name, dimensions, shape, grid, found, location, may_read_poison=not is_output)
            if is_output:
                if not spec.revisits:
                    check_revisits(name, grid, found, location)
                self._check_parallel(name, found, location)
            known = movement(dimensions, shape, grid, found)
        stays = known is not None and known.level < 0
        slots = min(spec.slots, 1) if stays else spec.slots
        return replace(plain, dimensions=dimensions, index_map=spec.index_map, movement=known, slots=slots)

    def _check_parallel(self, name: str, found: Numbers, location: Location) -> None:
        """NotParallel for an axis declared parallel along which an output accumulates; one permitted to be is not."""
        grid = self.declaration.grid
        for axis, meaning in enumerate(self.declaration.dimension_semantics):
            first = None if meaning == "arbitrary" else shared_along(axis, grid, found)
            if first is not None and meaning == "parallel":
                block = found.reshape(*grid, found.shape[1])[first]
                raise not_parallel(name, axis, first, block, location)
            if first is not None:
                self.ordered.add(axis)


def _arranged_by(tree: list[Any]) -> Callable[[list[Ref]], list[Any]]:
    """What puts refs into a tree."""
    return lambda refs: rebuild(tree, iter(refs))


Arrange = Callable[[list[Ref]], tuple[Sequence[Any], dict[str, Any]]]


def _arrangement(declaration: Declaration, operands: Sequence[Any], count: int) -> Arrange:
    """The refs as the function takes them: in the trees of operands and outputs; scratch of a dictionary by name."""

    places = rebuild(list(operands), iter(range(count)))  # the operands themselves would be kept alive

    def arrange(refs: list[Ref]) -> tuple[Sequence[Any], dict[str, Any]]:
        remaining = iter(refs)
        inputs = rebuild(places, remaining)
        outputs = rebuild(declaration.out_tree, remaining, is_output)
        scratch = rebuild(declaration.scratch_tree, remaining, is_buffer)
        plain = [*inputs, *(outputs if isinstance(outputs, (tuple, list)) else [outputs])]
        if isinstance(scratch, dict):
            return plain, scratch
        return [*plain, *(scratch if isinstance(scratch, (tuple, list)) else [scratch])], {}

    return arrange
