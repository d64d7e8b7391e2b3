"""Texts of Tile IR that nobody prints: each a diagnostic with its line, whatever stands in them."""

from __future__ import annotations

import random
import re

import pytest

from loom_core.base.diagnostics import LoomError
from loom_core.ir.parser import parse_functions
from loom_core.ir.printer import print_function
from loom_core.ir.verifier import verify_function
from loom_core.passes.pipeline import PIPELINE

TEXT = """\
func @f(%x: ptr<f32>, %n: i32) {
  %pid = program_id {axis = 0} : i32 loc("a.py":1:0:9 "f")
  %one = constant {value = 1} : i32
  %two = constant {value = 2.5} : f32
  %at = iota {start = 0, end = 8} : tile<8xi32>
  %p = splat %x {shape = [8]} : tile<8xptr<f32>>
  %q = addptr %p, %at : tile<8xptr<f32>>
  %v = load %q : tile<8xf32>
  %s = splat %two {shape = [8]} : tile<8xf32>
  %w = mul %v, %s : tile<8xf32>
  store %q, %w
  return
}
"""


def outcome(text: str) -> str:
    """`fine`, or the code of the diagnostic."""
    try:
        for function in parse_functions(text):
            verify_function(function)
            for step in PIPELINE:
                function = step(function)
            print_function(function)
    except LoomError as error:
        return error.diagnostics[0].code
    return "fine"


def test_the_text_itself_is_fine() -> None:
    assert outcome(TEXT) == "fine"


@pytest.mark.parametrize(
    ("before", "after", "code"),
    [
        ('"a.py"', '"a\n.py"', "LOOM-I001"),
        ('"f"', '"\\q"', "LOOM-I001"),
        ("value = 1", "value = nan", "LOOM-I101"),
        ("value = 1", "value = 1.5", "LOOM-I101"),
        ("value = 1", "value = 1e400", "LOOM-I101"),
        ("value = 1", f"value = {'9' * 5000}", "LOOM-I001"),
        ("value = 1", f"value = {'[' * 100_000}", "LOOM-I001"),
        ("axis = 0", "axis = 4096", "LOOM-I101"),
        ("axis = 0", 'axis = "x"', "LOOM-I101"),
        ("  return", "  if %one {\n" * 1000 + "  return", "LOOM-I001"),
    ],
)
def test_one_mistake(before: str, after: str, code: str) -> None:
    assert before in TEXT
    assert outcome(TEXT.replace(before, after, 1)) == code


def test_random_damage_is_a_diagnostic() -> None:
    tokens = re.findall(r"\s+|\w+|.", TEXT)
    spare = ["-1", "4096", "nan", "[", "]", "{", "}", '"', "%v", "none", "true", "bool", "0x", "1e9", ":", "ptr<"]
    seen = set()
    for seed in range(600):
        source = random.Random(seed)
        damaged = list(tokens)
        for _ in range(source.choice([1, 1, 2])):
            at = source.randrange(len(damaged))
            damaged[at : at + source.choice([0, 1])] = source.choice(
                [[], [source.choice(spare)], [source.choice(tokens)]]
            )
        seen.add(outcome("".join(damaged)))
    assert "fine" in seen and len(seen) >= 4
