"""The canonical text of an operation as a list of elements, each of which prints and parses itself.

A form is the text after the name of the operation, spaces as they are printed, with

    %name       an operand              %name*   operands, split by commas
    T(name)     its type                T(name*) types, split by commas; of results also `%operand as T` and `%r: T`
    $name       an attribute            {attrs}  all attributes that the form does not name, as a dictionary
    #name       an index list: constants and values     ^name  a successor
    R(name)     a region                [[ ... ]] present if its first placeholder is
    !element(x) an element of `loom_core.interchange.special_forms`
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from loom_core.interchange.declaration import OpDeclaration, TypedAttribute, declare
from loom_core.interchange.text.tokenizer import TokenKind

if TYPE_CHECKING:
    from loom_core.interchange.text.op_reader import OpReader
    from loom_core.interchange.text.printer import OpWriter

DYNAMIC_INDEX: Final = -(2**63)
"""What stands in the static part of an index list where a value does."""


class Element:
    """Base of the elements; `attributes`, `regions` and `parameters` name what the element speaks of."""

    attributes: tuple[str, ...] = ()
    argument_regions: tuple[str, ...] = ()
    parameters: tuple[str, ...] = ()
    spells_results: bool = False

    def write(self, w: OpWriter) -> None:
        raise NotImplementedError

    def read(self, r: OpReader) -> None:
        raise NotImplementedError

    def present(self, w: OpWriter) -> bool:
        """Whether an optional group that starts with this element is printed."""
        return True

    def starts(self, r: OpReader) -> bool:
        """Whether the next token can begin this element."""
        return True


class Literal(Element):
    """Words and punctuation."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = re.findall(r"->|[A-Za-z_]\w*|\S", text)

    def write(self, w: OpWriter) -> None:
        w.out.append(self.text)

    def read(self, r: OpReader) -> None:
        for token in self.tokens:
            r.expect(token)

    def starts(self, r: OpReader) -> bool:
        return r.next_are(self.tokens)


