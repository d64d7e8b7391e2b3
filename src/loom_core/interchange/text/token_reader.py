"""Reading tokens: words, punctuation, numbers, strings, values."""

from __future__ import annotations

from typing import Final, NoReturn

from loom_core.interchange.model import Module
from loom_core.interchange.text.tokenizer import ParseError, Token, Tokenizer, TokenKind, decode_string

I64_MIN: Final = -(2**63)
I64_MAX: Final = 2**63 - 1


class TokenReader:
    """A position in the tokens of a text."""

    def __init__(self, tokenizer: Tokenizer, module: Module) -> None:
        self.tokenizer = tokenizer
        self.tokens = tokenizer.tokens
        self.module = module
        self.i = 0
        self.unresolved_code = "PARSE/001"
        self._label_uses: dict[str, int] = {}
        self._type_depth = 0

    # ---- tokens ----

    def kind(self) -> TokenKind:
        return self.tokens[self.i].kind

    def text(self) -> str:
        return self.tokens[self.i].text

    def take(self) -> Token:
        token = self.tokens[self.i]
        if token.kind is not TokenKind.END:
            self.i += 1
        return token

    def next_is(self, text: str) -> bool:
        token = self.tokens[self.i]
        return token.text == text and (token.kind is TokenKind.PUNCTUATION or token.kind is TokenKind.IDENTIFIER)

    def accept(self, text: str) -> bool:
        token = self.tokens[self.i]
        if token.text == text and (token.kind is TokenKind.PUNCTUATION or token.kind is TokenKind.IDENTIFIER):
            self.i += 1
            return True
        return False

    def expect(self, text: str) -> None:
        if not self.accept(text):
            self.refuse(f"{text!r} is expected here, not {self.describe(self.i)}")

    def describe(self, at: int) -> str:
        token = self.tokens[at]
        if token.kind is TokenKind.END:
            return "the end of the text"
        sigil = {TokenKind.SSA: "%", TokenKind.SYMBOL: "@", TokenKind.LABEL: "^", TokenKind.HASH: "#"}
        return repr(sigil.get(token.kind, "") + token.text)

    def refuse(self, message: str, code: str = "PARSE/003", hint: str = "", *, back: int = 0) -> NoReturn:
        """ParseError at the next token, or `back` tokens before it."""
        self.refuse_at(max(self.i - back, 0), message, code, hint)

    def refuse_at(self, at: int, message: str, code: str = "PARSE/003", hint: str = "") -> NoReturn:
        location = self.tokenizer.location(self.tokens[at].offset)
        raise ParseError(message, location, self.tokenizer.filename, code, hint)

    def word(self) -> str:
        """An identifier, dotted or not."""
        if self.kind() not in (TokenKind.IDENTIFIER, TokenKind.OP_NAME):
            self.refuse(f"a name is expected here, not {self.describe(self.i)}")
        return self.take().text

    def integer(self) -> int:
        token = self.tokens[self.i]
        if token.kind is not TokenKind.INTEGER:
            self.refuse(f"an integer is expected here, not {self.describe(self.i)}", "PARSE/015")
        if len(token.text) > 24:
            self.refuse("this integer does not fit 64 bits", "PARSE/015")
        number = int(token.text, 0) if "0x" in token.text else int(token.text)
        if not I64_MIN <= number <= I64_MAX:
            self.refuse("this integer does not fit 64 bits", "PARSE/015")
        self.i += 1
        return number

    def integers(self) -> list[int]:
        """`[1, 2]`."""
        self.expect("[")
        found: list[int] = []
        while not self.next_is("]"):
            found.append(self.integer())
            if not self.accept(","):
                break
        self.expect("]")
        return found

    def string(self) -> str:
        if self.kind() is not TokenKind.STRING:
            self.refuse(f"a string is expected here, not {self.describe(self.i)}")
        decoded = decode_string(self.text())
        if decoded is None:
            self.refuse("this string has an escape that is none", "PARSE/023")
        self.i += 1
        return decoded

    def lookup(self, name: str) -> int | None:
        raise NotImplementedError

    def use_value(self) -> int:
        """The value that a name stands for."""
        token = self.tokens[self.i]
        if token.kind is not TokenKind.SSA:
            self.refuse(f"a value is expected here, not {self.describe(self.i)}")
        found = self.lookup(token.text)
        if found is None:
            self.refuse(f"%{token.text} is not defined here", self.unresolved_code, "values are defined before use")
        self.i += 1
        return found
