"""Objects to write, read and damage."""

from __future__ import annotations

import numpy as np

from loom_core.isa.encoding import Label, Reg, assemble, command
from loom_core.isa.machine import L1_MINI
from loom_core.isa.program import S, SceInstr, SceProgram, StreamSpec, encode_program
from loom_core.objfile import Abi, AbiArg, LoomObject, LoopRecord, SourceEntry, Symbol


def sample(**changes: object) -> LoomObject:
    """An object with something in every section."""
    end, again = Label(), Label()
    program = SceProgram((StreamSpec("load", "f32"), StreamSpec("store", "f32")), (SceInstr("exp.f32", S(1), S(0)),), 0)
    copy = command("copy", 1, Reg(8), 0, 0, 0, 64, 4, 4, 0, 64, flags={"ndim": 1, "log2_bytes": 2}, signal=1)
    stream = assemble(
        [
            command("loop", 8, 0, Reg(3), 256, end),
            copy,
            command("program", 0, 64, 0, 4, 0, 4, flags={"ndim": 1}),
            command("endloop"),
            end,
            again,
            command("while", again),
            command("halt"),
        ]
    )
    fields: dict[str, object] = {
        "commands": stream.words,
        "programs": encode_program(program),
        "constants": bytes(range(200)),
        "abi": Abi(
            (
                AbiArg("x", "buffer", "bf16", 1),
                AbiArg("y", "buffer", "f32", 2, read=False, written=True),
                AbiArg("n", "scalar", "i64", 3),
            ),
            sram_bytes_used=256,
            noalias=((1, 2),),
        ),
        "sourcemap": (
            SourceEntry(stream.offsets[0], "kernel.py", 3, 4, "kernel", "grid"),
            SourceEntry(stream.offsets[1], "kernel.py", 5, 8, "kernel", "ltl.load → x", 31),
        ),
        "loops": (LoopRecord(stream.offsets[0], stream.offsets[4], "i", "0", "n", "256", ("tile<f32, 64>",)),),
        "symbols": (Symbol("table", "constants", 8, 16),),
        "manifest": {"while_budget": 5, "kernel": "exp", "nested": {"b": [1, None, 2.5], "a": True}},
        "machine": L1_MINI,
    }
    return LoomObject(**{**fields, **changes})  # type: ignore[arg-type]


def same(left: LoomObject, right: LoomObject) -> bool:
    """Whether two objects hold the same."""
    names = ("constants", "abi", "sourcemap", "loops", "symbols", "manifest", "machine")
    words = np.array_equal(left.commands, right.commands) and np.array_equal(left.programs, right.programs)
    return words and all(getattr(left, name) == getattr(right, name) for name in names)
