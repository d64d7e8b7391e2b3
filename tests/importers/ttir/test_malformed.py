"""Text that is not Triton IR: always a diagnostic with a line and a hint, never a traceback."""

from __future__ import annotations

import random
import re

import pytest

from loom_core.base.diagnostics import LoomError
from loom_core.importers.ttir.errors import MalformedTritonIr, TritonIrError, WrongOperands
from ltl.imported import ImportedKernel
from tests.importers.ttir.modules import TEXTS, module

WORD = re.compile(r"[%#@^!]?[\w.$]+|[^\s\w]")
MUTATIONS = 1000
TWO_ENTRIES = "cf.cond_br %c, ^a, ^b\n^b:\ncf.br ^a\n^a:\ncf.cond_br %c, ^b, ^c\n^c:"


def mutated(text: str, rng: random.Random, words: list[str]) -> str:
    """The text with one word or line changed, lost or doubled, or cut off."""
    lines = text.split("\n")
    first, second = rng.randrange(len(lines)), rng.randrange(len(lines))
    start, end = rng.choice([match.span() for match in WORD.finditer(text)])
    match rng.randrange(7):
        case 0:
            return text[:start] + text[end:]
        case 1:
            return text[:start] + rng.choice(words) + text[end:]
        case 2:
            return text[:end] + " " + text[start:end] + text[end:]
        case 3:
            return text[: rng.randrange(len(text))]
        case 4:
            del lines[first]
        case 5:
            lines[first], lines[second] = lines[second], lines[first]
        case _:
            lines.insert(first, lines[second])
    return "\n".join(lines)


def test_mutations() -> None:
    rng = random.Random(7)
    texts = [text for text in (path.read_text(encoding="utf-8") for path in TEXTS) if len(text) < 8000]
    words = sorted({word for text in texts for word in WORD.findall(text)})
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
        (module('%a = tt.elementwise_inline_asm "nop" {constraints = ""} : i32'), 3, "code of a GPU"),
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
