"""A kernel of an interchange module as a Tile IR function."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from loom_core.importers.kernel_module import known_ops
from loom_core.importers.presets import target_preset_amdgpu_subgroup_size
from loom_core.importers.workgroups import byte_ranges, calls, collectives, control, memory, numbers
from loom_core.importers.workgroups.conversion import CONVERTERS, Conversion, KernelParameter, Memory
from loom_core.importers.workgroups.launch import Launch
from loom_core.interchange.model import Module, Operation
from loom_core.interchange.types import BufferType
from loom_core.interchange.uniformity import divergent_values
from loom_core.ir.block import Function
from loom_core.ops.control import Return

DEFAULT_SUBGROUP_SIZE: Final = 32
FAMILIES: Final = (numbers, memory, byte_ranges, control, calls, collectives)
"""The modules whose operations are converted."""


@dataclass(frozen=True, slots=True)
class ConvertedKernel:
    """A Tile IR kernel for one launch: its parameters in order, each of them an argument of the launch."""

    function: Function
    parameters: tuple[KernelParameter, ...]
    launch: Launch


def convert_kernel(module: Module, kernel: Operation, launch: Launch) -> ConvertedKernel:
    """Convert a verified kernel for a launch. NotMappable, at the operation's location, for what has no counterpart."""
    body = kernel.regions[1]
    declarations = {op.name: op for op in known_ops()}
    conversion = Conversion(
        module, kernel, launch, declarations, divergent_values(body, module), _subgroup_size(module, kernel, launch)
    )
    if len(body.blocks) != 1:
        conversion.refuse("control flow between blocks is not mapped; use scf")
    for value in body.blocks[0].arg_ids:
        argument = module.values[value]
        name = argument.name or f"argument_{body.blocks[0].arg_ids.index(value)}"
        if isinstance(argument.type, BufferType):
            conversion.memories[value] = Memory(name)
        else:
            conversion.bind(value, conversion.number(name, "scalar", conversion.dtype_of(argument.type)))
    conversion.block(body.blocks[0])
    conversion.lanes.make(Return)
    return ConvertedKernel(conversion.function, tuple(conversion.parameters), launch)


def _subgroup_size(module: Module, kernel: Operation, launch: Launch) -> int:
    """As the target says, else 32; never more than a workgroup has workitems."""
    target = module.find_symbol(str(kernel.attributes.get("target", "")))
    record = target.op if target is not None else None
    size = record.attributes.get("subgroup_size") if record is not None else None
    if size is None and record is not None and record.name == "amdgpu.target":
        size = target_preset_amdgpu_subgroup_size(f"-mcpu={record.attributes['kind']}")
    return min(size or DEFAULT_SUBGROUP_SIZE, launch.lanes)


MAPPED: Final = frozenset(CONVERTERS)
"""The operations that run."""
