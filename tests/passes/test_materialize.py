"""Each rule of `materialize`: what an engine cannot take as it is gets a copy, everything else none."""

from __future__ import annotations

import pytest

from loom_core.passes.materialize import materialize
from tests.passes.rewriting import rewritten, text

LOADS = """
%z = constant {value = 0} : i64
%a = dma_load %x, %z, %z, %z, %z, %z, %z, %z {tile_shape = [4, 4]} : tile<4x4xf32>
%row = dma_load %x, %z, %z, %z, %z {tile_shape = [4]} : tile<4xf32>
%e = exp %a : tile<4x4xf32>
%k = constant {value = 1.0} : tile<4x4xf32>
%index = affine %z, %z, %z {shape = [4, 4], dtype = i32} : tile<4x4xi32>
"""


def store(value: str) -> str:
    return f"dma_store %y, %z, {value}, %z, %z, %z, %z, %z, %z\n"


def materialized(body: str) -> str:
    return rewritten(materialize, LOADS + body).removeprefix(text(LOADS))


def copies(body: str) -> int:
    return materialized(body).count(" = copy ")


@pytest.mark.parametrize(("value", "count"), [("%a", 0), ("%e", 0), ("%k", 1)])
def test_stores_of_tiles(value: str, count: int) -> None:
    assert copies(store(value)) == count


def test_a_store_of_a_constant() -> None:
    assert materialized(store("%k")) == "%0 = copy %k : tile<4x4xf32>\n" + store("%0")


@pytest.mark.parametrize(
    "view",
    [
        "transpose %e {permutation = [1, 0]}",
        "splat %s {shape = [4, 4]}",
        "broadcast %wide {shape = [4, 4]}",
        "reshape %flat {shape = [4, 4]}",
    ],
)
def test_a_store_of_a_view(view: str) -> None:
    before = "%wide = expand_dims %row {axis = 0} : tile<1x4xf32>\n%flat = reshape %e {shape = [16]} : tile<16xf32>\n"
    assert copies(f"{before}%v = {view} : tile<4x4xf32>\n{store('%v')}") == 1


def test_a_store_of_a_product() -> None:
    dot = "%d = dot %a, %e {dtype = f32} : tile<4x4xf32>\n"
    assert materialized(dot + store("%d")) == f"{dot}%0 = copy %d : tile<4x4xf32>\n" + store("%0")


def test_a_store_of_a_tile_that_is_also_an_accumulator() -> None:
    """The product may lie in its window, in the layout of accumulators."""
    dot = "%d = dot %a, %a, acc = %e {dtype = f32} : tile<4x4xf32>\n"
    assert materialized(dot + store("%e")) == f"{dot}%0 = copy %e : tile<4x4xf32>\n" + store("%0")


@pytest.mark.parametrize(
    ("operand", "count"),
    [("%a", 0), ("%e", 0), ("%t", 0), ("%k", 1), ("%d", 1)],
    ids=["loaded", "computed", "transposed", "constant", "a product"],
)
def test_operands_of_products(operand: str, count: int) -> None:
    before = "%t = transpose %e {permutation = [1, 0]} : tile<4x4xf32>\n%d = dot %a, %e {dtype = f32} : tile<4x4xf32>\n"
    assert copies(f"{before}%v = dot {operand}, %a {{dtype = f32}} : tile<4x4xf32>\n") == count


def test_one_copy_serves_both_operands_but_not_the_accumulator() -> None:
    before = "%d = dot %a, %e {dtype = f32} : tile<4x4xf32>\n"
    found = materialized(before + "%v = dot %d, %d, acc = %d {dtype = f32} : tile<4x4xf32>\n")
    assert found == before + ("%0 = copy %d : tile<4x4xf32>\n%v = dot %0, %0, acc = %d {dtype = f32} : tile<4x4xf32>\n")


