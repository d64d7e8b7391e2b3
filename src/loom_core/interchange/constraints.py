"""What types an operand or result may have: named sets of types, by which the rows of the dialect tables speak."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from loom_core.interchange import types
from loom_core.interchange.types import (
    ADDRESS_KINDS,
    FLOAT_KINDS,
    INTEGER_KINDS,
    SCALARS,
    SHAPED_KINDS,
    BufferType,
    DialectType,
    EncodingType,
    PoolType,
    ScalarType,
    ScalarTypeKind,
    ShapedType,
    Type,
    TypeKind,
)


@dataclass(frozen=True)
class TypeConstraint:
    """A set of types; `single` is its only member where there is just one."""

    name: str
    accepts: Callable[[Type], bool]
    single: Type | None = None


def _scalars(kinds: frozenset[ScalarTypeKind]) -> Callable[[Type], bool]:
    return lambda type: isinstance(type, ScalarType) and type.kind in kinds


def _vectors(kinds: frozenset[ScalarTypeKind]) -> Callable[[Type], bool]:
    return lambda type: _is_vector(type) and type.element_type.kind in kinds  # type: ignore[attr-defined]


def _is_vector(type: Type) -> bool:
    return isinstance(type, ShapedType) and type.type_kind is TypeKind.VECTOR


def _either(*tests: Callable[[Type], bool]) -> Callable[[Type], bool]:
    return lambda type: any(test(type) for test in tests)


_ALL: Final = frozenset(ScalarTypeKind)
_FAMILIES: Final = {
    "integer": INTEGER_KINDS,
    "float": FLOAT_KINDS,
    "scalar": _ALL,
    "address": ADDRESS_KINDS,
    "number": INTEGER_KINDS | FLOAT_KINDS,
    "mask": frozenset((ScalarTypeKind.I32, ScalarTypeKind.I64)),
    "pattern": frozenset(INTEGER_KINDS | FLOAT_KINDS) - {ScalarTypeKind.I1},
    "bool": frozenset((ScalarTypeKind.I1,)),
}
_OPAQUE: Final = {
    "token": "kernel.async.token",
    "group": "kernel.async.group",
    "descriptor": "kernel.tensor.lds.descriptor",
}


def _table() -> dict[str, TypeConstraint]:
    found = {"any": TypeConstraint("any", lambda type: True)}
    for name, single in SCALARS.items():
        found[name] = TypeConstraint(name, lambda type, single=single: type == single, single)  # type: ignore[misc]
    for name, kinds in _FAMILIES.items():
        found[name] = TypeConstraint(name, _scalars(kinds))
        found[f"v.{name}"] = TypeConstraint(f"vector of {name}", _vectors(kinds))
        found[f"sv.{name}"] = TypeConstraint(f"{name} or vector of it", _either(_scalars(kinds), _vectors(kinds)))
    for kind, name in SHAPED_KINDS.items():
        found[name] = TypeConstraint(
            name,
            lambda type, kind=kind: isinstance(type, ShapedType) and type.type_kind is kind,  # type: ignore[misc]
        )
    found["buffer"] = TypeConstraint("buffer", lambda type: isinstance(type, BufferType), types.BUFFER_TYPE)
    found["encoding"] = TypeConstraint("encoding", lambda type: isinstance(type, EncodingType))
    found["pool"] = TypeConstraint("pool", lambda type: isinstance(type, PoolType))
    for name, spelled in _OPAQUE.items():
        opaque = DialectType(spelled)
        found[name] = TypeConstraint(spelled, lambda type, opaque=opaque: type == opaque)  # type: ignore[misc]
    return found


CONSTRAINTS: Final = _table()
"""Constraints by the name that the tables use; `v.` is a vector of such elements, `sv.` a scalar or a vector."""


def type_satisfies_constraint(type: Type, constraint: TypeConstraint | str) -> bool:
    """Whether a type is in the set; a constraint may be given by name."""
    found = CONSTRAINTS[constraint] if isinstance(constraint, str) else constraint
    return found.accepts(type)
