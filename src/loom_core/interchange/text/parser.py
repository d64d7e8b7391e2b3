"""The parser of the text form."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NoReturn

from loom_core.interchange.attributes import Encoding
from loom_core.interchange.declaration import OpDeclaration, RegionField
from loom_core.interchange.inference import infer_result_type
from loom_core.interchange.locations import FileLocation
from loom_core.interchange.model import (
    MAX_REGION_DEPTH,
    VALUE_BLOCK_ARGUMENT,
    Block,
    Module,
    Operation,
    Region,
    TiedResult,
    Value,
    symbol_from_operation,
)
from loom_core.interchange.text.attribute_parser import AttributeParser
from loom_core.interchange.text.location_parser import read_location
from loom_core.interchange.text.op_reader import Argument, OpReader, Scope, counted
from loom_core.interchange.text.tokenizer import ParseError, Tokenizer, TokenKind
from loom_core.interchange.types import NONE_TYPE, Type


class Parser:
    """Parses modules of registered operations; ParseError for a text that is none."""

    def __init__(self) -> None:
        self.declarations: dict[str, OpDeclaration] = {}

    def register_ops(self, ops: Iterable[OpDeclaration]) -> None:
        self.declarations.update((op.name, op) for op in ops)

    def register_types(self, types: Iterable[Any]) -> None:
        """Types are read by their structure; there is nothing to register."""

    def register_parameterized_attrs(self, attributes: Iterable[Any]) -> None:
        """Parameterized attributes are read by their structure; there is nothing to register."""

    def register_encodings(self, encodings: Iterable[Any]) -> None:
        """Encodings are read by their structure; there is nothing to register."""

    def parse(self, source: str, filename: str = "<input>", *, verify: bool = False) -> Module:
        """The module of a text. With `verify`, LoomDiagnosticError if it breaks a declared rule."""
        module = ModuleParser(self.declarations, source, filename).module_text()
        if verify:
            from loom_core.interchange.verifier import verify_module

            verify_module(module, ops=self.declarations.values()).raise_if_errors()
        return module


def parse_operation_from_text(
    source: str, ops: Iterable[OpDeclaration], filename: str = "<input>"
) -> tuple[Module, Operation]:
    """A single operation that uses no value from outside, and a module with its values."""
    parser = ModuleParser({op.name: op for op in ops}, source, filename)
    return parser.module, parser.single_operation()


def parse_type_string(text: str) -> Type:
    """The type that a text spells; it may refer to no values. ParseError if it is none."""
    parser = ModuleParser({}, text, "<type>")
    found = parser.type()
    if parser.kind() is not TokenKind.END:
        parser.refuse("a type ends here")
    return found


class ModuleParser(AttributeParser):
    """State of parsing one text."""

    def __init__(self, declarations: dict[str, OpDeclaration], source: str, filename: str) -> None:
        super().__init__(Tokenizer(source, filename), Module())
        self.declarations = declarations
        self.source_id = 0
        self.module.sources.append(filename)
        self.scopes: list[Scope] = [{}]
        self.labels: list[dict[str, Block]] = []
        self.depth = 0

    # ---- values ----

    def lookup(self, name: str) -> int | None:
        for scope in reversed(self.scopes):
            found = scope.get(name)
            if found is not None:
                return found
        return None

    def define(self, name: str, type: Type, at: int, flags: int = 0) -> int:
        """A new value in the innermost scope; `at` is the position of its name's token."""
        scope = self.scopes[-1]
        if name and name in scope:
            self.refuse_at(at, f"%{name} is already defined here", "PARSE/002", "give the second value another name")
        value = self.module.add_value(Value(name, type, flags))
        if name:
            scope[name] = value
        return value

    # ---- modules and operations ----

    def module_text(self) -> Module:
        self._header()
        while self.kind() is TokenKind.HASH:
            self._alias()
        ops = self.module.body.ops
        while self.kind() is not TokenKind.END:
            ops.append(self.operation(None))
        for op in ops:
            decl = self.declarations[op.name]
            if decl.symbol is not None:
                self.module.symbols.append(symbol_from_operation(op, decl))
        return self.module

    def _header(self) -> None:
        trivia = self.tokenizer.trivia.get(0)
        if trivia is None:
            return
        # Comments that a blank line or an alias separates from the first operation are the file's own.
        own = len(trivia.comments) if self.kind() in (TokenKind.HASH, TokenKind.END) else max(trivia.header, 0)
        self.module.file_header = tuple(trivia.comments[:own])
        del trivia.comments[:own]
        trivia.blank = False

    def _alias(self) -> None:
        name = self.take().text
        at = self.i - 1
        if any(encoding.alias == name for encoding in self.module.encodings):
            self.refuse_at(at, f"#{name} is already defined", "PARSE/002")
        self.expect("=")
        if self.kind() is not TokenKind.HASH:
            self.refuse("an encoding is expected here", "PARSE/008")
        family, params = self.encoding_body()
        self.module.encodings.append(Encoding(family, params, name))
        following = self.tokenizer.trivia.get(self.i)
        if following is not None and self.kind() is TokenKind.HASH:
            self.module.file_header += tuple(following.comments)
        elif following is not None:
            following.blank = False

    def single_operation(self) -> Operation:
        op = self.operation(None)
        if self.kind() is not TokenKind.END:
            self.refuse("one operation ends here")
        self.module.body.ops.append(op)
        return op

    def operation(self, owner: OpDeclaration | None) -> Operation:
        """An operation; `owner` is the declaration of the one around it."""
        start = self.i
        tokens = self.tokens
        names: list[tuple[str, int]] = []
        if tokens[start].kind is TokenKind.SSA:
            while True:
                if self.kind() is not TokenKind.SSA:
                    self.refuse("the name of a result is expected here")
                names.append((self.take().text, self.i - 1))
                if not self.accept(","):
                    break
            self.expect("=")
        token = tokens[self.i]
        decl = self.declarations.get(token.text) if token.kind is TokenKind.OP_NAME else None
        if decl is None:
            self._unknown_operation(token.kind)
        self.i += 1
        return self._finish(self._read_form(decl), names, start)

    def _read_form(self, decl: OpDeclaration) -> OpReader:
        """What the text after the name of an operation says, in its form or in an older one."""
        start = self.i
        refused: ParseError | None = None
        for form in (decl.form, *decl.older_forms):
            reader = OpReader(self, decl)
            try:
                for element in form:
                    element.read(reader)
                self._check_required(reader, start)
                return reader
            except ParseError as error:
                if not decl.older_forms:
                    raise
                refused = refused or error
                self.i = start
        assert refused is not None
        raise refused

    def _check_required(self, r: OpReader, start: int) -> None:
        for name, field in r.decl.attribute_fields.items():
            if field.required and name not in r.attributes:
                self.refuse_at(start - 1, f"{r.decl.name} needs the attribute {name!r}", "STRUCTURE/003")

    def _unknown_operation(self, kind: TokenKind) -> NoReturn:
        text = self.tokens[self.i].text
        if kind is not TokenKind.OP_NAME:
            self.refuse(f"an operation is expected here, not {self.describe(self.i)}")
        import difflib

        near = difflib.get_close_matches(text, self.declarations, 1)
        self.refuse(f"there is no operation {text!r}", "PARSE/006", f"did you mean {near[0]}?" if near else "")

    def _finish(self, r: OpReader, names: list[tuple[str, int]], start: int) -> Operation:
        decl = r.decl
        operands, segments = _gather_operands(decl, r.operands)
        regions = [region for name in decl.region_fields for region in r.regions_of(name)]
        successors = [block for name in decl.successor_fields for block in r.successors.get(name, ())]
        location = self._location(start)
        results = self._results(r, names, start)
        ties = [TiedResult(index, self._tied_index(r, operands, value)) for index, value in r.tied]
        trivia = self.tokenizer.trivia.get(start)
        comments, blank = (tuple(trivia.comments), trivia.blank) if trivia else ((), False)
        op = Operation(
            0,
            operands,
            segments,
            results,
            ties,
            successors,
            r.attributes,
            regions,
            location,
            comments,
            blank,
            decl.name,
        )
        if location:
            for value in results:
                self.module.values[value].location_id = location
        return op

    def _tied_index(self, r: OpReader, operands: list[int], value: int) -> int:
        candidates = operands if r.decl.symbol is None else r.signature_values()
        if value not in candidates:
            self.refuse("a result is tied to an operand of its operation", back=1)
        return candidates.index(value)

    def _results(self, r: OpReader, names: list[tuple[str, int]], start: int) -> list[int]:
        decl = r.decl
        types: list[Type] = []
        for name, slot in decl.result_fields.items():
            spelled = r.result_types.get(name)
            if spelled is not None:
                types += spelled
            elif slot.kind == "one":
                types.append(self._inferred(r, name, start))
        if decl.symbol is not None:
            if names:
                self.refuse_at(start, f"{decl.name} defines a symbol and has no results", "PARSE/009")
            return r.signature_results(types)
        if len(names) != len(types):
            message = f"{decl.name} has {counted(len(types), 'result')}, {counted(len(names), 'name')} given"
            self.refuse_at(start, message, "PARSE/009")
        return [self.define(name, type, at) for (name, at), type in zip(names, types, strict=True)]

    def _inferred(self, r: OpReader, name: str, start: int) -> Type:
        types = {key: [self.module.values[value].type for value in ids] for key, ids in r.operands.items()}
        found = infer_result_type(r.decl, name, types)
        if found is None:
            self.refuse_at(start, f"the type of the result of {r.decl.name} cannot be told", "PARSE/004")
        return found

    def _location(self, start: int) -> int:
        if self.kind() is TokenKind.IDENTIFIER and self.text() == "loc":
            return read_location(self)
        first = self.tokenizer.location(self.tokens[start].offset)
        last_token = self.tokens[self.i - 1]
        extra = 1 if last_token.kind in (TokenKind.SSA, TokenKind.SYMBOL, TokenKind.LABEL, TokenKind.HASH) else 0
        last = self.tokenizer.location(last_token.offset + len(last_token.text) + extra)
        return self.module.add_location(FileLocation(self.source_id, first.line, first.column, last.line, last.column))

    # ---- regions ----

    def region(self, decl: OpDeclaration, field: RegionField, arguments: list[int] | None, scope: Scope) -> Region:
        """A region in braces. `arguments` are those of its entry where the form gave them."""
        if self.depth >= MAX_REGION_DEPTH:
            self.refuse(f"regions nest more than {MAX_REGION_DEPTH} deep", "PARSE/021")
        self.depth += 1
        outer_scopes, outer_labels = self.scopes, self.labels
        self.scopes = [scope] if decl.isolated else [*outer_scopes, scope]
        self.labels = [{}]
        region = Region()
        self.expect("{")
        self._blocks(region, decl, arguments)
        self.expect("}")
        undefined = [name for name, block in self.labels[-1].items() if not any(block is own for own in region.blocks)]
        if undefined:
            self.refuse_at(self._label_uses[undefined[0]], f"there is no block ^{undefined[0]}", "PARSE/032")
        if field.implicit and region.blocks:
            self._supply_terminator(region.blocks[-1], field)
        self.scopes, self.labels = outer_scopes, outer_labels
        self.depth -= 1
        return region

    def _blocks(self, region: Region, decl: OpDeclaration, arguments: list[int] | None) -> None:
        block: Block | None = None
        while not self.next_is("}"):
            if self.kind() is TokenKind.LABEL:
                block = self._block(region, arguments)
                region.blocks.append(block)
                continue
            if block is None:
                block = Block("", list(arguments or ()))
                region.blocks.append(block)
            block.ops.append(self.operation(decl))
        if block is None:
            region.blocks.append(Block("", list(arguments or ())))

    def _block(self, region: Region, arguments: list[int] | None) -> Block:
        token = self.take()
        at = self.i - 1
        known = self.labels[-1]
        block = known.setdefault(token.text, Block(token.text))
        if any(block is own for own in region.blocks):
            self.refuse_at(at, f"^{token.text} is already defined", "PARSE/033")
        trivia = self.tokenizer.trivia.get(at)
        if trivia is not None:
            block.comments, block.leading_blank_line = tuple(trivia.comments), trivia.blank
        entry = not region.blocks and arguments is not None
        if entry:
            block.arg_ids = list(arguments or ())
        if not entry and self.accept("("):
            pairs: list[Argument] = []
            while self.kind() is TokenKind.SSA:
                name = self.take().text
                place = self.i - 1
                self.expect(":")
                pairs.append((name, place, self.type()))
                if not self.accept(","):
                    break
            self.expect(")")
            block.arg_ids = self.define_arguments(pairs)
        self.expect(":")
        return block

    def define_arguments(self, arguments: list[Argument]) -> list[int]:
        return [self.define(name, type or NONE_TYPE, at, VALUE_BLOCK_ARGUMENT) for name, at, type in arguments]

    def _supply_terminator(self, block: Block, field: RegionField) -> None:
        last = self.declarations.get(block.ops[-1].name) if block.ops else None
        if last is None or not last.terminator:
            block.ops.append(Operation(name=field.terminators[0]))

    def label(self) -> Block:
        if self.kind() is not TokenKind.LABEL:
            self.refuse(f"a block label is expected here, not {self.describe(self.i)}")
        if not self.labels:
            self.refuse("there are no blocks here", "PARSE/032")
        name = self.take().text
        self._label_uses.setdefault(name, self.i - 1)
        return self.labels[-1].setdefault(name, Block(name))


def _gather_operands(decl: OpDeclaration, by_name: dict[str, list[int]]) -> tuple[list[int], tuple[int, ...]]:
    groups = [by_name.get(name, []) for name in decl.operand_names]
    segments = tuple(map(len, groups)) if decl.segmented else ()
    return [value for group in groups for value in group], segments
