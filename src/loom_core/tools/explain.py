"""What an object does, as a value: its arguments, and the loops and engine commands of its stream in words.

Registers are shown by what they hold (`registers.py`).
"""

from __future__ import annotations

import re
import struct
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from loom_core.base.dtype import by_name
from loom_core.base.units import byte_count
from loom_core.isa.codes import ALL_CODE_FORMATS
from loom_core.isa.commands import SPACE_SRAM, Queue
from loom_core.isa.encoding import Command, Operand, decode_at, operand_layout
from loom_core.isa.program import decode_program
from loom_core.isa.sce import DTYPE_NAMES, SCE_BY_OPCODE
from loom_core.objfile import LoomObject, SourceEntry
from loom_core.tools.registers import RegisterNames, grouped

_CONDITIONAL: Final = re.compile(r"\((?P<condition>[^()]*(?:\(.*\))?[^()]* <=? .*)\) \* (?P<size>\d+)")


@dataclass(frozen=True)
class Step:
    """One command of an engine. `bytes` and `flops` of one execution are None where registers decide them."""

    word: int
    queue: str
    text: str
    source: str = ""
    bytes: int | None = None
    flops: int | None = None


@dataclass(frozen=True)
class Loop:
    """A counted loop: `variable` runs from `lo` to before `hi` by `step` (texts)."""

    word: int
    variable: str
    lo: str
    hi: str
    step: str
    body: list[Step | Loop] = field(default_factory=list)


@dataclass(frozen=True)
class Explanation:
    """An object in words; `as_dict` is its JSON form."""

    subject: LoomObject
    body: list[Step | Loop]
    commands_per_queue: dict[str, int]
    scalar_commands: int

    @property
    def cores(self) -> str:
        """Which axes of the programs cores may share, and why not the others; launches decide the rest."""
        abi = self.subject.abi
        names = ", ".join(axis.name for axis in abi.core_axes)
        shared = f"may share axis {names}, where a launch's programs prove to be apart" if names else "one"
        return "; ".join([shared, *(f"not axis {axis.name}: {axis.reason}" for axis in abi.serial_axes)])

    def as_dict(self) -> dict[str, Any]:
        """Plain JSON values."""
        abi = self.subject.abi
        return {
            "machine": {"name": self.subject.machine.name, "digest": self.subject.machine.digest()},
            "arguments": [
                {"name": a.name, "kind": a.kind, "dtype": a.dtype, "read": a.read, "written": a.written}
                for a in abi.args
            ],
            "sram_bytes": abi.sram_bytes_used,
            "core_axes": [axis.name for axis in abi.core_axes],
            "serial_axes": {axis.name: axis.reason for axis in abi.serial_axes},
            "commands": self.commands_per_queue,
            "scalar_commands": self.scalar_commands,
            "command_bytes": int(self.subject.commands.nbytes),
            "program_bytes": int(self.subject.programs.nbytes),
            "constant_bytes": len(self.subject.constants),
            "manifest": self.subject.manifest,
            "body": [_as_dict(item) for item in self.body],
        }


def _as_dict(item: Step | Loop) -> dict[str, Any]:
    if isinstance(item, Loop):
        loop = {"loop": item.variable, "lo": item.lo, "hi": item.hi, "step": item.step, "word": item.word}
        return {**loop, "body": [_as_dict(inner) for inner in item.body]}
    return {
        "queue": item.queue,
        "text": item.text,
        "word": item.word,
        "source": item.source,
        "bytes": item.bytes,
        "flops": item.flops,
    }


