"""LLVM emission of the matrix unit's inner loops, for the instruction set that Numba generates code for.

Operations on raw addresses, each a Numba intrinsic at module level so that compiled callers can be cached:
`micro_kernel`, `copy_a_row`, `copy_b_row`, `transpose_a_rows`, `transpose_b_rows`, `copy_words`, `fill_words`,
`zero_bytes` and `prefetch`. Addresses and strides are int64, in bytes; no alignment is assumed. Nothing here allocates,
raises or checks a bound: callers do.

The register tile is chosen once, at import, by asking LLVM what it emits for a fused multiply-add on the target that
Numba is configured for (NUMBA_CPU_NAME, NUMBA_CPU_FEATURES), which need not be the host's own.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import llvmlite.binding as llvm
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.registry import cpu_target
from numba.extending import intrinsic

WORD_BYTES: Final = 4
_LINE_BYTES: Final = 64  # only the number of prefetches depends on it

_FLOAT = ir.FloatType()
_DOUBLE = ir.DoubleType()
_I32 = ir.IntType(32)
_I64 = ir.IntType(64)
_POINTER = ir.IntType(8).as_pointer()

_Emit: TypeAlias = Callable[[ir.IRBuilder, Sequence[ir.Value]], None]
_Codegen: TypeAlias = Callable[[Any, ir.IRBuilder, Any, Sequence[ir.Value]], ir.Value]
_Registers: TypeAlias = list[list[ir.Value]]


# ---- the register tile -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class RegisterTile:
    """The block of the accumulator that one micro-kernel call keeps in registers.

    lanes    floats in one vector register
    rows     rows of A in one micro-panel; divides the machine's panel_rows
    vectors  vector registers across one micro-panel of B
    unroll   steps of k in one trip of the inner loop; a power of two
    fused    whether the target multiplies and adds such a vector in one instruction
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

# x86 and RISC-V, AArch64. A target whose mnemonic is missing here gets right results, slowly.
_FUSED_INSTRUCTION = re.compile(r"^\s*(?:vfmadd|vfmacc|fmla)", re.MULTILINE)


def choose_register_tile() -> RegisterTile:
    """The tile of the widest vector that Numba's target multiplies and adds in one instruction."""
    for tile in FUSED_TILES:
        if _fused_instructions(tile.lanes) == 1:
            return tile
    return EMULATED_TILE


def _fused_instructions(lanes: int) -> int:
    """Instructions that fuse in the target's code for one fma of `lanes` floats: 0 where it calls a library instead."""
    triple, cpu, features = cpu_target.target_context.codegen().magic_tuple()
    machine = llvm.Target.from_triple(triple).create_target_machine(cpu=cpu, features=features)
    kind = f"<{lanes} x float>"
    source = f"""
        target triple = "{triple}"
        declare {kind} @llvm.fma.v{lanes}f32({kind}, {kind}, {kind})
        define {kind} @fused({kind} %a, {kind} %b, {kind} %c) {{
            %result = call {kind} @llvm.fma.v{lanes}f32({kind} %a, {kind} %b, {kind} %c)
            ret {kind} %result
        }}
    """
    return len(_FUSED_INSTRUCTION.findall(machine.emit_assembly(llvm.parse_assembly(source))))


REGISTER_TILE: Final = choose_register_tile()


# ---- vectors and memory ----------------------------------------------------------------------------------------------


def _vector(lanes: int) -> ir.VectorType:
    return ir.VectorType(_FLOAT, lanes)


def _offset(builder: ir.IRBuilder, address: ir.Value, count: ir.Value | int, size: int = 1) -> ir.Value:
    """address + count * size."""
    distance = _I64(count * size) if isinstance(count, int) else builder.mul(count, _I64(size))
    return builder.add(address, distance)


def _load(builder: ir.IRBuilder, address: ir.Value, kind: ir.Type) -> ir.Value:
    return builder.load(builder.inttoptr(address, kind.as_pointer()), align=1)


def _store(builder: ir.IRBuilder, value: ir.Value, address: ir.Value) -> None:
    builder.store(value, builder.inttoptr(address, value.type.as_pointer()), align=1)


def _shuffle(builder: ir.IRBuilder, first: ir.Value, second: ir.Value, lanes: Sequence[int]) -> ir.Value:
    return builder.shuffle_vector(first, second, ir.Constant(ir.VectorType(_I32, len(lanes)), list(lanes)))


