"""`arith` and `math`: numbers, comparisons, conversions.

Integers of Triton IR have no sign, those of Tile IR have one: values are signed, and what works on unsigned ones takes
the bits as such and gives them back. The sign of i1 counts too: as a signed number, true is -1.
"""

from __future__ import annotations

from string import hexdigits
from typing import Any, Final

import numpy as np

from loom_core.base import dtype as core
from loom_core.base.dtype import DType
from loom_core.importers.ttir.attributes import plain
from loom_core.importers.ttir.importer import Importer, row
from loom_core.importers.ttir.pointers import Reinterpreted, reinterpreted
from loom_core.importers.ttir.syntax import Operation
from loom_core.importers.ttir.types import UNSIGNED, tile_type
from loom_core.ir.op import Op
from loom_core.ir.types import TileType
from loom_core.ir.value import Value
from loom_core.ops import bits, special
from loom_core.ops import elementwise as ops
from loom_core.ops.shape import Splat

# ---- operations that are one of ours ----

_FLOAT: Final[dict[str, tuple[type[Op], int]]] = {
    "arith.addf": (ops.Add, 2), "arith.subf": (ops.Sub, 2), "arith.mulf": (ops.Mul, 2), "arith.divf": (ops.Div, 2),
    "arith.remf": (special.Fmod, 2), "arith.negf": (ops.Negate, 1),
    "arith.minnumf": (ops.Min, 2), "arith.maxnumf": (ops.Max, 2),
    "arith.minimumf": (ops.MinPropagate, 2), "arith.maximumf": (ops.MaxPropagate, 2),
    "tt.precise_divf": (ops.Div, 2), "tt.approx_divf": (ops.Div, 2), "tt.precise_sqrt": (ops.Sqrt, 1),
    "math.absf": (ops.Abs, 1), "math.exp": (ops.Exp, 1), "math.exp2": (ops.Exp2, 1), "math.log": (ops.Log, 1),
    "math.log2": (ops.Log2, 1), "math.log10": (special.Log10, 1), "math.log1p": (special.Log1p, 1),
    "math.expm1": (special.Expm1, 1), "math.sin": (ops.Sin, 1), "math.cos": (ops.Cos, 1), "math.tan": (special.Tan, 1),
    "math.asin": (special.Asin, 1), "math.acos": (special.Acos, 1), "math.atan": (special.Atan, 1),
    "math.sinh": (special.Sinh, 1), "math.cosh": (special.Cosh, 1), "math.tanh": (ops.Tanh, 1),
    "math.asinh": (special.Asinh, 1), "math.acosh": (special.Acosh, 1), "math.atanh": (special.Atanh, 1),
    "math.sqrt": (ops.Sqrt, 1), "math.rsqrt": (ops.Rsqrt, 1), "math.cbrt": (special.CubeRoot, 1),
    "math.erf": (ops.Erf, 1), "math.erfc": (special.Erfc, 1), "math.floor": (ops.Floor, 1), "math.ceil": (ops.Ceil, 1),
    "math.trunc": (ops.Truncate, 1), "math.round": (special.RoundAway, 1), "math.roundeven": (ops.RoundEven, 1),
    "math.atan2": (special.Atan2, 2), "math.powf": (special.Power, 2), "math.copysign": (special.CopySign, 2),
    "math.fma": (ops.Fma, 3),
}  # fmt: skip

