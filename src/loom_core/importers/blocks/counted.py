"""Loops that count: found in a graph of blocks, with a witness that is checked again by other means.

    ^head(%i, ...): %c = cmpi slt, %i, %n; cond_br %c, ^body, ^exit       ... br ^head(%i + 4, ...)
runs as a `for` of %i up to %n by 4, if %n stays the same, only the head leaves the loop, and %i does not wrap.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from loom_core.importers.blocks.graph import Compared, Edge, Graph, NaturalLoop, Number, Sum

_SWAPPED: Final = {"slt": "sgt", "sgt": "slt", "sle": "sge", "sge": "sle"}
_NEGATED: Final = {"slt": "sge", "sge": "slt", "sgt": "sle", "sle": "sgt"}


@dataclass(frozen=True)
class LoopWitness:
    """A loop: the block by which alone it is entered, and the parameters that it carries."""

    header: str
    parameters: tuple[str, ...]


@dataclass(frozen=True)
class CountedWitness(LoopWitness):
    """Why a loop is a `for`: the parameter at `position` runs from its first value on below (above) `upper` by `step`.

    `upper` is a name from outside of the loop or a number.
    """

    position: int
    upper: str | int
    step: int

    @property
    def variable(self) -> str:
        return self.parameters[self.position]


@dataclass(frozen=True)
class TestedLoop:
    """A loop that only its header leaves: the way into the body, the way out, and which of them is taken on true."""

    loop: NaturalLoop
    inside: Edge
    outside: Edge
    negated: bool


def tested(graph: Graph, loop: NaturalLoop) -> TestedLoop | None:
    """A loop whose header alone decides whether it goes on, and may be run once more or less."""
    head = graph.nodes[loop.header]
    if not head.repeatable or len(head.edges) != 2 or head.cases:
        return None
    goes_on = [edge.target in loop.blocks for edge in head.edges]
    if sum(goes_on) != 1 or loop.header in (edge.target for edge in head.edges):
        return None
    for label in loop.blocks - {loop.header}:
        if any(edge.target not in loop.blocks for edge in graph.nodes[label].edges):
            return None
    first, second = head.edges
    return TestedLoop(loop, first, second, False) if goes_on[0] else TestedLoop(loop, second, first, True)


def count(graph: Graph, found: TestedLoop) -> CountedWitness | None:
    """The witness that a loop counts, None where it does not or could wrap."""
    loop, head = found.loop, graph.nodes[found.loop.header]
    condition = head.facts.get(head.selector)
    if not isinstance(condition, Compared) or condition.predicate not in _SWAPPED:
        return None
    predicate = _NEGATED[condition.predicate] if found.negated else condition.predicate
    variable, bound = condition.left, condition.right
    if variable not in head.parameters:
        variable, bound, predicate = bound, variable, _SWAPPED[predicate]
    if variable not in head.parameters:
        return None
    position = head.parameters.index(variable)
    step = _step(graph, loop, position, variable)
    limit = _limit(graph, loop, bound)
    if step is None or limit is None:
        return None
    (number, exact), upper = step, limit
    if predicate in ("sle", "sge") and isinstance(upper, int):
        upper += 1 if predicate == "sle" else -1
        predicate = "slt" if predicate == "sle" else "sgt"
    if predicate != ("slt" if number > 0 else "sgt") or not _stays(number, exact, upper, condition.bits):
        return None
    return CountedWitness(loop.header, head.parameters, position, upper, number)


def _step(graph: Graph, loop: NaturalLoop, position: int, variable: str) -> tuple[int, bool] | None:
    """What every way back adds to the variable, and whether the program promises that it does not wrap."""
    steps: set[int] = set()
    exact = True
    for latch in loop.latches:
        for edge in graph.nodes[latch].edges:
            if edge.target != loop.header:
                continue
            following = graph.facts.get(edge.arguments[position]) if position < len(edge.arguments) else None
            if not isinstance(following, Sum) or variable not in (following.left, following.right):
                return None
            added = graph.facts.get(following.right if following.left == variable else following.left)
            if not isinstance(added, Number):
                return None
            steps.add(added.value)
            exact &= following.exact
    return (steps.pop(), exact) if len(steps) == 1 and 0 not in steps else None


def _limit(graph: Graph, loop: NaturalLoop, bound: str) -> str | int | None:
    known = graph.facts.get(bound)
    if isinstance(known, Number):
        return known.value
    inside = any(bound in graph.nodes[label].names for label in loop.blocks)
    return None if inside else bound


def _stays(step: int, exact: bool, upper: str | int, bits: int) -> bool:
    """Whether the variable cannot wrap on its way past the bound, and the bound is a number of the type."""
    least, most = -(1 << bits - 1), (1 << bits - 1) - 1
    if isinstance(upper, int):
        last = upper - 1 + step if step > 0 else upper + 1 + step
        return least <= upper <= most and (exact or least <= last <= most)
    return exact or abs(step) == 1
