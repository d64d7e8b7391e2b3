"""What a launch left in memory against what it should have left."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

import loom
from loom.testing.memory import as_numpy, view
from loom_core.base.dtype import DType, from_numpy
from loom_core.base.location import UNKNOWN, Location
from loom_core.ops.distance import ulp_distance
from loom_core.ops.formats import is_float, widen

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Tolerance:
    """How far results may be off: an element is right within any of the three. NaN is NaN, and -0 is not 0."""

    ulp: float = 0
    rtol: float = 0
    atol: float = 0

    def right(self, got: Array, wanted: Array) -> Array:
        """Where `got` may stand for `wanted`."""
        same: Array = _bits(got) == _bits(wanted)
        if not is_float(wanted):
            return same
        a, b = widen(got).astype(np.float64), widen(wanted).astype(np.float64)
        same |= np.isnan(a) & np.isnan(b)
        if not (self.ulp or self.rtol or self.atol):
            return same
        with np.errstate(invalid="ignore", over="ignore"):
            near: Array = np.abs(a - b) <= self.atol + self.rtol * np.abs(b)
        near &= np.isfinite(a) & np.isfinite(b)
        near |= ulp_distance(got, wanted, from_numpy(wanted.dtype)) <= self.ulp
        return same | near


@dataclass(frozen=True)
class Fault:
    """One thing that is wrong with a launch: in words, and where in the kernel, if that is known.

    `error` where it was raised.
    """

    text: str
    location: Location = UNKNOWN
    notes: tuple[str, ...] = ()
    error: Exception | None = None


Expected = Mapping[str, tuple[Array, Array]]
"""For each argument that is written the array, and what it should hold."""


def observe(
    call: Callable[[], Any],
    memories: Sequence[Array],
    expected: Expected,
    returned: Sequence[Any] | None,
    tolerance: Tolerance,
) -> list[Fault]:
    """Call a kernel under `loom.check()`; everything that is wrong with what it did.

    memories: all that it may touch, of which only the arrays of `expected` may change. returned: what it should give,
    where it gives anything.
    """
    should = [memory.copy() for memory in memories]
    try:
        with loom.check():
            result = call()
    except loom.LoomError as error:
        return [Fault(f"{d.message} ({d.code})", d.location, d.notes, error) for d in error.diagnostics]
    except Exception as error:  # noqa: BLE001
        # Whatever a kernel raises is what the search looks for.
        return [Fault(f"it raises {type(error).__name__}: {error}", error=error)]
    faults: list[Fault] = []
    for name, (array, wanted) in expected.items():
        faults += _faults(name, array, wanted, tolerance)
        _copy_of(array, memories, should)[...] = array
    faults += _stray(memories, should)
    if returned is not None:
        faults += _returned(result, returned, tolerance)
    return faults


def flat_results(result: Any) -> list[Any]:
    """The arrays of a result: one, or those of a tuple, list or dict."""
    if isinstance(result, Mapping):
        return list(result.values())
    return list(result) if isinstance(result, tuple | list) else [result]


def as_expected(value: Any, dtype: DType) -> Array:
    """A reference's result in the element type of the array that it is for."""
    array = as_numpy(value)
    with np.errstate(all="ignore"):
        return array if array.dtype == dtype.numpy else array.astype(dtype.numpy)


def _faults(name: str, got: Array, wanted: Array, tolerance: Tolerance) -> Iterator[Fault]:
    if got.shape != wanted.shape:
        yield Fault(f"{name} has the shape {got.shape}, and {wanted.shape} is expected")
        return
    wrong = np.argwhere(~tolerance.right(got, wanted))
    if not len(wrong):
        return
    at = tuple(int(i) for i in wrong[0])
    more = f", and {len(wrong) - 1} more of {got.size} elements differ" if len(wrong) > 1 else ""
    index = f"[{', '.join(map(str, at))}]" if at else ""
    yield Fault(
        f"{name}{index} is {shown(got[at])}, and {shown(wanted[at])} is expected{_ulps(got[at], wanted[at])}{more}"
    )


def _ulps(got: Any, wanted: Any) -> str:
    a, b = np.asarray(got), np.asarray(wanted)
    if not is_float(b):
        return ""
    distance = float(ulp_distance(a, b, from_numpy(b.dtype)))
    return f" ({distance:.3g} ulp away)" if 0 < distance < np.inf else ""


def shown(value: Any) -> str:
    """One element as text: floats so that no two look alike."""
    array = np.asarray(value)
    return repr(float(widen(array))) if is_float(array) else str(array)


def _copy_of(array: Array, memories: Sequence[Array], copies: Sequence[Array]) -> Any:
    """The elements of `array`, which lies in one of the memories, in the copy of that memory."""
    address = array.__array_interface__["data"][0]
    for memory, copy in zip(memories, copies, strict=True):
        start = memory.__array_interface__["data"][0]
        if start <= address < start + memory.nbytes:
            steps = [step // memory.itemsize for step in array.strides]
            return view(copy, (address - start) // memory.itemsize, array.shape, steps)
    return array.copy()  # it has no elements


def _stray(memories: Sequence[Array], should: Sequence[Array]) -> Iterator[Fault]:
    for number, (memory, copy) in enumerate(zip(memories, should, strict=True)):
        changed = np.flatnonzero(_bits(memory) != _bits(copy))
        if len(changed):
            at = int(changed[0])
            yield Fault(
                f"{len(changed)} elements that belong to no output are written, the first is element {at} of memory "
                f"{number}: {shown(copy[at])} became {shown(memory[at])}"
            )


def _returned(result: Any, wanted: Sequence[Any], tolerance: Tolerance) -> Iterator[Fault]:
    found = flat_results(result)
    if len(found) != len(wanted):
        yield Fault(f"{len(found)} results, and {len(wanted)} are expected")
        return
    for number, (got, want) in enumerate(zip(found, wanted, strict=True)):
        name = "the result" if len(wanted) == 1 else f"result {number}"
        array = as_numpy(got)
        yield from _faults(name, array, as_expected(want, from_numpy(array.dtype)), tolerance)


def _bits(array: Array) -> Array:
    return np.ascontiguousarray(array).reshape(array.shape).view(f"u{array.itemsize}")
