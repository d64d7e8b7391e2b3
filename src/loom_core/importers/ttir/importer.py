"""Walks parsed Triton IR and builds Tile IR: scopes, locations, checks; the meaning of operations is in the tables."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final, NoReturn, Protocol

from loom_core.base.location import Location
from loom_core.importers.ttir.errors import UnsupportedOperation, WrongOperands
from loom_core.importers.ttir.parser import IrModule
from loom_core.importers.ttir.refused import REASONS
from loom_core.importers.ttir.syntax import IrBlock, IrType, Operation
from loom_core.importers.ttir.types import tile_type
from loom_core.ir.block import Block, Function
from loom_core.ir.op import Op
from loom_core.ir.types import TileType
from loom_core.ir.value import Value
from loom_core.ops.shape import Constant
from loom_core.trace.context import Frontend, Trace
from loom_core.trace.values import Traced

Imported = Value | Traced
"""What a name of the text stands for: a value, or a structure of several (a descriptor, a block pointer)."""

CALL_LIMIT: Final = 64
MOST_CALLS: Final = 1 << 13
"""How many calls may become the bodies of functions."""
DEEPEST: Final = 80
"""How deep regions and calls (of the text) and blocks (of Tile IR) may nest, counted together."""


class Library(Protocol):
    """Where functions of a device's math library come from: the kernel language has them."""

    @property
    def frontend(self) -> Frontend:
        """For the trace in which they are built."""

    def call(self, symbol: str, operands: Sequence[Value]) -> Value | None:
        """The function `symbol` (`__nv_expf`) applied; None where there is no such function."""


class ImportTrace(Trace):
    """A trace whose position is that of the operation being imported."""

    def __init__(self, function: Function, frontend: Frontend) -> None:
        super().__init__(function, frontend)
        self.at = function.location

    def location(self) -> Location:
        return self.at


@dataclass(frozen=True)
class Row:
    """One row of the tables: how an operation is imported, and what its text may hold.

    `types` says what the types after the colon are: those of the `operands` one by one, the one of all operands and
    results (`same`), of all operands (`input`), of the `result`, or `free` where the row itself checks. `structured`:
    the row takes values of several parts too, or checks that it is given none.
    """

    build: Callable[[Importer, Operation, list[Any]], Any]
    operands: tuple[int, int]
    types: str
    attributes: frozenset[str]
    words: bool
    regions: int
    structured: bool


TABLE: Final[dict[str, Row]] = {}
_MOVES: Final = frozenset({"tt.addptr", "tt.splat", "tt.broadcast", "tt.expand_dims", "tt.reshape"})

# Hints to Triton's passes, and permissions that are not used.
_HINTS: Final = frozenset(
    {"tt.divisibility", "tt.contiguity", "tt.constancy", "tt.num_stages", "tt.loop_unroll_factor", "tt.warp_specialize",
     "tt.disallow_acc_multi_buffer", "tt.flatten", "tt.disable_ping_pong", "tt.latency", "tt.self_latency",
     "loop.stage", "loop.cluster", "amd.pipeliner_part", "tt.scheduled_max_stage", "fastmath", "overflow",
     "operandSegmentSizes",
     "resultSegmentSizes", "noinline", "isExact", "nneg", "disjoint", "exact", "llvm.loop_annotation"}
)  # fmt: skip


def row(
    *names: str,
    operands: int | tuple[int, int],
    types: str = "operands",
    attributes: Sequence[str] = (),
    words: bool = False,
    regions: int = 0,
    structured: bool = False,
) -> Callable[[Any], Any]:
    """Enter a function into the table as the import of the named operations."""
    counts = operands if isinstance(operands, tuple) else (operands, operands)

    def enter(build: Any) -> Any:
        for name in names:
            TABLE[name] = Row(build, counts, types, frozenset(attributes), words, regions, structured)
        return build

    return enter


@dataclass(frozen=True)
class ImportedLoop:
    """A loop made of blocks: where its header ends, what it carries as `name: type`, and its witness where it counts.

    `variable` runs from what enters the loop by `step` to before `upper`, a name or a number.
    """

    location: Location
    carried: tuple[str, ...]
    variable: str = ""
    upper: str = ""
    step: int = 0


