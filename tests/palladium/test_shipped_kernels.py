"""Kernels that the jax wheel ships run through the shim by changing their imports, and nothing else.

Nothing is copied: the installed files are read at run time. What is no Pallas in them (jit, vmap, derivatives) is a
small stand-in here, as their callers use it on arrays.

Not among them: the kernels for Mosaic GPU (ops/gpu/*_mgpu.py) and tpu/all_gather.py, which copies between devices;
tpu/random/threefry.py and philox.py, whose bodies call a primitive of jax.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from contextlib import ContextDecorator
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
OPS = "from jax.experimental.pallas.ops.tpu."
HELPERS = {
    f"{OPS}megablox import common": "tpu/megablox/common.py",
    f"{OPS}paged_attention import quantization_utils": "tpu/paged_attention/quantization_utils.py",
    f"{OPS}ragged_paged_attention.tuned_block_sizes import get_tuned_block_sizes":
        "tpu/ragged_paged_attention/tuned_block_sizes.py",
}  # fmt: skip
"""Imports of files beside a kernel, which change in the same way."""


def f32(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


def vmap(function: Callable[..., Any], in_axes: Any = 0, out_axes: Any = 0) -> Callable[..., Any]:
    """The function once for each index of the first axes."""

    def mapped(*args: Any) -> Any:
        axes = in_axes if isinstance(in_axes, (tuple, list)) else (in_axes,) * len(args)
        pairs = [(arg, None if arg is None else axis) for arg, axis in zip(args, axes, strict=True)]
        (size,) = {arg.shape[axis] for arg, axis in pairs if axis is not None}
        found = [
            function(*(arg if axis is None else np.take(arg, i, axis) for arg, axis in pairs)) for i in range(size)
        ]
        if not isinstance(found[0], tuple):
            return np.stack(found, out_axes)
        places = out_axes if isinstance(out_axes, tuple) else (out_axes,) * len(found[0])
        return tuple(np.stack(parts, place) for parts, place in zip(zip(*found, strict=True), places, strict=True))

    return mapped


class Undifferentiated:
    """`jax.custom_vjp` of a function that is only called."""

    def __init__(self, function: Callable[..., Any], **options: Any) -> None:
        self.function = function

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.function(*args, **kwargs)

    def defvjp(self, *functions: Any, **named: Any) -> None:
        """Derivatives are not asked for."""


class Scope(ContextDecorator):
    """`jax.named_scope`, around a function or a block."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __enter__(self) -> Scope:
        return self

    def __exit__(self, *error: object) -> None:
        """Nothing to end."""


class Surroundings(ModuleType):
    """jax, but for what kernels call."""

    def __getattr__(self, name: str) -> Any:
        import jax

        return getattr(jax, name)


