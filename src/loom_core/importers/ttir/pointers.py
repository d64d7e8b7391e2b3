"""Pointers taken as pointers to another dtype of the same size, or as numbers and back."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

from loom_core.base.dtype import DType
from loom_core.base.location import UNKNOWN, Location
from loom_core.importers.ttir.importer import Importer, row
from loom_core.importers.ttir.syntax import Operation
from loom_core.importers.ttir.types import tile_type
from loom_core.ir.types import TileType
from loom_core.ir.value import Value
from loom_core.trace.values import Traced


class Reinterpreted(Traced):
    """`pointer`, or a tile of them, whose pointees are taken as `dtype`."""

    __slots__ = ("dtype", "pointer")

    def __init__(self, pointer: Value, dtype: DType) -> None:
        self.pointer = pointer
        self.dtype = dtype

    @property
    def type(self) -> TileType:
        """That of the pointer."""
        return self.pointer.type

    def around(self, pointer: Value) -> Reinterpreted:
        """Another pointer, taken in the same way."""
        return Reinterpreted(pointer, self.dtype)

    def ir_values(self) -> list[Value]:
        return [self.pointer]

    def ir_types(self) -> list[TileType]:
        return [self.pointer.type]

    def with_ir_values(self, values: Sequence[Value]) -> Reinterpreted:
        return self.around(values[0])

    def structure(self) -> Hashable:
        return Reinterpreted, self.pointer.type, self.dtype

    def same(self, other: Traced) -> bool:
        return isinstance(other, Reinterpreted) and self.pointer is other.pointer and self.dtype is other.dtype

    def suggest_name(self, name: str) -> None:
        self.pointer.name = self.pointer.name or name

    @property
    def origin(self) -> Location:
        return UNKNOWN

    def __str__(self) -> str:
        return f"{self.pointer.type} taken as pointers to {self.dtype.name}"


def reinterpreted(importer: Importer, op: Operation, value: Any, target: TileType) -> Any:
    """`value`, a pointer, as one of type `target`."""
    pointer: Value = value.pointer if isinstance(value, Reinterpreted) else value
    if not pointer.type.is_pointer or not target.is_pointer or pointer.type.shape != target.shape:
        importer.wrong(op, f"{pointer.type} cannot be taken as {target}")
    if pointer.type == target:
        return pointer
    if pointer.type.pointee.itemsize != target.pointee.itemsize:
        importer.refuse(op, f"a pointer to {pointer.type.pointee.name} is taken as one to {target.pointee.name}")
    return Reinterpreted(pointer, target.pointee)


# ---- addresses -------------------------------------------------------------------------------------------------------


class Address(Reinterpreted):
    """The number that `pointer` is on a GPU. Here it only says where it came from: it can become a pointer again."""

    __slots__ = ()

    def around(self, pointer: Value) -> Address:
        return Address(pointer, self.dtype)

    def structure(self) -> Hashable:
        return Address, self.pointer.type, self.dtype

    def __str__(self) -> str:
        return f"the address of {self.pointer.type}"


@row("tt.ptr_to_int", operands=1, structured=True)
def _to_number(importer: Importer, op: Operation, operands: list[Any]) -> Address:
    (value,) = operands
    pointer = value.pointer if isinstance(value, Reinterpreted) else value
    if not isinstance(pointer, Value) or not pointer.type.is_pointer or isinstance(value, Address):
        importer.wrong(op, f"it does not take {getattr(value, 'type', value)}")
    dtype = value.dtype if isinstance(value, Reinterpreted) else pointer.type.pointee
    return Address(pointer, dtype)


@row("tt.int_to_ptr", operands=1, structured=True)
def _to_pointer(importer: Importer, op: Operation, operands: list[Any]) -> Any:
    (value,) = operands
    if not isinstance(value, Address):
        reason = "a number that was loaded or computed does not say which array it points into"
        importer.refuse(op, reason)
    if len(op.result_types) != 1:
        importer.wrong(op, "the type of its result is missing")
    return reinterpreted(importer, op, value, tile_type(op.result_types[0], op.position))
