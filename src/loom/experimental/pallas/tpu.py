"""Stands in for `jax.experimental.pallas.tpu`: memory spaces map to SRAM and HBM, semaphores to counters."""

from __future__ import annotations

from typing import Any, Final

from palladium import (
    PrefetchScalarGridSpec,
    Semaphore,
    async_copy,
    bitcast_convert_type,
    concatenate,
    make_async_copy,
    semaphore_read,
    semaphore_signal,
    semaphore_wait,
    sync_copy,
)
from palladium.refs import load, store
from palladium.shaping import axis_of, item
from palladium.specs import ANY, HBM, MemorySpace
from palladium.values import array, to_array

__all__ = [
    "ANY", "HBM", "SMEM", "VMEM", "CompilerParams", "GridDimensionSemantics", "InterpretParams", "MemorySpace",
    "PrefetchScalarGridSpec", "SemaphoreType", "TPUCompilerParams", "TPUMemorySpace", "async_copy", "bitcast", "load",
    "make_async_copy", "repeat", "roll", "semaphore_read", "semaphore_signal", "semaphore_wait", "store", "sync_copy",
]  # fmt: skip

VMEM: Final = MemorySpace.SRAM
SMEM: Final = MemorySpace.SCALAR
TPUMemorySpace = MemorySpace
bitcast = bitcast_convert_type


class SemaphoreType:
    """Kinds of semaphores; called with a shape they are several."""

    REGULAR: Final = Semaphore("regular")
    DMA: Final = Semaphore("copy")
    BARRIER: Final = Semaphore("regular")


class Parameters:
    """Parameters of a TPU's compiler: kept as attributes, without meaning here."""

    def __init__(self, *args: Any, **parameters: Any) -> None:
        self.__dict__.update(parameters)


class CompilerParams(Parameters):
    """How a TPU compiler should treat a kernel."""


class InterpretParams(Parameters):
    """How upstream's interpreter should treat a kernel."""


class GridDimensionSemantics:
    """What the order of a grid axis means to a TPU compiler."""

    PARALLEL: Final = "parallel"
    CORE_PARALLEL: Final = "core_parallel"
    SUBCORE_PARALLEL: Final = "subcore_parallel"
    ARBITRARY: Final = "arbitrary"


TPUCompilerParams = CompilerParams
PARALLEL: Final = GridDimensionSemantics.PARALLEL
ARBITRARY: Final = GridDimensionSemantics.ARBITRARY


def roll(x: Any, shift: int, axis: int, **options: Any) -> array:
    """The elements moved by `shift` along an axis, the last ones to the front; the shift is known."""
    value = to_array(x, "roll")
    place = axis_of(axis, value.ndim, "roll")
    by = shift % value.shape[place]
    if by == 0:
        return value
    before = (slice(None),) * place
    return concatenate([item(value, (*before, slice(-by, None))), item(value, (*before, slice(None, -by)))], place)


def repeat(x: Any, repeats: int, axis: int) -> array:
    """The tile `repeats` times behind itself along an axis."""
    return concatenate([x] * repeats, axis)
