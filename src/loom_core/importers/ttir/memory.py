"""`tt` operations on memory: pointers, loads, stores, atomics."""

from __future__ import annotations

from typing import Any, Final

from loom_core.base.dtype import DType, bool_, i8
from loom_core.importers.ttir.arith import bits_as, cast, dtype_of, unsigned
from loom_core.importers.ttir.importer import Importer, row
from loom_core.importers.ttir.pointers import Reinterpreted
from loom_core.importers.ttir.syntax import IrType, Operation
from loom_core.importers.ttir.windows import Window
from loom_core.ir.value import Value
from loom_core.ops import elementwise as ops
from loom_core.ops.atomic import AtomicCas, AtomicRmw
from loom_core.ops.debug import Assert
from loom_core.ops.memory import AddPointer, Load, Store

_CACHE_HINTS: Final = ("cache", "cacheModifier", "cachePolicy", "evict", "evictionPolicy", "isVolatile", "volatile")


@row("tt.addptr", operands=2)
def _add_pointer(importer: Importer, op: Operation, operands: list[Any]) -> Value:
    pointer, offset = operands
    if not pointer.type.is_pointer or pointer.type.shape != offset.type.shape:
        importer.wrong(op, f"it does not take {pointer.type} and {offset.type}")
    dtype_of(importer, op, offset, "int")
    return importer.create(AddPointer, pointer, offset)  # type: ignore[no-any-return]


def _points_to_bools(type: IrType) -> bool:
    """Whether a pointer, or a tensor of pointers, is written as one to i1: bytes in memory."""
    inner = type.element if type.name == "tensor" else type
    return inner is not None and inner.name == "ptr" and inner.element is not None and inner.element.name == "i1"


def _pointer(importer: Importer, op: Operation, value: Any) -> tuple[Value, DType]:
    """The pointer of an access, and the dtype of what it points to."""
    pointer = value.pointer if isinstance(value, Reinterpreted) else value
    if not isinstance(pointer, Value) or not pointer.type.is_pointer:
        importer.wrong(op, "its first operand is no pointer")
    if not op.types:
        importer.wrong(op, "its type is missing")
    importer.check_type(op, value, op.types[0], "operand 1")
    return pointer, value.dtype if isinstance(value, Reinterpreted) else pointer.type.pointee


def _moved(importer: Importer, op: Operation, pointer: Value, dtype: DType) -> None:
    """UnsupportedOperation where memory of floats is moved as something else: a NaN would not keep its bits."""
    if dtype is not pointer.type.pointee and pointer.type.pointee.is_float:
        importer.refuse(op, f"memory of {pointer.type.pointee.name} is accessed as {dtype.name}")


def _mask(importer: Importer, op: Operation, pointer: Value, rest: list[Any]) -> Value | None:
    if not rest:
        return None
    mask = rest[0]
    if not isinstance(mask, Value) or mask.type != pointer.type.with_element(bool_):
        importer.wrong(op, f"its mask is {getattr(mask, 'type', mask)}, for {pointer.type}")
    return mask


_ORDERS: Final = frozenset({"relaxed", "acquire", "release", "acq_rel", "gpu", "cta", "sys", "cluster"})
"""When and for whom an atomic access is seen: programs run one after another, so always and for all."""


@row(
    "tt.load",
    operands=(1, 3),
    types="free",
    attributes=("boundaryCheck", "padding", *_CACHE_HINTS),
    words=True,
    structured=True,
)
def _load(importer: Importer, op: Operation, operands: list[Any]) -> Value:
    if op.words and op.words != ["volatile"]:
        importer.wrong(op, f"it does not take {op.words[0]}")
    if isinstance(operands[0], Window):
        return operands[0].load(importer, op, operands[1:])
    return _loaded(importer, op, operands)


def _loaded(importer: Importer, op: Operation, operands: list[Any]) -> Value:
    pointer, dtype = _pointer(importer, op, operands[0])
    _moved(importer, op, pointer, dtype)
    mask = _mask(importer, op, pointer, operands[1:2])
    bools = _points_to_bools(op.types[0])
    other = operands[2] if len(operands) == 3 else None
    if other is not None:
        wanted = bool_ if bools else dtype
        if not isinstance(other, Value) or other.type != pointer.type.with_element(wanted):
            importer.wrong(op, f"its third operand is {getattr(other, 'type', other)}, for {pointer.type}")
        other = cast(importer, other, i8) if bools else bits_as(importer, other, pointer.type.pointee)
    made: Value = importer.create(Load, pointer, mask, other)
    return _truth(importer, made) if bools else bits_as(importer, made, dtype)


def _truth(importer: Importer, value: Value) -> Value:
    return importer.create(ops.Compare, value, importer.constant(value.type, 0), predicate="ne")  # type: ignore[no-any-return]


@row("tt.store", operands=(2, 3), types="free", attributes=("boundaryCheck", *_CACHE_HINTS), structured=True)
def _store(importer: Importer, op: Operation, operands: list[Any]) -> None:
    if isinstance(operands[0], Window):
        operands[0].store(importer, op, operands[1:])
        return
    _stored(importer, op, operands)


