"""`cf`: functions of several blocks and branches between them, as graphs for `loom_core.importers.blocks`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Final, NoReturn

from loom_core.importers.blocks import (
    END,
    Compared,
    CountedWitness,
    Edge,
    Graph,
    LoopWitness,
    Node,
    Number,
    Sum,
    Unstructured,
    build,
)
from loom_core.importers.blocks.graph import Fact
from loom_core.importers.ttir.attributes import plain
from loom_core.importers.ttir.importer import Imported, ImportedLoop, Importer, ImportTrace, row
from loom_core.importers.ttir.structured import check_alike
from loom_core.importers.ttir.syntax import IrBlock, Operation

RETURNS: Final = (
    "tt.return", "func.return", "scf.yield", "tt.reduce.return", "tt.scan.return", "tt.map_elementwise.return",
)  # fmt: skip
_ENDS: Final = (*RETURNS, "cf.br", "cf.cond_br", "cf.switch", "llvm.unreachable", "ub.unreachable")
_REPEATABLE: Final = frozenset(
    {"tt.splat", "tt.expand_dims", "tt.broadcast", "tt.reshape", "tt.make_range", "tt.addptr", "tt.bitcast",
     "tt.get_program_id", "tt.get_num_programs", "tt.fp_to_fp", "tt.trans"}
)  # fmt: skip
"""Operations, beside those of `arith` and `math`, of which nobody sees how often they run."""


def import_blocks(importer: Importer, op: Operation, blocks: Sequence[IrBlock]) -> list[Imported]:
    """Import the blocks of a function (`op` is its call, or itself); gives what it returns."""
    labelled: dict[str, IrBlock] = {}
    for number, block in enumerate(blocks):
        label = block.label or f"^{number}"
        if label in labelled:
            importer.wrong(op, f"a second block is called {label}")
        labelled[label] = block
    program = _Program(importer, op, labelled)
    entry = next(iter(labelled))
    try:
        graph = Graph(program.nodes(entry), entry)
        returned, structure = build(graph, program)
    except Unstructured as error:
        program.refuse(error.label, error.reason)
    importer.loops += [_shown(importer, labelled[loop.header], loop) for loop in structure.loops]
    return returned


def _shown(importer: Importer, block: IrBlock, loop: LoopWitness) -> ImportedLoop:
    """What reports say of a loop."""
    types, location = dict(block.arguments), importer.place(block.operations[-1])
    if not isinstance(loop, CountedWitness):
        return ImportedLoop(location, tuple(f"{name}: {types[name]}" for name in loop.parameters))
    carried = tuple(f"{name}: {types[name]}" for name in loop.parameters if name != loop.variable)
    variable = f"{loop.variable}: {types[loop.variable]}"
    return ImportedLoop(location, carried, variable, str(loop.upper), loop.step)


class _Program:
    """The blocks of a function as `blocks.Program` wants them."""

    def __init__(self, importer: Importer, op: Operation, blocks: Mapping[str, IrBlock]) -> None:
        self.importer = importer
        self.op = op
        self.blocks = blocks

    # ---- the graph ----

    def nodes(self, entry: str) -> list[Node]:
        """The blocks that are reached from the first one."""
        found: dict[str, Node] = {}
        pending = [entry]
        while pending:
            label = pending.pop()
            if label in found:
                continue
            found[label] = self._node(label)
            for edge in found[label].edges:
                if edge.target == entry:
                    self.importer.refuse(self._last(label), "it jumps to the first block")
                pending += [edge.target] if edge.target != END else []
        return list(found.values())

    def _last(self, label: str) -> Operation:
        block = self.blocks[label]
        if not block.operations:
            self.importer.wrong(self.op, f"block {block.label} is empty")
        return block.operations[-1]

    def _node(self, label: str) -> Node:
        block, last = self.blocks[label], self._last(label)
        if last.name not in _ENDS:
            self.importer.refuse(last, "a block cannot end with it")
        body = block.operations[:-1]
        selectors, cases = last.operands, self._cases(last)
        if last.name in RETURNS:
            edges, selectors = [Edge(END, tuple(last.operands))], []
        else:
            edges = [Edge(successor.label, tuple(successor.arguments)) for successor in last.successors]
        for edge in edges:
            if edge.target != END and edge.target not in self.blocks:
                self.importer.wrong(last, f"there is no block {edge.target}")
        wanted = {"cf.br": (1, 0), "cf.cond_br": (2, 1), "cf.switch": (len(cases) + 1, 1)}
        if (len(edges), len(selectors)) != wanted.get(last.name, (len(edges), 0)):
            self.importer.wrong(last, f"it has {len(edges)} successors and {len(selectors)} operands")
        return Node(
            label,
            tuple(edges),
            tuple(name for name, _ in block.arguments),
            frozenset(_uses(block.operations)),
            frozenset(name for op in block.operations for name in op.results),
            selectors[0] if selectors and len(edges) > 1 else "",
            cases,
            all(op.name.startswith(("arith.", "math.")) or op.name in _REPEATABLE for op in body),
            dict(_facts(body)),
        )

    def _cases(self, last: Operation) -> tuple[int, ...]:
        cases = [plain(case) for case in last.literals] if last.name == "cf.switch" else []
        if any(type(case) is not int for case in cases):
            self.importer.wrong(last, "its cases are no integers")
        return tuple(cases)

    # ---- building ----

    @property
    def trace(self) -> ImportTrace:
        return self.importer.trace

    def enter(self, label: str, values: Sequence[Imported]) -> None:
        block, importer = self.blocks[label], self.importer
        if len(block.arguments) != len(values):
            importer.wrong(self.op, f"block {block.label} takes {len(block.arguments)} values, {len(values)} come")
        for (name, type), value in zip(block.arguments, values, strict=True):
            importer.check_type(self.op, value, type, name)
            importer.scope[name] = value

    def run(self, label: str) -> None:
        self.importer.operations(self.blocks[label].operations[:-1])

    def bind(self, name: str, value: Imported) -> None:
        self.importer.scope[name] = value

    def value(self, label: str, name: str) -> Imported:
        return self.importer.lookup(self._last(label), name)

    def scope(self) -> AbstractContextManager[None]:
        return self.importer.nested_scope()

    def alike(self, label: str, first: Sequence[Imported], second: Sequence[Imported]) -> None:
        check_alike(self.importer, self.op if label == END else self._last(label), second, first)

    def refuse(self, label: str, reason: str) -> NoReturn:
        self.importer.refuse(self._last(label), reason)


def _uses(operations: Sequence[Operation]) -> Iterator[str]:
    """All names that operations and the regions in them read."""
    pending = list(operations)
    while pending:
        op = pending.pop()
        yield from op.operands
        yield from (initial for _, initial in op.bindings)
        yield from (name for names in op.lists for name in names if isinstance(name, str))
        yield from (name for successor in op.successors for name in successor.arguments)
        pending += [inner for blocks in op.regions for block in blocks for inner in block.operations]


def _facts(operations: Sequence[Operation]) -> Iterator[tuple[str, Fact]]:
    """What shows whether a loop counts: constants, sums and comparisons of scalars."""
    for op in operations:
        written = op.types[0].name if op.types else ""
        if len(op.results) != 1 or not written.startswith("i") or not written[1:].isdigit():
            continue
        if op.name == "arith.constant" and len(op.literals) == 1 and type(plain(op.literals[0])) is int:
            yield op.results[0], Number(plain(op.literals[0]))
        elif op.name == "arith.addi" and len(op.operands) == 2:
            exact = "nsw" in str(op.attributes.get("overflow", ""))
            yield op.results[0], Sum(op.operands[0], op.operands[1], exact)
        elif op.name == "arith.cmpi" and len(op.operands) == 2 and len(op.words) == 1:
            yield op.results[0], Compared(op.words[0], op.operands[0], op.operands[1], int(written[1:]))


@row("scf.execute_region", operands=0, types="free", words=True, attributes=("no_inline",), regions=1)
def _region(importer: Importer, op: Operation, operands: list[Any]) -> list[Imported]:
    """Blocks in the place of an operation."""
    with importer.nested_scope():
        return import_blocks(importer, op, op.regions[0])
