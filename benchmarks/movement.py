"""Gather, scatter and sort as commands of whole objects, data moved in and out, against NumPy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

import loom_sim
from benchmarks.measure import compare
from benchmarks.result import Result
from loom_core.isa.encoding import Command, Label, Operand, Reg, command, encode
from loom_core.isa.machine import L1
from loom_core.isa.sce import DTYPE_CODES
from loom_core.objfile import Abi, AbiArg, LoomObject

Array = NDArray[Any]

COUNT = 1 << 20  # elements
BLOCK = 1 << 16  # elements in SRAM at a time
ROWS = 1024
TILE = 1 << 20  # its place in SRAM; indices, or the unsorted rows, lie at 0
INDEX, ELEMENT = 8, 4  # bytes
AT, INDEX_AT = Reg(6), Reg(7)  # bytes of data and of indices before the block


def run() -> list[Result]:
    """1M floats by random int64 indices against `take` and `put`; 1024 rows of 1024 floats against a stable sort."""
    rng = np.random.default_rng(0)
    values, index = rng.standard_normal(COUNT, dtype=np.float32), rng.integers(0, COUNT, COUNT)
    matrix = rng.standard_normal((ROWS, ROWS), dtype=np.float32)
    return [_gather(values, index), _scatter(values, index), _sort(matrix)]


def _gather(values: Array, index: Array) -> Result:
    out = np.zeros_like(values)
    moves = [
        _copy((2, INDEX_AT), (0, 0), BLOCK * INDEX),
        command("gather", 1, 0, TILE, 0, 0, ELEMENT, 0, BLOCK, 0, ELEMENT, INDEX, 0, flags=_flags()),
        _copy((0, TILE), (3, AT), BLOCK * ELEMENT),
    ]
    launch = _launch(_looped(moves, COUNT // BLOCK, BLOCK * ELEMENT, BLOCK * INDEX), [values, index, out])
    measured = compare(launch, lambda: np.take(values, index))
    assert (out == values[index]).all()
    return Result("gather of 1M fp32 against NumPy's take", measured.ratio, 0.5, detail={"ms": measured.ours * 1e3})


def _scatter(values: Array, index: Array) -> Result:
    out, expected = np.zeros_like(values), np.zeros_like(values)
    moves = [
        _copy((2, INDEX_AT), (0, 0), BLOCK * INDEX),
        _copy((1, AT), (0, TILE), BLOCK * ELEMENT),
        command("scatter", TILE, 3, 0, 0, 0, ELEMENT, BLOCK, 0, ELEMENT, INDEX, 0, flags=_flags()),
    ]
    launch = _launch(_looped(moves, COUNT // BLOCK, BLOCK * ELEMENT, BLOCK * INDEX), [values, index, out])
    measured = compare(launch, lambda: np.put(expected, index, values))
    assert (out == expected).all()
    return Result("scatter of 1M fp32 against NumPy's put", measured.ratio, 0.5, detail={"ms": measured.ours * 1e3})


def _sort(matrix: Array) -> Result:
    rows, row = 256, ROWS * ELEMENT
    out = np.zeros_like(matrix)
    dims = (rows, row, row, 0, ROWS, ELEMENT, ELEMENT, 0)
    flags = {"ndim": 2, "log2_bytes": 2, "values": 1}
    moves = [
        _copy((1, AT), (0, 0), rows * row),
        command("sort", 0, TILE, 0, DTYPE_CODES["f32"], ROWS, 0, *dims, flags=flags),
        _copy((0, TILE), (2, AT), rows * row),
    ]
    launch = _launch(_looped(moves, ROWS // rows, rows * row, 0), [matrix, out])
    measured = compare(launch, lambda: np.sort(matrix, axis=1, kind="stable"))
    assert (out == np.sort(matrix, axis=1)).all()
    return Result(
        "sort of 1024 rows of 1024 fp32 against NumPy", measured.ratio, 0.5, detail={"ms": measured.ours * 1e3}
    )


def _flags() -> dict[str, int]:
    return {"ndim": 1, "log2_bytes": 2, "index": 1}


def _copy(source: tuple[Operand, Operand], target: tuple[Operand, Operand], count: int) -> Command:
    return command("copy", *source, *target, 0, count, 1, 1, 0, count, flags={"ndim": 1})


def _looped(body: Sequence[Command], times: int, step: int, index_step: int) -> list[Command | Label]:
    """`body` so many times; AT counts up by `step`, INDEX_AT by `index_step`."""
    end = Label()
    loop = command("loop", AT.number, 0, times * step, step, end)
    offset = command("mul", INDEX_AT.number, AT, index_step // step)
    return [loop, offset, *body, command("endloop"), end, command("halt")]


def _launch(commands: Sequence[Command | Label], arrays: Sequence[Array]) -> Callable[[], None]:
    args = tuple(AbiArg(f"b{i}", "buffer", "f32", i + 1, read=True, written=True) for i in range(len(arrays)))
    obj = LoomObject(encode(commands), np.zeros(0, np.uint64), b"", Abi(args=args), manifest={}, machine=L1)
    launch = loom_sim.load(obj).prepare()
    launch.fill([(array.ctypes.data, 0, array.nbytes) for array in arrays], {})
    return launch.go
