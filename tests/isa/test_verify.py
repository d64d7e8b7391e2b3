"""Structural checks of streams."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from loom_core.base.diagnostics import LoomError
from loom_core.isa.encoding import Command, Label, Operand, Reg, Wait, command, encode
from loom_core.isa.machine import L1
from loom_core.isa.program import S, SceInstr, SceProgram, StreamSpec, encode_program
from loom_core.isa.verify import VerifiedStream, verify_stream
from tests.isa.strategies import commands, unhurried

PLAIN = encode_program(
    SceProgram((StreamSpec("load", "f32"), StreamSpec("store", "f32")), (SceInstr("exp.f32", S(1), S(0)),), 0)
)
SUM = encode_program(
    SceProgram((StreamSpec("load", "f32"), StreamSpec("store", "f32")), (SceInstr("reduce_sum.f32", S(1), S(0)),), 0)
)
DRAIN = encode_program(
    SceProgram((StreamSpec("load", "f32", True), StreamSpec("store", "f32")), (SceInstr("mov.f32", S(1), S(0)),), 0)
)
PROGRAMS = np.concatenate([PLAIN, SUM, DRAIN])
AT_SUM, AT_DRAIN = len(PLAIN), len(PLAIN) + len(SUM)
HALT = command("halt")


def verify(*stream: Command | Label, spaces: int | None = None) -> VerifiedStream:
    return verify_stream(encode(stream), PROGRAMS, L1, spaces=spaces)


def run(offset: int, ndim: int = 1, fold: int = 0, streams: int = 2, drain: int = 0) -> Command:
    operands = (offset, *(8,) * ndim, *(0, *(4,) * ndim) * streams)
    return command("program", *operands, flags={"ndim": ndim, "fold": fold, "drain": drain})


def copy(*operands: Operand, queue: int = 1) -> Command:
    return command("copy", *operands, 0, 1, 4, 4, 0, 1, flags={"ndim": 1, "log2_bytes": 2}, queue=queue)


def test_sound_stream() -> None:
    outer_end, inner_end, skip, head = Label(), Label(), Label(), Label()
    found = verify(
        command("loop", 7, 0, Reg(0), 1, outer_end),
        head,
        command("brz", Reg(3), skip),
        command("loop", 8, 10, 0, -1, inner_end),
        run(0),
        run(AT_SUM, ndim=2, fold=1),
        command("endloop"),
        inner_end,
        skip,
        run(AT_DRAIN, drain=1),
        command("brnz", Reg(3), head2 := Label()),
        command("while", head),
        head2,
        command("endloop"),
        outer_end,
        HALT,
    )
    assert list(found.programs) == [0, AT_SUM, AT_DRAIN]
    assert found.programs[AT_SUM][1].folds
    assert found.uses_while
    assert [one.mnemonic for one in found.commands.values()].count("endloop") == 2


def test_halt_inside_a_loop_and_continue() -> None:
    end, last = Label(), Label()
    found = verify(
        command("loop", 7, 0, 4, 1, end),
        command("brz", Reg(7), last),
        HALT,
        last,
        command("endloop"),
        end,
        HALT,
    )
    assert not found.uses_while


def loop(end: Label, register: int = 7) -> Command:
    return command("loop", register, 0, 4, 1, end)


def nest(depth: int) -> list[Command | Label]:
    ends = [Label() for _ in range(depth)]
    closing: list[Command | Label] = []
    for end in reversed(ends):
        closing += [command("endloop"), end]
    return [*map(loop, ends), *closing, HALT]


def test_deepest_nest() -> None:
    verify(*nest(16))
    with pytest.raises(LoomError, match="deeper than 16"):
        verify(*nest(17))


def in_loop(*body: Command | Label, before: tuple[Command | Label, ...] = ()) -> list[Command | Label]:
    end = Label()
    return [*before, loop(end), *body, command("endloop"), end, HALT]


OUT, IN, END, BACK = Label("out"), Label("in"), Label("end"), Label("back")


@pytest.mark.parametrize(
    ("stream", "reason"),
    [
        ([], "does not end in halt"),
        ([command("mov", 3, 4)], "does not end in halt"),
        ([command("endloop"), HALT], "closes no loop"),
        ([loop(END), END, HALT], "has no endloop"),
        ([loop(END), END, command("endloop"), HALT], "not the word after"),
        ([command("loop", 7, 0, 4, 1, 3), command("endloop"), HALT], "not the word after"),
        ([command("jump", 1), HALT], "not the start of a command"),
        ([command("jump", -5), HALT], "not the start of a command"),
        ([command("jump", 1 << 40), HALT], "not the start of a command"),
        ([BACK, command("jump", BACK), HALT], "not forward"),
        ([HALT, BACK, command("brz", Reg(3), BACK), HALT], "not forward"),
        ([command("while", OUT), OUT, HALT], "not backward"),
        (in_loop(command("jump", OUT)) + [OUT, HALT], "another loop body"),
        (in_loop(IN, HALT, before=(command("jump", IN),)), "another loop body"),
        (in_loop(command("while", OUT), before=(OUT, command("mov", 3, 4))), "another loop body"),
        ([command("mov", 256 - 1, Reg(255)), run(1 << 30), HALT], "programs section"),
        ([run(3), HALT], "SCE program"),
        ([run(0, streams=3), HALT], "3 streams"),
        ([run(0, fold=1), HALT], "no reduction"),
        ([run(AT_SUM), HALT], "a reduction"),
        ([run(AT_SUM, ndim=1, fold=2), HALT], "folds 2 of 1"),
        ([run(AT_DRAIN), HALT], "drain"),
        ([command("accfill", 0, 1, 1, 0, signal=1024), HALT], "token 1024"),
        ([command("accfill", 0, 1, 1, 0, waits=(Wait(1024),)), HALT], "token 1024"),
        ([copy(5, 0, 0, 0), HALT], "space 5"),
        ([copy(0, 0, 5, 0), HALT], "space 5"),
    ],
)
def test_refused(stream: list[Command | Label], reason: str) -> None:
    with pytest.raises(LoomError, match=reason):
        verify(*stream, spaces=4)


def test_smaller_machines_have_less() -> None:
    small = dataclasses.replace(L1, acp_registers=16, dma_queues=2, loop_depth=1, sce_registers=1)
    for one in (command("mov", 16, 0), command("mov", 3, Reg(16)), copy(0, 0, Reg(16), 0), copy(0, 0, 0, 0, queue=3)):
        verify(one, HALT)
        with pytest.raises(LoomError, match="the machine has"):
            verify_stream(encode([one, HALT]), PROGRAMS, small)
    with pytest.raises(LoomError, match="deeper than 1"):
        verify_stream(encode(nest(2)), PROGRAMS, small)
    two = SceProgram((StreamSpec("store", "f32"), StreamSpec("load", "f32")), (SceInstr("exp.f32", S(0), S(1)),), 2)
    with pytest.raises(LoomError, match="2 registers"):
        verify_stream(encode([run(0), HALT]), encode_program(two), small)


def test_a_register_is_no_program_offset() -> None:
    words = encode([run(0), HALT])
    words[1] = 1
    with pytest.raises(LoomError, match="immediate"):
        verify_stream(words, PROGRAMS, L1)


@unhurried
@given(st.lists(commands(), max_size=5))
def test_any_stream_verifies_or_is_refused(stream: list[Command]) -> None:
    try:
        found = verify(*stream, HALT)
    except LoomError:
        return
    assert list(found.commands.values()) == [*stream, HALT]
