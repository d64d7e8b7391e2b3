"""Which commands of an object run after which: a model of queues, tokens and lags, and the races that they leave.

The simulator executes every command where it is issued, so a missing wait never shows there. This model expands an
object into the commands that one run issues, with the byte ranges that each reads and writes, and knows of each command
which others are complete when it starts:

  queue    a command starts after everything issued before it on its own queue
  ACP      scalar loads and stores are complete before anything later is issued
  wait     `token, lag` at issue: all signals on the token so far, but the last `lag`, are complete

Two commands that touch the same bytes, one of them writing, must be ordered by these rules.
"""

from __future__ import annotations

import dataclasses
import itertools
import operator
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import msgspec
import numpy as np

import loom_sim
from loom_core.isa.commands import QUEUE_COUNT, SPACE_SRAM, OperandSpec, Queue
from loom_core.isa.encoding import Command, Label, Operand, Reg, Wait, command, decode_at, encode, operand_layout
from loom_core.isa.machine import acc_shape, panel_bytes
from loom_core.isa.program import ProgramInfo, SceProgram, decode_program, verified_program
from loom_core.isa.sce import DTYPE_LOG2_BYTES
from loom_core.objfile import AbiArg, LoomObject

Binding = tuple[int, int, int]
PLAIN, ACCUMULATOR, PANEL = "plain", "accumulator", "panel"
LAYOUTS: Final = {PLAIN: 1, ACCUMULATOR: 2, PANEL: 3}
_NEVER: Final = (1 << 32) - 1
_UNBOUNDED: Final = 1 << 60


@dataclass(frozen=True)
class Range:
    """Bytes [low, high) of a space, the span of an access; `layout` is how the bytes are laid out."""

    space: int
    low: int
    high: int
    write: bool
    layout: str = PLAIN

    def meets(self, other: Range, one_memory: bool) -> bool:
        """Whether both touch the same bytes, one of them writing; with `one_memory` buffers may be the same memory."""
        if not (self.write or other.write):
            return False
        if one_memory and self.space != SPACE_SRAM != other.space:
            return True
        return self.space == other.space and self.low < other.high and other.low < self.high


@dataclass(frozen=True)
class Issued:
    """One command of a run: `word` is its place in the stream, `operands` are its values at issue."""

    word: int
    command: Command
    operands: tuple[int, ...]
    ranges: tuple[Range, ...]

    def __str__(self) -> str:
        return f"{self.command.mnemonic} at word {self.word} (queue {self.command.queue}) {list(self.operands)}"


# ---- accesses ----


def _box(space: int, base: int, sizes: Sequence[int], strides: Sequence[int], width: int, write: bool) -> list[Range]:
    """The span of a strided box of elements; nothing where it is empty."""
    if any(size <= 0 for size in sizes):
        return []
    reach = [stride * (size - 1) for size, stride in zip(sizes, strides, strict=True)]
    return [Range(space, base + sum(min(r, 0) for r in reach), base + sum(max(r, 0) for r in reach) + width, write)]


def _valid(size: int, lo: int, hi: int) -> tuple[int, int]:
    """First valid index and number of valid ones."""
    lo, hi = max(lo, 0), min(hi, size)
    return lo, max(hi - lo, 0)


def _copy_ranges(command: Command, operands: Sequence[int]) -> list[Range]:
    width = 1 << command.flag("log2_bytes")
    source, source_offset, target, target_offset, _, *rest = operands
    dims = [rest[i : i + 5] for i in range(0, len(rest), 5)]
    if any(size <= 0 for size, *_ in dims):
        return []
    valid = [_valid(size, lo, hi) for size, _, _, lo, hi in dims]
    counts = [count for _, count in valid]
    read_at = source_offset + sum(first * dim[1] for (first, _), dim in zip(valid, dims, strict=True))
    reads = _box(source, read_at, counts, [dim[1] for dim in dims], width, False)
    write_at, sizes = target_offset, [dim[0] for dim in dims]
    if command.flag("skip"):
        write_at += sum(first * dim[2] for (first, _), dim in zip(valid, dims, strict=True))
        sizes = counts
    return reads + _box(target, write_at, sizes, [dim[2] for dim in dims], width, True)


