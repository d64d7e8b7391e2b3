"""The kernels of `examples` as functions, with arguments small enough for the reference interpreter."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import examples.flash_attention as flash
import examples.layer_norm as norm
import examples.matmul as matmul
import examples.minilm as minilm
import examples.softmax as softmax
import examples.vector_add as vectors
from loom_core.ir.block import Function
from tests.codegen.execution import Argument, Launch, Place


@dataclass(frozen=True)
class Example:
    """A kernel, its arguments (arrays and numbers, in order), its grid, and its compile-time values."""

    kernel: Any
    arguments: tuple[Any, ...]
    grid: tuple[int, int, int]
    blocks: dict[str, Any]

    def function(self) -> Function:
        """Traced for any values of its arguments: by value, a 1 would become part of the kernel."""
        types = [_type_of(given) for given in self.arguments]
        return self.kernel.lower(*types, **self.blocks)  # type: ignore[no-any-return]

    def launch(self) -> Launch:
        arrays = [given for given in self.arguments if isinstance(given, np.ndarray)]
        places = iter(range(len(arrays)))
        arguments: list[Argument] = [
            Place(next(places), 0) if isinstance(given, np.ndarray) else given for given in self.arguments
        ]
        return Launch(tuple(array.reshape(-1).view(np.uint8) for array in arrays), tuple(arguments), self.grid)


def _type_of(given: Any) -> str:
    if isinstance(given, np.ndarray):
        return {"float32": "*fp32", "int32": "*i32"}[given.dtype.name]
    return "i32" if isinstance(given, int) else "fp32"


def _floats(*shape: int) -> np.ndarray:
    return np.random.default_rng(sum(shape)).standard_normal(shape, dtype=np.float32)


def _zeros(*shape: int) -> np.ndarray:
    return np.zeros(shape, np.float32)


def _vector_add() -> Example:
    return Example(vectors.add, (_floats(100), _floats(100), _zeros(100), 100), (2, 1, 1), {"BLOCK": 64})


def _softmax() -> Example:
    return Example(softmax.softmax_rows, (_floats(9, 33), _zeros(9, 33), 9, 33, 33, 33), (2, 1, 1), {"BLOCK": 33})


def _layer_norm() -> Example:
    arguments = (_floats(3, 70), _floats(70), _floats(70), _zeros(3, 70), 70, 70, 1e-5)
    return Example(norm.layer_norm, arguments, (3, 1, 1), {"BLOCK": 32})


def _linear_gelu() -> Example:
    m, n, k = 70, 50, 100
    strides = (k, 1, n, 1, n, 1)
    arguments = (_floats(m, k), _floats(k, n), _floats(n), _zeros(m, n), m, n, k, *strides)
    return Example(matmul.linear_gelu, arguments, (3, 2, 1), {"BM": 24, "BN": 32, "BK": 32})


def _flash_attention() -> Example:
    n, d = 70, 32
    q, k, v = (_floats(2, n, d) + i for i in range(3))
    arguments = (q, k, v, _zeros(2, n, d), n, n * d, d, 0.17)
    return Example(flash.flash_attention, arguments, (3, 2, 1), {"D": d, "ROWS": 32, "KEYS": 16})


TOKENS, STARTS = 20, np.array([0, 7, 12, 20], np.int32)
HIDDEN = 64


def _embed() -> Example:
    ids, positions = (np.arange(TOKENS, dtype=np.int32) * factor % 11 for factor in (3, 5))
    weights = (_floats(11, HIDDEN), _floats(12, HIDDEN), _floats(1, HIDDEN), _floats(HIDDEN), _floats(HIDDEN))
    arguments = (ids, positions, *weights, _zeros(TOKENS, HIDDEN), 1e-12)
    return Example(minilm.embed, arguments, (TOKENS, 1, 1), {"HIDDEN": HIDDEN})


def _linear() -> Example:
    m, n, k = TOKENS, 50, HIDDEN
    arguments = (_floats(m, k), _floats(n, k), _floats(n), _zeros(m, n), m, n, k)
    return Example(minilm.linear, arguments, (1, 2, 1), {"GELU": True, "M": 24, "N": 32, "K": 32})


def _attention() -> Example:
    arguments = (_floats(TOKENS, 3 * HIDDEN), STARTS, _zeros(TOKENS, HIDDEN), 0.17)
    return Example(minilm.attention, arguments, (1, 2, 3), {"D": 32, "HIDDEN": HIDDEN, "ROWS": 8, "KEYS": 8})


def _add_norm() -> Example:
    arguments = (_floats(TOKENS, HIDDEN), _floats(TOKENS, HIDDEN), _floats(HIDDEN), _floats(HIDDEN),
                 _zeros(TOKENS, HIDDEN), TOKENS, 1e-12)  # fmt: skip
    return Example(minilm.add_norm, arguments, (3, 1, 1), {"HIDDEN": HIDDEN, "ROWS": 8})


def _pool() -> Example:
    arguments = (_floats(TOKENS, HIDDEN), STARTS, _zeros(3, HIDDEN))
    return Example(minilm.pool, arguments, (3, 1, 1), {"HIDDEN": HIDDEN, "ROWS": 2})


EXAMPLES: dict[str, Callable[[], Example]] = {
    "vector_add": _vector_add,
    "softmax": _softmax,
    "layer_norm": _layer_norm,
    "linear_gelu": _linear_gelu,
    "flash_attention": _flash_attention,
    "embed": _embed,
    "linear": _linear,
    "attention": _attention,
    "add_norm": _add_norm,
    "pool": _pool,
}
