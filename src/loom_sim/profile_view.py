"""A profile in a notebook: when each queue works and waits, and the tables of `loomc profile`."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt

from loom_core.base.html import ACP, DMA, MXU, SCE, WAITING, Markup, bar, document, join, table, tag
from loom_core.isa.commands import Queue

if TYPE_CHECKING:
    from loom_sim.profile import Profile
    from loom_sim.trace import Trace

WIDTH: Final = 880
LABELS: Final = 56
ROW: Final = 22
LEVELS: Final = 5
TICKS: Final = 8
LINES_SHOWN: Final = 8
_COLOURS: Final = {"DMA": DMA, "MXU": MXU, "SCE": SCE, "ACP": ACP}


def profile_html(profile: Profile) -> str:
    """The whole display of a profile."""
    trace = profile.trace
    where = f"{trace.cores} cores" if trace.parts else "one core"
    title = f"{trace.cycles:,} cycles ({profile.microseconds:,.1f} us) on {where} of {trace.machine}"
    advice = [tag("div", text, class_="faint") for text in profile.verdict.advice]
    return document(
        tag("div", tag("b", trace.kernel), " ", title),
        timeline(trace),
        table(("queue", "commands", "", "busy", "waits", "empty"), _queue_rows(trace)),
        table(("limit", "", "reached", "cycles at least"), _limit_rows(profile)),
        tag("div", profile.verdict.text),
        *advice,
        table(("line", "queue", "command", "commands", "busy", "waiting"), _line_rows(profile)),
    )


def colour(queue: str) -> str:
    """The colour of a queue."""
    return _COLOURS[queue[:3]]


def _queue_rows(trace: Trace) -> Iterator[tuple[object, ...]]:
    whole = max(trace.cycles * trace.cores, 1)
    for name, use in trace.queues.items():
        if use.commands:
            shares = [part / whole for part in (use.busy, use.waiting, use.empty)]
            picture = bar([(shares[0], colour(name), "busy"), (shares[1], WAITING, "waits for a token")])
            yield name, use.commands, picture, *(f"{share:.1%}" for share in shares)


def _limit_rows(profile: Profile) -> Iterator[tuple[object, ...]]:
    whole = max(profile.trace.cycles, 1)
    for limit in profile.limits:
        share = min(limit.cycles / whole, 1)
        yield limit.name, bar([(share, "#8a8a8a", limit.name)]), f"{share:.1%}", round(limit.cycles)


def _line_rows(profile: Profile) -> Iterator[tuple[object, ...]]:
    for use in profile.lines[:LINES_SHOWN]:
        yield use.source, use.queue, use.what, use.commands, use.busy, use.waiting


# ---- the timeline ----


def timeline(trace: Trace) -> Markup:
    """A row a queue of each core, time to the right: how much of each moment it works (above), and waits (below)."""
    events = trace.events
    if not len(events):
        return tag("div", "no engine was given a command", class_="faint")
    complete = len(events) == trace.events_total
    end = max(trace.cycles if complete else int(events["freed"].max()), 1)
    drawn, y = [], 4
    for core, part in enumerate(trace.parts or (trace,)):
        if trace.parts:
            drawn.append(tag("text", f"core {core}", x=0, y=y + 10, class_="faint"))
            y += ROW - 6
        for queue in Queue:
            chosen = part.events[part.events["queue"] == queue]
            if len(chosen):
                drawn.append(_row(queue.name, chosen, end, y, part))
                y += ROW
    drawn.append(_axis(end, y))
    note = "" if complete else f" the first {len(events):,} of {trace.events_total:,} commands;"
    legend = f"{note} above: works, below: waits for a token"
    picture = tag("svg", *drawn, width=LABELS + WIDTH + 8, height=y + 20, role="img", viewBox=_view(y))
    return join((picture, tag("div", legend.strip(), class_="faint")))


def _view(y: int) -> str:
    return f"0 0 {LABELS + WIDTH + 8} {y + 20}"


def _row(name: str, events: npt.NDArray[Any], end: int, y: int, trace: Trace) -> Markup:
    use = trace.queues[name]
    whole = max(trace.cycles, 1)
    title = f"{name}: {use.commands:,} commands, busy {use.busy / whole:.1%}, waits {use.waiting / whole:.1%}"
    before = np.concatenate(([0], events["freed"][:-1]))
    parts = [
        tag("title", title),
        tag("text", name, x=0, y=y + 12),
        tag("rect", x=LABELS, y=y, width=WIDTH, height=ROW - 6, fill="rgba(127,127,127,.12)"),
        *_runs(events["started"], events["freed"], end, y, ROW - 10, colour(name)),
        *_runs(np.maximum(events["issued"], before), events["started"], end, y + ROW - 10, 4, WAITING),
    ]
    return tag("g", *parts)


def coverage(starts: npt.NDArray[Any], ends: npt.NDArray[Any], end: int, columns: int) -> npt.NDArray[np.float64]:
    """The part (0 to 1) of each of `columns` equal pieces of [0, end) that the intervals, in order and apart, cover."""
    times = np.stack((starts, ends), axis=1).ravel()
    covered = np.stack((np.zeros_like(starts), ends - starts), axis=1).ravel().cumsum()
    edges = np.linspace(0, end, columns + 1)
    found: npt.NDArray[np.float64] = np.diff(np.interp(edges, times, covered)) / (end / columns)
    return found


def _runs(
    starts: npt.NDArray[Any], ends: npt.NDArray[Any], end: int, y: int, height: int, stroke: str
) -> Iterator[Markup]:
    """A path for each level of coverage, with a line for each stretch that has it."""
    columns = min(WIDTH, end)
    levels = np.ceil(coverage(starts, ends, end, columns) * LEVELS - 1e-6).astype(int)
    borders = [0, *(np.flatnonzero(np.diff(levels)) + 1).tolist(), columns]
    step = WIDTH / columns
    lines: dict[int, str] = defaultdict(str)
    for first, last in pairwise(borders):
        lines[int(levels[first])] += f"M{LABELS + first * step:.4g} {y + height / 2:g}h{(last - first) * step:.4g}"
    lines.pop(0, None)
    for level, drawn in lines.items():
        opacity = None if level == LEVELS else level / LEVELS
        yield tag("path", d=drawn, stroke=stroke, stroke_width=height, stroke_opacity=opacity)


def _axis(end: int, y: int) -> Markup:
    step = tick_step(end)
    parts = []
    for cycle in range(0, end + 1, step):
        x = LABELS + WIDTH * cycle / end
        parts.append(tag("path", d=f"M{x:.1f} {y - 4}v4", stroke="currentColor", stroke_opacity=0.5))
        anchor = "start" if not cycle else "end" if x > LABELS + WIDTH - 24 else "middle"
        parts.append(tag("text", f"{cycle:,}", x=f"{x:.1f}", y=y + 12, text_anchor=anchor))
    return tag("g", *parts)


def tick_step(end: int) -> int:
    """1, 2 or 5 times a power of ten, so that at most `TICKS` steps make `end`."""
    power = 1
    while True:
        for factor in (1, 2, 5):
            if end <= factor * power * TICKS:
                return factor * power
        power *= 10
