"""Gather, scatter, scatter-reduce and compare-and-swap against the references, and their bounds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import pytest
from numpy.typing import NDArray

from loom_core.isa.encoding import Command, Reg, command
from loom_core.isa.errors import InvalidCommand
from loom_core.isa.sce import SCE_OPS
from loom_core.reference import arith, indexed
from loom_sim.errors import OutOfBounds, OversizedCommand, ReadOnlySpace, UnknownSpace
from tests.sim.harness import build, launch, whole

Array = NDArray[Any]

_MEMORY: Final = 4096  # bytes of the buffer that is addressed
_TILES: Final = 64 << 10  # bytes of SRAM that the tests use
_UNSIGNED: Final = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}
_LEAST: Final = -(1 << 63)


def contiguous(sizes: Sequence[int], itemsize: int) -> tuple[int, ...]:
    strides, step = [], itemsize
    for size in reversed(sizes):
        strides.append(step)
        step *= size
    return tuple(reversed(strides))


def view(memory: Array, offset: int, dtype: Any, sizes: Sequence[int], strides: Sequence[int]) -> Array:
    """A strided tile inside memory."""
    return np.ndarray(tuple(sizes), dtype, memory, offset, tuple(strides))


@dataclass
class Box:
    """Where the arrays of an indexed command lie: (offset, strides) of each, in SRAM but for memory."""

    sizes: tuple[int, ...]
    itemsize: int
    scale: int
    index: NDArray[Any]
    memory: tuple[int, tuple[int, ...]] = (0, ())
    mask: NDArray[np.bool_] | None = None
    tile_strides: tuple[int, ...] = ()
    places: dict[str, int] = field(default_factory=lambda: dict(zip(_ARRAYS, range(0, 60000, 10000), strict=True)))

    @property
    def wide(self) -> bool:
        return self.index.dtype == np.int64

    def strides(self, name: str) -> tuple[int, ...]:
        if name == "memory":
            return self.memory[1] or (0,) * len(self.sizes)
        size = {"index": self.index.itemsize, "mask": 1}.get(name, self.itemsize)
        return self.tile_strides if name == "tile" and self.tile_strides else contiguous(self.sizes, size)

    def dims(self, names: Sequence[str]) -> list[Any]:
        columns = [self.sizes, *(self.strides(name) for name in names)]
        return [value for dim in zip(*columns, strict=True) for value in dim]

    def flags(self, **more: int) -> dict[str, int]:
        log2 = self.itemsize.bit_length() - 1
        masked = int(self.mask is not None)
        return {"ndim": len(self.sizes), "log2_bytes": log2, "index": int(self.wide), "masked": masked, **more}

    @property
    def offsets(self) -> Array:
        start, strides = self.memory
        place = np.full(self.sizes, start, np.int64) + self.index.astype(np.int64) * self.scale
        for dim, step in enumerate(strides):
            shape = [-1 if d == dim else 1 for d in range(len(self.sizes))]
            place = place + (np.arange(self.sizes[dim]) * step).reshape(shape)
        return place

    def sram(self, tiles: dict[str, Array]) -> Array:
        """SRAM with the index, the mask and these tiles in place."""
        memory = np.random.default_rng(1).integers(0, 256, _TILES).astype(np.uint8)
        contents: dict[str, Array] = {"index": self.index, **tiles}
        if self.mask is not None:
            contents["mask"] = np.where(self.mask, np.arange(self.mask.size).reshape(self.sizes) % 255 + 1, 0)
        for name, values in contents.items():
            dtype = np.uint8 if name == "mask" else values.dtype
            view(memory, self.places[name], dtype, self.sizes, self.strides(name))[...] = values
        return memory


_ARRAYS: Final = ("tile", "index", "mask", "old", "expected", "memory")
_FOUR: Final = ("memory", "tile", "index", "mask")


def gather(box: Box, fill: int = 0, skip: int = 0, space: Any = 1) -> Command:
    at = box.places
    operands = [space, box.memory[0], at["tile"], at["index"], at["mask"], box.scale, fill]
    return command("gather", *operands, *box.dims(_FOUR), flags=box.flags(skip=skip))


def scatter(box: Box, space: Any = 1) -> Command:
    at = box.places
    operands = [at["tile"], space, box.memory[0], at["index"], at["mask"], box.scale]
    return command("scatter", *operands, *box.dims(_FOUR), flags=box.flags())


def scatter_reduce(box: Box, opcode: int, old: int = 1, space: Any = 1) -> Command:
    at = box.places
    operands = [at["tile"], space, box.memory[0], at["index"], at["mask"], at["old"], box.scale, opcode]
    return command("scatter_reduce", *operands, *box.dims((*_FOUR, "old")), flags=box.flags(old=old))


def compare_swap(box: Box, old: int = 1) -> Command:
    at = box.places
    operands = [at["tile"], 1, box.memory[0], at["index"], at["mask"], at["old"], box.scale, at["expected"]]
    return command("compare_swap", *operands, *box.dims((*_FOUR, "old", "expected")), flags=box.flags(old=old))


def run(item: Command, memory: Array, sram: Array, **more: Any) -> tuple[Array, Array]:
    """(memory, SRAM) after one command."""
    commands = [whole((2, 0), (0, 0), _TILES), item, whole((0, 0), (2, 0), _TILES)]
    after, tiles = launch(build(commands, buffers=2, **more), [memory, sram])
    return after, tiles


def random_bytes(seed: int) -> Array:
    return np.random.default_rng(seed).integers(0, 256, _MEMORY).astype(np.uint8)


def random_box(rng: np.random.Generator) -> Box:
    """A tile whose elements all lie inside memory, with strides, repeated indices and sometimes a mask."""
    rank, itemsize = int(rng.integers(1, 5)), 1 << int(rng.integers(0, 4))
    sizes = tuple(int(n) for n in rng.integers(1, [0, 120, 14, 6, 4][rank], rank))
    scale = int(rng.choice([itemsize, itemsize, 1, 3, -itemsize, 24, 0]))
    strides = tuple(int(n) for n in rng.choice([0, 0, itemsize, -itemsize, 5], rank))
    reach = sum(abs(s) * (n - 1) for s, n in zip(strides, sizes, strict=True))
    room = (_MEMORY - itemsize - 2 * reach) // max(abs(scale), 1)
    index = rng.integers(0, max(room, 1), sizes).astype(np.int32 if rng.random() < 0.5 else np.int64)
    if rng.random() < 0.3:
        index[...] = index[..., :1]
    start = reach + (room * -scale if scale < 0 else 0)
    mask = rng.random(sizes) < 0.7 if rng.random() < 0.6 else None
    if mask is not None and rng.random() < 0.3:
        mask[...] = mask[..., :1]
    if mask is not None:
        index = np.where(mask, index, rng.integers(-(1 << 31), 1 << 31, sizes)).astype(index.dtype)
    tile = contiguous([n + int(rng.integers(0, 2)) for n in sizes], itemsize) if rng.random() < 0.3 else ()
    return Box(sizes, itemsize, scale, index, (start, strides), mask, tile)


@pytest.mark.parametrize("seed", range(60))
def test_gather(seed: int) -> None:
    rng = np.random.default_rng(seed)
    box, memory, fill = random_box(rng), random_bytes(seed), int(rng.integers(_LEAST, (1 << 63) - 1))
    dtype = _UNSIGNED[box.itemsize]
    sram = box.sram({})
    at = (box.places["tile"], dtype, box.sizes, box.strides("tile"))
    for skip in (0, 1):
        filling = view(sram, *at).copy() if skip else np.array(fill % (1 << 64), np.uint64).astype(dtype)
        expected = sram.copy()
        view(expected, *at)[...] = indexed.gather(memory, box.offsets, dtype, box.mask, filling)
        after, tiles = run(gather(box, fill, skip), memory, sram)
        assert (after == memory).all()
        assert (tiles == expected).all()


@pytest.mark.parametrize("seed", range(60))
def test_scatter(seed: int) -> None:
    rng = np.random.default_rng(100 + seed)
    box, memory = random_box(rng), random_bytes(seed)
    values = rng.integers(0, 1 << 62, box.sizes).astype(_UNSIGNED[box.itemsize])
    sram = box.sram({"tile": values})
    after, tiles = run(scatter(box), memory, sram)
    assert (after == indexed.scatter(memory, box.offsets, values, box.mask)).all()
    assert (tiles == sram).all()


_FLOATS: Final = np.array(
    [0, 1 << 31, 0x7F800000, 0xFF800000, 0xFFA00001, 1, 0x7F7FFFFF, 0x3F800000, 0xBFC00000], np.uint32
).view(np.float32)
_COMBINES: Final[dict[str, Any]] = {
    "add.f32": arith.add32, "sub.f32": arith.sub32, "mul.f32": arith.mul32, "min.f32": arith.min32,
    "max.f32": arith.max32, "minp.f32": arith.minp32, "maxp.f32": arith.maxp32, "add.i32": np.add,
    "min.i32": np.minimum, "max.i32": np.maximum, "and.i32": np.bitwise_and, "or.i32": np.bitwise_or,
    "xor.i32": np.bitwise_xor,
    "add.i64": np.add, "min.i64": np.minimum, "max.i64": np.maximum, "and.i64": np.bitwise_and,
    "or.i64": np.bitwise_or, "xor.i64": np.bitwise_xor,
}  # fmt: skip


def typed_case(rng: np.random.Generator, dtype: Any) -> tuple[Box, Array, Array]:
    """(box, memory, values) with many elements at few addresses."""
    itemsize = np.dtype(dtype).itemsize
    sizes = (int(rng.integers(1, 12)), int(rng.integers(1, 30)))
    index = rng.integers(0, 9, sizes).astype(np.int32 if rng.random() < 0.5 else np.int64)
    mask = rng.random(sizes) < 0.8 if rng.random() < 0.5 else None
    box = Box(sizes, itemsize, itemsize, index, (0, (0, 0)), mask)
    count = _MEMORY // itemsize
    if dtype == np.float32:
        memory, values = (_FLOATS[rng.integers(0, len(_FLOATS), n)].astype(dtype) for n in (count, sizes))
        return (
            box,
            memory.view(np.uint8),
            np.where(rng.random(sizes) < 0.5, rng.standard_normal(sizes), values).astype(np.float32),
        )
    limits = np.iinfo(dtype)
    memory, values = (rng.integers(limits.min, limits.max, n, dtype, endpoint=True) for n in (count, sizes))
    return box, memory.view(np.uint8), values


@pytest.mark.parametrize("mnemonic", _COMBINES)
def test_scatter_reduce(mnemonic: str) -> None:
    dtype = {"f32": np.float32, "i32": np.int32, "i64": np.int64}[mnemonic.split(".")[1]]
    for seed in range(6):
        box, memory, values = typed_case(np.random.default_rng(seed), dtype)
        check_scatter_reduce(box, memory, values, SCE_OPS[mnemonic].opcode, _COMBINES[mnemonic])


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.uint32, np.uint64])
def test_exchange(dtype: Any) -> None:
    for seed in range(6):
        check_scatter_reduce(*typed_case(np.random.default_rng(seed), dtype), 0, None)


def check_scatter_reduce(box: Box, memory: Array, values: Array, opcode: int, combine: Any) -> None:
    sram = box.sram({"tile": values})
    expected, old = indexed.scatter_reduce(memory, box.offsets, values, combine, box.mask)
    for returns in (0, 1):
        with_old = sram.copy()
        if returns:
            view(with_old, box.places["old"], values.dtype, box.sizes, box.strides("old"))[...] = old
        after, tiles = run(scatter_reduce(box, opcode, returns), memory, sram)
        assert (after == expected).all()
        assert (tiles == with_old).all()


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.uint32, np.uint64])
def test_compare_swap(dtype: Any) -> None:
    for seed in range(8):
        rng = np.random.default_rng(seed)
        box, memory, values = typed_case(rng, dtype)
        memory = (memory.view(dtype) % 3).view(np.uint8)
        wanted, values = (rng.integers(0, 3, box.sizes).astype(dtype) for _ in range(2))
        sram = box.sram({"tile": values, "expected": wanted})
        expected, old = indexed.compare_swap(memory, box.offsets, wanted, values, box.mask)
        view(sram_after := sram.copy(), box.places["old"], dtype, box.sizes, box.strides("old"))[...] = old
        after, tiles = run(compare_swap(box), memory, sram)
        assert (after == expected).all()
        assert (tiles == sram_after).all()
        after, tiles = run(compare_swap(box, old=0), memory, sram)
        assert (after == expected).all()
        assert (tiles == sram).all()


def test_rows_of_a_matrix() -> None:
    """The usual embedding: one index a row, rows contiguous."""
    table = np.random.default_rng(0).standard_normal((50, 16)).astype(np.float32)
    rows = np.array([3, 49, 0, 3, 7], np.int32)
    commands = [
        whole((2, 0), (0, 0), 20),
        command("gather", 1, 0, 1024, 0, 0, 64, 0, 5, 0, 64, 4, 0, 16, 4, 4, 0, 0, flags={"ndim": 2, "log2_bytes": 2}),
        whole((0, 1024), (3, 0), 320),
    ]
    *_, out = launch(build(commands, buffers=3), [table, rows, np.zeros((5, 16), np.float32)])
    assert (out == table[rows]).all()


def test_within_sram_and_with_register_operands() -> None:
    box = Box((30,), 4, 4, np.arange(30)[::-1].astype(np.int32), (5000, (0,)))
    sram = box.sram({})
    view(sram, 5000, np.int32, (30,), (4,))[...] = np.arange(30)
    item = gather(box, space=0)
    operands = [*item.operands[:5], Reg(7), *item.operands[6:]]
    commands = [command("mov", 7, 4), whole((1, 0), (0, 0), _TILES), command("gather", *operands, flags=item.flags)]
    (tiles,) = launch(build([*commands, whole((0, 0), (1, 0), _TILES)], buffers=1), [sram])
    assert view(tiles, box.places["tile"], np.int32, (30,), (4,)).tolist() == list(range(30))[::-1]


def test_indices_are_read_when_their_element_is_due() -> None:
    """A gather onto its own index tile: no element uses an index that was not checked."""
    box = Box((8,), 4, 4, np.zeros(8, np.int32))
    box.places["tile"] = box.places["index"] + 4
    memory = np.zeros(_MEMORY, np.uint8)
    memory[:4] = np.array([5], np.int32).view(np.uint8)
    memory[20:24] = np.array([1 << 20], np.int32).view(np.uint8)
    with pytest.raises(OutOfBounds, match="gather touches bytes 4194304 to 4194307"):
        run(gather(box), memory, box.sram({}))


def one(index: int, **more: Any) -> Box:
    return Box((1,), 4, more.pop("scale", 4), np.array([index], np.int64), (more.pop("start", 0), (0,)), **more)


@pytest.mark.parametrize(
    ("box", "low"),
    [
        (one(-1), -4), (one(1024), 4096), (one(1023, scale=5), 5115), (one(1 << 40), 1 << 42),
        (one(0, start=4093), 4093), (one(0, start=-1), -1), (one(5, start=4080), 4100), (one(-5, start=16), -4),
        (one(1 << 62), None),
        (one(1 << 62, scale=8), None), (one(_LEAST, scale=-1), None), (one(1 << 32, scale=1 << 32), None),
        (one(1, scale=_LEAST), None), (one(0, start=1 << 62), None), (one(0, start=_LEAST), None),
        (one(2, scale=_LEAST), None),
    ],
)  # fmt: skip
def test_indices_that_lead_outside_are_faults(box: Box, low: int | None) -> None:
    sram = box.sram({"tile": np.zeros(1, np.uint32), "expected": np.zeros(1, np.uint32)})
    for item in (gather(box), scatter(box), scatter_reduce(box, 0), compare_swap(box)):
        names = "" if low is None else f" {low} to {low + 3} of buffer 'b0'"
        with pytest.raises(OutOfBounds, match=f"{item.mnemonic} touches bytes{names}"):
            run(item, random_bytes(0), sram)


def test_masked_elements_may_lie_anywhere() -> None:
    box = Box((3,), 4, 1 << 40, np.array([-1, 0, 1 << 30], np.int64), mask=np.array([False, True, False]))
    sram = box.sram({"tile": np.arange(3, dtype=np.uint32), "expected": np.zeros(3, np.uint32)})
    for item in (gather(box), scatter(box), scatter_reduce(box, 0), compare_swap(box)):
        run(item, random_bytes(0), sram)


@pytest.mark.parametrize("array", ["tile", "index", "mask", "old", "expected"])
@pytest.mark.parametrize("place", [-1, (256 << 10) - 3, 1 << 62, _LEAST])
def test_tiles_outside_sram_are_faults(array: str, place: int) -> None:
    box = one(0, mask=np.array([True]))
    sram = box.sram({"tile": np.zeros(1, np.uint32), "expected": np.zeros(1, np.uint32)})
    box.places[array] = place + 3 * (array == "mask" and place > 0)  # a mask has elements of one byte
    with pytest.raises(OutOfBounds, match="of SRAM"):
        run(compare_swap(box), random_bytes(0), sram)


def test_spaces_sizes_and_read_only_memory() -> None:
    box = one(0, mask=np.array([False]))
    sram = box.sram({"tile": np.zeros(1, np.uint32)})
    with pytest.raises(ReadOnlySpace, match="scatter writes to buffer 'b0'"):
        commands = [command("mov", 5, 1), scatter(box, Reg(5))]
        launch(build(commands, buffers=2, read_only=[0]), [random_bytes(0), sram])
    with pytest.raises(UnknownSpace):
        launch(build([command("mov", 5, 9), gather(box, space=Reg(5))], buffers=2), [random_bytes(0), sram])
    huge = Box((1,), 1, 0, np.zeros(1, np.int32))
    huge.sizes, huge.index = (1 << 20, 1 << 20), np.zeros((1, 1), np.int32)
    huge.tile_strides = (0, 0)
    item = gather(huge)
    operands = [*item.operands[:7], 1 << 20, 0, 0, 0, 0, 1 << 20, 0, 0, 0, 0]
    with pytest.raises(OversizedCommand, match="gather covers"):
        run(command("gather", *operands, flags=item.flags), random_bytes(0), sram)
    for size in (0, -5):
        operands = [9, *item.operands[1:7], size, 0, 0, 0, 0, 4, 0, 0, 0, 0]
        operands[0] = Reg(5)
        launch(build([command("gather", *operands, flags=item.flags)], buffers=1), [random_bytes(0)])


@pytest.mark.parametrize("mnemonic", ["neg.f32", "lt.f32", "select.f32", "mov.32", "add.i64", "reduce_sum.f32"])
def test_only_binary_instructions_of_the_element_combine(mnemonic: str) -> None:
    box = one(0)
    with pytest.raises(InvalidCommand, match="combine"):
        run(scatter_reduce(box, SCE_OPS[mnemonic].opcode), random_bytes(0), box.sram({"tile": np.zeros(1, np.uint32)}))
