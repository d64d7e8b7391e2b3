"""A sample of the damaged texts and bytecodes of `fuzzing`, which keeps the score of the whole run."""

from __future__ import annotations

from tests.interchange.fuzzing import run


def test_a_sample_gives_modules_or_diagnostics() -> None:
    found = run(400, 7)
    assert found["text"]["refused"] > 200
    assert found["text"]["sound"] > 10
    assert found["bytecode"]["refused"] > 200
