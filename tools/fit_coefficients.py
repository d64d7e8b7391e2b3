#!/usr/bin/env python3
"""Derive the polynomial coefficients of `loom_core/isa/coefficients.py` again, from mpmath alone.

    python tools/fit_coefficients.py            # fit everything and compare with the published tables
    python tools/fit_coefficients.py exp log    # only these
    python tools/fit_coefficients.py --print    # print table entries ready to paste

The method is deterministic on every host: all arithmetic is mpmath's, with a fixed precision. For each table a discrete
Remez exchange, for a few tables least squares, finds the polynomial whose weighted error is smallest on a Chebyshev
grid; then the lowest free coefficient is rounded to its storage format and fixed, and the rest is fitted again, so that
later coefficients absorb the rounding of earlier ones.
"""

from __future__ import annotations

import argparse
import struct
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import mpmath
from mpmath import mpf

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "src"))

from loom_core.isa.coefficients import CONSTANTS, POLYNOMIALS, TWO_OVER_PI_WORDS

mpmath.mp.prec = 160
_GRID_POINTS = 500
_MAX_EXCHANGES = 40

Function = Callable[[mpf], mpf]


@dataclass(frozen=True)
class Fit:
    """What to fit: `target` on `domain` by powers 0..degree, so that |error| * |weight| is smallest at its largest.

    The weight makes the error relative to the result. `least_squares` replaces the Remez exchange, which does not
    settle where a polynomial of high degree is fitted on both sides of zero with some coefficients fixed.
    """

    name: str
    formula: str
    target: Function
    weight: Function
    domain: tuple[mpf, mpf]
    degree: int
    bits: int = 32
    least_squares: bool = False


def round_to_format(value: mpf, bits: int) -> mpf:
    """The float32 or float64 nearest to `value`, as an mpf."""
    nearest = float(value)
    if bits == 64:
        return mpf(nearest)
    return mpf(struct.unpack("<f", struct.pack("<f", nearest))[0])


def chebyshev_grid(domain: tuple[mpf, mpf], count: int) -> list[mpf]:
    """Chebyshev points of the domain; those next to an inner zero, where only rounded coefficients count, left out."""
    low, high = domain
    middle, half = (low + high) / 2, (high - low) / 2
    points = [middle - half * mpmath.cos(mpmath.pi * (mpf(index) + mpf("0.5")) / count) for index in range(count)]
    hole = half / 50 if low < 0 < high else mpf(0)
    return [point for point in points if abs(point) > hole]


def _evaluate(coefficients: Sequence[mpf], x: mpf) -> mpf:
    result = mpf(0)
    for coefficient in reversed(coefficients):
        result = result * x + coefficient
    return result


def _alternating_extrema(errors: Sequence[mpf], count: int) -> list[int]:
    """Indices of `count` alternating extrema that include the largest error."""
    runs: list[int] = []
    for index, error in enumerate(errors):
        if runs and (error >= 0) == (errors[runs[-1]] >= 0):
            if abs(error) > abs(errors[runs[-1]]):
                runs[-1] = index
        else:
            runs.append(index)
    while len(runs) > count:
        runs.pop(0 if abs(errors[runs[0]]) < abs(errors[runs[-1]]) else -1)
    return runs


def remez(grid: Sequence[mpf], values: Sequence[mpf], weights: Sequence[mpf], terms: int) -> tuple[list[mpf], mpf]:
    """(coefficients, error): the polynomial of `terms` terms with the smallest max |weight * (polynomial - value)|."""
    count = terms + 1
    reference = [round(index * (len(grid) - 1) / (count - 1)) for index in range(count)]
    best: tuple[list[mpf], mpf] | None = None
    for _ in range(_MAX_EXCHANGES):
        rows = [
            [weights[i] * grid[i] ** power for power in range(terms)] + [mpf((-1) ** k)]
            for k, i in enumerate(reference)
        ]
        solution = mpmath.lu_solve(mpmath.matrix(rows), mpmath.matrix([weights[i] * values[i] for i in reference]))
        coefficients = [solution[power] for power in range(terms)]
        level = abs(solution[terms])
        errors = [w * (_evaluate(coefficients, x) - v) for x, v, w in zip(grid, values, weights, strict=True)]
        largest = max(abs(error) for error in errors)
        if best is None or largest < best[1]:
            best = coefficients, largest
        extrema = _alternating_extrema(errors, count)
        if largest <= level * mpf("1.0001") or len(extrema) < count or extrema == reference:
            break
        reference = extrema
    assert best is not None
    return best


