"""`amdg`: accesses of AMD GPUs to memory by one pointer and a tile of offsets, and what only orders their work."""

from __future__ import annotations

from typing import Any, Final

from loom_core.base.dtype import bool_, i32
from loom_core.importers.ttir.importer import Importer, row
from loom_core.importers.ttir.memory import read_modify_write
from loom_core.importers.ttir.shapes import result_type
from loom_core.importers.ttir.syntax import Operation
from loom_core.ir.value import Value
from loom_core.ops.memory import AddPointer, Load, Store
from loom_core.ops.shape import Splat

_HINTS: Final = ("cache", "cacheModifier", "evict", "evictionPolicy", "contiguity")


def _addresses(importer: Importer, op: Operation, pointer: Value) -> Value:
    """The pointers of an access: one pointer, and a tile of offsets in brackets."""
    names = [name for names in op.lists for name in names]
    if len(names) != 1 or not isinstance(names[0], str) or not pointer.type.is_pointer or pointer.type.shape:
        importer.wrong(op, "it is not of the form pointer[offsets]")
    offsets = importer.value(op, names[0])
    if offsets.type.element is not i32 or not offsets.type.shape:
        importer.wrong(op, f"its offsets are {offsets.type}")
    whole = importer.create(Splat, pointer, shape=offsets.type.shape)
    return importer.create(AddPointer, whole, offsets)  # type: ignore[no-any-return]


def _mask(importer: Importer, op: Operation, pointer: Value, rest: list[Value]) -> Value | None:
    if rest and rest[0].type != pointer.type.with_element(bool_):
        importer.wrong(op, f"its mask is {rest[0].type}")
    return rest[0] if rest else None


def _check(importer: Importer, op: Operation, value: Value, pointer: Value) -> None:
    if value.type != pointer.type.with_element(pointer.type.pointee):
        importer.wrong(op, f"it does not take {value.type} for {pointer.type}")


@row("amdg.buffer_load", operands=(1, 3), types="free", attributes=_HINTS)
def _load(importer: Importer, op: Operation, operands: list[Any]) -> Value:
    pointer = _addresses(importer, op, operands[0])
    mask, other = _mask(importer, op, pointer, operands[1:2]), operands[2] if len(operands) == 3 else None
    if other is not None:
        _check(importer, op, other, pointer)
    made: Value = importer.create(Load, pointer, mask, other)
    if made.type != result_type(importer, op):
        importer.refuse(op, f"{made.type} is loaded as {op.result_types[0]}")
    return made


@row("amdg.buffer_store", operands=(2, 3), types="free", attributes=_HINTS)
def _store(importer: Importer, op: Operation, operands: list[Any]) -> None:
    pointer = _addresses(importer, op, operands[1])
    _check(importer, op, operands[0], pointer)
    importer.create(Store, pointer, operands[0], _mask(importer, op, pointer, operands[2:]))


@row("amdg.buffer_atomic_rmw", operands=(2, 3), types="free", words=True, attributes=_HINTS)
def _read_modify_write(importer: Importer, op: Operation, operands: list[Any]) -> Value:
    pointer = _addresses(importer, op, operands[1])
    _check(importer, op, operands[0], pointer)
    mask = _mask(importer, op, pointer, operands[2:])
    return read_modify_write(importer, op, pointer, pointer.type.pointee, operands[0], mask)


@row("amdg.in_thread_transpose", operands=1)
def _moved(importer: Importer, op: Operation, operands: list[Any]) -> Value:
    """Another layout."""
    return operands[0]  # type: ignore[no-any-return]


@row("rocdl.sched.barrier", "rocdl.sched.group.barrier", "rocdl.s.setprio", "rocdl.s.barrier", operands=0, types="free",
     words=True)  # fmt: skip
def _schedule(importer: Importer, op: Operation, operands: list[Any]) -> None:
    return