def _splat(builder: ir.IRBuilder, scalar: ir.Value, lanes: int) -> ir.Value:
    undefined = ir.Constant(ir.VectorType(scalar.type, lanes), ir.Undefined)
    single = builder.insert_element(undefined, scalar, _I32(0))
    return _shuffle(builder, single, undefined, [0] * lanes)


def _widths(count: int, widest: int) -> list[int]:
    """Vector widths, descending powers of two up to `widest`, that add up to `count`."""
    whole, rest = divmod(count, widest)
    return [widest] * whole + [1 << bit for bit in reversed(range(rest.bit_length())) if rest >> bit & 1]


def _emit_prefetch(builder: ir.IRBuilder, address: ir.Value) -> None:
    """Fetch the line at `address` into the first-level cache; an address that is not mapped does nothing."""
    kind = ir.FunctionType(ir.VoidType(), [_POINTER, _I32, _I32, _I32])
    fetch = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
    for_reading, nearest, data = _I32(0), _I32(3), _I32(1)
    builder.call(fetch, [builder.inttoptr(address, _POINTER), for_reading, nearest, data])


# ---- arithmetic ------------------------------------------------------------------------------------------------------


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
    wide = ir.VectorType(_DOUBLE, a.type.count)
    pattern = ir.VectorType(_I64, a.type.count)
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


# ---- the micro-kernel ------------------------------------------------------------------------------------------------


def _emit_micro_kernel(builder: ir.IRBuilder, arguments: Sequence[ir.Value]) -> None:
    tile = REGISTER_TILE
    a, b, c, row_bytes, depth = arguments
    rows = [builder.add(c, builder.mul(row_bytes, _I64(i))) for i in range(tile.rows)]
    for row in rows:
        # The accumulator is needed at the very end only: it arrives while the sums are formed.
        for line in range(0, tile.columns * WORD_BYTES, _LINE_BYTES):
            _emit_prefetch(builder, _offset(builder, row, line))
    sums = _emit_zero_sums(builder, tile)
    whole = builder.and_(depth, _I64(-tile.unroll))
    _emit_steps(builder, tile, sums, (a, b), (_I64(0), whole), depth, tile.unroll)
    if tile.unroll > 1:
        _emit_steps(builder, tile, sums, (a, b), (whole, depth), depth, 1)
    for row, vectors in zip(rows, sums, strict=True):
        for j, total in enumerate(vectors):
            place = _offset(builder, row, j, tile.lanes * WORD_BYTES)
            before = _load(builder, place, _vector(tile.lanes))
            _store(builder, builder.fadd(before, builder.load(total)), place)


def _emit_zero_sums(builder: ir.IRBuilder, tile: RegisterTile) -> _Registers:
    """Stack slots of the tile's sums, all +0; LLVM promotes each to a register."""
    kind = _vector(tile.lanes)
    sums = [[builder.alloca(kind) for _ in range(tile.vectors)] for _ in range(tile.rows)]
    for vectors in sums:
        for total in vectors:
            builder.store(ir.Constant(kind, [0.0] * tile.lanes), total)
    return sums


def _emit_steps(
    builder: ir.IRBuilder,
    tile: RegisterTile,
    sums: _Registers,
    panels: tuple[ir.Value, ir.Value],
    bounds: tuple[ir.Value, ir.Value],
    depth: ir.Value,
    unroll: int,
) -> None:
    """Loop over k in [bounds), `unroll` steps a trip."""
    a_step = tile.rows * WORD_BYTES
    b_step = tile.columns * WORD_BYTES
    with cgutils.for_range_slice(builder, *bounds, _I64(unroll), _I64) as (k, _):
        a = _offset(builder, panels[0], k, a_step)
        b = _offset(builder, panels[1], k, b_step)
        # The next call reads the next micro-panel of A; the hardware's own prefetch stops at the page between the two.
        a_next = _offset(builder, a, depth, a_step)
        for line in range(0, unroll * a_step, _LINE_BYTES):
            _emit_prefetch(builder, _offset(builder, a_next, line))
        for step in range(unroll):
            _emit_step(builder, tile, sums, _offset(builder, a, step, a_step), _offset(builder, b, step, b_step))


