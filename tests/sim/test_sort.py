"""SORT and HISTOGRAM against their references, and their bounds."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pytest
from numpy.typing import NDArray

from loom_core.base.dtype import by_name
from loom_core.isa.encoding import Command, command
from loom_core.isa.errors import InvalidCommand
from loom_core.isa.sce import DTYPE_CODES, SCE_OPS
from loom_core.reference import order
from loom_core.reference.opcodes import reference_of
from loom_sim.errors import OutOfBounds, OversizedCommand
from tests.sim.harness import build, launch, whole
from tests.sim.test_rows import values

Array = NDArray[Any]

_MEMORY: Final = 192 << 10  # bytes of SRAM that the tests use
_SRC, _VALUES, _ORDER = 0, 64 << 10, 128 << 10
_FOUR_BITS: Final = {"i4": "i8", "u4": "u8"}


def run(item: Command, memory: Array) -> Array:
    """SRAM after one command."""
    commands = [whole((1, 0), (0, 0), memory.nbytes), item, whole((0, 0), (1, 0), memory.nbytes)]
    (after,) = launch(build(commands, buffers=1), [memory])
    return after


def sort(
    dtype: str, sizes: tuple[int, ...], strides: list[tuple[int, ...]], kept: int, specials: int = 0, **flags: int
) -> Command:
    """`strides`: of the source, the values and the order."""
    log2 = by_name(dtype).itemsize.bit_length() - 1
    dims = [value for dim in zip(sizes, *strides, strict=True) for value in dim]
    packed = {"ndim": len(sizes), "log2_bytes": log2, "values": 1, "order": 1, **flags}
    return command("sort", _SRC, _VALUES, _ORDER, DTYPE_CODES[dtype], kept, specials, *dims, flags=packed)


def contiguous(sizes: tuple[int, ...], itemsize: int) -> tuple[int, ...]:
    return tuple(itemsize * int(np.prod(sizes[d + 1 :])) for d in range(len(sizes)))


def sorted_rows(x: Array, dtype: str, **how: bool) -> tuple[Array, Array]:
    """(values, order) by the reference."""
    found = order.sort_order(x, **how)
    with np.errstate(all="ignore"):
        canonical = reference_of(SCE_OPS[f"mov.{dtype}"])(x) if by_name(dtype).is_float else x
    return np.take_along_axis(canonical, found, axis=-1), found


def elements(dtype: str, rows: int, row: int) -> Array:
    """Values with ties; those of four bits in bytes whose upper half is anything."""
    x = values(_FOUR_BITS.get(dtype, dtype), rows, row, row)
    if dtype == "i4":
        return np.where(x & 8, x | -8, x & 7).astype(np.int8)
    return x & 15 if dtype == "u4" else x


def stored(x: Array, dtype: str) -> Array:
    """The bytes that an instruction of that type stores."""
    raw = np.frombuffer(x.tobytes(), np.uint8)
    return raw & 15 if dtype in _FOUR_BITS else raw


@pytest.mark.parametrize("dtype", DTYPE_CODES)
def test_sorting(dtype: str) -> None:
    size = by_name(dtype).itemsize
    for rows, row in ((3, 1), (5, 2), (7, 40), (7, 41), (2, 1000), (1, 5000)):
        x = elements(dtype, rows, row)
        memory = np.full(_MEMORY, 77, np.uint8)
        memory[: x.nbytes] = np.frombuffer(x.tobytes(), np.uint8)
        if dtype in _FOUR_BITS:
            memory[: x.nbytes] = memory[: x.nbytes] & 15 | np.arange(x.nbytes) % 16 * 16
        elif dtype == "bool":
            memory[: x.nbytes] *= (np.arange(x.nbytes) % 200 + 1).astype(np.uint8)
        for bits in range(8):
            how = {"descending": bool(bits & 1), "nan_first": bool(bits & 2), "signed_zeros": bool(bits & 4)}
            strides = [contiguous((rows, row), step) for step in (size, size, 4)]
            after = run(sort(dtype, (rows, row), strides, row, bits >> 1, descending=bits & 1), memory)
            wanted, places = sorted_rows(x, dtype, **how)
            assert after[_ORDER : _ORDER + 4 * x.size].view(np.int32).tolist() == places.ravel().tolist(), (row, how)
            assert (after[_VALUES : _VALUES + x.nbytes] == stored(wanted, dtype)).all(), (row, how)
            assert (after[: x.nbytes] == memory[: x.nbytes]).all()


@pytest.mark.parametrize("kept", [-3, 0, 1, 7, 60, 99])
def test_the_first_of_a_sorted_row(kept: int) -> None:
    x = elements("f32", 4, 60)
    memory = np.full(_MEMORY, 77, np.uint8)
    memory[: x.nbytes] = np.frombuffer(x.tobytes(), np.uint8)
    after = run(sort("f32", (4, 60), [(240, 4), (240, 4), (240, 4)], kept, descending=1), memory)
    wanted, places = sorted_rows(x, "f32", descending=True)
    for start, rows in ((_VALUES, wanted.view(np.int32)), (_ORDER, places)):
        got = after[start : start + 960].view(np.int32).reshape(4, 60)
        expected = np.full((4, 60), 0x4D4D4D4D, np.int32)
        count = min(max(kept, 0), 60)
        expected[:, :count] = rows[:, :count]
        assert (got == expected).all()


def test_values_or_order_alone() -> None:
    x = elements("i32", 3, 50)
    memory = np.full(_MEMORY, 77, np.uint8)
    memory[: x.nbytes] = np.frombuffer(x.tobytes(), np.uint8)
    both = [contiguous((3, 50), 4)] * 3
    for flags in ({"values": 0}, {"order": 0}):
        after = run(sort("i32", (3, 50), both, 50, **flags), memory)
        untouched = after[_VALUES:_ORDER] if "values" in flags else after[_ORDER:]
        assert (untouched == 77).all()
        assert not (after == memory).all()


@pytest.mark.parametrize("dtype", ["f32", "i64", "bf16"])
def test_rows_of_a_strided_tile(dtype: str) -> None:
    """Columns of a matrix, four dimensions, a result in place."""
    size = by_name(dtype).itemsize
    x = elements(dtype, 30, 20)
    memory = np.full(_MEMORY, 77, np.uint8)
    memory[: x.nbytes] = np.frombuffer(x.tobytes(), np.uint8)
    columns = [(size, 20 * size), (size, 20 * size), (120, 4)]
    item = sort(dtype, (20, 30), columns, 30)
    in_place = command(item.mnemonic, item.operands[0], _SRC, *item.operands[2:], flags=item.flags)
    wanted, places = sorted_rows(np.ascontiguousarray(x.T), dtype)
    after = run(in_place, memory)
    assert after[: x.nbytes].tobytes() == np.ascontiguousarray(wanted.T).tobytes()
    assert after[_ORDER : _ORDER + 2400].view(np.int32).tolist() == places.ravel().tolist()
    sizes = (2, 3, 5, 20)
    strides = [contiguous(sizes, step) for step in (size, size, 4)]
    after = run(sort(dtype, sizes, strides, 20), memory)
    wanted, _ = sorted_rows(x, dtype)
    assert after[_VALUES : _VALUES + x.nbytes].tobytes() == wanted.tobytes()


def test_sorts_outside_sram_are_faults() -> None:
    memory = np.zeros(_MEMORY, np.uint8)
    good = sort("f32", (4, 16), [(64, 4), (64, 4), (64, 4)], 16)
    for operand, place in ((0, -4), (1, (256 << 10) - 252), (2, 1 << 62), (7, 1 << 61), (12, 1 << 40)):
        operands = list(good.operands)
        operands[operand] = place
        with pytest.raises(OutOfBounds, match="sort touches bytes"):
            run(command("sort", *operands, flags=good.flags), memory)
    long = [*good.operands[:6], 1 << 18, 0, 0, 0]
    with pytest.raises(OversizedCommand, match="sort covers"):
        run(command("sort", *long, flags=good.flags & ~7 | 1), memory)
    for sizes in ((0, 16), (4, -1)):
        run(sort("f32", sizes, [(1 << 62, 4)] * 3, 16), memory)


def test_a_type_of_another_size_is_refused() -> None:
    item = sort("f32", (4,), [(4,), (4,), (4,)], 4)
    operands = [*item.operands[:3], DTYPE_CODES["f64"], *item.operands[4:]]
    with pytest.raises(InvalidCommand, match="another size"):
        run(command("sort", *operands, flags=item.flags), np.zeros(_MEMORY, np.uint8))


# ---- histogram ----


@pytest.mark.parametrize("dtype", ["i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64"])
@pytest.mark.parametrize("masked", [0, 1])
def test_histogram(dtype: str, masked: int) -> None:
    kind = by_name(dtype)
    rng = np.random.default_rng(3)
    for shape, bins in (((500,), 16), ((7, 9), 300), ((3, 4, 5), 1), ((2, 3, 4, 5), 100)):
        x = rng.integers(0, 20, shape).astype(kind.numpy)
        odd = rng.random(shape) < 0.2
        x[odd] = rng.integers(kind.min_value, kind.max_value, int(odd.sum()), kind.numpy, endpoint=True)
        mask = rng.integers(0, 3, shape).astype(np.uint8)
        memory = rng.integers(0, 256, _MEMORY).astype(np.uint8)
        memory[: x.nbytes] = np.frombuffer(x.tobytes(), np.uint8)
        memory[_VALUES : _VALUES + mask.size] = mask.ravel()
        log2 = kind.itemsize.bit_length() - 1
        dims = zip(shape, contiguous(shape, kind.itemsize), contiguous(shape, 1), strict=True)
        operands = [_SRC, _VALUES, _ORDER, bins, *(value for dim in dims for value in dim)]
        counted = order.histogram(x, bins, mask != 0 if masked else None)
        for accumulate in (0, 1):
            flags = {"ndim": len(shape), "log2_bytes": log2, "signed": int(kind.is_signed), "masked": masked}
            after = run(command("histogram", *operands, flags={**flags, "accumulate": accumulate}), memory)
            expected = memory.copy()
            counts = expected[_ORDER : _ORDER + 4 * bins].view(np.int32)
            counts[...] = counted + counts if accumulate else counted
            assert (after == expected).all()


def test_histograms_of_nothing_and_outside() -> None:
    memory = np.full(_MEMORY, 7, np.uint8)
    flags = {"ndim": 1, "log2_bytes": 2, "signed": 1}
    after = run(command("histogram", 1 << 40, 0, 64, 3, 0, 4, 0, flags=flags), memory)
    assert after[64:76].tolist() == [0] * 12
    assert (run(command("histogram", 1 << 40, 0, 1 << 40, 0, 5, 4, 0, flags=flags), memory) == memory).all()
    for operands in ((-4, 0, 64, 3, 5, 4, 0), (0, 0, (256 << 10) - 8, 3, 5, 4, 0), (0, 0, 64, 1 << 62, 5, 4, 0)):
        with pytest.raises(OutOfBounds, match="histogram touches bytes"):
            run(command("histogram", *operands, flags=flags), memory)
    with pytest.raises(OutOfBounds):
        run(command("histogram", 0, -1, 64, 3, 5, 4, 1, flags={**flags, "masked": 1}), memory)
    with pytest.raises(OversizedCommand):
        run(command("histogram", 0, 0, 64, 3, 1 << 40, 0, 0, flags=flags), memory)
