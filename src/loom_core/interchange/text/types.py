"""Types as text; attribute values as text."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from loom_core.interchange.attributes import (
    Encoding,
    EncodingAttr,
    EnumArrayAttr,
    ParameterizedAttr,
    ParameterizedAttrArray,
    Predicate,
    SignedEnumSetAttr,
    SymbolName,
    SymbolNameArray,
)
from loom_core.interchange.text.tokenizer import encode_string
from loom_core.interchange.types import (
    SCALAR_NAMES,
    SHAPED_KINDS,
    BufferType,
    DialectType,
    Dim,
    DynamicEncoding,
    EncodingRole,
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

NameOf = Callable[[int], str]


class TypeText:
    """Spells types and attribute values; `name_of` gives the name of a value, with `%`."""

    def __init__(self, encodings: list[Encoding], name_of: NameOf, use_aliases: bool = True) -> None:
        self.encodings = encodings
        self.name_of = name_of
        self.use_aliases = use_aliases
        self._static: dict[Type, str] = {}

    def type(self, type: Type) -> str:
        """The text of a type."""
        found = self._static.get(type)
        if found is None:
            found = self._spell(type)
            # What refers to values depends on their names.
            if "%" not in found:
                self._static[type] = found
        return found

    def _spell(self, type: Type) -> str:
        match type:
            case ScalarType():
                return SCALAR_NAMES[type.kind]
            case BufferType():
                return "buffer"
            case ShapedType():
                return self._shaped(type)
            case EncodingType():
                role = type.role
                return "encoding" if role is EncodingRole.UNKNOWN else f"encoding<{role.name.lower()}>"
            case PoolType():
                return f"pool<{self._dim(type.block_size)}>"
            case FunctionType():
                arguments, results = (", ".join(map(self.type, part)) for part in (type.arg_types, type.result_types))
                return f"({arguments}) -> ({results})"
            case RegisterType():
                value = f" : {self.type(type.value_type)}" if type.value_type is not None else ""
                numbers = (type.descriptor_set_stable_id, type.register_class_id, type.unit_count)
                return f"reg<{', '.join(map(str, numbers))}{value}>"
            case StorageType():
                return f"storage<{type.space.name.lower()}>"
            case DialectType():
                return type.name + (f"<{', '.join(map(self.type, type.params))}>" if type.params else "")
            case ParameterizedType():
                return f"{type.family}<{self.entries(dict(type.params))}>"
            case NoneType():
                return "none"
        raise TypeError(f"a type of class {type.__class__.__name__} has no text")

    def _shaped(self, type: ShapedType) -> str:
        dims = "".join(f"{self._dim(dim)}x" for dim in type.dims)
        encoding = ""
        if isinstance(type.encoding, StaticEncoding):
            encoding = f", {self.encoding(type.encoding.index)}"
        elif isinstance(type.encoding, DynamicEncoding):
            encoding = f", {self.name_of(type.encoding.value_id)}"
        return f"{SHAPED_KINDS[type.type_kind]}<{dims}{SCALAR_NAMES[type.element_type.kind]}{encoding}>"

    def _dim(self, dim: Dim) -> str:
        return str(dim.size) if isinstance(dim, StaticDim) else f"[{self.name_of(dim.value_id)}]"

    def encoding(self, index: int) -> str:
        """An encoding of the module: its alias, else its family and parameters."""
        encoding = self.encodings[index]
        if encoding.alias and self.use_aliases:
            return f"#{encoding.alias}"
        return self.encoding_body(encoding)

    def encoding_body(self, encoding: Encoding) -> str:
        params = f"<{self.entries(encoding.params)}>" if encoding.params else ""
        return f"#{encoding.family}{params}"

    def entries(self, entries: Mapping[str, Any]) -> str:
        """`key = value, ...`, keys ascending."""
        return ", ".join(f"{key} = {self.value(entries[key])}" for key in sorted(entries))

    def value(self, value: Any) -> str:
        """The text of an attribute value that says by itself what it is; strings are quoted."""
        match value:
            case bool():
                return "true" if value else "false"
            case int():
                return str(value)
            case float():
                return float_text(value)
            case SymbolName():
                return f"@{value}"
            case str():
                return encode_string(value)
            case bytes():
                return f'bytes("{value.hex()}")'
            case Mapping():
                return f"{{{self.entries(value)}}}"
            case SymbolNameArray():
                return f"[{', '.join(f'@{name}' for name in value)}]"
            case EnumArrayAttr():
                return f"[{', '.join(value)}]"
            case SignedEnumSetAttr():
                return f"[{', '.join([*value.positive, *(f'-{word}' for word in value.negative)])}]"
            case ParameterizedAttr():
                return value.family + (f"<{self.entries(value.params)}>" if value.params else "")
            case ParameterizedAttrArray():
                return f"[{', '.join(map(self.value, value))}]"
            case EncodingAttr():
                return self.encoding(value.index)
            case tuple() | list():
                if value and all(isinstance(item, Predicate) for item in value):
                    return self.predicates(value)
                return f"[{', '.join(map(self.value, value))}]"
            case Type():
                return self.type(value)
        raise TypeError(f"an attribute of class {type(value).__name__} has no text")

    def predicates(self, predicates: tuple[Predicate, ...] | list[Predicate]) -> str:
        """`[kind(%a, 4), ...]`."""
        parts = []
        for predicate in predicates:
            args = (self.name_of(arg.value) if arg.tag == "value" else str(arg.value) for arg in predicate.args)
            parts.append(f"{predicate.kind}({', '.join(args)})")
        return f"[{', '.join(parts)}]"


def float_text(value: float) -> str:
    """A float64 with 17 significant digits, `.0` added where it would look integral; `nan`, `-nan`, `inf`, `-inf`."""
    if math.isnan(value):
        return "-nan" if math.copysign(1.0, value) < 0 else "nan"
    if math.isinf(value):
        return "inf" if value > 0 else "-inf"
    text = f"{value:.17g}"
    return text if "." in text or "e" in text else text + ".0"


def _nameless(value_id: int) -> str:
    return f"%{value_id}" if value_id >= 0 else "%?"


def print_type(type: Type, module: Any = None) -> str:
    """The text of a type; with its module, names and encodings are spelled as there."""
    if module is None:
        return TypeText([], _nameless).type(type)

    def name_of(value_id: int) -> str:
        name = module.values[value_id].name if 0 <= value_id < len(module.values) else ""
        return f"%{name}" if name else _nameless(value_id)

    return TypeText(module.encodings, name_of).type(type)
