"""`tlc fmt`: one layout for every program. Comments stay, and so do line breaks inside brackets and before `|>`.

Blocks are indented by four columns, operators have blanks around them, arguments after commas. At most one empty line
stays inside blocks and two at the top of a file; definitions there have one around them at least.
"""

from __future__ import annotations

from typing import Any, Final

from loom_core.base.diagnostics import InternalError
from tensorloom.diagnostics import TensorLoomError
from tensorloom.lexer import KEYWORDS, Token, lex
from tensorloom.operators import BINARY
from tensorloom.parser import Parsed, parse
from tensorloom.source import Source, Span
from tensorloom.tree import Node, children

_INDENT: Final = "    "
_OPENERS: Final = frozenset("([")
_CLOSERS: Final = frozenset(")]")
_WORDS_BEFORE_VALUES: Final = KEYWORDS - {"self", "true", "false", "none", "Tensor"}
_LAYOUT: Final = frozenset({"NEWLINE", "INDENT", "DEDENT", "END"})


def format_source(source: Source) -> str:
    """The text in the common layout. Raises TensorLoomError if it cannot be read."""
    parsed = parse(source)
    if parsed.diagnostics:
        raise TensorLoomError.of(parsed.diagnostics)
    text = _Formatter(source, parsed).run()
    again = parse(Source(text, source.file))
    if again.diagnostics or not same_tree(parsed.program, again.program):
        raise InternalError(source.location(Span(0, 1)), what="the layout of a program changed its meaning")
    return text


def same_tree(a: Any, b: Any) -> bool:
    """Whether two trees are equal but for their positions."""
    if isinstance(a, Node) and isinstance(b, Node):
        pairs = zip(children(a), children(b), strict=True)
        return type(a) is type(b) and all(same_tree(x, y) for (_, x), (_, y) in pairs)
    if isinstance(a, list | tuple) and isinstance(b, list | tuple):
        return len(a) == len(b) and all(same_tree(x, y) for x, y in zip(a, b, strict=True))
    return type(a) is type(b) and bool(a == b)


class _Formatter:
    """Writes tokens and comments in the order of the source."""

    def __init__(self, source: Source, parsed: Parsed) -> None:
        self.source = source
        self.tokens = lex(source).tokens
        self.comments = list(parsed.comments)
        self.lines: list[str] = []
        self.line = ""
        self.depth = 0
        self.brackets: list[str] = []
        self.before: Token | None = None
        self.previous: Token | None = None
        self.statement_start = True
        self.last_line = 0

    def run(self) -> str:
        for i, token in enumerate(self.tokens):
            if token.kind in ("INDENT", "DEDENT"):
                if token.kind == "DEDENT":
                    self.comments_of_block(token)
                self.depth += 1 if token.kind == "INDENT" else -1
                continue
            self.comments_before(token)
            if token.kind == "NEWLINE":
                self.trailing_comment(i)
                self.end_line()
                self.previous, self.statement_start = None, True
            elif token.kind != "END":
                self.write(token)
        self.end_line()
        while self.lines and not self.lines[-1]:
            self.lines.pop()
        return "\n".join(self.lines) + "\n" if self.lines else ""

    # ---- lines

    def end_line(self) -> None:
        if self.line:
            self.lines.append(self.line.rstrip())
            self.line = ""

    def empty_lines(self, line: int) -> None:
        """Those that stand before a line of the source, as far as they stay."""
        missing = line - self.last_line - 1
        if self.lines and missing > 0 and not self.lines[-1].rstrip().endswith((":", "(", "[")):
            self.lines += [""] * min(missing, 1 if self.depth else 2)

    def start_line(self, at: int, extra: int = 0) -> None:
        self.empty_lines(self.source.line(at))
        self.line = _INDENT * (self.depth + extra)

    # ---- comments

    def comments_before(self, token: Token) -> None:
        while self.comments and self.comments[0].start < token.start:
            span = self.comments.pop(0)
            if self.line and self.source.line(span.start) == self.last_line:
                self.line += "  " + self.text(span)
                ends = self.text(span).startswith("//") or self.source.line(span.end) > self.last_line
                self.last_line = self.source.line(span.end)
                if ends and token.kind != "NEWLINE":
                    self.end_line()
            else:
                self.end_line()
                self.start_line(span.start, 1 if self.brackets else 0)
                self.line += self.text(span)
                self.last_line = self.source.line(span.end)
                if self.source.line(token.start) > self.last_line or self.text(span).startswith("//"):
                    self.end_line()
                else:
                    self.line += " "

    def comments_of_block(self, dedent: Token) -> None:
        """Comments at the end of a block: those that stand further right than what follows it."""
        column = self.source.column(dedent.start)
        while self.comments and self.comments[0].start < dedent.start:
            if self.source.column(self.comments[0].start) <= column and dedent.start < len(self.source.text):
                return
            span = self.comments.pop(0)
            self.end_line()
            self.start_line(span.start)
            self.line += self.text(span)
            self.last_line = self.source.line(span.end)
            self.end_line()

    def trailing_comment(self, i: int) -> None:
        """A comment behind the last token of a line, which starts behind the place of NEWLINE."""
        while self.comments and self.source.line(self.comments[0].start) == self.last_line:
            following = next((t for t in self.tokens[i + 1 :] if t.kind not in _LAYOUT), None)
            if following is not None and following.start < self.comments[0].start:
                return
            span = self.comments.pop(0)
            self.line += "  " + self.text(span)
            self.last_line = self.source.line(span.end)

    def text(self, span: Span) -> str:
        return self.source.text[span.start : span.end].rstrip()

    # ---- tokens

    def write(self, token: Token) -> None:
        line = self.source.line(token.start)
        if not self.line:
            continues = 1 if not self.statement_start and token.kind not in _CLOSERS else 0
            self.start_line(token.start, continues)
        elif line > self.last_line and not self.statement_start:
            # A break that the user made, inside brackets or before a pipe.
            self.end_line()
            self.last_line = line - 1
            self.start_line(token.start, 0 if token.kind in _CLOSERS else 1)
        elif self.previous is not None and self.blank_between(self.previous, token):
            self.line += " "
        self.line += self.source.text[token.start : token.end]
        if token.kind in _OPENERS:
            self.brackets.append(token.kind)
        elif token.kind in _CLOSERS and self.brackets:
            self.brackets.pop()
        self.before = self.previous
        self.previous = token
        self.statement_start = False
        self.last_line = self.source.line(token.end)

    def blank_between(self, left: Token, right: Token) -> bool:
        a, b = left.kind, right.kind
        if a in _OPENERS or b in _CLOSERS or b == "," or a == "." or b == ".":
            return False
        if "=" in (a, b):
            return not self.brackets
        if b == "(" or b == "[":
            return a in _WORDS_BEFORE_VALUES or not (
                a in ("name", "self", "Tensor", "string", "fstring") or a in _CLOSERS
            )
        if a == "@" and self.before is None:
            return False
        if b == ":":
            return False
        if a == ":":
            return self.brackets[-1:] != ["["]
        return not (a in ("-", "+") and self.is_sign())

    def is_sign(self) -> bool:
        """Whether the plus or minus that was just written has no left operand."""
        before = self.before
        if before is None:
            return True
        kind = before.kind
        return kind in BINARY or kind in _OPENERS or kind in (",", "=", ":", "|>") or kind in _WORDS_BEFORE_VALUES
