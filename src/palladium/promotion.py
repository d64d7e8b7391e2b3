"""JAX's rules for the dtype of a result: a lattice, in which Python numbers are weak.

64-bit results arise only from 64-bit operands (JAX without x64 has none).
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import Any, Final

import numpy as np

from loom_core.base import dtype as core
from loom_core.base.dtype import DType
from palladium.errors import WrongDtype, fail

WEAK_INT: Final = "int*"
WEAK_FLOAT: Final = "float*"
_FLOATS_OF_8_BITS: Final = ("f8e4m3", "f8e5m2")

# What each type directly promotes to.
_ABOVE: Final[dict[str, tuple[str, ...]]] = {
    "bool": (WEAK_INT,),
    WEAK_INT: ("u8", "i8", "u4", "i4"),
    "u4": (), "i4": (),
    "u8": ("u16", "i16"), "u16": ("u32", "i32"), "u32": ("u64", "i64"), "u64": (WEAK_FLOAT,),
    "i8": ("i16",), "i16": ("i32",), "i32": ("i64",), "i64": (WEAK_FLOAT,),
    WEAK_FLOAT: ("bf16", "f16", *_FLOATS_OF_8_BITS),
    "f8e4m3": (), "f8e5m2": (), "bf16": ("f32",), "f16": ("f32",), "f32": ("f64",), "f64": (),
}  # fmt: skip
_NARROWED: Final = {"i64": core.i32, "u64": core.u32, "f64": core.f32}


@cache
def _reachable(name: str) -> frozenset[str]:
    return frozenset({name}.union(*(_reachable(above) for above in _ABOVE[name])))


@cache
def join(first: str, second: str) -> str | None:
    """The least type that both promote to, by name; None where there is none."""
    common = _reachable(first) & _reachable(second)
    least = [name for name in common if common <= _reachable(name)]
    return least[0] if least else None


def category(dtype: DType, weak: bool) -> str:
    """The node of the lattice that stands for a type."""
    if not weak or dtype.is_bool:
        return dtype.name
    return WEAK_FLOAT if dtype.is_float else WEAK_INT


def result_dtype(operands: Iterable[tuple[DType, bool]], function: str) -> tuple[DType, bool]:
    """The common dtype of operands given as (dtype, whether it is weak), and whether it is weak."""
    given = list(operands)
    name = category(*given[0])
    for operand in given[1:]:
        found = join(name, category(*operand))
        if found is None:
            shown = f"{name} with {operand[0].name}"
            fail(WrongDtype, function=function, given=shown, takes="these have no common dtype; convert with astype()")
        name = found
    if name in (WEAK_INT, WEAK_FLOAT):
        weak = core.i32 if name == WEAK_INT else core.f32
        wide = any(dtype.bits == 64 and is_weak is False for dtype, is_weak in given)
        return (core.f64 if wide and weak is core.f32 else weak), True
    wide = any(dtype.bits == 64 for dtype, _ in given)
    return (core.by_name(name) if wide else _NARROWED.get(name, core.by_name(name))), False


def as_dtype(value: Any) -> DType:
    """The dtype that a NumPy dtype, scalar type, name or Python type stands for; Python's are of 32 bits."""
    if isinstance(value, DType):
        return value
    python = {int: core.i32, float: core.f32, bool: core.bool_}.get(value) if isinstance(value, type) else None
    if python is not None:
        return python
    try:
        return core.from_numpy(np.dtype(value))
    except TypeError:
        fail(WrongDtype, function="a dtype", given=repr(value), takes="name a NumPy or ml_dtypes dtype")
