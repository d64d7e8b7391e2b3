"""Hypothesis strategies for launches: sizes, layouts, overlap, alignment and contents, simplest first."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import prod
from typing import Any, Final

import numpy as np
from hypothesis import assume
from hypothesis import strategies as st

from loom.testing.cases import Case, Memory, View, dense, unwritten
from loom.testing.declarations import Array, Bound, Choice, Like, Number, Size, Stride
from loom.testing.values import FILLS, fill, special_values
from loom_core.base.dtype import DType

Draw = Callable[[st.SearchStrategy[Any]], Any]

LARGEST: Final = 70
"""The largest size where nothing says more: a block, or a bound of the user."""
MOST_ELEMENTS: Final = 1 << 14
_TELLING: Final = (0, 1, 2, 3, 5, 7, 15, 16, 17, 31, 32, 33, 61, 64, 65)

_EITHER: Final = st.booleans()
_ONE_IN_4: Final = st.integers(0, 3).map(lambda drawn: drawn == 3)
_ONE_IN_8: Final = st.integers(0, 7).map(lambda drawn: drawn == 7)
_STEPS: Final = st.sampled_from([1, 1, 2, 3])
_GAPS: Final = st.sampled_from([0, 0, 1, 2])
_SEEDS: Final = st.integers(0, 1 << 16)
_PLACES: Final = st.sampled_from(
    [
        (0, 0, 0),
        (0, 0, 0),
        (0, 0, 0),
        (0, 0, 1),
        (0, 0, 2),
        (0, 0, 3),
        (0, 1, 0),
        (0, 3, 1),
        (1, 0, 0),
        (3, 0, 2),
        (3, 1, 0),
    ]
)
"""Elements before an array and behind it that its memory has, and its address, in elements from a multiple of 128."""


@functools.cache
def _patterns(dtype: DType) -> st.SearchStrategy[list[int]]:
    """Numbers of special values, from 1; 0 for none."""
    count = len(special_values(dtype))
    which = st.one_of(st.integers(0, min(4, count)), st.integers(0, count))
    return st.lists(which, min_size=1, max_size=7)


@dataclass(frozen=True)
class Plan:
    """What launches of one kernel may look like.

    `sizes`: (least, most) of sizes that have bounds. `in_place`: pairs of arguments that may be one array, of which
    one is written. `free`: whether arrays carry their own strides (the kernel reads them off the array).
    `negative`: whether strides may be negative. `fills`: how arrays are filled.
    """

    arguments: Mapping[str, Any]
    sizes: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    in_place: frozenset[frozenset[str]] = frozenset()
    free: bool = False
    negative: bool = True
    fills: tuple[str, ...] = FILLS

    def size_names(self) -> list[str]:
        """Every size that a shape or an argument names, in order."""
        found: list[str] = []
        for value in self.arguments.values():
            if isinstance(value, Array):
                found += [dim for dim in value.shape if isinstance(dim, str)]
            elif isinstance(value, Size):
                found.append(value.name)
        return list(dict.fromkeys(found))

    def free_axes(self, name: str) -> tuple[bool, ...]:
        """For each axis of an array, whether its stride is free: that of a dense axis fixes those inside of it."""
        rank = len(self.arguments[name].shape)
        told = {v.axis % rank for v in self.arguments.values() if isinstance(v, Stride) and v.array == name and rank}
        return tuple(self.free or told.issuperset(range(axis + 1)) for axis in range(rank))


@st.composite
def cases(draw: Draw, plan: Plan) -> Case:
    """One launch of a plan."""
    return _Maker(draw, plan).case()


class _Maker:
    def __init__(self, draw: Draw, plan: Plan) -> None:
        self.draw = draw
        self.plan = plan
        self.known: dict[str, Any] = {}
        self.values: dict[str, Any] = {}
        self.dtypes: dict[str, DType] = {}
        self.regions: list[_Region] = []

    def case(self) -> Case:
        chosen = {n: self.draw(st.sampled_from(a.values)) for n, a in self.plan.arguments.items() if _is(a, Choice)}
        sizes = self._sizes(chosen)
        self.known |= {**sizes, **chosen}
        for name, declared in self.plan.arguments.items():
            value = chosen[name] if name in chosen else self._argument(name, declared)
            self.values[name] = value
            if not isinstance(value, View):
                self.known[name] = value
        memories = tuple(self._memory(region) for region in self.regions)
        arguments = {
            name: self.regions[value.memory].moved(value) if isinstance(value, View) else value
            for name, value in self.values.items()
        }
        return Case(memories, arguments, sizes)

    def _argument(self, name: str, declared: Any) -> Any:
        if isinstance(declared, Array):
            return self._array(name, declared)
        if isinstance(declared, Size):
            return self.known[declared.name]
        if isinstance(declared, Stride):
            return self.values[declared.array].strides[declared.axis]
        if isinstance(declared, Number):
            return self._number(declared)
        return declared(self.known) if callable(declared) else declared

    # ---- sizes ----

    def _sizes(self, chosen: Mapping[str, Any]) -> dict[str, int]:
        fixed = [value for value in (*chosen.values(), *self.plan.arguments.values()) if type(value) is int]
        blocks = [block for block in fixed if 2 <= block <= MOST_ELEMENTS // 4]
        most = max([LARGEST, *(2 * block + 1 for block in blocks)])
        near = [*_TELLING, *(block + step for block in blocks for step in (-1, 0, 1, block - 1, block, block + 1))]
        found: dict[str, int] = {}
        room = MOST_ELEMENTS
        for name in self.plan.size_names():
            least, limit = self.plan.sizes.get(name, (0, min(most, max(room, 1))))
            telling = sorted({size for size in near if least <= size <= limit})
            pool = st.integers(least, min(limit, max(least, 20)))
            found[name] = self.draw(st.one_of(pool, st.sampled_from(telling)) if telling else pool)
            room //= max(found[name], 1)
        return found

    # ---- arrays ----

    def _array(self, name: str, declared: Array) -> View:
        wanted = declared.dtypes
        dtype = self.dtypes[wanted.name] if isinstance(wanted, Like) else self.draw(st.sampled_from(wanted))
        self.dtypes[name] = dtype
        shape = tuple(self.known[dim] if isinstance(dim, str) else dim for dim in declared.shape)
        # All is drawn also for an array that takes the place of another: to hypothesis, fewer draws are simpler.
        contents = self._contents(declared, dtype)
        strides, start, extent = self._layout(name, declared, shape)
        before, after, at = self.draw(_PLACES)
        partner = self._partner(name, declared, dtype, shape)
        if partner is not None:
            return partner
        shared = self._shared(declared, dtype, extent)
        if shared is not None:
            region, shift = shared
            self.regions[region].names.append(name)
            self.regions[region].cover(shift, shift + extent)
            return View(region, shift + start, shape, strides)
        self.regions.append(_Region(dtype, declared, contents, [name], -before, extent + after, at * dtype.itemsize))
        return View(len(self.regions) - 1, start, shape, strides)

    def _layout(self, name: str, declared: Array, shape: tuple[int, ...]) -> tuple[tuple[int, ...], int, int]:
        """Strides, the position of element 0 in its extent, and the extent."""
        free = self.plan.free_axes(name)
        if not any(free) or 0 in shape or not self.draw(_EITHER):
            return dense(shape), 0, prod(shape)
        order = list(range(len(shape)))[::-1]
        if all(free) and len(shape) > 1:
            order = self.draw(st.permutations(order))
        strides = [0] * len(shape)
        reach = 1
        start = 0
        for axis in order:
            size = shape[axis]
            if not free[axis]:
                strides[axis] = reach
                reach *= size
                continue
            if not declared.written and self.draw(_ONE_IN_8):
                continue  # broadcast
            step = reach * self.draw(_STEPS) if reach == 1 else reach
            step += self.draw(_GAPS)
            reach = step * size
            strides[axis] = step
            if self.plan.negative and self.draw(_ONE_IN_8):
                strides[axis] = -step
                start += step * (size - 1)
        extent = 1 + sum(abs(step) * (size - 1) for step, size in zip(strides, shape, strict=True))
        return tuple(strides), start, extent

    # ---- overlap ----

    def _partner(self, name: str, declared: Array, dtype: DType, shape: tuple[int, ...]) -> View | None:
        """Now and then an array from before, in place of one of its own."""
        candidates = [
            view
            for view in self.values.values()
            if isinstance(view, View)
            and view.shape == shape
            and self._compatible(name, declared, dtype, view.memory)
            and self._fits_layout(name, declared, view)
        ]
        if not candidates or not self.draw(_ONE_IN_4):
            return None
        view: View = self.draw(st.sampled_from(candidates))
        self.regions[view.memory].names.append(name)
        return view

    def _fits_layout(self, name: str, declared: Array, view: View) -> bool:
        """Whether the array may have the strides of another."""
        if declared.written and 0 in view.strides:
            return False
        usual = dense(view.shape)
        return all(
            free or step == normal
            for free, step, normal in zip(self.plan.free_axes(name), view.strides, usual, strict=True)
        )

    def _compatible(self, name: str, declared: Array, dtype: DType, memory: int) -> bool:
        """Whether the array may share a memory with all that is there."""
        region = self.regions[memory]
        if region.dtype is not dtype or region.bounds != (declared.low, declared.high):
            return False
        return all(self._may_meet(name, there) for there in region.names)

    def _may_meet(self, one: str, other: str) -> bool:
        both = self.plan.arguments[one], self.plan.arguments[other]
        return not any(a.written for a in both) or frozenset((one, other)) in self.plan.in_place

    def _shared(self, declared: Array, dtype: DType, extent: int) -> tuple[int, int] | None:
        """Now and then a place in a memory that only readers use, a few elements from its begin."""
        if declared.written or not extent:
            return None
        candidates = [
            number
            for number, region in enumerate(self.regions)
            if region.high > region.low
            and all(not self.plan.arguments[there].written for there in region.names)
            and region.dtype is dtype
            and region.bounds == (declared.low, declared.high)
        ]
        if not candidates or not self.draw(_ONE_IN_8):
            return None
        region = self.draw(st.sampled_from(candidates))
        return region, self.draw(st.integers(0, self.regions[region].high - 1)) if self.regions[region].high > 0 else 0

    # ---- contents ----

    def _contents(self, declared: Array, dtype: DType) -> _Contents:
        """As many draws for every size, so that sizes shrink on their own."""
        if declared.use == "write":
            return _Contents("counting")
        how = self.draw(st.sampled_from(self.plan.fills))
        if how == "random":
            return _Contents(how, self.draw(_SEEDS))
        if how == "counting" or not declared.special or (declared.low, declared.high) != (None, None):
            return _Contents(how)
        return _Contents(how, 0, tuple(self.draw(_patterns(dtype))))

    def _memory(self, region: _Region) -> Memory:
        declared, dtype, count = region.declared, region.dtype, region.high - region.low
        if all(self.plan.arguments[name].use == "write" for name in region.names):
            return Memory(unwritten(dtype, count), region.at)
        low, high = self._bound(declared.low), self._bound(declared.high)
        if low is not None and high is not None and low > high:
            assume(count == 0)
        contents = region.contents
        values = fill(dtype, count, contents.how, contents.seed, low, high, declared.special)
        some = special_values(dtype)
        for place, number in enumerate(contents.pattern):
            if number:
                values[place :: len(contents.pattern)] = some[number - 1]
        return Memory(values, region.at)

    def _bound(self, bound: Bound) -> float | None:
        return bound(self.known) if callable(bound) else bound

    def _number(self, declared: Number) -> Any:
        dtype = declared.dtype
        low, high = self._bound(declared.low), self._bound(declared.high)
        if dtype.is_bool:
            return self.draw(st.booleans())
        if dtype.is_float:
            bounded = low is not None or high is not None
            plain = st.floats(low, high, allow_nan=not bounded, allow_infinity=not bounded, width=64)
            with np.errstate(over="ignore"):
                return float(np.array(self.draw(plain)).astype(dtype.numpy))
        least = dtype.min_value if low is None else int(low)
        most = dtype.max_value if high is None else int(high)
        return self.draw(st.integers(least, most))


@dataclass(frozen=True)
class _Contents:
    """How a memory is filled: one of FILLS, its seed, and which special values come round after round (0: none)."""

    how: str
    seed: int = 0
    pattern: tuple[int, ...] = ()


@dataclass
class _Region:
    """One memory as it grows: elements `low` to `high` around the first array's extent, and who lies in it."""

    dtype: DType
    declared: Array
    contents: _Contents
    names: list[str]
    low: int
    high: int
    at: int

    @property
    def bounds(self) -> tuple[Bound, Bound]:
        return self.declared.low, self.declared.high

    def cover(self, low: int, high: int) -> None:
        self.low, self.high = min(self.low, low), max(self.high, high)

    def moved(self, view: View) -> View:
        """The view with its start counted from the begin of the memory."""
        return View(view.memory, view.start - self.low, view.shape, view.strides)


def _is(value: Any, kind: type) -> bool:
    return isinstance(value, kind)