def explain(subject: LoomObject) -> Explanation:
    """The explanation of an object. LoomError (LOOM-O0xx) if its stream cannot be decoded."""
    commands = decode_at(subject.commands)
    words = _Words(subject, commands)
    top: list[Step | Loop] = []
    open_bodies = [top]
    counts: Counter[str] = Counter()
    scalars = 0
    for at, command in commands.items():
        words.registers.step(at, command)
        if command.mnemonic == "loop":
            lo, hi, step = (words.operand(operand) for operand in command.operands[1:4])
            loop = Loop(at, words.registers.variable(at), lo, hi, step)
            open_bodies[-1].append(loop)
            open_bodies.append(loop.body)
        elif command.mnemonic == "endloop" and len(open_bodies) > 1:
            open_bodies.pop()
        elif command.mnemonic in _DESCRIPTIONS:
            queue = Queue(command.queue).name.lower()
            counts[queue] += 1
            open_bodies[-1].append(words.step(at, command, queue))
        else:
            scalars += 1
        words.registers.wrote(at, command)
    return Explanation(subject, top, {q.name.lower(): counts[q.name.lower()] for q in Queue}, scalars)


class _Words:
    """Turns the operands of one object's commands into text."""

    def __init__(self, subject: LoomObject, commands: dict[int, Command]) -> None:
        self.subject = subject
        self.sources: Sequence[SourceEntry] = sorted(subject.sourcemap, key=lambda entry: entry.word)
        self.source_words = [entry.word for entry in self.sources]
        self.registers = RegisterNames(subject, commands)
        self.spaces = {SPACE_SRAM: "SRAM", subject.abi.constants_space: "the constants"}
        self.spaces |= {argument.slot: argument.name for argument in subject.abi.buffers}
        self.operand = self.registers.text

    def space(self, operand: Operand) -> str:
        if isinstance(operand, int):
            return self.spaces.get(operand, f"space {operand}")
        return f"space {self.operand(operand)}"

    def extent(self, sizes: Sequence[Operand]) -> str:
        return " x ".join(grouped(self.operand(size)) for size in sizes)

    def elements(self, sizes: Sequence[Operand], kind: str = "elements") -> str:
        """`64 x 32 elements`, and under which condition: a size of `(i < n) * 64` means 64 of them if i < n."""
        texts, conditions = [], []
        for size in map(self.operand, sizes):
            conditional = _CONDITIONAL.fullmatch(size)
            if conditional is not None:
                conditions.append(conditional["condition"])
            texts.append(grouped(size) if conditional is None else conditional["size"])
        when = f" if {' and '.join(conditions)}" if conditions else ""
        return f"{' x '.join(texts)} {kind}{when}"

    def source(self, word: int) -> str:
        index = bisect_right(self.source_words, word) - 1
        if index < 0:
            return ""
        entry = self.sources[index]
        return f"{entry.file}:{entry.line}" if entry.line > 0 else ""

    def step(self, at: int, command: Command, queue: str) -> Step:
        layout = operand_layout(command.spec, command.flags, len(command.operands)) or ()
        named = dict(zip((slot.name for slot in layout), command.operands, strict=True))
        text, moved, flops = _DESCRIPTIONS[command.mnemonic](self, command, named)
        if moved is not None:
            text += f", {byte_count(moved)}"
        return Step(at, queue, text, self.source(at), moved, flops)


_Named = dict[str, Operand]
_Described = tuple[str, int | None, int | None]


def _product(values: Sequence[Operand], factor: int = 1) -> int | None:
    for value in values:
        if not isinstance(value, int):
            return None
        factor *= max(value, 0)
    return factor


def _copy(words: _Words, command: Command, named: _Named) -> _Described:
    ndim, element = command.flag("ndim"), 1 << command.flag("log2_bytes")
    sizes = [named[f"size{d}"] for d in range(ndim)]
    boxes = [(named[f"lo{d}"], named[f"hi{d}"], size) for d, size in enumerate(sizes)]
    text = f"copy {words.space(named['src_space'])} to {words.space(named['dst_space'])}: "
    text += words.elements(sizes, f"elements of {byte_count(element)}")
    if any((lo, hi) != (0, size) for lo, hi, size in boxes):
        text += ", outside the bounds " + ("nothing" if command.flag("skip") else "filled")
    return text, _product(sizes, element), None


