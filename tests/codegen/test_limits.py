"""What the machine cannot do is said at the user's line; what needs splitting is split."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from contextlib import ExitStack

import pytest

from loom_core.base.diagnostics import UserError
from loom_core.base.dtype import bool_, f32, i16, i32
from loom_core.codegen.errors import TileTooLarge, TooManyDimensions, TooManyLoops, TooManyScalars, Unsupported
from loom_core.isa.encoding import decode
from loom_core.isa.machine import L1_MINI, MachineConfig
from loom_core.objfile import LoomObject
from loom_core.ops import elementwise as ew
from loom_core.ops import memory, shape, special
from tests.codegen.execution import compiled, faults
from tests.codegen.sketch import FILE, Sketch

FEW_TOKENS = dataclasses.replace(L1_MINI, name="few-tokens", tokens=8)
TWO_TOKENS = dataclasses.replace(L1_MINI, name="two-tokens", tokens=2)
SMALL_ENGINE = dataclasses.replace(L1_MINI, name="small-engine", sce_registers=4, sce_streams=5, sce_instructions=9)
ONE_QUEUE = dataclasses.replace(L1_MINI, name="one-queue", dma_queues=1)
MACHINES = (L1_MINI, FEW_TOKENS, TWO_TOKENS, SMALL_ENGINE, ONE_QUEUE)


def refusal(k: Sketch, kind: type[UserError], machine: MachineConfig = L1_MINI) -> UserError:
    """The diagnostic, which points at a line of the sketch."""
    with pytest.raises(kind) as caught:
        compiled(k.finished(), machine)
    assert caught.value.location.file == FILE
    return caught.value


# ---- SRAM ----


def huge(k: Sketch, rows: int) -> None:
    tile = k.op(memory.Load, k.row_major(k.x, (rows, 256)), None, None)
    k.store(k.add(tile, k.transposed(k.transposed(tile))))


def test_a_tile_too_large() -> None:
    k = Sketch()
    huge(k, 512)
    error = refusal(k, TileTooLarge)
    (found,) = error.diagnostics
    assert "machine l1-mini has 262144" in found.message
    assert any("dma_load: 524288 bytes" in note for note in found.notes)
    assert error.location.line > 1, "where the largest window is defined"


@pytest.mark.parametrize(("rows", "prefetch"), [(40, 2), (100, 1)])
def test_prefetching_is_given_up_before_the_kernel_is(rows: int, prefetch: int) -> None:
    k = Sketch(grid=(2, 1, 1))
    huge(k, rows)
    obj = compiled(k.finished())
    slots = {window["name"]: window["slots"] for window in obj.manifest["windows"]}
    assert slots["dma_load"] == prefetch


# ---- registers ----


def live_scalars(count: int) -> Sketch:
    k = Sketch()
    scalars = [k.load((), i32) for _ in range(count)]
    total = scalars[0]
    for kind in (ew.Add, ew.Xor):
        for value in scalars[1:]:
            total = k.op(kind, total, value)
    k.store(total)
    return k


def test_too_many_live_scalars() -> None:
    error = refusal(live_scalars(300), TooManyScalars)
    assert "more than 256 scalars" in error.diagnostics[0].message
    assert error.location.line > 1


def test_many_live_scalars_cost_the_prefetching_only() -> None:
    k = live_scalars(120)  # and two more registers each where they are loaded ahead
    assert not faults(k.finished(), k.launch())


def test_too_many_carried_scalars() -> None:
    k = Sketch()
    results: list[object] = []
    with k.loop(k.n, [k.constant(i) for i in range(260)], results) as body:
        body.give(*(k.add(value, body.counter) for value in body.carried))
    for value in results:
        k.store(value)  # type: ignore[arg-type]
    refusal(k, TooManyScalars)


# ---- programs ----


def programs(obj: LoomObject) -> int:
    return sum(item.mnemonic == "program" for item in decode(obj.commands))


def many_inputs() -> Sketch:
    """More inputs than a program has streams."""
    k = Sketch(grid=(2, 1, 1))
    tiles = [k.load((8,)) for _ in range(40)]
    total = tiles[0]
    for tile in tiles[1:]:
        total = k.add(total, tile)
    k.store(total)
    return k


def many_outputs() -> Sketch:
    k = Sketch(grid=(2, 1, 1))
    tiles = [k.load((8,)) for _ in range(30)]
    for i, tile in enumerate(tiles):
        k.store(k.add(tile, tiles[(i * 11 + 3) % 30]))
    return k


def many_live_values() -> Sketch:
    """More values alive in one chain than a program has registers."""
    k = Sketch()
    x = k.load((8,))
    powers = [x]
    for _ in range(45):
        powers.append(k.mul(powers[-1], x))
    total = powers[0]
    for kind in (ew.Add, ew.Sub):
        for value in powers[1:]:
            total = k.op(kind, total, value)
    k.store(total)
    return k


def many_register_operands() -> Sketch:
    """Inputs whose addresses are in registers, more than the command's register mask covers."""
    k = Sketch(grid=(3, 1, 1))
    tiles = [k.load((8, 3)) for _ in range(22)]
    total = k.transposed(k.load((3, 8)))
    for tile in tiles:
        total = k.add(total, tile)
    k.store(total)
    return k


