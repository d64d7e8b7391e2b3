"""Changed programs give diagnostics; 20,000 of them out of band."""

from __future__ import annotations

import json

import pytest

from tests.tensorloom.mutations import SCORE, corpus, outcome, run


def test_the_corpus_is_sound() -> None:
    assert [outcome(text).reason for text in corpus()] == [""] * len(corpus())


def test_a_sample() -> None:
    kinds, failures, _ = run(300, seed=1)
    assert failures == []
    assert kinds["errors"] > 100
    assert kinds["sound"] > 10


def test_the_committed_score() -> None:
    score = json.loads(SCORE.read_text())
    assert score["programs"] == 20_000
    assert score["failure"] == 0


def test_a_failure_would_be_seen() -> None:
    assert outcome("let = 1").kind == "errors"
    assert outcome("print(1)\n").kind == "sound"


_DOUBLING = "".join(f"fn f{i + 1}(x):\n    return f{i}(f{i}(x))\n" for i in range(20))
_LOOPS = (
    "".join(f"{'    ' * i}for i{i} in [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]:\n" for i in range(8)) + "    " * 8 + "pass\n"
)
_NESTED = "let x = " + "f(" * 13 + "[1 + " * 13 + "-(" * 12 + "1" + ")" * 12 + "]" * 13 + ")" * 13 + "\n"


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("", "sound"),
        ("\0", "errors"),
        (_NESTED, "errors"),
        ("let x = 9 ** 9 ** 9 ** 9\n", "sound"),
        ("let n = Repeat(Linear(4, 4), 1000000000)\nlet y = n(zeros(2, 4))\n", "sound"),
        ("let n = LSTM(4, 4, num_layers=1000000000)\n", "sound"),
        ("fn f(x):\n    return f(f(x))\nlet a = f(1)\n", "sound"),
        ("fn f0(x):\n    return x\n" + _DOUBLING + "let r = f20(zeros(2))\n", "sound"),
        ("fn f0(x):\n    return x\n" + _DOUBLING + "let r = f20([1])\n", "sound"),
        ("let xs = [1]\nfor i in [1, 2, 3, 4, 5, 6, 7, 8]:\n" + "    xs = xs + xs\n" * 8, "sound"),
        (_LOOPS, "sound"),
        ("let a = zeros(10 ** 9, 10 ** 9)\nlet b = a + 1\n", "sound"),
        ("import mutated.nml\n", "errors"),
    ],
    ids=range(13),
)
def test_programs_that_could_take_for_ever(text: str, kind: str) -> None:
    assert outcome(text).kind == kind
