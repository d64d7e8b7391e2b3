"""Integer arithmetic of the IR's types on Python numbers: wrapping, and division without faults."""

from __future__ import annotations

from loom_core.base.dtype import DType


def wrap(value: int, dtype: DType) -> int:
    """`value` modulo 2^bits, in the range of `dtype`."""
    if dtype.kind == "bool":
        return int(bool(value))
    value &= (1 << dtype.bits) - 1
    return value - (1 << dtype.bits) if dtype.kind == "int" and value >> (dtype.bits - 1) else value


def truncated_quotient(a: int, b: int) -> int:
    """a / b rounded towards zero; -1 (all ones) where b is 0."""
    if b == 0:
        return -1
    quotient = abs(a) // abs(b)
    return quotient if (a < 0) == (b < 0) else -quotient


def floor_quotient(a: int, b: int) -> int:
    """a / b rounded towards minus infinity; -1 (all ones) where b is 0."""
    return a // b if b else -1


def remainder(a: int, b: int) -> int:
    """a - b * truncated_quotient(a, b); a where b is 0."""
    return a - b * truncated_quotient(a, b) if b else a


def shifted_left(a: int, b: int, dtype: DType) -> int:
    """a << b before wrapping; 0 where b is outside [0, bits)."""
    return a << b if 0 <= b < dtype.bits else 0


def shifted_right(a: int, b: int, dtype: DType) -> int:
    """a >> b; the sign (0 or -1) where b is outside [0, bits)."""
    return a >> b if 0 <= b < dtype.bits else -int(a < 0)
