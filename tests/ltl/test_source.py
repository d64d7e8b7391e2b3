"""Source text written for Triton, autotuning, heuristics, and launches of descriptors."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import ltl
from loom_core.base.knobs import knobs
from ltl.source import kernels_in, load_source
from ltl.tuning import Autotuned, Config

MODULE = """
import torch._inductor.runtime.triton_helpers as helpers
import triton
import triton.language as tl
from torch._inductor.runtime.triton_helpers import libdevice as library, math as tl_math
from triton.language.extra import libdevice
from triton.language.extra.cuda.libdevice import exp as cuda_exp

LIMIT = tl.constexpr(3)


def doubled(n):
    return 2 * n


@triton.jit
def tail(x):
    return helpers.maximum(libdevice.tanh(x), tl_math.sin(x)) + LIMIT + library.exp(x) - cuda_exp(x)


@triton.autotune(
    configs=[triton.Config({"BLOCK": 16}, num_warps=4), triton.Config({"BLOCK": 64}, num_stages=2)],
    key=["n"],
)
@triton.heuristics({"EVEN": lambda args: args["n"] % args["BLOCK"] == 0})
@triton.jit
def kernel(out, x, n, BLOCK: tl.constexpr, EVEN: tl.constexpr = False):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = None if EVEN else i < n
    tl.store(out + i, tail(tl.load(x + i, mask=mask)), mask=mask)


@triton.jit(do_not_specialize=["n"], debug=True)
def plain(out, n, SIZE: tl.constexpr = triton.next_power_of_2(doubled(3))):
    tl.store(out + tl.arange(0, SIZE), n)
"""


def test_source_text_becomes_kernels_without_triton() -> None:
    """In a process that cannot import Triton."""
    code = f"""
import sys
sys.modules["triton"] = None
sys.path.insert(0, {str(Path(ltl.__file__).parents[1])!r})
import numpy as np
from loom_core.base.knobs import knobs
from ltl.source import load_source
names = load_source({MODULE!r})
out = np.zeros(8, np.int32)
with knobs.override(interpret=True):
    names["plain"][(1,)](out, 5)
print(out.tolist(), "torch" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split("]")[0] == "[5, 5, 5, 5, 5, 5, 5, 5"


def test_kernels_of_a_module() -> None:
    found = dict(kernels_in(load_source(MODULE)))
    assert list(found) == ["tail", "kernel", "plain"]
    assert found["plain"].debug  # type: ignore[union-attr]


def test_decorated_kernels_run() -> None:
    kernel = load_source(MODULE)["kernel"]
    x = np.linspace(-1, 1, 48, dtype=np.float32)
    out = np.zeros(48, np.float32)
    with knobs.override(interpret=True):
        kernel[lambda meta: (ltl.cdiv(48, meta["BLOCK"]),)](out, x, 48)
    assert np.allclose(out, np.maximum(np.tanh(x), np.sin(x)) + 3, atol=1e-6)


@ltl.jit
def scale(x, n, BLOCK: ltl.constexpr):
    i = ltl.program_id(0) * BLOCK + ltl.arange(0, BLOCK)
    ltl.store(x + i, ltl.load(x + i, mask=i < n) * 2.0, mask=i < n)


def tuned(*blocks: int) -> Autotuned:
    return Autotuned(scale, [Config({"BLOCK": block}) for block in blocks], ["n"])


def test_modelled_cycles_choose() -> None:
    kernel = tuned(8, 256)
    x = np.arange(256, dtype=np.float32)
    kernel[lambda meta: (ltl.cdiv(256, meta["BLOCK"]),)](x, 256)
    assert np.array_equal(x, np.arange(256) * 2), "comparing configurations left the array as it was"
    assert kernel.best_config is not None and kernel.best_config.kwargs == {"BLOCK": 256}
    ((first, second),) = kernel.cycles.values()
    assert first[1] > second[1] > 0
    again = tuned(8, 256)
    again[lambda meta: (ltl.cdiv(256, meta["BLOCK"]),)](x, 256)
    assert [cycles for _, cycles in next(iter(again.cycles.values()))] == [first[1], second[1]]


def test_configurations_that_do_not_compile_are_passed_over() -> None:
    kernel = tuned(1 << 24, 64)
    x = np.ones(64, np.float32)
    kernel[lambda meta: (ltl.cdiv(64, meta["BLOCK"]),)](x, 64)
    assert kernel.best_config is not None and kernel.best_config.kwargs == {"BLOCK": 64}


def test_tritons_own_decorators() -> None:
    pytest.importorskip("triton")
    module = tuned_module()
    kernel = ltl.jit(module)
    assert isinstance(kernel, Autotuned)
    x = np.arange(32, dtype=np.float32)
    kernel[lambda meta: (ltl.cdiv(32, meta["BLOCK"]),)](x, 32)
    assert np.array_equal(x, np.arange(32) + 1)


def tuned_module() -> object:
    return UPSTREAM


try:
    import triton
    import triton.language as tl
except ImportError:
    UPSTREAM = None
else:

    @triton.autotune(configs=[triton.Config({"BLOCK": 8}), triton.Config({"BLOCK": 32})], key=["n"])
    @triton.jit
    def UPSTREAM(x, n, BLOCK: tl.constexpr):
        i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        tl.store(x + i, tl.load(x + i, mask=i < n) + 1, mask=i < n)
