"""What becomes one program, and what keeps its order."""

from __future__ import annotations

from typing import Any

import pytest

from loom_core.base.dtype import f32, i32
from loom_core.isa.encoding import Command, decode
from loom_core.ops import elementwise as ew
from loom_core.ops import memory, reduction, shape
from tests.codegen.execution import compiled, faults
from tests.codegen.sketch import Sketch


def issued(k: Sketch, **options: Any) -> list[Command]:
    """Commands of the engines, in order; the kernel is right, too."""
    assert not faults(k.finished(), k.launch(), **options)
    engines = ("program", "copy", "matmul", "lds")
    return [item for item in decode(compiled(k.finished(), **options).commands) if item.mnemonic in engines]


def programs(k: Sketch) -> int:
    return sum(item.mnemonic == "program" for item in issued(k, prefetch="none"))


def order(k: Sketch, **options: Any) -> str:
    """L, S and P for loads, stores and programs."""
    letters = []
    for item in issued(k, prefetch="none", **options):
        letters.append("P" if item.mnemonic == "program" else "L" if item.operands[2] == 0 else "S")
    return "".join(letters)


def test_a_chain_is_one_program() -> None:
    k = Sketch()
    tile = k.load((8, 4))
    k.store(k.op(ew.Exp, k.mul(k.add(tile, tile), k.splat(k.s, (8, 4)))))
    assert programs(k) == 1


def test_chains_of_one_shape_are_one_program() -> None:
    k = Sketch()
    for _ in range(3):
        tile = k.load((8, 4))
        k.store(k.add(tile, tile))
    assert programs(k) == 1


def test_a_row_reduction_joins_the_program_of_its_operand_and_a_column_reduction_does_not() -> None:
    def kernel(axis: int) -> Sketch:
        k = Sketch()
        tile = k.load((8, 4))
        k.store(k.op(reduction.Reduce, k.mul(tile, tile), kind="sum", axis=axis))
        return k

    assert (programs(kernel(1)), programs(kernel(0))) == (1, 2)


def test_what_needs_a_reduction_comes_in_a_later_program_with_what_feeds_it() -> None:
    """As in softmax: the difference and its exponential are computed where the maximum is known."""
    k = Sketch()
    row = k.load((33,))
    largest = k.op(reduction.Reduce, row, kind="max", axis=0)
    weights = k.op(ew.Exp, k.op(ew.Sub, row, k.splat(largest, (33,))))
    total = k.op(reduction.Reduce, weights, kind="sum", axis=0)
    k.store(k.op(ew.Div, weights, k.splat(total, (33,))))
    assert programs(k) == 3


def test_a_cheap_operation_waits_for_its_user() -> None:
    """It needs no window then: nothing is stored in between."""
    k = Sketch()
    row = k.load((33,))
    doubled = k.op(ew.Exp, row)
    largest = k.op(reduction.Reduce, row, kind="max", axis=0)
    k.store(k.add(doubled, k.splat(largest, (33,))))
    first, second = (item for item in issued(k, prefetch="none") if item.mnemonic == "program")
    assert len(first.operands) == 1 + 1 + 2 * 2, "load and maximum"
    assert len(second.operands) == 1 + 1 + 2 * 3, "load, maximum and result"


def test_a_view_of_a_result_in_another_order_is_read_by_another_program() -> None:
    k = Sketch()
    tile = k.load((8,))
    doubled = k.add(tile, tile)
    again = k.op(shape.Reshape, k.op(shape.ExpandDims, doubled, axis=0), shape=(8,))
    k.store(k.mul(again, doubled))
    assert programs(k) == 2


def test_a_scalar_of_the_stream_engine_decides_an_offset_tile() -> None:
    """The index tile's first value is computed by a program, loaded by the ACP, and read by a later program."""
    k = Sketch()
    start = k.cast(k.load(()), i32)
    offsets = k.add(k.index((8,), 0), k.splat(start, (8,)))
    k.store(k.mul(offsets, offsets))
    assert [item.mnemonic for item in issued(k, prefetch="none")] == ["copy", "program", "lds", "program", "copy"]


def through_memory(k: Sketch, written: Any, read: Any) -> Sketch:
    """A store, then a load; both at the start of a buffer."""
    tile = k.load((8,))
    k.op(memory.Store, k.row_major(written, (8,)), k.add(tile, tile), None)
    loaded = k.op(memory.Load, k.row_major(read, (8,)), None, None)
    k.op(memory.Store, k.row_major(k.op(memory.AddPointer, k.out, k.constant(64)), (8,)), k.mul(loaded, tile), None)
    return k


def test_a_load_stays_behind_a_store_to_the_same_buffer() -> None:
    k = Sketch()
    assert order(through_memory(k, k.out, k.out)) == "LPSLPS"


@pytest.mark.parametrize(("assume_noalias", "expected"), [(True, "LLPSS"), (False, "LPSLPS")])
def test_a_load_from_another_buffer_overtakes_it_where_they_do_not_overlap(assume_noalias: bool, expected: str) -> None:
    k = Sketch()
    assert order(through_memory(k, k.out, k.x), assume_noalias=assume_noalias) == expected


def test_stores_to_one_buffer_keep_their_order() -> None:
    k = Sketch()
    tile = k.load((8,))
    total = k.op(reduction.Reduce, tile, kind="sum", axis=0)
    k.store(k.mul(tile, k.splat(total, (8,))), k.constant(0))
    k.store(k.add(tile, tile), k.constant(4))
    first, second = [item for item in issued(k, prefetch="none") if item.mnemonic == "copy"][1:]
    assert (first.operands[3], second.operands[3]) == (0, 16)


def test_constants_are_streams_not_tiles() -> None:
    k = Sketch()
    k.store(k.add(k.load((8,)), k.constant(2.5, f32, (8,))))
    obj = compiled(k.finished(), prefetch="none")
    assert len(obj.manifest["windows"]) == 2
