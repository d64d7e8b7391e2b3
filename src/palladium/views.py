"""Refs: views of buffers (blocks of operands, scratch), and what an index makes of one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn

import numpy as np

from loom_core.base import dtype as core
from loom_core.base.dtype import DType
from loom_core.ir.block import Block
from loom_core.ir.op import Op
from loom_core.ir.value import Value
from palladium import operators, scalars
from palladium.errors import NotStatic, WrongIndex, fail
from palladium.scalars import Scalar
from palladium.values import Unread, array, common_shape, convert, to_array

# ---- what lies behind a ref ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Storage:
    """Where a buffer's elements are: index 0 `origin` elements from `pointer`, the axes `strides` elements apart.

    Along axis d only indices from lows[d] to below limits[d] exist; None where all of the buffer's do.
    """

    pointer: Value
    strides: tuple[int, ...]
    origin: Scalar = 0
    lows: tuple[Scalar | None, ...] = ()
    limits: tuple[Scalar | None, ...] = ()

    def range_of(self, axis: int) -> tuple[Scalar | None, Scalar | None]:
        if not self.limits:
            return None, None
        return self.lows[axis], self.limits[axis]


@dataclass
class Write:
    """A store that a kernel made: enough to make it again in another storage."""

    ref: Ref
    value: array
    mask: array | None
    op: Op


@dataclass(eq=False)
class Buffer:
    """Memory of `shape` behind refs.

    `home` is the block in which reads of the whole buffer are made, once; None where every read is made in its place.
    `slots`: how many blocks of it are in SRAM at once; 0 leaves it to the compiler.
    `writes` and `is_read` tell what the kernel did with it.
    """

    name: str
    shape: tuple[int, ...]
    dtype: DType
    storage: Storage
    writable: bool = True
    home: Block | None = None
    slots: int = 0
    whole: array | None = None
    is_read: bool = False
    writes: list[Write] = field(default_factory=list)

    def take_back(self) -> None:
        """Forget the last write: it was part of a trial that is given up."""
        self.writes.pop()


@dataclass(frozen=True)
class View:
    """One dimension of a ref: index i is index start + step * i of the buffer's `axis`; those in [low, limit) exist."""

    axis: int
    size: int
    step: int = 1
    low: Scalar | None = None
    limit: Scalar | None = None


@dataclass(frozen=True)
class Gathered:
    """An axis indexed by a tile of integers."""

    axis: int
    index: array


@dataclass(frozen=True)
class Slice:
    """`size` indices from `start`, `stride` apart: start may be a run-time scalar."""

    start: Any
    size: int
    stride: int = 1


def ds(start: Any, size: Any = None, stride: Any = 1) -> Slice:
    """A slice of `size` indices from `start`, which may be known only at run time."""
    if size is None:
        if isinstance(start, slice):
            step = 1 if start.step is None else start.step
            return Slice(start.start or 0, len(range(start.start or 0, start.stop, step)), step)
        start, size = 0, start
    try:
        return Slice(start, int(size.__index__()), int(stride.__index__()))
    except (AttributeError, TypeError, NotStatic):
        fail(NotStatic, what="the size of a slice", instead="only its start may be a run-time value")


# ---- refs ------------------------------------------------------------------------------------------------------------