def _stored(importer: Importer, op: Operation, operands: list[Any]) -> None:
    (pointer, dtype), value = _pointer(importer, op, operands[0]), operands[1]
    _moved(importer, op, pointer, dtype)
    if isinstance(value, Value) and value.type.element is bool_:
        value = cast(importer, value, i8)
    if not isinstance(value, Value) or value.type != pointer.type.with_element(dtype):
        importer.wrong(op, f"it does not store {getattr(value, 'type', value)} through {operands[0]}")
    value = bits_as(importer, value, pointer.type.pointee)
    importer.create(Store, pointer, value, _mask(importer, op, pointer, operands[2:3]))


# ---- atomics ----

# name: (ours, whether elements are taken as unsigned)
_RMW: Final[dict[str, tuple[str, bool]]] = {
    "and": ("and", False), "or": ("or", False), "xor": ("xor", False), "add": ("add", False), "fadd": ("add", False),
    "max": ("max", False), "min": ("min", False), "umax": ("max", True), "umin": ("min", True),
    "exch": ("xchg", False),
}  # fmt: skip
_FLOAT_KINDS: Final = ("fadd", "max", "min", "exch")


def _value(importer: Importer, op: Operation, value: Any, pointer: Value, dtype: DType) -> Value:
    if not isinstance(value, Value) or value.type != pointer.type.with_element(dtype):
        importer.wrong(op, f"it does not take {getattr(value, 'type', value)} through pointers to {dtype.name}")
    return value


@row(
    "tt.atomic_rmw",
    operands=(2, 3),
    types="free",
    words=True,
    attributes=("atomic_rmw_op", "sem", "scope"),
    structured=True,
)
def _read_modify_write(importer: Importer, op: Operation, operands: list[Any]) -> Value:
    pointer, dtype = _pointer(importer, op, operands[0])
    value = _value(importer, op, operands[1], pointer, dtype)
    return read_modify_write(importer, op, pointer, dtype, value, _mask(importer, op, pointer, operands[2:3]))


def read_modify_write(
    importer: Importer, op: Operation, pointer: Value, dtype: DType, value: Value, mask: Value | None
) -> Value:
    """What the operation's first word does, to memory that is taken as `dtype`; gives what was there."""
    word = op.words[0] if op.words else ""
    if word not in _RMW:
        importer.refuse(op, f"Loom does not know the operation {word or 'that it does'}")
    kind, by_bits = _RMW[word]
    if (dtype.is_float and word not in _FLOAT_KINDS) or (not dtype.is_float and word == "fadd"):
        importer.wrong(op, f"{word} does not take {value.type}")
    if by_bits:
        value = unsigned(importer, value)
    return bits_as(importer, importer.create(AtomicRmw, pointer, value, mask, kind=kind), dtype)


@row("tt.atomic_cas", operands=3, types="free", words=True, attributes=("sem", "scope"), structured=True)
def _compare_and_swap(importer: Importer, op: Operation, operands: list[Any]) -> Value:
    pointer, dtype = _pointer(importer, op, operands[0])
    _moved(importer, op, pointer, dtype)
    values = [_value(importer, op, value, pointer, dtype) for value in operands[1:]]
    made = importer.create(AtomicCas, pointer, *(bits_as(importer, value, pointer.type.pointee) for value in values))
    return bits_as(importer, made, dtype)


def _check_order(importer: Importer, op: Operation, *others: str) -> None:
    for word in op.words:
        if word not in _ORDERS and word not in others:
            importer.wrong(op, f"it does not take {word}")


@row("tt.atomic_load", operands=(1, 2), types="free", words=True, attributes=("sem", "scope"), structured=True)
def _atomic_load(importer: Importer, op: Operation, operands: list[Any]) -> Value:
    _check_order(importer, op)
    return _loaded(importer, op, operands)


@row("tt.atomic_store", operands=(2, 3), types="free", words=True, attributes=("sem", "scope"), structured=True)
def _atomic_store(importer: Importer, op: Operation, operands: list[Any]) -> None:
    _check_order(importer, op)
    _stored(importer, op, operands)


@row("tt.atomic_poll", operands=(2, 3), types="free", words=True, attributes=("sem", "scope"), structured=True)
def _poll(importer: Importer, op: Operation, operands: list[Any]) -> Value:
    """Whether memory holds a value. Nothing changes it meanwhile: what is waited for without end has to be there."""
    timed = "timeout" in op.words
    _check_order(importer, op, "timeout")
    pointer, dtype = _pointer(importer, op, operands[0])
    wanted = _value(importer, op, operands[1], pointer, dtype)
    if timed != (len(operands) == 3) or pointer.type.shape or not dtype.is_integer:
        importer.wrong(op, f"it does not take {pointer.type}")
    loaded = bits_as(importer, importer.create(Load, pointer, None, None), dtype)
    there: Value = importer.create(ops.Compare, loaded, wanted, predicate="eq")
    if not timed:
        importer.create(Assert, there, message="atomic_poll waits for a value that no earlier program stored")
    return there
