"""Operations that tell the user something while a kernel runs."""

from __future__ import annotations

from loom_core.base.dtype import bool_
from loom_core.ir.op import NOT_LOWERED, Op, attribute, operand, variadic_operand


class Print(Op):
    """Prints `prefix` and the values, one line for each program and value; integers in hexadecimal if `hex`."""

    name = "print"
    pure = False
    no_lowering = NOT_LOWERED
    values = variadic_operand()
    prefix = attribute()
    hex = attribute(False)


class Assert(Op):
    """Stops the run with `message` unless every element of `condition` holds."""

    name = "assert"
    pure = False
    no_lowering = NOT_LOWERED
    condition = operand()
    message = attribute("")

    def verify(self) -> str | None:
        element = self.condition.type.element
        return None if element is bool_ else f"the condition is {self.condition.type}, bool is needed"
