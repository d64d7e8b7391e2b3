"""Warm calls with plain NumPy arrays: what `Plan.run` does, without looking again at what was found before."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any

import numpy as np

from libloom.arrays import NumpyFields, owner_bounds
from libloom.kernel import buffer_word, register_word
from loom_core.base.diagnostics import LoomError
from loom_core.launch import relocated
from palladium.plan import Plan


def call_key(operands: Sequence[Any]) -> Hashable | None:
    """What a warm call is known by; None where some operand is no aligned NumPy array."""
    if not NumpyFields.usable:
        return None
    words, parts = NumpyFields.words, []
    for operand in operands:
        if type(operand) is not np.ndarray or not words[(id(operand) >> 3) + NumpyFields.FLAGS] & NumpyFields.ALIGNED:
            return None
        parts.append((operand.dtype, operand.shape, operand.strides))
    return tuple(parts)


def is_plain(plan: Plan) -> bool:
    """Whether each call of a plan only runs it: no blocks to check, no outputs that begin with operands."""
    declaration = plan.declaration
    return not plan.checks and not declaration.aliases and 0 not in declaration.grid


def warm_call(plan: Plan) -> Callable[[Sequence[Any]], Any]:
    """A function of the operands that runs a compiled plan."""
    kernel, function, declaration = plan.variant.apart, plan.variant.function, plan.declaration
    grid = [register_word(register) for register in kernel.object.abi.grid_registers]
    places = [buffer_word(argument.slot) for argument in kernel.object.abi.buffers]
    outputs = [
        (output.shape, output.dtype.numpy, output.dtype.poison if fill else None)
        for output, fill in zip(declaration.outputs, plan.fills, strict=True)
    ]
    words = NumpyFields.words

    def call(operands: Sequence[Any]) -> Any:
        made = [
            np.empty(shape, dtype) if poison is None else np.full(shape, poison, dtype)
            for shape, dtype, poison in outputs
        ]
        launch = kernel.take()
        try:
            state = launch.words
            for word in grid:
                state[word] = 1
            for array, word in zip((*operands, *made), places, strict=True):
                place = id(array) >> 3
                address = words[place + NumpyFields.DATA]
                state[word] = address
                if words[place + NumpyFields.FLAGS] & NumpyFields.OWNS:
                    state[word + 1], state[word + 2] = 0, array.nbytes
                else:
                    start, end = owner_bounds(array)
                    state[word + 1], state[word + 2] = start - address, end - address
            launch.go()
        except LoomError as error:
            raise relocated(error, function) from None
        finally:
            kernel.pool.append(launch)
        return declaration.result(made)

    return call
