"""Affine address analysis: pointer tiles become base, offset, strides and bounds.

    %i = iota {0, 128}; %o = add (splat %s), %i; %p = addptr (splat %x), %o; %m = cmp lt %o, (splat %n)
    %v = load %p, %m
becomes
    %v = dma_load %x, %s * 4, [stride 4, lo 0, hi %n - %s]

Rules, on a walk that rebuilds the function:
  forms     integer and pointer tiles get an affine form where they have one, and are not emitted
  accesses  load and store through an affine pointer with a box-shaped mask become dma_load and dma_store
  carried   an affine tile carried by a loop is carried as its scalar offset
  data      an affine integer tile that is used as data becomes one `affine` operation
"""

from __future__ import annotations

from dataclasses import dataclass, field

from loom_core.base.diagnostics import UserError
from loom_core.base.dtype import bool_, i64
from loom_core.ir.block import Block, Function
from loom_core.ir.builder import Builder
from loom_core.ir.op import Op
from loom_core.ir.types import TileType
from loom_core.ir.value import Value
from loom_core.ops import control, elementwise, memory, shape
from loom_core.passes.affine import (
    ONE,
    Bounds,
    Form,
    Polynomial,
    Region,
    add_forms,
    is_index,
    multiply_forms,
    positive_region,
    subtract_forms,
    uniform,
)

INDEX = TileType(i64)


class NotAffine(UserError):
    """An access whose addresses or mask no DMA descriptor can express."""

    code = "LOOM-C110"
    template = "the {what} of this {access} is not an affine function of the tile's indices"
    hint = (
        "addresses must be sums of index times stride, masks must compare such indices with scalars; "
        "gather and scatter through data-dependent addresses are not supported yet"
    )


def lower_addresses(function: Function) -> Function:
    """Rebuild `function` with explicit DMA accesses; raises `NotAffine` at the user's line."""
    return _Lowering(function).run()


@dataclass
class _Scope:
    """What is known in one block: constants already made there."""

    constants: dict[int, Value] = field(default_factory=dict)
    data: dict[Value, Value] = field(default_factory=dict)


