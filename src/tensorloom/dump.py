"""Tokens and trees as text and as data, for `tlc tokens` and `tlc ast`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tensorloom.lexer import Token
from tensorloom.source import Source
from tensorloom.tree import Node, children


def token_rows(source: Source, tokens: list[Token]) -> list[dict[str, Any]]:
    """Kind, text and position (line and column from 1) of each token."""
    return [
        {
            "kind": token.kind,
            "text": token.text,
            "line": source.line(token.start),
            "column": source.column(token.start),
        }
        for token in tokens
    ]


def tree_data(source: Source, node: Any) -> Any:
    """A tree as dictionaries: the node's class, its position, its fields."""
    if isinstance(node, list | tuple):
        return [tree_data(source, item) for item in node]
    if not isinstance(node, Node):
        return node
    start = node.span[0]
    head = {"node": type(node).__name__, "line": source.line(start), "column": source.column(start)}
    return {**head, **{name: tree_data(source, value) for name, value in children(node)}}


def tree_lines(source: Source, node: Node, depth: int = 0, label: str = "") -> Iterator[str]:
    """A tree, one node a line, parts indented below."""
    plain = {name: value for name, value in children(node) if not _holds_nodes(value)}
    details = " ".join(f"{name}={value!r}" for name, value in plain.items() if value not in ("", [], None))
    start = node.span[0]
    place = f"{source.line(start)}:{source.column(start)}"
    head = f"{label}: " if label else ""
    yield f"{'  ' * depth}{head}{type(node).__name__} {place}{' ' if details else ''}{details}"
    for name, value in children(node):
        if _holds_nodes(value):
            yield from _part_lines(source, value, depth + 1, name)


def _part_lines(source: Source, value: Any, depth: int, label: str) -> Iterator[str]:
    if isinstance(value, Node):
        yield from tree_lines(source, value, depth, label)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _part_lines(source, item, depth, label)
    else:
        yield f"{'  ' * depth}{label}: {value!r}"


def _holds_nodes(value: Any) -> bool:
    if isinstance(value, list | tuple):
        return any(_holds_nodes(item) for item in value)
    return isinstance(value, Node)
