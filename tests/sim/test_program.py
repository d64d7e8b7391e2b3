"""Loading and launching: what runs share, threads, forks, wrong launches, and the cost of a start."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import loom_sim
from loom_core.isa.encoding import Label, Reg, command
from loom_core.isa.errors import InvalidCommand
from loom_core.isa.machine import L1, MachineConfig
from loom_core.isa.program import S, SceInstr, SceProgram, StreamSpec
from loom_core.objfile import LoomObject
from loom_sim import jit
from loom_sim.errors import BadLaunch, Trapped, UnsupportedMachine
from loom_sim.program import Program
from tests.sim.harness import Buffer, build, chain, copy, launch, prepared, sce

Array = NDArray[Any]

_ROOT = Path(__file__).resolve().parents[2]
BLOCK = 1024


def vector_add() -> LoomObject:
    """b2 = b0 + b1 over r3 blocks, a copy in for each operand, a program, a copy out."""
    end = Label()
    commands = [
        command("loop", 20, 0, Reg(3), 1, end),
        command("mul", 21, Reg(20), BLOCK * 4),
        copy((1, Reg(21)), (0, 0), [(BLOCK, 4, 4)]),
        copy((2, Reg(21)), (0, 4096), [(BLOCK, 4, 4)]),
        sce(0, (BLOCK,), ((0, 4), (4096, 4), (8192, 4))),
        copy((0, 8192), (3, Reg(21)), [(BLOCK, 4, 4)]),
        command("endloop"),
        end,
    ]
    return build(commands, [chain("add.f32", ["f32", "f32"], "f32")], 3, machine=L1)


def operands(blocks: int, seed: int = 0) -> list[Array]:
    rng = np.random.default_rng(seed)
    pair = [rng.standard_normal(blocks * BLOCK).astype(np.float32) for _ in range(2)]
    return [*pair, np.zeros(blocks * BLOCK, np.float32)]


def test_vector_add() -> None:
    a, b, c = launch(vector_add(), operands(5), {3: 5})
    assert (c == a + b).all()


def test_softmax_of_rows() -> None:
    rows, row = 6, 1000
    load, store, half = StreamSpec("load", "f32"), StreamSpec("store", "f32"), BLOCK * 4
    programs = [
        SceProgram((load, store), (SceInstr("reduce_max.f32", S(1), S(0)),), 0),
        chain("sub.f32", ["f32", "f32"], "f32"),
        chain("exp.f32", ["f32"], "f32"),
        SceProgram((load, store), (SceInstr("reduce_sum.f32", S(1), S(0)),), 0),
        chain("div.f32", ["f32", "f32"], "f32"),
    ]
    at = [0]
    for program in programs:
        at.append(at[-1] + 1 + len(program.streams) + len(program.instructions))
    end = Label()
    commands = [
        command("loop", 20, 0, rows, 1, end),
        command("mul", 21, Reg(20), row * 4),
        copy((1, Reg(21)), (0, 0), [(row, 4, 4)]),
        sce(at[0], (row,), ((0, 4), (half, 0)), fold=1),
        sce(at[1], (row,), ((0, 4), (half, 0), (0, 4))),
        sce(at[2], (row,), ((0, 4), (0, 4))),
        sce(at[3], (row,), ((0, 4), (half, 0)), fold=1),
        sce(at[4], (row,), ((0, 4), (half, 0), (0, 4))),
        copy((0, 0), (2, Reg(21)), [(row, 4, 4)]),
        command("endloop"),
        end,
    ]
    x = np.random.default_rng(0).standard_normal((rows, row)).astype(np.float32) * 5
    _, got = launch(build(commands, programs, 2), [x, np.zeros_like(x)])
    exact = np.exp(x.astype(np.float64) - x.max(1, keepdims=True))
    assert np.allclose(got, exact / exact.sum(1, keepdims=True), rtol=2e-6, atol=0)


def test_threads_share_a_program() -> None:
    program, problems = loom_sim.load(vector_add()), list[str]()

    def work(seed: int) -> None:
        for turn in range(30):
            buffers = [Buffer(array) for array in operands(4, seed * 100 + turn)]
            program.run([buffer.binding for buffer in buffers], {3: 4})
            a, b, c = (buffer.array for buffer in buffers)
            if not (c == a + b).all():
                problems.append(f"thread {seed}, turn {turn}")

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert problems == []


def test_the_interpreter_lock_is_free_while_commands_run() -> None:
    end = Label()
    slow = build(
        [command("loop", 10, 0, 30_000_000, 1, end), command("add", 11, Reg(11), Reg(10)), command("endloop"), end]
    )
    program, ticks, done = loom_sim.load(slow), 0, threading.Event()
    program.run([])  # engines are there

    def work() -> None:
        program.run([])
        done.set()

    thread = threading.Thread(target=work)
    thread.start()
    while not done.wait(0.001):
        ticks += 1
    thread.join()
    assert ticks > 5


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_child_can_run() -> None:
    program = loom_sim.load(vector_add())
    buffers = [Buffer(array) for array in operands(2)]
    launched = prepared(program, buffers, {3: 2})
    launched.go()
    child = os.fork()
    if child == 0:  # pragma: no cover - another process
        status = 1
        try:
            buffers[2].array[...] = 0
            launched.go()
            fresh = [Buffer(array) for array in operands(2, 9)]
            program.run([buffer.binding for buffer in fresh], {3: 2})
            good = (buffers[2].array == buffers[0].array + buffers[1].array).all()
            status = 0 if good and (fresh[2].array == fresh[0].array + fresh[1].array).all() else 2
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    launched.go()


def test_a_launch_works_again_after_a_fault() -> None:
    skip = Label()
    program = loom_sim.load(build([command("brz", Reg(3), skip), command("trap", 1), skip]))
    launched = program.prepare()
    for value in (0, 1, 0, 1):
        launched.set_register(3, value)
        if value:
            with pytest.raises(Trapped):
                launched.go()
        else:
            launched.go()


def test_sram_and_scratch_are_not_shared_between_nested_runs() -> None:
    """A run started by a signal handler in the middle of another must leave the other's SRAM alone."""
    signal = pytest.importorskip("signal")
    if not hasattr(signal, "setitimer"):
        pytest.skip("no interval timers here")
    end = Label()
    outer = [
        command("sts", 0, 0, 77, flags={"log2_bytes": 3}),
        command("loop", 10, 0, 60_000_000, 1, end),
        command("endloop"),
        end,
        command("lds", 11, 0, 0, flags={"log2_bytes": 3}),
        command("sts", 1, 0, Reg(11), flags={"log2_bytes": 3}),
    ]
    inner = loom_sim.load(build([command("sts", 0, 0, 5, flags={"log2_bytes": 3})]))
    nested = []

    def handler(*_: Any) -> None:
        inner.run([])
        nested.append(True)

    program, out = loom_sim.load(build(outer, buffers=1)), Buffer(np.zeros(1, np.int64))
    inner.run([])
    before = signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, 0.03)
    try:
        program.run([out.binding])
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert nested
    assert out.array[0] == 77


