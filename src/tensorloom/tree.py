"""The syntax tree: one class a form, with the span of source text that it came from."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar

from tensorloom.operators import ATOM, BINARY, COMPARE, PIPE, POSTFIX, UNARY
from tensorloom.source import Span


@dataclass(slots=True, eq=False)
class Node:
    span: Span


# ---- expressions -----------------------------------------------------------------------------------------------------


class Expr(Node):
    __slots__ = ()
    precedence: ClassVar[int] = ATOM


@dataclass(slots=True, eq=False)
class Name(Expr):
    """`binding` is set by name resolution: what kind of thing the name stands for here."""

    id: str
    binding: str = ""


@dataclass(slots=True, eq=False)
class Number(Expr):
    text: str
    value: int | float


@dataclass(slots=True, eq=False)
class String(Expr):
    """`body`: the characters between the quotes, escapes as written."""

    body: str


@dataclass(slots=True, eq=False)
class Placeholder(Node):
    """`{value!conversion:format}` of an f-string."""

    value: Expr
    conversion: str
    format: str


@dataclass(slots=True, eq=False)
class FString(Expr):
    parts: list[str | Placeholder]


@dataclass(slots=True, eq=False)
class Constant(Expr):
    value: bool | None


@dataclass(slots=True, eq=False)
class ListExpr(Expr):
    items: list[Expr]


@dataclass(slots=True, eq=False)
class TupleExpr(Expr):
    precedence: ClassVar[int] = PIPE
    items: list[Expr]


@dataclass(slots=True, eq=False)
class Unary(Expr):
    operator: str
    operand: Expr

    @property
    def precedence(self) -> int:  # type: ignore[override]
        return UNARY[self.operator].precedence


@dataclass(slots=True, eq=False)
class Binary(Expr):
    left: Expr
    operator: str
    right: Expr

    @property
    def precedence(self) -> int:  # type: ignore[override]
        return BINARY[self.operator].precedence


@dataclass(slots=True, eq=False)
class Compare(Expr):
    """`first op operand op operand ...`, as in Python: each neighbouring pair must hold."""

    precedence: ClassVar[int] = COMPARE
    first: Expr
    operators: list[str]
    operands: list[Expr]


@dataclass(slots=True, eq=False)
class Argument(Node):
    name: str
    value: Expr
    """`name` is empty for a positional argument."""


@dataclass(slots=True, eq=False)
class Call(Expr):
    precedence: ClassVar[int] = POSTFIX
    function: Expr
    arguments: list[Argument]


@dataclass(slots=True, eq=False)
class Attribute(Expr):
    precedence: ClassVar[int] = POSTFIX
    value: Expr
    name: str
    name_span: Span


@dataclass(slots=True, eq=False)
class Subscript(Expr):
    precedence: ClassVar[int] = POSTFIX
    value: Expr
    index: Expr


@dataclass(slots=True, eq=False)
class Slice(Expr):
    precedence: ClassVar[int] = PIPE
    start: Expr | None
    stop: Expr | None
    step: Expr | None


@dataclass(slots=True, eq=False)
class Pipe(Expr):
    """`value |> function(arguments)`; `stage_span` covers what is right of the arrow."""

    precedence: ClassVar[int] = PIPE
    value: Expr
    function: Expr
    arguments: list[Argument]
    stage_span: Span


# ---- types and parameters --------------------------------------------------------------------------------------------


@dataclass(slots=True, eq=False)
class Type(Node):
    """A type's name; `dims` of `Tensor[...]`: sizes, symbols, or None for `?`; None where no brackets are."""

    name: str
    dims: list[int | str | None] | None = None


@dataclass(slots=True, eq=False)
class Parameter(Node):
    name: str
    type: Type | None = None
    default: Expr | None = None


# ---- statements ------------------------------------------------------------------------------------------------------


class Stmt(Node):
    __slots__ = ()


@dataclass(slots=True, eq=False)
class Import(Stmt):
    path: list[str]
    alias: str


@dataclass(slots=True, eq=False)
class Let(Stmt):
    targets: list[Name]
    type: Type | None
    value: Expr


@dataclass(slots=True, eq=False)
class Assign(Stmt):
    """`global_names` of the enclosing function say which plain targets are variables of the module."""

    targets: list[Expr]
    value: Expr


@dataclass(slots=True, eq=False)
class ExprStmt(Stmt):
    value: Expr


@dataclass(slots=True, eq=False)
class Return(Stmt):
    value: Expr | None


@dataclass(slots=True, eq=False)
class Jump(Stmt):
    """`break`, `continue` or `pass`."""

    word: str


@dataclass(slots=True, eq=False)
class If(Stmt):
    """`branches`: the conditions of if and elif with their blocks."""

    branches: list[tuple[Expr, list[Stmt]]]
    otherwise: list[Stmt]


@dataclass(slots=True, eq=False)
class For(Stmt):
    targets: list[Name]
    iterable: Expr
    body: list[Stmt]


@dataclass(slots=True, eq=False)
class While(Stmt):
    condition: Expr
    body: list[Stmt]


@dataclass(slots=True, eq=False)
class Entry(Node):
    """`name = value` of a section, or an option of a train block."""

    name: str
    value: Expr
    name_span: Span


@dataclass(slots=True, eq=False)
class Function(Stmt):
    name: str
    parameters: list[Parameter]
    returns: Type | None
    body: list[Stmt]
    name_span: Span
    global_names: list[str] = field(default_factory=list)


@dataclass(slots=True, eq=False)
class Model(Stmt):
    """Both spellings: `model M:`, and `@model M:` with sections, which sets `architecture`."""

    name: str
    name_span: Span
    config: list[Entry]
    layers: list[Entry]
    functions: list[Function]
    architecture: bool

    @property
    def forward(self) -> Function | None:
        return next((function for function in self.functions if function.name == "forward"), None)


@dataclass(slots=True, eq=False)
class KernelParameter(Node):
    name: str
    constexpr: bool


@dataclass(slots=True, eq=False)
class Kernel(Stmt):
    name: str
    name_span: Span
    parameters: list[KernelParameter]
    body: list[Stmt]


@dataclass(slots=True, eq=False)
class Every(Node):
    """`checkpoint every count unit`."""

    count: Expr
    unit: str
    unit_span: Span


@dataclass(slots=True, eq=False)
class Train(Stmt):
    model: Name
    data: Name
    options: list[Entry]
    snapshots: list[Every]
    callbacks: list[Function]


@dataclass(slots=True, eq=False)
class Program(Node):
    body: list[Stmt]


def children(node: Node) -> Iterator[tuple[str, Any]]:
    """The fields of a node but its span, by name."""
    for entry in dataclasses.fields(node):
        if entry.name not in ("span", "binding") and not entry.name.endswith("_span"):
            yield entry.name, getattr(node, entry.name)


def walk(node: Any) -> Iterator[Node]:
    """The nodes of a tree, or of lists of trees, parents before children."""
    if isinstance(node, Node):
        yield node
        for _, value in children(node):
            if isinstance(value, Node | list):
                yield from walk(value)
    elif isinstance(node, list | tuple):
        for item in node:
            yield from walk(item)
