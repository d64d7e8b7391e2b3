"""The command processor: scalar commands against exact integers, loops and jumps, memory, faults, interruption."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import loom_sim
from loom_core.base.diagnostics import LoomError
from loom_core.isa.commands import ALL_COMMANDS, COMMANDS, NARROW
from loom_core.isa.encoding import Command, Label, Operand, Reg, command
from loom_core.objfile import LoomObject, SourceEntry
from loom_sim import state as words
from loom_sim.engines import has_engine
from loom_sim.errors import (
    BadLaunch,
    CommandLimit,
    OutOfBounds,
    ReadOnlySpace,
    StepZero,
    Trapped,
    UnknownSpace,
    WatchdogExpired,
)
from tests.sim.harness import Buffer, build, launch, prepared

_INT64 = 1 << 64
_LEAST = -(1 << 63)
_EDGES = [
    0,
    1,
    -1,
    2,
    -2,
    7,
    -7,
    63,
    64,
    65,
    -64,
    255,
    1 << 31,
    -(1 << 31),
    (1 << 63) - 1,
    _LEAST,
    _LEAST + 1,
    0x123456789ABCDEF,
]


def wrap(value: int) -> int:
    return (value + (1 << 63)) % _INT64 - (1 << 63)


def unsigned(value: int) -> int:
    return value % _INT64


def divide(a: int, b: int) -> int:
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


_MEANING: dict[str, Callable[[int, int], int]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "div": lambda a, b: -1 if b == 0 else divide(a, b),
    "rem": lambda a, b: a if b == 0 else a - b * divide(a, b),
    "fdiv": lambda a, b: -1 if b == 0 else a // b,
    "cdiv": lambda a, b: -1 if b == 0 else -(-a // b),
    "min": min,
    "max": max,
    "and": lambda a, b: a & b,
    "or": lambda a, b: a | b,
    "xor": lambda a, b: a ^ b,
    "shl": lambda a, b: a << b if 0 <= b < 64 else 0,
    "shr": lambda a, b: a >> b if 0 <= b < 64 else -(a < 0),
    "shru": lambda a, b: unsigned(a) >> b if 0 <= b < 64 else 0,
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "ltu": lambda a, b: unsigned(a) < unsigned(b),
    "leu": lambda a, b: unsigned(a) <= unsigned(b),
}


def results_of(
    commands: Sequence[Command | Label], register: int, count: int = 1, start: dict[int, int] | None = None
) -> list[int]:
    """Values of `count` registers from `register` on, after the commands."""
    stores = [command("sts", 1, 8 * i, Reg(register + i), flags={"log2_bytes": 3}) for i in range(count)]
    (after,) = launch(build([*commands, *stores], buffers=1), [np.zeros(count, np.int64)], start)
    return [int(value) for value in after]


@pytest.mark.parametrize("mnemonic", sorted(_MEANING))
def test_two_operand_commands(mnemonic: str) -> None:
    pairs = list(itertools.product(_EDGES, _EDGES))
    expected = [wrap(int(_MEANING[mnemonic](a, b))) for a, b in pairs]
    # Immediates and registers, in all four combinations.
    for style in range(4):
        commands: list[Command] = []
        for i, (a, b) in enumerate(pairs):
            commands += [command("mov", 10, a), command("mov", 11, b)]
            operands: tuple[Operand, ...] = (Reg(10) if style & 1 else a, Reg(11) if style & 2 else b)
            commands += [command(mnemonic, 12, *operands), command("sts", 1, 8 * i, Reg(12), flags={"log2_bytes": 3})]
        (after,) = launch(build(commands, buffers=1), [np.zeros(len(pairs), np.int64)])
        assert after.tolist() == expected


def test_mov_and_sel() -> None:
    commands = [
        command("mov", 10, 42),
        command("sel", 11, 0, 5, 6),
        command("sel", 12, Reg(10), Reg(10), 6),
        command("mov", 13, Reg(12)),
        command("sel", 14, -1, 8, Reg(11)),
    ]
    assert results_of(commands, 10, 5) == [42, 6, 42, 42, 8]


@pytest.mark.parametrize("code", range(8))
def test_narrowing(code: int) -> None:
    name = NARROW.values[code]
    values = [0, 1, -1, 127, 128, -128, -129, 255, 256, 32767, 32768, 65535, 1 << 31, (1 << 32) - 1, 1 << 40, _LEAST]

    def narrow(value: int) -> int:
        if name == "bool":
            return int(value != 0)
        bits = int(name[1:])
        value %= 1 << bits
        return value - (1 << bits) if name[0] == "i" and value >> (bits - 1) else value

    commands: list[Command] = []
    for i, value in enumerate(values):
        commands.append(command("add", 12, value, 0, flags={"narrow": code}))
        commands.append(command("sts", 1, 8 * i, Reg(12), flags={"log2_bytes": 3}))
    (after,) = launch(build(commands, buffers=1), [np.zeros(len(values), np.int64)])
    assert after.tolist() == [narrow(value) for value in values]


@pytest.mark.parametrize(
    ("lo", "hi", "step", "values"),
    [
        (0, 5, 1, [0, 1, 2, 3, 4]),
        (0, 5, 2, [0, 2, 4]),
        (5, 0, -2, [5, 3, 1]),
        (5, 5, 1, []),
        (6, 5, 1, []),
        (0, 5, -1, []),
        ((1 << 63) - 3, (1 << 63) - 1, 1, [(1 << 63) - 3, (1 << 63) - 2]),
        ((1 << 63) - 3, (1 << 63) - 1, 5, [(1 << 63) - 3]),  # the counter would leave int64
        (_LEAST + 3, _LEAST, -5, [_LEAST + 3]),
        (0, (1 << 63) - 1, (1 << 62), [0, 1 << 62]),
    ],
)
@pytest.mark.parametrize("in_registers", [False, True])
def test_counted_loops(lo: int, hi: int, step: int, values: list[int], in_registers: bool) -> None:
    end = Label()
    bounds: tuple[Operand, ...] = (Reg(1), Reg(2), Reg(3)) if in_registers else (lo, hi, step)
    commands = [
        command("mov", 20, 0),
        command("loop", 10, *bounds, end),
        command("sts", 1, Reg(20), Reg(10), flags={"log2_bytes": 3}),
        command("add", 20, Reg(20), 8),
        command("mov", 10, 99),  # writing the variable does not change the count
        command("mov", 2, 0),  # nor do the bounds, which are latched
        command("endloop"),
        end,
    ]
    (after,) = launch(build(commands, buffers=1), [np.full(8, -1)], {1: lo, 2: hi, 3: step})
    assert after.tolist() == values + [-1] * (8 - len(values))


def test_nested_loops_to_the_full_depth() -> None:
    ends = [Label() for _ in range(16)]
    commands: list[Command | Label] = [command("loop", 100 + i, 0, 2, 1, end) for i, end in enumerate(ends)]
    commands.append(command("add", 10, Reg(10), 1))
    for end in reversed(ends):
        commands += [command("endloop"), end]
    assert results_of(commands, 10) == [1 << 16]


def test_jumps() -> None:
    skipped, taken, out = Label(), Label(), Label()
    commands = [
        command("brz", 0, taken),
        command("trap", 1),
        taken,
        command("brnz", Reg(9), skipped),
        command("add", 10, Reg(10), 5),
        skipped,
        command("jump", out),
        command("trap", 2),
        out,
    ]
    assert results_of(commands, 10) == [5]
    assert results_of(commands, 10, start={9: 7}) == [0]


def countdown(limit: int) -> list[Command | Label]:
    start, done = Label(), Label()
    return [
        command("mov", 10, limit),
        start,
        command("sub", 10, Reg(10), 1),
        command("brz", Reg(10), done),
        command("while", start),
        done,
    ]


def test_while_runs_under_its_budget() -> None:
    obj = build(countdown(100), manifest={"while_budget": 99})
    for _ in range(3):  # the budget is a run's
        launch(obj)
    with pytest.raises(WatchdogExpired, match="98 backward jumps"):
        launch(build(countdown(100), manifest={"while_budget": 98}))
    with pytest.raises(BadLaunch, match="while_budget"):
        loom_sim.load(build(countdown(100)))


@pytest.mark.parametrize("log2", range(4))
def test_scalar_loads_and_stores(log2: int) -> None:
    size, memory = 1 << log2, np.arange(0x80, 0xC0, dtype=np.uint8)
    commands: list[Command] = []
    for i, offset in enumerate((0, 3, 64 - size)):
        for signed in (0, 1):
            commands.append(command("lds", 10, 1, offset, flags={"log2_bytes": log2, "signed": signed}))
            commands.append(command("sts", 2, 16 * i + 8 * signed, Reg(10), flags={"log2_bytes": 3}))
    commands.append(command("sts", 0, 5, -2, flags={"log2_bytes": log2}))
    commands.append(command("lds", 11, 0, Reg(9), flags={"log2_bytes": log2, "signed": 1}))
    commands.append(command("sts", 2, 48, Reg(11), flags={"log2_bytes": 3}))
    _, after = launch(build(commands, buffers=2), [memory, np.zeros(7, np.int64)], {9: 5})
    expected = []
    for offset in (0, 3, 64 - size):
        for signed in (False, True):
            expected.append(wrap(int.from_bytes(memory[offset : offset + size].tobytes(), "little", signed=signed)))
    assert after.tolist() == [*expected, -2]


def test_narrow_stores_leave_their_neighbours() -> None:
    (after,) = launch(build([command("sts", 1, 3, -1, flags={"log2_bytes": 0})], buffers=1), [np.zeros(8, np.uint8)])
    assert after.tolist() == [0, 0, 0, 255, 0, 0, 0, 0]


@pytest.mark.parametrize("offset", [-1, 61, 64, _LEAST, (1 << 63) - 1, (1 << 63) - 4])
@pytest.mark.parametrize("mnemonic", ["lds", "sts"])
def test_scalar_accesses_are_bounds_checked(mnemonic: str, offset: int) -> None:
    operands = (10, 1, Reg(3)) if mnemonic == "lds" else (1, Reg(3), 0)
    with pytest.raises(OutOfBounds, match=r"buffer 'b0', which holds bytes 0 to 63"):
        launch(
            build([command(mnemonic, *operands, flags={"log2_bytes": 2})], buffers=1),
            [np.zeros(64, np.uint8)],
            {3: offset},
        )


@pytest.mark.parametrize("space", [2, -1, 1 << 40, _LEAST])
def test_unknown_spaces_are_faults(space: int) -> None:
    with pytest.raises(UnknownSpace, match="spaces 0"):
        launch(build([command("lds", 10, Reg(3), 0)], buffers=1), [np.zeros(64, np.uint8)], {3: space})


def test_undeclared_writes_are_faults() -> None:
    store = build([command("sts", Reg(3), 0, 1)], buffers=1, read_only=[0], constants=b"\1" * 64)
    with pytest.raises(ReadOnlySpace, match="'b0'"):
        launch(store, [np.zeros(64, np.uint8)], {3: 1})
    with pytest.raises(ReadOnlySpace, match="constants"):
        launch(store, [np.zeros(64, np.uint8)], {3: 2})
    launch(store, [np.zeros(64, np.uint8)], {3: 0})
    assert store.constants == b"\1" * 64


def test_constants_are_a_space() -> None:
    commands = [
        command("lds", 10, 2, 1, flags={"log2_bytes": 0}),
        command("sts", 1, 0, Reg(10), flags={"log2_bytes": 3}),
    ]
    (after,) = launch(build(commands, buffers=1, constants=bytes([3, 200, 5])), [np.zeros(1, np.int64)])
    assert after.tolist() == [200]


def test_registers_start_as_given_and_zero_else() -> None:
    program = loom_sim.load(
        build([command("sts", 1, 0, Reg(3), flags={"log2_bytes": 3}), command("mov", 3, 5)], buffers=1)
    )
    out = Buffer(np.zeros(1, np.int64))
    for given, seen in (({3: 7}, 7), ({}, 0), ({3: (1 << 64) - 1}, -1), ([0, 0, 0, 4], 4)):
        program.run([out.binding], given)
        assert out.array[0] == seen


def test_step_zero_and_traps() -> None:
    end = Label()
    with pytest.raises(StepZero, match="r10"):
        launch(build([command("loop", 10, 0, 5, Reg(3), end), command("endloop"), end]))
    with pytest.raises(Trapped, match="trap -7"):
        launch(build([command("trap", Reg(3))]), registers={3: -7})


def test_faults_point_at_the_source_line() -> None:
    obj = build([command("mov", 5, 1), command("trap", 3)])
    entries = (SourceEntry(0, "kernel.py", 10, 4, "kernel"), SourceEntry(3, "kernel.py", 12, 8, "kernel"))
    mapped = LoomObject(obj.commands, obj.programs, abi=obj.abi, sourcemap=entries, machine=obj.machine)
    with pytest.raises(Trapped) as caught:
        launch(mapped)
    assert str(caught.value).startswith("kernel.py:12:9: error[LOOM-S106]")
    assert "command 1 of the run, at word 4" in str(caught.value)


def test_every_command_has_an_engine_or_is_scalar() -> None:
    assert [spec.mnemonic for spec in ALL_COMMANDS if not has_engine(spec.mnemonic)] == []
    assert set(_MEANING) == {
        name for name, spec in COMMANDS.items() if spec.flags == (NARROW,) and name not in ("mov", "sel")
    }


def endless() -> LoomObject:
    end = Label()
    return build(
        [command("loop", 10, 0, 1 << 62, 1, end), command("add", 11, Reg(11), Reg(10)), command("endloop"), end]
    )


def test_a_run_can_be_given_up_by_count() -> None:
    with pytest.raises(CommandLimit):
        loom_sim.load(endless()).run([], {}, command_limit=10_000)


def test_a_signal_interrupts_a_run() -> None:
    signal = pytest.importorskip("signal")
    if not hasattr(signal, "setitimer"):
        pytest.skip("no interval timers here")

    def interrupt(*_: Any) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    program = loom_sim.load(endless())
    launched = program.prepare()
    signal.setitimer(signal.ITIMER_REAL, 0.2)
    try:
        with pytest.raises(KeyboardInterrupt):
            launched.go()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert launched.state[words.EXECUTED] > 1000
    # The thread's core is free again, and the same launch starts anew.
    with pytest.raises(CommandLimit):
        launched.go(command_limit=10)


def test_pauses_do_not_change_results() -> None:
    ends = Label(), Label()
    commands = [
        command("loop", 10, 0, 30, 1, ends[0]),
        command("loop", 11, 0, 20, 1, ends[1]),
        command("mul", 12, Reg(12), 31),
        command("add", 12, Reg(12), Reg(11)),
        command("sts", 0, Reg(11), Reg(12)),
        command("endloop"),
        ends[1],
        command("endloop"),
        ends[0],
        command("sts", 1, 0, Reg(12), flags={"log2_bytes": 3}),
    ]
    program = loom_sim.load(build(commands, buffers=1))
    results = []
    for work in (1 << 20, 1, 2, 7, 300):
        out = Buffer(np.zeros(1, np.int64))
        launched = prepared(program, [out])
        launched.state[words.SLICE] = work
        launched.go()
        results.append((int(out.array[0]), int(launched.state[words.EXECUTED])))
    assert len(set(results)) == 1


def test_faults_are_loom_errors() -> None:
    with pytest.raises(LoomError) as caught:
        launch(build([command("trap", 1)]))
    assert caught.value.diagnostics[0].code == "LOOM-S106"
