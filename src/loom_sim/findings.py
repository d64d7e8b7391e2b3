"""Findings of a checked run in words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from loom_core.base.diagnostics import Diagnostic
from loom_core.base.dtype import by_name
from loom_core.base.location import UNKNOWN
from loom_core.isa.commands import SPACE_SRAM, Queue
from loom_sim import footprint, shadow
from loom_sim.errors import (
    MissingWait,
    OutsideOfWindows,
    ReadOfAnotherProgram,
    UninitialisedRead,
    WriteOverAnotherProgram,
    WrongLayout,
)

if TYPE_CHECKING:
    from loom_sim.program import Binding, Program

_LAYOUT_NAMES: Final = {
    footprint.PLAIN: "a plain tile",
    footprint.ACCUMULATOR: "an accumulator",
    footprint.PANEL: "a panel",
}


def notes_of(program: Program, here: int, there: int = -1) -> tuple[str, ...]:
    """Where the command of a finding stands and which engine's queue it is on; the same of another one."""
    notes = [f"at word {here}, on queue {Queue(program.commands[here].queue).name}"]
    if there >= 0:
        at = program.location_of(there)
        source = f", from {at.file}:{at.line}" if at is not UNKNOWN else ""
        notes.append(f"the other is at word {there}, on queue {Queue(program.commands[there].queue).name}{source}")
    return tuple(notes)


class FindingReader:
    """Findings in words."""

    def __init__(self, program: Program, bindings: Sequence[Binding], grid: tuple[int, ...], base: int) -> None:
        self._program = program
        self._bindings = bindings
        self._grid = grid
        self._base = base

    def diagnostics(self, findings: Sequence[Sequence[int]]) -> Iterator[Diagnostic]:
        for kind, here, there, space, byte, mode, program, other in findings:
            where, place = self._program.location_of(here), self._place(space, byte)
            command = self._program.commands[here].mnemonic
            if kind == shadow.RACE:
                yield MissingWait.diagnostic(
                    where,
                    notes=self._notes(here, there),
                    command=command,
                    verb="writes" if mode & footprint.WRITES else "reads",
                    place=place,
                    other=self._program.commands[there].mnemonic if there >= 0 else "an earlier command",
                    doing="writing" if other else "reading",
                )
            elif kind == shadow.UNINITIALISED:
                yield UninitialisedRead.diagnostic(where, notes=self._notes(here), command=command, place=place)
            elif kind == shadow.WRONG_LAYOUT:
                yield WrongLayout.diagnostic(
                    where,
                    notes=self._notes(here),
                    command=command,
                    place=place,
                    expected=self._layout(here),
                    found=_LAYOUT_NAMES[other],
                )
            elif kind == shadow.OUTSIDE_OF_WINDOWS:
                yield OutsideOfWindows.diagnostic(
                    where,
                    notes=self._notes(here),
                    command=command,
                    verb="writes" if mode & footprint.WRITES else "reads",
                    place=f"bytes {byte} to {byte + other - 1} of SRAM",
                )
            elif kind == shadow.READ_OF_ANOTHER:
                yield ReadOfAnotherProgram.diagnostic(
                    where, notes=self._notes(here), program=self._index(program), place=place, other=self._index(other)
                )
            else:
                name = f"program {self._index(other)}" if other > self._base else "another program"
                yield WriteOverAnotherProgram.diagnostic(
                    where,
                    notes=self._notes(here),
                    program=self._index(program),
                    place=place,
                    other=name,
                    done="written or read",
                )

    def _notes(self, here: int, there: int = -1) -> tuple[str, ...]:
        return notes_of(self._program, here, there)

    def _place(self, space: int, byte: int) -> str:
        obj = self._program.object
        if space == SPACE_SRAM:
            for window in obj.manifest.get("windows", ()):
                if 0 <= byte - window["offset"] < window["bytes"] * window["slots"]:
                    return f"byte {byte} of SRAM (window {window['name']})"
            return f"byte {byte} of SRAM"
        arg = obj.abi.buffers[space - 1]
        return f"{arg.name}[{byte // by_name(arg.dtype).itemsize}]"

    def _layout(self, word: int) -> str:
        matrix = self._program.commands[word].spec.engine == "mxu"
        return "a panel or an accumulator" if matrix else "a plain tile"

    def _index(self, number: int) -> str:
        """A program of the grid by its indices."""
        number -= self._base + 1
        x, rest = number % self._grid[0], number // self._grid[0]
        return str((x, rest % self._grid[1], rest // self._grid[1]))
