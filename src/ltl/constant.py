"""constexpr: values that are known when a kernel is compiled."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, Final


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

    def __getitem__(self, index: Any) -> Any:
        return self.value[index]

    def __iter__(self) -> Any:
        return iter(self.value)

    def __len__(self) -> int:
        return len(self.value)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.value(*args, **kwargs)


_OPERATORS: Final = (
    "add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "lshift", "rshift", "and", "or", "xor", "lt", "le", "gt",
    "ge",
)  # fmt: skip
_UNARY: Final = ("neg", "pos", "invert")
_WITHOUT_REFLECTION: Final = ("lt", "le", "gt", "ge")


def _plain(value: Any) -> Any:
    return value.value if isinstance(value, constexpr) else value


def _binary(function: Callable[[Any, Any], Any], swapped: bool) -> Callable[[Any, Any], Any]:
    def apply(self: constexpr, other: Any) -> Any:
        a, b = (other, self) if swapped else (self, other)
        result = function(_plain(a), _plain(b))
        # With a run-time value the result is one; that is the other operand's business.
        return constexpr(result) if isinstance(result, (bool, int, float, str, tuple)) else result

    return apply


def _unary(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda self: constexpr(function(self.value))


for _name in _OPERATORS:
    _function = getattr(operator, f"{_name}_" if _name in ("and", "or") else _name)
    setattr(constexpr, f"__{_name}__", _binary(_function, False))
    if _name not in _WITHOUT_REFLECTION:
        setattr(constexpr, f"__r{_name}__", _binary(_function, True))
for _name in _UNARY:
    setattr(constexpr, f"__{_name}__", _unary(getattr(operator, _name)))


class constexpr_type:
    """The type of a constexpr of one value; for annotations and comparisons."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = _plain(value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, constexpr_type) and bool(self.value == other.value)

    def __hash__(self) -> int:
        return hash(self.value)

    def __repr__(self) -> str:
        return f"constexpr_type[{self.value!r}]"
