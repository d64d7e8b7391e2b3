"""SCE programs: round trips, the rules of well-formed ones, hostile words."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from loom_core.base.diagnostics import LoomError
from loom_core.isa.errors import InvalidProgram
from loom_core.isa.machine import L1
from loom_core.isa.program import (
    R,
    S,
    SceInstr,
    SceProgram,
    StreamSpec,
    check_program,
    decode_program,
    encode_program,
    verified_program,
)
from loom_core.isa.sce import SCE_OPS
from tests.isa.strategies import WORD, programs, unhurried

LOAD, SCALAR, STORE = (StreamSpec(kind, "f32") for kind in ("load", "scalar", "store"))


def program(*instructions: SceInstr, streams: tuple[StreamSpec, ...] = (LOAD, SCALAR, STORE)) -> SceProgram:
    return SceProgram(streams, instructions, 4)


@unhurried
@given(programs())
def test_round_trip(one: SceProgram) -> None:
    words = encode_program(one)
    assert decode_program(words) == (one, len(words))


@unhurried
@given(programs(), programs())
def test_programs_follow_each_other(first: SceProgram, second: SceProgram) -> None:
    section = np.concatenate([encode_program(first), encode_program(second)])
    decoded, offset = decode_program(section)
    assert decoded == first
    assert decode_program(section, offset) == (second, len(section))


@unhurried
@given(programs(), st.integers(0, 63), st.data())
def test_flipped_bits(one: SceProgram, bit: int, data: st.DataObject) -> None:
    words = encode_program(one)
    words[data.draw(st.integers(0, len(words) - 1))] ^= np.uint64(1 << bit)
    assert_error_or_canonical(words)


@unhurried
@given(st.lists(WORD, max_size=8))
def test_random_words(values: list[int]) -> None:
    assert_error_or_canonical(np.array([len(values) // 2 | 1 << 16 | 1 << 32, *values], np.uint64))


def assert_error_or_canonical(words: np.ndarray) -> None:
    try:
        decoded, end = decode_program(words)
    except LoomError:
        return
    assert encode_program(decoded).tolist() == words[:end].tolist()


def test_layout() -> None:
    one = SceProgram(
        (dataclasses.replace(LOAD, acc=True), SCALAR, STORE),
        (SceInstr("mul.f32", R(0), S(0), S(1)), SceInstr("exp.f32", S(2), R(0))),
        1,
    )
    stream = 2 << 8 | 1 << 16
    expected = [3 | 2 << 16 | 1 << 32, 1 | stream | 1 << 24, 3 | stream, 2 | stream]
    expected.append(SCE_OPS["mul.f32"].opcode | 0 << 16 | 128 << 24 | 129 << 32)
    expected.append(SCE_OPS["exp.f32"].opcode | 130 << 16 | 0 << 24)
    assert encode_program(one).tolist() == expected


def test_tail() -> None:
    """A running maximum: the tail combines the reduction with a loaded value and stores it."""
    info = check_program(
        program(
            SceInstr("mul.f32", R(0), S(0), S(1)),
            SceInstr("reduce_max.f32", R(1), R(0)),
            SceInstr("max.f32", R(2), R(1), S(3)),
            SceInstr("mov.f32", S(2), R(2)),
            streams=(LOAD, SCALAR, STORE, LOAD),
        )
    )
    assert (info.tail_start, info.reduced_stores, info.folds) == (2, (False, False, True, False), True)


def test_body_and_reduction_side_by_side() -> None:
    """exp(x) stored whole, and its sum."""
    info = check_program(
        program(
            SceInstr("exp.f32", R(0), S(0)),
            SceInstr("mov.f32", S(1), R(0)),
            SceInstr("reduce_sum.f32", S(2), R(0)),
            streams=(LOAD, STORE, STORE),
        )
    )
    assert (info.tail_start, info.reduced_stores, info.folds) == (3, (False, False, True), True)


def test_a_stored_value_is_read_back() -> None:
    """exp(x) stored whole and summed without a register."""
    info = check_program(
        program(
            SceInstr("exp.f32", S(1), S(0)),
            SceInstr("reduce_sum.f32", S(2), S(1)),
            streams=(LOAD, STORE, STORE),
        )
    )
    assert (info.tail_start, info.reduced_stores) == (2, (False, False, True))


def test_bits_move_between_types_of_one_width() -> None:
    streams = (StreamSpec("load", "f32"), StreamSpec("store", "i32"))
    check_program(program(SceInstr("mov.32", R(0), S(0)), SceInstr("not.i32", S(1), R(0)), streams=streams))


STORE_IT = SceInstr("mov.f32", S(2), S(0))


@pytest.mark.parametrize(
    ("one", "reason"),
    [
        (program(SceInstr("fly.f32", S(2), S(0))), "unknown mnemonic"),
        (program(SceInstr("add.f32", S(2), S(0))), "takes 2"),
        (program(SceInstr("neg.f32", S(2), S(0), S(1))), "takes 1"),
        (program(SceInstr("neg.f32", S(2), S(0), imm=1)), "immediate"),
        (program(SceInstr("neg.f32", S(2), R(0))), "before it is written"),
        (program(SceInstr("neg.f32", S(2), S(3))), "does not exist"),
        (program(SceInstr("neg.f32", S(2), S(-1))), "does not exist"),
        (program(SceInstr("neg.f32", S(2), S(2))), "read before it is written"),
        (
            program(SceInstr("add.f32", R(0), S(2), S(0)), SceInstr("neg.f32", S(2), S(0))),
            "read before it is written",
        ),
        (program(SceInstr("reduce_sum.f32", S(2), S(0)), SceInstr("neg.f32", R(0), S(2))), "read back"),
        (
            program(
                SceInstr("neg.f32", S(2), S(0)),
                SceInstr("reduce_sum.f32", R(0), S(2)),
                SceInstr("add.f32", S(3), R(0), S(2)),
                streams=(LOAD, SCALAR, STORE, STORE),
            ),
            "read back",
        ),
        (
            program(
                SceInstr("mov.32", S(1), S(0)),
                SceInstr("not.i32", R(0), S(1)),
                streams=(LOAD, StreamSpec("store", "u32")),
            ),
            "it is u32",
        ),
        (program(SceInstr("neg.f32", S(0), S(0))), "not a store"),
        (program(SceInstr("neg.f32", S(-1), S(0))), "not a store"),
        (program(SceInstr("neg.f32", R(4), S(0))), "outside the program's 4"),
        (program(SceInstr("neg.f32", R(-1), S(0))), "outside the program's 4"),
        (program(SceInstr("neg.f32", R(0), S(0))), "never written"),
        (program(STORE_IT, STORE_IT), "written twice"),
        (program(SceInstr("neg.i32", S(2), S(0))), "as i32"),
        (program(SceInstr("isnan.f32", S(2), S(0))), "writes bool"),
        (program(SceInstr("mov.16", S(2), S(0))), "as 16"),
        (program(SceInstr("mov.8", R(0), S(0)), STORE_IT, streams=(StreamSpec("load", "i8"), SCALAR, STORE)), "f32"),
        (
            program(
                SceInstr("mov.8", R(0), S(0)),
                SceInstr("not.bool", S(1), R(0)),
                streams=(StreamSpec("load", "i8"), StreamSpec("store", "bool")),
            ),
            "as bool",
        ),
        (program(SceInstr("reduce_sum.f32", R(0), S(0)), SceInstr("reduce_max.f32", S(2), R(0))), "in the tail"),
        (program(SceInstr("reduce_sum.f32", R(0), S(0)), SceInstr("add.f32", S(2), R(0), S(0))), "both read"),
        (
            program(
                SceInstr("exp.f32", R(0), S(0)),
                SceInstr("reduce_sum.f32", R(1), R(0)),
                SceInstr("div.f32", S(2), R(0), R(1)),
            ),
            "a value of the body",
        ),
        (
            program(
                SceInstr("reduce_sum.i32", R(0), S(0)),
                SceInstr("add.i32", S(1), R(0), S(0)),
                streams=(StreamSpec("iota", "i32"), StreamSpec("store", "i32")),
            ),
            "iota",
        ),
        (program(STORE_IT, streams=(LOAD, StreamSpec("beam", "f32"), STORE)), "unknown kind"),
        (program(STORE_IT, streams=(LOAD, StreamSpec("load", "f31"), STORE)), "unknown kind"),
        (program(STORE_IT, streams=(LOAD, StreamSpec("iota", "f32"), STORE)), "not i32"),
        (program(STORE_IT, streams=(LOAD, StreamSpec("scalar", "f32", True), STORE)), "accumulator"),
        (SceProgram((), (), 0), "0 streams"),
        (SceProgram((LOAD,), (), 0), "0 instructions"),
        (SceProgram((LOAD, SCALAR, STORE), (STORE_IT,), 65), "65 registers"),
        (SceProgram((LOAD, SCALAR, STORE), (STORE_IT,), -1), "-1 registers"),
    ],
)
def test_refused(one: SceProgram, reason: str) -> None:
    with pytest.raises(InvalidProgram, match=reason):
        encode_program(one)


def test_machine_limits() -> None:
    streams = (LOAD, SCALAR, STORE, *(LOAD,) * 22)
    with pytest.raises(InvalidProgram, match="25 streams"):
        check_program(program(STORE_IT, streams=streams), L1)
    long = program(*(SceInstr("neg.f32", R(0), S(0)),) * 1024, STORE_IT)
    with pytest.raises(InvalidProgram, match="1025 instructions"):
        check_program(long, L1)
    with pytest.raises(InvalidProgram, match="1025 instructions"):
        verified_program(encode_program(long), 0, L1)
    with pytest.raises(InvalidProgram, match="33 registers"):
        check_program(SceProgram((LOAD, SCALAR, STORE), (STORE_IT,), 33), L1)


@pytest.mark.parametrize("offset", [-1, 5, 1 << 40])
def test_offset_outside_the_section(offset: int) -> None:
    with pytest.raises(InvalidProgram, match="programs section"):
        decode_program(encode_program(program(STORE_IT)), offset)
