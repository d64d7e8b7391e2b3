"""The element types of tiles and buffers: one table, from which every width, name and NumPy type comes."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any, Final, Literal

import numpy as np

Kind = Literal["float", "int", "uint", "bool"]


@dataclass(frozen=True, eq=False, slots=True)
class DType:
    """One element type. There is one instance per name: types compare by identity.

    `bits` is the width of the value; `numpy_name` names the type in NumPy or, where NumPy has none, in ml_dtypes.
    `mantissa` counts the explicit mantissa bits of a float type and is 0 for the others.
    """

    name: str
    bits: int
    kind: Kind
    numpy_name: str
    mantissa: int = 0

    @property
    def itemsize(self) -> int:
        """Bytes of one element in memory; four-bit types take a whole byte in this version."""
        return max(1, self.bits // 8)

    @property
    def numpy(self) -> np.dtype[Any]:
        """The NumPy type of the same bytes (ml_dtypes is imported at the first need of one of its types)."""
        return _numpy_dtype(self.numpy_name)

    @property
    def is_float(self) -> bool:
        return self.kind == "float"

    @property
    def is_integer(self) -> bool:
        """True for signed and unsigned integers; bool is not one."""
        return self.kind in ("int", "uint")

    @property
    def is_signed(self) -> bool:
        return self.kind in ("float", "int")

    @property
    def is_bool(self) -> bool:
        return self.kind == "bool"

    @property
    def min_value(self) -> int:
        """The least value of an integer or bool type; ValueError for a float type."""
        self._require_integral()
        return -(1 << (self.bits - 1)) if self.kind == "int" else 0

    @property
    def max_value(self) -> int:
        """The greatest value of an integer or bool type; ValueError for a float type."""
        self._require_integral()
        return (1 << (self.bits - (self.kind == "int"))) - 1

    @property
    def poison(self) -> float | int | bool:
        """What memory that nobody has written reads as: NaN, the least integer, False."""
        return float("nan") if self.is_float else (False if self.is_bool else self.min_value)

    def _require_integral(self) -> None:
        if self.is_float:
            raise ValueError(f"{self.name} is not an integer type")

    def __repr__(self) -> str:
        return self.name

    def __reduce__(self) -> tuple[Any, tuple[str]]:
        return by_name, (self.name,)


f64: Final = DType("f64", 64, "float", "float64", 52)
f32: Final = DType("f32", 32, "float", "float32", 23)
f16: Final = DType("f16", 16, "float", "float16", 10)
bf16: Final = DType("bf16", 16, "float", "bfloat16", 7)
f8e4m3: Final = DType("f8e4m3", 8, "float", "float8_e4m3fn", 3)
f8e5m2: Final = DType("f8e5m2", 8, "float", "float8_e5m2", 2)
i64: Final = DType("i64", 64, "int", "int64")
i32: Final = DType("i32", 32, "int", "int32")
i16: Final = DType("i16", 16, "int", "int16")
i8: Final = DType("i8", 8, "int", "int8")
u64: Final = DType("u64", 64, "uint", "uint64")
u32: Final = DType("u32", 32, "uint", "uint32")
u16: Final = DType("u16", 16, "uint", "uint16")
u8: Final = DType("u8", 8, "uint", "uint8")
i4: Final = DType("i4", 4, "int", "int4")
u4: Final = DType("u4", 4, "uint", "uint4")
bool_: Final = DType("bool", 1, "bool", "bool")

ALL: Final[tuple[DType, ...]] = (
    (f64, f32, f16, bf16, f8e4m3, f8e5m2) + (i64, i32, i16, i8, u64, u32, u16, u8, i4, u4) + (bool_,)
)
_BY_NAME: Final = {dtype.name: dtype for dtype in ALL}
_BY_NUMPY_NAME: Final = {dtype.numpy_name: dtype for dtype in ALL}
_IN_ML_DTYPES: Final = frozenset({"bfloat16", "float8_e4m3fn", "float8_e5m2", "int4", "uint4"})


def by_name(name: str) -> DType:
    """The type called `name` ("f32", "bool", ...); KeyError with the known names if there is none."""
    try:
        return _BY_NAME[name]
    except KeyError:
        raise KeyError(f"no element type is called {name!r}; known: {', '.join(_BY_NAME)}") from None


def from_numpy(dtype: Any) -> DType:
    """The type of the same bytes as a NumPy dtype (or what `np.dtype` accepts).

    TypeError where Loom has none (complex, strings, structures, float128, foreign byte order).
    """
    resolved = np.dtype(dtype)
    found = _BY_NUMPY_NAME.get(resolved.name)
    if found is None or not resolved.isnative:
        raise TypeError(f"NumPy type {resolved} has no Loom element type; known: {', '.join(_BY_NUMPY_NAME)}")
    return found


@functools.cache
def _numpy_dtype(numpy_name: str) -> np.dtype[Any]:
    if numpy_name in _IN_ML_DTYPES:
        import ml_dtypes

        numpy_name = getattr(ml_dtypes, numpy_name)
    return np.dtype(numpy_name)
