"""Damaged texts and bytecodes: whatever comes of them is a module or a diagnostic, never another exception.

A sound module is read back as it was written, and its kernel is converted or refused.

`python -m tests.interchange.fuzzing 50000` runs so many of each and rewrites `fuzz_score.json`.
"""

from __future__ import annotations

import contextlib
import json
import random
import sys
import time
from collections import Counter
from pathlib import Path

import loom
from loom.execution import prepare
from loom.format.bytecode import BytecodeError, read_module, write_module
from loom.format.text import ParseError, Parser
from loom.importers import print_loom_module
from loom.ir import Module
from loom.verify import VerifierRegistry, verify_module
from tests.interchange.generated import OPS, control_module, modules, signature_module
from tests.interchange.test_workgroups import BODIES, PROLOGUE, kernel

SCORE = Path(__file__).with_name("fuzz_score.json")
REGISTRY = VerifierRegistry.from_ops(OPS)
FRAGMENTS = [
    "%x", "%0", "@f", "^a", "#rows", "(", ")", "{", "}", "[", "]", "<", ">", ":", ",", "->", "=", "|", '"', "\\", "//",
    "\n", " ", "0x", "-", "1e999", "99999999999999999999", "f32", "view<", "vector<4x", "scf.yield", "kernel.return",
    "index.constant", "loc(", "scf.if %c {", "}" * 50, "{" * 200, "(" * 200, "vector<" * 50, "\0", "ż",
    "where [", "true",
]  # fmt: skip


def parser() -> Parser:
    found = Parser()
    found.register_ops(OPS)
    return found


def damage_text(text: str, pick: random.Random) -> str:
    """One to three edits: something deleted, doubled, moved, or put in."""
    for _ in range(pick.randint(1, 3)):
        at = pick.randrange(len(text) + 1)
        end = min(len(text), at + pick.choice([1, 1, 2, 5, 20]))
        match pick.randrange(4):
            case 0:
                text = text[:at] + text[end:]
            case 1:
                text = text[:at] + pick.choice(FRAGMENTS) + text[at:]
            case 2:
                to = pick.randrange(len(text) + 1)
                text = text[:to] + text[at:end] + text[to:]
            case 3:
                text = text[:at] + pick.choice(FRAGMENTS) + text[end:]
    return text


def damage_bytes(data: bytes, pick: random.Random) -> bytes:
    """One to three edits of bytes."""
    found = bytearray(data)
    for _ in range(pick.randint(1, 3)):
        if not found:
            break
        at = pick.randrange(len(found))
        match pick.randrange(5):
            case 0:
                found[at] = pick.randrange(256)
            case 1:
                found[at] ^= 1 << pick.randrange(8)
            case 2:
                del found[at : at + pick.choice([1, 4, 40])]
            case 3:
                found[at:at] = bytes(pick.choices([0, 1, 127, 128, 255], k=pick.randint(1, 4)))
            case 4:
                del found[at:]
    return bytes(found)


def examine(module: Module) -> str:
    """What the verifier says, and that a sound module is printed and read back as it is."""
    if verify_module(module, ops=REGISTRY, hooks=True).has_errors:
        return "diagnosed"
    text = print_loom_module(module, ops=OPS)
    again = parser().parse(text)
    assert print_loom_module(again, ops=OPS) == text
    assert print_loom_module(read_module(write_module(module)), ops=OPS) == text
    if any(op.name == "kernel.def" for op in module.body.ops):
        with contextlib.suppress(loom.LoomError):
            prepare(module)
    return "sound"


def outcome_of_text(text: str) -> str:
    try:
        module = parser().parse(text)
    except ParseError as error:
        assert error.location.line >= 1
        return "refused"
    return examine(module)


def outcome_of_bytes(data: bytes) -> str:
    try:
        module = read_module(data)
    except BytecodeError:
        return "refused"
    return examine(module)


def samples() -> tuple[list[str], list[bytes]]:
    """Texts and bytecodes to damage."""
    found = [
        *modules(0)[::9],
        *(kernel(PROLOGUE + body) for body in BODIES.values()),
        *(signature_module(seed) for seed in range(4)),
        *(control_module(seed) for seed in range(20)),
    ]
    texts = [print_loom_module(module, ops=OPS, print_locations=index % 2 == 0) for index, module in enumerate(found)]
    return texts, [write_module(module) for module in found]


def run(count: int, seed: int) -> dict[str, Counter[str]]:
    """Outcomes of `count` damaged texts and as many bytecodes."""
    texts, bytecodes = samples()
    pick = random.Random(seed)
    found: dict[str, Counter[str]] = {"text": Counter(), "bytecode": Counter()}
    for _ in range(count):
        text = damage_text(pick.choice(texts), pick)
        data = damage_bytes(pick.choice(bytecodes), pick)
        for kind, outcome, given in (("text", outcome_of_text, text), ("bytecode", outcome_of_bytes, data)):
            started = time.thread_time()
            try:
                found[kind][outcome(given)] += 1  # type: ignore[operator]
            except Exception as error:
                raise AssertionError(f"{kind} {given!r}") from error
            assert time.thread_time() - started < 5, f"{kind} takes too long: {given!r}"
    return found


if __name__ == "__main__":
    total = int(sys.argv[1])
    outcomes = {kind: dict(sorted(counts.items())) for kind, counts in run(total, 2026).items()}
    SCORE.write_text(json.dumps({"count": total, "outcomes": outcomes}, indent=2) + "\n", encoding="utf-8")
