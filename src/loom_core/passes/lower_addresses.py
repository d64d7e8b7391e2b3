"""Affine address analysis: pointer tiles become base, offset, strides and bounds.

    %i = iota {0, 128}; %o = add (splat %s), %i; %p = addptr (splat %x), %o; %m = cmp lt %o, (splat %n)
    %v = load %p, %m
becomes
    %v = dma_load %x, %s * 4, [stride 4, lo 0, hi %n - %s]

`forms` finds the affine tiles, `regions` the boxes that masks are. Rules, on a walk that rebuilds the function:
  accesses  load and store through an affine pointer with a box-shaped mask become dma_load and dma_store
  other     a load whose `other` differs between elements becomes a dma_load and a select
  indexed   others become dma_gather, dma_scatter and their kin: the affine part as strides, the rest as an index tile
  carried   an affine tile carried by a loop is carried as its scalar offset
  data      an affine integer tile that is used as data becomes one `affine` operation, a constant or a splat
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from loom_core.base.dtype import bool_, i32, i64
from loom_core.ir.block import Block, Function
from loom_core.ir.builder import Builder
from loom_core.ir.op import Op
from loom_core.ir.types import TileType
from loom_core.ir.value import Value
from loom_core.ops import atomic, control, elementwise, memory, reduction, shape
from loom_core.passes.affine import ONE, ZERO, Form, Index, Polynomial, add_forms
from loom_core.passes.forms import Forms, NotAffine, view_form
from loom_core.passes.integers import wrap
from loom_core.passes.log import log_rewrite
from loom_core.passes.regions import Bounds, Comparison, Condition, Region, region_of
from loom_core.passes.simplify import VIEWS

INDEX = TileType(i64)


def lower_addresses(function: Function) -> Function:
    """Rebuild `function` with explicit DMA accesses; raises `NotAffine` at the user's line."""
    return _Lowering(function).run()


@dataclass
class _Scope:
    """What has been made in one block and may be used again there: index constants, and tiles as data."""

    constants: dict[int, Value] = field(default_factory=dict)
    data: dict[Value, Value] = field(default_factory=dict)


