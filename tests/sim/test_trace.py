"""The cycle model against figures worked out by hand and against a model in plain Python."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import loom
import loom_sim
import ltl
from loom_core.isa.commands import ALL_COMMANDS
from loom_core.isa.cost import COST_FUNCTIONS, command_cost, cost_constants
from loom_core.isa.encoding import Command, Label, Reg, Wait, command
from loom_core.isa.machine import L1, L1_MINI, MachineConfig
from loom_core.isa.sce import SCE_OPS
from loom_core.objfile import LoomObject
from loom_sim.errors import OutOfBounds
from loom_sim.timeline import RING
from loom_sim.trace import Trace
from tests.sim.harness import Buffer, build, chain, copy, sce
from tests.sim.test_program import operands, vector_add

# Round numbers: 64 bytes a cycle from HBM, which is 100 cycles away.
PLAIN = MachineConfig.from_dict(
    {
        **L1_MINI.as_dict(), "name": "plain", "hbm_bytes_per_s": 64_000_000_000, "hbm_latency": 100,
        "acp_issue_cycles": 4, "acp_scalar_cycles": 1, "acp_memory_cycles": 8, "dma_descriptor_cycles": 8,
        "dma_min_burst": 64,
    }
)  # fmt: skip


def trace(
    commands: Sequence[Command | Label], *, machine: MachineConfig = PLAIN, bytes_: int = 1 << 17, **more: Any
) -> Trace:
    buffer = Buffer(np.zeros(bytes_, np.uint8))
    return loom_sim.load(build(commands, buffers=1, machine=machine)).trace([buffer.binding], **more)


def read(count: int, queue: int = 1, **more: Any) -> Command:
    return copy((1, 0), (0, 0), [(count, 1, 1)], 1, queue=queue, **more)


def test_scalar_commands_take_their_cycles() -> None:
    result = trace([command("mov", 5, 1), command("add", 5, Reg(5), 1), command("jump", end := Label()), end])
    assert (result.cycles, result.commands, result.queues["ACP"].busy) == (3, 3, 3)
    assert result.events_total == 0


def test_one_copy() -> None:
    # Issued at 4; 8 for the descriptor, 6400 / 64 for the bytes, 100 for the way.
    result = trace([read(6400)])
    assert result.cycles == 4 + 8 + 100 + 100
    assert result.queues["DMA0"].busy == 108
    assert (result.hbm_bytes, result.sram_bytes) == (6400, 6400)
    (event,) = result.events.tolist()
    assert event == (0, 1, 4, 4, 112, 212, 6400, 6400, 0)


def test_queues_share_the_bandwidth() -> None:
    # Both need 100 cycles of HBM: the second gets it when the first is through, though its queue is free.
    result = trace([read(6400, queue=1), read(6400, queue=2)])
    assert result.events["freed"].tolist() == [112, 212]
    assert result.queues["DMA1"].busy == 212 - 8
    # Work in SRAM is not slowed down.
    inside = copy((0, 0), (0, 8192), [(2048, 1, 1)], 1, queue=2)
    alone, together = trace([inside]), trace([read(6400), inside])
    assert together.queues["DMA1"].busy == alone.queues["DMA1"].busy


def test_bandwidth_that_was_left_free_is_used() -> None:
    # The first transfer waits for a token until late; the second comes later in issue order and earlier in time.
    late = [
        copy((0, 0), (0, 65536), [(65536, 1, 1)], 1, queue=3, signal=5),
        read(6400, queue=1, waits=[Wait(5)]),
        read(6400, queue=2),
    ]
    result = trace(late)
    assert result.events["started"][1] == result.events["done"][0]
    assert result.events["freed"][2] == 12 + 8 + 100


def test_a_wait_holds_the_queue() -> None:
    result = trace([read(6400, signal=3), copy((0, 0), (0, 8192), [(64, 1, 1)], 1, queue=2, waits=[Wait(3)])])
    first, second = result.events
    assert second["started"] == first["done"] == 212
    assert result.queues["DMA1"].waiting == 212 - 8
    assert result.queues["DMA1"].empty == result.cycles - result.queues["DMA1"].waiting - result.queues["DMA1"].busy


def test_a_lag_waits_for_earlier_signals_only() -> None:
    signals = [read(6400, signal=3) for _ in range(3)]
    done = trace(signals).events["done"].tolist()
    for lag, expected in ((0, done[2]), (1, done[1]), (2, done[0]), (3, 16)):
        last = copy((0, 0), (0, 8192), [(64, 1, 1)], 1, queue=2, waits=[Wait(3, lag)])
        assert trace([*signals, last]).events["started"][3] == expected
    # More signals than the model keeps: it waits for the oldest that it knows.
    many = [copy((0, 0), (0, 65536), [(65536, 1, 1)], 1, signal=3) for _ in range(40)]
    last = copy((0, 0), (0, 8192), [(64, 1, 1)], 1, queue=2, waits=[Wait(3, 39)])
    result = trace([*many, last])
    assert result.events["started"][40] == result.events["done"][40 - RING]


def test_scalar_memory_stops_the_command_processor() -> None:
    result = trace(
        [
            read(6400, signal=3),
            command("lds", 5, 0, 0, waits=[Wait(3)]),
            command("lds", 5, 1, 0),
            command("mov", 6, 1),
        ]
    )
    lds, far = result.events[1:]
    assert (lds["started"], lds["freed"]) == (212, 220)
    assert (far["started"], far["freed"]) == (220, 220 + 8 + 100)
    assert result.cycles == 220 + 108 + 1
    assert result.queues["ACP"].waiting == 208


def python_model(obj: LoomObject, commands: Sequence[Command]) -> int:
    """Cycles of commands without register operands, HBM traffic or loops."""
    constants, words = cost_constants(obj.machine), obj.programs.view(np.int64)
    acp, done_of, free, last = 0, dict[int, list[int]](), dict[int, int](), 0
    for item in commands:
        operands_ = [int(operand) for operand in item.operands]
        occupancy, latency, _, _ = command_cost(item.spec.opcode, operands_, item.flags, words, constants)
        if item.spec.engine == "acp":
            acp += occupancy
            continue
        acp += obj.machine.acp_issue_cycles
        waits = [
            done_of[wait.token][-1 - wait.lag] for wait in item.waits if len(done_of.get(wait.token, ())) > wait.lag
        ]
        start = max([acp, free.get(item.queue, 0), *waits])
        free[item.queue] = start + occupancy
        last = max(last, start + occupancy + latency)
        if item.signal:
            times = done_of.setdefault(item.signal, [])
            times.append(max([start + occupancy + latency, *times[-1:]]))
    return max(acp, last)


def test_matches_a_model_in_python() -> None:
    rng = np.random.default_rng(3)
    programs = [chain("add.f32", ["f32", "f32"], "f32")]
    for _ in range(20):
        commands: list[Command] = []
        for _ in range(60):
            waits = tuple(Wait(int(t), int(rng.integers(0, 3))) for t in rng.integers(1, 5, int(rng.integers(0, 3))))
            kinds: list[Command] = [
                command("mov", 5, 1),
                copy(
                    (0, 0),
                    (0, 8192),
                    [(int(rng.integers(1, 4000)), 1, 1)],
                    1,
                    queue=int(rng.integers(1, 5)),
                    waits=waits,
                ),
                command("matmul", 65536, 0, 8192, 30, 40, 20, waits=waits, signal=int(rng.integers(0, 5))),
                command("accfill", 65536, 24, 32, 0, waits=waits, signal=int(rng.integers(0, 5))),
            ]
            offset, sizes = 0, (int(rng.integers(1, 2000)),)
            program = sce(offset, sizes, ((0, 4), (8192, 0), (16384, 4)))
            kinds.append(
                Command(program.mnemonic, program.operands, program.flags, waits=waits, signal=int(rng.integers(0, 5)))
            )
            commands.append(kinds[int(rng.integers(len(kinds)))])
        obj = build(commands, programs)
        assert loom_sim.load(obj).trace([]).cycles == python_model(obj, commands)


def test_every_queued_command_costs_what_the_model_says() -> None:
    """The tracing interpreter holds all cost functions: each command of the table once, alone."""
    programs = [chain("add.f32", ["f32", "f32"], "f32")]
    words = build([], programs).programs.view(np.int64)
    tile = (8, 0, 4, 4, 0)
    indexed = {"ndim": 1, "log2_bytes": 2}
    items = [
        copy((1, 0), (0, 0), [(64, 4, 4)]),
        command("pack", 1, 0, 0, 24, 32, 128, 4, 0, 24, 0, 32, 0, flags={"side": 0, "log2_bytes": 2}),
        command("gather", 1, 0, 4096, 0, 0, 4, 0, *tile, flags=indexed),
        command("scatter", 4096, 1, 0, 0, 0, 4, *tile, flags=indexed),
        command("scatter_reduce", 4096, 1, 0, 0, 0, 0, 4, SCE_OPS["add.f32"].opcode, *tile, 0, flags=indexed),
        command("compare_swap", 4096, 1, 0, 0, 0, 0, 4, 0, *tile, 0, 4, flags=indexed),
        command("packf", 1, 0, 0, 24, 32, 64, 2, 0, 24, 0, 32, 0, flags={"side": 0}),
        command("packi", 1, 0, 0, 24, 32, 32, 1, 0, 24, 0, 32, 0, flags={"side": 0}),
        command("matmul", 65536, 0, 32768, 30, 40, 20),
        command("matmulf", 65536, 0, 32768, 30, 40, 20),
        command("matmuli", 65536, 0, 32768, 30, 40, 20),
        command("accfill", 65536, 24, 32, 0),
        command("accload", 65536, 0, 24, 32, 128, 4),
        sce(0, (100,), ((0, 4), (8192, 0), (16384, 4))),
        command("combine", 0, 3, 100, 0, 0, 0, 0, 400, 4, 8192, 4, 0, flags={"ndim": 2}),
        command("sort", 0, 8192, 0, 1, 100, 0, 100, 4, 4, 4, flags={"ndim": 1, "log2_bytes": 2, "values": 1}),
        command("histogram", 0, 0, 8192, 16, 100, 4, 0, flags=indexed),
    ]
    for item in items:
        buffer = Buffer(np.zeros(1 << 17, np.uint8))
        traced = loom_sim.load(build([item], programs, 1, machine=PLAIN)).trace([buffer.binding])
        (event,) = traced.events
        operands_ = [int(operand) for operand in item.operands]  # type: ignore[arg-type]
        expected = command_cost(item.spec.opcode, operands_, item.flags, words, cost_constants(PLAIN))
        taken = event["freed"] - event["started"], event["done"] - event["freed"]
        assert (*map(int, taken), int(event["hbm_bytes"]), int(event["sram_bytes"])) == expected, item.mnemonic
    queued = {spec.mnemonic for spec in ALL_COMMANDS if spec.engine != "acp"}
    assert {item.mnemonic for item in items} == queued - {"decodef", "decodei"}  # traced with their tables elsewhere


def test_tracing_computes_the_same_and_counts_work() -> None:
    blocks = 6
    program = loom_sim.load(vector_add())
    buffers = [Buffer(array) for array in operands(blocks)]
    bindings = [buffer.binding for buffer in buffers]
    first = program.trace(bindings, {3: blocks})
    assert (buffers[2].array == buffers[0].array + buffers[1].array).all()
    again = program.trace(bindings, {3: blocks}, max_events=5)
    assert first.cycles == again.cycles
    assert (len(first.events), len(again.events), again.events_total) == (4 * blocks, 5, 4 * blocks)
    assert again.events.tolist() == first.events[:5].tolist()
    assert first.stream_operations == blocks * 1024
    assert first.hbm_bytes == 3 * blocks * 4096
    assert first.queues["SCE"].commands == blocks
    assert first.machine_digest == L1.digest()
    assert f"{first.cycles} cycles on l1" in first.table()
    assert 0 < first.busy_fraction("DMA0") <= 1


def test_matrix_work_is_counted() -> None:
    result = trace([command("matmul", 131072, 0, 65536, 30, 40, 20), command("matmul", 131072, 0, 65536, 0, 40, 20)])
    assert result.matrix_flops == 2 * 30 * 40 * 20
    assert result.queues["MXU"].commands == 2


def test_faults_are_those_of_a_run() -> None:
    with pytest.raises(OutOfBounds):
        trace([read(1 << 20)])


def test_every_command_has_a_cost() -> None:
    assert {spec.opcode for spec in ALL_COMMANDS} == COST_FUNCTIONS.keys()


def test_repr_is_one_short_line_without_events() -> None:
    result = trace([read(1024), read(1024)])
    assert repr(result) == "<Trace on plain: 152 cycles, DMA0 32%>"


def test_queues_by_name() -> None:
    result = trace([read(1024), read(1024)])
    assert result.busy_fraction("dma0") == result.busy_fraction("DMA0")
    with pytest.raises(ValueError, match=r"there is no queue 'GPU'; the queues are ACP, DMA0, .*SCE"):
        result.busy_fraction("GPU")


def test_cores_have_engines_of_their_own_and_share_memory() -> None:
    @ltl.jit
    def scale(x, y, BLOCK: ltl.constexpr):  # type: ignore[no-untyped-def]
        at = ltl.program_id(0) * BLOCK + ltl.arange(0, BLOCK)
        ltl.store(y + at, ltl.exp(ltl.load(x + at)))

    x, y = np.zeros(1 << 18, np.float32), np.zeros(1 << 18, np.float32)
    traces = {}
    for cores in (1, 2, 3):
        with loom.cores(cores):
            traces[cores] = scale.trace(x, y, grid=(64,), BLOCK=4096)
    one, two, three = traces[1], traces[2], traces[3]
    assert (one.cores, two.cores, three.cores) == (1, 2, 3)
    assert one.parts == () and one.division == "one core: one core is asked for"
    assert two.division == "2 cores: along axis x programs 0 to 31, 32 to 63"
    assert two.cycles == max(part.cycles for part in two.parts)
    for name in ("commands", "busy"):
        assert [sum(getattr(part.queues["SCE"], name) for part in t.parts) for t in (two, three)] == [
            getattr(one.queues["SCE"], name)
        ] * 2
    assert one.hbm_bytes == two.hbm_bytes == three.hbm_bytes == 2 << 20
    assert two.busy_fraction("SCE") == two.queues["SCE"].busy / (2 * two.cycles)
    # Memory is what this kernel waits for, and cores have it in equal parts.
    assert two.cycles > 0.9 * one.cycles
    assert two.parts[0].cycles == two.parts[1].cycles
    assert np.unique(two.events["core"]).tolist() == [0, 1]
    assert len(two.events) == two.events_total


def test_a_launch_is_traced_on_the_machine_s_cores_whatever_the_host() -> None:
    @ltl.jit
    def fill(y):  # type: ignore[no-untyped-def]
        ltl.store(y + ltl.program_id(0), 1.0)

    trace = fill.trace(np.zeros(8, np.float32), grid=(8,))
    assert trace.cores == L1.cores == 2
    assert repr(trace).startswith(f"<Trace on l1: {trace.cycles:,} cycles of 2 cores, ACP")
