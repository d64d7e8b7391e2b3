"""A small object, assembled by hand, for the tests of the tools."""

from __future__ import annotations

from loom_core.isa.encoding import Label, Reg, Wait, assemble, command
from loom_core.isa.machine import L1_MINI
from loom_core.isa.program import S, SceInstr, SceProgram, StreamSpec, encode_program
from loom_core.objfile import Abi, AbiArg, LoomObject, SourceEntry

BLOCK = 1024
GRID_X, N, FACTOR, PID, OFFSET, LEFT, COUNT = 0, 3, 4, 8, 9, 10, 11


def scale_object(bound: str = "grid") -> LoomObject:
    """y[i] = x[i] * factor for i < n, in blocks of 1024; the loop runs over the grid, or over the "blocks"."""
    program = SceProgram(
        (StreamSpec("load", "f32"), StreamSpec("scalar", "f32"), StreamSpec("store", "f32")),
        (SceInstr("mul.f32", S(2), S(0), S(1)),),
        registers=0,
    )
    begin, end = Label("begin"), Label("end")
    head = [] if bound == "grid" else [command("add", COUNT, Reg(N), 1), command("cdiv", COUNT + 1, Reg(COUNT), BLOCK)]
    hi = Reg(GRID_X) if bound == "grid" else Reg(COUNT + 1)
    box = (BLOCK, 4, 4, 0, Reg(LEFT))
    body = [
        command("mul", OFFSET, Reg(PID), BLOCK * 4),
        command("mul", LEFT, Reg(PID), BLOCK),
        command("sub", LEFT, Reg(N), Reg(LEFT)),
        command("copy", 1, Reg(OFFSET), 0, 0, 0, *box, flags={"ndim": 1, "log2_bytes": 2}, waits=(Wait(3),), signal=1),
        command(
            "program",
            *(0, BLOCK, 0, 4, Reg(FACTOR), 0, BLOCK * 4, 4),
            flags={"ndim": 1},
            waits=(Wait(1), Wait(3)),
            signal=2,
        ),
        command(
            "copy",
            *(0, BLOCK * 4, 2, Reg(OFFSET), 0, *box),
            flags={"ndim": 1, "log2_bytes": 2, "skip": 1},
            waits=(Wait(2),),
            signal=3,
        ),
    ]
    loop = [begin, command("loop", PID, 0, hi, 1, end), *body, command("endloop"), end, command("halt")]
    assembled = assemble([*head, *loop])
    first = len(head) + 4
    lines = zip(assembled.offsets[first : first + 3], (7, 8, 9), strict=True)
    return LoomObject(
        commands=assembled.words,
        programs=encode_program(program),
        abi=Abi(
            (
                AbiArg("x", "buffer", "f32", 1),
                AbiArg("y", "buffer", "f32", 2, read=False, written=True),
                AbiArg("n", "scalar", "i32", N),
                AbiArg("factor", "scalar", "f32", FACTOR),
            ),
            sram_bytes_used=2 * BLOCK * 4,
        ),
        sourcemap=tuple(SourceEntry(word, "scale.py", line) for word, line in lines),
        manifest={"kernel": "scale"},
        machine=L1_MINI,
    )
