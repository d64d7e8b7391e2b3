"""The parser of expressions: precedence climbing over the table of operators."""

from __future__ import annotations

from typing import Final, NoReturn

from loom_core.base.diagnostics import Diagnostic
from tensorloom.diagnostics import (
    BadArguments,
    BadFString,
    ReservedName,
    TensorLoomError,
    TooDeep,
    Unexpected,
)
from tensorloom.lexer import KEYWORDS, Token, lex, text_problem
from tensorloom.operators import BINARY, COMPARE, NEGATE, NOT, OR
from tensorloom.source import Source, Span
from tensorloom.tree import (
    Argument,
    Attribute,
    Binary,
    Call,
    Compare,
    Constant,
    Expr,
    FString,
    ListExpr,
    Name,
    Number,
    Pipe,
    Placeholder,
    Slice,
    String,
    Subscript,
    TupleExpr,
    Unary,
)

_CONSTANTS: Final = {"true": True, "false": False, "none": None}
_MOST_NESTED: Final = 40
_LONGEST_CHAIN: Final = 60
_SHOWN_KINDS: Final = {
    "END": "the end of the file",
    "NEWLINE": "the end of the line",
    "INDENT": "an indented line",
    "DEDENT": "the end of the block",
}


class Skip(Exception):
    """A syntax error has been noted; the parser goes on behind what it cannot read."""


def shown(token: Token) -> str:
    """A token in words."""
    if token.kind in _SHOWN_KINDS:
        return _SHOWN_KINDS[token.kind]
    if token.kind in ("string", "fstring"):
        return "a string"
    return f"`{token.text}`"


