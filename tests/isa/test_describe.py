"""The disassembler and the generated manual."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from loom_core.base.diagnostics import LoomError
from loom_core.isa.commands import ALL_COMMANDS
from loom_core.isa.describe import disassemble, isa_markdown
from loom_core.isa.encoding import Command, Label, Reg, Wait, assemble, command, encode
from loom_core.isa.program import R, S, SceInstr, SceProgram, StreamSpec, encode_program
from loom_core.isa.sce import ALL_SCE_OPS, SCE_OPS
from tests.isa.strategies import commands, unhurried


@dataclass(frozen=True)
class Line:
    word: int
    file: str
    line: int
    function: str = "kernel"
    note: str = ""


SCALE = SceProgram(
    (StreamSpec("load", "f32"), StreamSpec("scalar", "f32"), StreamSpec("store", "f32")),
    (SceInstr("mul.f32", R(0), S(0), S(1)), SceInstr("tanh.f32", S(2), R(0))),
    1,
)
ROW_SUM = SceProgram(
    (StreamSpec("load", "f32", True), StreamSpec("store", "f32")), (SceInstr("reduce_sum.f32", S(1), S(0)),), 0
)
PAIRS = encode_program(
    SceProgram(
        (StreamSpec("load", "f32"), StreamSpec("load", "f32"), StreamSpec("store", "f32")),
        (SceInstr("add.f32", S(2), S(0), S(1)),),
        0,
    )
)
PROGRAMS = np.concatenate([encode_program(SCALE), encode_program(ROW_SUM), PAIRS])
ADD = SCE_OPS["add.f32"].opcode
MASKED = {"index": 1, "masked": 1}
RETURNS = {"log2_bytes": 2, "old": 1}
TO_BOTH = {"descending": 1, "values": 1, "order": 1}


def every_form() -> list[Command | Label]:
    """A stream that shows each way in which a command is written."""
    outer, inner, skip, again = Label("outer"), Label("inner"), Label("skip"), Label("again")
    scale = (0, 16, 64, 4096, 256, 4, 0x3F800000, 0, 0, Reg(9), 256, 4)
    dims = (Reg(3), 1024, 256, 0, Reg(4), 64, 4, 4, 0, 64)
    return [
        command("mul", 8, Reg(0), 64, flags={"narrow": 1}),
        command("loop", 7, 0, Reg(0), 1, outer),
        command("lds", 9, 1, Reg(8), flags={"log2_bytes": 2, "signed": 1}, waits=(Wait(1),)),
        command("brz", Reg(9), skip),
        command("copy", 1, Reg(8), 0, 4096, 0, *dims, flags={"ndim": 2, "log2_bytes": 2}, queue=2, signal=1),
        skip,
        command("loop", 10, 8, 0, -1, inner),
        command("program", *scale, flags={"ndim": 2}, waits=(Wait(1, 1), Wait(2)), signal=3),
        command("pack", Reg(5), 0, 0, 64, 32, 4, 256, 0, 64, 0, 32, 0, flags={"side": 1, "log2_bytes": 2}),
        command("pack", 0, 0, 0, 64, 32, 4, 256, 0, 64, 0, 32, 0, flags={"side": 0, "log2_bytes": 2}),
        command("packf", 1, 0, 0, 64, 32, 2, 128, 0, 64, 0, 32, 0, flags={"side": 1, "type": 0}),
        command("packi", 1, 0, 0, 64, 32, 1, 64, 0, 64, 0, 32, 0, flags={"side": 0, "type": 3}),
        command(
            "decodef",
            1,
            0,
            0,
            64,
            32,
            16,
            Reg(6),
            0,
            64,
            0,
            32,
            2,
            0,
            32,
            0,
            3,
            0,
            8,
            64,
            flags={"scaled": 1, "format": 2},
        ),
        command("decodei", 1, 0, 0, 64, 32, 16, 0, 0, 64, 0, 32, flags={"side": 1, "format": 8}),
        command("endloop"),
        inner,
        command("accfill", 0, 24, 32, -1, signal=4),
        command("accload", 0, Reg(8), 24, 32, 128, 4),
        command("matmul", 0, 4096, 8192, 24, 32, Reg(6), waits=(Wait(4),)),
        command("matmulf", 0, 4096, 8192, 24, 32, Reg(6), flags={"widest": 1}),
        command("matmuli", 0, 4096, 8192, 24, 32, 64, signal=4),
        command(
            "program",
            len(encode_program(SCALE)),
            24,
            32,
            0,
            128,
            4,
            8192,
            4,
            0,
            flags={"ndim": 2, "fold": 1, "drain": 1},
        ),
        command("program", *scale, flags={"ndim": 2}),
        command("copy", 0, 0, 2, 0, 0, 8, 2, 2, 0, 8, flags={"ndim": 1, "log2_bytes": 1, "skip": 1}),
        command("gather", 1, 0, 4096, 64, 0, 4, -1, 64, 0, 4, 4, 0, flags={"ndim": 1, "log2_bytes": 2}, queue=3),
        command("scatter", 0, Reg(5), Reg(8), 64, 96, 8, 9, 0, 8, 8, 1, flags={"ndim": 1, "log2_bytes": 3, **MASKED}),
        command("scatter_reduce", 0, 2, 0, 64, 0, 96, 4, ADD, *(8, 0, 4, 4, 0, 4), flags={"ndim": 1, **RETURNS}),
        command("compare_swap", 0, 2, 0, 64, 0, 0, 4, 32, *(8, 0, 4, 4, 0, 0, 4), flags={"ndim": 1, "log2_bytes": 2}),
        command("combine", len(PROGRAMS) - len(PAIRS), 24, *(0, 0), *(0, 4), *(4096, 0), flags={"ndim": 1}),
        command("sort", 0, 4096, 8192, 1, 24, 0, *(24, 4, 4, 4), flags={"ndim": 1, "log2_bytes": 2, **TO_BOTH}),
        command("histogram", 0, 0, 4096, 16, *(24, 4, 0), flags={"ndim": 1, "log2_bytes": 2, "signed": 1}),
        command("endloop"),
        outer,
        again,
        command("sts", 2, 0, Reg(9), flags={"log2_bytes": 3}),
        command("sel", 11, Reg(9), 1, Reg(8)),
        command("report", 0, 4096, Reg(7)),
        command("while", again),
        command("trap", 3),
        command("halt"),
    ]


def test_disassembly(golden: Callable[[str, str], None]) -> None:
    assembled = assemble(every_form())
    lines = [Line(assembled.offsets[i], "kernel.py", line) for i, line in ((1, 12), (2, 12), (4, 14), (16, 12))]
    lines.append(Line(assembled.offsets[0], "kernel.py", 0, "", "prologue"))
    golden("disassembly.txt", disassemble(assembled.words, lines, PROGRAMS))


def test_every_command_is_shown() -> None:
    shown = {item.mnemonic for item in every_form() if isinstance(item, Command)}
    scalar = {spec.mnemonic for spec in ALL_COMMANDS if spec.flags and spec.flags[0].name == "narrow"}
    jumps = {"brnz", "jump"}  # written as brz is
    assert shown | scalar | jumps == {spec.mnemonic for spec in ALL_COMMANDS}


def test_without_programs() -> None:
    text = disassemble(encode([command("program", 12, 4, 0, 4, 64, 4, flags={"ndim": 1})]))
    assert text == "     0  program @12 size=(4) s0=stream[0 + (4)] s1=stream[64 + (4)]\n"


def test_objects_bring_their_own() -> None:
    @dataclass(frozen=True)
    class Code:
        commands: np.ndarray
        programs: np.ndarray
        sourcemap: tuple[Line, ...]

    code = Code(assemble(every_form()).words, PROGRAMS, (Line(0, "mine.py", 3),))
    assert disassemble(code) == disassemble(code.commands, code.sourcemap, PROGRAMS)
    assert "; mine.py:3 in kernel" in disassemble(code)


@unhurried
@given(st.lists(commands(), max_size=4))
def test_any_commands(stream: list[Command]) -> None:
    assert len(disassemble(encode(stream)).splitlines()) == len(stream)


def test_broken_words() -> None:
    with pytest.raises(LoomError):
        disassemble(np.zeros(3, np.uint64))
    with pytest.raises(LoomError):
        disassemble(encode([command("program", 99, 4, 0, 4, flags={"ndim": 1})]), None, PROGRAMS)


def test_manual_names_everything() -> None:
    text = isa_markdown()
    for spec in ALL_COMMANDS:
        assert f"| {spec.opcode:#04x} | `{spec.mnemonic}`" in text
    for op in ALL_SCE_OPS:
        assert f"| {op.opcode:#06x} | `{op.mnemonic}` |" in text
    assert "\n\n\n" not in text
