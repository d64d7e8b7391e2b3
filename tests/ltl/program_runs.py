"""Runs of `random_programs`: by the references and on the simulator, on memories of the same contents."""

from __future__ import annotations

import warnings
from typing import Any, Final

import numpy as np
import numpy.typing as npt

import loom
from loom.testing.cases import unwritten
from loom.testing.values import fill
from loom_core.base.diagnostics import LoomWarning
from loom_core.objfile import validate, write_object
from ltl.jit import JitFunction
from ltl.source import load_source
from tests.ltl.random_programs import HALF, Program, element_type

Array = npt.NDArray[Any]

LARGER: Final = """
@ltl.jit
def larger(a, b):
    return ltl.maximum(a, b)
"""


def kernel_of(program: Program) -> JitFunction:
    """The kernel of a program, from its text."""
    text = f"import loom.triton.language as ltl\n{LARGER if 'larger' in program.text else ''}\n\n{program.text}"
    found: JitFunction = load_source(text, "<random program>")["kernel"]
    return found


def memories_of(program: Program) -> dict[str, Array]:
    """A memory for each argument; the pointer is to its middle."""
    found = {}
    for number, name in enumerate(program.buffers):
        dtype = element_type(name)
        if name.startswith("out_"):
            found[name] = unwritten(dtype, 2 * HALF)
            continue
        seed = 1000 * program.seed + number
        values = fill(dtype, 2 * HALF, "random", seed, None, None, True)
        # Mostly small numbers, so that masks and indices say something.
        small = fill(dtype, 2 * HALF, "counting", 0, None, None, True)
        found[name] = np.where(np.arange(2 * HALF) % 3 == 0, small, values)
    return found


def faults(program: Program) -> list[str]:
    """All that is wrong with what Loom makes of a program."""
    try:
        kernel = kernel_of(program)
        wanted, got = memories_of(program), memories_of(program)
        with loom.knobs.override(interpret=True):
            _launch(kernel, program, wanted)
        with loom.check(), warnings.catch_warnings():
            # Random programs compute what they never use.
            warnings.simplefilter("ignore", LoomWarning)
            _launch(kernel, program, got)
        given = [memory[HALF:] for memory in got.values()]
        data = write_object(kernel.variant(kernel.specs((*given, program.n), {})).apart.object)
    except loom.LoomError as error:
        return [str(error)]
    found = [str(diagnostic) for diagnostic in validate(data, strict=True)]
    for name, memory in got.items():
        width = f"u{memory.itemsize}"
        places = np.flatnonzero(memory.view(width) != wanted[name].view(width))
        if len(places):
            at = int(places[0])
            found.append(
                f"{name}[{at - HALF}] is {memory[at]}, by the references {wanted[name][at]}; {len(places)} differ"
            )
    return found


def _launch(kernel: JitFunction, program: Program, memories: dict[str, Array]) -> None:
    kernel[(program.grid,)](*(memory[HALF:] for memory in memories.values()), program.n)
