"""Stands in for `jax.nn` in kernels."""

from __future__ import annotations

from palladium import gelu, logsumexp, relu, sigmoid, silu, softmax, softplus

swish = silu

__all__ = ["gelu", "logsumexp", "relu", "sigmoid", "silu", "softmax", "softplus", "swish"]
