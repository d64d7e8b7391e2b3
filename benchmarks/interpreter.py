"""The same kernels, at equal blocks, against Triton's interpreter: as LTL, and as Triton launches them on Loom."""

from __future__ import annotations

import os
from collections.abc import Callable

import numpy as np

from benchmarks.language import kernels_in
from benchmarks.launch import BAR as WARM_BAR
from benchmarks.measure import compare
from benchmarks.result import Result
from benchmarks.triton_driver import measured

Launch = Callable[..., object]


def run() -> list[Result]:
    """Vector add of 1M floats, softmax and matmul, causal flash attention."""
    os.environ["TRITON_INTERPRET"] = "1"  # read when triton is imported
    import torch
    import triton
    import triton.language

    import loom.triton.language as ltl

    torch.set_num_threads(1)
    launched = measured()
    ours, theirs = kernels_in(ltl, ltl.jit), kernels_in(triton.language, triton.jit)
    results = []
    for claim, bar, name, grid, arrays, scalars, blocks in cases():
        result = np.zeros_like(arrays[-1])
        expected = torch.from_numpy(np.zeros_like(arrays[-1]))
        tensors = [torch.from_numpy(array) for array in arrays[:-1]]
        loom, peer = getattr(ours, name)[grid], getattr(theirs, name)[grid]
        timed = compare(
            lambda: loom(*arrays[:-1], result, *scalars, **blocks),  # noqa: B023 (called in this iteration only)
            lambda: peer(*tensors, expected, *scalars, **blocks),  # noqa: B023
        )
        assert np.allclose(result, expected.numpy(), atol=1e-3), claim
        detail = {"ours_ms": timed.ours * 1e3, "interpreter_ms": timed.theirs * 1e3}
        results.append(Result(f"{claim} against the Triton interpreter", timed.ratio, bar, detail=detail))
        for what, wanted, seconds in (
            ("", bar, launched[claim]["warm"]),
            (", first call", None, launched[claim]["first"]),
        ):
            detail = {"ours_ms": seconds * 1e3, "interpreter_ms": timed.theirs * 1e3}
            name = f"{claim} through loom.triton.install(){what}"
            results.append(Result(name, timed.theirs / seconds, wanted, detail=detail))
    add = launched["scalar add"]
    detail = {"ours_us": add["ours"] * 1e6, "jax_us": add["theirs"] * 1e6}
    claim = "warm scalar add through loom.triton.install(), time against jax.jit"
    results.append(Result(claim, 1 / add["ratio"], WARM_BAR, "<=", detail=detail))
    return results


def cases() -> list[tuple[str, float, str, tuple[int, ...], list[np.ndarray], tuple[float, ...], dict[str, int]]]:
    """Claim, bar, kernel, grid, arrays (the last one is written), scalars, blocks."""
    rng = np.random.default_rng(0)

    def normal(*shape: int) -> np.ndarray:
        return rng.standard_normal(shape, dtype=np.float32)

    n = 1 << 20
    return [
        ("vector add 1M", 500, "vector_add", (n // 1024,), [normal(n), normal(n), normal(n)], (n,), {"BLOCK": 1024}),
        (
            "softmax 1024x1024", 500, "softmax", (1024,), [normal(1024, 1024), normal(1024, 1024)], (1024,),
            {"BLOCK": 1024},
        ),
        (
            "matmul 512", 300, "matmul", (8, 8), [normal(512, 512) for _ in range(3)], (512, 512, 512),
            {"M": 64, "N": 64, "K": 32},
        ),
        (
            "flash attention S=512 d=64", 300, "flash_attention", (8,), [normal(512, 64) for _ in range(4)],
            (512, 0.125), {"D": 64, "ROWS": 64, "KEYS": 64},
        ),
    ]  # fmt: skip
