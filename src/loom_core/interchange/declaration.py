"""How an operation of the interchange model is declared: one row of a dialect's table.

    op("index.cast", "%input : T(input) to T(result)", operands="input:scalar", results="result:scalar", traits="pure")

The fields are those of Tile IR's declarations (`loom_core.ir.op`), with the types that a foreign program may give
them. From a row derive the builder method, the verifier's counts, types and relations, the printer, the parser and the
bytecode. In a row

    operands    name:constraint, `name?` optional, `name*` any number
    attributes  name:kind, `name?` optional; kinds are those of `ATTRIBUTE_KINDS`, or keywords `a|b|c`, or flags(a|b|c)
    results     name:constraint; `name~operand` has the operand's type and `name~i1` that type unless text says more
    regions     name:terminator, `name?` optional; `name!terminator` supplies an empty terminator where text has none
    successors  names
    same        groups of operands and results of one type, split by `;`; `element(...)` compares elements only

and the form is the canonical text after the name of the op, see `loom_core.interchange.form`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, TypeVar

from loom_core.interchange.constraints import CONSTRAINTS, TypeConstraint
from loom_core.interchange.model import Block, Region, SymbolKind
from loom_core.ir.op import REQUIRED, AttributeField, OperandField

if TYPE_CHECKING:
    from loom_core.interchange.form import Element

ATTRIBUTE_KINDS: Final = (
    "i64", "f64", "string", "bool", "i64s", "symbol", "symbols", "type", "predicates", "dict", "bytes", "literal",
    "encoding", "enum", "flags", "enums", "signed", "parameterized", "parameterizeds", "word",
)  # fmt: skip
"""Kinds of attributes; `literal` is an integer, a bool or a float as written, `word` a keyword of an open list."""


@dataclass(frozen=True)
class TypedOperand(OperandField):
    """An operand slot and the types it takes."""

    constraint: TypeConstraint


@dataclass(frozen=True)
class TypedAttribute(AttributeField):
    """An attribute, its kind, and its keywords in the order of their numbers where it has some."""

    attribute_kind: str
    keywords: tuple[str, ...] = ()

    @property
    def required(self) -> bool:
        return self.default is REQUIRED


@dataclass(frozen=True)
class ResultField:
    """A result: "one" or "variadic", its types, and what its type is where nobody says (a type or an operand)."""

    kind: str
    constraint: TypeConstraint
    inferred: str = ""


@dataclass(frozen=True)
class RegionField:
    """A nested region: operations that may end it (none: any), and whether text leaves an empty one of these out."""

    terminators: tuple[str, ...] = ()
    optional: bool = False
    implicit: bool = False
    single_block: bool = True
    variadic: bool = False


@dataclass(frozen=True)
class SymbolDefinition:
    """What kind of symbol an operation defines, and what may refer to it as."""

    kind: SymbolKind
    attribute: str = "symbol"
    interfaces: frozenset[str] = frozenset()
    declaration: bool = False


@dataclass(frozen=True)
class SymbolUse:
    """An attribute that names a symbol of an interface."""

    attribute: str
    interface: str


@dataclass(frozen=True, eq=False)
class OpDeclaration:
    """One operation of the interchange model."""

    name: str
    form: tuple[Element, ...]
    operand_fields: dict[str, TypedOperand] = field(default_factory=dict)
    attribute_fields: dict[str, TypedAttribute] = field(default_factory=dict)
    result_fields: dict[str, ResultField] = field(default_factory=dict)
    region_fields: dict[str, RegionField] = field(default_factory=dict)
    successor_fields: dict[str, str] = field(default_factory=dict)
    same: tuple[tuple[str, tuple[str, ...]], ...] = ()
    traits: frozenset[str] = frozenset()
    parents: tuple[str, ...] = ()
    ancestors: tuple[str, ...] = ()
    forbidden: tuple[str, ...] = ()
    symbol: SymbolDefinition | None = None
    symbol_uses: tuple[SymbolUse, ...] = ()
    builder_name: str = ""
    doc: str = ""
    form_text: str = ""
    older_forms: tuple[tuple[Element, ...], ...] = ()
    """Texts that earlier versions printed; read, never printed."""

    def __post_init__(self) -> None:
        kinds = [slot.kind for slot in self.operand_fields.values()]
        variadic = kinds.count("variadic")
        set_field = object.__setattr__
        set_field(self, "dialect", self.name.partition(".")[0])
        set_field(self, "local_name", self.name.partition(".")[2])
        set_field(self, "plain_operands", not any(kind != "one" for kind in kinds))
        set_field(self, "segmented", variadic > 1 or (variadic == 1 and "optional" in kinds))
        set_field(self, "operand_names", tuple(self.operand_fields))
        set_field(self, "result_names", tuple(self.result_fields))
        set_field(self, "variadic_results", any(slot.kind == "variadic" for slot in self.result_fields.values()))
        set_field(self, "terminator", "terminator" in self.traits)
        set_field(self, "isolated", "isolated" in self.traits)

    dialect: str = field(init=False)
    local_name: str = field(init=False)
    plain_operands: bool = field(init=False)
    segmented: bool = field(init=False)
    operand_names: tuple[str, ...] = field(init=False)
    result_names: tuple[str, ...] = field(init=False)
    variadic_results: bool = field(init=False)
    terminator: bool = field(init=False)
    isolated: bool = field(init=False)
    argument_regions: tuple[str, ...] = field(init=False, default=())

    @property
    def fixed_result_count(self) -> int | None:
        """The number of results, None where it varies."""
        return None if self.variadic_results else len(self.result_fields)

    def split_operands(self, operands: list[int], segments: tuple[int, ...]) -> dict[str, list[int]] | None:
        """Operands by field; None where their number fits no division into the fields."""
        if self.plain_operands:
            if len(operands) != len(self.operand_names):
                return None
            return {name: [operand] for name, operand in zip(self.operand_names, operands, strict=True)}
        counts = self._segment_counts(len(operands), segments)
        if counts is None:
            return None
        found: dict[str, list[int]] = {}
        at = 0
        for name, count in zip(self.operand_names, counts, strict=True):
            found[name] = operands[at : at + count]
            at += count
        return found

    def split_regions(self, regions: list[Region]) -> dict[str, list[Region]]:
        """Regions by field, as far as there are any; a field without one is left out unless it takes any number."""
        return _divide(regions, {name: slot.variadic for name, slot in self.region_fields.items()})

    def split_successors(self, successors: list[Block]) -> dict[str, list[Block]]:
        """Successors by field."""
        return _divide(successors, {name: kind == "variadic" for name, kind in self.successor_fields.items()})

    def split_results(self, results: list[int]) -> dict[str, list[int]]:
        """Results by field."""
        return _divide(results, {name: slot.kind == "variadic" for name, slot in self.result_fields.items()})

    def _segment_counts(self, total: int, segments: tuple[int, ...]) -> list[int] | None:
        slots = list(self.operand_fields.values())
        if self.segmented:
            if len(segments) != len(slots) or sum(segments) != total or min(segments) < 0:
                return None
            fits = (
                count == 1 if slot.kind == "one" else count <= 1 or slot.kind == "variadic"
                for slot, count in zip(slots, segments, strict=True)
            )
            return list(segments) if all(fits) else None
        spare = total - sum(slot.kind == "one" for slot in slots)
        counts = []
        for slot in slots:
            count = 1 if slot.kind == "one" else spare if slot.kind == "variadic" else min(1, spare)
            spare -= 0 if slot.kind == "one" else count
            counts.append(count)
        return counts if spare == 0 and min(counts, default=0) >= 0 else None


Item = TypeVar("Item")


def _divide(items: list[Item], fields: dict[str, bool]) -> dict[str, list[Item]]:
    """Items by field: one for each, the rest for the one that takes any number (its mark is True)."""
    found: dict[str, list[Item]] = {}
    after = len(fields) - 1
    at = 0
    for name, variadic in fields.items():
        stop = max(at, len(items) - after) if variadic else at + 1
        if variadic or at < len(items):
            found[name] = items[at:stop]
        at = stop
        after -= 1
    return found


_FIELD: Final = re.compile(r"(\w+)([?*]?)([:~!]?)(\S*)")


def _fields(text: str) -> list[tuple[str, str, str, str]]:
    found = []
    for word in text.split():
        match = _FIELD.fullmatch(word)
        if match is None:
            raise TypeError(f"{word!r} declares no field")
        found.append((match[1], match[2], match[3], match[4]))
    return found


_KIND: Final = {"": "one", "?": "optional", "*": "variadic"}


def _operand(mark: str, constraint: str) -> TypedOperand:
    return TypedOperand(_KIND[mark], CONSTRAINTS[constraint])


def _attribute(mark: str, spelled: str) -> TypedAttribute:
    default = None if mark == "?" else REQUIRED
    kind, _, inside = spelled.partition("(")
    if kind in ("flags", "enums", "signed"):
        return TypedAttribute(default, kind, tuple(inside.rstrip(")").split("|")))
    if spelled in ATTRIBUTE_KINDS:
        return TypedAttribute(default, spelled)
    return TypedAttribute(default, "enum", tuple(spelled.split("|")))


def _result(mark: str, sign: str, spelled: str) -> ResultField:
    if sign == "~":
        constraint = CONSTRAINTS[spelled] if spelled in CONSTRAINTS else CONSTRAINTS["any"]
        return ResultField(_KIND[mark], constraint, spelled)
    return ResultField(_KIND[mark], CONSTRAINTS[spelled])


def _region(mark: str, sign: str, spelled: str, blocks: frozenset[str], name: str) -> RegionField:
    terminators = tuple(spelled.split("|")) if spelled else ()
    return RegionField(terminators, mark == "?", sign == "!", name not in blocks, mark == "*")


def _same(text: str) -> tuple[tuple[str, tuple[str, ...]], ...]:
    groups = []
    for part in filter(None, (group.strip() for group in text.split(";"))):
        relation, inside = ("SameElementType", part[8:-1]) if part.startswith("element(") else ("SameType", part)
        groups.append((relation, tuple(inside.split())))
    return tuple(groups)


def declare(
    name: str,
    form: tuple[Element, ...],
    *,
    operands: str = "",
    attributes: str = "",
    results: str = "",
    regions: str = "",
    successors: str = "",
    same: str = "",
    traits: str = "",
    parents: str = "",
    ancestors: str = "",
    forbidden: str = "",
    blocks: str = "",
    symbol: SymbolDefinition | None = None,
    refers: str = "",
    builder_name: str = "",
    doc: str = "",
) -> OpDeclaration:
    """An operation from the texts of its row; `blocks` names regions of several blocks, `refers` is attribute:interface
    of the symbols it names."""
    uses = tuple(SymbolUse(key, interface) for key, _, _, interface in _fields(refers))
    return OpDeclaration(
        name,
        form,
        {key: _operand(mark, spelled) for key, mark, _, spelled in _fields(operands)},
        {key: _attribute(mark, spelled) for key, mark, _, spelled in _fields(attributes)},
        {key: _result(mark, sign, spelled) for key, mark, sign, spelled in _fields(results)},
        {
            key: _region(mark, sign, spelled, frozenset(blocks.split()), key)
            for key, mark, sign, spelled in _fields(regions)
        },
        {key: _KIND[mark] for key, mark, _, _ in _fields(successors)},
        _same(same),
        frozenset(traits.split()),
        tuple(parents.split()),
        tuple(ancestors.split()),
        tuple(forbidden.split()),
        symbol,
        uses,
        builder_name,
        doc,
    )
