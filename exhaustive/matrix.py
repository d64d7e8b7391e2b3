"""The matrix unit's subroutines as Python functions on host addresses, guarded memory for them, digests of products."""

from __future__ import annotations

import ctypes
import functools
import hashlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from loom_core.base.dtype import by_name
from loom_sim import jit, mxu
from loom_sim.mxu_elements import ELEMENTS
from loom_sim.mxu_kernel import RegisterTile

Array = npt.NDArray[Any]
Words = npt.NDArray[np.uint32]

CANONICAL_NAN = np.uint32(0x7FC00000)

GUARD = np.uint32(0xDEADBEEF)
GUARD_WORDS = 64
UNTOUCHED = 0x12345678


def tile_of(name: str) -> RegisterTile:
    """The register tile of an element type."""
    return mxu.PAIR_TILE if ELEMENTS[name].steps == 2 else mxu.REGISTER_TILE


def _native(name: str, tile: RegisterTile, build: Callable[[], Any], arguments: int) -> Callable[..., None]:
    # The tile is part of the name: a test may choose another one than its process has by itself.
    full_name = f"unit.{name}.{tile.rows}x{tile.columns}"
    signature = f"void({', '.join(['int64'] * arguments)})"
    return ctypes.CFUNCTYPE(None, *[ctypes.c_int64] * arguments)(jit.engine_address(full_name, build, signature))


@functools.cache
def packer(name: str) -> Callable[..., None]:
    """pack(src, dst, extent, depth, extent_stride, depth_stride, ext_lo, ext_hi, k_lo, k_hi, fill_bits, side)."""

    def build() -> Callable[..., None]:
        routine = mxu.packing(name)

        def pack(src, dst, extent, depth, e_stride, k_stride, e_lo, e_hi, k_lo, k_hi, fill, side):  # type: ignore[no-untyped-def]
            routine(src, dst, extent, depth, e_stride, k_stride, e_lo, e_hi, k_lo, k_hi, fill, side)

        return pack

    return _native(f"pack.{name}", tile_of(name), build, 12)


@functools.cache
def multiplier(name: str) -> Callable[..., None]:
    """multiply(acc, a, b, m, n, k) for panels of an element type."""
    routine = mxu.multiply_pairs if ELEMENTS[name].steps == 2 else mxu.multiply_floats

    def build() -> Callable[..., None]:
        def multiply(acc, a, b, m, n, k):  # type: ignore[no-untyped-def]
            routine(acc, a, b, m, n, k)

        return multiply

    return _native(f"multiply.{ELEMENTS[name].steps}", tile_of(name), build, 6)


class Guarded:
    """Words between guards that must survive."""

    def __init__(self, words: int, fill: int = UNTOUCHED) -> None:
        self.whole = np.full(words + 2 * GUARD_WORDS, GUARD)
        self.words = self.whole[GUARD_WORDS : GUARD_WORDS + words]
        self.words[:] = fill
        self.address = self.words.ctypes.data

    def checked(self) -> Words:
        assert (self.whole[:GUARD_WORDS] == GUARD).all()
        assert (self.whole[len(self.whole) - GUARD_WORDS :] == GUARD).all()
        return self.words


