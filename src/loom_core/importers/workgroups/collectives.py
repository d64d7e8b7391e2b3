"""What workitems do together: reductions, scans, votes, and values that move between lanes."""

from __future__ import annotations

from typing import Any, Final

from loom_core.base.dtype import DType, i64
from loom_core.importers.workgroups.conversion import Conversion, converts
from loom_core.interchange.model import Operation
from loom_core.ir.types import TileType
from loom_core.ir.value import Value
from loom_core.ops.elementwise import Add, And, Compare, Rem, Select, ShiftLeft, Sub, Xor
from loom_core.ops.rearrange import Gather
from loom_core.ops.reduction import Reduce, Scan
from loom_core.ops.shape import Broadcast, Constant, ExpandDims, Reshape

KINDS: Final = {
    "addi": "sum", "muli": "prod", "minsi": "min", "maxsi": "max", "andi": "and", "ori": "or", "xori": "xor",
    "addf": "sum", "mulf": "prod", "minimumf": "minp", "maximumf": "maxp", "minnumf": "min", "maxnumf": "max",
}  # fmt: skip


def identity(kind: str, dtype: DType) -> Any:
    """What changes nothing that it is combined with."""
    if dtype.is_float:
        return {
            "sum": -0.0, "prod": 1.0, "min": float("inf"), "minp": float("inf"), "max": -float("inf"),
            "maxp": -float("inf"),
        }[kind]  # fmt: skip
    if dtype.is_bool:
        return kind == "and"
    return {"sum": 0, "prod": 1, "min": dtype.max_value, "max": dtype.min_value, "and": -1, "or": 0, "xor": 0}[kind]


def _kind(c: Conversion, op: Operation) -> str:
    found = KINDS.get(op.attributes["kind"])
    if found is None:
        c.refuse(f"{op.attributes['kind']} has no counterpart here")
    return found


def _groups(c: Conversion, op: Operation) -> int:
    """Workitems that act together."""
    if op.name.startswith("kernel.workgroup."):
        return c.launch.lanes
    size = op.attributes.get("cluster_size") or c.subgroup_size
    if op.attributes.get("cluster_stride", 1) != 1:
        c.refuse("clusters with a stride are not mapped")
    if c.launch.lanes % size:
        c.refuse(f"{c.launch.lanes} workitems are no whole number of groups of {size}")
    return int(size)


