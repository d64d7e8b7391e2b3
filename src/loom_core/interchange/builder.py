"""Building operations by name: values, regions, insertion points, locations."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from loom_core.interchange.declaration import OpDeclaration
from loom_core.interchange.locations import LOCATION_UNKNOWN
from loom_core.interchange.model import (
    VALUE_BLOCK_ARGUMENT,
    VALUE_CONSUMED,
    Block,
    Module,
    Operation,
    Region,
    TiedResult,
    Value,
    symbol_from_operation,
)
from loom_core.interchange.text.tokenizer import VALUE_NAME
from loom_core.interchange.types import Type


class ValueRef:
    """A value of a module that is being built."""

    __slots__ = ("_module", "id")

    def __init__(self, module: Module, id: int) -> None:
        self._module = module
        self.id = id

    @property
    def type(self) -> Type:
        return self._module.values[self.id].type

    @property
    def name(self) -> str:
        return self._module.values[self.id].name

    def __int__(self) -> int:
        return self.id

    def __getitem__(self, indices: int | ValueRef | tuple[int | ValueRef, ...]) -> IndexedValue:
        return IndexedValue(self, indices if isinstance(indices, tuple) else (indices,))

    def as_type(self, type: Type) -> TiedResultSpec:
        """A result of `type` that takes over this operand's storage."""
        return TiedResultSpec(self, type)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ValueRef) and other.id == self.id and other._module is self._module

    def __hash__(self) -> int:
        return hash((id(self._module), self.id))

    def __repr__(self) -> str:
        return f"<ValueRef %{self.name or self.id}>"


@dataclass(frozen=True, slots=True)
class IndexedValue:
    """A value and an index list, `value[i, 0]`."""

    value: ValueRef
    indices: tuple[int | ValueRef, ...]


@dataclass(frozen=True, slots=True)
class TiedResultSpec:
    """A result type with the operand whose storage the result takes over."""

    operand: ValueRef
    type: Type


def tied(operand: ValueRef, type: Type) -> TiedResultSpec:
    """A result of `type` that takes over the storage of `operand`."""
    return TiedResultSpec(operand, type)


ResultSpec = Type | TiedResultSpec


class IRBuilder:
    """Appends operations to `insertion_block`; `location_id` is given to those that name none."""

    def __init__(self, module: Module | None = None, insertion_block: Block | None = None) -> None:
        self.module = module if module is not None else Module()
        self.insertion_block = insertion_block
        self.location_id = LOCATION_UNKNOWN
        self.declarations: dict[str, OpDeclaration] = {}

    def register_ops(self, ops: Iterable[OpDeclaration]) -> None:
        self.declarations.update((op.name, op) for op in ops)

    def register_types(self, types: Iterable[Any]) -> None:
        """Types are known by their structure; there is nothing to register."""

    def set_insertion_block(self, block: Block | None) -> None:
        self.insertion_block = block

    @contextmanager
    def location(self, location_id: int) -> Iterator[None]:
        """Give `location_id` to the operations built inside."""
        outer, self.location_id = self.location_id, location_id
        try:
            yield
        finally:
            self.location_id = outer

    def value(self, name: str, type: Type) -> ValueRef:
        """A new value that no operation defines yet, such as an argument. `name` without `%`, empty for none."""
        return ValueRef(self.module, self.module.add_value(Value(checked_name(name), type)))

    def region(self, args: Iterable[ValueRef | tuple[str, Type]] = ()) -> Region:
        """A region of one block with these arguments, values or (name, type)."""
        return Region([Block("", self.arguments(args))])

    def arguments(self, args: Iterable[ValueRef | tuple[str, Type]]) -> list[int]:
        """Ids of block arguments; (name, type) makes a value."""
        found = []
        for arg in args:
            ref = self.value(*arg) if isinstance(arg, tuple) else arg
            self.module.values[ref.id].flags |= VALUE_BLOCK_ARGUMENT
            found.append(ref.id)
        return found

    def build(
        self,
        op_name: str,
        operands: Sequence[ValueRef | int] | None = None,
        *,
        operand_segment_counts: Sequence[int] = (),
        successors: Sequence[Block] = (),
        func_args: Sequence[ValueRef | tuple[str, Type]] | None = None,
        results: Sequence[ResultSpec] = (),
        result_names: Sequence[str] = (),
        attributes: Mapping[str, Any] | None = None,
        regions: Sequence[Region] = (),
        location_id: int | None = None,
    ) -> ValueRef | list[ValueRef] | None:
        """Build an operation: None without results, a value for a fixed one, a list otherwise.

        An operation that defines a symbol goes to the module, any other to the insertion block. `func_args` become the
        arguments of the last region's entry. ValueError for an unknown operation and where there is no block.
        """
        decl = self.declarations.get(op_name)
        if decl is None:
            raise ValueError(f"there is no operation {op_name!r} among those registered")
        ids = [int(operand) for operand in operands or ()]
        op = Operation(
            name=op_name,
            operands=ids,
            operand_segment_counts=tuple(operand_segment_counts),
            successors=successors,
            attributes=attributes,
            regions=regions,
            location_id=self.location_id if location_id is None else location_id,
        )
        if func_args is not None and op.regions:
            op.regions[-1].blocks[0].arg_ids = self.arguments(func_args)
        self._add_results(op, decl, results, result_names)
        self._insert(op, decl)
        refs = [ValueRef(self.module, result) for result in op.results]
        if decl.variadic_results or len(decl.result_fields) > 1:
            return refs
        return refs[0] if refs else None

    def _add_results(
        self, op: Operation, decl: OpDeclaration, results: Sequence[ResultSpec], names: Sequence[str]
    ) -> None:
        values = self.module.values
        for index, spec in enumerate(results):
            name = checked_name(names[index]) if index < len(names) else ""
            if isinstance(spec, TiedResultSpec):
                candidates = op.operands if decl.symbol is None else _arguments(op)
                if spec.operand.id not in candidates:
                    raise ValueError(f"{op.name}: a result is tied to a value that is no operand")
                values[spec.operand.id].flags |= VALUE_CONSUMED
                changed = spec.type != values[spec.operand.id].type
                op.tied_results.append(TiedResult(index, candidates.index(spec.operand.id), changed))
                type = spec.type
            else:
                type = spec
            values.append(Value(name, type, 0, -1, -1, index, {}, -1, op.location_id))
            op.results.append(len(values) - 1)

    def _insert(self, op: Operation, decl: OpDeclaration) -> None:
        if decl.symbol is not None:
            self.module.add_symbol(symbol_from_operation(op, decl))
        elif self.insertion_block is None:
            raise ValueError(f"{op.name} needs an insertion block")
        else:
            self.insertion_block.ops.append(op)


def checked_name(name: str) -> str:
    """The name of a value, without `%`. ValueError for one that text cannot spell."""
    if VALUE_NAME.fullmatch(name) is None:
        raise ValueError(f"{name!r} is no name of a value; loom.importers.sanitize_identifier makes one")
    return name


def _arguments(op: Operation) -> list[int]:
    return [value for region in op.regions for value in region.blocks[0].arg_ids]
