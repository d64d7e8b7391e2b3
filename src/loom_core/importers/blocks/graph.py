"""Blocks and branches between them, as any foreign program has them, and what their graph tells: dominance, loops.

A name belongs to one block (its parameter, or the result of an operation in it) and is used where that block dominates:
static single assignment.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

END: Final = ""
"""Where a function ends, as a block that all returns go to."""

MOST_BLOCKS: Final = 2000


class Unstructured(Exception):
    """A graph that cannot be made of loops and branches: at which block, and why."""

    def __init__(self, label: str, reason: str) -> None:
        super().__init__(f"{label}: {reason}")
        self.label = label
        self.reason = reason


@dataclass(frozen=True)
class Compared:
    """`left predicate right` of integers of `bits` bits; predicates are `slt`, `sle`, `sgt`, `sge`."""

    predicate: str
    left: str
    right: str
    bits: int


@dataclass(frozen=True)
class Sum:
    """`left + right`; `exact` where the program promises that it does not wrap."""

    left: str
    right: str
    exact: bool = False


@dataclass(frozen=True)
class Number:
    """A constant integer."""

    value: int


Fact = Compared | Sum | Number
"""What is known about how a name is computed."""


@dataclass(frozen=True)
class Edge:
    """A way out of a block, with the names that it hands over."""

    target: str
    arguments: tuple[str, ...] = ()


@dataclass(frozen=True)
class Node:
    """A block: what its graph needs to know.

    `uses` are all names that it reads, in branches too, `results` those that it defines beside its parameters.
    `selector` chooses among several edges: a truth value takes the first where it holds, an integer the edge at its
    place in `cases`, the last edge where it is none of them. `repeatable`: nobody sees how often its operations run.
    """

    label: str
    edges: tuple[Edge, ...]
    parameters: tuple[str, ...] = ()
    uses: frozenset[str] = frozenset()
    results: frozenset[str] = frozenset()
    selector: str = ""
    cases: tuple[int, ...] = ()
    repeatable: bool = False
    facts: Mapping[str, Fact] = field(default_factory=dict)

    @property
    def names(self) -> frozenset[str]:
        """What it defines."""
        return self.results.union(self.parameters)


@dataclass(frozen=True)
class NaturalLoop:
    """A loop: the one block by which it is entered, those that jump back there, and all that it consists of."""

    header: str
    latches: tuple[str, ...]
    blocks: frozenset[str]


class Graph:
    """The blocks that are reached from `entry`. Unstructured where it is too large or a loop has two entries."""

    def __init__(self, nodes: Iterable[Node], entry: str) -> None:
        self.nodes = {node.label: node for node in nodes}
        self.entry = entry
        self.order = self._reverse_postorder()
        """The blocks, each before those that it alone leads to."""
        self.rank = {label: number for number, label in enumerate(self.order)}
        if len(self.order) > MOST_BLOCKS:
            raise Unstructured(entry, f"there are more than {MOST_BLOCKS} blocks")
        self.sources: dict[str, list[str]] = {label: [] for label in (*self.order, END)}
        for label in self.order:
            for edge in self.nodes[label].edges:
                self.sources[edge.target].append(label)
        self.dominator = self._dominators()
        """The last block on every way to a block; not for the entry."""
        self.loops = self._loops()
        self.facts = {name: fact for label in self.order for name, fact in self.nodes[label].facts.items()}
        self.live = self._live()
        """The names that a block, or what follows it, reads and does not define."""

    def _reverse_postorder(self) -> list[str]:
        found: list[str] = []
        seen = {self.entry, END}
        stack = [(self.entry, iter(self.nodes[self.entry].edges))]
        while stack:
            label, edges = stack[-1]
            for edge in edges:
                if edge.target not in seen:
                    seen.add(edge.target)
                    stack.append((edge.target, iter(self.nodes[edge.target].edges)))
                    break
            else:
                found.append(label)
                stack.pop()
        return found[::-1]

    def _dominators(self) -> dict[str, str]:
        """Cooper, Harvey and Kennedy: A Simple, Fast Dominance Algorithm."""
        found = {self.entry: self.entry}
        changed = True
        while changed:
            changed = False
            for label in self.order[1:]:
                known = [source for source in self.sources[label] if source in found]
                common = known[0]
                for other in known[1:]:
                    while common != other:
                        while self.rank[common] > self.rank[other]:
                            common = found[common]
                        while self.rank[other] > self.rank[common]:
                            other = found[other]
                if found.get(label) != common:
                    found[label], changed = common, True
        del found[self.entry]
        return found

    def dominates(self, first: str, second: str) -> bool:
        """Whether every way to `second` passes `first`."""
        while self.rank[second] > self.rank[first]:
            second = self.dominator[second]
        return first == second

    def _loops(self) -> dict[str, NaturalLoop]:
        latches: dict[str, list[str]] = {}
        for label in self.order:
            for target in dict.fromkeys(edge.target for edge in self.nodes[label].edges):
                if target == END or self.rank[target] > self.rank[label]:
                    continue
                if not self.dominates(target, label):
                    raise Unstructured(label, "it jumps back into a loop that is entered at several blocks")
                latches.setdefault(target, []).append(label)
        return {header: NaturalLoop(header, tuple(ends), self._body(header, ends)) for header, ends in latches.items()}

    def _body(self, header: str, latches: Sequence[str]) -> frozenset[str]:
        found, pending = {header}, [label for label in latches if label != header]
        while pending:
            label = pending.pop()
            if label not in found:
                found.add(label)
                pending += self.sources[label]
        return frozenset(found)

    def around(self, label: str) -> list[NaturalLoop]:
        """The loops that hold a block, the innermost first."""
        return sorted((loop for loop in self.loops.values() if label in loop.blocks), key=lambda loop: len(loop.blocks))

    def _live(self) -> dict[str, frozenset[str]]:
        found: dict[str, frozenset[str]] = dict.fromkeys((*self.order, END), frozenset())
        changed = True
        while changed:
            changed = False
            for label in reversed(self.order):
                node = self.nodes[label]
                after = frozenset().union(*(found[edge.target] for edge in node.edges))
                live = (node.uses | after) - node.names
                if live != found[label]:
                    found[label], changed = live, True
        return found
