"""Reading the tables of a module: strings, types, encodings, locations, attribute values."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any, Final

from loom_core.interchange import bytecode as b
from loom_core.interchange.attributes import (
    ATTR_AGGREGATE_MAX_NESTING_DEPTH,
    PREDICATE_KINDS,
    CanonicalAttrDict,
    Encoding,
    EncodingAttr,
    EnumArrayAttr,
    ParameterizedAttr,
    ParameterizedAttrArray,
    Predicate,
    PredicateArg,
    SignedEnumSetAttr,
    SymbolName,
    SymbolNameArray,
    SymbolNameSet,
)
from loom_core.interchange.bytecode.encoding import BytecodeError, ByteReader
from loom_core.interchange.declaration import TypedAttribute
from loom_core.interchange.locations import FileLocation, FusedLocation, Location, OpaqueLocation, TaggedLocation
from loom_core.interchange.model import Module
from loom_core.interchange.text.tokenizer import DOTTED_NAME, WORD_NAME
from loom_core.interchange.types import (
    BUFFER_TYPE,
    NONE_TYPE,
    DialectType,
    Dim,
    DynamicDim,
    DynamicEncoding,
    EncodingRole,
    EncodingType,
    FunctionType,
    ParameterizedType,
    PoolType,
    RegisterType,
    ScalarType,
    ScalarTypeKind,
    ShapedType,
    StaticDim,
    StaticEncoding,
    StorageSpace,
    StorageType,
    Type,
    TypeKind,
)

_PREDICATES: Final = list(PREDICATE_KINDS.items())
_U32: Final = 1 << 32


class ReaderTables:
    """The tables read so far."""

    def __init__(self, module: Module) -> None:
        self.module = module
        self.strings: list[str] = []
        self.types: list[Type] = []
        self.ops: list[str] = []
        self.encoding_count = 0
        self.value_count = 0
        """Values of the symbol that is being read: predicates refer to them by number."""
        self.base = 0
        self._names: set[tuple[str, re.Pattern[str]]] = set()
        """Id in the module of that symbol's first value."""

    # ---- strings ----

    def read_strings(self, r: ByteReader) -> None:
        self.strings = read_texts(r, "strings")
        if not self.strings or self.strings[0]:
            raise BytecodeError("string 0 is not the empty string", "BYTECODE/010")

    def string(self, r: ByteReader) -> str:
        number = r.varint()
        if number >= len(self.strings):
            raise BytecodeError(f"string {number} is out of range: there are {len(self.strings)}", "BYTECODE/010")
        return self.strings[number]

    def name(self, r: ByteReader, pattern: re.Pattern[str] = WORD_NAME) -> str:
        """A string that text can spell as a name."""
        found = self.string(r)
        key = (found, pattern)
        if key not in self._names:
            if pattern.fullmatch(found) is None:
                raise BytecodeError(f"{found!r} is no name here", "BYTECODE/010")
            self._names.add(key)
        return found

    def read_ops(self, r: ByteReader) -> None:
        self.ops = [self.string(r) for _ in range(r.count("operations", b.LIMITS["ops"]))]
        if len(set(self.ops)) != len(self.ops):
            raise BytecodeError("an operation name occurs twice", "BYTECODE/006")
        r.finish("OPS")

    # ---- types ----

    def read_types(self, r: ByteReader) -> None:
        for _ in range(r.count("types", b.LIMITS["types"])):
            try:
                self.types.append(self._type(r))
            except ValueError as error:
                raise BytecodeError(str(error), "BYTECODE/006") from error
        r.finish("TYPES")

    def _type_reference(self, r: ByteReader) -> Type:
        return self.types[r.index(len(self.types), "type")]

    def _type_list(self, r: ByteReader) -> tuple[Type, ...]:
        return tuple(self._type_reference(r) for _ in range(r.count("types")))

    def _type(self, r: ByteReader) -> Type:
        kind = r.byte()
        if kind in (TypeKind.TILE, TypeKind.TENSOR, TypeKind.VECTOR, TypeKind.VIEW):
            return self._shaped(r, TypeKind(kind))
        match kind:
            case TypeKind.NONE:
                return NONE_TYPE
            case TypeKind.BUFFER:
                return BUFFER_TYPE
            case TypeKind.SCALAR:
                return _scalar(r)
            case TypeKind.FUNCTION:
                arguments = self._type_list(r)
                return FunctionType(arguments, self._type_list(r))
            case TypeKind.DIALECT:
                name = self.name(r, DOTTED_NAME)
                return DialectType(name, self._type_list(r))
            case TypeKind.ENCODING:
                return EncodingType(EncodingRole(r.choice(len(EncodingRole), "encoding role")))
            case TypeKind.POOL:
                return PoolType(_dim(r))
            case TypeKind.REGISTER:
                stable, register_class, units = r.fixed("QII")
                value = self._type_reference(r) if r.choice(2, "flag") else None
                return RegisterType(stable, register_class, units, None, value)
            case TypeKind.STORAGE:
                return StorageType(StorageSpace(r.choice(len(StorageSpace), "storage space")))
            case TypeKind.PARAMETERIZED:
                family = self.name(r, DOTTED_NAME)
                return ParameterizedType(family, tuple(self._entries(r, 0).items()))
        raise BytecodeError(f"unknown type kind {kind}", "BYTECODE/004")

    def _shaped(self, r: ByteReader, kind: TypeKind) -> Type:
        element = _scalar(r)
        rank = r.byte()
        attachment = r.choice(3, "attachment")
        index = r.varint()
        if (index > 0) != (attachment == 1):
            raise BytecodeError("a static encoding, and it alone, has an index", "BYTECODE/014")
        encoding: StaticEncoding | DynamicEncoding | None = None
        if attachment == 1:
            if index > self.encoding_count:
                raise BytecodeError(
                    f"encoding {index} is out of range: there are {self.encoding_count}", "BYTECODE/014"
                )
            encoding = StaticEncoding(index - 1)
        elif attachment == 2:
            encoding = DynamicEncoding()
        return ShapedType(kind, element, tuple(_dim(r) for _ in range(rank)), encoding)

    # ---- encodings and locations ----

    def count_encodings(self, r: ByteReader) -> None:
        """Skip to the number of encodings: types, which their parameters may name, refer to them."""
        for _ in range(r.count("encoding families")):
            self.string(r)
        self.encoding_count = r.count("encodings")

    def read_encodings(self, r: ByteReader) -> None:
        families = [self.name(r) for _ in range(r.count("encoding families"))]
        for _ in range(r.count("encodings")):
            family = families[r.index(len(families), "encoding family", "BYTECODE/014")]
            alias = r.varint()
            if alias > len(self.strings) or (alias and WORD_NAME.fullmatch(self.strings[alias - 1]) is None):
                raise BytecodeError(f"string {alias - 1} is no alias", "BYTECODE/010")
            self.module.encodings.append(
                Encoding(family, CanonicalAttrDict(self._entries(r, 0)), self.strings[alias - 1] if alias else "")
            )
        r.finish("ENCODINGS")

    def read_locations(self, r: ByteReader) -> None:
        count = r.count("locations", b.LIMITS["locations"])
        if count == 0:
            raise BytecodeError("location 0 is missing", "BYTECODE/013")
        for position in range(count):
            location = self._location(r, position)
            if position == 0:
                if location is not None:
                    raise BytecodeError("location 0 is not the unknown one", "BYTECODE/013")
            elif location is None or self.module.add_location(location) != position:
                raise BytecodeError(f"location {position} repeats another", "BYTECODE/013")
        r.finish("LOCATIONS")

    def _location(self, r: ByteReader, position: int) -> Location | None:
        kind, flags = r.choice(5, "location kind", "BYTECODE/013"), r.byte()
        match kind:
            case 1:
                source = r.index(len(self.module.sources), "source")
                line, column, end_line, end_column = spans = [r.varint() for _ in range(4)]
                if max(spans) >= _U32:
                    raise BytecodeError("lines and columns have 32 bits", "BYTECODE/013")
                return FileLocation(source, line, column, end_line, end_column, flags)
            case 2:
                children = tuple(r.index(position, "location", "BYTECODE/013") for _ in range(r.count("locations")))
                return FusedLocation(children, flags)
            case 3:
                return OpaqueLocation(r.index(len(self.module.sources), "source"), r.blob(b.MAX_STRING), flags)
            case 4:
                tag = r.varint()
                if tag >= _U32:
                    raise BytecodeError("a tag has 32 bits", "BYTECODE/013")
                child = r.index(position, "location", "BYTECODE/013")
                return TaggedLocation(tag, child, r.blob(b.MAX_STRING), flags)
        if flags:
            raise BytecodeError("an unknown location has no flags", "BYTECODE/013")
        return None

    # ---- attributes ----

    def attributes(self, r: ByteReader, fields: Mapping[str, TypedAttribute], owner: str) -> dict[str, Any]:
        """Attributes of an operation whose declaration has `fields`."""
        found: dict[str, Any] = {}
        last = ""
        for _ in range(r.count("attributes")):
            key = self._ascending(r, last)
            field = fields.get(key)
            if field is None or field.attribute_kind == "flags":
                raise BytecodeError(f"{owner} has no attribute {key!r} here", "BYTECODE/015")
            found[key] = self._value(r, field, 0)
            last = key
        return found

    def _ascending(self, r: ByteReader, last: str) -> str:
        key = self.name(r)
        if key <= last:
            raise BytecodeError(f"keys do not ascend at {key!r}", "BYTECODE/015")
        return key

    def _entries(self, r: ByteReader, depth: int) -> dict[str, Any]:
        found: dict[str, Any] = {}
        last = ""
        for _ in range(r.count("entries")):
            last = self._ascending(r, last)
            found[last] = self._value(r, None, depth)
        return found

    def _value(self, r: ByteReader, field: TypedAttribute | None, depth: int) -> Any:
        if depth > ATTR_AGGREGATE_MAX_NESTING_DEPTH:
            raise BytecodeError("attributes nest too deeply", "BYTECODE/009")
        kind = r.byte()
        if field is not None and kind not in b.DECLARED_KINDS[field.attribute_kind]:
            raise BytecodeError(
                f"an attribute of kind {kind} where a {field.attribute_kind} is declared", "BYTECODE/015"
            )
        match kind:
            case b.ATTR_I64:
                return r.signed()
            case b.ATTR_F64:
                number = r.double()
                return math.copysign(math.nan, number) if math.isnan(number) else number
            case b.ATTR_STRING:
                return self.name(r) if field is not None and field.attribute_kind == "word" else self.string(r)
            case b.ATTR_BOOL:
                return bool(r.choice(2, "bool"))
            case b.ATTR_ENUM:
                return self._keyword(r, field)
            case b.ATTR_I64S:
                return [r.signed() for _ in range(r.count("integers"))]
            case b.ATTR_SYMBOL:
                return SymbolName(self.name(r))
            case b.ATTR_TYPE:
                return self._type_reference(r)
            case b.ATTR_PREDICATES:
                return self.predicates(r)
            case b.ATTR_DICT:
                return CanonicalAttrDict(self._entries(r, depth + 1))
            case b.ATTR_ENCODING:
                return EncodingAttr(r.index(self.encoding_count, "encoding", "BYTECODE/014"))
            case b.ATTR_BYTES:
                return r.blob(b.MAX_STRING)
        return self._aggregate(r, kind, field, depth)

    def _aggregate(self, r: ByteReader, kind: int, field: TypedAttribute | None, depth: int) -> Any:
        match kind:
            case b.ATTR_ENUMS:
                return EnumArrayAttr(self._keyword(r, field) for _ in range(r.count("keywords")))
            case b.ATTR_SIGNED:
                positive, negative = (
                    tuple(self._keyword(r, field) for _ in range(r.count("keywords"))) for _ in range(2)
                )
                try:
                    return SignedEnumSetAttr(positive, negative)
                except ValueError as error:
                    raise BytecodeError(str(error), "BYTECODE/015") from error
            case b.ATTR_PARAMETERIZED:
                return self._parameterized(r, depth)
            case b.ATTR_PARAMETERIZEDS:
                return ParameterizedAttrArray(self._parameterized(r, depth) for _ in range(r.count("attributes")))
            case b.ATTR_SYMBOLS | b.ATTR_SYMBOL_SET:
                names = [self.name(r) for _ in range(r.count("symbols"))]
                return SymbolNameArray(names) if kind == b.ATTR_SYMBOLS else SymbolNameSet(names)
        raise BytecodeError(f"unknown attribute kind {kind}", "BYTECODE/005")

    def _parameterized(self, r: ByteReader, depth: int) -> ParameterizedAttr:
        family = self.name(r)
        return ParameterizedAttr(family, CanonicalAttrDict(self._entries(r, depth + 1)))

    def _keyword(self, r: ByteReader, field: TypedAttribute | None) -> str:
        keywords = field.keywords if field is not None else ()
        word = keywords[r.choice(len(keywords), "keyword")]
        if not word:
            raise BytecodeError("this number is no keyword", "BYTECODE/011")
        return word

    def predicates(self, r: ByteReader) -> tuple[Predicate, ...]:
        found = []
        for _ in range(r.count("predicates")):
            kind, arity = _PREDICATES[r.choice(len(_PREDICATES), "predicate")]
            count = r.varint()
            if count != arity:
                raise BytecodeError(f"{kind} takes {arity} arguments, not {count}", "BYTECODE/015")
            args = []
            for _ in range(count):
                tag = r.byte()
                if tag == 1:
                    args.append(PredicateArg("value", self.base + r.index(self.value_count, "value")))
                elif tag == 2:
                    args.append(PredicateArg("const", r.signed()))
                else:
                    raise BytecodeError(f"a predicate argument is tagged {tag}", "BYTECODE/015")
            found.append(Predicate(kind, tuple(args)))
        return tuple(found)


