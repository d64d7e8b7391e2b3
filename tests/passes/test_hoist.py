"""Invariant scalars leave loops; nothing else does."""

from __future__ import annotations

from loom_core.passes.hoist import hoist_invariants
from tests.passes.rewriting import rewritten, text


def test_an_invariant_scalar_leaves_all_loops_it_does_not_depend_on() -> None:
    before = """
    %zero = constant {value = 0} : i32
    %one = constant {value = 1} : i32
    %r = for %zero, %n, %one, %m : i32 {
    ^(%k: i32, %p: i32):
      %q = for %zero, %n, %one, %p : i32 {
      ^(%l: i32, %o: i32):
        %a = mul %n, %m : i32
        %c = add %a, %k : i32
        %d = add %c, %l : i32
        %e = add %d, %o : i32
        yield %e
      }
      yield %q
    }
    store %i, %r
    """
    after = """
    %zero = constant {value = 0} : i32
    %one = constant {value = 1} : i32
    %a = mul %n, %m : i32
    %r = for %zero, %n, %one, %m : i32 {
    ^(%k: i32, %p: i32):
      %c = add %a, %k : i32
      %q = for %zero, %n, %one, %p : i32 {
      ^(%l: i32, %o: i32):
        %d = add %c, %l : i32
        %e = add %d, %o : i32
        yield %e
      }
      yield %q
    }
    store %i, %r
    """
    assert rewritten(hoist_invariants, before) == text(after)


def test_floats_tiles_loads_and_branches_stay() -> None:
    body = """
    %zero = constant {value = 0} : i32
    %one = constant {value = 1} : i32
    %r = for %zero, %n, %one, %s : f32 {
    ^(%k: i32, %p: f32):
      %f = mul %s, %s : f32
      %t = splat %n {shape = [4]} : tile<4xi32>
      %l = load %x : f32
      %w = reduce %t {kind = "max", axis = 0} : i32
      %v = if %b : f32 {
        yield %f
      } {
        yield %l
      }
      %d = add %v, %p : f32
      %c = cast %w {dtype = f32} : f32
      %e = add %d, %c : f32
      yield %e
    }
    store %x, %r
    """
    assert rewritten(hoist_invariants, body) == text(body)


def test_what_stands_in_a_branch_stays_in_it() -> None:
    body = """
    %zero = constant {value = 0} : i32
    %one = constant {value = 1} : i32
    %r = for %zero, %n, %one, %m : i32 {
    ^(%k: i32, %p: i32):
      %v = if %b : i32 {
        %a = mul %n, %m : i32
        yield %a
      } {
        yield %k
      }
      yield %v
    }
    store %i, %r
    """
    assert rewritten(hoist_invariants, body) == text(body)
