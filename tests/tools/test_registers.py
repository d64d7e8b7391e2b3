"""Register names where loops and branches make a register hold more than one value."""

from __future__ import annotations

import pytest

from loom_core.isa.encoding import Command, Label, Reg, assemble, command, decode_at
from loom_core.isa.machine import L1
from loom_core.objfile import Abi, AbiArg, LoomObject, LoopRecord
from loom_core.tools.registers import RegisterNames, grouped

ABI = Abi((AbiArg("n", "scalar", "i32", 3),))


def held_at_the_end(*commands: Command | Label, loops: tuple[LoopRecord, ...] = ()) -> str:
    """What register 9 is called after these commands."""
    subject = LoomObject(commands=assemble(commands).words, abi=ABI, loops=loops, machine=L1)
    decoded = decode_at(subject.commands)
    names = RegisterNames(subject, decoded)
    for at, found in decoded.items():
        names.step(at, found)
        names.wrote(at, found)
    return names.text(Reg(9))


def test_expressions() -> None:
    assert held_at_the_end(command("mov", 9, 5)) == "5"
    assert held_at_the_end(command("add", 8, Reg(3), 1), command("mul", 9, Reg(8), Reg(0))) == "(n + 1) * grid.x"
    assert held_at_the_end(command("cdiv", 8, Reg(3), 4), command("min", 9, Reg(8), 2)) == "min(cdiv(n, 4), 2)"
    assert held_at_the_end(command("mul", 8, Reg(3), 1), command("add", 9, Reg(8), 0)) == "n"
    assert held_at_the_end(command("lds", 9, 1, 0)) == "r9"
    assert held_at_the_end(command("halt")) == "r9"


def test_long_expressions_are_not_shown() -> None:
    steps = [command("mul", 9, Reg(3), 3), *(command("add", 9, Reg(9), Reg(3)) for _ in range(20))]
    assert held_at_the_end(*steps) == "r9"


def test_names_of_values_that_are_gone() -> None:
    load = command("lds", 8, 1, 0)
    assert held_at_the_end(load, command("add", 9, Reg(8), 1)) == "r8 + 1"
    assert held_at_the_end(load, command("add", 9, Reg(8), 1), command("mov", 8, 3)) == "r9"
    assert held_at_the_end(command("add", 9, Reg(9), 1)) == "r9"


def test_written_in_a_loop() -> None:
    end = Label()
    loop = [command("loop", 8, 0, 4, 1, end), command("add", 9, Reg(8), 1), command("endloop"), end, command("halt")]
    assert held_at_the_end(command("mov", 9, 1), *loop) == "r9", "the loop may have run, or not"
    assert held_at_the_end(*loop, command("mov", 9, Reg(8))) == "r8", "its variable is gone after it"


def test_written_later_in_the_same_loop() -> None:
    end = Label()
    carried = [command("mov", 10, 0), command("loop", 8, 0, 4, 1, end), command("mov", 9, Reg(10))]
    rest = [command("add", 10, Reg(10), 1), command("endloop"), end, command("halt")]
    subject = LoomObject(commands=assemble([*carried, *rest]).words, abi=ABI, machine=L1)
    names = RegisterNames(subject, decoded := decode_at(subject.commands))
    for at, found in list(decoded.items())[:3]:
        names.step(at, found)
        names.wrote(at, found)
    assert names.text(Reg(9)) == "r10", "0 holds in the first iteration alone"


@pytest.mark.parametrize("branch", ["brz", "brnz"])
def test_written_on_one_side_of_a_branch(branch: str) -> None:
    target = Label()
    jump = command(branch, Reg(3), target)
    assert held_at_the_end(command("mov", 9, 1), jump, command("mov", 9, 2), target, command("halt")) == "r9"
    assert held_at_the_end(jump, command("mov", 8, 2), target, command("mov", 9, 7)) == "7"


def test_loop_names() -> None:
    end = Label()
    stream = [command("loop", 8, 0, 4, 1, end), command("mov", 9, Reg(8)), command("endloop"), end, command("halt")]
    subject = LoomObject(commands=assemble(stream).words, abi=ABI, machine=L1)
    for recorded, shown in (("", "i"), ("for r8", "i"), ("k r8", "k"), ("grid y r8", "pid.y")):
        named = LoomObject(
            commands=subject.commands, abi=ABI, machine=L1, loops=(LoopRecord(0, 10, variable=recorded),)
        )
        assert RegisterNames(named, decode_at(named.commands)).variable(0) == shown


def test_grouped() -> None:
    assert grouped("n") == "n"
    assert grouped("n + 1") == "(n + 1)"
    assert grouped("min(n + 1, 2)") == "min(n + 1, 2)"
    assert grouped("(n + 1) * (n + 2)") == "((n + 1) * (n + 2))"
