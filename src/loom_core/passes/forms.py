"""Which tiles of a function are affine: a walk that gives every integer and pointer value its form where it has one.

    %i = iota {0, 8}; %s = splat %n; %o = add %s, %i; %p = addptr (splat %x), %o
gives
    %i: i      %s: n      %o: n + i      %p: x + n + i

Scalars are the atoms of the forms: what computes them stays as it is, and wraps as it does. An integer tile without a
form may be an index of a pointer's. A tile that a loop carries has a form where every iteration changes its offset
alone; the offset is then an atom, named by the loop's own value.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from loom_core.base.diagnostics import UserError
from loom_core.base.dtype import DType
from loom_core.ir.block import Block, Function
from loom_core.ir.op import Op
from loom_core.ir.value import Value
from loom_core.ops import control, elementwise, memory, shape
from loom_core.passes.affine import (
    ONE,
    ZERO,
    Form,
    Index,
    Polynomial,
    add_forms,
    is_index,
    multiply_forms,
    subtract_forms,
    uniform,
)
from loom_core.passes.simplify import VIEWS

NARROWEST_INDEX_BITS = 32
"""Arithmetic of narrower types wraps too soon to be taken as exact."""


class NotAffine(UserError):
    """Pointers that are used in a way that no command can follow."""

    code = "LOOM-C110"
    template = "the {what} of this {access} cannot be followed"
    hint = "compute with offsets, which are integers, and add them to a pointer where it is accessed"


class Forms:
    """The forms of a function's values.

    `unfollowed`: the loops that move a pointer they carry by something else than one offset for all elements, with its
    position; these have no form.
    """

    def __init__(self, function: Function) -> None:
        self._table: dict[Value, Form] = {}
        self.unfollowed: list[tuple[control.For, int]] = []
        for argument in function.arguments:
            if argument.type.is_pointer:
                self._table[argument] = Form(argument, ZERO, ())
            self._scalar(argument)
        self._block(function.body)

    def get(self, value: Value) -> Form | None:
        return self._table.get(value)

    def is_carried_offset(self, value: Value) -> bool:
        """Whether a loop carries `value` (an argument or result of it) as the scalar offset of its form."""
        form = self._table.get(value)
        return form is not None and form.offset.as_atom is value and (value.type.is_pointer or not value.type.is_scalar)

    def _scalar(self, value: Value) -> None:
        """A scalar integer is an atom."""
        if value.type.is_scalar and is_index(value.type) and not value.type.is_pointer:
            self._table[value] = Form(None, Polynomial.atom(value), ())

    def _block(self, block: Block) -> None:
        for op in block.operations:
            if isinstance(op, control.For):
                self._loop(op)
                continue
            for region in op.regions:
                for argument in region.arguments:
                    self._table.pop(argument, None)
                    self._scalar(argument)
                self._block(region)
            form = self._form(op) if len(op.results) == 1 else None
            if isinstance(op, memory.Window):
                form = Form(op.result, ZERO, ())
            if form is not None:
                self._table[op.results[0]] = form
                continue
            for result in op.results:
                self._table.pop(result, None)
                self._scalar(result)

    def _form(self, op: Op) -> Form | None:
        """The form of the op's only result, where it has one that is not just an atom."""
        rule, type = _RULES.get(op.__class__), op.results[0].type
        if rule is None or not is_index(type):
            return None
        if type.is_scalar and not type.is_pointer and not isinstance(op, shape.Constant):
            return None
        operands = [self._table.get(value) for value in op.operands]
        if isinstance(op, memory.AddPointer) and not type.is_scalar and operands[1] is None:
            operands[1] = Form(None, ZERO, (ZERO,) * len(type.shape), indices=(Index(op.offset),))
        if any(form is None for form in operands):
            return None
        form: Form | None = rule(op, *operands)
        if form is not None and isinstance(op, VIEWS):
            assert operands[0] is not None
            seen = tuple(replace(index, views=(*index.views, op)) for index in operands[0].indices)
            form = replace(form, indices=seen)
        if form is not None and any(operand is not None and operand.widened for operand in operands):
            form = replace(form, widened=True)
        return form

    def _loop(self, op: control.For) -> None:
        """Assume that every carried form keeps its base and strides, and take back what proves wrong."""
        block = op.regions[0]
        yields = block.operations[-1].operands
        assumed = {
            i: form
            for i, value in enumerate(op.initial)
            if (form := self._table.get(value)) is not None
            and (value.type.is_pointer or not (value.type.is_scalar or form.widened))
        }
        while True:
            self._scalar(block.arguments[0])
            self._carry(block.arguments[1:], assumed)
            self._block(block)
            wrong = [i for i, form in assumed.items() if not _keeps(form, self._table.get(yields[i]))]
            for i in wrong:
                if op.initial[i].type.is_pointer:
                    self.unfollowed.append((op, i))
                del assumed[i]
            if not wrong:
                break
        self._carry(op.results, assumed)

    def _carry(self, values: list[Value], assumed: dict[int, Form]) -> None:
        for i, value in enumerate(values):
            self._table.pop(value, None)
            if i in assumed:
                self._table[value] = replace(assumed[i], offset=Polynomial.atom(value))
            else:
                self._scalar(value)