class _Lowering:
    def __init__(self, function: Function) -> None:
        self.source = function
        types = tuple(value.type for value in function.arguments)
        names = tuple(value.name or "" for value in function.arguments)
        self.result = Function(function.name, types, names, function.location)
        self.builder = Builder(self.result.body)
        self.values: dict[Value, Value] = dict(zip(function.arguments, self.result.arguments, strict=True))
        self.forms: dict[Value, Form] = {}
        self.scopes: list[_Scope] = [_Scope()]
        for old, new in zip(function.arguments, self.result.arguments, strict=True):
            self._note_scalar(old, new)

    def run(self) -> Function:
        self._block(self.source.body)
        return self.result

    # Forms

    def _note_scalar(self, old: Value, new: Value) -> None:
        """A scalar integer or pointer is an atom of the forms built on it."""
        if not old.type.is_scalar or not is_index(old.type):
            return
        if old.type.is_pointer:
            self.forms[old] = Form(new, Polynomial(), ())
        else:
            self.forms[old] = Form(None, Polynomial.atom(new), ())

    def _form(self, op: Op) -> Form | None:
        """The form of the op's only result, or None where it has none."""
        type = op.results[0].type
        if not is_index(type):
            return None
        operands = [self.forms.get(value) for value in op.operands]
        if any(form is None for form in operands):
            return None
        rule = _FORM_RULES.get(op.__class__)
        return rule(op, *operands) if rule else None

    # The walk

    def _block(self, block: Block) -> None:
        for op in block.operations:
            with self.builder.located(op.location):
                self._operation(op)

    def _operation(self, op: Op) -> None:
        if isinstance(op, memory.Load):
            self._load(op)
        elif isinstance(op, memory.Store):
            self._store(op)
        elif isinstance(op, control.For):
            self._loop(op)
        elif isinstance(op, control.If):
            self._branch(op)
        else:
            self._plain(op)

    def _plain(self, op: Op) -> None:
        form = self._form(op) if len(op.results) == 1 else None
        if form is not None and (not op.results[0].type.is_scalar or op.results[0].type.is_pointer):
            self.forms[op.results[0]] = form
            return
        if op.results and op.results[0].type.is_scalar and isinstance(op, shape.Constant):
            self._constant_form(op)
        operands = [self._operands_of(group) for group in op.structured_operands()]
        new = self.builder.create_op(type(op), *operands, location=op.location, **op.attributes)
        for old_result, new_result in zip(op.results, new.results, strict=True):
            self._bind(old_result, new_result)

    def _constant_form(self, op: shape.Constant) -> None:
        if is_index(op.type):
            self.forms[op.result] = Form(None, Polynomial.constant(int(op.value)), ())

    def _bind(self, old: Value, new: Value) -> None:
        new.name = old.name
        self.values[old] = new
        if old not in self.forms:
            self._note_scalar(old, new)

    def _operands_of(self, group: object) -> object:
        if group is None:
            return None
        if isinstance(group, Value):
            return self._data(group)
        return [self._data(value) for value in group]  # type: ignore[attr-defined]

    def _data(self, value: Value) -> Value:
        """The value as data; an affine integer tile is made an `affine` op where it has not been."""
        if value in self.values:
            return self.values[value]
        for scope in self.scopes:
            if value in scope.data:
                return scope.data[value]
        form = self.forms[value]
        if value.type.is_pointer:
            raise NotAffine(self.builder.location, what="pointer", access="use of pointers as data")
        new = self.builder.create(
            shape.AffineTile,
            self._scalar(form.offset),
            [self._scalar(stride) for stride in form.strides],
            shape=value.type.shape,
            dtype=value.type.dtype,
        )
        self.scopes[-1].data[value] = new
        return new

    # Scalars

    def _index_constant(self, number: int) -> Value:
        for scope in self.scopes:
            if number in scope.constants:
                return scope.constants[number]
        value: Value = self.builder.create(shape.Constant, value=number, type=INDEX)
        self.scopes[-1].constants[number] = value
        return value

    def _index(self, value: Value) -> Value:
        """`value` as i64."""
        if value.type == INDEX:
            return value
        return self.builder.create(elementwise.Cast, value, dtype=i64)  # type: ignore[no-any-return]

    def _scalar(self, polynomial: Polynomial) -> Value:
        """The polynomial as an i64 scalar; terms in order of definition, so that invariant sums can be hoisted."""
        total: Value | None = None
        constant = 0
        for monomial, coefficient in sorted(polynomial, key=lambda term: max((v.serial for v in term[0]), default=-1)):
            if not monomial:
                constant = coefficient
                continue
            term = self._index(monomial[0])
            for value in monomial[1:]:
                term = self.builder.create(elementwise.Mul, term, self._index(value))
            if coefficient != 1:
                term = self.builder.create(elementwise.Mul, term, self._index_constant(coefficient))
            total = term if total is None else self.builder.create(elementwise.Add, total, term)
        if total is None:
            return self._index_constant(constant)
        if constant:
            total = self.builder.create(elementwise.Add, total, self._index_constant(constant))
        return total

    # Accesses

    def _load(self, op: memory.Load) -> None:
        pointer = self.forms.get(op.pointer)
        region = self._mask_region(op, op.mask)
        if pointer is None or pointer.base is None:
            raise NotAffine(op.location, what="pointer", access="load")
        fill = self._uniform_fill(op.other) if op.other is not None else None
        per_element = op.other is not None and fill is None
        value = self.builder.create(
            memory.DmaLoad,
            *self._address(pointer, op.pointer.type),
            fill,
            self._bounds(pointer, op.pointer.type, region),
            tile_shape=op.result.type.shape,
        )
        if per_element:
            value = self.builder.create(elementwise.Select, self._data(op.mask), value, self._data(op.other))
        self._bind(op.result, value)

    def _store(self, op: memory.Store) -> None:
        pointer = self.forms.get(op.pointer)
        region = self._mask_region(op, op.mask)
        if pointer is None or pointer.base is None:
            raise NotAffine(op.location, what="pointer", access="store")
        base, offset = self._address(pointer, op.pointer.type)
        bounds = self._bounds(pointer, op.pointer.type, region)
        self.builder.create(memory.DmaStore, base, offset, self._data(op.value), bounds)

    def _address(self, pointer: Form, type: TileType) -> tuple[Value, Value]:
        assert pointer.base is not None
        return pointer.base, self._scalar(pointer.offset.scaled(type.pointee.itemsize))

    def _bounds(self, pointer: Form, type: TileType, region: Region) -> list[Value]:
        """stride, lo, hi of every dimension (a scalar has one of size 1); scalar conditions empty the first one."""
        zero = self._index_constant(0)
        out: list[Value] = []
        dims = list(zip(pointer.strides, type.shape, region.dims, strict=True)) or [(Polynomial(), 1, Bounds())]
        for position, (stride, size, bounds) in enumerate(dims):
            lo, hi = self._limits(bounds, size)
            if position == 0:
                for condition in region.conditions:
                    hi = self.builder.create(elementwise.Select, condition, hi, zero)
            out += [self._scalar(stride.scaled(type.pointee.itemsize)), lo, hi]
        return out

    def _limits(self, bounds: Bounds, size: int) -> tuple[Value, Value]:
        lo: Value | None = None
        hi: Value | None = None
        for polynomial, divisor in bounds.lower:
            limit = self._scalar(polynomial + ONE) if divisor == 1 else self._floor_plus_one(polynomial, divisor)
            lo = limit if lo is None else self.builder.create(elementwise.Max, lo, limit)
        for polynomial, divisor in bounds.upper:
            # i < ceil(p / d)  <=>  i < floor((p - 1) / d) + 1
            limit = self._scalar(polynomial) if divisor == 1 else self._floor_plus_one(polynomial - ONE, divisor)
            hi = limit if hi is None else self.builder.create(elementwise.Min, hi, limit)
        return lo or self._index_constant(0), hi or self._index_constant(size)

    def _floor_plus_one(self, polynomial: Polynomial, divisor: int) -> Value:
        floor = self.builder.create(elementwise.FloorDiv, self._scalar(polynomial), self._index_constant(divisor))
        return self.builder.create(elementwise.Add, floor, self._index_constant(1))  # type: ignore[no-any-return]

    def _uniform_fill(self, other: Value) -> Value | None:
        """The scalar that every element of `other` is, or None where they differ."""
        value = other
        while True:
            op = value.defining_op
            if value.type.is_scalar:
                return self._data(value)
            if isinstance(op, shape.Constant):
                with self.builder.located(op.location):
                    return self.builder.create(  # type: ignore[no-any-return]
                        shape.Constant, value=op.value, type=TileType(op.type.dtype)
                    )
            if not isinstance(op, shape.Splat | shape.Broadcast | shape.ExpandDims | shape.Reshape):
                return None
            value = op.operand

    # Masks

    def _mask_region(self, op: Op, mask: Value | None) -> Region:
        rank = len(op.operands[0].type.shape)
        if mask is None:
            return Region.everything(rank)
        region = self._region(mask)
        if region is None:
            raise NotAffine(op.location, what="mask", access=op.name)
        return region

    def _region(self, mask: Value) -> Region | None:
        """Where the bool tile holds, as a box; None where it is none."""
        rank = len(mask.type.shape)
        op = mask.defining_op
        if mask.type.is_scalar:
            return Region([], [self._data(mask)])
        if isinstance(op, elementwise.And):
            left, right = self._region(op.lhs), self._region(op.rhs)
            return left.intersect(right) if left is not None and right is not None else None
        if isinstance(op, elementwise.Compare):
            return self._comparison(op)
        if isinstance(op, shape.Constant):
            if op.value:
                return Region.everything(rank)
            condition = self.builder.create(shape.Constant, value=False, type=TileType(bool_))
            return Region(Region.everything(rank).dims, [condition])
        if isinstance(op, shape.Splat):
            return Region(Region.everything(rank).dims, [self._data(op.operand)])
        if isinstance(op, shape.Broadcast | shape.ExpandDims):
            return self._reshaped_region(op)
        return None

    def _reshaped_region(self, op: Op) -> Region | None:
        inner = self._region(op.operands[0])
        if inner is None:
            return None
        if isinstance(op, shape.ExpandDims):
            dims = list(inner.dims)
            dims.insert(op.axis, Bounds())
            return Region(dims, inner.conditions)
        # A bound along a dimension of size 1 would have to become a condition when that dimension is repeated.
        old, new = op.operands[0].type.shape, op.results[0].type.shape
        for bounds, a, b in zip(inner.dims, old, new, strict=True):
            if a != b and (bounds.lower or bounds.upper):
                return None
        return inner

    def _comparison(self, op: elementwise.Compare) -> Region | None:
        left, right = self.forms.get(op.lhs), self.forms.get(op.rhs)
        if left is None or right is None or left.base is not None or right.base is not None:
            return None
        less = subtract_forms(right, left)  # positive where lhs < rhs
        more = subtract_forms(left, right)
        assert less is not None and more is not None
        if less.is_uniform:
            return self._scalar_comparison(op, left, right)
        at_most, at_least = _plus_one(less), _plus_one(more)
        differences = {"lt": [less], "le": [at_most], "gt": [more], "ge": [at_least], "eq": [at_most, at_least]}
        region: Region | None = Region.everything(len(left.strides))
        for difference in differences.get(op.predicate, ()):
            part = positive_region(difference)
            region = region.intersect(part) if region is not None and part is not None else None
        return region if op.predicate in differences else None

    def _scalar_comparison(self, op: elementwise.Compare, left: Form, right: Form) -> Region:
        lhs, rhs = self._scalar(left.offset), self._scalar(right.offset)
        condition = self.builder.create(elementwise.Compare, lhs, rhs, predicate=op.predicate)
        return Region(Region.everything(len(left.strides)).dims, [condition])

    # Control flow

    def _loop(self, op: control.For) -> None:
        """Rebuild a loop; carried values with a form are carried as their offset where that proves consistent."""
        carried_forms = {
            i: self.forms[value]
            for i, value in enumerate(op.initial)
            if value in self.forms and (value.type.is_pointer or not value.type.is_scalar)
        }
        while True:
            inconsistent = self._try_loop(op, carried_forms)
            if not inconsistent:
                return
            for position in inconsistent:
                argument = op.initial[position]
                if argument.type.is_pointer:
                    raise NotAffine(op.location, what="pointer carried by this loop", access="loop")
                del carried_forms[position]

    def _try_loop(self, op: control.For, carried_forms: dict[int, Form]) -> list[int]:
        """Emit the loop; returns the positions whose assumed form proved wrong, with nothing emitted then."""
        mark = len(self.builder.block.operations)
        bounds = [self._data(value) for value in (op.lower, op.upper, op.step)]
        initial, types = [], [op.lower.type]
        for i, value in enumerate(op.initial):
            new = self._scalar(carried_forms[i].offset) if i in carried_forms else self._data(value)
            initial.append(new)
            types.append(new.type)
        old_block = op.regions[0]
        block = Block(tuple(types), tuple(value.name or "" for value in old_block.arguments))
        self._bind(old_block.arguments[0], block.arguments[0])
        for i, (old, new) in enumerate(zip(old_block.arguments[1:], block.arguments[1:], strict=True)):
            if i in carried_forms:
                form = carried_forms[i]
                self.forms[old] = Form(form.base, Polynomial.atom(new), form.strides)
            else:
                self.forms.pop(old, None)
                self._bind(old, new)
        self.scopes.append(_Scope())
        with self.builder.at(block):
            self._block_body(old_block)
            inconsistent = self._yield(old_block.operations[-1], carried_forms)
        self.scopes.pop()
        if inconsistent:
            self._undo(block, mark)
            return inconsistent
        loop = self.builder.create_op(control.For, *bounds, initial, regions=[block], location=op.location)
        for i, (old, new) in enumerate(zip(op.results, loop.results, strict=True)):
            if i in carried_forms:
                form = carried_forms[i]
                self.forms[old] = Form(form.base, Polynomial.atom(new), form.strides)
            else:
                self._bind(old, new)
        return []

    def _undo(self, block: Block, mark: int) -> None:
        """Drop a loop body that was emitted under a wrong assumption, and what was emitted for it from `mark` on."""
        for dead in block.operations:
            dead.drop_operands()
        for extra in reversed(self.builder.block.operations[mark:]):
            extra.erase()
        scope = self.scopes[-1]
        scope.constants = {k: v for k, v in scope.constants.items() if v.owner.parent is not None}
        scope.data = {k: v for k, v in scope.data.items() if v.owner.parent is not None}

    def _block_body(self, block: Block) -> None:
        for op in block.operations[:-1]:
            with self.builder.located(op.location):
                self._operation(op)

    def _yield(self, op: Op, carried_forms: dict[int, Form]) -> list[int]:
        inconsistent, values = [], []
        for i, value in enumerate(op.operands):
            if i not in carried_forms:
                values.append(self._data(value))
                continue
            form, expected = self.forms.get(value), carried_forms[i]
            if form is None or form.base is not expected.base or form.strides != expected.strides:
                inconsistent.append(i)
                continue
            values.append(self._scalar(form.offset))
        if not inconsistent:
            self.builder.create(control.Yield, values, location=op.location)
        return inconsistent

    def _branch(self, op: control.If) -> None:
        blocks = []
        for region in op.regions:
            block = Block()
            self.scopes.append(_Scope())
            with self.builder.at(block):
                self._block_body(region)
                self._yield(region.operations[-1], {})
            self.scopes.pop()
            blocks.append(block)
        condition = self._data(op.condition)
        new = self.builder.create_op(control.If, condition, regions=blocks, types=op.types, location=op.location)
        for old_result, new_result in zip(op.results, new.results, strict=True):
            self._bind(old_result, new_result)


