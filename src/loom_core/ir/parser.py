"""Reads the text form of Tile IR that `loom_core.ir.printer` prints.

The operations must be registered: import `loom_core.ops` first. Errors are diagnostics with the line and column of the
text.
"""

from __future__ import annotations

import json
import linecache
import math
import re
import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, NoReturn, TypeVar

from loom_core.base.diagnostics import UserError
from loom_core.base.dtype import ALL, DType
from loom_core.base.location import UNKNOWN, Location
from loom_core.ir.block import Block, Function
from loom_core.ir.op import REGISTRY, REQUIRED, Op
from loom_core.ir.printer import RESULT_TYPE_ATTRIBUTES
from loom_core.ir.types import PointerType, TileType
from loom_core.ir.value import Value

T = TypeVar("T")

MOST_DIGITS: Final = 40
MOST_NESTED: Final = 32
"""Of lists in attributes, and of regions."""


class SyntaxProblem(UserError):
    code = "LOOM-I001"
    template = "expected {expected}, found {found}"
    hint = "the text form is described in loom_core/ir/printer.py"


class UnknownOperation(UserError):
    code = "LOOM-I002"
    template = "there is no operation called {name!r}"
    hint = "check the spelling; the operations are those of loom_core.ops, which must be imported"


class UnknownValue(UserError):
    code = "LOOM-I003"
    template = "%{name} is not defined before this use in an enclosing block"
    hint = "values are visible from their definition to the end of their block"


class RedefinedValue(UserError):
    code = "LOOM-I004"
    template = "%{name} is defined twice"
    hint = "every value has a name of its own"


class BadText(UserError):
    code = "LOOM-I005"
    template = "{operation}: {problem}"
    hint = "the operation's declaration in loom_core/ops says what it takes"


_TOKEN: Final = re.compile(
    r"""(?P<space>[ \t\r\n]+|//[^\n]*)
      | (?P<value>%[A-Za-z0-9_$.]+)
      | (?P<symbol>@[A-Za-z0-9_$.<>]+)
      | (?P<string>"(?:[^"\\]|\\.)*")
      | (?P<nan>nan\(0x[0-9a-f]+\))
      | (?P<shape>\d+x)
      | (?P<float>-?\d+(?:\.\d*(?:[eE][+-]?\d+)?|[eE][+-]?\d+)|-?inf\b)
      | (?P<integer>-?\d+)
      | (?P<word>[A-Za-z_][A-Za-z0-9_]*)
      | (?P<mark>[(){}\[\]<>:,=^])""",
    re.VERBOSE,
)
_DTYPES: Final = {dtype.name: dtype for dtype in ALL}
_BUILD_FAILURES: Final = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)


@dataclass(frozen=True)
class Token:
    """One token: its kind, its text, and where it starts in the whole text."""

    kind: str
    text: str
    offset: int


def parse_function(text: str, file: str = "<ir>") -> Function:
    """The only function of `text`. SyntaxProblem if there is something else, or more."""
    functions = parse_functions(text, file)
    if len(functions) != 1:
        raise SyntaxProblem(Location(file, 1, 0, 1), expected="one function", found=f"{len(functions)} functions")
    return functions[0]


def parse_functions(text: str, file: str = "<ir>") -> list[Function]:
    """The functions of `text`, in order. `file` names the text in diagnostics."""
    if file.startswith("<"):
        # Registered, so that diagnostics can show the line.
        linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    parser = _Parser(text, file)
    functions = []
    while parser.token.kind != "end":
        functions.append(parser.function())
    return functions


