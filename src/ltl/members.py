"""Functions that are also methods of tensors: `x.sum(0)` is `ltl.sum(x, 0)`."""

from __future__ import annotations

from typing import Final

from ltl import functions, memory, reductions, shaping
from ltl.tensor import tensor

_MEMBERS: Final = {
    functions: ("abs", "cast", "cdiv", "ceil", "cos", "erf", "exp", "exp2", "floor", "log", "log2", "rsqrt", "sigmoid",
                "sin", "sqrt", "sqrt_rn"),
    memory: ("store",),
    reductions: ("max", "min", "reduce_or", "softmax", "sum", "xor_sum"),
    shaping: ("broadcast_to", "expand_dims", "permute", "ravel", "reshape", "trans", "view"),
}  # fmt: skip


def install() -> None:
    """Give `tensor` its methods."""
    for module, names in _MEMBERS.items():
        for name in names:
            setattr(tensor, name, getattr(module, name))
    setattr(tensor, "to", functions.cast)  # noqa: B010 - the class is completed where its functions exist