def _panel(words: _Words, command: Command, named: _Named, verb: str) -> str:
    side = "left" if command.flag("side") == 0 else "right"
    elements = words.elements([named["extent"], named["depth"]])
    return f"{verb} {words.space(named['src_space'])} as {side} operand: {elements}"


def _pack(words: _Words, command: Command, named: _Named) -> _Described:
    moved = _product([named["extent"], named["depth"]], 1 << command.flag("log2_bytes"))
    return _panel(words, command, named, "pack"), moved, None


def _typed_pack(words: _Words, command: Command, named: _Named) -> _Described:
    kind = by_name(command.spec.flag("type").values[command.flag("type")])
    moved = _product([named["extent"], named["depth"]], kind.itemsize)
    return _panel(words, command, named, f"pack {kind.name} of"), moved, None


def _decode(words: _Words, command: Command, named: _Named) -> _Described:
    codes = ALL_CODE_FORMATS[command.flag("format")]
    moved = _product([named["extent"], named["depth"]], codes.unit_bytes)
    bytes_moved = None if moved is None else moved // codes.unit_codes
    return _panel(words, command, named, f"decode {codes.name} weights of"), bytes_moved, None


def _matmul(words: _Words, command: Command, named: _Named) -> _Described:
    m, n, k = named["m"], named["n"], named["k"]
    return f"multiply {words.extent([m, k])} by {words.extent([k, n])}, accumulate", None, _product([m, n, k], 2)


def _accfill(words: _Words, command: Command, named: _Named) -> _Described:
    bits = named["bits"]
    value = struct.unpack("<f", struct.pack("<I", bits & 0xFFFFFFFF))[0] if isinstance(bits, int) else None
    shown = words.operand(bits) if value is None else f"{value:g}"
    return f"set the {words.extent([named['m'], named['n']])} accumulator to {shown}", None, None


def _accload(words: _Words, command: Command, named: _Named) -> _Described:
    sizes = [named["m"], named["n"]]
    return f"load the {words.extent(sizes)} accumulator from SRAM", _product(sizes, 4), None


def _program(words: _Words, command: Command, named: _Named) -> _Described:
    sizes = [named[f"size{d}"] for d in range(command.flag("ndim"))]
    offset = named["program"]
    assert isinstance(offset, int)  # the decoder admits no register here
    program, _ = decode_program(words.subject.programs, offset)
    used = dict.fromkeys(instruction.mnemonic for instruction in program.instructions)
    kind = "drain the accumulator" if command.flag("drain") else "stream program"
    flops = _product(sizes, sum(1 for i in program.instructions if not i.mnemonic.startswith(("mov", "cast"))))
    return f"{kind} over {words.extent(sizes)}: {', '.join(used)}", None, flops


def _indexed_elements(words: _Words, command: Command, named: _Named) -> tuple[str, int | None]:
    """`64 x 32 elements of 4 bytes at i32 indices, masked`, and their bytes."""
    element = 1 << command.flag("log2_bytes")
    sizes = [named[f"size{d}"] for d in range(command.flag("ndim"))]
    text = words.elements(sizes, f"elements of {byte_count(element)}")
    text += f" at {command.spec.flag('index').values[command.flag('index')]} indices"
    return text + (", masked" if command.flag("masked") else ""), _product(sizes, element)


def _gather(words: _Words, command: Command, named: _Named) -> _Described:
    text, moved = _indexed_elements(words, command, named)
    return f"gather from {words.space(named['src_space'])}: {text}", moved, None


def _scatter(words: _Words, command: Command, named: _Named) -> _Described:
    text, moved = _indexed_elements(words, command, named)
    verbs = {"scatter": "scatter", "compare_swap": "compare and swap"}
    verb = verbs.get(command.mnemonic)
    if verb is None:
        opcode = named["combine"]
        verb = f"scatter by {SCE_BY_OPCODE[opcode].mnemonic}" if isinstance(opcode, int) and opcode else "exchange"
    return f"{verb} to {words.space(named['dst_space'])}: {text}", moved, None