class _Lowering:
    """Old values become new ones: `values` as data, `offsets` those that a loop carries as the offset of their form."""

    def __init__(self, function: Function) -> None:
        self.source = function
        self.forms = Forms(function)
        types = tuple(value.type for value in function.arguments)
        names = tuple(value.name or "" for value in function.arguments)
        self.result = Function(function.name, types, names, function.location)
        self.builder = Builder(self.result.body)
        self.values: dict[Value, Value] = dict(zip(function.arguments, self.result.arguments, strict=True))
        self.offsets: dict[Value, Value] = {}
        self.scopes: list[_Scope] = [_Scope()]

    def run(self) -> Function:
        self._operations(self.source.body)
        return self.result

    # ---- the walk ----

    def _operations(self, block: Block) -> None:
        for op in block.operations:
            with self.builder.located(op.location):
                self._operation(op)

    def _operation(self, op: Op) -> None:
        if isinstance(op, memory.Load):
            self._load(op)
        elif isinstance(op, memory.Store):
            self._store(op)
        elif isinstance(op, atomic.AtomicRmw | atomic.AtomicCas):
            self._atomic(op)
        elif isinstance(op, control.For):
            self._loop(op)
        elif isinstance(op, control.If):
            self._branch(op)
        elif isinstance(op, control.While):
            self._while(op)
        elif isinstance(op, reduction.RegionFold):
            self._region_fold(op)
        elif not self._is_form(op):
            self._same(op)

    def _is_form(self, op: Op) -> bool:
        """Whether the op's result is made from its form, where it is needed; a pointer is nothing else."""
        if len(op.results) != 1 or isinstance(op, memory.Window):
            return False
        type = op.results[0].type
        return type.is_pointer or (self.forms.get(op.results[0]) is not None and not type.is_scalar)

    def _same(self, op: Op) -> None:
        """The operation as it is, on the new operands."""
        operands: list[Value | Sequence[Value] | None] = []
        for given in op.structured_operands():
            if given is None or isinstance(given, Value):
                operands.append(self._data(given) if given is not None else None)
            else:
                operands.append([self._data(value) for value in given])
        new = self.builder.create_op(type(op), *operands, **op.attributes)
        for old_result, new_result in zip(op.results, new.results, strict=True):
            self._bind(old_result, new_result)

    def _bind(self, old: Value, new: Value) -> None:
        new.name = old.name
        self.values[old] = new

    # ---- tiles as data ----

    def _data(self, value: Value) -> Value:
        """The value as data; a tile with a form is made here where it has not been."""
        if value in self.values:
            return self.values[value]
        for scope in self.scopes:
            if value in scope.data:
                return scope.data[value]
        form = self.forms.get(value)
        if form is None or form.base is not None:
            raise NotAffine(self.builder.location, what="pointer", access="use of pointers as data")
        new = self.scopes[-1].data[value] = self._made(value, form)
        return new

    def _made(self, value: Value, form: Form) -> Value:
        op, dtype = value.defining_op, value.type.dtype
        if form.widened and op is not None:
            operands = [self._data(operand) for operand in op.operands]
            return self.builder.create(type(op), *operands, **op.attributes)  # type: ignore[no-any-return]
        constant = form.offset.as_constant
        if form.is_uniform and constant is not None:
            return self.builder.create(shape.Constant, value=wrap(constant, dtype), type=value.type)  # type: ignore[no-any-return]
        if form.is_uniform:
            scalar = self._scalar_of(form.offset, value.type)
            return self.builder.create(shape.Splat, scalar, shape=value.type.shape)  # type: ignore[no-any-return]
        strides = [self._scalar(stride) for stride in form.strides]
        wide = dtype if dtype.kind == "int" and dtype.bits >= 32 else (i64 if dtype.bits == 64 else i32)
        tile = self.builder.create(
            shape.AffineTile, self._scalar(form.offset), strides, shape=value.type.shape, dtype=wide
        )
        return tile if wide is dtype else self.builder.create(elementwise.Cast, tile, dtype=dtype)  # type: ignore[no-any-return]

    def _scalar_of(self, polynomial: Polynomial, type: TileType) -> Value:
        """The polynomial as a scalar of the element type of `type`."""
        atom = polynomial.as_atom
        if atom is not None and atom not in self.offsets and atom.type.element is type.element:
            return self._data(atom)
        return self.builder.create(elementwise.Cast, self._scalar(polynomial), dtype=type.dtype)  # type: ignore[no-any-return]

    # ---- scalars ----

    def _index_constant(self, number: int) -> Value:
        for scope in self.scopes:
            if number in scope.constants:
                return scope.constants[number]
        value: Value = self.builder.create(shape.Constant, value=number, type=INDEX)
        self.scopes[-1].constants[number] = value
        return value

    def _index(self, atom: Value) -> Value:
        """An atom of a form as i64."""
        value = self.offsets[atom] if atom in self.offsets else self._data(atom)
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

    def _condition(self, condition: Condition) -> Value:
        """A condition of a region as a scalar bool."""
        if isinstance(condition, Value):
            return self._data(condition)
        if isinstance(condition, Comparison):
            lhs, rhs = self._scalar(condition.lhs), self._scalar(condition.rhs)
            return self.builder.create(elementwise.Compare, lhs, rhs, predicate=condition.predicate)  # type: ignore[no-any-return]
        return self.builder.create(shape.Constant, value=condition, type=TileType(bool_))  # type: ignore[no-any-return]

    # ---- accesses ----

    def _load(self, op: memory.Load) -> None:
        region = self._box(op)
        fill = self._uniform_fill(op.other) if op.other is not None else None
        shape_ = op.result.type.shape
        if region is not None:
            address, bounds = self._strided(op.pointer, region)
            value = self.builder.create(memory.DmaLoad, *address, fill, bounds, tile_shape=shape_)
        else:
            base, offset, index, strides = self._indexed(op.pointer)
            mask = self._data(op.mask) if op.mask is not None else None
            value = self.builder.create(memory.DmaGather, base, offset, index, mask, fill, strides, tile_shape=shape_)
        if op.other is not None and fill is None:
            value = self.builder.create(elementwise.Select, self._data(op.mask), value, self._data(op.other))
        self._bind(op.result, value)

    def _store(self, op: memory.Store) -> None:
        region = self._box(op)
        if region is not None:
            address, bounds = self._strided(op.pointer, region)
            self.builder.create(memory.DmaStore, *address, self._data(op.value), bounds)
            return
        base, offset, index, strides = self._indexed(op.pointer)
        mask = self._data(op.mask) if op.mask is not None else None
        self.builder.create(memory.DmaScatter, base, offset, index, mask, self._data(op.value), strides)

    def _atomic(self, op: atomic.AtomicRmw | atomic.AtomicCas) -> None:
        base, offset, index, strides = self._indexed(op.pointer)
        value = self._data(op.value)
        if isinstance(op, atomic.AtomicCas):
            compare = self._data(op.compare)
            new = self.builder.create(memory.DmaCompareSwap, base, offset, index, None, value, compare, strides)
        else:
            mask = self._data(op.mask) if op.mask is not None else None
            new = self.builder.create(memory.DmaScatterReduce, base, offset, index, mask, value, strides, kind=op.kind)
        self._bind(op.result, new)

    def _box(self, op: memory.Load | memory.Store) -> Region | None:
        """The box that an access covers, or None where no strided descriptor can express it."""
        form, region = self.forms.get(op.pointer), None
        if form is not None and form.base is not None and not form.indices:
            everything = Region.everything(len(op.pointer.type.shape))
            region = everything if op.mask is None else region_of(op.mask, self.forms)
        log_rewrite("indexed" if region is None else "accesses", op)
        return region

    def _strided(self, pointer: Value, region: Region) -> tuple[tuple[Value, Value], list[Value]]:
        """Base and offset, and the bounds, of an affine access."""
        form, type = self.forms.get(pointer), pointer.type
        assert form is not None and form.base is not None
        address = self.values[form.base], self._scalar(form.offset.scaled(type.pointee.itemsize))
        return address, self._bounds(form, type, region)

    def _indexed(self, pointer: Value) -> tuple[Value, Value, Value | None, list[Value]]:
        """base, offset in bytes, index tile and strides in bytes of any access."""
        form, index = self._parts(pointer)
        assert form.base is not None
        size = pointer.type.pointee.itemsize
        strides = [self._scalar(stride.scaled(size)) for stride in form.strides]
        return self.values[form.base], self._scalar(form.offset.scaled(size)), index, strides

    def _parts(self, pointer: Value) -> tuple[Form, Value | None]:
        """A pointer tile as the sum of an affine form and an index tile (new value, in elements; None: nothing)."""
        form = self.forms.get(pointer)
        if form is not None:
            total: Value | None = None
            for index in form.indices:
                total = self._sum_of_indices(total, self._viewed(index))
            return replace(form, indices=()), total
        op = pointer.defining_op
        if isinstance(op, memory.AddPointer):
            inner, rest = self._parts(op.pointer)
            offset = self.forms.get(op.offset)
            moved = add_forms(inner, offset) if offset is not None and not offset.widened else None
            if moved is not None:
                return moved, rest
            return inner, self._sum_of_indices(rest, self._data(op.offset))
        if isinstance(op, VIEWS):
            inner, rest = self._parts(op.operand)
            moved = view_form(op, inner)
            if moved is not None and rest is not None:
                return moved, self.builder.create(type(op), rest, **op.attributes)
        raise NotAffine(self.builder.location, what="pointer", access="access")

    def _viewed(self, index: Index) -> Value:
        tile = self._data(index.tile)
        for view in index.views:
            tile = self.builder.create(type(view), tile, **view.attributes)
        return tile

    def _sum_of_indices(self, index: Value | None, more: Value) -> Value:
        """Index tiles of i32 stay so; sums, and other types, are i64."""
        if more.type.dtype.name not in ("i32", "i64"):
            more = self.builder.create(elementwise.Cast, more, dtype=i64)
        if index is None:
            return more
        wide = [
            value if value.type.dtype is i64 else self.builder.create(elementwise.Cast, value, dtype=i64)
            for value in (index, more)
        ]
        return self.builder.create(elementwise.Add, *wide)  # type: ignore[no-any-return]

    def _bounds(self, pointer: Form, type: TileType, region: Region) -> list[Value]:
        """stride, lo, hi of every dimension (a scalar has one of size 1); conditions empty the first one."""
        out: list[Value] = []
        dims = list(zip(pointer.strides, type.shape, region.dims, strict=True)) or [(ZERO, 1, Bounds())]
        for position, (stride, size, bounds) in enumerate(dims):
            lo, hi = self._limits(bounds, size)
            if position == 0:
                for condition in region.conditions:
                    zero = self._index_constant(0)
                    hi = self.builder.create(elementwise.Select, self._condition(condition), hi, zero)
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
        if other.type.is_scalar:
            return self._data(other)
        op = other.defining_op
        if isinstance(op, shape.Constant):
            return self.builder.create(shape.Constant, value=op.value, type=TileType(op.type.dtype))  # type: ignore[no-any-return]
        if isinstance(op, shape.Splat | shape.Broadcast | shape.ExpandDims | shape.Reshape | shape.Transpose):
            return self._uniform_fill(op.operand)
        return None

    # ---- control flow ----

    def _loop(self, op: control.For) -> None:
        """Rebuild a loop; carried tiles with a form are carried as its offset."""
        old = op.regions[0]
        bounds = [self._data(value) for value in (op.lower, op.upper, op.step)]
        carried = [self._carried(*pair) for pair in zip(old.arguments[1:], op.initial, strict=True)]
        types = (op.lower.type, *(value.type for value in carried))
        block = Block(types, tuple(value.name or "" for value in old.arguments))
        self._bind(old.arguments[0], block.arguments[0])
        self._bind_carried(old.arguments[1:], block.arguments[1:])
        with self._inside(block):
            self._operations_before_yield(old)
            given = [self._carried(*pair) for pair in zip(old.arguments[1:], old.operations[-1].operands, strict=True)]
            self.builder.create(control.Yield, given, location=old.operations[-1].location)
        new = self.builder.create_op(control.For, *bounds, carried, regions=[block], **op.attributes)
        self._bind_carried(op.results, new.results)

    def _carried(self, argument: Value, given: Value) -> Value:
        """What stands for `given`, an initial or yielded value of the loop argument."""
        if not self.forms.is_carried_offset(argument):
            return self._data(given)
        form = self.forms.get(given)
        assert form is not None
        return self._scalar(form.offset)

    def _bind_carried(self, old: Sequence[Value], new: Sequence[Value]) -> None:
        for old_value, new_value in zip(old, new, strict=True):
            if self.forms.is_carried_offset(old_value):
                new_value.name = old_value.name
                self.offsets[old_value] = new_value
            else:
                self._bind(old_value, new_value)

    def _branch(self, op: control.If) -> None:
        blocks = [Block(), Block()]
        for old, block in zip(op.regions, blocks, strict=True):
            with self._inside(block):
                self._operations_before_yield(old)
                given = [self._data(value) for value in old.operations[-1].operands]
                self.builder.create(control.Yield, given, location=old.operations[-1].location)
        new = self.builder.create_op(control.If, self._data(op.condition), regions=blocks, types=op.types)
        for old_result, new_result in zip(op.results, new.results, strict=True):
            self._bind(old_result, new_result)

    def _while(self, op: control.While) -> None:
        """Rebuild a loop with a condition; what it carries is data."""
        initial = [self._data(value) for value in op.initial]
        blocks = [self._copied(region) for region in op.regions]
        new = self.builder.create_op(control.While, initial, regions=blocks, types=op.types)
        for old_result, new_result in zip(op.results, new.results, strict=True):
            self._bind(old_result, new_result)

    def _region_fold(self, op: reduction.RegionFold) -> None:
        inputs = [self._data(value) for value in op.inputs]
        new = self.builder.create_op(type(op), inputs, regions=[self._copied(op.regions[0])], **op.attributes)
        for old_result, new_result in zip(op.results, new.results, strict=True):
            self._bind(old_result, new_result)

    def _copied(self, old: Block) -> Block:
        """A nested block whose arguments are data."""
        names = tuple(value.name or "" for value in old.arguments)
        block = Block(tuple(value.type for value in old.arguments), names)
        for old_argument, new_argument in zip(old.arguments, block.arguments, strict=True):
            self._bind(old_argument, new_argument)
        with self._inside(block):
            self._operations_before_yield(old)
            given = [self._data(value) for value in old.operations[-1].operands]
            self.builder.create(control.Yield, given, location=old.operations[-1].location)
        return block

    def _operations_before_yield(self, block: Block) -> None:
        for op in block.operations[:-1]:
            with self.builder.located(op.location):
                self._operation(op)

    @contextmanager
    def _inside(self, block: Block) -> Iterator[None]:
        """Build in a nested block; what is made there is not used after it."""
        self.scopes.append(_Scope())
        with self.builder.at(block):
            yield
        self.scopes.pop()
