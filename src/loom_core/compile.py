"""Tile IR to an object: the passes, then code generation."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from blake3 import blake3

from loom_core.base.knobs import knobs
from loom_core.codegen.context import Options
from loom_core.codegen.kernel import generate
from loom_core.ir.block import Function
from loom_core.ir.printer import print_function
from loom_core.ir.verifier import verify_function
from loom_core.isa.machine import MachineConfig
from loom_core.objfile import LoomObject, write_object
from loom_core.passes.pipeline import PIPELINE


def _fingerprint() -> str:
    """Names, sizes and times of the compiler's files: another compiler never meets this one's objects in the cache."""
    digest = blake3()
    root = Path(__file__).parent
    for path in sorted(root.rglob("*.py")):
        status = path.stat()
        digest.update(f"{path.relative_to(root)} {status.st_size} {status.st_mtime_ns}\n".encode())
    return digest.hexdigest()


COMPILER_VERSION = _fingerprint()
"""Part of every cache key."""

SHOW_TIMING, SHOW_RESULT, SHOW_PASSES = 2, 3, 4


def compile_kernel(
    function: Function, *, machine: MachineConfig, options: Mapping[str, Any] | None = None
) -> LoomObject:
    """Compile a kernel; `function` itself may be changed.

    options: `prefetch` ("all", "loops" or "none"), `slots` (how many iterations of a loop may have a tile in SRAM at
    once), `assume_noalias` (whether buffers that are written may be taken not to overlap others; the pairs are listed
    in the object's ABI). Raises a UserError with the user's line for what the machine cannot do.
    """
    start = time.perf_counter()
    lowered = run_passes(function)
    passed = time.perf_counter()
    obj = generate(lowered, machine, Options(**dict(options or {})))
    if knobs.debug >= SHOW_TIMING:
        milliseconds = ((passed - start) * 1e3, (time.perf_counter() - passed) * 1e3)
        _show(f"compiled {function.name}: passes {milliseconds[0]:.1f} ms, commands {milliseconds[1]:.1f} ms")
    _report(lowered, obj)
    return obj


def run_passes(function: Function) -> Function:
    """The pass pipeline; LOOM_VERIFY says when the IR is verified, LOOM_DEBUG=4 shows it after each change."""
    if knobs.verify != "off":
        verify_function(function)
    follow = knobs.debug >= SHOW_PASSES or knobs.dump_dir is not None
    text = print_function(function) if follow else ""
    if follow:
        _show_ir(function.name, "tracing", text)
    for number, step in enumerate(PIPELINE):
        function = step(function)
        if knobs.verify == "each":
            verify_function(function)
        if follow:
            before, text = text, print_function(function)
            if text != before:
                _show_ir(function.name, f"{number:02}_{step.__name__}", text)
    if knobs.verify == "end":
        verify_function(function)
    return function


def _show_ir(kernel: str, step: str, text: str) -> None:
    """The IR after a step, to the terminal and the dump folder where they are asked for."""
    if knobs.debug >= SHOW_PASSES:
        _show(f"# {kernel} after {step}\n{text}")
    _dump(f"{kernel}.{step}.ir", text.encode())


def _report(function: Function, obj: LoomObject) -> None:
    """Final IR and commands, to the terminal and the dump folder where they are asked for."""
    if knobs.debug < SHOW_RESULT and knobs.dump_dir is None:
        return
    from loom_core.isa.describe import disassemble

    commands = disassemble(obj)
    if knobs.debug >= SHOW_RESULT:
        _show(print_function(function))
        _show(commands)
    _dump(f"{function.name}.asm", commands.encode())
    _dump(f"{function.name}.loom", write_object(obj))


def _dump(name: str, data: bytes) -> None:
    folder = knobs.dump_dir
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)


def _show(text: str) -> None:
    print(text, file=sys.stderr)
