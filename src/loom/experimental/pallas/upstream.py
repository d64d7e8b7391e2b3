"""Specs, grids, buffers and options of jax's own classes as Palladium's: kernels may keep some of jax's imports."""

from __future__ import annotations

import sys
from enum import Enum
from typing import Any, Final

from palladium import specs
from palladium.promotion import as_dtype
from palladium.specs import BlockSpec, Buffered, MemorySpace, PrefetchScalarGridSpec, Scratch, Semaphore

_SPACES: Final = {
    "any": MemorySpace.ANY, "hbm": MemorySpace.HBM, "gmem": MemorySpace.HBM, "host": MemorySpace.HBM,
    "vmem": MemorySpace.SRAM, "smem": MemorySpace.SRAM, "cmem": MemorySpace.SRAM,
    "semaphore_mem": MemorySpace.SEMAPHORE, "semaphore": MemorySpace.SEMAPHORE,
}  # fmt: skip


def ours(given: Any) -> Any:
    """A tree with what is of jax's classes in Palladium's; all else as it is."""
    core = sys.modules.get("jax._src.pallas.core")
    return given if core is None else _converted(given, core)


def _converted(given: Any, core: Any) -> Any:
    if isinstance(given, (tuple, list)):
        items = [_converted(one, core) for one in given]
        make = getattr(type(given), "_make", type(given))
        return make(items)
    if isinstance(given, dict):
        return {name: _converted(one, core) for name, one in given.items()}
    if isinstance(given, core.BlockSpec):
        return _block_spec(given, core)
    if given is core.no_block_spec:
        return None
    if isinstance(given, core.GridSpec):
        ins, outs, scratch = (
            _converted(part, core) for part in (given.in_specs, given.out_specs, given.scratch_shapes)
        )
        return PrefetchScalarGridSpec(getattr(given, "num_scalar_prefetch", 0), given.grid, ins, outs, scratch)
    if isinstance(given, core.MemoryRef):
        return _buffer(given)
    if isinstance(given, Enum) and type(given).__name__ == "SemaphoreType":
        return Semaphore("copy" if given.value == "dma" else "regular")
    return given


def _block_spec(given: Any, core: Any) -> BlockSpec:
    shape = given.block_shape
    if shape is not None:
        shape = tuple(_dimension(one, core) for one in shape)
    mode = given.pipeline_mode
    if isinstance(mode, core.Buffered):
        mode = Buffered(mode.buffer_count, mode.revisit is core.RevisitMode.ANY)
    return BlockSpec(shape, given.index_map, _space(given.memory_space), mode)


def _dimension(given: Any, core: Any) -> Any:
    if isinstance(given, core.Squeezed):
        return specs.squeezed
    if isinstance(given, core.Element):
        return specs.Element(given.block_size, tuple(given.padding))
    return specs.Blocked(given.block_size) if isinstance(given, core.Blocked) else given


def _space(given: Any) -> Any:
    """A memory space by jax's name of it; what has no such name stays, and is refused where it is used."""
    return None if given is None else _SPACES.get(getattr(given, "value", None) or str(given), given)


def _buffer(given: Any) -> Scratch | Semaphore:
    space = _space(given.memory_space)
    if space is MemorySpace.SEMAPHORE:
        return Semaphore("copy" if "dma" in str(given.dtype) else "regular", tuple(given.shape))
    return Scratch(tuple(given.shape), as_dtype(given.dtype), space or MemorySpace.SRAM)
