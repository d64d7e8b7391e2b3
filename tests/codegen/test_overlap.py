"""Chains that have nothing to do with each other: programs of their own, in an order in which engines overlap."""

from __future__ import annotations

from loom_core.codegen.overlap import LEAST_WORK
from loom_core.isa.encoding import decode
from loom_core.isa.machine import L1
from loom_core.ops import elementwise as ew
from loom_core.ops import reduction, shape
from tests.codegen.execution import compiled, faults
from tests.codegen.sketch import Sketch

ROWS = 64
"""Rows of tiles of 64 columns: enough that eight operations on one are worth a program."""
SIZES = (ROWS, 64)
CHAIN = -(-LEAST_WORK * L1.sce_startup_cycles * L1.sce_lanes // (SIZES[0] * SIZES[1]))


def chain(k: Sketch, tile: object, length: int) -> object:
    for _ in range(length):
        tile = k.op(ew.Exp, tile)
    return tile


def mnemonics(k: Sketch) -> list[str]:
    """Commands of the engines for l1, in order; the kernel is right, too."""
    assert not faults(k.finished(), k.launch(), L1)
    kept = {"program": "program", "matmul": "matmul"}
    commands = [c for c in decode(compiled(k.finished(), L1, prefetch="none").commands) if c.mnemonic in kept]
    return ["drain" if c.mnemonic == "program" and c.flag("drain") else c.mnemonic for c in commands]


def test_long_chains_apart_are_two_programs_and_short_ones_are_one() -> None:
    def kernel(length: int) -> Sketch:
        k = Sketch()
        for _ in range(2):
            k.store(chain(k, k.load(SIZES), length))
        return k

    assert mnemonics(kernel(CHAIN)) == ["program"] * 2
    assert mnemonics(kernel(CHAIN - 1)) == ["program"]


def test_chains_that_read_one_tile_are_one_program() -> None:
    k = Sketch()
    tile = k.load(SIZES)
    for factor in (2, 3):
        scaled = k.mul(tile, k.splat(k.op(shape.Constant, value=float(factor), type=k.s.type), SIZES))
        k.store(chain(k, scaled, CHAIN))
    assert mnemonics(k) == ["program"]


def softmaxes(k: Sketch, count: int, size: int) -> None:
    """exp(a b - max of its rows) b, several times: a product, a program, a product."""
    sizes = (size, size)
    for _ in range(count):
        b = k.load(sizes)
        scores = k.dot(k.load(sizes), b)
        most = k.op(reduction.Reduce, scores, kind="max", axis=1)
        spread = k.op(shape.Broadcast, k.op(shape.ExpandDims, most, axis=1), shape=sizes)
        k.store(k.dot(k.op(ew.Exp, k.op(ew.Sub, scores, spread)), b))


def test_a_product_is_drained_before_the_next_one_begins() -> None:
    k = Sketch()
    softmaxes(k, 1, 32)
    alone = mnemonics(k)
    k = Sketch()
    softmaxes(k, 2, 64)
    found = mnemonics(k)
    first, second, *_ = (i for i, name in enumerate(found) if name == "matmul")
    assert "drain" in found[first:second]
    assert sorted(found) == sorted(alone * 2)
