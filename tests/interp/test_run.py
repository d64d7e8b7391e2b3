"""The reference interpreter: control flow, memory, and the order of programs."""

from __future__ import annotations

from textwrap import indent

import numpy as np
import pytest

from loom_core.interp import Buffer, interpret
from loom_core.interp.memory import OutOfBounds
from loom_core.ir.parser import parse_function

Array = np.ndarray


def run(body: str, grid: tuple[int, int, int] = (1, 1, 1), n: int = 5, size: int = 32) -> Array:
    """The i32 buffer `%p` after running `body` with the scalar `%n`; it holds 0, 1, 2, ... before."""
    text = "func @kernel(%p: ptr<i32>, %n: i32) {\n" + indent(body.strip("\n"), "  ") + "\n  return\n}\n"
    data = np.arange(size, dtype=np.int32)
    interpret(parse_function(text), [Buffer("p", data.view(np.uint8)), n], grid)
    return data


LOOP = """
%low = constant {{value = {low}}} : i32
%high = constant {{value = {high}}} : i32
%step = constant {{value = {step}}} : i32
%zero = constant {{value = 0}} : i32
%ten = constant {{value = 10}} : i32
%sum, %last = for %low, %high, %step, %zero, %n : i32, i32 {{
^(%k: i32, %total: i32, %before: i32):
  %scaled = mul %total, %ten : i32
  %next = add %scaled, %k : i32
  yield %next, %total
}}
%one = constant {{value = 1}} : i32
%q = addptr %p, %one : ptr<i32>
store %p, %sum
store %q, %last
"""


@pytest.mark.parametrize(
    ("low", "high", "step", "total", "last"),
    [
        (1, 4, 1, 123, 12),
        (1, 8, 3, 147, 14),
        (4, 1, -1, 432, 43),
        (8, 1, -3, 852, 85),
        (4, 4, 1, 0, 5),
        (4, 1, 1, 0, 5),
        (1, 4, -1, 0, 5),
    ],
)
def test_counted_loops(low: int, high: int, step: int, total: int, last: int) -> None:
    """Without an iteration the results are the initial values; yields are taken in parallel."""
    assert run(LOOP.format(low=low, high=high, step=step))[:2].tolist() == [total, last]


def test_branches() -> None:
    body = """
%limit = constant {value = 3} : i32
%c = cmp %n, %limit {predicate = "lt"} : bool
%r = if %c : i32 {
  %a = add %n, %n : i32
  yield %a
} {
  %b = mul %n, %n : i32
  yield %b
}
store %p, %r
"""
    assert (run(body, n=2)[0], run(body, n=5)[0]) == (4, 25)


def test_a_while_loop_hands_values_on() -> None:
    body = """
%one = constant {value = 1} : i32
%hundred = constant {value = 100} : i32
%r, %count = while %n, %one : i32, i32 {
^(%x: i32, %i: i32):
  %square = mul %x, %x : i32
  %c = cmp %square, %hundred {predicate = "lt"} : bool
  yield %c, %square, %i
} {
^(%y: i32, %j: i32):
  %k = add %j, %one : i32
  yield %y, %k
}
%q = addptr %p, %one : ptr<i32>
store %p, %r
store %q, %count
"""
    assert run(body, n=3)[:2].tolist() == [6561, 3]


def test_programs_run_one_after_another_x_fastest() -> None:
    body = """
%x = program_id {axis = 0} : i32
%y = program_id {axis = 1} : i32
%z = program_id {axis = 2} : i32
%width = num_programs {axis = 0} : i32
%ten = constant {value = 10} : i32
%old = load %p : i32
%a = mul %old, %ten : i32
%b = mul %y, %width : i32
%c = add %a, %b : i32
%d = add %c, %x : i32
%e = add %d, %z : i32
store %p, %e
"""
    assert run(body, grid=(2, 2, 1))[0] == 123
    assert run(body, grid=(1, 1, 3))[0] == 12


MASKED = """
%i = iota {start = 0, end = 4} : tile<4xi32>
%ns = splat %n {shape = [4]} : tile<4xi32>
%m = cmp %i, %ns {predicate = "lt"} : tile<4xbool>
%ps = splat %p {shape = [4]} : tile<4xptr<i32>>
%q = addptr %ps, %i : tile<4xptr<i32>>
%other = constant {value = 9} : tile<4xi32>
%v = load %q, mask = %m, other = %other : tile<4xi32>
%four = constant {value = 4} : tile<4xi32>
%r = addptr %q, %four : tile<4xptr<i32>>
store %r, %v
"""


def test_masked_loads_fill_and_read_nothing_else() -> None:
    assert run(MASKED, n=2)[4:8].tolist() == [0, 1, 9, 9]
    assert run(MASKED, n=0, size=8)[4:8].tolist() == [9, 9, 9, 9]


def test_masked_stores_leave_the_rest() -> None:
    body = MASKED.replace("store %r, %v", "store %r, %other, mask = %m")
    assert run(body, n=3)[4:8].tolist() == [9, 9, 9, 7]


def test_an_access_outside_a_buffer_names_the_byte_and_the_line() -> None:
    with pytest.raises(OutOfBounds, match=r"store reaches p\[5\], which has elements 0 to 4") as caught:
        run(MASKED, n=4, size=5)
    assert caught.value.location.line == 11


def test_a_pointer_may_point_into_a_buffer() -> None:
    text = "func @kernel(%p: ptr<i32>) {\n  %one = constant {value = -1} : i32\n  %q = addptr %p, %one : ptr<i32>\n"
    text += "  %v = load %q : i32\n  store %p, %v\n  return\n}\n"
    data = np.arange(4, dtype=np.int32)
    interpret(parse_function(text), [Buffer("p", data.view(np.uint8), origin=8)], (1, 1, 1))
    assert data.tolist() == [0, 1, 1, 3]


def test_strided_accesses_are_bounded() -> None:
    """Element i is at offset + 8 i bytes, valid where 1 <= i < 3."""
    body = """
%zero = constant {value = 0} : i64
%one = constant {value = 1} : i64
%three = constant {value = 3} : i64
%four = constant {value = 4} : i64
%eight = constant {value = 8} : i64
%far = constant {value = 64} : i64
%fill = constant {value = 7} : i32
%v = dma_load %p, %four, fill = %fill, %eight, %one, %three {tile_shape = [4]} : tile<4xi32>
dma_store %p, %far, %v, %four, %zero, %four
"""
    assert run(body)[16:20].tolist() == [7, 3, 5, 7]
