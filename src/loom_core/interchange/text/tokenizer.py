"""Tokens of the text form, and the comments and blank lines between them."""

from __future__ import annotations

import bisect
import re
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Final, NamedTuple, NoReturn


class SourceLocation(NamedTuple):
    """A place in a text: line and column from 1, offset in characters from 0."""

    line: int
    column: int
    offset: int


class ParseError(Exception):
    """A text that does not parse; its str is `file:line:col: error: message`. `code` is its name in the error table."""

    def __init__(
        self, message: str, location: SourceLocation, filename: str = "<input>", code: str = "PARSE/003", hint: str = ""
    ) -> None:
        super().__init__(message, location, filename)
        self.message = message
        self.location = location
        self.filename = filename
        self.code = code
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.filename}:{self.location.line}:{self.location.column}: error: {self.message}"


class TokenKind(IntEnum):
    """Kinds of tokens."""

    END = 0
    SSA = 1
    SYMBOL = 2
    LABEL = 3
    HASH = 4
    OP_NAME = 5
    IDENTIFIER = 6
    INTEGER = 7
    FLOAT = 8
    STRING = 9
    PUNCTUATION = 10


class Token(NamedTuple):
    """A token: its kind, its text as written, its offset."""

    kind: TokenKind
    text: str
    offset: int


@dataclass(slots=True)
class Trivia:
    """Comments, without `//` and one following space, and whether a blank line stands among them."""

    comments: list[str] = field(default_factory=list)
    blank: bool = False
    header: int = 0
    """How many of the comments stand before the first blank line; -1 where none follows them."""


_WORD: Final = r"[A-Za-z_$](?:[A-Za-z0-9_$]|-(?!>))*"
_TOKENS: Final = re.compile(
    rf"""
      (?P<trivia>(?:[ \t\r\n]+|//[^\n]*)+)
    | %(?P<ssa>{_WORD}|[0-9]+)
    | (?P<op>{_WORD}(?:\.{_WORD})+)
    | (?P<word>{_WORD})
    | (?P<float>-?[0-9]+(?:\.[0-9]+(?:[eE][+-]?[0-9]+)?|[eE][+-]?[0-9]+))
    | (?P<int>-?(?:0x[0-9A-Fa-f]+|[0-9]+))
    | (?P<string>"(?:[^"\\\x00-\x1f]|\\.)*")
    | @(?P<symbol>{_WORD}(?:\.{_WORD})*)
    | \^(?P<label>(?:[A-Za-z0-9_$]|-(?!>))+)
    | \#(?P<hash>{_WORD}(?:\.{_WORD})*)
    | (?P<punct>->|[(){{}}\[\]<>=:,|.\-])
    """,
    re.VERBOSE,
)
VALUE_NAME: Final = re.compile(rf"(?:{_WORD}|[0-9]+)?")
"""What may follow `%`; an unnamed value has an empty name."""
WORD_NAME: Final = re.compile(rf"{_WORD}(?:\.{_WORD})*")
"""What may follow `@` and `#`, and what keywords, keys and operations are made of."""
DOTTED_NAME: Final = re.compile(rf"{_WORD}(?:\.{_WORD})+")
LABEL_NAME: Final = re.compile(r"(?:[A-Za-z0-9_$]|-(?!>))+")
_KINDS: Final = {
    "ssa": TokenKind.SSA,
    "op": TokenKind.OP_NAME,
    "word": TokenKind.IDENTIFIER,
    "float": TokenKind.FLOAT,
    "int": TokenKind.INTEGER,
    "string": TokenKind.STRING,
    "symbol": TokenKind.SYMBOL,
    "label": TokenKind.LABEL,
    "hash": TokenKind.HASH,
    "punct": TokenKind.PUNCTUATION,
}


class Tokenizer:
    """The tokens of one source, all read at once. ParseError where characters make none."""

    def __init__(self, source: str, filename: str = "<input>") -> None:
        self.source = source
        self.filename = filename
        self.tokens: list[Token] = []
        self.trivia: dict[int, Trivia] = {}
        """Comments and blank lines before a token, by its position; absent where there are none."""
        self._line_starts: list[int] | None = None
        self._read()

    def location(self, offset: int) -> SourceLocation:
        """Where an offset is."""
        if self._line_starts is None:
            self._line_starts = [0, *(match.end() for match in re.finditer("\n", self.source))]
        line = bisect.bisect_right(self._line_starts, offset)
        return SourceLocation(line, offset - self._line_starts[line - 1] + 1, offset)

    def _read(self) -> None:
        source, tokens, kinds, match = self.source, self.tokens, _KINDS, _TOKENS.match
        at, end = 0, len(self.source)
        while at < end:
            found = match(source, at)
            if found is None:
                self._refuse(at)
            group = found.lastgroup
            if group == "trivia":
                text = found[0]
                if "/" in text or text.count("\n") > 1:
                    self.trivia[len(tokens)] = _read_trivia(text)
            else:
                tokens.append(Token(kinds[group], found[group], at))  # type: ignore[index]
            at = found.end()
        tokens.append(Token(TokenKind.END, "", end))

    def _refuse(self, at: int) -> NoReturn:
        character = self.source[at]
        if character == '"':
            raise ParseError("this string does not end", self.location(at), self.filename, "PARSE/005")
        if character in "%@^#":
            message = f"a name is expected after {character!r}"
            raise ParseError(message, self.location(at), self.filename, "PARSE/024")
        raise ParseError(f"unexpected character {character!r}", self.location(at), self.filename, "PARSE/025")


def _read_trivia(text: str) -> Trivia:
    found = Trivia(header=-1)
    lines = text.split("\n")
    for i, line in enumerate(lines):
        _, slashes, comment = line.partition("//")
        if slashes:
            found.comments.append(comment.removesuffix("\r").removeprefix(" ").rstrip())
        # The text before the first line break belongs to the line of the token before, the last to that of the next.
        elif 0 < i < len(lines) - 1:
            if found.header < 0 and found.comments:
                found.header = len(found.comments)
            found.blank = True
    return found


_ESCAPES: Final = {'"': '"', "\\": "\\", "/": "/", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_ESCAPE: Final = re.compile(
    r"\\(u[dD][89abAB][0-9A-Fa-f]{2}\\u[dD][c-fC-F][0-9A-Fa-f]{2}|u[0-9A-Fa-f]{4}|.)", re.DOTALL
)


def decode_string(token: str) -> str | None:
    """The characters of a string token; None where an escape is none."""
    body = token[1:-1]
    if "\\" not in body:
        return body
    bad = False

    def replace(match: re.Match[str]) -> str:
        nonlocal bad
        escape = match[1]
        if len(escape) == 11:
            high, low = int(escape[1:5], 16), int(escape[7:], 16)
            return chr(0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00))
        if len(escape) == 5:
            number = int(escape[1:], 16)
            bad = bad or 0xD800 <= number < 0xE000
            return chr(number) if not bad else ""
        bad = bad or escape not in _ESCAPES
        return _ESCAPES.get(escape, "")

    decoded = _ESCAPE.sub(replace, body)
    return None if bad else decoded


_ENCODED: Final = {'"': '\\"', "\\": "\\\\", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r"}
_MUST_ENCODE: Final = re.compile(r'["\\\x00-\x1f]')


def encode_string(text: str) -> str:
    """The canonical string token of some characters."""
    return '"' + _MUST_ENCODE.sub(lambda match: _ENCODED.get(match[0]) or f"\\u{ord(match[0]):04X}", text) + '"'
