"""The arrays of checked runs (`shadow`), which one run takes over from another as they are."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING, Final

import numpy as np

from loom_core.isa.commands import QUEUE_COUNT, SPACE_SRAM
from loom_sim import checker, footprint, shadow

if TYPE_CHECKING:
    from loom_sim.program import Binding, Program

FINDING_LIMIT: Final = 64


class MemoryShadow:
    """The state of checked runs, one after another. `base`: see `shadow`."""

    def __init__(self) -> None:
        self.base = 0
        self.check = np.zeros(shadow.CHECK_WORDS, np.int64)
        self._findings = np.zeros((FINDING_LIMIT, shadow.FINDING_WORDS), np.int64)
        self._log = np.empty(QUEUE_COUNT * shadow.LOG_LENGTH, np.uint32)
        self._boxes = np.empty(footprint.MOST_BOXES * footprint.BOX_WORDS, np.int64)
        self._suspects = np.empty(shadow.SUSPECT_LIMIT * shadow.SUSPECT_WORDS, np.int64)
        self._tokens = np.zeros((0, checker.TOKEN_WORDS), np.int64)
        self._spaces = np.zeros((0, shadow.SPACE_WORDS), np.int64)
        self._operands = np.empty(256 + 2, np.int64)
        self._levels = [np.zeros(0, np.uint32), np.zeros(0, np.uint32)]

    def begin(
        self, program: Program, bindings: Sequence[Binding], fresh: frozenset[int], grid: tuple[int, ...]
    ) -> None:
        """For a run; `fresh` as for `Program.check`."""
        obj, check = program.object, self.check
        self.base += 1 + max(footprint.PLAIN, footprint.ACCUMULATOR, footprint.PANEL)
        if self.base > shadow.NUMBER_LIMIT:
            self.base = 1 + max(footprint.PLAIN, footprint.ACCUMULATOR, footprint.PANEL)
            self._levels = [np.zeros(level.size, np.uint32) for level in self._levels]
        if len(self._tokens) < obj.machine.tokens:
            self._tokens = np.zeros((obj.machine.tokens, checker.TOKEN_WORDS), np.int64)
        self._tokens[program.facts.tokens, 0] = 0
        check[:] = 0
        check[shadow.FINDING_LIMIT] = FINDING_LIMIT
        check[shadow.BASE] = self.base
        check[shadow.COUNTS : shadow.CLOCKS + QUEUE_COUNT * QUEUE_COUNT] = self.base
        axes = [record.grid_axis for record in obj.loops if record.grid_axis] == ["z", "y", "x"]
        check[shadow.GRID] = axes and prod(grid) > 1
        facts = program.facts
        queues = facts.queues
        check[shadow.QUEUES] = len(queues)
        check[shadow.USED : shadow.USED + len(queues)] = queues
        check[[shadow.SLOTS + queue for queue in queues]] = range(len(queues))
        check[shadow.WINDOW_COUNT] = len(facts.windows)
        self._place_spaces(program, bindings, fresh, len(queues))
        for field, array in (
            (shadow.BOXES, self._boxes),
            (shadow.TOKENS, self._tokens),
            (shadow.LOG, self._log),
            (shadow.SUSPECTS, self._suspects),
            (shadow.FINDINGS, self._findings),
            (shadow.SPACE_TABLE, self._spaces),
            (shadow.WINDOWS, facts.windows),
            (shadow.NEXT_OPERANDS, self._operands),
        ):
            check[field] = array.ctypes.data

    def end(self) -> None:
        """After a run, whatever became of it: numbers go on behind those that it has used."""
        counts = self.check[shadow.COUNTS : shadow.COUNTS + QUEUE_COUNT]
        self.base = int(max(self.base, *counts, self.check[shadow.PROGRAM]))

    def findings(self) -> list[list[int]]:
        """Records of FINDING_WORDS words."""
        return self._findings[: self.check[shadow.FINDING_COUNT]].tolist()  # type: ignore[no-any-return]

    def _place_spaces(self, program: Program, bindings: Sequence[Binding], fresh: frozenset[int], queues: int) -> None:
        """The table of the spaces that are remembered: SRAM, and buffers that are written or fresh."""
        obj = program.object
        moved = program.facts.moved
        rows = [(SPACE_SRAM, 0, obj.machine.sram_bytes, program.facts.narrowest, 0, True, False)]
        for number, (address, low, high) in enumerate(bindings, 1):
            if (obj.abi.buffers[number - 1].written or number in fresh) and low < high:
                rows.append((number, low, high, moved, address, number in fresh, bool(self.check[shadow.GRID])))
        counts = [((high - low - 1) >> log2) + 1 for _, low, high, log2, *_ in rows]
        sizes = [shadow.area_words(count, queues) for count in counts]
        for level in range(2):
            needed = sum(size[level] for size in sizes)
            if self._levels[level].size < needed:
                self._levels[level] = np.zeros(needed, np.uint32)
        if len(self._spaces) < 1 + obj.spaces:
            self._spaces = np.zeros((1 + obj.spaces, shadow.SPACE_WORDS), np.int64)
        self._spaces[:] = 0
        at = [level.ctypes.data for level in self._levels]
        for (number, low, _, log2, host, layouts, programs), count, size in zip(rows, counts, sizes, strict=True):
            self._spaces[number, : shadow.NEWEST] = (*at, low, count, log2, host, layouts, programs)
            at = [place + 4 * words for place, words in zip(at, size, strict=True)]
