"""Ratios of two implementations of the same work, measured side by side in one process."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass

MIN_SAMPLE_SECONDS = 20e-3
PAIRS = 9
SLOW_PAIRS = 3
SLOW_SECONDS = 1.0


@dataclass(frozen=True)
class Comparison:
    """Seconds of CPU time per call, medians, and the median of the pairwise ratios theirs / ours."""

    ours: float
    theirs: float
    ratio: float
    pairs: int


Clock = Callable[[], float]


def compare(
    ours: Callable[[], object],
    theirs: Callable[[], object],
    pairs: int = PAIRS,
    clock: Clock = time.thread_time,
) -> Comparison:
    """Warm both, then alternate them; a side that takes over a second is measured in 3 pairs, the others in at least 9.

    Each sample repeats its side until it is at least 20 ms long, so that what the other side left in the caches does
    not matter. `clock`: the time of this thread, or of the process for a side that works in threads of its own.
    """
    repeats = [_repeats(side, clock) for side in (ours, theirs)]
    if max(seconds for _, seconds in repeats) > SLOW_SECONDS:
        pairs = SLOW_PAIRS
    samples: list[tuple[float, float]] = []
    for _ in range(pairs):
        mine = _sample(ours, repeats[0][0], clock)
        samples.append((mine, _sample(theirs, repeats[1][0], clock)))
    return Comparison(
        statistics.median(mine for mine, _ in samples),
        statistics.median(other for _, other in samples),
        statistics.median(other / mine for mine, other in samples),
        pairs,
    )


def _repeats(side: Callable[[], object], clock: Clock) -> tuple[int, float]:
    """How often to repeat, and the seconds of one warm call."""
    side()
    seconds = _sample(side, 1, clock)
    return max(1, round(MIN_SAMPLE_SECONDS / max(seconds, 1e-9))), seconds


def _sample(side: Callable[[], object], repeats: int, clock: Clock) -> float:
    start = clock()
    for _ in range(repeats):
        side()
    return (clock() - start) / repeats