# (for integers, for i1: None where that has no meaning)
_INTEGER: Final[dict[str, tuple[type[Op], type[Op] | None]]] = {
    "arith.addi": (ops.Add, ops.Xor), "arith.subi": (ops.Sub, ops.Xor), "arith.muli": (ops.Mul, ops.And),
    "arith.andi": (ops.And, ops.And), "arith.ori": (ops.Or, ops.Or), "arith.xori": (ops.Xor, ops.Xor),
    "arith.divsi": (ops.Div, None), "arith.remsi": (ops.Rem, None), "arith.floordivsi": (ops.FloorDiv, None),
    "arith.minsi": (ops.Min, ops.Or), "arith.maxsi": (ops.Max, ops.And),
    "arith.shli": (ops.ShiftLeft, None), "arith.shrsi": (ops.ShiftRight, None),
}  # fmt: skip
_UNSIGNED: Final[dict[str, tuple[type[Op], type[Op] | None]]] = {
    "arith.divui": (ops.Div, None), "arith.remui": (ops.Rem, None), "arith.shrui": (ops.ShiftRight, None),
    "arith.minui": (ops.Min, ops.And), "arith.maxui": (ops.Max, ops.Or), "tt.mulhiui": (bits.MultiplyHigh, None),
}  # fmt: skip


def dtype_of(importer: Importer, op: Operation, value: Value, *kinds: str) -> DType:
    """The dtype of an operand, which must be of one of the kinds."""
    element = value.type.element
    if not isinstance(element, DType) or element.kind not in kinds:
        importer.wrong(op, f"it does not take {value.type}")
    return element


def _float(importer: Importer, op: Operation, operands: list[Any]) -> Value:
    kind, count = _FLOAT[op.name]
    if len(operands) != count:
        importer.wrong(op, f"it has {len(operands)} operands, {count} are needed")
    dtype_of(importer, op, operands[0], "float")
    return importer.create(kind, *operands)  # type: ignore[no-any-return]


def _integer(importer: Importer, op: Operation, operands: list[Any]) -> Value:
    kind, of_bools = _INTEGER[op.name]
    if dtype_of(importer, op, operands[0], "int", "bool").is_bool:
        return _of_bools(importer, op, of_bools, operands)
    return importer.create(kind, *operands)  # type: ignore[no-any-return]


def _unsigned(importer: Importer, op: Operation, operands: list[Any]) -> Value:
    kind, of_bools = _UNSIGNED[op.name]
    dtype = dtype_of(importer, op, operands[0], "int", "bool")
    if dtype.is_bool:
        return _of_bools(importer, op, of_bools, operands)
    return bits_as(importer, importer.create(kind, *(unsigned(importer, value) for value in operands)), dtype)


def _of_bools(importer: Importer, op: Operation, kind: type[Op] | None, operands: list[Any]) -> Value:
    if kind is None:
        importer.refuse(op, "it is not defined for i1 here")
    return importer.create(kind, *operands)  # type: ignore[no-any-return]


def bits_as(importer: Importer, value: Value, dtype: DType) -> Value:
    """The bits of a value as another dtype of equal width."""
    return value if value.type.element is dtype else importer.create(ops.Bitcast, value, dtype=dtype)


def unsigned(importer: Importer, value: Value) -> Value:
    """A signed integer's bits as an unsigned one."""
    return bits_as(importer, value, UNSIGNED[value.type.dtype])


row(*_FLOAT, operands=(1, 3), types="same")(_float)
row(*_INTEGER, operands=2, types="same")(_integer)
row(*_UNSIGNED, operands=2, types="same")(_unsigned)

_BIT_COUNTS: Final[dict[str, type[Op]]] = {"math.ctpop": bits.BitCount, "math.ctlz": bits.LeadingZeros}


@row(*_BIT_COUNTS, operands=1, types="same")
def _bit_count(importer: Importer, op: Operation, operands: list[Any]) -> Value:
    dtype = dtype_of(importer, op, operands[0], "int")
    return cast(importer, importer.create(_BIT_COUNTS[op.name], operands[0]), dtype)


@row("math.absi", operands=1, types="same")
def _absolute(importer: Importer, op: Operation, operands: list[Any]) -> Value:
    if dtype_of(importer, op, operands[0], "int", "bool").is_bool:
        return operands[0]  # type: ignore[no-any-return]
    return importer.create(ops.Abs, operands[0])  # type: ignore[no-any-return]


