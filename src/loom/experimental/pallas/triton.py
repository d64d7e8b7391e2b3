"""Stands in for `jax.experimental.pallas.triton`."""

from __future__ import annotations

from typing import Any

from loom.experimental.pallas import (
    atomic_add,
    atomic_and,
    atomic_cas,
    atomic_max,
    atomic_min,
    atomic_or,
    atomic_xchg,
    atomic_xor,
)
from loom.experimental.pallas.tpu import Parameters
from palladium import elementwise
from palladium import refs as _refs
from palladium.products import kernel_dot as dot
from palladium.values import array

__all__ = [
    "CompilerParams", "TritonCompilerParams", "approx_tanh", "atomic_add", "atomic_and", "atomic_cas", "atomic_max",
    "atomic_min", "atomic_or", "atomic_xchg", "atomic_xor", "debug_barrier", "dot", "load", "store",
]  # fmt: skip


class CompilerParams(Parameters):
    """How Triton should compile a kernel for a GPU."""

    known = frozenset({"num_warps", "num_stages"})


TritonCompilerParams = CompilerParams


def load(ref: Any, *, mask: Any = None, other: Any = None, **hints: Any) -> array:
    """All elements of a ref; where the mask does not hold, `other`."""
    return _refs.load(ref, ..., mask=mask, other=other, **hints)


def store(ref: Any, val: Any, *, mask: Any = None, **hints: Any) -> None:
    """Write a ref where the mask holds."""
    _refs.store(ref, ..., val, mask=mask, **hints)


def approx_tanh(x: Any) -> array:
    """The hyperbolic tangent, here as exact as elsewhere."""
    return elementwise.tanh(x)


def debug_barrier() -> None:
    """Nothing: a program is one thread."""
