"""SCE programs of one instruction over strided operands, run as whole objects, and the same by the references."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

import loom_sim
from exhaustive.inputs import mixed_values, operand_types, result_type, special_values, unsigned_of
from loom_core.base.dtype import by_name
from loom_core.isa.encoding import Command, command, encode
from loom_core.isa.machine import L1
from loom_core.isa.program import S, SceInstr, SceProgram, StreamSpec, encode_program
from loom_core.isa.sce import SceOp
from loom_core.objfile import Abi, AbiArg, LoomObject
from loom_core.reference.opcodes import reference_of

Array = NDArray[Any]

SIZES: Final = (3, 5, 41)
ELEMENTS: Final = 1 << 11  # of an operand's region
# Steps of an operand's dimensions, in elements; the region begins where the lowest address is legal.
PATTERNS: Final[dict[str, tuple[int, int, int]]] = {
    "contiguous": (205, 41, 1),
    "padded": (400, 64, 1),
    "transposed": (1, 3, 15),
    "middle first": (41, 123, 1),
    "broadcast rows": (41, 0, 1),
    "broadcast columns": (5, 1, 0),
    "backwards": (-205, -41, -1),
    "apart": (615, 123, 3),
    "one value": (0, 0, 0),
}
# Those that may be stored to.
_TARGETS: Final = ("contiguous", "padded", "transposed", "backwards", "apart", "middle first")


@dataclass(frozen=True)
class Placed:
    """One stream of one command: where element 0 lies in its region, and the steps, in elements."""

    first: int
    steps: tuple[int, ...]

    @classmethod
    def of(cls, steps: Sequence[int], sizes: Sequence[int]) -> Placed:
        lowest = sum(min(step * (size - 1), 0) for step, size in zip(steps, sizes, strict=True))
        return cls(-lowest, tuple(steps))

    def indices(self, sizes: Sequence[int]) -> NDArray[np.int64]:
        """Index in the region of every element of the iteration space."""
        grid = np.indices(sizes).reshape(len(sizes), -1)
        return self.first + np.asarray(self.steps, np.int64) @ grid


def region_values(op: SceOp, seed: int) -> list[Array]:
    """A region of elements an operand: special ones first, then a mixture."""
    rng = np.random.default_rng(seed)
    regions = []
    for name in operand_types(op):
        values = mixed_values(name, rng, ELEMENTS)
        special = special_values(name)[:ELEMENTS]
        values[: len(special)] = rng.permutation(special.view(unsigned_of(by_name(name)))).view(values.dtype)
        regions.append(values)
    return regions


def _object(op: SceOp, regions: Sequence[Array], commands: Sequence[Command], target_bytes: int) -> LoomObject:
    streams = [*(StreamSpec("load", name) for name in operand_types(op)), StreamSpec("store", result_type(op))]
    a, b, c = (*(S(number) for number in range(len(regions))), None, None)[:3]
    program = SceProgram(tuple(streams), (SceInstr(op.mnemonic, S(len(regions)), a, b, c),), 0)
    moves_in, base = [], 0
    for number, region in enumerate(regions):
        moves_in.append(_copy((number + 1, 0), (0, base), region.nbytes))
        base += region.nbytes
    result = len(regions) + 1
    body = [*moves_in, _copy((result, 0), (0, base), target_bytes), *commands]
    body += [_copy((0, base), (result, 0), target_bytes), command("halt")]
    args = tuple(AbiArg(f"b{i}", "buffer", "u8", i, read=True, written=i == result) for i in range(1, result + 1))
    return LoomObject(encode(body), encode_program(program), b"", Abi(args=args), manifest={}, machine=L1)


def _copy(source: tuple[int, int], target: tuple[int, int], count: int) -> Command:
    return command("copy", *source, *target, 0, count, 1, 1, 0, count, flags={"ndim": 1, "log2_bytes": 0, "skip": 0})


def _program(op: SceOp, sizes: Sequence[int], streams: Sequence[tuple[int, Placed, int]], fold: int = 0) -> Command:
    """PROGRAM over (base, placement, bytes of an element) streams."""
    given: list[int] = [0, *sizes]
    for base, placed, element in streams:
        given += [base + placed.first * element, *(step * element for step in placed.steps)]
    return command("program", *given, flags={"ndim": len(sizes), "fold": fold, "drain": 0})


def _run(obj: LoomObject, arrays: Sequence[Array]) -> None:
    loom_sim.load(obj).run([(array.ctypes.data, 0, array.nbytes) for array in arrays], {})


def element_program_faults(op: SceOp, seed: int = 0) -> list[str]:
    """Stride patterns for which the simulator's result of an opcode differs from the reference's; none if all is well.

    Every operand goes through every pattern, each beside other patterns of the others.
    """
    regions = region_values(op, seed)
    names = list(PATTERNS)
    element = by_name(result_type(op)).itemsize
    target = np.full(len(names) * ELEMENTS * element, 0xA5, np.uint8)
    expected = target.copy()
    bases = np.cumsum([0, *(region.nbytes for region in regions)]).tolist()
    commands, reference = [], reference_of(op)
    for number in range(len(names)):
        placements = [Placed.of(PATTERNS[names[(number + 2 * i) % len(names)]], SIZES) for i in range(len(regions))]
        stored = Placed.of(PATTERNS[_TARGETS[number % len(_TARGETS)]], SIZES)
        loads = [(bases[i], placed, regions[i].itemsize) for i, placed in enumerate(placements)]
        store = (bases[-1] + number * ELEMENTS * element, stored, element)
        commands.append(_program(op, SIZES, [*loads, store]))
        values = reference(*(region[placed.indices(SIZES)] for region, placed in zip(regions, placements, strict=True)))
        part = expected[number * ELEMENTS * element :][: ELEMENTS * element].view(unsigned_of(by_name(result_type(op))))
        part[stored.indices(SIZES)] = np.ascontiguousarray(values).view(part.dtype)
    _run(_object(op, regions, commands, target.nbytes), [*regions, target])
    wrong = (target != expected).reshape(len(names), -1).any(axis=1)
    return [f"{op.mnemonic}, {name}" for name, is_wrong in zip(names, wrong, strict=True) if is_wrong]


# rows, elements of a row, steps of both, in elements
_FOLDS: Final = (
    (1, 1, (1, 1)),
    (7, 9, (9, 1)),
    (9, 33, (40, 1)),
    (5, 31, (1, 5)),
    (33, 64, (0, 1)),
    (3, 4096, (4096, 1)),
    (2, 5000, (5003, 1)),
    (2, 3000, (-1, 2)),
)
_FOLD_ELEMENTS: Final = 4 * 4096


def row_program_faults(op: SceOp, seed: int = 0) -> list[str]:
    """The same for what works on rows (reductions, scans, places of extremes): rows of one to many elements,
    strided, half of them without NaN or inf."""
    rng = np.random.default_rng(seed)
    (name,), result = op.operands, result_type(op)
    mixed, tame = mixed_values(name, rng, _FOLD_ELEMENTS), _tame(name, rng)
    cases = [(values, fold) for values in (mixed, tame) for fold in _FOLDS]
    regions = [np.concatenate([mixed, tame])]
    element, reference = by_name(result).itemsize, reference_of(op)
    room = max(rows * (length if op.is_scan else 1) for rows, length, _ in _FOLDS)
    target = np.full(len(cases) * room * element, 0xA5, np.uint8)
    expected = target.copy().view(unsigned_of(by_name(result))).reshape(len(cases), room)
    commands = []
    for number, (values, (rows, length, steps)) in enumerate(cases):
        placed = Placed.of(steps, (rows, length))
        base = 0 if values is mixed else mixed.nbytes
        stored = Placed(0, (length, 1) if op.is_scan else (1, 0))
        target_base = regions[0].nbytes + number * room * element
        streams = [(base, placed, by_name(name).itemsize), (target_base, stored, element)]
        commands.append(_program(op, (rows, length), streams, fold=1))
        made = np.ascontiguousarray(reference(values[placed.indices((rows, length))].reshape(rows, length)))
        expected[number, : made.size] = made.view(expected.dtype).ravel()
    _run(_object(op, regions, commands, target.nbytes), [*regions, target])
    wrong = (target.view(expected.dtype).reshape(expected.shape) != expected).any(axis=1)
    return [f"{op.mnemonic}, {case[1][:2]}" for case, is_wrong in zip(cases, wrong, strict=True) if is_wrong]


def _tame(name: str, rng: np.random.Generator) -> Array:
    """Values of a type of which neither sums nor products overflow."""
    dtype = by_name(name)
    if dtype.is_float:
        values: Array = rng.uniform(0.9, 1.1, _FOLD_ELEMENTS) * rng.choice([-1.0, 1.0], _FOLD_ELEMENTS)
        return values.astype(np.float32).astype(dtype.numpy) if dtype.itemsize < 8 else values
    return mixed_values(name, rng, _FOLD_ELEMENTS)