@pytest.mark.parametrize(
    ("bindings", "registers", "reason"),
    [
        ([], {}, "0 bindings for 1 buffers"),
        ([(0, 0, 0)] * 2, {}, "2 bindings"),
        ([(0, 5, 4)], {}, "range 5 to 4"),
        ([(0, 0, 0)], {256: 1}, "register 256"),
        ([(0, 0, 0)], {-1: 1}, "register -1"),
    ],
)
def test_wrong_launches(bindings: Any, registers: Any, reason: str) -> None:
    with pytest.raises(BadLaunch, match=reason):
        loom_sim.load(build([], buffers=1)).run(bindings, registers)


def test_machines_that_the_engines_are_not_written_for_are_refused() -> None:
    odd = MachineConfig.from_dict({**L1.as_dict(), "name": "odd", "panel_rows": 16})
    with pytest.raises(UnsupportedMachine, match=r"machine odd: panel_rows is 16, it supports 24"):
        loom_sim.load(build([], machine=odd))


def test_broken_streams_are_refused_at_loading() -> None:
    obj = build([command("mov", 5, 1)])
    words = obj.commands.copy()
    words[0] = (int(words[0]) & ~0xFF) | 0x7F
    with pytest.raises(Exception, match="0x7f is not a command"):
        loom_sim.load(LoomObject(words, machine=obj.machine))
    with pytest.raises(InvalidCommand, match="space 3"):
        loom_sim.load(build([copy((3, 0), (0, 0), [(1, 1, 1)], 1)], buffers=1))


def test_only_engines_that_the_object_names_are_made(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    original = jit.engine_address
    monkeypatch.setattr(jit, "engine_address", lambda name, *rest: asked.append(name) or original(name, *rest))
    program = loom_sim.load(vector_add())
    assert asked == []
    program.prepare()
    assert sorted(set(asked)) == ["add.f32", "copy.32", "interpreter", "program"]


def run_process(code: str) -> str:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join((str(_ROOT / "src"), str(_ROOT)))}
    finished = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=120, check=False
    )
    assert finished.returncode == 0, finished.stderr
    return finished.stdout.strip()


def test_importing_the_package_is_cheap() -> None:
    assert (
        run_process("import sys, loom_sim; print(any(m in sys.modules for m in ('numba', 'numpy', 'llvmlite')))")
        == "False"
    )


def test_a_second_process_compiles_nothing() -> None:
    code = (
        "import numpy as np, loom_sim\n"
        "from loom_sim import jit\n"
        "from tests.sim.test_program import operands, vector_add\n"
        "program = loom_sim.load(vector_add()); arrays = operands(1)\n"
        "program.run([(a.ctypes.data, 0, a.nbytes) for a in arrays], {3: 1})\n"
        "assert (arrays[2] == arrays[0] + arrays[1]).all()\n"
        "print(len(jit.stats.compiled), len(jit.stats.loaded))\n"
    )
    run_process(code)
    assert run_process(code) == "0 4"


def test_locations_come_from_the_source_map() -> None:
    program = Program(build([command("mov", 5, 1)]))
    assert not program.location_of(0).known
