"""Windows of SRAM: kept over loops, sliced at run time, copied into and out of; promoted where that is the same."""

from __future__ import annotations

import numpy as np
import pytest

from loom_core.ops import memory
from loom_core.passes.pipeline import PIPELINE
from loom_core.passes.promote_windows import promote_windows
from tests.codegen.execution import Launch, Place, faults
from tests.passes.rewriting import parsed, rewritten, text

CONSTANTS = """
%zero = constant {value = 0} : i64
%four = constant {value = 4} : i64
%eight = constant {value = 8} : i64
%row_bytes = constant {value = 32} : i64
%i0 = constant {value = 0} : i32
%i1 = constant {value = 1} : i32
%i4 = constant {value = 4} : i32
"""

ACCUMULATOR = """
%w = window {shape = [8], dtype = f32} : ptr<f32>
for %i0, %i4, %i1 {
^(%k: i32):
  %first = cmp %k, %i0 {predicate = "eq"} : bool
  if %first {
    %start = constant {value = 2.0} : tile<8xf32>
    dma_store %w, %zero, %start, %four, %zero, %eight
    yield
  } {
    yield
  }
  %old = dma_load %w, %zero, %four, %zero, %eight {tile_shape = [8]} : tile<8xf32>
  %row = cast %k {dtype = i64} : i64
  %at = mul %row, %row_bytes : i64
  %x1 = dma_load %x, %at, %four, %zero, %eight {tile_shape = [8]} : tile<8xf32>
  %new = add %old, %x1 : tile<8xf32>
  dma_store %w, %zero, %new, %four, %zero, %eight
  yield
}
%sum = dma_load %w, %zero, %four, %zero, %eight {tile_shape = [8]} : tile<8xf32>
dma_store %y, %zero, %sum, %four, %zero, %eight
"""

SLICED = """
%w = window {shape = [4, 8], dtype = f32} : ptr<f32>
for %i0, %i4, %i1 {
^(%k: i32):
  %row = cast %k {dtype = i64} : i64
  %at = mul %row, %row_bytes : i64
  %x1 = dma_load %x, %at, %four, %zero, %eight {tile_shape = [8]} : tile<8xf32>
  %wide = add %x1, %x1 : tile<8xf32>
  dma_store %w, %at, %wide, %four, %zero, %eight
  yield
}
%rows = constant {value = 4} : i64
%last_row = constant {value = 96} : i64
%minus = constant {value = -32} : i64
%all = dma_load %w, %last_row, %minus, %zero, %rows, %four, %zero, %eight {tile_shape = [4, 8]} : tile<4x8xf32>
dma_store %y, %zero, %all, %row_bytes, %zero, %rows, %four, %zero, %eight
"""

POISON = """
%w = window {shape = [8], dtype = f32} : ptr<f32>
%v = window {shape = [4], dtype = i32} : ptr<i32>
%two = constant {value = 2} : i64
%x1 = dma_load %x, %zero, %four, %zero, %eight {tile_shape = [8]} : tile<8xf32>
dma_store %w, %zero, %x1, %four, %two, %four
%read = dma_load %w, %zero, %four, %zero, %eight {tile_shape = [8]} : tile<8xf32>
dma_store %y, %zero, %read, %four, %zero, %eight
%rest = dma_load %v, %four, %four, %zero, %two {tile_shape = [2]} : tile<2xi32>
dma_store %i, %zero, %rest, %four, %zero, %two
"""

COPIES = """
%w = window {shape = [2, 8], dtype = f32} : ptr<f32>
%two = constant {value = 2} : i32
for %i0, %i4, %i1 {
^(%k: i32):
  %row = cast %k {dtype = i64} : i64
  %at = mul %row, %row_bytes : i64
  %odd = rem %k, %two : i32
  %slot = cast %odd {dtype = i64} : i64
  %to = mul %slot, %row_bytes : i64
  dma_copy %x, %at, %w, %to, %four, %four, %zero, %eight {shape = [8]}
  %x1 = dma_load %w, %to, %four, %zero, %eight {tile_shape = [8]} : tile<8xf32>
  %twice = add %x1, %x1 : tile<8xf32>
  dma_store %w, %to, %twice, %four, %zero, %eight
  dma_copy %w, %to, %y, %at, %four, %four, %i64one, %eight {shape = [8]}
  yield
}
""".replace("%i64one", "%zero")


def launch() -> Launch:
    """x, y, i of 64 elements in memories of their own, and numbers."""
    floats = np.random.default_rng(3).standard_normal((2, 64)).astype(np.float32)
    memories = (*(row.view(np.uint8).copy() for row in floats), np.arange(64, dtype=np.int32).view(np.uint8).copy())
    return Launch(memories, (Place(0, 0), Place(1, 0), Place(2, 0), 4, 5, 6, 1.5, True))


@pytest.mark.parametrize("options", [{}, {"prefetch": "none"}, {"assume_noalias": False}], ids=str)
@pytest.mark.parametrize("body", [ACCUMULATOR, SLICED, POISON, COPIES], ids=["kept", "sliced", "poison", "copies"])
def test_is_right(body: str, options: dict[str, object]) -> None:
    assert not faults(parsed(CONSTANTS + body), launch(), **options)


def test_an_accumulator_becomes_a_carried_value() -> None:
    after = """
    %w = for %i0, %i4, %i1, %1 : tile<8xf32> {
    ^(%k: i32, %w_1: tile<8xf32>):
      %first = cmp %k, %i0 {predicate = "eq"} : bool
      if %first {
        %start = constant {value = 2.0} : tile<8xf32>
        yield
      } {
        yield
      }
      %row = cast %k {dtype = i64} : i64
      %at = mul %row, %row_bytes : i64
      %x1 = dma_load %x, %at, %four, %zero, %eight {tile_shape = [8]} : tile<8xf32>
      %new = add %w_1, %x1 : tile<8xf32>
      yield %new
    }
    """
    found = rewritten(promote_windows, CONSTANTS + ACCUMULATOR)
    loop = found[found.index("%w = for") : found.index("dma_store")]
    want = text(after)
    assert loop.strip() == want[want.index("%w = for") :].strip()
    assert "window" not in found


def test_a_store_in_a_branch_is_yielded() -> None:
    body = """
    %w = window {shape = [8], dtype = f32} : ptr<f32>
    if %b {
      %one = constant {value = 1.0} : tile<8xf32>
      dma_store %w, %zero, %one, %four, %zero, %eight
      yield
    } {
      yield
    }
    %all = dma_load %w, %zero, %four, %zero, %eight {tile_shape = [8]} : tile<8xf32>
    dma_store %y, %zero, %all, %four, %zero, %eight
    """
    found = rewritten(promote_windows, CONSTANTS + body)
    assert "%w = if %b : tile<8xf32> {" in found and "value = nan" in found
    assert not faults(parsed(CONSTANTS + body), launch())


def test_what_is_sliced_stays_a_window() -> None:
    function = parsed(CONSTANTS + SLICED)
    for step in PIPELINE:
        function = step(function)
    assert sum(isinstance(op, memory.Window) for op in function.walk()) == 1