class OperandRef(Element):
    """One operand."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.parameters = (name,)

    def write(self, w: OpWriter) -> None:
        ids = w.operands[self.name]
        if ids:
            w.out.append(w.names[ids[0]])

    def read(self, r: OpReader) -> None:
        r.operands[self.name] = [r.use_value()]

    def present(self, w: OpWriter) -> bool:
        return bool(w.operands[self.name])

    def starts(self, r: OpReader) -> bool:
        return r.next_kind() is TokenKind.SSA


class OperandList(OperandRef):
    """Any number of operands."""

    def write(self, w: OpWriter) -> None:
        w.out.append(", ".join([w.names[value] for value in w.operands[self.name]]))

    def read(self, r: OpReader) -> None:
        found = r.operands.setdefault(self.name, [])
        if r.next_kind() is TokenKind.SSA:
            found.append(r.use_value())
            while r.accept(","):
                found.append(r.use_value())


class TypeOf(Element):
    """The type of one operand or result; of an operand it must be the one it has."""

    def __init__(self, name: str, decl: OpDeclaration) -> None:
        self.name = name
        self.is_result = name in decl.result_fields
        self.spells_results = self.is_result
        self.parameters = ("results",) if self.is_result else ()

    def write(self, w: OpWriter) -> None:
        ids = w.results[self.name] if self.is_result else w.operands[self.name]
        if ids:
            w.out.append(w.type_of(ids[0]))

    def read(self, r: OpReader) -> None:
        if self.is_result:
            r.result_types[self.name] = [r.type()]
        else:
            r.check_types(r.operands.get(self.name, []), [(r.position(), r.type())])

    def present(self, w: OpWriter) -> bool:
        return bool(w.results[self.name] if self.is_result else w.operands[self.name])


class TypesOf(TypeOf):
    """The types of several operands or results."""

    def write(self, w: OpWriter) -> None:
        if not self.is_result:
            w.out.append(", ".join([w.type_of(value) for value in w.operands[self.name]]))
            return
        w.out.append(", ".join([w.result_spec(value) for value in w.results[self.name]]))

    def read(self, r: OpReader) -> None:
        if self.is_result:
            # The results of a signature may speak of its arguments.
            r.result_types[self.name] = r.within("body", lambda: self._result_types(r))
            return
        spelled = []
        if not r.next_is(")") and not r.next_is("->"):
            spelled.append((r.position(), r.type()))
            while r.accept(","):
                spelled.append((r.position(), r.type()))
        r.check_types(r.operands.get(self.name, []), spelled)

    def _result_types(self, r: OpReader) -> list[Any]:
        found: list[Any] = []
        if r.next_is(")"):
            return found
        while True:
            if r.next_kind() is TokenKind.SSA:
                index = len(found)
                if r.name_follows_colon():
                    r.result_names[index] = r.take().text
                    r.expect(":")
                    found.append(r.type())
                else:
                    value = r.use_value()
                    r.expect("as")
                    found.append(r.type())
                    r.tied.append((index, value))
            else:
                found.append(r.type())
            if not r.accept(","):
                return found


class AttributeValue(Element):
    """One attribute, spelled as its kind says."""

    def __init__(self, name: str, decl: OpDeclaration) -> None:
        self.name = name
        self.field: TypedAttribute = decl.attribute_fields[name]
        self.attributes = (name,)
        self.parameters = (name,)

    def write(self, w: OpWriter) -> None:
        w.out.append(w.attribute(self.field, w.op.attributes[self.name]))

    def read(self, r: OpReader) -> None:
        r.attributes[self.name] = r.attribute(self.field, self.name)

    def present(self, w: OpWriter) -> bool:
        return self.name in w.op.attributes

    def starts(self, r: OpReader) -> bool:
        field = self.field
        if field.attribute_kind in ("enum", "flags"):
            return r.next_kind() is TokenKind.IDENTIFIER and r.next_text() in field.keywords
        if field.attribute_kind == "symbol":
            return r.next_kind() is TokenKind.SYMBOL
        if field.attribute_kind == "string":
            return r.next_kind() is TokenKind.STRING
        return True


class AttributeDict(Element):
    """` {key = value, ...}` of the attributes that the rest of the form leaves, keys ascending; nothing without any."""

    def __init__(self, decl: OpDeclaration, covered: frozenset[str]) -> None:
        self.decl = decl
        self.covered = covered
        self.parameters = tuple(name for name in decl.attribute_fields if name not in covered)
        self.attributes = self.parameters

    def write(self, w: OpWriter) -> None:
        parts = []
        for key, value in w.op.attributes.items():
            if key not in self.covered:
                field = self.decl.attribute_fields.get(key)
                parts.append(f"{key} = {w.attribute(field, value) if field else w.text.value(value)}")
        if parts:
            w.out.append(f" {{{', '.join(parts)}}}")

    def read(self, r: OpReader) -> None:
        if not r.accept("{"):
            return
        while not r.next_is("}"):
            key = r.word()
            field = self.decl.attribute_fields.get(key)
            if field is None or key in self.covered:
                r.refuse(f"{self.decl.name} has no attribute {key!r}", back=1)
            if key in r.attributes:
                r.refuse(f"the key {key!r} occurs twice", "PARSE/020", back=1)
            r.expect("=")
            r.attributes[key] = r.attribute(field, key)
            if not r.accept(","):
                break
        r.expect("}")


class IndexList(Element):
    """Constants and values, kept as an array of constants, `DYNAMIC_INDEX` where a value stands, and the values."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.static = f"static_{name}"
        self.attributes = (self.static,)
        self.parameters = (name,)

    def write(self, w: OpWriter) -> None:
        values = iter(w.operands[self.name])
        static = w.op.attributes.get(self.static, ())
        w.out.append(", ".join([w.names[next(values)] if index == DYNAMIC_INDEX else str(index) for index in static]))

    def read(self, r: OpReader) -> None:
        static: list[int] = []
        values = r.operands.setdefault(self.name, [])
        if not r.next_is("]"):
            while True:
                if r.next_kind() is TokenKind.SSA:
                    values.append(r.use_value())
                    static.append(DYNAMIC_INDEX)
                else:
                    static.append(r.integer())
                if not r.accept(","):
                    break
        r.attributes[self.static] = static


