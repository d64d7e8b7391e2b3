"""Which operations the command processor does itself: arithmetic on integer scalars. All else is for the engines."""

from __future__ import annotations

from typing import Final

from loom_core.ir.op import Op
from loom_core.ir.types import TileType
from loom_core.ops import elementwise as ew
from loom_core.ops.bits import MultiplyHigh

SIGNED: Final[frozenset[type[Op]]] = frozenset({ew.Div, ew.FloorDiv, ew.Rem, ew.Min, ew.Max})
"""Those that take registers for signed numbers: they serve all types but u64, as narrower ones are extended."""

SCALAR_OPS: Final[frozenset[type[Op]]] = SIGNED | {
    ew.Add, ew.Sub, ew.Mul, ew.And, ew.Or, ew.Xor, ew.ShiftLeft, ew.ShiftRight, ew.Compare, ew.Select, ew.Cast,
    ew.Bitcast, ew.Negate, ew.Abs, ew.Not, ew.Copy, MultiplyHigh,
}  # fmt: skip
"""Those that `codegen.scalar` has commands for."""


def is_integral(type: TileType) -> bool:
    return not type.is_pointer and type.dtype.kind != "float"


def on_command_processor(op: Op) -> bool:
    """Whether the command processor does the op."""
    kind = type(op)
    if kind not in SCALAR_OPS:
        return False
    result = op.results[0].type
    if not result.is_scalar or not is_integral(result) or not all(is_integral(value.type) for value in op.operands):
        return False
    if kind is MultiplyHigh:
        return result.dtype.bits < 64
    return kind not in SIGNED or result.dtype.name != "u64"
