"""A sample of the damaged texts and bytecodes of `fuzzing`, and the score of the whole run."""

from __future__ import annotations

import json

from tests.interchange.fuzzing import SCORE, run


def test_a_sample_gives_modules_or_diagnostics() -> None:
    found = run(400, 7)
    assert found["text"]["refused"] > 200
    assert found["text"]["sound"] > 10
    assert found["bytecode"]["refused"] > 200


def test_the_committed_score() -> None:
    score = json.loads(SCORE.read_text(encoding="utf-8"))
    assert score["count"] >= 50_000
    for outcomes in score["outcomes"].values():
        assert sum(outcomes.values()) == score["count"]
        assert set(outcomes) == {"diagnosed", "refused", "sound"}