class Ref(Unread):
    """A view of a buffer: `ref[index]` reads, `ref[index] = value` writes, `ref.at[index]` is a view of it.

    Elements outside the buffer, or outside the array that it is a block of, read as poison (NaN, the least integer,
    False); writing them does nothing.
    """

    __slots__ = ("buffer", "dims", "gathers", "guard", "place", "starts")

    def __init__(
        self,
        buffer: Buffer,
        starts: tuple[Scalar, ...],
        dims: tuple[View, ...],
        guard: Value | None = None,
        gathers: tuple[Gathered, ...] = (),
        place: int = 0,
    ) -> None:
        self.buffer = buffer
        self.starts = starts
        self.dims = dims
        self.guard = guard
        self.gathers = gathers
        self.place = place  # of the dimensions of tiles of indices among the others

    @property
    def shown(self) -> str:
        return self.buffer.name

    @property
    def spread(self) -> tuple[int, ...]:
        """The common shape of the tiles of indices."""
        return common_shape([one.index.shape for one in self.gathers], "an index")

    @property
    def shape(self) -> tuple[int, ...]:
        sizes = [dim.size for dim in self.dims]
        return (*sizes[: self.place], *self.spread, *sizes[self.place :])

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return int(np.prod(self.shape, dtype=np.int64))

    @property
    def core(self) -> DType:
        return self.buffer.dtype

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.buffer.dtype.numpy

    @property
    def at(self) -> _At:
        """`ref.at[index]` is the part as a ref."""
        return _At(self)

    def __len__(self) -> int:
        return self.shape[0]

    def __repr__(self) -> str:
        return f"<ref {self.buffer.name} {self.core.name}{list(self.shape)}>"

    def __getitem__(self, index: Any) -> array:
        from palladium import refs

        return refs.load(self, index)

    def __setitem__(self, index: Any, value: Any) -> None:
        from palladium import refs

        refs.store(self, index, value)

    def get(self) -> array:
        """All elements."""
        return self[...]

    def set(self, value: Any) -> None:
        """Write all elements."""
        self[...] = value

    def add(self, value: Any) -> None:
        """Add to all elements."""
        self[...] = operators.add(self[...], value)

    def reshape(self, *shape: Any) -> Ref:
        """The same elements, which follow each other in memory, as a ref of another shape."""
        from palladium import refs

        return refs.reshaped(self, shape[0] if len(shape) == 1 and isinstance(shape[0], (tuple, list)) else shape)

    @property
    def is_whole(self) -> bool:
        """Whether this is the buffer's own ref, or one that shows the same."""
        shown = {dim.axis for dim in self.dims}
        sizes = self.buffer.shape
        return (
            self.guard is None
            and not self.gathers
            and all(isinstance(start, int) and start == 0 for start in self.starts)
            and all(dim.step == 1 and dim.low is None and dim.limit is None for dim in self.dims)
            and all(dim.size == sizes[dim.axis] for dim in self.dims)
            and all(size == 1 for axis, size in enumerate(sizes) if axis not in shown)
        )


class _At:
    __slots__ = ("ref",)

    def __init__(self, ref: Ref) -> None:
        self.ref = ref

    def __getitem__(self, index: Any) -> Ref:
        return select(self.ref, index)


def whole_ref(buffer: Buffer, dropped: Sequence[int] = ()) -> Ref:
    """The ref of a buffer, without the axes in `dropped`, which have one index."""
    dims = tuple(View(axis, size) for axis, size in enumerate(buffer.shape) if axis not in dropped)
    return Ref(buffer, (0,) * len(buffer.shape), dims)


# ---- indexing --------------------------------------------------------------------------------------------------------


def select(ref: Ref, index: Any) -> Ref:
    """The part of a ref that an index names."""
    if index is Ellipsis:
        return ref
    if ref.gathers:
        _refuse(ref, index, "it is indexed by a tile already")
    parts = _expanded(ref, index)
    starts, guard = list(ref.starts), ref.guard
    dims: list[View] = []
    gathers: list[Gathered] = []
    for dim, part in zip(ref.dims, parts, strict=True):
        if isinstance(part, slice):
            part = _static_slice(ref, dim, part)
        if isinstance(part, Slice):
            dims.append(_sliced(ref, dim, part, starts))
            continue
        number = _index(ref, part)
        if isinstance(number, array) and number.shape:
            if dim.step != 1 or dim.low is not None or dim.limit is not None or starts[dim.axis] != 0:
                _refuse(ref, part, "a tile of indices takes a whole dimension")
            gathers.append(Gathered(dim.axis, number))
            continue
        guard = scalars.both(guard, _picked(ref, dim, number, starts))
    place = _place_of_tiles([isinstance(part, (slice, Slice)) for part in parts]) if gathers else 0
    return Ref(ref.buffer, tuple(starts), tuple(dims), guard, tuple(gathers), place)


def _place_of_tiles(sliced: Sequence[bool]) -> int:
    """Where the dimensions of tiles of indices go, as in NumPy: where all indices stand, or first if they are apart."""
    places = [i for i, one in enumerate(sliced) if not one]
    return places[0] if places[-1] - places[0] == len(places) - 1 else 0


