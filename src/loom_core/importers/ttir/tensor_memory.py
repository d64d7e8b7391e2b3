"""`ttng`: tensor memory and the matrix products of Blackwell GPUs.

Tensor memory is a window of SRAM like shared memory. A product is done where it begins; barriers that tell when it is
done have nothing to wait for then.
"""

from __future__ import annotations

from typing import Any

from loom_core.base import dtype as core
from loom_core.importers.ttir.importer import Imported, Importer, row
from loom_core.importers.ttir.products import accumulator, check_product
from loom_core.importers.ttir.shapes import integer_attribute, result_type
from loom_core.importers.ttir.shared import Buffer, Token, allocate, buffer_of, contents, memory_type, write
from loom_core.importers.ttir.syntax import Operation
from loom_core.importers.ttir.tma import check_barrier, known_number
from loom_core.ir.types import TileType
from loom_core.ir.value import Value
from loom_core.ops import elementwise as ops
from loom_core.ops.memory import AddPointer, Store
from loom_core.ops.shape import Splat
from loom_core.trace.products import multiply


def _with_token(op: Operation, made: list[Any]) -> list[Any]:
    """Some of these operations give a token too, where the module orders them so."""
    return [*made, *([Token()] if len(op.results) == len(made) + 1 else [])]


def _condition(importer: Importer, op: Operation, value: Imported) -> Value | None:
    """A truth value; None where it is known to hold."""
    if not isinstance(value, Value) or value.type != TileType(core.bool_):
        importer.wrong(op, f"its condition is {getattr(value, 'type', value)}")
    return None if known_number(value) == 1 else value


def _tokens_left_out(importer: Importer, operands: list[Any]) -> list[Any]:
    return [value for value in operands if not isinstance(value, Token)]


@row("ttng.tmem_alloc", operands=(0, 1), types="free",
     attributes=("tensor_memory_col_offset", "tensor_memory_row_offset"),
     structured=True)  # fmt: skip
def _allocate(importer: Importer, op: Operation, operands: list[Any]) -> list[Any]:
    type = memory_type(importer, op)
    buffer = allocate(importer, op, type)
    if operands:
        write(importer, op, buffer, operands[0])
    return _with_token(op, [buffer])


@row("ttng.tmem_load", operands=(1, 2), types="free", structured=True)
def _load(importer: Importer, op: Operation, operands: list[Any]) -> list[Any]:
    value = contents(importer, op, buffer_of(importer, op, operands[0]))
    if value.type != result_type(importer, op):
        importer.refuse(op, f"{value.type} is loaded as {op.result_types[0]}")
    return _with_token(op, [value])


@row("ttng.tmem_store", operands=(3, 4), types="free", structured=True)
def _store(importer: Importer, op: Operation, operands: list[Any]) -> list[Any]:
    """A tile where the condition holds."""
    value, target, holds = _tokens_left_out(importer, operands)
    _write_where(importer, op, buffer_of(importer, op, target), value, _condition(importer, op, holds))
    return _with_token(op, [])


def _write_where(importer: Importer, op: Operation, buffer: Buffer, value: Any, holds: Value | None) -> None:
    if holds is None:
        write(importer, op, buffer, value)
        return
    if not isinstance(value, Value) or value.type != TileType(buffer.pointer.type.pointee, buffer.shape):
        importer.wrong(op, f"it does not store {getattr(value, 'type', value)} in {buffer}")
    importer.create(Store, buffer.addresses(importer), value, importer.create(Splat, holds, shape=buffer.shape))


@row("ttng.tmem_subslice", operands=1, types="free", attributes=("N", "offset", "dim"), structured=True)
def _part(importer: Importer, op: Operation, operands: list[Any]) -> Buffer:
    """Columns from a constant one on."""
    buffer, shape = buffer_of(importer, op, operands[0]), memory_type(importer, op).shape
    first = integer_attribute(importer, op, "N" if "N" in op.attributes else "offset")
    rank = len(shape)
    if rank != len(buffer.shape) or shape[:-1] != buffer.shape[:-1] or not 0 <= first <= buffer.shape[-1] - shape[-1]:
        importer.refuse(op, f"{shape} from {first} on is no part of the columns of {buffer}")
    start = importer.constant(TileType(core.i32), first * buffer.steps[-1])
    return Buffer(importer.create(AddPointer, buffer.pointer, start), shape, buffer.steps)


@row("ttng.tc_gen5_mma", operands=(5, 64), types="free", attributes=("is_async", "two_ctas", "multicast"),
     structured=True)  # fmt: skip
def _product(importer: Importer, op: Operation, operands: list[Any]) -> list[Any]:
    """The product of two tiles, to the accumulator or in its place, where a condition holds."""
    if op.attributes.get("two_ctas") or op.attributes.get("multicast"):
        importer.refuse(op, "it is done by several thread blocks together")
    first, second, target, adds, holds, *barriers = _tokens_left_out(importer, operands)
    for barrier in barriers:
        check_barrier(importer, op, barrier)
    buffer = buffer_of(importer, op, target)
    a, b, old = (contents(importer, op, value) for value in (first, second, buffer))
    check_product(importer, op, a, b, old)
    adding, condition = _condition(importer, op, adds), _condition(importer, op, holds)
    start: Value | None = old
    if adding is not None:
        zero = importer.constant(old.type, 0)
        keeps = importer.create(Splat, adding, shape=old.type.shape)
        start = None if known_number(adding) == 0 else importer.create(ops.Select, keeps, old, zero)
    # Operands of float32 are rounded to tf32 by the instruction.
    precision = "tf32" if a.type.dtype is core.f32 else "ieee"
    inner = accumulator(a.type.dtype)
    if old.type.dtype is not inner:
        importer.refuse(op, f"it adds up in {old.type.dtype.name}")
    made = multiply(importer.trace.builder, a, b, start, precision, inner)
    _write_where(importer, op, buffer, made, condition)
    return _with_token(op, [])


@row("ttng.tc_gen5_commit", operands=(1, 64), types="free", words=True, structured=True)
def _commit(importer: Importer, op: Operation, operands: list[Any]) -> None:
    """What was begun has been done."""
    check_barrier(importer, op, operands[0])


@row("ttng.tmem_wait", operands=0, types="free", words=True)
def _wait(importer: Importer, op: Operation, operands: list[Any]) -> None:
    return
