"""The cost model: formulas on examples, monotony, and the same numbers compiled."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loom_core.isa.codes import CODE_FORMATS
from loom_core.isa.commands import ALL_COMMANDS, COMMANDS, OP_COPY
from loom_core.isa.cost import C_ACP_ISSUE, COST_FUNCTIONS, Cost, command_cost, cost_constants
from loom_core.isa.encoding import operand_layout, pack_flags
from loom_core.isa.machine import L1, L1_MINI
from loom_core.isa.program import R, S, SceInstr, SceProgram, StreamSpec, encode_program
from tests.isa.strategies import unhurried

CONSTANTS = cost_constants(L1)
# A softmax row: exp stored whole; its sum, scaled by a loaded value in the tail.
SOFTMAX = encode_program(
    SceProgram(
        (StreamSpec("load", "f32"), StreamSpec("store", "f32"), StreamSpec("store", "f32"), StreamSpec("load", "f32")),
        (
            SceInstr("exp.f32", R(0), S(0)),
            SceInstr("mov.f32", S(1), R(0)),
            SceInstr("reduce_sum.f32", R(1), R(0)),
            SceInstr("div.f32", S(2), R(1), S(3)),
        ),
        2,
    )
)


def cost(mnemonic: str, *operands: int, **flags: int) -> Cost:
    spec = COMMANDS[mnemonic]
    return command_cost(spec.opcode, operands, pack_flags(spec, flags), SOFTMAX.tolist(), CONSTANTS)


def copy(*dims: Sequence[int], src: int = 1, dst: int = 0, **flags: int) -> Cost:
    operands = [value for dim in dims for value in (*dim, *((0, dim[0]) if len(dim) == 3 else ()))]
    return cost("copy", src, 0, dst, 0, 0, *operands, ndim=len(dims), log2_bytes=2, **flags)


def test_every_command_has_a_cost() -> None:
    assert set(COST_FUNCTIONS) == {spec.opcode for spec in ALL_COMMANDS}


def test_scalars() -> None:
    assert cost("add", 7, 1, 2) == (1, 0, 0, 0)
    assert cost("lds", 7, 0, 64, log2_bytes=2) == (8, 0, 0, 4)
    assert cost("lds", 7, 1, 64, log2_bytes=2) == (408, 0, 64, 0)
    assert cost("sts", 1, 64, 5, log2_bytes=3) == (408, 0, 64, 0)
    assert CONSTANTS[C_ACP_ISSUE] == 4


@pytest.mark.parametrize(
    ("dims", "flags", "expected"),
    [
        # 64 rows of 1 KiB, contiguous on both sides: 64 KiB at 512 bytes a cycle
        (((64, 1024, 1024), (256, 4, 4)), {}, (128 + 8, 400, 65536, 65536)),
        # the same, SRAM to SRAM: 128 KiB at 2048 bytes a cycle, no latency
        (((64, 1024, 1024), (256, 4, 4)), {"src": 0}, (64 + 8, 0, 0, 131072)),
        # a column of a matrix: every element costs a burst in HBM; it lands contiguous
        (((64, 4096, 4),), {}, (8 + 8, 400, 64 * 64, 256)),
        # rows of 16 bytes, each a burst
        (((64, 4096, 16), (4, 4, 4)), {}, (8 + 8, 400, 64 * 64, 1024)),
        # one row broadcast over 64: read again each time
        (((64, 0, 1024), (256, 4, 4)), {}, (128 + 8, 400, 65536, 65536)),
        # half of a row valid: only that half is read, the whole is written
        (((256, 4, 4, 0, 128),), {}, (1 + 8, 400, 512, 1024)),
        (((256, 4, 4, 0, 128),), {"skip": 1}, (1 + 8, 400, 512, 512)),
        (((256, 4, 4, 300, 400),), {"skip": 1}, (8, 400, 0, 0)),
        (((0, 4, 4), (-5, 4, 4)), {}, (8, 400, 0, 0)),
        # 512 KiB within HBM: read and written
        (((131072, 4, 4),), {"dst": 2}, (2048 + 8, 400, 1 << 20, 0)),
    ],
)
def test_copy(dims: tuple[tuple[int, ...], ...], flags: dict[str, int], expected: Cost) -> None:
    assert copy(*dims, **flags) == expected


def test_pack() -> None:
    # A of 64 x 32, rows of 4 KiB apart: 64 runs of 128 bytes in, 72 x 32 elements out
    assert cost("pack", 1, 0, 0, 64, 32, 4096, 4, 0, 64, 0, 32, 0, side=0, log2_bytes=2) == (24, 400, 8192, 72 * 32 * 4)
    # B of 32 x 64 stored by rows: runs along the columns
    assert cost("pack", 1, 0, 0, 64, 32, 4, 256, 0, 64, 0, 32, 0, side=1, log2_bytes=2) == (24, 400, 8192, 8192)
    assert cost("pack", 1, 0, 0, 0, 32, 4, 256, 0, 64, 0, 32, 0, side=1, log2_bytes=2) == (8, 400, 0, 0)


def test_typed_packs() -> None:
    box = (0, 64, 0, 32, 0)
    # The same A of 64 x 32 in two bytes an element, runs of 64 bytes; and in one, where each run costs a burst.
    assert cost("packf", 1, 0, 0, 64, 32, 4096, 2, *box, side=0, type=0) == (16, 400, 4096, 72 * 32 * 4)
    assert cost("packf", 1, 0, 0, 64, 32, 4096, 1, *box, side=0, type=3) == (16, 400, 4096, 72 * 32 * 4)
    assert cost("packi", 1, 0, 0, 64, 32, 4096, 1, *box, side=0, type=2) == (16, 400, 4096, 72 * 32 * 4)
    assert cost("packi", 1, 0, 0, 64, 32, 32, 1, *box, side=1, type=0) == (12, 400, 2048, 64 * 32 * 4)


def decoding(name: str, *sources: int, scaled: int = 0, box: tuple[int, int, int, int] = (0, 64, 0, 128)) -> Cost:
    """64 rows and 128 columns from column 128 on; the operands after the box are those of tables, scales and groups."""
    mnemonic = "decodef" if sources else "decodei"
    flags = {"side": 1, "format": CODE_FORMATS[name].number} | ({"scaled": scaled} if sources else {})
    return cost(mnemonic, 1, 0, 0, 64, 128, 512, 128, *box, *sources, **flags)


def test_decoding() -> None:
    panel = 64 * 128 * 4
    # Rows of 128 bytes of codes; rows of 48.
    assert decoding("int8_packed2") == (24, 400, 64 * 128, panel)
    assert decoding("packed_int3") == (16 + 8, 400, 64 * 64, panel)
    assert decoding("packed_trit5", box=(0, 64, 5, 5)) == (24, 400, 0, panel)
    # A table of 32 bytes a row, each a burst; in SRAM and shared by all rows, it is read once.
    assert decoding("lut4b_fp16", 1, 0, 32, 0, 1, 0, 0, 0) == (16 + 8, 400, 64 * 64 * 2, panel)
    assert decoding("lut4b_fp16", 0, 0, 0, 0, 1, 0, 0, 0) == (17 + 8, 400, 64 * 64, panel + 32)
    # A table for each of two groups, in SRAM; and two scales a row.
    assert decoding("lut4b_fp16", 0, 0, 64, 32, 1, 0, 0, 64)[2:] == (64 * 64, panel + 64 * 2 * 32)
    assert decoding("int4_packed4", 0, 0, 0, 0, 0, 0, 8, 64, scaled=1)[2:] == (64 * 64, panel + 64 * 4)
    assert decoding("int4_packed4", 0, 0, 0, 0, 2, 0, 8, 64, scaled=1)[2:] == (2 * 64 * 64, panel)


def test_matmul() -> None:
    assert cost("matmul", 0, 0, 0, 256, 128, 128)[:2] == (256 * 4, 128)
    assert cost("matmul", 0, 0, 0, 256, 129, 257)[:2] == (256 * 4 * 2 * 3, 128)
    assert cost("matmul", 0, 0, 0, 0, 129, 257)[0] == 0
    assert cost("matmulf", 0, 0, 0, 256, 129, 257, widest=0)[:2] == (256 * 2 * 3, 128)
    assert cost("matmulf", 0, 0, 0, 256, 128, 128, widest=1)[0] == 256
    assert cost("matmuli", 0, 0, 0, 255, 128, 128)[:2] == (128, 128)
    assert cost("accfill", 0, 24, 32, 0) == (2, 0, 0, 3072)
    assert cost("accload", 0, 0, 24, 32, 128, 4) == (3, 0, 0, 6144)


def test_program() -> None:
    # 8 rows of 1024: body 4 + 1 + 1 slots, tail one division of 4 a row; exp in and out whole, sum and scale once a row
    operands = (0, 8, 1024, 0, 4096, 4, 0, 4096, 4, 0, 4, 0, 0, 4, 0)
    busy = -(-(8192 * 6 + 8 * 4) // 1024)
    assert cost("program", *operands, ndim=2, fold=1) == (busy + 16, 0, 0, 4 * (8192 * 2 + 8 * 2))
    # a broadcast load moves a row once
    operands = (0, 8, 1024, 0, 0, 4, 0, 4096, 4, 0, 4, 0, 0, 4, 0)
    assert cost("program", *operands, ndim=2, fold=1)[3] == 4 * (1024 + 8192 + 8 * 2)
    operands = (0, 8, 0, 0, 4096, 4, 0, 4096, 4, 0, 4, 0, 0, 4, 0)
    assert cost("program", *operands, ndim=2, fold=1) == (16, 0, 0, 0)


def test_constants_follow_the_machine() -> None:
    slow = cost_constants(dataclasses.replace(L1, sce_transcendental_slots=64, hbm_bytes_per_s=64_000_000_000))
    operands = (0, 8, 1024, 0, 4096, 4, 0, 4096, 4, 0, 4, 0, 0, 4, 0)
    flags = pack_flags(COMMANDS["program"], {"ndim": 2, "fold": 1})
    assert command_cost(COMMANDS["program"].opcode, operands, flags, SOFTMAX.tolist(), slow)[0] > 500
    faster = cost_constants(dataclasses.replace(L1, mxu_fp8_rate=2, mxu_int8_rate=4))
    for mnemonic, product_flags, cycles in (
        ("matmulf", {"widest": 0}, 256),
        ("matmulf", {"widest": 1}, 128),
        ("matmuli", {}, 64),
    ):
        spec = COMMANDS[mnemonic]
        product = command_cost(spec.opcode, (0, 0, 0, 256, 128, 128), pack_flags(spec, product_flags), (), faster)
        assert product[0] == cycles
    box = (1, 0, 0, 0, 0, 16384, 4, 4, 0, 16384)
    assert command_cost(OP_COPY, box, 1 | 2 << 3, (), slow)[0] == 1024 + 8


def test_indexed() -> None:
    # 1024 elements anywhere in HBM: a burst each, 4 bytes of tile and 4 of index
    gather = (1, 0, 0, 0, 0, 4, 0, 1024, 0, 4, 4, 0)
    assert cost("gather", *gather, ndim=1, log2_bytes=2) == (1024 + 8, 400, 1024 * 64, 1024 * 8)
    # with a mask, and indices of 8 bytes
    assert cost("gather", *gather, ndim=1, log2_bytes=2, index=1, masked=1)[3] == 1024 * 13
    # 32 rows of 1 KiB: an address a row
    rows = (1, 0, 0, 0, 0, 1024, 0, 32, 0, 1024, 4, 0, 256, 4, 4, 0, 0)
    assert cost("gather", *rows, ndim=2, log2_bytes=2) == (64 + 8, 400, 32768, 32768 + 32 * 4)
    scatter = (0, 0, 0, 0, 0, 4, 1024, 0, 4, 4, 0)
    assert cost("scatter", *scatter, ndim=1, log2_bytes=2) == (1024 + 8, 0, 0, 1024 * (64 + 8))
    # read and written, old elements returned
    add = (0, 1, 0, 0, 0, 0, 4, 0x701, 1024, 0, 4, 4, 0, 4)
    assert cost("scatter_reduce", *add, ndim=1, log2_bytes=2) == (1024 + 8, 400, 2 * 1024 * 64, 1024 * 8)
    assert cost("scatter_reduce", *add, ndim=1, log2_bytes=2, old=1)[3] == 1024 * 12
    swap = (0, 1, 0, 0, 0, 0, 4, 0, 1024, 0, 4, 4, 0, 4, 4)
    assert cost("compare_swap", *swap, ndim=1, log2_bytes=2, old=1)[3] == 1024 * 16
    assert cost("gather", 1, 0, 0, 0, 0, 4, 0, -5, 0, 4, 4, 0, ndim=1, log2_bytes=2) == (8, 400, 0, 0)


SUM = encode_program(
    SceProgram(
        (StreamSpec("load", "f32"), StreamSpec("load", "f32"), StreamSpec("store", "f32")),
        (SceInstr("add.f32", S(2), S(0), S(1)),),
        0,
    )
)
SCAN = encode_program(
    SceProgram((StreamSpec("load", "f32"), StreamSpec("store", "f32")), (SceInstr("scan_sum.f32", S(1), S(0)),), 0)
)


def with_program(program: np.ndarray, mnemonic: str, *operands: int, **flags: int) -> Cost:
    spec = COMMANDS[mnemonic]
    return command_cost(spec.opcode, operands, pack_flags(spec, flags), program.tolist(), CONSTANTS)


def test_scan() -> None:
    # a step a cycle: rows side by side
    streams = (0, 4096, 4, 0, 4096, 4)
    for rows in (1, 8, 1024):
        assert with_program(SCAN, "program", 0, rows, 1024, *streams, ndim=2, fold=1)[0] == max(1024, 4 * rows) + 16
    assert with_program(SCAN, "program", 0, 2000, 64, *streams, ndim=2, fold=1)[0] == max(2 * 64, 500) + 16


def test_combine() -> None:
    streams = (0, 0, 0, 0, 4096, 4, 0, 4096, 4)
    # levels of 512, 256, ... 1 pairs in 8 rows, a start each, and that of the command
    expected = sum(-(-(8 << level) // 1024) + 16 for level in range(10)) + 16
    assert with_program(SUM, "combine", 0, 8, 1024, *streams, ndim=2) == (expected, 0, 0, 4 * 8 * 1025)
    assert with_program(SUM, "combine", 0, 8, 1024, *streams, ndim=2, mode=1) == (1024 + 16, 0, 0, 4 * 8 * 2048)
    assert with_program(SUM, "combine", 0, 0, 1024, *streams, ndim=2, mode=2) == (16, 0, 0, 0)


def test_sort_and_histogram() -> None:
    # 10 * 11 / 2 stages of a network; values out, order out
    operands = (0, 0, 0, 1, 1024, 0, 4, 4096, 4096, 4096, 1024, 4, 4, 4)
    assert cost("sort", *operands, ndim=2, log2_bytes=2, values=1) == (4 * 55 + 16, 0, 0, 4 * 1024 * 8)
    assert cost("sort", *operands, ndim=2, log2_bytes=2, values=1, order=1)[3] == 4 * 1024 * 12
    top = (0, 0, 0, 1, 5, 0, 4, 4096, 4096, 4096, 1024, 4, 4, 4)
    assert cost("sort", *top, ndim=2, log2_bytes=2, values=1)[3] == 4 * (4096 + 20)
    counts = (0, 0, 0, 256, 4096, 4, 1)
    assert cost("histogram", *counts, ndim=1, log2_bytes=2) == (9 + 16, 0, 0, 4 * 4096 + 1024)
    assert cost("histogram", *counts, ndim=1, log2_bytes=0)[0] == 8 + 16
    assert cost("histogram", *counts, ndim=1, log2_bytes=2, masked=1, accumulate=1)[3] == 5 * 4096 + 2048
    assert cost("histogram", 0, 0, 0, 0, 4096, 4, 1, ndim=1, log2_bytes=2) == (16, 0, 0, 0)


SIZES = st.one_of(st.integers(-3, 70), st.integers(0, 4096))


@st.composite
def calls(draw: st.DrawFn, mnemonic: str) -> tuple[list[int], int]:
    """Operands and flags with which a verified program may call a command."""
    spec = COMMANDS[mnemonic]
    flags = {field.name: draw(st.integers(field.minimum, field.limit)) for field in spec.flags}
    members = sum(len(group.members) for group in spec.groups if group.count == "ndim")
    count = len(spec.operands) + members * flags.get("ndim", 0)
    if mnemonic in ("program", "combine"):
        count += 4 * (1 + flags["ndim"])
    if mnemonic == "program":
        flags["fold"] = min(flags["fold"], flags["ndim"])
    packed = pack_flags(spec, flags)
    assert operand_layout(spec, packed, count) is not None
    operands = draw(st.lists(SIZES, min_size=count, max_size=count))
    if mnemonic in ("program", "combine"):
        operands[0] = 0
    return operands, packed


ENGINE_COMMANDS = [spec.mnemonic for spec in ALL_COMMANDS if spec.synchronises]


@pytest.mark.parametrize("mnemonic", ENGINE_COMMANDS)
@settings(unhurried, max_examples=20)
@given(data=st.data())
def test_costs_are_not_negative(mnemonic: str, data: st.DataObject) -> None:
    operands, flags = data.draw(calls(mnemonic))
    assert min(command_cost(COMMANDS[mnemonic].opcode, operands, flags, SOFTMAX.tolist(), CONSTANTS)) >= 0


@pytest.mark.parametrize("mnemonic", ["add", *ENGINE_COMMANDS])
def test_compiled_costs_are_the_same(mnemonic: str) -> None:
    numba = pytest.importorskip("numba")
    opcode = COMMANDS[mnemonic].opcode
    compiled = numba.njit(COST_FUNCTIONS[opcode])
    constants = cost_constants(L1_MINI)
    as_integers = SOFTMAX.astype(np.int64)

    @settings(max_examples=25, deadline=None)
    @given(calls(mnemonic))
    def check(call: tuple[list[int], int]) -> None:
        operands, flags = call
        expected = command_cost(opcode, operands, flags, SOFTMAX.tolist(), constants)
        assert compiled(np.array(operands, np.int64), flags, as_integers, constants) == expected

    check()
