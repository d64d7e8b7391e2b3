"""A checked run: the program runs as always, and everything that is wrong with it is found and named.

`Program.check` gives the findings as diagnostics. What is looked for, and how: `checker` and `shadow`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt

from loom_core.base.diagnostics import Diagnostic
from loom_core.base.dtype import by_name
from loom_core.base.location import UNKNOWN
from loom_core.isa.commands import QUEUE_COUNT, SPACE_SRAM
from loom_core.isa.encoding import Command
from loom_core.isa.sce import DTYPE_LOG2_BYTES
from loom_sim import checker, engines, footprint, shadow
from loom_sim import state as words
from loom_sim.errors import MissingWait, ReadOfAnotherProgram, UninitialisedRead, WriteOverAnotherProgram, WrongLayout

if TYPE_CHECKING:
    from loom_sim.program import Binding, Program, Registers

FINDING_LIMIT: Final = 64
_LAYOUT_NAMES: Final = {
    footprint.PLAIN: "a plain tile",
    footprint.ACCUMULATOR: "an accumulator",
    footprint.PANEL: "a panel",
}
_AREAS: Final = (shadow.WRITTEN, shadow.READ, shadow.LAYOUTS, shadow.PAGES, shadow.WRITERS, shadow.READERS)


def run_checked(
    program: Program, bindings: Sequence[Binding], registers: Registers, fresh: frozenset[int]
) -> list[Diagnostic]:
    """See `Program.check`."""
    from loom_sim.program import Launch, engine_call

    launch = Launch(program, engine_call(engines.checking_interpreter_address()))
    launch.fill(bindings, registers)
    state = _State(program, bindings, fresh)
    launch.state[words.CHECK] = state.check.ctypes.data
    launch.go()
    grid = tuple(int(launch.state[words.INITIAL_REGISTERS + r]) for r in program.object.abi.grid_registers)
    return list(_Reader(program, bindings, grid).diagnostics(state.findings()))


class _State:
    """The arrays of one checked run. Pages of the large ones that nothing touches take no memory."""

    def __init__(self, program: Program, bindings: Sequence[Binding], fresh: frozenset[int]) -> None:
        obj = program.object
        self._kept: list[npt.NDArray[Any]] = []
        self._findings = self._zeros((FINDING_LIMIT, shadow.FINDING_WORDS), np.int64)
        self._spaces = self._zeros((1 + obj.spaces, shadow.SPACE_WORDS), np.int64)
        self.check = self._zeros(shadow.CHECK_WORDS, np.int64)
        for field, size, dtype in (
            (shadow.BOXES, footprint.MOST_BOXES * footprint.BOX_WORDS, np.int64),
            (shadow.TOKENS, obj.machine.tokens * checker.TOKEN_WORDS, np.int64),
            (shadow.LOG, QUEUE_COUNT * shadow.LOG_LENGTH, np.uint32),
            (shadow.SUSPECTS, shadow.SUSPECT_LIMIT * shadow.SUSPECT_WORDS, np.int64),
        ):
            self.check[field] = self._zeros(size, dtype).ctypes.data
        self.check[shadow.SPACE_TABLE] = self._spaces.ctypes.data
        self.check[shadow.FINDINGS] = self._findings.ctypes.data
        self.check[shadow.FINDING_LIMIT] = FINDING_LIMIT
        grid = [record.grid_axis for record in obj.loops if record.grid_axis] == ["z", "y", "x"]
        self.check[shadow.GRID] = grid
        narrowest = _narrowest(program)
        self._shadow(SPACE_SRAM, 0, obj.machine.sram_bytes, narrowest, 0)
        for number, (arg, (address, low, high)) in enumerate(zip(obj.abi.buffers, bindings, strict=True), 1):
            if (arg.written or number in fresh) and low < high:
                log2 = min(narrowest, DTYPE_LOG2_BYTES[arg.dtype])
                layouts = self._shadow(number, low, high, log2, address, owned=grid)
                layouts[:] = 0 if number in fresh else footprint.PLAIN

    def findings(self) -> list[list[int]]:
        return self._findings[: self.check[shadow.FINDING_COUNT]].tolist()  # type: ignore[no-any-return]

    def _zeros(self, shape: Any, dtype: Any) -> npt.NDArray[Any]:
        array = np.zeros(shape, dtype)
        self._kept.append(array)
        return array

    def _shadow(
        self, space: int, low: int, high: int, log2: int, host: int, owned: bool = False
    ) -> npt.NDArray[np.uint8]:
        """Give a space its arrays; returns that of the layouts."""
        granules = ((high - low - 1) >> log2) + 1
        pages = (granules >> shadow.PAGE_LOG2) + 1
        layouts = self._zeros(granules, np.uint8)
        entry = self._spaces[space]
        entry[shadow.WRITTEN] = self._zeros(QUEUE_COUNT * granules, np.uint32).ctypes.data
        entry[shadow.READ] = self._zeros(QUEUE_COUNT * granules, np.uint32).ctypes.data
        entry[shadow.LAYOUTS] = layouts.ctypes.data
        entry[shadow.PAGES] = self._zeros(2 * QUEUE_COUNT * pages, np.int64).ctypes.data
        if owned:
            entry[shadow.WRITERS] = self._zeros(granules, np.uint32).ctypes.data
            entry[shadow.READERS] = self._zeros(granules, np.uint32).ctypes.data
        entry[shadow.LOW], entry[shadow.GRANULES], entry[shadow.LOG2], entry[shadow.HOST] = low, granules, log2, host
        return layouts


def _narrowest(program: Program) -> int:
    """log2 of the bytes of the narrowest element that any command moves."""

    def of_command(command: Command) -> Iterator[int]:
        names = {flag.name for flag in command.spec.flags}
        if "log2_bytes" in names:
            yield command.flag("log2_bytes")
        if "type" in names:
            yield DTYPE_LOG2_BYTES[command.spec.flag("type").values[command.flag("type")]]
        if command.mnemonic in ("decodef", "decodei") or ("masked" in names and command.flag("masked")):
            yield 0

    widths = [width for command in program.commands.values() for width in of_command(command)]
    widths += [
        DTYPE_LOG2_BYTES[stream.dtype]
        for sce, _ in program.programs.values()
        for stream in sce.streams
        if stream.kind in ("load", "store")
    ]
    return min(widths, default=0)


class _Reader:
    """Findings in words."""

    def __init__(self, program: Program, bindings: Sequence[Binding], grid: tuple[int, ...]) -> None:
        self._program = program
        self._bindings = bindings
        self._grid = grid

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
            elif kind == shadow.READ_OF_ANOTHER:
                yield ReadOfAnotherProgram.diagnostic(
                    where, program=self._index(program), place=place, other=self._index(other)
                )
            else:
                name = f"program {self._index(other)}" if other else "another program"
                yield WriteOverAnotherProgram.diagnostic(
                    where, program=self._index(program), place=place, other=name, done="written or read"
                )

    def _notes(self, here: int, there: int = -1) -> tuple[str, ...]:
        notes = [f"at word {here}"]
        if there >= 0:
            at = self._program.location_of(there)
            source = f", from {at.file}:{at.line}" if at is not UNKNOWN else ""
            notes.append(f"the other is at word {there}{source}")
        return tuple(notes)

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
        x, rest = (number - 1) % self._grid[0], (number - 1) // self._grid[0]
        return str((x, rest % self._grid[1], rest // self._grid[1]))
