"""Products of microscaled operands against a decoding by ml_dtypes, from source and from Triton's IR."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import ltl
from loom_core.base.diagnostics import LoomError
from loom_core.base.knobs import knobs

M, N, K = 4, 8, 64
RNG = np.random.default_rng(17)
ARRAYS: dict[str, Any] = {
    "e4m3": ml_dtypes.float8_e4m3fn, "e5m2": ml_dtypes.float8_e5m2, "bf16": ml_dtypes.bfloat16, "fp16": np.float16,
}  # fmt: skip


@ltl.jit
def product(
    out, a, a_scale, b, b_scale, A: ltl.constexpr, B: ltl.constexpr, AP: ltl.constexpr, BP: ltl.constexpr,
    M: ltl.constexpr, N: ltl.constexpr, K: ltl.constexpr, GROUP: ltl.constexpr,
):  # fmt: skip
    a_rows: ltl.constexpr = M if AP or A != "e2m1" else M // 2
    a_columns: ltl.constexpr = K // 2 if AP and A == "e2m1" else K
    b_rows: ltl.constexpr = K // 2 if BP and B == "e2m1" else K
    b_columns: ltl.constexpr = N if BP or B != "e2m1" else N // 2
    left = ltl.load(a + ltl.arange(0, a_rows)[:, None] * a_columns + ltl.arange(0, a_columns)[None, :])
    right = ltl.load(b + ltl.arange(0, b_rows)[:, None] * b_columns + ltl.arange(0, b_columns)[None, :])
    blocks = ltl.arange(0, K // GROUP)[None, :]
    left_scale = None
    if a_scale is not None:
        left_scale = ltl.load(a_scale + ltl.arange(0, M)[:, None] * (K // GROUP) + blocks)
    right_scale = None
    if b_scale is not None:
        right_scale = ltl.load(b_scale + ltl.arange(0, N)[:, None] * (K // GROUP) + blocks)
    made = ltl.dot_scaled(left, left_scale, A, right, right_scale, B, lhs_k_pack=AP, rhs_k_pack=BP)
    ltl.store(out + ltl.arange(0, M)[:, None] * N + ltl.arange(0, N)[None, :], made)


def operand(name: str, rows: int, columns: int, pairs: int) -> tuple[Any, Any]:
    """Bytes or floats of a format, and the numbers that they are; pairs of 4-bit floats lie along dimension `pairs`."""
    if name != "e2m1":
        values = (RNG.integers(-16, 17, (rows, columns)) / 8).astype(ARRAYS[name])
        return values, values.astype(np.float64)
    shape = (rows // 2, columns) if pairs == 0 else (rows, columns // 2)
    packed = RNG.integers(0, 256, shape, np.uint8)
    halves = np.stack([packed & 15, packed >> 4], pairs + 1).reshape(rows, columns)
    return packed, halves.view(ml_dtypes.float4_e2m1fn).astype(np.float64)


def scales(rows: int, group: int) -> tuple[Any, Any]:
    """Exponents as bytes, one of them the largest of a bfloat16 and none NaN, and the factors of all elements."""
    exponents = RNG.integers(118, 136, (rows, K // group)).astype(np.uint8)
    factors = exponents.view(ml_dtypes.float8_e8m0fnu).astype(np.float64)
    return exponents, np.repeat(factors, group, axis=1)


def run(arguments: dict[str, Any], out: Any) -> None:
    copy = out.copy()
    with knobs.override(interpret=True):
        product[(1,)](copy, **arguments)
    product[(1,)](out, **arguments)
    assert out.tobytes() == copy.tobytes()


@pytest.mark.parametrize(
    ("a_name", "b_name", "a_scaled", "b_scaled", "a_pack", "b_pack", "group"),
    [
        ("e2m1", "e4m3", True, True, True, True, 32),
        ("e5m2", "e2m1", True, False, True, True, 32),
        ("e2m1", "e2m1", True, True, False, False, 32),
        ("bf16", "e2m1", False, True, True, False, 16),
        ("fp16", "e5m2", False, True, True, True, 32),
    ],
)
def test_against_a_decoding(
    a_name: str, b_name: str, a_scaled: bool, b_scaled: bool, a_pack: bool, b_pack: bool, group: int
) -> None:
    """The numbers are such that every product and sum is exact."""
    a, left = operand(a_name, M, K, 1 if a_pack else 0)
    b, right = operand(b_name, K, N, 0 if b_pack else 1)
    a_scale, b_scale = None, None
    if a_scaled:
        a_scale, factors = scales(M, group)
        left = left * factors
    if b_scaled:
        b_scale, factors = scales(N, group)
        right = right * factors.T
    out = np.zeros((M, N), np.float32)
    names = {"A": a_name, "B": b_name, "AP": a_pack, "BP": b_pack, "M": M, "N": N, "K": K, "GROUP": group}
    run({"a": a, "a_scale": a_scale, "b": b, "b_scale": b_scale, **names}, out)
    exact = left @ right
    bound = 2 * K * 2.0**-24 * (np.abs(left) @ np.abs(right))
    assert (np.abs(out - exact) <= bound).all()
    assert (out != 0).any()


def test_every_scale() -> None:
    """Of one element: the smallest scale is 0 in bfloat16, the largest makes NaN, all others are powers of two."""
    a, b = np.zeros((256, K), ARRAYS["bf16"]), np.zeros((K, N), ARRAYS["bf16"])
    a[:, 0], b[0, :] = 1.5, 1
    a_scale = np.full((256, K // 32), 127, np.uint8)
    a_scale[:, 0] = np.arange(256)
    names = {"A": "bf16", "B": "bf16", "AP": True, "BP": True, "M": 256, "N": N, "K": K, "GROUP": 32}
    out = np.zeros((256, N), np.float32)
    run({"a": a, "a_scale": a_scale, "b": b, "b_scale": None, **names}, out)
    wanted = np.array([0.0, *(1.5 * 2.0 ** (code - 127) for code in range(1, 255)), np.nan], np.float32)
    assert np.array_equal(out, np.broadcast_to(wanted[:, None], out.shape), equal_nan=True)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"A": "e3m2"}, "one of 'e2m1'"),
        ({"A": "e4m3"}, "e4m3 is held by fp8e4nv"),
        ({"A": "bf16", "AP": False}, "only pairs of 4-bit floats"),
        ({"a_scale": np.zeros((M, 3), np.uint8), "GROUP": 64}, "scales of .* do not fit"),
    ],
)
def test_operands_that_do_not_fit(change: dict[str, Any], message: str) -> None:
    a = np.zeros((M, K), ARRAYS["bf16"])
    b, b_scale = np.zeros((K, N), ARRAYS["bf16"]), None
    names = {"A": "bf16", "B": "bf16", "AP": True, "BP": True, "M": M, "N": N, "K": K, "GROUP": 32}
    arguments = {"a": a, "a_scale": None, "b": b, "b_scale": b_scale, **names, **change}
    with pytest.raises(LoomError, match=message):
        product[(1,)](np.zeros((M, N), np.float32), **arguments)


@pytest.mark.filterwarnings("ignore:TRITON_DEFAULT_FP_FUSION")
def test_source_and_triton_ir_give_the_same_bits(tmp_path: Path) -> None:
    triton = pytest.importorskip("triton")
    from ltl.imported import ImportedKernel
    from tests.importers.ttir.upstream import module_text

    assert triton
    text = Path(__file__).read_text(encoding="utf-8")
    body = text[text.index("def product(") : text.index("def operand(")]
    path = tmp_path / "scaled_kernel.py"
    path.write_text("import triton\nimport triton.language as ltl\n\n\n@triton.jit\n" + body, encoding="utf-8")
    namespace: dict[str, Any] = {"__name__": "scaled_kernel"}
    exec(compile(path.read_text(encoding="utf-8"), str(path), "exec"), namespace)
    m, n, k = 32, 32, 64
    signature = {"out": "*fp32", "a": "*u8", "a_scale": "*u8", "b": "*fp8e4nv", "b_scale": "*u8"}
    names = {"A": "e2m1", "B": "e4m3", "AP": True, "BP": True, "M": m, "N": n, "K": k, "GROUP": 32}
    kernel = ImportedKernel(module_text(namespace["product"], signature, names))
    a, b = RNG.integers(0, 256, (m, k // 2), np.uint8), RNG.standard_normal((k, n)).astype(ARRAYS["e4m3"])
    a_scale, b_scale = (RNG.integers(100, 150, (rows, k // 32), np.uint8) for rows in (m, n))
    first, second = np.zeros((m, n), np.float32), np.zeros((m, n), np.float32)
    with knobs.override(interpret=True):
        product[(1,)](first, a, a_scale, b, b_scale, **names)
        kernel[(1,)](second, a, a_scale, b, b_scale)
    assert first.tobytes() == second.tobytes() and first.any()
