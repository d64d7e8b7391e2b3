"""The matrix unit's micro-kernels: a block of the accumulator stays in registers while two micro-panels stream by.

One for float32, with fused multiply-adds in the order of the dot rule, and one for pairs of 16-bit integers with sums
modulo 2^32, whose order is free. The register tiles are chosen once, at import, by asking LLVM what it emits on the
target that Numba is configured for (NUMBA_CPU_NAME, NUMBA_CPU_FEATURES), which need not be the host's own.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from llvmlite import ir
from numba.core import cgutils
from numba.extending import intrinsic

from loom_sim.mxu_emission import (
    DOUBLE,
    FLOAT,
    I16,
    I32,
    I64,
    LINE_BYTES,
    WORD_BYTES,
    addresses,
    emit_prefetch,
    load,
    offset,
    outlined,
    shuffle,
    splat,
    store,
    target_assembly,
    vector,
)

_Registers: TypeAlias = list[list[ir.Value]]


# ---- register tiles --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class RegisterTile:
    """The block of the accumulator that one micro-kernel call keeps in registers.

    lanes    accumulator elements in one vector register
    rows     rows of A in one micro-panel; divides the machine's panel_rows
    vectors  vector registers across one micro-panel of B
    unroll   steps in one trip of the inner loop; a power of two
    fused    whether the target multiplies and adds such a vector in one instruction (integers: adds products of pairs)
    """

    lanes: int
    rows: int
    vectors: int
    unroll: int
    fused: bool

    @property
    def columns(self) -> int:
        """Columns of B in one micro-panel; divides the machine's panel_cols."""
        return self.lanes * self.vectors

    @property
    def b_transpose_rows(self) -> int:
        """Columns of B that one transposition moves; divides `columns`. Eight keep all of it in registers."""
        return min(self.columns, 8)


FUSED_TILES: Final = (
    # 512 bits: 16 sums hide the latency of two units, and 8 rows waste nothing on extents that are multiples of 8.
    RegisterTile(lanes=16, rows=8, vectors=2, unroll=4, fused=True),
    # 256 bits: 12 sums, 2 vectors of B and 1 of A are 15 of 16 registers.
    RegisterTile(lanes=8, rows=6, vectors=2, unroll=4, fused=True),
    # 128 bits, as on AArch64: 16 sums of 32 registers.
    RegisterTile(lanes=4, rows=8, vectors=2, unroll=4, fused=True),
)
"""Tiles for targets with the instruction, widest vectors first."""

EMULATED_TILE: Final = RegisterTile(lanes=4, rows=2, vectors=1, unroll=1, fused=False)
"""The tile for all other targets: a step costs some thirty operations there, so its shape matters little."""

PAIR_TILES: Final = (
    RegisterTile(lanes=16, rows=8, vectors=2, unroll=4, fused=True),
    # 12 sums, 2 vectors of B, 1 of A and its products with one of B are all 16 registers.
    RegisterTile(lanes=8, rows=6, vectors=2, unroll=4, fused=True),
    # Every x86-64 processor has the instruction for 128 bits: 8 sums of 16 registers.
    RegisterTile(lanes=4, rows=4, vectors=2, unroll=4, fused=True),
)
"""Tiles of the integer kernel, widest vectors first."""

EMULATED_PAIR_TILE: Final = RegisterTile(lanes=4, rows=4, vectors=2, unroll=2, fused=False)

# x86 and RISC-V, AArch64. A target whose mnemonic is missing here gets right results, slowly.
_FUSED_INSTRUCTION = re.compile(r"^\s*(?:vfmadd|vfmacc|fmla)", re.MULTILINE)
_PAIR_INSTRUCTION = re.compile(r"^\s*(?:v?pmaddwd|vpdpwssd)", re.MULTILINE)


def choose_register_tile() -> RegisterTile:
    """The tile of the widest vector that Numba's target multiplies and adds in one instruction."""
    for tile in FUSED_TILES:
        if _fused_instructions(tile.lanes) == 1:
            return tile
    return EMULATED_TILE


def choose_pair_tile() -> RegisterTile:
    """The same for integers: the widest vector whose pairs the target multiplies and adds in one instruction."""
    for tile in PAIR_TILES:
        if _pair_instructions(tile.lanes) == 1:
            return tile
    return EMULATED_PAIR_TILE


def _fused_instructions(lanes: int) -> int:
    """Instructions that fuse in the target's code for one fma of `lanes` floats: 0 where it calls a library instead."""
    kind = f"<{lanes} x float>"
    source = f"""
        declare {kind} @llvm.fma.v{lanes}f32({kind}, {kind}, {kind})
        define {kind} @fused({kind} %a, {kind} %b, {kind} %c) {{
            %result = call {kind} @llvm.fma.v{lanes}f32({kind} %a, {kind} %b, {kind} %c)
            ret {kind} %result
        }}
    """
    return len(_FUSED_INSTRUCTION.findall(target_assembly(source)))


