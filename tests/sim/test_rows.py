"""Scans and places of extremes, alone and inside programs, against the references."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pytest
from numpy.typing import NDArray

from exhaustive.engines import run_rows
from loom_core.base.dtype import by_name
from loom_core.isa.encoding import command
from loom_core.isa.errors import InvalidCommand
from loom_core.isa.program import R, S, SceInstr, SceProgram, StreamSpec
from loom_core.isa.sce import ALL_SCE_OPS, SCE_OPS
from loom_core.reference import arith
from loom_core.reference.opcodes import reference_of
from tests.sim.harness import build, launch, sce, whole

Array = NDArray[Any]

# One type a way of computing; `./run exhaustive properties` has every type.
_TYPES: Final = ("f32", "f16", "i32", "u64", "bool")
SCANS: Final = [op.mnemonic for op in ALL_SCE_OPS if op.is_scan and op.result in _TYPES]
ARGUMENTS: Final = [op.mnemonic for op in ALL_SCE_OPS if op.is_argument and op.operands[0] in _TYPES]
ROWS: Final = [1, 2, 3, 31, 32, 33, 100, 511, 1024, 1025, 4096, 4097, 9000]


def values(dtype: str, rows: int, row: int, seed: int = 0) -> Array:
    """Rows of numbers with many ties, some with special values throughout."""
    rng, kind = np.random.default_rng(seed), by_name(dtype)
    if kind.is_bool:
        return rng.integers(0, 2, (rows, row)).astype(np.bool_)
    if not kind.is_float:
        wide = rng.integers(kind.min_value, kind.max_value, (rows, row), kind.numpy, endpoint=True)
        wide[::3] = rng.integers(0, 5, wide[::3].shape)
        return wide
    with np.errstate(all="ignore"):
        x = rng.standard_normal((rows, row)).astype(np.float32)
        x[::3] = np.round(x[::3])
        special = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1e-45, -1e-45, 5e-8, 3.3e38, 300.0]).astype(kind.numpy)
        chosen = rng.random((rows, row)) < 0.1
        chosen[1::4] = True
        chosen[3::4] = False
        found = np.where(chosen, special[rng.integers(0, len(special), (rows, row))], x.astype(kind.numpy))
    # Every other pattern of a NaN, and of everything else in a row of its own.
    patterns = found.view(f"u{found.itemsize}")
    patterns[found != found] |= rng.integers(0, 1 << min(kind.mantissa, 20), dtype=patterns.dtype)
    patterns[1::7] = rng.integers(0, np.iinfo(patterns.dtype).max, patterns[1::7].shape, patterns.dtype, endpoint=True)
    return found


def scanned(mnemonic: str, x: Array, reverse: bool = False) -> Array:
    return reference_of(SCE_OPS[mnemonic])(x, reverse)


def placed(mnemonic: str, x: Array) -> Array:
    return reference_of(SCE_OPS[mnemonic])(x)


@pytest.mark.parametrize("mnemonic", SCANS)
def test_scans(mnemonic: str) -> None:
    op = SCE_OPS[mnemonic]
    narrow = by_name(op.result).is_float and by_name(op.result).bits < 32  # their references take long
    for rows, row in ((9, 1), (14, 9)) if narrow else ((9, 1), (3, 2), (14, 33), (8, 150)):
        x = values(op.result, rows, row, row)
        for reverse in (False, True):
            assert run_rows(op, x, reverse).tobytes() == scanned(mnemonic, x, reverse).tobytes(), (row, reverse)


@pytest.mark.parametrize("mnemonic", ARGUMENTS)
def test_places_of_extremes(mnemonic: str) -> None:
    op = SCE_OPS[mnemonic]
    for rows, row in ((9, 1), (9, 2), (30, 33), (20, 150)):
        x = values(op.operands[0], rows, row, row)
        assert run_rows(op, x).tolist() == placed(mnemonic, x).tolist(), row


def run(
    program: SceProgram, sizes: tuple[int, ...], streams: list[tuple[int, ...]], memory: Array, **flags: int
) -> Array:
    """SRAM after a program that folds one dimension."""
    item = sce(0, sizes, streams, flags.pop("fold", 1))
    item = command("program", *item.operands, flags=item.flags | flags.get("reverse", 0) << 7)
    commands = [whole((1, 0), (0, 0), memory.nbytes), item, whole((0, 0), (1, 0), memory.nbytes)]
    (after,) = launch(build(commands, [program], 1), [memory])
    return after


def memory_with(x: Array, size: int = 200 << 10) -> Array:
    memory = np.zeros(size, np.uint8)
    memory[: x.nbytes] = np.frombuffer(x.tobytes(), np.uint8)
    return memory


@pytest.mark.parametrize("mnemonic", ["scan_sum.f32", "scan_minp.f32", "scan_max.i32", "scan_prod.i64", "scan_xor.u16"])
@pytest.mark.parametrize("reverse", [0, 1])
def test_scans_in_programs(mnemonic: str, reverse: int) -> None:
    dtype = SCE_OPS[mnemonic].result
    size = by_name(dtype).itemsize
    program = SceProgram((StreamSpec("load", dtype), StreamSpec("store", dtype)), (SceInstr(mnemonic, S(1), S(0)),), 0)
    for row in ROWS:
        rows = max(1, min(9, 9000 // row))
        x = values(dtype, rows, row, row)
        streams = [(0, row * size, size), (90000, row * size, size)]
        after = run(program, (rows, row), streams, memory_with(x), reverse=reverse)
        got = after[90000 : 90000 + x.nbytes]
        assert got.tobytes() == scanned(mnemonic, x, bool(reverse)).tobytes(), (row, rows)


@pytest.mark.parametrize(
    "mnemonic", ["reduce_argmax.f32", "reduce_argmin_last.f32", "reduce_argmaxp.f16", "reduce_argmax_last.i64"]
)
def test_places_of_extremes_in_programs(mnemonic: str) -> None:
    dtype = SCE_OPS[mnemonic].operands[0]
    size = by_name(dtype).itemsize
    program = SceProgram((StreamSpec("load", dtype), StreamSpec("store", "i32")), (SceInstr(mnemonic, S(1), S(0)),), 0)
    for row in ROWS:
        rows = max(1, min(13, 18000 // row))
        x = values(dtype, rows, row, row)
        if row > 4096:
            x[0, -1] = x[0, 17] = x[0].max() if dtype == "i64" else np.float32(np.inf)
            x[-1] = x[-1, 0]
        after = run(program, (rows, row), [(0, row * size, size), (160000, 4, 0)], memory_with(x))
        got = after[160000 : 160000 + 4 * rows].view(np.int32)
        assert got.tolist() == placed(mnemonic, x).tolist(), (row, rows)


def test_a_row_of_nans_alone_and_zeros_of_both_signs() -> None:
    rows = np.array([[np.nan] * 5, [0.0, -0.0, -0.0, 0.0, -1.0], [np.nan, -0.0, 0.0, np.nan, -5.0]], np.float32)
    expected = {
        "reduce_argmax.f32": [0, 0, 1], "reduce_argmax_last.f32": [4, 3, 2], "reduce_argmin.f32": [0, 4, 4],
        "reduce_argmin_last.f32": [4, 4, 4], "reduce_argmaxp.f32": [0, 0, 0], "reduce_argmaxp_last.f32": [4, 3, 3],
        "reduce_argminp.f32": [0, 4, 0], "reduce_argminp_last.f32": [4, 4, 3],
    }  # fmt: skip
    for mnemonic, places in expected.items():
        program = SceProgram(
            (StreamSpec("load", "f32"), StreamSpec("store", "i32")), (SceInstr(mnemonic, S(1), S(0)),), 0
        )
        after = run(program, (3, 5), [(0, 20, 4), (1024, 4, 0)], memory_with(rows, 4096))
        assert after[1024:1036].view(np.int32).tolist() == places, mnemonic


@pytest.mark.parametrize(("rows", "row"), [(5, 200), (33, 31), (2, 5000), (1, 1)])
@pytest.mark.parametrize("reverse", [0, 1])
def test_scans_meet_reductions_and_elementwise_instructions(rows: int, row: int, reverse: int) -> None:
    """Registers that are scanned in place, two scans, a reduction of a scan and its tail."""
    program = SceProgram(
        (StreamSpec("load", "f32"), StreamSpec("store", "f32"), StreamSpec("store", "f32"), StreamSpec("store", "i32")),
        (
            SceInstr("add.f32", R(0), S(0), S(0)),
            SceInstr("scan_sum.f32", R(0), R(0)),
            SceInstr("scan_max.f32", R(1), R(0)),
            SceInstr("sub.f32", S(1), R(1), R(0)),
            SceInstr("reduce_argmax.f32", S(3), R(0)),
            SceInstr("reduce_max.f32", R(1), S(1)),
            SceInstr("neg.f32", S(2), R(1)),
        ),
        2,
    )
    x = values("f32", rows, row, 5)
    streams = [(0, row * 4, 4), (60000, row * 4, 4), (120000, 8, 0), (130000, 4, 0)]
    after = run(program, (rows, row), streams, memory_with(x), reverse=reverse)
    summed = scanned("scan_sum.f32", arith.add32(x, x), bool(reverse))
    difference = arith.sub32(scanned("scan_max.f32", summed, bool(reverse)), summed)
    assert after[60000 : 60000 + x.nbytes].tobytes() == difference.tobytes()
    places = after[130000 : 130000 + 4 * rows].view(np.int32)
    assert places.tolist() == placed("reduce_argmax.f32", summed).tolist()
    top = [scanned("scan_max.f32", r[None])[0, -1] for r in difference]
    got = after[120000 : 120000 + 8 * rows].view(np.float32)[::2]
    assert got.tobytes() == arith.neg32(np.array(top, np.float32)).tobytes()


@pytest.mark.parametrize(
    ("sizes", "fold_dims", "x_strides", "out_strides"),
    [
        ((6, 7, 8), 1, (224, 32, 4), (224, 32, 4)),
        ((6, 7, 8), 2, (224, 32, 4), (224, 32, 4)),
        ((6, 7, 8), 2, (4, 24, 168), (224, 32, 4)),  # along the outer axes of a tile
        ((6, 7, 8), 1, (300, 36, 4), (4, 24, 168)),  # padded rows, a transposed result
        ((3, 40, 60), 2, (0, 240, 4), (9600, 240, 4)),  # one row for all
        ((2, 70, 70), 2, (19600, 280, 4), (20000, 284, 4)),
    ],
)
@pytest.mark.parametrize("reverse", [0, 1])
def test_scans_of_strided_streams(
    sizes: tuple[int, ...], fold_dims: int, x_strides: tuple[int, ...], out_strides: tuple[int, ...], reverse: int
) -> None:
    program = SceProgram(
        (StreamSpec("load", "f32"), StreamSpec("store", "f32")), (SceInstr("scan_sum.f32", S(1), S(0)),), 0
    )
    data = values("f32", 1, 14000, 3)
    after = run(
        program, sizes, [(0, *x_strides), (100000, *out_strides)], memory_with(data), fold=fold_dims, reverse=reverse
    )
    view = np.lib.stride_tricks.as_strided(data, sizes, x_strides)
    lead = sizes[: len(sizes) - fold_dims]
    expected = scanned("scan_sum.f32", view.reshape(*lead, -1), bool(reverse)).reshape(sizes)
    result = np.lib.stride_tricks.as_strided(after[100000:].view(np.float32), sizes, out_strides)
    assert np.ascontiguousarray(result).tobytes() == np.ascontiguousarray(expected).tobytes()


def test_a_scan_in_place() -> None:
    program = SceProgram(
        (StreamSpec("load", "i64"), StreamSpec("store", "i64")), (SceInstr("scan_sum.i64", S(1), S(0)),), 0
    )
    for rows, row in ((5, 100), (1, 6000)):
        x = values("i64", rows, row, 8)
        after = run(program, (rows, row), [(0, row * 8, 8), (0, row * 8, 8)], memory_with(x))
        assert after[: x.nbytes].tobytes() == scanned("scan_sum.i64", x).tobytes()


def test_reverse_without_a_scan_is_refused() -> None:
    program = SceProgram(
        (StreamSpec("load", "f32"), StreamSpec("store", "f32")), (SceInstr("reduce_sum.f32", S(1), S(0)),), 0
    )
    with pytest.raises(InvalidCommand, match="no scan"):
        run(program, (2, 4), [(0, 16, 4), (64, 4, 0)], np.zeros(1024, np.uint8), reverse=1)
