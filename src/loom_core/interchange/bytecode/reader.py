"""Reading a module from bytecode. Nothing that the bytes say is trusted: whatever is malformed is a BytecodeError."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from loom_core.interchange import bytecode as b
from loom_core.interchange.attributes import SymbolName
from loom_core.interchange.bytecode.encoding import BytecodeError, ByteReader
from loom_core.interchange.bytecode.read_tables import ReaderTables, read_texts, read_trivia
from loom_core.interchange.bytecode.writer import FUNCTION_KINDS
from loom_core.interchange.declaration import OpDeclaration
from loom_core.interchange.dialects import amdgpu_ops, default_ops
from loom_core.interchange.model import (
    MAX_REGION_DEPTH,
    SYMBOL_DECLARATION,
    SYMBOL_IMPORT,
    SYMBOL_PUBLIC,
    SYMBOL_RETAIN,
    VALUE_BLOCK_ARGUMENT,
    Block,
    Module,
    Operation,
    Region,
    Symbol,
    SymbolKind,
    TiedResult,
    Value,
    symbol_from_operation,
)
from loom_core.interchange.text.tokenizer import LABEL_NAME, VALUE_NAME
from loom_core.interchange.types import DynamicDim, DynamicEncoding, PoolType, ShapedType, Type

_REQUIRED: Final = (b.STRINGS, b.SOURCES, b.TYPES, b.ENCODINGS, b.OPS, b.SYMBOLS, b.IR, b.SOURCE_TRIVIA)
_FLAGS: Final = SYMBOL_PUBLIC | SYMBOL_IMPORT | SYMBOL_RETAIN | SYMBOL_DECLARATION | 32
_ALL_FLAGS: Final = _FLAGS | b.SYMBOL_EXPLICIT_IMPORT | b.SYMBOL_HAS_PREDICATES


@dataclass
class _Counts:
    """What was decoded, to compare with what the bytes announce."""

    values: int = 0
    regions: int = 0
    blocks: int = 0
    ops: int = 0

    def as_tuple(self) -> tuple[int, int, int, int]:
        return self.values, self.regions, self.blocks, self.ops


class BytecodeReader:
    """Reads one file; `read` may be called once."""

    def __init__(
        self,
        data: bytes,
        *,
        op_decls: Iterable[OpDeclaration] | None = None,
        parameterized_attrs: Iterable[Any] | None = None,
        type_defs: Iterable[Any] | None = None,
    ) -> None:
        ops = default_ops() + amdgpu_ops() if op_decls is None else op_decls
        self.data = bytes(data)
        self.declarations = {op.name: op for op in ops}
        self.module = Module()
        self.tables = ReaderTables(self.module)
        self.counts = _Counts()
        self.mode = 0
        self.base = 0
        self.value_limit = 0
        self.depth = 0
        self._bound: dict[tuple[Type, tuple[int, ...]], Type] = {}

    def read(self) -> Module:
        """The module; BytecodeError if the bytes are none."""
        try:
            return self._file()
        except (ValueError, OverflowError, KeyError, IndexError, TypeError) as error:
            raise BytecodeError(f"malformed: {error}", "BYTECODE/006") from error

    # ---- the file ----

    def _file(self) -> Module:
        r = ByteReader(self.data)
        if self.data[:4] != b.MAGIC:
            raise BytecodeError(f"invalid magic {self.data[:4]!r}", "BYTECODE/001")
        if self.data[:8] == b"LOOMOBJ\0":
            raise BytecodeError("invalid magic: this is an object, not bytecode", "BYTECODE/001")
        r.need(4)
        version = r.byte()
        if version != b.VERSION:
            raise BytecodeError(f"unsupported format version {version}, {b.VERSION} is read", "BYTECODE/002")
        self.mode = r.byte()
        if self.mode not in (b.SOURCE_LOCATIONS, b.NO_LOCATIONS):
            raise BytecodeError(f"unsupported location mode {self.mode}", "BYTECODE/011")
        modules, pool, reserved = r.fixed("HII")
        if modules == 0 or reserved:
            raise BytecodeError("the header holds no module, or a reserved field is not zero", "BYTECODE/006")
        end = self.data.find(b"\0", r.at)
        if end < 0:
            raise BytecodeError("unexpected end of data: the producer does not end", "BYTECODE/003")
        r.at = end + 1
        r.padding()
        entries = [r.fixed("IHHQQ") for _ in range(modules)]
        names = r.need(pool)
        name_offset, name_length, flags, offset, length = entries[0]
        if name_offset + name_length > pool or flags & ~b.DECLARATIONS_ONLY:
            raise BytecodeError("the directory of modules is malformed", "BYTECODE/006")
        self.module.name = self.data[names + name_offset : names + name_offset + name_length].decode()
        if offset < r.at or offset + length > len(self.data):
            raise BytecodeError("the module is outside the file", "BYTECODE/007")
        self._module(ByteReader(self.data, offset, offset + length), offset)
        return self.module

    def _module(self, r: ByteReader, start: int) -> None:
        section_count = r.count("sections")
        announced = tuple(r.varint() for _ in range(4))
        sections: dict[int, ByteReader] = {}
        last = 0
        for number in range(section_count):
            kind, flags, reserved, offset, length, unpacked = r.fixed("HHIQQQ")
            if flags or reserved or unpacked:
                raise BytecodeError(f"section {number} has unsupported flags", "BYTECODE/006")
            if kind in sections:
                raise BytecodeError(f"duplicate section {_section(kind)}", "BYTECODE/006")
            if offset < last or offset + length > r.end - start:
                raise BytecodeError(f"section {_section(kind)} overlaps, is unsorted or too long", "BYTECODE/007")
            last = offset + length
            sections[kind] = ByteReader(self.data, start + offset, start + offset + length)
        if r.at - start > min((section.at - start for section in sections.values()), default=r.at - start):
            raise BytecodeError("a section overlaps the directory", "BYTECODE/007")
        if last != r.end - start:
            raise BytecodeError("the module is longer than its sections", "BYTECODE/007")
        required = [*_REQUIRED, b.SYMBOL_REFERENCES, b.PROVIDER_IMPORTS]
        required += [b.LOCATIONS] if self.mode == b.SOURCE_LOCATIONS else []
        for kind in required:
            if kind not in sections:
                raise BytecodeError(f"section {_section(kind)} is missing", "BYTECODE/006")
        if self.mode == b.NO_LOCATIONS and b.LOCATIONS in sections:
            raise BytecodeError("locations in a file without locations", "BYTECODE/013")
        self._sections(sections)
        if announced != self.counts.as_tuple():
            message = f"count summary mismatch: {announced} announced, {self.counts.as_tuple()} found"
            raise BytecodeError(message, "BYTECODE/006")

    def _sections(self, sections: dict[int, ByteReader]) -> None:
        tables = self.tables
        tables.read_strings(sections[b.STRINGS])
        self.module.sources = read_texts(sections[b.SOURCES], "sources")
        if len(set(self.module.sources)) != len(self.module.sources):
            raise BytecodeError("a source occurs twice", "BYTECODE/006")
        encodings = sections[b.ENCODINGS]
        tables.count_encodings(ByteReader(self.data, encodings.at, encodings.end))
        tables.read_types(sections[b.TYPES])
        tables.read_encodings(encodings)
        tables.read_ops(sections[b.OPS])
        if self.mode == b.SOURCE_LOCATIONS:
            tables.read_locations(sections[b.LOCATIONS])
        header, blank = read_trivia(sections[b.SOURCE_TRIVIA])
        if blank:
            raise BytecodeError("the header of a file has no blank line", "BYTECODE/006")
        sections[b.SOURCE_TRIVIA].finish("SOURCE_TRIVIA")
        self.module.file_header = header
        if sections[b.PROVIDER_IMPORTS].varint() or sections[b.PROVIDER_IMPORTS].varint():
            raise BytecodeError("imports of providers are not supported", "BYTECODE/006")
        sections[b.PROVIDER_IMPORTS].finish("PROVIDER_IMPORTS")
        self._symbols(sections[b.SYMBOLS], sections[b.IR])
        self._references(sections[b.SYMBOL_REFERENCES])

    def _references(self, r: ByteReader) -> None:
        symbols, names, demands = (r.varint() for _ in range(3))
        if symbols != len(self.module.symbols):
            raise BytecodeError(
                f"references of {symbols} symbols, there are {len(self.module.symbols)}", "BYTECODE/006"
            )
        found = [0, 0]
        for _ in range(symbols + 1):
            for part, (size, what) in enumerate(((symbols, "symbol"), (len(self.tables.strings), "string"))):
                count = r.count("references")
                found[part] += count
                for _ in range(count):
                    r.index(size, what)
        if found != [names, demands]:
            raise BytecodeError("count summary mismatch of references", "BYTECODE/006")
        r.finish("SYMBOL_REFERENCES")

    # ---- symbols ----

    def _symbols(self, r: ByteReader, ir: ByteReader) -> None:
        start = r.at
        counts = [r.count("symbols", b.LIMITS["symbols"]) for _ in range(3)]
        offsets, imports, exports = ([r.fixed("Q")[0] for _ in range(count)] for count in counts)
        ir_start = ir.at
        found: list[int] = []
        for position, offset in enumerate(offsets):
            if start + offset != r.at:
                raise BytecodeError(f"symbol {position} is not at its offset", "BYTECODE/007")
            self._symbol(r, ir, ir_start)
            found.append(offset)
        r.finish("SYMBOLS")
        ir.finish("IR")
        for flag, listed in ((SYMBOL_IMPORT, imports), (SYMBOL_PUBLIC, exports)):
            expected = [found[i] for i, symbol in enumerate(self.module.symbols) if symbol.flags & flag]
            if listed != expected:
                raise BytecodeError("imports or exports differ from the flags of symbols", "BYTECODE/006")

    def _symbol(self, r: ByteReader, ir: ByteReader, ir_start: int) -> None:
        name = self.tables.name(r)
        kind = SymbolKind(r.choice(7, "symbol kind"))
        private = r.choice(2, "visibility")
        (flags,) = r.fixed("H")
        if flags & ~_ALL_FLAGS or bool(flags & SYMBOL_PUBLIC) == bool(private):
            raise BytecodeError(f"symbol @{name} has unsupported flags {flags:#x}", "BYTECODE/006")
        attributes: dict[str, Any] = {}
        if flags & SYMBOL_IMPORT:
            attributes["import_module"] = self.tables.string(r)
            if flags & b.SYMBOL_EXPLICIT_IMPORT:
                attributes["import_symbol"] = self.tables.string(r)
        decl = self._declaration(r)
        if decl.symbol is None or decl.symbol.kind is not kind:
            raise BytecodeError(f"{decl.name} defines no symbol of kind {kind.name}", "BYTECODE/006")
        attributes[decl.symbol.attribute] = SymbolName(name)
        if flags & SYMBOL_PUBLIC:
            attributes["visibility"] = "public"
        if flags & SYMBOL_RETAIN:
            attributes["retain"] = "retain"
        op = Operation(name=decl.name)
        op.comments, op.leading_blank_line = read_trivia(r)
        if kind in FUNCTION_KINDS:
            self._function(r, ir, ir_start, op, decl, attributes, bool(flags & b.SYMBOL_HAS_PREDICATES))
        else:
            attributes.update(self.tables.attributes(r, decl.attribute_fields, decl.name))
            if r.byte():
                raise BytecodeError(f"{decl.name} has no body", "BYTECODE/006")
        self._define(op, decl, attributes, flags)

    def _define(self, op: Operation, decl: OpDeclaration, attributes: dict[str, Any], flags: int) -> None:
        unknown = attributes.keys() - decl.attribute_fields.keys()
        if unknown:
            raise BytecodeError(f"{decl.name} has no {min(unknown)}", "BYTECODE/015")
        complete = Operation(
            0, (), (), op.results, op.tied_results, (), attributes, op.regions, 0, op.comments, op.leading_blank_line,
            decl.name,
        )  # fmt: skip
        symbol: Symbol = symbol_from_operation(complete, decl)
        if symbol.flags != flags & _FLAGS:
            raise BytecodeError(f"the flags of @{symbol.name} are not those of its attributes", "BYTECODE/006")
        self.module.add_symbol(symbol)

    def _declaration(self, r: ByteReader) -> OpDeclaration:
        reference = r.varint()
        if not 0 < reference <= len(self.tables.ops):
            raise BytecodeError(
                f"operation {reference} is out of range: there are {len(self.tables.ops)}", "BYTECODE/012"
            )
        name = self.tables.ops[reference - 1]
        decl = self.declarations.get(name)
        if decl is None:
            raise BytecodeError(f"unknown operation {name!r}", "BYTECODE/016")
        return decl

    def _function(
        self, r: ByteReader, ir: ByteReader, ir_start: int, op: Operation, decl: OpDeclaration,
        attributes: dict[str, Any], predicates: bool,
    ) -> None:  # fmt: skip
        tables = self.tables
        cc = r.byte()
        if cc:
            field = decl.attribute_fields.get("cc")
            if field is None or cc > len(field.keywords):
                raise BytecodeError(f"calling convention {cc} is unknown", "BYTECODE/011")
            attributes["cc"] = field.keywords[cc - 1]
        if r.choice(2, "purity"):
            attributes["purity"] = "pure"
        counts = [r.count("values") for _ in range(3)]
        self.base = tables.base = len(self.module.values)
        self.value_limit = tables.value_count = self._values_ahead(decl, ir, counts)
        workloads, arguments = ([self._value(r, VALUE_BLOCK_ARGUMENT) for _ in range(n)] for n in counts[:2])
        tied_bytes = 0
        for _ in range(counts[2]):
            op.results.append(self._value(r, 0))
            tied_bytes += r.choice(2, "flag")
        op.tied_results = self._ties(r, counts[2], counts[0] + counts[1])
        if tied_bytes != len(op.tied_results):
            raise BytecodeError("ties of results do not agree", "BYTECODE/006")
        if predicates:
            attributes["predicates"] = tables.predicates(r)
        if r.choice(2, "flag"):
            attributes["implements"] = SymbolName(tables.name(r))
            if r.choice(2, "flag"):
                attributes["priority"] = r.signed()
        attributes.update(tables.attributes(r, decl.attribute_fields, decl.name))
        entries = {"config": workloads, "body": arguments}
        if workloads and "config" not in decl.region_fields:
            raise BytecodeError(f"{decl.name} has no configuration", "BYTECODE/006")
        has_body = r.choice(2, "flag")
        declaration = decl.symbol is not None and decl.symbol.declaration
        if bool(has_body) == declaration:
            raise BytecodeError(f"{decl.name} has {'no ' if declaration else 'a '}body", "BYTECODE/006")
        if has_body:
            self._body(r, ir, ir_start, op, decl, entries)
        else:
            op.regions = [Region([Block("", entries[name])]) for name in decl.region_fields]
        self.counts.values += len(self.module.values) - self.base
        if len(self.module.values) - self.base != self.value_limit:
            raise BytecodeError("count summary mismatch of values", "BYTECODE/006")

    def _values_ahead(self, decl: OpDeclaration, ir: ByteReader, counts: list[int]) -> int:
        """The number of values of a function: as its body announces, or those of the signature alone."""
        if decl.symbol is None or decl.symbol.declaration:
            return sum(counts)
        return ByteReader(self.data, ir.at, ir.end).varint()

    def _ties(self, r: ByteReader, results: int, operands: int) -> list[TiedResult]:
        found = []
        for _ in range(r.count("ties")):
            result, operand = r.index(results, "result"), r.index(operands, "operand")
            found.append(TiedResult(result, operand, bool(r.choice(2, "flag"))))
        if len({tie.result_index for tie in found}) != len(found):
            raise BytecodeError("a result is tied twice", "BYTECODE/006")
        return found

    # ---- values ----

    def _value(self, r: ByteReader, flags: int) -> int:
        tables = self.tables
        name = tables.name(r, VALUE_NAME)
        number = r.varint()
        if number >= len(tables.types):
            raise BytecodeError(f"type {number} is out of range: there are {len(tables.types)}", "BYTECODE/012")
        type = tables.types[number]
        dims = r.varint()
        if dims:
            if dims > r.remaining():
                raise BytecodeError("dimensions do not fit", "BYTECODE/003")
            bound = tuple(self._bound_value(r.signed()) for _ in range(dims))
        else:
            bound = ()
        encoding = r.varint()
        if dims or encoding or _is_dynamic(type):
            type = self._bind(type, bound, encoding)
        values = self.module.values
        values.append(Value(name, type, flags))
        return len(values) - 1

    def _bound_value(self, number: int) -> int:
        if number < -1 or number >= self.value_limit:
            raise BytecodeError(f"value {number} is out of range: there are {self.value_limit}", "BYTECODE/007")
        return self.base + number if number >= 0 else -1

    def _bind(self, type: Type, bound: tuple[int, ...], encoding: int) -> Type:
        key = (type, (*bound, encoding, self.base))
        found = self._bound.get(key)
        if found is None:
            found = self._bound[key] = self._bound_type(type, bound, encoding)
        return found

    def _bound_type(self, type: Type, bound: tuple[int, ...], encoding: int) -> Type:
        attached = self._bound_value(encoding - 1) if encoding else -1
        left = iter(bound)
        if isinstance(type, ShapedType):
            dynamic = sum(isinstance(dim, DynamicDim) for dim in type.dims)
            wants_encoding = isinstance(type.encoding, DynamicEncoding)
            if dynamic == len(bound) and (wants_encoding or not encoding):
                dims = tuple(DynamicDim(next(left)) if isinstance(dim, DynamicDim) else dim for dim in type.dims)
                kept = DynamicEncoding(attached) if wants_encoding else type.encoding
                return ShapedType(type.type_kind, type.element_type, dims, kept)
        elif isinstance(type, PoolType) and len(bound) == isinstance(type.block_size, DynamicDim) and not encoding:
            return PoolType(DynamicDim(next(left))) if bound else type
        raise BytecodeError("a value binds what its type does not leave open", "BYTECODE/006")

    # ---- bodies ----

    def _body(
        self, r: ByteReader, ir: ByteReader, ir_start: int, op: Operation, decl: OpDeclaration,
        entries: dict[str, list[int]],
    ) -> None:  # fmt: skip
        offset, length = r.fixed("QI")
        if ir_start + offset != ir.at or length > ir.end - ir.at:
            raise BytecodeError(f"the body of {decl.name} is outside the IR section", "BYTECODE/007")
        body = ByteReader(self.data, ir.at, ir.at + length)
        ir.at += length
        before = self.counts.as_tuple()
        announced = [body.varint() for _ in range(4)]
        if announced[0] > len(self.data):
            raise BytecodeError("more values than the file has bytes", "BYTECODE/009")
        names = list(decl.region_fields)
        count = body.count("regions")
        regions: dict[int, Region] = {}
        for _ in range(count):
            index = body.index(len(names), "region")
            if index in regions:
                raise BytecodeError("a region occurs twice", "BYTECODE/016")
            regions[index] = self._region(body, entries[names[index]])
        if len(regions) != len(names):
            raise BytecodeError(f"{decl.name} has {len(names)} regions, not {len(regions)}", "BYTECODE/016")
        body.finish("the body of a symbol")
        op.regions = [regions[index] for index in range(len(names))]
        after = self.counts.as_tuple()
        if announced[1:] != [b - a for a, b in zip(before[1:], after[1:], strict=True)]:
            raise BytecodeError("count summary mismatch of a body", "BYTECODE/006")

    def _region(self, r: ByteReader, entry: list[int] | None) -> Region:
        self.depth += 1
        if self.depth > MAX_REGION_DEPTH:
            raise BytecodeError(f"regions nest more than {MAX_REGION_DEPTH} deep", "BYTECODE/009")
        region = Region([], r.varint())
        blocks = [Block() for _ in range(r.count("blocks"))]
        region.blocks = blocks
        self.counts.regions += 1
        self.counts.blocks += len(blocks)
        labels: set[str] = set()
        for index, block in enumerate(blocks):
            if r.choice(2, "flag"):
                block.label = self.tables.name(r, LABEL_NAME)
                if block.label in labels:
                    raise BytecodeError(f"the label {block.label!r} occurs twice", "BYTECODE/016")
                labels.add(block.label)
            block.comments, block.leading_blank_line = read_trivia(r)
            arguments = [self._value(r, VALUE_BLOCK_ARGUMENT) for _ in range(r.count("arguments"))]
            if entry is not None and index == 0:
                if arguments:
                    raise BytecodeError("the arguments of an entry are those of the signature", "BYTECODE/016")
                arguments = entry
            block.arg_ids = arguments
            count = r.count("operations")
            self.counts.ops += count
            block.ops = [self._operation(r, blocks) for _ in range(count)]
        self.depth -= 1
        return region

    def _operation(self, r: ByteReader, blocks: list[Block]) -> Operation:
        decl = self._declaration(r)
        if decl.symbol is not None:
            raise BytecodeError(f"{decl.name} stands inside a body", "BYTECODE/016")
        varint = r.varint
        instance = r.byte()
        location = varint()
        if location >= len(self.module.locations) and location:
            raise BytecodeError(f"location {location} is out of range", "BYTECODE/012")
        comments, blank = read_trivia(r)
        base, limit = self.base, self.value_limit
        operands = []
        for _ in range(r.count("operands")):
            number = varint()
            if number >= limit:
                raise BytecodeError(f"value {number} is out of range: there are {limit}", "BYTECODE/007")
            operands.append(base + number)
        segments = tuple(varint() for _ in decl.operand_names) if decl.segmented else ()
        if sum(segments) != len(operands) and decl.segmented:
            raise BytecodeError(f"segments of {decl.name} do not add up", "BYTECODE/016")
        successors = [blocks[r.index(len(blocks), "block", "BYTECODE/016")] for _ in range(r.count("successors"))]
        results = [self._value(r, 0) for _ in range(r.count("results"))]
        for result in results:
            self.module.values[result].location_id = location
        ties = self._ties(r, len(results), len(operands))
        attributes = self.tables.attributes(r, decl.attribute_fields, decl.name)
        if instance:
            attributes.update(_flag_words(decl, instance))
        regions = [self._region(r, None) for _ in range(r.count("regions"))]
        if decl.split_operands(operands, segments) is None:
            raise BytecodeError(f"{decl.name} does not take {len(operands)} operands", "BYTECODE/016")
        return Operation(
            0, operands, segments, results, ties, successors, attributes, regions, location, comments, blank, decl.name
        )


def _is_dynamic(type: Type) -> bool:
    return isinstance(type, PoolType) or (
        isinstance(type, ShapedType) and (isinstance(type.encoding, DynamicEncoding) or not type.is_all_static)
    )


def _flag_words(decl: OpDeclaration, bits: int) -> dict[str, str]:
    for name, field in decl.attribute_fields.items():
        if field.attribute_kind == "flags" and bits < 1 << len(field.keywords):
            return {name: "|".join(word for i, word in enumerate(field.keywords) if bits >> i & 1)}
    raise BytecodeError(f"{decl.name} has no flags {bits:#x}", "BYTECODE/011")


def _section(kind: int) -> str:
    return b.SECTION_NAMES[kind] if kind < len(b.SECTION_NAMES) else str(kind)


def read_module(
    data: bytes,
    *,
    op_decls: Iterable[OpDeclaration] | None = None,
    parameterized_attrs: Iterable[Any] | None = None,
    type_defs: Iterable[Any] | None = None,
    verify: bool = False,
) -> Module:
    """The module that bytecode holds. `parameterized_attrs` and `type_defs` are read by their structure.

    BytecodeError for bytes that are none; with `verify`, LoomDiagnosticError for a module that breaks a declared rule.
    """
    ops = tuple(default_ops() + amdgpu_ops() if op_decls is None else op_decls)
    reader = BytecodeReader(data, op_decls=ops, parameterized_attrs=parameterized_attrs, type_defs=type_defs)
    module = reader.read()
    if verify:
        from loom_core.interchange.verifier import verify_module

        verify_module(module, ops=ops).raise_if_errors()
    return module
