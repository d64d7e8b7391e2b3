"""The stream compute engine's opcode table: one row per (function, dtype), explicit and ordered.

Opcodes are stable numbers: first opcode of the dtype family + position in the family's list, and lists only grow at
their end. Adding a dtype is adding a family; adding a function is adding a name at the end of one.

Rules that hold for every row (docs/numerics.md has the arithmetic):
- a float result is NaN-canonical (f64 0x7ff8000000000000, f32 0x7fc00000, f16 0x7e00, bf16 0x7fc0, f8e4m3 0x7f, f8e5m2
  0x7e), moves and selects of float type included; `mov.32` and its kin move bits;
- functions of 8- and 16-bit floats widen, compute in f32 and round to nearest even once; their fma is exact before its
  one rounding, and nextafter goes by their own bit patterns. Overflow gives an infinity, for f8e4m3 NaN;
- a bool is one byte, 0 or 1; a loaded bool byte that is not 0 is 1. i4 and u4 are the low half of a
  byte: a load ignores the upper half, a store clears it;
- integers wrap; x / 0 is all ones, x % 0 is x, INT_MIN / -1 is INT_MIN, INT_MIN % -1 is 0; mulhi is the upper half of
  the product;
- a shift count outside 0..bits-1 gives 0 (shr of a signed type: the sign);
- casts: float -> integer truncates and saturates, NaN gives 0; integer -> narrower integer wraps; anything -> bool is x
  != 0 (NaN is true); to a float type rounds once to nearest even. A value too large for f8e5m2 becomes infinite, for
  f8e4m3 NaN; `cast_sat` gives the largest finite value of its sign instead, for infinities too. `cast_rtz` rounds
  towards zero: no finite value becomes infinite;
- round_mantissa.f32(x, n) rounds to n of the 23 mantissa bits (tf32: 10), to nearest even; for n outside 0..22 it is x.

A program has a body and a tail. The body runs once per element. Reductions and scans stand in the body and fold the
command's `fold` trailing dimensions, a row, flattened row-major; a scan's result is a value of the body:
- `scan_f`: element i is x0 f x1 f ... f xi, one after the other (with the command's `reverse` flag from the last
  element down to i), `f` the elementwise function of that name, for sum and prod add and mul;
- `reduce_argmax`, `reduce_argmin`: the index, counted from 0 within the row, of the first extreme element; the forms
  `_last` give the last one. -0 and +0 are equal. NaNs are passed over, and are equal in a row of NaNs alone; for
  `reduce_argmaxp` and `reduce_argminp` a NaN is the extreme.
The tail, which begins at the first instruction that reads a reduction's result, runs once
per index of the leading dimensions, over reduction results, scalars, and load streams that only the tail reads.
"""

from __future__ import annotations

from dataclasses import dataclass

from loom_core.base.dtype import by_name

# Stable dtype codes of stream words. A code is never reused.
DTYPE_CODES: dict[str, int] = {
    "f32": 1,
    "f64": 2,
    "f16": 3,
    "bf16": 4,
    "f8e4m3": 5,
    "f8e5m2": 6,
    "i64": 8,
    "i32": 9,
    "i16": 10,
    "i8": 11,
    "i4": 12,
    "u64": 16,
    "u32": 17,
    "u16": 18,
    "u8": 19,
    "u4": 20,
    "bool": 24,
}
DTYPE_NAMES: dict[int, str] = {code: name for name, code in DTYPE_CODES.items()}
DTYPE_LOG2_BYTES: dict[str, int] = {name: by_name(name).itemsize.bit_length() - 1 for name in DTYPE_CODES}

# Stream kinds.
STREAM_LOAD = 1
STREAM_STORE = 2
STREAM_SCALAR = 3
STREAM_IOTA = 4
STREAM_KINDS: dict[str, int] = {
    "load": STREAM_LOAD,
    "store": STREAM_STORE,
    "scalar": STREAM_SCALAR,
    "iota": STREAM_IOTA,
}
STREAM_FLAG_ACC = 1
# Operand codes: below this a register, from this on a stream.
OPERAND_STREAM = 128

# Slot classes; the machine says how many lane slots an element of each costs (`cost.py`).
SLOT_ALU = 0
SLOT_WIDE = 1
SLOT_DIVIDE = 2
SLOT_TRANSCENDENTAL = 3
SLOT_NAMES = ("alu", "wide", "divide", "transcendental")  # a machine's sce_..._slots fields