class ExpressionParser:
    """Reads expressions from tokens. Raises Skip behind an error that it has put into `diagnostics`."""

    def __init__(self, source: Source, tokens: list[Token], diagnostics: list[Diagnostic]) -> None:
        self.source = source
        self.tokens = tokens
        self.diagnostics = diagnostics
        self.at = 0
        self.token = tokens[0]
        self.kind = self.token.kind
        self.nesting = 0

    # ---- tokens

    def advance(self) -> Token:
        token = self.token
        self.at += 1
        following = self.tokens[self.at] if self.at < len(self.tokens) else self.tokens[-1]
        self.token = following
        self.kind = following.kind
        return token

    def take(self, kind: str) -> bool:
        """Pass over the next token if it is of this kind."""
        if self.kind != kind:
            return False
        self.advance()
        return True

    def expect(self, kind: str, expected: str = "") -> Token:
        if self.kind != kind:
            self.fail(Unexpected, self.token.span, found=shown(self.token), expected=expected or f"`{kind}`")
        return self.advance()

    def expect_name(self, what: str) -> Token:
        if self.kind in KEYWORDS:
            self.fail(ReservedName, self.token.span, word=self.token.text, what=what)
        return self.expect("name", f"the name of {what}")

    def expect_word(self, what: str) -> Token:
        """A name where keywords are names too: behind a dot, before `=` in a call, in the path of an import."""
        return self.advance() if self.kind in KEYWORDS else self.expect("name", f"the name of {what}")

    def peek(self, distance: int = 1) -> str:
        at = self.at + distance
        return self.tokens[at].kind if at < len(self.tokens) else "END"

    def span_from(self, start: int) -> Span:
        return Span(start, self.tokens[self.at - 1].end)

    def note(self, kind: type[TensorLoomError], span: Span, **fields: object) -> None:
        self.diagnostics.append(kind.diagnostic(self.source.location(span), **fields))  # type: ignore[arg-type]

    def fail(self, kind: type[TensorLoomError], span: Span, **fields: object) -> NoReturn:
        self.note(kind, span, **fields)
        raise Skip

    # ---- expressions

    def expression(self) -> Expr:
        """A whole expression: pipes bind weakest."""
        start = self.token.start
        value = self.binary(OR)
        length = 0
        while self.kind == "|>":
            self.advance()
            length += 1
            if length > _LONGEST_CHAIN:
                self.fail(TooDeep, self.token.span)
            value = self.stage(value, start)
        return value

    def stage(self, value: Expr, start: int) -> Pipe:
        first = self.token
        if self.kind == "self":
            function: Expr = Name(self.advance().span, "self")
        else:
            token = self.expect("name", "a function or layer")
            function = Name(token.span, token.text)
        while self.kind == ".":
            function = self.attribute(function, first.start)
        arguments = self.arguments() if self.kind == "(" else []
        return Pipe(self.span_from(start), value, function, arguments, self.span_from(first.start))

    def expressions(self) -> Expr:
        """One expression, or several with commas: a tuple."""
        start = self.token.start
        value = self.expression()
        if self.kind != ",":
            return value
        items = [value]
        while self.take(","):
            if self.kind in ("NEWLINE", "END", ")", "=", ":"):
                break
            items.append(self.expression())
        return TupleExpr(self.span_from(start), items)

    def binary(self, level: int) -> Expr:
        """Operators of the given precedence and above."""
        start = self.token.start
        kind = self.kind
        if kind == "-" or kind == "+":
            left: Expr = self.prefix(NEGATE)
        elif kind == "not" and level <= NOT:
            left = self.prefix(NOT)
        else:
            left = self.power()
        length = 0
        while (operator := BINARY.get(self.kind)) is not None and operator.precedence >= level:
            length += 1
            if length > _LONGEST_CHAIN:
                self.fail(TooDeep, self.token.span)
            if operator.precedence == COMPARE:
                left = self.comparison(left, start)
            else:
                self.advance()
                right = self.binary(operator.precedence + 1)
                left = Binary(self.span_from(start), left, operator.text, right)
        return left

    def comparison(self, first: Expr, start: int) -> Compare:
        operators: list[str] = []
        operands: list[Expr] = []
        while (operator := BINARY.get(self.kind)) is not None and operator.precedence == COMPARE:
            operators.append(self.advance().text)
            operands.append(self.binary(COMPARE + 1))
        return Compare(self.span_from(start), first, operators, operands)

    def prefix(self, level: int) -> Unary:
        with_sign = self.advance()
        self.enter()
        operand = self.binary(level)
        self.nesting -= 1
        return Unary(self.span_from(with_sign.start), with_sign.text, operand)

    def power(self) -> Expr:
        start = self.token.start
        base = self.postfix()
        if self.kind != "**":
            return base
        self.advance()
        self.enter()
        exponent = self.binary(NEGATE)
        self.nesting -= 1
        return Binary(self.span_from(start), base, "**", exponent)

    def enter(self) -> None:
        self.nesting += 1
        if self.nesting > _MOST_NESTED:
            self.nesting = 0
            self.fail(TooDeep, self.token.span)

    def postfix(self) -> Expr:
        start = self.token.start
        value = self.primary()
        length = 0
        while (kind := self.kind) in (".", "(", "["):
            length += 1
            if length > _LONGEST_CHAIN:
                self.fail(TooDeep, self.token.span)
            if kind == ".":
                value = self.attribute(value, start)
            elif kind == "(":
                arguments = self.arguments()
                value = Call(self.span_from(start), value, arguments)
            else:
                self.advance()
                self.enter()
                index = self.index()
                self.nesting -= 1
                self.expect("]")
                value = Subscript(self.span_from(start), value, index)
        return value

    def attribute(self, value: Expr, start: int) -> Attribute:
        self.expect(".")
        name = self.expect_word("a member")
        return Attribute(self.span_from(start), value, name.text, name.span)

    def index(self) -> Expr:
        start = self.token.start
        items = [self.index_item()]
        while self.take(","):
            if self.kind == "]":
                break
            items.append(self.index_item())
        return items[0] if len(items) == 1 else TupleExpr(self.span_from(start), items)

    def index_item(self) -> Expr:
        start = self.token.start
        parts: list[Expr | None] = [None]
        while self.kind not in ("]", ",") and len(parts) <= 3:
            if self.take(":"):
                parts.append(None)
            elif parts[-1] is None:
                parts[-1] = self.expression()
            else:
                break
        if len(parts) == 1:
            if parts[0] is None:
                self.fail(Unexpected, self.token.span, found=shown(self.token), expected="an index")
            return parts[0]
        if len(parts) > 3:
            self.fail(Unexpected, self.token.span, found=shown(self.token), expected="`]`")
        first, stop, step = (*parts, None)[:3]
        return Slice(self.span_from(start), first, stop, step)

    def arguments(self) -> list[Argument]:
        self.expect("(")
        self.enter()
        found: list[Argument] = []
        while self.kind != ")":
            found.append(self.argument(bool(found) and bool(found[-1].name)))
            if not self.take(","):
                break
        self.nesting -= 1
        self.expect(")", "`,` or `)`")
        return found

    def argument(self, after_named: bool) -> Argument:
        start = self.token.start
        name = ""
        if self.peek() == "=" and (self.kind == "name" or self.kind in KEYWORDS):
            name = self.advance().text
            self.advance()
        value = self.expression()
        if after_named and not name:
            self.note(BadArguments, value.span)
        return Argument(self.span_from(start), name, value)

    def primary(self) -> Expr:
        kind, token = self.kind, self.token
        if kind == "name" or kind == "self":
            self.advance()
            return Name(token.span, token.text)
        if kind == "int":
            self.advance()
            return Number(token.span, token.text, int(token.text))
        if kind == "float":
            self.advance()
            return Number(token.span, token.text, float(token.text))
        if kind == "(":
            return self.parenthesized()
        if kind == "[":
            return self.list_literal()
        if kind == "string":
            self.advance()
            return String(token.span, token.text)
        if kind == "fstring":
            self.advance()
            return FString(token.span, self.placeholders(token))
        if kind in _CONSTANTS:
            self.advance()
            return Constant(token.span, _CONSTANTS[kind])
        if kind in KEYWORDS:
            self.fail(ReservedName, token.span, word=token.text, what="a value")
        return self.fail(Unexpected, token.span, found=shown(token), expected="an expression")

    def parenthesized(self) -> Expr:
        start = self.advance().start
        self.enter()
        inner = self.expressions()
        self.nesting -= 1
        self.expect(")")
        if isinstance(inner, TupleExpr):
            inner.span = self.span_from(start)
        return inner

    def list_literal(self) -> ListExpr:
        start = self.advance().start
        self.enter()
        items: list[Expr] = []
        while self.kind != "]":
            items.append(self.expression())
            if not self.take(","):
                break
        self.nesting -= 1
        self.expect("]", "`,` or `]`")
        return ListExpr(self.span_from(start), items)

    # ---- f-strings

    def placeholders(self, token: Token) -> list[str | Placeholder]:
        """The parts of an f-string: text as written, and placeholders."""
        text, base = token.text, token.end - 1 - len(token.text)
        parts: list[str | Placeholder] = []
        literal, i = "", 0
        while i < len(text):
            letter = text[i]
            if letter in "{}" and text.startswith(letter * 2, i):
                literal += letter * 2
                i += 2
            elif letter == "}":
                self.fail(BadFString, Span(base + i, base + i + 1), reason="a } has no {")
            elif letter == "{":
                if literal:
                    parts.append(literal)
                    literal = ""
                i = self.placeholder(text, i + 1, base, parts)
            else:
                step = 2 if letter == "\\" else 1
                literal += text[i : i + step]
                i += step
        if literal:
            parts.append(literal)
        for part in parts:
            if isinstance(part, str) and (reason := text_problem(part)) is not None:
                self.fail(BadFString, token.span, reason=reason)
        return parts

    def placeholder(self, text: str, start: int, base: int, parts: list[str | Placeholder]) -> int:
        """Read `{...}` whose inside starts at `start`; gives where it ends."""
        inner, end = self.lex_inside(start, base, len(text))
        value = inner.expression()
        i = inner.token.start - base if inner.kind != "END" else len(text)
        conversion = spec = ""
        if text.startswith("!", i) and text[i + 1 : i + 2] in ("r", "s", "a"):
            conversion, i = text[i + 1], i + 2
        if text.startswith(":", i):
            close = text.find("}", i)
            spec, i = text[i + 1 : close], close
        if i < 0 or not text.startswith("}", i):
            self.fail(BadFString, Span(base + start, end), reason="a placeholder is {value} or {value:format}")
        if "{" in spec or "\\" in spec or '"' in spec or "'" in spec:
            self.fail(BadFString, Span(base + start, base + i), reason="a format is plain text")
        parts.append(Placeholder(Span(base + start, base + i), value, conversion, spec))
        return i + 1

    def lex_inside(self, start: int, base: int, length: int) -> tuple[ExpressionParser, int]:
        """A parser of the expression that starts inside an f-string. Tokens behind it do not matter."""
        end = base + length
        tokens = [*_tokens_up_to_format(self.source, base + start, end), Token("END", "", end, end)]
        inner = ExpressionParser(self.source, tokens, self.diagnostics)
        inner.nesting = self.nesting + 1
        return inner, end


def _tokens_up_to_format(source: Source, start: int, end: int) -> list[Token]:
    """The tokens of a placeholder up to the `}`, `:` or `!` that ends its expression, and that token."""
    depth = 0
    stop = start
    while stop < end:
        letter = source.text[stop]
        if letter == '"':
            stop = max(source.text.find('"', stop + 1, end), stop)
        elif letter in "([":
            depth += 1
        elif letter in ")]":
            depth -= 1
        elif depth <= 0 and (letter in "}:" or (letter == "!" and not source.text.startswith("!=", stop))):
            break
        stop += 1
    tokens = lex(source, start, stop).tokens[:-1]
    return [*tokens, Token("end of placeholder", source.text[stop : stop + 1], stop, stop + 1)]
