"""Changed programs give diagnostics; 20,000 of them out of band."""

from __future__ import annotations

import json

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
