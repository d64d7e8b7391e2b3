"""Stands in for `jax.experimental.pallas.tpu`: memory spaces map to SRAM and HBM, semaphores to counters."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Final

from loom.experimental.pallas.upstream import ours
from loom_core.base import dtype as core
from loom_core.isa.machine import L1
from palladium import (
    PrefetchScalarGridSpec,
    Semaphore,
    add,
    arranging,
    astype,
    async_copy,
    bitcast_convert_type,
    broadcasted_iota,
    concatenate,
    isfinite,
    make_async_copy,
    multiply,
    program_id,
    remainder,
    semaphore_read,
    semaphore_signal,
    semaphore_wait,
    subtract,
    sync_copy,
    when,
    where,
)
from palladium import emit_pipeline as _emit_pipeline
from palladium import refs as _refs
from palladium.errors import Refused, WrongDtype, WrongSpec, fail
from palladium.hints import check_names, refuse_option
from palladium.operators import and_ as bitwise_and
from palladium.operators import compare
from palladium.promotion import as_dtype
from palladium.random_bits import (
    prng_random_bits,
    prng_seed,
    stateful_bernoulli,
    stateful_bits,
    stateful_normal,
    stateful_uniform,
)
from palladium.shaping import axis_of
from palladium.specs import ANY, HBM, Buffered, MemorySpace
from palladium.staging import look_up
from palladium.values import array, known_scalar, to_array

__all__ = [
    "ANY",
    "ARBITRARY",
    "CORE_PARALLEL",
    "HBM",
    "PARALLEL",
    "SMEM",
    "SUBCORE_PARALLEL",
    "VMEM",
    "CompilerParams",
    "GridDimensionSemantics",
    "InterpretParams",
    "MemorySpace",
    "PrefetchScalarGridSpec",
    "SemaphoreType",
    "TPUCompilerParams",
    "TPUMemorySpace",
    "TensorCoreMesh",
    "async_copy",
    "async_remote_copy",
    "bitcast",
    "create_tensorcore_mesh",
    "emit_pipeline",
    "get_barrier_semaphore",
    "load",
    "make_async_copy",
    "make_async_remote_copy",
    "prng_random_bits",
    "prng_seed",
    "repeat",
    "roll",
    "run_on_first_core",
    "semaphore_read",
    "semaphore_signal",
    "semaphore_wait",
    "stateful_bernoulli",
    "stateful_bits",
    "stateful_normal",
    "stateful_uniform",
    "stochastic_round",
    "store",
    "sync_copy",
    "touch",
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
CORE_PARALLEL: Final = GridDimensionSemantics.CORE_PARALLEL
SUBCORE_PARALLEL: Final = GridDimensionSemantics.SUBCORE_PARALLEL
ARBITRARY: Final = GridDimensionSemantics.ARBITRARY


def roll(x: Any, shift: Any, axis: int, *, stride: Any = None, stride_axis: Any = None) -> array:
    """The elements moved by `shift` along an axis, the last ones to the front.

    With a stride, index i of `stride_axis` is moved by `shift + i * stride`.
    """
    value = to_array(x, "roll")
    if stride is None and stride_axis is None:
        return arranging.roll(value, shift, axis)
    if stride is None or stride_axis is None:
        fail(WrongSpec, what="roll", problem="stride and stride_axis belong together", advice="give both or none")
    place, rows = (axis_of(one, value.ndim, "roll") for one in (axis, stride_axis))
    size = value.shape[place]
    column = broadcasted_iota(core.i32, value.shape, place)
    moved = add(multiply(broadcasted_iota(core.i32, value.shape, rows), stride), shift)
    return look_up(value, remainder(subtract(column, moved), size), place)


def load(ref: Any, *, mask: Any = None) -> array:
    """All elements of a ref; where the mask does not hold, poison."""
    return _refs.load(ref, ..., mask=mask)


def store(ref: Any, val: Any, *, mask: Any = None) -> None:
    """Write a ref where the mask holds."""
    _refs.store(ref, ..., val, mask=mask)


def repeat(x: Any, repeats: int, axis: int) -> array:
    """The tile `repeats` times behind itself along an axis."""
    return concatenate([x] * repeats, axis)


def touch(ref: Any) -> None:
    """Nothing: what a kernel does not read needs no mark here."""


def stochastic_round(x: Any, random_bits: Any, *, target_dtype: Any) -> array:
    """x in a 16-bit float dtype or less: up or down, by chance; NaN and infinities as they are.

    The bits of x as float32, plus the low 16 bits of random_bits, are cut behind bfloat16's; no other dtype is there.
    """
    value, bits = to_array(x, "stochastic_round"), to_array(random_bits, "stochastic_round")
    target = as_dtype(target_dtype)
    if target is not core.bf16 or value.core is not core.f32 or bits.core is not core.u32:
        takes = "it takes float32 and uint32 bits, and gives bfloat16"
        fail(WrongDtype, function="stochastic_round", given=f"{value} to {target.name}", takes=takes)
    pattern = bitcast_convert_type(value, core.u32)
    raised = add(pattern, bitwise_and(bits, known_scalar(0xFFFF, core.u32)))
    cut = bitcast_convert_type(bitwise_and(raised, known_scalar(0xFFFF0000, core.u32)), core.f32)
    return astype(where(isfinite(value), cut, value), core.bf16)


@dataclass(frozen=True)
class TensorCoreMesh:
    """Cores along a named axis: `devices` are their numbers."""

    devices: tuple[int, ...]
    axis_names: tuple[str, ...]

    @property
    def shape(self) -> dict[str, int]:
        """The number of cores along each axis."""
        return {self.axis_names[0]: len(self.devices)}


def create_tensorcore_mesh(axis_name: str, devices: Any = None, num_cores: int | None = None) -> TensorCoreMesh:
    """A mesh of `num_cores` cores, by default those of the machine."""
    refuse_option("create_tensorcore_mesh", "devices", devices, instead="give num_cores")
    return TensorCoreMesh(tuple(range(L1.cores if num_cores is None else num_cores)), (axis_name,))


def run_on_first_core(core_axis_name: str) -> Any:
    """A decorator that runs a function without parameters where the index along the axis is 0."""
    return when(compare("eq", program_id(core_axis_name), 0))


def emit_pipeline(
    body: Any, *, grid: Any, in_specs: Any = (), out_specs: Any = (), tiling: Any = None, core_axis: Any = None,
    core_axis_name: Any = None, dimension_semantics: Any = None, trace_scopes: bool = True, no_pipelining: bool = False,
) -> Any:  # fmt: skip
    """A function of refs that runs `body` on their blocks over a grid; see `palladium.emit_pipeline`.

    `core_axis` means nothing: programs run one after the other. With `no_pipelining` blocks are loaded when needed.
    """
    ins, outs = ours(in_specs), ours(out_specs)
    if no_pipelining:
        ins = [replace(one, pipeline_mode=Buffered(1)) for one in (ins if isinstance(ins, (tuple, list)) else [ins])]
    return _emit_pipeline(body, grid=grid, in_specs=ins, out_specs=outs)


def make_async_remote_copy(*args: Any, **options: Any) -> Any:
    """Refused: there is one device."""
    fail(Refused, what="a copy to another device", reason="there is one", instead="copy with make_async_copy()")


async_remote_copy = make_async_remote_copy


def get_barrier_semaphore() -> Any:
    """Refused: there is one device, and one core at a time."""
    fail(Refused, what="a barrier", reason="programs run one after the other", instead="leave it out")
