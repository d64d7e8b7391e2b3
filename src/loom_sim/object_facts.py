"""What the checks know of an object whatever it is run on, and what is wrong with it: waits that no signal can meet,
windows that share bytes.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from loom_core.base.diagnostics import Diagnostic
from loom_core.isa.commands import ENGINE_QUEUES
from loom_core.isa.encoding import Command
from loom_core.isa.sce import DTYPE_LOG2_BYTES
from loom_sim.errors import OverlappingWindows, WaitForNothing
from loom_sim.findings import notes_of

if TYPE_CHECKING:
    from loom_sim.program import Program


_MOVING: Final = {*ENGINE_QUEUES["dma"], *ENGINE_QUEUES["acp"]}
"""The queues that reach device memory."""


class Facts:
    """Of one program: `faults`, findings without a run; the `queues` and `tokens` in use; `windows` as `shadow` has
    them; log2 of the bytes of the narrowest element that any command takes, and of those `moved` to or from device
    memory.
    """

    def __init__(self, program: Program) -> None:
        self.faults = (*_waits_for_nothing(program), *_overlapping_windows(program))
        self.tokens = sorted({wait.token for c in program.commands.values() for wait in c.waits})
        self.queues = sorted({command.queue for command in program.commands.values()})
        rows = [
            (w["offset"], w["offset"] + w["bytes"] * w["slots"], w["first"], w["last"]) for w in _windows_of(program)
        ]
        self.windows = np.array(rows, np.int64)
        self.moved = _narrowest(program, (c for c in program.commands.values() if c.queue in _MOVING))
        self.narrowest = min(self.moved, _narrowest(program, program.commands.values()))


def _waits_for_nothing(program: Program) -> Iterator[Diagnostic]:
    signals: defaultdict[int, list[int]] = defaultdict(list)
    for word, command in program.commands.items():
        if command.signal:
            signals[command.signal].append(word)
    repeated = list(_repeated(program))
    for word, command in program.commands.items():
        for wait in command.waits:
            known = signals[wait.token]
            around = [(start, end) for start, end in repeated if start <= word <= end]
            reason = "" if known else "no command signals"
            if known and not any(at < word or any(start <= at <= end for start, end in around) for at in known):
                reason = "is signalled only after it"
            if reason:
                notes = notes_of(program, word)
                at = program.location_of(word)
                yield WaitForNothing.diagnostic(
                    at, notes=notes, command=command.mnemonic, token=wait.token, reason=reason
                )


def _repeated(program: Program) -> Iterator[tuple[int, int]]:
    """Ranges of words that are run again and again."""
    for word, command in program.commands.items():
        target: Any = command.operands[-1] if command.operands else None
        if command.mnemonic == "loop":
            yield word, target
        elif command.mnemonic == "while":
            yield target, word


def _windows_of(program: Program) -> list[dict[str, Any]]:
    """The windows of the manifest that say when they are in use."""
    return [w for w in program.object.manifest.get("windows", ()) if "first" in w]


def _overlapping_windows(program: Program) -> Iterator[Diagnostic]:
    windows = sorted(_windows_of(program), key=lambda w: int(w["offset"]))
    for number, window in enumerate(windows):
        end = window["offset"] + window["bytes"] * window["slots"]
        for other in windows[number + 1 :]:
            if other["offset"] >= end:
                break
            born = max(window["first"], other["first"])
            if born <= min(window["last"], other["last"]):
                high = min(end, other["offset"] + other["bytes"] * other["slots"])
                yield OverlappingWindows.diagnostic(
                    program.location_of(born),
                    notes=(f"at word {born} both are in use",),
                    first=window["name"],
                    second=other["name"],
                    low=other["offset"],
                    high=high - 1,
                )


def _narrowest(program: Program, commands: Iterable[Command]) -> int:
    """log2 of the bytes of the narrowest element that any of the commands moves."""

    def of_command(command: Command) -> Iterator[int]:
        names = {flag.name for flag in command.spec.flags}
        if "log2_bytes" in names:
            yield command.flag("log2_bytes")
        if "type" in names:
            yield DTYPE_LOG2_BYTES[command.spec.flag("type").values[command.flag("type")]]
        if command.mnemonic in ("decodef", "decodei") or ("masked" in names and command.flag("masked")):
            yield 0
        if command.mnemonic in ("program", "combine"):
            offset = command.operands[0]
            assert isinstance(offset, int)
            for stream in program.programs[offset][0].streams:
                if stream.kind in ("load", "store"):
                    yield DTYPE_LOG2_BYTES[stream.dtype]

    return min((width for command in commands for width in of_command(command)), default=3)
