"""The types of LTL, spelled as in Triton: element types, pointers and blocks."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from math import prod
from typing import Any, Final

from loom_core.base import dtype as core
from loom_core.ir.types import Element, PointerType, TileType

_NAMES: Final[dict[str, core.DType]] = {}


@dataclass(frozen=True, repr=False)
class dtype:
    """An element type: `float32`, `int1`, ...; `core` is Loom's own, `name` Triton's short name ("fp32", "int1").

    `dtype("fp32")` is `float32`. ValueError for a name that there is not.
    """

    name: str
    core: core.DType = field(default=None)  # type: ignore[assignment]

    class SIGNEDNESS(Enum):
        """Whether integers have a sign."""

        SIGNED = 0
        UNSIGNED = 1

    class KIND(Enum):
        """The kinds of numbers, lowest first."""

        BOOLEAN = 0
        INTEGRAL = 1
        FLOATING = 2

    def __post_init__(self) -> None:
        given: object = self.core
        if given is None:
            if self.name not in _NAMES:
                raise ValueError(f"no dtype is called {self.name!r}; known: {', '.join(_NAMES)}")
            object.__setattr__(self, "core", _NAMES[self.name])
        _NAMES.setdefault(self.name, self.core)

    def __call__(self, value: Any) -> Any:
        """In a kernel: a number as a scalar of this dtype, or a tile converted to it."""
        from ltl.functions import cast

        return cast(value, self)

    @staticmethod
    def is_dtype(type_str: str) -> bool:
        """Whether a dtype is called so."""
        return type_str in _NAMES

    @property
    def int_signedness(self) -> SIGNEDNESS:
        """Whether the integers of this type have a sign."""
        return self.SIGNEDNESS.SIGNED if self.core.kind == "int" else self.SIGNEDNESS.UNSIGNED

    def kind(self) -> KIND:
        """The kind of number."""
        if self.core.is_bool:
            return self.KIND.BOOLEAN
        return self.KIND.FLOATING if self.core.is_float else self.KIND.INTEGRAL

    def is_standard_floating(self) -> bool:
        """True for floats of 16 bits and more."""
        return self.core.is_float and self.core.bits >= 16

    def is_fp8e4nv(self) -> bool:
        return self.core is core.f8e4m3

    def is_fp8e5(self) -> bool:
        return self.core is core.f8e5m2

    def is_fp8e4b15(self) -> bool:
        return False

    def is_fp8e4b8(self) -> bool:
        return False

    def is_fp8e5b16(self) -> bool:
        return False

    def is_void(self) -> bool:
        return False

    def is_const(self) -> bool:
        return False

    def with_element_ty(self, element_ty: dtype) -> dtype:
        """The type of a scalar with another element type: that type."""
        return element_ty

    @property
    def primitive_bitwidth(self) -> int:
        """Bits of a value; 1 for int1."""
        return self.core.bits

    @property
    def itemsize(self) -> int:
        """Bytes of an element in memory."""
        return self.core.itemsize

    @property
    def int_bitwidth(self) -> int:
        """Bits of an integer type."""
        return self.core.bits

    @property
    def fp_mantissa_width(self) -> int:
        """Explicit mantissa bits of a float type."""
        return self.core.mantissa

    @property
    def scalar(self) -> dtype:
        return self

    @property
    def element(self) -> Element:
        """The element of IR types."""
        return self.core

    def is_floating(self) -> bool:
        return self.core.is_float

    def is_int(self) -> bool:
        """True for integers and int1."""
        return not self.core.is_float

    def is_int_signed(self) -> bool:
        return self.core.kind == "int"

    def is_int_unsigned(self) -> bool:
        """True for unsigned integers and int1."""
        return self.core.kind in ("uint", "bool")

    def is_bool(self) -> bool:
        return self.core.is_bool

    def is_ptr(self) -> bool:
        return False

    def is_block(self) -> bool:
        return False

    def is_int1(self) -> bool:
        return self.core is core.bool_

    def is_int8(self) -> bool:
        return self.core is core.i8

    def is_int16(self) -> bool:
        return self.core is core.i16

    def is_int32(self) -> bool:
        return self.core is core.i32

    def is_int64(self) -> bool:
        return self.core is core.i64

    def is_uint8(self) -> bool:
        return self.core is core.u8

    def is_uint16(self) -> bool:
        return self.core is core.u16

    def is_uint32(self) -> bool:
        return self.core is core.u32

    def is_uint64(self) -> bool:
        return self.core is core.u64

    def is_fp16(self) -> bool:
        return self.core is core.f16

    def is_bf16(self) -> bool:
        return self.core is core.bf16

    def is_fp32(self) -> bool:
        return self.core is core.f32

    def is_fp64(self) -> bool:
        return self.core is core.f64

    def is_fp8(self) -> bool:
        return self.core.is_float and self.core.bits == 8

    def get_int_max_value(self) -> int:
        return self.core.max_value

    def get_int_min_value(self) -> int:
        return self.core.min_value

    def __str__(self) -> str:
        return self.name

    __repr__ = __str__


@dataclass(frozen=True, repr=False)
class pointer_type:
    """A pointer to elements of `element_ty`."""

    element_ty: dtype
    address_space: str = "global"
    const: bool = False

    @property
    def element(self) -> Element:
        return PointerType(self.element_ty.core)

    @property
    def primitive_bitwidth(self) -> int:
        """Bits of a pointer."""
        return 64

    def is_const(self) -> bool:
        return self.const

    @property
    def scalar(self) -> pointer_type:
        return self

    @property
    def name(self) -> str:
        return str(self)

    def is_ptr(self) -> bool:
        return True

    def is_block(self) -> bool:
        return False

    def is_floating(self) -> bool:
        return False

    def is_int(self) -> bool:
        return False

    def is_bool(self) -> bool:
        return False

    def __str__(self) -> str:
        return f"pointer<{self.element_ty}>"

    __repr__ = __str__


@dataclass(frozen=True, repr=False)
class block_type:
    """A tile: `element_ty` (a dtype or a pointer type) and a shape of ints."""

    element_ty: dtype | pointer_type
    shape: tuple[int, ...]

    @property
    def scalar(self) -> dtype | pointer_type:
        return self.element_ty

    def is_block(self) -> bool:
        return True

    def is_ptr(self) -> bool:
        return False

    def get_block_shapes(self) -> tuple[int, ...]:
        return self.shape

    def with_element_ty(self, element_ty: dtype | pointer_type) -> block_type:
        """A tile type of the same shape."""
        return block_type(element_ty, self.shape)

    @property
    def numel(self) -> int:
        """The number of elements."""
        return prod(self.shape)

    def __str__(self) -> str:
        return f"<{list(self.shape)}, {self.element_ty}>"

    __repr__ = __str__


float64: Final = dtype("fp64", core.f64)
float32: Final = dtype("fp32", core.f32)
float16: Final = dtype("fp16", core.f16)
bfloat16: Final = dtype("bf16", core.bf16)
float8e4nv: Final = dtype("fp8e4nv", core.f8e4m3)
float8e5: Final = dtype("fp8e5", core.f8e5m2)
int64: Final = dtype("int64", core.i64)
int32: Final = dtype("int32", core.i32)
int16: Final = dtype("int16", core.i16)
int8: Final = dtype("int8", core.i8)
uint64: Final = dtype("uint64", core.u64)
uint32: Final = dtype("uint32", core.u32)
uint16: Final = dtype("uint16", core.u16)
uint8: Final = dtype("uint8", core.u8)
int1: Final = dtype("int1", core.bool_)
pi32_t: Final = pointer_type(int32)


@dataclass(frozen=True)
class RefusedType:
    """A type of Triton's that Loom has not; using it is refused with the reason."""

    name: str
    reason: str

    def __str__(self) -> str:
        return self.name


