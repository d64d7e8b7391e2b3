"""The stream engine against PyTorch on one thread: every transcendental function, then whole kernels of 1M floats.

A kernel stages its tiles in SRAM and runs one instruction after the other over a chunk in the first-level cache. Where
PyTorch reads and writes an element once, in one fused loop, that moves it once more each way and once an instruction:
what does little arithmetic on an element stays behind for that reason.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import loom.triton.language as ltl
import loom_sim
from benchmarks.measure import compare
from benchmarks.result import Result
from loom_core.isa.encoding import Command, Label, command, encode
from loom_core.isa.machine import L1
from loom_core.isa.program import S, SceInstr, SceProgram, StreamSpec, encode_program
from loom_core.isa.sce import SCE_OPS
from loom_core.objfile import Abi, AbiArg, LoomObject

COUNT = 1 << 14  # floats of the functions
REPEATS = 32  # programs in one object, so that its launch does not count
BAR = 0.8
LOWER_BARS = {"erf": 0.6, "log": 0.6}
# function -> lowest and highest operand, of the first and of a second one
RANGES: dict[str, tuple[float, float]] = {
    "exp": (-20, 20), "exp2": (-20, 20), "expm1": (-5, 5), "log": (1e-3, 1e3), "log2": (1e-3, 1e3),
    "log10": (1e-3, 1e3), "log1p": (-0.9, 10), "sin": (-10, 10), "cos": (-10, 10), "tan": (-10, 10), "asin": (-1, 1),
    "acos": (-1, 1), "atan": (-10, 10), "sinh": (-10, 10), "cosh": (-10, 10), "tanh": (-5, 5), "asinh": (-10, 10),
    "acosh": (1, 10), "atanh": (-0.99, 0.99), "erf": (-3, 3), "erfc": (-3, 5), "erfinv": (-0.99, 0.99),
    "lgamma": (0.1, 10), "digamma": (0.1, 10), "sigmoid": (-10, 10), "softplus": (-10, 10), "gelu": (-5, 5),
    "rsqrt": (1e-3, 1e3), "atan2": (-5, 5), "pow": (0.1, 5), "hypot": (-5, 5),
}  # fmt: skip


def run() -> list[Result]:
    """Ratios of rates; PyTorch eager, results into arrays that are there."""
    import torch

    torch.set_num_threads(1)
    return [*_functions(torch), *_kernels(torch)]


# ---- functions -------------------------------------------------------------------------------------------------------


def _copy(source: tuple[int, int], target: tuple[int, int], count: int) -> Command:
    return command("copy", *source, *target, 0, count, 1, 1, 0, count, flags={"ndim": 1, "log2_bytes": 0, "skip": 0})


def function_object(mnemonic: str) -> LoomObject:
    """REPEATS times the function over COUNT floats in SRAM; buffers are the operands and the result."""
    operands = len(SCE_OPS[mnemonic].operands)
    size = COUNT * 4
    streams = (*[StreamSpec("load", "f32")] * operands, StreamSpec("store", "f32"))
    a, b = (*(S(i) for i in range(operands)), None)[:2]
    program = SceProgram(streams, (SceInstr(mnemonic, S(operands), a, b),), 0)
    given = [word for i in range(operands + 1) for word in (i * size, 4)]
    done = Label("done")
    commands = [
        *(_copy((i + 1, 0), (0, i * size), size) for i in range(operands)),
        command("loop", 16, 0, REPEATS, 1, done),
        command("program", 0, COUNT, *given, flags={"ndim": 1, "fold": 0, "drain": 0}),
        command("endloop"),
        done,
        _copy((0, operands * size), (operands + 1, 0), size),
        command("halt"),
    ]
    args = tuple(AbiArg(f"b{i}", "buffer", "f32", i, read=True, written=i > operands) for i in range(1, operands + 2))
    return LoomObject(encode(commands), encode_program(program), b"", Abi(args=args), manifest={}, machine=L1)


def _torch_function(torch: Any, name: str) -> Callable[..., Any]:
    if name in ("gelu", "softplus"):
        return getattr(torch.nn.functional, name)  # type: ignore[no-any-return]
    return getattr(torch, name)  # type: ignore[no-any-return]


def _functions(torch: Any) -> list[Result]:
    rng = np.random.default_rng(0)
    results = []
    for name, (low, high) in RANGES.items():
        mnemonic = f"{name}.f32"
        arrays = [rng.uniform(low, high, COUNT).astype(np.float32) for _ in range(len(SCE_OPS[mnemonic].operands))]
        ours = np.empty(COUNT, np.float32)
        launch = loom_sim.load(function_object(mnemonic)).prepare()
        launch.fill([(array.ctypes.data, 0, array.nbytes) for array in (*arrays, ours)], {})
        function, tensors = _torch_function(torch, name), [torch.from_numpy(array) for array in arrays]
        theirs = torch.empty(COUNT)
        takes_out = name not in ("gelu", "softplus")

        def peer() -> None:
            for _ in range(REPEATS):
                if takes_out:  # noqa: B023 (called in this iteration only)
                    function(*tensors, out=theirs)  # noqa: B023
                else:
                    function(*tensors)  # noqa: B023

        measured = compare(launch.go, peer)
        assert np.allclose(ours, function(*tensors).numpy(), rtol=1e-4, atol=1e-5), name
        per_element = {"ns": measured.ours, "torch_ns": measured.theirs}
        detail = {key: seconds / REPEATS / COUNT * 1e9 for key, seconds in per_element.items()}
        bar = LOWER_BARS.get(name, BAR)
        results.append(Result(f"{name} f32, 16K, against torch", measured.ratio, bar, detail=detail))
    return results


# ---- kernels ---------------------------------------------------------------------------------------------------------


@ltl.jit
def add_kernel(x, y, z, n, BLOCK: ltl.constexpr):
    offset = ltl.program_id(0) * BLOCK + ltl.arange(0, BLOCK)
    mask = offset < n
    ltl.store(z + offset, ltl.load(x + offset, mask=mask) + ltl.load(y + offset, mask=mask), mask=mask)


@ltl.jit
def gelu_kernel(x, z, a, b, n, BLOCK: ltl.constexpr):
    offset = ltl.program_id(0) * BLOCK + ltl.arange(0, BLOCK)
    mask = offset < n
    value = ltl.load(x + offset, mask=mask) * a + b
    ltl.store(z + offset, 0.5 * value * (1.0 + ltl.erf(value * 0.7071067811865476)), mask=mask)


@ltl.jit
def softmax_kernel(x, z, n, ROWS: ltl.constexpr, COLUMNS: ltl.constexpr):
    row = ltl.program_id(0) * ROWS + ltl.arange(0, ROWS)
    place = row[:, None] * n + ltl.arange(0, COLUMNS)[None, :]
    value = ltl.load(x + place)
    value = ltl.exp(value - ltl.max(value, axis=1)[:, None])
    ltl.store(z + place, value * (1.0 / ltl.sum(value, axis=1))[:, None])


@ltl.jit
def layer_norm_kernel(x, weight, bias, z, n, epsilon, ROWS: ltl.constexpr, COLUMNS: ltl.constexpr):
    row = ltl.program_id(0) * ROWS + ltl.arange(0, ROWS)
    column = ltl.arange(0, COLUMNS)
    place = row[:, None] * n + column[None, :]
    value = ltl.load(x + place)
    centred = value - (ltl.sum(value, axis=1) / n)[:, None]
    scale = ltl.rsqrt(ltl.sum(centred * centred, axis=1) / n + epsilon)
    normal = centred * scale[:, None]
    ltl.store(z + place, ltl.fma(normal, ltl.load(weight + column)[None, :], ltl.load(bias + column)[None, :]))


def _kernels(torch: Any) -> list[Result]:
    rng = np.random.default_rng(0)
    side, block, rows = 1024, 1 << 15, 32
    n = side * side
    x, y = rng.standard_normal((2, n), dtype=np.float32)
    weight, bias = rng.standard_normal((2, side), dtype=np.float32)
    tx, ty, tweight, tbias = (torch.from_numpy(array) for array in (x, y, weight, bias))
    matrix, peer_functions = tx.view(side, side), torch.nn.functional
    z = np.empty(n, np.float32)
    cases: list[tuple[str, float, Callable[[], object], Callable[[], Any]]] = [
        ("add", 0.5, lambda: add_kernel[n // block,](x, y, z, n, BLOCK=block), lambda: tx + ty),
        (
            "gelu(x*a+b)",
            1.0,
            lambda: gelu_kernel[n // block,](x, z, 1.5, 0.25, n, BLOCK=block),
            lambda: peer_functions.gelu(tx * 1.5 + 0.25),
        ),
        (
            "softmax",
            1.0,
            lambda: softmax_kernel[side // rows,](x, z, side, ROWS=rows, COLUMNS=side),
            lambda: torch.softmax(matrix, -1),
        ),
        (
            "layer norm",
            1.0,
            lambda: layer_norm_kernel[side // rows,](x, weight, bias, z, side, 1e-5, ROWS=rows, COLUMNS=side),
            lambda: peer_functions.layer_norm(matrix, (side,), tweight, tbias, 1e-5),
        ),
    ]
    results = []
    for name, bar, ours, theirs in cases:
        measured = compare(ours, theirs)
        assert np.allclose(z, theirs().numpy().ravel(), rtol=1e-4, atol=1e-5), name
        detail = {"ours_ms": measured.ours * 1e3, "torch_ms": measured.theirs * 1e3}
        results.append(Result(f"{name} of 1M floats against torch eager", measured.ratio, bar, detail=detail))
    return results