@pytest.fixture(autouse=True)
def surroundings() -> Iterator[None]:
    module: Any = Surroundings("loom_test_jax")
    vars(module).update(
        Array=np.ndarray, ShapeDtypeStruct=pl.ShapeDtypeStruct, custom_vjp=Undifferentiated, lax=lax, nn=nn, numpy=jnp,
        vmap=vmap, jit=lambda function=None, **options: (lambda f: f) if function is None else function,
        named_scope=Scope, typing=SimpleNamespace(ArrayLike=object),
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
    for line, file in HELPERS.items():
        if line in text:
            helper = shipped(file)
            names = line.rsplit(" import ", 1)
            text = text.replace(line, f"import {helper.__name__} as {names[1]}" if file.endswith(f"{names[1]}.py") else
                                f"from {helper.__name__} import {names[1]}")  # fmt: skip
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


def attended(q: np.ndarray, k: np.ndarray, v: np.ndarray, mask: np.ndarray | None = None) -> np.ndarray:
    """Attention of q[H, Q, D] over k and v[H, K, D]."""
    scores = np.einsum("hqd,hkd->hqk", q, k)
    return np.einsum("hqk,hkd->hqd", softmax(scores if mask is None else np.where(mask, scores, -np.inf)), v)


def test_double() -> None:
    x = f32(8, 128)
    assert np.array_equal(shipped("tpu/example_kernel.py").double(x), 2 * x)


@pytest.mark.parametrize("causal", [False, True])
def test_flash_attention(causal: bool) -> None:
    q, k, v = (f32(1, 2, 256, 128) for _ in range(3))
    module = shipped("tpu/flash_attention.py")
    blocks = module.BlockSizes(block_q=128, block_k_major=128, block_k=128, block_b=1)
    found = module.flash_attention(q, k, v, causal=causal, block_sizes=blocks)
    mask = np.tril(np.ones((256, 256), bool)) if causal else None
    assert near(found[0], attended(q[0], k[0], v[0], mask))


SIZES = np.array([100, 56, 100], np.int32)


def test_grouped_matmul() -> None:
    left, right = f32(256, 128), f32(3, 128, 128)
    found = shipped("tpu/megablox/gmm.py").gmm(left, right, SIZES, tiling=(64, 128, 128))
    parts = np.split(left, np.cumsum(SIZES)[:-1])
    assert near(found, np.concatenate([part @ one for part, one in zip(parts, right, strict=True)]))


def test_transposed_grouped_matmul() -> None:
    left, right = f32(128, 256), f32(256, 128)
    found = shipped("tpu/megablox/gmm.py").tgmm(left, right, SIZES, tiling=(64, 128, 128))
    ends = np.cumsum(SIZES)[:-1]
    pairs = zip(np.split(left, ends, 1), np.split(right, ends), strict=True)
    assert near(found, np.stack([a @ b for a, b in pairs]))


def paged(module: Any, head: int, call: Callable[..., Any]) -> tuple[np.ndarray, np.ndarray]:
    """What paged attention gives for two sequences of 2 key heads and 8 pages of 16 keys, and what is right."""
    q, k, v = f32(2, 8, head), f32(2, 16, 16, head), f32(2, 16, 16, head)
    lengths, pages = np.array([37, 100], np.int32), RNG.permutation(16).reshape(2, 8).astype(np.int32)
    found, wanted = call(module, q, k, v, lengths, pages), []
    for b in range(2):
        keys, values = (one[:, pages[b]].reshape(2, -1, head)[:, : lengths[b]] for one in (k, v))
        wanted.append(attended(q[b].reshape(2, 4, head), keys, values).reshape(8, head))
    return np.asarray(found), np.stack(wanted)


def test_paged_attention_with_copies_by_hand() -> None:
    def call(module: Any, q: Any, k: Any, v: Any, lengths: Any, pages: Any) -> Any:
        return module.paged_attention(q, k, v, lengths, pages, pages_per_compute_block=4)

    found, wanted = paged(shipped("tpu/paged_attention/paged_attention_kernel.py"), 128, call)
    assert near(found, wanted, 0.05), "it rounds keys and values to bfloat16"


def test_paged_attention_of_a_gpu() -> None:
    def call(module: Any, q: Any, k: Any, v: Any, lengths: Any, pages: Any) -> Any:
        return module.paged_attention(q, k, v, pages, lengths, block_h=16, pages_per_compute_block=2, k_splits=2)

    assert near(*paged(shipped("gpu/paged_attention.py"), 64, call))


def test_decode_attention() -> None:
    q, k, v = f32(2, 4, 64), f32(2, 128, 64), f32(2, 128, 64)
    found = shipped("gpu/decode_attention.py").mqa(q, k, v, sm_scale=1.0, block_h=4, k_splits=2, block_k=32)
    assert near(found, attended(q, k, v))


def test_ragged_paged_attention() -> None:
    heads, head, page = 4, 128, 16
    q, pages = f32(32, heads, head), f32(10, page, 4, head)
    lengths, begins = np.array([40, 33], np.int32), np.array([0, 20, 32], np.int32)
    places = RNG.permutation(8).reshape(2, 4).astype(np.int32)
    found = shipped("tpu/ragged_paged_attention/kernel.py").ragged_paged_attention(
        q, pages, lengths, places, begins, np.array([2], np.int32), num_kv_pages_per_block=2, num_queries_per_block=16
    )
    wanted = []
    for i, length in enumerate(lengths):
        rows = q[begins[i] : begins[i + 1]].swapaxes(0, 1)
        both = pages[places[i]].reshape(-1, 4, head)[:length]
        keys, values = (np.repeat(both[:, first::2], 2, 1).swapaxes(0, 1) for first in (0, 1))
        at = length - rows.shape[1] + np.arange(rows.shape[1])
        wanted.append(attended(rows, keys, values, np.arange(length) <= at[:, None]).swapaxes(0, 1))
    assert near(found, np.concatenate(wanted))


@pytest.mark.parametrize("causal", [False, True])
def test_splash_attention(causal: bool) -> None:
    """It keeps scratch in an output along an axis that it calls parallel."""
    from jax.experimental.pallas.ops.tpu.splash_attention import splash_attention_mask as masks

    module = shipped("tpu/splash_attention/splash_attention_kernel.py")
    kind = masks.CausalMask((256, 256)) if causal else masks.FullMask((256, 256))
    sizes = module.BlockSizes(block_q=128, block_kv=128, block_kv_compute=128)
    q, k, v = (f32(2, 256, 128) for _ in range(3))
    found = module.make_splash_mha_single_device(masks.MultiHeadMask([kind] * 2), block_sizes=sizes)(q, k, v)
    assert near(found, attended(q, k, v, np.tril(np.ones((256, 256), bool)) if causal else None))
