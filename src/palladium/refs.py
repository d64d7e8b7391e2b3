"""What kernels do with refs: the addresses behind them, reading, writing, and windows of SRAM."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from loom_core.base import dtype as core
from loom_core.base.dtype import DType
from loom_core.ir.op import Op
from loom_core.ir.value import Value
from loom_core.ops import memory
from loom_core.ops.shape import Splat
from loom_core.trace.context import current
from palladium import operators, scalars, shaping
from palladium.errors import ReadOnlyRef, WrongDtype, WrongShape, fail
from palladium.hints import LOAD_HINTS, STORE_HINTS, check_hints
from palladium.scalars import Scalar
from palladium.trace import kernel_trace
from palladium.values import array, convert, full, known_scalar, to_array, to_shape
from palladium.views import Buffer, Ref, Storage, Write, select, whole_ref

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
    check_hints(load, hints, LOAD_HINTS)
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
        memory.DmaLoad, at.pointer, offset, fill, numbers, tile_shape=view.shape, slots=view.buffer.slots
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
    check_hints(store, hints, STORE_HINTS)
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


def write(view: Ref, data: array, mask: array | None, storage: Storage, slots: int = 0) -> Op:
    """The store of a value into a view of a storage, its tiles in so many slots; gives the operation."""
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
    return builder.create_op(memory.DmaStore, at.pointer, offset, spread.value, numbers, slots=slots)


def pointer_tile(view: Ref, storage: Storage) -> tuple[Value, array | None, tuple[int, ...]]:
    """A tile of pointers to the elements, where they exist (None: everywhere), and the view's shape."""
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
        around = (1,) * view.place, (1,) * (len(view.dims) - view.place)
        index = shaping.reshape(to_shape(gathered.index, spread), (*around[0], *spread, *around[1]))
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
        tile = shaping.broadcasted_iota(core.i32, shape, d if d < view.place else len(spread) + d)
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


def reshaped(ref: Ref, shape: Sequence[int]) -> Ref:
    """A ref of elements that follow each other in memory, under another shape. WrongShape where they do not."""
    sizes = tuple(shape)
    if sizes.count(-1) == 1:
        known = prod(size for size in sizes if size != -1)
        sizes = tuple(ref.size // max(known, 1) if size == -1 else size for size in sizes)
    if prod(sizes) != ref.size:
        fail(WrongShape, function="reshape", problem=f"{ref.size} elements do not fill shape {sizes}")
    at = address(ref, ref.buffer.storage)
    together = 1
    for size, stride, _, _ in reversed(at.dims):
        if size > 1 and stride != together:
            fail(WrongShape, function="reshape", problem=f"the elements of {ref!r} are apart")
        together *= size
    if any(low is not None or limit is not None for _, _, low, limit in at.dims) or ref.gathers:
        fail(WrongShape, function="reshape", problem=f"some elements of {ref!r} may not exist")
    ref.buffer.is_read = True  # what is written through the other shape stays where it is
    steps = [prod(sizes[d + 1 :]) for d in range(len(sizes))]
    storage = Storage(at.pointer, tuple(steps), at.offset)
    made = whole_ref(Buffer(ref.buffer.name, sizes, ref.core, storage, ref.buffer.writable))
    return Ref(made.buffer, made.starts, made.dims, at.guard)


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
