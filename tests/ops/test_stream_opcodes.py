"""What an operation of Tile IR means is what the opcode computes that it compiles to: bit for bit, for every operation,
every element type, special values in all pairs. `./run exhaustive properties` holds the engines to the same references.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import loom_core.ops  # noqa: F401  (declares the operations)
from exhaustive.engines import differences
from exhaustive.inputs import mixed_values, operands
from loom_core.base.dtype import DType, by_name, f32, i32
from loom_core.codegen.stream import mnemonic_of
from loom_core.ir.block import Block
from loom_core.ir.op import REGISTRY
from loom_core.ir.types import TileType
from loom_core.isa.sce import ALL_SCE_OPS, DTYPE_CODES, SCE_OPS
from loom_core.ops import elementwise as ew
from loom_core.ops import reduction, special
from loom_core.reference.opcodes import reference_of

TYPES = [by_name(name) for name in DTYPE_CODES]
COMPUTED = [dtype for dtype in TYPES if dtype.bits != 4]
# Made of other operations before code generation, or of two opcodes.
_NO_OPCODE = {"floordiv", "copy"}
# Opcodes without an operation: comparisons as unsigned numbers, bit moves and such that only the compiler emits.
_NO_OPERATION = {"mov", "ltu", "leu", "shru", "softplus"}


def _attributes(kind: type[Any], dtype: DType) -> Iterator[dict[str, Any]]:
    if kind is ew.Compare:
        yield from ({"predicate": name} for name in ("eq", "ne", "lt", "le", "gt", "ge"))
    elif kind is ew.Cast:
        for result in TYPES:
            if result is not dtype:
                yield {"dtype": result, "saturate": True}
                yield {"dtype": result, "saturate": False}
    elif kind is special.CastTowardZero:
        yield from ({"dtype": result} for result in TYPES if f"cast_rtz.{dtype.name}.{result.name}" in SCE_OPS)
    elif kind is special.RoundMantissa:
        yield from ({"bits": bits} for bits in (0, 7, 10, 22))
    elif kind is not ew.Bitcast:
        yield {}


def _operations(kind: type[Any]) -> Iterator[Any]:
    """The operation on every type that it takes, with every attribute; those without an opcode left out."""
    for dtype in TYPES if kind is ew.Cast else COMPUTED:
        types = [TileType(dtype, (4,))] * len(kind.operand_fields)
        if kind is ew.Select:
            types[0] = TileType(by_name("bool"), (4,))
        if kind is special.Ldexp:
            types[1] = TileType(i32, (4,))
        for attributes in _attributes(kind, dtype):
            op = kind(Block(tuple(types)).arguments, attributes)
            if op.verify() is None and not (kind is special.RoundMantissa and dtype is not f32):
                yield op


ELEMENTWISE = sorted(
    (kind for kind in REGISTRY.values() if kind.elementwise and kind.name not in _NO_OPCODE), key=lambda kind: kind.name
)


@pytest.mark.parametrize("kind", [kind for kind in ELEMENTWISE if kind is not ew.Bitcast], ids=lambda kind: kind.name)
def test_elementwise(kind: type[Any]) -> None:
    tried = 0
    for op in _operations(kind):
        opcode = SCE_OPS[mnemonic_of(op)]
        arguments = operands(opcode, 100, 1)
        given = arguments[:1] if kind is special.RoundMantissa else arguments
        if kind is special.RoundMantissa:
            arguments[1] = np.full_like(arguments[1], op.bits)
        with np.errstate(all="ignore"):
            different = differences(np.asarray(op.ref(*given)), reference_of(opcode)(*arguments))
        assert not len(different), (opcode.mnemonic, [argument[different[0]] for argument in arguments])
        tried += 1
    assert tried


@pytest.mark.parametrize("kind", reduction.KINDS)
def test_rows(kind: str) -> None:
    tried = 0
    for dtype in COMPUTED:
        if f"reduce_{kind}.{dtype.name}" not in SCE_OPS:
            continue
        rows = mixed_values(dtype.name, np.random.default_rng(1), 7 * 69).reshape(7, 69)
        block = Block((TileType(dtype, rows.shape),))
        for op in (
            reduction.Reduce(block.arguments, {"kind": kind, "axis": 1}),
            reduction.Scan(block.arguments, {"kind": kind, "axis": 1, "reverse": False}),
        ):
            opcode = SCE_OPS[mnemonic_of(op)]
            with np.errstate(all="ignore"):
                assert not len(differences(op.ref(rows).ravel(), reference_of(opcode)(rows).ravel())), opcode.mnemonic
            tried += 1
    assert tried


def test_every_opcode_is_compared() -> None:
    """Of the opcodes that the stream engine has, no function is without an operation that is compared above."""
    seen = {mnemonic_of(op) for kind in ELEMENTWISE if kind is not ew.Bitcast for op in _operations(kind)}
    seen |= {
        f"{form}_{kind}.{dtype.name}" for form in ("reduce", "scan") for kind in reduction.KINDS for dtype in TYPES
    }
    others = _NO_OPERATION | {op.function for op in ALL_SCE_OPS if op.is_argument}
    missing = [op.mnemonic for op in ALL_SCE_OPS if op.mnemonic not in seen and op.function not in others]
    assert missing == ["ne.bool"]  # compiles to xor