def _pair_instructions(lanes: int) -> int:
    """Instructions in the target's code for the pair products of one vector."""
    module = ir.Module()
    halves, words = vector(I16, 2 * lanes), vector(I32, lanes)
    function = ir.Function(module, ir.FunctionType(words, [halves, halves, words]), "pairs")
    builder = ir.IRBuilder(function.append_basic_block())
    a, b, total = function.args
    builder.ret(builder.add(total, _emit_pair_products(builder, a, b)))
    return len(_PAIR_INSTRUCTION.findall(target_assembly(str(function))))


# ---- arithmetic ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Arithmetic:
    """What a micro-kernel does with the words of its micro-panels.

    word          an element of the accumulator, and a word of A
    multiply_add  (builder, tile, word of A in every lane, vector of B, sums so far) -> sums
    add           (builder, accumulator, sums) -> accumulator
    """

    name: str
    word: ir.Type
    multiply_add: Callable[[ir.IRBuilder, RegisterTile, ir.Value, ir.Value, ir.Value], ir.Value]
    add: Callable[[ir.IRBuilder, ir.Value, ir.Value], ir.Value]


def _emit_fma(builder: ir.IRBuilder, tile: RegisterTile, a: ir.Value, b: ir.Value, c: ir.Value) -> ir.Value:
    """a * b + c rounded once, by lane."""
    if not tile.fused:
        return _emit_emulated_fma(builder, a, b, c)
    kind = ir.FunctionType(a.type, [a.type] * 3)
    function = cgutils.get_or_insert_function(builder.module, kind, f"llvm.fma.v{tile.lanes}f32")
    return builder.call(function, [a, b, c])


def _emit_emulated_fma(builder: ir.IRBuilder, a: ir.Value, b: ir.Value, c: ir.Value) -> ir.Value:
    """The same from float64 operations: exact product, sum with its error, sum rounded to odd, then to float32.

    Boldo and Melquiond, "Emulation of a FMA and correctly rounded sums: proved algorithms using rounding to odd", 2008.
    Stands in where llvm.fma would be a call of the C library for each lane.
    """
    wide = ir.VectorType(DOUBLE, a.type.count)
    pattern = ir.VectorType(I64, a.type.count)
    zero, one, minus_one = (ir.Constant(pattern, [value] * a.type.count) for value in (0, 1, -1))
    product = builder.fmul(builder.fpext(a, wide), builder.fpext(b, wide))
    addend = builder.fpext(c, wide)
    total = builder.fadd(product, addend)
    taken = builder.fsub(total, product)
    error = builder.fadd(builder.fsub(product, builder.fsub(total, taken)), builder.fsub(addend, taken))
    bits = builder.bitcast(total, pattern)
    # An ordered comparison: where the total is infinite or NaN the error is NaN and must change nothing.
    inexact = builder.fcmp_ordered("!=", error, ir.Constant(wide, [0.0] * a.type.count))
    even = builder.icmp_signed("==", builder.and_(bits, one), zero)
    rounded_away = builder.icmp_signed("<", builder.xor(bits, builder.bitcast(error, pattern)), zero)
    step = builder.select(rounded_away, minus_one, one)
    odd = builder.add(bits, builder.select(builder.and_(inexact, even), step, zero))
    return builder.fptrunc(builder.bitcast(odd, wide), a.type)


def _emit_pair_products(builder: ir.IRBuilder, a: ir.Value, b: ir.Value) -> ir.Value:
    """a[2i] * b[2i] + a[2i + 1] * b[2i + 1] of 16-bit lanes, as 32 bits; LLVM knows the form as one instruction."""
    lanes = a.type.count
    wide = vector(I32, lanes)
    products = builder.mul(builder.sext(a, wide), builder.sext(b, wide))
    even = shuffle(builder, products, products, range(0, lanes, 2))
    return builder.add(even, shuffle(builder, products, products, range(1, lanes, 2)))


def _emit_add_pairs(builder: ir.IRBuilder, tile: RegisterTile, a: ir.Value, b: ir.Value, c: ir.Value) -> ir.Value:
    halves = vector(I16, 2 * tile.lanes)
    return builder.add(c, _emit_pair_products(builder, builder.bitcast(a, halves), builder.bitcast(b, halves)))


FLOATS: Final = Arithmetic("floats", FLOAT, _emit_fma, ir.IRBuilder.fadd)
PAIRS: Final = Arithmetic("pairs", I32, _emit_add_pairs, ir.IRBuilder.add)


REGISTER_TILE: Final = choose_register_tile()
PAIR_TILE: Final = choose_pair_tile()


# ---- the micro-kernel ------------------------------------------------------------------------------------------------


