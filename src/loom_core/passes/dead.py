"""Dead code: what no store, load or other effect needs.

Liveness is found from the effects backwards, so that values which only feed each other go too:
    pure op, loop, branch   without effects and without live results  ->  removed
    carried value           whose argument and result are both dead   ->  not carried
    result of a branch      that is dead                              ->  not given
"""

from __future__ import annotations

from loom_core.ir.block import Block, Function
from loom_core.ir.op import Op
from loom_core.ir.value import Value
from loom_core.ops import control
from loom_core.passes.log import log_rewrite


def remove_dead(function: Function) -> Function:
    """Remove what is dead."""
    liveness = _Liveness(function)
    _sweep(function.body, liveness)
    return function


class _Liveness:
    """Live operations, and live results and arguments of loops and branches."""

    def __init__(self, function: Function) -> None:
        self.ops: set[Op] = set()
        self.values: set[Value] = set()
        self._pending: list[Value] = []
        for op in function.walk():
            if not op.pure and not op.terminator and not _is_structure(op):
                self._use(op)
        while self._pending:
            self._visit(self._pending.pop())

    def _use(self, op: Op) -> None:
        """An operation runs, so what is around it runs too."""
        while op not in self.ops:
            self.ops.add(op)
            if not isinstance(op, control.For):
                self._need(op.operands)
            else:
                self._need(op.operands[:3])
            if not _is_structure(op):  # its blocks, if any, are taken as they are
                for inner in (inner for region in op.regions for inner in region.walk()):
                    self.ops.add(inner)
                    self._need(inner.operands)
            if op.parent is None or op.parent.parent is None:
                return
            op = op.parent.parent

    def _need(self, values: list[Value]) -> None:
        for value in values:
            if value not in self.values:
                self.values.add(value)
                self._pending.append(value)

    def _visit(self, value: Value) -> None:
        op = value.defining_op
        if op is not None:
            self._use(op)
            position = value.index
        else:
            block = value.parent_block
            assert block is not None
            if block.parent is None:
                return  # a parameter
            op = block.parent
            self._use(op)
            position = value.index - 1
        if isinstance(op, control.For) and position >= 0:
            loop = op.regions[0]
            self._need([op.initial[position], loop.operations[-1].operands[position], loop.arguments[position + 1]])
        elif isinstance(op, control.If):
            self._need([region.operations[-1].operands[position] for region in op.regions])


def _is_structure(op: Op) -> bool:
    return isinstance(op, control.For | control.If)


def _sweep(block: Block, liveness: _Liveness) -> None:
    """Remove dead operations of a block, last to first, and dead carried values and results of live ones."""
    kept: list[Op] = []
    for op in reversed(block.operations):
        if op.terminator:
            kept.append(op)
        elif op not in liveness.ops:
            log_rewrite("dead", op)
            op.drop_operands()
            op.parent = None
        else:
            if isinstance(op, control.For):
                _thin_loop(op, liveness)
            elif isinstance(op, control.If):
                _thin_branch(op, liveness)
            if _is_structure(op):
                for region in op.regions:
                    _sweep(region, liveness)
            kept.append(op)
    kept.reverse()
    block.operations[:] = kept


def _thin_loop(loop: control.For, liveness: _Liveness) -> None:
    block = loop.regions[0]
    last = block.operations[-1]
    for i in reversed(range(len(loop.results))):
        if loop.results[i] not in liveness.values and block.arguments[i + 1] not in liveness.values:
            log_rewrite("dead carried value", loop)
            remove_operand(loop, 3 + i)
            remove_operand(last, i)
            del block.arguments[i + 1]
            del loop.results[i]
    renumber(block.arguments)
    renumber(loop.results)


def _thin_branch(branch: control.If, liveness: _Liveness) -> None:
    dead = [i for i, result in enumerate(branch.results) if result not in liveness.values]
    for i in reversed(dead):
        log_rewrite("dead result", branch)
        for region in branch.regions:
            remove_operand(region.operations[-1], i)
        del branch.results[i]
    if dead:
        branch.attributes["types"] = tuple(result.type for result in branch.results)
        renumber(branch.results)


def renumber(values: list[Value]) -> None:
    """Give values the indices of their places."""
    for i, value in enumerate(values):
        value.index = i


def remove_operand(op: Op, index: int) -> None:
    """Remove one operand of the variadic field at the end."""
    op.operands[index].users.remove(op)
    del op.operands[index]
    op.segments[-1] -= 1
