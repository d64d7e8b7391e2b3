"""Operand packing and matrix multiplication of the matrix unit, by host address.

Panel layout (opaque to programs and free to differ between hosts; its size is not): an operand of `depth` steps of k
is cut into passes of `pass_depth`; a pass holds the micro-panels of all its rows (of A; columns of B), padded to a
multiple of `panel_rows` (`panel_cols`); a micro-panel holds, word by word along k, a 4-byte word for each of its rows.
So a pass of a product reads both of its operands in ascending addresses. `mxu_elements` says what a word is: one step
of k of a float, two of an integer.

All arguments are int64: host addresses, element counts, strides in bytes (zero and negative ones too). Nothing
allocates, raises or checks a bound: the command's engine has done so. Counts that are not positive do nothing.
"""

from __future__ import annotations

from typing import Any, Final

from loom_sim.jit import subroutine
from loom_sim.memory import smaller
from loom_sim.mxu_elements import ELEMENTS
from loom_sim.mxu_emission import WORD_BYTES
from loom_sim.mxu_kernel import PAIR_TILE, REGISTER_TILE, RegisterTile, micro_kernel, pair_kernel
from loom_sim.mxu_pack import PANEL_COLS, PANEL_ROWS, PASS_DEPTH, SIDE_A, SIDE_B, pack_routine

__all__ = ["PANEL_COLS", "PANEL_ROWS", "PASS_DEPTH", "SIDE_A", "SIDE_B", "multiply_floats", "multiply_pairs", "packing"]


def packing(name: str) -> Any:
    """The subroutine that packs elements of the type called `name`: see `mxu_pack.pack_routine`."""
    element = ELEMENTS[name]
    return pack_routine(element, PAIR_TILE if element.steps == 2 else REGISTER_TILE)


def _multiply_routine(kernel: Any, tile: RegisterTile, steps_per_word: int) -> Any:
    a_rows, b_rows = tile.rows, tile.columns

    @subroutine("void(int64, int64, int64, int64, int64, int64)")
    def multiply(acc, a, b, m, n, k):  # type: ignore[no-untyped-def]
        row_bytes = (n + PANEL_COLS - 1) // PANEL_COLS * PANEL_COLS * WORD_BYTES
        a_step = (m + PANEL_ROWS - 1) // PANEL_ROWS * PANEL_ROWS * WORD_BYTES
        for first in range(0, k, PASS_DEPTH):
            words = (smaller(k - first, PASS_DEPTH) + steps_per_word - 1) // steps_per_word
            a_pass = a + first // steps_per_word * a_step
            b_pass = b + first // steps_per_word * row_bytes
            # A micro-panel of B stays in the first-level cache while those of A stream through it from the second.
            for column in range(0, n, b_rows):
                b_panel = b_pass + column * words * WORD_BYTES
                for row in range(0, m, a_rows):
                    a_panel = a_pass + row * words * WORD_BYTES
                    kernel(a_panel, b_panel, acc + row * row_bytes + column * WORD_BYTES, row_bytes, words)

    return multiply


multiply_floats: Final = _multiply_routine(micro_kernel, REGISTER_TILE, 1)
"""Subroutine (acc, a, b, m, n, k): acc += A[m, k] B[k, n] in float32, pass by pass.

t = +0; t = fma(a, b, t) for k ascending; acc = acc + t. `acc` is row-major float32
[round_up(m, panel_rows)][round_up(n, panel_cols)]; outside [m, n] it becomes unspecified. `a` and `b` are packed floats
with extents m and n and depth k.
"""

multiply_pairs: Final = _multiply_routine(pair_kernel, PAIR_TILE, 2)
"""The same for packed integers and an int32 accumulator, exact modulo 2^32."""
