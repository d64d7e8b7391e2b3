"""The explanation of a small object, in words and as JSON values."""

from __future__ import annotations

import json
from collections.abc import Callable

from loom_core.tools.explain import Loop, Step, explain, lines_of
from tests.tools.tiny_objects import scale_object


def test_words(golden: Callable[[str, str], None]) -> None:
    explanation = explain(scale_object())
    golden("explain_scale.txt", "".join(f"{line}\n" for line in lines_of(explanation.body)))
    assert {q: n for q, n in explanation.commands_per_queue.items() if n} == {"dma0": 2, "sce": 1}
    assert explanation.scalar_commands == 4


def test_registers_are_named_by_what_they_hold() -> None:
    loop = explain(scale_object(bound="blocks")).body[0]
    assert isinstance(loop, Loop)
    assert (loop.lo, loop.hi) == ("0", "cdiv(n + 1, 1024)")


def test_costs_that_are_known() -> None:
    loop = explain(scale_object()).body[0]
    assert isinstance(loop, Loop)
    steps = [step for step in loop.body if isinstance(step, Step)]
    assert [(step.bytes, step.flops) for step in steps] == [(4096, None), (None, 1024), (4096, None)]


def test_json() -> None:
    values = json.loads(json.dumps(explain(scale_object()).as_dict()))
    assert values["arguments"][0] == {"name": "x", "kind": "buffer", "dtype": "f32", "read": True, "written": False}
    assert [step["queue"] for step in values["body"][0]["body"]] == ["dma0", "sce", "dma0"]
