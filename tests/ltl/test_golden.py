"""The Tile IR of the five example kernels, and that tracing them is quick and gives sound functions."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from examples.flash_attention import flash_attention
from examples.layer_norm import layer_norm
from examples.matmul import linear_gelu
from examples.softmax import softmax_rows
from examples.vector_add import add
from loom_core.ir.block import Function
from loom_core.ir.parser import parse_function
from loom_core.ir.printer import print_function
from loom_core.ir.verifier import verify_function

POINTER, INT, FLOAT = "*fp32", "i32", "fp32"

KERNELS: dict[str, Callable[[], Function]] = {
    "vector_add": lambda: add.lower(*[POINTER] * 3, INT, BLOCK=1024),
    "matmul": lambda: linear_gelu.lower(*[POINTER] * 4, *[INT] * 3, *[INT, 1] * 3, BM=64, BN=64, BK=32),
    "softmax": lambda: softmax_rows.lower(*[POINTER] * 2, *[INT] * 4, BLOCK=781),
    "layer_norm": lambda: layer_norm.lower(*[POINTER] * 4, INT, INT, FLOAT, BLOCK=256),
    "flash_attention": lambda: flash_attention.lower(*[POINTER] * 4, *[INT] * 3, FLOAT, D=64, ROWS=64, KEYS=32),
}


@pytest.mark.parametrize("name", KERNELS)
def test_ir_is_as_reviewed(name: str, golden: Callable[[str, str], None]) -> None:
    golden(f"ltl/{name}.txt", print_function(KERNELS[name]()))


@pytest.mark.parametrize("name", KERNELS)
def test_ir_survives_its_text(name: str) -> None:
    function = KERNELS[name]()
    text = print_function(function, locations=True)
    read = parse_function(text)
    verify_function(read)
    assert print_function(read, locations=True) == text


def test_every_operation_is_located_in_the_kernel() -> None:
    function = KERNELS["flash_attention"]()
    for op in function.walk():
        assert op.location.file.endswith("flash_attention.py")
        assert op.location.function in ("flash_attention", "attend")
        if op.location.function == "attend":
            assert op.location.parent is not None
            assert op.location.parent.function == "flash_attention"


def test_tracing_flash_attention_is_quick() -> None:
    specs = flash_attention.specs((*[POINTER] * 4, *[INT] * 3, FLOAT), {"D": 64, "ROWS": 64, "KEYS": 32})
    times = []
    for _ in range(5):
        start = time.perf_counter()
        flash_attention.variant(specs, machine=flash_attention.variant(specs).machine)
        times.append(time.perf_counter() - start)
    assert min(times) < 0.04
