"""Launches on several cores: the bits of one core, or one core and the reason; faults, interrupts, threads, forks."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import loom
import ltl
from loom.experimental import palladium as lpl
from loom_core.base.diagnostics import LoomError
from loom_core.base.knobs import knobs
from loom_sim import apart, sharing
from tests.codegen.example_launches import EXAMPLES
from tests.codegen.execution import by_simulator, compiled
from tests.codegen.random_kernels import KernelMaker, random_launch

SEEDS = range(3000, 3012)


def on(count: int, run: Callable[[], Any]) -> Any:
    with loom.cores(count):
        return run()


# ---- the same bits ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", EXAMPLES)
def test_examples_give_the_same_bits(name: str) -> None:
    example = EXAMPLES[name]()
    launch, obj = example.launch(), compiled(example.function())
    one = on(1, lambda: by_simulator(obj, launch))
    for count in (2, 3, 4):
        many = on(count, lambda: by_simulator(obj, launch))
        assert [a.tobytes() for a in many] == [b.tobytes() for b in one], count


@pytest.mark.parametrize("seed", SEEDS)
def test_random_kernels_give_the_same_bits(seed: int) -> None:
    overlap = seed % 3 == 0
    launch, obj = random_launch(seed, overlap), compiled(KernelMaker(seed).run(), assume_noalias=not overlap)
    one = on(1, lambda: by_simulator(obj, launch))
    many = on(2 + seed % 3, lambda: by_simulator(obj, launch))
    assert [a.tobytes() for a in many] == [b.tobytes() for b in one]


# ---- what is divided, and what is not --------------------------------------------------------------------------------


@ltl.jit
def scale(x, y, n, BLOCK: ltl.constexpr):  # type: ignore[no-untyped-def]
    at = ltl.program_id(0) * BLOCK + ltl.arange(0, BLOCK)
    ltl.store(y + at, ltl.load(x + at, mask=at < n) * 2, mask=at < n)


@ltl.jit
def overlapping(x, y, BLOCK: ltl.constexpr):  # type: ignore[no-untyped-def]
    program = ltl.program_id(0)
    at = program * 4 + ltl.arange(0, BLOCK)
    ltl.store(y + at, ltl.load(x + at) + program)


@ltl.jit
def running_sum(x, y):  # type: ignore[no-untyped-def]
    program = ltl.program_id(0)
    ltl.store(y + program + 1, ltl.load(y + program) + ltl.load(x + program))


@ltl.jit
def grouped(x, y, COLUMNS: ltl.constexpr, GROUP: ltl.constexpr):  # type: ignore[no-untyped-def]
    """Blocks of 4 x 4 in the order of Triton's matmul tutorial: groups of rows, columns inside of them."""
    program, rows = ltl.program_id(0), ltl.num_programs(0) // COLUMNS
    first = program // (GROUP * COLUMNS) * GROUP
    height = ltl.minimum(rows - first, GROUP)
    row = first + program % (GROUP * COLUMNS) % height
    column = program % (GROUP * COLUMNS) // height
    i, j = row * 4 + ltl.arange(0, 4), column * 4 + ltl.arange(0, 4)
    at = i[:, None] * (COLUMNS * 4) + j[None, :]
    ltl.store(y + at, ltl.load(x + at) + program)


@ltl.jit
def columns_of(x, y, n, BLOCK: ltl.constexpr):  # type: ignore[no-untyped-def]
    """Whole columns in each program: the hulls of programs overlap, their bytes do not."""
    column = ltl.program_id(0)
    row = ltl.arange(0, BLOCK)
    ltl.store(y + row * n + column, ltl.load(x + row * n + column) + 1)


@ltl.jit
def outer(x, y, n, m, BLOCK: ltl.constexpr):  # type: ignore[no-untyped-def]
    """A grid of two axes, of which any can be shared."""
    at = (ltl.program_id(0) * m + ltl.program_id(1)) * BLOCK + ltl.arange(0, BLOCK)
    ltl.store(y + at, ltl.load(x + at) + ltl.program_id(1))