def _plus_one(form: Form) -> Form:
    return Form(form.base, form.offset + ONE, form.strides)


def _form_constant(op: Op) -> Form | None:
    return uniform(Polynomial.constant(int(op.attributes["value"])), len(op.results[0].type.shape))


def _form_iota(op: Op) -> Form:
    return Form(None, Polynomial.constant(op.attributes["start"]), (ONE,))


def _form_splat(op: Op, form: Form) -> Form:
    return uniform(form.offset, len(op.results[0].type.shape), form.base)


def _form_expand(op: Op, form: Form) -> Form:
    axis = op.attributes["axis"]
    return Form(form.base, form.offset, (*form.strides[:axis], Polynomial(), *form.strides[axis:]))


def _form_broadcast(op: Op, form: Form) -> Form:
    old, new = op.operands[0].type.shape, op.results[0].type.shape
    strides = (s if a == b else Polynomial() for s, a, b in zip(form.strides, old, new, strict=True))
    return Form(form.base, form.offset, tuple(strides))


def _form_transpose(op: Op, form: Form) -> Form:
    return Form(form.base, form.offset, tuple(form.strides[d] for d in op.attributes["permutation"]))


def _form_reshape(op: Op, form: Form) -> Form | None:
    """Only where dimensions of size 1 come or go, or every element is the same."""
    old, new = op.operands[0].type.shape, op.results[0].type.shape
    if form.is_uniform:
        return uniform(form.offset, len(new), form.base)
    kept = [s for s, size in zip(form.strides, old, strict=True) if size != 1]
    if [size for size in old if size != 1] != [size for size in new if size != 1]:
        return None
    source = iter(kept)
    return Form(form.base, form.offset, tuple(next(source) if size != 1 else Polynomial() for size in new))


