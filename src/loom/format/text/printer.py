"""The printer of the text form."""

from loom_core.interchange.text.printer import Printer, print_module
from loom_core.interchange.text.types import print_type

__all__ = [
    "Printer",
    "print_module",
    "print_type",
]
