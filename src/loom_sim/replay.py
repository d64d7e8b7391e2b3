"""Race replay: the same run with other engine speeds, compared bit for bit.

No result of a program depends on how fast engines are. Each further run holds commands back and lets them go in an
order of its own that tokens allow (`deferral`); where a byte of a buffer differs afterwards, the two commands whose
order decides it are searched for by running again and again.
"""

from __future__ import annotations

import ctypes
import random
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt

from loom_core.base.diagnostics import Diagnostic
from loom_core.isa.commands import QUEUE_COUNT, Queue
from loom_sim import deferral, engines, footprint
from loom_sim import state as words
from loom_sim.errors import ResultDependsOnSpeed
from loom_sim.findings import notes_of

if TYPE_CHECKING:
    from loom_sim.program import Binding, Program, Registers

Bytes = npt.NDArray[np.uint8]
_NO_LIMIT: Final = 1 << 62
_SEARCHES: Final = 4  # differences that are traced to their commands


class Replay:
    """Runs of one program on the same memory."""

    def __init__(self, program: Program, bindings: Sequence[Binding], registers: Registers) -> None:
        from loom_sim.program import Launch, engine_call

        self._program = program
        self._launch = Launch(program, engine_call(engines.replaying_interpreter_address()))
        self._launch.fill(bindings, registers)
        self._drain = engine_call(engines.drain_address())
        self._written = [
            (number, binding) for number, binding in enumerate(bindings) if program.object.abi.buffers[number].written
        ]
        self._before = self._memory()
        self._command_limit = 0
        self._races: Sequence[tuple[int, int]] = ()
        self._replay = np.zeros(deferral.REPLAY_WORDS, np.int64)
        self._rings = np.empty(QUEUE_COUNT * deferral.DEPTH * deferral.ENTRY_WORDS, np.int64)
        self._tokens = np.zeros(2 * program.object.machine.tokens, np.int64)
        self._boxes = np.empty(QUEUE_COUNT * footprint.MOST_BOXES * footprint.BOX_WORDS, np.int64)
        self._saved = np.empty(QUEUE_COUNT * program.object.machine.sram_bytes, np.uint8)

    def _memory(self) -> list[Bytes]:
        return [_bytes(binding).copy() for _, binding in self._written]

    def _restore(self, memory: Sequence[Bytes]) -> None:
        for (_, binding), content in zip(self._written, memory, strict=True):
            _bytes(binding)[:] = content

    def findings(self, runs: int, executed: int, races: Sequence[tuple[int, int]]) -> Iterator[Diagnostic]:
        """What differs between the run that has just been made and `runs` others; memory is left as it was made.

        `executed`: commands of that run; a run of many more has read a loop's bound too early. `races`: words of the
        pairs (later, earlier) that miss a wait for each other, as far as that is known.
        """
        self._command_limit = 2 * executed
        self._races = races
        expected = self._memory()
        known: set[tuple[int, int]] = set()
        try:
            for seed in range(runs):
                place = self._difference(seed, expected)
                if place is None or self._difference(seed, expected, 0) is not None:
                    continue  # what differs in the order of issue was never written, which the check itself finds
                if len(known) < _SEARCHES:
                    self._difference(seed, expected)
                    later, earlier = self._search(seed, expected)
                    if (later, earlier) not in known:
                        known.add((later, earlier))
                        yield self._diagnostic(seed, place, later, earlier)
        finally:
            self._restore(expected)

    def _difference(self, seed: int, expected: Sequence[Bytes], limit: int = _NO_LIMIT, bound: int = 0) -> str | None:
        """The first element that a run with the speeds of `seed` leaves other than expected."""
        self._restore(self._before)
        fault = self._run(seed, limit, bound)
        if fault is not None:
            return fault
        for (number, binding), content in zip(self._written, expected, strict=True):
            found = _bytes(binding)
            if not np.array_equal(found, content):
                arg = self._program.object.abi.buffers[number]
                byte = int(np.flatnonzero(found != content)[0]) + binding[1]
                return f"{arg.name}[{byte // _itemsize(arg.dtype)}]"
        return None

    def _run(self, seed: int, limit: int, bound: int) -> str | None:
        """One run; what became of it where it failed."""
        from loom_core.base.diagnostics import LoomError

        self._replay[:] = 0
        self._tokens[:] = 0
        self._replay[deferral.LIMIT], self._replay[deferral.BOUND] = limit, bound
        self._replay[deferral.RINGS] = self._rings.ctypes.data
        self._replay[deferral.TOKENS] = self._tokens.ctypes.data
        self._replay[deferral.BOXES] = self._boxes.ctypes.data
        self._replay[deferral.SAVED] = self._saved.ctypes.data
        self._replay[deferral.SAVED_BYTES] = self._program.object.machine.sram_bytes
        self._replay[deferral.STARTED : deferral.STARTED + QUEUE_COUNT] = deferral.NOT_STARTED
        queues = self._queues()
        self._replay[deferral.RANKS : deferral.RANKS + QUEUE_COUNT] = _ranks(seed, queues)
        self._replay[deferral.RANDOM] = random.Random(seed).getrandbits(62) | 1 if seed >= len(queues) else 0
        self._launch.state[words.REPLAY] = self._replay.ctypes.data
        try:
            status = self._launch.follow(self._command_limit, sram_fill=_FILLS[seed % len(_FILLS)], then=self._drain)
        except LoomError as error:
            return f"the run's end ({error.diagnostics[0].message})"
        failed = int(self._replay[deferral.STATUS]) or (status if status != words.HALTED else words.OK)
        if failed == words.OK:
            return None
        return f"the run's end ({self._launch.fault(failed).diagnostics[0].message})"

    def _queues(self) -> list[int]:
        found = {command.queue for command in self._program.commands.values()}
        return sorted(found - {int(Queue.ACP)})

    def _search(self, seed: int, expected: Sequence[Bytes]) -> tuple[int, int]:
        """Words of the command that ran too early, and of the one that it should have waited for."""
        choices = int(self._replay[deferral.CHOICES])
        last = _least(choices, lambda limit: self._difference(seed, expected, limit) is not None)
        number = int(self._replay[deferral.CHOSEN_NUMBER])
        _least(number, lambda left: self._difference(seed, expected, last, number - left) is not None)
        found = int(self._replay[deferral.CHOSEN]), int(self._replay[deferral.PASSED])
        if not self._races or found in self._races:
            return found
        # The search ends where the order last mattered; what began before it may be of a pair that is known.
        return next((pair for pair in self._races if pair[0] == found[0]), self._races[0])

    def _diagnostic(self, seed: int, place: str, later: int, earlier: int) -> Diagnostic:
        program = self._program
        first, second = program.commands[earlier], program.commands[later]
        return ResultDependsOnSpeed.diagnostic(
            program.location_of(later),
            notes=(*notes_of(program, later, earlier), f"found with seed {seed}"),
            place=place,
            command=second.mnemonic,
            other=first.mnemonic,
        )


