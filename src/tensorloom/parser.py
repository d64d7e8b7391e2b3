"""The parser of statements. After an error it goes on with the next line, so that a run reports all of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final, NamedTuple, TypeVar

from loom_core.base.diagnostics import Diagnostic
from loom_core.base.location import Location
from tensorloom.diagnostics import (
    BadTarget,
    EmptyBlock,
    Misplaced,
    Repeated,
    TooDeep,
    TooMany,
    TwoStatements,
    Unexpected,
    UnexpectedIndent,
)
from tensorloom.expressions import ExpressionParser, Skip, shown
from tensorloom.lexer import Token, lex
from tensorloom.source import Source, Span
from tensorloom.tree import (
    Assign,
    Attribute,
    Entry,
    Every,
    Expr,
    ExprStmt,
    For,
    Function,
    If,
    Import,
    Jump,
    Kernel,
    KernelParameter,
    Let,
    Model,
    Name,
    Parameter,
    Program,
    Return,
    Stmt,
    Subscript,
    Train,
    TupleExpr,
    Type,
    While,
)

Item = TypeVar("Item")
_MOST_DIAGNOSTICS: Final = 20
_DEEPEST_BLOCK: Final = 16
"""Python's own limit is 20 blocks, of which a method uses some."""
_TOP_LEVEL: Final = {"model": "a model", "import": "an import", "train": "a train block", "@": "this definition"}


class Parsed(NamedTuple):
    """`comments`: the spans of all comments, in order."""

    source: Source
    program: Program
    comments: list[Span]
    diagnostics: list[Diagnostic]


def parse(source: Source) -> Parsed:
    """The tree of a source, with everything that is wrong with its characters and its syntax."""
    lexed = lex(source)
    diagnostics = list(lexed.diagnostics)
    program = _Parser(source, lexed.tokens, diagnostics).program()
    diagnostics = sorted(dict.fromkeys(diagnostics), key=lambda d: (d.location.line, d.location.column))
    if len(diagnostics) > _MOST_DIAGNOSTICS:
        last = TooMany.diagnostic(Location(source.file))
        diagnostics = [*diagnostics[:_MOST_DIAGNOSTICS], last]
    return Parsed(source, program, lexed.comments, diagnostics)