def _emit_step(builder: ir.IRBuilder, tile: RegisterTile, sums: _Registers, a: ir.Value, b: ir.Value) -> None:
    """sums += outer product of one k of both micro-panels."""
    kind = _vector(tile.lanes)
    row = [_load(builder, _offset(builder, b, j, tile.lanes * WORD_BYTES), kind) for j in range(tile.vectors)]
    for i, totals in enumerate(sums):
        column = _splat(builder, _load(builder, _offset(builder, a, i, WORD_BYTES), _FLOAT), tile.lanes)
        for factor, total in zip(row, totals, strict=True):
            builder.store(_emit_fma(builder, tile, column, factor, builder.load(total)), total)


# ---- moving operands into micro-panels -------------------------------------------------------------------------------


def _emit_copy(builder: ir.IRBuilder, arguments: Sequence[ir.Value], count: int) -> None:
    """Copy `count` contiguous floats."""
    dst, src = arguments
    done = 0
    for lanes in _widths(count, REGISTER_TILE.lanes):
        value = _load(builder, _offset(builder, src, done, WORD_BYTES), _vector(lanes))
        _store(builder, value, _offset(builder, dst, done, WORD_BYTES))
        done += lanes


def _emit_copy_words(builder: ir.IRBuilder, arguments: Sequence[ir.Value]) -> None:
    dst, pitch, src, stride, count = arguments
    with cgutils.for_range(builder, count, intp=_I64) as loop:
        value = _load(builder, builder.add(src, builder.mul(loop.index, stride)), _I32)
        _store(builder, value, builder.add(dst, builder.mul(loop.index, pitch)))


def _emit_zero_bytes(builder: ir.IRBuilder, arguments: Sequence[ir.Value]) -> None:
    dst, count = arguments
    clear = builder.module.declare_intrinsic("llvm.memset", [_POINTER, _I64])
    builder.call(clear, [builder.inttoptr(dst, _POINTER), ir.IntType(8)(0), count, ir.IntType(1)(0)])


def _emit_fill_words(builder: ir.IRBuilder, arguments: Sequence[ir.Value]) -> None:
    dst, pitch, count, bits = arguments
    value = builder.trunc(bits, _I32)
    with cgutils.for_range(builder, count, intp=_I64) as loop:
        _store(builder, value, builder.add(dst, builder.mul(loop.index, pitch)))


def _emit_transpose(builder: ir.IRBuilder, arguments: Sequence[ir.Value], rows: int, panel_rows: int) -> None:
    """Move one vector of k from each of `rows` rows, row_bytes apart, to so many k of a micro-panel of `panel_rows`."""
    dst, src, row_bytes = arguments
    lanes = REGISTER_TILE.lanes
    kind = _vector(lanes)
    loaded = [_load(builder, builder.add(src, builder.mul(row_bytes, _I64(i))), kind) for i in range(rows)]
    padded = 1 << (rows - 1).bit_length()
    columns = _transposed(builder, loaded + [ir.Constant(kind, ir.Undefined)] * (padded - rows))
    if padded == panel_rows:
        for index, vector in enumerate(columns):
            _store(builder, vector, _offset(builder, dst, index, lanes * WORD_BYTES))
        return
    for k in range(lanes):
        done = 0
        for width in _widths(rows, min(padded, lanes)):
            index, lane = divmod(k * padded + done, lanes)
            part = _shuffle(builder, columns[index], columns[index], range(lane, lane + width))
            _store(builder, part, _offset(builder, dst, k * panel_rows + done, WORD_BYTES))
            done += width


def _transposed(builder: ir.IRBuilder, rows: list[ir.Value]) -> list[ir.Value]:
    """The elements of a power of two of vectors, column by column, cut into as many vectors.

    Each round interleaves the first half of the vectors with the second; after log2(rows) rounds a column is together.
    """
    half = len(rows) // 2
    for _ in range(half.bit_length()):
        pairs = [_interleaved(builder, rows[i], rows[i + half]) for i in range(half)]
        rows = [vector for pair in pairs for vector in pair]
    return rows


def _interleaved(builder: ir.IRBuilder, x: ir.Value, y: ir.Value) -> tuple[ir.Value, ir.Value]:
    """x0 y0 x1 y1 ... as two vectors."""
    lanes = x.type.count
    order = [lane + side for lane in range(lanes) for side in (0, lanes)]
    return _shuffle(builder, x, y, order[:lanes]), _shuffle(builder, x, y, order[lanes:])


# ---- intrinsics ------------------------------------------------------------------------------------------------------


