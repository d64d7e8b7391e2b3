"""The upstream spelling of Palladium, for porting Pallas kernels by changing imports only.

    import loom.experimental.pallas as pl
    import loom.experimental.pallas.numpy as jnp
    import loom.experimental.pallas.tpu as pltpu

`pallas_call` takes and gives NumPy arrays, torch tensors or jax arrays; jax itself is not needed. The modules `numpy`,
`lax`, `nn`, `tpu` and `triton` stand in for those that kernel bodies use.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from loom.experimental.pallas.upstream import ours
from palladium import (
    Blocked,
    BlockSpec,
    Element,
    GridSpec,
    MemorySpace,
    ShapeDtypeStruct,
    Squeezed,
    broadcast_to,
    call,
    cdiv,
    debug_check,
    debug_print,
    ds,
    dslice,
    load,
    loop,
    num_programs,
    program_id,
    reciprocal,
    semaphore_read,
    semaphore_signal,
    semaphore_wait,
    softmax,
    squeezed,
    store,
    swap,
    when,
)
from palladium import Buffered as _Buffered
from palladium import run_scoped as _run_scoped
from palladium.errors import Refused, fail
from palladium.hints import refuse_option
from palladium.products import kernel_dot as dot
from palladium.scoped import compare_and_swap, read_modify_write
from palladium.specs import ANY, HBM
from palladium.values import array
from palladium.views import Slice

__all__ = [
    "ANY",
    "HBM",
    "BlockSpec",
    "Blocked",
    "BoundedSlice",
    "Buffered",
    "CostEstimate",
    "Element",
    "GridSpec",
    "MemorySpace",
    "RevisitMode",
    "ShapeDtypeStruct",
    "Slice",
    "Squeezed",
    "align_to",
    "array",
    "atomic_add",
    "atomic_and",
    "atomic_cas",
    "atomic_max",
    "atomic_min",
    "atomic_or",
    "atomic_xchg",
    "atomic_xor",
    "broadcast_to",
    "cdiv",
    "core_map",
    "debug_check",
    "debug_print",
    "delay",
    "dot",
    "ds",
    "dslice",
    "empty",
    "empty_like",
    "estimate_cost",
    "kernel",
    "load",
    "loop",
    "multiple_of",
    "next_power_of_2",
    "num_programs",
    "pallas_call",
    "program_id",
    "reciprocal",
    "run_scoped",
    "semaphore_read",
    "semaphore_signal",
    "semaphore_wait",
    "softmax",
    "squeezed",
    "store",
    "strides_from_shape",
    "swap",
    "when",
    "with_scoped",
]  # fmt: skip


class RevisitMode(Enum):
    """Whether an output may come back to blocks that it has left."""

    IMMEDIATE = "immediate"
    ANY = "any"


def Buffered(buffer_count: int, use_lookahead: bool = False, revisit: Any = None) -> _Buffered:
    """How many blocks of an operand are in SRAM at once; loads run ahead as far as there is room, with or without
    `use_lookahead`.
    """
    return _Buffered(buffer_count, getattr(revisit, "name", None) == "ANY")


@dataclass(frozen=True)
class CostEstimate:
    """What a kernel costs, for another machine's scheduler; `loomc profile` has the cycles of this one."""

    flops: int = 0
    transcendentals: int = 0
    bytes_accessed: int = 0
    remote_bytes_transferred: int = 0


def estimate_cost(fun: Callable[..., Any], *args: Any, **kwargs: Any) -> CostEstimate:
    """Nothing is estimated here: a cost of 0."""
    return CostEstimate()


def run_scoped(f: Callable[..., Any], *types: Any, collective_axes: Any = (), **kw_types: Any) -> Any:
    """What `f` gives for refs of fresh scratch, one for each of `types`; the scratch is gone after it."""
    refuse_option("run_scoped", "collective_axes", collective_axes, (), "allocate for each core")
    return _run_scoped(f, *ours(types), **ours(kw_types))


def pallas_call(
    kernel: Callable[..., Any],
    out_shape: Any,
    *,
    grid_spec: Any = None,
    grid: Any = (),
    in_specs: Any = None,
    out_specs: Any = None,
    scratch_shapes: Any = (),
    input_output_aliases: Mapping[int, int] | None = None,
    debug: bool = False,
    interpret: Any = False,
    name: str | None = None,
    compiler_params: Any = None,
    cost_estimate: Any = None,
    backend: Any = None,
    metadata: Any = None,
    **options: Any,
) -> Callable[..., Any]:
    """A function of arrays that runs `kernel` over `grid`; see `palladium.kernel`.

    Of `compiler_params` the dimension_semantics count. `interpret` may be an InterpretParams that says what reads
    out of bounds do. `debug`, `cost_estimate`, `backend` and `metadata` are accepted, and mean nothing.
    """
    reads = getattr(interpret, "out_of_bounds_reads", None)
    if reads is not None:
        options = {"out_of_bounds_reads": reads, **options}
    for option, plain in (("uninitialized_memory", "nan"), ("skip_floating_point_ops", False)):
        refuse_option("InterpretParams", option, getattr(interpret, option, plain), plain)
    return call(
        kernel,
        out_shape=out_shape,
        grid_spec=ours(grid_spec),
        grid=_sizes(grid),
        in_specs=ours(in_specs),
        out_specs=ours(out_specs),
        scratch_shapes=ours(scratch_shapes),
        input_output_aliases=input_output_aliases,
        name=name,
        axis_names=_names(grid),
        dimension_semantics=_semantics(_parameter(compiler_params, "dimension_semantics")),
        **options,
    )