class Importer:
    """One import of one function of a module."""

    def __init__(self, module: IrModule, trace: ImportTrace, library: Library, *, assertions: bool) -> None:
        self.module = module
        self.trace = trace
        self.library = library
        self.assertions = assertions
        self.scope: ChainMap[str, Imported] = ChainMap()
        self.loops: list[ImportedLoop] = []
        self._calls: list[str] = []
        self._depth = 0
        self._count = 0

    @property
    def at_top(self) -> bool:
        """Whether the present operation runs once in a program: in no loop, branch or called function."""
        return not self._calls and not self.trace.depth

    # ---- building ----

    def create(self, kind: type[Op], /, *operands: Any, **attributes: Any) -> Any:
        """Build an operation; gives its result, results, or None."""
        return self.trace.builder.create(kind, *operands, **attributes)

    def constant(self, type: TileType, value: bool | int | float) -> Value:
        return self.trace.constant(type, value)

    # ---- names ----

    @contextmanager
    def nested_scope(self) -> Iterator[None]:
        """Names defined inside are not known outside."""
        self.scope = self.scope.new_child()
        try:
            yield
        finally:
            self.scope = self.scope.parents

    def lookup(self, op: Operation, name: str) -> Imported:
        """What `name`, used by `op`, stands for."""
        found = self.scope.get(name)
        if found is None:
            self.wrong(op, f"{name} is not defined")
        if self.trace.selects and isinstance(found, Value) and isinstance(found.defining_op, Constant):
            # The function of a fold stands on its own; Triton moves constants out of it.
            return self.constant(found.type, found.defining_op.value)
        return found

    def value(self, op: Operation, name: str) -> Value:
        """The plain value that `name` stands for."""
        found = self.lookup(op, name)
        return found if isinstance(found, Value) else self.wrong(op, f"{name} is {found}")

    def define(self, op: Operation, name: str, value: Imported) -> None:
        if name in self.scope:
            self.wrong(op, f"{name} is defined twice")
        self.scope[name] = value
        plain = name[1:].partition("#")[0]
        if isinstance(value, Value) and value.name is None and not plain.isdigit():
            value.name = _variable(plain)

    # ---- diagnostics ----

    def place(self, op: Operation) -> Location:
        """The user's line of an operation."""
        return self.module.locations.resolve(op.location, op.position)

    def wrong(self, op: Operation, problem: str) -> NoReturn:
        """WrongOperands, at the operation's line in the text."""
        raise WrongOperands(op.position, operation=op.name, problem=problem)

    def refuse(self, op: Operation, reason: str) -> NoReturn:
        """UnsupportedOperation at the user's line."""
        note = f"the operation stands in {op.position}"
        raise UnsupportedOperation(self.place(op), operation=op.name, reason=reason, notes=(note,))

    # ---- blocks ----

    def operations(self, operations: Sequence[Operation]) -> None:
        """Import operations one after another where the builder stands."""
        self._depth += 1
        for op in operations:
            if self._depth + self.trace.depth > DEEPEST:
                self.refuse(op, "loops, branches and calls nest too deep around it")
            self.operation(op)
        self._depth -= 1

    def operation(self, op: Operation) -> None:
        """Import one operation and define its results."""
        saved, self.trace.at = self.trace.at, self.place(op)
        try:
            found = TABLE.get(op.name)
            if found is None:
                self.refuse(op, _reason(op.name))
            self._check_form(op, found)
            operands = [self.lookup(op, name) for name in op.operands]
            self._check_structures(op, found, operands)
            self._check_operands(op, found.types, operands)
            made = self._built(found, op, operands)
            results = [] if made is None else list(made) if isinstance(made, (tuple, list)) else [made]
            self._check_results(op, found.types, results)
            for name, value in zip(op.results, results, strict=True):
                self.define(op, name, value)
        finally:
            self.trace.at = saved

    def _built(self, found: Row, op: Operation, operands: list[Any]) -> Any:
        """What the row makes of the operands; what moves a pointer moves one that is taken as another too."""
        from loom_core.importers.ttir.pointers import Reinterpreted

        if op.name not in _MOVES or not isinstance(operands[0], Reinterpreted):
            return found.build(self, op, operands)
        return operands[0].around(found.build(self, op, [operands[0].pointer, *operands[1:]]))

    def region(self, op: Operation, index: int) -> IrBlock:
        """The only block of a region of an operation."""
        blocks = op.regions[index]
        if len(blocks) != 1:
            self.refuse(op, "its region has several blocks")
        return blocks[0]

    def body(self, op: Operation, block: IrBlock, terminator: str) -> Operation:
        """Import a region's block, all but its last operation, which must be `terminator` and is returned."""
        if not block.operations or block.operations[-1].name != terminator:
            self.wrong(op, f"a region does not end in {terminator}")
        self.operations(block.operations[:-1])
        return block.operations[-1]

    # ---- checks ----

    def _check_form(self, op: Operation, found: Row) -> None:
        low, high = found.operands
        if not low <= len(op.operands) <= high:
            wanted = str(low) if low == high else f"{low} to {high}"
            self.wrong(op, f"it has {len(op.operands)} operands, {wanted} are needed")
        for name in op.attributes:
            if name not in found.attributes and name not in _HINTS:
                self.refuse(op, f"Loom does not know its attribute {name}")
        if op.words and not found.words:
            self.wrong(op, f"it does not take {op.words[0]}")
        if len(op.regions) != found.regions and found.regions >= 0:
            self.wrong(op, f"it has {len(op.regions)} regions, {found.regions} are needed")

    def _check_structures(self, op: Operation, found: Row, operands: Sequence[Imported]) -> None:
        from loom_core.importers.ttir.pointers import Address, Reinterpreted

        for number, value in enumerate(operands):
            moved = op.name in _MOVES and not number and isinstance(value, Reinterpreted)
            if isinstance(value, Value) or found.structured or moved:
                continue
            if isinstance(value, Address):
                self.refuse(op, "it computes with an address, and arrays have no addresses here")
            self.wrong(op, f"it does not take {value}")

    def check_type(self, op: Operation, value: Imported, type: IrType, what: str) -> None:
        """WrongOperands where `value` has another type than written."""
        if isinstance(value, Value):
            written = tile_type(type, op.position)
            if value.type != written:
                self.wrong(op, f"{what} is {value.type}, and written as {type}")

    def _check_operands(self, op: Operation, mode: str, operands: list[Imported]) -> None:
        if mode in ("free", "result"):
            return
        types = op.types
        if mode in ("same", "input") and len(types) == 1:
            types = types * len(operands)
        if len(types) != len(operands):
            self.wrong(op, f"it has {len(operands)} operands and {len(types)} types")
        for number, (value, type) in enumerate(zip(operands, types, strict=True), 1):
            self.check_type(op, value, type, f"operand {number}")

    def _check_results(self, op: Operation, mode: str, results: list[Imported]) -> None:
        if len(results) != len(op.results):
            self.wrong(op, f"it has {len(results)} results, {len(op.results)} are named")
        written = mode in ("same", "result")
        # The generic form writes the types of results behind an arrow.
        types = op.types[:1] if written and not op.result_types else op.result_types
        if written and len(types) != len(results):
            self.wrong(op, "one type is needed after its colon")
        for value, type in zip(results, types, strict=False):
            self.check_type(op, value, type, "the result")

    # ---- calls ----

    def call(self, op: Operation, symbol: str, arguments: Sequence[Imported]) -> list[Imported]:
        """Import the body of another function of the module in place of a call."""
        from loom_core.importers.ttir.branches import import_blocks

        function = self.module.functions.get(symbol)
        if function is None or not function.blocks:
            self.wrong(op, f"there is no function {symbol}")
        if symbol in self._calls:
            self.refuse(op, f"{symbol} calls itself")
        self._count += 1
        if self._count > MOST_CALLS:
            self.refuse(op, f"there are more than {MOST_CALLS} calls, with those of called functions")
        if len(self._calls) >= CALL_LIMIT:
            self.refuse(op, f"more than {CALL_LIMIT} functions call each other")
        if len(arguments) != len(function.arguments):
            self.wrong(op, f"{symbol} takes {len(function.arguments)} arguments, {len(arguments)} are given")
        saved, self.scope = self.scope, ChainMap()
        self._calls.append(symbol)
        try:
            for (name, type), value in zip(function.arguments, arguments, strict=True):
                self.check_type(op, value, type, name)
                self.scope[name] = value
            results = import_blocks(self, op, function.blocks)
        finally:
            self._calls.pop()
            self.scope = saved
        if len(results) != len(function.result_types):
            self.wrong(op, f"{symbol} returns {len(results)} values")
        return results

    # ---- nested blocks of Tile IR ----

    @contextmanager
    def building(self, block: Block) -> Iterator[None]:
        """Build into a block of a loop or branch, in a scope of its own."""
        with self.trace.region(block), self.nested_scope():
            yield


def _reason(name: str) -> str:
    dialect = name.partition(".")[0] + "."
    return REASONS.get(name) or REASONS.get(dialect) or "Loom does not know this operation"


def _variable(name: str) -> str:
    """The source's name of a value, without the number that the printer added to make it unique."""
    base, _, number = name.rpartition("_")
    plain = base if base and number.isdigit() else name
    return "".join(c if c.isalnum() or c == "_" else "_" for c in plain)
