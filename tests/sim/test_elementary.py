"""Elementary engines: the reference's bits on every kind of float, errors within the claims, loops that vectorise."""

from __future__ import annotations

import functools
import math
import platform
import re
from collections.abc import Callable
from typing import Any

import llvmlite.binding as llvm
import mpmath
import numpy as np
import pytest
from numpy.typing import NDArray

from exhaustive import inputs
from exhaustive.engines import CALL
from exhaustive.references import error_in_ulp, stratified
from loom_core.base.dtype import by_name
from loom_core.isa.sce import SCE_OPS
from loom_core.reference.accuracy import ACCURACY_F32
from loom_core.reference.elementary import REFERENCE_F32
from loom_sim.elementary import FUNCTIONS_F32, ORDINARY_F32
from loom_sim.elements import build_element
from loom_sim.jit import ELEMENT_SIGNATURE, engine_and_assembly

Floats = NDArray[np.float32]

_SAMPLES = 1 << 16  # `./run exhaustive references` has 2**24
_CHUNK = 1024
_NAN_BITS = 0x7FC00000


def special_values() -> Floats:
    return inputs.special_values("f32")


def ordinary(count: int, seed: int) -> Floats:
    """`count` floats of everyday size, dense where stratified ones are not."""
    rng = np.random.default_rng(seed)
    widths = np.array([1.0, 3.0, 20.0, 110.0], np.float32)
    return (rng.uniform(-1, 1, count) * widths[rng.integers(0, 4, count)]).astype(np.float32)


def arity(name: str) -> int:
    return len(SCE_OPS[f"{name}.f32"].operands)


@functools.cache
def compiled(name: str) -> tuple[Callable[..., None], str]:
    """The engine of a function, and its assembly; compiled here, where both come of one compilation."""
    op = SCE_OPS[f"{name}.f32"]
    address, assembly = engine_and_assembly(f"test.{name}", lambda: build_element(op), ELEMENT_SIGNATURE)
    return CALL(address), assembly


def run_engine(name: str, *arguments: NDArray[Any]) -> NDArray[Any]:
    """As the stream engine does it, a chunk at a time: some are ordinary, some not."""
    result = np.zeros(arguments[0].shape, by_name(SCE_OPS[f"{name}.f32"].result).numpy)
    for first in range(0, result.size, _CHUNK):
        target = result[first : first + _CHUNK]
        chunks = [np.ascontiguousarray(argument[first : first + _CHUNK]) for argument in arguments]
        addresses = [chunk.ctypes.data for chunk in chunks] + [0] * (3 - len(chunks))
        compiled(name)[0](target.ctypes.data, *addresses, target.size)
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
    got = run_engine(name, *arguments)
    assert_same_bits(got, expected, arguments)
    if got.dtype == np.float32:
        assert set(got.view(np.uint32)[np.isnan(got)]) <= {_NAN_BITS}


@pytest.mark.parametrize("name", ORDINARY_F32)
def test_ordinary_variant_equals_the_whole_function(name: str) -> None:
    """Chunks with one operand out of the ordinary, which takes all of them the slow way, and without."""
    first, *others = (argument[-_CHUNK:].copy() for argument in arguments_of(name))
    first = np.clip(np.nan_to_num(first), -80, 80).astype(np.float32)
    plain = run_engine(name, first, *others)
    first[-1] = np.float32(3e38)
    assert_same_bits(run_engine(name, first, *others)[:-1], plain[:-1], [first, *others])


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


@pytest.mark.parametrize("name", ACCURACY_F32)
def test_error_is_within_the_claim(name: str) -> None:
    count = 1 << (11 if name in _SLOW_ORACLES else 16)
    arguments = [
        np.concatenate([special_values(), stratified(count, seed), ordinary(2 * count, seed + 1)])
        for seed in range(11, 11 + 2 * arity(name), 2)
    ]
    with np.errstate(all="ignore"):
        exact = _ORACLES[name](*(x.astype(np.float64) for x in arguments))
    got = run_engine(name, *arguments)
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


@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="reads x86 assembly")
@pytest.mark.skipif(not llvm.get_host_cpu_features().get("avx2"), reason="the host has no 256-bit vectors")
@pytest.mark.parametrize("name", FUNCTIONS_F32)
def test_loops_vectorise_without_calls(name: str) -> None:
    _, assembly = compiled(name)
    assert re.search(r"%[yz]mm", assembly)
    assert not re.search(r"\bcallq?\s", assembly)
    # A loop of single elements that LLVM has unrolled is one that it could not vectorise.
    assert not re.search(r"movss\s+\d+\(%\w+,%\w+,4\), %xmm", assembly)
