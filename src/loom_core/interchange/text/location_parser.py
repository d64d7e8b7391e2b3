"""Reading `loc(...)`."""

from __future__ import annotations

from typing import Final

from loom_core.interchange.locations import (
    LOCATION_TAGS,
    LOCATION_UNKNOWN,
    FileLocation,
    FusedLocation,
    OpaqueLocation,
    TaggedLocation,
)
from loom_core.interchange.text.attribute_parser import AttributeParser
from loom_core.interchange.text.tokenizer import TokenKind

MAX_DEPTH: Final = 16


def read_location(p: AttributeParser) -> int:
    """The id of the location that stands here."""
    p.expect("loc")
    p.expect("(")
    found = _location(p, 0)
    p.expect(")")
    return found


def _location(p: AttributeParser, depth: int) -> int:
    if depth > MAX_DEPTH:
        p.refuse("locations nest too deeply", "PARSE/021")
    if p.kind() is TokenKind.STRING:
        return _file(p)
    if p.accept("unknown"):
        return LOCATION_UNKNOWN
    if p.accept("fused"):
        p.expect("<")
        children = [_location(p, depth + 1)]
        while p.accept(","):
            children.append(_location(p, depth + 1))
        p.expect(">")
        return p.module.add_location(FusedLocation(tuple(children)))
    if p.accept("opaque"):
        p.expect("<")
        source = source_index(p, p.string())
        p.expect(",")
        data = p.string().encode() if p.kind() is TokenKind.STRING else p.hex_bytes()
        p.expect(">")
        return p.module.add_location(OpaqueLocation(source, data))
    if p.accept("tagged"):
        return _tagged(p, depth)
    return p.refuse(f"a location is expected here, not {p.describe(p.i)}", "PARSE/011")


def _file(p: AttributeParser) -> int:
    source = source_index(p, p.string())
    p.expect(":")
    line = _number(p)
    p.expect(":")
    column = _number(p)
    end = (line, column)
    if p.accept("to"):
        end_line = _number(p)
        p.expect(":")
        end = (end_line, _number(p))
    return p.module.add_location(FileLocation(source, line, column, *end))


def _number(p: AttributeParser) -> int:
    number = p.integer()
    if not 0 <= number < 2**32:
        p.refuse("lines and columns are numbers of 32 bits", "PARSE/011", back=1)
    return number


def _tagged(p: AttributeParser, depth: int) -> int:
    p.expect("<")
    if p.kind() is TokenKind.INTEGER:
        tag = _number(p)
    else:
        name = p.word()
        if name not in LOCATION_TAGS:
            p.refuse(f"there is no location tag {name!r}", "PARSE/011", back=1)
        tag = LOCATION_TAGS[name]
    p.expect(",")
    data = _hex(p)
    child = _location(p, depth + 1) if p.accept(",") else LOCATION_UNKNOWN
    p.expect(">")
    return p.module.add_location(TaggedLocation(tag, child, data))


def _hex(p: AttributeParser) -> bytes:
    at = p.i
    text = p.string()
    try:
        return bytes.fromhex(text)
    except ValueError:
        p.refuse_at(at, "these are no hexadecimal digits", "PARSE/011")


def source_index(p: AttributeParser, name: str) -> int:
    """The position of a source, which is added where it is new."""
    sources = p.module.sources
    if name not in sources:
        sources.append(name)
    return sources.index(name)