_FILLS: Final = (0xFF, 0x00, 0x7F, 0xA5)
"""What SRAM holds at the start."""


def _ranks(seed: int, queues: Sequence[int]) -> list[int]:
    """Each queue in turn is the slow one; the order of the others is random. Later seeds leave all to chance."""
    order = list(queues)
    random.Random(seed).shuffle(order)
    if order:
        slow = queues[seed % len(queues)]
        order.remove(slow)
        order.insert(0, slow)
    ranks = [0] * QUEUE_COUNT
    for rank, queue in enumerate(order, 1):
        ranks[queue] = rank
    return ranks


def _least(high: int, holds: Callable[[int], bool]) -> int:
    """A number from 1 to `high` for which `holds`, and not for the one before; it holds for `high`, not for 0."""
    low = 0
    while high - low > 1:
        middle = (low + high) // 2
        if holds(middle):
            high = middle
        else:
            low = middle
    holds(high)
    return high


def _bytes(binding: Binding) -> Bytes:
    address, low, high = binding
    size = max(high - low, 0)
    memory: Any = (ctypes.c_uint8 * size).from_address(address + low) if size else bytearray()
    return np.frombuffer(memory, np.uint8)


def _itemsize(dtype: str) -> int:
    from loom_core.base.dtype import by_name

    return by_name(dtype).itemsize