def _combine(words: _Words, command: Command, named: _Named) -> _Described:
    sizes = [named[f"size{d}"] for d in range(command.flag("ndim"))]
    offset = named["program"]
    assert isinstance(offset, int)  # the decoder admits no register here
    program, _ = decode_program(words.subject.programs, offset)
    used = dict.fromkeys(instruction.mnemonic for instruction in program.instructions)
    mode = command.spec.flag("mode").values[command.flag("mode")].replace("_", " ")
    return f"{mode} rows of {words.extent(sizes)}: {', '.join(used)}", None, None


def _sort(words: _Words, command: Command, named: _Named) -> _Described:
    sizes = [named[f"size{d}"] for d in range(command.flag("ndim"))]
    code = named["dtype"]
    dtype = DTYPE_NAMES[code] if isinstance(code, int) else "elements"
    return f"sort rows of {dtype}{', descending' * command.flag('descending')}: {words.elements(sizes)}", None, None


def _histogram(words: _Words, command: Command, named: _Named) -> _Described:
    sizes = [named[f"size{d}"] for d in range(command.flag("ndim"))]
    return f"histogram of {words.elements(sizes)} into {words.operand(named['bins'])} bins", None, None


def _lds(words: _Words, command: Command, named: _Named) -> _Described:
    return f"load a scalar of {words.space(named['space'])} into r{named['rd']}", 1 << command.flag("log2_bytes"), None


def _sts(words: _Words, command: Command, named: _Named) -> _Described:
    text = f"store the scalar {words.operand(named['value'])} to {words.space(named['space'])}"
    return text, 1 << command.flag("log2_bytes"), None


def _branch(words: _Words, command: Command, named: _Named) -> _Described:
    if "a" not in named:
        return f"jump to word {named['target']}", None, None
    condition = f"{words.operand(named['a'])} is {'0' if command.mnemonic == 'brz' else 'not 0'}"
    return f"jump to word {named['target']} if {condition}", None, None


def _while(words: _Words, command: Command, named: _Named) -> _Described:
    return f"back to word {named['target']}, under the watchdog", None, None


def _trap(words: _Words, command: Command, named: _Named) -> _Described:
    return f"stop with error {words.operand(named['code'])}", None, None


def _report(words: _Words, command: Command, named: _Named) -> _Described:
    return f"tell the host of report {words.operand(named['code'])}", None, None


_DESCRIPTIONS: Final[dict[str, Callable[[_Words, Command, _Named], _Described]]] = {
    "copy": _copy,
    "pack": _pack,
    "packf": _typed_pack,
    "packi": _typed_pack,
    "decodef": _decode,
    "decodei": _decode,
    "matmul": _matmul,
    "matmulf": _matmul,
    "matmuli": _matmul,
    "accfill": _accfill,
    "accload": _accload,
    "program": _program,
    "gather": _gather,
    "scatter": _scatter,
    "scatter_reduce": _scatter,
    "compare_swap": _scatter,
    "combine": _combine,
    "sort": _sort,
    "histogram": _histogram,
    "lds": _lds,
    "sts": _sts,
    "jump": _branch,
    "brz": _branch,
    "brnz": _branch,
    "while": _while,
    "trap": _trap,
    "report": _report,
}
"""Mnemonic -> what it does in words, bytes moved and operations done by one execution (None: registers decide).

Scalar arithmetic is not listed: it is counted, and shows up as the expressions of other commands' operands.
"""


def lines_of(body: Sequence[Step | Loop], indent: int = 0) -> Iterator[str]:
    """The body as indented text; a source line is named where it changes."""
    last = ""
    for item in body:
        pad = "  " * indent
        if isinstance(item, Loop):
            by = "" if item.step == "1" else f" by {item.step}"
            yield f"{pad}for {item.variable} in {item.lo} .. {item.hi}{by}:"
            yield from lines_of(item.body, indent + 1)
            last = ""
        else:
            suffix = f"    # {item.source}" if item.source and item.source != last else ""
            yield f"{pad}{item.queue}: {item.text}{suffix}"
            last = item.source or last
