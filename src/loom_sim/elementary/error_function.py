"""Error function family: erf, gelu."""

from __future__ import annotations

import numpy as np

from loom_sim.bits import (
    Float32,
    Int32,
    abs32,
    bits32,
    copysign32,
    div32,
    fma32,
    polynomial32,
    propagate_nan32,
    scalar,
    select,
)
from loom_sim.elementary.exponential import (
    exp2_fraction,
    expm1_fraction,
    power_of_two,
    reduce_exp,
    scale_by_power_of_two,
)
from loom_sim.elementary.numbers import HALF, ONE, ROUND_MAGIC, ROUND_MAGIC_BITS, ZERO, coefficients32

_ERF = coefficients32("erf")
_ERF_TAIL = coefficients32("erf_tail")
_GELU_SMALL = coefficients32("gelu_small")
_GELU_TAIL = coefficients32("gelu_tail")

_ERF_SMALL = np.float32(0.85)
_ERF_ONE = np.float32(3.9375)
_GELU_ZERO = np.float32(14.5)


@scalar
def erff(x: Float32) -> Float32:
    """f32 -> f32: error function."""
    a = abs32(x)
    small = fma32(polynomial32(x * x, _ERF), a, a)
    clamped = select(a > _ERF_ONE, _ERF_ONE, a)
    exponent = -polynomial32(clamped, _ERF_TAIL)
    shifted = exponent + ROUND_MAGIC
    r = exponent - (shifted - ROUND_MAGIC)
    n = np.int32(bits32(shifted) - ROUND_MAGIC_BITS)
    large = fma32(-exp2_fraction(r), power_of_two(n), ONE)
    return propagate_nan32(x, copysign32(select(a < _ERF_SMALL, small, large), x))


@scalar
def gauss_exp(s: Float32, s_low: Float32) -> tuple[Float32, Int32]:
    """(p, n) with exp(-(s + s_low)) = 2**n * (1 + p), for 0 <= s < 2**20."""
    r, n = reduce_exp(-s)
    return expm1_fraction(r - s_low), n


@scalar
def geluf(x: Float32) -> Float32:
    """f32 -> f32: x * Phi(x), Phi the normal distribution function, accurate in the negative tail; -0 at -inf."""
    z = x * x
    small = fma32(polynomial32(z, _GELU_SMALL), z, HALF * x)
    a = abs32(x)
    a = select(a > _GELU_ZERO, _GELU_ZERO, a)
    # a * Phi(-a) = P(v) * exp(-a**2 / 2)
    weight = polynomial32(div32(a - ONE, fma32(HALF, a, ONE)), _GELU_TAIL)
    half_a = HALF * a
    s = half_a * a
    p, n = gauss_exp(s, fma32(half_a, a, -s))
    tail = scale_by_power_of_two(fma32(weight, p, weight), n)
    large = select(x < ZERO, -ZERO, x) - tail
    return propagate_nan32(x, select(a < ONE, small, large))
