"""The run-time value of Palladium: a tile or a scalar of a kernel."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from loom_core.base import dtype as core
from loom_core.base.dtype import DType
from loom_core.base.location import Location
from loom_core.ir.block import Block
from loom_core.ir.op import Op
from loom_core.ir.types import TileType
from loom_core.ir.value import Value
from loom_core.ops import elementwise as ops
from loom_core.ops.shape import Broadcast, ExpandDims, Splat
from loom_core.trace.context import active, current, round_constant
from loom_core.trace.values import Traced
from palladium import promotion
from palladium.errors import LeftItsBlock, NotAValue, NotRead, NotStatic, ShapesDiffer, WrongShape, fail
from palladium.trace import KernelTrace

Interval = tuple[int, int]


class Unread:
    """What has to be read before it is a value: the base of refs."""

    __slots__ = ()

    @property
    def shown(self) -> str:
        """What it is called in the kernel."""
        raise NotImplementedError


class array(Traced):
    """A tile of `shape` and `dtype`, or a scalar (shape ()): what the kernel will compute.

    `weak` marks what came from Python numbers alone, which takes the dtype of what it meets. `known` is the value of a
    scalar that is known while tracing, `interval` the inclusive range of an integer scalar, where it is known.
    Operators and methods follow JAX's rules.
    """

    __slots__ = ("_type", "_value", "interval", "known", "weak")

    def __init__(
        self,
        value: Value | None,
        type: TileType | None = None,
        *,
        weak: bool = False,
        known: bool | int | float | None = None,
        interval: Interval | None = None,
    ) -> None:
        if value is not None:
            type = value.type
        assert type is not None
        self._type = type
        self._value = value
        self.weak = weak
        self.known = known
        self.interval = interval

    @property
    def ir_type(self) -> TileType:
        return self._type

    @property
    def core(self) -> DType:
        """The dtype as the compiler names it."""
        return self._type.dtype

    @property
    def dtype(self) -> np.dtype[Any]:
        return self._type.dtype.numpy

    @property
    def shape(self) -> tuple[int, ...]:
        return self._type.shape

    @property
    def ndim(self) -> int:
        return len(self._type.shape)

    @property
    def size(self) -> int:
        return self._type.size

    @property
    def value(self) -> Value:
        """The IR value, made in the present block if this is a known scalar. LeftItsBlock where it does not exist."""
        if self._value is not None:
            trace = active()
            if isinstance(trace, KernelTrace) and not trace.is_open(self.home):
                fail(LeftItsBlock, value=self)
            return self._value
        assert self.known is not None
        return current().constant(self._type, self.known)

    @property
    def home(self) -> Block | None:
        """The block in which it is made; None for a known scalar."""
        return None if self._value is None else self._value.parent_block

    # -- Traced --------------------------------------------------------------------------------------------------------

    def ir_values(self) -> list[Value]:
        return [self.value]

    def ir_types(self) -> list[TileType]:
        return [self._type]

    def with_ir_values(self, values: Sequence[Value]) -> array:
        (value,) = values
        return array(value)

    def structure(self) -> Hashable:
        return self._type

    def same(self, other: Traced) -> bool:
        return self is other

    def suggest_name(self, name: str) -> None:
        if self._value is not None and self._value.name is None:
            self._value.name = name

    @property
    def origin(self) -> Location:
        owner = None if self._value is None else self._value.owner
        return owner.location if isinstance(owner, Op) else current().function.location

    def __str__(self) -> str:
        sizes = ", ".join(map(str, self.shape))
        return f"{self.core.name}[{sizes}]"

    def __repr__(self) -> str:
        return f"<{self!s}>" if self.known is None else f"<{self!s} = {self.known}>"

    # -- what Python might ask of it -----------------------------------------------------------------------------------

    __hash__ = object.__hash__

    def __bool__(self) -> bool:
        if self.known is None:
            self._unknown("the truth of this value", "branch with when() or cond(), or choose elements with where()")
        return bool(self.known)

    def __index__(self) -> int:
        if self.known is None or self.core.is_float:
            self._unknown("this integer", "loop with fori() or loop(), and slice with ds(start, size)")
        return int(self.known)

    def __int__(self) -> int:
        return self.__index__()

    def __float__(self) -> float:
        if self.known is None:
            self._unknown("this number", "convert it with astype()")
        return float(self.known)

    def __iter__(self) -> Iterator[array]:
        if not self.shape:
            self._unknown("the items of a scalar", "loop with fori()")
        return (self[i] for i in range(self.shape[0]))

    def __len__(self) -> int:
        if not self.shape:
            self._unknown("the length of a scalar", "it has none")
        return self.shape[0]

    def __format__(self, spec: str) -> str:
        return format(repr(self), spec)

    def __array__(self, *args: Any, **kwargs: Any) -> NoReturn:
        instead = "compute with Palladium's functions (in ported kernels jnp's) in place of NumPy's"
        self._unknown("the elements of a tile", instead)

    def _unknown(self, what: str, instead: str) -> NoReturn:
        fail(NotStatic, what=what, instead=instead)

    if TYPE_CHECKING:
        # Set by `palladium.members`, for type checkers and editors.
        # fmt: off
        def __add__(self, other: Any) -> array: ...
        def __radd__(self, other: Any) -> array: ...
        def __sub__(self, other: Any) -> array: ...
        def __rsub__(self, other: Any) -> array: ...
        def __mul__(self, other: Any) -> array: ...
        def __rmul__(self, other: Any) -> array: ...
        def __truediv__(self, other: Any) -> array: ...
        def __rtruediv__(self, other: Any) -> array: ...
        def __floordiv__(self, other: Any) -> array: ...
        def __mod__(self, other: Any) -> array: ...
        def __neg__(self) -> array: ...
        def __and__(self, other: Any) -> array: ...
        def __or__(self, other: Any) -> array: ...
        def __lt__(self, other: Any) -> array: ...
        def __le__(self, other: Any) -> array: ...
        def __gt__(self, other: Any) -> array: ...
        def __ge__(self, other: Any) -> array: ...
        def __getitem__(self, index: Any) -> array: ...
        def astype(self, dtype: Any) -> array: ...
        # fmt: on


# ---- making values ---------------------------------------------------------------------------------------------------


def emit(kind: type[Op], /, *operands: array, **attributes: Any) -> array:
    """Make an operation with one result."""
    return array(current().builder.create(kind, *(operand.value for operand in operands), **attributes))


def known_scalar(number: bool | int | float, dtype: DType, weak: bool = False) -> array:
    """A scalar of known value, rounded to its dtype unless it is weak."""
    number = number if weak else round_constant(dtype, number)
    interval = None if dtype.is_float else (int(number), int(number))
    return array(None, TileType(dtype), known=number, weak=weak, interval=interval)


def is_value(given: Any) -> bool:
    """Whether `given` can be an operand: a tile, a scalar, a number."""
    return isinstance(given, (array, bool, int, float, np.generic)) or (
        isinstance(given, np.ndarray) and not given.shape
    )


def to_array(given: Any, function: str) -> array:
    """An operand as a value of the kernel: Python numbers are weak, NumPy scalars have their dtype."""
    if isinstance(given, array):
        return given
    if isinstance(given, bool):
        return known_scalar(given, core.bool_)
    if isinstance(given, int):
        return known_scalar(given, core.i32, weak=True)
    if isinstance(given, float):
        return known_scalar(given, core.f32, weak=True)
    if isinstance(given, Unread):
        fail(NotRead, function=function, name=given.shown)
    if not isinstance(given, (np.ndarray, np.generic)):
        fail(NotAValue, function=function, given=f"a {type(given).__name__}")
    return _constant_array(np.asarray(given), function)


def _constant_array(given: np.ndarray[Any, Any], function: str) -> array:
    dtype = promotion.as_dtype(given.dtype)
    if not given.size or not (given == given.flat[0]).all():
        fail(NotAValue, function=function, given=f"a NumPy array of shape {given.shape}")
    return full(given.shape, given.flat[0].item(), dtype)


def full(shape: tuple[int, ...], number: bool | int | float, dtype: DType) -> array:
    """A tile with one number in every element."""
    if not shape:
        return known_scalar(number, dtype)
    return array(current().constant(TileType(dtype, shape), number))


def as_shape(given: Any, function: str) -> tuple[int, ...]:
    """A shape: an int or a sequence of them, all known."""
    sizes = given if isinstance(given, (tuple, list)) else (given,)
    plain = []
    for size in sizes:
        try:
            plain.append(int(size.__index__()))
        except (AttributeError, TypeError):
            fail(WrongShape, function=function, problem=f"{size!r} is no size")
    if any(size < 1 for size in plain):
        fail(WrongShape, function=function, problem=f"{tuple(plain)} holds a size below 1")
    return tuple(plain)


# ---- conversions -----------------------------------------------------------------------------------------------------


def convert(value: array, dtype: DType, weak: bool = False) -> array:
    """The value in another dtype: floats round to nearest even, float to integer truncates, to bool is `!= 0`."""
    if value.core is dtype:
        return value
    if value.known is not None:
        number = value.known
        if dtype.is_bool:
            return known_scalar(bool(number), dtype)
        if dtype.is_float:
            return known_scalar(float(number), dtype, weak)
        if not value.core.is_float:
            return known_scalar(wrap(int(number), dtype), dtype, weak)
    if dtype.is_bool:
        return emit(ops.Compare, value, full(value.shape, 0, value.core), predicate="ne")
    made = emit(ops.Cast, value, dtype=dtype, saturate=False) if dtype.is_float else emit(ops.Cast, value, dtype=dtype)
    made.interval = value.interval if fits(value.interval, dtype) else None
    return made


def wrap(number: int, dtype: DType) -> int:
    """An integer modulo 2**bits."""
    reduced = number & ((1 << dtype.bits) - 1)
    return reduced - (1 << dtype.bits) if dtype.kind == "int" and reduced >> (dtype.bits - 1) else reduced


def fits(interval: Interval | None, dtype: DType) -> bool:
    return (
        interval is not None and dtype.is_integer and dtype.min_value <= interval[0] <= interval[1] <= dtype.max_value
    )


def promote(function: str, *operands: Any) -> tuple[list[array], bool]:
    """Operands in their common dtype, and whether that is weak."""
    values = [to_array(operand, function) for operand in operands]
    dtype, weak = promotion.result_dtype([(value.core, value.weak) for value in values], function)
    return [convert(value, dtype, weak) for value in values], weak


# ---- shapes ----------------------------------------------------------------------------------------------------------


def common_shape(shapes: Sequence[tuple[int, ...]], function: str) -> tuple[int, ...]:
    """The shape that all broadcast to; dimensions are added in front."""
    result: tuple[int, ...] = ()
    for shape in shapes:
        rank = max(len(result), len(shape))
        a, b = (1,) * (rank - len(result)) + result, (1,) * (rank - len(shape)) + shape
        if any(x != y and 1 not in (x, y) for x, y in zip(a, b, strict=True)):
            fail(ShapesDiffer, function=function, first=result, second=shape)
        result = tuple(y if x == 1 else x for x, y in zip(a, b, strict=True))
    return result


def to_shape(value: array, shape: tuple[int, ...], function: str = "broadcast_to") -> array:
    """A value repeated to a shape that it broadcasts to."""
    if value.shape == shape:
        return value
    if common_shape([value.shape, shape], function) != shape:
        fail(ShapesDiffer, function=function, first=value.shape, second=shape)
    if value.known is not None:
        return array(full(shape, value.known, value.core).value, weak=value.weak)
    create = current().builder.create
    ir: Value = value.value
    if not value.shape:
        return array(create(Splat, ir, shape=shape), weak=value.weak)
    while len(ir.type.shape) < len(shape):
        ir = create(ExpandDims, ir, axis=0)
    if ir.type.shape != shape:
        ir = create(Broadcast, ir, shape=shape)
    return array(ir, weak=value.weak)


def broadcast(values: Sequence[array], function: str) -> list[array]:
    """All in their common shape."""
    shape = common_shape([value.shape for value in values], function)
    return [to_shape(value, shape, function) for value in values]
