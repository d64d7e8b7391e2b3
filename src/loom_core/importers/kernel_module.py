"""A module with a target record and one kernel, ready for its body."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from loom_core.importers.names import NameAllocator, sanitize_symbol
from loom_core.importers.presets import kernel_module_ops, target_preset_amdgpu_kind
from loom_core.interchange.builder import ValueRef
from loom_core.interchange.builders import LoomBuilder, module_builder
from loom_core.interchange.declaration import OpDeclaration
from loom_core.interchange.dialects import default_ops
from loom_core.interchange.model import Block, Module, Region
from loom_core.interchange.text.printer import print_module
from loom_core.interchange.types import BUFFER_TYPE, INDEX, Type

MAX_LAUNCH_RANK: Final = 3


@dataclass(frozen=True, slots=True)
class KernelArgumentSpec:
    """An argument of the kernel's body."""

    ordinal: int
    name: str
    type: Type = BUFFER_TYPE


@dataclass(frozen=True, slots=True)
class KernelConfigArgumentSpec:
    """An argument of the kernel's launch configuration."""

    ordinal: int
    name: str
    type: Type = INDEX


@dataclass(frozen=True, slots=True)
class KernelLaunchConfigSpec:
    """A launch of constant size."""

    workgroup_count: tuple[int, ...] = (1, 1, 1)
    workgroup_size: tuple[int, ...] = (1, 1, 1)


@dataclass(frozen=True, slots=True)
class KernelModuleSpec:
    """A kernel to be; without `launch_config` the caller fills the configuration region."""

    target_preset: str
    export_symbol: str
    callee: str
    arguments: Sequence[KernelArgumentSpec]
    config_arguments: Sequence[KernelConfigArgumentSpec] = ()
    target_symbol: str | None = None
    launch_config: KernelLaunchConfigSpec | None = field(default_factory=KernelLaunchConfigSpec)


@dataclass(frozen=True, slots=True)
class KernelModuleShell:
    """The module, its builder, the kernel's regions and their arguments by ordinal."""

    module: Module
    builder: LoomBuilder
    config: Region
    body: Region
    config_arguments_by_ordinal: dict[int, ValueRef]
    body_arguments_by_ordinal: dict[int, ValueRef]
    target_symbol: str
    kernel_symbol: str

    @property
    def config_block(self) -> Block:
        return self.config.blocks[0]

    @property
    def body_block(self) -> Block:
        return self.body.blocks[0]


def normalize_launch_tuple(sizes: Sequence[int]) -> tuple[int, int, int]:
    """Three sizes, missing ones 1. ValueError for more than three."""
    if len(sizes) > MAX_LAUNCH_RANK:
        raise ValueError(f"unsupported launch rank {len(sizes)}: at most {MAX_LAUNCH_RANK} sizes are given")
    x, y, z = (*sizes, *(1,) * (MAX_LAUNCH_RANK - len(sizes)))
    return x, y, z


normalize_workgroup_size = normalize_launch_tuple


def build_static_launch_config(builder: LoomBuilder, config: KernelLaunchConfigSpec) -> None:
    """Six constants and the terminator, into the builder's insertion block."""
    sizes = {
        "workgroup_count": ("wg_count", normalize_launch_tuple(config.workgroup_count)),
        "workgroup_size": ("wg_size", normalize_launch_tuple(config.workgroup_size)),
    }
    values: dict[str, Any] = {}
    for parameter, (name, numbers) in sizes.items():
        for axis, number in zip("xyz", numbers, strict=True):
            values[f"{parameter}_{axis}"] = builder.index.constant(value=number, results=[INDEX], name=f"{name}_{axis}")
    builder.kernel.config(**values)


def create_kernel_module(spec: KernelModuleSpec) -> KernelModuleShell:
    """A module with the target record and the kernel of `spec`; its body is empty."""
    module, builder = module_builder(ops=kernel_module_ops(spec.target_preset))
    target = spec.target_symbol or sanitize_symbol(spec.target_preset, fallback="target")
    kind = target_preset_amdgpu_kind(spec.target_preset)
    if kind is None:
        builder.target.generic(kind="reference", symbol=target)
    else:
        builder.amdgpu.target(kind=kind, symbol=target)
    config_values = _arguments(builder, spec.config_arguments)
    body_values = _arguments(builder, spec.arguments)
    # The configuration region has values of its own, so that its names are a scope of their own.
    config = builder.region([(value.name, value.type) for value in config_values.values()])
    body = builder.region(list(body_values.values()))
    builder.kernel.def_(target=target, export_symbol=spec.export_symbol, callee=spec.callee, config=config, body=body)
    entries = [ValueRef(module, value) for value in config.blocks[0].arg_ids]
    if spec.launch_config is not None:
        with builder.insertion_block(config.blocks[0]):
            build_static_launch_config(builder, spec.launch_config)
    by_ordinal = dict(zip(config_values, entries, strict=True))
    return KernelModuleShell(module, builder, config, body, by_ordinal, body_values, target, spec.callee)


def _arguments(
    builder: LoomBuilder, specs: Sequence[KernelArgumentSpec] | Sequence[KernelConfigArgumentSpec]
) -> dict[int, ValueRef]:
    names = NameAllocator()
    return {spec.ordinal: builder.value(names.fresh(spec.name, fallback="arg"), spec.type) for spec in specs}


def print_loom_module(
    module: Module, *, ops: Iterable[OpDeclaration] | None = None, print_locations: bool = False
) -> str:
    """The canonical text of a module; `ops` are all that importers may emit unless given."""
    return print_module(module, known_ops() if ops is None else ops, print_locations=print_locations)


def known_ops() -> tuple[OpDeclaration, ...]:
    """The default operations and the target records of all presets."""
    from loom_core.interchange.dialects import amdgpu_ops

    return default_ops() + amdgpu_ops()
