"""PACKF, PACKI, MATMULF, MATMULI and integer accumulators as commands: results, fills, and bounds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import DTypeLike, NDArray

import loom_sim
from loom_core.isa.commands import COMMANDS
from loom_core.isa.encoding import Command, Reg, command
from loom_core.isa.machine import L1_MINI, acc_shape, panel_bytes
from loom_core.reference.dot import dot
from loom_sim.engines import command_address
from loom_sim.errors import OutOfBounds
from tests.sim.harness import Buffer, build, copy, launch, prepared, whole

Array = NDArray[Any]

_A, _B, _ACC, _OUT = 0, 64 << 10, 128 << 10, 192 << 10

TYPES: dict[str, tuple[str, DTypeLike]] = {
    "bf16": ("packf", ml_dtypes.bfloat16),
    "f16": ("packf", np.float16),
    "f8e4m3": ("packf", ml_dtypes.float8_e4m3fn),
    "f8e5m2": ("packf", ml_dtypes.float8_e5m2),
    "i8": ("packi", np.int8),
    "u8": ("packi", np.uint8),
    "i4": ("packi", ml_dtypes.int4),
    "u4": ("packi", ml_dtypes.uint4),
}


def pack(
    name: str,
    side: str,
    source: tuple[Any, Any],
    target: Any,
    extent: Any,
    depth: Any,
    strides: Sequence[Any],
    **more: Any,
) -> Command:
    """PACKF or PACKI with its valid box (by default all) and fill."""
    mnemonic = TYPES[name][0]
    box = more.get("box", (0, extent, 0, depth))
    operands = (*source, target, extent, depth, *strides, *box, more.get("fill", 0))
    kind = COMMANDS[mnemonic].flag("type").values.index(name)
    return command(mnemonic, *operands, flags={"side": int(side == "b"), "type": kind})


def multiply(name: str, *operands: Any) -> Command:
    if TYPES[name][0] == "packi":
        return command("matmuli", *operands)
    return command("matmulf", *operands, flags={"widest": int(name.startswith("f8"))})


def drain(m: int, n: int) -> Command:
    """Accumulator at _ACC, its padding dropped, to buffer 3."""
    return copy((0, _ACC), (3, 0), [(m, acc_shape(L1_MINI, m, n)[1] * 4, n * 4), (n, 4, 4)])


def operand(name: str, shape: tuple[int, int], seed: int) -> Array:
    rng = np.random.default_rng(seed)
    if TYPES[name][0] == "packi":
        return rng.integers(-128, 256, shape).astype(TYPES[name][1])
    return rng.standard_normal(shape).astype(np.float32).astype(TYPES[name][1])


@pytest.mark.parametrize(("m", "n", "k"), [(1, 1, 1), (25, 33, 129), (40, 64, 200)])
@pytest.mark.parametrize("name", TYPES)
def test_pack_and_multiply(name: str, m: int, n: int, k: int) -> None:
    a, b = operand(name, (m, k), 1), operand(name, (k, n), 2)
    size = a.itemsize
    commands = [
        pack(name, "a", (1, 0), _A, m, k, (k * size, size)),
        pack(name, "b", (2, 0), _B, n, k, (size, n * size)),
        command("accfill", _ACC, m, n, 0),
        multiply(name, _ACC, _A, _B, Reg(3), Reg(4), Reg(5)),
        multiply(name, _ACC, _A, _B, m, n, k),
        drain(m, n),
    ]
    out = np.zeros((m, n), np.int32 if TYPES[name][0] == "packi" else np.float32)
    got = launch(build(commands, buffers=3), [a, b, out], {3: m, 4: n, 5: k})[2]
    assert got.tobytes() == dot(a, b, dot(a, b)).tobytes()


@pytest.mark.parametrize("name", TYPES)
def test_transposed_operands_from_sram_and_a_loaded_accumulator(name: str) -> None:
    m, n, k = 30, 40, 51
    a, b = operand(name, (k, m), 1), operand(name, (n, k), 2)
    kind = np.int32 if TYPES[name][0] == "packi" else np.float32
    start = np.arange(n * m).reshape(n, m).astype(kind)  # column major
    size = a.itemsize
    commands = [
        whole((1, 0), (0, _OUT), a.nbytes),
        pack(name, "a", (0, _OUT), _A, m, k, (size, m * size)),
        pack(name, "b", (2, 0), _B, n, k, (k * size, size)),
        whole((3, 0), (0, _OUT), start.nbytes),
        command("accload", _ACC, _OUT, m, n, 4, m * 4),
        multiply(name, _ACC, _A, _B, m, n, k),
        drain(m, n),
    ]
    got = launch(build(commands, buffers=3), [a, b, start], {})[2].reshape(m, n)
    expected = dot(np.ascontiguousarray(a.T), np.ascontiguousarray(b.T), np.ascontiguousarray(start.T))
    assert got.tobytes() == expected.tobytes()


@pytest.mark.parametrize("name", TYPES)
def test_elements_outside_the_valid_box_are_filled_and_not_read(name: str) -> None:
    m, n, k = 10, 32, 20
    a = operand(name, (7, 15), 3)
    b = np.eye(20, 32).astype(TYPES[name][1])
    size, fill = a.itemsize, 0x35 if a.itemsize == 1 else 0x3535
    row = 15 * size
    commands = [
        # Rows 2..8 and columns 3..17 of the operand are the array.
        pack(name, "a", (1, -2 * row - 3 * size), _A, m, k, (row, size), box=(2, 9, 3, 18), fill=fill),
        pack(name, "b", (2, 0), _B, n, k, (size, 32 * size)),
        command("accfill", _ACC, m, n, 0),
        multiply(name, _ACC, _A, _B, m, n, k),
        drain(m, n),
    ]
    integer = TYPES[name][0] == "packi"
    got = launch(build(commands, buffers=3), [a, b, np.zeros((m, n), np.int32 if integer else np.float32)], {})[2]
    filled = np.full((m, k), fill, f"u{size}").view(TYPES[name][1])
    filled[2:9, 3:18] = a
    assert got.tobytes() == dot(filled, b).tobytes()


@pytest.mark.parametrize("name", TYPES)
def test_bounds_are_those_of_the_elements(name: str) -> None:
    m, k = 6, 10
    a = operand(name, (m, k), 1)
    size = a.itemsize

    def run(*, lo: int = 0, hi: int = a.nbytes, target: int = _A) -> None:
        obj = build([pack(name, "a", (1, 0), target, m, k, (k * size, size))], buffers=1)
        buffer = Buffer(a)
        launched = prepared(loom_sim.load(obj), [buffer])
        launched.bind(0, buffer.array.ctypes.data, lo, hi)
        launched.go()

    run()
    run(target=L1_MINI.sram_bytes - panel_bytes(L1_MINI, "a", m, k))
    for wrong in (
        {"hi": a.nbytes - 1},
        {"lo": 1},
        {"target": L1_MINI.sram_bytes - panel_bytes(L1_MINI, "a", m, k) + 1},
    ):
        with pytest.raises(OutOfBounds):
            run(**wrong)


def test_products_that_differ_in_cost_share_an_engine() -> None:
    slow = command("matmul", 0, 0, 0, 1, 1, 1)
    fast = [command("matmulf", 0, 0, 0, 1, 1, 1, flags={"widest": widest}) for widest in (0, 1)]
    assert {command_address(item) for item in (slow, *fast)} == {command_address(slow)}
