"""Waits: which earlier commands on other queues each command must see complete.

A command that somebody waits for signals a token of its own; a wait covers all signals issued on the token so far, less
a lag. Of a window with several slots a reader lags behind the loads for later iterations that have been issued before
it, and what fills a slot again behind the stores of the other slots. No wait is made for what is known anyway:

  queue       engines run their queues in order, so of the conflicting commands on one queue the latest is enough
  transitive  a store that waits for a program need not wait for the load that the program waited for
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from loom_core.codegen.emitter import Access, Emitted, Emitter, Window
from loom_core.isa.commands import Queue
from loom_core.isa.encoding import Label, Wait


@dataclass(frozen=True)
class Synchronisation:
    """What a command waits for, and the token that it signals (0: none)."""

    waits: tuple[Wait, ...] = ()
    signal: int = 0


@dataclass(eq=False)
class _Site:
    """A command that touches memory.

    `path`: the loops and branches around it. `follows`: what it waits for and always comes after. `known`: by queue,
    the position of a site whose last run is complete when this one starts, because it always comes before. `drained`:
    positions of sites all runs of which are complete.
    """

    index: int
    position: int
    item: Emitted
    path: tuple[int, ...]
    waits: dict[Hashable, int] = field(default_factory=dict)
    follows: list[_Site] = field(default_factory=list)
    known: dict[int, int] = field(default_factory=dict)
    drained: set[int] = field(default_factory=set)

    @property
    def signaller(self) -> Hashable:
        """What a wait for this command names: its stream, else the command."""
        return self.item.stream if self.item.stream is not None else self.index

    def always_after(self, other: _Site) -> bool:
        """Whether an `other` that stands before this one has run whenever this one runs."""
        return self.path[: len(other.path)] == other.path

    def complete(self, queue: int) -> int:
        """The latest position of a queue that is complete when this command is."""
        return self.position if queue == self.item.queue else self.known.get(queue, -1)


def assign_tokens(emitter: Emitter, may_alias_bindings: bool, tokens: int) -> dict[int, Synchronisation]:
    """Waits and signals by index into `emitter.items`; `tokens` is how many the machine has, number 0 included."""
    sites = list(_sites(emitter))
    _Waits(sites, may_alias_bindings).find()
    return _numbered(sites, tokens)


def _sites(emitter: Emitter) -> Iterator[_Site]:
    """Memory commands with the loops (by start) and branches (by start, negative) around them."""
    path: list[int] = []
    ends: dict[Label, int] = {}
    tops = {item.operands[0]: 0 for item in emitter.items if isinstance(item, Emitted) and item.mnemonic == "while"}
    position = 0
    for index, item in enumerate(emitter.items):
        if isinstance(item, Label):
            if item in ends:
                path.remove(ends.pop(item))
            elif item in tops:
                tops[item] = index + 1
                path.append(index + 1)
        elif item.mnemonic == "while":
            path.remove(tops[item.operands[0]])
        elif item.mnemonic == "loop":
            path.append(index + 1)
        elif item.mnemonic == "endloop":
            path.pop()
        elif item.mnemonic in ("brz", "brnz", "jump"):
            label = next(operand for operand in item.operands if isinstance(operand, Label))
            path.append(-index - 1)
            ends[label] = -index - 1
        elif item.accesses:
            yield _Site(index, position, item, tuple(path))
            position += 1


# ---- conflicts ----


class _Conflicts:
    """Which sites touch the same bytes."""

    def __init__(self, sites: list[_Site], may_alias: bool) -> None:
        self._touching: dict[Window | int, list[tuple[_Site, Access]]] = defaultdict(list)
        for site in sites:
            for access in site.item.accesses:
                self._touching[access.target].append((site, access))
        self._meeting = _meeting_targets(self._touching, may_alias)

    def of(self, site: _Site) -> dict[int, int]:
        """Positions of the sites that this one must wait for, and the lag that each wait may have.

        Commands on one queue are in order, and those of the ACP are complete when they have been issued.
        """
        found: dict[int, int] = {}
        for mine in site.item.accesses:
            for target in self._meeting[mine.target]:
                for other, access in self._touching[target]:
                    if (mine.write or access.write) and other.item.queue not in (site.item.queue, Queue.ACP):
                        lag = _lag(access, mine, other.position > site.position)
                        found[other.position] = min(lag, found.get(other.position, lag))
        return found


def _lag(earlier: Access, later: Access, previous: bool) -> int:
    """How many runs of the earlier command touch other slots; `previous`: it stands later, in an earlier iteration."""
    if earlier.target is not later.target or not isinstance(earlier.target, Window) or later.phase != "cur":
        return 0
    others = earlier.phase == "cur" if previous else earlier.phase == "next"
    return earlier.target.slots - 1 if others else 0


Target = Window | int


def _meeting_targets(targets: Iterable[Target], may_alias: bool) -> dict[Target, list[Target]]:
    """For each target those, with itself, that have bytes in common with it."""
    windows = sorted((target for target in targets if isinstance(target, Window)), key=lambda w: w.offset)
    meeting: dict[Target, list[Target]] = {window: [window] for window in windows}
    before: list[Window] = []
    for window in windows:
        before = [other for other in before if other.offset + other.total > window.offset]
        for other in before:
            meeting[window].append(other)
            meeting[other].append(window)
        before.append(window)
    bindings = [target for target in targets if not isinstance(target, Window)]
    meeting.update((binding, list(bindings) if may_alias else [binding]) for binding in bindings)
    return meeting


# ---- waits ----


class _Waits:
    """Finds the waits of all sites."""

    def __init__(self, sites: list[_Site], may_alias: bool) -> None:
        self._sites = sites
        self._conflicts = _Conflicts(sites, may_alias)
        self._of_signaller: dict[Hashable, list[int]] = defaultdict(list)
        for site in sites:
            self._of_signaller[site.signaller].append(site.position)

    def find(self) -> None:
        """What is known in one iteration comes first: much of what concerns the previous one follows from it."""
        for site in self._learning():
            self._wait_for_earlier(site)
        for site in self._learning():
            self._wait_for_previous(site)

    def _learning(self) -> Iterator[_Site]:
        """The sites in order, each with what follows from its queue, from the ACP standing still, from its waits."""
        latest: dict[int, list[_Site]] = defaultdict(list)
        for site in self._sites:
            for other in site.follows:
                self._learn(site, other)
            for queue in {site.item.queue, Queue.ACP}:
                before = next((other for other in reversed(latest[queue]) if site.always_after(other)), None)
                if before is not None:
                    self._learn(site, before)
            yield site
            latest[site.item.queue].append(site)

    def _learn(self, site: _Site, other: _Site) -> None:
        """`other`, which always runs before `site`, is complete; with it what it knew."""
        for queue, known in (*other.known.items(), (other.item.queue, other.position)):
            site.known[queue] = max(known, site.known.get(queue, -1))
        site.drained |= {p for p in other.drained if not _runs_between(other, self._sites[p], site)}

    def _wait_for_earlier(self, site: _Site) -> None:
        """Wait for commands that stand before this one, the latest first."""
        lags = self._conflicts.of(site)
        lagged: set[int] = set()  # queues with a wait that lags behind
        for other in [self._sites[p] for p in sorted(lags, reverse=True) if p < site.position]:
            queue, lag = other.item.queue, lags[other.position]
            if site.known.get(queue, -1) >= other.position or (lag and queue in lagged):
                continue
            if _is_implied(other, [self._sites[p] for p in site.drained if p < site.position]):
                continue
            if other.item.stream is not None and other.signaller in site.waits:
                continue  # the later load of the stream was met first: lagging behind it covers the older ones
            self._wait(site, other, lag)
            if lag and site.always_after(other):
                lagged.add(queue)
            for position in self._of_signaller[other.signaller]:
                done = self._sites[position]
                # What has been issued last is not complete under a lag, but a single load before the loop is.
                complete = lag == 0 or (lag == 1 and done is not other)
                if complete and position < site.position and site.always_after(done):
                    site.follows.append(done)
                    self._learn(site, done)

    def _wait_for_previous(self, site: _Site) -> None:
        """Wait for commands that stand after this one, in the previous iteration of a loop around both."""
        lags = self._conflicts.of(site)
        later = [self._sites[p] for p in sorted(lags, reverse=True) if p > site.position]
        for loop in (loop for loop in site.path if loop > 0):
            for other in (other for other in later if loop in other.path):
                queue = other.item.queue
                later_is_complete = queue in site.known and loop in self._sites[site.known[queue]].path
                drained = [self._sites[p] for p in site.drained if loop in self._sites[p].path]
                if not later_is_complete and not _is_implied(other, drained):
                    self._wait(site, other, lags[other.position])

    def _wait(self, site: _Site, other: _Site, lag: int) -> None:
        site.waits[other.signaller] = lag
        if not lag:
            site.drained.update(self._of_signaller[other.signaller])


def _runs_between(first: _Site, other: _Site, last: _Site) -> bool:
    """Whether `other` may run between the last run of `first` and the run of `last` that follows."""
    in_loop_of_last = any(loop > 0 and loop in last.path and loop not in first.path for loop in other.path)
    return in_loop_of_last or first.position < other.position < last.position


def _is_implied(other: _Site, drained: list[_Site]) -> bool:
    """Whether all runs of a command are complete because all runs of one in `drained` are.

    That one is the command, or comes after it whenever it runs, and starts when it is complete.
    """
    return any(
        other.path[: len(done.path)] == done.path and done.complete(other.item.queue) >= other.position
        for done in drained
    )


# ---- tokens ----


def _numbered(sites: list[_Site], tokens: int) -> dict[int, Synchronisation]:
    """Give tokens to what is waited for: one each, or where there are too few one a queue, or one for all.

    Waits on a shared token wait for more than they need, without lag.
    """
    waited = dict.fromkeys(signaller for site in sites for signaller in site.waits)
    queues = {site.signaller: site.item.queue for site in sites}
    grains: list[Callable[[Hashable], Hashable]] = [lambda s: s, lambda s: queues[s], lambda s: None]
    for grain in grains:
        numbers: dict[Hashable, int] = {}
        for signaller in waited:
            numbers.setdefault(grain(signaller), len(numbers) + 1)
        if len(numbers) < tokens:
            break
    by_signaller = {signaller: numbers[grain(signaller)] for signaller in waited}
    return {site.index: _synchronisation(site, by_signaller, grain is grains[0]) for site in sites}


def _synchronisation(site: _Site, numbers: Mapping[Hashable, int], lags: bool) -> Synchronisation:
    waits = {numbers[signaller]: lag if lags else 0 for signaller, lag in site.waits.items()}
    ordered = tuple(Wait(token, lag) for token, lag in waits.items())
    return Synchronisation(ordered, numbers.get(site.signaller, 0))