@dataclass(frozen=True, slots=True)
class SceOp:
    """One opcode. `operands` and `result` are dtype names, or "8" "16" "32" "64": any dtype of that many bits."""

    opcode: int
    mnemonic: str
    function: str
    operands: tuple[str, ...]
    result: str
    slot_class: int

    @property
    def is_reduction(self) -> bool:
        """Whether it makes one value of a row."""
        return self.function.startswith("reduce_")

    @property
    def is_scan(self) -> bool:
        """Whether it makes a row of a row, each element from all up to it."""
        return self.function.startswith("scan_")

    @property
    def is_elementwise(self) -> bool:
        """Whether its result for an element depends on the operands' elements at the same place alone."""
        return not (self.is_reduction or self.is_scan)

    @property
    def is_argument(self) -> bool:
        """Whether it finds the place of an extreme element."""
        return self.function.startswith("reduce_arg")


def _names(text: str) -> tuple[str, ...]:
    return tuple(text.split())


_DIVIDES = frozenset(_names("div rem sqrt rsqrt recip fmod remainder hypot"))
_TRANSCENDENTALS = frozenset(
    _names(
        "exp exp2 log log2 tanh sigmoid erf sin cos gelu expm1 log10 log1p tan asin acos atan atan2 sinh cosh asinh "
        "acosh atanh erfc erfinv softplus cbrt pow lgamma digamma"
    )
)
_COMPARES = frozenset(_names("eq ne lt le gt ge ltu leu isnan"))
_TWO_OPERANDS = frozenset(
    _names(
        "add sub mul div rem min max minp maxp and or xor shl shr shru mulhi atan2 pow fmod remainder copysign "
        "nextafter hypot"
    )
) | (_COMPARES - {"isnan"})
# Functions with an integer operand or result beside a float, or a count as a result.
_SPECIAL_OPERANDS = {"ldexp": ("", "i32")}
_SPECIAL_RESULTS = {"frexp_exponent": "i32", "popcount": "i32", "clz": "i32"}

# The functions of each family, in opcode order; new ones go to the end.
_FLOAT_FUNCTIONS = _names(
    "mov add sub mul div fma neg abs min max minp maxp sqrt rsqrt exp exp2 log log2 tanh sigmoid erf sin cos "
    "floor ceil rint trunc recip gelu eq ne lt le gt ge select isnan "
    "reduce_sum reduce_prod reduce_max reduce_min reduce_maxp reduce_minp "
    "expm1 log10 log1p tan asin acos atan atan2 sinh cosh asinh acosh atanh erfc erfinv softplus cbrt pow lgamma "
    "digamma round fmod remainder copysign nextafter hypot ldexp frexp_fraction frexp_exponent"
)
_DOUBLE_FUNCTIONS = _names(
    "mov add sub mul div fma neg abs min max minp maxp sqrt rsqrt recip floor ceil rint trunc round "
    "eq ne lt le gt ge select isnan copysign nextafter fmod remainder ldexp frexp_fraction frexp_exponent "
    "reduce_sum reduce_prod reduce_max reduce_min reduce_maxp reduce_minp "
    "exp exp2 expm1 log log2 log10 log1p sigmoid softplus tanh sinh cosh asinh acosh atanh sin cos tan asin acos atan "
    "atan2 erf erfc gelu cbrt pow hypot erfinv lgamma digamma"
)
_INTEGER_FUNCTIONS = _names(
    "mov add sub mul div rem min max and or xor not shl shr shru neg abs eq ne lt le gt ge ltu leu select "
    "reduce_sum reduce_max reduce_min reduce_and reduce_or reduce_xor "
    "reduce_prod mulhi popcount clz brev"
)
_UNSIGNED_FUNCTIONS = _names(
    "mov add sub mul div rem min max and or xor not shl shr neg abs eq ne lt le gt ge select "
    "reduce_sum reduce_max reduce_min reduce_and reduce_or reduce_xor "
    "reduce_prod mulhi popcount clz brev"
)
_BOOL_FUNCTIONS = _names("mov and or xor not select eq ne lt le gt ge reduce_and reduce_or reduce_xor")