@ltl.jit
def one_place(x, y, BLOCK: ltl.constexpr):  # type: ignore[no-untyped-def]
    """Programs along axis 1 write the same place."""
    at = ltl.program_id(0) * BLOCK + ltl.arange(0, BLOCK)
    ltl.store(y + at, ltl.load(x + at) + ltl.program_id(1))


@ltl.jit
def counted(x, y, BLOCK: ltl.constexpr, KIND: ltl.constexpr):  # type: ignore[no-untyped-def]
    at = ltl.program_id(0) * BLOCK + ltl.arange(0, BLOCK)
    value = ltl.load(x + at)
    place = y + (at * 7 & 3)
    if KIND == "add":
        ltl.atomic_add(place, value)
    elif KIND == "max":
        ltl.atomic_max(place, value)
    elif KIND == "min":
        ltl.atomic_min(place, value)
    elif KIND == "two kinds":
        ltl.atomic_add(place, value)
        ltl.atomic_max(place, value)
    elif KIND == "read":
        ltl.atomic_add(place, value)
        ltl.store(x + at, ltl.load(y + at % 4))
    elif KIND == "exchange":
        ltl.atomic_xchg(place, value)
    else:
        ltl.store(x + at, ltl.atomic_add(place, value))


@ltl.jit
def picked(x, index, y, BLOCK: ltl.constexpr, SCATTER: ltl.constexpr):  # type: ignore[no-untyped-def]
    at = ltl.program_id(0) * BLOCK + ltl.arange(0, BLOCK)
    where = ltl.load(index + at)
    if SCATTER:
        ltl.store(y + where, ltl.load(x + at))
    else:
        ltl.store(y + at, ltl.load(x + where))


@ltl.jit
def as_long_as_told(x, lengths, y, BLOCK: ltl.constexpr):  # type: ignore[no-untyped-def]
    program = ltl.program_id(0)
    total = ltl.zeros((BLOCK,), dtype=ltl.float32)
    for i in range(ltl.load(lengths + program)):
        total += ltl.load(x + i * BLOCK + ltl.arange(0, BLOCK))
    ltl.store(y + program * BLOCK + ltl.arange(0, BLOCK), total)


@ltl.jit
def talking(x, y):  # type: ignore[no-untyped-def]
    program = ltl.program_id(0)
    value = ltl.load(x + program)
    ltl.device_print("value", value)
    ltl.store(y + program, value)


F32, I32 = np.float32, np.int32


def _numbers(count: int, dtype: Any = F32) -> np.ndarray:
    return np.random.default_rng(count).integers(-50, 50, count).astype(dtype)


def _line(kernel: ltl.JitFunction, text: str) -> int:
    lines = kernel.traced.source.text.splitlines()
    found = next(i for i, line in enumerate(lines) if text in line)
    return kernel.traced.source.location.line + found


X, Y = _numbers(64), np.zeros(68, F32)
PERMUTED = np.random.default_rng(0).permutation(64).astype(I32)

