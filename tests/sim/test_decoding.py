"""DECODEF and DECODEI: panels equal to those of the decoded weights, whatever the codes, offsets and bounds."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import loom_sim
from loom_core.formats import EncodedWeights, Layout, TableScope, decode, decode_integers, layout
from loom_core.isa.codes import ALL_CODE_FORMATS, CODE_FORMATS
from loom_core.isa.encoding import Command, Reg, command
from loom_core.isa.machine import L1_MINI, acc_shape, panel_bytes
from loom_core.reference.dot import dot
from loom_sim.errors import OutOfBounds, UnknownSpace
from tests.sim.harness import Buffer, build, copy, launch, prepared, whole

Array = NDArray[Any]

_DECODED, _PACKED = 0, 128 << 10
ALL_NAMES = list(CODE_FORMATS)
INTEGERS = [row.name for row in ALL_CODE_FORMATS if not row.table]


def any_weights(place: Layout, seed: int) -> EncodedWeights:
    """Random bytes as codes, whether an encoder would write them or not; finite tables and scales."""
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, 256, (place.rows, place.row_bytes), np.uint8)
    tables = rng.standard_normal(place.table_shape).astype(np.float16)
    scales = rng.standard_normal((place.rows, place.groups if place.scaled else 0)).astype(np.float16)
    return EncodedWeights(place, codes, tables, scales)


def options_of(name: str) -> list[dict[str, Any]]:
    options: list[dict[str, Any]] = [{}, {"scaled": True}, {"scaled": True, "group": 16}, {"scaled": True, "group": 64}]
    if CODE_FORMATS[name].table:
        scopes: tuple[TableScope, ...] = ("tensor", "row", "group")
        options = [{**chosen, "table_scope": scope} for scope in scopes for chosen in options]
        options.append({"group": 32, "table_scope": "group"})
    return options


def decoding(
    place: Layout,
    extent: Any,
    depth: Any,
    *,
    first_k: Any = 0,
    side: str = "b",
    box: tuple[Any, Any, Any, Any] | None = None,
    integers: bool = False,
) -> Command:
    """Decode rows from 0 and columns from `first_k`: codes in buffer 1, tables in 2, scales in 3."""
    codes = place.format.codes
    assert codes is not None
    operands = [1, 0, _DECODED, extent, depth, place.row_bytes, first_k, *(box or (0, extent, 0, depth))]
    flags = {"side": int(side == "b"), "format": codes.number}
    if integers:
        return command("decodei", *operands, flags=flags)
    operands += [2, 0, place.table_row_stride, place.table_group_stride, 3, 0, place.scale_row_stride, place.group]
    return command("decodef", *operands, flags={**flags, "scaled": int(place.scaled)})


def packing(mnemonic: str, source: Array, side: str) -> Command:
    """Pack buffer 4, [extent, depth]."""
    extent, depth = source.shape
    flags = {"side": int(side == "b")} | ({"log2_bytes": 2} if mnemonic == "pack" else {"type": 0})
    box = (0, extent, 0, depth)
    return command(mnemonic, 4, 0, _PACKED, extent, depth, *source.strides, *box, 0, flags=flags)


def panels(
    weights: EncodedWeights, values: Array, mnemonic: str, side: str, decode_command: Command
) -> tuple[Array, Array]:
    """The decoded panel, and that of its values packed; by words."""
    size = panel_bytes(L1_MINI, side, *values.shape)
    commands = [
        # SRAM is not cleared: what a pack does not write must be equal too.
        whole((5, 0), (0, _DECODED), size),
        whole((5, 0), (0, _PACKED), size),
        decode_command,
        packing(mnemonic, values, side),
        whole((0, _DECODED), (5, 0), size),
        whole((0, _PACKED), (6, 0), size),
    ]
    nothing = np.zeros(size // 4, np.uint32)
    arrays = [weights.codes, weights.tables, weights.scales, values, nothing, nothing]
    after = launch(build(commands, buffers=6), [a if a.size else np.zeros(2, np.float16) for a in arrays])
    return after[4], after[5]


@pytest.mark.parametrize("name", ALL_NAMES)
@pytest.mark.parametrize("side", ["a", "b"])
def test_panel_of_floats(name: str, side: str) -> None:
    for seed, options in enumerate(options_of(name)):
        for rows, columns in ((1, 1), (5, 130), (33, 96)):
            weights = any_weights(layout(name, rows, columns, **options), seed)
            got, expected = panels(
                weights, decode(weights), "pack", side, decoding(weights.layout, rows, columns, side=side)
            )
            np.testing.assert_array_equal(got, expected, err_msg=str(weights.layout))


@pytest.mark.parametrize("name", INTEGERS)
@pytest.mark.parametrize("side", ["a", "b"])
def test_panel_of_integers(name: str, side: str) -> None:
    for rows, columns in ((1, 1), (5, 131), (33, 96)):
        weights = any_weights(layout(name, rows, columns), rows)
        made = decoding(weights.layout, rows, columns, side=side, integers=True)
        got, expected = panels(weights, decode_integers(weights), "packi", side, made)
        np.testing.assert_array_equal(got, expected)


@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_any_part_of_a_matrix(data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(ALL_NAMES))
    integers = name in INTEGERS and data.draw(st.booleans())
    rows, columns = data.draw(st.integers(1, 40)), data.draw(st.integers(1, 300))
    options = data.draw(st.sampled_from(options_of(name)))
    weights = any_weights(layout(name, rows, columns, **options), data.draw(st.integers(0, 99)))
    first_k = data.draw(st.integers(-20, columns))
    extent, depth = data.draw(st.integers(1, 50)), data.draw(st.integers(1, 280))
    # The valid box lies in the matrix, or anywhere where it is empty.
    ext_lo, ext_hi = data.draw(st.integers(-3, rows)), data.draw(st.integers(-3, rows))
    k_lo, k_hi = sorted((data.draw(st.integers(0, columns)) - first_k, data.draw(st.integers(0, columns)) - first_k))
    k_lo = max(k_lo, -first_k)
    side = data.draw(st.sampled_from(["a", "b"]))
    values = decode_integers(weights) if integers else decode(weights)
    expected = np.zeros((extent, depth), values.dtype)
    e, k = slice(max(ext_lo, 0), max(min(ext_hi, extent), 0)), slice(max(k_lo, 0), max(min(k_hi, depth), 0))
    part = values[e, max(first_k + k.start, 0) : max(first_k + k.stop, 0)]
    expected[e, k][: part.shape[0], : part.shape[1]] = part
    made = decoding(
        weights.layout, extent, depth, first_k=first_k, side=side, box=(ext_lo, ext_hi, k_lo, k_hi), integers=integers
    )
    got, wanted = panels(weights, expected, "packi" if integers else "pack", side, made)
    np.testing.assert_array_equal(got, wanted)


@pytest.mark.parametrize("scaled", [False, True])
def test_special_table_entries(scaled: bool) -> None:
    special = [
        0x0000,
        0x8000,
        0x0001,
        0x8001,
        0x03FF,
        0x0400,
        0x3C00,
        0x7BFF,
        0xFBFF,
        0x7C00,
        0xFC00,
        0x7E00,
        0x7D01,
        0xFE55,
        1,
        2,
    ]
    place = layout("lut4b_fp16", 8, 16, scaled=scaled, table_scope="tensor")
    codes = np.tile(np.arange(16, dtype=np.uint8)[0::2] | np.arange(16, dtype=np.uint8)[1::2] << 4, (8, 1))
    tables = np.array(special, np.uint16).view(np.float16).reshape(1, 1, 16)
    scales = (
        np.array([1.0, -1.0, 6e-8, 65504.0, 0.0, np.inf, np.nan, 1.5][:8], np.float16)[:, None]
        if scaled
        else np.zeros((8, 0), np.float16)
    )
    weights = EncodedWeights(place, codes, tables, scales)
    got, expected = panels(weights, decode(weights), "pack", "b", decoding(place, 8, 16))
    both_nan = np.isnan(got.view(np.float32)) & np.isnan(expected.view(np.float32))
    np.testing.assert_array_equal(np.where(both_nan, 0, got), np.where(both_nan, 0, expected))


@pytest.mark.parametrize("name", ["lut4b_fp16", "int8_packed2"])
def test_weights_in_a_product(name: str) -> None:
    m, n, k = 7, 40, 200
    weights = any_weights(layout(name, n, k, scaled=True, group=64), 3)
    x = np.random.default_rng(1).standard_normal((m, k)).astype(np.float16)
    commands = [
        command("packf", 4, 0, _PACKED, m, k, 2 * k, 2, 0, m, 0, k, 0, flags={"side": 0, "type": 1}),
        decoding(weights.layout, Reg(5), k, box=(0, Reg(5), 0, k)),
        command("accfill", 200 << 10, m, n, 0),
        command("matmulf", 200 << 10, _PACKED, _DECODED, m, n, k, flags={"widest": 0}),
        copy((0, 200 << 10), (5, 0), [(m, acc_shape(L1_MINI, m, n)[1] * 4, n * 4), (n, 4, 4)]),
    ]
    tables = weights.tables if weights.tables.size else np.zeros(1, np.float16)
    arrays = [weights.codes, tables, weights.scales, x, np.zeros((m, n), np.float32)]
    got = launch(build(commands, buffers=5), arrays, {5: n})[4]
    assert got.tobytes() == dot(x, decode(weights).T).tobytes()


# ---- bounds ----------------------------------------------------------------------------------------------------------


def sizes_read(weights: EncodedWeights) -> list[int]:
    """Bytes of each part that a decoding of the whole matrix reads: of the last row, no padding."""
    place = weights.layout
    codes = place.format.codes
    assert codes is not None
    used = -(-place.columns * codes.unit_bytes // codes.unit_codes)
    return [(place.rows - 1) * place.row_bytes + used, weights.tables.nbytes, weights.scales.nbytes]


@pytest.mark.parametrize("name", ALL_NAMES)
def test_no_byte_is_read_that_holds_no_code(name: str) -> None:
    options = {"scaled": True, "group": 32}
    weights = any_weights(layout(name, 5, 77, **options), 1)
    command_ = decoding(weights.layout, 5, 77)
    program = loom_sim.load(build([command_], buffers=3))
    sizes = sizes_read(weights)

    def run(cut: int = -1, low: int = 0) -> None:
        arrays = [a if a.size else np.zeros(2, np.float16) for a in (weights.codes, weights.tables, weights.scales)]
        buffers = [Buffer(array) for array in arrays]
        launched = prepared(program, buffers)
        for index, (buffer, size) in enumerate(zip(buffers, sizes, strict=True)):
            first = low if index == cut and low else 0
            short = index == cut and not low
            launched.bind(index, buffer.array.ctypes.data, first, size - short if size else 0)
        launched.go()

    run()
    for part, size in enumerate(sizes):
        if size:
            for wrong in ({"cut": part}, {"cut": part, "low": 1}):
                with pytest.raises(OutOfBounds):
                    run(**wrong)


@pytest.mark.parametrize("first_k", [1 << 60, -(1 << 60), 1 << 62, (1 << 63) - 1, -(1 << 63)])
@pytest.mark.parametrize("name", ["int8_in_16lane", "packed_trit5", "bin1_packed16"])
def test_positions_do_not_wrap(name: str, first_k: int) -> None:
    weights = any_weights(layout(name, 2, 16), 1)
    for integers in (False, True):
        made = decoding(weights.layout, 2, 16, first_k=first_k, integers=integers)
        arrays = [weights.codes, np.zeros(16, np.float16), np.zeros(16, np.float16)]
        with pytest.raises(OutOfBounds):
            launch(build([made], buffers=3), arrays)


EXTREMES = [-(1 << 63), -(1 << 62), -(1 << 57), -1, 0, 1, 1 << 40, 1 << 57, 1 << 62, (1 << 63) - 1]


@settings(max_examples=400, deadline=None)
@given(data=st.data())
def test_hostile_operands_are_errors(data: st.DataObject) -> None:
    """Any operands: the memory around the buffers is as it was, and the run ends with a fault or without."""
    integers = data.draw(st.booleans())
    first = min(row.number for row in ALL_CODE_FORMATS if not row.table) if integers else 0
    flags = {"side": data.draw(st.integers(0, 1)), "format": data.draw(st.integers(first, len(ALL_CODE_FORMATS) - 1))}
    if not integers:
        flags["scaled"] = data.draw(st.integers(0, 1))
    value = st.one_of(st.integers(-2, 70), st.sampled_from(EXTREMES))
    operands = [data.draw(value) for _ in range(11 if integers else 19)]
    for space in (0,) if integers else (0, 11, 15):
        operands[space] = data.draw(st.integers(0, 4))
    obj = build(
        [command("decodei" if integers else "decodef", *map(Reg, range(10, 10 + len(operands))), flags=flags)],
        buffers=3,
    )
    registers = {10 + i: operand for i, operand in enumerate(operands)}
    arrays = [np.zeros(4096, np.uint8), np.zeros(512, np.float16), np.zeros(64, np.float16)]
    try:
        after = launch(obj, arrays, registers)
    except (OutOfBounds, UnknownSpace):
        return
    for array, kept in zip(arrays, after, strict=True):
        np.testing.assert_array_equal(array, kept)


def test_nothing_is_read_where_the_box_is_empty() -> None:
    place = dataclasses.replace(layout("lut3b_fp16", 4, 40, scaled=True))
    for box in ((0, 0, 0, 40), (0, 4, 9, 9), (3, 2, 0, 40), (0, 4, -5, 0)):
        made = decoding(place, 4, 40, box=box)
        commands = [made, whole((0, _DECODED), (4, 0), panel_bytes(L1_MINI, "b", 4, 40))]
        empty = np.zeros(0, np.uint8)
        got = launch(build(commands, buffers=4), [empty, empty, empty, np.ones(32 * 40, np.float32)])[3]
        assert not got.any()