class Successor(Element):
    """A block that control goes to."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.parameters = (name,)

    def write(self, w: OpWriter) -> None:
        w.out.append(w.label(w.successors[self.name][0]))

    def read(self, r: OpReader) -> None:
        r.successors.setdefault(self.name, []).append(r.label())


class RegionText(Element):
    """A region in braces."""

    def __init__(self, name: str, decl: OpDeclaration) -> None:
        self.name = name
        self.field = decl.region_fields[name]
        self.parameters = (name,)

    def write(self, w: OpWriter) -> None:
        found = w.regions.get(self.name)
        if found:
            w.region(found[0], self.field, self.name in w.decl.argument_regions)

    def read(self, r: OpReader) -> None:
        r.regions.setdefault(self.name, []).append(r.region(self.field, self.name))

    def present(self, w: OpWriter) -> bool:
        return bool(w.regions.get(self.name))

    def starts(self, r: OpReader) -> bool:
        return r.next_is("{")


class Group(Element):
    """Elements that are there together or not at all; the first that is no literal decides when printing."""

    def __init__(self, elements: tuple[Element, ...]) -> None:
        self.elements = elements
        self.attributes = tuple(name for element in elements for name in element.attributes)
        self.parameters = tuple(name for element in elements for name in element.parameters)
        self.argument_regions = tuple(name for element in elements for name in element.argument_regions)
        self.spells_results = any(element.spells_results for element in elements)
        self.anchor = next(element for element in elements if not isinstance(element, Literal))
        self.first = next(element for element in elements if not (isinstance(element, Literal) and not element.tokens))

    def write(self, w: OpWriter) -> None:
        if self.anchor.present(w):
            for element in self.elements:
                element.write(w)

    def read(self, r: OpReader) -> None:
        if self.first.starts(r):
            for element in self.elements:
                element.read(r)

    def present(self, w: OpWriter) -> bool:
        return self.anchor.present(w)

    def starts(self, r: OpReader) -> bool:
        return self.first.starts(r)


_PLACEHOLDER: Final = re.compile(
    r"(?P<open>\[\[)|(?P<close>\]\])|%(?P<operand>\w+)(?P<many>\*?)|T\((?P<type>\w+)(?P<types>\*?)\)"
    r"|R\((?P<region>\w+)\)|\$(?P<attribute>\w+)|(?P<dict>\{attrs\})|#(?P<index>\w+)|\^(?P<successor>\w+)"
    r"|!(?P<special>\w+)\((?P<arguments>[^)]*)\)"
)


def compile_form(text: str, decl: OpDeclaration) -> tuple[Element, ...]:
    """The elements of a form."""
    stack: list[list[Element]] = [[]]
    dictionaries: list[tuple[list[Element], int]] = []
    at = 0
    for match in _PLACEHOLDER.finditer(text):
        if match.start() > at:
            stack[-1].append(Literal(text[at : match.start()]))
        at = match.end()
        if match["open"]:
            stack.append([])
        elif match["close"]:
            group = Group(tuple(stack.pop()))
            stack[-1].append(group)
        elif match["dict"]:
            # What the rest of the form covers is known at its end.
            dictionaries.append((stack[-1], len(stack[-1])))
            stack[-1].append(Literal(""))
        else:
            stack[-1].append(_element(match, decl))
    if at < len(text):
        stack[-1].append(Literal(text[at:]))
    (elements,) = stack
    covered = frozenset(name for element in elements for name in element.attributes)
    for where, position in dictionaries:
        where[position] = AttributeDict(decl, covered)
    return tuple(elements)


def _element(match: re.Match[str], decl: OpDeclaration) -> Element:
    if match["operand"]:
        return (OperandList if match["many"] else OperandRef)(match["operand"])
    if match["type"]:
        return (TypesOf if match["types"] else TypeOf)(match["type"], decl)
    if match["region"]:
        return RegionText(match["region"], decl)
    if match["attribute"]:
        return AttributeValue(match["attribute"], decl)
    if match["index"]:
        return IndexList(match["index"])
    if match["successor"]:
        return Successor(match["successor"])
    from loom_core.interchange.special_forms import SPECIAL

    return SPECIAL[match["special"]](decl, *filter(None, match["arguments"].split(",")))


def op(name: str, form: str = "", *, older: tuple[str, ...] = (), **fields: Any) -> OpDeclaration:
    """One row of a dialect's table; `fields` as `declare` takes them, `older` forms that are read but not printed."""
    decl = declare(name, (), **fields)
    set_field = object.__setattr__
    set_field(decl, "form_text", form)
    set_field(decl, "form", compile_form(_spaced(form), decl))
    set_field(decl, "older_forms", tuple(compile_form(_spaced(text), decl) for text in older))
    set_field(
        decl,
        "argument_regions",
        tuple(dict.fromkeys(name for element in decl.form for name in element.argument_regions)),
    )
    return decl


_ELEMENT_TEXTS: Final = (
    (re.compile(r"!args\((\w+)[^)]*\)"), r"(%\1: T, ...)"),
    (re.compile(r"!do\((\w+)\)"), r"[[(%\1: T, ...)]]"),
    (re.compile(r"!where\([^)]*\)"), "[[ where [predicates]]]"),
    (re.compile(r"!induction\([^)]*\)"), "%i"),
    (re.compile(r"!carried\((\w+)[^)]*\)"), r"[[(%a = %\1 : T, ...)]]"),
    (re.compile(r"!cases\([^)]*\)"), "{ case K {..} ... default {..} }"),
    (re.compile(r"!rows\([^)]*\)"), "{ K = (%a, ..), ... } default(%d, ..)"),
    (re.compile(r"!branches\([^)]*\)"), "[K, ..] -> [^a, ..]"),
    (re.compile(r"!passed\((\w+)\)"), r"[[(%\1: T, ...)]]"),
    (re.compile(r"!ranges\([^)]*\)"), "[align(A) %n, ..]"),
    (re.compile(r"!clause\((\w+),(\w+),(\w+)\)"), r"[[\1($\2[[, $\3]]) ]]"),
)


def unspelled(decl: OpDeclaration) -> str:
    """The form of an operation for people: special elements written out."""
    text = decl.form_text
    for pattern, shown in _ELEMENT_TEXTS:
        text = pattern.sub(shown, text)
    return text


def _spaced(form: str) -> str:
    """The form with the space that stands before what is not glued to the name."""
    return form if not form or form.startswith(("<", "[[<", "[[ ", "{", "!carried")) else f" {form}"
