"""Pictures of an object: its commands and what they wait for as a graph, and everything on a page of HTML."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from loom_core.base.html import ACP, DMA, MXU, SCE, Markup, document, page, tag
from loom_core.isa.encoding import decode_at
from loom_core.objfile import LoomObject
from loom_core.tools.explain import Explanation, Loop, Step, explain, lines_of

if TYPE_CHECKING:
    from loom_sim.profile import Profile

_COLOURS: Final = {"dma": DMA, "mxu": MXU, "sce": SCE, "acp": ACP}
_WRAP: Final = 32


def visual_page(subject: LoomObject, profile: Profile | None) -> str:
    """An HTML file: the object, what it does in words, and the profile of a run if there is one."""
    words = "\n".join(lines_of(explain(subject).body))
    shown = [subject._repr_html_(), document(tag("pre", words))]
    if profile is not None:
        shown.insert(0, profile._repr_html_())
    return page(subject.name or "object", Markup("".join(shown)))


# ---- the graph ----


def dot_graph(subject: LoomObject) -> str:
    """Graphviz text: engine commands in the boxes of their loops; solid edges are tokens, dotted ones queue order."""
    explanation = explain(subject)
    lines = [
        f"digraph {_quoted(subject.name or 'object')} {{",
        "  node [shape=box, style=filled, fontname=sans, fontsize=10]",
        *_body(explanation.body, "  ", itertools.count()),
        *_queue_edges(explanation),
        *_token_edges(subject, {step.word for step in _steps(explanation.body)}),
        "}",
    ]
    return "\n".join(lines) + "\n"


def _body(body: list[Step | Loop], indent: str, numbers: Iterator[int]) -> Iterator[str]:
    for item in body:
        if isinstance(item, Step):
            source = [item.source] if item.source else []
            label = "\n".join([f"{item.queue}: {_wrapped(item.text)}", *source])
            colour = _COLOURS[item.queue[:3]] + "55"
            yield f'{indent}w{item.word} [label={_quoted(label)}, fillcolor="{colour}"]'
            continue
        step = "" if item.step == "1" else f" by {item.step}"
        yield f"{indent}subgraph cluster_{next(numbers)} {{"
        yield f"{indent}  label={_quoted(f'for {item.variable} in {item.lo} .. {item.hi}{step}')}"
        yield from _body(item.body, indent + "  ", numbers)
        yield f"{indent}}}"


def _steps(body: list[Step | Loop]) -> Iterator[Step]:
    for item in body:
        if isinstance(item, Step):
            yield item
        else:
            yield from _steps(item.body)


def _queue_edges(explanation: Explanation) -> Iterator[str]:
    last: dict[str, int] = {}
    for step in _steps(explanation.body):
        if step.queue in last:
            yield f"  w{last[step.queue]} -> w{step.word} [style=dotted]"
        last[step.queue] = step.word


def _token_edges(subject: LoomObject, drawn: set[int]) -> Iterator[str]:
    signals: dict[int, list[int]] = defaultdict(list)
    commands = {word: command for word, command in decode_at(subject.commands).items() if word in drawn}
    for word, command in commands.items():
        if command.signal:
            signals[command.signal].append(word)
    for word, command in commands.items():
        for wait in command.waits:
            text = f"t{wait.token}" + (f" but {wait.lag}" if wait.lag else "")
            yield from (f"  w{signaller} -> w{word} [label={_quoted(text)}]" for signaller in signals[wait.token])


def _wrapped(text: str) -> str:
    """The text in lines of some words each."""
    lines = [""]
    for word in text.split():
        if lines[-1] and len(lines[-1]) + len(word) >= _WRAP:
            lines.append("")
        lines[-1] += f" {word}" if lines[-1] else word
    return "\n".join(lines)


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'
