"""Windows with several slots, which the iterations of a loop take in turn, and how many slots are worth it.

Loads fill a slot some iterations before it is read (`prefetch`); stores empty one while later iterations fill the
others. Memory answers after its latency: to keep it busy, so many bytes must be under way as it moves in that time, so
that loops over small tiles need more slots than loops over large ones.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from loom_core.codegen.emitter import Address, Emitter, Operand, Register, Window
from loom_core.codegen.errors import CannotTakeTurns
from loom_core.codegen.groups import on_stream_engine
from loom_core.ir.block import Block
from loom_core.ir.value import Value
from loom_core.isa.machine import MachineConfig
from loom_core.ops import control, memory

if TYPE_CHECKING:
    from loom_core.codegen.context import Context

SRAM_SHARE = 4
"""A loop's windows may take one part in so many of SRAM for the sake of more than two slots."""


@dataclass(eq=False)
class Ring:
    """A window whose slots take turns; `current` holds the address of the one that this iteration uses."""

    window: Window
    current: Register

    def slot(self, number: int) -> Address:
        return Address(self.window, number * self.window.size)

    def start(self, emitter: Emitter) -> None:
        """Before the loop: so that the first iteration takes the first slot."""
        emitter.assign(self.current, self.slot(self.window.slots - 1))

    def advance(self, emitter: Emitter) -> None:
        """At the start of an iteration: the next slot."""
        if self.window.slots == 2:
            emitter.set(self.current, "sub", Address(self.window, both=True), self.current)
            return
        following = emitter.scalar("add", self.current, self.window.size)
        is_past = emitter.scalar("eq", following, self.slot(self.window.slots))
        emitter.set(self.current, "sel", is_past, self.slot(0), following)


def useful_slots(context: Context, block: Block) -> int:
    """How many slots keep memory busy in a loop over `block`; two where loops inside give it time, one for no rings."""
    if any(isinstance(op, control.For | control.While) for op in block.operations):
        return min(2, context.options.slots)
    moved = sum(_bytes(value) for value in _moved(block))
    return min(_slots(context.machine, moved), context.options.slots) if moved else 1


def _moved(block: Block) -> Iterable[Value]:
    for op in block.operations:
        if isinstance(op, memory.DmaLoad):
            yield op.result
        elif isinstance(op, memory.DmaStore):
            yield op.value


def _slots(machine: MachineConfig, moved: int) -> int:
    under_way = machine.hbm_bytes_per_s * machine.hbm_latency // machine.clock_hz
    wanted = 1 - (-under_way // moved)
    return max(2, min(wanted, machine.sram_bytes // SRAM_SHARE // moved))


def _bytes(value: Value) -> int:
    return value.type.size * value.type.dtype.itemsize


# ---- what is stored ----


def plan_rings(context: Context) -> None:
    """Give tiles that a loop computes and stores a ring, where nothing else shares their window.

    CannotTakeTurns for stores that ask for slots and cannot have them.
    """
    loops = [op.regions[0] for op in context.function.walk() if isinstance(op, control.For)]
    ahead = context.options.prefetch
    for block in (*loops, context.function.body):
        enabled = ahead == "all" or (ahead == "loops" and block is not context.function.body)
        common = useful_slots(context, block) if enabled else 1
        rings = []
        for value, asked in _stored(block).items():
            if not _may_take_turns(context, block, value):
                _refuse(block, value, asked)
            elif (asked or common) > 1:
                rings.append(_ring(context, value, asked or common))
        if rings:
            context.rings[block] = rings


def _stored(block: Block) -> dict[Value, int]:
    """What a block stores, and the slots that its stores ask for (0: none do)."""
    found: dict[Value, int] = {}
    for op in block.operations:
        if isinstance(op, memory.DmaStore):
            found[op.value] = max(op.slots, found.get(op.value, 0))
    return found


def _refuse(block: Block, value: Value, asked: int) -> None:
    for op in block.operations if asked > 1 else ():
        if isinstance(op, memory.DmaStore) and op.value is value:
            raise CannotTakeTurns(op.location, slots=asked)


def _may_take_turns(context: Context, block: Block, value: Value) -> bool:
    op = value.defining_op
    if op is None or op.parent is not block or not on_stream_engine(op) or value.type.is_scalar:
        return False
    alone = context.sharing.members(value) == [value] and not context.sharing.is_accumulator(value)
    return alone and value not in context.panel_uses and all(isinstance(user, memory.DmaStore) for user in value.users)


def _ring(context: Context, value: Value, slots: int) -> Ring:
    name = context.name_of(value)
    ring = Ring(context.emitter.window(name, _bytes(value), slots), Register(f"{name}.slot"))
    context.turns[value] = ring
    return ring


def start_rings(context: Context) -> None:
    """Before all loops: rings of loops inside of loops go on where they were."""
    for rings in context.rings.values():
        for ring in rings:
            ring.start(context.emitter)


def advance_rings(context: Context, block: Block) -> None:
    for ring in context.rings.get(block, ()):
        ring.advance(context.emitter)


def assign_in_parallel(emitter: Emitter, pairs: list[tuple[Register, Operand]]) -> None:
    """Assign registers to which others of the assignments may refer."""
    targets = {target for target, _ in pairs}
    safe = []
    for target, source in pairs:
        if source in targets and source is not target:
            copy = Register("copy")
            emitter.assign(copy, source)
            source = copy
        safe.append((target, source))
    for target, source in safe:
        emitter.assign(target, source)
