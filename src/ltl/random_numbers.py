"""Random numbers: Philox 4x32 and 4x64 (J. Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011).

Integers are Triton's, bit for bit; floats are computed from them by Triton's formulas.
"""

from __future__ import annotations

from typing import Any, Final

from loom_core.base import dtype as core
from loom_core.trace.context import current
from ltl import functions, semantic
from ltl.arguments import static_int
from ltl.errors import WrongDtype, fail
from ltl.operators import add, and_, compare, invert, mul, shr, where, xor
from ltl.tensor import tensor

ROUNDS: Final = 10

# Per counter dtype: the two multipliers and the two increments of the key.
_CONSTANTS: Final = {
    core.u32: (0xD2511F53, 0xCD9E8D57, 0x9E3779B9, 0xBB67AE85),
    core.u64: (0xD2E7470EE14C6C93, 0xCA5A826395121157, 0x9E3779B97F4A7C15, 0xBB67AE8584CAA73B),
}
_UNIFORM_SCALE: Final = {core.i32: 4.6566127342e-10, core.i64: 1.0842020432385337e-19}


def philox_impl(c0: Any, c1: Any, c2: Any, c3: Any, k0: Any, k1: Any, n_rounds: Any = ROUNDS) -> tuple[Any, ...]:
    """`n_rounds` rounds on the counters c0 to c3, uint32 or uint64 tiles, with the key k0, k1; four tiles."""
    current("ltl.philox_impl")
    counter = semantic.to_tensor(c0, "philox_impl", "c0")
    if counter.ir_type.is_pointer or counter.ir_type.dtype not in _CONSTANTS:
        fail(WrongDtype, function="philox_impl", given=str(counter.type), takes="counters are uint32 or uint64")
    first, second, raise0, raise1 = _CONSTANTS[counter.ir_type.dtype]
    for _ in range(static_int(n_rounds, "philox_impl", "n_rounds")):
        high1, high0 = functions.umulhi(second, c2), functions.umulhi(first, c0)
        low1, low0 = mul(second, c2), mul(first, c0)
        c0, c2 = xor(xor(high1, c1), k0), xor(xor(high0, c3), k1)
        c1, c3 = low1, low0
        k0, k1 = add(k0, raise0), add(k1, raise1)
    return c0, c1, c2, c3


def philox(seed: Any, c0: Any, c1: Any, c2: Any, c3: Any, n_rounds: Any = ROUNDS) -> tuple[Any, ...]:
    """Philox with the counters c0 to c3, of 32 or 64 bits, and an integer seed for key; four unsigned tiles."""
    current("ltl.philox")
    key = semantic.to_tensor(seed, "philox", "seed")
    if key.ir_type.is_pointer or not key.ir_type.dtype.is_integer:
        fail(WrongDtype, function="philox", given=f"a seed of {key.type}", takes="the seed is an integer")
    key = semantic.cast(key, core.u64)
    counters = [semantic.to_tensor(c, "philox", f"c{i}") for i, c in enumerate((c0, c1, c2, c3))]
    width = 0 if counters[0].ir_type.is_pointer else counters[0].ir_type.dtype.bits
    if width == 64:
        low, high, dtype = key, semantic.known_scalar(0, core.u64), core.u64
    elif width == 32:
        low = semantic.cast(and_(key, 0xFFFFFFFF), core.u32)
        high = semantic.cast(and_(shr(key, 32), 0xFFFFFFFF), core.u32)
        dtype = core.u32
    else:
        fail(WrongDtype, function="philox", given=str(counters[0].type), takes="counters have 32 or 64 bits")
    c0, c1, c2, c3 = (semantic.cast(c, dtype) if c.known is not None else semantic.bitcast(c, dtype) for c in counters)
    return philox_impl(c0, c1, c2, c3, low, high, n_rounds)


