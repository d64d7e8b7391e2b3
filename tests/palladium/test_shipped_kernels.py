"""Kernels that the jax wheel ships run through the shim by changing their imports, and nothing else.

Nothing is copied: the installed files are read at run time. What is no Pallas in them (jit, vmap, derivatives) is a
small stand-in here, as their callers use it on arrays.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

import loom.experimental.pallas as pl
from loom.experimental.pallas import lax, nn
from loom.experimental.pallas import numpy as jnp

pytest.importorskip("jax")

RNG = np.random.default_rng(11)
IMPORTS = {
    "import jax": "import loom_test_jax as jax",
    "import jax.numpy as jnp": "import loom.experimental.pallas.numpy as jnp",
    "from jax import lax": "from loom.experimental.pallas import lax",
    "from jax.experimental import pallas as pl": "import loom.experimental.pallas as pl",
    "from jax.experimental.pallas import triton as plgpu": "import loom.experimental.pallas.triton as plgpu",
    "from jax.experimental.pallas import tpu as pltpu": "import loom.experimental.pallas.tpu as pltpu",
}


def f32(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


def vmap(function: Callable[..., Any], in_axes: Any = 0, out_axes: Any = 0) -> Callable[..., Any]:
    """The function once for each index of the first axes."""

    def mapped(*args: Any) -> Any:
        axes = in_axes if isinstance(in_axes, (tuple, list)) else (in_axes,) * len(args)
        (size,) = {arg.shape[0] for arg, axis in zip(args, axes, strict=True) if axis == 0}
        return np.stack(
            [
                function(*(arg[i] if axis == 0 else arg for arg, axis in zip(args, axes, strict=True)))
                for i in range(size)
            ]
        )

    return mapped


class Undifferentiated:
    """`jax.custom_vjp` of a function that is only called."""

    def __init__(self, function: Callable[..., Any], **options: Any) -> None:
        self.function = function

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.function(*args, **kwargs)

    def defvjp(self, *functions: Any) -> None:
        """Derivatives are not asked for."""


@pytest.fixture(autouse=True)
def surroundings() -> Iterator[None]:
    module: Any = ModuleType("loom_test_jax")
    vars(module).update(
        Array=object, ShapeDtypeStruct=pl.ShapeDtypeStruct, custom_vjp=Undifferentiated, lax=lax, nn=nn, numpy=jnp,
        vmap=vmap, jit=lambda function=None, **options: (lambda f: f) if function is None else function,
        named_scope=lambda name: lambda function: function, typing=SimpleNamespace(ArrayLike=object),
    )  # fmt: skip
    sys.modules[module.__name__] = module
    yield
    del sys.modules[module.__name__]


def shipped(name: str) -> Any:
    """An installed module of kernels with its imports changed."""
    spec = find_spec("jax")
    assert spec is not None and spec.origin is not None
    path = Path(spec.origin).parent / "experimental" / "pallas" / "ops" / name
    text = path.read_text(encoding="utf-8")
    for line, ours in IMPORTS.items():
        text = re.sub(rf"^{re.escape(line)}$", ours, text, flags=re.MULTILINE)
    module = ModuleType(f"shipped_{path.stem}")
    sys.modules[module.__name__] = module  # dataclasses look their module up
    exec(compile(text, str(path), "exec"), vars(module))
    return module


def near(found: Any, wanted: np.ndarray, tolerance: float = 1e-5) -> bool:
    return bool(np.allclose(found, wanted, rtol=tolerance, atol=tolerance * np.abs(wanted).max()))


def softmax(x: np.ndarray) -> np.ndarray:
    weights = np.exp(x - x.max(-1, keepdims=True))
    return weights / weights.sum(-1, keepdims=True)


def test_softmax() -> None:
    x = f32(4, 100)
    assert near(shipped("gpu/softmax.py").softmax(x), softmax(x))


def test_layer_norm() -> None:
    x, weight, bias = f32(2, 4, 96), f32(96), f32(96)
    scaled = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5)
    assert near(shipped("gpu/layer_norm.py").layer_norm(x, weight, bias), scaled * weight + bias)


def test_rms_norm() -> None:
    x, weight, bias = f32(2, 4, 96), f32(96), f32(96)
    scaled = x / np.sqrt(np.square(x).mean(-1, keepdims=True) + 1e-5)
    assert near(shipped("gpu/rms_norm.py").rms_norm(x, weight, bias), scaled * weight + bias)


@pytest.mark.parametrize("causal", [False, True])
def test_attention(causal: bool) -> None:
    q, k, v = (f32(2, 128, 2, 32) for _ in range(3))
    module = shipped("gpu/attention.py")
    sizes = dict.fromkeys(("q", "k", "q_dkv", "kv_dkv", "q_dq", "kv_dq"), 64)
    blocks = module.BlockSizes(**{f"block_{name}": size for name, size in sizes.items()})
    scores = np.einsum("bqhc,bkhc->bhqk", q, k)
    if causal:
        scores = np.where(np.tril(np.ones((128, 128), bool)), scores, -np.inf)
    wanted = np.einsum("bhqk,bkhc->bqhc", softmax(scores), v)
    assert near(module.mha(q, k, v, None, causal=causal, block_sizes=blocks), wanted)


def test_matmul() -> None:
    x, y = f32(256, 512), f32(512, 256)
    assert near(shipped("tpu/matmul.py").matmul(x, y, block_shape=(128, 128), block_k=128), x @ y)