def least_squares(grid: Sequence[mpf], values: Sequence[mpf], weights: Sequence[mpf], powers: range) -> list[mpf]:
    """The coefficients of these powers with the smallest sum of (weight * (polynomial - value))**2."""
    with mpmath.workprec(2 * mpmath.mp.prec):  # the normal equations square the condition
        columns = [[w * x**power for x, w in zip(grid, weights, strict=True)] for power in powers]
        right = [w * v for w, v in zip(weights, values, strict=True)]
        rows = [[mpmath.fdot(zip(one, other, strict=True)) for other in columns] for one in columns]
        sums = [mpmath.fdot(zip(column, right, strict=True)) for column in columns]
        return list(mpmath.lu_solve(mpmath.matrix(rows), mpmath.matrix(sums)))


def fit(spec: Fit) -> tuple[list[mpf], mpf]:
    """Rounded coefficients, ascending, and the largest weighted error on the grid of the polynomial made of them."""
    grid = chebyshev_grid(spec.domain, _GRID_POINTS)
    targets = [spec.target(x) for x in grid]
    weights = [spec.weight(x) for x in grid]
    chosen: list[mpf] = []
    while len(chosen) <= spec.degree:
        power = len(chosen)
        if spec.least_squares:
            left = [t - _evaluate(chosen, x) for x, t in zip(grid, targets, strict=True)]
            best = least_squares(grid, left, weights, range(power, spec.degree + 1))
            chosen.append(round_to_format(best[0], spec.bits))
            continue
        residuals = [(t - _evaluate(chosen, x)) / x**power for x, t in zip(grid, targets, strict=True)]
        scaled = [abs(w * x**power) for x, w in zip(grid, weights, strict=True)]
        free, _ = remez(grid, residuals, scaled, spec.degree + 1 - power)
        chosen.append(round_to_format(free[0], spec.bits))
    largest = max(abs(w * (_evaluate(chosen, x) - t)) for x, t, w in zip(grid, targets, weights, strict=True))
    return chosen, largest


_LN2 = mpmath.log(2)
_SQRT_HALF = mpmath.sqrt(mpf("0.5"))


def _of_square(function: Function) -> Function:
    """`function` of x as a function of z = x**2."""
    return lambda z: function(mpmath.sqrt(z))


def _erfcx(z: mpf) -> mpf:
    return mpmath.exp(z * z) * mpmath.erfc(z)


def _normal_tail_ratio(a: mpf) -> mpf:
    """Phi(-a) * exp(a**2 / 2), Phi the normal distribution function."""
    return _erfcx(a * _SQRT_HALF) / 2


_ERFC_CENTRE = mpf("2.0546875")
_ERFC_SLOPE = mpf("0.625")


def _erfc_variable(z: mpf) -> mpf:
    return (z - _ERFC_CENTRE) / (1 + z * _ERFC_SLOPE)


def _erfc_weight(z: mpf) -> mpf:
    return _erfcx(z) * (1 + z * _ERFC_SLOPE)


def _wide_tail_variable(z: mpf) -> mpf:
    return (z - mpf("3.875")) / (1 + z / 4)


def _wide_tail_inverse(v: mpf) -> mpf:
    return (v + mpf("3.875")) / (1 - v / 4)


def _inverse_erf_ratio(w: mpf) -> mpf:
    """erfinv(x) / x at the x for which w = -log(1 - x**2)."""
    x = mpmath.sqrt(-mpmath.expm1(-w))
    return mpmath.erfinv(x) / x


def _log_of_quotient(s: mpf) -> mpf:
    return mpmath.log((1 + s) / (1 - s))


def _stirling_rest(y: mpf) -> mpf:
    return mpmath.loggamma(y) - ((y - mpf("0.5")) * mpmath.log(y) - y + mpmath.log(2 * mpmath.pi) / 2)


def _domain(low: str | mpf, high: str | mpf) -> tuple[mpf, mpf]:
    return mpf(low), mpf(high)


