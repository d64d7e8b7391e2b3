"""Values, operations, blocks, regions, symbols and modules.

Operations refer to values by id, a position in `module.values`; everything else holds its parts directly.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import TYPE_CHECKING, Any, Final

from loom_core.interchange.attributes import CanonicalAttrDict, Encoding, canonicalize_attr_dict
from loom_core.interchange.locations import Location
from loom_core.interchange.types import Type

if TYPE_CHECKING:
    from loom_core.interchange.declaration import OpDeclaration

MAX_REGION_DEPTH: Final = 64
"""How deep regions may nest, in modules of any form."""
VALUE_BLOCK_ARGUMENT: Final = 1
VALUE_CONSUMED: Final = 2


@dataclass(slots=True)
class Value:
    """One SSA value; `name` is without `%`, empty for an unnamed one. `dim_bindings` and `encoding_binding` repeat what
    the type binds."""

    name: str
    type: Type
    flags: int = 0
    def_op_index: int = -1
    def_block_index: int = -1
    def_result_index: int = 0
    dim_bindings: dict[int, int] = field(default_factory=dict)
    encoding_binding: int = -1
    location_id: int = 0
    uses: list[Any] = field(default_factory=list)

    @property
    def is_block_argument(self) -> bool:
        return bool(self.flags & VALUE_BLOCK_ARGUMENT)


@dataclass(frozen=True, slots=True)
class TiedResult:
    """A result that takes over the storage of an operand."""

    result_index: int
    operand_index: int
    has_type_change: bool = False


class Operation:
    """One operation. `attributes` are canonicalised once and cannot be rebound; `location_id` 0 is unknown."""

    __slots__ = (
        "_attributes", "comments", "is_dead", "kind", "leading_blank_line", "location_id", "name",
        "operand_segment_counts", "operands", "regions", "results", "successors", "tied_results",
    )  # fmt: skip

    def __init__(
        self,
        kind: int = 0,
        operands: Iterable[int] = (),
        operand_segment_counts: tuple[int, ...] = (),
        results: Iterable[int] = (),
        tied_results: Iterable[TiedResult] = (),
        successors: Iterable[Block] = (),
        attributes: Mapping[str, Any] | Iterable[tuple[str, Any]] | None = None,
        regions: Iterable[Region] = (),
        location_id: int = 0,
        comments: tuple[str, ...] = (),
        leading_blank_line: bool = False,
        name: str = "",
        is_dead: bool = False,
    ) -> None:
        self.kind = kind
        self.operands = list(operands)
        self.operand_segment_counts = tuple(operand_segment_counts)
        self.results = list(results)
        self.tied_results = list(tied_results)
        self.successors = list(successors)
        self._attributes = canonicalize_attr_dict(attributes)
        self.regions = list(regions)
        self.location_id = location_id
        self.comments = tuple(comments)
        self.leading_blank_line = leading_blank_line
        self.name = name
        self.is_dead = is_dead

    @property
    def attributes(self) -> CanonicalAttrDict:
        """Attributes by name, ascending."""
        return self._attributes

    def __repr__(self) -> str:
        return f"<Operation {self.name}>"


@dataclass(eq=False, slots=True)
class Block:
    """A list of operations with arguments (value ids)."""

    label: str = ""
    arg_ids: list[int] = field(default_factory=list)
    ops: list[Operation] = field(default_factory=list)
    comments: tuple[str, ...] = ()
    leading_blank_line: bool = False


@dataclass(eq=False, slots=True)
class Region:
    """A list of blocks; the first is the entry."""

    blocks: list[Block] = field(default_factory=list)
    source_flags: int = 0


class SymbolKind(IntEnum):
    """What a symbol names; the numbers are those of the bytecode."""

    NONE = -1
    FUNC_DEF = 0
    FUNC_DECL = 1
    FUNC_TEMPLATE = 2
    FUNC_UKERNEL = 3
    GLOBAL = 4
    EXECUTABLE = 5
    RECORD = 6


SYMBOL_PUBLIC: Final = 1
SYMBOL_IMPORT: Final = 2
SYMBOL_RETAIN: Final = 8
SYMBOL_DECLARATION: Final = 16
SYMBOL_TEST_ONLY: Final = 32


@dataclass(eq=False, slots=True)
class Symbol:
    """A named operation of a module."""

    name: str
    kind: SymbolKind
    flags: int = 0
    op: Operation | None = None
    source_module: str = ""
    source_symbol: str = ""
    uses: list[Any] = field(default_factory=list)


def symbol_from_operation(op: Operation, op_decl: OpDeclaration) -> Symbol:
    """The symbol that an operation defines. ValueError if its declaration defines none."""
    definition = op_decl.symbol
    if definition is None:
        raise ValueError(f"{op_decl.name} defines no symbol")
    attributes = op.attributes
    flags = SYMBOL_DECLARATION if definition.declaration else 0
    flags |= SYMBOL_PUBLIC if attributes.get("visibility") == "public" else 0
    flags |= SYMBOL_RETAIN if attributes.get("retain") == "retain" else 0
    flags |= SYMBOL_IMPORT if attributes.get("import_module") else 0
    return Symbol(
        str(attributes.get(definition.attribute, "")),
        definition.kind,
        flags,
        op,
        attributes.get("import_module") or "",
        attributes.get("import_symbol") or "",
    )


class _Table:
    """Items by position, each once."""

    __slots__ = ("_positions", "items")

    def __init__(self, first: tuple[Any, ...] = ()) -> None:
        self.items: list[Any] = list(first)
        self._positions = {item: i for i, item in enumerate(self.items)}

    def intern(self, item: Any) -> int:
        """The position of `item`, which is added where it is new."""
        found = self._positions.get(item)
        if found is None:
            found = self._positions[item] = len(self.items)
            self.items.append(item)
        return found

    def get(self, index: int) -> Any:
        """The item at a position; IndexError if there is none."""
        if index < 0:
            raise IndexError(index)
        return self.items[index]

    def __len__(self) -> int:
        return len(self.items)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.items)

    def __getitem__(self, index: int) -> Any:
        return self.get(index)


class StringTable(_Table):
    """Interned strings."""


class TypeTable(_Table):
    """Interned types."""


class LocationTable(_Table):
    """Interned locations; entry 0 is None, the unknown one."""

    def __init__(self) -> None:
        super().__init__((None,))


class Module:
    """A unit of interchange: top-level operations in `body`, the values, symbols, locations and sources they use.

    `file_header` are the comment lines before the first operation that belong to the file, `encodings` its encodings.
    """

    def __init__(
        self,
        name: str = "",
        flags: int = 0,
        file_header: Iterable[str] = (),
        strings: StringTable | None = None,
        types: TypeTable | None = None,
        locations: LocationTable | None = None,
        values: Iterable[Value] = (),
        symbols: Iterable[Symbol] = (),
        encodings: Iterable[Encoding] = (),
        sources: Iterable[str] = (),
    ) -> None:
        self.name = name
        self.flags = flags
        self.file_header = tuple(file_header)
        self.strings = strings if strings is not None else StringTable()
        self.types = types if types is not None else TypeTable()
        self.locations = locations if locations is not None else LocationTable()
        self.values = list(values)
        self.symbols: list[Symbol] = []
        self.encodings = list(encodings)
        self.sources = list(sources)
        self.body = Block()
        for symbol in symbols:
            self.add_symbol(symbol)

    def add_value(self, value: Value) -> int:
        """Append a value and return its id."""
        self.values.append(value)
        return len(self.values) - 1

    def add_location(self, location: Location) -> int:
        """The id of a location; equal ones share it."""
        return self.locations.intern(location)

    def add_symbol(self, symbol: Symbol) -> int:
        """Append a symbol, and its operation to the body; return its position."""
        self.symbols.append(symbol)
        if symbol.op is not None:
            self.body.ops.append(symbol.op)
        return len(self.symbols) - 1

    def add_top_level_operation(self, op: Operation) -> None:
        """Append an operation that defines no symbol to the body."""
        self.body.ops.append(op)

    def add_encoding(self, encoding: Encoding) -> int:
        """The position of an encoding; equal ones share it."""
        if encoding not in self.encodings:
            self.encodings.append(encoding)
        return self.encodings.index(encoding)

    def find_symbol(self, name: str) -> Symbol | None:
        """The first symbol called `name`."""
        return next((symbol for symbol in self.symbols if symbol.name == name), None)

    def walk(self, enter: Callable[[Operation], bool] = lambda op: True) -> Iterator[Operation]:
        """Every operation, outer ones first; regions of those that `enter` refuses are left out."""
        stack = [iter(self.body.ops)]
        while stack:
            op = next(stack[-1], None)
            if op is None:
                stack.pop()
                continue
            yield op
            if op.regions and enter(op):
                stack.append(iter([inner for region in op.regions for block in region.blocks for inner in block.ops]))


@dataclass(slots=True)
class Context:
    """Sources and modules that belong together."""

    sources: list[str] = field(default_factory=list)
    modules: list[Module] = field(default_factory=list)