def _form_negate(op: Op, form: Form) -> Form | None:
    return subtract_forms(uniform(Polynomial(), len(form.strides)), form)


def _form_shift(op: Op, form: Form, amount: Form) -> Form | None:
    count = amount.offset.as_constant
    if count is None or not amount.is_uniform or not 0 <= count < 32:
        return None
    return multiply_forms(form, uniform(Polynomial.constant(1 << count), len(form.strides)))


def _form_cast(op: Op, form: Form) -> Form | None:
    """Widening keeps the form; narrowing could wrap and does not."""
    old, new = op.operands[0].type, op.results[0].type
    return form if new.dtype.bits >= max(32, old.dtype.bits) else None


_FORM_RULES = {
    shape.Constant: _form_constant,
    shape.Iota: _form_iota,
    shape.Splat: _form_splat,
    shape.ExpandDims: _form_expand,
    shape.Broadcast: _form_broadcast,
    shape.Transpose: _form_transpose,
    shape.Reshape: _form_reshape,
    elementwise.Add: lambda op, a, b: add_forms(a, b),
    elementwise.Sub: lambda op, a, b: subtract_forms(a, b),
    elementwise.Mul: lambda op, a, b: multiply_forms(a, b),
    elementwise.Negate: _form_negate,
    elementwise.ShiftLeft: _form_shift,
    elementwise.Cast: _form_cast,
    memory.AddPointer: lambda op, a, b: add_forms(a, b),
}
