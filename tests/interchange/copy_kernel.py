"""The 64-byte copy kernel, built with the public API."""

from __future__ import annotations

from loom.importers import KernelArgumentSpec, KernelLaunchConfigSpec, KernelModuleSpec, create_kernel_module
from loom.ir import INDEX, OFFSET, Module


def build_copy_kernel() -> Module:
    shell = create_kernel_module(
        KernelModuleSpec(
            target_preset="reference",
            export_symbol="copy_64_bytes",
            callee="copy_64_bytes",
            arguments=[KernelArgumentSpec(0, "source"), KernelArgumentSpec(1, "target")],
            launch_config=KernelLaunchConfigSpec(workgroup_size=(64, 1, 1)),
        )
    )
    builder, arguments = shell.builder, shell.body_arguments_by_ordinal
    with builder.insertion_block(shell.body_block):
        index = builder.kernel.workitem_dispatch_id(dimension="x", results=[INDEX], name="workitem_index")
        offset = builder.index.cast(input=index, results=[OFFSET], name="byte_offset")
        value = builder.buffer.load_i8_u(source=arguments[0], byte_offset=offset, name="value")
        builder.buffer.store_i8(value=value, target=arguments[1], byte_offset=offset)
        builder.kernel.return_()
    return shell.module
