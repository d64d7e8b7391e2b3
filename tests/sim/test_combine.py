"""COMBINE against the references: trees and scans by programs of one and of several values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pytest
from numpy.typing import NDArray

from loom_core.base.dtype import by_name
from loom_core.isa.encoding import Command, command
from loom_core.isa.errors import InvalidCommand
from loom_core.isa.program import R, S, SceInstr, SceProgram, StreamSpec
from loom_core.isa.sce import SCE_OPS
from loom_core.reference import fold
from loom_core.reference.opcodes import reference_of
from loom_sim.errors import OutOfBounds, OversizedCommand
from tests.sim.harness import build, launch, whole
from tests.sim.test_rows import values

Array = NDArray[Any]

_MEMORY: Final = 192 << 10
_MODES: Final = ("reduce", "scan", "reverse_scan")


def combining(dtypes: Sequence[str], instructions: Sequence[SceInstr], registers: int, scalars: str = "") -> SceProgram:
    """A combine program; `scalars` are dtypes of scalar streams."""
    kinds = [StreamSpec(kind, dtype) for kind in ("load", "load", "store") for dtype in dtypes]
    return SceProgram(
        (*kinds, *(StreamSpec("scalar", name) for name in scalars.split())), tuple(instructions), registers
    )


SUM: Final = combining(["f32"], [SceInstr("add.f32", S(2), S(0), S(1))], 0)
MEAN: Final = combining(  # not associative: the order shows
    ["f32"], [SceInstr("add.f32", R(0), S(0), S(1)), SceInstr("mul.f32", S(2), R(0), S(3))], 1, "f32"
)
BYTES: Final = combining(["u8"], [SceInstr("sub.u8", S(2), S(0), S(1))], 0)
# (a, b) then (c, d): a c and b c + d, the composition of two affine maps; reads a store back.
AFFINE: Final = combining(
    ["f32", "f32"],
    [
        SceInstr("mul.f32", S(4), S(0), S(2)),
        SceInstr("fma.f32", R(0), S(1), S(2), S(3)),
        SceInstr("mov.f32", S(5), R(0)),
    ],
    1,
)
# The larger value and its index, the left one where they are equal.
ARGMAX: Final = combining(
    ["f32", "i64"],
    [
        SceInstr("ge.f32", R(0), S(0), S(2)),
        SceInstr("select.f32", S(4), R(0), S(0), S(2)),
        SceInstr("select.i64", S(5), R(0), S(1), S(3)),
    ],
    1,
)
WIDE: Final = combining(
    ["i16", "f64", "bf16"],
    [
        SceInstr("sub.i16", S(6), S(0), S(3)),
        SceInstr("add.f64", S(7), S(1), S(4)),
        SceInstr("mul.bf16", S(8), S(2), S(5)),
    ],
    0,
)
PROGRAMS: Final = {"sum": SUM, "mean": MEAN, "bytes": BYTES, "affine": AFFINE, "argmax": ARGMAX, "wide": WIDE}
_HALF: Final = int(np.float32(0.5).view(np.uint32))


def combine_arrays(program: SceProgram, left: list[Array], right: list[Array]) -> list[Array]:
    """The program on arrays."""
    known: dict[Any, Array] = {S(i): x for i, x in enumerate([*left, *right])}
    count = len(left)
    for number in range(3 * count, len(program.streams)):
        known[S(number)] = np.float32(0.5)
    for instr in program.instructions:
        known[instr.dst] = reference_of(SCE_OPS[instr.mnemonic])(*(known[o] for o in instr.operands))
    return [known[S(2 * count + i)] for i in range(count)]


@dataclass(frozen=True)
class Tile:
    """A strided array in SRAM."""

    offset: int
    strides: tuple[int, ...]

    def view(self, memory: Array, dtype: Any, sizes: Sequence[int]) -> Array:
        return np.ndarray(tuple(sizes), dtype, memory, self.offset, self.strides[: len(sizes)])


def contiguous(sizes: Sequence[int], itemsize: int) -> tuple[int, ...]:
    return tuple(itemsize * int(np.prod(sizes[d + 1 :])) for d in range(len(sizes)))


def combine(program: SceProgram, sizes: Sequence[int], right: list[Tile], out: list[Tile], mode: str) -> Command:
    rank = len(sizes)
    streams: list[tuple[int, ...]] = [(1 << 60,) * (1 + rank) for _ in right]  # left ones are ignored
    for tile in [*right, *out]:
        streams.append((tile.offset, *tile.strides, *[1 << 60] * (rank - len(tile.strides))))
    streams += [(_HALF, *[0] * rank)] * (len(program.streams) - len(streams))
    operands = [0, *sizes, *(value for stream in streams for value in stream)]
    return command("combine", *operands, flags={"ndim": rank, "mode": _MODES.index(mode)})


def run(program: SceProgram, item: Command, memory: Array) -> Array:
    commands = [whole((1, 0), (0, 0), memory.nbytes), item, whole((0, 0), (1, 0), memory.nbytes)]
    (after,) = launch(build(commands, [program], 1), [memory])
    return after


def check(
    program: SceProgram, sizes: Sequence[int], mode: str, right: list[Tile], out: list[Tile], inputs: list[Array]
) -> None:
    count = len(inputs)
    dtypes = [by_name(stream.dtype).numpy for stream in program.streams[:count]]
    memory = np.full(_MEMORY, 9, np.uint8)
    for tile, x, dtype in zip(right, inputs, dtypes, strict=True):
        tile.view(memory, dtype, sizes)[...] = x
    rows = []
    for tile, dtype, stream in zip(right, dtypes, program.streams[:count], strict=True):
        x = tile.view(memory, dtype, sizes)
        rows.append(reference_of(SCE_OPS[f"mov.{stream.dtype}"])(x) if by_name(stream.dtype).is_float else x.copy())
    step = lambda left, right: combine_arrays(program, list(left), list(right))  # noqa: E731
    results = fold.tree(rows, step) if mode == "reduce" else fold.scan(rows, step, mode == "reverse_scan")
    expected = memory.copy()
    for tile, dtype, result in zip(out, dtypes, results, strict=True):
        tile.view(expected, dtype, sizes[:-1] if mode == "reduce" else sizes)[...] = result
    after = run(program, combine(program, sizes, right, out, mode), memory)
    assert (after == expected).all(), (sizes, mode, int(np.flatnonzero(after != expected)[0]))


def laid_out(program: SceProgram, sizes: Sequence[int], mode: str) -> tuple[list[Tile], list[Tile], list[Array]]:
    """Contiguous tiles, one behind the other, and what the right ones hold."""
    count = sum(stream.kind == "store" for stream in program.streams)
    right, out, inputs, at = [], [], [], 0
    for value in range(count):
        dtype = program.streams[value].dtype
        size = by_name(dtype).itemsize
        x = values(dtype, int(np.prod(sizes[:-1])), sizes[-1], value + 1).reshape(sizes)
        for tiles, shape in ((right, sizes), (out, sizes[:-1] if mode == "reduce" else sizes)):
            tiles.append(Tile(at, contiguous(shape, size)))
            at += -(-int(np.prod(shape)) * size // 8) * 8 + 64
        inputs.append(x)
    return right, out, inputs


@pytest.mark.parametrize("mode", _MODES)
@pytest.mark.parametrize("name", PROGRAMS)
def test_rows(name: str, mode: str) -> None:
    program = PROGRAMS[name]
    for sizes in ((1,), (7,), (5, 1), (3, 2), (6, 3), (9, 31), (2, 64), (3, 100), (70, 5), (2, 3, 7), (2, 2, 2, 9)):
        check(program, sizes, mode, *laid_out(program, sizes, mode))


@pytest.mark.parametrize("mode", _MODES)
@pytest.mark.parametrize("row", [1023, 1024, 1025, 4095, 4096, 4097, 9001])
def test_long_rows(row: int, mode: str) -> None:
    for program, sizes in ((MEAN, (2, row)), (ARGMAX, (1, row))) if row < 5000 else ((MEAN, (1, row)),):
        check(program, sizes, mode, *laid_out(program, sizes, mode))


@pytest.mark.parametrize("mode", _MODES)
def test_many_rows(mode: str) -> None:
    for sizes in ((130, 40), (65, 65)):
        check(AFFINE, sizes, mode, *laid_out(AFFINE, sizes, mode))


@pytest.mark.parametrize("mode", _MODES)
def test_strided_tiles(mode: str) -> None:
    """Columns, padding, a broadcast operand, a transposed result, a result in place."""
    sizes = (6, 20)
    x, y = (values("f32", 6, 20, seed) for seed in (1, 2))
    out = [Tile(8192, (4,)), Tile(9000, (12,))] if mode == "reduce" else [Tile(8192, (4, 24)), Tile(10000, (88, 4))]
    check(AFFINE, sizes, mode, [Tile(0, (4, 24)), Tile(1024, (100, 4))], out, [x, y])
    check(AFFINE, sizes, mode, [Tile(4, (0, 4)), Tile(1024, (4, 0))], out, [x[:1], y[:, :1]])
    if mode != "reduce":
        check(MEAN, sizes, mode, [Tile(0, (80, 4))], [Tile(0, (80, 4))], [x])


def test_a_single_element_is_canonical() -> None:
    memory = np.zeros(_MEMORY, np.uint8)
    memory[:4] = np.array([0xFFA00001], np.uint32).view(np.uint8)
    for mode in _MODES:
        out = [Tile(64, ())] if mode == "reduce" else [Tile(64, (4,))]
        after = run(SUM, combine(SUM, (1,), [Tile(0, (4,))], out, mode), memory)
        assert after[64:68].view(np.uint32).tolist() == [0x7FC00000]


def test_tiles_outside_sram_are_faults() -> None:
    memory = np.zeros(_MEMORY, np.uint8)
    good = Tile(0, (40, 4))
    for mode in _MODES:
        out = Tile(4096, (4,) if mode == "reduce" else (40, 4))
        for bad in (
            Tile(-4, good.strides),
            Tile((256 << 10) - 8, (40, 4)),
            Tile(0, (1 << 61, 4)),
            Tile(1 << 62, (4, 4)),
        ):
            with pytest.raises(OutOfBounds, match="combine touches bytes"):
                run(SUM, combine(SUM, (3, 10), [bad], [out], mode), memory)
            with pytest.raises(OutOfBounds, match="combine touches bytes"):
                run(SUM, combine(SUM, (3, 10), [good], [Tile(bad.offset or -4, out.strides)], mode), memory)
        for sizes in ((0, 10), (3, -1)):
            run(SUM, combine(SUM, sizes, [Tile(1 << 61, (4, 4))], [out], mode), memory)
        with pytest.raises(OversizedCommand, match="combine covers"):
            run(
                SUM,
                combine(SUM, (1 << 30, 1 << 30), [Tile(0, (0, 0))], [Tile(0, (0, 0)[: len(out.strides)])], mode),
                memory,
            )


@pytest.mark.parametrize(
    ("streams", "instructions"),
    [
        ("load f32, store f32", [SceInstr("neg.f32", S(1), S(0))]),
        ("load f32, load i32, store f32", [SceInstr("neg.f32", S(2), S(0)), SceInstr("neg.i32", R(0), S(1))]),
        ("load f32, load f32, iota i32, store f32", [SceInstr("add.f32", S(3), S(0), S(1))]),
        ("load f32, load f32, scalar f32, store f32", [SceInstr("add.f32", S(3), S(0), S(1))]),
        (
            "load f32, load f32, store f32, store f32",
            [SceInstr("mov.f32", S(2), S(0)), SceInstr("mov.f32", S(3), S(1))],
        ),
        ("load f32, load f32, store f32", [SceInstr("scan_sum.f32", S(2), S(0)), SceInstr("neg.f32", R(0), S(1))]),
    ],
)
def test_programs_of_another_form_are_refused(streams: str, instructions: list[SceInstr]) -> None:
    specs = tuple(StreamSpec(*stream.split()) for stream in streams.split(", "))
    program = SceProgram(specs, tuple(instructions), 1)
    operands = [0, 4, *[0, 4] * len(specs)]
    with pytest.raises(InvalidCommand, match="its program"):
        run(program, command("combine", *operands, flags={"ndim": 1}), np.zeros(_MEMORY, np.uint8))
