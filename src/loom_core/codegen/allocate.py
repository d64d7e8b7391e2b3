"""Numbers for registers and addresses for windows, from the command ranges in which they are alive."""

from __future__ import annotations

import bisect
from collections.abc import Iterable

from loom_core.base.location import UNKNOWN
from loom_core.codegen.emitter import Address, Emitted, Emitter, LoopSpan, Register, Window
from loom_core.codegen.errors import TileTooLarge, TooManyScalars
from loom_core.ir.block import Function
from loom_core.isa.machine import MachineConfig, round_up
from loom_core.ops import matmul

WINDOW_ALIGNMENT = 64
RESTING = 64
"""Commands after which nothing waits for a window any more."""


class Lifetimes:
    """First and last command that touches each register and window; loops keep alive what enters them."""

    def __init__(self, emitter: Emitter) -> None:
        self.spans: dict[Register | Window, tuple[int, int]] = {}
        self.locations = [item.location if isinstance(item, Emitted) else UNKNOWN for item in emitter.items]
        for index, item in enumerate(emitter.items):
            if isinstance(item, Emitted):
                for resource in _touched(item):
                    first = self.spans.get(resource, (index, index))[0]
                    self.spans[resource] = (first, index)
        for loop in sorted(emitter.loops, key=lambda span: span.end):
            self._extend(loop)

    def _extend(self, loop: LoopSpan) -> None:
        for resource, (first, last) in self.spans.items():
            if first < loop.start <= last <= loop.end:
                self.spans[resource] = (first, loop.end)


def _touched(item: Emitted) -> Iterable[Register | Window]:
    for operand in item.operands:
        if isinstance(operand, Register):
            yield operand
        elif isinstance(operand, Address):
            yield operand.window
    for access in item.accesses:
        if isinstance(access.target, Window):
            yield access.target


def number_registers(lifetimes: Lifetimes, function: Function, machine: MachineConfig, reserved: int) -> None:
    """Linear scan; the first `reserved` registers belong to the ABI and keep their numbers.

    Raises TooManyScalars at the command that needs one more than there are.
    """
    free = list(range(machine.acp_registers - 1, reserved - 1, -1))
    active: list[tuple[int, Register]] = []
    order = [(span, item) for item, span in lifetimes.spans.items() if isinstance(item, Register)]
    for (first, last), register in sorted(order, key=lambda entry: entry[0]):
        if register.fixed >= 0:
            register.number = register.fixed
            continue
        for entry in [entry for entry in active if entry[0] < first]:
            active.remove(entry)
            free.append(entry[1].number)
        if not free:
            location = lifetimes.locations[first]
            raise TooManyScalars(location, kernel=function.name, limit=machine.acp_registers)
        register.number = free.pop()
        active.append((last, register))


def place_windows(lifetimes: Lifetimes, function: Function, machine: MachineConfig) -> int:
    """Give every window an address, largest first. Returns the bytes used.

    A window that takes the place of another one makes an engine wait for the last that touched it. In kernels with
    products, where engines overlap, it takes the place that has been free for the longest; else the lowest one, so that
    little memory is touched.
    """
    windows = [item for item in lifetimes.spans if isinstance(item, Window)]
    limit = machine.sram_bytes
    overlaps = any(isinstance(op, matmul.Dot) for op in function.walk())
    used = _place(windows, lifetimes, limit, RESTING if overlaps else 0)
    if used > limit:
        used = _place(windows, lifetimes, limit, 0)
    if used > limit:
        raise _too_large(windows, used, function, machine)
    return used


def _place(windows: list[Window], lifetimes: Lifetimes, limit: int, resting: int) -> int:
    placed: list[Window] = []  # by address
    used = 0
    for window in sorted(windows, key=lambda w: (-w.total, lifetimes.spans[w])):
        window.offset = _free_place(window, placed, lifetimes, limit, resting)
        used = max(used, window.offset + window.total)
        bisect.insort(placed, window, key=lambda w: w.offset)
    return used


def _free_place(window: Window, placed: list[Window], lifetimes: Lifetimes, limit: int, resting: int) -> int:
    """The lowest address that is free during a window's life, of those below the limit that rest the longest around it,
    in commands, up to `resting`.
    """
    first, last = lifetimes.spans[window]
    best, longest = -1, -1
    for offset in sorted({0, *(round_up(other.offset + other.total, WINDOW_ALIGNMENT) for other in placed)}):
        if best >= 0 and offset + window.total > limit:
            break
        rest = resting
        for other in placed:
            if other.offset < offset + window.total and offset < other.offset + other.total:
                born, died = lifetimes.spans[other]
                rest = min(rest, max(first - died, born - last) - 1)
        if rest > longest:
            best, longest = offset, rest
        if longest >= resting:
            break
    return best


def _too_large(windows: list[Window], used: int, function: Function, machine: MachineConfig) -> TileTooLarge:
    by_size = sorted(windows, key=lambda w: -w.total)
    notes = [f"{w.name}: {w.total} bytes" + (f" ({w.slots} slots)" if w.slots > 1 else "") for w in by_size[:4]]
    return TileTooLarge(
        by_size[0].location,
        notes=notes,
        kernel=function.name,
        needed=used,
        machine=machine.name,
        limit=machine.sram_bytes,
    )
