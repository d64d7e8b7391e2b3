"""Tile IR in a notebook: its text, with names, operations and types in colours."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from loom_core.base.html import Markup, document, join, tag

if TYPE_CHECKING:
    from loom_core.ir.block import Function

_TOKEN: Final = re.compile(
    r'(?P<text>"(?:[^"\\]|\\.)*")'
    r"|(?P<name>[%@][\w.]+)"
    r"|(?P<type>\b(?:tile|ptr)<[^ ,){]*>|\b(?:[fiu]\d+|bf16|f8e\w+|bool)\b)"
    r"|(?P<word>(?<![\w%@.])[a-z_][\w.]*(?! =)\b)"
)


def function_html(function: Function) -> str:
    """The whole text of a function."""
    return document(tag("pre", join(_coloured(str(function)))))


def _coloured(text: str) -> Iterator[str | Markup]:
    """The text in pieces: strings, names, types and words (operations) as elements, all else plain."""
    at = 0
    for found in _TOKEN.finditer(text):
        yield text[at : found.start()]
        kind = found.lastgroup or ""
        yield tag("span", found.group(), class_="note" if kind == "text" else kind)
        at = found.end()
    yield text[at:]