def randint4x(seed: Any, offset: Any, n_rounds: Any = ROUNDS) -> tuple[Any, ...]:
    """Four tiles of random 32-bit integers (uint32) for an integer seed and a tile of offsets."""
    current("ltl.randint4x")
    at = semantic.to_tensor(offset, "randint4x", "offset")
    if at.ir_type.is_pointer or not at.ir_type.dtype.is_integer:
        fail(WrongDtype, function="randint4x", given=f"an offset of {at.type}", takes="offsets are integers")
    low = semantic.cast(at, core.u32)
    zero = mul(low, 0)
    high = semantic.cast(shr(at, 32), core.u32) if at.ir_type.dtype.bits > 32 else zero
    return philox(seed, low, high, zero, zero, n_rounds)


def randint(seed: Any, offset: Any, n_rounds: Any = ROUNDS) -> tensor:
    """A tile of random 32-bit integers (uint32) for an integer seed and a tile of offsets."""
    return randint4x(seed, offset, n_rounds)[0]  # type: ignore[no-any-return]


def uint_to_uniform_float(x: Any) -> tensor:
    """Random 32- or 64-bit integers as float32 in [0, 1): |x| as a signed number, scaled."""
    current("ltl.uint_to_uniform_float")
    value = semantic.to_tensor(x, "uint_to_uniform_float", "x")
    width = 0 if value.ir_type.is_pointer or not value.ir_type.dtype.is_integer else value.ir_type.dtype.bits
    if width not in (32, 64):
        fail(
            WrongDtype,
            function="uint_to_uniform_float",
            given=str(value.type),
            takes="it takes 32- and 64-bit integers",
        )
    signed = semantic.bitcast(value, core.i32 if width == 32 else core.i64)
    folded = where(compare("lt", signed, 0), invert(signed), signed)
    return mul(folded, _UNIFORM_SCALE[signed.ir_type.dtype])  # type: ignore[no-any-return]


def rand4x(seed: Any, offsets: Any, n_rounds: Any = ROUNDS) -> tuple[tensor, ...]:
    """Four tiles of float32 uniform in [0, 1) for an integer seed and a tile of offsets."""
    return tuple(map(uint_to_uniform_float, randint4x(seed, offsets, n_rounds)))


def rand(seed: Any, offset: Any, n_rounds: Any = ROUNDS) -> tensor:
    """A tile of float32 uniform in [0, 1) for an integer seed and a tile of offsets."""
    return uint_to_uniform_float(randint(seed, offset, n_rounds))


def pair_uniform_to_normal(u1: Any, u2: Any) -> tuple[tensor, tensor]:
    """Two tiles of normally distributed float32 from two uniform ones (G. Box, M. Muller, 1958)."""
    current("ltl.pair_uniform_to_normal")
    radius = functions.sqrt(-2.0 * functions.log(functions.maximum(1.0e-7, u1)))
    angle = 6.283185307179586 * u2
    return radius * functions.cos(angle), radius * functions.sin(angle)


def randn(seed: Any, offset: Any, n_rounds: Any = ROUNDS) -> tensor:
    """A tile of normally distributed float32 for an integer seed and a tile of offsets."""
    first, second, _, _ = randint4x(seed, offset, n_rounds)
    return pair_uniform_to_normal(uint_to_uniform_float(first), uint_to_uniform_float(second))[0]


def randn4x(seed: Any, offset: Any, n_rounds: Any = ROUNDS) -> tuple[tensor, ...]:
    """Four tiles of normally distributed float32 for an integer seed and a tile of offsets."""
    u1, u2, u3, u4 = rand4x(seed, offset, n_rounds)
    return *pair_uniform_to_normal(u1, u2), *pair_uniform_to_normal(u3, u4)


__all__ = [
    "pair_uniform_to_normal", "philox", "philox_impl", "rand", "rand4x", "randint", "randint4x", "randn", "randn4x",
    "uint_to_uniform_float",
]  # fmt: skip
