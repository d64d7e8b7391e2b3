"""Accesses outside of an array: which program, and which element of its tile, made the one that stopped a run."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from loom_core.base.diagnostics import LoomError
from loom_core.checks.launch import Copies, Launch, interpreter_arguments
from loom_core.interp import OutOfBounds, interpret
from loom_core.ir.op import Op
from loom_core.ir.rewriter import clone_function
from loom_core.ops import atomic, memory


def explained(launch: Launch, error: LoomError, before: Copies) -> LoomError:
    """An access outside of a buffer as the interpreter of the IR tells it; `error` where it does not come to that.

    The machine loads ahead and in boxes. So the launch runs again without loads that run ahead, which gives the
    program, and that program alone is interpreted; both on copies of the arrays.
    """
    kernel = launch.derive("in order", lambda: clone_function(launch.function), prefetch="none")
    moved = before.moved()
    try:
        program = kernel.program.failing_program(kernel.bindings(moved), kernel.registers(launch.scalars, launch.grid))
        if program is None:
            return error
        arguments = interpreter_arguments(launch.function, before.moved(), launch.numbers)
        interpret(launch.function, arguments, launch.grid, only=program)
    except OutOfBounds as found:
        return OutOfBounds.of(replace(d, notes=(*d.notes, *_about_mask(launch, d.location))) for d in found.diagnostics)
    except LoomError:
        return error
    return error


def _about_mask(launch: Launch, location: object) -> Iterator[str]:
    """Whether the access has a mask."""
    for op in launch.function.walk():
        if op.location == location and isinstance(op, memory.Load | memory.Store | atomic.AtomicRmw):
            yield (
                "its mask holds there" if op.mask is not None else f"this {_WORDS.get(type(op), 'access')} has no mask"
            )
            return


_WORDS: dict[type[Op], str] = {memory.Load: "load", memory.Store: "store"}
