"""Every opcode of the stream engine against its reference, bit by bit: special values in all pairs, chunks of every
length, results over operands, strides, rows longer than a block.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from exhaustive.engines import CALL, differences, run_element
from exhaustive.inputs import is_of_rows, operand_types, operands, result_type
from exhaustive.programs import element_program_faults, row_program_faults
from loom_core.isa.sce import SceOp
from loom_core.reference.opcodes import reference_of
from loom_sim.engines import element_address

Array = NDArray[Any]

SAMPLES: Final = 2000  # operands beside the pairs of special values
_LENGTHS: Final = (1, 7, 33)
_GUARD: Final = 64  # elements after a result that no engine may touch


def faults(op: SceOp, samples: int = SAMPLES, seed: int = 0) -> list[str]:
    """What is wrong with an opcode, in words; empty if nothing is."""
    if is_of_rows(op):
        return row_program_faults(op, seed)
    return [*_engine_faults(op, samples, seed), *element_program_faults(op, seed)]


def _engine_faults(op: SceOp, samples: int, seed: int) -> Iterator[str]:
    arguments = operands(op, samples, seed)
    expected = reference_of(op)(*arguments)
    got = run_element(op, arguments)
    different = differences(got, expected)
    if len(different):
        first = different[0]
        shown = ", ".join(str(argument[first]) for argument in arguments)
        yield f"{op.mnemonic}({shown}) is {got[first]}, not {expected[first]}; {len(different)} of {len(got)} differ"
    for length in _LENGTHS:
        part = [argument[-length:] for argument in arguments]
        if len(differences(_guarded(op, part), expected[-length:])):
            yield f"{op.mnemonic} of {length} elements differs, or writes past its end"
    for number, name in enumerate(operand_types(op)):
        if name == result_type(op) and len(differences(_in_place(op, arguments, number), expected)):
            yield f"{op.mnemonic} over operand {number} differs"


def _guarded(op: SceOp, arguments: Sequence[Array]) -> Array:
    """The result of an engine; all ones if it wrote past the end."""
    count = len(arguments[0])
    memory = np.zeros(count + _GUARD, run_element(op, [argument[:0] for argument in arguments]).dtype)
    _call(op, memory, arguments, count)
    return memory[:count] if not memory.view(np.uint8)[count * memory.itemsize :].any() else np.ones_like(memory)


def _in_place(op: SceOp, arguments: Sequence[Array], number: int) -> Array:
    copies = [argument.copy() for argument in arguments]
    _call(op, copies[number], copies, len(copies[number]))
    return copies[number]


def _call(op: SceOp, result: Array, arguments: Sequence[Array], count: int) -> None:
    arrays = [np.ascontiguousarray(argument) for argument in arguments]
    addresses = [ctypes.c_int64(array.ctypes.data) for array in arrays] + [ctypes.c_int64(0)] * (3 - len(arrays))
    CALL(element_address(op))(result.ctypes.data, *addresses, count)
