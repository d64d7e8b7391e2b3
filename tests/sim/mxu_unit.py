"""The matrix unit's subroutines as Python functions on host addresses, and guarded memory for them."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from loom_sim import jit, mxu
from loom_sim.mxu_elements import ELEMENTS
from loom_sim.mxu_kernel import RegisterTile

Words = npt.NDArray[np.uint32]

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
