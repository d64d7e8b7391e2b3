"""Tokens of the text form."""

from loom_core.interchange.text.tokenizer import ParseError, SourceLocation, Token, Tokenizer, TokenKind

__all__ = [
    "ParseError",
    "SourceLocation",
    "Token",
    "TokenKind",
    "Tokenizer",
]
