"""Stands in for `jax.experimental.pallas.tpu`: memory spaces map to SRAM and HBM, semaphores to counters."""

from __future__ import annotations

from typing import Any, ClassVar, Final

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
from palladium import refs as _refs
from palladium.hints import check_names, refuse_option
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
    """Parameters of another machine's compiler, of the names in `known`: kept as attributes, without meaning here."""

    known: ClassVar[frozenset[str]] = frozenset()

    def __init__(self, **parameters: Any) -> None:
        check_names(type(self).__name__, parameters, self.known)
        self.__dict__.update(parameters)


class CompilerParams(Parameters):
    """How a TPU compiler should treat a kernel; `dimension_semantics` are checked."""

    known = frozenset({
        "dimension_semantics", "allow_input_fusion", "vmem_limit_bytes", "collective_id", "has_side_effects", "flags",
        "internal_scratch_in_bytes", "serialization_format", "kernel_type", "disable_bounds_checks",
        "disable_semaphore_checks", "skip_device_barrier", "allow_collective_id_without_custom_barrier",
        "shape_invariant_numerics", "use_tc_tiling_on_sc", "needs_layout_passes", "fuse_transposed_lhs_in_matmul",
    })  # fmt: skip


class InterpretParams(Parameters):
    """How upstream's interpreter should treat a kernel."""

    known = frozenset({
        "detect_races", "out_of_bounds_reads", "skip_floating_point_ops", "uninitialized_memory",
        "num_cores_or_threads", "num_cores_per_device", "vector_clock_size", "logging_mode", "dma_execution_mode",
        "random_seed", "grid_point_recorder", "allow_hbm_allocation_in_run_scoped", "buffer_bounds",
    })  # fmt: skip


class GridDimensionSemantics:
    """What the order of a grid axis means to a TPU compiler."""

    PARALLEL: Final = "parallel"
    CORE_PARALLEL: Final = "core_parallel"
    SUBCORE_PARALLEL: Final = "subcore_parallel"
    ARBITRARY: Final = "arbitrary"


TPUCompilerParams = CompilerParams
PARALLEL: Final = GridDimensionSemantics.PARALLEL
ARBITRARY: Final = GridDimensionSemantics.ARBITRARY


def roll(x: Any, shift: int, axis: int, *, stride: Any = None, stride_axis: Any = None) -> array:
    """The elements moved by `shift` along an axis, the last ones to the front; the shift is known."""
    for name, option in (("stride", stride), ("stride_axis", stride_axis)):
        refuse_option("roll", name, option, instead="roll the rows one by one")
    value = to_array(x, "roll")
    place = axis_of(axis, value.ndim, "roll")
    by = shift % value.shape[place]
    if by == 0:
        return value
    before = (slice(None),) * place
    return concatenate([item(value, (*before, slice(-by, None))), item(value, (*before, slice(None, -by)))], place)


def load(ref: Any, *, mask: Any = None) -> array:
    """All elements of a ref; where the mask does not hold, poison."""
    return _refs.load(ref, ..., mask=mask)


def store(ref: Any, val: Any, *, mask: Any = None) -> None:
    """Write a ref where the mask holds."""
    _refs.store(ref, ..., val, mask=mask)


def repeat(x: Any, repeats: int, axis: int) -> array:
    """The tile `repeats` times behind itself along an axis."""
    return concatenate([x] * repeats, axis)
