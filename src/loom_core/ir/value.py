"""Values and their use lists."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from loom_core.ir.types import TileType

if TYPE_CHECKING:
    from loom_core.ir.block import Block
    from loom_core.ir.op import Op


class Value:
    """A result of an operation or an argument of a block.

    `owner` is the defining `Op` (results) or `Block` (arguments); `index` is the position there.
    `users` holds one entry per use, so an operation that takes the value twice is in it twice. `serial` grows with
    creation: a sort key that is the same in every process.
    """

    __slots__ = ("index", "name", "owner", "serial", "type", "users")

    _serials = itertools.count()

    def __init__(self, type: TileType, owner: Op | Block, index: int, name: str | None = None) -> None:
        self.type = type
        self.owner = owner
        self.index = index
        self.name = name
        self.users: list[Op] = []
        self.serial = next(Value._serials)

    @property
    def defining_op(self) -> Op | None:
        """The operation whose result this is, or None for a block argument."""
        from loom_core.ir.op import Op

        return self.owner if isinstance(self.owner, Op) else None

    @property
    def parent_block(self) -> Block | None:
        """The block in which the value is defined."""
        return self.owner.parent if self.defining_op is not None else self.owner  # type: ignore[return-value]

    def replace_all_uses(self, new: Value) -> None:
        """Make every user take `new` instead of this value."""
        if new is self:
            return
        for user in self.users:
            operands = user.operands
            for i, operand in enumerate(operands):
                if operand is self:
                    operands[i] = new
            new.users.append(user)
        self.users = []

    def __repr__(self) -> str:
        return f"<Value {self.name or ''}: {self.type}>"