def many_scalar_inputs() -> Sketch:
    k = Sketch(grid=(2, 1, 1))
    scalars = [k.load(()) for _ in range(30)]
    tile = k.load((8, 3))
    for scalar in scalars:
        tile = k.add(tile, k.splat(scalar, (8, 3)))
    k.store(tile)
    return k


def many_numbers() -> Sketch:
    """Numbers in instructions take streams, one for each number."""
    k = Sketch(grid=(2, 1, 1))
    tiles = [k.op(special.RoundMantissa, k.load((8,)), bits=1 + i % 20) for i in range(40)]
    total = tiles[0]
    for tile in tiles[1:]:
        total = k.add(total, tile)
    k.store(total)
    return k


def a_long_chain() -> Sketch:
    """More operations than a program has instructions."""
    k = Sketch()
    x = k.load((8,))
    total = x
    for _ in range(1100):
        total = k.add(total, x)
    k.store(total)
    return k


SPLIT = (
    many_inputs, many_outputs, many_live_values, many_register_operands, many_scalar_inputs, many_numbers, a_long_chain
)  # fmt: skip


@pytest.mark.parametrize("make", SPLIT, ids=lambda make: make.__name__)
def test_groups_are_split(make: Callable[[], Sketch]) -> None:
    k = make()
    assert programs(compiled(k.finished())) > 1
    assert not faults(k.finished(), k.launch())


@pytest.mark.parametrize("machine", MACHINES, ids=lambda machine: machine.name)
@pytest.mark.parametrize("make", [many_inputs, many_outputs, many_live_values], ids=lambda make: make.__name__)
def test_other_machines(make: Callable[[], Sketch], machine: MachineConfig) -> None:
    k = make()
    assert not faults(k.finished(), k.launch(), machine)


# ---- dimensions and loops ----


def test_five_dimensions_where_they_walk_as_fewer() -> None:
    k = Sketch()
    tile = k.load((2, 3, 2, 3, 2))
    k.store(k.add(tile, tile))
    assert not faults(k.finished(), k.launch())


def test_five_dimensions_where_they_do_not() -> None:
    k = Sketch()
    tile = k.load((2, 3, 2, 3, 2))
    turned = k.op(shape.Transpose, tile, permutation=(4, 3, 2, 1, 0))
    k.store(k.add(turned, k.op(shape.Reshape, tile, shape=(2, 3, 2, 3, 2))))
    assert "cannot be computed on; 4 is the most" in str(refusal(k, TooManyDimensions))


def test_six_dimensions_of_a_load_and_of_a_store() -> None:
    k = Sketch()
    k.store(k.load((2, 2, 2, 3, 2, 2)))
    assert "cannot be loaded; 5 is the most" in str(refusal(k, TooManyDimensions))
    k = Sketch()
    tile = k.load((96,))
    k.store(k.op(shape.Reshape, k.add(tile, tile), shape=(2, 2, 2, 3, 2, 2)))
    assert "cannot be stored; 5 is the most" in str(refusal(k, TooManyDimensions))


def test_dimensions_of_one_element_do_not_count() -> None:
    k = Sketch()
    k.store(k.load((2, 1, 2, 3, 2, 1, 2)))
    assert not faults(k.finished(), k.launch())


@pytest.mark.parametrize(("loops", "fits"), [(13, True), (14, False)])
def test_nested_loops(loops: int, fits: bool) -> None:
    k = Sketch(n=1)
    with ExitStack() as nest:
        for _ in range(loops):
            nest.enter_context(k.loop(k.n, [], []))
            nest.callback(k.give)
        k.store(k.load((8,)))
    if fits:
        assert not faults(k.finished(), k.launch())
    else:
        assert "nested 17 deep" in str(refusal(k, TooManyLoops))


# ---- types ----


def test_operations_that_no_engine_has() -> None:
    k = Sketch()
    tile = k.load((8,), i32)
    k.store(k.op(ew.FloorDiv, tile, tile))
    assert "`floordiv` is not supported on i32" in str(refusal(k, Unsupported))


def test_bools_that_differ() -> None:
    k = Sketch()
    first, second = (k.compare("lt", k.load((9,)), k.load((9,))) for _ in range(2))
    k.store(k.compare("ne", first, second))
    assert first.type.dtype is bool_
    assert not faults(k.finished(), k.launch())


def test_constants_of_types_without_index_streams() -> None:
    k = Sketch()
    k.store(k.cast(k.constant(3, i16, (9,)), f32))
    assert not faults(k.finished(), k.launch())
