"""Types of the interchange model: immutable, hashable, compared by structure."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, Final


class ScalarTypeKind(IntEnum):
    """Scalar elements; the numbers are those of the bytecode."""

    INDEX = 1
    OFFSET = 2
    I1 = 3
    I8 = 4
    I16 = 5
    I32 = 6
    I64 = 7
    F8E4M3 = 8
    F8E5M2 = 9
    F16 = 10
    BF16 = 11
    F32 = 12
    F64 = 13


SCALAR_NAMES: Final = {
    kind: kind.name.replace("F8", "f8") if kind.name.startswith("F8") else kind.name.lower() for kind in ScalarTypeKind
}
SCALAR_KINDS: Final = {name: kind for kind, name in SCALAR_NAMES.items()}
_WIDTHS: Final = dict(zip(ScalarTypeKind, (64, 64, 1, 8, 16, 32, 64, 8, 8, 16, 16, 32, 64), strict=True))


def scalar_type_name(kind: ScalarTypeKind) -> str:
    """How text spells a scalar kind: `i32`, `f8E4M3`."""
    return SCALAR_NAMES[kind]


def parse_scalar_type_kind(name: str) -> ScalarTypeKind | None:
    """The kind that text spells `name`, None if there is none."""
    return SCALAR_KINDS.get(name)


class TypeKind(IntEnum):
    """Kinds of types; the numbers are those of the bytecode, in which 4 is unassigned."""

    NONE = 0
    SCALAR = 1
    TILE = 2
    TENSOR = 3
    FUNCTION = 5
    DIALECT = 6
    ENCODING = 7
    POOL = 8
    VECTOR = 9
    VIEW = 10
    BUFFER = 11
    REGISTER = 12
    STORAGE = 13
    PARAMETERIZED = 14
    PLACEHOLDER = 15


class Type:
    """Base of all types."""

    __slots__ = ()

    @property
    def kind_of_type(self) -> TypeKind:
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class NoneType(Type):
    """The absence of a type."""

    @property
    def kind_of_type(self) -> TypeKind:
        return TypeKind.NONE


@dataclass(frozen=True, slots=True)
class ScalarType(Type):
    """One scalar; `index` and `offset` count as 64 bits wide."""

    kind: ScalarTypeKind

    @property
    def kind_of_type(self) -> TypeKind:
        return TypeKind.SCALAR

    @property
    def bitwidth(self) -> int:
        return _WIDTHS[self.kind]


@dataclass(frozen=True, slots=True)
class StaticDim:
    """A dimension of known size."""

    size: int


@dataclass(frozen=True, slots=True)
class DynamicDim:
    """A dimension whose size is the value `value_id`; -1 where no value is bound."""

    value_id: int = -1


Dim = StaticDim | DynamicDim


@dataclass(frozen=True, slots=True)
class StaticEncoding:
    """An encoding of the module: its position in `module.encodings`."""

    index: int


@dataclass(frozen=True, slots=True)
class DynamicEncoding:
    """An encoding that is the value `value_id`; -1 where no value is bound."""

    value_id: int = -1


SHAPED_KINDS: Final = {
    TypeKind.TILE: "tile",
    TypeKind.TENSOR: "tensor",
    TypeKind.VECTOR: "vector",
    TypeKind.VIEW: "view",
}


@dataclass(frozen=True, slots=True)
class ShapedType(Type):
    """tile, tensor, vector or view of scalars. ValueError for another kind, a rank-0 vector or an encoded one."""

    type_kind: TypeKind
    element_type: ScalarType
    dims: tuple[Dim, ...]
    encoding: StaticEncoding | DynamicEncoding | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "dims", tuple(self.dims))
        if self.type_kind not in SHAPED_KINDS:
            raise ValueError(f"{self.type_kind!r} is no shaped kind: TILE, TENSOR, VECTOR or VIEW is needed")
        if self.type_kind is TypeKind.VECTOR and not self.dims:
            raise ValueError("a vector needs at least one dimension")
        if self.type_kind is TypeKind.VECTOR and self.encoding is not None:
            raise ValueError("a vector has no encoding")

    @property
    def kind_of_type(self) -> TypeKind:
        return self.type_kind

    @property
    def rank(self) -> int:
        return len(self.dims)

    @property
    def has_encoding(self) -> bool:
        return self.encoding is not None

    @property
    def is_all_static(self) -> bool:
        return all(isinstance(dim, StaticDim) for dim in self.dims)


@dataclass(frozen=True, slots=True)
class BufferType(Type):
    """Untyped bytes."""

    @property
    def kind_of_type(self) -> TypeKind:
        return TypeKind.BUFFER


class StorageSpace(IntEnum):
    """Where a storage lives."""

    STACK = 0
    SCRATCH = 1
    PRIVATE = 2
    WORKGROUP = 3


@dataclass(frozen=True, slots=True)
class StorageType(Type):
    """A storage in one space."""

    space: StorageSpace

    @property
    def kind_of_type(self) -> TypeKind:
        return TypeKind.STORAGE


@dataclass(frozen=True, slots=True)
class FunctionType(Type):
    """Arguments to results."""

    arg_types: tuple[Type, ...]
    result_types: tuple[Type, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "arg_types", tuple(self.arg_types))
        object.__setattr__(self, "result_types", tuple(self.result_types))

    @property
    def kind_of_type(self) -> TypeKind:
        return TypeKind.FUNCTION


@dataclass(frozen=True, slots=True)
class RegisterType(Type):
    """`unit_count` registers of a class of a target's descriptor set; `name` is for people and does not compare."""

    descriptor_set_stable_id: int
    register_class_id: int
    unit_count: int = 1
    name: str | None = field(default=None, compare=False)
    value_type: Type | None = None

    @property
    def kind_of_type(self) -> TypeKind:
        return TypeKind.REGISTER


