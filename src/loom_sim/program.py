"""Objects made ready to run: loading, launching, and faults as diagnostics.

    program = load(obj)
    program.run([(address, lo, hi), ...], {register: value, ...})

    launch = program.prepare()           # for many runs: no allocation, about a microsecond a run beyond the commands
    launch.bind(0, address, lo, hi)
    launch.set_register(3, n)
    launch.go()

A binding is the host address of the byte that offset 0 means, and the half-open range of legal byte offsets from it. A
program may be used from several threads at once, a launch from one at a time. The GIL is released while commands run.
"""

from __future__ import annotations

import bisect
import ctypes
import functools
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np

from loom_core.base.diagnostics import InternalError, LoomError
from loom_core.base.location import UNKNOWN, Location
from loom_core.isa.machine import MachineConfig
from loom_core.isa.verify import verify_stream
from loom_core.objfile import LoomObject
from loom_sim import engines, reports
from loom_sim import state as words
from loom_sim.descriptors import describe
from loom_sim.errors import (
    BadLaunch,
    CommandLimit,
    OutOfBounds,
    OversizedCommand,
    ReadOnlySpace,
    StepZero,
    Trapped,
    UnknownSpace,
    UnsupportedMachine,
    WatchdogExpired,
)

if TYPE_CHECKING:
    from loom_core.base.diagnostics import Diagnostic
    from loom_core.isa.encoding import Command
    from loom_core.isa.program import ProgramInfo, SceProgram
    from loom_core.objfile import CoreAxis
    from loom_sim.object_facts import Facts
    from loom_sim.sharing import Division, Sharing
    from loom_sim.trace import Trace

Binding: TypeAlias = tuple[int, int, int]
Registers: TypeAlias = "Mapping[int, int] | Sequence[int]"

_SLICE: Final = 1 << 20  # work units between two looks at pending signals: some milliseconds of scalar commands
_ALIGNMENT: Final = 64
# Names of this module, which are quicker to look up than those of another one.
_RUNNING, _HALTED, _REPORTED = words.RUNNING, words.HALTED, words.REPORTED
_GOES_ON: Final = (words.PAUSED, words.REPORTED)
# The interpreter lock is released during a call.
engine_call: Final = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)

# The numbers that the engines are written for; every other field of a machine is free.
_FIXED_FIELDS: Final = {
    "panel_rows": 24,
    "panel_cols": 32,
    "panel_element_bytes": 4,
    "pass_depth": 128,
    "reduce_lanes": 32,
    "reduce_block": 4096,
}


def load(obj: LoomObject) -> Program:
    """Check an object and make it ready. Engines are compiled, or read from the cache, at its first launch.

    Raises LOOM-O diagnostics for commands or programs that are not well formed, UnsupportedMachine (LOOM-S010).
    """
    return Program(obj)


class Arena:
    """The memory of one core: SRAM, and the slots of the stream engine. SRAM is not cleared between runs."""

    def __init__(self, machine: MachineConfig) -> None:
        self._memory = np.empty(machine.sram_bytes + scratch_bytes(machine) + 2 * _ALIGNMENT, np.uint8)
        self.sram = _aligned(self._memory.ctypes.data)
        self.scratch = _aligned(self.sram + machine.sram_bytes)


def scratch_bytes(machine: MachineConfig) -> int:
    """Bytes of scratch memory that the stream engine of a machine may use."""
    slots = machine.sce_registers + machine.sce_streams
    for_programs = slots * words.SLOT_BYTES + machine.sce_instructions * words.CARRY_BYTES
    # Rows of at most a quarter as many elements as SRAM has bytes; untouched pages take no memory.
    for_sorting = 5 * machine.sram_bytes + words.SORT_COUNT_BYTES
    return max(for_programs, for_sorting)


