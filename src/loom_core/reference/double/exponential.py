"""exp, exp2, expm1, sigmoid, tanh."""

from __future__ import annotations

import numpy as np

from loom_core.reference.arith import Float64s, canonical64, fma64
from loom_core.reference.double.evaluation import (
    LN2,
    LN2_LOW,
    LOG2_E,
    MAGIC,
    Int64s,
    horner,
    magic_integer,
    power_of_two,
    scale,
)


def reduce_exp(x: Float64s) -> tuple[Float64s, Int64s]:
    """(r, n) of step reduceExp."""
    n, integer = magic_integer(fma64(x, LOG2_E, MAGIC))
    return fma64(n, -LN2_LOW, fma64(n, -LN2, x)), integer


def exp_fraction(r: Float64s) -> Float64s:
    return np.asarray(fma64(horner(r, "exp_double"), r * r, r) + 1.0)


def expm1_fraction(r: Float64s) -> Float64s:
    return fma64(horner(r, "expm1_double"), r * r, r)


def exp2_fraction(r: Float64s) -> Float64s:
    return fma64(horner(r, "exp2_double"), r, 1.0)


def exp(x: Float64s) -> Float64s:
    r, n = reduce_exp(np.clip(x, -746.0, 710.0))
    return canonical64(scale(exp_fraction(r), n))


def exp2(x: Float64s) -> Float64s:
    y = np.clip(x, -1076.0, 1025.0)
    n, integer = magic_integer(y + MAGIC)
    return canonical64(scale(exp2_fraction(y - n), integer))


def expm1(x: Float64s) -> Float64s:
    r, n = reduce_exp(np.clip(x, -38.0, 710.0))
    p = expm1_fraction(r)
    h = power_of_two(n - 1)
    return canonical64(np.copysign(np.where(n == 0, p, fma64(h, p, h - 0.5) * 2.0), x))


def sigmoid(x: Float64s) -> Float64s:
    e = exp(-np.abs(x))
    d = e + 1.0
    d_low = (1.0 - d) + e
    u = np.where(x < 0, e, 1.0)
    g = 1.0 / d
    q = u * g
    w = fma64(-q, d_low, fma64(-q, d, u))
    return fma64(w, g, q)


def tanh(x: Float64s) -> Float64s:
    a = np.abs(x)
    z = a * a
    small = fma64(horner(z, "tanh_double") * z, a, a)
    b = np.minimum(a, 22.0)
    r, n = reduce_exp(b + b)
    large = 1.0 - 2.0 / fma64(exp_fraction(r), power_of_two(n), 1.0)
    return canonical64(np.copysign(np.where(a < 0.625, small, large), x))
