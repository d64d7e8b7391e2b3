"""Pointers that control flow or a selection chooses become offsets, and a number where they may reach several arrays.

  one array       %p = if %c { yield %x } { yield addptr %x, %n };  load %p
                  ->  %o = if %c { yield 0 } { yield %n };  load (addptr %x, %o)
  several arrays  %p = if %c { yield %x } { yield %y };  load %p
                  ->  %w, %o = if %c { yield 0, 0 } { yield 1, 0 }
                      %0 = load (addptr %x, %o), mask = eq %w, 0;  %1 = load (addptr %y, %o), mask = eq %w, 1
                      select (eq %w, 1), %1, %0

Loops that only move a pointer, all elements alike, stay as they are: `lower_addresses` takes those into transfers.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from loom_core.base.dtype import i32, i64
from loom_core.ir.block import Block, Function
from loom_core.ir.builder import Builder
from loom_core.ir.op import Op
from loom_core.ir.types import TileType
from loom_core.ir.value import Value
from loom_core.ops import atomic, control, elementwise, memory, shape
from loom_core.passes.dead import remove_operand, renumber
from loom_core.passes.forms import Forms, NotAffine
from loom_core.passes.log import log_rewrite
from loom_core.passes.simplify import VIEWS

_CHAIN = (memory.AddPointer, *VIEWS)
_ACCESSES = (memory.Load, memory.Store, atomic.AtomicRmw, atomic.AtomicCas)


def split_pointers(function: Function) -> Function:
    """Split every pointer that has to be."""
    choices = _Choices(function)
    if choices.chosen:
        _Splitting(function, choices).run()
    return function


def _is_pointer(value: Value) -> bool:
    return value.type.is_pointer


def _moves_elements(op: Op) -> bool:
    """Whether a reshape does more than add and remove dimensions of one element."""
    if not isinstance(op, shape.Reshape):
        return False
    before, after = ([size for size in value.type.shape if size != 1] for value in (op.operand, op.result))
    return before != after


def _end(value: Value) -> Value:
    """The value of which `value` is a moved view: a parameter, a window, or what control flow gives."""
    while isinstance(value.defining_op, _CHAIN) and not _moves_elements(value.defining_op):
        value = value.defining_op.operands[0]
    return value


# ---- structured operations, by position of what they carry -----------------------------------------------------------


def _carried(op: Op, position: int) -> list[Value]:
    """All values that stand for one carried position: arguments of blocks, and the result."""
    if isinstance(op, control.For):
        return [op.regions[0].arguments[position + 1], op.results[position]]
    if isinstance(op, control.While):
        return [*(region.arguments[position] for region in op.regions), op.results[position]]
    return [op.results[position]]


def _sources(op: Op, position: int) -> list[Value]:
    """What flows into them: initial values and yields."""
    if isinstance(op, control.For):
        return [op.initial[position], op.regions[0].operations[-1].operands[position]]
    if isinstance(op, control.While):
        condition, body = (region.operations[-1].operands for region in op.regions)
        return [op.initial[position], condition[position + 1], body[position]]
    return [region.operations[-1].operands[position] for region in op.regions]


def _place(value: Value) -> tuple[Op, int] | None:
    """The structured operation, and the position, that a block argument or result belongs to."""
    op = value.defining_op
    if isinstance(op, control.For | control.If | control.While):
        return op, value.index
    block = value.parent_block
    if op is None and block is not None and block.parent is not None:
        return block.parent, value.index - isinstance(block.parent, control.For)
    return None


# ---- which pointers --------------------------------------------------------------------------------------------------


class _Choices:
    """The pointers that are split, as the values in which their choice is made, and the arrays that each may reach."""

    def __init__(self, function: Function) -> None:
        self.chosen: set[Value] = set()
        self.places: list[tuple[Op, int]] = []
        self._roots: dict[Value, set[Value]] = {}
        for op in function.walk():
            if isinstance(op, elementwise.Select) and _is_pointer(op.result):
                self._choose(op.result, [op.on_true, op.on_false])
            elif _moves_elements(op) and _is_pointer(op.results[0]):
                self._choose(op.results[0], [op.operands[0]])
            elif isinstance(op, control.If | control.While):
                for position in (i for i, result in enumerate(op.results) if _is_pointer(result)):
                    self._choose_place(op, position)
        loops = [op for op in function.walk() if isinstance(op, control.For)]
        if any(_is_pointer(result) and result not in self.chosen for loop in loops for result in loop.results):
            for loop, position in Forms(function).unfollowed:
                self._choose_place(loop, position)
        while any(self._examine(loop) for loop in loops):
            pass

    def _choose(self, value: Value, sources: list[Value]) -> None:
        """Split a value; carried pointers that flow into it are split too, so that their offsets are known."""
        if value in self.chosen:
            return
        self.chosen.add(value)
        for source in sources:
            place = _place(_end(source))
            if place is not None:
                self._choose_place(*place)

    def _choose_place(self, op: Op, position: int) -> None:
        values = _carried(op, position)
        if values[0] in self.chosen:
            return
        self.places.append((op, position))
        self.chosen.update(values)
        for source in _sources(op, position):
            place = _place(_end(source))
            if place is not None:
                self._choose_place(*place)

    def _examine(self, loop: control.For) -> bool:
        """Choose what a loop carries where it does more than move it; whether anything was new."""
        before = len(self.places)
        for position, result in enumerate(loop.results):
            if not _is_pointer(result) or result in self.chosen:
                continue
            initial, following = (_end(value) for value in _sources(loop, position))
            stays = following is loop.regions[0].arguments[position + 1] or following is initial
            if not stays or initial in self.chosen or following in self.chosen:
                self._choose_place(loop, position)
        return len(self.places) > before

    def roots(self, value: Value) -> set[Value]:
        """The parameters and windows that a pointer may point into."""
        value = _end(value)
        if value not in self._roots:
            self._roots[value] = set()
            found, pending = self._roots[value], [value]
            seen: set[Value] = set()
            while pending:
                one = _end(pending.pop())
                if one in seen:
                    continue
                seen.add(one)
                op, place = one.defining_op, _place(one)
                if place is not None:
                    pending += _sources(*place)
                elif isinstance(op, elementwise.Select):
                    pending += [op.on_true, op.on_false]
                elif isinstance(op, shape.Reshape):
                    pending.append(op.operand)
                else:
                    found.add(one)
        return self._roots[value]


# ---- splitting -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Parts:
    """A pointer as numbers: elements from the start of its array (i64), and which array (i32; None if there is one)."""

    offset: Value
    which: Value | None

    def values(self) -> list[Value]:
        return [self.offset, *([self.which] if self.which is not None else [])]


@dataclass
class _Splitting:
    function: Function
    choices: _Choices
    parts: dict[Value, _Parts] = field(default_factory=dict)
    numbers: dict[Value, int] = field(default_factory=dict)
    replaced: list[Op] = field(default_factory=list)

    def run(self) -> None:
        for value in sorted(self.choices.chosen, key=lambda value: value.serial):
            for root in sorted(self.choices.roots(value), key=lambda root: root.serial):
                self.numbers.setdefault(root, len(self.numbers))
        self._block(self.function.body)
        self._remove_places()

    def _is_split(self, value: Value) -> bool:
        return _is_pointer(value) and _end(value) in self.choices.chosen

    def _block(self, block: Block) -> None:
        for op in list(block.operations):
            builder = Builder(block)
            builder.anchor, builder.location = op, op.location
            if isinstance(op, control.For | control.If | control.While):
                self._structure(builder, op)
            elif isinstance(op, _ACCESSES) and self._is_split(op.pointer):
                self._access(builder, op)
            elif op.results and self._is_split(op.results[0]):
                self.parts[op.results[0]] = self._computed(builder, op)
                self.replaced.append(op)

    # -- values --

    def _of(self, builder: Builder, value: Value, several: bool) -> _Parts:
        """The parts of any pointer, with `which` if `several`; made before the builder's anchor if it has none yet."""
        parts = self.parts.get(value)
        if parts is None:
            op = value.defining_op
            if isinstance(op, _CHAIN):
                parts = self._computed(builder, op)
            else:
                parts = _Parts(self._constant(builder, 0, i64, value.type.shape), None)
        if several and parts.which is None:
            (root,) = self.choices.roots(value)
            return _Parts(parts.offset, self._constant(builder, self.numbers[root], i32, value.type.shape))
        return parts

    def _constant(self, builder: Builder, number: int, dtype: Any, sizes: tuple[int, ...]) -> Value:
        made: Value = builder.create(shape.Constant, value=number, type=TileType(dtype, sizes))
        return made

    def _computed(self, builder: Builder, op: Op) -> _Parts:
        """The parts of what an operation on pointers gives."""
        several = len(self.choices.roots(op.results[0])) > 1
        if isinstance(op, elementwise.Select):
            sides = [self._of(builder, side, several).values() for side in (op.on_true, op.on_false)]
            return _Parts(*self._padded(
                builder.create(elementwise.Select, op.condition, a, b) for a, b in zip(*sides, strict=True)
            ))  # fmt: skip
        parts = self._of(builder, op.operands[0], several)
        if isinstance(op, memory.AddPointer):
            added = op.offset
            if added.type.dtype is not i64:
                added = builder.create(elementwise.Cast, added, dtype=i64)
            return _Parts(builder.create(elementwise.Add, parts.offset, added), parts.which)
        return _Parts(*self._padded(builder.create(type(op), part, **op.attributes) for part in parts.values()))

    @staticmethod
    def _padded(values: Iterator[Value]) -> tuple[Value, Value | None]:
        offset, which = [*values, None][:2]
        assert offset is not None
        return offset, which

    # -- accesses --

    def _access(self, builder: Builder, op: Any) -> None:
        log_rewrite("split_pointers", op)
        roots = sorted(self.choices.roots(op.pointer), key=self.numbers.__getitem__)
        parts = self._of(builder, op.pointer, len(roots) > 1)
        if parts.which is None:
            op.set_operand(op.operands.index(op.pointer), self._pointer(builder, roots[0], parts.offset))
            return
        if isinstance(op, atomic.AtomicCas):
            self._compare_and_swap(builder, op, parts, roots)
            return
        result: Any = None
        for root in roots:
            number = self._constant(builder, self.numbers[root], i32, op.pointer.type.shape)
            here = builder.create(elementwise.Compare, parts.which, number, predicate="eq")
            mask = here if op.mask is None else builder.create(elementwise.And, op.mask, here)
            found = self._one(builder, op, self._pointer(builder, root, parts.offset), mask)
            result = found if result is None else builder.create(elementwise.Select, here, found, result)
        if op.results:
            result.name = op.result.name
            op.result.replace_all_uses(result)
        op.erase()

    def _compare_and_swap(self, builder: Builder, op: atomic.AtomicCas, parts: _Parts, roots: list[Value]) -> None:
        """It has no mask: of one element it is done in the branch for its array; NotAffine for a tile of them."""
        if op.pointer.type.shape:
            raise NotAffine(op.location, what="choice of array", access="access")
        assert parts.which is not None
        result = self._swapped(builder, op, parts.offset, parts.which, roots)
        result.name = op.result.name
        op.result.replace_all_uses(result)
        op.erase()

    def _swapped(self, builder: Builder, op: Any, offset: Value, which: Value, roots: list[Value]) -> Value:
        """The access to the array that is chosen among `roots`."""
        first, *others = roots
        if not others:
            made: Value = builder.create(atomic.AtomicCas, self._pointer(builder, first, offset), *op.operands[1:])
            return made
        number = self._constant(builder, self.numbers[first], i32, ())
        here = builder.create(elementwise.Compare, which, number, predicate="eq")
        blocks = (Block(), Block())
        for block, some in zip(blocks, ([first], others), strict=True):
            inner = Builder(block)
            inner.location = op.location
            inner.create(control.Yield, [self._swapped(inner, op, offset, which, some)])
        chosen: Value = builder.create(control.If, here, regions=blocks, types=(op.result.type,))
        return chosen

    @staticmethod
    def _one(builder: Builder, op: Any, pointer: Value, mask: Value) -> Any:
        """The access to one of the arrays."""
        if isinstance(op, memory.Load):
            return builder.create(memory.Load, pointer, mask, op.other)
        if isinstance(op, memory.Store):
            return builder.create(memory.Store, pointer, op.value, mask)
        return builder.create(atomic.AtomicRmw, pointer, op.value, mask, **op.attributes)

    @staticmethod
    def _pointer(builder: Builder, root: Value, offset: Value) -> Value:
        sizes = offset.type.shape
        base = builder.create(shape.Splat, root, shape=sizes) if sizes else root
        made: Value = builder.create(memory.AddPointer, base, offset)
        return made

    # -- loops and branches --

    def _structure(self, builder: Builder, op: Op) -> None:
        """The parts are carried behind everything else; the pointers themselves leave when all is done."""
        positions = [i for i, result in enumerate(op.results) if result in self.choices.chosen]
        several = {i: len(self.choices.roots(op.results[i])) > 1 for i in positions}
        if not isinstance(op, control.If):
            for i in positions:
                for value in self._of(builder, op.initial[i], several[i]).values():  # type: ignore[attr-defined]
                    _append_operand(op, value)
        for region in op.regions:
            for i in positions if not isinstance(op, control.If) else ():
                pointer = region.arguments[i + isinstance(op, control.For)]
                self.parts[pointer] = _Parts(*self._padded(
                    region.add_argument(type, pointer.name) for type in self._types(pointer.type.shape, several[i])
                ))  # fmt: skip
            self._block(region)
            last = region.operations[-1]
            inner = Builder(region)
            inner.anchor, inner.location = last, last.location
            first = int(isinstance(op, control.While) and region is op.regions[0])
            for i in positions:
                for value in self._of(inner, last.operands[i + first], several[i]).values():
                    _append_operand(last, value)
        for i in positions:
            types = self._types(op.results[i].type.shape, several[i])
            if "types" in op.attributes:
                op.attributes["types"] = (*op.attributes["types"], *types)
            made = [Value(type, op, len(op.results) + n, op.results[i].name) for n, type in enumerate(types)]
            op.results += made
            self.parts[op.results[i]] = _Parts(*self._padded(iter(made)))

    @staticmethod
    def _types(sizes: tuple[int, ...], several: bool) -> list[TileType]:
        return [TileType(i64, sizes), *([TileType(i32, sizes)] if several else [])]

    def _remove_places(self) -> None:
        """Take the pointers out of loops and branches, and the operations that made them."""
        places = sorted(self.choices.places, key=lambda place: -place[1])
        for op, i in places:
            log_rewrite("split_pointers", op)
            for region in op.regions:
                last = region.operations[-1]
                remove_operand(last, i + int(isinstance(op, control.While) and region is op.regions[0]))
            if not isinstance(op, control.If):
                remove_operand(op, i + 3 * isinstance(op, control.For))
        for op in reversed(self.replaced):
            op.erase()
        for op, i in places:
            if not isinstance(op, control.If):
                for region in op.regions:
                    del region.arguments[i + isinstance(op, control.For)]
                    renumber(region.arguments)
            del op.results[i]
            renumber(op.results)
            if "types" in op.attributes:
                op.attributes["types"] = tuple(result.type for result in op.results)


def _append_operand(op: Op, value: Value) -> None:
    """One more operand of the variadic field at the end."""
    op.operands.append(value)
    op.segments[-1] += 1
    value.users.append(op)