@row("tt.clampf", operands=3, types="same", attributes=("propagateNan",))
def _clamp(importer: Importer, op: Operation, operands: list[Any]) -> Value:
    dtype_of(importer, op, operands[0], "float")
    propagate = plain(op.attributes.get("propagateNan", "none")) in ("all", 0xFFFF)
    low, high = (ops.MaxPropagate, ops.MinPropagate) if propagate else (ops.Max, ops.Min)
    value, least, greatest = operands
    return importer.create(high, importer.create(low, value, least), greatest)  # type: ignore[no-any-return]


# ---- constants ----


@row("arith.constant", operands=0, types="free")
def _constant(importer: Importer, op: Operation, operands: list[Any]) -> Value:
    if len(op.literals) != 1:
        importer.wrong(op, "one value is needed")
    value = plain(op.literals[0])
    if isinstance(value, bool) and not op.types:
        return importer.constant(TileType(core.bool_), value)
    if len(op.types) != 1:
        importer.wrong(op, "one type is needed after its value")
    type = tile_type(op.types[0], op.position)
    if type.is_pointer:
        importer.refuse(op, "a pointer has no constants")
    return importer.constant(type, _number(importer, op, value, type))


def _number(importer: Importer, op: Operation, value: Any, type: TileType) -> bool | int | float:
    """The one number that a constant consists of."""
    while isinstance(value, list):
        if len(value) != 1:
            importer.refuse(op, "a constant with different elements is not supported")
        value = value[0]
    dtype = type.dtype
    if isinstance(value, str):
        return _from_bits(importer, op, value, type)
    if not isinstance(value, (bool, int, float)):
        importer.wrong(op, f"{value} is no number")
    if dtype.is_float:
        if isinstance(value, int) and abs(value) >= 1 << 1024:
            importer.wrong(op, "its value is larger than any float")
        return float(value)
    if isinstance(value, float):
        importer.wrong(op, f"{value} is no {dtype.name}")
    if dtype.is_bool:
        return bool(value)
    if not -(1 << (dtype.bits - 1)) <= value < 1 << dtype.bits:
        importer.wrong(op, f"{value} does not fit {dtype.name}")
    return int(value)


def _from_bits(importer: Importer, op: Operation, text: str, type: TileType) -> int | float:
    """`0x7FC00000`, the bits of a float or an integer."""
    dtype = type.dtype
    digits = text[2:]
    if not text.startswith("0x") or not digits or len(digits) > dtype.bits // 4:
        importer.refuse(op, "a constant with different elements is not supported")
    if set(digits) - set(hexdigits):
        importer.wrong(op, f"{text} is no hexadecimal number")
    pattern = int(digits, 16)
    if not dtype.is_float:
        return pattern
    return float(np.array(pattern, f"u{dtype.itemsize}").view(dtype.numpy))


# ---- comparisons ----

_SIGNED: Final = {"eq": "eq", "ne": "ne", "slt": "lt", "sle": "le", "sgt": "gt", "sge": "ge"}
_BY_BITS: Final = {"ult": "lt", "ule": "le", "ugt": "gt", "uge": "ge"}
_SWAPPED: Final = {"eq": "eq", "ne": "ne", "lt": "gt", "le": "ge", "gt": "lt", "ge": "le"}
_ORDERED: Final = {"oeq": "eq", "olt": "lt", "ole": "le", "ogt": "gt", "oge": "ge", "une": "ne"}
_NOT_ORDERED: Final = {"ult": "oge", "ule": "ogt", "ugt": "ole", "uge": "olt", "ueq": "one", "uno": "ord"}


def _predicate(importer: Importer, op: Operation) -> str:
    if len(op.words) != 1:
        importer.wrong(op, "one predicate is needed")
    return op.words[0]


