"""The parser of the text form."""

from loom_core.interchange.text.parser import Parser, parse_operation_from_text, parse_type_string
from loom_core.interchange.text.tokenizer import ParseError

__all__ = [
    "ParseError",
    "Parser",
    "parse_operation_from_text",
    "parse_type_string",
]
