"""constexpr: values that are known when a kernel is compiled."""

from __future__ import annotations

from typing import Any


class constexpr:
    """Marks a value, or by annotation a parameter, as known when a kernel is compiled.

        LIMIT = ltl.constexpr(16)               # a module constant
        def kernel(x, BLOCK: ltl.constexpr)     # a parameter
        width: ltl.constexpr = 2 * BLOCK        # a local variable

    Inside kernels constexprs are plain Python values; outside, this object holds one as `value`.
    """

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value: Any = value.value if isinstance(value, constexpr) else value

    def __repr__(self) -> str:
        return f"constexpr[{self.value!r}]"

    def __eq__(self, other: object) -> bool:
        return bool(self.value == (other.value if isinstance(other, constexpr) else other))

    def __hash__(self) -> int:
        return hash(self.value)

    def __bool__(self) -> bool:
        return bool(self.value)

    def __index__(self) -> int:
        return int(self.value.__index__())

    def __int__(self) -> int:
        return int(self.value)

    def __float__(self) -> float:
        return float(self.value)
