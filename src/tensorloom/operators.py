"""The operators with their precedences, for the parser and for both printers.

A TensorLoom operator means what the Python operator of the same spelling means, so one table serves them all; the pipe,
which Python lacks, binds weakest and becomes a call.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Operator:
    """A binary operator. Operands of a chain group to the left; of `**` to the right; comparisons chain."""

    text: str
    precedence: int


PIPE: Final = 0
OR: Final = 1
AND: Final = 2
NOT: Final = 3
COMPARE: Final = 4
ADD: Final = 5
MULTIPLY: Final = 6
NEGATE: Final = 7
POWER: Final = 8
POSTFIX: Final = 9
ATOM: Final = 10

_LEVELS: Final = {
    OR: ("or",),
    AND: ("and",),
    COMPARE: ("==", "!=", "<", ">", "<=", ">="),
    ADD: ("+", "-"),
    MULTIPLY: ("*", "/", "%", "@"),
    POWER: ("**",),
}
BINARY: Final = {text: Operator(text, level) for level, texts in _LEVELS.items() for text in texts}
UNARY: Final = {"not": Operator("not", NOT), "-": Operator("-", NEGATE), "+": Operator("+", NEGATE)}
