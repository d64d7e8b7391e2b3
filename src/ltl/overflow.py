"""`+`, `-` and `*` of tiles, which in debugged kernels check that integers do not wrap, as Triton's do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from loom_core.base import dtype as core
from loom_core.ir.op import Op
from loom_core.ops import elementwise as ops
from loom_core.trace.context import current
from ltl import operators, semantic
from ltl.operators import and_, compare, emit, swapped
from ltl.tensor import tensor


def add(x: Any, y: Any, sanitize_overflow: bool = True) -> Any:
    """x + y; integers wrap. A pointer plus an integer moves by that many elements.

    In kernels made or launched with debug=True integers of less than 64 bits that wrap stop the run, unless
    `sanitize_overflow` is False.
    """
    return _checked(operators.add(x, y), ops.Add, "add", x, y, sanitize_overflow)


def sub(x: Any, y: Any, sanitize_overflow: bool = True) -> Any:
    """x - y; integers wrap, see `add`. A pointer minus an integer moves back by that many elements."""
    return _checked(operators.sub(x, y), ops.Sub, "sub", x, y, sanitize_overflow)


def mul(x: Any, y: Any, sanitize_overflow: bool = True) -> Any:
    """x * y; integers wrap, see `add`."""
    return _checked(operators.mul(x, y), ops.Mul, "mul", x, y, sanitize_overflow)


def _checked(result: Any, kind: type[Op], name: str, x: Any, y: Any, wanted: bool) -> Any:
    """`result`, with an assertion that it is what 64 bits give."""
    from ltl.control import always_assert

    trace = current()
    if not (trace.assertions and wanted) or trace.selects or not isinstance(result, tensor):
        return result
    if result.known is not None or result.ir_type.is_pointer:
        return result
    dtype = result.ir_type.dtype
    if not dtype.is_integer or dtype.bits == 64:
        return result
    wide = [semantic.cast(side, core.i64) for side in semantic.promote(x, y, name)]
    exact = emit(kind, *wide)
    inside = and_(compare("ge", exact, dtype.min_value), compare("le", exact, dtype.max_value))
    always_assert(inside, f"{result.dtype} overflow detected for operation {name}")
    return result


_OPERATORS: Final[dict[str, Callable[[Any, Any], Any]]] = {"add": add, "sub": sub, "mul": mul}


for _name, _function in _OPERATORS.items():
    setattr(tensor, f"__{_name}__", _function)
    setattr(tensor, f"__r{_name}__", swapped(_function))

__all__ = ["add", "mul", "sub"]
