"""Which engine serves which command, and their native addresses. Nothing is compiled, or even imported, before it is
asked for.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from loom_core.isa.commands import COMMANDS
from loom_core.isa.encoding import Command
from loom_core.isa.sce import SCE_BY_OPCODE, SceOp
from loom_sim import jit
from loom_sim.state import ENGINE_VARIANTS


def interpreter_address() -> int:
    """The command processor, which runs or surveys: int64(int64 state)."""
    return _address("interpreter", "survey", "build_surveying_interpreter", signature=jit.INTERPRETER_SIGNATURE)


def tracing_interpreter_address() -> int:
    """The command processor with the cycle model, costs of all commands included."""
    return _address("tracer", "timeline", "build_tracing_interpreter", signature=jit.INTERPRETER_SIGNATURE)


def checking_interpreter_address() -> int:
    """The command processor with the checks of `checker`."""
    return _address("checker", "checker", "build_checking_interpreter", signature=jit.INTERPRETER_SIGNATURE)


def replaying_interpreter_address() -> int:
    """The command processor that holds commands back (`deferral`)."""
    return _address("replayer", "deferral", "build_replaying_interpreter", signature=jit.INTERPRETER_SIGNATURE)


def drain_address() -> int:
    """What runs the commands that are still held back when the program has halted."""
    return _address("drain", "deferral", "build_drain", signature=jit.INTERPRETER_SIGNATURE)


def element_address(op: SceOp) -> int:
    """The element engine of an SCE opcode."""
    return _address(op.mnemonic, "elements", "build_element", op, signature=jit.ELEMENT_SIGNATURE)


def command_address(command: Command) -> int:
    """The engine of a command that is not executed by the interpreter itself."""
    mnemonic = command.mnemonic
    if mnemonic in _BY_ELEMENT:
        log2 = command.flag("log2_bytes")
        return _address(f"{mnemonic}.{8 << log2}", *_BY_ELEMENT[mnemonic], log2)
    if mnemonic in _PACKS:
        element = command.spec.flag("type").values[command.flag("type")]
        return _address(f"pack.{element}", "matrix", "build_pack", element)
    name = "matmul" if mnemonic == "matmulf" else mnemonic  # the two differ in cost alone
    return _address(name, *_BUILDERS[name])


def combine_table(commands: Iterable[Command]) -> npt.NDArray[np.int64]:
    """Addresses by SCE opcode of the element engines by which scatter_reduce commands combine; else 0."""
    opcodes = {int(c.operands[7]) for c in commands if c.mnemonic == "scatter_reduce"}  # type: ignore[arg-type]
    table = np.zeros(max(opcodes, default=0) + 1, np.int64)
    for opcode in opcodes - {0}:
        table[opcode] = element_address(SCE_BY_OPCODE[opcode])
    return table


def engine_table(commands: Iterable[Command]) -> npt.NDArray[np.int64]:
    """Addresses by opcode * ENGINE_VARIANTS + flag bits 3 and 4, of the engines that the commands need; else 0."""
    table = np.zeros((256, ENGINE_VARIANTS), np.int64)
    for command in commands:
        if command.spec.engine == "acp":
            continue
        opcode, variant = command.spec.opcode, command.flags >> 3 & (ENGINE_VARIANTS - 1)
        if table[opcode, variant] == 0:
            table[opcode, variant] = command_address(command)
    return table.reshape(-1)


def _address(name: str, module: str, builder: str, *arguments: Any, signature: str = jit.ENGINE_SIGNATURE) -> int:
    """The address of the engine that a function of a module of this package builds."""
    home = f"loom_sim.{module}"
    return jit.engine_address(
        name, lambda: getattr(importlib.import_module(home), builder)(*arguments), signature, home
    )  # fmt: skip


# Commands with an engine for each element size: module and builder, which takes log2 of the bytes.
_BY_ELEMENT: Final = {
    "copy": ("dma", "build_copy"),
    "gather": ("indexed", "build_gather"),
    "scatter": ("indexed", "build_scatter"),
    "scatter_reduce": ("indexed", "build_scatter_reduce"),
    "compare_swap": ("indexed", "build_compare_swap"),
    "sort": ("sorting", "build_sort"),
    "histogram": ("histogram", "build_histogram"),
}
_BUILDERS: Final[dict[str, tuple[Any, ...]]] = {
    "pack": ("matrix", "build_pack"),
    "matmul": ("matrix", "build_matmul"),
    "matmuli": ("matrix", "build_integer_matmul"),
    "decodef": ("decoding", "build_decode", True),
    "decodei": ("decoding", "build_decode", False),
    "accfill": ("matrix", "build_accfill"),
    "accload": ("matrix", "build_accload"),
    "program": ("stream", "build_program"),
    "combine": ("combine", "build_combine"),
}

_PACKS: Final = ("packf", "packi")


def has_engine(mnemonic: str) -> bool:
    """Whether a command of the table can run: by the interpreter or an engine (a test holds this for all)."""
    return COMMANDS[mnemonic].engine == "acp" or mnemonic in ("matmulf", *_BY_ELEMENT, *_PACKS, *_BUILDERS)
