"""Text -> tokens, with layout: NEWLINE ends a statement, INDENT and DEDENT enclose blocks.

Line ends inside brackets and comments anywhere mean nothing, and a line that starts with `|>` continues the one before.
"""

from __future__ import annotations

import ast
import re
import unicodedata
import warnings
from typing import Final, NamedTuple

from loom_core.base.diagnostics import Diagnostic
from tensorloom.diagnostics import (
    BadCharacter,
    BadEscape,
    BadFString,
    BadIndentation,
    BadNumber,
    OpenComment,
    OpenString,
    Unmatched,
)
from tensorloom.source import Source, Span

KEYWORDS: Final = frozenset(
    {
        "let",
        "model",
        "layer",
        "fn",
        "return",
        "import",
        "train",
        "on",
        "if",
        "else",
        "elif",
        "for",
        "in",
        "while",
        "true",
        "false",
        "none",
        "self",
        "every",
        "and",
        "or",
        "not",
        "Tensor",
    }
)
TAB_WIDTH: Final = 4
_OPENERS: Final = {"(": ")", "[": "]", "{": "}"}
_CLOSERS: Final = frozenset(_OPENERS.values())
_STARTERS: Final = frozenset({"let", "fn", "model", "layer", "import", "return"})
"""Words that, at the start of a line inside brackets, say that a bracket was never closed."""

_PATTERN: Final = re.compile(
    r"""[ \t]*(?:
     (?P<fstring>f")
    |(?P<name>[^\W\d]\w*)
    |(?P<comment>//[^\n]*)
    |(?P<block>/\*.*?(?:\*/|\Z))
    |(?P<number>(?:[0-9]+\.[0-9]+|\.[0-9]+|[0-9]+)(?:[eE][+-]?[0-9]+)?\w*)
    |(?P<operator>\|>|->|\*\*|==|!=|<=|>=|[-+*/%@=<>()\[\]{}:,.;?])
    |(?P<newline>\n)
    |(?P<string>"(?:[^"\\\n]|\\[^\n])*"?)
    |(?P<end>\Z)
    |(?P<other>.))""",
    re.VERBOSE | re.DOTALL,
)
"""One token with the blanks before it."""
_NUMBER: Final = re.compile(r"(?:(?P<float>(?:[0-9]*\.[0-9]+)(?:[eE][+-]?[0-9]+)?|[0-9]+[eE][+-]?[0-9]+)|[0-9]+)")
_MOST_DIGITS: Final = 300


class Token(NamedTuple):
    """`kind` is name, int, float, string, fstring, NEWLINE, INDENT, DEDENT or END; keywords and operators are their
    own kind. The text of a string is without its quotes."""

    kind: str
    text: str
    start: int
    end: int

    @property
    def span(self) -> Span:
        return Span(self.start, self.end)


class Lexed(NamedTuple):
    tokens: list[Token]
    comments: list[Span]
    diagnostics: list[Diagnostic]


def lex(source: Source, start: int = 0, end: int | None = None) -> Lexed:
    """The tokens of a source. With a range: of that part, as if it were inside brackets (for f-strings)."""
    return _Lexer(source, start, end).run()