CASES: dict[str, tuple[Any, tuple[Any, ...], tuple[int, ...], dict[str, Any], str]] = {
    "apart": (scale, (X, Y, 61), (8,), {"BLOCK": 8}, "2 cores: along axis x programs 0 to 3, 4 to 7"),
    "two programs": (scale, (X, Y, 13), (2,), {"BLOCK": 8}, "2 cores: along axis x programs 0, 1"),
    "one program": (scale, (X, Y, 8), (1,), {"BLOCK": 8}, "one core: there is one program"),
    "columns": (columns_of, (X, Y, 8), (8,), {"BLOCK": 8}, "2 cores: along axis x programs 0 to 3, 4 to 7"),
    "grouped": (grouped, (X, Y), (4,), {"COLUMNS": 2, "GROUP": 2}, "2 cores: along axis x programs 0 to 1, 2 to 3"),
    "two axes": (outer, (X, Y, 8, 4), (2, 4), {"BLOCK": 8}, "2 cores: along axis y programs 0 to 1, 2 to 3"),
    "an axis too short": (outer, (X, Y, 8, 1), (8, 1), {"BLOCK": 8}, "2 cores: along axis x"),
    "one axis of two": (one_place, (X, Y), (8, 3), {"BLOCK": 8}, "2 cores: along axis x"),
    "overlapping stores": (
        overlapping, (X, Y), (8,), {"BLOCK": 8},
        "one core: the stores at line {ltl.store} of programs 3 and 4 meet: y[16]",
    ),
    "what the last program wrote": (
        running_sum, (X, np.append(F32(1), Y)), (32,), {},
        "one core: program 16 loads at line {ltl.store} what program 15 stores at line {ltl.store}: y[16]",
    ),
    "integer atomics": (
        counted, (_numbers(64, I32), np.zeros(4, I32)), (8,), {"BLOCK": 8, "KIND": "add"}, "2 cores",
    ),
    "integer maxima": (
        counted, (_numbers(64, I32), np.zeros(4, I32)), (8,), {"BLOCK": 8, "KIND": "max"}, "2 cores",
    ),
    "float atomics": (counted, (X, np.zeros(4, F32)), (8,), {"BLOCK": 8, "KIND": "add"}, "one core: indices decide"),
    "atomics that are used": (
        counted, (_numbers(64, I32), np.zeros(4, I32)), (8,), {"BLOCK": 8, "KIND": "used"}, "one core: indices decide",
    ),
    "two kinds of atomics": (
        counted, (_numbers(64, I32), np.zeros(4, I32)), (8,), {"BLOCK": 8, "KIND": "two kinds"},
        "one core: the atomics at line",
    ),
    "atomics and loads": (
        counted, (_numbers(64, I32), np.zeros(4, I32)), (8,), {"BLOCK": 8, "KIND": "read"},
        "one core: the atomics at line",
    ),
    "exchanges": (
        counted, (_numbers(64, I32), np.zeros(4, I32)), (8,), {"BLOCK": 8, "KIND": "exchange"},
        "one core: indices decide",
    ),
    "gathers": (picked, (X, PERMUTED, Y), (8,), {"BLOCK": 8, "SCATTER": False}, "2 cores"),
    "scatters": (
        picked, (X, PERMUTED, Y), (8,), {"BLOCK": 8, "SCATTER": True},
        "one core: indices decide what the scatter at line {ltl.store(y + where} stores",
    ),
    "lengths from memory": (
        as_long_as_told, (X, np.arange(8, dtype=I32), Y), (8,), {"BLOCK": 8},
        "one core: what the branch or loop at line {range} does depends on data",
    ),
    "prints": (
        talking, (X, Y), (4,), {}, "one core: prints and assertions come in the order of programs (at line {print})",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_divisions_and_reasons(name: str) -> None:
    kernel, arguments, grid, blocks, expected = CASES[name]
    arguments = tuple(a.copy() if isinstance(a, np.ndarray) else a for a in arguments)
    head, *rest = expected.split("{")
    for part in rest:
        text, _, after = part.partition("}")
        head += f"{_line(kernel, text)}{after}"
    with loom.cores(2):
        assert str(kernel.explain(*arguments, grid=grid, **blocks)).startswith(head)
    results = []
    for count in (1, 2, 3, 4):
        mine = tuple(a.copy() if isinstance(a, np.ndarray) else a for a in arguments)
        on(count, lambda mine=mine: kernel[grid](*mine, **blocks))
        results.append([a.tobytes() for a in mine if isinstance(a, np.ndarray)])
    assert all(result == results[0] for result in results)


@ltl.jit(do_not_specialize=["a", "b", "c", "d", "e", "f"])
def pattern(x, y, a, b, c, d, e, f, ROWS: ltl.constexpr, COLUMNS: ltl.constexpr):  # type: ignore[no-untyped-def]
    program = ltl.program_id(0)
    i, j = ltl.arange(0, ROWS)[:, None], ltl.arange(0, COLUMNS)[None, :]
    value = ltl.load(x + program * d + i * e + j * f)
    ltl.store(y + program * a + i * b + j * c, value + program)


@pytest.mark.parametrize("seed", range(60))
def test_launches_are_divided_exactly_where_no_byte_is_shared(seed: int) -> None:
    """By every element of every program, for random strides, in one memory or two."""
    rng = np.random.default_rng(seed)
    rows, columns, programs, middle = 4, 3, 6, 800
    strides = [int(stride) for stride in rng.choice([-24, -12, -5, -4, -1, 0, 1, 3, 4, 5, 12, 24, 60], 6)]
    memory = rng.integers(-99, 99, 2 * middle).astype(F32)
    shift = int(rng.choice([0, 0, 0, 1, 12, 72]))
    apart = bool(rng.integers(2))

    def elements(first: int, end: int, numbers: list[int], origin: int) -> set[int]:
        by_program, by_row, by_column = numbers
        return {
            origin + p * by_program + i * by_row + j * by_column
            for p in range(first, end) for i in range(rows) for j in range(columns)
        }  # fmt: skip

    def launch(x: np.ndarray, y: np.ndarray) -> tuple[Any, ...]:
        return (x[middle:], y[middle + shift :], *strides)

    halves = [(0, programs // 2), (programs // 2, programs)]
    written = [elements(*half, strides[:3], shift) for half in halves]
    loaded = [elements(*half, strides[3:], 0) for half in halves]
    meets = bool(written[0] & written[1])
    if not apart:
        meets |= bool(written[0] & loaded[1] or written[1] & loaded[0])
    blocks = {"ROWS": rows, "COLUMNS": columns}
    other = memory.copy() if apart else memory
    with loom.cores(2):
        division = pattern.explain(*launch(memory, other), grid=(programs,), **blocks)
    assert (division.cores == 1) == meets, str(division)
    results = []
    for count in (1, 2, 3):
        x = memory.copy()
        y = memory.copy() if apart else x
        on(count, lambda x=x, y=y: pattern[programs,](*launch(x, y), **blocks))
        results.append((x.tobytes(), y.tobytes()))
    assert results[0] == results[1] == results[2]


def test_parts_are_of_equal_work() -> None:
    @ltl.jit
    def triangle(x, y, BLOCK: ltl.constexpr):  # type: ignore[no-untyped-def]
        program = ltl.program_id(0)
        total = ltl.zeros((BLOCK,), dtype=ltl.float32)
        for i in range(program + 1):
            total += ltl.exp(ltl.load(x + i * BLOCK + ltl.arange(0, BLOCK)))
        ltl.store(y + program * BLOCK + ltl.arange(0, BLOCK), total)

    x = np.zeros(20 * 512, F32)
    with loom.cores(2):
        division = triangle.explain(x, x.copy(), grid=(20,), BLOCK=512)
    # 105 of 210 blocks each would be exact.
    assert division.parts in (((0, 14), (14, 20)), ((0, 15), (15, 20)))
    results = []
    for count in (1, 2, 3):
        y = np.zeros_like(x)
        on(count, lambda y=y: triangle[20,](x, y, BLOCK=512))
        results.append(y.tobytes())
    assert results[0] == results[1] == results[2]


def test_overlapping_arguments_are_seen() -> None:
    memory = _numbers(72)
    with loom.cores(2):
        apart = scale.explain(memory[:32], memory[36:], 32, grid=(4,), BLOCK=8)
        in_place = scale.explain(memory[:32], memory[:32], 32, grid=(4,), BLOCK=8)
        shifted = scale.explain(memory[:32], memory[1:], 32, grid=(4,), BLOCK=8)
    assert str(apart).startswith("2 cores")
    assert str(in_place).startswith("2 cores")
    assert "program 2 loads" in str(shifted)
    assert "what program 1 stores" in str(shifted)
    results = []
    for count in (1, 2):
        mine = memory.copy()
        on(count, lambda mine=mine: scale[4,](mine[:32], mine[1:], 32, BLOCK=8))
        results.append(mine.tobytes())
    assert results[0] == results[1]


def test_extremes_of_floats_come_out_the_same_in_any_order() -> None:
    special = np.array([0x7FC00000, 0xFFC00001, 0x7F800001, 0, 0x80000000, 1, 0x80000001, 0x3F800000], np.uint32)
    rng = np.random.default_rng(1)
    for kind in ("max", "min"):
        for start in special:
            x = rng.permutation(np.tile(special, 8)).view(F32)
            results = []
            for count in (1, 2, 4):
                y = np.full(4, start, np.uint32).view(F32)
                on(count, lambda x=x, y=y, kind=kind: counted[8,](x.copy(), y, BLOCK=8, KIND=kind))
                results.append(y.tobytes())
            assert len(set(results)) == 1


def test_little_work_stays_on_one_core() -> None:
    text = str(scale.explain(X.copy(), Y.copy(), 61, grid=(8,), BLOCK=8))
    assert text in (
        "one core: it takes this computer less time than to wake another; a profile shares it",
        "one core: this process has one CPU",
    )


def test_launches_with_new_numbers_are_looked_at_until_it_is_in_vain(monkeypatch: pytest.MonkeyPatch) -> None:
    @ltl.jit
    def fill(y, n, BLOCK: ltl.constexpr):  # type: ignore[no-untyped-def]
        at = ltl.program_id(0) * BLOCK + ltl.arange(0, BLOCK)
        ltl.store(y + at, 1.0, mask=at < n)

    monkeypatch.setattr(sharing, "usable_cpus", lambda: 2)
    y = np.zeros(64, F32)

    def text(n: int) -> str:
        return str(fill.explain(y, n, grid=(8,), BLOCK=8))

    assert {text(n) for n in range(10, 18)} == {
        "one core: it takes this computer less time than to wake another; a profile shares it"
    }
    assert (
        text(18) == "one core: launches before took this computer less time than to wake another; a profile shares them"
    )
    # A launch that takes long is noticed, and the next ones are looked at again.
    monkeypatch.setattr(sharing, "WORTH_NANOSECONDS", 0)
    fill[8,](y, 21, BLOCK=8)
    assert text(22).startswith("2 cores")
    assert np.array_equal(y, np.arange(64) < 21)


# ---- Palladium -------------------------------------------------------------------------------------------------------


def _product(x, y, o, total):  # type: ignore[no-untyped-def]
    @lpl.when(lpl.program_id(2) == 0)
    def start() -> None:
        total[...] = lpl.zeros_like(total)

    total[...] += lpl.dot(x[...], y[...])

    @lpl.when(lpl.program_id(2) == 1)
    def end() -> None:
        o[...] = total[...]


def _running(x, o, total):  # type: ignore[no-untyped-def]
    @lpl.when(lpl.program_id(0) == 0)
    def start() -> None:
        total[...] = lpl.zeros_like(total)

    total[...] += x[...]
    o[...] = total[...]


def _summed(x, o):  # type: ignore[no-untyped-def]
    @lpl.when(lpl.program_id(1) == 0)
    def start() -> None:
        o[...] = lpl.zeros_like(o)

    o[...] += x[...]


def _palladium_product(**options: Any) -> Any:
    return lpl.kernel(
        _product,
        out_shape=lpl.ShapeDtypeStruct((16, 24), lpl.float32),
        grid=(2, 3, 2),
        in_specs=[lpl.BlockSpec((8, 8), lambda i, j, k: (i, k)), lpl.BlockSpec((8, 8), lambda i, j, k: (k, j))],
        out_specs=lpl.BlockSpec((8, 8), lambda i, j, k: (i, j)),
        scratch=[lpl.SRAM((8, 8), lpl.float32)],
        **options,
    )


PALLADIUM: dict[str, tuple[Any, tuple[Any, ...], str]] = {
    "product": (
        _palladium_product(), (_numbers(256).reshape(16, 16), _numbers(384).reshape(16, 24)), "along axis i0",
    ),
    "running": (
        lpl.kernel(_running, out_shape=lpl.ShapeDtypeStruct((32,), lpl.float32), grid=(4,),
                   in_specs=[lpl.BlockSpec((8,), lambda i: (i,))], out_specs=lpl.BlockSpec((8,), lambda i: (i,)),
                   scratch=[lpl.SRAM((8,), lpl.float32)]),
        (_numbers(32),), "goes from program to program",
    ),
    "summed": (
        lpl.kernel(_summed, out_shape=lpl.ShapeDtypeStruct((32,), lpl.float32), grid=(4, 3),
                   in_specs=[lpl.BlockSpec((8,), lambda i, j: (i * 3 + j,))],
                   out_specs=lpl.BlockSpec((8,), lambda i, j: (i,))),
        (_numbers(96),), "along axis i0 programs 0 to 1, 2 to 3",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", PALLADIUM)
def test_palladium_grids(name: str) -> None:
    kernel, operands, expected = PALLADIUM[name]
    with loom.cores(2):
        assert expected in str(kernel.explain(*operands))
    results = [on(count, lambda: kernel(*operands)).tobytes() for count in (1, 2, 3, 4)]
    assert all(result == results[0] for result in results)


def test_an_axis_that_hands_on_scratch_is_shared_on_its_author_s_word() -> None:
    def squares(x, o, kept):  # type: ignore[no-untyped-def]
        kept[0:4] = x[0:4] * x[0:4]
        kept[4:8] = x[4:8] + 1
        o[...] = kept[...]

    def made(**options: Any) -> Any:
        block = lpl.BlockSpec((8,), lambda i: (i,))
        shape = lpl.ShapeDtypeStruct((32,), lpl.float32)
        scratch = [lpl.SRAM((8,), lpl.float32)]
        return lpl.kernel(
            squares, out_shape=shape, grid=(4,), in_specs=[block], out_specs=block, scratch=scratch, **options
        )

    x = _numbers(32)
    with loom.cores(2):
        assert "goes from program to program" in str(made().explain(x))
        declared = made(dimension_semantics=("parallel",))
        assert str(declared.explain(x)).startswith("2 cores")
        assert declared(x).tobytes() == on(1, lambda: made()(x)).tobytes()


# ---- faults, interrupts, threads, forks ------------------------------------------------------------------------------


def test_the_fault_of_the_lowest_program_is_raised() -> None:
    index = np.arange(64, dtype=I32)
    for bad in ([60], [10, 60], [33, 63], [31, 32]):
        wrong = index.copy()
        wrong[bad] = 1 << 20
        messages = []
        for count in (1, 2, 4):
            with loom.cores(count), pytest.raises(LoomError) as caught:
                picked[8,](X, wrong + np.arange(64, dtype=I32) * (wrong > 64), Y.copy(), BLOCK=8, SCATTER=False)
            messages.append(str(caught.value).partition("command ")[0])
        assert len(set(messages)) == 1, messages


@ltl.jit
def endless(x, y):  # type: ignore[no-untyped-def]
    program = ltl.program_id(0)
    i = program * 0
    while i < 2:
        i = i ^ 1
    ltl.store(y + program, ltl.load(x + program) + i.to(ltl.float32))


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no timers here")
def test_an_interrupt_stops_all_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    _halves(endless, (X, Y))  # compiled before the clock runs
    monkeypatch.setattr(sharing.Sharing, "_decide", lambda *_: _halves(endless, (X, Y)))
    with loom.cores(2):
        before = threading.active_count()

        def interrupt(*_: Any) -> None:
            raise KeyboardInterrupt

        previous = signal.signal(signal.SIGALRM, interrupt)
        try:
            signal.setitimer(signal.ITIMER_REAL, 0.5)
            start = time.monotonic()
            with pytest.raises(KeyboardInterrupt):
                endless[2,](X, Y.copy())
            assert time.monotonic() - start < 5
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, previous)
    assert threading.active_count() <= before + 1
    monkeypatch.undo()
    on(2, lambda: scale[8,](X, Y.copy(), 61, BLOCK=8))


def _halves(kernel: Any, arguments: tuple[Any, ...]) -> sharing.Division:
    (axis,) = kernel.variant(kernel.specs(arguments, {})).apart.object.abi.core_axes
    return sharing.Division(axis, ((0, 1), (1, 2)))


def test_threads_launch_on_several_cores_at_once() -> None:
    x = _numbers(4096)
    wrong: list[int] = []

    def work(number: int) -> None:
        for _ in range(5):
            y = np.zeros(4096, F32)
            with loom.cores(3):
                scale[64,](x + number, y, 4096, BLOCK=64)
            if not np.array_equal(y, (x + number) * 2):
                wrong.append(number)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_child_has_cores_of_its_own() -> None:
    def result() -> bytes:
        y = Y.copy()
        on(2, lambda: scale[8,](X, y, 61, BLOCK=8))
        return y.tobytes()

    expected = result()
    child = os.fork()
    if child == 0:
        os._exit(0 if result() == expected else 1)
    deadline = time.monotonic() + 60
    status = os.waitpid(child, os.WNOHANG)
    while status[0] == 0 and time.monotonic() < deadline:
        time.sleep(0.01)
        status = os.waitpid(child, os.WNOHANG)
    if status[0] == 0:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    assert status == (child, 0)


def test_the_environment_says_how_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOOM_CORES", "4")
    assert knobs.cores == 4
    assert scale.explain(X, Y, 61, grid=(8,), BLOCK=8).cores == 4


def test_numbers_of_cores_are_checked() -> None:
    with pytest.raises(LoomError, match="'-1', which is not a whole number"), loom.cores(-1):
        pass
    with loom.cores(1000):
        assert sharing.MOST_CORES < 200
        assert (
            scale.explain(_numbers(2000), np.zeros(2000, F32), 1600, grid=(200,), BLOCK=8).cores == sharing.MOST_CORES
        )


# ---- the comparison of pieces ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(20))
def test_meetings_are_found_as_by_looking_at_every_byte(seed: int) -> None:
    rng = np.random.default_rng(seed)

    def pieces(count: int) -> np.ndarray:
        low = rng.integers(0, 300, count)
        return np.stack([low * 0, low, low + rng.integers(1, 6, count), low * 0, low * 0], 1).astype(np.int64)

    writes, others = pieces(int(rng.integers(0, 12))), pieces(int(rng.integers(0, 12)))
    touched = {byte for _, low, high, _, _ in others for byte in range(low, high)}
    meets = [w for w in writes if touched & set(range(w[1], w[2]))]
    found = apart.first_meeting(writes, others)
    assert (found is not None) == bool(meets)
    if found is not None:
        write, other = found
        assert write[1] == min(w[1] for w in meets)
        assert write[1] < other[2]
        assert other[1] < write[2]


@ltl.jit
def scattered(index: Any, x: Any, out: Any, BLOCK: ltl.constexpr) -> None:
    at = ltl.program_id(0) * BLOCK + ltl.arange(0, BLOCK)
    to = ltl.load(index + at)
    ltl.store(out + to, ltl.load(x + at), mask=to >= 0)


def test_a_division_holds_for_other_arrays_or_is_not_kept() -> None:
    n = 1 << 14
    x = np.arange(n, dtype=np.float32)
    with loom.cores(3):
        # Nothing is stored: whatever that launch may do, the next one stores from all programs to the same bytes.
        scattered[(n // 256,)](np.full(n, -1, np.int32), x, np.empty(0, np.float32), BLOCK=256)
        out = np.zeros(64, np.float32)
        text = scattered.explain(x.astype(np.int32) % 64, x, out, BLOCK=256, grid=(n // 256,))
        scattered[(n // 256,)](x.astype(np.int32) % 64, x, out, BLOCK=256)
    assert "one core: indices decide what the scatter" in str(text)
    assert np.array_equal(out, x[-64:])
