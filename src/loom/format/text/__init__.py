"""The text form of modules."""

from loom_core.interchange.text.parser import Parser, parse_operation_from_text, parse_type_string
from loom_core.interchange.text.printer import Printer
from loom_core.interchange.text.tokenizer import ParseError
from loom_core.interchange.text.types import print_type

__all__ = [
    "ParseError",
    "Parser",
    "Printer",
    "parse_operation_from_text",
    "parse_type_string",
    "print_type",
]
