"""What a builder method takes and builds, derived from the row of its operation."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any, Final

from loom_core.interchange.attributes import (
    EncodingAttr,
    EnumArrayAttr,
    ParameterizedAttrArray,
    SignedEnumSetAttr,
    SymbolName,
    SymbolNameArray,
)
from loom_core.interchange.builder import IndexedValue, IRBuilder, ResultSpec, TiedResultSpec, ValueRef
from loom_core.interchange.declaration import OpDeclaration, TypedAttribute
from loom_core.interchange.form import DYNAMIC_INDEX, Element, Group, IndexList, OperandRef
from loom_core.interchange.inference import infer_result_type
from loom_core.interchange.model import Block, Region
from loom_core.interchange.special_forms import Carried, Cases, Signature
from loom_core.interchange.types import Type

EXTRAS: Final = ("name", "names", "result_names", "location_id")


class BuildPlan:
    """How the keyword arguments of a builder method become the parts of an operation."""

    def __init__(self, decl: OpDeclaration) -> None:
        self.decl = decl
        elements = list(_flatten(decl.form))
        self.index_lists = {element.name: element.static for element in elements if isinstance(element, IndexList)}
        self.indexed = _indexed_operands(elements)
        self.signatures = {
            element.parameters[0]: element.region
            for element in elements
            if isinstance(element, Signature) and element.parameters
        }
        self.carried = [element for element in elements if isinstance(element, Carried)]
        self.cases = next((element for element in elements if isinstance(element, Cases)), None)
        self.spells_results = any(element.spells_results for element in elements)
        self.has_results = bool(decl.result_fields)
        self.fixed_results = (
            self.has_results
            and not self.spells_results
            and all(
                slot.kind == "one" and slot.constraint.single is not None and not slot.inferred
                for slot in decl.result_fields.values()
            )
        )
        self.parameters = self._parameters(elements)
        self.allowed = frozenset(self.parameters) | frozenset(EXTRAS if self.has_results else EXTRAS[-1:])
        self.required = frozenset(name for name, optional in self.parameters.items() if not optional)
        self.signature = self._signature()
        self.plain = decl.plain_operands and not decl.region_fields and not decl.successor_fields

    def _parameters(self, elements: list[Element]) -> dict[str, bool]:
        """Parameter -> whether it may be left out, in the order of the text."""
        decl = self.decl
        found: dict[str, bool] = {}
        for element in elements:
            for name in element.parameters:
                if name == "results":
                    found.setdefault("results", decl.variadic_results)
                elif name in decl.operand_fields:
                    indexed = name in self.index_lists
                    found.setdefault(name, decl.operand_fields[name].kind != "one" and not indexed)
                elif name in decl.attribute_fields:
                    found.setdefault(name, not decl.attribute_fields[name].required)
                else:
                    found.setdefault(name, True)
        for name, slot in decl.operand_fields.items():
            found.setdefault(name, slot.kind != "one")
        for region in decl.region_fields:
            if region not in found and region not in self.signatures.values():
                found[region] = True
        if self.has_results and not self.fixed_results:
            found.setdefault("results", not self.spells_results)
        if decl.symbol is not None and "results" in found:
            found["results"] = True
        return found

    def _signature(self) -> inspect.Signature:
        decl = self.decl
        parameters = []
        for name, optional in self.parameters.items():
            default = ... if optional else inspect.Parameter.empty
            parameters.append(
                inspect.Parameter(
                    name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=self._annotation(name)
                )
            )
        for name, annotation in zip(
            EXTRAS, ("str | None", "Sequence[str] | None", "Sequence[str] | None", "int | None"), strict=True
        ):
            if name in self.allowed:
                parameters.append(
                    inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=..., annotation=annotation)
                )
        returns = "None"
        if self.has_results:
            several = decl.variadic_results or len(decl.result_fields) > 1
            returns = "list[ValueRef]" if several else "ValueRef"
        return inspect.Signature(parameters, return_annotation=returns)

    def _annotation(self, name: str) -> str:
        decl = self.decl
        optional = " | None" if self.parameters[name] else ""
        if name == "results":
            return "list[Type | TiedResultSpec]"
        if name in self.index_lists:
            return "list[int | ValueRef]"
        if name in decl.operand_fields:
            return "list[ValueRef]" if decl.operand_fields[name].kind == "variadic" else f"ValueRef{optional}"
        if name in decl.attribute_fields:
            return f"{_ANNOTATIONS.get(decl.attribute_fields[name].attribute_kind, 'Any')}{optional}"
        if name in decl.region_fields:
            return "list[Region]" if decl.region_fields[name].variadic else "Region | None"
        if name in decl.successor_fields:
            return "list[Block]" if decl.successor_fields[name] == "variadic" else "Block"
        return "Sequence[ValueRef | tuple[str, Type]]"

    # ---- building ----

    def refuse(self, message: str) -> TypeError:
        return TypeError(f"{self.decl.name}: {message}")

    def build(self, ir: IRBuilder, given: Mapping[str, Any]) -> Any:
        if self.indexed:
            given = self._unpacked(given)
        if not given.keys() <= self.allowed:
            self._unexpected(given)
        if not self.required <= given.keys():
            missing = ", ".join(repr(name) for name in self.parameters if name in self.required - given.keys())
            raise self.refuse(f"missing keyword argument {missing}")
        attributes = self._attributes(ir, given)
        operands, segments = self._operands(given, attributes)
        specs = self._result_specs(given) if self.has_results else ()
        names = self._names(given, len(specs)) if self.has_results else ()
        return ir.build(
            self.decl.name,
            operands,
            operand_segment_counts=segments,
            successors=self._successors(given) if self.decl.successor_fields else (),
            results=specs,
            result_names=names,
            attributes=attributes,
            regions=self._regions(ir, given) if self.decl.region_fields else (),
            location_id=given.get("location_id"),
        )

    def _unpacked(self, given: Mapping[str, Any]) -> Mapping[str, Any]:
        """`view=v[i, 0]` is `view=v, indices=[i, 0]`."""
        found = dict(given)
        for name, indices in self.indexed.items():
            value = given.get(name)
            if isinstance(value, IndexedValue):
                if indices in given:
                    raise self.refuse(f"{name} has indices, and {indices} is given too")
                found |= {name: value.value, indices: list(value.indices)}
        return found

    def _unexpected(self, given: Mapping[str, Any]) -> None:
        unknown = next(name for name in given if name not in self.allowed)
        near = difflib.get_close_matches(unknown, self.allowed, 1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise self.refuse(f"unexpected keyword argument {unknown!r}{hint}")

    def _attributes(self, ir: IRBuilder, given: Mapping[str, Any]) -> dict[str, Any]:
        found = {}
        for name, field in self.decl.attribute_fields.items():
            value = given.get(name)
            if (value is not None and value != "") or (value == "" and field.attribute_kind == "string"):
                found[name] = self._attribute(ir, name, field, value)
            elif field.required and name in self.parameters:
                raise self.refuse(f"the attribute {name!r} is needed")
        if self.cases is not None or "case_keys" in found:
            found["case_keys"] = list(found.get("case_keys", ()))
        return found

    def _attribute(self, ir: IRBuilder, name: str, field: TypedAttribute, value: Any) -> Any:
        kind = field.attribute_kind
        if kind == "enum":
            if value not in field.keywords or not value:
                raise ValueError(f"{self.decl.name}: {name} is {value!r}, not one of {_listed(field.keywords)}")
            return value
        if kind == "flags":
            chosen = value.split("|") if isinstance(value, str) else list(value)
            unknown = [flag for flag in chosen if flag not in field.keywords]
            if unknown:
                raise ValueError(f"{self.decl.name}: {name} has no flag {unknown[0]!r}: {_listed(field.keywords)}")
            return "|".join(flag for flag in field.keywords if flag in chosen)
        if kind == "enums":
            unknown = [word for word in value if word not in field.keywords]
            if unknown:
                raise ValueError(f"{self.decl.name}: {name} has no keyword {unknown[0]!r}: {_listed(field.keywords)}")
            return EnumArrayAttr(value)
        check = _CHECKS.get(kind)
        converted = value if check is None else check(value)
        if converted is None:
            raise self.refuse(f"{name} is {value!r}, which is no {kind}")
        return converted

    def _operands(self, given: Mapping[str, Any], attributes: dict[str, Any]) -> tuple[list[int], tuple[int, ...]]:
        decl = self.decl
        if decl.plain_operands:
            values = [given[name] for name in decl.operand_names]
            if all(isinstance(value, ValueRef) for value in values):
                return [value.id for value in values], ()
        flat: list[int] = []
        counts = []
        omitted = ""
        for name, slot in decl.operand_fields.items():
            before = len(flat)
            value = given.get(name)
            if name in self.index_lists:
                flat += self._index_list(name, value, attributes)
            elif slot.kind == "variadic":
                flat += [self._value(name, item) for item in value or ()]
            elif value is not None:
                if omitted and not decl.segmented:
                    raise ValueError(f"{decl.name}: {name} is given, and {omitted} before it is not")
                flat.append(self._value(name, value))
            elif slot.kind == "optional":
                omitted = omitted or name
            counts.append(len(flat) - before)
        return flat, tuple(counts) if decl.segmented else ()

    def _value(self, name: str, value: Any) -> int:
        if not isinstance(value, ValueRef):
            raise self.refuse(f"{name} is {value!r}, a value is needed")
        return value.id

    def _index_list(self, name: str, value: Any, attributes: dict[str, Any]) -> list[int]:
        static: list[int] = []
        dynamic: list[int] = []
        for item in value or ():
            if isinstance(item, ValueRef):
                static.append(DYNAMIC_INDEX)
                dynamic.append(item.id)
            else:
                static.append(int(item))
        attributes[self.index_lists[name]] = static
        return dynamic

    def _result_specs(self, given: Mapping[str, Any]) -> Sequence[ResultSpec]:
        decl = self.decl
        results = given.get("results")
        if results is not None:
            specs = list(results)
            for spec in specs:
                if not isinstance(spec, Type | TiedResultSpec):
                    raise self.refuse(f"results holds {spec!r}, types are needed")
            expected = decl.fixed_result_count
            if expected is not None and len(specs) != expected:
                raise self.refuse(f"{expected} results are declared, {len(specs)} types given")
            return specs
        if decl.variadic_results:
            return ()
        types = {name: [given[name].type] for name in decl.operand_fields if isinstance(given.get(name), ValueRef)}
        found = [infer_result_type(decl, name, types) for name in decl.result_fields]
        if None in found:
            raise self.refuse("the types of the results cannot be told; give results=[...]")
        return found  # type: ignore[return-value]

    def _names(self, given: Mapping[str, Any], count: int) -> Sequence[str]:
        chosen = [key for key in ("name", "names", "result_names") if given.get(key) is not None]
        if len(chosen) > 1:
            raise self.refuse(f"pass only one of {', '.join(chosen)}")
        if not chosen:
            return ()
        if chosen == ["name"]:
            if (self.decl.variadic_results and count != 1) or len(self.decl.result_fields) > 1:
                raise self.refuse("`name` is for a single result; pass names")
            return (given["name"],)
        names: Sequence[str] = list(given[chosen[0]])
        if len(names) != count:
            raise self.refuse(f"{count} results, {len(names)} names")
        return names

    def _successors(self, given: Mapping[str, Any]) -> list[Block]:
        found: list[Block] = []
        for name, kind in self.decl.successor_fields.items():
            found += list(given.get(name) or ()) if kind == "variadic" else [given[name]]
        return found

    def _regions(self, ir: IRBuilder, given: Mapping[str, Any]) -> list[Region]:
        decl = self.decl
        found: list[Region] = []
        for name, slot in decl.region_fields.items():
            region = given.get(name)
            if slot.variadic:
                found += list(region or ())
            elif region is not None:
                found.append(region)
            elif not slot.optional:
                found.append(self._fresh_region(ir, name, given))
        for parameter, name in self.signatures.items():
            region = decl.split_regions(found)[name][0]
            arguments = given.get(parameter)
            if arguments and not region.blocks[0].arg_ids:
                region.blocks[0].arg_ids = ir.arguments(arguments)
        return found

    def _fresh_region(self, ir: IRBuilder, name: str, given: Mapping[str, Any]) -> Region:
        """A region of one block; the body of a loop has the arguments that the operands tell."""
        for element in self.carried:
            if element.region == name:
                arguments = [("", given["lower_bound"].type)] if element.skip else []
                arguments += [("", init.type) for init in given.get(element.operands) or ()]
                return ir.region(arguments)
        return Region([Block()])


def _indexed_operands(elements: Iterable[Element]) -> dict[str, str]:
    """Operand -> the index list that follows it in the text."""
    found: dict[str, str] = {}
    last = ""
    for element in elements:
        if isinstance(element, IndexList):
            found[last] = element.name
        elif isinstance(element, OperandRef):
            last = element.name
    return found


def _flatten(elements: Iterable[Element]) -> Iterator[Element]:
    for element in elements:
        if isinstance(element, Group):
            yield from _flatten(element.elements)
        else:
            yield element


def _listed(keywords: Iterable[str]) -> str:
    return ", ".join(word for word in keywords if word)


def _integers(value: Any) -> list[int] | None:
    items = list(value)
    return items if all(type(item) is int for item in items) else None


_ANNOTATIONS: Final = {
    "i64": "int", "f64": "float", "string": "str", "bool": "bool", "i64s": "list[int]", "symbol": "str",
    "symbols": "Sequence[str]", "type": "Type", "predicates": "list[Predicate]", "dict": "Mapping[str, Any]",
    "bytes": "bytes", "enum": "str", "flags": "str", "enums": "Sequence[str]", "word": "str",
}  # fmt: skip
_CHECKS: Final[dict[str, Callable[[Any], Any]]] = {
    "i64": lambda value: value if type(value) is int else None,
    "f64": lambda value: float(value) if isinstance(value, int | float) else None,
    "string": lambda value: value if isinstance(value, str) else None,
    "word": lambda value: value if isinstance(value, str) else None,
    "bool": lambda value: value if isinstance(value, bool) else None,
    "bytes": lambda value: bytes(value) if isinstance(value, bytes | bytearray) else None,
    "symbol": lambda value: SymbolName(value.removeprefix("@")) if isinstance(value, str) else None,
    "symbols": lambda value: SymbolNameArray(name.removeprefix("@") for name in value),
    "i64s": _integers,
    "type": lambda value: value if isinstance(value, Type) else None,
    "literal": lambda value: value if isinstance(value, int | float) else None,
    "predicates": tuple,
    "parameterizeds": ParameterizedAttrArray,
    "signed": lambda value: value if isinstance(value, SignedEnumSetAttr) else None,
    "encoding": lambda value: value if isinstance(value, EncodingAttr) else None,
}
"""Attribute kind -> the value to keep, None for one that does not fit."""


@cache
def build_plan(decl: OpDeclaration) -> BuildPlan:
    """The plan of an operation's builder method."""
    return BuildPlan(decl)
