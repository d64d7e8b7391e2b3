"""Operands for checks: every kind of value of every element type, as arrays of its NumPy type."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from loom_core.base.dtype import DType, by_name
from loom_core.isa.sce import SceOp

Array = NDArray[Any]

_F32_SPECIALS: Final = (
    0x00000000, 0x00000001, 0x00000002, 0x007FFFFF, 0x00800000, 0x00800001, 0x33000000, 0x38800000, 0x3EFFFFFF,
    0x3F000000, 0x3F3504F3, 0x3F7FFFFF, 0x3F800000, 0x3F800001, 0x3FC00000, 0x40000000, 0x40490FDB, 0x40C00000,
    0x42AEAC50, 0x42B17218, 0x42FE0000, 0x42FF999A, 0x43160000, 0x437F0000, 0x46FFFE00, 0x477FE000, 0x477FF000,
    0x497FFFFF, 0x49800001, 0x4B000000, 0x4EFFFFFF, 0x4F000000, 0x4F7FFFFF, 0x5EFFFFFF, 0x5F000000, 0x5F7FFFFF,
    0x7E800000, 0x7F7FFFFF, 0x7F800000, 0x7F800001, 0x7FA00000, 0x7FC00000, 0x7FC12345, 0x7FFFFFFF,
)  # fmt: skip
_F64_SPECIALS: Final = (
    0x0000000000000000, 0x0000000000000001, 0x000FFFFFFFFFFFFF, 0x0010000000000000, 0x0010000000000001,
    0x3690000000000000, 0x36A0000000000000, 0x380FFFFFE0000000, 0x3810000000000000, 0x3E60000000000000,
    0x3FDFFFFFFFFFFFFF, 0x3FE0000000000000, 0x3FE6A09E667F3BCD, 0x3FEFFFFFFFFFFFFF, 0x3FF0000000000000,
    0x3FF0000000000001, 0x3FF8000000000000, 0x4000000000000000, 0x400921FB54442D18, 0x4018000000000000,
    0x40862E42FEFA39EF, 0x40874910D52D3052, 0x4087490000000000, 0x40EFFC0000000000, 0x40EFFE0000000000,
    0x41DFFFFFFFC00000, 0x41E0000000000000, 0x41EFFFFFFFE00000, 0x4330000000000000, 0x43DFFFFFFFFFFFFF,
    0x43E0000000000000, 0x43EFFFFFFFFFFFFF, 0x43F0000000000000, 0x47EFFFFFE0000000, 0x47EFFFFFF0000000,
    0x47F0000000000000, 0x7FE0000000000000, 0x7FEFFFFFFFFFFFFF, 0x7FF0000000000000, 0x7FF0000000000001,
    0x7FF8000000000000, 0x7FF8000012345678, 0x7FFFFFFFFFFFFFFF,
)  # fmt: skip


def unsigned_of(dtype: DType) -> np.dtype[Any]:
    """The unsigned integers as wide as an element in memory."""
    return np.dtype(f"u{dtype.itemsize}")


def special_values(name: str) -> Array:
    """The values of a type at which something changes."""
    dtype = by_name(name)
    unsigned = unsigned_of(dtype)
    if dtype.is_bool:
        return np.array([False, True])
    if dtype.is_float:
        wide = {4: _F32_SPECIALS, 8: _F64_SPECIALS}
        patterns = wide[dtype.itemsize] if dtype.itemsize in wide else _narrow_specials(dtype)
        positive = np.array(patterns, unsigned)
        return np.concatenate([positive, positive | unsigned.type(1 << (dtype.bits - 1))]).view(dtype.numpy)
    low, high = dtype.min_value, dtype.max_value
    near = {0, 1, 2, 3, 7, 8, 31, 32, 33, 63, 64, -1, -2, -3, high, high - 1, low, low + 1, high // 2, low // 2}
    values = sorted(value for value in near if low <= value <= high)
    if dtype.bits == 4:
        return np.array([value & 15 for value in values], np.uint8).view(dtype.numpy)
    return np.array(values, dtype.numpy)


def _narrow_specials(dtype: DType) -> tuple[int, ...]:
    if dtype.itemsize == 1:
        return tuple(range(128))
    mantissa = dtype.mantissa
    infinity = ((1 << (15 - mantissa)) - 1) << mantissa
    one = ((1 << (14 - mantissa)) - 1) << mantissa
    ends = (0, 1, 2, (1 << mantissa) - 1, 1 << mantissa, (1 << mantissa) + 1, infinity - 1, infinity, infinity + 1)
    middle = (one - 1, one, one + 1, one + (1 << mantissa), one - (1 << mantissa))
    return (*ends, *middle, infinity | 1 << (mantissa - 1), 0x7FFF)


def everyday_values(name: str, rng: np.random.Generator, count: int) -> Array:
    """Values of the size that programs have."""
    dtype = by_name(name)
    if dtype.is_bool:
        return rng.random(count) < 0.5
    if dtype.is_float:
        values: Array = rng.standard_normal(count) * np.array([0.3, 2.0, 20.0])[rng.integers(0, 3, count)]
        return values.astype(np.float32).astype(dtype.numpy) if dtype.itemsize < 8 else values
    low, high = max(dtype.min_value, -40), min(dtype.max_value, 70)
    return rng.integers(low, high, count, endpoint=True).astype(dtype.numpy)


def any_values(name: str, rng: np.random.Generator, count: int) -> Array:
    """Uniform bit patterns."""
    dtype = by_name(name)
    if dtype.is_bool:
        return rng.random(count) < 0.5
    patterns = rng.integers(0, (1 << dtype.bits) - 1, count, np.uint64, endpoint=True)
    return patterns.astype(unsigned_of(dtype)).view(dtype.numpy)


def mixed_values(name: str, rng: np.random.Generator, count: int) -> Array:
    """A mixture of the three kinds."""
    special = special_values(name)
    kinds = rng.integers(0, 3, count)
    parts = (
        special[rng.integers(0, len(special), count)],
        everyday_values(name, rng, count),
        any_values(name, rng, count),
    )
    return np.choose(kinds, [part.view(unsigned_of(by_name(name))) for part in parts]).view(by_name(name).numpy)


def is_of_rows(op: SceOp) -> bool:
    """Whether an opcode makes something of whole rows, not of one element after another."""
    return op.is_reduction or op.is_scan


def operand_types(op: SceOp) -> tuple[str, ...]:
    """The operand types of an opcode by name; plain moves take unsigned integers of their width."""
    return tuple(f"u{name}" if name.isdigit() else name for name in op.operands)


def result_type(op: SceOp) -> str:
    """The result type of an opcode by name."""
    return f"u{op.result}" if op.result.isdigit() else op.result


def operands(op: SceOp, count: int, seed: int) -> list[Array]:
    """`count` or more operands: special values in all pairs first, then a mixture.

    Rounding a mantissa and scaling by a power of two get integers of a useful size.
    """
    rng = np.random.default_rng(seed)
    names = operand_types(op)
    arrays = [mixed_values(name, rng, count) for name in names]
    if len(names) == 1:
        return [np.concatenate([special_values(names[0]), arrays[0]])]
    specials = [special_values(name) for name in names[-2:]]
    pairs = len(specials[0]) * len(specials[1])
    grid = [np.repeat(specials[0], len(specials[1])), np.tile(specials[1], len(specials[0]))]
    if len(names) == 3:
        grid.insert(0, mixed_values(names[0], rng, pairs))
    if op.function == "ldexp":
        arrays[1] = rng.integers(-1100, 1100, count).astype(np.int32)
    if op.function == "round_mantissa":
        arrays[1] = rng.integers(-2, 26, count).astype(np.int32)
    return [np.concatenate(parts) for parts in zip(grid, arrays, strict=True)]