def _pack_ranges(obj: LoomObject, command: Command, operands: Sequence[int]) -> list[Range]:
    space, at, target, extent, depth, extent_stride, depth_stride, ext_lo, ext_hi, k_lo, k_hi, _ = operands
    if extent <= 0 or depth <= 0:
        return []
    (row, rows), (column, columns) = _valid(extent, ext_lo, ext_hi), _valid(depth, k_lo, k_hi)
    at += row * extent_stride + column * depth_stride
    reads = _box(space, at, (rows, columns), (extent_stride, depth_stride), _packed_bytes(command), False)
    size = panel_bytes(obj.machine, "ab"[command.flag("side")], extent, depth)
    return [*reads, Range(SPACE_SRAM, target, target + size, True, PANEL)]


def _packed_bytes(command: Command) -> int:
    """Bytes of an element that a pack reads."""
    if command.mnemonic == "pack":
        return 1 << command.flag("log2_bytes")
    field = command.spec.flag("type")
    return 1 << DTYPE_LOG2_BYTES[field.values[field.get(command.flags)]]


def _accumulator(obj: LoomObject, at: int, m: int, n: int, write: bool) -> Range:
    columns = acc_shape(obj.machine, m, n)[1]
    return Range(SPACE_SRAM, at, at + ((m - 1) * columns + n) * 4, write, ACCUMULATOR)


def _matrix_ranges(obj: LoomObject, command: Command, operands: Sequence[int]) -> list[Range]:
    if command.mnemonic in ("matmul", "matmulf", "matmuli"):
        acc, a, b, m, n, k = operands
        if min(m, n, k) <= 0:
            return []
        panels = ((a, panel_bytes(obj.machine, "a", m, k)), (b, panel_bytes(obj.machine, "b", n, k)))
        return [
            _accumulator(obj, acc, m, n, False),
            _accumulator(obj, acc, m, n, True),
            *(Range(SPACE_SRAM, at, at + size, False, PANEL) for at, size in panels),
        ]
    if command.mnemonic == "accfill":
        acc, m, n, _ = operands
        return [_accumulator(obj, acc, m, n, True)]
    assert command.mnemonic == "accload", f"the model does not know what {command.mnemonic} touches"
    acc, source, m, n, *strides = operands
    return [_accumulator(obj, acc, m, n, True), *_box(SPACE_SRAM, source, (m, n), strides, 4, False)]


def _anywhere(space: int, write: bool) -> Range:
    """Somewhere in a buffer: which bytes an index tile says is not looked up."""
    return Range(space, -_UNBOUNDED, _UNBOUNDED, write)


def _indexed_ranges(command: Command, operands: Sequence[int]) -> list[Range]:
    """Gather, scatter and their kin: the tiles in SRAM by their strides; memory as a whole."""
    named = dict(zip((slot.name for slot in _layout(command)), operands, strict=True))
    dims = range(command.flag("ndim"))
    sizes = [named[f"size{d}"] for d in dims]
    width = 1 << command.flag("log2_bytes")

    def tile(offset: str, column: str, bytes_: int, write: bool) -> list[Range]:
        return _box(SPACE_SRAM, named[offset], sizes, [named[f"{column}{d}"] for d in dims], bytes_, write)

    found = tile("index_off", "index_stride", 8 if command.flag("index") else 4, False)
    if command.flag("masked"):
        found += tile("mask_off", "mask_stride", 1, False)
    if command.mnemonic == "gather":
        space = named["src_space"]
        # Within SRAM the bytes beside the index are enough to tell the tile.
        source = tile("src_off", "stride", width, False) if space == SPACE_SRAM else [_anywhere(space, False)]
        return [*found, *source, *tile("dst_off", "tile_stride", width, True)]
    found += [*tile("src_off", "tile_stride", width, False), _anywhere(named["dst_space"], True)]
    if command.mnemonic == "compare_swap":
        found += tile("expected_off", "expected_stride", width, False)
    if command.mnemonic != "scatter" and command.flag("old"):
        found += tile("old_off", "old_stride", width, True)
    return found


