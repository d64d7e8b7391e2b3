"""Dead code goes, effects stay."""

from __future__ import annotations

import pytest

from loom_core.passes.dead import remove_dead
from tests.passes.rewriting import rewritten, text


def check(before: str, after: str) -> None:
    assert rewritten(remove_dead, before) == text(after)


def test_operations_go_and_loads_stay() -> None:
    """A load may be out of bounds, which is an effect."""
    check(
        """
        %a = mul %n, %n : i32
        %c = add %a, %m : i32
        %d = load %x : f32
        %e = exp %d : f32
        """,
        "%d = load %x : f32\n",
    )


LOOP = """
%zero = constant {{value = 0}} : i32
%one = constant {{value = 1}} : i32
%r, %q = for %zero, %n, %one, %m, %n : i32, i32 {{
^(%k: i32, %p: i32, %o: i32):
  {body}
}}
store %i, {stored}
"""


def loop(body: str, stored: str) -> str:
    return LOOP.format(body="\n  ".join(body.split("; ")), stored=stored)


ONLY_ONE = """
%zero = constant {value = 0} : i32
%one = constant {value = 1} : i32
%q = for %zero, %n, %one, %n : i32 {
^(%k: i32, %o: i32):
  %other = add %o, %k : i32
  yield %other
}
store %i, %q
"""


def test_a_carried_value_that_only_feeds_itself() -> None:
    check(loop("%next = add %p, %k : i32; %other = add %o, %k : i32; yield %next, %other", "%q"), ONLY_ONE)


def test_carried_values_that_only_feed_each_other() -> None:
    check(loop("%next = add %p, %o : i32; yield %o, %next", "%m"), "store %i, %m\n")


@pytest.mark.parametrize("body", ["%next = add %p, %o : i32; yield %o, %next", "store %i, %p; yield %p, %o"])
def test_carried_values_that_are_needed(body: str) -> None:
    """For the result `q`: it takes the other one, or the other one is stored."""
    assert rewritten(remove_dead, loop(body, "%q")) == text(loop(body, "%q"))


def test_a_loop_that_only_stores_keeps_no_values() -> None:
    check(
        loop("store %i, %k; %next = add %p, %o : i32; yield %next, %o", "%m"),
        """
        %zero = constant {value = 0} : i32
        %one = constant {value = 1} : i32
        for %zero, %n, %one {
        ^(%k: i32):
          store %i, %k
          yield
        }
        store %i, %m
        """,
    )


def test_a_loop_without_effects_goes_with_what_only_it_needs() -> None:
    check(loop("%next = add %p, %o : i32; yield %next, %o", "%m"), "store %i, %m\n")


def test_results_of_a_branch() -> None:
    check(
        """
        %r, %q = if %b : i32, i32 {
          %a = mul %n, %n : i32
          %c = mul %m, %m : i32
          yield %a, %c
        } {
          yield %n, %m
        }
        store %i, %q
        """,
        """
        %q = if %b : i32 {
          %c = mul %m, %m : i32
          yield %c
        } {
          yield %m
        }
        store %i, %q
        """,
    )


def test_a_branch_without_effects() -> None:
    check(
        """
        %c = cmp %n, %m {predicate = "lt"} : bool
        %r = if %c : i32 {
          yield %n
        } {
          yield %m
        }
        """,
        "",
    )


def test_what_surrounds_an_effect_is_needed() -> None:
    found = rewritten(
        remove_dead,
        """
        %zero = constant {value = 0} : i32
        %one = constant {value = 1} : i32
        %twice = add %n, %n : i32
        %r = for %zero, %twice, %one, %m : i32 {
        ^(%k: i32, %p: i32):
          %c = cmp %k, %p {predicate = "lt"} : bool
          %v = if %c : i32 {
            store %i, %k
            yield %k
          } {
            yield %n
          }
          %next = add %p, %one : i32
          yield %next
        }
        """,
    )
    for needed in ("%twice", "%c = cmp %k, %p", "store %i, %k", "%next = add %p, %one"):
        assert needed in found
    assert "%v" not in found
