"""Refs: what kernels read and write. A ref is a view of a buffer: of a block of an operand, or of scratch."""

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
from loom_core.ops import memory
from loom_core.ops.shape import Splat
from loom_core.trace.context import current
from palladium import operators, scalars, shaping
from palladium.errors import NotStatic, ReadOnlyRef, WrongDtype, WrongIndex, fail
from palladium.scalars import Scalar
from palladium.trace import kernel_trace
from palladium.values import array, common_shape, convert, full, known_scalar, to_array, to_shape

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
    `ahead`: whether a loop may read it in earlier iterations.
    `writes` and `is_read` tell what the kernel did with it.
    """

    name: str
    shape: tuple[int, ...]
    dtype: DType
    storage: Storage
    writable: bool = True
    home: Block | None = None
    ahead: bool = True
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


class Ref:
    """A view of a buffer: `ref[index]` reads, `ref[index] = value` writes, `ref.at[index]` is a view of it.

    Elements outside the buffer, or outside the array that it is a block of, read as poison (NaN, the least integer,
    False); writing them does nothing.
    """

    __slots__ = ("buffer", "dims", "gathers", "guard", "starts")

    def __init__(
        self,
        buffer: Buffer,
        starts: tuple[Scalar, ...],
        dims: tuple[View, ...],
        guard: Value | None = None,
        gathers: tuple[Gathered, ...] = (),
    ) -> None:
        self.buffer = buffer
        self.starts = starts
        self.dims = dims
        self.guard = guard
        self.gathers = gathers

    @property
    def spread(self) -> tuple[int, ...]:
        """The common shape of the tiles of indices."""
        return common_shape([one.index.shape for one in self.gathers], "an index")

    @property
    def shape(self) -> tuple[int, ...]:
        return (*self.spread, *(dim.size for dim in self.dims))

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
        return load(self, index)

    def __setitem__(self, index: Any, value: Any) -> None:
        store(self, index, value)

    def get(self) -> array:
        """All elements."""
        return load(self, ...)

    def set(self, value: Any) -> None:
        """Write all elements."""
        store(self, ..., value)

    def add(self, value: Any) -> None:
        """Add to all elements."""
        store(self, ..., operators.add(load(self, ...), value))

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
    return Ref(ref.buffer, tuple(starts), tuple(dims), guard, tuple(gathers))


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


# ---- addresses -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Address:
    """A view in a storage: its offset, and (size, stride, low, limit) of each dimension, in elements."""

    pointer: Value
    offset: Scalar
    dims: tuple[tuple[int, int, Scalar | None, Scalar | None], ...]
    guard: Value | None


def address(ref: Ref, storage: Storage) -> Address:
    """Where a view is, and which of its elements exist."""
    offset, guard = storage.origin, ref.guard
    for start, stride in zip(ref.starts, storage.strides, strict=True):
        offset = scalars.add(offset, scalars.multiply(start, stride))
    shown = {dim.axis for dim in ref.dims}
    for axis, start in enumerate(ref.starts):
        low, limit = storage.range_of(axis)
        if axis not in shown:
            if low is not None:
                guard = scalars.both(guard, scalars.compare("le", low, start))
            if limit is not None:
                guard = scalars.both(guard, scalars.compare("lt", start, limit))
    dims = []
    for dim in ref.dims:
        low, limit = storage.range_of(dim.axis)
        start = ref.starts[dim.axis]
        low = None if low is None else scalars.ceiling(scalars.subtract(low, start), dim.step)
        limit = None if limit is None else scalars.ceiling(scalars.subtract(limit, start), dim.step)
        dims.append(
            (
                dim.size,
                dim.step * storage.strides[dim.axis],
                scalars.greatest(dim.low, low),
                scalars.least(dim.limit, limit),
            )
        )
    return Address(storage.pointer, offset, tuple(dims), guard)


def bounds(at: Address, itemsize: int) -> list[tuple[Scalar, Scalar, Scalar]]:
    """stride in bytes, lo and hi of each dimension as a descriptor has them; a scalar has one dimension."""
    found: list[tuple[Scalar, Scalar, Scalar]] = [
        (stride * itemsize, 0 if low is None else low, size if limit is None else limit)
        for size, stride, low, limit in at.dims
    ] or [(itemsize, 0, 1)]
    if at.guard is not None:
        stride, low, limit = found[0]
        found[0] = stride, low, scalars.choose(at.guard, limit, low)
    return found


def is_bounded(at: Address) -> bool:
    """Whether some elements may not exist."""
    return at.guard is not None or any(low is not None or limit is not None for _, _, low, limit in at.dims)


def descriptor(at: Address, itemsize: int) -> tuple[Value, list[Value]]:
    """Offset in bytes, and the bounds, as operands."""
    offset = scalars.value_of(scalars.multiply(at.offset, itemsize))
    return offset, [scalars.value_of(number) for numbers in bounds(at, itemsize) for number in numbers]


# ---- reading ---------------------------------------------------------------------------------------------------------


def load(ref: Ref, index: Any = ..., *, mask: Any = None, other: Any = None, **hints: Any) -> array:
    """The elements of ref[index]; with a mask, `other` where it does not hold."""
    kernel_trace("load")
    view, buffer = select(ref, index), ref.buffer
    buffer.is_read = True
    if mask is None and view.is_whole and buffer.home is not None:
        if buffer.whole is None:
            with kernel_trace("load").elsewhere(buffer.home):
                buffer.whole = read(view)
        shown = buffer.whole
        return shown if shown.shape == view.shape else shaping.reshape(shown, view.shape)
    if view.gathers or (mask is not None and other is not None):
        return _read_through_pointers(view, mask, other)
    return read(view)


def read(view: Ref, storage: Storage | None = None) -> array:
    """All elements of a view, by one descriptor."""
    at = address(view, storage or view.buffer.storage)
    dtype = view.core
    fill = full((), dtype.poison, dtype).value if is_bounded(at) else None
    trace = current()
    offset, numbers = descriptor(at, dtype.itemsize)
    value = trace.builder.create(
        memory.DmaLoad, at.pointer, offset, fill, numbers, tile_shape=view.shape, ahead=view.buffer.ahead
    )
    value.name = None if storage is not None else f"{view.buffer.name}_block"
    return array(value)


def _read_through_pointers(view: Ref, mask: Any, other: Any) -> array:
    pointers, valid, shape = pointer_tile(view, view.buffer.storage)
    dtype = view.core
    fill = known_scalar(dtype.poison, dtype) if other is None else convert(to_array(other, "load"), dtype)
    if mask is not None:
        flag = to_shape(convert(to_array(mask, "load"), core.bool_), shape, "load")
        valid = flag if valid is None else operators.logical("and", valid, flag)
    trace = current()
    if valid is None:
        return array(trace.builder.create(memory.Load, pointers))
    spread = to_shape(fill, shape, "load")
    return array(trace.builder.create(memory.Load, pointers, valid.value, spread.value))


# ---- writing ---------------------------------------------------------------------------------------------------------


def store(ref: Ref, index: Any, value: Any, *, mask: Any = None, **hints: Any) -> None:
    """Write `value`, converted to the ref's dtype and repeated to its shape, where the mask holds."""
    kernel_trace("store")
    view, buffer = select(ref, index), ref.buffer
    require_writable(ref)
    data = convert(to_array(value, "store"), buffer.dtype)
    flag = None if mask is None else convert(to_array(mask, "store"), core.bool_)
    op = write(view, data, flag, buffer.storage)
    buffer.writes.append(Write(view, data, flag, op))
    kernel_trace("store").undo.append(buffer.take_back)