def _aligned(address: int) -> int:
    return -(-address // _ALIGNMENT) * _ALIGNMENT


class _ThreadArenas(threading.local):
    """Free arenas of a thread, by machine. Popping and appending keeps nested runs (from a signal handler) apart."""

    def __init__(self) -> None:
        self.free: dict[str, list[Arena]] = {}


_thread_arenas: Final = _ThreadArenas()


class Program:
    """A loaded object. Made by `load`."""

    def __init__(self, obj: LoomObject) -> None:
        _check_machine(obj.machine)
        self.object = obj
        self._verified = verify_stream(
            obj.commands, obj.programs, obj.machine, spaces=obj.spaces, writable=obj.writable
        )
        if self._verified.uses_while and obj.while_budget < 1:
            raise BadLaunch(reason="its commands loop back, and its manifest gives no while_budget")
        self._lock = threading.Lock()
        self._tables: NativeTables | None = None
        self._launches = threading.local()
        self._parts: list[Launch] = []

    @property
    def tables(self) -> NativeTables:
        """What the interpreter needs of this program; engines are obtained at the first use."""
        tables = self._tables
        if tables is None:
            with self._lock:
                if self._tables is None:
                    self._tables = NativeTables(self.object, self._verified)
                tables = self._tables
        return tables

    @functools.cached_property
    def sharing(self) -> Sharing | None:
        """What divides this program's launches among cores; None where it has no axis that cores may share."""
        from loom_sim.sharing import Sharing

        return Sharing(self) if self.object.abi.core_axes else None

    def division(self, bindings: Sequence[Binding], registers: Registers = (), cores: int = 0) -> Division:
        """How a run would be divided among cores, and why so; arguments are those of `run`.

        cores: how many there are, whatever the amount of work; 0 for those that a run would have.
        """
        from loom_sim.sharing import undivided

        if self.sharing is None:
            return undivided(self)
        launch = Launch(self)
        launch.fill(bindings, registers)
        return self.sharing.division(launch, cores)

    def take_part(self) -> Launch:
        """A launch for the part of another core; to be handed back to `give_part`."""
        return self._parts.pop() if self._parts else Launch(self)

    def give_part(self, launch: Launch) -> None:
        self._parts.append(launch)

    def prepare(self) -> Launch:
        """A launch with arrays of its own, for many runs."""
        return Launch(self)

    def run(self, bindings: Sequence[Binding], registers: Registers = (), command_limit: int | None = None) -> None:
        """Run once on one core.

        `bindings`: one (address, lo, hi) for each buffer of the ABI, in order. `registers`: values of registers at the
        start, by number, or in order from 0; others are 0. Values are taken modulo 2^64. `command_limit`: commands
        after which the run is given up (checked now and then). Raises BadLaunch and the faults of `errors` (LOOM-S1xx),
        which point at the source line of the command.
        """
        free: list[Launch] = self._launches.__dict__.setdefault("free", [])
        launch = free.pop() if free else Launch(self)
        try:
            launch.fill(bindings, registers)
            launch.go(command_limit)
        finally:
            free.append(launch)

    def trace(
        self, bindings: Sequence[Binding], registers: Registers = (), max_events: int = 10_000, cores: int = 0
    ) -> Trace:
        """Run once and say what the commands would cost on the machine; arguments and errors are those of `run`.

        At most `max_events` events a core are kept. `cores`: how many may share the programs; 0 for those that are
        asked for, else those of the machine.
        """
        from loom_sim.trace import run_traced

        return run_traced(self, bindings, registers, max_events, cores)

    def check(
        self, bindings: Sequence[Binding], registers: Registers = (), fresh: Iterable[int] = (), replays: int = 0
    ) -> list[Diagnostic]:
        """Run once and say what is wrong with the program, faults aside; arguments and errors are those of `run`.

        `fresh`: numbers (1, 2, ...) of buffers whose contents count as never written. Found are missing waits between
        engines, reads of what nothing has written or of another layout, and programs of a grid that meet in memory.
        `replays`: so many further runs with other engine speeds must leave the same bytes (`replay`).
        """
        from loom_sim.check import run_checked

        return run_checked(self, bindings, registers, frozenset(fresh), replays)

    @functools.cached_property
    def facts(self) -> Facts:
        """What the checks know of the object without a run."""
        from loom_sim.object_facts import Facts

        return Facts(self)

    def failing_program(self, bindings: Sequence[Binding], registers: Registers = ()) -> tuple[int, int, int] | None:
        """The program of the grid (x, y, z) whose loop a run stands in when it fails; None where none does.

        It is the one at fault where the object was compiled without loads that run ahead.
        """
        launch = Launch(self)
        launch.fill(bindings, registers)
        if launch.follow() == _HALTED or [r.grid_axis for r in self.object.loops if r.grid_axis] != ["z", "y", "x"]:
            return None
        return launch.current_program()

    @property
    def commands(self) -> Mapping[int, Command]:
        """Commands by word index."""
        return self._verified.commands

    @property
    def programs(self) -> Mapping[int, tuple[SceProgram, ProgramInfo]]:
        """SCE programs by their offset in the programs section."""
        return self._verified.programs

    def location_of(self, word: int) -> Location:
        """Source of the command at a word index: the last entry of the source map at or before it."""
        entries = self.object.sourcemap
        index = bisect.bisect_right(entries, word, key=lambda entry: entry.word)
        if index == 0:
            return UNKNOWN
        entry = entries[index - 1]
        return Location(entry.file, entry.line, entry.column, entry.end_column, entry.function)


class NativeTables:
    """Arrays of one program whose addresses the interpreter reads; they live as long as the program."""

    def __init__(self, obj: LoomObject, verified: Any) -> None:
        self.commands = np.ascontiguousarray(obj.commands, np.uint64)
        self.engines = engines.engine_table(verified.commands.values())
        self.combines = engines.combine_table(verified.commands.values())
        combining = {c.operands[0] for c in verified.commands.values() if c.mnemonic == "combine"}
        self.descriptors = {
            offset: describe(program, info, engines.element_address, combines=offset in combining)
            for offset, (program, info) in verified.programs.items()
        }
        self.programs = np.zeros(max(1, len(obj.programs)), np.int64)
        for offset, descriptor in self.descriptors.items():
            self.programs[offset] = descriptor.ctypes.data
        self.constants = np.frombuffer(obj.constants, np.uint8)
        self.call = engine_call(engines.interpreter_address())


class Launch:
    """A run of a program, again and again: `bind`, `set_register`, `go`. For one thread at a time."""

    def __init__(self, program: Program, call: Callable[[int], int] | None = None) -> None:
        self.program = program
        tables, obj = program.tables, program.object
        spaces = 1 + obj.spaces
        self.state = np.zeros(words.SPACES + spaces * words.SPACE_WORDS, np.int64)
        self._view: memoryview[int] = memoryview(self.state.data)
        self._address = self.state.ctypes.data
        self._call = tables.call if call is None else call
        self._sharing = program.sharing if call is None else None
        self._machine_key = obj.machine.digest()
        self._arena: Arena | None = None
        self._buffers = len(obj.abi.buffers)
        view = self._view
        view[words.STREAM] = tables.commands.ctypes.data
        view[words.ENGINES] = tables.engines.ctypes.data
        view[words.PROGRAMS] = tables.programs.ctypes.data
        view[words.COMBINES] = tables.combines.ctypes.data
        view[words.SPACE_COUNT] = spaces
        view[words.SRAM_BYTES] = obj.machine.sram_bytes
        view[words.SLICE] = _SLICE
        view[words.ELIDED_FROM] = words.ELIDED_BYTES if call is None else 0
        view[words.WATCHDOG_BUDGET] = obj.while_budget
        self._set_space(0, 0, 0, obj.machine.sram_bytes, writable=True)
        for number in range(1, spaces):
            self._set_space(number, 0, 0, 0, writable=number in obj.writable)
        self.take_all_programs()
        if obj.constants:
            self._set_space(spaces - 1, tables.constants.ctypes.data, 0, len(obj.constants), writable=False)

    def _set_space(self, number: int, address: int, lo: int, hi: int, *, writable: bool) -> None:
        at = words.SPACES + number * words.SPACE_WORDS
        self.state[at : at + words.SPACE_WORDS] = address, lo, hi, writable

    def bind(self, index: int, address: int, lo: int, hi: int) -> None:
        """Buffer `index` of the ABI: byte offset 0 is at host address `address`; legal offsets are lo <= offset < hi.

        The memory must stay where it is until the last run. Raises BadLaunch.
        """
        if not 0 <= index < self._buffers:
            raise BadLaunch(reason=f"buffer {index} of {self._buffers}")
        if lo > hi:
            raise BadLaunch(reason=f"buffer {index} has the range {lo} to {hi}")
        at = words.SPACES + (index + 1) * words.SPACE_WORDS
        view = self._view
        view[at] = address
        view[at + 1] = lo
        view[at + 2] = hi

    def set_register(self, number: int, value: int) -> None:
        """Value of a register at the start of each run, modulo 2^64. Raises BadLaunch for a wrong number."""
        if not 0 <= number < words.REGISTERS:
            raise BadLaunch(reason=f"register {number} of {words.REGISTERS}")
        if not -(1 << 63) <= value < 1 << 63:
            value = (value + (1 << 63)) % (1 << 64) - (1 << 63)
        self._view[words.INITIAL_REGISTERS + number] = value

    def fill(self, bindings: Sequence[Binding], registers: Registers) -> None:
        """All buffers and registers at once; registers that are not given become 0."""
        if len(bindings) != self._buffers:
            raise BadLaunch(reason=f"{len(bindings)} bindings for {self._buffers} buffers")
        for index, (address, lo, hi) in enumerate(bindings):
            self.bind(index, address, lo, hi)
        self.state[words.INITIAL_REGISTERS : words.INITIAL_REGISTERS + words.REGISTERS] = 0
        for number, value in registers.items() if isinstance(registers, Mapping) else enumerate(registers):
            self.set_register(number, value)
        self.take_all_programs()

    def take_all_programs(self) -> None:
        """Give the registers of the ABI's `core_axes` the whole of each axis, once those of the grid are set."""
        for axis in self.program.object.abi.core_axes:
            extent = self._view[words.INITIAL_REGISTERS + axis.extent] if axis.extent >= 0 else axis.size
            self.set_part(axis, (0, extent))

    def set_part(self, axis: CoreAxis, part: tuple[int, int]) -> None:
        """Run only the programs of a part [start, end) of an axis."""
        self._view[words.INITIAL_REGISTERS + axis.start], self._view[words.INITIAL_REGISTERS + axis.end] = part

    def take(self, other: Launch, axis: CoreAxis, part: tuple[int, int]) -> None:
        """Bindings and registers of another launch of the program, but for a part of an axis."""
        for first, end in (
            (words.INITIAL_REGISTERS, words.LIVE_REGISTERS),
            (words.SPACES + words.SPACE_WORDS, len(self.state)),  # SRAM is a core's own
        ):
            self.state[first:end] = other.state[first:end]
        self.set_part(axis, part)

    def go(self, command_limit: int | None = None) -> None:
        """Run with the current bindings and registers. See `Program.run`."""
        if self._sharing is not None and command_limit is None:
            division = self._sharing.division(self)
            if division.parts:
                from loom_sim.cores import run_divided

                run_divided(self, division)
                return
            status = self._sharing.timed(self.follow) if division.is_open else self.follow()
        else:
            status = self.follow(command_limit)
        if status != _HALTED:
            raise self.fault(status)

    def follow(
        self, command_limit: int | None = None, stopped: Callable[[], bool] = bool, sram_fill: int | None = None,
        then: Callable[[int], int] | None = None, resumes: bool = False,
    ) -> int:  # fmt: skip
        """Run on one core, in this thread; the status at its end. `stopped` is asked between slices.

        `sram_fill`: a byte that all of SRAM holds at the start. `then` is called with the state's address after a run
        that has halted, and returns another status. `resumes`: go on where the last run of this thread has stopped.
        """
        free = _thread_arenas.free.get(self._machine_key)
        if free is None:
            free = _thread_arenas.free.setdefault(self._machine_key, [])
        arena = free.pop() if free else Arena(self.program.object.machine)
        if arena is not self._arena:
            self._use(arena)
        if sram_fill is not None:
            ctypes.memset(arena.sram, sram_fill, self.program.object.machine.sram_bytes)
        if not resumes:
            self._view[_RUNNING] = 0
        try:
            status = self._call(self._address)
            # Between two slices Python handles signals: a KeyboardInterrupt leaves here.
            while status in _GOES_ON and not stopped():
                if status == _REPORTED:
                    self._answer(arena)
                if command_limit is not None and self._view[words.EXECUTED] >= command_limit:
                    raise CommandLimit(self._location(), executed=self._view[words.EXECUTED])
                status = self._call(self._address)
            if status == _HALTED and then is not None:
                status = then(self._address)
        finally:
            free.append(arena)
        return status

    def current_program(self) -> tuple[int, int, int]:
        """The program of the grid (x, y, z) whose loops the run stands in, in an object with a grid."""
        z, y, x = (int(self.state[words.LOOP_STACK + i * words.LOOP_WORDS]) for i in range(3))
        return x, y, z

    def _use(self, arena: Arena) -> None:
        self._arena = arena
        self._view[words.SRAM] = self._view[words.SPACES] = arena.sram
        self._view[words.SCRATCH] = arena.scratch

    def _answer(self, arena: Arena) -> None:
        """What a `report` command asks of the host."""
        view, obj = self._view, self.program.object
        at = self.program.location_of(view[words.FAULT_SPACE])
        said = reports.Report(view[words.FAULT_VALUE], view[words.FAULT_LOW], view[words.FAULT_HIGH], at)
        x, y, z = (view[words.INITIAL_REGISTERS + register] for register in obj.abi.grid_registers)
        entries = obj.manifest.get("reports", ())
        reports.answer(said, entries, (x, y, z), arena.sram, obj.machine.sram_bytes)

    # ---- faults ----

    def _location(self) -> Location:
        return self.program.location_of(self._view[words.PC])

    def fault(self, status: int) -> LoomError:
        build = _FAULTS.get(status)
        word = self._view[words.PC]
        if build is None:
            return InternalError(what=f"the simulator stopped with status {status} at word {word}")
        notes = (f"command {self._view[words.EXECUTED]} of the run, at word {word}",)
        return build(self, self._location(), notes)

    def _command(self) -> str:
        return self.program.commands[self._view[words.PC]].mnemonic

    def _space(self) -> str:
        number, abi = self._view[words.FAULT_SPACE], self.program.object.abi
        if number == 0:
            return "SRAM"
        return f"buffer {abi.buffers[number - 1].name!r}" if number <= len(abi.buffers) else "the constants"


_Notes: TypeAlias = tuple[str, ...]


def _out_of_bounds(launch: Launch, location: Location, notes: _Notes) -> LoomError:
    view = launch._view
    at = words.SPACES + view[words.FAULT_SPACE] * words.SPACE_WORDS
    lo, hi = view[at + 1], view[at + 2]
    return OutOfBounds(
        location,
        notes=notes,
        command=launch._command(),
        low=view[words.FAULT_LOW],
        high=view[words.FAULT_HIGH] - 1,
        space=launch._space(),
        extent=f"bytes {lo} to {hi - 1}" if lo < hi else "no bytes",
    )


def _unknown_space(launch: Launch, location: Location, notes: _Notes) -> LoomError:
    view = launch._view
    number, last = view[words.FAULT_SPACE], view[words.SPACE_COUNT] - 1
    return UnknownSpace(location, notes=notes, command=launch._command(), number=number, last=last)


def _oversized(launch: Launch, location: Location, notes: _Notes) -> LoomError:
    elements, limit = launch._view[words.FAULT_VALUE], launch._view[words.FAULT_HIGH]
    return OversizedCommand(location, notes=notes, command=launch._command(), elements=elements, limit=limit)


_FAULTS: Final[dict[int, Callable[[Launch, Location, _Notes], LoomError]]] = {
    words.OUT_OF_BOUNDS: _out_of_bounds,
    words.UNKNOWN_SPACE: _unknown_space,
    words.OVERSIZED: _oversized,
    words.READ_ONLY: lambda launch, location, notes: ReadOnlySpace(
        location, notes=notes, command=launch._command(), space=launch._space()
    ),
    words.STEP_ZERO: lambda launch, location, notes: StepZero(
        location, notes=notes, register=launch._view[words.FAULT_VALUE]
    ),
    words.WATCHDOG_EXPIRED: lambda launch, location, notes: WatchdogExpired(
        location, notes=notes, budget=launch._view[words.WATCHDOG_BUDGET]
    ),
    words.TRAPPED: lambda launch, location, notes: Trapped(location, notes=notes, trap=launch._view[words.FAULT_VALUE]),
}


@functools.lru_cache(maxsize=64)
def _check_machine(machine: MachineConfig) -> None:
    for field, supported in _FIXED_FIELDS.items():
        value = getattr(machine, field)
        if value != supported:
            raise UnsupportedMachine(machine=machine.name, field=field, value=value, supported=supported)
