"""Explicit copies: tokens and semaphores are counted and checked, queues are obeyed."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest

import loom.experimental.pallas as pl
import loom.experimental.pallas.tpu as pltpu
from loom.experimental import palladium as lpl
from loom_core.base.diagnostics import LoomError
from loom_core.base.knobs import knobs
from loom_core.isa.describe import disassemble

X = np.random.default_rng(5).standard_normal((8, 16)).astype(np.float32)
ROW = lpl.SRAM((16,), np.float32)


def kernel(body: Any, *scratch: Any, space: Any = lpl.ANY) -> lpl.Kernel:
    return lpl.call(
        body,
        out_shape=lpl.ShapeDtypeStruct(X.shape, X.dtype),
        in_specs=[lpl.BlockSpec(memory_space=space)],
        out_specs=lpl.BlockSpec(memory_space=lpl.ANY),
        scratch=list(scratch),
    )


def both(made: lpl.Kernel) -> np.ndarray:
    found = made(X)
    with knobs.override(interpret=True):
        assert made(X).tobytes() == found.tobytes()
    return found  # type: ignore[no-any-return]


def fails(made: lpl.Kernel, message: str, line: str) -> None:
    """The diagnostic, by the simulator and by the reference, is at the line that holds `line`."""
    for interpret in (False, True):
        with knobs.override(interpret=interpret), pytest.raises(LoomError, match=message) as caught:
            made(X)
        where = caught.value.diagnostics[0].location
        assert where.file == __file__
        with open(__file__, encoding="utf-8") as file:
            assert line in file.readlines()[where.line - 1]


# ---- semaphores of copies --------------------------------------------------------------------------------------------


def pipelined(x: Any, o: Any, buffers: Any, arrived: Any, *, first: int = 1, last: int = 8) -> None:
    """Two buffers in turn; the copy for the next row begins before the present one is waited for."""

    def fetch(i: Any) -> Any:
        slot = lpl.remainder(i, 2)
        return pltpu.make_async_copy(x.at[i], buffers.at[slot], arrived.at[slot])

    if first:
        fetch(0).start()

    @lpl.loop(0, 8)
    def step(i: Any) -> None:
        @lpl.when(i + 1 < last)
        def following() -> None:
            fetch(i + 1).start()

        fetch(i).wait()  # the wait
        o[i] = buffers[lpl.remainder(i, 2)] * 2.0


BUFFERS = lpl.SRAM((2, 16), np.float32), pltpu.SemaphoreType.DMA((2,))


def test_copies_begun_in_one_place_and_waited_for_in_another() -> None:
    assert np.array_equal(both(kernel(pipelined, *BUFFERS)), X * 2)


def test_a_wait_too_many_stops_the_run_at_its_line() -> None:
    def body(*refs: Any) -> None:
        pipelined(*refs, first=0)

    fails(kernel(body, *BUFFERS), "more copies are waited for than semaphore1 was told of", "# the wait")


def test_a_start_too_many_stops_the_run() -> None:
    def body(*refs: Any) -> None:
        pipelined(*refs, last=9)

    with pytest.raises(LoomError, match="the copy into scratch0 is started and never waited for"):
        kernel(body, *BUFFERS)(np.zeros((9, 16), np.float32))


def halves(body: Any) -> lpl.Kernel:
    def run(x: Any, o: Any, row: Any, sems: Any) -> None:
        body(lambda i: pltpu.make_async_copy(x.at[0], row, sems.at[i]))
        o[...] = x[...]

    return kernel(run, ROW, pltpu.SemaphoreType.DMA((2,)))


def unmatched(copy: Any) -> None:
    copy(0).start()
    copy(0).wait()
    copy(0).start()  # one more


def waited_twice(copy: Any) -> None:
    copy(1).start()
    copy(1).wait()
    copy(1).wait()  # one more


def of_another(copy: Any) -> None:
    copy(0).start()
    copy(1).wait()  # one more
    copy(1).start()
    copy(0).wait()


@pytest.mark.parametrize(
    ("body", "code"), [(unmatched, "LOOM-F210"), (waited_twice, "LOOM-F219"), (of_another, "LOOM-F219")]
)
def test_what_does_not_fit_in_one_block_is_found_when_tracing(body: Any, code: str) -> None:
    with pytest.raises(LoomError, match=code) as caught:
        halves(body).lower(X)
    with open(__file__, encoding="utf-8") as file:
        assert "# one more" in file.readlines()[caught.value.diagnostics[0].location.line - 1]


def test_no_command_counts_what_is_balanced() -> None:
    def body(copy: Any) -> None:
        for i in (0, 1):
            copy(i).start()
        for i in (0, 1):
            copy(i).wait()

    def balanced(copy: Any) -> None:
        lpl.loop(0, 4)(lambda i: body(copy))

    commands = halves(balanced).compile(X).manifest["commands"]
    assert not {"report", "lds", "sts", "brnz"} & set(commands)


def test_copies_begun_in_a_branch_that_is_not_taken() -> None:
    def body(copy: Any, flag: Any) -> None:
        lpl.when(flag > 0)(lambda: copy(0).start())
        copy(0).wait()  # the wait

    def run(x: Any, o: Any, row: Any, sems: Any) -> None:
        body(lambda i: pltpu.make_async_copy(x.at[0], row, sems.at[i]), x[0, 0])
        o[...] = x[...]

    made = kernel(run, ROW, pltpu.SemaphoreType.DMA((2,)))
    assert np.array_equal(made(np.abs(X)), np.abs(X))
    with pytest.raises(LoomError, match="more copies are waited for than semaphore1 was told of"):
        made(-np.abs(X))


def test_a_semaphore_is_one() -> None:
    def body(x: Any, o: Any, row: Any, sems: Any) -> None:
        pltpu.make_async_copy(x.at[0], row, sems)

    with pytest.raises(LoomError, match=r"LOOM-F202.*2 semaphores"):
        kernel(body, ROW, pltpu.SemaphoreType.DMA((2,))).lower(X)


def test_semaphores_are_counted_by_hand() -> None:
    def body(x: Any, o: Any, sems: Any) -> None:
        @lpl.loop(0, 8)
        def step(i: Any) -> None:
            pl.semaphore_signal(sems.at[lpl.remainder(i, 3)], i)

        pl.semaphore_wait(sems.at[1], 10)
        for i in range(3):
            o[i] = x[i] * pl.semaphore_read(sems.at[i])

    found = both(kernel(body, pltpu.SemaphoreType.REGULAR((3,))))
    assert np.array_equal(found[:3], X[:3] * np.float32([[9], [2], [7]]))


# ---- tokens ----------------------------------------------------------------------------------------------------------


def token_kernel(use: Any, queue: int | None = None) -> lpl.Kernel:
    def body(x: Any, o: Any, row: Any) -> None:
        @lpl.loop(0, 8)
        def step(i: Any) -> None:
            use(lpl.copy(x.at[i], row, queue=queue))
            o[i] = row[...] + 1.0

    return kernel(body, ROW)


def test_a_token_is_waited_for_once_where_it_begins() -> None:
    assert np.array_equal(both(token_kernel(lambda token: token.wait())), X + 1)
    for use, code in (
        (lambda token: None, "LOOM-F210"),
        (lambda token: [token.wait(), token.wait()], "LOOM-F221"),
        (lambda token: lpl.loop(0, 2)(lambda i: token.wait()), "LOOM-F222"),
    ):
        with pytest.raises(LoomError, match=code):
            token_kernel(use).lower(X)


# ---- queues ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("queue", [0, 1, 2, 3])
def test_a_copy_runs_on_the_queue_that_it_names(queue: int) -> None:
    made = token_kernel(lambda token: token.wait(), queue)
    assert np.array_equal(both(made), X + 1)
    lines = [line for line in disassemble(made.compile(X)).splitlines() if "dst=sram" in line and "src=hbm" in line]
    assert Counter(line.split("dma", 1)[1][0] for line in lines) == {str(queue): 1}


def test_queues_that_are_not_there() -> None:
    with pytest.raises(LoomError, match=r"LOOM-C108.*queue 9, and machine l1 has 4") as caught:
        token_kernel(lambda token: token.wait(), 9).compile(X)
    assert caught.value.diagnostics[0].location.file == __file__
    with pytest.raises(LoomError, match="LOOM-F216"):
        token_kernel(lambda token: token.wait(), -1).lower(X)


def test_a_priority_is_the_queue_of_a_copy() -> None:
    def body(copy: Any) -> None:
        copy(0).start(priority=1)
        copy(0).wait()

    text = disassemble(halves(body).compile(X))
    assert [line for line in text.splitlines() if "dma1.copy src=hbm1" in line]


# ---- what copies reach -----------------------------------------------------------------------------------------------


def test_copies_inside_of_one_buffer_and_over_its_end() -> None:
    def body(x: Any, o: Any) -> None:
        o[...] = x[...]
        lpl.copy(o.at[0:6], o.at[2:8]).wait()
        lpl.copy(x.at[lpl.ds(6, 4)], o.at[lpl.ds(0, 4)]).wait()

    found = both(kernel(body))
    wanted = X.copy()
    wanted[2:8] = X[:6]
    wanted[:2], wanted[2:4] = X[6:], np.nan
    assert np.array_equal(found, wanted, equal_nan=True)


def test_counting_in_branches_leaves_no_race() -> None:
    """What stands in the branch of a failing check is no order of what comes after it."""
    made = kernel(pipelined, *BUFFERS)
    with knobs.override(check=True):
        assert np.array_equal(made(X), X * 2)