@row("arith.cmpi", operands=2, types="input", words=True)
def _compare_integers(importer: Importer, op: Operation, operands: list[Any]) -> Value:
    dtype = dtype_of(importer, op, operands[0], "int", "bool")
    predicate = _predicate(importer, op)
    if predicate in _SIGNED:
        # True is -1 as a signed number, so i1 is ordered the other way round.
        word = _SWAPPED[_SIGNED[predicate]] if dtype.is_bool else _SIGNED[predicate]
        return importer.create(ops.Compare, *operands, predicate=word)  # type: ignore[no-any-return]
    if predicate not in _BY_BITS:
        importer.wrong(op, f"it has no predicate {predicate}")
    if not dtype.is_bool:
        operands = [unsigned(importer, value) for value in operands]
    return importer.create(ops.Compare, *operands, predicate=_BY_BITS[predicate])  # type: ignore[no-any-return]


@row("arith.cmpf", operands=2, types="input", words=True)
def _compare_floats(importer: Importer, op: Operation, operands: list[Any]) -> Value:
    dtype_of(importer, op, operands[0], "float")
    return _compared(importer, op, _predicate(importer, op), operands)


def _compared(importer: Importer, op: Operation, predicate: str, operands: list[Any]) -> Value:
    """One of MLIR's predicates: `o` holds only for numbers, `u` also where an operand is NaN."""
    create = importer.create
    if predicate in _ORDERED:
        return create(ops.Compare, *operands, predicate=_ORDERED[predicate])  # type: ignore[no-any-return]
    if predicate == "one":
        sides = (create(ops.Compare, *operands, predicate=word) for word in ("lt", "gt"))
        return create(ops.Or, *sides)  # type: ignore[no-any-return]
    if predicate == "ord":
        return create(ops.Not, create(ops.Or, *(create(ops.IsNan, value) for value in operands)))  # type: ignore[no-any-return]
    if predicate in _NOT_ORDERED:
        return create(ops.Not, _compared(importer, op, _NOT_ORDERED[predicate], operands))  # type: ignore[no-any-return]
    if predicate in ("true", "false"):
        return importer.constant(operands[0].type.with_element(core.bool_), predicate == "true")
    return importer.wrong(op, f"it has no predicate {predicate}")


@row("arith.select", operands=3, types="free")
def _select(importer: Importer, op: Operation, operands: list[Any]) -> Value:
    condition, on_true, on_false = operands
    for value in operands:
        if not isinstance(value, Value):
            importer.refuse(op, "it chooses between descriptors or block pointers")
    if not op.types:
        importer.wrong(op, "its type is missing")
    importer.check_type(op, on_true, op.types[-1], "operand 2")
    if on_true.type != on_false.type or condition.type.element is not core.bool_:
        importer.wrong(op, f"it does not take {condition.type}, {on_true.type} and {on_false.type}")
    if not condition.type.shape and on_true.type.shape:
        condition = importer.create(Splat, condition, shape=on_true.type.shape)
    if condition.type.shape != on_true.type.shape:
        importer.wrong(op, f"it does not take {condition.type} with {on_true.type}")
    return importer.create(ops.Select, condition, on_true, on_false)  # type: ignore[no-any-return]


# ---- conversions ----


def cast(importer: Importer, value: Value, dtype: DType) -> Value:
    """Convert, where the dtype is another one."""
    return value if value.type.element is dtype else importer.create(ops.Cast, value, dtype=dtype)


def _as_signed(importer: Importer, value: Value) -> Value:
    """An i1 as the signed number that it is, 0 or -1; others as they are."""
    if not value.type.dtype.is_bool:
        return value
    return importer.create(ops.Negate, importer.create(ops.Cast, value, dtype=core.i32))  # type: ignore[no-any-return]


def _as_unsigned(importer: Importer, value: Value) -> Value:
    return value if value.type.dtype.is_bool else unsigned(importer, value)


def _low_bit(importer: Importer, value: Value) -> Value:
    """Whether the lowest bit is set."""
    one, zero = (importer.constant(value.type, number) for number in (1, 0))
    return importer.create(ops.Compare, importer.create(ops.And, value, one), zero, predicate="ne")  # type: ignore[no-any-return]


