"""Gives storage of its own to what an engine must read or write directly.

Rules (`copy` is an elementwise identity, so it fuses with whatever computes its operand):
  store     dma_store %v, where %v is a product, a view or virtual  ->  dma_store (copy %v)
  operand   dot %a, %b, where one is a product or virtual           ->  dot (copy %a), %b
  acc       dot ..., %c, where %c is loaded, a view or virtual      ->  dot ..., (copy %c), unless a constant
  carried   for / yield of a view or virtual tile                   ->  of its copy, unless a constant
  reshape   a reshape that is no view of its operand                ->  reshape (copy %v)
"""

from __future__ import annotations

from loom_core.ir.block import Function
from loom_core.ir.builder import Builder
from loom_core.ir.op import Op
from loom_core.ir.value import Value
from loom_core.ops import control, elementwise, matmul, memory, reduction, shape

_VIEWS = (shape.Splat, shape.ExpandDims, shape.Broadcast, shape.Transpose, shape.Reshape)


def materialize(function: Function) -> Function:
    """Insert the copies."""
    for op in function.walk():
        if isinstance(op, memory.DmaStore):
            _copy_operand(op, op.value, _is_stored)
        elif isinstance(op, matmul.Dot):
            _copy_operand(op, op.a, _is_operand)
            _copy_operand(op, op.b, _is_operand)
            if op.acc is not None:
                _copy_operand(op, op.acc, _is_accumulator)
        elif isinstance(op, control.For | control.Yield):
            for value in list(op.operands[3:] if isinstance(op, control.For) else op.operands):
                _copy_operand(op, value, _is_carried)
        elif isinstance(op, reduction.Reduce | shape.Reshape):
            _copy_operand(op, op.operand, _is_contiguous if isinstance(op, shape.Reshape) else _is_reducible)
    return function


def _copy_operand(op: Op, value: Value, acceptable: object) -> None:
    if acceptable(value):  # type: ignore[operator]
        return
    assert op.parent is not None
    builder = Builder(op.parent)
    builder.anchor, builder.location = op, op.location
    copy = builder.create(elementwise.Copy, value)
    for i, operand in enumerate(op.operands):
        if operand is value:
            op.set_operand(i, copy)


def _on_command_processor(value: Value) -> bool:
    return value.type.is_scalar and (value.type.is_pointer or value.type.dtype.kind != "float")


def _is_virtual(op: Op | None) -> bool:
    return isinstance(op, shape.Constant | shape.AffineTile | shape.Splat)


def _is_stored(value: Value) -> bool:
    op = value.defining_op
    return _on_command_processor(value) or not (
        _is_virtual(op) or isinstance(op, (matmul.Dot, *_VIEWS)) or _carried(value)
    )


def _carried(value: Value) -> bool:
    """A tile that a loop carries may live in the accumulator's layout."""
    return len(value.type.shape) == 2 and (value.defining_op is None or isinstance(value.defining_op, control.For))


def _root(value: Value) -> Value:
    while isinstance(value.defining_op, shape.Transpose | shape.ExpandDims):
        value = value.defining_op.operands[0]
    return value


def _is_operand(value: Value) -> bool:
    root = _root(value)
    op = root.defining_op
    return not (_is_virtual(op) or isinstance(op, (matmul.Dot, *_VIEWS)) or _carried(root))


def _is_accumulator(value: Value) -> bool:
    op = value.defining_op
    if isinstance(op, shape.Constant):
        return True
    return not (_is_virtual(op) or isinstance(op, (memory.DmaLoad, *_VIEWS)))


def _is_carried(value: Value) -> bool:
    op = value.defining_op
    return (
        _on_command_processor(value)
        or isinstance(op, shape.Constant)
        or not (_is_virtual(op) or isinstance(op, _VIEWS))
    )


def _is_reducible(value: Value) -> bool:
    return not isinstance(value.defining_op, shape.AffineTile)


def _is_contiguous(value: Value) -> bool:
    """Whether every reshape of the value is a view: it is stored in row-major order, or the same everywhere."""
    op = value.defining_op
    if isinstance(op, shape.Constant | shape.Splat):
        return True
    if isinstance(op, shape.ExpandDims | shape.Reshape):
        return _is_contiguous(op.operands[0])
    return not (_is_virtual(op) or isinstance(op, (matmul.Dot, *_VIEWS)) or _carried(value))