class _Lexer:
    def __init__(self, source: Source, start: int, end: int | None) -> None:
        self.source = source
        self.text = source.text
        self.at = start
        self.end = len(self.text) if end is None else end
        self.inner = end is not None
        self.tokens: list[Token] = []
        self.comments: list[Span] = []
        self.diagnostics: list[Diagnostic] = []
        self.indents = [0]
        self.brackets: list[Token] = []

    def run(self) -> Lexed:
        match = _PATTERN.match
        text, end, tokens = self.text, self.end, self.tokens
        at, line_start = self.at, not self.inner
        indent_from = at
        while at < end:
            found = match(text, at, end)
            assert found is not None
            kind, stop = found.lastgroup, found.end()
            assert kind is not None
            at = found.start(kind)
            if kind == "newline":
                at = stop
                if not self.inner:
                    line_start, indent_from = True, at
                continue
            if kind == "comment" or kind == "block":
                self._comment(kind, Span(at, stop))
                at = stop
                continue
            if kind == "end":
                break
            word = found.group(kind)
            if line_start:
                line_start = False
                self._begin_line(word, indent_from, at, stop)
            if kind == "name":
                if not word.isascii():
                    word = self._unicode_name(word, at, stop)
                tokens.append(Token(word if word in KEYWORDS else "name", word, at, stop))
            elif kind == "operator":
                if word in _OPENERS or word in _CLOSERS:
                    self._bracket(word, at)
                tokens.append(Token(word, word, at, stop))
            elif kind == "number":
                self._number(word, at, stop)
            elif kind == "string":
                self._string(word, at, stop)
            elif kind == "fstring":
                stop = self._fstring(at)
            else:
                self._error(BadCharacter, Span(at, stop), character=_shown(word))
            at = stop
        self._finish()
        return Lexed(tokens, self.comments, self.diagnostics)

    def _error(self, kind: type, span: Span, **fields: object) -> None:
        self.diagnostics.append(kind.diagnostic(self.source.location(span), **fields))  # type: ignore[attr-defined]

    def _comment(self, kind: str, span: Span) -> None:
        self.comments.append(span)
        if kind == "block" and (span.end - span.start < 4 or not self.text.endswith("*/", span.start, span.end)):
            self._error(OpenComment, Span(span.start, span.start + 2))

    # ---- layout

    def _begin_line(self, word: str, indent_from: int, at: int, stop: int) -> None:
        """The first token of a line, `word`, ends the statement before it and may open or close blocks."""
        if self.brackets:
            if word not in _STARTERS or self.text[stop : stop + 3].lstrip(" ").startswith("="):
                return
            opener = self.brackets[0]
            self._error(Unmatched, opener.span, bracket=opener.text)
            self.brackets.clear()
        if word == "|>" and self.tokens and self.tokens[-1].kind not in ("NEWLINE", "INDENT", "DEDENT"):
            return
        self._newline()
        blank = self.text[indent_from:at]
        margin = blank[: len(blank) - len(blank.lstrip(" \t"))]
        width = len(margin) + margin.count("\t") * (TAB_WIDTH - 1)
        indents = self.indents
        if width > indents[-1]:
            indents.append(width)
            self.tokens.append(Token("INDENT", "", at, at))
        else:
            while width < indents[-1]:
                indents.pop()
                self.tokens.append(Token("DEDENT", "", at, at))
            if width > indents[-1]:
                known = ", ".join(map(str, indents))
                self._error(BadIndentation, Span(at, stop), width=width, open=known)
                indents.append(width)
                self.tokens.append(Token("INDENT", "", at, at))

    def _newline(self) -> None:
        if self.tokens and self.tokens[-1].kind not in ("NEWLINE", "INDENT", "DEDENT"):
            end = self.tokens[-1].end
            self.tokens.append(Token("NEWLINE", "", end, end))

    def _finish(self) -> None:
        if self.brackets:
            self._error(Unmatched, self.brackets[-1].span, bracket=self.brackets[-1].text)
        if not self.inner:
            self._newline()
            for _ in self.indents[1:]:
                self.tokens.append(Token("DEDENT", "", self.end, self.end))
        self.tokens.append(Token("END", "", self.end, self.end))

    def _bracket(self, word: str, at: int) -> None:
        token = Token(word, word, at, at + 1)
        if word in _OPENERS:
            self.brackets.append(token)
        elif self.brackets and _OPENERS[self.brackets[-1].text] == word:
            self.brackets.pop()
        else:
            self._error(Unmatched, token.span, bracket=word)
            if self.brackets and any(_OPENERS[opener.text] == word for opener in self.brackets):
                while _OPENERS[self.brackets.pop().text] != word:
                    pass

    # ---- literals

    def _unicode_name(self, word: str, at: int, stop: int) -> str:
        # Python, which the names end up in, compares identifiers in this form.
        normal = unicodedata.normalize("NFKC", word)
        if not normal.isidentifier():
            bad = next(i for i in range(len(word)) if not f"a{word[i]}".isidentifier() or i + 1 == len(word))
            self._error(BadCharacter, Span(at + bad, stop), character=_shown(word[bad]))
            return "_"
        return normal

    def _number(self, word: str, at: int, stop: int) -> None:
        found = _NUMBER.fullmatch(word)
        if found is None or len(word) > _MOST_DIGITS:
            shown = word if len(word) <= 40 else word[:37] + "..."
            self._error(BadNumber, Span(at, stop), text=shown)
            self.tokens.append(Token("int", "0", at, stop))
            return
        self.tokens.append(Token("float" if found["float"] else "int", word, at, stop))

    def _string(self, word: str, at: int, stop: int) -> None:
        body = word[1:-1] if len(word) > 1 and word[-1] == '"' else None
        if body is None or not _quotes_balance(word):
            self._error(OpenString, Span(at, stop))
            body = ""
        elif (reason := text_problem(body)) is not None:
            self._error(BadEscape, Span(at, stop), reason=reason)
            body = ""
        self.tokens.append(Token("string", body, at, stop))

    def _fstring(self, at: int) -> int:
        """The end of the f-string that starts at `at`; braces may hold strings, which may hold quotes."""
        depth, i, end, text = 0, at + 2, self.end, self.text
        while i < end and text[i] != "\n":
            letter = text[i]
            if letter == "\\":
                i += 1
            elif letter == '"' and depth == 0:
                self.tokens.append(Token("fstring", text[at + 2 : i], at, i + 1))
                return i + 1
            elif letter == '"':
                closing = text.find('"', i + 1, end)
                if closing < 0:
                    break
                i = closing
            elif letter == "{":
                if depth == 0 and text.startswith("{{", i):
                    i += 1
                else:
                    depth += 1
            elif letter == "}":
                depth = max(0, depth - 1)
            i += 1
        line_end = text.find("\n", at, end)
        stop = end if line_end < 0 else line_end
        if depth:
            self._error(BadFString, Span(at, stop), reason="a { is not closed")
        else:
            self._error(OpenString, Span(at, stop))
        self.tokens.append(Token("fstring", "", at, stop))
        return stop


def _quotes_balance(word: str) -> bool:
    """Whether the last quote of a string is not itself escaped."""
    body = word[1:-1]
    return (len(body) - len(body.rstrip("\\"))) % 2 == 0


def text_problem(body: str) -> str | None:
    """Why the characters between two quotes are no text for Python; None if they are."""
    if body.isprintable() and "\\" not in body:
        return None
    if "\0" in body:
        return "it holds a NUL character"
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            ast.literal_eval(f'"{body}"')
    except (SyntaxError, ValueError) as error:
        return str(error).split(" (<", 1)[0]
    return None


def _shown(character: str) -> str:
    return character if character.isprintable() else f"the character U+{ord(character):04X}"