def _keeps(assumed: Form, given: Form | None) -> bool:
    """Whether one iteration leaves base and strides as they are, and the offset (as data) exact."""
    if given is None or given.base is not assumed.base or given.strides != assumed.strides:
        return False
    if given.indices != assumed.indices:
        return False
    return given.base is not None or not given.widened


def view_form(op: Op, form: Form) -> Form | None:
    """What a view makes of a form; None where that has none."""
    return _RULES[type(op)](op, form)  # type: ignore[no-any-return]


# ---- one rule an operation ----


def _constant(op: Op) -> Form:
    return uniform(Polynomial.constant(int(op.attributes["value"])), len(op.results[0].type.shape))


def _iota(op: Op) -> Form:
    # A dimension of size 1 has no stride, so that it may be repeated.
    start, end = op.attributes["start"], op.attributes["end"]
    return Form(None, Polynomial.constant(start), (ONE if end - start > 1 else ZERO,))


def _splat(op: Op, form: Form) -> Form:
    return uniform(form.offset, len(op.results[0].type.shape), form.base)


def _expand(op: Op, form: Form) -> Form:
    axis = op.attributes["axis"]
    return Form(form.base, form.offset, (*form.strides[:axis], ZERO, *form.strides[axis:]))


def _broadcast(op: Op, form: Form) -> Form:
    old, new = op.operands[0].type.shape, op.results[0].type.shape
    strides = (s if a == b else ZERO for s, a, b in zip(form.strides, old, new, strict=True))
    return Form(form.base, form.offset, tuple(strides))


def _transpose(op: Op, form: Form) -> Form:
    return Form(form.base, form.offset, tuple(form.strides[d] for d in op.attributes["permutation"]))


def _reshape(op: Op, form: Form) -> Form | None:
    """Only where dimensions of size 1 come or go, or every element is the same."""
    old, new = op.operands[0].type.shape, op.results[0].type.shape
    if form.is_uniform:
        return uniform(form.offset, len(new), form.base)
    if [size for size in old if size != 1] != [size for size in new if size != 1]:
        return None
    kept = iter([stride for stride, size in zip(form.strides, old, strict=True) if size != 1])
    return Form(form.base, form.offset, tuple(next(kept) if size != 1 else ZERO for size in new))


def _arithmetic(combine: Callable[[Form, Form], Form | None]) -> Callable[[Op, Form, Form], Form | None]:
    """The rule of an operation that is exact in types wide enough."""

    def rule(op: Op, a: Form, b: Form) -> Form | None:
        return combine(a, b) if op.results[0].type.dtype.bits >= NARROWEST_INDEX_BITS else None

    return rule


def _negate(op: Op, form: Form) -> Form | None:
    zero = uniform(ZERO, len(form.strides))
    return subtract_forms(zero, form) if op.results[0].type.dtype.bits >= NARROWEST_INDEX_BITS else None


def _shift(op: Op, form: Form, amount: Form) -> Form | None:
    bits, count = op.results[0].type.dtype.bits, amount.offset.as_constant
    if count is None or not amount.is_uniform or not 0 <= count < bits or bits < NARROWEST_INDEX_BITS:
        return None
    return multiply_forms(form, uniform(Polynomial.constant(1 << count), len(form.strides)))


def _cast(op: Op, form: Form) -> Form | None:
    """Widening keeps the form; narrowing could wrap and does not."""
    old, new = op.operands[0].type.dtype, op.results[0].type.dtype
    if new.bits < max(NARROWEST_INDEX_BITS, old.bits):
        return None
    wrapped = new.bits > old.bits and not _fits(form, op.operands[0].type.shape, old)
    return replace(form, widened=form.widened or wrapped)


def _fits(form: Form, sizes: tuple[int, ...], dtype: DType) -> bool:
    """Whether every element is known to lie in `dtype`: one scalar of that type, or constants all along."""
    atom = form.offset.as_atom
    if atom is not None and form.is_uniform:
        return atom.type.element is dtype
    low = high = form.offset.as_constant
    steps = [stride.as_constant for stride in form.strides]
    if low is None or high is None:
        return False
    for step, size in zip(steps, sizes, strict=True):
        if step is None:
            return False
        low, high = low + min(step * (size - 1), 0), high + max(step * (size - 1), 0)
    return dtype.min_value <= low and high <= dtype.max_value


_RULES: dict[type[Op], Callable[..., Any]] = {
    shape.Constant: _constant,
    shape.Iota: _iota,
    shape.Splat: _splat,
    shape.ExpandDims: _expand,
    shape.Broadcast: _broadcast,
    shape.Transpose: _transpose,
    shape.Reshape: _reshape,
    elementwise.Add: _arithmetic(add_forms),
    elementwise.Sub: _arithmetic(subtract_forms),
    elementwise.Mul: _arithmetic(multiply_forms),
    elementwise.Negate: _negate,
    elementwise.ShiftLeft: _shift,
    elementwise.Cast: _cast,
    memory.AddPointer: lambda op, pointer, offset: add_forms(pointer, offset),
}
