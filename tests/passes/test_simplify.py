"""Each rule of `simplify`, before and after."""

from __future__ import annotations

import pytest

from loom_core.passes.simplify import simplify
from tests.passes.rewriting import rewritten, text


def simplified(body: str) -> str:
    return rewritten(simplify, body)


def check(before: str, after: str) -> None:
    assert simplified(before) == text(after)


def test_views_of_a_constant_are_constants() -> None:
    check(
        """
        %c = constant {value = 2.5} : f32
        %a = splat %c {shape = [4]} : tile<4xf32>
        %e = expand_dims %a {axis = 0} : tile<1x4xf32>
        %r = broadcast %e {shape = [3, 4]} : tile<3x4xf32>
        %t = transpose %r {permutation = [1, 0]} : tile<4x3xf32>
        %value = reshape %t {shape = [12]} : tile<12xf32>
        %zero = constant {value = 0} : i64
        dma_store %x, %zero, %value, %zero, %zero, %zero
        """,
        """
        %value = constant {value = 2.5} : tile<12xf32>
        %zero = constant {value = 0} : i64
        dma_store %x, %zero, %value, %zero, %zero, %zero
        """,
    )


@pytest.mark.parametrize(
    ("operation", "number"),
    [
        ("add %two, %three", 5),
        ("sub %two, %three", -1),
        ("mul %three, %three", 9),
        ("div %minus, %two", -3),
        ("floordiv %minus, %two", -4),
        ("rem %minus, %two", -1),
        ("div %two, %none", -1),
        ("floordiv %two, %none", -1),
        ("rem %two, %none", 2),
        ("min %two, %minus", -7),
        ("max %two, %minus", 2),
        ("and %three, %two", 2),
        ("or %three, %two", 3),
        ("xor %three, %two", 1),
        ("neg %minus", 7),
        ("abs %minus", 7),
        ("add %most, %two", -2147483647),
        ("neg %least", -2147483648),
        ("div %least, %minus1", -2147483648),
    ],
)
def test_constants_are_folded(operation: str, number: int) -> None:
    numbers = {"two": 2, "three": 3, "minus": -7, "none": 0, "minus1": -1, "most": 2**31 - 1, "least": -(2**31)}
    constants = "".join(f"%{name} = constant {{value = {number}}} : i32\n" for name, number in numbers.items())
    found = simplified(f"{constants}%value = {operation} : i32\nstore %i, %value\n")
    assert found.endswith(f"constant {{value = {number}}} : i32\nstore %i, {found.splitlines()[-1].split()[-1]}\n")
    assert len(found.splitlines()) == 2


@pytest.mark.parametrize(("predicate", "holds"), [("eq", 0), ("ne", 1), ("lt", 1), ("le", 1), ("gt", 0), ("ge", 0)])
def test_comparisons_of_constants_are_folded(predicate: str, holds: int) -> None:
    found = simplified(
        f"""
        %two = constant {{value = 2}} : i32
        %three = constant {{value = 3}} : i32
        %c = cmp %two, %three {{predicate = "{predicate}"}} : bool
        %value = select %c, %n, %m : i32
        store %i, %value
        """
    )
    assert found == f"store %i, {'%n' if holds else '%m'}\n"


@pytest.mark.parametrize(
    ("operation", "kept"),
    [
        ("add %n, %zero", "%n"),
        ("add %zero, %n", "%n"),
        ("sub %n, %zero", "%n"),
        ("mul %n, %one", "%n"),
        ("mul %one, %n", "%n"),
        ("div %n, %one", "%n"),
        ("or %n, %zero", "%n"),
        ("or %zero, %n", "%n"),
        ("xor %n, %zero", "%n"),
        ("xor %zero, %n", "%n"),
    ],
)
def test_identities(operation: str, kept: str) -> None:
    constants = "%zero = constant {value = 0} : i32\n%one = constant {value = 1} : i32\n"
    assert simplified(f"{constants}%value = {operation} : i32\nstore %i, %value\n") == f"store %i, {kept}\n"


