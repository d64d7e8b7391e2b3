"""Constants, arithmetic, selections, and the identity of workitems."""

from __future__ import annotations

from typing import Final

from loom_core.base.dtype import i64
from loom_core.importers.workgroups.conversion import Conversion, common_multiple, converts
from loom_core.importers.workgroups.elementwise import ROWS, UNMAPPED_SCALARS
from loom_core.importers.workgroups.lanes import Unmapped
from loom_core.interchange.model import Operation
from loom_core.ir.value import Value
from loom_core.ops.control import NumPrograms, ProgramId
from loom_core.ops.elementwise import Add, Div, Mul, Rem

AXES: Final = "xyz"


@converts(*ROWS)
def _arithmetic(c: Conversion, op: Operation) -> None:
    values = list(c.lanes.alike(*map(c.value, op.operands)))
    try:
        result = ROWS[op.name](c.lanes, values, op.attributes, c.result_dtype(op))
    except Unmapped as error:
        c.refuse(str(error))
    c.bind(op.results[0], result)
    _follow_multiples(c, op)


def _follow_multiples(c: Conversion, op: Operation) -> None:
    known = [c.multiple(operand) for operand in op.operands]
    name = op.name.partition(".")[2]
    if name in ("mul", "muli", "scale"):
        found = known[0] * known[1]
    elif name in ("add", "addi", "sub", "subi"):
        found = common_multiple(known)
    elif name in ("madd", "fmai"):
        found = common_multiple((known[0] * known[1], known[2]))
    elif name == "cast" or name in ("extsi", "extui"):
        found = known[0]
    else:
        return
    if found != 1:
        c.multiples[op.results[0]] = found


@converts(*UNMAPPED_SCALARS)
def _unmapped(c: Conversion, op: Operation) -> None:
    c.refuse(UNMAPPED_SCALARS[op.name])


@converts("index.constant", "scalar.constant")
def _constant(c: Conversion, op: Operation) -> None:
    value, dtype = op.attributes["value"], c.result_dtype(op)
    if dtype.is_integer and not dtype.min_value <= value <= dtype.max_value:
        value -= 1 << dtype.bits
    c.bind(op.results[0], c.lanes.constant(bool(value) if dtype.is_bool else value, dtype))
    if dtype is i64:
        c.multiples[op.results[0]] = abs(value)


@converts("index.assume", "scalar.assume")
def _assumed(c: Conversion, op: Operation) -> None:
    for operand, result in zip(op.operands, op.results, strict=True):
        c.bind(result, c.value(operand))
        c.multiples[result] = c.multiple(operand)
    for predicate in op.attributes["predicates"]:
        if predicate.kind == "mul" and predicate.args[0].tag == "value" and predicate.args[1].tag == "const":
            for operand, result in zip(op.operands, op.results, strict=True):
                if predicate.args[0].value in (operand, result):
                    c.multiples[result] = abs(predicate.args[1].value)


@converts("scf.select")
def _select(c: Conversion, op: Operation) -> None:
    condition, a, b = map(c.value, op.operands)
    c.bind(op.results[0], c.lanes.select(condition, a, b))


# ---- identity ----


def axis_of(op: Operation) -> int:
    return AXES.index(op.attributes["dimension"])


def local_id(c: Conversion, axis: int) -> Value:
    """The position of each workitem in its workgroup."""
    sizes = c.launch.size
    found = c.lanes.lane()
    below = 1
    for size in sizes[:axis]:
        below *= size
    if below > 1:
        found = c.lanes.make(Div, found, c.lanes.like(below, found))
    if any(size > 1 for size in sizes[axis + 1 :]):
        found = c.lanes.make(Rem, found, c.lanes.like(sizes[axis], found))
    return found


@converts("kernel.workitem.id")
def _workitem(c: Conversion, op: Operation) -> None:
    c.bind(op.results[0], local_id(c, axis_of(op)))


@converts("kernel.workgroup.id")
def _workgroup(c: Conversion, op: Operation) -> None:
    c.bind(op.results[0], c.lanes.cast(c.lanes.make(ProgramId, axis=axis_of(op)), i64))


@converts("kernel.workitem.dispatch.id")
def _dispatch(c: Conversion, op: Operation) -> None:
    axis = axis_of(op)
    group = c.lanes.cast(c.lanes.make(ProgramId, axis=axis), i64)
    start = c.lanes.make(Mul, group, c.index(c.launch.size[axis]))
    c.bind(op.results[0], c.lanes.make(Add, c.lanes.spread(start), local_id(c, axis)))


@converts("kernel.workgroup.size")
def _size(c: Conversion, op: Operation) -> None:
    c.bind(op.results[0], c.index(c.launch.size[axis_of(op)]))
    c.multiples[op.results[0]] = c.launch.size[axis_of(op)]


@converts("kernel.workgroup.count")
def _count(c: Conversion, op: Operation) -> None:
    c.bind(op.results[0], c.lanes.cast(c.lanes.make(NumPrograms, axis=axis_of(op)), i64))


@converts("kernel.subgroup.size", "target.subgroup.size")
def _subgroup_size(c: Conversion, op: Operation) -> None:
    c.bind(op.results[0], c.index(c.subgroup_size))


@converts("kernel.subgroup.count")
def _subgroup_count(c: Conversion, op: Operation) -> None:
    c.bind(op.results[0], c.index(-(-c.launch.lanes // c.subgroup_size)))


@converts("kernel.subgroup.id")
def _subgroup(c: Conversion, op: Operation) -> None:
    lane = c.lanes.lane()
    c.bind(op.results[0], c.lanes.make(Div, lane, c.lanes.like(c.subgroup_size, lane)))


@converts("kernel.subgroup.lane.id")
def _lane(c: Conversion, op: Operation) -> None:
    lane = c.lanes.lane()
    c.bind(op.results[0], c.lanes.make(Rem, lane, c.lanes.like(c.subgroup_size, lane)))
