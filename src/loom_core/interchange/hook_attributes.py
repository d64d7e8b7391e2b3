"""What values attributes may have, by their declared kinds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from loom_core.interchange.attributes import (
    EncodingAttr,
    ParameterizedAttr,
    Predicate,
    SignedEnumSetAttr,
)
from loom_core.interchange.declaration import OpDeclaration
from loom_core.interchange.relations import type_is_int
from loom_core.interchange.types import Type
from loom_core.interchange.verifier import Finding


def _all_are(test: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, list | tuple) and all(map(test, value))


def _is_string(value: Any) -> bool:
    return isinstance(value, str)


_TESTS: Final[dict[str, Callable[[Any], bool]]] = {
    "i64": type_is_int,
    "f64": lambda value: isinstance(value, float),
    "string": _is_string,
    "word": _is_string,
    "enum": _is_string,
    "flags": _is_string,
    "symbol": _is_string,
    "bool": lambda value: isinstance(value, bool),
    "i64s": _all_are(type_is_int),
    "symbols": _all_are(_is_string),
    "enums": _all_are(_is_string),
    "type": lambda value: isinstance(value, Type),
    "predicates": _all_are(lambda item: isinstance(item, Predicate)),
    "dict": lambda value: isinstance(value, Mapping),
    "bytes": lambda value: isinstance(value, bytes),
    "literal": lambda value: isinstance(value, int | float),
    "encoding": lambda value: isinstance(value, EncodingAttr),
    "signed": lambda value: isinstance(value, SignedEnumSetAttr),
    "parameterized": lambda value: isinstance(value, ParameterizedAttr),
    "parameterizeds": _all_are(lambda item: isinstance(item, ParameterizedAttr)),
}


def check_attribute(decl: OpDeclaration, name: str, value: Any, found: Finding) -> None:
    """TYPE/005 for a value of another kind, STRUCTURE/010 for a keyword that is none."""
    field = decl.attribute_fields.get(name)
    if field is None:
        found.rule("STRUCTURE/003", f"{decl.name} has no attribute '{name}'")
    elif not _TESTS[field.attribute_kind](value):
        found.rule("TYPE/005", f"the attribute '{name}' of {decl.name} is no {field.attribute_kind}")
    elif field.attribute_kind in ("enum", "flags", "enums"):
        words = value.split("|") if field.attribute_kind == "flags" else [value] if isinstance(value, str) else value
        unknown = [word for word in words if word not in field.keywords]
        if unknown:
            found.rule("STRUCTURE/010", f"'{unknown[0]}' is no keyword of '{name}' of {decl.name}")
