"""The types of results that nobody spells."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from loom_core.interchange.constraints import CONSTRAINTS
from loom_core.interchange.declaration import OpDeclaration
from loom_core.interchange.types import I1, ShapedType, Type


def infer_result_type(decl: OpDeclaration, result: str, operand_types: Mapping[str, Sequence[Type]]) -> Type | None:
    """The type of a result from its declaration and the operands' types; None where these do not tell."""
    slot = decl.result_fields[result]
    if not slot.inferred:
        return slot.constraint.single
    if slot.inferred in decl.operand_fields:
        types = operand_types.get(slot.inferred, ())
        return types[0] if types else None
    if slot.inferred == "mask":
        types = operand_types.get(decl.operand_names[0], ())
        return mask_type(types[0]) if types else None
    return CONSTRAINTS[slot.inferred].single


def mask_type(type: Type) -> Type:
    """i1, in the shape of `type` where it has one."""
    if isinstance(type, ShapedType):
        return ShapedType(type.type_kind, I1, type.dims)
    return I1
