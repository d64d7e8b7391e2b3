"""Products that the matrix unit has no command for become operations that there are commands for.

batch   dot %a, %b, acc = %c  of three dimensions
        ->  concat (for each i: dot %a[i], %b[i], acc = %c[i])
double  dot %a, %b, acc = %c  of f64, the terms of each pass in ascending order, as docs/numerics.md says
        ->  for each pass: %t = for %k, 0.0 { yield fma %a[:, %k], %b[%k, :], %t };  %c = add %c, %t
wide    dot %a, %b, acc = %c  of integers of 32 and 64 bits
        ->  for %k, %c { yield add (mul %a[:, %k], %b[%k, :]), %c }
"""

from __future__ import annotations

from loom_core.base.dtype import i32
from loom_core.ir.block import Block, Function
from loom_core.ir.builder import Builder
from loom_core.ir.types import TileType
from loom_core.ir.value import Value
from loom_core.ops import control, elementwise, matmul, rearrange, shape
from loom_core.passes.log import log_rewrite
from loom_core.reference.dot import PASS_DEPTH


def expand_products(function: Function) -> Function:
    """Expand every product of three dimensions, and then every one of f64 and of wide integers."""
    for rule, applies in ((_expand_batch, _is_batch), (_expand_double, _is_double), (_expand_wide, _is_wide)):
        for op in list(function.walk()):
            if isinstance(op, matmul.Dot) and applies(op):
                log_rewrite(rule.__name__, op)
                assert op.parent is not None
                builder = Builder(op.parent)
                builder.anchor, builder.location = op, op.location
                result = rule(builder, op)
                result.name = op.result.name
                op.result.replace_all_uses(result)
                op.erase()
    return function


def _is_batch(op: matmul.Dot) -> bool:
    return len(op.result.type.shape) == 3


def _is_double(op: matmul.Dot) -> bool:
    return bool(op.dtype.is_float and op.dtype.bits == 64)


def _is_wide(op: matmul.Dot) -> bool:
    return bool(op.dtype.is_integer and op.a.type.dtype.bits > 8)


def _expand_batch(builder: Builder, op: matmul.Dot) -> Value:
    count = op.result.type.shape[0]
    operands = [op.a, op.b, *([op.acc] if op.acc is not None else [])]
    parts = []
    for index in range(count):
        product = builder.create(matmul.Dot, *(_matrix(builder, value, index) for value in operands), dtype=op.dtype)
        parts.append(builder.create(shape.Reshape, product, shape=(1, *product.type.shape)))
    joined: Value = builder.create(rearrange.Concat, parts, axis=0)
    return joined


def _matrix(builder: Builder, value: Value, index: int) -> Value:
    """value[index]."""
    _, rows, columns = value.type.shape
    part = builder.create(
        rearrange.Slice, value, starts=(index, 0, 0), steps=(1, 1, 1), shape=(1, rows, columns)
    )  # fmt: skip
    matrix: Value = builder.create(shape.Reshape, part, shape=(rows, columns))
    return matrix


def _expand_double(builder: Builder, op: matmul.Dot) -> Value:
    depth = op.a.type.shape[1]
    zero: Value = builder.create(shape.Constant, value=0.0, type=op.result.type)
    total = zero if op.acc is None else op.acc
    for start in range(0, depth, PASS_DEPTH):
        terms = _sum_of_terms(builder, op, start, min(start + PASS_DEPTH, depth), zero)
        total = builder.create(elementwise.Add, total, terms)
    return total


def _expand_wide(builder: Builder, op: matmul.Dot) -> Value:
    start = op.acc
    if start is None:
        start = builder.create(shape.Constant, value=0, type=op.result.type)
    return _sum_of_terms(builder, op, 0, op.a.type.shape[1], start)


def _sum_of_terms(builder: Builder, op: matmul.Dot, first: int, end: int, start: Value) -> Value:
    """`start` and the products of k = first ... end - 1, in order."""
    bounds = [_counter(builder, number) for number in (first, end, 1)]
    total: Value = builder.create(control.For, *bounds, [start], regions=[_terms(op)])
    return total


def _counter(builder: Builder, number: int) -> Value:
    constant: Value = builder.create(shape.Constant, value=number, type=TileType(i32))
    return constant


def _terms(op: matmul.Dot) -> Block:
    """The body that adds the products of one k."""
    body = Block((TileType(i32), op.result.type), ("k", "t"))
    k, so_far = body.arguments
    builder = Builder(body)
    builder.location = op.location
    rows, columns = op.result.type.shape
    column, row = _at(builder, op.a, k, (rows, 1), 1), _at(builder, op.b, k, (1, columns), 0)
    factors = [builder.create(shape.Broadcast, value, shape=(rows, columns)) for value in (column, row)]
    if op.dtype.is_float:
        term = builder.create(elementwise.Fma, *factors, so_far)
    else:
        term = builder.create(elementwise.Add, builder.create(elementwise.Mul, *factors), so_far)
    builder.create(control.Yield, [term])
    return body


def _at(builder: Builder, matrix: Value, k: Value, sizes: tuple[int, int], axis: int) -> Value:
    """The column or row k of a matrix."""
    index = builder.create(shape.Splat, k, shape=sizes)
    found: Value = builder.create(rearrange.Gather, matrix, index, axis=axis)
    return found