def _addresses(count: int) -> Any:
    """Signature void(int64, ...) of `count` arguments."""
    return types.void(*[types.int64] * count)


def _inline(emit: _Emit) -> _Codegen:
    """Code generator that emits into the caller."""

    def generate(context: Any, builder: ir.IRBuilder, signature: Any, arguments: Sequence[ir.Value]) -> ir.Value:
        emit(builder, arguments)
        return context.get_dummy_value()

    return generate


def _outlined(name: str, emit: _Emit, *attributes: str) -> _Codegen:
    """Code generator that calls a function of its own, whose registers are allocated for it alone."""

    def generate(context: Any, builder: ir.IRBuilder, signature: Any, arguments: Sequence[ir.Value]) -> ir.Value:
        function = builder.module.globals.get(name)
        if function is None:
            function = ir.Function(builder.module, ir.FunctionType(ir.VoidType(), [_I64] * len(arguments)), name)
            function.linkage = "internal"
            for attribute in ("noinline", *attributes):
                function.attributes.add(attribute)
            body = ir.IRBuilder(function.append_basic_block("entry"))
            emit(body, function.args)
            body.ret_void()
        builder.call(function, arguments)
        return context.get_dummy_value()

    return generate


@intrinsic
def micro_kernel(typing_context, a, b, c, row_bytes, depth):  # type: ignore[no-untyped-def]
    """c += a b for micro-panels a[depth][rows] and b[depth][columns]; c has `row_bytes` from row to row.

    Each element: t = +0; t = fma(a, b, t) for k ascending; c = c + t. Some of what follows `a` is prefetched.
    """
    return _addresses(5), _outlined("loom_mxu_micro_kernel", _emit_micro_kernel)


@intrinsic
def copy_a_row(typing_context, dst, src):  # type: ignore[no-untyped-def]
    """One k of a micro-panel of A from contiguous floats."""
    return _addresses(2), _inline(lambda builder, arguments: _emit_copy(builder, arguments, REGISTER_TILE.rows))


@intrinsic
def copy_b_row(typing_context, dst, src):  # type: ignore[no-untyped-def]
    """One k of a micro-panel of B from contiguous floats."""
    return _addresses(2), _inline(lambda builder, arguments: _emit_copy(builder, arguments, REGISTER_TILE.columns))


@intrinsic
def transpose_a_rows(typing_context, dst, src, row_bytes):  # type: ignore[no-untyped-def]
    """`lanes` k of a micro-panel of A from its `rows` rows, each contiguous in k."""
    rows = REGISTER_TILE.rows
    return _addresses(3), _inline(lambda builder, arguments: _emit_transpose(builder, arguments, rows, rows))


@intrinsic
def transpose_b_rows(typing_context, dst, src, row_bytes):  # type: ignore[no-untyped-def]
    """`lanes` k of a micro-panel of B for `b_transpose_rows` of its columns, each contiguous in k."""
    rows, columns = REGISTER_TILE.b_transpose_rows, REGISTER_TILE.columns
    return _addresses(3), _inline(lambda builder, arguments: _emit_transpose(builder, arguments, rows, columns))


# Vectorised, a loop over words some way apart becomes scatters, several times slower than its stores one by one: hence
# the attribute.
@intrinsic
def copy_words(typing_context, dst, pitch, src, stride, count):  # type: ignore[no-untyped-def]
    """`count` words from src, src + stride, ... to dst, dst + pitch, ..."""
    return _addresses(5), _outlined("loom_mxu_copy_words", _emit_copy_words, "noimplicitfloat")


@intrinsic
def fill_words(typing_context, dst, pitch, count, bits):  # type: ignore[no-untyped-def]
    """The low 32 bits of `bits` to `count` words at dst, dst + pitch, ..."""
    return _addresses(4), _outlined("loom_mxu_fill_words", _emit_fill_words, "noimplicitfloat")


@intrinsic
def zero_bytes(typing_context, dst, count):  # type: ignore[no-untyped-def]
    """Zero to `count` bytes at dst; the count is not negative."""
    return _addresses(2), _inline(_emit_zero_bytes)


@intrinsic
def prefetch(typing_context, address):  # type: ignore[no-untyped-def]
    """Fetch the cache line at `address`, mapped or not."""
    return _addresses(1), _inline(lambda builder, arguments: _emit_prefetch(builder, *arguments))
