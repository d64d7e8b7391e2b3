"""What a profile says about what a run is bound by."""

from __future__ import annotations

import numpy as np

from loom_core.isa.commands import Queue
from loom_core.isa.machine import L1
from loom_sim.profile import Profile, limits_of
from loom_sim.trace import EVENT_DTYPE, QueueUse, Trace

CYCLES = 100_000


def profile(
    busy: dict[str, int] | None = None, commands: dict[str, int] | None = None, *, hbm: int = 0, flops: int = 0,
    stream: int = 0, events: int = 1,
) -> Profile:  # fmt: skip
    """A profile of a run of 100,000 cycles whose queues are busy for so many."""
    worked, counts = busy or {}, commands or {}
    queues = {
        queue.name: QueueUse(
            counts.get(queue.name, 0), worked.get(queue.name, 0), 0, CYCLES - worked.get(queue.name, 0)
        )
        for queue in Queue
    }
    trace = Trace(
        machine=L1.name, machine_digest=L1.digest(), cycles=CYCLES, commands=events, queues=queues, hbm_bytes=hbm,
        sram_bytes=0, matrix_flops=flops, stream_operations=stream, events=np.zeros(0, EVENT_DTYPE),
        events_total=events, program=None,
    )  # fmt: skip
    return Profile(L1, trace, limits_of(L1, trace), ())


def test_a_limit() -> None:
    verdict = profile({"DMA0": 60_000}, hbm=CYCLES * L1.hbm_bytes_per_cycle * 3 // 4).verdict
    assert verdict.kind == "limit"
    assert verdict.text == "bound by HBM bandwidth: the run is at 75.0% of that limit"
    assert verdict.advice == ()


def test_a_queue_that_works_more_than_the_nearest_limit_is_reached() -> None:
    hbm = CYCLES * L1.hbm_bytes_per_cycle * 56 // 100
    verdict = profile({"SCE": 91_000, "DMA0": 70_000}, {"SCE": 300}, hbm=hbm, stream=91_000 * 64).verdict
    assert verdict.kind == "queue"
    assert verdict.text.startswith("bound by queue SCE, which works 91% of the time; the nearest limit, HBM bandwidth")
    assert len(verdict.advice) == 1
    assert verdict.advice[0].startswith("fill the stream engine: while it works it does 64 of 1024 operations a cycle")
    functions = profile({"SCE": 91_000}, {"SCE": 300}, stream=91_000 * L1.sce_lanes // 4).verdict
    assert functions.kind == "queue" and functions.advice == ()


def test_latency_with_small_transfers() -> None:
    verdict = profile({"DMA0": 4_000}, {"DMA0": 100}, hbm=100 * 4096).verdict
    assert verdict.kind == "latency"
    assert "no queue works more than 4% of the time" in verdict.text
    assert "HBM bandwidth, is reached to 0.8%" in verdict.text
    assert verdict.advice[0].startswith("move more bytes in a transfer: one carries 4 KiB on average")
    assert verdict.advice[-1].startswith("give each program more work")


def test_large_transfers_are_not_blamed() -> None:
    verdict = profile({"DMA0": 4_000}, {"DMA0": 4}, hbm=4 << 18).verdict
    assert [advice for advice in verdict.advice if "transfer" in advice] == []


def test_a_matrix_array_that_is_not_filled() -> None:
    rate = 2 * L1.mxu_rows * L1.mxu_cols // L1.mxu_fp32_divisor
    verdict = profile({"MXU": 90_000}, {"MXU": 10}, flops=90_000 * rate // 4).verdict
    assert verdict.kind == "queue"
    assert "bound by queue MXU, which works 90% of the time" in verdict.text
    assert len(verdict.advice) == 1
    assert "at 25% of its rate" in verdict.advice[0]
    assert "128 x 128 cells" in verdict.advice[0]


def test_programs_that_mostly_start() -> None:
    verdict = profile({"SCE": 80_000}, {"SCE": 4000}).verdict
    assert verdict.kind == "queue"
    assert verdict.advice == (
        "work on larger tiles: 80% of the stream engine's cycles are the 16 that each of its 4000 programs takes to "
        "start",
    )


def test_a_command_processor_that_is_too_busy() -> None:
    verdict = profile({"ACP": 95_000, "DMA0": 20_000}, {"ACP": 50_000, "DMA0": 100}).verdict
    assert "bound by queue ACP" in verdict.text
    assert "use larger blocks" in verdict.advice[0]


def test_an_empty_run() -> None:
    assert profile(events=0).verdict.kind == "nothing"