class _Parser:
    def __init__(self, text: str, file: str) -> None:
        self.text = text
        self.file = file
        self.position = 0
        self.scopes: list[dict[str, Value]] = []
        self.defined: set[str] = set()
        self._nested = 0
        self.token = self._next()

    # -- tokens --------------------------------------------------------------------------------------------------------

    def _next(self) -> Token:
        while self.position < len(self.text):
            match = _TOKEN.match(self.text, self.position)
            if match is None:
                found = repr(self.text[self.position])
                raise SyntaxProblem(self._locate(self.position, 1), expected="a token", found=found)
            start, self.position = self.position, match.end()
            if match.lastgroup != "space":
                return Token(str(match.lastgroup), match.group(), start)
        return Token("end", "the end of the text", len(self.text))

    def _locate(self, offset: int, length: int) -> Location:
        before = self.text[:offset]
        line_start = before.rfind("\n") + 1
        column = len(self.text[line_start:offset].encode())
        return Location(self.file, before.count("\n") + 1, column, column + length)

    def here(self, token: Token | None = None) -> Location:
        at = token or self.token
        return self._locate(at.offset, max(1, len(at.text.encode()) if at.kind != "end" else 1))

    def fail(self, expected: str) -> NoReturn:
        found = self.token.text if self.token.kind == "end" else repr(self.token.text)
        raise SyntaxProblem(self.here(), expected=expected, found=found)

    def advance(self) -> Token:
        token, self.token = self.token, self._next()
        return token

    def accept(self, text: str) -> bool:
        if self.token.text == text and self.token.kind in ("mark", "word"):
            self.advance()
            return True
        return False

    def expect(self, text: str) -> Token:
        if self.token.text != text or self.token.kind not in ("mark", "word"):
            self.fail(repr(text))
        return self.advance()

    def expect_kind(self, kind: str, what: str) -> Token:
        if self.token.kind != kind:
            self.fail(what)
        return self.advance()

    def separated(self, read: Callable[[], T], close: str) -> list[T]:
        """Items separated by commas, up to `close`, which is taken."""
        items: list[T] = []
        while not self.accept(close):
            if items:
                self.expect(",")
            items.append(read())
        return items

    # -- functions and blocks ------------------------------------------------------------------------------------------

    def function(self) -> Function:
        self.expect("func")
        at = self.here()
        name = self.expect_kind("symbol", "a name such as @kernel").text[1:]
        self.scopes, self.defined = [{}], set()
        self.expect("(")
        arguments = self.separated(self.argument, ")")
        location = self.location() or at
        function = Function(name, tuple(type for _, type, _ in arguments), (), location)
        self.bind(arguments, function.body)
        self.expect("{")
        self.operations(function.body)
        return function

    def argument(self) -> tuple[str, TileType, Token]:
        token = self.expect_kind("value", "a value such as %x")
        self.expect(":")
        return token.text[1:], self.tile_type(), token

    def bind(self, arguments: list[tuple[str, TileType, Token]], block: Block) -> None:
        for (name, _, token), value in zip(arguments, block.arguments, strict=True):
            self.define(name, value, token)

    def define(self, name: str, value: Value, token: Token) -> None:
        if name in self.defined:
            raise RedefinedValue(self.here(token), name=name)
        self.defined.add(name)
        self.scopes[-1][name] = value
        # A number is what the printer gives to a value without a name.
        value.name = None if name.isdigit() else name

    def operations(self, block: Block) -> None:
        """Operations up to the closing brace."""
        while not self.accept("}"):
            block.append(self.operation())

    def region(self) -> Block:
        if len(self.scopes) > MOST_NESTED:
            self.fail(f"no more than {MOST_NESTED} regions in each other")
        self.expect("{")
        self.scopes.append({})
        arguments: list[tuple[str, TileType, Token]] = []
        if self.accept("^"):
            self.expect("(")
            arguments = self.separated(self.argument, ")")
            self.expect(":")
        block = Block(tuple(type for _, type, _ in arguments))
        self.bind(arguments, block)
        self.operations(block)
        self.scopes.pop()
        return block

    # -- operations ----------------------------------------------------------------------------------------------------

    def operation(self) -> Op:
        results: list[Token] = []
        if self.token.kind == "value":
            results.append(self.advance())
            while self.accept(","):
                results.append(self.expect_kind("value", "a value such as %x"))
            self.expect("=")
        at = self.token
        name = self.expect_kind("word", "an operation").text
        kind = REGISTRY.get(name)
        if kind is None:
            raise UnknownOperation(self.here(at), name=name)
        operands = self.operands(kind, at)
        attributes = self.attributes(kind, at) if self._opens_attributes() and self.accept("{") else {}
        types = self.types() if results else []
        location = self.location() or self.here(at)
        self.attributes_of_results(kind, attributes, types)
        regions = [self.region() for _ in range(kind.region_count)]
        op = self.build(kind, operands, attributes, regions, location, at)
        self.check_results(op, results, types, at)
        for token, value in zip(results, op.results, strict=True):
            self.define(token.text[1:], value, token)
        return op

    def operands(self, kind: type[Op], at: Token) -> list[Any]:
        fields = kind.operand_fields
        plain: list[Value] = []
        labelled: dict[str, Value] = {}
        if self.token.kind in ("value", "word") and self._starts_operand(fields):
            while True:
                self._operand(kind, plain, labelled)
                if not self.accept(","):
                    break
        needed = [key for key, field in fields.items() if field.kind == "one"]
        variadic = any(field.kind == "variadic" for field in fields.values())
        if len(plain) < len(needed) or (len(plain) > len(needed) and not variadic):
            problem = f"takes {len(needed)} operands{' or more' if variadic else ''}, {len(plain)} given"
            raise BadText(self.here(at), operation=kind.name, problem=problem)
        rest = iter(plain)
        grouped: list[Any] = []
        for key, field in fields.items():
            if field.kind == "one":
                grouped.append(next(rest))
            else:
                grouped.append(labelled.get(key) if field.kind == "optional" else list(rest))
        return grouped

    def _starts_operand(self, fields: dict[str, Any]) -> bool:
        # The next operation of a block also starts with a value or a word, but never with an operand's label.
        if self.token.kind == "word":
            return self.token.text in fields
        return bool(fields) and not self._starts_results()

    def _starts_results(self) -> bool:
        """Whether the value here begins the next line (`%a, %b = ...`) rather than this operation's operands."""
        previous = self.text.rfind("\n", 0, self.token.offset)
        return not self.text[previous + 1 : self.token.offset].strip()

    def _operand(self, kind: type[Op], plain: list[Value], labelled: dict[str, Value]) -> None:
        if self.token.kind != "word":
            plain.append(self.value())
            return
        label = self.advance()
        field = kind.operand_fields.get(label.text)
        if field is None or field.kind != "optional" or label.text in labelled:
            raise BadText(self.here(label), operation=kind.name, problem=f"has no optional operand {label.text!r} here")
        self.expect("=")
        labelled[label.text] = self.value()

    def value(self) -> Value:
        token = self.expect_kind("value", "a value such as %x")
        name = token.text[1:]
        for scope in reversed(self.scopes):
            if name in scope:
                return scope[name]
        raise UnknownValue(self.here(token), name=name)

    def _opens_attributes(self) -> bool:
        """Whether the brace here opens attributes, which stand on its line, rather than a region."""
        after = self.token.offset + 1
        return bool(self.text[after : self.text.find("\n", after)].strip())

    def attributes(self, kind: type[Op], at: Token) -> dict[str, Any]:
        def one() -> tuple[str, Any]:
            key = self.expect_kind("word", "an attribute")
            if key.text not in kind.attribute_fields:
                raise BadText(self.here(key), operation=kind.name, problem=f"has no attribute {key.text!r}")
            self.expect("=")
            return key.text, self.attribute_value()

        return dict(self.separated(one, "}"))

    def attributes_of_results(self, kind: type[Op], attributes: dict[str, Any], types: list[TileType]) -> None:
        """Attributes that say what stands behind the colon."""
        single, several = RESULT_TYPE_ATTRIBUTES
        if single in kind.attribute_fields and len(types) == 1:
            attributes[single] = types[0]
        if several in kind.attribute_fields:
            attributes[several] = tuple(types)

    def types(self) -> list[TileType]:
        self.expect(":")
        types = [self.tile_type()]
        while self.accept(","):
            types.append(self.tile_type())
        return types

    def build(
        self,
        kind: type[Op],
        operands: list[Any],
        attributes: dict[str, Any],
        regions: list[Block],
        location: Location,
        at: Token,
    ) -> Op:
        missing = [k for k, f in kind.attribute_fields.items() if f.default is REQUIRED and k not in attributes]
        if missing:
            raise BadText(self.here(at), operation=kind.name, problem=f"needs attribute {missing[0]!r}")
        try:
            return kind(operands, attributes, regions, location)
        except _BUILD_FAILURES as error:
            # `infer` may assume what `verify` guarantees, so any of these says that the operands do not fit.
            problem = f"its operands do not fit ({type(error).__name__}: {error})"
            raise BadText(self.here(at), operation=kind.name, problem=problem) from None

    def check_results(self, op: Op, results: list[Token], types: list[TileType], at: Token) -> None:
        inferred = [value.type for value in op.results]
        if len(results) != len(inferred):
            problem = f"has {len(inferred)} results, {len(results)} named"
            raise BadText(self.here(at), operation=op.name, problem=problem)
        if types != inferred:
            given, actual = (", ".join(map(str, t)) for t in (types, inferred))
            raise BadText(self.here(at), operation=op.name, problem=f"gives {actual}, not {given}")

    # -- types and attribute values ------------------------------------------------------------------------------------

    def tile_type(self) -> TileType:
        if self.accept("tile"):
            self.expect("<")
            sizes = []
            while self.token.kind == "shape":
                sizes.append(int(self.advance().text[:-1]))
            type = TileType(self.element(), tuple(sizes))
            self.expect(">")
            return type
        return TileType(self.element())

    def element(self) -> DType | PointerType:
        if self.accept("ptr"):
            self.expect("<")
            pointee = self.dtype()
            self.expect(">")
            return PointerType(pointee)
        return self.dtype()

    def dtype(self) -> DType:
        if self.token.text not in _DTYPES:
            self.fail("an element type")
        return _DTYPES[self.advance().text]

    def attribute_value(self) -> Any:
        token = self.token
        match token.kind:
            case "integer":
                return self.integer()
            case "float":
                return float(self.advance().text)
            case "nan":
                bits = int(self.advance().text[6:-1], 16)
                return struct.unpack("<d", struct.pack("<Q", bits))[0]
            case "string":
                return self.quoted()
            case "word":
                return self._word_value()
            case "mark" if token.text == "[":
                self.advance()
                self._nested += 1
                if self._nested > MOST_NESTED:
                    raise SyntaxProblem(
                        self.here(token), expected="a value", found=f"lists more than {MOST_NESTED} deep"
                    )
                values = tuple(self.separated(self.attribute_value, "]"))
                self._nested -= 1
                return values
        return self.fail("an attribute value")

    def _word_value(self) -> Any:
        constants = {"true": True, "false": False, "none": None, "nan": math.nan, "inf": math.inf}
        if self.token.text in constants:
            return constants[self.advance().text]
        if self.token.text == "tile":
            return self.tile_type()
        return self.element()

    # -- locations -----------------------------------------------------------------------------------------------------

    def location(self) -> Location | None:
        """`loc(...)` if it stands here."""
        if not self.accept("loc"):
            return None
        self.expect("(")
        chain = [self.one_location()]
        while self.accept("from"):
            chain.append(self.one_location())
        self.expect(")")
        location: Location | None = None
        for at in reversed(chain):
            location = Location(at.file, at.line, at.column, at.end_column, at.function, location)
        return location or UNKNOWN

    def one_location(self) -> Location:
        file = self.quoted()
        line, column, end_column = self.number(), self.number(), self.number()
        function = self.quoted() if self.token.kind == "string" else ""
        return Location(file, line, column, end_column, function)

    def number(self) -> int:
        self.expect(":")
        return self.integer()

    def quoted(self) -> str:
        """A text in quotes."""
        token = self.expect_kind("string", "a text in quotes")
        try:
            return str(json.loads(token.text))
        except json.JSONDecodeError as error:
            raise SyntaxProblem(
                self.here(token), expected="a text in quotes", found=f"a mistake in one: {error.msg}"
            ) from None

    def integer(self) -> int:
        """A whole number of no more than 64 bits' digits."""
        token = self.expect_kind("integer", "a number")
        if len(token.text) > MOST_DIGITS:
            raise SyntaxProblem(self.here(token), expected="a number of 64 bits", found=f"{len(token.text)} digits")
        return int(token.text)
