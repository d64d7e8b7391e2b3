"""`cf`: several blocks and branches between them, as far as they are branches without loops.

    cond_br %c, ^a, ^b   ^a: ... br ^join(%x)   ^b: ... br ^join(%y)   ^join(%z): ...
becomes an `if` whose sides end where they meet:
    %z = if %c { ... yield %x } else { ... yield %y } ...
Sides that meet nowhere end the function, and so does the `if`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from loom_core.base.dtype import bool_
from loom_core.importers.ttir.importer import REFUSED, Imported, Importer, flatten, rebuild, types_of
from loom_core.importers.ttir.structured import check_alike
from loom_core.importers.ttir.syntax import IrBlock, Operation, Successor
from loom_core.ir.block import Block
from loom_core.ir.types import TileType
from loom_core.ops import elementwise as ops
from loom_core.ops.control import If, Yield

RETURNS: Final = ("tt.return", "func.return")
END: Final = ""
"""Where a function ends, as a block that all returns go to."""


REFUSED.update(
    dict.fromkeys(
        (*RETURNS, "cf.br", "cf.cond_br", "scf.yield", "scf.condition", "tt.reduce.return", "tt.scan.return"),
        "it ends a block, and others follow it",
    )
)


def import_blocks(importer: Importer, op: Operation, blocks: Sequence[IrBlock]) -> list[Imported]:
    """Import the blocks of a function (`op` is its call, or itself); gives what it returns."""
    return _Walk(importer, op, blocks).run()


class _Walk:
    def __init__(self, importer: Importer, op: Operation, blocks: Sequence[IrBlock]) -> None:
        self.importer = importer
        self.op = op
        self.blocks: dict[str, IrBlock] = {}
        for number, block in enumerate(blocks):
            label = block.label or f"^{number}"
            if label in self.blocks:
                importer.wrong(op, f"a second block is called {label}")
            self.blocks[label] = block
        self.entry = next(iter(self.blocks))
        self.meets = self._meeting_points()

    def run(self) -> list[Imported]:
        return self._from(self.entry, [], END)

    # ---- the graph ----

    def _last(self, block: IrBlock) -> Operation:
        if not block.operations:
            self.importer.wrong(self.op, f"block {block.label} is empty")
        return block.operations[-1]

    def _successors(self, label: str) -> list[str]:
        last = self._last(self.blocks[label])
        if last.name in RETURNS:
            return [END]
        if last.name not in ("cf.br", "cf.cond_br", "llvm.unreachable", "ub.unreachable"):
            self.importer.refuse(last, "a block cannot end with it")
        for successor in last.successors:
            if successor.label not in self.blocks:
                self.importer.wrong(last, f"there is no block {successor.label}")
        return [successor.label for successor in last.successors]

    def _order(self) -> list[str]:
        """The blocks that are reached, successors before predecessors. UnsupportedOperation for a loop."""
        done: dict[str, bool] = {END: True}
        order: list[str] = []
        stack: list[tuple[str, list[str]]] = [(self.entry, self._successors(self.entry))]
        done[self.entry] = False
        while stack:
            label, rest = stack[-1]
            if not rest:
                done[label] = True
                order.append(label)
                stack.pop()
                continue
            follower = rest.pop(0)
            if follower not in done:
                done[follower] = False
                stack.append((follower, self._successors(follower)))
            elif not done[follower]:
                reason = "it jumps back: loops of branches are not supported"
                self.importer.refuse(self._last(self.blocks[label]), reason)
        return order

    def _meeting_points(self) -> Mapping[str, str]:
        """For each block the first one that every path from it passes (its immediate postdominator)."""
        passed: dict[str, list[str]] = {END: [END]}
        for label in self._order():
            paths = [passed[follower] for follower in dict.fromkeys(self._successors(label))]
            common = [place for place in paths[0] if all(place in path for path in paths)] if paths else [END]
            passed[label] = [label, *common]
        return {label: places[1] for label, places in passed.items() if label != END}

    # ---- building ----

    def _from(self, label: str, arguments: Sequence[Imported], end: str) -> list[Imported]:
        """Import from a block to `end`; gives what is handed over there."""
        importer = self.importer
        while label != end:
            block = self.blocks[label]
            if block.label or len(arguments):
                self._enter(block, arguments)
            importer.operations(block.operations[:-1])
            last = self._last(block)
            if last.name in RETURNS:
                return [importer.lookup(last, name) for name in last.operands]
            if last.name == "cf.br" and len(last.successors) == 1:
                label, arguments = last.successors[0].label, self._handed(last, last.successors[0])
                continue
            if last.name != "cf.cond_br" or len(last.successors) != 2 or not last.operands:
                importer.refuse(last, "a block cannot end with it here")
            label, arguments = self.meets[label], self._branch(last, self.meets[label])
        return list(arguments)

    def _enter(self, block: IrBlock, arguments: Sequence[Imported]) -> None:
        importer = self.importer
        if len(block.arguments) != len(arguments):
            importer.wrong(self.op, f"block {block.label} takes {len(block.arguments)} values, {len(arguments)} come")
        for (name, type), value in zip(block.arguments, arguments, strict=True):
            importer.check_type(self.op, value, type, name)
            # Where two sides come here one after the other, both define it.
            importer.scope[name] = value

    def _handed(self, op: Operation, successor: Successor) -> list[Imported]:
        return [self.importer.lookup(op, name) for name in successor.arguments]

    def _branch(self, op: Operation, meet: str) -> list[Imported]:
        importer = self.importer
        condition = importer.value(op, op.operands[0])
        if condition.type != TileType(bool_):
            importer.wrong(op, f"its condition is {condition.type}")
        if importer.trace.selects:
            return self._select(op, condition, meet)
        blocks, results = [], []
        for successor in op.successors:
            block = Block()
            with importer.building(block):
                given = self._from(successor.label, self._handed(op, successor), meet)
                importer.create(Yield, flatten(given))
            blocks.append(block)
            results.append(given)
        first, second = results
        check_alike(importer, op, second, first)
        made = importer.trace.builder.create_op(If, condition, regions=blocks, types=tuple(types_of(first)))
        return rebuild(first, made.results)

    def _select(self, op: Operation, condition: Imported, meet: str) -> list[Imported]:
        """A branch in the function of a fold: both sides are computed, and one is chosen."""
        importer = self.importer
        sides = []
        for successor in op.successors:
            with importer.nested_scope():
                sides.append(flatten(self._from(successor.label, self._handed(op, successor), meet)))
        first, second = sides
        check_alike(importer, op, second, first)
        return [importer.create(ops.Select, condition, a, b) for a, b in zip(first, second, strict=True)]
