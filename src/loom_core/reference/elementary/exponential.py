"""exp, exp2, expm1, sigmoid, tanh."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from loom_core.reference.arith import Float32s, canonical32, f32, fma32
from loom_core.reference.elementary.evaluation import (
    HALF,
    ONE,
    Int32s,
    add_magic,
    fma_magic,
    horner,
    magic_integer,
    number,
    power_of_two,
    scale,
)


def reduce_exp(x: Float32s) -> tuple[Float32s, Int32s]:
    """(r, n) of step reduceExp."""
    n, integer = magic_integer(fma_magic(x, number("log2_e")))
    r = fma32(n, -number("ln2_high"), x)
    return fma32(n, -number("ln2_low"), r), integer


def exp_fraction(r: Float32s) -> Float32s:
    return f32(fma32(horner(r, "exp"), r * r, r) + ONE)


def expm1_fraction(r: Float32s) -> Float32s:
    return fma32(horner(r, "expm1"), r * r, r)


def exp2_fraction(r: Float32s) -> Float32s:
    return fma32(horner(r, "exp2"), r, ONE)


def exp(x: ArrayLike) -> Float32s:
    """e^x."""
    r, n = reduce_exp(np.clip(f32(x), np.float32(-105), np.float32(89)))
    return canonical32(scale(exp_fraction(r), n))


def exp2(x: ArrayLike) -> Float32s:
    """2^x."""
    y = np.clip(f32(x), np.float32(-152), np.float32(129))
    n, integer = magic_integer(add_magic(y))
    return canonical32(scale(exp2_fraction(y - n), integer))


def expm1(x: ArrayLike) -> Float32s:
    """e^x - 1."""
    r, n = reduce_exp(np.clip(f32(x), np.float32(-18), np.float32(89)))
    p = expm1_fraction(r)
    h = power_of_two(n - 1)
    v = np.where(n == 0, p, fma32(h, p, h - HALF) * np.float32(2))
    return canonical32(np.copysign(v, f32(x)))


def sigmoid(x: ArrayLike) -> Float32s:
    """1 / (1 + e^-x)."""
    e = exp(-np.abs(f32(x)))
    d = e + ONE
    d_low = (ONE - d) + e
    u = np.where(f32(x) < 0, e, ONE)
    g = ONE / d
    q = u * g
    w = fma32(-q, d, u)
    w = fma32(-q, d_low, w)
    return fma32(w, g, q)


def tanh(x: ArrayLike) -> Float32s:
    """Hyperbolic tangent."""
    a = np.abs(f32(x))
    z = a * a
    small = fma32(horner(z, "tanh") * z, a, a)
    b = np.minimum(a, np.float32(10))
    r, n = reduce_exp(b + b)
    large = ONE - np.float32(2) / fma32(exp_fraction(r), power_of_two(n), ONE)
    return canonical32(np.copysign(np.where(a < np.float32(0.625), small, large), f32(x)))
