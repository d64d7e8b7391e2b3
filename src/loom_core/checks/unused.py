"""Work that nothing uses: loads and products without an effect, stores that are overwritten at once. Warnings."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, Final

from loom_core.base.diagnostics import Diagnostic, Severity, UserError
from loom_core.checks.lanes import Keys, parameter_of
from loom_core.ir.block import Block, Function
from loom_core.ir.op import Op
from loom_core.ir.value import Value
from loom_core.ops import atomic, control, matmul, memory


class UnusedResult(UserError):
    code = "LOOM-R215"
    template = "nothing uses what this {what} gives"
    hint = "remove it, or store what is computed from it"
    severity: ClassVar[Severity] = "warning"


class OverwrittenStore(UserError):
    code = "LOOM-R216"
    template = "what this store writes is overwritten in line {line} before anything reads it"
    hint = "remove one of the two stores"
    severity: ClassVar[Severity] = "warning"


_WORDS: Final[dict[type[Op], str]] = {
    memory.Load: "load",
    memory.DmaLoad: "load",
    memory.DmaGather: "load",
    matmul.Dot: "product",
    atomic.AtomicCas: "compare-and-swap",
}
"""What is worth a warning. Other atomic operations are there for what they do to memory."""
_LOADS: Final = (memory.Load, memory.DmaLoad, memory.DmaGather)
_STRUCTURE: Final = (control.For, control.While, control.If)


def unused_work(function: Function, apart: bool) -> tuple[Diagnostic, ...]:
    """What is wasted in a kernel, told from its text. `apart`: no array that is written overlaps another one."""
    return (*_unused_results(function), *_overwritten(function.body, Keys(), apart))


def _unused_results(function: Function) -> Iterator[Diagnostic]:
    used: set[Value] = set()
    pending: list[Value] = []
    for op in function.walk():
        if op.terminator or isinstance(op, _STRUCTURE) or not (op.pure or isinstance(op, _LOADS)):
            pending += op.operands
    while pending:
        value = pending.pop()
        if value not in used:
            used.add(value)
            maker = value.defining_op
            if maker is not None and not isinstance(maker, _STRUCTURE):
                pending += maker.operands
    for op in function.walk():
        word = _WORDS.get(type(op))
        if word is not None and not any(result in used for result in op.results):
            yield UnusedResult.diagnostic(op.location, what=word)


def _overwritten(block: Block, keys: Keys, apart: bool) -> Iterator[Diagnostic]:
    """Stores that a later one through the same pointers, under the same mask or none, takes back."""
    waiting: list[memory.Store] = []
    for op in block.operations:
        if isinstance(op, memory.Store):
            key = keys.of(op.pointer)
            for earlier in [one for one in waiting if keys.of(one.pointer) == key]:
                if op.mask is None or (earlier.mask is not None and keys.of(op.mask) == keys.of(earlier.mask)):
                    yield OverwrittenStore.diagnostic(earlier.location, line=op.location.line)
                    waiting.remove(earlier)
            waiting.append(op)
        elif isinstance(op, memory.Load) and apart:
            read = parameter_of(op.pointer)
            waiting = [one for one in waiting if read is not None and parameter_of(one.pointer) not in (None, read)]
        elif not op.pure or op.regions:
            waiting.clear()
            for region in op.regions:
                yield from _overwritten(region, keys, apart)
