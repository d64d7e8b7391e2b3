"""Commands under construction: symbolic registers, windows and labels, and what each command touches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from loom_core.base.location import UNKNOWN, Location
from loom_core.isa.commands import ALL_COMMANDS, Queue
from loom_core.isa.encoding import Label
from loom_core.isa.program import SceProgram

_SCALAR_ARITHMETIC = frozenset(
    spec.mnemonic for spec in ALL_COMMANDS if any(flag.name == "narrow" for flag in spec.flags)
)


@dataclass(eq=False)
class Window:
    """A named region of SRAM: `slots` equal parts of `size` bytes, which the iterations of a loop take in turn."""

    name: str
    size: int
    location: Location = UNKNOWN
    slots: int = 1
    offset: int = -1

    @property
    def total(self) -> int:
        return self.size * self.slots


@dataclass(frozen=True)
class Address:
    """SRAM byte address of a window plus `displacement`; with `both` the sum of its two slots' addresses."""

    window: Window
    displacement: int = 0
    both: bool = False

    def resolve(self) -> int:
        if self.both:
            return 2 * self.window.offset + self.window.size
        return self.window.offset + self.displacement


@dataclass(eq=False)
class Register:
    """A scalar register before numbers are given; `fixed` where the ABI says which."""

    name: str
    fixed: int = -1
    number: int = -1


Operand = int | Register | Address | Label


@dataclass(frozen=True)
class Access:
    """What a command does to a window or to device memory.

    `target` is a window or the number of an HBM binding. `phase` tells the slots of a window with several apart: "cur"
    is the one that this iteration uses, "next" the one being filled for a later one.
    """

    target: Window | int
    write: bool
    phase: str = ""


@dataclass
class Emitted:
    """One command with symbolic operands.

    Commands of one `stream` (the first loads into a window with several slots, and the ones that run ahead) follow each
    other on one queue and share a token.
    """

    mnemonic: str
    operands: list[Operand]
    flags: dict[str, int]
    queue: int
    program: SceProgram | None
    accesses: tuple[Access, ...]
    location: Location
    note: str = ""
    stream: object = None


@dataclass
class LoopSpan:
    """Commands [start, end] of a loop, from its `loop` (or the label of a `while`) to its last command."""

    start: int
    end: int = -1


@dataclass
class Emitter:
    """Collects commands in issue order."""

    items: list[Emitted | Label] = field(default_factory=list)
    loops: list[LoopSpan] = field(default_factory=list)
    windows: list[Window] = field(default_factory=list)
    location: Location = UNKNOWN
    depth: int = 0  # loops that are open

    def window(self, name: str, size: int, slots: int = 1) -> Window:
        """A new window of `slots` x `size` bytes, placed later."""
        window = Window(name, max(size, 1), self.location, slots)
        self.windows.append(window)
        return window

    def emit(
        self,
        mnemonic: str,
        operands: Sequence[Operand],
        *,
        flags: dict[str, int] | None = None,
        queue: Queue = Queue.ACP,
        program: SceProgram | None = None,
        accesses: Sequence[Access] = (),
        note: str = "",
        stream: object = None,
    ) -> None:
        self.items.append(
            Emitted(mnemonic, list(operands), flags or {}, queue, program, tuple(accesses), self.location, note, stream)
        )

    def scalar(self, mnemonic: str, *operands: Operand, narrow: int = 0, name: str = "") -> Register:
        """An ACP operation into a new register."""
        result = Register(name)
        self.emit(mnemonic, [result, *operands], flags={"narrow": narrow})
        return result

    def set(self, register: Register, mnemonic: str, *operands: Operand) -> None:
        """An ACP operation in 64 bits into a register that there is."""
        self.emit(mnemonic, [register, *operands], flags={"narrow": 0})

    def assign(self, register: Register, value: Operand) -> None:
        """register = value."""
        if value is not register:
            self.emit("mov", [register, value], flags={"narrow": 0})

    @contextmanager
    def loop(self, register: Register, lo: Operand, hi: Operand, step: Operand, note: str = "") -> Iterator[None]:
        """A counted loop around what is emitted inside."""
        end = Label("end")
        span = LoopSpan(len(self.items))
        self.loops.append(span)
        self.emit("loop", [register, lo, hi, step, end], note=note)
        self.depth += 1
        yield
        self.depth -= 1
        span.end = len(self.items)
        self.emit("endloop", [])
        self.items.append(end)

    @contextmanager
    def while_loop(self) -> Iterator[None]:
        """Repeats what is emitted inside, which leaves by a forward jump past it."""
        top = Label("while")
        span = LoopSpan(len(self.items))
        self.loops.append(span)
        self.items.append(top)
        yield
        span.end = len(self.items)
        self.emit("while", [top])

    def remove_dead_scalars(self) -> None:
        """Drop scalar arithmetic whose result nothing reads (its readers were computed ahead)."""
        while True:
            read = {
                operand
                for item in self.items
                if isinstance(item, Emitted)
                for operand in (item.operands[1:] if item.mnemonic in _SCALAR_ARITHMETIC else item.operands)
                if isinstance(operand, Register)
            }
            dead = [
                index
                for index, item in enumerate(self.items)
                if isinstance(item, Emitted) and item.mnemonic in _SCALAR_ARITHMETIC and item.operands[0] not in read
            ]
            if not dead:
                return
            self._remove(dead)

    def _remove(self, indices: list[int]) -> None:
        gone = set(indices)
        kept = [0]
        for index in range(len(self.items)):
            kept.append(kept[-1] + (index not in gone))
        self.items = [item for index, item in enumerate(self.items) if index not in gone]
        for loop in self.loops:
            loop.start, loop.end = kept[loop.start], kept[loop.end]

    @contextmanager
    def located(self, location: Location) -> Iterator[None]:
        saved, self.location = self.location, location
        try:
            yield
        finally:
            self.location = saved
