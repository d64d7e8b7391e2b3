"""f64, i32 and i64 matrix products as SCE programs: k ascending, one update of the whole accumulator a command.

The form: acc[m, n] lies in SRAM; a command adds `DEPTH` steps of k, each step one instruction over the column a[:, k],
repeated along n by a stride of 0, and the row b[k, :], repeated along m. A counted loop of the ACP goes over k.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from loom_core.base.dtype import by_name
from loom_core.isa.encoding import Label, Reg, command
from loom_core.isa.program import R, S, SceInstr, SceOperand, SceProgram, StreamSpec
from loom_core.reference.arith import fma64
from tests.sim.harness import build, launch, program_offsets, whole

Array = NDArray[Any]

DEPTH = 8  # steps of k in a program: 2 streams each, and two for the accumulator


def multiply_accumulate(dtype: str, depth: int) -> SceProgram:
    """acc = acc + a0 * b0 + a1 * b1 + ..., in order; streams: acc, then a and b of each step, then acc to store."""
    streams = [StreamSpec("load", dtype)] * (1 + 2 * depth) + [StreamSpec("store", dtype)]
    result = S(len(streams) - 1)
    instructions: list[SceInstr] = []
    total: SceOperand = S(0)
    for step in range(depth):
        a, b = S(1 + 2 * step), S(2 + 2 * step)
        target: SceOperand = result if step == depth - 1 else R(0)
        if dtype == "f64":
            instructions.append(SceInstr("fma.f64", target, a, b, total))
        else:
            instructions.append(SceInstr(f"mul.{dtype}", R(1), a, b))
            instructions.append(SceInstr(f"add.{dtype}", target, total, R(1)))
        total = R(0)
    return SceProgram(tuple(streams), tuple(instructions), 2)


def product(dtype: str, a: Array, b: Array, acc: Array) -> Array:
    """acc + a @ b on the simulator, everything in SRAM; whole programs in a loop, the rest of k in a shorter one."""
    (m, k), n, size = a.shape, b.shape[1], by_name(dtype).itemsize
    a_at, b_at, acc_at = 0, a.nbytes, a.nbytes + b.nbytes
    programs = [multiply_accumulate(dtype, DEPTH), multiply_accumulate(dtype, max(k % DEPTH, 1))]
    offsets = program_offsets(programs)

    def update(offset: int, depth: int, a_bases: list[Any], b_bases: list[Any]) -> Any:
        operands: list[Any] = [offset, m, n, acc_at, n * size, size]
        for step in range(depth):
            operands += [a_bases[step], k * size, 0, b_bases[step], 0, size]
        operands += [acc_at, n * size, size]
        return command("program", *operands, flags={"ndim": 2, "fold": 0})

    commands: list[Any] = [whole((1, 0), (0, a_at), a.nbytes), whole((2, 0), (0, b_at), b.nbytes)]
    commands.append(whole((3, 0), (0, acc_at), acc.nbytes))
    # Registers: 16 is k, 32.. the addresses of the columns of a, 48.. those of the rows of b.
    done = Label("done")
    commands.append(command("loop", 16, 0, k // DEPTH * DEPTH, DEPTH, done))
    commands.append(command("mul", 17, Reg(16), size))
    commands.append(command("mul", 18, Reg(16), n * size))
    for step in range(DEPTH):
        commands.append(command("add", 32 + step, Reg(17), a_at + step * size))
        commands.append(command("add", 48 + step, Reg(18), b_at + step * n * size))
    registers = [[Reg(first + step) for step in range(DEPTH)] for first in (32, 48)]
    commands += [update(offsets[0], DEPTH, *registers), command("endloop"), done]
    if k % DEPTH:
        rest = range(k // DEPTH * DEPTH, k)
        columns, rows = [a_at + i * size for i in rest], [b_at + i * n * size for i in rest]
        commands.append(update(offsets[1], len(rest), columns, rows))
    commands.append(whole((0, acc_at), (3, 0), acc.nbytes))
    return launch(build(commands, programs, 3), [a, b, acc])[2]


@pytest.mark.parametrize(("m", "n", "k"), [(1, 1, 1), (3, 5, 7), (16, 33, 24), (20, 17, 41)])
def test_f64_is_one_chain_of_fused_multiply_adds(m: int, n: int, k: int) -> None:
    rng = np.random.default_rng(m)
    a, b, acc = rng.standard_normal((m, k)), rng.standard_normal((k, n)), rng.standard_normal((m, n))
    expected = acc
    for step in range(k):
        expected = fma64(a[:, step, None], b[None, step, :], expected)
    assert product("f64", a, b, acc).tobytes() == expected.tobytes()


@pytest.mark.parametrize("dtype", ["i32", "i64"])
def test_integers_wrap(dtype: str) -> None:
    rng = np.random.default_rng(0)
    limits = np.iinfo(by_name(dtype).numpy)
    a, b, acc = (
        rng.integers(limits.min, limits.max, shape, limits.dtype, endpoint=True)
        for shape in ((9, 21), (21, 40), (9, 40))
    )
    with np.errstate(over="ignore"):
        expected = acc + (a @ b)
    assert product(dtype, a, b, acc).tobytes() == expected.tobytes()