# family -> first opcode.
_FAMILIES: tuple[tuple[str, int, tuple[str, ...]], ...] = (
    ("bool", 0x0400, _BOOL_FUNCTIONS),
    ("i32", 0x0500, _INTEGER_FUNCTIONS),
    ("i64", 0x0600, _INTEGER_FUNCTIONS),
    ("f32", 0x0700, _FLOAT_FUNCTIONS),
    ("i8", 0x0800, _INTEGER_FUNCTIONS),
    ("i16", 0x0840, _INTEGER_FUNCTIONS),
    ("u8", 0x0880, _UNSIGNED_FUNCTIONS),
    ("u16", 0x08C0, _UNSIGNED_FUNCTIONS),
    ("u32", 0x0900, _UNSIGNED_FUNCTIONS),
    ("u64", 0x0940, _UNSIGNED_FUNCTIONS),
    ("f16", 0x0A00, _FLOAT_FUNCTIONS),
    ("bf16", 0x0B00, _FLOAT_FUNCTIONS),
    ("f8e4m3", 0x0C00, _FLOAT_FUNCTIONS),
    ("f8e5m2", 0x0D00, _FLOAT_FUNCTIONS),
    ("f64", 0x0E00, _DOUBLE_FUNCTIONS),
)
_MOVE_BASE = 0x0100

# Functions of whole rows, beside the reductions above; 32 codes a type.
_FLOAT_ROWS = _names(
    "scan_sum scan_prod scan_max scan_min scan_maxp scan_minp "
    "reduce_argmax reduce_argmin reduce_argmaxp reduce_argminp "
    "reduce_argmax_last reduce_argmin_last reduce_argmaxp_last reduce_argminp_last"
)
_INTEGER_ROWS = _names(
    "scan_sum scan_prod scan_max scan_min scan_and scan_or scan_xor "
    "reduce_argmax reduce_argmin reduce_argmax_last reduce_argmin_last"
)
_ROW_FAMILIES: tuple[tuple[str, int, tuple[str, ...]], ...] = (
    ("f32", 0x1000, _FLOAT_ROWS),
    ("f64", 0x1020, _FLOAT_ROWS),
    ("f16", 0x1040, _FLOAT_ROWS),
    ("bf16", 0x1060, _FLOAT_ROWS),
    ("f8e4m3", 0x1080, _FLOAT_ROWS),
    ("f8e5m2", 0x10A0, _FLOAT_ROWS),
    ("i64", 0x10C0, _INTEGER_ROWS),
    ("i32", 0x10E0, _INTEGER_ROWS),
    ("i16", 0x1100, _INTEGER_ROWS),
    ("i8", 0x1120, _INTEGER_ROWS),
    ("u64", 0x1140, _INTEGER_ROWS),
    ("u32", 0x1160, _INTEGER_ROWS),
    ("u16", 0x1180, _INTEGER_ROWS),
    ("u8", 0x11A0, _INTEGER_ROWS),
    ("bool", 0x11C0, _names("scan_and scan_or scan_xor")),
)

