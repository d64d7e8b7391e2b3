"""What Triton IR text says, as plain data: types, operations, blocks."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from loom_core.base.location import Location


@dataclass(frozen=True)
class IrType:
    """A type as written: `name` is `tensor`, `ptr`, `tensordesc`, `memdesc`, or that of a scalar type (`i32`, `f16`).

    `element` and `shape` are those of tensors, descriptors and pointers; `encoding` is the text of a layout.
    """

    name: str
    element: IrType | None = None
    shape: tuple[int, ...] = ()
    encoding: str = ""

    def __str__(self) -> str:
        if self.element is None:
            return self.name
        dims = "".join(f"{size}x" for size in self.shape)
        prefix = "" if self.name == "tensor" else "!tt."
        return f"{prefix}{self.name}<{dims}{self.element}>"

    def same(self, other: IrType) -> bool:
        """Equal but for layouts."""
        if self.name != other.name or self.shape != other.shape:
            return False
        if self.element is None or other.element is None:
            return self.element is other.element
        return self.element.same(other.element)


@dataclass(frozen=True)
class Typed:
    """An attribute value with its type: `1 : i32`, `dense<0.0> : tensor<4xf32>`."""

    value: Any
    type: IrType | None


@dataclass(frozen=True)
class Raw:
    """An attribute that is only kept as text: a layout, an enumeration value with angle brackets."""

    text: str


@dataclass(slots=True)
class Successor:
    """A block that a branch goes to, with the values that it hands over."""

    label: str
    arguments: list[str]


@dataclass(slots=True, eq=False)
class Operation:
    """One operation as written. Values are named as in the text, `%x` or `%x#1`.

    `lists` are the bracketed groups of values and integers, `bindings` the pairs `%a = %b` of loops, `words` the bare
    words and strings in order, `word_places` how many operands stand before each.
    """

    name: str
    position: Location
    results: list[str] = field(default_factory=list)
    operands: list[str] = field(default_factory=list)
    lists: list[list[str | int]] = field(default_factory=list)
    bindings: list[tuple[str, str]] = field(default_factory=list)
    words: list[str] = field(default_factory=list)
    word_places: list[int] = field(default_factory=list)
    literals: list[Any] = field(default_factory=list)
    attributes: dict[str, Any] = field(default_factory=dict)
    types: list[IrType] = field(default_factory=list)
    result_types: list[IrType] = field(default_factory=list)
    regions: list[list[IrBlock]] = field(default_factory=list)
    successors: list[Successor] = field(default_factory=list)
    location: str | None = None


@dataclass(slots=True, eq=False)
class IrBlock:
    """A block: its label (empty for a first one without), typed arguments, operations."""

    label: str
    arguments: list[tuple[str, IrType]]
    operations: list[Operation] = field(default_factory=list)


@dataclass(slots=True, eq=False)
class IrFunction:
    """A `tt.func`: name, arguments, result types, body (no blocks: a declaration).

    `hints` are the attributes of each argument: what Triton was told of it, divisibility and the like.
    """

    name: str
    arguments: list[tuple[str, IrType]]
    result_types: list[IrType]
    blocks: list[IrBlock]
    public: bool
    operation: Operation
    hints: list[dict[str, Any]]
