"""Reading what displays give: they are well-formed, so that no browser has to guess."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree


def parsed(markup: str) -> ElementTree.Element:
    """The tree of a display. ElementTree.ParseError if a tag is not closed or a character not escaped."""
    return ElementTree.fromstring(f"<root>{markup}</root>")


def text_of(element: ElementTree.Element) -> str:
    """All text in an element."""
    return "".join(element.itertext())
