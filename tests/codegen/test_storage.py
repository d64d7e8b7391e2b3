"""Which values share a window, and how many bytes a kernel takes."""

from __future__ import annotations

from typing import Any

from loom_core.base.dtype import f32
from loom_core.ir.block import Block
from loom_core.isa.machine import L1, L1_MINI, acc_bytes
from loom_core.ops import elementwise as ew
from loom_core.ops import reduction
from tests.codegen.execution import compiled, faults
from tests.codegen.sketch import Sketch


def sizes(k: Sketch) -> list[int]:
    """Bytes of the windows, largest first, without prefetching; the kernel is right, too."""
    assert not faults(k.finished(), k.launch(), prefetch="none")
    windows = compiled(k.finished(), prefetch="none").manifest["windows"]
    return sorted((window["bytes"] * window["slots"] for window in windows), reverse=True)


def test_a_product_accumulates_in_one_window() -> None:
    k = Sketch()
    a, b = k.load((8, 8)), k.load((8, 8))
    results: list[Any] = []
    with k.loop(k.n, [k.constant(0.0, f32, (8, 8))], results) as body:
        body.give(k.dot(a, b, body.carried[0]))
    k.store(results[0])
    accumulator = acc_bytes(L1_MINI, 8, 8)
    assert sizes(k).count(accumulator) == 1
    assert len(sizes(k)) == 4, "the accumulator, two panels, and the copy that is stored"


def test_a_carried_tile_is_updated_in_place() -> None:
    k = Sketch()
    tile = k.load((100,))
    results: list[Any] = []
    with k.loop(k.n, [k.add(tile, tile)], results) as body:
        body.give(k.op(ew.Exp, body.carried[0]))
    k.store(results[0])
    assert sizes(k) == [400, 400], "the loaded tile, and one for what the loop carries"


def test_two_carried_tiles_that_are_both_needed_at_the_end_are_not() -> None:
    k = Sketch()
    tile = k.load((100,))
    results: list[Any] = []
    with k.loop(k.n, [tile, k.add(tile, tile)], results) as body:
        a, b = body.carried
        body.give(b, k.add(a, b))
    k.store(results[0])
    assert len(sizes(k)) == 4, "the loaded tile, two carried, of which one starts as its double, and their sum"


def test_addresses_are_used_again_as_soon_as_a_window_is_dead() -> None:
    k = Sketch()
    tile = k.load((1000,))
    for _ in range(6):  # each sum needs all of the tile before it
        total = k.op(reduction.Reduce, tile, kind="sum", axis=0)
        tile = k.op(ew.Sub, tile, k.splat(total, (1000,)))
    k.store(tile)
    obj = compiled(k.finished(), prefetch="none")
    tiles = [window for window in obj.manifest["windows"] if window["bytes"] == 4000]
    assert len(tiles) == 7
    assert len({window["offset"] for window in tiles}) == 2


def slots(size: int, **options: Any) -> list[int]:
    """Of the windows of a tile that is loaded and of one that is stored."""
    k = Sketch(grid=(3, 1, 1))
    tile = k.load((size,))
    k.store(k.add(tile, tile))
    return [window["slots"] for window in compiled(k.finished(), L1, **options).manifest["windows"]]


def test_small_tiles_have_more_slots_than_large_ones() -> None:
    """L1 moves 204,800 bytes in its latency; an iteration moves 8 bytes an element."""
    assert slots(64) == [16, 16]
    assert slots(1 << 12) == [8, 8]
    assert slots(1 << 16) == [2, 2]
    assert slots(64, slots=3) == [3, 3]
    assert slots(64, prefetch="loops") == slots(64, prefetch="none") == [1, 1]


def test_slots_are_given_up_where_they_do_not_fit() -> None:
    """Two tiles of 1.2 MB fit SRAM, four do not."""
    assert slots(300_000) == [1, 1]


def test_a_tile_that_a_branch_hands_on_stays_where_it_is() -> None:
    k = Sketch()
    tile = k.load((100,))
    results: list[Any] = []
    with k.loop(k.n, [k.add(tile, tile)], results) as body:
        (carried,) = body.carried
        blocks: list[Block] = []
        with k.arm(blocks):
            k.give(k.op(ew.Exp, carried))
        with k.arm(blocks):
            k.give(carried)
        body.give(*k.branch(k.compare("lt", body.counter, k.constant(2)), blocks))
    k.store(results[0])
    assert sizes(k) == [400, 400, 400], "the loaded tile, one for what the loop carries, and its exponential"
    moves = compiled(k.finished(), prefetch="none").manifest["commands"]["program"]
    assert moves == 3, "the sum, the exponential, and its way to what is carried"
