"""An interpreter of kernels that runs one workitem after another, each on its own, in plain Python and NumPy scalars.

It shares nothing with Tile IR: the oracle for what `loom.run` computes. Workitems wait for one another only where the
kernel says so.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Generator
from typing import Any

import numpy as np

from loom.ir import Module, Operation, Region
from loom_core.importers.kernel_module import known_ops
from loom_core.interchange.types import DynamicDim, ScalarType, ScalarTypeKind, ShapedType, Type

DECLARATIONS = {op.name: op for op in known_ops()}
NUMPY = {
    ScalarTypeKind.I8: np.int8,
    ScalarTypeKind.I16: np.int16,
    ScalarTypeKind.I32: np.int32,
    ScalarTypeKind.I64: np.int64,
    ScalarTypeKind.F16: np.float16,
    ScalarTypeKind.F32: np.float32,
    ScalarTypeKind.F64: np.float64,
    ScalarTypeKind.INDEX: np.int64,
    ScalarTypeKind.OFFSET: np.int64,
    ScalarTypeKind.I1: np.bool_,
}
Wait = Generator[tuple[Operation, Any], Any, Any]


def bits_of(type: Type) -> int:
    assert isinstance(type, ScalarType)
    return type.bitwidth


def signed(number: int, bits: int) -> int:
    number &= (1 << bits) - 1
    return number - (1 << bits) if bits > 1 and number >> (bits - 1) else number


def unsigned(number: int, bits: int) -> int:
    return number & ((1 << bits) - 1)


def quotient(a: int, b: int) -> int:
    """Towards zero; all ones for a zero divisor."""
    return -1 if b == 0 else abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def integer_binary(name: str, a: int, b: int, bits: int) -> int:
    ua, ub = unsigned(a, bits), unsigned(b, bits)
    match name:
        case "add" | "addi":
            return a + b
        case "sub" | "subi":
            return a - b
        case "mul" | "muli" | "scale":
            return a * b
        case "div" | "divsi":
            return quotient(a, b)
        case "rem" | "remsi":
            return a if b == 0 else a - quotient(a, b) * b
        case "divui":
            return -1 if b == 0 else ua // ub
        case "remui":
            return a if b == 0 else ua % ub
        case "floordivsi":
            return -1 if b == 0 else a // b
        case "ceildivsi":
            return -1 if b == 0 else -(-a // b)
        case "ceildivui":
            return -1 if b == 0 else -(-ua // ub)
        case "min" | "minsi":
            return min(a, b)
        case "max" | "maxsi":
            return max(a, b)
        case "minui":
            return min(ua, ub)
        case "maxui":
            return max(ua, ub)
        case "andi":
            return a & b
        case "ori":
            return a | b
        case "xori":
            return a ^ b
        case "shli":
            return a << b if 0 <= b < bits else 0
        case "shrsi":
            return a >> (b if 0 <= b < bits else bits - 1)
        case "shrui":
            return ua >> b if 0 <= b < bits else 0
        case "rotli":
            return ua << b % bits | ua >> (bits - b % bits)
        case "rotri":
            return ua >> b % bits | ua << (bits - b % bits)
    raise NotImplementedError(name)


def integer_unary(name: str, a: int, bits: int) -> int:
    ua = unsigned(a, bits)
    match name:
        case "negi":
            return -a
        case "absi":
            return abs(a)
        case "signi":
            return (a > 0) - (a < 0)
        case "ctlzi":
            return bits - ua.bit_length()
        case "cttzi":
            return (ua & -ua).bit_length() - 1 if ua else bits
        case "ctpopi":
            return ua.bit_count()
    raise NotImplementedError(name)


FLOATS: dict[str, Callable[..., Any]] = {
    "addf": lambda a, b: a + b, "subf": lambda a, b: a - b, "mulf": lambda a, b: a * b, "divf": lambda a, b: a / b,
    "minimumf": np.minimum, "maximumf": np.maximum, "minnumf": np.fmin, "maxnumf": np.fmax, "negf": lambda a: -a,
    "absf": np.abs, "sqrtf": np.sqrt, "ceilf": np.ceil, "floorf": np.floor, "truncf": np.trunc, "roundevenf": np.rint,
    "copysignf": np.copysign, "isnanf": np.isnan, "isinff": np.isinf, "isfinitef": np.isfinite,
    "remf": np.fmod,
}  # fmt: skip
ORDER: dict[str, Callable[[Any, Any], bool]] = {
    "eq": lambda a, b: a == b, "ne": lambda a, b: a != b, "lt": lambda a, b: a < b, "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b, "ge": lambda a, b: a >= b,
}  # fmt: skip


def compare_integers(predicate: str, a: int, b: int, bits: int) -> bool:
    if predicate.startswith("u"):
        a, b = unsigned(a, bits), unsigned(b, bits)
    return ORDER[predicate if predicate in ("eq", "ne") else predicate[1:]](a, b)


def compare_floats(predicate: str, a: Any, b: Any) -> bool:
    unordered = bool(np.isnan(a) or np.isnan(b))
    if predicate in ("ord", "uno"):
        return unordered == (predicate == "uno")
    return predicate.startswith("u") if unordered else bool(ORDER[predicate[1:]](a, b))


def combine(kind: str, values: list[Any], bits: int) -> Any:
    found = values[0]
    for value in values[1:]:
        match kind:
            case "addi":
                found = signed(found + value, bits)
            case "muli":
                found = signed(found * value, bits)
            case "minsi":
                found = min(found, value)
            case "maxsi":
                found = max(found, value)
            case "andi":
                found = found & value
            case "ori":
                found = found | value
            case "xori":
                found = found ^ value
            case "maxnumf":
                found = np.fmax(found, value)
            case _:
                raise NotImplementedError(kind)
    return found


IDENTITY = {"addi": 0, "muli": 1, "ori": 0, "xori": 0, "andi": -1}


class Exited(Exception):
    """The workitem has ended."""


class Workitem:
    """One workitem: its ids, its values, the memory it sees."""

    def __init__(self, group: Workgroup, local: tuple[int, int, int]) -> None:
        self.group = group
        self.local = local
        self.values: dict[int, Any] = dict(group.arguments)

    def run(self) -> Wait:
        try:
            yield from self.block(self.group.kernel.regions[1].blocks[0].ops)
        except Exited:
            return

    def get(self, id: int) -> Any:
        return self.values[id]

    def type(self, id: int) -> Type:
        return self.group.module.values[id].type

    def put(self, id: int, value: Any) -> None:
        type = self.type(id)
        if isinstance(type, ScalarType):
            if type.kind.name.startswith(("F", "BF")):
                value = NUMPY[type.kind](value)
            elif type.kind is ScalarTypeKind.I1:
                value = bool(value)
            else:
                value = signed(int(value), type.bitwidth)
        self.values[id] = value

    def block(self, ops: list[Operation]) -> Generator[tuple[Operation, Any], Any, list[Any]]:
        for op in ops[:-1]:
            yield from self.operation(op)
        if ops[-1].name == "kernel.return":
            raise Exited
        return [self.get(value) for value in ops[-1].operands]

    def region(self, region: Region, arguments: list[Any]) -> Generator[tuple[Operation, Any], Any, list[Any]]:
        block = region.blocks[0]
        for id, value in zip(block.arg_ids, arguments, strict=True):
            self.put(id, value)
        return (yield from self.block(block.ops))

    def finish(self, op: Operation, values: list[Any]) -> None:
        for result, value in zip(op.results, values, strict=True):
            self.put(result, value)

    def operation(self, op: Operation) -> Wait:
        dialect, _, name = op.name.partition(".")
        operands = [self.get(value) for value in op.operands]
        if dialect == "scf":
            yield from self.structured(op, name, operands)
        elif (
            op.name.startswith(("kernel.subgroup.", "kernel.workgroup."))
            and "convergent" in DECLARATIONS[op.name].traits
        ):
            self.finish(op, (yield op, operands))
        elif op.name == "kernel.barrier":
            yield op, operands
        elif op.name == "kernel.exit":
            if operands[0]:
                if op.regions:
                    yield from self.region(op.regions[0], [])
                raise Exited
        elif op.name == "func.call":
            symbol = self.group.module.find_symbol(op.attributes["callee"])
            assert symbol is not None
            assert symbol.op is not None
            self.finish(op, (yield from self.region(symbol.op.regions[0], operands)))
        elif dialect in ("buffer", "view"):
            self.memory(op, name, operands)
        elif dialect == "kernel" or op.name == "target.subgroup.size":
            self.put(op.results[0], self.identity(op, name))
        else:
            self.put(op.results[0], self.arithmetic(op, name, operands))

    def structured(self, op: Operation, name: str, operands: list[Any]) -> Wait:
        match name:
            case "if":
                chosen = op.regions[0] if operands[0] else op.regions[1] if len(op.regions) > 1 else None
                self.finish(op, (yield from self.region(chosen, [])) if chosen else [])
            case "switch":
                keys = list(op.attributes["case_keys"])
                chosen = op.regions[1 + keys.index(operands[0])] if operands[0] in keys else op.regions[0]
                self.finish(op, (yield from self.region(chosen, [])))
            case "for":
                groups = DECLARATIONS[op.name].split_operands(op.operands, op.operand_segment_counts)
                assert groups is not None
                at, upper, step = operands[:3]
                carried = [self.get(value) for value in groups["iter_args"]]
                while at < upper:
                    carried = yield from self.region(op.regions[0], [at, *carried])
                    at = signed(at + step, 64)
                self.finish(op, carried)
            case "while":
                carried = operands
                while True:
                    going, *handed = yield from self.region(op.regions[0], carried)
                    if not going:
                        break
                    carried = yield from self.region(op.regions[1], handed)
                self.finish(op, handed)
            case "select":
                self.put(op.results[0], operands[1] if operands[0] else operands[2])
            case "lookup":
                keys, width = list(op.attributes["case_keys"]), len(op.results)
                row = keys.index(operands[0]) if operands[0] in keys else len(keys)
                self.finish(op, operands[1 + row * width : 1 + (row + 1) * width])

    def identity(self, op: Operation, name: str) -> int:
        group, lane = self.group, self.group.lane(self.local)
        axis = "xyz".index(op.attributes.get("dimension", "x"))
        return {
            "workitem.id": self.local[axis], "workgroup.id": group.id[axis], "workgroup.size": group.size[axis],
            "workgroup.count": group.count[axis],
            "workitem.dispatch.id": group.id[axis] * group.size[axis] + self.local[axis],
            "subgroup.id": lane // group.subgroup, "subgroup.lane.id": lane % group.subgroup,
            "subgroup.size": group.subgroup,
        }[name]  # fmt: skip

    def arithmetic(self, op: Operation, name: str, v: list[Any]) -> Any:
        attributes = op.attributes
        source = self.type(op.operands[0]) if op.operands else self.type(op.results[0])
        result = self.type(op.results[0])
        bits = bits_of(source)
        match name:
            case "constant":
                return attributes["value"]
            case "assume":
                return v[0]
            case "cmp" | "cmpi":
                return compare_integers(attributes["predicate"], int(v[0]), int(v[1]), bits)
            case "cmpf":
                return compare_floats(attributes["predicate"], *v)
            case "madd" | "fmai":
                return v[0] * v[1] + v[2]
            case "cast" | "extsi" | "trunci":
                wide = -int(v[0]) if isinstance(v[0], bool) and name == "extsi" else int(v[0])
                return wide & 1 if bits_of(result) == 1 else wide
            case "extui":
                return unsigned(int(v[0]), bits)
            case "sitofp":
                return v[0]
            case "uitofp":
                return unsigned(v[0], bits)
            case "fptosi":
                return int(v[0])
            case "extf" | "fptrunc":
                return v[0]
            case "bitcast":
                return np.asarray(v[0], NUMPY[source.kind]).view(NUMPY[result.kind])[()]  # type: ignore[attr-defined]
            case "bitfield.extractu" | "bitfield.extracts":
                field = unsigned(v[0], bits) >> attributes["offset"] & ((1 << attributes["width"]) - 1)
                return signed(field, attributes["width"]) if name.endswith("s") else field
        if name in FLOATS:
            return FLOATS[name](*v)
        return integer_binary(name, *map(int, v), bits) if len(v) == 2 else integer_unary(name, int(v[0]), bits)

    # ---- memory ----

    def memory(self, op: Operation, name: str, operands: list[Any]) -> None:
        group = self.group
        match name:
            case "load.i8.u":
                self.put(op.results[0], int(operands[0][operands[1]]))
            case "store.i8":
                operands[1][operands[2]] = operands[0] & 255
            case "length":
                self.put(op.results[0], len(operands[0]))
            case "assume.alignment" | "assume.noalias" | "assume.memory_space":
                self.finish(op, operands)
            case "alloca":
                key = (id(op), self.local if op.attributes["memory_space"] == "private" else None)
                self.put(op.results[0], group.allocated.setdefault(key, np.zeros(operands[0], np.uint8)))
            case "copy":
                source, start, target, end, length = operands
                target[end : end + length] = source[start : start + length].copy()
            case "fill":
                pattern, target, start, length = operands
                type = self.type(op.operands[0])
                assert isinstance(type, ScalarType)
                data = np.full(length, pattern, NUMPY[type.kind]).view(np.uint8)[:length]
                target[start : start + length] = data
            case "compare":
                first, start, second, other, length = operands
                a, b = first[start : start + length].tolist(), second[other : other + length].tolist()
                self.put(op.results[0], (a > b) - (a < b))
            case "view":
                self.put(op.results[0], (operands[0], operands[1], self.type(op.results[0]), 0))
            case "subview":
                memory, offset, type, start = operands[0]
                at = start + self.flat(type, op.attributes["static_offsets"], op.operands[1:])
                self.put(op.results[0], (memory, offset, type, at))
            case "load":
                array, at = self.element(op, op.operands[0], op.operands[1:])
                self.put(op.results[0], array[at])
            case "store":
                array, at = self.element(op, op.operands[1], op.operands[2:])
                array[at] = operands[0]
            case "atomic.rmw" | "atomic.reduce":
                array, at = self.element(op, op.operands[1], op.operands[2:])
                old = array[at].item()
                array[at] = combine(op.attributes["kind"], [old, operands[0]], array.itemsize * 8)
                if op.results:
                    self.put(op.results[0], old)

    def element(self, op: Operation, view: int, dynamic: list[int]) -> tuple[Any, int]:
        memory, offset, type, start = self.get(view)
        at = start + self.flat(type, op.attributes["static_indices"], dynamic)
        return memory[offset:].view(NUMPY[type.element_type.kind]), at

    def flat(self, type: ShapedType, static: list[int], dynamic: list[int]) -> int:
        """The number of elements before an index list, row-major."""
        sizes = [self.get(dim.value_id) if isinstance(dim, DynamicDim) else dim.size for dim in type.dims]
        values = iter(dynamic)
        at = 0
        for index, size in zip(static, sizes, strict=True):
            at = at * size + (self.get(next(values)) if index == -(2**63) else index)
        return at


class Workgroup:
    """The workitems of one workgroup."""

    def __init__(
        self, module: Module, kernel: Operation, id: tuple[int, int, int], count: tuple[int, int, int],
        size: tuple[int, int, int], subgroup: int, arguments: dict[int, Any],
    ) -> None:  # fmt: skip
        self.module, self.kernel, self.id, self.count, self.size = module, kernel, id, count, size
        self.subgroup = subgroup
        self.arguments = arguments
        self.allocated: dict[Any, Any] = {}
        self.order = {id_: i for i, id_ in enumerate(map(_identity, _operations(kernel.regions[1])))}

    def lane(self, local: tuple[int, int, int]) -> int:
        x, y, z = local
        return x + self.size[0] * (y + self.size[1] * z)

    def run(self) -> None:
        """Each workitem runs until it waits; those that wait at the first place go on together."""
        x, y, z = (range(n) for n in self.size)
        items = [Workitem(self, (i, j, k)) for k, j, i in itertools.product(z, y, x)]
        running = dict(enumerate(item.run() for item in items))
        waiting: dict[int, tuple[Operation, Any]] = {}
        answers: dict[int, Any] = dict.fromkeys(running)
        while running:
            for lane, value in answers.items():
                waiting.pop(lane, None)
                try:
                    waiting[lane] = running[lane].send(value)
                except StopIteration:
                    del running[lane]
            if not running:
                return
            first = min((op for op, _ in waiting.values()), key=lambda op: self.order[id(op)])
            together = {lane: values for lane, (op, values) in waiting.items() if op is first}
            answers = self.meet(first, together)

    def meet(self, op: Operation, given: dict[int, Any]) -> dict[int, Any]:
        if op.name == "kernel.barrier":
            return dict.fromkeys(given)
        whole = op.name.startswith("kernel.workgroup.")
        size = len(range(self.size[0] * self.size[1] * self.size[2])) if whole else self.subgroup
        found: dict[int, Any] = {}
        for start in range(0, self.size[0] * self.size[1] * self.size[2], size):
            part = {lane: values for lane, values in given.items() if start <= lane < start + size}
            for lane in part:
                found[lane] = self.answer(op, lane, part, start)
        return found

    def answer(self, op: Operation, lane: int, part: dict[int, Any], start: int) -> list[Any]:
        name = op.name.removeprefix("kernel.").partition(".")[2]
        own = part[lane]
        values = [part[other][0] for other in part] if own else []
        bits = bits_of(self.module.values[op.operands[0]].type) if op.operands else 0
        match name:
            case "reduce":
                return [combine(op.attributes["kind"], values, bits)]
            case "scan":
                forward, kind = op.attributes["direction"] == "forward", op.attributes["kind"]
                before = [part[o][0] for o in part if (o < lane if forward else o > lane)]
                if op.attributes["mode"] == "inclusive":
                    before.append(own[0])
                return [combine(kind, before, bits) if before else IDENTITY[kind]]
            case "vote.any":
                return [any(values)]
            case "vote.all":
                return [all(values)]
            case "vote.count":
                return [sum(values)]
            case "vote.ballot":
                return [sum(1 << (other - start) for other in part if part[other][0])]
            case "active.mask":
                return [sum(1 << (other - start) for other in part)]
            case "match.any":
                return [sum(1 << (o - start) for o in part if part[o][0] == own[0])]
            case "match.all":
                alike = all(value == own[0] for value in values)
                return [sum(1 << (o - start) for o in part) if alike else 0, alike]
            case "broadcast":
                return [part[start + own[1]][0]]
            case "broadcast.first":
                return [part[min(part)][0]]
            case "shuffle":
                _, by, width = own
                at = lane - start
                base = at - at % width
                target = {"xor": at ^ by, "up": at - by, "down": at + by, "index": base + by}[op.attributes["mode"]]
                valid = base <= target < base + width
                return [part[start + target if valid else lane][0], valid]
        raise NotImplementedError(name)


def _identity(op: Operation) -> int:
    return id(op)


def _operations(region: Region) -> list[Operation]:
    return [
        o for block in region.blocks for op in block.ops for o in (op, *(x for r in op.regions for x in _operations(r)))
    ]


def run_workitems(
    module: Module, count: tuple[int, int, int], size: tuple[int, int, int], arguments: list[Any], subgroup: int = 32
) -> None:
    """Run the only kernel of a module; arrays are uint8, written in place."""
    kernel = next(op for op in module.body.ops if op.name == "kernel.def")
    bound = dict(zip(kernel.regions[1].blocks[0].arg_ids, arguments, strict=True))
    with np.errstate(all="ignore"):
        for z, y, x in itertools.product(*(range(n) for n in reversed(count))):
            lanes = size[0] * size[1] * size[2]
            Workgroup(module, kernel, (x, y, z), count, size, min(subgroup, lanes), bound).run()
