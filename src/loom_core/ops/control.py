"""Program position and structured control flow."""

from __future__ import annotations

from loom_core.base.dtype import bool_, i32
from loom_core.ir.block import Block
from loom_core.ir.op import Op, attribute, operand, variadic_operand
from loom_core.ir.types import TileType


class ProgramId(Op):
    """Index of this program along grid dimension `axis` (0, 1, 2), i32."""

    name = "program_id"
    axis = attribute()

    def infer(self) -> tuple[TileType, ...]:
        return (TileType(i32),)

    def verify(self) -> str | None:
        return None if self.axis in (0, 1, 2) else f"there is no grid dimension {self.axis!r}"


class NumPrograms(Op):
    """Size of grid dimension `axis` (0, 1, 2), i32."""

    name = "num_programs"
    axis = attribute()

    def infer(self) -> tuple[TileType, ...]:
        return (TileType(i32),)

    def verify(self) -> str | None:
        return None if self.axis in (0, 1, 2) else f"there is no grid dimension {self.axis!r}"


class For(Op):
    """Counted loop: block(i, carried...) for i = lower, lower + step, ... while below (step > 0) or above upper.

    The block's arguments are the induction variable and the carried values; its `yield` gives their next values. The
    results are the carried values after the last iteration (the initial ones where there is none).

    `axis` names the grid axis whose programs the iterations are, "" for a loop of the kernel's own; `parallel`: its
    author has declared that programs along it hand nothing on.
    """

    name = "for"
    pure = False
    region_count = 1
    lower = operand()
    upper = operand()
    step = operand()
    initial = variadic_operand()
    axis = attribute("")
    parallel = attribute(False)

    def infer(self) -> tuple[TileType, ...]:
        return tuple(value.type for value in self.initial)

    def verify(self) -> str | None:
        if not (self.lower.type == self.upper.type == self.step.type):
            return f"bounds differ: {self.lower.type}, {self.upper.type}, {self.step.type}"
        types = [self.lower.type, *(value.type for value in self.initial)]
        arguments = [value.type for value in self.regions[0].arguments]
        if types != arguments:
            return "the block's arguments do not match the bounds and initial values"
        return verify_yield(self, types[1:])


class While(Op):
    """Runs while its condition holds.

    The first block takes the carried values and yields a scalar bool and values to hand on. While the bool holds, the
    second block takes those and yields the next carried values; the results are what the first block hands on last.
    """

    name = "while"
    pure = False
    region_count = 2
    initial = variadic_operand()
    types = attribute(())

    def infer(self) -> tuple[TileType, ...]:
        return tuple(self.types)

    def verify(self) -> str | None:
        condition, body = self.regions
        carried = [value.type for value in self.initial]
        if [value.type for value in condition.arguments] != carried:
            return "the condition's arguments do not match the initial values"
        if [value.type for value in body.arguments] != list(self.types):
            return "the body's arguments do not match the results"
        return _verify_block(condition, [TileType(bool_), *self.types]) or _verify_block(body, carried)


class If(Op):
    """Runs the first block where `condition` (scalar bool) holds, else the second; both yield the results."""

    name = "if"
    pure = False
    region_count = 2
    condition = operand()
    types = attribute(())

    def infer(self) -> tuple[TileType, ...]:
        return tuple(self.types)

    def verify(self) -> str | None:
        if self.condition.type != TileType(bool_):
            return f"the condition is {self.condition.type}, a scalar bool is needed"
        return verify_yield(self, list(self.types))


class Yield(Op):
    """Ends a block of a loop or branch with the values it gives."""

    name = "yield"
    pure = False
    terminator = True
    values = variadic_operand()


class Return(Op):
    """Ends a kernel."""

    name = "return"
    pure = False
    terminator = True


def verify_yield(op: Op, types: list[TileType]) -> str | None:
    """Every block of `op` ends in a yield of `types`."""
    for region in op.regions:
        problem = _verify_block(region, types)
        if problem is not None:
            return problem
    return None


def _verify_block(block: Block, types: list[TileType]) -> str | None:
    last = block.terminator
    if not isinstance(last, Yield):
        return "a block does not end in a yield"
    given = [value.type for value in last.operands]
    if given != types:
        return f"yields {', '.join(map(str, given)) or 'nothing'}, needs {', '.join(map(str, types)) or 'nothing'}"
    return None
