"""Tile IR to an object: the passes, then code generation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from loom_core.base.knobs import knobs
from loom_core.codegen.context import Options
from loom_core.codegen.kernel import generate
from loom_core.ir.block import Function
from loom_core.ir.verifier import verify_function
from loom_core.isa.machine import MachineConfig
from loom_core.objfile import LoomObject
from loom_core.passes.pipeline import PIPELINE

COMPILER_VERSION = "1"
"""Part of every cache key; raised by a change of what the compiler emits."""


def compile_kernel(
    function: Function, *, machine: MachineConfig, options: Mapping[str, Any] | None = None
) -> LoomObject:
    """Compile a kernel.

    options: `prefetch` ("all", "loops" or "none"), `assume_noalias` (whether buffers that are written may be taken not
    to overlap others; the pairs are listed in the object's ABI). Raises a UserError with the user's line for what the
    machine cannot do.
    """
    lowered = run_passes(function)
    return generate(lowered, machine, Options(**dict(options or {})))


def run_passes(function: Function) -> Function:
    """The pass pipeline; verified after every pass with LOOM_VERIFY=each."""
    verify_each = knobs.verify == "each"
    for step in PIPELINE:
        function = step(function)
        if verify_each:
            verify_function(function)
    return function
