"""Triton IR text to plain operations.

One grammar reads the custom forms of all operations: values, words, brackets, attributes, `: types`, regions, in the
order in which they stand. What an operation may have is checked where its meaning is known, see `rows`.
"""

from __future__ import annotations

import re
from typing import Any, Final

from loom_core.importers.ttir.attributes import AttributeReader
from loom_core.importers.ttir.locations import Locations
from loom_core.importers.ttir.scanner import Scanner
from loom_core.importers.ttir.syntax import IrBlock, IrFunction, IrType, Operation, Raw, Successor
from loom_core.importers.ttir.types import TypeReader

_VALUE: Final = re.compile(r"%[\w$.-]+(?:#\d+)?")
_RESULT: Final = re.compile(r"(%[\w$.-]+)(?::(\d{1,4}))?")
_OP_NAME: Final = re.compile(r"[A-Za-z_][\w$]*(?:\.[\w$]+)*")
_WORD: Final = re.compile(r"[A-Za-z_][\w$]*(?:::\w+)*")
_SYMBOL: Final = re.compile(r'@(?:[\w$.-]+|"[^"\n]*")')
_LABEL: Final = re.compile(r"\^[\w$.-]+")
_INTEGER: Final = re.compile(r"-?\d+")
_ALIAS: Final = re.compile(r"[#!][A-Za-z_][\w$.]*(?=[ \t]*=)")
_UNTIL_LINE_END: Final = re.compile(r"[^\n]*")
_ATTRIBUTES_AHEAD: Final = re.compile(r'\{[ \t]*(?:\}|(?:[A-Za-z_][\w$.]*|"[^"\n]*")[ \t]*[=,}])')
_LITERAL_AHEAD: Final = re.compile(r"-|\d|0x|dense\b|sparse\b|true\b|false\b|array\b|#|!|unit\b")
_CASES_AHEAD: Final = re.compile(r"\[[ \t\r\n]*default\b")
_NEXT_CASE: Final = re.compile(r"(?:case|default)\b")
_CASES_NEXT: Final = re.compile(r",[ \t]*\[")
_DEFAULT: Final = re.compile(r"default\b")
_FUNCTION: Final = ("tt.func", "func.func")


class IrModule:
    """A parsed module: its functions by name, what resolves locations, and its attributes."""

    def __init__(self, functions: dict[str, IrFunction], locations: Locations, attributes: dict[str, Any]) -> None:
        self.functions = functions
        self.locations = locations
        self.attributes = attributes

    @property
    def kernels(self) -> list[str]:
        """The names of the public functions that have a body."""
        return [name for name, function in self.functions.items() if function.public and function.blocks]


def parse_module(text: str, file: str) -> IrModule:
    """The module in `text`; `file` names it in diagnostics. MalformedTritonIr for anything else."""
    return _Parser(text, file).module()


