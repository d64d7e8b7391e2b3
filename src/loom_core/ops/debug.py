"""Operations that tell the user something while a kernel runs."""

from __future__ import annotations

from loom_core.base.dtype import bool_
from loom_core.ir.op import Op, attribute, operand, optional_operand, variadic_operand
from loom_core.ir.types import TileType


class Print(Op):
    """Prints `prefix` and the values, one line for each program and value; integers in hexadecimal if `hex`."""

    name = "print"
    pure = False
    values = variadic_operand()
    prefix = attribute()
    hex = attribute(False)


class Assert(Op):
    """Stops the run with `message` unless every element of `condition` holds.

    `holds` is whether they all do, where that has been computed.
    """

    name = "assert"
    pure = False
    condition = operand()
    holds = optional_operand()
    message = attribute("")

    def verify(self) -> str | None:
        if self.condition.type.element is not bool_:
            return f"the condition is {self.condition.type}, bool is needed"
        if self.holds is not None and self.holds.type != TileType(bool_):
            return f"`holds` is {self.holds.type}, a scalar bool is needed"
        return None