@pytest.mark.parametrize(
    ("acc", "count"), [("%f", 0), ("%k", 0), ("%a", 1), ("%t", 1)], ids=["computed", "constant", "loaded", "transposed"]
)
def test_accumulators(acc: str, count: int) -> None:
    before = "%t = transpose %e {permutation = [1, 0]} : tile<4x4xf32>\n%f = log %a : tile<4x4xf32>\n"
    assert copies(f"{before}%v = dot %e, %e, acc = {acc} {{dtype = f32}} : tile<4x4xf32>\n") == count


LOOP = """
%zero = constant {{value = 0}} : i32
%one = constant {{value = 1}} : i32
%r = for %zero, %n, %one, {initial} : tile<4x4xf32> {{
^(%j: i32, %p: tile<4x4xf32>):
  {body}
  yield {given}
}}
"""


def loop(initial: str, given: str, body: str = "%q = exp %p : tile<4x4xf32>") -> str:
    return LOOP.format(initial=initial, given=given, body=body)


@pytest.mark.parametrize(("initial", "count"), [("%a", 0), ("%k", 0), ("%t", 1)])
def test_initial_values(initial: str, count: int) -> None:
    before = "%t = transpose %e {permutation = [1, 0]} : tile<4x4xf32>\n"
    assert copies(before + loop(initial, "%q")) == count


@pytest.mark.parametrize(("given", "count"), [("%q", 0), ("%p", 0), ("%k", 0), ("%t", 1)])
def test_values_carried_on(given: str, count: int) -> None:
    body = "%q = exp %p : tile<4x4xf32>\n  %t = transpose %q {permutation = [1, 0]} : tile<4x4xf32>"
    assert copies(loop("%a", given, body)) == count


def test_a_carried_tile_is_stored_as_it_is_unless_it_may_be_an_accumulator() -> None:
    plain = loop("%a", "%q") + store("%r")
    assert copies(plain) == 0
    product = loop("%k", "%q", "%q = dot %a, %a, acc = %p {dtype = f32} : tile<4x4xf32>") + store("%r")
    assert copies(product) == 1


def test_a_carried_tile_as_an_operand() -> None:
    """Panels are packed where a value is defined, and a carried one is defined by assignments."""
    assert copies(loop("%a", "%q", "%q = dot %p, %a {dtype = f32} : tile<4x4xf32>")) == 1


def test_values_that_a_branch_gives_need_no_copies() -> None:
    body = """
    %t = transpose %e {permutation = [1, 0]} : tile<4x4xf32>
    %r = if %b : tile<4x4xf32> {
      yield %t
    } {
      yield %k
    }
    """
    assert copies(text(body).replace("    ", "") + store("%r")) == 0


@pytest.mark.parametrize(("operand", "count"), [("%e", 0), ("%k", 0), ("%t", 1), ("%d", 1)])
def test_reshapes(operand: str, count: int) -> None:
    before = "%t = transpose %e {permutation = [1, 0]} : tile<4x4xf32>\n%d = dot %a, %e {dtype = f32} : tile<4x4xf32>\n"
    assert (
        copies(f"{before}%v = reshape {operand} {{shape = [16]}} : tile<16xf32>\n%w = exp %v : tile<16xf32>\n") == count
    )


def test_reshapes_of_reshapes_and_of_expanded_tiles_are_views() -> None:
    body = (
        "%w = expand_dims %e {axis = 1} : tile<4x1x4xf32>\n%v = reshape %w {shape = [16]} : tile<16xf32>\n"
        "%t = reshape %v {shape = [2, 8]} : tile<2x8xf32>\n"
    )
    assert copies(body) == 0


def test_a_reduction_of_an_index_tile() -> None:
    assert copies('%v = reduce %index {kind = "sum", axis = 1} : tile<4xi32>\n') == 1


def test_scalars_of_the_command_processor_are_stored_as_they_are() -> None:
    assert copies("dma_store %i, %z, %n, %z, %z, %z\n") == 0
