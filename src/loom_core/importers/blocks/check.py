"""Checks that do not trust how a graph was structured: reachability alone, one claim at a time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from loom_core.importers.blocks.counted import CountedWitness, LoopWitness
from loom_core.importers.blocks.graph import END, Compared, Edge, Graph, Number, Sum


@dataclass(frozen=True)
class JoinWitness:
    """Ways that meet again in `block`: all of them come by `owner`, in whose scope the block is built."""

    owner: str
    block: str
    parameters: tuple[str, ...]


@dataclass(frozen=True)
class Structure:
    """What a graph of blocks was made into."""

    loops: tuple[LoopWitness, ...] = ()
    joins: tuple[JoinWitness, ...] = ()


def problems(graph: Graph, structure: Structure) -> Iterator[str]:
    """What is wrong with the witnesses; nothing if all hold."""
    for join in structure.joins:
        if _reached(graph, graph.entry, without=join.owner) & {join.block}:
            yield f"block {join.block} is reached around {join.owner}"
        if graph.nodes[join.block].parameters != join.parameters:
            yield f"block {join.block} does not take {', '.join(join.parameters)}"
    for loop in structure.loops:
        yield from _loop_problems(graph, loop)


def _reached(graph: Graph, start: str, *, without: str) -> set[str]:
    """The blocks on ways from `start` that do not pass `without`."""
    found: set[str] = set()
    pending = [start]
    while pending:
        label = pending.pop()
        if label in found or label in (without, END):
            continue
        found.add(label)
        pending += [edge.target for edge in graph.nodes[label].edges]
    return found


def _loop_problems(graph: Graph, claim: LoopWitness) -> Iterator[str]:
    head = graph.nodes[claim.header]
    if claim.parameters != head.parameters:
        yield f"{claim.header} does not take {', '.join(claim.parameters)}"
        return
    # The loop: what the header leads to and what leads back to it.
    after = {label for edge in head.edges for label in _reached(graph, edge.target, without=claim.header)}
    around = _reached(graph, graph.entry, without=claim.header)
    latches = {label for label in after - around for edge in graph.nodes[label].edges if edge.target == claim.header}
    if not latches and all(edge.target != claim.header for edge in head.edges):
        yield f"no way from {claim.header} leads back to it"
        return
    body = {label for label in after if latches & _reached(graph, label, without=claim.header)}
    if body & around:
        yield f"the loop of {claim.header} is entered around it"
    if isinstance(claim, CountedWitness):
        yield from _count_problems(graph, claim, body)


def _count_problems(graph: Graph, claim: CountedWitness, body: set[str]) -> Iterator[str]:
    head = graph.nodes[claim.header]
    for label in body:
        for edge in graph.nodes[label].edges:
            if edge.target not in body and edge.target != claim.header:
                yield f"{label} leaves the loop of {claim.header}"
            if edge.target == claim.header and not _adds(graph, edge, claim):
                yield f"{label} does not add {claim.step} to {claim.variable}"
    inside = [edge.target in body for edge in head.edges]
    if sum(inside) != 1 or not _tests(graph, claim, continues=inside[0]):
        yield f"{claim.header} does not test {claim.variable} against {claim.upper}"
    if isinstance(claim.upper, str) and any(claim.upper in graph.nodes[label].names for label in (*body, claim.header)):
        yield f"{claim.upper} changes in the loop of {claim.header}"


def _adds(graph: Graph, edge: Edge, claim: CountedWitness) -> bool:
    following = graph.facts.get(edge.arguments[claim.position])
    if not isinstance(following, Sum):
        return False
    sides = [following.left, following.right]
    if claim.variable not in sides:
        return False
    sides.remove(claim.variable)
    return graph.facts.get(sides[0]) == Number(claim.step)


def _tests(graph: Graph, claim: CountedWitness, *, continues: bool) -> bool:
    """Whether the loop goes on for a variable just inside the bound and for none at it, tried with numbers."""
    head = graph.nodes[claim.header]
    condition = head.facts.get(head.selector)
    if not isinstance(condition, Compared):
        return False
    other = condition.right if condition.left == claim.variable else condition.left
    known = graph.facts.get(other)
    given = known.value if isinstance(known, Number) else 0
    bound = claim.upper if isinstance(claim.upper, int) else 0
    if isinstance(claim.upper, str) and other != claim.upper:
        return False
    inside = bound - (1 if claim.step > 0 else -1)
    results = []
    for variable in (inside, bound):
        a, b = (variable, given) if condition.left == claim.variable else (given, variable)
        holds = {"slt": a < b, "sle": a <= b, "sgt": a > b, "sge": a >= b}.get(condition.predicate, False)
        results.append(holds is continues)
    return results == [True, False]
