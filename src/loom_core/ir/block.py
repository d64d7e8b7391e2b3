"""Blocks, functions and modules: the containers of operations."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from loom_core.base.location import UNKNOWN, Location
from loom_core.ir.types import TileType
from loom_core.ir.value import Value

if TYPE_CHECKING:
    from loom_core.ir.op import Op


class Block:
    """A straight list of operations with arguments; the body of a function or of a region."""

    __slots__ = ("arguments", "operations", "parent")

    def __init__(self, argument_types: tuple[TileType, ...] = (), names: tuple[str, ...] = ()) -> None:
        self.arguments: list[Value] = []
        self.operations: list[Op] = []
        self.parent: Op | None = None
        for i, type in enumerate(argument_types):
            self.add_argument(type, names[i] if i < len(names) else None)

    def add_argument(self, type: TileType, name: str | None = None) -> Value:
        value = Value(type, self, len(self.arguments), name)
        self.arguments.append(value)
        return value

    def append(self, op: Op) -> None:
        op.parent = self
        self.operations.append(op)

    def insert_before(self, anchor: Op, op: Op) -> None:
        op.parent = self
        self.operations.insert(self.operations.index(anchor), op)

    @property
    def terminator(self) -> Op | None:
        """The last operation where it ends the block, else None."""
        if self.operations and self.operations[-1].terminator:
            return self.operations[-1]
        return None

    def walk(self) -> Iterator[Op]:
        """Every operation of this block and of the regions inside, in order."""
        for op in list(self.operations):
            yield op
            for region in op.regions:
                yield from region.walk()


class Function:
    """A kernel: named arguments and one body block.

    `body.arguments` are the parameters, in order. `location` is where the user wrote it.
    """

    __slots__ = ("body", "location", "name")

    def __init__(
        self,
        name: str,
        argument_types: tuple[TileType, ...],
        argument_names: tuple[str, ...],
        location: Location = UNKNOWN,
    ) -> None:
        self.name = name
        self.body = Block(argument_types, argument_names)
        self.location = location

    @property
    def arguments(self) -> list[Value]:
        return self.body.arguments

    def walk(self) -> Iterator[Op]:
        return self.body.walk()

    def __str__(self) -> str:
        from loom_core.ir.printer import print_function

        return print_function(self)

    def __repr__(self) -> str:
        arguments = ", ".join(f"%{argument.name or i}: {argument.type}" for i, argument in enumerate(self.arguments))
        return f"<func @{self.name}({arguments}), {sum(1 for _ in self.walk())} operations; print() shows them>"

    def _repr_html_(self) -> str:
        from loom_core.ir.highlight import function_html

        return function_html(self)
