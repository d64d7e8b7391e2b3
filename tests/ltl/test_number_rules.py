"""docs/triton-numbers.md: what Triton on a GPU, Triton's interpreter and Loom make of the same small computations."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from loom.triton import load_source
from tests.ltl import number_rules
from tests.ltl.number_rules import RULES, Rule

RECORDED = Path(number_rules.__file__).with_suffix(".json")
PAGE = Path(__file__).resolve().parents[2] / "docs" / "triton-numbers.md"
_NARROW = {"bfloat16": ml_dtypes.bfloat16, "float8e4nv": ml_dtypes.float8_e4m3fn, "float8e5": ml_dtypes.float8_e5m2}

TEXT = """\
# Numbers: Triton on a GPU, Triton's interpreter, Loom

<!-- Written by `./run golden` from tests/ltl/number_rules.py, which says how the columns were made. -->

The same kernels on an H200 (Triton 3.6), by Triton's interpreter (Triton 3.9 on x86-64) and on Loom, which gives the
same bits on every computer. Loom's rules are those of [numerics.md](numerics.md).

## Where they differ

| | of | GPU | interpreter | Loom | Loom's rule |
|---|---|---|---|---|---|
{different}

(*) Out of range, what the processor makes of a conversion in C; others give other numbers.

Beyond these rows: the interpreter computes with the bit patterns of bfloat16 where it should compute with its values,
and exponentials, logarithms and the like are approximations of their own everywhere
([errors of Loom's](ops.md)). Sums and products over many elements have an order of their own on a GPU, and one fixed
order here.

## Where they agree

| | of | result |
|---|---|---|
{equal}
"""


def recorded() -> dict[str, dict[str, list[str]]]:
    found: dict[str, dict[str, list[str]]] = json.loads(RECORDED.read_text(encoding="utf-8"))
    return found


def loom_results() -> dict[str, list[str]]:
    return number_rules.results(load_source(number_rules.SOURCE), "cpu")


def interpreter_results() -> dict[str, list[str]]:
    command = [sys.executable, number_rules.__file__, "cpu"]
    ran = subprocess.run(command, env={**os.environ, "TRITON_INTERPRET": "1"}, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    found: dict[str, list[str]] = json.loads(ran.stdout)
    return found


def values_of(rule: Rule, results: list[str]) -> np.ndarray:
    """Results as numbers of the rule's dtype."""
    dtype = np.dtype(_NARROW.get(rule.out, rule.out))
    return np.frombuffer(b"".join(bytes.fromhex(bits)[::-1] for bits in results), dtype)


def agree(rule: Rule, columns: list[list[str]]) -> bool:
    """Whether all columns are one, NaN being NaN unless the rule is about its bits."""
    if rule.bits or rule.out.startswith(("int", "uint")):
        return all(column == columns[0] for column in columns)
    first, *others = (values_of(rule, column).astype(np.float64) for column in columns)
    number = ~np.isnan(first)
    return all(
        np.array_equal(first, other, equal_nan=True)
        and np.array_equal(np.signbit(first[number]), np.signbit(other[number]))
        for other in others
    )


def shown(value: float) -> str:
    whole = float(value)
    return str(int(whole)) if whole.is_integer() and whole and abs(whole) < 1e7 else f"{whole:.9g}"


def operands_text(rule: Rule) -> str:
    """`x` of each element, and `y`, `z` where the rule has them."""
    elements = zip(*rule.operands, strict=True)
    return "; ".join(", ".join(shown(value) for value in element) for element in elements)


def result_text(rule: Rule, results: list[str]) -> str:
    if rule.bits:
        return "; ".join(f"0x{bits}" for bits in results)
    values = values_of(rule, results)
    return "; ".join(str(int(value)) if values.dtype.kind in "iu" else shown(value) for value in values)


def rows(results: dict[str, dict[str, list[str]]], different: bool) -> Iterator[str]:
    for rule in RULES:
        columns = [results[who][rule.name] for who in ("gpu", "interpreter", "loom")]
        if agree(rule, columns) == different:
            continue
        texts = [result_text(rule, column) for column in columns]
        texts[1] += " (*)" if rule.host else ""
        cells = [rule.name, operands_text(rule), *([*texts, rule.why] if different else texts[:1])]
        yield f"| {' | '.join(cells)} |"


def page(results: dict[str, dict[str, list[str]]]) -> str:
    return TEXT.format(different="\n".join(rows(results, True)), equal="\n".join(rows(results, False)))


@pytest.mark.golden
def test_loom_and_the_interpreter_give_what_is_recorded(request: pytest.FixtureRequest) -> None:
    pytest.importorskip("torch")
    pytest.importorskip("triton")
    measured = {**recorded(), "interpreter": interpreter_results(), "loom": loom_results()}
    if request.config.getoption("--update-golden"):
        RECORDED.write_text(json.dumps(measured, indent=1) + "\n", encoding="utf-8", newline="\n")
    wanted = recorded()
    for rule in RULES:
        if rule.host:
            measured["interpreter"][rule.name] = wanted["interpreter"][rule.name]
    assert measured == wanted


@pytest.mark.golden
def test_the_page_says_so(request: pytest.FixtureRequest) -> None:
    text = page(recorded())
    if request.config.getoption("--update-golden"):
        PAGE.write_text(text, encoding="utf-8", newline="\n")
    assert PAGE.read_text(encoding="utf-8") == text


def test_every_difference_has_its_rule() -> None:
    results = recorded()
    for rule in RULES:
        columns = [results[who][rule.name] for who in ("gpu", "interpreter", "loom")]
        assert agree(rule, columns) == (not rule.why), rule.name
    assert {name for column in results.values() for name in column} == {rule.name for rule in RULES}


def test_the_definitions_of_the_numerics_page() -> None:
    """What docs/numerics.md says of these cases, computed by NumPy and ml_dtypes alone."""
    by_name = {rule.name: rule for rule in RULES}
    results = recorded()["loom"]
    for name, dtype, least, most in (
        ("float32 to int32", np.int32, -(2**31), 2**31 - 1), ("float32 to int8", np.int8, -128, 127),
        ("float32 to uint32", np.uint32, 0, 2**32 - 1), ("float32 to uint8", np.uint8, 0, 255),
        ("float32 to int64", np.int64, -(2**63), 2**63 - 1),
    ):  # fmt: skip
        given = np.array(by_name[name].operands[0], np.float32).tolist()
        wanted = [0 if x != x else int(min(max(x, least), most)) if abs(x) < 2**63 else least if x < 0 else most
                  for x in given]  # fmt: skip
        assert values_of(by_name[name], results[name]).tolist() == np.array(wanted, dtype).tolist()
    for name, dtype in (("float32 to bfloat16", ml_dtypes.bfloat16), ("float32 to float8e4nv", ml_dtypes.float8_e4m3fn),
                        ("float32 to float8e5", ml_dtypes.float8_e5m2)):  # fmt: skip
        given = np.array(by_name[name].operands[0], np.float32)
        limit = np.float32(np.inf if dtype is ml_dtypes.bfloat16 else ml_dtypes.finfo(dtype).max)
        wanted = np.clip(given, -limit, limit).astype(dtype)
        found = values_of(by_name[name], results[name])
        assert np.array_equal(found.astype(np.float32), wanted.astype(np.float32), equal_nan=True)
    for name, code in (("int32 `x // 0`", [-1, -1, -1]), ("int32 `x % 0`", [7, -7, 0])):
        assert values_of(by_name[name], results[name]).tolist() == code
