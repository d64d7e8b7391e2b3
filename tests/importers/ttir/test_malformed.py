"""Text that is not Triton IR: always a diagnostic with a line and a hint, never a traceback."""

from __future__ import annotations

import random
import re

import pytest

from loom_core.base.diagnostics import LoomError
from loom_core.importers.ttir.errors import MalformedTritonIr, TritonIrError, UnsupportedOperation, WrongOperands
from ltl.imported import ImportedKernel
from tests.importers.ttir.modules import TEXTS, module
from tests.importers.ttir.mutation import mutated, words_of

MUTATIONS = 400
TWO_ENTRIES = "cf.cond_br %c, ^a, ^b\n^b:\ncf.br ^a\n^a:\ncf.cond_br %c, ^b, ^c\n^c:"


def test_mutations() -> None:
    rng = random.Random(7)
    paths = [path for source in TEXTS for path in (source, source.with_suffix(".ttgir"))]
    texts = [text for text in (path.read_text(encoding="utf-8") for path in paths) if len(text) < 8000]
    words = words_of(texts)
    refused = 0
    for _ in range(MUTATIONS):
        try:
            ImportedKernel(mutated(rng.choice(texts), rng, words), "kernel.ttir")
        except LoomError as error:
            refused += 1
            assert isinstance(error, TritonIrError), error
            assert error.location.known
            assert error.diagnostics[0].hint
    assert refused > MUTATIONS / 2


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("", 1, "no function"),
        ("module {", 1, "a function is missing"),
        (module("%a = arith.addi %b, %b : i32"), 3, "%b is not defined"),
        (module("%a = arith.constant 1 : i32\n%a = arith.constant 1 : i32"), 4, "%a is defined twice"),
        (module("%a = arith.constant 1 : i33"), 3, "i33 has no counterpart"),
        (module("%a = arith.constant 1 : i32\n%b = arith.addf %a, %a : i32"), 4, "does not take i32"),
        (module("%a = arith.constant 1 : i32\n%b = arith.addi %a, %a : i64"), 4, "is i32, and written as i64"),
        (module("%a = arith.constant 300 : i8"), 3, "does not fit i8"),
        (module("%a = tt.nonsense : i32"), 3, "does not know this operation"),
        (module('%a = "tt.make_range"() <{end = 8 : i32, start = 8 : i32}> : () -> tensor<8xi32>'), 3, "from 8 to 8"),
        (module("tt.call @missing() : () -> ()"), 3, "no function missing"),
        (module("tt.call @kernel() : () -> ()"), 3, "calls itself"),
        (module(TWO_ENTRIES, "%c: i1"), 5, "entered at several blocks"),
        (module("cf.br ^bb1\n^bb1:\ntt.return"), 5, "ends a block"),
        (module("cf.br ^bb2\n^bb1:"), 3, "no block ^bb2"),
        (module('%c = arith.constant 1 : i32\n%a = tt.elementwise_inline_asm "nop" {constraints = ""} %c : i32 -> i32'),
         4, "code of a GPU"),
        ("module {" + "(" * 3000, 1, "is missing"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named(text: str, line: int, message: str) -> None:
    with pytest.raises(TritonIrError, match=re.escape(message)) as caught:
        ImportedKernel(text, "kernel.ttir")
    assert caught.value.location.line == line


def test_deep_nesting_is_refused() -> None:
    deep = "!tt.ptr<" * 500 + "f32" + ">" * 500
    with pytest.raises(MalformedTritonIr, match="levels of nesting"):
        ImportedKernel(module("", f"%x: {deep}"))


def test_values_of_an_inner_block_are_not_known_outside() -> None:
    body = "%c = arith.constant true\nscf.if %c {\n%a = arith.constant 1 : i32\n}\n%b = arith.addi %a, %a : i32"
    with pytest.raises(WrongOperands, match="%a is not defined"):
        ImportedKernel(module(body))


def calls(count: int, levels: int) -> str:
    """Functions that call each other in a row, each from within some branches."""
    functions = []
    for i in range(count):
        inner = f"tt.call @f{i + 1}() : () -> ()" if i + 1 < count else ""
        functions.append(
            f"tt.func private @f{i}() {{\n%t = arith.constant true\n" + "scf.if %t {\n" * levels
            + inner + "\n}" * levels + "\ntt.return\n}"
        )  # fmt: skip
    return module("tt.call @f0() : () -> ()", others="\n".join(functions))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (calls(10, 20), "nest too deep"),
        (calls(60, 1), "nest too deep"),
        (calls(66, 0), "more than 64 functions call each other"),
        (re.sub(r"(tt.call @f\d+.*)", r"\1\n\1", calls(40, 0)), "calls, with those of called functions"),
        (module("%i = arith.constant 1 : index\nscf.index_switch %i\n"
                + "".join(f"case {k} {{\nscf.yield\n}}\n" for k in range(2000)) + "default {\nscf.yield\n}"),
         "more than 64 cases"),
    ],
)  # fmt: skip
def test_what_nests_without_end_is_refused(text: str, message: str) -> None:
    with pytest.raises(UnsupportedOperation, match=message) as caught:
        ImportedKernel(text, "kernel.ttir")
    assert caught.value.location.known