class _Parser(ExpressionParser):
    def __init__(self, source: Source, tokens: list[Token], diagnostics: list[Diagnostic]) -> None:
        super().__init__(source, tokens, diagnostics)
        self.blocks = 0
        self.in_function = False
        self.in_loop = False
        self.statements: dict[str, Callable[[], Stmt]] = {
            "import": self.import_,
            "let": self.let,
            "model": self.model,
            "@": self.decorated,
            "train": self.train,
            "fn": self.function,
            "return": self.return_,
            "if": self.if_,
            "for": self.for_,
            "while": self.while_,
        }

    def program(self) -> Program:
        return Program(Span(0, len(self.source.text)), list(self.lines(self.statement)))

    # ---- blocks

    def lines(self, read: Callable[[], Item]) -> Iterator[Item]:
        """Items up to the end of the block, each read by `read`; those with errors are left out."""
        while self.kind not in ("DEDENT", "END"):
            if self.kind == "INDENT":
                self.note(UnexpectedIndent, self.token.span)
                self.skip_block()
                continue
            if self.take("NEWLINE"):
                continue
            at = self.at
            try:
                yield read()
            except Skip:
                self.skip_line(at)

    def skip_line(self, at: int) -> None:
        """Go behind the line on which reading failed, and behind the block that it opens."""
        self.nesting = 0
        while self.kind not in ("NEWLINE", "INDENT", "DEDENT", "END"):
            self.advance()
        self.take("NEWLINE")
        if self.kind == "INDENT":
            self.skip_block()
        elif self.at == at:
            self.advance()

    def skip_block(self) -> None:
        depth = 0
        while self.kind != "END":
            kind = self.advance().kind
            depth += (kind == "INDENT") - (kind == "DEDENT")
            if kind == "DEDENT" and depth <= 0:
                return

    def block(self, what: str, read: Callable[[], Item]) -> list[Item]:
        """`: NEWLINE INDENT items DEDENT`."""
        self.expect(":")
        if self.kind != "NEWLINE":
            self.fail(Unexpected, self.token.span, found=shown(self.token), expected="the end of the line")
        colon = self.tokens[self.at - 1]
        self.advance()
        if not self.take("INDENT"):
            self.fail(EmptyBlock, colon.span, what=what)
        self.blocks += 1
        if self.blocks > _DEEPEST_BLOCK:
            self.blocks = 0
            self.fail(TooDeep, self.token.span)
        items = list(self.lines(read))
        self.blocks = max(0, self.blocks - 1)
        self.take("DEDENT")
        return items

    def body(self, what: str) -> list[Stmt]:
        return self.block(what, self.statement)

    @contextmanager
    def inside(self, *, function: bool | None = None, loop: bool = False) -> Iterator[None]:
        before = self.in_function, self.in_loop
        self.in_function = self.in_function if function is None else function
        self.in_loop = loop
        try:
            yield
        finally:
            self.in_function, self.in_loop = before

    def end_line(self) -> None:
        if self.kind == "END" or self.take("NEWLINE"):
            return
        if self.kind in ("=", ":", ")", "]", ",", ".", "->", ";", "?", "}"):
            self.fail(Unexpected, self.token.span, found=shown(self.token), expected="the end of the line")
        self.fail(TwoStatements, self.token.span, found=shown(self.token))

    # ---- simple statements

    def statement(self) -> Stmt:
        kind = self.kind
        if kind in _TOP_LEVEL and (self.blocks or self.in_function):
            where = "at the top of a file, outside functions and blocks"
            self.fail(Misplaced, self.token.span, what=_TOP_LEVEL[kind], where=where)
        read = self.statements.get(kind)
        if read is not None:
            return read()
        if kind == "name" and self.peek() == "NEWLINE" and self.token.text in ("break", "continue", "pass"):
            return self.jump()
        return self.assignment()

    def jump(self) -> Jump:
        token = self.advance()
        if token.text != "pass" and not self.in_loop:
            self.note(Misplaced, token.span, what=f"`{token.text}`", where="in a loop")
        self.end_line()
        return Jump(token.span, token.text)

    def assignment(self) -> Stmt:
        start = self.token.start
        value = self.expressions()
        if self.kind != "=":
            self.end_line()
            return ExprStmt(value.span, value)
        targets = value.items if isinstance(value, TupleExpr) else [value]
        for target in targets:
            if not isinstance(target, Name | Attribute | Subscript) or (
                isinstance(target, Name) and target.id == "self"
            ):
                self.note(BadTarget, target.span, what="this" if not isinstance(target, Name) else "self")
        self.advance()
        assigned = self.expressions()
        span = self.span_from(start)
        self.end_line()
        return Assign(span, targets, assigned)

    def let(self) -> Let:
        start = self.advance().start
        targets = self.names("a variable")
        declared = self.type() if self.take(":") else None
        self.expect("=")
        value = self.expressions()
        span = self.span_from(start)
        self.end_line()
        return Let(span, targets, declared, value)

    def names(self, what: str) -> list[Name]:
        found = []
        while True:
            token = self.expect_name(what)
            found.append(Name(token.span, token.text))
            if not self.take(","):
                return found

    def return_(self) -> Return:
        token = self.advance()
        if not self.in_function:
            self.note(Misplaced, token.span, what="`return`", where="in a function")
        value = None if self.kind in ("NEWLINE", "END") else self.expressions()
        span = self.span_from(token.start)
        self.end_line()
        return Return(span, value)

    def import_(self) -> Import:
        start = self.advance().start
        path = [self.expect_word("a module").text]
        while self.take("."):
            path.append(self.expect_word("a module").text)
        alias = ""
        if self.kind == "name" and self.token.text == "as":
            self.advance()
            alias = self.expect_name("an import").text
        span = self.span_from(start)
        self.end_line()
        return Import(span, path, alias)

    def type(self) -> Type:
        token = self.token
        if self.kind == "Tensor":
            self.advance()
        else:
            token = self.expect("name", "a type")
        if self.kind != "[":
            return Type(token.span, token.text)
        self.advance()
        dims = [self.dim()]
        while self.take(","):
            dims.append(self.dim())
        self.expect("]")
        return Type(self.span_from(token.start), token.text, dims)

    def dim(self) -> int | str | None:
        if self.take("?"):
            return None
        if self.kind == "int":
            return int(self.advance().text)
        return self.expect("name", "a size, a symbol or `?`").text

    # ---- compound statements

    def if_(self) -> If:
        start = self.advance().start
        branches = [self.branch("if")]
        while self.take("elif"):
            branches.append(self.branch("elif"))
        otherwise: list[Stmt] = []
        if self.take("else"):
            with self.inside(loop=self.in_loop):
                otherwise = self.body("else")
        return If(self.span_from(start), branches, otherwise)

    def branch(self, word: str) -> tuple[Expr, list[Stmt]]:
        condition = self.expression()
        with self.inside(loop=self.in_loop):
            return condition, self.body(word)

    def for_(self) -> For:
        start = self.advance().start
        targets = self.names("a variable")
        self.expect("in")
        iterable = self.expression()
        with self.inside(loop=True):
            body = self.body("for")
        return For(self.span_from(start), targets, iterable, body)

    def while_(self) -> While:
        start = self.advance().start
        condition = self.expression()
        with self.inside(loop=True):
            body = self.body("while")
        return While(self.span_from(start), condition, body)

    # ---- functions and models

    def function(self) -> Function:
        if self.in_function:
            self.fail(Misplaced, self.token.span, what="a function", where="outside other functions")
        start = self.advance().start
        name = self.expect_name("a function")
        parameters = self.parameters()
        returns = self.type() if self.take("->") else None
        return self.function_body(start, name, parameters, returns)

    def function_body(
        self, start: int, name: Token, parameters: list[Parameter], returns: Type | None = None
    ) -> Function:
        with self.inside(function=True):
            body = self.body(f"the function {name.text}")
        return Function(self.span_from(start), name.text, parameters, returns, body, name.span)

    def parameters(self) -> list[Parameter]:
        self.expect("(")
        found: list[Parameter] = []
        while self.kind != ")":
            token = self.advance() if self.kind == "self" and not found else self.expect_name("a parameter")
            declared = self.type() if self.take(":") else None
            default = self.expression() if self.take("=") else None
            if any(parameter.name == token.text for parameter in found):
                self.note(Repeated, token.span, what=f"the parameter {token.text}")
            if default is None and found and found[-1].default is not None:
                self.note(Unexpected, token.span, found=f"`{token.text}`", expected="a parameter with a default")
            found.append(Parameter(self.span_from(token.start), token.text, declared, default))
            if not self.take(","):
                break
        self.expect(")", "`,` or `)`")
        return found

    def model(self) -> Model:
        start = self.advance().start
        name = self.expect_name("a model")
        layers: list[Entry] = []
        functions: list[Function] = []

        def member() -> None:
            if self.kind == "layer":
                self.advance()
                layers.append(self.entry("a layer"))
            elif self.kind == "fn":
                functions.append(self.function())
            elif not self.passes():
                self.fail(Unexpected, self.token.span, found=shown(self.token), expected="`layer` or `fn`")

        self.block(f"the model {name.text}", member)
        span = self.span_from(start)
        return Model(span, name.text, name.span, [], layers, functions, architecture=False)

    def passes(self) -> bool:
        """Pass over a line that says `pass`."""
        if self.kind != "name" or self.token.text != "pass" or self.peek() != "NEWLINE":
            return False
        self.advance()
        self.end_line()
        return True

    def entry(self, what: str) -> Entry:
        name = self.expect_name(what)
        self.expect("=")
        value = self.expression()
        span = self.span_from(name.start)
        self.end_line()
        return Entry(span, name.text, value, name.span)

    def decorated(self) -> Stmt:
        start = self.advance().start
        if self.take("model"):
            return self.architecture(start)
        if self.kind == "name" and self.token.text == "kernel":
            self.advance()
            return self.kernel(start)
        return self.fail(Unexpected, self.token.span, found=shown(self.token), expected="`@model` or `@kernel`")

    def architecture(self, start: int) -> Model:
        name = self.expect_name("a model")
        sections: dict[str, list[Entry]] = {}
        functions: list[Function] = []

        def section() -> None:
            self.expect("@", "`@config`, `@layers` or `@forward`")
            word = self.advance()
            if word.text not in ("config", "layers", "forward"):
                self.fail(Unexpected, word.span, found=shown(word), expected="`config`, `layers` or `forward`")
            if word.text in sections:
                self.note(Repeated, word.span, what=f"@{word.text}")
            if word.text == "forward":
                sections.setdefault("forward", [])
                functions.append(self.function_body(word.start, word, self.parameters()))
            else:
                sections.setdefault(word.text, self.block(f"@{word.text}", lambda: self.entry("an entry")))

        self.block(f"the model {name.text}", section)
        config, layers = sections.get("config", []), sections.get("layers", [])
        span = self.span_from(start)
        return Model(span, name.text, name.span, config, layers, functions[:1], architecture=True)

    def kernel(self, start: int) -> Kernel:
        self.take("NEWLINE")
        if not (self.kind == "name" and self.token.text == "def"):
            self.fail(Unexpected, self.token.span, found=shown(self.token), expected="`def`")
        self.advance()
        name = self.expect_name("a kernel")
        self.expect("(")
        parameters: list[KernelParameter] = []
        while self.kind != ")":
            parameters.append(self.kernel_parameter(parameters))
            if not self.take(","):
                break
        self.expect(")", "`,` or `)`")
        with self.inside(function=True):
            body = self.body(f"the kernel {name.text}")
        return Kernel(self.span_from(start), name.text, name.span, parameters, body)

    def kernel_parameter(self, before: list[KernelParameter]) -> KernelParameter:
        token = self.expect_name("a parameter")
        constexpr = False
        if self.take(":"):
            word = self.expect("name", "`tl.constexpr`")
            if word.text == "tl":
                self.expect(".")
                word = self.expect("name", "`constexpr`")
            if word.text != "constexpr":
                self.note(Unexpected, word.span, found=shown(word), expected="`tl.constexpr`")
            constexpr = True
        if any(parameter.name == token.text for parameter in before):
            self.note(Repeated, token.span, what=f"the parameter {token.text}")
        return KernelParameter(self.span_from(token.start), token.text, constexpr)

    # ---- train blocks

    def train(self) -> Train:
        start = self.advance().start
        model = self.expect_name("a model")
        self.expect("on")
        data = self.expect_name("a data set")
        options: list[Entry] = []
        snapshots: list[Every] = []
        callbacks: list[Function] = []

        def line() -> None:
            if self.kind == "on":
                callbacks.append(self.callback())
            elif self.kind == "name" and self.token.text == "checkpoint" and self.peek() == "every":
                snapshots.append(self.every())
            elif not self.passes():
                option = self.entry("an option")
                if any(option.name == other.name for other in options):
                    self.note(Repeated, option.name_span, what=f"the option {option.name}")
                options.append(option)

        self.block("train", line)
        names = Name(model.span, model.text), Name(data.span, data.text)
        return Train(self.span_from(start), *names, options, snapshots, callbacks)

    def every(self) -> Every:
        start = self.advance().start
        self.expect("every")
        count = self.expression()
        unit = self.advance() if self.kind == "name" else None
        span = self.span_from(start)
        self.end_line()
        return Every(span, count, unit.text if unit else "epochs", unit.span if unit else span)

    def callback(self) -> Function:
        start = self.advance().start
        event = self.expect("name", "the name of an event")
        self.expect("(")
        metrics = self.expect_name("a parameter")
        self.expect(")")
        parameter = Parameter(metrics.span, metrics.text)
        return self.function_body(start, event, [parameter])
