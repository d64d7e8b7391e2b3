"""Gathers from tiles, bounded."""

from __future__ import annotations

from loom_core.passes.bound_gathers import bound_gathers
from tests.passes.rewriting import rewritten, text


def test_an_index_outside_gives_zero() -> None:
    before = """
    %t = splat %s {shape = [4]} : tile<4xf32>
    %at = iota {start = -2, end = 6} : tile<8xi32>
    %v = gather %t, %at {axis = 0} : tile<8xf32>
    %w = exp %v : tile<8xf32>
    """
    after = """
    %t = splat %s {shape = [4]} : tile<4xf32>
    %at = iota {start = -2, end = 6} : tile<8xi32>
    %0 = constant {value = 0} : tile<8xi32>
    %1 = constant {value = 4} : tile<8xi32>
    %2 = cmp %at, %0 {predicate = "ge"} : tile<8xbool>
    %3 = cmp %at, %1 {predicate = "lt"} : tile<8xbool>
    %4 = and %2, %3 : tile<8xbool>
    %5 = select %4, %at, %0 : tile<8xi32>
    %6 = gather %t, %5 {axis = 0} : tile<8xf32>
    %7 = constant {value = 0.0} : tile<8xf32>
    %v = select %4, %6, %7 : tile<8xf32>
    %w = exp %v : tile<8xf32>
    """
    assert rewritten(bound_gathers, before) == text(after)


def test_indices_of_other_types_are_widened() -> None:
    before = """
    %t = splat %s {shape = [4]} : tile<4xf32>
    %at = constant {value = 3} : tile<8xu8>
    %v = gather %t, %at {axis = 0} : tile<8xf32>
    """
    assert "cast %at {dtype = i64} : tile<8xi64>" in rewritten(bound_gathers, before)
