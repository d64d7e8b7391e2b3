"""Writing a module as bytecode. The same module gives the same bytes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from loom_core.interchange import bytecode as b
from loom_core.interchange.bytecode.encoding import BytecodeError, ByteWriter
from loom_core.interchange.bytecode.numbering import Numbering
from loom_core.interchange.bytecode.tables import WriterTables
from loom_core.interchange.declaration import OpDeclaration
from loom_core.interchange.dialects import amdgpu_ops, default_ops
from loom_core.interchange.locations import FileLocation, FusedLocation, OpaqueLocation, TaggedLocation
from loom_core.interchange.model import (
    SYMBOL_DECLARATION,
    SYMBOL_IMPORT,
    SYMBOL_PUBLIC,
    SYMBOL_RETAIN,
    Module,
    Operation,
    Region,
    Symbol,
    SymbolKind,
)
from loom_core.interchange.types import DynamicEncoding, ShapedType, dynamic_values

PRODUCER: Final = b"loom-py"
FUNCTION_KINDS: Final = frozenset(list(SymbolKind)[1:5])
SIGNATURE_ATTRIBUTES: Final = frozenset(
    ("visibility", "retain", "import_module", "import_symbol", "cc", "purity", "predicates", "implements", "priority")
)
"""Attributes of functions that have fields of their own."""


class BytecodeWriter:
    """Writes one module; BytecodeError for one that bytecode cannot hold."""

    def __init__(
        self, module: Module, *, location_mode: int = 0, op_decls: Iterable[OpDeclaration] | None = None,
        producer: bytes = PRODUCER,
    ) -> None:  # fmt: skip
        if location_mode not in (b.SOURCE_LOCATIONS, b.NO_LOCATIONS):
            raise BytecodeError(f"unsupported location mode {location_mode}", "BYTECODE/011")
        ops = default_ops() + amdgpu_ops() if op_decls is None else op_decls
        self.module = module
        self.location_mode = location_mode
        self.declarations = {op.name: op for op in ops}
        self.producer = producer
        self.tables = WriterTables()
        self.numbering = Numbering(module, self.declarations)
        self.totals = {"values": 0, "regions": 0, "blocks": 0, "ops": 0}
        self.ir = ByteWriter()

    def write(self) -> bytes:
        """The bytes of a file that holds the module."""
        try:
            return self._file(self._module())
        except (ValueError, OverflowError, KeyError, IndexError, TypeError) as error:
            raise BytecodeError(f"the module is malformed: {error}", "BYTECODE/006") from error

    def _file(self, module: bytes) -> bytes:
        name = self.module.name.encode()
        out = ByteWriter(b.MAGIC)
        pool = name + b"\0"
        out.fixed("BBHII", b.VERSION, self.location_mode, 1, len(pool), 0)
        out += self.producer + b"\0"
        out.align()
        start = len(out) + 24 + len(pool)
        start += -start % 8
        declares = all(symbol.flags & SYMBOL_DECLARATION for symbol in self.module.symbols) and self.module.symbols
        out.fixed("IHHQQ", 0, len(name), b.DECLARATIONS_ONLY if declares else 0, start, len(module))
        out += pool
        out.align()
        return bytes(out + module)

    def _module(self) -> bytes:
        owned = {id(symbol.op) for symbol in self.module.symbols}
        for op in self.module.body.ops:
            if id(op) not in owned:
                raise BytecodeError(f"{op.name} stands at the top of the module and defines no symbol", "BYTECODE/016")
        symbols = self._symbols()
        sections: dict[int, bytes] = {
            b.IR: bytes(self.ir),
            b.SYMBOLS: symbols,
            b.PROVIDER_IMPORTS: b"\0\0",
            b.SYMBOL_REFERENCES: self._references(),
        }
        sections[b.SOURCES] = _texts(self.module.sources)
        sections[b.ENCODINGS] = self._encodings()
        sections[b.TYPES] = self._types()
        sections[b.OPS] = self._ops()
        if self.location_mode == b.SOURCE_LOCATIONS:
            sections[b.LOCATIONS] = self._locations()
        header = ByteWriter()
        _trivia(header, self.module.file_header, False)
        sections[b.SOURCE_TRIVIA] = bytes(header)
        sections[b.STRINGS] = _texts(list(self.tables.strings))
        return self._assemble(sections)

    def _assemble(self, sections: dict[int, bytes]) -> bytes:
        out = ByteWriter()
        order = [kind for kind in b.WRITE_ORDER if kind in sections]
        for count in (len(order), *self.totals.values()):
            out.varint(count)
        at = len(out) + 32 * len(order)
        for kind in order:
            out.fixed("HHIQQQ", kind, 0, 0, at, len(sections[kind]), 0)
            at += len(sections[kind])
        for kind in order:
            out += sections[kind]
        return bytes(out)

    # ---- symbols ----

    def _symbols(self) -> bytes:
        symbols = self.module.symbols
        entries = [self._symbol(symbol) for symbol in symbols]
        imports = [i for i, symbol in enumerate(symbols) if symbol.flags & SYMBOL_IMPORT]
        exports = [i for i, symbol in enumerate(symbols) if symbol.flags & SYMBOL_PUBLIC]
        out = ByteWriter()
        for count in (len(symbols), len(imports), len(exports)):
            out.varint(count)
        at = len(out) + 8 * (len(symbols) + len(imports) + len(exports))
        offsets = []
        for entry in entries:
            offsets.append(at)
            at += len(entry)
        for index in (*range(len(symbols)), *imports, *exports):
            out.fixed("Q", offsets[index])
        for entry in entries:
            out += entry
        return bytes(out)

    def _symbol(self, symbol: Symbol) -> bytes:
        op = symbol.op
        if op is None or op.name not in self.declarations:
            raise BytecodeError(f"@{symbol.name} has no operation that is declared", "BYTECODE/016")
        decl = self.declarations[op.name]
        predicates = op.attributes.get("predicates")
        flags = symbol.flags & (SYMBOL_PUBLIC | SYMBOL_IMPORT | SYMBOL_RETAIN | SYMBOL_DECLARATION | 32)
        flags |= b.SYMBOL_EXPLICIT_IMPORT if symbol.flags & SYMBOL_IMPORT and symbol.source_symbol else 0
        flags |= b.SYMBOL_HAS_PREDICATES if predicates else 0
        out = ByteWriter()
        out.varint(self.tables.string(symbol.name))
        out.append(symbol.kind)
        out.append(not symbol.flags & SYMBOL_PUBLIC)
        out.fixed("H", flags)
        if symbol.flags & SYMBOL_IMPORT:
            out.varint(self.tables.string(symbol.source_module))
            if symbol.source_symbol:
                out.varint(self.tables.string(symbol.source_symbol))
        out.varint(self.tables.op(op.name))
        _trivia(out, op.comments, op.leading_blank_line)
        if symbol.kind in FUNCTION_KINDS:
            self._function(out, op, decl)
        else:
            self._attributes(out, op, decl, {decl.symbol.attribute} if decl.symbol else set())
            out.append(0)
        return bytes(out)

    def _function(self, out: ByteWriter, op: Operation, decl: OpDeclaration) -> None:
        fields, attributes = decl.attribute_fields, op.attributes
        cc = attributes.get("cc")
        out.append(fields["cc"].keywords.index(cc) + 1 if cc is not None else 0)
        out.append(attributes.get("purity") == "pure")
        workloads, arguments = self.numbering.signature(op, decl)
        for values in (workloads, arguments, op.results):
            out.varint(len(values))
        tied = {tie.result_index: tie.operand_index for tie in op.tied_results}
        for value in (*workloads, *arguments):
            self._definition(out, value)
        for index, value in enumerate(op.results):
            self._definition(out, value)
            out.append(index in tied)
        out.varint(len(tied))
        for tie in op.tied_results:
            out.varint(tie.result_index)
            out.varint(tie.operand_index)
            out.append(tie.has_type_change)
        if attributes.get("predicates"):
            self.tables.predicates(out, attributes["predicates"], self.numbering.number)
        implements = attributes.get("implements")
        out.append(implements is not None)
        if implements is not None:
            out.varint(self.tables.string(str(implements)))
            out.append("priority" in attributes)
            if "priority" in attributes:
                out.signed(attributes["priority"])
        self._attributes(out, op, decl, {*SIGNATURE_ATTRIBUTES, decl.symbol.attribute if decl.symbol else ""})
        self._body(out, op, decl)

    def _definition(self, out: ByteWriter, value: int) -> None:
        """A value: its name, type, and the values that its type refers to."""
        found = self.module.values[value]
        type = found.type
        out.varint(self.tables.string(self.numbering.name(value)))
        out.varint(self.tables.type(type))
        bound = dynamic_values(type)
        encoded = isinstance(type, ShapedType) and isinstance(type.encoding, DynamicEncoding)
        dims = bound[:-1] if encoded else bound
        out.varint(len(dims))
        for dim in dims:
            out.signed(self.numbering.number(dim) if dim >= 0 else -1)
        out.varint(self.numbering.number(bound[-1]) + 1 if encoded and bound[-1] >= 0 else 0)

    def _attributes(self, out: ByteWriter, op: Operation, decl: OpDeclaration, without: set[str]) -> None:
        entries = {
            key: (decl.attribute_fields.get(key), value) for key, value in op.attributes.items() if key not in without
        }
        self.tables.attributes(out, entries, self.numbering.number)

    # ---- bodies ----

    def _body(self, out: ByteWriter, op: Operation, decl: OpDeclaration) -> None:
        if decl.symbol is None or decl.symbol.declaration:
            self.totals["values"] += self.numbering.count
            out.append(0)
            return
        out.append(1)
        start = len(self.ir)
        body = ByteWriter()
        self.counts = {"regions": 0, "blocks": 0, "ops": 0}
        # The body comes first, then what the kernel is configured with.
        order = sorted(range(len(op.regions)), key=lambda index: list(decl.region_fields)[index] != "body")
        body.varint(len(order))
        for index in order:
            body.varint(index)
            self._region(body, op.regions[index], True)
        for count in (self.numbering.count, *self.counts.values()):
            self.ir.varint(count)
        self.ir += body
        self.totals["values"] += self.numbering.count
        for key, count in self.counts.items():
            self.totals[key] += count
        out.fixed("QI", start, len(self.ir) - start)

    def _region(self, out: ByteWriter, region: Region, arguments_in_signature: bool) -> None:
        self.counts["regions"] += 1
        self.counts["blocks"] += len(region.blocks)
        out.varint(region.source_flags)
        out.varint(len(region.blocks))
        positions = {id(block): index for index, block in enumerate(region.blocks)}
        for index, block in enumerate(region.blocks):
            out.append(bool(block.label))
            if block.label:
                out.varint(self.tables.string(block.label))
            _trivia(out, block.comments, block.leading_blank_line)
            arguments = [] if arguments_in_signature and index == 0 else block.arg_ids
            out.varint(len(arguments))
            for value in arguments:
                self._definition(out, value)
            ops = [op for op in block.ops if not op.is_dead]
            out.varint(len(ops))
            self.counts["ops"] += len(ops)
            for op in ops:
                self._operation(out, op, positions)

    def _operation(self, out: ByteWriter, op: Operation, positions: dict[int, int]) -> None:
        decl = self.declarations.get(op.name)
        if decl is None:
            raise BytecodeError(f"the operation {op.name!r} is not declared", "BYTECODE/016")
        varint, number = out.varint, self.numbering.number
        varint(self.tables.op(op.name))
        flags, attributes = _instance_flags(op, decl)
        out.append(flags)
        varint(op.location_id if self.location_mode == b.SOURCE_LOCATIONS else 0)
        _trivia(out, op.comments, op.leading_blank_line)
        varint(len(op.operands))
        for value in op.operands:
            varint(number(value))
        if decl.segmented:
            for count in op.operand_segment_counts:
                varint(count)
        varint(len(op.successors))
        for block in op.successors:
            if id(block) not in positions:
                raise BytecodeError(f"{op.name} goes to a block of another region", "BYTECODE/016")
            varint(positions[id(block)])
        varint(len(op.results))
        for value in op.results:
            self._definition(out, value)
        varint(len(op.tied_results))
        for tie in op.tied_results:
            varint(tie.result_index)
            varint(tie.operand_index)
            out.append(tie.has_type_change)
        self.tables.attributes(out, attributes, number)
        varint(len(op.regions))
        for region in op.regions:
            self._region(out, region, False)

    # ---- tables ----

    def _references(self) -> bytes:
        """Per symbol, the symbols that it names, by position, and the contracts that it asks for."""
        positions = {symbol.name: index for index, symbol in enumerate(self.module.symbols)}
        rows = [self._referred(symbol, positions) for symbol in self.module.symbols]
        out = ByteWriter()
        totals = (len(rows), sum(len(names) for names, _ in rows), sum(len(demands) for _, demands in rows))
        for count in (*totals, 0, 0):
            out.varint(count)
        for names, demands in rows:
            for part in (names, demands):
                out.varint(len(part))
                for item in part:
                    out.varint(item)
        return bytes(out)

    def _referred(self, symbol: Symbol, positions: dict[str, int]) -> tuple[list[int], list[int]]:
        names: set[int] = set()
        demands: set[str] = set()
        stack = [symbol.op] if symbol.op is not None else []
        while stack:
            op = stack.pop()
            for use in self.declarations[op.name].symbol_uses:
                name = op.attributes.get(use.attribute)
                if name is not None and str(name) in positions:
                    names.add(positions[str(name)])
            if op.name == "func.apply":
                demands.add(str(op.attributes.get("contract", "")))
            stack += [inner for region in op.regions for block in region.blocks for inner in block.ops]
        return sorted(names), [self.tables.string(name) for name in sorted(demands)]

    def _encodings(self) -> bytes:
        families = list(dict.fromkeys(encoding.family for encoding in self.module.encodings))
        out = ByteWriter()
        out.varint(len(families))
        for family in families:
            out.varint(self.tables.string(family))
        out.varint(len(self.module.encodings))
        for encoding in self.module.encodings:
            out.varint(families.index(encoding.family))
            out.varint(self.tables.string(encoding.alias) + 1 if encoding.alias else 0)
            entries: dict[str, Any] = {key: (None, value) for key, value in encoding.params.items()}
            self.tables.attributes(out, entries, self.numbering.number)
        return bytes(out)

    def _types(self) -> bytes:
        out = ByteWriter()
        out.varint(len(self.tables.type_records))
        for record in self.tables.type_records:
            out += record
        return bytes(out)

    def _ops(self) -> bytes:
        out = ByteWriter()
        out.varint(len(self.tables.ops))
        for name in self.tables.ops:
            out.varint(self.tables.string(name))
        return bytes(out)

    def _locations(self) -> bytes:
        out = ByteWriter()
        out.varint(len(self.module.locations))
        for location in self.module.locations:
            match location:
                case FileLocation():
                    out += bytes((1, location.flags))
                    span = (location.start_line, location.start_col, location.end_line, location.end_col)
                    for part in (location.source_id, *span):
                        out.varint(part)
                case FusedLocation():
                    out += bytes((2, location.flags))
                    out.varint(len(location.children))
                    for child in location.children:
                        out.varint(child)
                case OpaqueLocation():
                    out += bytes((3, location.flags))
                    out.varint(location.source_id)
                    out.blob(location.data)
                case TaggedLocation():
                    out += bytes((4, location.flags))
                    out.varint(location.tag)
                    out.varint(location.child)
                    out.blob(location.data)
                case _:
                    out += b"\0\0"
        return bytes(out)


def _texts(texts: list[str]) -> bytes:
    out = ByteWriter()
    out.varint(len(texts))
    for text in texts:
        out.blob(text.encode())
    return bytes(out)


def _trivia(out: ByteWriter, comments: tuple[str, ...], blank: bool) -> None:
    out.varint(len(comments) << 1 | blank)
    for line in comments:
        out.blob(f" {line}".encode() if line else b"")


def _instance_flags(op: Operation, decl: OpDeclaration) -> tuple[int, dict[str, Any]]:
    """The byte of flags, and the other attributes with their declarations."""
    flags = 0
    others: dict[str, Any] = {}
    for key, value in op.attributes.items():
        field = decl.attribute_fields.get(key)
        if field is not None and field.attribute_kind == "flags":
            for word in value.split("|"):
                flags |= 1 << field.keywords.index(word)
        else:
            others[key] = (field, value)
    return flags, others


def write_module(module: Module, *, location_mode: int = 0, op_decls: Iterable[OpDeclaration] | None = None) -> bytes:
    """The bytecode of a module. location_mode: 0 keeps source locations, 1 drops them. BytecodeError if it has none."""
    return BytecodeWriter(module, location_mode=location_mode, op_decls=op_decls).write()