# name: kinds of the operand, kinds of the result, whether the bits grow, shrink or either
_CONVERSIONS: Final[dict[str, tuple[tuple[str, ...], tuple[str, ...], str]]] = {
    "arith.extsi": (("int", "bool"), ("int",), "grow"), "arith.extui": (("int", "bool"), ("int",), "grow"),
    "arith.trunci": (("int",), ("int", "bool"), "shrink"),
    "arith.extf": (("float",), ("float",), "grow"), "arith.truncf": (("float",), ("float",), "shrink"),
    "arith.sitofp": (("int", "bool"), ("float",), ""), "arith.uitofp": (("int", "bool"), ("float",), ""),
    "arith.fptosi": (("float",), ("int", "bool"), ""), "arith.fptoui": (("float",), ("int", "bool"), ""),
    "arith.index_cast": (("int",), ("int",), ""), "arith.index_castui": (("int",), ("int",), ""),
    "tt.fp_to_fp": (("float",), ("float",), ""),
}  # fmt: skip


@row(*_CONVERSIONS, operands=1, attributes=("rounding", "roundingmode"), words=True)
def _convert(importer: Importer, op: Operation, operands: list[Any]) -> Value:
    (value,) = operands
    sources, targets, change = _CONVERSIONS[op.name]
    source = dtype_of(importer, op, value, *sources)
    target = _target(importer, op).dtype
    if target.kind not in targets:
        importer.wrong(op, f"it does not give {target.name}")
    if (change == "grow" and target.bits <= source.bits) or (change == "shrink" and target.bits >= source.bits):
        importer.wrong(op, f"it does not convert {source.name} to {target.name}")
    if source.is_float and target.is_float and target.bits < source.bits and _toward_zero(importer, op):
        return importer.create(special.CastTowardZero, value, dtype=target)  # type: ignore[no-any-return]
    if target.is_bool:
        return _low_bit(importer, cast(importer, value, core.i32) if source.is_float else value)
    if op.name in ("arith.extsi", "arith.sitofp"):
        return cast(importer, _as_signed(importer, value), target)
    if op.name in ("arith.extui", "arith.uitofp", "arith.index_castui"):
        return cast(importer, _as_unsigned(importer, value), target)
    if op.name == "arith.fptoui":
        return bits_as(importer, cast(importer, value, UNSIGNED[target]), target)
    return cast(importer, value, target)


def _target(importer: Importer, op: Operation) -> TileType:
    if len(op.result_types) != 1:
        importer.wrong(op, "the type of its result is missing")
    type = tile_type(op.result_types[0], op.position)
    if type.is_pointer:
        importer.wrong(op, f"it does not give {type}")
    return type


def _toward_zero(importer: Importer, op: Operation) -> bool:
    """Whether a conversion truncates: `rounding = rtz`, older `rounding = 0 : i32`, MLIR's `toward_zero`."""
    given = [plain(op.attributes[key]) for key in ("rounding", "roundingmode") if key in op.attributes] + op.words
    for mode in given:
        if mode in ("rtz", "toward_zero", 0):
            return True
        if mode not in ("rtne", "to_nearest_even", 1):
            importer.refuse(op, f"Loom does not round {mode}")
    return False


@row("tt.bitcast", "arith.bitcast", operands=1, structured=True)
def _bitcast(importer: Importer, op: Operation, operands: list[Any]) -> Any:
    (value,) = operands
    if len(op.result_types) != 1:
        importer.wrong(op, "the type of its result is missing")
    target = tile_type(op.result_types[0], op.position)
    if isinstance(value, Reinterpreted) or value.type.is_pointer or target.is_pointer:
        return reinterpreted(importer, op, value, target)
    if value.type.dtype.bits != target.dtype.bits:
        importer.wrong(op, f"{value.type} and {target} differ in width")
    return bits_as(importer, value, target.dtype)
