"""`tt.elementwise_inline_asm`: single instructions of PTX whose result is known; all other assembly is refused.

"fma.rn.f32 $0, $1, $2, $3;" with one register for each operand, an element at a time
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

from loom_core.base import dtype as core
from loom_core.base.dtype import DType
from loom_core.importers.ttir.arith import bits_as, cast
from loom_core.importers.ttir.attributes import plain
from loom_core.importers.ttir.extended import flushed
from loom_core.importers.ttir.importer import Importer, row
from loom_core.importers.ttir.shapes import result_type
from loom_core.importers.ttir.syntax import Operation
from loom_core.ir.op import Op
from loom_core.ir.value import Value
from loom_core.ops import bits
from loom_core.ops import elementwise as ops

Build = Callable[..., Value]
_INSTRUCTION: Final = re.compile(r"\s*(?P<name>[a-z0-9.]+)\s+(?P<registers>\$\d+(?:\s*,\s*\$\d+)*)\s*;?\s*")
_CONSTRAINTS: Final = re.compile(r"\s*=[rfhld]\s*(,\s*[rfhld]\s*)*")


def _one(kind: type[Op]) -> Build:
    return lambda importer, *values: importer.create(kind, *values)


def _count(kind: type[Op]) -> Build:
    return lambda importer, value: cast(importer, importer.create(kind, value), value.type.dtype)


def _multiply_add(importer: Importer, a: Value, b: Value, c: Value) -> Value:
    return importer.create(ops.Add, importer.create(ops.Mul, a, b), c)  # type: ignore[no-any-return]


def _reciprocal(importer: Importer, value: Value) -> Value:
    return importer.create(ops.Div, importer.constant(value.type, 1.0), value)  # type: ignore[no-any-return]


def _flushing(build: Build) -> Build:
    """With subnormal operands and results as zeros."""

    def built(importer: Importer, *values: Value) -> Value:
        return flushed(importer, build(importer, *(flushed(importer, value) for value in values)))

    return built


_SIGNED: Final = {"s16": core.i16, "s32": core.i32, "s64": core.i64}
_UNSIGNED: Final = {"u16": core.u16, "u32": core.u32, "u64": core.u64}
_PLAIN: Final = {"b16": core.u16, "b32": core.u32, "b64": core.u64}
_FLOATS: Final = {"f32": core.f32, "f64": core.f64}
_APPROXIMATE: Final[dict[str, Build]] = {
    "ex2": _one(ops.Exp2), "lg2": _one(ops.Log2), "rsqrt": _one(ops.Rsqrt), "sqrt": _one(ops.Sqrt),
    "sin": _one(ops.Sin), "cos": _one(ops.Cos), "rcp": _reciprocal,
}  # fmt: skip


_INTEGER_OPERATIONS: Final[dict[str, type[Op]]] = {
    "add": ops.Add, "sub": ops.Sub, "mul.lo": ops.Mul, "mul.hi": bits.MultiplyHigh, "min": ops.Min, "max": ops.Max,
}  # fmt: skip
_LOGIC: Final[dict[str, type[Op]]] = {"and": ops.And, "or": ops.Or, "xor": ops.Xor, "shl": ops.ShiftLeft}
_SIGNS: Final[dict[str, type[Op]]] = {"abs": ops.Abs, "neg": ops.Negate}
_FLOAT_OPERATIONS: Final[dict[str, type[Op]]] = {
    "add": ops.Add, "add.rn": ops.Add, "sub": ops.Sub, "sub.rn": ops.Sub, "mul": ops.Mul, "mul.rn": ops.Mul,
    "min": ops.Min, "max": ops.Max, "div.rn": ops.Div,
}  # fmt: skip
_COUNTS: Final[dict[str, type[Op]]] = {"popc": bits.BitCount, "clz": bits.LeadingZeros}


def _instructions() -> dict[str, tuple[DType, int, Build]]:
    """By name: the dtype of its registers, how many operands it takes, and what it does."""
    found: dict[str, tuple[DType, int, Build]] = {}
    for suffix, dtype in {**_SIGNED, **_UNSIGNED, **_PLAIN, **_FLOATS}.items():
        found[f"mov.{suffix}"] = (dtype, 1, lambda importer, value: value)
    for suffix, dtype in {**_SIGNED, **_UNSIGNED}.items():
        found |= {f"{name}.{suffix}": (dtype, 2, _one(kind)) for name, kind in _INTEGER_OPERATIONS.items()}
        found[f"mad.lo.{suffix}"] = (dtype, 3, _multiply_add)
    for suffix, dtype in _PLAIN.items():
        found |= {f"{name}.{suffix}": (dtype, 2, _one(kind)) for name, kind in _LOGIC.items()}
        found[f"not.{suffix}"] = (dtype, 1, _one(ops.Not))
    for suffix, dtype in {**_SIGNED, **_FLOATS}.items():
        found |= {f"{name}.{suffix}": (dtype, 1, _one(kind)) for name, kind in _SIGNS.items()}
    for suffix, dtype in _FLOATS.items():
        found |= {f"{name}.{suffix}": (dtype, 2, _one(kind)) for name, kind in _FLOAT_OPERATIONS.items()}
        found[f"fma.rn.{suffix}"], found[f"sqrt.rn.{suffix}"] = (dtype, 3, _one(ops.Fma)), (dtype, 1, _one(ops.Sqrt))
        found[f"rcp.rn.{suffix}"] = (dtype, 1, _reciprocal)
    for name, build in _APPROXIMATE.items():
        found[f"{name}.approx.f32"] = (core.f32, 1, build)
        found[f"{name}.approx.ftz.f32"] = (core.f32, 1, _flushing(build))
    found |= {f"{name}.b32": (core.u32, 1, _count(kind)) for name, kind in _COUNTS.items()}
    found["brev.b32"] = (core.u32, 1, _one(bits.ReverseBits))
    found["tanh.approx.f32"] = (core.f32, 1, _one(ops.Tanh))
    return found


INSTRUCTIONS: Final = _instructions()


@row("tt.elementwise_inline_asm", operands=(1, 8), types="free", words=True,
     attributes=("constraints", "packed_element", "pure"))  # fmt: skip
def _assembly(importer: Importer, op: Operation, operands: list[Any]) -> Value:
    text = op.words[0] if len(op.words) == 1 else importer.wrong(op, "its text is missing")
    read = _INSTRUCTION.fullmatch(text)
    name = read["name"] if read is not None else ""
    if read is None or name not in INSTRUCTIONS:
        shown = " ".join(text.split())
        importer.refuse(op, f"inline assembly is code of a GPU, and `{shown[:60]}` none of the instructions known here")
    dtype, count, build = INSTRUCTIONS[name]
    _check(importer, op, read["registers"], count)
    result = result_type(importer, op)
    for value in operands:
        alike = not value.type.is_pointer and value.type.shape == result.shape and not value.type.dtype.is_bool
        if not alike or value.type.dtype.bits != dtype.bits:
            importer.wrong(op, f"{name} does not take {value.type}")
    if result.is_pointer or result.dtype.bits != dtype.bits:
        importer.wrong(op, f"{name} does not give {result}")
    made = build(importer, *(bits_as(importer, value, dtype) for value in operands))
    return bits_as(importer, made, result.dtype)


def _check(importer: Importer, op: Operation, registers: str, count: int) -> None:
    """The registers are the operands in order, one for each, and one element is done at a time."""
    numbers = [int(number) for number in re.findall(r"\d+", registers)]
    constraints = str(plain(op.attributes.get("constraints", "")))
    packed = plain(op.attributes.get("packed_element", 1))
    if numbers != list(range(count + 1)) or len(op.operands) != count or len(op.result_types) != 1:
        importer.refuse(op, "the registers of an instruction are not its operands in order")
    if _CONSTRAINTS.fullmatch(constraints) is None or constraints.count(",") != count or packed != 1:
        importer.refuse(op, "an instruction takes one element in one register here")
