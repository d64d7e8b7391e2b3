"""Programs changed at random: whatever comes of them, there are diagnostics or a sound program, and it is quick.

`python -m tests.tensorloom.mutations --count 20000` runs many and writes the score to mutations.json beside this file.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import time
import warnings
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from loom_core.base.diagnostics import InternalError
from tensorloom.diagnostics import TensorLoomError
from tensorloom.driver import check_text
from tensorloom.emit import emit
from tensorloom.formatting import format_source
from tensorloom.info import model_infos
from tensorloom.source import Source

GALLERY = Path(__file__).resolve().parents[2] / "examples" / "tensorloom"
SCORE = Path(__file__).with_name("mutations.json")
LIMIT = 2.0
"""Seconds for one program, on a slow machine."""

EXTRA = """\
import data.mnist
import nn
@model M:
    @config:
        width = 4
        inner = width * 2
        flag = true
    @layers:
        a = Linear(width, inner)
        r = LSTM(inner, 3, bidirectional=true)
        s = Sequential(Linear(6, 4), nn.ReLU())
    @forward(x: Tensor[B, T, width], y=none):
        let out, state = r(a(x))
        if flag and not y == none:
            x = x + y ** 2
        elif x.shape[0] > 3:
            for i in range(3):
                x = x * i % 7
        else:
            while false:
                break
        return s(out)[:, -1] @ ones(4, 2) |> softmax
fn f(a: int, b: float = 1.5) -> float:
    let s = f"{a + 1:>3} {b!r}"
    print(s, "text\\n")
    return -a ** -b
let net = M(width=4, flag=false)
let xs = [1, 2.5, .5, 1e-3, [true, none]]
let x = tensor([[1, 2], [3, 4]], dtype=float32) |> relu |> dropout(0.5)
xs[0] = f(2)
let data = load_dataset("mnist", batch_size=8)
train net on data:
    epochs = 3
    optimizer = SGD(0.1, momentum=0.9)
    loss = CrossEntropy(label_smoothing=0.1)
    scheduler = StepLR(step_size=2)
    precision = bf16
    checkpoint every 10 steps
    distributed = true
    on epoch_end(m):
        print(m.loss)
"""


def corpus() -> list[str]:
    return [path.read_text(encoding="utf-8") for path in sorted(GALLERY.iterdir())] + [EXTRA]


def mutated(source: random.Random, programs: list[str]) -> str:
    """One of the programs with one to four changes: of characters, tokens, lines, or parts of another program."""
    text = source.choice(programs)
    for _ in range(source.randint(1, 4)):
        text = source.choice(CHANGES)(source, text, programs)
    return text


def _tokens(text: str) -> list[str]:
    return re.findall(r"\w+|[ \t]+|\n|[^\w\s]+", text)


def _change_character(source: random.Random, text: str, programs: list[str]) -> str:
    at = source.randrange(len(text) + 1)
    letter = source.choice("()[]{}:,.=@|>-+*/%\"'\\\n\t #;?0123456789eafxλ²\0\x0c\u2028")
    return text[:at] + source.choice(["", letter]) + text[at + source.randint(0, 1) :]


def _delete_token(source: random.Random, text: str, programs: list[str]) -> str:
    tokens = _tokens(text) or [""]
    del tokens[source.randrange(len(tokens))]
    return "".join(tokens)


def _replace_token(source: random.Random, text: str, programs: list[str]) -> str:
    tokens, others = _tokens(text) or [""], _tokens(source.choice(programs))
    tokens[source.randrange(len(tokens))] = source.choice(others)
    return "".join(tokens)


def _insert_token(source: random.Random, text: str, programs: list[str]) -> str:
    tokens, others = _tokens(text), _tokens(source.choice(programs))
    tokens.insert(source.randrange(len(tokens) + 1), source.choice(others))
    return "".join(tokens)


def _change_number(source: random.Random, text: str, programs: list[str]) -> str:
    numbers = list(re.finditer(r"\b\d+\b", text))
    if not numbers:
        return text
    found = source.choice(numbers)
    value = source.choice(["0", "1", "-1", "2.5", "true", "none", '"a"', "10 ** 9", "7", "1000000007", "x", "[1, 2]"])
    return text[: found.start()] + value + text[found.end() :]


def _move_line(source: random.Random, text: str, programs: list[str]) -> str:
    lines = text.split("\n")
    line = lines.pop(source.randrange(len(lines)))
    lines.insert(source.randrange(len(lines) + 1), line)
    return "\n".join(lines)


def _copy_line(source: random.Random, text: str, programs: list[str]) -> str:
    lines, others = text.split("\n"), source.choice(programs).split("\n")
    lines.insert(source.randrange(len(lines) + 1), source.choice(others))
    return "\n".join(lines)


def _indent_line(source: random.Random, text: str, programs: list[str]) -> str:
    lines = text.split("\n")
    at = source.randrange(len(lines))
    lines[at] = source.choice(["", " ", "    ", "\t"]) + lines[at].lstrip(source.choice(["", " "]))
    return "\n".join(lines)


def _cut(source: random.Random, text: str, programs: list[str]) -> str:
    return text[: source.randrange(len(text) + 1)]


CHANGES = (
    _change_character, _delete_token, _replace_token, _insert_token, _change_number, _move_line, _copy_line,
    _indent_line, _cut,
)  # fmt: skip


@dataclass(frozen=True)
class Outcome:
    """`kind`: errors, sound or failure. `seconds`: for all that was done with the program."""

    kind: str
    reason: str
    seconds: float


def outcome(text: str) -> Outcome:
    """Check, compile and lay out a program, and count its weights."""
    started = time.perf_counter()
    kind, reason = _outcome(text)
    seconds = time.perf_counter() - started
    if seconds > LIMIT:
        kind, reason = "failure", f"{seconds:.1f} seconds"
    return Outcome(kind, reason, seconds)


def _outcome(text: str) -> tuple[str, str]:
    file = str(GALLERY / "mutated.tl")
    try:
        checked = check_text(text, file)
        str([str(diagnostic) for diagnostic in checked.diagnostics])
        if not checked.ok:
            return "errors", checked.diagnostics[0].code
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Python's own remarks on comparisons and calls of literals
            compile(emit(checked).text, "<mutated>", "exec")
        model_infos(checked, 4)
        format_source(Source(text, file))
    except InternalError as error:
        return "failure", str(error)
    except TensorLoomError as error:
        return "errors", error.diagnostics[0].code
    except Exception as error:  # noqa: BLE001 - any other exception is what this looks for
        return "failure", f"{type(error).__name__}: {error}"
    return "sound", ""


def run(count: int, seed: int) -> tuple[Counter[str], list[tuple[str, str]], float]:
    """How programs ended, the failures with their texts, and the longest time."""
    source = random.Random(seed)
    programs = corpus()
    kinds: Counter[str] = Counter()
    failures = []
    longest = 0.0
    for _ in range(count):
        text = mutated(source, programs)
        found = outcome(text)
        kinds[found.kind] += 1
        longest = max(longest, found.seconds)
        if found.kind == "failure":
            failures.append((found.reason, text))
    return kinds, failures, longest


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--write", action="store_true", help="write the score")
    given = parser.parse_args()
    kinds, failures, longest = run(given.count, given.seed)
    for reason, text in failures[:5]:
        print(f"--- {reason}\n{text}")
    score = {"programs": given.count, "seed": given.seed, **{k: kinds[k] for k in ("errors", "sound", "failure")}}
    print(score, f"longest {longest:.2f} s")
    if given.write:
        SCORE.write_text(json.dumps(score, indent=2) + "\n")


if __name__ == "__main__":
    main()
