"""Elementary engines: the reference's bits on every kind of float, errors within the claims, loops that vectorise."""

from __future__ import annotations

import hashlib
import inspect
import math
import os
import platform
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import llvmlite.binding as llvm
import mpmath
import numpy as np
import pytest
from numba import njit
from numpy.typing import NDArray

from loom_core.reference.accuracy import ACCURACY_F32
from loom_core.reference.elementary import REFERENCE_F32
from loom_sim.elementary import FUNCTIONS_F32, ORDINARY_F32

Floats = NDArray[np.float32]

_SAMPLES = 1 << 20
_SMALLEST_NORMAL = 2.0**-126
_NAN_BITS = 0x7FC00000

_SPECIAL_PATTERNS = np.array(
    [0x00000000, 0x00000001, 0x00000002, 0x007FFFFF, 0x00800000, 0x00800001, 0x33000000, 0x33800000, 0x34000000,
     0x38800000, 0x3EFFFFFF, 0x3F000000, 0x3F000001, 0x3F3504F3, 0x3F3504F4, 0x3F7FFFFF, 0x3F800000, 0x3F800001,
     0x3FC00000, 0x40000000, 0x40490FDB, 0x40490FDA, 0x40200000, 0x42AEAC50, 0x42B17218, 0x42B20000, 0x42CFF1B5,
     0x42D00000, 0x43000000, 0x43160000, 0x437F0000, 0x497FFFFF, 0x49800000, 0x49800001, 0x4A800000, 0x4B000000,
     0x4B7FFFFF, 0x4B800000, 0x4EFFFFFF, 0x4F000000, 0x4F7FFFFF, 0x5EFFFFFF, 0x5F000000, 0x7E800000, 0x7F000000,
     0x7F7FFFFF, 0x7F800000, 0x7F800001, 0x7FA00000, 0x7FC00000, 0x7FC12345, 0x7FFFFFFF],
    np.uint32,
)  # fmt: skip


def special_values() -> Floats:
    return np.concatenate([_SPECIAL_PATTERNS, _SPECIAL_PATTERNS | np.uint32(1 << 31)]).view(np.float32)