def require_writable(ref: Ref) -> None:
    """ReadOnlyRef for a ref of an input."""
    if not ref.buffer.writable:
        fail(ReadOnlyRef, name=ref.buffer.name)


def write(view: Ref, data: array, mask: array | None, storage: Storage) -> Op:
    """The store of a value into a view of a storage; gives the operation."""
    builder = current().builder
    if view.gathers or mask is not None:
        pointers, valid, shape = pointer_tile(view, storage)
        if mask is not None:
            flag = to_shape(mask, shape, "store")
            valid = flag if valid is None else operators.logical("and", valid, flag)
        spread = to_shape(data, shape, "store")
        return builder.create_op(memory.Store, pointers, spread.value, None if valid is None else valid.value)
    spread = to_shape(data, view.shape, "store")
    at = address(view, storage)
    offset, numbers = descriptor(at, view.core.itemsize)
    return builder.create_op(memory.DmaStore, at.pointer, offset, spread.value, numbers)


def pointer_tile(view: Ref, storage: Storage) -> tuple[Value, array | None, tuple[int, ...]]:
    """A tile of pointers to the elements, where they exist (None: everywhere), and the shape: gathered axes first."""
    at = address(view, storage)
    spread, shape = view.spread, view.shape
    create = current().builder.create
    pointer = create(memory.AddPointer, at.pointer, scalars.value_of(at.offset))
    if not shape:
        return pointer, None if at.guard is None else array(at.guard), ()
    offsets: array | None = None
    valid: array | None = None if at.guard is None else array(create(Splat, at.guard, shape=shape))

    def along(tile: array, predicate: str, bound: Scalar) -> None:
        nonlocal valid
        limit = array(scalars.value_of(bound)) if isinstance(bound, Value) else known_scalar(bound, tile.core)
        flag = operators.compare(predicate, tile, limit)
        valid = flag if valid is None else operators.logical("and", valid, flag)

    for gathered in view.gathers:
        index = shaping.reshape(to_shape(gathered.index, spread), (*spread, *(1,) * len(view.dims)))
        tile = to_shape(index, shape)
        size = view.buffer.shape[gathered.axis]
        along(tile, "ge", 0)
        along(tile, "lt", size)
        low, limit = storage.range_of(gathered.axis)
        if low is not None:
            along(tile, "ge", low)
        if limit is not None:
            along(tile, "lt", limit)
        term = operators.multiply(tile, storage.strides[gathered.axis])
        offsets = term if offsets is None else operators.add(offsets, term)
    for d, (_, stride, low, limit) in enumerate(at.dims):
        tile = shaping.broadcasted_iota(core.i32, shape, len(spread) + d)
        if low is not None:
            along(tile, "ge", low)
        if limit is not None:
            along(tile, "lt", limit)
        term = operators.multiply(tile, stride)
        offsets = term if offsets is None else operators.add(offsets, term)
    assert offsets is not None
    pointers = create(memory.AddPointer, create(Splat, pointer, shape=shape), offsets.value)
    return pointers, valid, shape


def swap(ref: Ref, index: Any, value: Any, *, mask: Any = None) -> array:
    """Write, and give what was there before."""
    before = load(ref, index, mask=mask, other=None if mask is None else 0)
    store(ref, index, value, mask=mask)
    return before


def window(name: str, shape: tuple[int, ...], dtype: DType) -> Buffer:
    """A region of SRAM that lives while the present block runs."""
    made = current().builder.create(memory.Window, shape=shape, dtype=dtype)
    made.name = name
    strides = [1] * len(shape)
    for d in range(len(shape) - 2, -1, -1):
        strides[d] = strides[d + 1] * shape[d + 1]
    return Buffer(name, shape, dtype, Storage(made, tuple(strides)))


def require_scalar(value: Any, function: str) -> array:
    """A value that is a scalar."""
    scalar = to_array(value, function)
    if scalar.shape:
        fail(WrongDtype, function=function, given=str(scalar), takes="it takes a scalar")
    return scalar