_LOG_DOMAIN = (_SQRT_HALF - 1, mpmath.sqrt(2) - 1)

FITS = (
    Fit(
        "exp",
        "(exp(r) - 1 - r) / r**2",
        lambda r: (mpmath.expm1(r) - r) / r**2,
        lambda r: r**2 / mpmath.exp(r),
        _domain("-0.3467", "0.3467"),
        4,
    ),
    Fit(
        "expm1",
        "(exp(r) - 1 - r) / r**2",
        lambda r: (mpmath.expm1(r) - r) / r**2,
        lambda r: r**2 / mpmath.expm1(r),
        _domain("-0.3467", "0.3467"),
        5,
    ),
    Fit(
        "exp2",
        "(2**r - 1) / r",
        lambda r: mpmath.expm1(r * _LN2) / r,
        lambda r: r / mpmath.exp(r * _LN2),
        _domain("-0.5", "0.5"),
        5,
    ),
    Fit(
        "log",
        "(log(1 + f) - f + f**2 / 2) / f**3",
        lambda f: (mpmath.log1p(f) - f + f * f / 2) / f**3,
        lambda f: f**3 / mpmath.log1p(f),
        _LOG_DOMAIN,
        8,
    ),
    Fit(
        "tanh",
        "(tanh(x) - x) / x**3 in z = x**2",
        _of_square(lambda x: (mpmath.tanh(x) - x) / x**3),
        _of_square(lambda x: x**3 / mpmath.tanh(x)),
        _domain("0", "0.390625"),
        4,
    ),
    Fit(
        "erf",
        "(erf(x) - x) / x in z = x**2",
        _of_square(lambda x: mpmath.erf(x) / x - 1),
        _of_square(lambda x: x / mpmath.erf(x)),
        _domain("0", "0.7225"),
        5,
    ),
    Fit(
        "erf_tail",
        "-log2(erfc(a))",
        lambda a: -mpmath.log(mpmath.erfc(a), 2),
        lambda a: mpmath.erfc(a) * _LN2 / mpmath.erf(a),
        _domain("0.85", "3.94"),
        6,
    ),
    Fit(
        "erfc",
        "exp(z**2) * erfc(z) * (1 + 0.625 * z) in v = (z - 2.0546875) / (1 + 0.625 * z)",
        lambda v: _erfc_weight((v + _ERFC_CENTRE) / (1 - v * _ERFC_SLOPE)),
        lambda v: 1 / _erfc_weight((v + _ERFC_CENTRE) / (1 - v * _ERFC_SLOPE)),
        (_erfc_variable(mpf("0.75")), _erfc_variable(mpf("10.25"))),
        9,
    ),
    Fit(
        "erfinv_low",
        "erfinv(x) / x in w = -log(1 - x**2)",
        _inverse_erf_ratio,
        lambda w: 1 / _inverse_erf_ratio(w),
        _domain("1e-9", "5.5"),
        9,
    ),
    Fit(
        "erfinv_high",
        "erfinv(x) / x in u = sqrt(w) - 2.1875, w = -log(1 - x**2)",
        lambda u: _inverse_erf_ratio((u + mpf("2.1875")) ** 2),
        lambda u: 1 / _inverse_erf_ratio((u + mpf("2.1875")) ** 2),
        (mpmath.sqrt(mpf("5.5")) - mpf("2.1875"), mpmath.sqrt(mpf("16.7")) - mpf("2.1875")),
        8,
    ),
    Fit(
        "gelu_small",
        "(Phi(x) - 1/2) / x in z = x**2, Phi the normal distribution function",
        _of_square(lambda x: mpmath.erf(x * _SQRT_HALF) / (2 * x)),
        _of_square(lambda x: 2 * x / mpmath.erfc(x * _SQRT_HALF)),
        _domain("0", "1"),
        5,
    ),
    Fit(
        "gelu_tail",
        "a * Phi(-a) * exp(a**2 / 2) in v = (a - 1) / (1 + a / 2)",
        lambda v: _normal_tail_ratio((v + 1) / (1 - v / 2)) * (v + 1) / (1 - v / 2),
        lambda v: 1 / (_normal_tail_ratio((v + 1) / (1 - v / 2)) * (v + 1) / (1 - v / 2)),
        (mpf(0), mpf("13.5") / (1 + mpf("14.5") / 2)),
        8,
    ),
    Fit(
        "sin",
        "(sin(r) - r) / r**3 in z = r**2",
        _of_square(lambda r: (mpmath.sin(r) - r) / r**3),
        _of_square(lambda r: r**3 / mpmath.sin(r)),
        _domain("0", "0.7"),
        3,
    ),
    Fit(
        "cos",
        "(cos(r) - 1 + r**2 / 2) / r**4 in z = r**2",
        _of_square(lambda r: (mpmath.cos(r) - 1 + r * r / 2) / r**4),
        _of_square(lambda r: r**4 / mpmath.cos(r)),
        _domain("0", "0.7"),
        2,
    ),
    Fit(
        "tan",
        "(tan(r) - r) / r**3 in z = r**2",
        _of_square(lambda r: (mpmath.tan(r) - r) / r**3),
        _of_square(lambda r: r**3 / mpmath.tan(r)),
        _domain("0", "0.7"),
        6,
    ),
    Fit(
        "asin",
        "(asin(s) - s) / s**3 in z = s**2",
        _of_square(lambda s: (mpmath.asin(s) - s) / s**3),
        _of_square(lambda s: s**3 / mpmath.asin(s)),
        _domain("0", "0.25"),
        4,
    ),
    Fit(
        "atan",
        "(atan(t) - t) / t**3 in z = t**2",
        _of_square(lambda t: (mpmath.atan(t) - t) / t**3),
        _of_square(lambda t: t**3 / mpmath.atan(t)),
        _domain("0", "1"),
        8,
    ),
    Fit(
        "sinh",
        "(sinh(a) - a) / a**3 in z = a**2",
        _of_square(lambda a: (mpmath.sinh(a) - a) / a**3),
        _of_square(lambda a: a**3 / mpmath.sinh(a)),
        _domain("0", "1"),
        3,
    ),
    Fit(
        "log_wide",
        "(log((1 + s) / (1 - s)) - 2 * s) / s**3 in z = s**2",
        _of_square(lambda s: (_log_of_quotient(s) - 2 * s) / s**3),
        _of_square(lambda s: s**3 / _log_of_quotient(s)),
        _domain("0", "0.02944"),
        5,
        bits=64,
    ),
    Fit(
        "exp2_wide",
        "(2**r - 1) / r",
        lambda r: mpmath.expm1(r * _LN2) / r,
        lambda r: r / mpmath.exp(r * _LN2),
        _domain("-0.5", "0.5"),
        7,
        bits=64,
    ),
    Fit(
        "sinpi_wide",
        "sin(pi * t) / t in z = t**2",
        _of_square(lambda t: mpmath.sin(mpmath.pi * t) / t),
        _of_square(lambda t: t / mpmath.sin(mpmath.pi * t)),
        _domain("0", "0.25"),
        7,
        bits=64,
    ),
    Fit(
        "lgamma_wide",
        "lgamma(1 + u) / (u * (u - 1))",
        lambda u: mpmath.loggamma(1 + u) / (u * (u - 1)),
        lambda u: u * (u - 1) / mpmath.loggamma(1 + u),
        _domain("0.0001", "2.0001"),
        21,
        bits=64,
    ),
    Fit(
        "stirling_wide",
        "(lgamma(y) - ((y - 1/2) * log(y) - y + log(2 * pi) / 2)) * y in u = y**-2, relative to lgamma(y)",
        _of_square(lambda inverse: _stirling_rest(1 / inverse) / inverse),
        _of_square(lambda inverse: inverse / mpmath.loggamma(1 / inverse)),
        _domain("1e-8", "0.015625"),
        3,
        bits=64,
    ),
    Fit(
        "digamma_wide",
        "(digamma(y) - log(y) + 1 / (2 * y)) * y**2 in u = y**-2, absolute",
        _of_square(lambda inverse: (mpmath.digamma(1 / inverse) + mpmath.log(inverse) + inverse / 2) / inverse**2),
        lambda u: u,
        _domain("1e-8", "0.015625"),
        4,
        bits=64,
    ),
    Fit(
        "exp_double",
        "(exp(r) - 1 - r) / r**2",
        lambda r: (mpmath.expm1(r) - r) / r**2,
        lambda r: r**2 / mpmath.exp(r),
        _domain("-0.3467", "0.3467"),
        10,
        bits=64,
    ),
    Fit(
        "expm1_double",
        "(exp(r) - 1 - r) / r**2",
        lambda r: (mpmath.expm1(r) - r) / r**2,
        lambda r: r**2 / mpmath.expm1(r),
        _domain("-0.3467", "0.3467"),
        10,
        bits=64,
    ),
    Fit(
        "exp2_double",
        "(2**r - 1) / r",
        lambda r: mpmath.expm1(r * _LN2) / r,
        lambda r: r / mpmath.exp(r * _LN2),
        _domain("-0.5", "0.5"),
        11,
        bits=64,
    ),
    Fit(
        "log_double",
        "(log((1 + s) / (1 - s)) - 2 * s) / s**3 in z = s**2",
        _of_square(lambda s: (_log_of_quotient(s) - 2 * s) / s**3),
        _of_square(lambda s: s**3 / _log_of_quotient(s)),
        _domain("0", "0.02944"),
        6,
        bits=64,
    ),
    Fit(
        "pow_double",
        "(log((1 + s) / (1 - s)) - 2 * s - 2/3 * s**3) / s**5 in z = s**2",
        _of_square(lambda s: (_log_of_quotient(s) - 2 * s - 2 * s**3 / 3) / s**5),
        _of_square(lambda s: s**5 / _log_of_quotient(s)),
        _domain("0", "0.02944"),
        7,
        bits=64,
    ),
    Fit(
        "tanh_double",
        "(tanh(x) - x) / x**3 in z = x**2",
        _of_square(lambda x: (mpmath.tanh(x) - x) / x**3),
        _of_square(lambda x: x**3 / mpmath.tanh(x)),
        _domain("0", "0.390625"),
        10,
        bits=64,
    ),
    Fit(
        "erf_double",
        "(erf(x) - x) / x in z = x**2",
        _of_square(lambda x: mpmath.erf(x) / x - 1),
        _of_square(lambda x: x / mpmath.erf(x)),
        _domain("0", "0.7225"),
        11,
        bits=64,
    ),
    Fit(
        "erfc_double",
        "exp(z**2) * erfc(z) * (1 + 0.25 * z) - 0.28125 in v = (z - 3.875) / (1 + 0.25 * z)",
        lambda v: _erfcx(_wide_tail_inverse(v)) * (1 + _wide_tail_inverse(v) / 4) - mpf("0.28125"),
        lambda v: 1 / (_erfcx(_wide_tail_inverse(v)) * (1 + _wide_tail_inverse(v) / 4)),
        (_wide_tail_variable(mpf("0.35")), _wide_tail_variable(mpf("28"))),
        22,
        bits=64,
        least_squares=True,
    ),
    Fit(
        "sin_double",
        "(sin(r) - r) / r**3 in z = r**2",
        _of_square(lambda r: (mpmath.sin(r) - r) / r**3),
        _of_square(lambda r: r**3 / mpmath.sin(r)),
        _domain("0", "0.62"),
        5,
        bits=64,
    ),
    Fit(
        "cos_double",
        "(cos(r) - 1 + r**2 / 2) / r**4 in z = r**2",
        _of_square(lambda r: (mpmath.cos(r) - 1 + r * r / 2) / r**4),
        _of_square(lambda r: r**4 / mpmath.cos(r)),
        _domain("0", "0.62"),
        5,
        bits=64,
    ),
    Fit(
        "tan_double",
        "(tan(r) - r) / r**3 in z = r**2",
        _of_square(lambda r: (mpmath.tan(r) - r) / r**3),
        _of_square(lambda r: r**3 / mpmath.tan(r)),
        _domain("0", "0.62"),
        14,
        bits=64,
    ),
    Fit(
        "asin_double",
        "(asin(s) - s) / s**3 in z = s**2",
        _of_square(lambda s: (mpmath.asin(s) - s) / s**3),
        _of_square(lambda s: s**3 / mpmath.asin(s)),
        _domain("0", "0.25"),
        12,
        bits=64,
    ),
    Fit(
        "atan_double",
        "(atan(t) - t) / t**3 in z = t**2",
        _of_square(lambda t: (mpmath.atan(t) - t) / t**3),
        _of_square(lambda t: t**3 / mpmath.atan(t)),
        _domain("0", "1"),
        20,
        bits=64,
    ),
    Fit(
        "sinh_double",
        "(sinh(a) - a) / a**3 in z = a**2",
        _of_square(lambda a: (mpmath.sinh(a) - a) / a**3),
        _of_square(lambda a: a**3 / mpmath.sinh(a)),
        _domain("0", "1"),
        6,
        bits=64,
    ),
    Fit(
        "erfinv_double",
        "erfinv(x) / x in u = sqrt(w) - 4.1875, w = -log(1 - x**2); a first approximation",
        lambda u: _inverse_erf_ratio((u + mpf("4.1875")) ** 2),
        lambda u: 1 / _inverse_erf_ratio((u + mpf("4.1875")) ** 2),
        (mpmath.sqrt(mpf("5.5")) - mpf("4.1875"), mpmath.sqrt(mpf("36.8")) - mpf("4.1875")),
        11,
        bits=64,
        least_squares=True,
    ),
    Fit(
        "sinpi_double",
        "sin(pi * t) / t in z = t**2",
        _of_square(lambda t: mpmath.sin(mpmath.pi * t) / t),
        _of_square(lambda t: t / mpmath.sin(mpmath.pi * t)),
        _domain("0", "0.25"),
        8,
        bits=64,
    ),
    Fit(
        "lgamma_double",
        "lgamma(2 + t) / (t * (1 + t))",
        lambda t: mpmath.loggamma(2 + t) / (t * (1 + t)),
        lambda t: t * (1 + t) / mpmath.loggamma(2 + t),
        _domain("-1", "1"),
        29,
        bits=64,
        least_squares=True,
    ),
    Fit(
        "stirling_double",
        "(lgamma(y) - ((y - 1/2) * log(y) - y + log(2 * pi) / 2)) * y in u = y**-2, relative to lgamma(y)",
        _of_square(lambda inverse: _stirling_rest(1 / inverse) / inverse),
        _of_square(lambda inverse: inverse / mpmath.loggamma(1 / inverse)),
        _domain("1e-8", "0.015625"),
        4,
        bits=64,
    ),
    Fit(
        "digamma_double",
        "(digamma(y) - log(y) + 1 / (2 * y)) * y**2 in u = y**-2, absolute",
        _of_square(lambda inverse: (mpmath.digamma(1 / inverse) + mpmath.log(inverse) + inverse / 2) / inverse**2),
        lambda u: u,
        _domain("1e-8", "0.015625"),
        5,
        bits=64,
    ),
)


