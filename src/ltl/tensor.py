"""The run-time value of LTL: a tile or a scalar of a kernel."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from loom_core.base.location import Location
from loom_core.ir.op import Op
from loom_core.ir.types import TileType
from loom_core.ir.value import Value
from loom_core.ops.shape import Constant
from loom_core.trace.context import current
from loom_core.trace.errors import AmbiguousTruth, RuntimeValueNeeded
from loom_core.trace.values import Traced
from ltl import dtypes
from ltl.errors import WrongAxis, fail, here


class Shape(tuple[int, ...]):
    """A shape in a kernel: a tuple that adds to and equals lists too, as kernels write shapes either way."""

    __slots__ = ()

    @classmethod
    def _make(cls, sizes: Iterable[int]) -> Shape:
        return cls(sizes)

    def __eq__(self, other: object) -> bool:
        return tuple(self) == (tuple(other) if isinstance(other, list) else other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = tuple.__hash__

    def __add__(self, other: Any) -> Shape:
        return Shape((*self, *other))

    def __radd__(self, other: Any) -> Shape:
        return Shape((*other, *self))

    def __getitem__(self, index: Any) -> Any:
        try:
            found = super().__getitem__(index)
        except IndexError:
            fail(WrongAxis, function="shape", axis=int(index), rank=len(self))
        return Shape(found) if isinstance(index, slice) else found


class tensor(Traced):
    """A tile of `shape` and `dtype`, or a scalar (shape ()).

    It stands for what the kernel will compute. A scalar whose value is known while tracing (from a literal) carries it
    as `known`; it becomes a constant where an operation needs it. Operators follow Triton's rules of promotion.
    """

    __slots__ = ("_origin", "_type", "_value", "known")

    def __init__(
        self,
        type: TileType,
        value: Value | None,
        known: bool | int | float | None = None,
        origin: Location | None = None,
    ) -> None:
        self._type = type
        self._value = value
        self.known = known
        self._origin = origin

    # -- what it is ----------------------------------------------------------------------------------------------------

    @property
    def ir_type(self) -> TileType:
        """The type of the IR value."""
        return self._type

    @property
    def shape(self) -> Shape:
        return Shape(self._type.shape)

    @property
    def dtype(self) -> Any:
        """The element type: an LTL dtype, or a pointer type."""
        return dtypes.of_element(self._type.element)

    @property
    def type(self) -> Any:
        """As in Triton: the dtype of a scalar, the block type of a tile."""
        return dtypes.block_type(self.dtype, self.shape) if self.shape else self.dtype

    @property
    def numel(self) -> int:
        """The number of elements."""
        return self._type.size

    @property
    def T(self) -> tensor:
        """The tile with its last two dimensions exchanged."""
        from ltl import shaping

        return shaping.trans(self)

    @property
    def value(self) -> Value:
        """The IR value, made in the present block if this is a known scalar."""
        if self._value is not None:
            return self._value
        assert self.known is not None
        return current().constant(self._type, self.known)

    # -- Traced --------------------------------------------------------------------------------------------------------

    def ir_values(self) -> list[Value]:
        return [self.value]

    def ir_types(self) -> list[TileType]:
        return [self._type]

    def with_ir_values(self, values: Sequence[Value]) -> tensor:
        (value,) = values
        return tensor(value.type, value)

    def structure(self) -> Hashable:
        return self._type

    def same(self, other: Traced) -> bool:
        if not isinstance(other, tensor):
            return False
        if self._value is not None or other._value is not None:
            return self._value is other._value
        return self._type == other._type and repr(self.known) == repr(other.known)

    def suggest_name(self, name: str) -> None:
        value = self._value
        # Constants are shared by all that need them, so they belong to no variable.
        if value is not None and value.name is None and not isinstance(value.owner, Constant):
            value.name = name

    @property
    def origin(self) -> Location:
        if self._origin is not None:
            return self._origin
        owner = None if self._value is None else self._value.owner
        if isinstance(owner, Op):
            return owner.location
        region = None if owner is None else owner.parent
        return current().function.location if region is None else region.location

    def __str__(self) -> str:
        return str(self.type)

    def __repr__(self) -> str:
        return f"<{self.type}>" if self.known is None else f"<{self.type} = {self.known}>"

    # -- what Python might ask of it -----------------------------------------------------------------------------------

    __hash__ = object.__hash__

    if TYPE_CHECKING:
        # Defined by `ltl.operators` and `ltl.members`, for type checkers and editors.
        # fmt: off
        def __add__(self, other: Any) -> tensor: ...
        def __radd__(self, other: Any) -> tensor: ...
        def __sub__(self, other: Any) -> tensor: ...
        def __rsub__(self, other: Any) -> tensor: ...
        def __mul__(self, other: Any) -> tensor: ...
        def __rmul__(self, other: Any) -> tensor: ...
        def __truediv__(self, other: Any) -> tensor: ...
        def __rtruediv__(self, other: Any) -> tensor: ...
        def __floordiv__(self, other: Any) -> tensor: ...
        def __rfloordiv__(self, other: Any) -> tensor: ...
        def __mod__(self, other: Any) -> tensor: ...
        def __rmod__(self, other: Any) -> tensor: ...
        def __and__(self, other: Any) -> tensor: ...
        def __rand__(self, other: Any) -> tensor: ...
        def __or__(self, other: Any) -> tensor: ...
        def __ror__(self, other: Any) -> tensor: ...
        def __xor__(self, other: Any) -> tensor: ...
        def __rxor__(self, other: Any) -> tensor: ...
        def __lshift__(self, other: Any) -> tensor: ...
        def __rlshift__(self, other: Any) -> tensor: ...
        def __rshift__(self, other: Any) -> tensor: ...
        def __rrshift__(self, other: Any) -> tensor: ...
        def __neg__(self) -> tensor: ...
        def __pos__(self) -> tensor: ...
        def __invert__(self) -> tensor: ...
        def __lt__(self, other: Any) -> tensor: ...
        def __le__(self, other: Any) -> tensor: ...
        def __gt__(self, other: Any) -> tensor: ...
        def __ge__(self, other: Any) -> tensor: ...
        def __getitem__(self, index: Any) -> tensor: ...
        def to(self, dtype: Any, fp_downcast_rounding: Any = None, bitcast: Any = False) -> tensor: ...
        # fmt: on

    def __bool__(self) -> bool:
        if self.known is not None:
            return bool(self.known)
        if self.shape:
            raise AmbiguousTruth(here(), shape=self.shape)
        raise RuntimeValueNeeded(here(), what="the truth of this value")

    def __index__(self) -> int:
        if isinstance(self.known, int):
            return int(self.known)
        raise RuntimeValueNeeded(here(), what="this integer")

    def __iter__(self) -> Iterator[Any]:
        self._refuse("the items of a tile")

    def __len__(self) -> int:
        if not self._type.shape:
            self._refuse("the length of a scalar")
        return self._type.shape[0]

    def __int__(self) -> int:
        if self.known is None:
            self._refuse("this value", "convert it with .to(ltl.int32)")
        return int(self.known)

    def __float__(self) -> float:
        if self.known is None:
            self._refuse("this value", "convert it with .to(ltl.float32)")
        return float(self.known)

    def __format__(self, spec: str) -> str:
        return repr(self)

    def _refuse(self, what: str, hint: str | None = None) -> NoReturn:
        raise RuntimeValueNeeded(here(), what=what, hint=hint)
