"""Inline assembly of single instructions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from loom_core.importers.ttir.assembly import INSTRUCTIONS
from loom_core.importers.ttir.errors import UnsupportedOperation
from ltl.imported import ImportedKernel
from tests.importers.ttir.modules import elementwise, run

A = np.array([0, 1, -1, 7, 2**31 - 1, -(2**31), 12345, -98765], np.int32)
B = np.array([3, -1, 31, 32, 2, 33, -7, 5], np.int32)
C = np.array([1, 2, 3, 4, 5, 6, 7, 8], np.int32)
U, V, W = (x.view(np.uint32).astype(np.uint64) for x in (A, B, C))
S, R = A.astype(np.int64), B.astype(np.int64)
INTEGERS: dict[str, Any] = {
    "mov.b32": A, "add.s32": S + R, "sub.u32": S - R, "mul.lo.s32": S * R, "mul.hi.s32": S * R >> 32,
    "mul.hi.u32": U * V >> np.uint64(32), "mad.lo.u32": S * R + C, "min.s32": np.minimum(S, R),
    "max.u32": np.maximum(U, V),
    "and.b32": A & B, "or.b32": A | B, "xor.b32": A ^ B, "not.b32": ~A, "neg.s32": -S, "abs.s32": np.abs(S),
    "shl.b32": np.where(V < 32, U << (V & np.uint64(31)), 0), "popc.b32": [int(x).bit_count() for x in U],
    "clz.b32": [32 - int(x).bit_length() for x in U], "brev.b32": [int(f"{int(x):032b}"[::-1], 2) for x in U],
}  # fmt: skip


def body(text: str, type: str, count: int, constraint: str = "r", packed: int = 1) -> str:
    operands = ", ".join(f"%v{i}" for i in range(count))
    constraints = ",".join([f"={constraint}", *[constraint] * count])
    options = f'{{constraints = "{constraints}", packed_element = {packed} : i32, pure = true}}'
    types = ", ".join([f"tensor<8x{type}>"] * count)
    return f'%r = tt.elementwise_inline_asm "{text}" {options} {operands} : {types} -> tensor<8x{type}>'


def written(name: str) -> tuple[str, int]:
    count = INSTRUCTIONS[name][1]
    return f"{name} {', '.join(f'${i}' for i in range(count + 1))};", count


@pytest.mark.parametrize("name", INTEGERS)
def test_integers(name: str) -> None:
    text, count = written(name)
    out = np.zeros(8, np.int32)
    run(elementwise(body(text, "i32", count), "i32 " * count, "i32"), *[x.copy() for x in (A, B, C)[:count]], out)
    wanted = np.asarray(INTEGERS[name]).astype(np.int64) & 0xFFFFFFFF
    assert out.view(np.uint32).tolist() == wanted.tolist()


X = np.array([0.5, -0.0, 1e-40, 2.25, np.inf, 1.5, 3.0, 100.0], np.float32)
Y = np.array([1.5, 2.0, 1.0, -3.0, 1.0, np.nan, 1e-3, 7.0], np.float32)
FLOATS: dict[str, Callable[..., Any]] = {
    "add.rn.f32": np.add, "mul.f32": np.multiply, "div.rn.f32": np.divide, "min.f32": np.fmin, "max.f32": np.fmax,
    "sqrt.rn.f32": lambda x: np.sqrt(x.astype(np.float32)), "ex2.approx.f32": np.exp2, "lg2.approx.f32": np.log2,
    "rcp.approx.f32": lambda x: 1 / x, "tanh.approx.f32": np.tanh, "sin.approx.f32": np.sin,
    "ex2.approx.ftz.f32": np.exp2, "lg2.approx.ftz.f32": lambda x: np.log2(np.where(np.abs(x) < 1.1754944e-38, 0, x)),
}  # fmt: skip


@pytest.mark.parametrize("name", FLOATS)
def test_floats(name: str) -> None:
    text, count = written(name)
    out = np.zeros(8, np.float32)
    run(elementwise(body(text, "f32", count, "f"), "f32 " * count, "f32"), *[x.copy() for x in (X, Y)[:count]], out)
    exact = name.endswith(("rn.f32", "mul.f32", "min.f32", "max.f32"))
    with np.errstate(all="ignore"):
        wide = (X, Y) if exact else (X.astype(np.float64), Y.astype(np.float64))
        wanted = FLOATS[name](*wide[:count]).astype(np.float32)
    if exact:
        assert np.array_equal(out, wanted, equal_nan=True)
    else:
        assert np.allclose(out, wanted, rtol=3e-7, atol=1e-45, equal_nan=True)


@pytest.mark.parametrize(
    ("text", "packed", "reason"),
    [
        ("{ add.s32 $0, $1, $1; add.s32 $0, $0, $0; }", 1, "none of the instructions known here"),
        ("mov.u32 $0, %clock;", 1, "none of the instructions known here"),
        ("add.s32 $0, $1, $1;", 1, "not its operands in order"),
        ("not.b32 $0, $1;", 4, "one element in one register"),
    ],
)
def test_other_assembly_is_refused(text: str, packed: int, reason: str) -> None:
    with pytest.raises(UnsupportedOperation, match=reason):
        ImportedKernel(elementwise(body(text, "i32", 1, packed=packed), "i32", "i32"))