class _Parser:
    def __init__(self, text: str, file: str) -> None:
        self.scanner = Scanner(text, file)
        self.types = TypeReader(self.scanner)
        self.attributes = AttributeReader(self.scanner, self.types)
        self.locations: dict[str, tuple[str, Any]] = {}
        self.functions: dict[str, IrFunction] = {}
        self.module_attributes: dict[str, Any] = {}

    # ---- the module ----

    def module(self) -> IrModule:
        scanner = self.scanner
        while not scanner.at_end():
            if scanner.ahead(_ALIAS):
                self._alias()
            elif scanner.match(re.compile(r"module\b")):
                self._module_body()
            else:
                self._function()
        if not self.functions:
            scanner.fail("there is no function in it")
        return IrModule(self.functions, Locations(self.locations), self.module_attributes)

    def _alias(self) -> None:
        """`#loc1 = loc(...)`, `#blocked = #ttg.blocked<...>`, `!t = tensor<...>`."""
        scanner = self.scanner
        name = scanner.need(_ALIAS, "an alias")
        where = scanner.position()
        scanner.expect("=")
        if name.startswith("!"):
            self.types.aliases[name] = self.types.read()
        elif scanner.accept("loc"):
            self.locations[name] = (scanner.balanced()[1:-1], where)
        else:
            value = self.attributes.aliases[name] = self.attributes.value()
            if isinstance(value, Raw):
                self.types.layouts[name] = value.text

    def _module_body(self) -> None:
        scanner = self.scanner
        scanner.match(_SYMBOL)
        if scanner.match(re.compile(r"attributes\b")):
            self.module_attributes.update(self.attributes.dictionary())
        scanner.expect("{")
        while not scanner.accept("}"):
            if scanner.looking_at("#") or scanner.looking_at("!"):
                self._alias()
            else:
                self._function()
        self._location()

    def _function(self) -> None:
        scanner = self.scanner
        position = scanner.position()
        name = scanner.need(_OP_NAME, "a function")
        if name not in _FUNCTION:
            scanner.fail(f"{name} stands where a function is expected", scanner.offset - len(name))
        visibility = scanner.match(re.compile(r"(?:public|private|nested)\b"))
        symbol = scanner.need(_SYMBOL, "the function's name")[1:].strip('"')
        if symbol in self.functions:
            scanner.fail(f"a second function is called {symbol}")
        op = Operation(name, position)
        arguments, hints = self._parameters()
        results = self._results_of_signature() if scanner.accept("->") else []
        if scanner.match(re.compile(r"attributes\b")):
            op.attributes.update(self.attributes.dictionary())
        blocks = self._region(arguments) if scanner.looking_at("{") else []
        op.location = self._location()
        public = visibility is None or visibility.group() == "public"
        self.functions[symbol] = IrFunction(symbol, arguments, results, blocks, public, op, hints)

    def _parameters(self) -> tuple[list[tuple[str, IrType]], list[dict[str, Any]]]:
        scanner = self.scanner
        found: list[tuple[str, IrType]] = []
        hints: list[dict[str, Any]] = []
        scanner.expect("(")
        while not scanner.accept(")"):
            if found:
                scanner.expect(",")
            found.append(self._typed_value())
            hints.append(self.attributes.dictionary() if scanner.looking_at("{") else {})
            self._location()
        return found, hints

    def _typed_value(self) -> tuple[str, IrType]:
        name = self.scanner.need(_VALUE, "a value")
        self.scanner.expect(":")
        return name, self.types.read()

    def _results_of_signature(self) -> list[IrType]:
        scanner = self.scanner
        if not scanner.accept("("):
            return [self.types.read()]
        found: list[IrType] = []
        while not scanner.accept(")"):
            if found:
                scanner.expect(",")
            found.append(self.types.read())
            if scanner.looking_at("{"):
                self.attributes.dictionary()
        return found

    # ---- blocks ----

    def _region(self, arguments: list[tuple[str, IrType]] | None = None) -> list[IrBlock]:
        """`{ operations ^label(...): operations }`; `arguments` are those of the first block, where it has no label."""
        scanner = self.scanner
        with scanner.nested():
            scanner.expect("{")
            blocks = [IrBlock("", list(arguments or ()))]
            while not scanner.accept("}"):
                if scanner.looking_at("^"):
                    block = self._label()
                    if len(blocks) == 1 and not blocks[0].operations and not arguments:
                        blocks[0] = block
                    else:
                        blocks.append(block)
                else:
                    blocks[-1].operations.append(self._operation())
            return blocks

    def _label(self) -> IrBlock:
        scanner = self.scanner
        label = scanner.need(_LABEL, "a label")
        arguments: list[tuple[str, IrType]] = []
        if scanner.accept("("):
            while not scanner.accept(")"):
                if arguments:
                    scanner.expect(",")
                arguments.append(self._typed_value())
                self._location()
        scanner.expect(":")
        return IrBlock(label, arguments)

    # ---- operations ----

    def _operation(self) -> Operation:
        scanner = self.scanner
        position = scanner.position()
        results = self._result_names() if scanner.looking_at("%") else []
        if scanner.looking_at('"'):
            op = Operation(scanner.string(), position, results)
        else:
            op = Operation(scanner.need(_OP_NAME, "an operation"), position, results)
        self._items(op)
        if op.location is None:
            op.location = self._location()
        return op

    def _result_names(self) -> list[str]:
        scanner = self.scanner
        names: list[str] = []
        while True:
            found = scanner.match(_RESULT)
            if found is None:
                scanner.fail(f"a result is missing before {scanner.here()}")
            name, count = found.groups()
            names += [name] if count is None else [f"{name}#{i}" for i in range(int(count))]
            if not scanner.accept(","):
                break
        scanner.expect("=")
        return names

    def _items(self, op: Operation) -> None:
        """Everything of an operation after its name, up to its location or the end of its line."""
        scanner = self.scanner
        while True:
            ended = scanner.skip() and not (op.name == "scf.index_switch" and scanner.ahead(_NEXT_CASE))
            if ended or scanner.offset >= len(scanner.text):
                return
            character = scanner.text[scanner.offset]
            if character == "}":
                return
            if character == "%":
                self._value(op)
            elif character == ",":
                scanner.offset += 1
            elif character == "^":
                op.successors.append(self._successor())
            elif character == "@":
                self._add_word(op, scanner.need(_SYMBOL, "a name"))
            elif character == '"':
                self._add_word(op, scanner.string())
            elif character == "[":
                if scanner.ahead(_CASES_AHEAD):
                    self._cases(op)
                else:
                    op.lists.append(self._list())
            elif character == "(":
                self._parenthesised(op)
            elif scanner.accept("<{"):
                op.attributes.update(self.attributes.entries("}"))
                scanner.expect(">")
            elif character == "{":
                if scanner.ahead(_ATTRIBUTES_AHEAD):
                    op.attributes.update(self.attributes.dictionary())
                else:
                    op.regions.append(self._region())
            elif character == ":" and not scanner.looking_at("::"):
                scanner.offset += 1
                self._types(op)
            elif scanner.accept("->"):
                op.result_types += self._type_list()
            elif scanner.ahead(_LITERAL_AHEAD):
                op.literals.append(self.attributes.value(typed=False))
            elif scanner.looking_at("loc("):
                op.location = self._location()
                return
            else:
                self._word(op)

    def _value(self, op: Operation) -> None:
        """An operand, or `%i = %lower`."""
        name = self.scanner.need(_VALUE, "a value")
        if self.scanner.accept("="):
            op.bindings.append((name, self.scanner.need(_VALUE, "a value")))
        else:
            op.operands.append(name)

    def _word(self, op: Operation) -> None:
        """A bare word; `name = value` is an attribute, `fastmath<fast>` one with its brackets."""
        scanner = self.scanner
        word = scanner.need(_WORD, "an operand, attribute or type")
        if scanner.accept("="):
            op.attributes[word] = self.attributes.value(typed=False)
        elif scanner.adjacent("<"):
            op.attributes[word] = scanner.balanced()[1:-1]
        else:
            self._add_word(op, word)

    def _add_word(self, op: Operation, word: str) -> None:
        op.words.append(word)
        op.word_places.append(len(op.operands))

    def _successor(self) -> Successor:
        scanner = self.scanner
        label = scanner.need(_LABEL, "a label")
        arguments: list[str] = []
        if scanner.accept("("):
            while scanner.looking_at("%"):
                arguments.append(scanner.need(_VALUE, "a value"))
                scanner.accept(",")
            scanner.expect(":")
            self._type_list()
            scanner.expect(")")
        return Successor(label, arguments)

    def _cases(self, op: Operation) -> None:
        """`[default: ^a(%x : i32), 42: ^b]`; the default comes last among the successors."""
        scanner = self.scanner
        scanner.expect("[")
        scanner.need(_DEFAULT, "default")
        scanner.expect(":")
        default = self._successor()
        while scanner.accept(","):
            op.literals.append(int(scanner.need(_INTEGER, "a case")))
            scanner.expect(":")
            op.successors.append(self._successor())
        scanner.expect("]")
        op.successors.append(default)

    def _list(self) -> list[str | int]:
        scanner = self.scanner
        found: list[str | int] = []
        scanner.expect("[")
        while not scanner.accept("]"):
            if found:
                scanner.expect(",")
            value = scanner.match(_VALUE)
            found.append(value.group() if value is not None else int(scanner.need(_INTEGER, "a value")))
        return found

    def _parenthesised(self, op: Operation) -> None:
        """`(%a, %b)` operands, `(%a = %b)` what a loop carries, `({ ... }, { ... })` regions."""
        scanner = self.scanner
        scanner.expect("(")
        if scanner.looking_at("{"):
            op.regions.append(self._region())
            while scanner.accept(","):
                op.regions.append(self._region())
            scanner.expect(")")
            return
        first = True
        while not scanner.accept(")"):
            if not first:
                scanner.expect(",")
            first = False
            self._value(op)

    def _types(self, op: Operation) -> None:
        """What follows a colon: `A, B`, `A * B -> C`, `A to B`, `(A, B) -> C`; a print has `: %a, %b : A, B`."""
        if self.scanner.looking_at("%"):
            return
        op.types += self._type_list()
        if self.scanner.match(re.compile(r"to\b")):
            op.result_types += self._type_list()

    def _type_list(self) -> list[IrType]:
        scanner = self.scanner
        if scanner.accept("("):
            found: list[IrType] = []
            while not scanner.accept(")"):
                if found:
                    scanner.expect(",")
                found.append(self.types.read())
            return found
        found = [self.types.read()]
        while not scanner.ahead(_CASES_NEXT) and (scanner.accept(",") or scanner.accept("*")):
            found.append(self.types.read())
        return found

    def _location(self) -> str | None:
        """The text inside `loc(...)`, where one follows."""
        scanner = self.scanner
        if not scanner.looking_at("loc("):
            return None
        scanner.accept("loc")
        return scanner.balanced()[1:-1]