def _emit_micro_kernel(
    builder: ir.IRBuilder, arguments: Sequence[ir.Value], tile: RegisterTile, arithmetic: Arithmetic
) -> None:
    a, b, c, row_bytes, depth = arguments
    rows = [builder.add(c, builder.mul(row_bytes, I64(i))) for i in range(tile.rows)]
    for row in rows:
        # The accumulator is needed at the very end only: it arrives while the sums are formed.
        for line in range(0, tile.columns * WORD_BYTES, LINE_BYTES):
            emit_prefetch(builder, offset(builder, row, line))
    kind = vector(arithmetic.word, tile.lanes)
    sums = _emit_zero_sums(builder, tile, kind)
    whole = builder.and_(depth, I64(-tile.unroll))
    _emit_steps(builder, tile, arithmetic, sums, (a, b), (I64(0), whole), depth, tile.unroll)
    if tile.unroll > 1:
        _emit_steps(builder, tile, arithmetic, sums, (a, b), (whole, depth), depth, 1)
    for row, vectors in zip(rows, sums, strict=True):
        for j, total in enumerate(vectors):
            place = offset(builder, row, j, tile.lanes * WORD_BYTES)
            store(builder, arithmetic.add(builder, load(builder, place, kind), builder.load(total)), place)


def _emit_zero_sums(builder: ir.IRBuilder, tile: RegisterTile, kind: ir.VectorType) -> _Registers:
    """Stack slots of the tile's sums, all +0; LLVM promotes each to a register."""
    sums = [[builder.alloca(kind) for _ in range(tile.vectors)] for _ in range(tile.rows)]
    for vectors in sums:
        for total in vectors:
            builder.store(ir.Constant(kind, None), total)
    return sums


def _emit_steps(
    builder: ir.IRBuilder,
    tile: RegisterTile,
    arithmetic: Arithmetic,
    sums: _Registers,
    panels: tuple[ir.Value, ir.Value],
    bounds: tuple[ir.Value, ir.Value],
    depth: ir.Value,
    unroll: int,
) -> None:
    """Loop over the words of the micro-panels in [bounds), `unroll` of them a trip."""
    a_step = tile.rows * WORD_BYTES
    b_step = tile.columns * WORD_BYTES
    with cgutils.for_range_slice(builder, *bounds, I64(unroll), I64) as (k, _):
        a = offset(builder, panels[0], k, a_step)
        b = offset(builder, panels[1], k, b_step)
        # The next call reads the next micro-panel of A; the hardware's own prefetch stops at the page between the two.
        a_next = offset(builder, a, depth, a_step)
        for line in range(0, unroll * a_step, LINE_BYTES):
            emit_prefetch(builder, offset(builder, a_next, line))
        for step in range(unroll):
            places = offset(builder, a, step, a_step), offset(builder, b, step, b_step)
            _emit_step(builder, tile, arithmetic, sums, *places)


def _emit_step(
    builder: ir.IRBuilder, tile: RegisterTile, arithmetic: Arithmetic, sums: _Registers, a: ir.Value, b: ir.Value
) -> None:
    """sums += outer product of one word of k of both micro-panels."""
    kind = vector(arithmetic.word, tile.lanes)
    row = [load(builder, offset(builder, b, j, tile.lanes * WORD_BYTES), kind) for j in range(tile.vectors)]
    for i, totals in enumerate(sums):
        column = splat(builder, load(builder, offset(builder, a, i, WORD_BYTES), arithmetic.word), tile.lanes)
        for factor, total in zip(row, totals, strict=True):
            result = arithmetic.multiply_add(builder, tile, column, factor, builder.load(total))
            builder.store(result, total)


@intrinsic
def micro_kernel(typing_context, a, b, c, row_bytes, depth):  # type: ignore[no-untyped-def]
    """c += a b for float32 micro-panels a[depth][rows] and b[depth][columns]; c has `row_bytes` from row to row.

    Each element: t = +0; t = fma(a, b, t) for k ascending; c = c + t. Some of what follows `a` is prefetched.
    """
    return addresses(5), outlined("loom_mxu_micro_kernel", _emit_float_kernel)


@intrinsic
def pair_kernel(typing_context, a, b, c, row_bytes, depth):  # type: ignore[no-untyped-def]
    """The same for pairs of 16-bit integers, a[depth][rows][2] and b[depth][columns][2]; sums are modulo 2^32.

    No two factors of a pair may be -2^15 both times: the sum of a pair's products must fit 32 bits.
    """
    return addresses(5), outlined("loom_mxu_pair_kernel", _emit_pair_kernel)


def _emit_float_kernel(builder: ir.IRBuilder, arguments: Sequence[ir.Value]) -> None:
    _emit_micro_kernel(builder, arguments, REGISTER_TILE, FLOATS)


def _emit_pair_kernel(builder: ir.IRBuilder, arguments: Sequence[ir.Value]) -> None:
    _emit_micro_kernel(builder, arguments, PAIR_TILE, PAIRS)