@dataclass(frozen=True)
class Split:
    """A constant as the sum of several floats: each is the nearest to what the earlier ones leave."""

    names: tuple[str, ...]
    value: mpf
    bits: int = 32


SPLITS = (
    Split(("log2_e", "log2_e_low"), 1 / _LN2),
    Split(("ln2_high", "ln2_low"), _LN2),
    Split(("log10_e", "log10_e_low"), 1 / mpmath.log(10)),
    Split(("log10_2_high", "log10_2_low"), mpmath.log(2, 10)),
    Split(("two_over_pi",), 2 / mpmath.pi),
    Split(("half_pi_1", "half_pi_2", "half_pi_3"), mpmath.pi / 2),
    Split(("half_pi_scaled",), mpmath.pi / 2 / mpf(2) ** 62, 64),
    Split(("ln2_wide", "ln2_wide_low"), _LN2, 64),
    Split(("log2_e_wide", "log2_e_wide_low"), 1 / _LN2, 64),
    Split(("log10_e_wide", "log10_e_wide_low"), 1 / mpmath.log(10), 64),
    Split(("log10_2_wide", "log10_2_wide_low"), mpmath.log(2, 10), 64),
    Split(("two_thirds_wide", "two_thirds_wide_low"), mpf(2) / 3, 64),
    Split(("two_over_pi_wide",), 2 / mpmath.pi, 64),
    Split(("half_pi_wide_1", "half_pi_wide_2", "half_pi_wide_3"), mpmath.pi / 2, 64),
    Split(("sqrt_half_wide", "sqrt_half_wide_low"), _SQRT_HALF, 64),
    Split(("pi_wide",), mpmath.pi, 64),
    Split(("log_pi_wide",), mpmath.log(mpmath.pi), 64),
    Split(("half_log_two_pi_wide",), mpmath.log(2 * mpmath.pi) / 2, 64),
    Split(("half_log_two_pi_over_e_wide",), mpmath.log(2 * mpmath.pi) / 2 - mpf("0.5"), 64),
    Split(("half_root_pi_wide",), mpmath.sqrt(mpmath.pi) / 2, 64),
)


