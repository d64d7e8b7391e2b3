"""SCE programs over strided streams, against an evaluation element by element in NumPy."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from loom_core.isa.encoding import command
from loom_core.isa.program import R, S, SceInstr, SceProgram, StreamSpec, check_program
from loom_sim.errors import OutOfBounds, OversizedCommand
from tests.sim.harness import build, chain, launch, program_offsets, sce, whole

Array = NDArray[Any]

SRAM = 64 << 10  # bytes that the tests use
_NUMPY = {"f32": np.float32, "i32": np.int32, "i64": np.int64, "bool": np.uint8, "u8": np.uint8, "i8": np.int8}


@dataclass(frozen=True)
class Case:
    """A program over an iteration space: (base, strides...) a stream, strides in bytes, sizes outermost first."""

    program: SceProgram
    sizes: tuple[int, ...]
    streams: tuple[tuple[int, ...], ...]
    fold: int = 0


def run(case: Case, memory: Array) -> Array:
    """SRAM after the program, on the simulator."""
    commands = [
        whole((1, 0), (0, 0), memory.nbytes),
        sce(0, case.sizes, case.streams, case.fold),
        whole((0, 0), (1, 0), memory.nbytes),
    ]
    (after,) = launch(build(commands, [case.program], 1), [memory])
    return after


def fold_by_rule(values: Array, combine: Any) -> Any:
    results = []
    for start in range(0, len(values), 4096):
        block = values[start : start + 4096]
        lanes = [block[lane::32] for lane in range(min(32, len(block)))]
        folded = [lane[0] for lane in lanes]
        for lane, column in enumerate(lanes):
            for value in column[1:]:
                folded[lane] = combine(folded[lane], value)
        for half in (16, 8, 4, 2, 1):
            for lane in range(half):
                if lane + half < len(folded):
                    folded[lane] = combine(folded[lane], folded[lane + half])
            folded = folded[:half]
        results.append(folded[0])
    return results[0] if len(results) == 1 else fold_by_rule(np.array(results, values.dtype), combine)


_FUNCTIONS: dict[str, Any] = {
    "mov.32": lambda a: a,
    "mov.f32": lambda a: a,
    "add.f32": np.add,
    "sub.f32": np.subtract,
    "mul.f32": np.multiply,
    "max.f32": np.maximum,
    "add.i32": np.add,
    "mul.i32": np.multiply,
    "add.i64": np.add,
    "lt.f32": lambda a, b: (a < b).astype(np.uint8),
    "select.f32": lambda c, a, b: np.where(c != 0, a, b),
    "cast.i32.f32": lambda a: a.astype(np.float32),
    "cast.f32.i64": lambda a: a.astype(np.int64),
    "reduce_sum.f32": np.add,
    "reduce_max.f32": np.maximum,
    "reduce_sum.i32": np.add,
}


def expected(case: Case, memory: Array) -> Array:
    """SRAM after the program, by its definition: all loads see the memory before it."""
    program, sizes = case.program, case.sizes
    info = check_program(program)
    kept = len(sizes) - case.fold
    after = memory.copy()
    tail_loads = {
        operand.number
        for instr in program.instructions[info.tail_start :]
        for operand in instr.operands
        if isinstance(operand, S)
    }
    streams: list[Any] = []
    for number, (spec, (base, *strides)) in enumerate(zip(program.streams, case.streams, strict=True)):
        dtype = np.dtype(_NUMPY[spec.dtype])
        in_tail = info.reduced_stores[number] or (spec.kind == "load" and number in tail_loads)
        dims = kept if in_tail else len(sizes)
        places = np.array(
            [
                base + sum(i * s for i, s in zip(index, strides, strict=False))
                for index in itertools.product(*map(range, sizes[:dims]))
            ],
            np.int64,
        )
        if spec.kind == "load":
            value = np.array([memory[p : p + dtype.itemsize].view(dtype)[0] for p in places], dtype)
        elif spec.kind == "iota":
            value = places.astype(dtype)
        elif spec.kind == "scalar":
            value = np.array([base & 0xFFFFFFFFFFFFFFFF], np.uint64).view(dtype)[0]
        else:
            value = (places, dtype)
        streams.append(value)
    registers: dict[R | S, Any] = {}  # and what was stored, which may be read back
    total, rows = int(np.prod(sizes)), int(np.prod(sizes[:kept]))
    for index, instr in enumerate(program.instructions):
        values = [registers[o] if o in registers else streams[o.number] for o in instr.operands]
        if instr.mnemonic.startswith("reduce_"):
            matrix = np.broadcast_to(values[0], (total,)).reshape(rows, -1)
            result = np.array([fold_by_rule(row, _FUNCTIONS[instr.mnemonic]) for row in matrix], matrix.dtype)
        else:
            count = rows if index >= info.tail_start else total
            result = np.broadcast_to(_FUNCTIONS[instr.mnemonic](*values), (count,))
        if isinstance(instr.dst, S):
            places, dtype = streams[instr.dst.number]
            for place, value in zip(places, result.astype(dtype), strict=True):
                after[place : place + dtype.itemsize] = np.frombuffer(value.tobytes(), np.uint8)
        registers[instr.dst] = result
    return after


def memory_of_floats(seed: int = 0, size: int = SRAM) -> Array:
    return np.random.default_rng(seed).standard_normal(size // 4).astype(np.float32).view(np.uint8)


def check(case: Case, memory: Array | None = None) -> None:
    memory = memory_of_floats() if memory is None else memory
    got, want = run(case, memory), expected(case, memory)
    assert (got == want).all(), f"{case}: first at byte {np.flatnonzero(got != want)[0]}"


def load(dtype: str = "f32") -> StreamSpec:
    return StreamSpec("load", dtype)


def store(dtype: str = "f32") -> StreamSpec:
    return StreamSpec("store", dtype)


ADD = chain("add.f32", ["f32", "f32"], "f32")


@pytest.mark.parametrize("count", [1, 5, 1023, 1024, 1025, 4000])
def test_contiguous(count: int) -> None:
    check(Case(ADD, (count,), ((0, 4), (16384, 4), (32768, 4))))


@pytest.mark.parametrize("count", [1, 5, 1024, 2500])
def test_in_place(count: int) -> None:
    check(Case(ADD, (count,), ((0, 4), (16384, 4), (0, 4))))


@pytest.mark.parametrize(
    ("sizes", "a", "b", "out"),
    [
        ((7, 100), (400, 4), (0, 4), (400, 4)),  # a row broadcast over rows
        ((7, 100), (400, 4), (4, 0), (400, 4)),  # a column broadcast over columns
        ((7, 100), (512, 4), (400, 4), (640, 4)),  # padded rows
        ((100, 7), (4, 400), (28, 4), (28, 4)),  # a transposed operand
        ((7, 100), (400, 4), (400, 4), (4, 28)),  # a transposed result
        ((3, 1500), (6000, 4), (0, 4), (6400, 4)),  # rows longer than a chunk
        ((3, 1500), (6000, 4), (4, 0), (6400, 4)),
        ((2, 600), (2400, 4), (0, 4), (2404, 4)),
        ((5, 1, 9), (36, 4, 4), (0, 0, 4), (48, 0, 4)),
        ((2, 3, 4, 5), (240, 80, 20, 4), (4, 0, 16, 0), (480, 160, 40, 8)),
        ((2, 3, 4, 5), (60, 20, 120, 4), (0, 4, 0, 12), (240, 80, 20, 4)),
        ((1, 1), (0, 0), (4, 8), (12, 16)),
        ((300, 2), (8, 4), (4, 1200), (8, 4)),
        ((10, 10), (-40, -4), (40, 4), (40, 4)),
        ((1000,), (8,), (12,), (16,)),
    ],
)
def test_strides(sizes: tuple[int, ...], a: tuple[int, ...], b: tuple[int, ...], out: tuple[int, ...]) -> None:
    first = -sum(min(0, s * (n - 1)) for n, s in zip(sizes, a, strict=True))
    check(Case(ADD, sizes, ((first, *a), (16384, *b), (32768, *out))))


SPECIAL = np.array([0.0, -0.0, 1.5, -3e38, 1e-42, np.inf, -np.inf, np.nan], np.float32)


@pytest.mark.parametrize("function", ["add", "sub", "mul", "div"])
@pytest.mark.parametrize("dtype", ["f32", "f64"])
@pytest.mark.parametrize(
    ("sizes", "strides"),
    [
        ((900,), (0,)),
        ((2500,), (0,)),
        ((3, 1024), (1, 0)),
        ((3, 1500), (1, 0)),
        ((2, 700), (0, 0)),
        ((40, 60), (1, 0)),
        ((40, 60), (0, 0)),
        ((2, 3, 600), (3, 1, 0)),
    ],
)
def test_one_element_for_all(function: str, dtype: str, sizes: tuple[int, ...], strides: tuple[int, ...]) -> None:
    """A repeated operand, on either side, gives the bits that a whole tile of it gives."""
    kind, rng = np.dtype(_NUMPY.get(dtype, np.float64)), np.random.default_rng(1)
    item, total = kind.itemsize, int(np.prod(sizes))
    dense = tuple(item * int(np.prod(sizes[d + 1 :])) for d in range(len(sizes)))
    few = rng.choice(SPECIAL, 40).astype(kind)
    places = sum(i * s for i, s in zip(np.indices(sizes), strides, strict=True)).reshape(-1)
    tile = rng.choice(SPECIAL, total).astype(kind)
    memory = np.zeros(512 + 4 * total * item, np.uint8)
    starts = [0, *(512 + total * item * i for i in range(4))]
    for start, array in zip(starts, (few, tile, few[places]), strict=False):
        memory[start : start + array.nbytes] = array.view(np.uint8)
    program = chain(f"{function}.{dtype}", [dtype, dtype], dtype)
    repeated = (starts[0], *(s * item for s in strides))
    for flip in (False, True):
        commands = [whole((1, 0), (0, 0), memory.nbytes)]
        for other, out in ((repeated, starts[3]), ((starts[2], *dense), starts[4])):
            sides = [(starts[1], *dense), other]
            commands.append(sce(0, sizes, [*(sides[::-1] if flip else sides), (out, *dense)]))
        commands.append(whole((0, 0), (1, 0), memory.nbytes))
        (after,) = launch(build(commands, [program], 1), [memory])
        got, want = (after[start : start + total * item] for start in starts[3:])
        assert (got == want).all()


@pytest.mark.parametrize("function", ["add", "sub", "mul", "div"])
@pytest.mark.parametrize("count", [7, 1024, 3000])
def test_scalars_on_either_side(function: str, count: int) -> None:
    whole_tile, streams = chain(f"{function}.f32", ["f32", "f32"], "f32"), (load(), load(), store())
    for side in (0, 1):
        kinds = list(streams)
        kinds[side] = StreamSpec("scalar", "f32")
        program = SceProgram(tuple(kinds), whole_tile.instructions, 0)
        values = np.random.default_rng(2).choice(SPECIAL, 6000)
        for value in SPECIAL:
            values[3000:] = value
            bits = int(value.view(np.uint32))
            given = [(0, 4), (12000, 4)] if side else [(12000, 4), (0, 4)]
            scalar = list(given)
            scalar[side] = (bits, 0)
            commands = [
                whole((1, 0), (0, 0), values.nbytes),
                sce(0, (count,), [*scalar, (24000, 4)]),
                sce(program_offsets([program, whole_tile])[1], (count,), [*given, (36000, 4)]),
                whole((0, 24000), (1, 0), 24000),
            ]
            (after,) = launch(build(commands, [program, whole_tile], 1), [values.view(np.uint8)])
            assert (after[: count * 4] == after[12000 : 12000 + count * 4]).all()


def test_unaligned_streams() -> None:
    check(Case(ADD, (900,), ((1, 4), (16387, 4), (32770, 4))), np.zeros(SRAM, np.uint8))


def test_scalar_and_iota_streams() -> None:
    program = SceProgram(
        (StreamSpec("iota", "i32"), StreamSpec("scalar", "i32"), StreamSpec("iota", "i64"), store("i32"), store("i64")),
        (
            SceInstr("mul.i32", R(0), S(0), S(1)),
            SceInstr("add.i32", S(3), R(0), S(0)),
            SceInstr("add.i64", S(4), S(2), S(2)),
        ),
        1,
    )
    streams = ((5, 100, 1), (-3, 0, 0), (-7, 1, -10), (0, 280, 4), (8192, 8, 160))
    check(Case(program, (20, 70), ((5, 100, 1), (-3, 0, 0), (-7, 1, -10), (0, 280, 4), (8192, 560, 8))))
    check(Case(program, (20, 20), streams))
    long_rows = Case(program, (3, 2000), ((2, 0, 1), (9, 0, 0), (0, 0, 0), (0, 8000, 4), (24000, 8, 24)))
    check(long_rows, memory_of_floats(0, 96 << 10))


def test_types_of_different_width_meet_in_one_program() -> None:
    program = SceProgram(
        (load(), load(), StreamSpec("scalar", "f32"), store("bool"), store(), store("i64")),
        (
            SceInstr("lt.f32", R(0), S(0), S(1)),
            SceInstr("select.f32", R(1), R(0), S(0), S(2)),
            SceInstr("mov.32", S(4), R(1)),
            SceInstr("cast.f32.i64", S(5), R(1)),
            SceInstr("lt.f32", S(3), S(0), S(1)),
        ),
        2,
    )
    half = int(np.float32(0.5).view(np.uint32))
    check(Case(program, (1700,), ((0, 4), (7000, 4), (half, 0), (14000, 1), (16000, 4), (24000, 8))))


def test_a_bool_byte_is_true_if_it_is_not_zero() -> None:
    program = chain("select.f32", ["bool", "f32", "f32"], "f32")
    memory = memory_of_floats(3)
    memory[:500] = np.random.default_rng(4).choice(np.array([0, 1, 2, 128, 255], np.uint8), 500)
    check(Case(program, (500,), ((0, 1), (1024, 4), (4096, 4), (8192, 4))), memory)


def test_a_load_keeps_its_old_values_where_a_store_went_before() -> None:
    program = SceProgram(
        (load(), load(), store(), store()),
        (SceInstr("add.f32", S(2), S(0), S(1)), SceInstr("sub.f32", S(3), S(0), S(1))),
        0,
    )
    check(Case(program, (1500,), ((0, 4), (8000, 4), (0, 4), (16000, 4))))
    check(Case(program, (30, 50), ((0, 256, 4), (8000, 200, 4), (0, 256, 4), (16000, 200, 4))))


@pytest.mark.parametrize("target", [(400, 4), (640, 4), (4, 28)])  # direct, and through a slot
def test_a_stored_element_is_read_back(target: tuple[int, int]) -> None:
    program = SceProgram(
        (load(), store(), store("bool"), store()),
        (
            SceInstr("add.f32", S(1), S(0), S(0)),
            SceInstr("mul.f32", R(0), S(1), S(1)),
            SceInstr("lt.f32", S(2), S(0), R(0)),
            SceInstr("select.f32", S(3), S(2), S(1), S(0)),
        ),
        1,
    )
    check(Case(program, (7, 100), ((0, 400, 4), (8192, *target), (24000, 100, 1), (32768, 400, 4))))
    check(Case(program, (30, 40), ((0, 160, 4), (8192, 160, 4), (24000, 40, 1), (0, 160, 4))))


@pytest.mark.parametrize("sizes", [(3, 500), (40, 64), (2, 5000)])
def test_a_stored_element_is_reduced(sizes: tuple[int, int]) -> None:
    program = SceProgram(
        (load(), store(), store()),
        (SceInstr("mul.f32", S(1), S(0), S(0)), SceInstr("reduce_sum.f32", S(2), S(1))),
        0,
    )
    for step in (4, 8):
        row = sizes[1] * step
        memory = memory_of_floats(5, 160 << 10)
        check(Case(program, sizes, ((0, sizes[1] * 4, 4), (60000, row, step), (50000, 4, 0)), fold=1), memory)


SOFTMAX_SUM = SceProgram(
    (load(), load(), store(), store()),
    (
        SceInstr("sub.f32", R(0), S(0), S(1)),
        SceInstr("mul.f32", R(1), R(0), R(0)),
        SceInstr("mov.32", S(2), R(1)),
        SceInstr("reduce_sum.f32", S(3), R(1)),
    ),
    2,
)


@pytest.mark.parametrize("row", [1, 2, 31, 32, 33, 100, 512, 600, 1024, 1500])
@pytest.mark.parametrize("rows", [1, 3, 8])
def test_rows_reduce_and_store_in_full(rows: int, row: int) -> None:
    if rows * row * 4 > 24000:
        rows = 3
    streams = ((0, row * 4, 4), (60000, 4, 0), (30000, row * 4, 4), (62000, 4))
    check(Case(SOFTMAX_SUM, (rows, row), tuple((*s, *(0,) * (3 - len(s))) for s in streams), fold=1))


@pytest.mark.parametrize("sizes", [(3, 700), (5, 64), (1, 4096), (40, 9), (1000, 2)])
def test_the_tail_runs_once_a_row(sizes: tuple[int, int]) -> None:
    program = SceProgram(
        (load(), load(), StreamSpec("scalar", "f32"), store(), store("f32")),
        (
            SceInstr("reduce_sum.f32", R(0), S(0)),
            SceInstr("reduce_max.f32", R(1), S(0)),
            SceInstr("add.f32", R(2), R(0), S(1)),
            SceInstr("mul.f32", S(3), R(2), S(2)),
            SceInstr("mov.f32", S(4), R(1)),
        ),
        3,
    )
    two = int(np.float32(2.0).view(np.uint32))
    rows, row = sizes
    streams = ((0, row * 4, 4), (40000, 4, 0), (two, 0, 0), (45000, 8, 0), (56000, 4, 0))
    check(Case(program, (rows, row), streams, fold=1))
    check(
        Case(program, (rows, row), ((0, row * 4, 4), (40000, 0, 0), (two, 0, 0), (45000, 4, 0), (56000, 8, 0)), fold=1)
    )


@pytest.mark.parametrize("row", [4097, 8192, 9000])
def test_rows_longer_than_a_block(row: int) -> None:
    program = SceProgram(
        (load(), load(), store(), store(), store()),
        (
            SceInstr("mul.f32", R(0), S(0), S(1)),
            SceInstr("reduce_sum.f32", R(1), R(0)),
            SceInstr("reduce_max.f32", S(4), S(0)),
            SceInstr("mov.32", S(2), R(0)),
            SceInstr("add.f32", S(3), R(1), R(1)),
        ),
        2,
    )
    memory = memory_of_floats(1, 200 << 10)
    streams = ((0, row * 4, 4), (0, 0, 0), (80000, row * 4, 4), (160000, 4, 0), (161000, 4, 0))
    check(Case(program, (2, row), streams, fold=1), memory)
    check(
        Case(program, (1, row), ((4, 0, 8), (0, 0, 4), (80000, 0, 4), (160000, 4, 0), (161000, 4, 0)), fold=1), memory
    )


def test_a_reduction_may_leave_its_result_in_its_operand() -> None:
    program = SceProgram(
        (load(), store()),
        (
            SceInstr("add.f32", R(0), S(0), S(0)),
            SceInstr("reduce_sum.f32", R(0), R(0)),
            SceInstr("mov.f32", S(1), R(0)),
        ),
        1,
    )
    for sizes in ((1, 9000), (3, 3000), (20, 100), (9, 1)):
        row = sizes[1]
        check(Case(program, sizes, ((0, row * 4, 4), (60000, 4, 0)), fold=1))


@pytest.mark.parametrize(
    ("sizes", "fold", "x", "out"),
    [
        ((4, 5, 6), 2, (120, 24, 4), (4,)),
        ((4, 5, 6), 2, (200, 32, 4), (8,)),  # padded: the row is no single run
        ((4, 30, 40), 2, (6000, 200, 4), (4,)),
        ((3, 50, 40), 2, (8000, 160, 4), (4,)),
        ((2, 3, 5, 7), 2, (420, 140, 28, 4), (12, 4)),
        ((2, 3, 5, 7), 1, (420, 140, 28, 4), (60, 20, 4)),
        ((6, 7), 2, (28, 4), ()),
        ((3, 40, 60), 2, (4, 12, 480), (4,)),  # innermost last in memory
        ((130, 40, 1), 2, (160, 4, 4), (4,)),
        ((2, 70, 70), 2, (20000, 284, 4), (4,)),  # longer than a block, padded
        ((1000,), 1, (0,), ()),
    ],
)
def test_several_folded_dimensions(sizes: tuple[int, ...], fold: int, x: tuple[int, ...], out: tuple[int, ...]) -> None:
    program = SceProgram((load(), store()), (SceInstr("reduce_sum.f32", S(1), S(0)),), 0)
    padded = (*out, *(0,) * (len(sizes) - len(out)))
    check(Case(program, sizes, ((0, *x), (60000, *padded)), fold))


def test_random_programs_of_strided_streams() -> None:
    rng = np.random.default_rng(7)
    for _ in range(150):
        rank = int(rng.integers(1, 5))
        limit = [0, 3000, 60, 14, 7][rank]
        sizes = tuple(int(n) for n in rng.integers(1, limit, rank))
        fold = int(rng.integers(0, rank + 1))
        check(random_case(rng, sizes, fold))


def random_case(rng: np.random.Generator, sizes: tuple[int, ...], fold: int) -> Case:
    kept = len(sizes) - fold

    def strides(dims: Sequence[int], itemsize: int, injective: bool) -> list[int]:
        order = list(range(len(dims))) if rng.random() < 0.6 else rng.permutation(len(dims)).tolist()
        result, step = [0] * len(dims), itemsize
        for dim in reversed(order):
            result[dim] = step if injective or rng.random() < 0.8 else 0
            step *= dims[dim]
            if rng.random() < 0.2:
                step += itemsize * int(rng.integers(1, 4))
        return result

    def padded(values: list[int]) -> list[int]:
        return values + [0] * (len(sizes) - len(values))

    body_store = (20000, *strides(sizes, 4, injective=True))
    streams = [
        (0, *strides(sizes, 4, False)),
        (4, *strides(sizes, 4, False)),
        (int(rng.integers(0, 99)), *[1] * len(sizes)),
        body_store,
    ]
    specs = [load(), load(), StreamSpec("iota", "i32"), store()]
    instructions = [
        SceInstr("add.f32", R(0), S(0), S(1)),
        SceInstr("cast.i32.f32", R(1), S(2)),
        SceInstr("mul.f32", R(2), R(0), R(1)),
        SceInstr("sub.f32", S(3), R(2), S(0)),
    ]
    if fold:
        specs += [load(), store()]
        tail_load, tail_store = strides(sizes[:kept], 4, False), strides(sizes[:kept], 4, injective=True)
        streams += [(0, *padded(tail_load)), (45000, *padded(tail_store))]
        instructions += [SceInstr("reduce_sum.f32", R(0), R(2)), SceInstr("add.f32", S(5), R(0), S(4))]
    return Case(SceProgram(tuple(specs), tuple(instructions), 3), sizes, tuple(map(tuple, streams)), fold)


def test_no_elements_nothing_happens() -> None:
    memory = memory_of_floats(2)
    for sizes in ((0,), (5, 0), (-3, 4)):
        case = Case(ADD, sizes, tuple((1 << 40, *[4] * len(sizes)) for _ in range(3)))
        assert (run(case, memory) == memory).all()


@pytest.mark.parametrize(
    ("sizes", "stream"),
    [
        ((1024,), ((256 << 10) - 4092, 4)),
        ((2,), (-1, 4)),
        ((2,), (0, -4)),
        ((2,), (0, 1 << 62)),
        ((3,), (0, -(1 << 63))),
        ((16, 16), (0, (1 << 60), 4)),
        ((16, 16), (0, (1 << 60), -(1 << 60))),
        ((1,), (1 << 63, 0)),
        ((1,), ((1 << 63) - 2, 0)),
    ],
)
@pytest.mark.parametrize("position", [0, 2])
def test_streams_outside_sram_are_faults(sizes: tuple[int, ...], stream: tuple[int, ...], position: int) -> None:
    streams = [(0, *[0] * len(sizes)), (0, *[0] * len(sizes)), (8192, *[0] * len(sizes))]
    streams[position] = stream
    with pytest.raises(OutOfBounds, match=r"program touches bytes .* of SRAM"):
        launch(build([command("mov", 5, 1), sce(0, sizes, streams)], [ADD]))


@pytest.mark.parametrize("sizes", [(1 << 40,), (1 << 20, 1 << 20), (1 << 62, 1 << 62)])
def test_huge_iteration_spaces_are_faults(sizes: tuple[int, ...]) -> None:
    with pytest.raises(OversizedCommand):
        launch(build([sce(0, sizes, [(0, *[0] * len(sizes))] * 3)], [ADD]))