def _rows(c: Conversion, value: Value, size: int) -> Value:
    """The tile with a row for each group."""
    found: Value = c.lanes.make(Reshape, value, shape=(c.launch.lanes // size, size))
    return found


def _flat(c: Conversion, rows: Value) -> Value:
    found: Value = c.lanes.make(Reshape, rows, shape=c.lanes.shape)
    return found


def _taking_part(c: Conversion, value: Value, kind: str) -> Value:
    """The value, its identity for workitems that do not run."""
    value = c.lanes.spread(value)
    if c.lanes.mask is None:
        return value
    rest = c.lanes.like(identity(kind, value.type.dtype), value)
    found: Value = c.lanes.make(Select, c.lanes.mask, value, rest)
    return found


def _combined(c: Conversion, value: Value, kind: str, size: int) -> Value:
    """All of each group combined: a scalar for the workgroup, else a tile."""
    value = _taking_part(c, value, kind)
    if size == c.launch.lanes:
        found: Value = c.lanes.make(Reduce, value, kind=kind, axis=0)
        return found
    rows = _rows(c, value, size)
    folded = c.lanes.make(ExpandDims, c.lanes.make(Reduce, rows, kind=kind, axis=1), axis=1)
    return _flat(c, c.lanes.make(Broadcast, folded, shape=rows.type.shape))


@converts("kernel.subgroup.reduce", "kernel.workgroup.reduce")
def _reduce(c: Conversion, op: Operation) -> None:
    c.bind(op.results[0], _combined(c, c.value(op.operands[0]), _kind(c, op), _groups(c, op)))


@converts("kernel.subgroup.scan", "kernel.workgroup.scan")
def _scan(c: Conversion, op: Operation) -> None:
    kind, size = _kind(c, op), _groups(c, op)
    reverse = op.attributes["direction"] == "reverse"
    rows = _rows(c, _taking_part(c, c.value(op.operands[0]), kind), size)
    folded = c.lanes.make(Scan, rows, kind=kind, axis=1, reverse=reverse)
    if op.attributes["mode"] == "exclusive":
        position = _positions(c, size)
        step = c.lanes.like(1, position)
        before = c.lanes.make(Add if reverse else Sub, position, step)
        moved = _flat(c, c.lanes.make(Gather, folded, _rows(c, before, size), axis=1))
        edge = c.lanes.make(Compare, position, c.lanes.like(size - 1 if reverse else 0, position), predicate="eq")
        first = c.lanes.like(identity(kind, moved.type.dtype), moved)
        c.bind(op.results[0], c.lanes.make(Select, edge, first, moved))
    else:
        c.bind(op.results[0], _flat(c, folded))


def _positions(c: Conversion, size: int) -> Value:
    """The position of each workitem in its group, i64."""
    lane = c.lanes.lane()
    found: Value = lane if size == c.launch.lanes else c.lanes.make(Rem, lane, c.lanes.like(size, lane))
    return found


# ---- votes ----


@converts("kernel.subgroup.vote.any", "kernel.workgroup.vote.any")
def _any(c: Conversion, op: Operation) -> None:
    c.bind(op.results[0], _combined(c, c.value(op.operands[0]), "or", _groups(c, op)))


@converts("kernel.subgroup.vote.all", "kernel.workgroup.vote.all")
def _all(c: Conversion, op: Operation) -> None:
    c.bind(op.results[0], _combined(c, c.value(op.operands[0]), "and", _groups(c, op)))


@converts("kernel.workgroup.vote.count")
def _vote_count(c: Conversion, op: Operation) -> None:
    counted = c.lanes.cast(c.tile(op.operands[0]), c.result_dtype(op))
    c.bind(op.results[0], _combined(c, counted, "sum", c.launch.lanes))


def _mask_of(c: Conversion, predicate: Value, size: int, dtype: DType) -> Value:
    """A bit for each lane of the group for which the predicate holds."""
    bit = _lane_bits(c, size, dtype)
    chosen = c.lanes.make(Select, c.lanes.spread(predicate), bit, c.lanes.like(0, bit))
    return _combined(c, chosen, "or", size)


def _lane_bits(c: Conversion, size: int, dtype: DType) -> Value:
    """The bit of each workitem in the masks of its group."""
    if size > dtype.bits:
        c.refuse(f"{dtype} has no bit for each of {size} lanes")
    one = c.lanes.make(Constant, value=1, type=TileType(dtype, c.lanes.shape))
    found: Value = c.lanes.make(ShiftLeft, one, c.lanes.cast(_positions(c, size), dtype))
    return found


@converts("kernel.subgroup.vote.ballot")
def _ballot(c: Conversion, op: Operation) -> None:
    c.bind(op.results[0], _mask_of(c, c.value(op.operands[0]), _groups(c, op), c.result_dtype(op)))


@converts("kernel.subgroup.active.mask")
def _active(c: Conversion, op: Operation) -> None:
    c.bind(op.results[0], _mask_of(c, c.lanes.active(), _groups(c, op), c.result_dtype(op)))


@converts("kernel.subgroup.match.any", "kernel.subgroup.match.all")
def _match(c: Conversion, op: Operation) -> None:
    """A bit for each running lane of an equal value; `all` gives 0 unless every running lane has one."""
    size = _groups(c, op)
    value, dtype = c.tile(op.operands[0]), c.result_dtype(op)
    square = (c.launch.lanes // size, size, size)
    rows, columns = (
        c.lanes.make(Broadcast, c.lanes.make(ExpandDims, _rows(c, value, size), axis=axis), shape=square)
        for axis in (2, 1)
    )
    equal = c.lanes.make(Compare, rows, columns, predicate="eq")
    bits = _lane_bits(c, size, dtype)
    bits = c.lanes.make(Select, c.lanes.active(), bits, c.lanes.like(0, bits))
    wide = c.lanes.make(Broadcast, c.lanes.make(ExpandDims, _rows(c, bits, size), axis=1), shape=square)
    chosen = c.lanes.make(Select, equal, wide, c.lanes.like(0, wide))
    matching = _flat(c, c.lanes.make(Reduce, chosen, kind="or", axis=2))
    if op.name == "kernel.subgroup.match.any":
        c.bind(op.results[0], matching)
        return
    running = c.lanes.spread(_combined(c, bits, "or", size))
    alike = c.lanes.make(Compare, matching, running, predicate="eq")
    c.bind(op.results[0], c.lanes.make(Select, alike, matching, c.lanes.like(0, matching)))
    c.bind(op.results[1], alike)


# ---- lanes ----


def _moved(c: Conversion, value: Value, lane: Value, size: int) -> Value:
    """The value of the lane of its group that each workitem names."""
    rows = _rows(c, c.lanes.spread(value), size)
    return _flat(c, c.lanes.make(Gather, rows, _rows(c, lane, size), axis=1))


@converts("kernel.subgroup.broadcast")
def _broadcast(c: Conversion, op: Operation) -> None:
    lane = c.lanes.cast(c.tile(op.operands[1]), i64)
    c.bind(op.results[0], _moved(c, c.value(op.operands[0]), lane, _groups(c, op)))


@converts("kernel.subgroup.broadcast.first")
def _first(c: Conversion, op: Operation) -> None:
    size = _groups(c, op)
    position = _positions(c, size)
    first = c.lanes.spread(_combined(c, position, "min", size))
    c.bind(op.results[0], _moved(c, c.value(op.operands[0]), first, size))


@converts("kernel.subgroup.shuffle")
def _shuffle(c: Conversion, op: Operation) -> None:
    """Lanes move within segments of `width`; a lane without a partner keeps its own value."""
    size = _groups(c, op)
    value, offset, width = op.operands
    position = _positions(c, size)
    by, wide = (c.lanes.cast(c.tile(operand), i64) for operand in (offset, width))
    start = c.lanes.make(Sub, position, c.lanes.make(Rem, position, wide))
    mode = op.attributes["mode"]
    if mode == "index":
        target = c.lanes.make(Add, start, by)
    else:
        target = c.lanes.make({"xor": Xor, "up": Sub, "down": Add}[mode], position, by)
    low = c.lanes.make(Compare, target, start, predicate="ge")
    high = c.lanes.make(Compare, target, c.lanes.make(Add, start, wide), predicate="lt")
    within = c.lanes.make(Compare, target, c.lanes.like(size, target), predicate="lt")
    valid = c.lanes.make(And, c.lanes.make(And, low, high), within)
    chosen = c.lanes.make(Select, valid, target, position)
    c.bind(op.results[0], _moved(c, c.value(value), chosen, size))
    c.bind(op.results[1], valid)
