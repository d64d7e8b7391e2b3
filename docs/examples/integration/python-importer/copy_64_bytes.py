"""Builds, verifies, prints and serialises a kernel that copies 64 bytes, one a workitem."""

from pathlib import Path

from loom.format.bytecode.reader import read_module
from loom.format.bytecode.writer import write_module
from loom.importers import (
    KernelArgumentSpec,
    KernelLaunchConfigSpec,
    KernelModuleSpec,
    create_kernel_module,
    kernel_module_ops,
    print_loom_module,
)
from loom.ir import INDEX, OFFSET, Module
from loom.verify import verify_module

PRESET = "reference"


def build() -> Module:
    shell = create_kernel_module(
        KernelModuleSpec(
            target_preset=PRESET,
            export_symbol="copy_64_bytes",
            callee="copy_64_bytes",
            arguments=[KernelArgumentSpec(0, "source"), KernelArgumentSpec(1, "target")],
            launch_config=KernelLaunchConfigSpec(workgroup_size=(64, 1, 1)),
        )
    )
    builder = shell.builder
    source, target = shell.body_arguments_by_ordinal[0], shell.body_arguments_by_ordinal[1]
    with builder.insertion_block(shell.body_block):
        index = builder.kernel.workitem_dispatch_id(dimension="x", results=[INDEX], name="workitem_index")
        offset = builder.index.cast(input=index, results=[OFFSET], name="byte_offset")
        value = builder.buffer.load_i8_u(source=source, byte_offset=offset, name="value")
        builder.buffer.store_i8(value=value, target=target, byte_offset=offset)
        builder.kernel.return_()
    return shell.module


def main(folder: Path) -> None:
    """Write `copy_64_bytes.loom` and `copy_64_bytes.loombc` into `folder`."""
    module, ops = build(), kernel_module_ops(PRESET)
    verify_module(module, ops=ops).raise_if_errors()
    text = print_loom_module(module, ops=ops)
    bytecode = write_module(module, op_decls=ops)
    assert print_loom_module(read_module(bytecode, op_decls=ops, verify=True), ops=ops) == text
    (folder / "copy_64_bytes.loom").write_text(text, encoding="utf-8", newline="\n")
    (folder / "copy_64_bytes.loombc").write_bytes(bytecode)


if __name__ == "__main__":
    main(Path.cwd())