def _scalar(r: ByteReader) -> ScalarType:
    kind = r.byte()
    if not 1 <= kind <= len(ScalarTypeKind):
        raise BytecodeError(f"unknown scalar kind {kind}", "BYTECODE/004")
    return ScalarType(ScalarTypeKind(kind))


def _dim(r: ByteReader) -> Dim:
    if r.choice(2, "flag"):
        return DynamicDim()
    size = r.varint()
    if size >= 1 << 60:
        raise BytecodeError(f"a dimension of {size}", "BYTECODE/007")
    return StaticDim(size)


def read_texts(r: ByteReader, what: str) -> list[str]:
    """A count and so many strings."""
    found = []
    for _ in range(r.count(what, b.LIMITS["strings"])):
        data = r.blob(b.MAX_STRING)
        try:
            found.append(data.decode())
        except UnicodeDecodeError as error:
            raise BytecodeError(f"{what} hold what is no UTF-8", "BYTECODE/010") from error
    r.finish(what.upper())
    return found


def read_trivia(r: ByteReader) -> tuple[tuple[str, ...], bool]:
    """Comments, and whether a blank line stands before them."""
    head = r.varint()
    if head < 2:
        return (), bool(head)
    if head >> 1 > r.remaining():
        raise BytecodeError(f"{head >> 1} comments do not fit", "BYTECODE/003")
    comments = []
    for _ in range(head >> 1):
        try:
            text = r.blob(b.MAX_STRING).decode()
        except UnicodeDecodeError as error:
            raise BytecodeError("a comment is no UTF-8", "BYTECODE/006") from error
        if "\n" in text or "\r" in text or (text and not text.startswith(" ")):
            raise BytecodeError("a comment is a line that starts with a space", "BYTECODE/006")
        comments.append(text[1:])
    return tuple(comments), bool(head & 1)
