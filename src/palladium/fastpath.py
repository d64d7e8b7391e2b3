"""Warm calls with plain NumPy arrays: what `Plan.run` does, without looking again at what was found before."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any

import numpy as np

from libloom.arrays import NumpyFields, owner_bounds
from libloom.kernel import PooledLaunch, buffer_word, register_word
from loom_core.base.diagnostics import LoomError
from loom_core.launch import relocated
from palladium.plan import Plan
from palladium.signature import is_output


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


def same_operands(operands: Sequence[Any]) -> Callable[[Sequence[Any]], bool]:
    """Whether other operands have the key of these, which are aligned NumPy arrays."""
    kinds = [(operand.dtype, operand.shape, operand.strides) for operand in operands]
    count, words, flags, aligned = len(kinds), NumpyFields.words, NumpyFields.FLAGS, NumpyFields.ALIGNED

    def fits(others: Sequence[Any]) -> bool:
        if len(others) != count:
            return False
        for other, (dtype, shape, strides) in zip(others, kinds):  # noqa: B905 (of one length, and called often)
            if (
                type(other) is not np.ndarray
                or other.dtype is not dtype
                or other.shape != shape
                or other.strides != strides
                or not words[(id(other) >> 3) + flags] & aligned
            ):
                return False
        return True

    return fits


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
    words, single = NumpyFields.words, is_output(declaration.out_tree)
    data, flags, owns = NumpyFields.DATA, NumpyFields.FLAGS, NumpyFields.OWNS

    count = len(places) - len(outputs)
    given, written = places[:count], places[count:]
    idle: list[PooledLaunch] = []

    def fresh() -> PooledLaunch:
        launch = PooledLaunch(kernel.program)
        for word in grid:
            launch.words[word] = 1
        return launch

    def call(operands: Sequence[Any]) -> Any:
        made = [
            np.empty(shape, dtype) if poison is None else np.full(shape, poison, dtype)
            for shape, dtype, poison in outputs
        ]
        try:
            launch = idle.pop()
        except IndexError:
            launch = fresh()
        state = launch.words
        try:
            for array, word in zip(operands, given):  # noqa: B905 (of one length, and called often)
                place = id(array) >> 3
                address = words[place + data]
                state[word] = address
                if words[place + flags] & owns:
                    state[word + 1], state[word + 2] = 0, array.nbytes
                else:
                    start, end = owner_bounds(array)
                    state[word + 1], state[word + 2] = start - address, end - address
            for array, word in zip(made, written):  # noqa: B905
                state[word] = words[(id(array) >> 3) + data]
                state[word + 1], state[word + 2] = 0, array.nbytes
            launch.go()
        except LoomError as error:
            raise relocated(error, function) from None
        finally:
            idle.append(launch)
        return made[0] if single else declaration.result(made)

    return call