# Pairs (source, result) of casts, in opcode order; new ones go to the end, as a further tuple.
_FIRST_CASTS = (
    ("i32", "f32"), ("i64", "f32"), ("i8", "f32"), ("u8", "f32"), ("i16", "f32"), ("bool", "f32"),
    ("f32", "i32"), ("i64", "i32"), ("i8", "i32"), ("u8", "i32"), ("i16", "i32"), ("bool", "i32"),
    ("f32", "i64"), ("i32", "i64"), ("i8", "i64"), ("u8", "i64"), ("i16", "i64"), ("bool", "i64"),
    ("f32", "i8"), ("i32", "i8"), ("i64", "i8"), ("u8", "i8"), ("i16", "i8"), ("bool", "i8"),
    ("f32", "u8"), ("i32", "u8"), ("i64", "u8"), ("i8", "u8"), ("i16", "u8"), ("bool", "u8"),
    ("f32", "i16"), ("i32", "i16"), ("i64", "i16"), ("i8", "i16"), ("u8", "i16"), ("bool", "i16"),
    ("f32", "bool"), ("i32", "bool"), ("i64", "bool"), ("i8", "bool"), ("u8", "bool"), ("i16", "bool"),
)  # fmt: skip
_CAST_TYPES = _names("f64 f32 f16 bf16 f8e4m3 f8e5m2 i64 i32 i16 i8 i4 u64 u32 u16 u8 u4 bool")
_FLOAT_TYPES = _CAST_TYPES[:6]
_OTHER_CASTS = tuple(
    (source, result)
    for result in _CAST_TYPES
    for source in _CAST_TYPES
    if source != result and (source, result) not in _FIRST_CASTS
)
# From any type but bool, whose values all fit.
_SATURATING_CASTS = tuple(
    (source, result) for result in ("f8e4m3", "f8e5m2") for source in _CAST_TYPES[:-1] if source != result
)
# Pairs of float types where a value may have to be rounded.
_TRUNCATING_CASTS = (
    ("f64", "f32"), ("f64", "f16"), ("f32", "f16"), ("bf16", "f16"), ("f64", "bf16"), ("f32", "bf16"), ("f16", "bf16"),
    ("f64", "f8e4m3"), ("f32", "f8e4m3"), ("f16", "f8e4m3"), ("bf16", "f8e4m3"), ("f8e5m2", "f8e4m3"),
    ("f64", "f8e5m2"), ("f32", "f8e5m2"), ("f16", "f8e5m2"), ("bf16", "f8e5m2"), ("f8e4m3", "f8e5m2"),
)  # fmt: skip
# function -> first opcode.
_CASTS: tuple[tuple[str, int, tuple[tuple[str, str], ...]], ...] = (
    ("cast", 0x0200, _FIRST_CASTS + _OTHER_CASTS),
    ("cast_sat", 0x0380, _SATURATING_CASTS),
    ("cast_rtz", 0x03C0, _TRUNCATING_CASTS),
)
_ROUND_MANTISSA = SceOp(0x03F0, "round_mantissa.f32", "round_mantissa", ("f32", "i32"), "f32", SLOT_ALU)


def _slot_class(function: str, dtype: str) -> int:
    if function in _TRANSCENDENTALS:
        return SLOT_TRANSCENDENTAL
    if function in _DIVIDES:
        return SLOT_DIVIDE
    return SLOT_WIDE if DTYPE_LOG2_BYTES[dtype] == 3 else SLOT_ALU


def _row(opcode: int, function: str, dtype: str) -> SceOp:
    if function == "select":
        operands: tuple[str, ...] = ("bool", dtype, dtype)
    elif function == "fma":
        operands = (dtype,) * 3
    elif function in _SPECIAL_OPERANDS:
        operands = tuple(name or dtype for name in _SPECIAL_OPERANDS[function])
    else:
        operands = (dtype,) * (2 if function in _TWO_OPERANDS else 1)
    if function in _COMPARES:
        result = "bool"
    else:
        result = "i32" if function.startswith("reduce_arg") else _SPECIAL_RESULTS.get(function, dtype)
    return SceOp(opcode, f"{function}.{dtype}", function, operands, result, _slot_class(function, dtype))


def _cast_row(opcode: int, function: str, source: str, result: str) -> SceOp:
    wide = DTYPE_LOG2_BYTES[source] == 3 or DTYPE_LOG2_BYTES[result] == 3
    slot_class = SLOT_WIDE if wide else SLOT_ALU
    return SceOp(opcode, f"{function}.{source}.{result}", function, (source,), result, slot_class)


def _rows() -> tuple[SceOp, ...]:
    rows = [SceOp(_MOVE_BASE + i, f"mov.{b}", "mov", (b,), b, SLOT_ALU) for i, b in enumerate(("8", "16", "32", "64"))]
    for function, base, pairs in _CASTS:
        rows.extend(_cast_row(base + i, function, *pair) for i, pair in enumerate(pairs))
    rows.append(_ROUND_MANTISSA)
    for dtype, base, functions in _FAMILIES + _ROW_FAMILIES:
        rows.extend(_row(base + i, function, dtype) for i, function in enumerate(functions))
    return tuple(rows)


ALL_SCE_OPS: tuple[SceOp, ...] = _rows()
SCE_OPS: dict[str, SceOp] = {op.mnemonic: op for op in ALL_SCE_OPS}
SCE_BY_OPCODE: dict[int, SceOp] = {op.opcode: op for op in ALL_SCE_OPS}


def sce_opcode(mnemonic: str) -> int:
    """Opcode of a mnemonic such as "mul.f32"; KeyError if there is none. For tables built at import."""
    return SCE_OPS[mnemonic].opcode
