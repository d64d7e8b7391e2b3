"""Read-modify-write of device memory, element after element in row-major order, one program after another."""

from __future__ import annotations

from loom_core.ir.op import Op, attribute, operand, optional_operand
from loom_core.ir.types import TileType
from loom_core.ops.memory import verify_mask
from loom_core.ops.reduction import COMBINES

_COMBINING = {"add": "sum", "max": "max", "min": "min", "and": "and", "or": "or", "xor": "xor"}
RMW_KINDS = (*_COMBINING, "xchg")


def fold_kind(kind: str) -> str | None:
    """The fold kind of a read-modify-write ("add" is "sum"); None for an exchange."""
    return _COMBINING.get(kind)


class AtomicRmw(Op):
    """memory = f(memory, value) where `mask` holds; the results are the old elements (0 where it does not).

    kind: add, max, min, and, or, xor (as the elementwise operations, floats rounding each time) or xchg. The elements
    of memory are taken as the value's dtype, which is as wide as the pointee.
    """

    name = "atomic_rmw"
    pure = False
    no_lowering = "lower_addresses makes it dma_scatter_reduce"
    pointer = operand()
    value = operand()
    mask = optional_operand()
    kind = attribute()

    def infer(self) -> tuple[TileType, ...]:
        return (self.value.type,)

    def verify(self) -> str | None:
        if self.kind not in RMW_KINDS:
            return f"unknown operation {self.kind!r}"
        value, pointer = self.value.type, self.pointer.type
        if value.shape != pointer.shape or value.is_pointer or value.dtype.bits != pointer.pointee.bits:
            return f"{value} through {pointer}"
        name = fold_kind(self.kind)
        allowed = getattr(COMBINES[name], "allowed", ()) if name is not None else ("float", "int", "uint", "bool")
        if self.value.type.dtype.kind not in allowed:
            return f"{self.kind} does not take {self.value.type}"
        return verify_mask(self)


class AtomicCas(Op):
    """memory = value where memory equals `compare`, by bits; the results are the old elements."""

    name = "atomic_cas"
    pure = False
    no_lowering = "lower_addresses makes it dma_compare_swap"
    pointer = operand()
    compare = operand()
    value = operand()

    def infer(self) -> tuple[TileType, ...]:
        return (self.value.type,)

    def verify(self) -> str | None:
        wanted = self.pointer.type.with_element(self.pointer.type.pointee)
        if self.value.type != wanted or self.compare.type != wanted:
            return f"{self.compare.type} and {self.value.type} through {self.pointer.type}"
        return None
