"""The examples: each runs as a script, is clean under the checks, and is what an independent library gives."""

from __future__ import annotations

import ast
import runpy
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import loom
from loom.triton import load_source

FOLDER = Path(__file__).resolve().parents[2] / "examples"
# The demo and the model have tests of their own.
PATHS = [path for path in sorted(FOLDER.rglob("*.py")) if path.stem not in ("demo", "minilm")]
# Examples of one name whose LTL and Palladium kernels are the same algorithm at the same blocks.
SHARED = (
    "matmul_epilogue", "rms_norm", "dropout", "flash_attention_backward", "grouped_matmul", "top_k", "histogram",
    "selective_scan",
)  # fmt: skip
RNG = np.random.default_rng(8)
Array = np.ndarray[Any, Any]


def f32(*shape: int) -> Array:
    return RNG.standard_normal(shape, dtype=np.float32)


@pytest.mark.parametrize("path", PATHS, ids=lambda path: str(path.relative_to(FOLDER)))
def test_runs_as_a_script(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(path), run_name="__main__")
    shown = capsys.readouterr().out
    assert path.parent.name == "pallas" or "cycles" in shown, shown


@pytest.mark.parametrize(
    "path", [path for path in PATHS if path.parent.name != "pallas"], ids=lambda path: str(path.relative_to(FOLDER))
)
def test_checked_run_finds_nothing(path: Path) -> None:
    with loom.check():
        runpy.run_path(str(path), run_name="__main__")


def test_scripts_need_no_other_example() -> None:
    for path in PATHS:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            assert not isinstance(node, ast.ImportFrom) or (node.module or "").partition(".")[0] != "examples", path


# ---- LTL and Palladium -----------------------------------------------------------------------------------------------


def arguments(name: str) -> list[tuple[Any, ...]]:
    """Arguments of an example's `run`, other than its own."""
    module = import_module(f"examples.{name}")
    x = f32(7, 64)
    if name == "matmul_epilogue":
        return [module.operands(np.dtype(dtype), 70, 90, 160) for dtype in (np.float32, ml_dtypes.bfloat16, np.int8)]
    by_name: dict[str, list[tuple[Any, ...]]] = {
        "rms_norm": [(f32(9, 333) * 100, f32(333))],
        "dropout": [(x, 0.25, 0), (x, 0.5, 2**31 + 3), (f32(3001), 0.9, 2**40 + 7)],
        "flash_attention_backward": [tuple(f32(4, 3, 96, 32))],
        "grouped_matmul": [(f32(48, 24), f32(4, 24, 64), np.array([3, 0, 3], np.int32))],
        "top_k": [(RNG.integers(-9, 9, (21, 70)).astype(np.float32), 5), (x, 1)],
        "histogram": [(f32(3001), 20, -1.5, 3.0), (f32(7), 3, 0.0, 1.0)],
        "selective_scan": [module.operands(3, 48, 24, 5)] if name == "selective_scan" else [],
    }
    return by_name[name]


def as_bytes(found: Any) -> list[bytes]:
    return [array.tobytes() for array in (found if isinstance(found, tuple) else (found,))]


@pytest.mark.parametrize("name", SHARED)
def test_both_languages_give_the_same_bits(name: str) -> None:
    ours, theirs = import_module(f"examples.{name}"), import_module(f"examples.palladium.{name}")
    for given in arguments(name):
        assert as_bytes(ours.run(*given)) == as_bytes(theirs.run(*given))


@pytest.mark.parametrize("name", SHARED)
def test_equals_its_reference(name: str) -> None:
    module = import_module(f"examples.{name}")
    for given in arguments(name):
        found, wanted = module.run(*given), module.reference(*given)
        for array, expected in zip(*((x if isinstance(x, tuple) else (x,)) for x in (found, wanted)), strict=True):
            if expected.dtype == array.dtype:  # the example says that it computes the same thing
                assert array.tobytes() == expected.tobytes()
                continue
            tolerance = 2**-7 if array.dtype == ml_dtypes.bfloat16 else 2e-5
            assert np.abs(array.astype(np.float64) - expected).max() <= tolerance * np.abs(expected).max()


