"""Methods and operators of values, from the functions of the same names."""

from __future__ import annotations

from typing import Any

from palladium import elementwise, operators, products, reductions, shaping
from palladium.values import array
from palladium.views import Ref


def _matmul(self: array, other: Any) -> array:
    return products.dot(self, other)


def _rmatmul(self: array, other: Any) -> array:
    return products.dot(other, self)


_METHODS = {
    "astype": elementwise.astype, "reshape": shaping.reshape, "transpose": shaping.transpose, "ravel": shaping.ravel,
    "flatten": shaping.ravel, "squeeze": shaping.squeeze, "swapaxes": shaping.swapaxes, "sum": reductions.sum,
    "prod": reductions.prod, "max": reductions.max, "min": reductions.min, "mean": reductions.mean,
    "var": reductions.var, "std": reductions.std, "any": reductions.any, "all": reductions.all,
    "argmax": reductions.argmax, "argmin": reductions.argmin, "cumsum": reductions.cumsum,
    "cumprod": reductions.cumprod, "clip": elementwise.clip, "dot": products.dot, "round": elementwise.round_even,
    "view": elementwise.bitcast_convert_type,
    "__abs__": elementwise.abs, "__getitem__": shaping.item, "__matmul__": _matmul, "__rmatmul__": _rmatmul,
}  # fmt: skip


def install() -> None:
    """Give the class of values its methods."""
    operators.install(array)
    operators.install_refusals(Ref)
    for name, function in _METHODS.items():
        setattr(array, name, function)
    array.T = property(shaping.transpose)  # type: ignore[attr-defined]
    array.mT = property(lambda self: shaping.swapaxes(self, -1, -2))  # type: ignore[attr-defined]