def _row_ranges(command: Command, operands: Sequence[int]) -> list[Range]:
    """Sort and histogram."""
    named = dict(zip((slot.name for slot in _layout(command)), operands, strict=True))
    dims = range(command.flag("ndim"))
    sizes = [named[f"size{d}"] for d in dims]
    width = 1 << command.flag("log2_bytes")

    def tile(offset: str, column: str, bytes_: int, write: bool, of: Sequence[int] = sizes) -> list[Range]:
        return _box(SPACE_SRAM, named[offset], of, [named[f"{column}{d}"] for d in dims], bytes_, write)

    found = tile("src_off", "src_stride", width, False)
    if command.mnemonic == "histogram":
        mask = tile("mask_off", "mask_stride", 1, False) if command.flag("masked") else []
        return [*found, *mask, *_box(SPACE_SRAM, named["dst_off"], (named["bins"],), (4,), 4, True)]
    kept = [*sizes[:-1], min(sizes[-1], named["kept"])]
    if command.flag("values"):
        found += tile("values_off", "values_stride", width, True, kept)
    if command.flag("order"):
        found += tile("order_off", "order_stride", 4, True, kept)
    return found


def _combine_ranges(program: SceProgram, command: Command, operands: Sequence[int]) -> list[Range]:
    """Right streams read the tiles, stores write the results; the left streams address nothing."""
    ndim = command.flag("ndim")
    sizes = operands[1 : 1 + ndim]
    loads = sum(stream.kind == "load" for stream in program.streams)
    walked = ndim - 1 if command.flag("mode") == 0 else ndim
    found: list[Range] = []
    for number, stream in enumerate(program.streams):
        base, *strides = operands[1 + ndim + number * (1 + ndim) :][: 1 + ndim]
        width = 1 << DTYPE_LOG2_BYTES[stream.dtype]
        if stream.kind == "load" and number >= loads // 2:
            found += _box(SPACE_SRAM, base, sizes, strides, width, False)
        elif stream.kind == "store":
            found += _box(SPACE_SRAM, base, sizes[:walked], strides[:walked], width, True)
    return found


def _program_ranges(program: SceProgram, info: ProgramInfo, command: Command, operands: Sequence[int]) -> list[Range]:
    ndim, fold = command.flag("ndim"), command.flag("fold")
    sizes = operands[1 : 1 + ndim]
    if any(size <= 0 for size in sizes):
        return []
    found: list[Range] = []
    for number, stream in enumerate(program.streams):
        base, *strides = operands[1 + ndim + number * (1 + ndim) :][: 1 + ndim]
        if stream.kind in ("scalar", "iota"):
            continue
        walked = ndim - fold if info.reduced_stores[number] else ndim
        width = 1 << DTYPE_LOG2_BYTES[stream.dtype]
        spans = _box(SPACE_SRAM, base, sizes[:walked], strides[:walked], width, stream.kind == "store")
        found += [dataclasses.replace(span, layout=ACCUMULATOR if stream.acc else PLAIN) for span in spans]
    return found


# ---- the command processor ----


def _wrap(value: int) -> int:
    value &= (1 << 64) - 1
    return value - (1 << 64) if value >> 63 else value


def _truncated(a: int, b: int) -> int:
    if b == 0:
        return -1
    quotient = abs(a) // abs(b)
    return quotient if (a < 0) == (b < 0) else -quotient


def _shifted(a: int, b: int, signed: bool) -> int:
    if not 0 <= b < 64:
        return -1 if signed and a < 0 else 0
    return a >> b if signed else (a & ((1 << 64) - 1)) >> b


