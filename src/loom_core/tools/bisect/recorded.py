"""A launch that a device recorded against Loom: the first tile that is stored otherwise, and what it was made of."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from loom_core.checks.launch import interpreter_arguments
from loom_core.interp import interpret
from loom_core.ir.rewriter import clone_function
from loom_core.isa.machine import L1
from loom_core.passes.fold_dot import fold_dot_accumulator
from loom_core.tools.bisect.history import element, history, where
from loom_core.tools.bisect.operations import Divergence, Launch, Record, Visit, bisect, stored_through
from loom_core.tools.comparison import Difference, differences, outside
from loom_core.tools.error_bounds import bounds_of_launch
from loom_core.tools.recording import Memory, Recording, read_recording
from loom_core.tools.replay import FORMS


@dataclass(frozen=True)
class WrongElement:
    """An element that is further from the recorded one than its operations allow; `address` is where a run has it."""

    found: Difference
    position: int
    allowed: float
    address: int

    def __str__(self) -> str:
        got, recorded = (element(side, (self.position,)) for side in (self.found.got, self.found.recorded))
        name = f"{self.found.argument.name}[{self.position}]"
        return f"{name} is {got}, recorded as {recorded}, allowed error {self.allowed:.3g}"


@dataclass(frozen=True)
class Stored:
    """The first store of an element that is not as recorded; None where nothing stores to it."""

    wrong: WrongElement
    visit: Visit | None
    index: tuple[int, ...] = ()
    lines: tuple[str, ...] = ()

    def __str__(self) -> str:
        if self.visit is None:
            return f"{self.wrong}\n  the kernel does not store to it"
        op, loops = self.visit.op, ", ".join(map(str, self.visit.iterations))
        shown = [
            f"{where(op.location)}: this `{op.name}` is the first that is not as recorded",
            f"  program {self.visit.program}{f', iteration {loops}' if loops else ''}, element {list(self.index)}",
            f"  {self.wrong}",
        ]
        return "\n".join([*shown, *(f"    {line}" for line in self.lines)])


def bisect_recording(folder: Path, form: str) -> Divergence | Stored | None:
    """What a replay of a recording differs by; None where everything is within its bound.

    Where the object does not give what the references give, that is what is wrong: the operation that differs.
    """
    recording = read_recording(folder)
    kernel, taken = FORMS[form](recording)
    memory = Memory(recording)
    kernel[recording.grid](*(memory.argument(argument) for argument in taken))
    wrong = differences(recording, memory)
    if not wrong:
        return None
    bounds = bounds_of_launch(recording, kernel, taken)
    places = {found.argument.name: outside(found, bounds[found.argument.name]) for found in wrong}
    if not any(len(found) for found in places.values()):
        return None
    held = Memory(recording)
    fresh = [held.argument(argument) for argument in taken]
    views, numbers = kernel.leaves(fresh, {})
    x, y, z = (*recording.grid, 1, 1)[:3]
    launch = Launch(kernel.lower(*fresh), L1, views, numbers, (x, y, z), overlap=_shares(recording))
    parted = bisect(launch)
    if parted is not None:
        return parted
    elements = [
        WrongElement(found, int(place), float(bounds[found.argument.name][place]), _address(held, found, int(place)))
        for found in wrong
        for place in places[found.argument.name]
    ]
    return _first_store(launch, elements)


def _shares(recording: Recording) -> bool:
    groups = [argument.alias_group for argument in recording.tensors]
    return len(set(groups)) < len(groups)


def _address(held: Memory, found: Difference, position: int) -> int:
    start: int = held.bytes_of(found.argument).__array_interface__["data"][0]
    return start + position * found.argument.dtype.itemsize


def _first_store(launch: Launch, elements: list[WrongElement]) -> Stored:
    """Of the last stores to the wrong elements the one that comes first."""
    function = fold_dot_accumulator(clone_function(launch.function))
    record = Record(function)
    arguments = interpreter_arguments(function, launch.views, launch.numbers)
    interpret(function, arguments, launch.grid, watch=record.watch)
    left = {wrong.address: wrong for wrong in elements}
    first: tuple[Visit, int] | None = None
    for visit in reversed(record.stores):
        addresses = _addresses(visit)
        met = left.keys() & set(addresses.reshape(-1).tolist())
        if met:
            first = visit, min(met)
            for address in met:
                del left[address]
    if first is None:
        return Stored(elements[0], None)
    visit, address = first
    index = tuple(int(i) for i in np.argwhere(_addresses(visit) == address)[-1])
    wrong = next(one for one in elements if one.address == address)
    value: Any = visit.op.value  # type: ignore[attr-defined]
    return Stored(wrong, visit, index, tuple(history(value, index, visit.values.get)))


def _addresses(visit: Visit) -> Any:
    """Where a visit stores each element; 0 where its mask does not hold."""
    pointer = stored_through(visit)
    start = pointer.buffer.data.__array_interface__["data"][0] + pointer.buffer.origin
    addresses = start + pointer.offsets
    mask = getattr(visit.op, "mask", None)
    return addresses if mask is None else np.where(visit.values[mask], addresses, 0)