# ---- PyTorch ---------------------------------------------------------------------------------------------------------


def linear_relu(module: ModuleType, torch: Any) -> tuple[Any, Any]:
    a, b, bias, scale = module.operands(np.dtype(np.float32), 40, 50, 64)
    product = torch.from_numpy(a) @ torch.from_numpy(b)
    return module.run(a, b, bias, scale), torch.relu(product * scale + torch.from_numpy(bias))


def rms_norm(module: ModuleType, torch: Any) -> tuple[Any, Any]:
    x, weight = f32(5, 99), f32(99)
    given = torch.from_numpy(x), (99,), torch.from_numpy(weight)
    return module.run(x, weight), torch.nn.functional.rms_norm(*given, eps=1e-6)


def layer_norm(module: ModuleType, torch: Any) -> tuple[Any, Any]:
    x, weight, bias = f32(5, 300), f32(300), f32(300)
    given = torch.from_numpy(x), (300,), torch.from_numpy(weight), torch.from_numpy(bias)
    return module.run(x, weight, bias), torch.nn.functional.layer_norm(*given)


def softmax(module: ModuleType, torch: Any) -> tuple[Any, Any]:
    x = f32(9, 130)
    return module.run(x), torch.softmax(torch.from_numpy(x), 1)


def top_k(module: ModuleType, torch: Any) -> tuple[Any, Any]:
    x = RNG.permutation(640).astype(np.float32).reshape(10, 64)
    values, indices = torch.topk(torch.from_numpy(x), 6)
    return module.run(x, 6), (values, indices)


def histogram(module: ModuleType, torch: Any) -> tuple[Any, Any]:
    x = RNG.integers(0, 64, 5000).astype(np.float32) / 8
    return module.run(x, 16, 0, 8), torch.histc(torch.from_numpy(x), 16, 0, 8)


def dropout(module: ModuleType, torch: Any) -> tuple[Any, Any]:
    """The gradient of x * mask / (1 - p), the mask being what the forward pass kept."""
    x, gradient = f32(1500), f32(1500)
    leaf = torch.tensor(x, requires_grad=True)
    (leaf * torch.from_numpy(module.run(x, 0.4, 11) != 0) / (1 - 0.4)).backward(torch.from_numpy(gradient))
    return module.run(gradient, 0.4, 11), leaf.grad


def attention_gradients(module: ModuleType, torch: Any) -> tuple[Any, Any]:
    q, k, v, dout = f32(4, 2, 64, 32)
    leaves = [torch.tensor(array, dtype=torch.float64, requires_grad=True) for array in (q, k, v)]
    out = torch.nn.functional.scaled_dot_product_attention(*leaves, is_causal=True)
    out.backward(torch.tensor(dout, dtype=torch.float64))
    return module.run(q, k, v, dout), (out.detach(), *(leaf.grad for leaf in leaves))


AGAINST_TORCH: dict[str, Callable[[ModuleType, Any], tuple[Any, Any]]] = {
    "matmul_epilogue": linear_relu,
    "rms_norm": rms_norm,
    "layer_norm": layer_norm,
    "softmax": softmax,
    "top_k": top_k,
    "histogram": histogram,
    "dropout": dropout,
    "flash_attention_backward": attention_gradients,
}


@pytest.mark.parametrize("name", AGAINST_TORCH)
def test_is_what_torch_gives(name: str) -> None:
    torch = pytest.importorskip("torch")
    found, wanted = AGAINST_TORCH[name](import_module(f"examples.{name}"), torch)
    for array, expected in zip(*((x if isinstance(x, tuple) else (x,)) for x in (found, wanted)), strict=True):
        assert np.allclose(array, expected.numpy(), rtol=2e-5, atol=2e-6)


def test_histogram_with_a_plain_store_would_be_a_race() -> None:
    text = (FOLDER / "histogram.py").read_text(encoding="utf-8")
    module = load_source(text.replace("ltl.atomic_add(", "ltl.store("))
    with loom.check(), pytest.raises(loom.LoomError, match="counts_ptr"):
        module["run"](f32(5000), 16, -4, 4)
