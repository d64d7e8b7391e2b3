"""Waits: which earlier commands on other queues each command must see complete.

Engines run their queues in order, so of the conflicting commands on one queue only the latest matters. A command that
somebody waits for signals a token of its own; a wait covers all signals issued on the token so far, less a lag: a
reader of a double-buffered window lags one behind, since the load for the next iteration has been issued before it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from loom_core.codegen.emitter import Access, Emitted, Emitter, Window
from loom_core.isa.commands import MAX_WAITS, SPACE_SRAM, Queue
from loom_core.isa.encoding import Label, Wait


@dataclass(eq=False)
class _Site:
    """A command that touches memory. `path`: the loops and branches around it."""

    index: int
    item: Emitted
    path: tuple[int, ...]
    waits: dict[object, int] = field(default_factory=dict)

    @property
    def signaller(self) -> object:
        """What a wait for this command names: its stream, else the command."""
        return self.item.stream if self.item.stream is not None else self.index


def assign_tokens(emitter: Emitter, may_alias_bindings: bool) -> dict[int, tuple[tuple[Wait, ...], int]]:
    """Waits and signal token of every command that has any, by index into `emitter.items`."""
    sites = list(_sites(emitter))
    for position, site in enumerate(sites):
        _find_waits(sites, position, site, may_alias_bindings)
    tokens: dict[object, int] = {}
    for site in sites:
        for signaller in site.waits:
            tokens.setdefault(signaller, len(tokens) + 1)
    return {
        site.index: (
            tuple(Wait(tokens[signaller], lag) for signaller, lag in site.waits.items()),
            tokens.get(site.signaller, 0),
        )
        for site in sites
        if site.waits or site.signaller in tokens
    }


def _sites(emitter: Emitter) -> Iterator[_Site]:
    """Memory commands with the loops (by start) and branches (by start, negative) around them."""
    path: list[int] = []
    ends: dict[Label, int] = {}
    for index, item in enumerate(emitter.items):
        if isinstance(item, Label):
            if item in ends:
                path.remove(ends.pop(item))
        elif item.mnemonic == "loop":
            path.append(index + 1)
        elif item.mnemonic == "endloop":
            path.pop()
        elif item.mnemonic in ("brz", "jump"):
            label = next(operand for operand in item.operands if isinstance(operand, Label))
            path.append(-index - 1)
            ends[label] = -index - 1
        elif item.accesses:
            yield _Site(index, item, tuple(path))


def _find_waits(sites: list[_Site], position: int, site: _Site, may_alias: bool) -> None:
    covered: set[tuple[int, int]] = set()

    def consider(other: _Site, certain: bool) -> None:
        queue = other.item.queue
        if queue == site.item.queue or queue == Queue.ACP or (queue, 0) in covered:
            return
        lag = _conflict(other.item, site.item, may_alias)
        if lag is None or (queue, lag) in covered:
            return
        # In a stream the first load is older than the ones that run ahead: lagging behind those covers it.
        lags = (lag, site.waits.get(other.signaller, lag))
        site.waits[other.signaller] = min(lags) if other.item.stream is None else max(lags)
        if certain:
            covered.add((queue, lag))

    for other in reversed(sites[:position]):
        consider(other, site.path[: len(other.path)] == other.path)
    for depth, loop in enumerate(site.path):
        if loop > 0:
            inside = site.path[: depth + 1]
            covered.clear()
            for other in reversed(sites[position:]):
                if other.path[: depth + 1] == inside:
                    consider(other, other.path == inside)


def _conflict(earlier: Emitted, later: Emitted, may_alias: bool) -> int | None:
    """The lag with which `later` must wait for `earlier`, or None where they do not touch the same bytes."""
    lags = [
        _lag(a, b)
        for a in earlier.accesses
        for b in later.accesses
        if (a.write or b.write) and _overlap(a, b, may_alias)
    ]
    return min(lags) if lags else None


def _lag(earlier: Access, later: Access) -> int:
    return int(earlier.target is later.target and earlier.phase == "next" and later.phase == "cur")


def _overlap(a: Access, b: Access, may_alias: bool) -> bool:
    if isinstance(a.target, Window) and isinstance(b.target, Window):
        return a.target.offset < b.target.offset + b.target.total and b.target.offset < a.target.offset + a.target.total
    if isinstance(a.target, Window) or isinstance(b.target, Window) or SPACE_SRAM in (a.target, b.target):
        return False
    return a.target == b.target or may_alias


def excess_waits(waits: tuple[Wait, ...]) -> list[tuple[Wait, ...]]:
    """Cut a list of waits into parts that fit one command each, the last first."""
    parts = [waits[i : i + MAX_WAITS] for i in range(0, len(waits), MAX_WAITS)]
    return parts[::-1] or [()]
