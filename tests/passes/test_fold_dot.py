"""acc + dot(a, b) becomes dot(a, b, acc)."""

from __future__ import annotations

import pytest

from loom_core.passes.fold_dot import fold_dot_accumulator
from loom_core.passes.pipeline import PIPELINE
from tests.passes.rewriting import parsed, rewritten, text

LOADS = """
%zero = constant {value = 0} : i64
%a = dma_load %x, %zero, %zero, %zero, %zero, %zero, %zero, %zero {tile_shape = [4, 4]} : tile<4x4xf32>
%acc = dma_load %y, %zero, %zero, %zero, %zero, %zero, %zero, %zero {tile_shape = [4, 4]} : tile<4x4xf32>
"""


def store(value: str) -> str:
    return f"dma_store %y, %zero, {value}, %zero, %zero, %zero, %zero, %zero, %zero\n"


def folded(body: str) -> str:
    return rewritten(fold_dot_accumulator, LOADS + body).removeprefix(text(LOADS))


DOT = "%d = dot %a, %a {dtype = f32} : tile<4x4xf32>\n"


@pytest.mark.parametrize("operands", ["%acc, %d", "%d, %acc"])
def test_a_product_added_to_a_tile(operands: str) -> None:
    found = folded(f"{DOT}%sum = add {operands} : tile<4x4xf32>\n{store('%sum')}")
    assert found == "%sum = dot %a, %a, acc = %acc {dtype = f32} : tile<4x4xf32>\n" + store("%sum")


def test_an_accumulator_that_is_defined_after_the_product() -> None:
    body = f"{DOT}%late = mul %acc, %acc : tile<4x4xf32>\n%sum = add %late, %d : tile<4x4xf32>\n{store('%sum')}"
    found = folded(body)
    assert found.startswith("%late = mul") and "%sum = dot %a, %a, acc = %late" in found


def test_of_two_products_the_right_one_takes_the_other() -> None:
    second = DOT.replace("%d", "%e")
    found = folded(f"{DOT}{second}%sum = add %d, %e : tile<4x4xf32>\n{store('%sum')}")
    assert found == DOT + "%sum = dot %a, %a, acc = %d {dtype = f32} : tile<4x4xf32>\n" + store("%sum")


@pytest.mark.parametrize(
    "rest",
    [
        f"%sum = add %acc, %d : tile<4x4xf32>\n{store('%sum')}{store('%d')}",
        f"%sum = add %d, %d : tile<4x4xf32>\n{store('%sum')}",
        f"%sum = sub %acc, %d : tile<4x4xf32>\n{store('%sum')}",
        "%sum = if %b : tile<4x4xf32> {\n  %v = add %acc, %d : tile<4x4xf32>\n  yield %v\n} {\n  yield %acc\n}\n"
        + store("%sum"),
    ],
    ids=["another use", "twice the product", "a difference", "another block"],
)
def test_what_is_not_folded(rest: str) -> None:
    assert folded(DOT + rest) == DOT + rest


def test_a_product_with_an_accumulator_is_not_folded_again() -> None:
    body = DOT.replace("%a, %a {", "%a, %a, acc = %acc {") + f"%sum = add %acc, %d : tile<4x4xf32>\n{store('%sum')}"
    assert folded(body) == body


def test_equal_products_are_folded_before_they_are_merged() -> None:
    """What rounds is what was written: merging first would leave one product with two uses, which is not folded."""
    second = DOT.replace("%d", "%e")
    body = (
        f"{LOADS}{DOT}{second}%other = mul %acc, %acc : tile<4x4xf32>\n%p = add %acc, %d : tile<4x4xf32>\n"
        f"%q = add %other, %e : tile<4x4xf32>\n{store('%p')}{store('%q')}"
    )
    function = parsed(body)
    for step in PIPELINE:
        function = step(function)
    assert str(function).count(", acc = ") == 2