def _sizes(grid: Any) -> Any:
    """A grid without the names that upstream lets its axes have."""
    if not isinstance(grid, (tuple, list)):
        return grid
    return tuple(axis[1] if isinstance(axis, tuple) and len(axis) == 2 else axis for axis in grid)


def _names(grid: Any) -> tuple[str, ...]:
    """The names of a grid's axes, where they have some."""
    given = grid if isinstance(grid, (tuple, list)) else ()
    return tuple(str(axis[0]) for axis in given if isinstance(axis, tuple) and len(axis) == 2)


def kernel(
    body: Callable[..., Any] | None = None, out_type: Any = (), *, mesh: Any, scratch_types: Any = (),
    compiler_params: Any = None, interpret: Any = False, cost_estimate: Any = None, debug: bool = False,
    name: str | None = None, metadata: Any = None,
) -> Any:  # fmt: skip
    """A function of arrays that runs `body` on each core of a mesh: on refs of the operands, the outputs, the scratch.

    The cores are a grid axis, which lax.axis_index and program_id know by the mesh's name of it; several cores of the
    machine may share it.
    """
    sizes, names = tuple(mesh.shape.values()), tuple(mesh.shape)

    def make(body: Callable[..., Any]) -> Callable[..., Any]:
        return call(
            body, out_shape=out_type, grid=sizes, scratch_shapes=ours(scratch_types), name=name, axis_names=names
        )

    return make if body is None else make(body)


def core_map(mesh: Any, **options: Any) -> Any:
    """Refused: it runs on refs that live outside of kernels."""
    instead = "give the arrays to pl.kernel(body, out_type, mesh=mesh)"
    fail(Refused, what="core_map", reason="refs live in kernels", instead=instead)


def BoundedSlice(block_size: int) -> Any:
    """Refused: blocks have one size."""
    instead = "take blocks of the largest size, and mask, or loop inside of the kernel"
    fail(Refused, what="BoundedSlice", reason="blocks have one size", instead=instead)


def with_scoped(*types: Any, collective_axes: Any = (), **kw_types: Any) -> Any:
    """A decorator: the function gets refs of fresh scratch after its arguments, as run_scoped gives them."""

    def decorate(f: Callable[..., Any]) -> Callable[..., Any]:
        def scoped(*args: Any) -> Any:
            return run_scoped(functools.partial(f, *args), *types, collective_axes=collective_axes, **kw_types)

        return functools.wraps(f)(scoped)

    return decorate


def align_to(x: int, a: int) -> int:
    """The least multiple of `a` that is not below x."""
    return cdiv(x, a) * a  # type: ignore[no-any-return]


def delay(nanos: Any) -> None:
    """Nothing: no result depends on time."""


def _semantics(given: Any) -> Any:
    """dimension_semantics with Palladium's meanings: upstream lets outputs accumulate along axes called parallel."""
    names = [getattr(one, "value", one) for one in given or ()]
    return tuple("permitted" if name in ("parallel", "core_parallel", "subcore_parallel") else name for name in names)


def _parameter(given: Any, name: str) -> Any:
    """One of the compiler parameters, of an object or a dictionary."""
    return given.get(name) if isinstance(given, Mapping) else getattr(given, name, None)


def next_power_of_2(n: int) -> int:
    """The least power of two that is not below n."""
    return 1 << max(int(n) - 1, 0).bit_length()


def multiple_of(x: Any, values: Any) -> Any:
    """x, with the promise that it is a multiple of `values`; nothing here depends on it."""
    return x


def strides_from_shape(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Strides in elements of a row-major array."""
    strides = [1] * len(shape)
    for d in range(len(shape) - 2, -1, -1):
        strides[d] = strides[d + 1] * shape[d + 1]
    return tuple(strides)


def empty(shape: Any, dtype: Any) -> Any:
    """A tile of unspecified elements: zeros."""
    from palladium import zeros

    return zeros(shape, dtype)


def empty_like(x: Any) -> Any:
    """A tile of unspecified elements (zeros) in the shape and dtype of x."""
    from palladium import zeros_like

    return zeros_like(x)


def _atomic(kind: str) -> Callable[..., Any]:
    def function(ref: Any, idx: Any, val: Any, *, mask: Any = None) -> Any:
        return read_modify_write(kind, ref, idx, val, mask)

    function.__name__ = function.__qualname__ = f"atomic_{kind}"
    function.__doc__ = f"ref[idx] = {kind} of it and val, one element after the other; gives the old elements."
    return function


atomic_add = _atomic("add")
atomic_max = _atomic("max")
atomic_min = _atomic("min")
atomic_and = _atomic("and")
atomic_or = _atomic("or")
atomic_xor = _atomic("xor")
atomic_xchg = _atomic("xchg")


def atomic_cas(ref: Any, cmp: Any, val: Any) -> Any:
    """ref[...] = val where it equals cmp; gives the old value."""
    return compare_and_swap(ref, ..., cmp, val)