_VENDOR: Final = "it is a format of one vendor's devices; use float8e4nv or float8e5"
REFUSED: Final = {
    "float8e4b15": RefusedType("fp8e4b15", _VENDOR),
    "float8e4b8": RefusedType("fp8e4b8", _VENDOR),
    "float8e5b16": RefusedType("fp8e5b16", _VENDOR),
}


class void:
    """The type of functions that give nothing; for annotations."""


class const:
    """For annotations: a pointer through which the kernel does not store."""


def get_int_dtype(bitwidth: int, signed: bool) -> dtype:
    """The integer dtype of a width. ValueError if there is none."""
    return dtype("int1" if bitwidth == 1 else f"{'' if signed else 'u'}int{bitwidth}")


ALL: Final = (
    float64, float32, float16, bfloat16, float8e4nv, float8e5,
    int64, int32, int16, int8, uint64, uint32, uint16, uint8, int1,
)  # fmt: skip
_BY_CORE: Final = {row.core: row for row in ALL}
_BY_TEXT: Final = {
    **{row.name: row for row in ALL},
    **{row.core.name: row for row in ALL},
    "i1": int1, "fp8e4m3": float8e4nv, "fp8e5m2": float8e5, "u1": int1, "B": int1,
}  # fmt: skip


def of_core(core_dtype: core.DType) -> dtype:
    """The LTL type of one of Loom's dtypes."""
    return _BY_CORE[core_dtype]


def of_element(element: Element) -> dtype | pointer_type:
    """The LTL type of an IR element."""
    if isinstance(element, PointerType):
        return pointer_type(of_core(element.pointee))
    return of_core(element)


def from_text(text: str) -> dtype | pointer_type | None:
    """The type that a signature spells: "*fp32" or "*f32" for a pointer, "i32", "fp32", "i1"; None if it is none."""
    if text.startswith("*"):
        pointee = _BY_TEXT.get(text[1:])
        return None if pointee is None else pointer_type(pointee)
    return _BY_TEXT.get(text)


def as_dtype(value: Any) -> dtype | None:
    """What a kernel gave as a dtype: one of LTL, the name of one, a NumPy or ml_dtypes type; None if it is none."""
    if isinstance(value, dtype):
        return value
    if isinstance(value, str):
        return _BY_TEXT.get(value)
    try:
        return _BY_CORE.get(core.from_numpy(value))
    except TypeError:
        return None


def tile_type(element: dtype | pointer_type, shape: tuple[int, ...] = ()) -> TileType:
    """The IR type of a tile of `element`."""
    return TileType(element.element, shape)