def _expanded(ref: Ref, index: Any) -> list[Any]:
    """One part of the index for each dimension."""
    parts = list(index) if isinstance(index, tuple) else [index]
    dots = [i for i, part in enumerate(parts) if part is Ellipsis]
    if len(dots) > 1 or len(parts) - len(dots) > ref.ndim:
        _refuse(ref, index, "it has two `...`" if len(dots) > 1 else "it has too many parts")
    if any(part is None for part in parts):
        _refuse(ref, index, "refs get no new dimensions; index the value that is read")
    rest = [slice(None)] * (ref.ndim - len(parts) + len(dots))
    at = dots[0] if dots else len(parts)
    return [*parts[:at], *rest, *parts[at + len(dots) :]]


def _refuse(ref: Ref, index: Any, problem: str) -> NoReturn:
    fail(WrongIndex, name=ref.buffer.name, shape=ref.shape, index=str(index), problem=problem)


def _static_slice(ref: Ref, dim: View, part: slice) -> Slice:
    for number in (part.start, part.stop, part.step):
        if isinstance(number, array) and number.known is None:
            instead = "write ds(start, size) for a slice that begins at a run-time index"
            fail(NotStatic, what="the bounds of a slice", instead=instead)
    numbers = range(dim.size)[part]
    if not numbers:
        _refuse(ref, part, "the slice is empty")
    if numbers.step < 0:
        _refuse(ref, part, "the step is negative")
    stop = part.stop
    if isinstance(stop, int) and stop > dim.size:
        _refuse(ref, part, f"the dimension has {dim.size} elements")
    return Slice(numbers.start, len(numbers), numbers.step)


def _index(ref: Ref, part: Any) -> int | array:
    """An index as an int where it is known, else a value of integers."""
    if isinstance(part, Ref):
        part = part.get()
    value = part if isinstance(part, array) else to_array(part, "an index")
    if not value.core.is_integer:
        _refuse(ref, part, f"it is {value.core.name}, not an integer")
    return int(value.known) if value.known is not None else value


def _sliced(ref: Ref, dim: View, part: Slice, starts: list[Scalar]) -> View:
    """The dimension that a slice leaves; moves its start."""
    start = _index(ref, part.start)
    if part.size < 1 or part.stride < 1:
        _refuse(ref, part, "its size and stride must be positive")
    reach = part.stride * (part.size - 1)
    if isinstance(start, int):
        if not 0 <= start < dim.size:
            _refuse(ref, part, f"it begins at {start} of {dim.size} elements")
        at: Scalar = start
        low, limit = dim.low, dim.limit if start + reach < dim.size else scalars.least(dim.limit, dim.size)
    else:
        at = convert(start, core.i64).value
        inside = start.interval is not None and start.interval[0] >= 0 and start.interval[1] + reach < dim.size
        low = dim.low if inside else scalars.greatest(dim.low, 0)
        limit = dim.limit if inside else scalars.least(dim.limit, dim.size)
    low = None if low is None else scalars.ceiling(scalars.subtract(low, at), part.stride)
    limit = None if limit is None else scalars.ceiling(scalars.subtract(limit, at), part.stride)
    starts[dim.axis] = scalars.add(starts[dim.axis], scalars.multiply(at, dim.step))
    return View(dim.axis, part.size, dim.step * part.stride, low, limit)


def _picked(ref: Ref, dim: View, number: int | array, starts: list[Scalar]) -> Value | None:
    """Move the start of a dimension to one index; the condition under which it exists."""
    condition: Value | None = None
    if isinstance(number, int):
        if not -dim.size <= number < dim.size:
            _refuse(ref, number, f"the dimension has {dim.size} elements")
        at: Scalar = number % dim.size
        low, limit = dim.low, dim.limit
    else:
        at = convert(number, core.i64).value
        inside = number.interval is not None and number.interval[0] >= 0 and number.interval[1] < dim.size
        low = dim.low if inside else scalars.greatest(dim.low, 0)
        limit = dim.limit if inside else scalars.least(dim.limit, dim.size)
    if low is not None:
        condition = scalars.compare("le", low, at)
    if limit is not None:
        condition = scalars.both(condition, scalars.compare("lt", at, limit))
    starts[dim.axis] = scalars.add(starts[dim.axis], scalars.multiply(at, dim.step))
    return condition