def round_up(value: int, multiple: int) -> int:
    return -(-value // multiple) * multiple


def packed(
    name: str, side: int, operand: npt.NDArray[Any], box: tuple[int, int, int, int] | None = None, fill: int = 0
) -> Guarded:
    """Panel of `operand`, [extent, depth] of any strides; box is (ext_lo, ext_hi, k_lo, k_hi)."""
    extent, depth = operand.shape
    multiple = mxu.PANEL_ROWS if side == mxu.SIDE_A else mxu.PANEL_COLS
    panel = Guarded(round_up(extent, multiple) * depth)
    box = box or (0, extent, 0, depth)
    packer(name)(operand.ctypes.data, panel.address, extent, depth, *operand.strides, *box, fill, side)
    panel.checked()
    return panel


def multiplied(name: str, acc: npt.NDArray[Any], a: Guarded, b: Guarded, k: int) -> npt.NDArray[Any]:
    """acc + a b of two panels; acc is [m, n] of float32 or int32."""
    m, n = acc.shape
    tile = np.zeros((round_up(m, mxu.PANEL_ROWS), round_up(n, mxu.PANEL_COLS)), acc.dtype)
    tile[:m, :n] = acc
    guarded = Guarded(tile.size)
    guarded.words[:] = tile.view(np.uint32).ravel()
    multiplier(name)(guarded.address, a.address, b.address, m, n, k)
    return guarded.checked().view(acc.dtype).reshape(tile.shape)[:m, :n].copy()


# ---- operands --------------------------------------------------------------------------------------------------------


def is_integer(name: str) -> bool:
    """Whether the accumulators of an element type are integers."""
    return by_name(name).is_integer


def any_bits(name: str, shape: tuple[int, ...], seed: int) -> Array:
    """Any patterns; of four-bit types the unused half of a byte too."""
    size = ELEMENTS[name].bytes
    raw = np.random.default_rng(seed).integers(0, 1 << 8 * size, shape).astype(f"u{size}")
    return raw.view(by_name(name).numpy)


def every_pattern(name: str) -> Array:
    """All elements of a type of 8 or 16 bits."""
    size = ELEMENTS[name].bytes
    return np.arange(1 << 8 * size).astype(f"u{size}").view(by_name(name).numpy)


def ordinary(name: str, shape: tuple[int, ...], seed: int, scale: float = 1.0) -> Array:
    """Normally distributed floats, or any integers."""
    if is_integer(name):
        return any_bits(name, shape, seed)
    values = np.random.default_rng(seed).standard_normal(shape) * scale
    return values.astype(np.float32).astype(by_name(name).numpy)


def near_ties() -> tuple[Array, Array]:
    """a[16, 2], b[2, 2] of f32: sums of two products that float64 rounds to, or to next to, a tie of float32."""
    addends = [1 + 2.0**-23, -1 - 2.0**-23, 1.0, -1.0]
    # 1 - 2^-46 and, almost, 1 + 2^-28 as products of two floats.
    factors = [(1 + 2.0**-23, 1 - 2.0**-23), (1 + 1984 * 2.0**-23, 1 - 3967 * 2.0**-24)]
    rows = [(addend, sign * 2.0**-24 * x) for addend in addends for x, _ in factors for sign in (1, -1)]
    return np.array(rows, np.float32), np.array([[1, 1], [y for _, y in factors]], np.float32)


def canonical(words: Array) -> Array:
    """float32 bits with one pattern for all NaNs: an accumulator's payloads are nobody's business before the drain."""
    return np.where((words & 0x7FFFFFFF) > 0x7F800000, CANONICAL_NAN, words)


def product(name: str, acc: Array, a: Array, b: Array, other: str | None = None) -> Array:
    """acc + a b, operands of types `name` and `other`."""
    panels = packed(name, mxu.SIDE_A, a), packed(other or name, mxu.SIDE_B, b.T)
    return multiplied(name, acc, *panels, a.shape[1])


# ---- digests ---------------------------------------------------------------------------------------------------------

_SHAPES = ((9, 33, 17), (25, 33, 129), (13, 70, 257))


def digest(name: str) -> str:
    """One digest over products of an element type, the same on every host (the layout of panels is not)."""
    hasher = hashlib.blake2b(digest_size=12)
    for acc, a, b in _factors(name):
        result = product(name, acc, a, b)
        hasher.update((result if is_integer(name) else canonical(result.view(np.uint32))).tobytes())
    return hasher.hexdigest()


def _factors(name: str) -> Iterator[tuple[Array, Array, Array]]:
    kind = np.int32 if is_integer(name) else np.float32
    if name == "f32":
        yield np.zeros((16, 2), kind), *near_ties()
    else:  # every element once as it is, from either side
        one, patterns = np.ones((1, 1), by_name(name).numpy), every_pattern(name)
        start = np.full((len(patterns), 1), -0.0).astype(kind)
        yield start, patterns[:, None], one
        yield start.T, one, patterns[None, :]
    for m, n, k in _SHAPES:
        acc = ordinary("f32", (m, n), 1)
        start = (acc * 2.0**28).astype(kind) if is_integer(name) else acc
        yield start, ordinary(name, (m, k), 2), ordinary(name, (k, n), 3)
        yield start, np.asfortranarray(ordinary(name, (m, k), 4)), np.asfortranarray(ordinary(name, (k, n), 5))
        yield start, any_bits(name, (m, 2), 6), any_bits(name, (2, n), 7)
        if name == "f32":
            small = 2.0**-70
            yield acc * np.float32(small * small), ordinary(name, (m, k), 2, small), ordinary(name, (k, n), 3, small)
