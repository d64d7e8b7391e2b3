"""Promotion and literal types: compared with Triton's own functions for every pair of dtypes."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from loom_core.base.diagnostics import LoomError
from ltl import dtypes, semantic

SEMANTIC = pytest.importorskip("triton.language.semantic", reason="Triton is the oracle of these tests")
TRITON = pytest.importorskip("triton.language")

NAMES = [row.name for row in dtypes.ALL]
BY_NAME = {row.name: row for row in dtypes.ALL}


def triton_type(name: str) -> Any:
    return TRITON.dtype(name)


ORACLE = SEMANTIC.TritonSemantic(None)


@pytest.mark.parametrize("division", [False, True])
@pytest.mark.parametrize(("weak_a", "weak_b"), [(False, False), (True, False), (False, True)])
def test_computation_dtype(weak_a: bool, weak_b: bool, division: bool) -> None:
    for a, b in itertools.product(NAMES, NAMES):
        try:
            expected = ORACLE.computation_type_impl(triton_type(a), weak_a, triton_type(b), weak_b, division).name
        except TypeError:
            expected = "refused"
        try:
            core = semantic.computation_dtype(BY_NAME[a].core, weak_a, BY_NAME[b].core, weak_b, division, "+")
            found = dtypes.of_core(core).name
        except LoomError:
            found = "refused"
        assert found == expected, (a, weak_a, b, weak_b, division)


@pytest.mark.parametrize(
    "value",
    [
        True, False, 0, 1, -1, 2**31 - 1, 2**31, -(2**31), -(2**31) - 1, 2**32 - 1, 2**32, 2**63 - 1, 2**63, -(2**63),
        2**64 - 1, 0.0, 1.5, 1e-38, 1e-39, 3.4e38, 3.5e38, 1e300, float("inf"), float("nan"),
    ],
)  # fmt: skip
def test_literal_dtype(value: Any) -> None:
    assert dtypes.of_core(semantic.number_dtype(value)).name == ORACLE.to_tensor_type(value).name


def test_integers_beyond_64_bits_are_refused() -> None:
    with pytest.raises(LoomError, match="LOOM-F109"):
        semantic.number_dtype(2**64)


@pytest.mark.parametrize("name", NAMES)
def test_dtype_predicates(name: str) -> None:
    ours, theirs = BY_NAME[name], triton_type(name)
    for predicate in ("is_floating", "is_int", "is_int_signed", "is_int_unsigned", "is_bool", "is_fp8", "is_fp16",
                      "is_bf16", "is_fp32", "is_fp64", "is_int1", "is_uint8", "is_int64", "is_ptr"):  # fmt: skip
        assert getattr(ours, predicate)() == getattr(theirs, predicate)(), predicate
    assert ours.primitive_bitwidth == theirs.primitive_bitwidth
    if ours.is_int() and not ours.is_bool():
        assert ours.get_int_min_value() == theirs.get_int_min_value()
        assert ours.get_int_max_value() == theirs.get_int_max_value()