def split(spec: Split) -> list[mpf]:
    parts: list[mpf] = []
    for _ in spec.names:
        parts.append(round_to_format(spec.value - sum(parts, mpf(0)), spec.bits))
    return parts


def two_over_pi_words(count: int) -> list[int]:
    """The first `count` 32-bit words of the binary fraction of 2 / pi, most significant first."""
    with mpmath.workprec(32 * count + 64):
        scaled = int(mpmath.floor(2 / mpmath.pi * mpf(2) ** (32 * count)))
    return [(scaled >> (32 * (count - 1 - index))) & 0xFFFFFFFF for index in range(count)]


def literal(value: mpf, bits: int) -> str:
    """Hexadecimal literal with the six (float32) or thirteen (float64) digits of the significand."""
    digits = 6 if bits == 32 else 13
    mantissa, exponent = float(value).hex().split("p")
    if "." not in mantissa:
        mantissa += ".0"
    head, tail = mantissa.split(".")
    if set(tail[digits:]) - {"0"}:
        raise ValueError(f"{value} is not a float{bits}")
    return f"{head}.{tail[:digits].ljust(digits, '0')}p{exponent}"


def table_entry(spec: Fit, coefficients: Sequence[mpf], error: mpf) -> str:
    """The `Polynomial(...)` source text of one fit."""
    claimed = error * 2**24 * mpf("1.03")  # the grid may miss the very top of the error curve
    lines = [
        "    Polynomial(",
        f'        name="{spec.name}",',
        f'        formula="{spec.formula}",',
        f"        domain=({float(spec.domain[0])!r}, {float(spec.domain[1])!r}),",
        f"        max_error={float(mpmath.nstr(claimed, 3))!r},",
    ]
    if spec.bits != 32:
        lines.append(f"        bits={spec.bits},")
    if spec.least_squares:
        lines.append("        source=_LEAST_SQUARES,")
    lines.append("        literals=(")
    lines += [f'            "{literal(value, spec.bits)}",' for value in coefficients]
    return "\n".join([*lines, "        ),", "    ),"])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("names", nargs="*", help="tables to fit (default: all)")
    parser.add_argument("--print", action="store_true", help="print table entries instead of comparing")
    arguments = parser.parse_args()
    specs = [spec for spec in FITS if not arguments.names or spec.name in arguments.names]
    if arguments.names and not specs:
        parser.error(f"no such table: {' '.join(arguments.names)}")
    differing = []
    for spec in specs:
        coefficients, error = fit(spec)
        if arguments.print:
            print(table_entry(spec, coefficients, error), flush=True)
            continue
        published = POLYNOMIALS.get(spec.name)
        same = published is not None and list(published.literals) == [
            literal(value, spec.bits) for value in coefficients
        ]
        print(
            f"{spec.name:16s} error {mpmath.nstr(error * 2**24, 4)} * 2**-24  {'same' if same else 'DIFFERS'}",
            flush=True,
        )
        if not same:
            differing.append(spec.name)
    for constants in SPLITS:
        for name, value in zip(constants.names, split(constants), strict=True):
            if arguments.print:
                print(f'    "{name}": "{literal(value, constants.bits)}",')
            elif CONSTANTS.get(name) != literal(value, constants.bits):
                print(f"{name}: DIFFERS, {literal(value, constants.bits)}")
                differing.append(name)
    words = two_over_pi_words(len(TWO_OVER_PI_WORDS))
    if tuple(words) != TWO_OVER_PI_WORDS:
        print("two over pi: DIFFERS", [hex(word) for word in words])
        differing.append("two_over_pi_words")
    return 1 if differing else 0


if __name__ == "__main__":
    raise SystemExit(main())
