"""Functions that are also methods of tensors: `x.sum(0)` is `ltl.sum(x, 0)`."""

from __future__ import annotations

from typing import Any, Final

from ltl import atomics, functions, memory, operators, rearranging, reductions, scans, shaping
from ltl.tensor import tensor

_MEMBERS: Final = {
    atomics: ("atomic_add", "atomic_and", "atomic_cas", "atomic_load", "atomic_max", "atomic_min", "atomic_or",
              "atomic_poll", "atomic_store", "atomic_xchg", "atomic_xor"),
    functions: ("abs", "cast", "cdiv", "ceil", "cos", "erf", "exp", "exp2", "floor", "log", "log2", "rsqrt", "sigmoid",
                "sin", "sqrt", "sqrt_rn"),
    memory: ("store",),
    rearranging: ("flip", "gather", "histogram", "sort", "split"),
    reductions: ("argmax", "argmin", "max", "min", "reduce", "reduce_or", "softmax", "sum", "xor_sum"),
    scans: ("associative_scan", "cumprod", "cumsum"),
    shaping: ("broadcast_to", "expand_dims", "permute", "ravel", "reshape", "trans", "view"),
}  # fmt: skip


def logical_and(x: tensor, y: Any) -> tensor:
    """Whether both are not 0."""
    return operators.logical("and", (x, y))


def logical_or(x: tensor, y: Any) -> tensor:
    """Whether either is not 0."""
    return operators.logical("or", (x, y))


def item(x: tensor) -> tensor:
    """The only element of a tile of one, as a scalar."""
    return shaping.reshape(x, ())


def install() -> None:
    """Give `tensor` its methods."""
    for module, names in _MEMBERS.items():
        for name in names:
            setattr(tensor, name, getattr(module, name))
    for function in (logical_and, logical_or, item):
        setattr(tensor, function.__name__, function)
    setattr(tensor, "to", functions.cast)  # noqa: B010 - the class is completed where its functions exist


__all__ = ["install"]
