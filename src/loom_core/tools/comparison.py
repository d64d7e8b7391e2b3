"""Comparing what a replayed launch left in memory with what was recorded, within the tolerances of docs/replay.md."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from loom_core.ops.distance import ulp_distance
from loom_core.ops.formats import widen
from loom_core.tools.recording import Memory, Recording, TensorArgument, elements

Array = npt.NDArray[Any]

ULPS: Final = 4
"""How far an elementwise float result may be off, in units in the last place."""


@dataclass(frozen=True)
class Difference:
    """The elements of one array that differ from the recorded ones."""

    argument: TensorArgument
    got: Array
    recorded: Array
    positions: Array

    @property
    def ulps(self) -> Array:
        """The distance at each position in units in the last place of the recorded value; inf where it has none."""
        return ulp_distance(self.got[self.positions], self.recorded[self.positions], self.argument.dtype)


@dataclass(frozen=True)
class Comparison:
    """The outcome. `worst_ulp` is the largest distance of a float, 0 where all bits are equal."""

    right: bool
    worst_ulp: float
    text: str


Bounds = Mapping[str, Array]
"""For each array, by argument name, the absolute error that each element may have."""


def compare_launch(recording: Recording, memory: Memory, bounds: Callable[[], Bounds]) -> Comparison:
    """Compare all arrays; `bounds` is asked only where something differs."""
    different = differences(recording, memory)
    if not different:
        return Comparison(True, 0.0, "bit-equal")
    worst = max(float(found.ulps.max()) for found in different)
    allowed = bounds()
    for found in different:
        wrong = outside(found, allowed[found.argument.name])
        if wrong.size:
            return Comparison(False, worst, _describe(found, wrong, allowed[found.argument.name]))
    how = f"within {worst:.3g} ulp" if worst <= ULPS else f"within the bound of its operations ({worst:.3g} ulp)"
    return Comparison(True, worst, how)


def differences(recording: Recording, memory: Memory) -> list[Difference]:
    """The arrays that are not as recorded, bit for bit."""
    return [found for argument in recording.tensors if (found := _difference(argument, memory)) is not None]


def _difference(argument: TensorArgument, memory: Memory) -> Difference | None:
    got, recorded = elements(memory.bytes_of(argument), argument.dtype), elements(argument.after, argument.dtype)
    if argument.dtype.is_float:
        wide_got, wide_recorded = widen(got), widen(recorded)
        same = (wide_got == wide_recorded) & (np.signbit(wide_got) == np.signbit(wide_recorded))
        same |= np.isnan(wide_got) & np.isnan(wide_recorded)
    else:
        same = got == recorded
    positions = np.flatnonzero(~same)
    return Difference(argument, got, recorded, positions) if positions.size else None


def outside(found: Difference, bound: Array) -> Array:
    """The positions whose difference is more than the bound."""
    got, recorded = (widen(side[found.positions]).astype(np.float64) for side in (found.got, found.recorded))
    with np.errstate(invalid="ignore"):
        distance = np.abs(got - recorded)
    allowed = bound[found.positions]
    # An infinite bound says that nothing is known, for example because an address depends on a rounded value.
    # Equal zeros of different signs come here too: they need some room, as moves have none.
    inside = (distance <= allowed) & np.isfinite(allowed) & (allowed > 0)
    return found.positions[~inside]


def _describe(found: Difference, wrong: Array, bound: Array) -> str:
    at = int(wrong[0])
    got, recorded = found.got[at], found.recorded[at]
    return (
        f"{found.argument.name}: {wrong.size} of {found.got.size} elements are wrong, the first at {at}: {got} for "
        f"{recorded}, allowed error {bound[at]:.3g}"
    )