@dataclass(frozen=True, slots=True)
class DialectType(Type):
    """An opaque type of a dialect, such as `kernel.async.token`, with types as parameters."""

    name: str
    params: tuple[Type, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "params", tuple(self.params))

    @property
    def kind_of_type(self) -> TypeKind:
        return TypeKind.DIALECT


@dataclass(frozen=True, slots=True)
class ParameterizedType(Type):
    """A type of a family with named attributes, ascending by name."""

    family: str
    params: tuple[tuple[str, Any], ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "params", tuple(sorted(self.params)))

    @property
    def kind_of_type(self) -> TypeKind:
        return TypeKind.PARAMETERIZED


class EncodingRole(IntEnum):
    """What an encoding value says."""

    UNKNOWN = 0
    LAYOUT = 1
    SCHEMA = 2
    STORAGE = 3
    TRANSFORM = 4


@dataclass(frozen=True, slots=True)
class EncodingType(Type):
    """The type of an encoding value."""

    role: EncodingRole = EncodingRole.UNKNOWN

    @property
    def kind_of_type(self) -> TypeKind:
        return TypeKind.ENCODING


@dataclass(frozen=True, slots=True)
class PoolType(Type):
    """A pool of blocks of `block_size` bytes, a number or a bound value."""

    block_size: Dim

    @property
    def kind_of_type(self) -> TypeKind:
        return TypeKind.POOL


NONE_TYPE: Final = NoneType()
INDEX, OFFSET, I1, I8, I16, I32, I64, F8E4M3, F8E5M2, F16, BF16, F32, F64 = map(ScalarType, ScalarTypeKind)
BUFFER_TYPE: Final = BufferType()
ENCODING_TYPE: Final = EncodingType()
ENCODING_LAYOUT_TYPE: Final = EncodingType(EncodingRole.LAYOUT)
ENCODING_SCHEMA_TYPE: Final = EncodingType(EncodingRole.SCHEMA)
ENCODING_STORAGE_TYPE: Final = EncodingType(EncodingRole.STORAGE)
ENCODING_TRANSFORM_TYPE: Final = EncodingType(EncodingRole.TRANSFORM)
SCALARS: Final = {name: ScalarType(kind) for name, kind in SCALAR_KINDS.items()}

FLOAT_KINDS: Final = frozenset(ScalarTypeKind) - frozenset(list(ScalarTypeKind)[:7])
INTEGER_KINDS: Final = frozenset(list(ScalarTypeKind)[2:7])
ADDRESS_KINDS: Final = frozenset((ScalarTypeKind.INDEX, ScalarTypeKind.OFFSET))


def element_of(type: Type) -> ScalarType | None:
    """The element of a shaped type, a scalar itself, None for others."""
    if isinstance(type, ShapedType):
        return type.element_type
    return type if isinstance(type, ScalarType) else None


def dynamic_values(type: Type) -> tuple[int, ...]:
    """Ids of the values that the type refers to, in order; -1 for an unbound one."""
    if isinstance(type, ShapedType):
        found = [dim.value_id for dim in type.dims if isinstance(dim, DynamicDim)]
        if isinstance(type.encoding, DynamicEncoding):
            found.append(type.encoding.value_id)
        return tuple(found)
    if isinstance(type, PoolType) and isinstance(type.block_size, DynamicDim):
        return (type.block_size.value_id,)
    return ()
