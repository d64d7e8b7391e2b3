"""Every value of the 8- and 16-bit types: one-operand functions and casts against the references, casts against the
conversions of NumPy and ml_dtypes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from exhaustive.engines import differences, run_element
from exhaustive.inputs import is_of_rows, operand_types, unsigned_of
from loom_core.base.dtype import DType, by_name
from loom_core.isa.sce import ALL_SCE_OPS, SCE_OPS, SceOp
from loom_core.reference.narrow import FORMATS
from loom_core.reference.opcodes import reference_of

Array = NDArray[Any]

NARROW: Final = tuple(FORMATS)
_FLOATS: Final = ("f64", "f32", *NARROW)


def every_value(name: str) -> Array:
    """All elements of a type of 8 or 16 bits."""
    dtype = by_name(name)
    if dtype.is_bool:
        return np.array([False, True])
    return np.arange(1 << dtype.bits, dtype=unsigned_of(dtype)).view(dtype.numpy)


def covered_ops() -> list[SceOp]:
    """The elementwise opcodes of one operand of at most 16 bits, plain moves excluded."""
    return [
        op
        for op in ALL_SCE_OPS
        if len(op.operands) == 1
        and not is_of_rows(op)
        and not op.operands[0].isdigit()
        and by_name(op.operands[0]).bits <= 16
    ]


def faults(op: SceOp) -> list[str]:
    """Operands for which the engine of an opcode differs from its reference."""
    (name,) = operand_types(op)
    values = every_value(name)
    with np.errstate(all="ignore"):
        expected = reference_of(op)(values)
    different = differences(run_element(op, [values]), expected)
    if not len(different):
        return []
    return [f"{op.mnemonic}: {len(different)} of {len(values)} differ, the first at {values[different[0]]}"]


def conversion_faults() -> Iterator[str]:
    """Casts between the float types that differ from those of NumPy and ml_dtypes; which NaN it is does not count.

    From f32 and f64 to a narrow type: its values, the middles between neighbours, and what is next to those.
    """
    for source in _FLOATS:
        for result in _FLOATS:
            if source == result or ("f64" in (source, result) and "f32" in (source, result)):
                continue
            values = every_value(source) if source in NARROW else _near_values_of(by_name(result), by_name(source))
            if source == "f64":  # NumPy goes through f32 there, and rounds twice
                values = values[values.astype(np.float32).astype(np.float64) == values]
            with np.errstate(all="ignore"):
                expected = values.astype(by_name(result).numpy)
            got = run_element(SCE_OPS[f"cast.{source}.{result}"], [values])
            yield from _faults_but_nan(f"cast.{source}.{result}", values, got, expected)


def _near_values_of(narrow: DType, wide: DType) -> Array:
    exact = every_value(narrow.name).astype(wide.numpy)
    finite = np.unique(exact[np.isfinite(exact)])
    middles = (finite[:-1] + finite[1:]) / 2
    beyond = finite[-1] + (finite[-1] - finite[-2]) * np.array([0.5, 1.0, 100.0], wide.numpy)
    points = np.concatenate([finite, middles, beyond, -beyond, [np.inf, -np.inf, np.nan]]).astype(wide.numpy)
    up, down = (np.nextafter(points, wide.numpy.type(end)) for end in (np.inf, -np.inf))
    return np.concatenate([points, up, down]).astype(wide.numpy)


def _faults_but_nan(name: str, values: Array, got: Array, expected: Array) -> Iterator[str]:
    wide_got, wide_expected = got.astype(np.float64), expected.astype(np.float64)
    both_nan = np.isnan(wide_got) & np.isnan(wide_expected)
    same_sign = np.signbit(wide_got) == np.signbit(wide_expected)
    wrong = np.flatnonzero(~both_nan & ~((wide_got == wide_expected) & same_sign))
    if len(wrong):
        at = wrong[0]
        yield f"{name}({values[at]}) is {got[at]}, not {expected[at]}; {len(wrong)} of {len(values)} differ"
