"""Tables of a module being written: strings, types, operation names, and attribute values that refer to them."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from loom_core.interchange import bytecode as b
from loom_core.interchange.attributes import (
    PREDICATE_KINDS,
    EncodingAttr,
    EnumArrayAttr,
    ParameterizedAttr,
    ParameterizedAttrArray,
    Predicate,
    SignedEnumSetAttr,
    SymbolName,
    SymbolNameArray,
    SymbolNameSet,
)
from loom_core.interchange.bytecode.encoding import BytecodeError, ByteWriter
from loom_core.interchange.declaration import TypedAttribute
from loom_core.interchange.types import (
    BufferType,
    DialectType,
    Dim,
    DynamicDim,
    DynamicEncoding,
    EncodingType,
    FunctionType,
    NoneType,
    ParameterizedType,
    PoolType,
    RegisterType,
    ScalarType,
    ShapedType,
    StaticDim,
    StaticEncoding,
    StorageType,
    Type,
)

NumberOf = Callable[[int], int]
_PREDICATES = list(PREDICATE_KINDS)


class WriterTables:
    """Positions of strings, types and operation names; each is added at its first use."""

    def __init__(self) -> None:
        self.strings: dict[str, int] = {"": 0}
        self.types: dict[Type, int] = {}
        self.type_records: list[bytes] = []
        self.ops: dict[str, int] = {}
        self._unbound: dict[Type, int] = {}

    def string(self, text: str) -> int:
        found = self.strings.get(text)
        if found is None:
            found = self.strings[text] = len(self.strings)
        return found

    def op(self, name: str) -> int:
        """A reference to an operation name: its position and 1."""
        found = self.ops.get(name)
        if found is None:
            found = self.ops[name] = len(self.ops)
        return found + 1

    # ---- types ----

    def type(self, type: Type) -> int:
        """The position of a type; the values it refers to are left to the value definition."""
        known = self._unbound.get(type)
        if known is not None:
            return known
        stripped = unbound(type)
        found = self.types.get(stripped)
        if found is None:
            record = self._record(stripped)
            found = self.types[stripped] = len(self.types)
            self.type_records.append(record)
        self._unbound[type] = found
        return found

    def _record(self, type: Type) -> bytes:
        out = ByteWriter()
        out.append(type.kind_of_type)
        match type:
            case ScalarType():
                out.append(type.kind)
            case ShapedType():
                self._shaped(out, type)
            case FunctionType():
                for part in (type.arg_types, type.result_types):
                    ids = [self.type(item) for item in part]
                    out.varint(len(ids))
                    for item in ids:
                        out.varint(item)
            case DialectType():
                ids = [self.type(item) for item in type.params]
                out.varint(self.string(type.name))
                out.varint(len(ids))
                for item in ids:
                    out.varint(item)
            case EncodingType():
                out.append(type.role)
            case PoolType():
                self._dim(out, type.block_size)
            case RegisterType():
                out.fixed("QII", type.descriptor_set_stable_id, type.register_class_id, type.unit_count)
                out.append(type.value_type is not None)
                if type.value_type is not None:
                    out.varint(self.type(type.value_type))
            case StorageType():
                out.append(type.space)
            case ParameterizedType():
                self._parameterized(out, type.family, dict(type.params), lambda value: value)
            case NoneType() | BufferType():
                pass
            case _:
                raise BytecodeError(f"a type of class {type.__class__.__name__} has no bytecode", "BYTECODE/004")
        return bytes(out)

    def _shaped(self, out: ByteWriter, type: ShapedType) -> None:
        attachment = type.encoding
        out.append(type.element_type.kind)
        out.append(len(type.dims))
        out.append(0 if attachment is None else 1 if isinstance(attachment, StaticEncoding) else 2)
        out.varint(attachment.index + 1 if isinstance(attachment, StaticEncoding) else 0)
        for dim in type.dims:
            self._dim(out, dim)

    def _dim(self, out: ByteWriter, dim: Dim) -> None:
        out.append(isinstance(dim, DynamicDim))
        if isinstance(dim, StaticDim):
            out.varint(dim.size)

    # ---- attributes ----

    def attributes(
        self, out: ByteWriter, entries: Mapping[str, tuple[TypedAttribute | None, Any]], number: NumberOf
    ) -> None:
        """A count, then key, kind and value of each, keys ascending."""
        out.varint(len(entries))
        for key in sorted(entries):
            out.varint(self.string(key))
            self.attribute(out, *entries[key], number)

    def attribute(self, out: ByteWriter, field: TypedAttribute | None, value: Any, number: NumberOf) -> None:
        kind = field.attribute_kind if field is not None else ""
        if kind == "enum":
            out.append(b.ATTR_ENUM)
            out.append(_keyword(field, value))
        elif kind == "enums":
            out.append(b.ATTR_ENUMS)
            out.varint(len(value))
            for word in value:
                out.append(_keyword(field, word))
        elif kind == "signed":
            out.append(b.ATTR_SIGNED)
            for words in (value.positive, value.negative):
                out.varint(len(words))
                for word in words:
                    out.append(_keyword(field, word))
        elif kind == "predicates":
            out.append(b.ATTR_PREDICATES)
            self.predicates(out, value, number)
        elif kind == "symbol":
            out.append(b.ATTR_SYMBOL)
            out.varint(self.string(str(value)))
        elif kind in ("string", "word") and isinstance(value, str):
            out.append(b.ATTR_STRING)
            out.varint(self.string(str(value)))
        elif kind == "f64" and isinstance(value, int | float):
            self._value(out, float(value), number)
        elif kind == "i64s":
            out.append(b.ATTR_I64S)
            self._integers(out, value)
        else:
            self._value(out, value, number)

    def predicates(self, out: ByteWriter, predicates: tuple[Predicate, ...], number: NumberOf) -> None:
        out.varint(len(predicates))
        for predicate in predicates:
            out.append(_PREDICATES.index(predicate.kind))
            out.varint(len(predicate.args))
            for arg in predicate.args:
                if arg.tag == "value":
                    out.append(1)
                    out.varint(number(arg.value))
                else:
                    out.append(2)
                    out.signed(arg.value)

    def _integers(self, out: ByteWriter, values: Any) -> None:
        out.varint(len(values))
        for value in values:
            out.signed(value)

    def _value(self, out: ByteWriter, value: Any, number: NumberOf) -> None:
        """A value that says by itself what it is."""
        match value:
            case bool():
                out.append(b.ATTR_BOOL)
                out.append(value)
            case int():
                out.append(b.ATTR_I64)
                out.signed(value)
            case float():
                out.append(b.ATTR_F64)
                # One NaN of each sign: text knows no others.
                plain = math.copysign(math.nan, value) if math.isnan(value) else value
                out += struct.pack("<d", plain)
            case SymbolName():
                out.append(b.ATTR_SYMBOL)
                out.varint(self.string(str(value)))
            case str():
                out.append(b.ATTR_STRING)
                out.varint(self.string(value))
            case bytes():
                out.append(b.ATTR_BYTES)
                out.blob(value)
            case Mapping():
                out.append(b.ATTR_DICT)
                self.attributes(out, {key: (None, item) for key, item in value.items()}, number)
            case EncodingAttr():
                out.append(b.ATTR_ENCODING)
                out.varint(value.index)
            case Type():
                out.append(b.ATTR_TYPE)
                out.varint(self.type(value))
            case ParameterizedAttr():
                out.append(b.ATTR_PARAMETERIZED)
                self._parameterized(out, value.family, value.params, number)
            case _:
                self._sequence(out, value, number)

    def _sequence(self, out: ByteWriter, value: Any, number: NumberOf) -> None:
        match value:
            case SymbolNameArray():
                out.append(b.ATTR_SYMBOL_SET if isinstance(value, SymbolNameSet) else b.ATTR_SYMBOLS)
                out.varint(len(value))
                for name in value:
                    out.varint(self.string(str(name)))
            case ParameterizedAttrArray():
                out.append(b.ATTR_PARAMETERIZEDS)
                out.varint(len(value))
                for item in value:
                    self._parameterized(out, item.family, item.params, number)
            case EnumArrayAttr() | SignedEnumSetAttr():
                raise BytecodeError("keywords need the declaration of their operation", "BYTECODE/015")
            case list() | tuple():
                if value and all(isinstance(item, Predicate) for item in value):
                    out.append(b.ATTR_PREDICATES)
                    self.predicates(out, tuple(value), number)
                else:
                    out.append(b.ATTR_I64S)
                    self._integers(out, value)
            case _:
                raise BytecodeError(f"an attribute of class {type(value).__name__} has no bytecode", "BYTECODE/005")

    def _parameterized(self, out: ByteWriter, family: str, params: Mapping[str, Any], number: NumberOf) -> None:
        out.varint(self.string(family))
        self.attributes(out, {key: (None, item) for key, item in params.items()}, number)


def _keyword(field: TypedAttribute | None, word: str) -> int:
    if field is None or word not in field.keywords:
        raise BytecodeError(f"{word!r} is no keyword of this attribute", "BYTECODE/011")
    return field.keywords.index(word)


def unbound(type: Type) -> Type:
    """The type without the values that it refers to."""
    match type:
        case ShapedType():
            dims = tuple(DynamicDim() if isinstance(dim, DynamicDim) else dim for dim in type.dims)
            encoding = DynamicEncoding() if isinstance(type.encoding, DynamicEncoding) else type.encoding
            return ShapedType(type.type_kind, type.element_type, dims, encoding)
        case PoolType() if isinstance(type.block_size, DynamicDim):
            return PoolType(DynamicDim())
        case FunctionType():
            return FunctionType(tuple(map(unbound, type.arg_types)), tuple(map(unbound, type.result_types)))
        case RegisterType():
            value = unbound(type.value_type) if type.value_type is not None else None
            return replace(type, value_type=value)
    return type
