"""Appends operations to a block, with a current source location."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from loom_core.base.location import UNKNOWN, Location
from loom_core.ir.block import Block
from loom_core.ir.op import Op
from loom_core.ir.value import Value


class Builder:
    """Creates operations at the end of `block`, or before `anchor` where one is set.

    `location` is given to every operation created; frontends keep it at the user's line.
    """

    def __init__(self, block: Block) -> None:
        self.block = block
        self.anchor: Op | None = None
        self.location: Location = UNKNOWN

    def insert(self, op: Op) -> Op:
        if self.anchor is None:
            self.block.append(op)
        else:
            self.block.insert_before(self.anchor, op)
        return op

    def create_op(
        self,
        kind: type[Op],
        /,
        *operands: Value | Sequence[Value] | None,
        regions: Sequence[Block] = (),
        location: Location | None = None,
        **attributes: Any,
    ) -> Op:
        """Make an operation and insert it."""
        return self.insert(kind(operands, attributes, regions, location or self.location))

    def create(
        self,
        kind: type[Op],
        /,
        *operands: Value | Sequence[Value] | None,
        regions: Sequence[Block] = (),
        location: Location | None = None,
        **attributes: Any,
    ) -> Any:
        """As `create_op`; returns the only result, the tuple of results, or None where there are none."""
        results = self.create_op(kind, *operands, regions=regions, location=location, **attributes).results
        if len(results) == 1:
            return results[0]
        return tuple(results) or None

    @contextmanager
    def at(self, block: Block, anchor: Op | None = None) -> Iterator[Block]:
        """Build in another block for a while."""
        saved = self.block, self.anchor
        self.block, self.anchor = block, anchor
        try:
            yield block
        finally:
            self.block, self.anchor = saved

    @contextmanager
    def located(self, location: Location) -> Iterator[None]:
        saved, self.location = self.location, location
        try:
            yield
        finally:
            self.location = saved