_UNSIGNED: Final = (1 << 64) - 1
_ARITHMETIC: Final[dict[str, Callable[..., int]]] = {
    "mov": lambda a: a,
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "div": _truncated,
    "rem": lambda a, b: a - b * _truncated(a, b) if b else a,
    "fdiv": lambda a, b: a // b if b else -1,
    "cdiv": lambda a, b: -(-a // b) if b else -1,
    "min": min,
    "max": max,
    "and": operator.and_,
    "or": operator.or_,
    "xor": operator.xor,
    "shl": lambda a, b: a << b if 0 <= b < 64 else 0,
    "shr": lambda a, b: _shifted(a, b, True),
    "shru": lambda a, b: _shifted(a, b, False),
    "eq": operator.eq,
    "ne": operator.ne,
    "lt": operator.lt,
    "le": operator.le,
    "ltu": lambda a, b: (a & _UNSIGNED) < (b & _UNSIGNED),
    "leu": lambda a, b: (a & _UNSIGNED) <= (b & _UNSIGNED),
    "sel": lambda c, a, b: a if c else b,
}
_NARROW_BITS: Final = {1: (32, True), 2: (32, False), 3: (16, True), 4: (16, False), 5: (8, True), 6: (8, False)}


def _narrowed(value: int, code: int) -> int:
    if code == 7:
        return int(value != 0)
    if code == 0:
        return _wrap(int(value))
    bits, signed = _NARROW_BITS[code]
    value &= (1 << bits) - 1
    return value - (1 << bits) if signed and value >> (bits - 1) else value


@dataclass
class _Loop:
    start: int
    register: int
    counter: int
    hi: int
    step: int

    @property
    def inside(self) -> bool:
        return self.counter < self.hi if self.step > 0 else self.counter > self.hi


class _Processor:
    """Executes the scalar commands of an object; `loaded` gives what its scalar loads find in memory."""

    def __init__(self, obj: LoomObject, registers: Mapping[int, int], loaded: Iterator[int]) -> None:
        self.obj = obj
        self.commands = decode_at(obj.commands)
        words = list(self.commands)
        self.following = dict(itertools.pairwise(words))
        self.registers = [0] * obj.machine.acp_registers
        for number, value in registers.items():
            self.registers[number] = _wrap(value)
        self.loaded = loaded
        self.loops: list[_Loop] = []
        self.programs: dict[int, tuple[SceProgram, ProgramInfo]] = {}

    def run(self) -> Iterator[Issued]:
        at = 0
        while (item := self.commands[at]).mnemonic != "halt":
            operands = tuple(map(self._value, item.operands))
            following = self._control(at, item, operands)
            if following is None:
                following = self.following[at]
                if item.mnemonic in _ARITHMETIC:
                    result = _ARITHMETIC[item.mnemonic](*operands[1:])
                    self.registers[operands[0]] = _narrowed(int(result), item.flag("narrow"))
                else:
                    yield Issued(at, item, operands, tuple(self._ranges(item, operands)))
                    if item.mnemonic == "lds":
                        self.registers[operands[0]] = _wrap(next(self.loaded))
            at = following

    def _value(self, operand: Operand) -> int:
        if isinstance(operand, Reg):
            return self.registers[operand.number]
        assert isinstance(operand, int)
        return operand

    def _control(self, at: int, item: Command, operands: tuple[int, ...]) -> int | None:
        """Where a control command continues; None for all others."""
        match item.mnemonic:
            case "loop":
                register, lo, hi, step, end = operands
                loop = _Loop(self.following[at], register, lo, hi, step)
                if not loop.inside:
                    return end
                self.registers[register] = lo
                self.loops.append(loop)
                return loop.start
            case "endloop":
                loop = self.loops[-1]
                loop.counter += loop.step
                self.registers[loop.register] = loop.counter
                if loop.inside:
                    return loop.start
                self.loops.pop()
                return self.following[at]
            case "jump" | "while":
                return operands[0]
            case "brz":
                return operands[1] if operands[0] == 0 else self.following[at]
            case "brnz":
                return operands[1] if operands[0] != 0 else self.following[at]
        return None

    def _ranges(self, item: Command, operands: tuple[int, ...]) -> list[Range]:
        match item.mnemonic:
            case "lds":
                return _box(operands[1], operands[2], (1,), (0,), 1 << item.flag("log2_bytes"), False)
            case "sts":
                return _box(operands[0], operands[1], (1,), (0,), 1 << item.flag("log2_bytes"), True)
            case "copy":
                return _copy_ranges(item, operands)
            case "pack" | "packf" | "packi":
                return _pack_ranges(self.obj, item, operands)
            case "gather" | "scatter" | "scatter_reduce" | "compare_swap":
                return _indexed_ranges(item, operands)
            case "sort" | "histogram":
                return _row_ranges(item, operands)
            case "combine":
                return _combine_ranges(decode_program(self.obj.programs, operands[0])[0], item, operands)
            case "program":
                if operands[0] not in self.programs:
                    self.programs[operands[0]] = verified_program(self.obj.programs, operands[0], self.obj.machine)
                return _program_ranges(*self.programs[operands[0]], item, operands)
        return _matrix_ranges(self.obj, item, operands)


def expand(obj: LoomObject, bindings: Sequence[Binding], registers: Mapping[int, int]) -> list[Issued]:
    """The commands, but the scalar ones, that one run issues, in order. Runs the object, to learn what `lds` finds."""
    return list(_Processor(obj, registers, iter(loaded_scalars(obj, bindings, registers))).run())


def loaded_scalars(obj: LoomObject, bindings: Sequence[Binding], registers: Mapping[int, int]) -> list[int]:
    """What the scalar loads of a run find, in order: runs the object with a store into a log after each of them."""
    commands = decode_at(obj.commands)
    if all(item.mnemonic != "lds" for item in commands.values()):
        return []
    log = np.zeros(1 << 16, np.int64)
    space, cursor = len(obj.abi.buffers) + 1, _unused_register(obj, commands)
    labels = {at: Label(f"at {at}") for at in commands}
    stream: list[Command | Label] = []
    for at, item in commands.items():
        stream += [labels[at], dataclasses.replace(item, operands=_with_labels(item, labels))]
        if item.mnemonic == "lds":
            found = Reg(_written_register(item))
            stream.append(command("sts", space, Reg(cursor), found, flags={"log2_bytes": 3}))
            stream.append(command("add", cursor, Reg(cursor), 8))
    abi = msgspec.structs.replace(obj.abi, args=(*obj.abi.args, AbiArg("log", "buffer", "i64", space, True, True)))
    logging = dataclasses.replace(obj, commands=encode(stream), abi=abi, sourcemap=(), loops=())
    place = (log.ctypes.data, 0, log.nbytes)
    loom_sim.load(logging).run([*bindings, place], {**registers, cursor: 0})
    return log.tolist()  # type: ignore[no-any-return]


def _layout(item: Command) -> tuple[OperandSpec, ...]:
    layout = operand_layout(item.spec, item.flags, len(item.operands))
    assert layout is not None
    return layout


def _with_labels(item: Command, labels: Mapping[int, Label]) -> tuple[Operand, ...]:
    """Operands that name places in the stream, by label: it is going to grow."""

    def relocated(slot: OperandSpec, operand: Operand) -> Operand:
        return labels[operand] if slot.role == "target" and isinstance(operand, int) else operand

    return tuple(relocated(*pair) for pair in zip(_layout(item), item.operands, strict=True))


def _unused_register(obj: LoomObject, commands: Mapping[int, Command]) -> int:
    used = {operand.number for item in commands.values() for operand in item.operands if isinstance(operand, Reg)}
    used |= {_written_register(item) for item in commands.values()}
    return max(set(range(obj.machine.acp_registers)) - used)


def _written_register(item: Command) -> int:
    """The register that a command writes, or -1."""
    if not item.spec.operands or item.spec.operands[0].role != "register":
        return -1
    number = item.operands[0]
    assert isinstance(number, int)
    return number


# ---- order ----


@dataclass
class _Clocks:
    """How many commands of every queue are known to be complete, at various points."""

    processor: list[int] = field(default_factory=lambda: [0] * QUEUE_COUNT)
    queues: list[list[int]] = field(default_factory=lambda: [[0] * QUEUE_COUNT for _ in range(QUEUE_COUNT)])
    signals: dict[int, list[list[int]]] = field(default_factory=lambda: defaultdict(list))


def _join(into: list[int], other: list[int]) -> None:
    for i, count in enumerate(other):
        into[i] = max(into[i], count)


def races(commands: Sequence[Issued], one_memory: bool = False) -> list[tuple[Issued, Issued]]:
    """Pairs (earlier, later) of conflicting commands that nothing orders; `one_memory`: buffers may overlap."""
    clocks = _Clocks()
    history: list[list[Issued]] = [[] for _ in range(QUEUE_COUNT)]
    found: list[tuple[Issued, Issued]] = []
    for item in commands:
        queue = item.command.queue
        known = list(clocks.processor)
        if queue != Queue.ACP:
            _join(known, clocks.queues[queue])
        for wait in item.command.waits:
            done = len(clocks.signals[wait.token]) - wait.lag
            if done > 0:
                _join(known, clocks.signals[wait.token][done - 1])
        for other, count in enumerate(known):
            for earlier in history[other][count:]:
                if any(a.meets(b, one_memory) for a in earlier.ranges for b in item.ranges):
                    found.append((earlier, item))
        history[queue].append(item)
        after = list(known)
        after[queue] = len(history[queue])
        clocks.queues[queue] = after
        if queue == Queue.ACP:
            clocks.processor = list(after)
        if item.command.signal:
            clocks.signals[item.command.signal].append(_in_order(clocks, item.command.signal, after))
    return found


def _in_order(clocks: _Clocks, token: int, after: list[int]) -> list[int]:
    """What a wait for this signal guarantees: it counts completions, so the ones before it on the token as well."""
    earlier = clocks.signals[token]
    guaranteed = list(after)
    if earlier:
        _join(guaranteed, earlier[-1])
    return guaranteed


def token_faults(obj: LoomObject) -> list[str]:
    """Waits on tokens that nothing signals, and lagging waits on tokens that several queues signal.

    With several queues a count of completions does not say which commands are complete, unless all are.
    """
    commands = decode_at(obj.commands)
    queues: dict[int, set[int]] = defaultdict(set)
    for item in commands.values():
        if item.signal:
            queues[item.signal].add(item.queue)
    found = []
    for at, item in commands.items():
        for wait in item.waits:
            if not queues[wait.token]:
                found.append(f"word {at}: {item.mnemonic} waits on token {wait.token}, which nothing signals")
            elif wait.lag and len(queues[wait.token]) > 1:
                found.append(f"word {at}: {item.mnemonic} lags on token {wait.token}, which several queues signal")
    return found


# ---- contents ----


def layout_faults(obj: LoomObject, commands: Sequence[Issued]) -> list[str]:
    """Reads of SRAM that was never written, or that was written in another layout (in the order of issue)."""
    layout = np.zeros(obj.machine.sram_bytes, np.uint8)
    used = obj.abi.sram_bytes_used
    found = []
    for item in commands:
        for place in (place for place in item.ranges if place.space == SPACE_SRAM):
            if not 0 <= place.low < place.high <= used:
                found.append(f"{item} reaches bytes {place.low} to {place.high} of the {used} that the object uses")
            elif not place.write and not (layout[place.low : place.high] == LAYOUTS[place.layout]).all():
                kinds = sorted(set(layout[place.low : place.high].tolist()))
                found.append(f"{item} reads {place.layout} at {place.low} to {place.high}, where layouts are {kinds}")
        for place in (place for place in item.ranges if place.space == SPACE_SRAM and place.write):
            layout[max(place.low, 0) : place.high] = LAYOUTS[place.layout]
    return found


# ---- mutations ----


def without_wait(obj: LoomObject, word: int, position: int) -> LoomObject:
    """The object with one wait of one command made void: it lags behind everything."""
    commands = decode_at(obj.commands)
    waits = list(commands[word].waits)
    waits[position] = Wait(waits[position].token, _NEVER)
    commands[word] = dataclasses.replace(commands[word], waits=tuple(waits))
    return dataclasses.replace(obj, commands=encode(list(commands.values())))


def waits_of(obj: LoomObject) -> list[tuple[int, int]]:
    """(word, position) of every wait of the object."""
    return [(at, i) for at, item in decode_at(obj.commands).items() for i in range(len(item.waits))]
