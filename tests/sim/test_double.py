"""f64 functions: the reference's bits over the whole range, errors within the claims, loops that vectorise."""

from __future__ import annotations

import platform
import re
from collections.abc import Callable
from typing import Any

import llvmlite.binding as llvm
import mpmath
import numpy as np
import pytest
from numpy.typing import NDArray

from exhaustive.engines import differences, run_element
from loom_core.isa.sce import SCE_OPS
from loom_core.reference.accuracy import ACCURACY_F64
from loom_core.reference.double import REFERENCE_F64
from loom_sim.elementary.double import FUNCTIONS_F64, ORDINARY_F64
from loom_sim.elements import build_element
from loom_sim.jit import ELEMENT_SIGNATURE, engine_and_assembly

Array = NDArray[Any]

_PRECISION = 160  # bits of the true values
_SMALLEST_NORMAL = 2.0**-1022


def stratified(count: int, seed: int) -> NDArray[np.float64]:
    """`count` floats of all signs and exponents."""
    rng = np.random.default_rng(seed)
    upper = rng.permutation(np.arange(4096, dtype=np.uint64)).repeat(-(-count // 4096))[:count] << np.uint64(52)
    return (upper | rng.integers(0, 1 << 52, count, np.uint64)).view(np.float64)


def everyday(count: int, seed: int, low: float = -4.0, high: float = 4.0) -> NDArray[np.float64]:
    return np.random.default_rng(seed).uniform(low, high, count)


def small(count: int, seed: int) -> NDArray[np.float64]:
    rng = np.random.default_rng(seed)
    return 2.0 ** rng.uniform(-60, -1, count) * rng.choice([-1.0, 1.0], count)


def test_engines_and_references_name_the_same_functions() -> None:
    comparisons = {"eq", "ne", "lt", "le", "gt", "ge"}
    assert set(FUNCTIONS_F64) == set(REFERENCE_F64) - comparisons
    assert set(ACCURACY_F64) <= set(FUNCTIONS_F64)
    assert set(ORDINARY_F64) <= set(FUNCTIONS_F64)


@pytest.mark.parametrize("name", ACCURACY_F64)
def test_engine_equals_reference(name: str) -> None:
    op = SCE_OPS[f"{name}.f64"]
    arguments = [
        np.concatenate([stratified(4096, seed), everyday(2000, seed), everyday(500, seed, -40, 40), small(500, seed)])
        for seed in range(len(op.operands))
    ]
    different = differences(run_element(op, arguments), REFERENCE_F64[name](*arguments))
    assert different.size == 0, [tuple(float(x[i]) for x in arguments) for i in different[:5]]


@pytest.mark.parametrize("name", ["sin", "fmod", "remainder"])
def test_a_chunk_of_ordinary_operands_gives_the_same(name: str) -> None:
    """The vectorised variant, which runs where a whole chunk allows it, against the whole function."""
    op = SCE_OPS[f"{name}.f64"]
    arguments = [everyday(500, seed, -100, 100) for seed in range(len(op.operands))]
    rare = [np.append(x, 1e300 if i == 0 else 1.0) for i, x in enumerate(arguments)]
    assert run_element(op, arguments).tobytes() == run_element(op, rare)[:-1].tobytes()


def _lgamma(x: Any) -> Any:
    return mpmath.loggamma(x).real


_EXACT: dict[str, tuple[Callable[..., Any], tuple[tuple[float, float], ...]]] = {
    "rsqrt": (lambda x: 1 / mpmath.sqrt(x), ((1e-3, 1e3),)),
    "exp": (mpmath.exp, ((-745, 709), (-1, 1))),
    "exp2": (lambda x: mpmath.power(2, x), ((-1074, 1023), (-1, 1))),
    "expm1": (mpmath.expm1, ((-40, 700), (-1, 1))),
    "log": (mpmath.log, ((1e-300, 1e300), (0.5, 2))),
    "log2": (lambda x: mpmath.log(x, 2), ((1e-300, 1e300), (0.5, 2))),
    "log10": (lambda x: mpmath.log(x, 10), ((1e-300, 1e300), (0.5, 2))),
    "log1p": (mpmath.log1p, ((-0.99, 2), (-0.01, 0.01))),
    "sigmoid": (lambda x: 1 / (1 + mpmath.exp(-x)), ((-740, 40), (-4, 4))),
    "softplus": (lambda x: mpmath.log1p(mpmath.exp(x)), ((-740, 40), (-4, 4))),
    "tanh": (mpmath.tanh, ((-20, 20), (-1, 1))),
    "sinh": (mpmath.sinh, ((-710, 710), (-2, 2))),
    "cosh": (mpmath.cosh, ((-710, 710), (-2, 2))),
    "asinh": (mpmath.asinh, ((-1e10, 1e10), (-2, 2))),
    "acosh": (mpmath.acosh, ((1, 1e10), (1, 3))),
    "atanh": (mpmath.atanh, ((-1, 1), (-0.1, 0.1))),
    "sin": (mpmath.sin, ((-1e300, 1e300), (-1e9, 1e9), (-10, 10))),
    "cos": (mpmath.cos, ((-1e300, 1e300), (-1e9, 1e9), (-10, 10))),
    "tan": (mpmath.tan, ((-1e300, 1e300), (-1e9, 1e9), (-10, 10))),
    "asin": (mpmath.asin, ((-1, 1), (0.99, 1))),
    "acos": (mpmath.acos, ((-1, 1), (0.99, 1))),
    "atan": (mpmath.atan, ((-1e3, 1e3), (-1.5, 1.5))),
    "atan2": (mpmath.atan2, ((-3, 3), (-1e-3, 1e3))),
    "erf": (mpmath.erf, ((-6, 6), (-1, 1))),
    "erfc": (mpmath.erfc, ((-6, 27.2), (-1, 1), (0.4, 2))),
    "erfinv": (mpmath.erfinv, ((-1, 1), (0.999, 1))),
    "gelu": (lambda x: x * mpmath.erfc(-x / mpmath.sqrt(2)) / 2, ((-38.4, 40), (-2, 2))),
    "lgamma": (_lgamma, ((0, 3), (3, 9), (9, 1e3))),
    "digamma": (mpmath.digamma, ((0, 3), (3, 9), (9, 1e3))),
    "cbrt": (lambda x: mpmath.sign(x) * mpmath.cbrt(abs(x)), ((-1e300, 1e300), (-2, 2))),
    "pow": (mpmath.power, ((0.5, 2), (0.9, 1.1))),
    "hypot": (lambda x, y: mpmath.sqrt(x * x + y * y), ((-3, 3), (-1e200, 1e200))),
}
# Next to a zero of these the claim is absolute.
_ABSOLUTE = {"digamma": 2.0**-49}


def _in_ulp(got: float, exact: Any) -> tuple[float, bool]:
    """Error of a result, and whether the exact one is subnormal."""
    if abs(exact) >= mpmath.mpf(2) ** 1024:
        return (0.0 if np.isinf(got) else np.inf), False
    unit = float(np.spacing(abs(float(exact))))
    return float(abs(mpmath.mpf(got) - exact) / unit), bool(abs(exact) < _SMALLEST_NORMAL)


@pytest.mark.parametrize("name", ACCURACY_F64)
def test_error_is_within_the_claim(name: str) -> None:
    exact_of, ranges = _EXACT[name]
    op, claim = SCE_OPS[f"{name}.f64"], ACCURACY_F64[name]
    count = 40 if name in ("erfinv", "digamma", "lgamma") else 150
    with mpmath.workprec(_PRECISION):
        for low, high in ranges:
            if op.operands[1:] and name == "pow":
                arguments = [everyday(count, 1, low, high), everyday(count, 2, -300, 300)]
            else:
                arguments = [everyday(count, seed, low, high) for seed in range(len(op.operands))]
            for row in zip(run_element(op, arguments).tolist(), *(x.tolist() for x in arguments), strict=True):
                exact = exact_of(*map(mpmath.mpf, row[1:]))
                error, is_subnormal = _in_ulp(row[0], exact)
                if abs(mpmath.mpf(row[0]) - exact) <= _ABSOLUTE.get(name, 0):
                    continue
                limit = claim.ulp if not is_subnormal else claim.subnormal_ulp
                assert error <= (0.5 if limit is None else limit), (name, row)
    assert claim.ulp <= 2


def test_the_hardest_angles() -> None:
    """Operands so near to a multiple of pi / 2 that 60 bits cancel, found by continued fractions."""
    angles = np.array([6381956970095103.0 * 2.0**797, 5.319372648326541e255, 8.0 * 2.0**30 + 3.5, 1e22, 3.0e9])
    with mpmath.workprec(1400):
        for name, exact_of in (("sin", mpmath.sin), ("cos", mpmath.cos), ("tan", mpmath.tan)):
            for got, angle in zip(run_element(SCE_OPS[f"{name}.f64"], [angles]).tolist(), angles.tolist(), strict=True):
                assert _in_ulp(got, exact_of(mpmath.mpf(angle)))[0] <= ACCURACY_F64[name].ulp


_SPECIAL: list[tuple[str, tuple[float, ...], float]] = [
    ("exp", (-np.inf,), 0.0), ("exp", (710.0,), np.inf), ("log", (0.0,), -np.inf), ("log", (-1.0,), np.nan),
    ("log2", (8.0,), 3.0), ("log10", (1000.0,), 3.0), ("exp2", (-1074.0,), 5e-324), ("log1p", (-1.0,), -np.inf),
    ("pow", (-2.0, 3.0), -8.0), ("pow", (-2.0, 0.5), np.nan), ("pow", (0.0, -1.0), np.inf),
    ("pow", (-0.0, -3.0), -np.inf), ("pow", (np.nan, 0.0), 1.0), ("pow", (1.0, np.nan), 1.0),
    ("pow", (-1.0, np.inf), 1.0), ("pow", (10.0, 3.0), 1000.0), ("cbrt", (-27.0,), -3.0),
    ("hypot", (np.inf, np.nan), np.inf), ("hypot", (3 * 2.0**600, 4 * 2.0**600), 5 * 2.0**600),
    ("atan2", (0.0, -0.0), np.pi), ("atan2", (-np.inf, np.inf), -np.pi / 4), ("acosh", (0.5,), np.nan),
    ("erfinv", (1.0,), np.inf), ("lgamma", (-3.0,), np.inf), ("lgamma", (1.0,), 0.0), ("lgamma", (2.0,), 0.0),
    ("digamma", (-0.0,), np.inf), ("digamma", (-1.0,), np.nan), ("sin", (np.inf,), np.nan),
    ("sinh", (800.0,), np.inf), ("fmod", (5.5, -2.0), 1.5), ("remainder", (5.0, 2.0), 1.0),
    ("remainder", (7.0, 2.0), -1.0), ("fmod", (1e308, 5e-324), 0.0),
]  # fmt: skip


@pytest.mark.parametrize(("name", "arguments", "expected"), _SPECIAL)
def test_special_values(name: str, arguments: tuple[float, ...], expected: float) -> None:
    (got,) = run_element(SCE_OPS[f"{name}.f64"], [np.array([x]) for x in arguments])
    assert np.array_equal(got, expected, equal_nan=True)


@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="reads x86 assembly")
@pytest.mark.skipif(not llvm.get_host_cpu_features().get("avx2"), reason="the host has no 256-bit vectors")
@pytest.mark.parametrize("name", ["exp", "log", "sin", "tan", "atan2", "erfc", "pow", "cbrt", "lgamma", "fmod"])
def test_loops_vectorise_without_calls(name: str) -> None:
    op = SCE_OPS[f"{name}.f64"]
    _, text = engine_and_assembly(op.mnemonic, lambda: build_element(op), ELEMENT_SIGNATURE)
    assert re.search(r"v?f(n)?m(add|sub)\d+pd\s[^\n]*%[yz]mm", text) or "__mulpd" in text
    assert not re.search(r"\bcall\w*\s+(?!\*)\w+", text)