def stratified(count: int, seed: int) -> Floats:
    """`count` floats, the same number for each sign and exponent, in a random order."""
    rng = np.random.default_rng(seed)
    upper = np.repeat(np.arange(512, dtype=np.uint32), -(-count // 512))[:count] << np.uint32(23)
    return rng.permutation(upper | rng.integers(0, 1 << 23, count, dtype=np.uint32)).view(np.float32)


def ordinary(count: int, seed: int) -> Floats:
    """`count` floats of everyday size, dense where stratified ones are not."""
    rng = np.random.default_rng(seed)
    widths = np.array([1.0, 3.0, 20.0, 110.0], np.float32)
    return (rng.uniform(-1, 1, count) * widths[rng.integers(0, 4, count)]).astype(np.float32)


def arity(name: str) -> int:
    return len(inspect.signature(FUNCTIONS_F32[name].py_func).parameters)  # type: ignore[attr-defined]


def compiled_loop(function: Callable[..., Any], arguments: int) -> Any:
    if arguments == 1:

        @njit(error_model="numpy")
        def loop(result, a):  # type: ignore[no-untyped-def]
            for i in range(a.size):
                result[i] = function(a[i])

    elif arguments == 2:

        @njit(error_model="numpy")
        def loop(result, a, b):  # type: ignore[no-untyped-def]
            for i in range(a.size):
                result[i] = function(a[i], b[i])

    else:

        @njit(error_model="numpy")
        def loop(result, a, b, c):  # type: ignore[no-untyped-def]
            for i in range(a.size):
                result[i] = function(a[i], b[i], c[i])

    return loop


def run_engine(function: Callable[..., Any], *arguments: NDArray[Any], result_type: Any = np.float32) -> NDArray[Any]:
    result = np.empty(arguments[0].shape, result_type)
    compiled_loop(function, len(arguments))(result, *arguments)
    return result


def arguments_of(name: str) -> list[NDArray[Any]]:
    """Special values in all combinations, then stratified and ordinary floats."""
    specials = special_values()
    half = _SAMPLES // 2
    first = np.concatenate([stratified(half, 1), ordinary(half, 2)])
    if name == "select":
        return [np.arange(first.size) % 3 == 0, first, first[::-1].copy()]
    if arity(name) == 1:
        return [np.concatenate([specials, stratified(_SAMPLES, 1), ordinary(half, 2)])]
    second = np.concatenate([stratified(half, 3), ordinary(half, 4)])
    if name == "ldexp":
        exponents = np.random.default_rng(5).integers(-320, 320, first.size, dtype=np.int32)
        exponents[:4] = [2**31 - 1, -(2**31), 300, -300]
        return [first, exponents]
    return [
        np.concatenate([np.repeat(specials, specials.size), first]),
        np.concatenate([np.tile(specials, specials.size), second]),
    ]


def assert_same_bits(got: NDArray[Any], expected: NDArray[Any], arguments: list[NDArray[Any]]) -> None:
    assert got.dtype == expected.dtype
    unsigned = np.dtype(f"u{got.dtype.itemsize}")
    different = np.flatnonzero(got.view(unsigned) != expected.view(unsigned))
    shown = [(*(float(a[i]) for a in arguments), float(got[i]), float(expected[i])) for i in different[:5]]
    assert different.size == 0, f"{different.size} differ; (arguments, engine, reference): {shown}"


def test_engines_and_references_name_the_same_functions() -> None:
    assert list(FUNCTIONS_F32) == list(REFERENCE_F32)
    assert set(ACCURACY_F32) <= set(FUNCTIONS_F32)
    assert set(ORDINARY_F32) <= set(FUNCTIONS_F32)


@pytest.mark.parametrize("name", FUNCTIONS_F32)
def test_engine_equals_reference(name: str) -> None:
    arguments = arguments_of(name)
    expected = REFERENCE_F32[name](*arguments)
    got = run_engine(FUNCTIONS_F32[name], *arguments, result_type=expected.dtype)
    assert_same_bits(got, expected, arguments)
    if got.dtype == np.float32:
        assert set(got.view(np.uint32)[np.isnan(got)]) <= {_NAN_BITS}


@pytest.mark.parametrize("name", ORDINARY_F32)
def test_ordinary_variant_equals_the_whole_function(name: str) -> None:
    function, predicate = ORDINARY_F32[name]
    arguments = arguments_of(name)
    holds = run_engine(predicate, *arguments, result_type=np.bool_)
    assert 0.1 < holds.mean() < 1.0
    arguments = [argument[holds] for argument in arguments]
    assert_same_bits(run_engine(function, *arguments), run_engine(FUNCTIONS_F32[name], *arguments), arguments)


def _scalar_oracle(function: Callable[[float], float]) -> Callable[[NDArray[np.float64]], NDArray[np.float64]]:
    return np.vectorize(function, otypes=[np.float64])


def _erfinv(x: float) -> float:
    if abs(x) < 1:
        return math.copysign(float(mpmath.erfinv(x)), x)  # mpmath has no -0
    return math.copysign(math.inf, x) if abs(x) == 1 else math.nan


def _lgamma(x: float) -> float:
    pole = math.isinf(x) or (x <= 0 and x == math.floor(x))
    return math.inf if pole else math.lgamma(x)


def _digamma(x: float) -> float:
    if x == 0:
        return -math.copysign(math.inf, x)
    if math.isinf(x) or math.isnan(x):
        return math.inf if x > 0 else math.nan
    return math.nan if x < 0 and x == math.floor(x) else float(mpmath.digamma(x))


def _gelu(x: float) -> float:
    return x * 0.5 * math.erfc(-x / math.sqrt(2.0)) if math.isfinite(x) else max(x, -0.0)


def _sigmoid(x: NDArray[np.float64]) -> NDArray[np.float64]:
    tail = np.exp(-np.abs(x))
    result: NDArray[np.float64] = np.where(x < 0, tail, 1.0) / (1.0 + tail)
    return result


# float64 functions that are good to a small fraction of a float32 ulp.
_ORACLES: dict[str, Callable[..., NDArray[np.float64]]] = {
    "rsqrt": lambda x: 1.0 / np.sqrt(x),
    "exp": np.exp,
    "exp2": np.exp2,
    "expm1": np.expm1,
    "log": np.log,
    "log2": np.log2,
    "log10": np.log10,
    "log1p": np.log1p,
    "sigmoid": _sigmoid,
    "tanh": np.tanh,
    "erf": _scalar_oracle(math.erf),
    "gelu": _scalar_oracle(_gelu),
    "sin": np.sin,
    "cos": np.cos,
    "tan": np.tan,
    "asin": np.arcsin,
    "acos": np.arccos,
    "atan": np.arctan,
    "atan2": np.arctan2,
    "sinh": np.sinh,
    "cosh": np.cosh,
    "asinh": np.arcsinh,
    "acosh": np.arccosh,
    "atanh": np.arctanh,
    "erfc": _scalar_oracle(math.erfc),
    "erfinv": _scalar_oracle(_erfinv),
    "softplus": lambda x: np.maximum(x, 0.0) + np.log1p(np.exp(-np.abs(x))),
    "cbrt": np.cbrt,
    "pow": np.power,
    "lgamma": _scalar_oracle(_lgamma),
    "digamma": _scalar_oracle(_digamma),
    "hypot": np.hypot,
}
# Oracles that compute one value at a time in many digits get fewer of them.
_SLOW_ORACLES = {"erfinv", "digamma"}
# Next to a zero of these the claim is absolute.
_ABSOLUTE_CLAIM = {"lgamma": 2.0**-40, "digamma": 2.0**-40}


def error_in_ulp(got: Floats, exact: NDArray[np.float64]) -> tuple[float, float]:
    """Largest error where the exact result is normal, and where it is subnormal (in units of 2**-149)."""
    with np.errstate(all="ignore"):
        rounded = exact.astype(np.float32)
        unit = np.spacing(np.minimum(np.abs(rounded), np.finfo(np.float32).max)).astype(np.float64)
        error = np.abs(got.astype(np.float64) - exact) / unit
    same = (got == rounded) | (np.isnan(got) & np.isnan(rounded))
    error = np.where(same & ~(error < 1), 0.0, np.where(np.isnan(error), np.inf, error))
    subnormal = np.abs(exact) < _SMALLEST_NORMAL
    return float(np.max(error[~subnormal], initial=0.0)), float(np.max(error[subnormal], initial=0.0))


@pytest.mark.parametrize("name", ACCURACY_F32)
def test_error_is_within_the_claim(name: str) -> None:
    count = 1 << (11 if name in _SLOW_ORACLES else 16)
    arguments = [
        np.concatenate([special_values(), stratified(count, seed), ordinary(2 * count, seed + 1)])
        for seed in range(11, 11 + 2 * arity(name), 2)
    ]
    with np.errstate(all="ignore"):
        exact = _ORACLES[name](*(x.astype(np.float64) for x in arguments))
    got = run_engine(FUNCTIONS_F32[name], *arguments)
    if name in _ABSOLUTE_CLAIM:
        with np.errstate(invalid="ignore"):  # inf - inf
            near_zero = np.abs(got.astype(np.float64) - exact) <= _ABSOLUTE_CLAIM[name]
        exact = np.where(near_zero & (arguments[0] < 0), got, exact)
    zeros = (exact == 0) & (got == 0)
    assert np.array_equal(np.signbit(got[zeros]), np.signbit(exact[zeros]))
    normal, subnormal = error_in_ulp(got, exact)
    claim = ACCURACY_F32[name]
    assert normal <= claim.ulp
    assert subnormal <= (0.5 if claim.subnormal_ulp is None else claim.subnormal_ulp)
    assert claim.ulp <= 2.5


def test_every_claim_is_tested() -> None:
    assert sorted(_ORACLES) == sorted(ACCURACY_F32)


_VECTORISED = [name for name in FUNCTIONS_F32 if name != "select"]
_RESULT_TYPES = {"isnan": np.bool_, "frexp_exponent": np.int32}


@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="reads x86 assembly")
@pytest.mark.skipif(not llvm.get_host_cpu_features().get("avx2"), reason="the host has no 256-bit vectors")
@pytest.mark.parametrize("name", _VECTORISED)
def test_loops_vectorise_without_calls(name: str) -> None:
    function = ORDINARY_F32[name][0] if name in ORDINARY_F32 else FUNCTIONS_F32[name]
    loop = compiled_loop(function, arity(name))
    arguments = [np.ones(64, np.int32 if name == "ldexp" and i == 1 else np.float32) for i in range(arity(name))]
    loop(np.empty(64, _RESULT_TYPES.get(name, np.float32)), *arguments)
    (ir,) = loop.inspect_llvm().values()
    assert re.search(r"<(8|16) x (float|i32)>", ir)
    assert not re.search(r"call [^\n]*\b(float|double)\b[^@\n]*@(?!llvm\.)", ir)
    assert not re.search(r"\b(fast|contract|reassoc|afn|arcp|nnan|ninf)\b (float|double|<)", ir)
    (assembly,) = loop.inspect_asm().values()
    assert re.search(r"%[yz]mm", assembly)


_DIGEST_FUNCTIONS = ("sqrt", "exp", "log1p", "sin", "erf", "fmod", "pow", "lgamma")


def digest() -> str:
    """A hash of what some engines make of some floats, in this process."""
    result = hashlib.sha256()
    for name in _DIGEST_FUNCTIONS:
        arguments = [np.concatenate([a[:128], a[-4096:]]) for a in arguments_of(name)]
        result.update(run_engine(FUNCTIONS_F32[name], *arguments).tobytes())
    return result.hexdigest()


@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="names x86 processors")
@pytest.mark.parametrize("cpu", ["generic", "haswell"])
def test_same_bits_on_other_instruction_sets(cpu: str) -> None:
    if cpu != "generic" and not llvm.get_host_cpu_features().get("fma"):
        pytest.skip("the host cannot run this target's code")
    source = Path(sys.modules["loom_sim"].__path__[0]).parent
    environment = dict(os.environ, NUMBA_CPU_NAME=cpu, NUMBA_CPU_FEATURES="", PYTHONPATH=str(source))
    child = subprocess.run([sys.executable, __file__], env=environment, capture_output=True, text=True, check=True)
    assert child.stdout.strip() == digest()


if __name__ == "__main__":
    print(digest())
