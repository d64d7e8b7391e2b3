"""The stream compute engine's opcode table: one row per (function, dtype), explicit and ordered.

Opcodes are stable numbers: base of the dtype family + position in the family's list, and lists only grow at their end.
Adding a dtype is adding a family; adding a function is adding a name at the end of one.

Rules that hold for every row:
- a float result is NaN-canonical (f32: 0x7fc00000), moves and selects of float type included; `mov.32` and its kin
  move bits;
- a bool is one byte, 0 or 1; a loaded bool byte that is not 0 is 1;
- integers wrap; x / 0 is all ones, x % 0 is x, INT_MIN / -1 is INT_MIN, INT_MIN % -1 is 0;
- a shift count outside 0..bits-1 gives 0 (shr: the sign);
- float -> integer casts truncate and saturate, NaN gives 0; integer -> narrower integer wraps; anything -> bool is x
  != 0 (NaN is true); integer -> float rounds to nearest even.

A program has a body and a tail. The body runs once per element. Reductions stand in the body and fold the command's
`fold` trailing dimensions. The tail, which begins at the first instruction that reads a reduction's result, runs once
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
        return self.function.startswith("reduce_")


def _names(text: str) -> tuple[str, ...]:
    return tuple(text.split())


_DIVIDES = frozenset(_names("div rem sqrt rsqrt recip"))
_TRANSCENDENTALS = frozenset(_names("exp exp2 log log2 tanh sigmoid erf sin cos gelu"))
_COMPARES = frozenset(_names("eq ne lt le gt ge ltu leu isnan"))
_TWO_OPERANDS = frozenset(_names("add sub mul div rem min max minp maxp and or xor shl shr shru")) | (
    _COMPARES - {"isnan"}
)

# The functions of each family, in opcode order; new ones go to the end.
_FLOAT_FUNCTIONS = _names(
    "mov add sub mul div fma neg abs min max minp maxp sqrt rsqrt exp exp2 log log2 tanh sigmoid erf sin cos "
    "floor ceil rint trunc recip gelu eq ne lt le gt ge select isnan "
    "reduce_sum reduce_prod reduce_max reduce_min reduce_maxp reduce_minp"
)
_INTEGER_FUNCTIONS = _names(
    "mov add sub mul div rem min max and or xor not shl shr shru neg abs eq ne lt le gt ge ltu leu select "
    "reduce_sum reduce_max reduce_min reduce_and reduce_or reduce_xor"
)
_BOOL_FUNCTIONS = _names("mov and or xor not select eq")
# Ordered list of (source, result); new pairs go to the end.
_CASTS = (
    ("i32", "f32"), ("i64", "f32"), ("i8", "f32"), ("u8", "f32"), ("i16", "f32"), ("bool", "f32"),
    ("f32", "i32"), ("i64", "i32"), ("i8", "i32"), ("u8", "i32"), ("i16", "i32"), ("bool", "i32"),
    ("f32", "i64"), ("i32", "i64"), ("i8", "i64"), ("u8", "i64"), ("i16", "i64"), ("bool", "i64"),
    ("f32", "i8"), ("i32", "i8"), ("i64", "i8"), ("u8", "i8"), ("i16", "i8"), ("bool", "i8"),
    ("f32", "u8"), ("i32", "u8"), ("i64", "u8"), ("i8", "u8"), ("i16", "u8"), ("bool", "u8"),
    ("f32", "i16"), ("i32", "i16"), ("i64", "i16"), ("i8", "i16"), ("u8", "i16"), ("bool", "i16"),
    ("f32", "bool"), ("i32", "bool"), ("i64", "bool"), ("i8", "bool"), ("u8", "bool"), ("i16", "bool"),
)  # fmt: skip

# family -> first opcode; 256 codes a family.
_MOVE_BASE = 0x0100
_CAST_BASE = 0x0200
_FAMILIES: tuple[tuple[str, int, tuple[str, ...]], ...] = (
    ("bool", 0x0400, _BOOL_FUNCTIONS),
    ("i32", 0x0500, _INTEGER_FUNCTIONS),
    ("i64", 0x0600, _INTEGER_FUNCTIONS),
    ("f32", 0x0700, _FLOAT_FUNCTIONS),
)


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
    else:
        operands = (dtype,) * (2 if function in _TWO_OPERANDS else 1)
    result = "bool" if function in _COMPARES else dtype
    return SceOp(opcode, f"{function}.{dtype}", function, operands, result, _slot_class(function, dtype))


def _rows() -> tuple[SceOp, ...]:
    rows = [SceOp(_MOVE_BASE + i, f"mov.{b}", "mov", (b,), b, SLOT_ALU) for i, b in enumerate(("8", "16", "32", "64"))]
    for i, (source, result) in enumerate(_CASTS):
        wide = DTYPE_LOG2_BYTES[source] == 3 or DTYPE_LOG2_BYTES[result] == 3
        rows.append(
            SceOp(_CAST_BASE + i, f"cast.{source}.{result}", "cast", (source,), result, SLOT_WIDE if wide else SLOT_ALU)
        )
    for dtype, base, functions in _FAMILIES:
        rows.extend(_row(base + i, function, dtype) for i, function in enumerate(functions))
    return tuple(rows)


ALL_SCE_OPS: tuple[SceOp, ...] = _rows()
SCE_OPS: dict[str, SceOp] = {op.mnemonic: op for op in ALL_SCE_OPS}
SCE_BY_OPCODE: dict[int, SceOp] = {op.opcode: op for op in ALL_SCE_OPS}


def sce_opcode(mnemonic: str) -> int:
    """Opcode of a mnemonic such as "mul.f32"; KeyError if there is none. For tables built at import."""
    return SCE_OPS[mnemonic].opcode
