"""PACK, MATMUL, ACCFILL and ACCLOAD as commands: results, fills, and bounds."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from loom_core.isa.encoding import Command, Reg, command
from loom_core.isa.machine import L1, L1_MINI, acc_bytes, acc_shape, panel_bytes
from loom_core.reference.dot import dot32
from loom_sim import engines, mxu
from loom_sim import state as words
from loom_sim.errors import OutOfBounds
from loom_sim.program import _FIXED_FIELDS
from tests.sim.harness import build, copy, launch, whole

Array = NDArray[Any]

_A, _B, _ACC, _OUT = 0, 64 << 10, 128 << 10, 192 << 10


def pack(
    side: str, source: tuple[Any, Any], target: Any, extent: Any, depth: Any, strides: tuple[Any, Any], **more: Any
) -> Command:
    """PACK with its valid box (by default all) and fill."""
    box = more.get("box", (0, extent, 0, depth))
    operands = (*source, target, extent, depth, *strides, *box, more.get("fill", 0))
    return command("pack", *operands, flags={"side": int(side == "b"), "log2_bytes": 2})


def drain(m: int, n: int) -> Command:
    """Accumulator at _ACC, its padding dropped, to buffer 3."""
    return copy((0, _ACC), (3, 0), [(m, acc_shape(L1_MINI, m, n)[1] * 4, n * 4), (n, 4, 4)])


def product(a: Array, b: Array, commands: list[Command], out: Array) -> Array:
    return launch(build(commands, buffers=3), [a, b, out])[2]


@pytest.mark.parametrize(
    ("m", "n", "k"), [(1, 1, 1), (5, 7, 3), (24, 32, 128), (25, 33, 129), (40, 64, 200), (64, 30, 130)]
)
def test_pack_and_multiply(m: int, n: int, k: int) -> None:
    rng = np.random.default_rng(m * n * k)
    a, b = rng.standard_normal((m, k)).astype(np.float32), rng.standard_normal((k, n)).astype(np.float32)
    commands = [
        pack("a", (1, 0), _A, m, k, (k * 4, 4)),
        pack("b", (2, 0), _B, n, k, (4, n * 4)),
        command("accfill", _ACC, m, n, 0),
        command("matmul", _ACC, _A, _B, Reg(3), Reg(4), Reg(5)),
        command("matmul", _ACC, _A, _B, m, n, k),
        drain(m, n),
    ]
    got = launch(build(commands, buffers=3), [a, b, np.zeros((m, n), np.float32)], {3: m, 4: n, 5: k})[2]
    assert got.tobytes() == dot32(a, b, dot32(a, b)).tobytes()


def test_transposed_operands_and_a_loaded_accumulator() -> None:
    m, n, k = 30, 40, 50
    rng = np.random.default_rng(1)
    a, b = rng.standard_normal((k, m)).astype(np.float32), rng.standard_normal((n, k)).astype(np.float32)
    start = rng.standard_normal((n, m)).astype(np.float32)  # column major
    commands = [
        whole((3, 0), (0, _OUT), start.nbytes),
        pack("a", (1, 0), _A, m, k, (4, m * 4)),
        pack("b", (2, 0), _B, n, k, (k * 4, 4)),
        command("accload", _ACC, _OUT, m, n, 4, m * 4),
        command("matmul", _ACC, _A, _B, m, n, k),
        drain(m, n),
    ]
    got = product(a, b, commands, start).reshape(m, n)
    assert (
        got.tobytes()
        == dot32(np.ascontiguousarray(a.T), np.ascontiguousarray(b.T), np.ascontiguousarray(start.T)).tobytes()
    )


def test_elements_outside_the_valid_box_are_filled_and_not_read() -> None:
    m, n, k = 10, 32, 20
    a = np.arange(7 * 15, dtype=np.float32).reshape(7, 15)
    b = np.eye(20, 32, dtype=np.float32)
    half = int(np.float32(0.5).view(np.uint32))
    commands = [
        # Rows 2..8 and columns 3..17 of the operand are the array.
        pack("a", (1, -2 * 60 - 3 * 4), _A, m, k, (60, 4), box=(2, 9, 3, 18), fill=half),
        pack("b", (2, 0), _B, n, k, (4, n * 4)),
        command("accfill", _ACC, m, n, 0),
        command("matmul", _ACC, _A, _B, m, n, k),
        drain(m, n),
    ]
    got = product(a, b, commands, np.zeros((m, n), np.float32))
    expected = np.full((m, k), 0.5, np.float32)
    expected[2:9, 3:18] = a
    assert (got[:, :k] == expected).all()
    assert (got[:, k:] == 0).all()


def test_an_empty_box_reads_nothing() -> None:
    command_ = pack("a", (1, 1 << 50), _A, 3, 4, (1 << 60, 1 << 60), box=(2, 2, 0, 4), fill=1)
    launch(build([command_], buffers=1), [np.zeros(1, np.float32)])


def test_fill_and_load_cover_the_padding() -> None:
    m, n = 3, 5
    rows, columns = acc_shape(L1_MINI, m, n)
    out = np.zeros((rows, columns), np.float32)
    seven = int(np.float32(7.0).view(np.uint32))
    tile = np.arange(m * n, dtype=np.float32).reshape(m, n)
    commands = [command("accfill", _ACC, m, n, seven), whole((0, _ACC), (3, 0), out.nbytes)]
    assert (product(tile, tile, commands, out) == 7).all()
    commands = [
        whole((1, 0), (0, _A), tile.nbytes),
        command("accload", _ACC, _A, m, n, n * 4, 4),
        whole((0, _ACC), (3, 0), out.nbytes),
    ]
    got = product(tile, tile, commands, out)
    assert (got[:m, :n] == tile).all()
    assert np.count_nonzero(got) == m * n - 1


@pytest.mark.parametrize(
    "operands",
    [
        ("matmul", _ACC, _A, _B, 0, 1 << 60, 5),
        ("matmul", 1 << 60, _A, _B, 5, 5, -1),
        ("accfill", 1 << 60, 0, 5, 0),
        ("accload", 1 << 60, 0, 5, -1, 4, 4),
    ],
)
def test_an_extent_of_zero_or_less_does_nothing(operands: tuple[Any, ...]) -> None:
    launch(build([command(*operands)]))


_SRAM = L1_MINI.sram_bytes
_HUGE = (1 << 63) - 1


@pytest.mark.parametrize(
    "operands",
    [
        ("matmul", _SRAM - acc_bytes(L1_MINI, 5, 5) + 4, _A, _B, 5, 5, 5),
        ("matmul", _ACC, _SRAM - panel_bytes(L1_MINI, "a", 5, 5) + 4, _B, 5, 5, 5),
        ("matmul", _ACC, _A, _SRAM - panel_bytes(L1_MINI, "b", 5, 5) + 4, 5, 5, 5),
        ("matmul", -4, _A, _B, 5, 5, 5),
        ("matmul", _ACC, -(1 << 63), _B, 5, 5, 5),
        ("matmul", _ACC, _A, _B, _HUGE, _HUGE, 1),
        ("matmul", _ACC, _A, _B, 1, 1, _HUGE),
        ("matmul", _HUGE, _A, _B, 1, 1, 1),
        ("accfill", _ACC, _HUGE, _HUGE, 0),
        ("accfill", _SRAM - 100, 1, 1, 0),
        ("accload", _ACC, 0, 24, 1 << 61, 4, 4),
        ("accload", _ACC, _SRAM - 4, 1, 2, 0, 4),
        ("accload", _ACC, 0, 2, 1, -4, 4),
        ("accload", _ACC, 0, 3, 1, 1 << 62, 4),
        ("accload", _ACC, 0, 3, 3, 1 << 62, -(1 << 62)),
    ],
)
def test_tiles_outside_sram_are_faults(operands: tuple[Any, ...]) -> None:
    with pytest.raises(OutOfBounds, match="of SRAM"):
        launch(build([command(*operands)]))


@pytest.mark.parametrize(
    "bad",
    [
        pack("a", (1, 4), _A, 4, 16, (64, 4)),
        pack("a", (1, -4), _A, 4, 16, (64, 4)),
        pack("b", (1, 0), _A, 5, 16, (64, 4)),
        pack("a", (1, 0), _A, 2, 2, (1 << 62, 4)),
        pack("a", (1, 0), _A, 5, 5, (1 << 62, -(1 << 62))),
        pack("a", (1, 0), _A, 9, 9, (1 << 60, -(1 << 60)), box=(8, 9, 8, 9)),
        pack("a", (1, 0), -4, 4, 16, (64, 4)),
        pack("a", (1, 0), _SRAM - panel_bytes(L1_MINI, "a", 4, 16) + 4, 4, 16, (64, 4)),
        pack("a", (1, 0), _A, _HUGE, _HUGE, (0, 0)),
        pack("b", (1, 0), _A, _HUGE, 1, (0, 0)),
    ],
)
def test_packs_outside_a_space_are_faults(bad: Command) -> None:
    with pytest.raises(OutOfBounds, match="pack touches bytes"):
        launch(build([bad], buffers=1), [np.zeros((4, 16), np.float32)])


def test_endless_products_are_refused() -> None:
    """By the engine itself: SRAM in which such operands fit would be no memory of this host."""
    state = np.zeros(words.SPACES + words.SPACE_WORDS, np.int64)
    state[words.SRAM_BYTES] = 1 << 33
    product = command("matmul", 0, 0, 0, 1 << 14, 1 << 14, 1 << 14)
    operands = np.array(product.operands, np.int64)
    call = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64, ctypes.c_int64)
    engine = call(engines.command_address(product))
    assert engine(operands.ctypes.data, state.ctypes.data) == words.OVERSIZED


def test_the_machine_and_the_engines_agree_on_sizes() -> None:
    assert (L1.panel_rows, L1.panel_cols, L1.pass_depth) == (mxu.PANEL_ROWS, mxu.PANEL_COLS, mxu.PASS_DEPTH)
    assert all(getattr(machine, field) == value for machine in (L1, L1_MINI) for field, value in _FIXED_FIELDS.items())