@pytest.mark.parametrize("operation", ["sub %zero, %n", "div %one, %n", "mul %zero, %n", "add %one, %n"])
def test_what_only_looks_like_an_identity_stays(operation: str) -> None:
    constants = "%zero = constant {value = 0} : i32\n%one = constant {value = 1} : i32\n"
    assert operation in simplified(f"{constants}%value = {operation} : i32\nstore %i, %value\n")


@pytest.mark.parametrize(
    "operation", ["add %v, %zero", "mul %v, %one", "sub %v, %zero", "div %v, %one", "add %zero, %zero", "max %v, %v"]
)
def test_floats_are_left_alone(operation: str) -> None:
    """x + 0 turns -0 into +0, and every operation makes NaNs canonical."""
    body = f"""
    %zero = constant {{value = 0.0}} : f32
    %one = constant {{value = 1.0}} : f32
    %v = load %x : f32
    %value = {operation} : f32
    store %y, %value
    """
    assert operation in simplified(body)


def test_a_cast_to_the_same_type_goes() -> None:
    check("%v = cast %n {dtype = i32} : i32\nstore %i, %v\n", "store %i, %n\n")


def test_a_choice_with_a_known_condition() -> None:
    check(
        """
        %true = constant {value = true} : bool
        %value = select %true, %n, %m : i32
        store %i, %value
        """,
        "store %i, %n\n",
    )


def test_a_choice_of_floats_stays() -> None:
    body = """
    %true = constant {value = true} : bool
    %v = load %x : f32
    %value = select %true, %v, %s : f32
    store %y, %value
    """
    assert "select" in simplified(body)


def test_equal_operations_are_merged() -> None:
    check(
        """
        %a = mul %n, %m : i32
        %c = mul %n, %m : i32
        %d = mul %m, %n : i32
        %e = add %a, %c : i32
        %f = add %e, %d : i32
        store %i, %f
        """,
        """
        %a = mul %n, %m : i32
        %d = mul %m, %n : i32
        %e = add %a, %a : i32
        %f = add %e, %d : i32
        store %i, %f
        """,
    )


def test_different_attributes_are_not_merged() -> None:
    body = """
    %a = cmp %n, %m {predicate = "lt"} : bool
    %c = cmp %n, %m {predicate = "le"} : bool
    %d = xor %a, %c : bool
    %e = select %d, %n, %m : i32
    store %i, %e
    """
    assert simplified(body) == text(body)


def test_zeros_and_nans_of_different_bits_are_not_merged() -> None:
    body = """
    %plus = constant {value = 0.0} : f32
    %minus = constant {value = -0.0} : f32
    %nan = constant {value = nan} : f32
    %other = constant {value = nan(0x7ff8000000000001)} : f32
    store %x, %plus
    store %x, %minus
    store %x, %nan
    store %x, %other
    """
    assert simplified(body) == text(body)


def test_an_inner_block_uses_what_is_outside_but_not_the_other_way_round() -> None:
    check(
        """
        %a = mul %n, %n : i32
        %r = if %b : i32 {
          %c = mul %n, %n : i32
          %d = mul %m, %m : i32
          %e = add %c, %d : i32
          yield %e
        } {
          %f = mul %m, %m : i32
          yield %f
        }
        %g = mul %m, %m : i32
        %h = add %r, %a : i32
        %j = add %h, %g : i32
        store %i, %j
        """,
        """
        %a = mul %n, %n : i32
        %r = if %b : i32 {
          %d = mul %m, %m : i32
          %e = add %a, %d : i32
          yield %e
        } {
          %f = mul %m, %m : i32
          yield %f
        }
        %g = mul %m, %m : i32
        %h = add %r, %a : i32
        %j = add %h, %g : i32
        store %i, %j
        """,
    )


def test_loads_are_not_merged() -> None:
    body = """
    %a = load %x : f32
    store %x, %s
    %c = load %x : f32
    %d = add %a, %c : f32
    store %y, %d
    """
    assert simplified(body) == text(body)
