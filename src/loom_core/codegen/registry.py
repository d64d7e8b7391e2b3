"""`@lowers(Op)`: which function turns an operation into commands."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from loom_core.ir.op import Op

if TYPE_CHECKING:
    from loom_core.codegen.context import Context

Lowering = Callable[["Context", Any], None]

LOWERINGS: dict[type[Op], Lowering] = {}


def lowers(*kinds: type[Op]) -> Callable[[Lowering], Lowering]:
    """Register the decorated function as the lowering of the given operations."""

    def register(function: Lowering) -> Lowering:
        for kind in kinds:
            if kind in LOWERINGS:
                raise TypeError(f"{kind.name} is lowered twice")
            LOWERINGS[kind] = function
        return function

    return register
