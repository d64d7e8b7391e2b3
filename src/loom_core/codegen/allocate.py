"""Numbers for registers and addresses for windows, from the command ranges in which they are alive."""

from __future__ import annotations

import bisect
from collections.abc import Iterable

from loom_core.base.location import UNKNOWN
from loom_core.codegen.emitter import Address, Emitted, Emitter, LoopSpan, Register, Window
from loom_core.codegen.errors import TileTooLarge, TooManyScalars
from loom_core.ir.block import Function
from loom_core.isa.machine import MachineConfig, round_up

WINDOW_ALIGNMENT = 64


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
    """Give every window an address, largest first, lowest that is free during its life. Returns the bytes used."""
    placed: list[Window] = []  # by address
    used = 0
    windows = [item for item in lifetimes.spans if isinstance(item, Window)]
    for window in sorted(windows, key=lambda w: (-w.total, lifetimes.spans[w])):
        first, last = lifetimes.spans[window]
        offset = 0
        for other in placed:
            if other.offset >= offset + window.total:
                break
            born, died = lifetimes.spans[other]
            if born <= last and first <= died and offset < other.offset + other.total:
                offset = round_up(other.offset + other.total, WINDOW_ALIGNMENT)
        window.offset = offset
        used = max(used, offset + window.total)
        bisect.insort(placed, window, key=lambda w: w.offset)
    if used > machine.sram_bytes:
        raise _too_large(windows, used, function, machine)
    return used


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
