"""Encoding and decoding: round trips, labels, refusals, hostile words."""

from __future__ import annotations

import dataclasses
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from loom_core.base.diagnostics import LoomError
from loom_core.isa.encoding import Command, Label, Operand, Reg, Wait, assemble, command, decode, encode
from loom_core.isa.errors import InvalidCommand, InvalidStream, UnknownCommand, UnresolvedLabel
from tests.isa.strategies import WORD, commands, unhurried


def words(*values: int) -> np.ndarray:
    return np.array(values, dtype=np.uint64)


@unhurried
@given(st.lists(commands(), max_size=4))
def test_round_trip(stream: list[Command]) -> None:
    encoded = encode(stream)
    assert encoded.dtype == np.dtype("<u8")
    assert decode(encoded) == stream


@unhurried
@given(st.lists(WORD, max_size=12))
def test_random_words(values: list[int]) -> None:
    assert_error_or_canonical(words(*values))


@unhurried
@given(commands(), st.integers(0, 63), st.data())
def test_flipped_bits(one: Command, bit: int, data: st.DataObject) -> None:
    encoded = encode([one])
    encoded[data.draw(st.integers(0, len(encoded) - 1))] ^= np.uint64(1 << bit)
    assert_error_or_canonical(encoded)


def assert_error_or_canonical(encoded: np.ndarray) -> None:
    """Whatever decodes is what the encoder writes for it."""
    try:
        stream = decode(encoded)
    except LoomError:
        return
    assert encode(stream).tolist() == encoded.tolist()


def test_layout_of_a_command() -> None:
    one = command("copy", 1, Reg(7), 0, 64, -1, 4, 4, 4, 0, Reg(9), flags={"ndim": 1, "log2_bytes": 2, "skip": 1})
    one = dataclasses.replace(one, queue=2, waits=(Wait(3, 1),), signal=4)
    header = 0x40 | 13 << 8 | 2 << 16 | 1 << 20 | (1 | 2 << 3 | 1 << 5) << 24 | 4 << 32 | 10 << 48
    operands = [1, 7, 0, 64, (1 << 64) - 1, 4, 4, 4, 0, 9]
    assert encode([one]).tolist() == [header, 1 << 1 | 1 << 9, *operands, 3 | 1 << 32]


def test_unsigned_immediates_are_the_same_bits() -> None:
    (decoded,) = decode(encode([command("mov", 3, (1 << 64) - 2)]))
    assert decoded.operands == (3, -2)


def test_labels() -> None:
    head, end, after = Label("head"), Label("end"), Label("after")
    stream = [
        head,
        command("loop", 7, 0, Reg(1), 1, end),
        command("brz", Reg(7), after),
        command("mov", 8, Reg(7)),
        after,
        command("endloop"),
        end,
        command("while", head),
        command("halt"),
    ]
    assembled = assemble(stream)
    assert assembled.offsets == (0, 7, 11, 15, 17, 20)
    decoded = decode(assembled.words)
    assert decoded[0].operands[-1] == 17
    assert decoded[1].operands[-1] == 15
    assert decoded[4].operands == (0,)


def test_labels_refused() -> None:
    twice = Label("twice")
    with pytest.raises(UnresolvedLabel, match="nowhere"):
        encode([command("jump", Label("lost"))])
    with pytest.raises(UnresolvedLabel, match="stands at"):
        encode([twice, command("halt"), twice])
    with pytest.raises(InvalidCommand, match="cannot be a label"):
        encode([twice, command("mov", 3, twice)])


@pytest.mark.parametrize(
    ("one", "reason"),
    [
        (Command("add", (7, 1)), "2 operands"),
        (Command("add", (256, 1, 1)), "register 256"),
        (Command("add", (Reg(7), 1, 1)), "immediate"),
        (Command("add", (7, Reg(300), 1)), "register 300"),
        (Command("add", (7, 1 << 64, 1)), "64 bits"),
        (Command("add", (7, 1, 1), flags=9), "narrow"),
        (Command("add", (7, 1, 1), flags=0x40), "bits outside"),
        (Command("add", (7, 1, 1), flags=-1), "byte"),
        (Command("add", (7, 1, 1), queue=5), "queue 5"),
        (Command("add", (7, 1, 1), signal=1), "neither"),
        (Command("add", (7, 1, 1), waits=(Wait(1),)), "neither"),
        (Command("matmul", (0,) * 6, waits=(Wait(0),)), "token 0"),
        (Command("matmul", (0,) * 6, waits=(Wait(1, -1),)), "lag"),
        (Command("matmul", (0,) * 6, waits=(Wait(1),) * 16), "16 waits"),
        (Command("matmul", (0,) * 6, signal=1 << 16), "signal"),
        (Command("matmul", (0,) * 6, queue=1), "queue 1"),
        (Command("copy", (0,) * 10, flags=0), "ndim"),
        (Command("copy", (0,) * 11, flags=1), "11 operands"),
        (Command("copy", (-1, *(0,) * 9), flags=1), "space"),
        (Command("pack", (0,) * 12, flags=0), "log2_bytes"),
        (Command("program", (0,) * 5, flags=2), "5 operands"),
        (Command("program", (0, *(0,) * 4, *(0,) * 5 * 52), flags=4), "at most 255"),
        (Command("program", (*(0,) * 69, Reg(3)), flags=4), "mask"),
        (Command("program", (0, 1, 0, 4), flags=1 | 1 << 6, queue=6), "queue 6"),
    ],
)
def test_refused(one: Command, reason: str) -> None:
    with pytest.raises(InvalidCommand, match=reason):
        encode([one])


def test_unknown_mnemonic() -> None:
    with pytest.raises(UnknownCommand, match="fly"):
        command("fly", flags={"high": 1})
    with pytest.raises(InvalidCommand, match="no flag 'high'"):
        command("halt", flags={"high": 1})
    with pytest.raises(InvalidCommand, match="ndim = 6"):
        command("copy", flags={"ndim": 6})


@pytest.mark.parametrize(
    "values",
    [(0,), (0x01 | 2 << 8,), (0x01 | 1 << 8, 0), (0x01 | 3 << 8, 0, 0), (0xFF | 2 << 8, 0), (0x01 | 2 << 8, 1)],
)
def test_decode_refuses(values: tuple[int, ...]) -> None:
    with pytest.raises(LoomError):
        decode(words(*values))


@pytest.mark.parametrize("array", [np.zeros((2, 2), np.uint64), np.zeros(2, np.int64)])
def test_decode_refuses_other_arrays(array: np.ndarray) -> None:
    with pytest.raises(InvalidStream):
        decode(array)


def test_encoding_is_fast() -> None:
    """150 commands, as many as an attention kernel has: under 5 ms."""
    box: tuple[Operand, ...] = (64, 256, 256, 0, Reg(9), 64, 4, 4, 0, Reg(10))
    copy = command("copy", 1, Reg(7), 0, 0, 0, *box, flags={"ndim": 2, "log2_bytes": 2}, waits=(Wait(1),), signal=2)
    stream = [copy, command("add", 7, Reg(7), 4)] * 75

    def seconds() -> float:
        start = time.perf_counter()
        encode(stream)
        return time.perf_counter() - start

    assert min(seconds() for _ in range(5)) < 0.005
