"""What the registers of a stream hold, as text: the grid, an argument, a loop's variable, an expression of them.

A register is followed from the command that writes it: where a loop or a branch makes more than one value possible, it
is shown as itself (`r7`) again.
"""

from __future__ import annotations

import itertools
import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Mapping
from typing import Final

from loom_core.isa.encoding import Command, Label, Operand, Reg
from loom_core.objfile import LoomObject

_GRID_NAMES: Final = ("grid.x", "grid.y", "grid.z")
_LOOP_NAMES: Final = {"grid x": "pid.x", "grid y": "pid.y", "grid z": "pid.z"}
_INFIX: Final = {
    "add": "+", "sub": "-", "mul": "*", "div": "/", "rem": "%", "fdiv": "//", "and": "&", "or": "|", "xor": "^",
    "shl": "<<", "shr": ">>", "eq": "==", "ne": "!=", "lt": "<", "le": "<=",
}  # fmt: skip
_LONGEST_EXPRESSION: Final = 48


class RegisterNames:
    """Follows the registers of one object: `step` at each command in stream order, `text` for an operand there."""

    def __init__(self, subject: LoomObject, commands: Mapping[int, Command]) -> None:
        self._held = dict(zip(subject.abi.grid_registers, _GRID_NAMES, strict=True))
        self._held |= {argument.slot: argument.name for argument in subject.abi.scalars}
        for axis in subject.abi.core_axes:
            self._held |= {axis.start: f"start.{axis.name}", axis.end: f"end.{axis.name}"}
        self._writes = [(at, register) for at, c in commands.items() if (register := _written(c)) is not None]
        self._variables = _loop_variables(subject, commands)
        # word index -> registers that are no longer known from that command on
        self._forgotten: dict[int, set[int | None]] = defaultdict(set)

    def step(self, at: int, command: Command) -> None:
        """Take note of what the command at word `at` does to the registers; call it before asking for its operands.

        The value that the command itself writes is known from the next command on.
        """
        self._forget(self._forgotten.pop(at, set()))
        if command.mnemonic == "loop":
            end = _target(command)
            inside = self._written_between(at, end)
            self._forgotten[end] |= inside
            self._forget(inside - {_written(command)})
        elif command.mnemonic in ("jump", "brz", "brnz"):
            target = _target(command)
            self._forgotten[target] |= self._written_between(at, target)

    def wrote(self, at: int, command: Command) -> None:
        """Take note of the value that the command at word `at` writes."""
        register = _written(command)
        if register is None:
            return
        expression = self._variables[at] if command.mnemonic == "loop" else self._expression(command)
        self._forget({register})
        # An expression that names the register itself speaks of the value that is gone now.
        named = expression is not None and re.search(rf"\br{register}\b", expression)
        if expression is not None and not named and len(expression) <= _LONGEST_EXPRESSION:
            self._held[register] = expression

    def variable(self, at: int) -> str:
        """The name of the variable of the loop command at word `at`."""
        return self._variables[at]

    def text(self, operand: Operand) -> str:
        """An operand as text: a number, or what the register holds."""
        if isinstance(operand, Reg):
            return self._held.get(operand.number, f"r{operand.number}")
        return operand.name if isinstance(operand, Label) else str(operand)

    def _expression(self, command: Command) -> str | None:
        if command.mnemonic == "lds":
            return None
        parts = [self.text(operand) for operand in command.operands[1:]]
        if command.mnemonic == "mov":
            return parts[0]
        symbol = _INFIX.get(command.mnemonic)
        if symbol is None:
            return f"{command.mnemonic}({', '.join(parts)})"
        left, right = map(grouped, parts)
        return _simplified(left, symbol, right)

    def _forget(self, registers: set[int | None]) -> None:
        """Registers whose value changes: with them goes every expression that names them as `r7`."""
        if not registers:
            return
        gone = re.compile(rf"\br({'|'.join(map(str, registers))})\b")
        self._held = {r: text for r, text in self._held.items() if r not in registers and not gone.search(text)}

    def _written_between(self, first: int, end: int) -> set[int | None]:
        start = bisect_left(self._writes, (first, -1))
        stop = bisect_left(self._writes, (end, -1))
        return {register for _, register in self._writes[start:stop]}


def grouped(text: str) -> str:
    """An expression as part of a larger one: in parentheses if a space stands outside all of its own."""
    depth = 0
    for character in text:
        depth += (character == "(") - (character == ")")
        if character == " " and depth == 0:
            return f"({text})"
    return text


def _simplified(left: str, symbol: str, right: str) -> str:
    """`left symbol right`, without what changes nothing: 1 * x, x + 0 and the like."""
    if symbol == "*" and left == "1":
        return right
    if (symbol == "*" and right == "1") or (symbol in "+-" and right == "0"):
        return left
    if symbol == "+" and left == "0":
        return right
    if symbol == "*" and "0" in (left, right):
        return "0"
    return f"{left} {symbol} {right}"


def _written(command: Command) -> int | None:
    if command.spec.operands and command.spec.operands[0].role == "register":
        register = command.operands[0]
        assert isinstance(register, int)  # the decoder admits nothing else
        return register
    return None


def _target(command: Command) -> int:
    target = command.operands[-1]
    assert isinstance(target, int)  # the decoder admits nothing else
    return target


def _loop_variables(subject: LoomObject, commands: Mapping[int, Command]) -> dict[int, str]:
    """Names by word index: those that the compiler recorded, else i, j, k, ..."""
    recorded = {record.word: re.sub(r"\s*\br\d+$", "", record.variable) for record in subject.loops}
    letters = itertools.chain("ijklmnopq", (f"i{n}" for n in itertools.count()))
    names = {}
    for at, command in commands.items():
        if command.mnemonic == "loop":
            name = recorded.get(at, "")
            names[at] = _LOOP_NAMES.get(name) or (name if name.isidentifier() and name != "for" else next(letters))
    return names
