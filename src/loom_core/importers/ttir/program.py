"""Operations that do something beside computing: calls, library functions, assertions, prints, barriers."""

from __future__ import annotations

from typing import Any

from loom_core.base import dtype as core
from loom_core.importers.ttir.arith import bits_as, cast
from loom_core.importers.ttir.attributes import plain
from loom_core.importers.ttir.importer import Imported, Importer, row
from loom_core.importers.ttir.shapes import integers_attribute, result_type
from loom_core.importers.ttir.syntax import Operation
from loom_core.importers.ttir.types import tile_type
from loom_core.ir.value import Value
from loom_core.ops.debug import Assert, Print


@row("tt.call", "func.call", operands=(0, 1024), words=True, structured=True)
def _call(importer: Importer, op: Operation, operands: list[Any]) -> list[Imported]:
    if len(op.words) != 1 or not op.words[0].startswith("@"):
        importer.wrong(op, "the name of a function is missing")
    return importer.call(op, op.words[0][1:].strip('"'), operands)


# Programs run one after another, each in order: nothing to wait for, and nothing to gain from what is promised.
@row(
    "gpu.barrier",
    "ttg.barrier",
    "ttg.local_barrier",
    "tt.grid_dependency_wait",
    "tt.grid_dependency_launch_dependents",
    "llvm.intr.assume",
    operands=(0, 1),
    types="free",
    attributes=("addrSpace", "memory_fence"),
    words=True,
)
def _nothing(importer: Importer, op: Operation, operands: list[Any]) -> None:
    return


@row("tt.assert", "cf.assert", operands=1, types="free", words=True, attributes=("message",))
def _assert(importer: Importer, op: Operation, operands: list[Any]) -> None:
    (condition,) = operands
    for type in op.types:
        importer.check_type(op, condition, type, "its condition")
    if condition.type.element is not core.bool_:
        importer.wrong(op, f"its condition is {condition.type}")
    if importer.assertions:
        importer.create(Assert, condition, message=op.words[0] if op.words else "")


@row("tt.print", operands=(0, 64), types="free", words=True, attributes=("prefix", "hex", "isSigned"))
def _print(importer: Importer, op: Operation, operands: list[Any]) -> None:
    prefix = str(op.words[0] if op.words else plain(op.attributes.get("prefix", ""))).strip(": ")
    signs = integers_attribute(importer, op, "isSigned")
    values = [importer.value(op, name) for name in op.operands]
    for i, value in enumerate(values):
        integer = not value.type.is_pointer and value.type.dtype.kind == "int"
        if integer and i < len(signs) and signs[i] == 0 and not op.attributes.get("hex"):
            values[i] = bits_as(importer, value, _unsigned(value))
    importer.create(Print, values, prefix=prefix, hex=bool(plain(op.attributes.get("hex", False))))


def _unsigned(value: Value) -> core.DType:
    return core.by_name(f"u{value.type.dtype.bits}")


# ---- library functions ----


@row("tt.extern_elementwise", operands=(1, 8), attributes=("libname", "libpath", "pure", "symbol"))
def _extern(importer: Importer, op: Operation, operands: list[Any]) -> Value:
    symbol = plain(op.attributes.get("symbol"))
    if not isinstance(symbol, str):
        importer.wrong(op, "the symbol is missing")
    made = importer.library.call(symbol, operands)
    if made is None:
        importer.refuse(op, f"Loom has no function {symbol}")
    wanted = result_type(importer, op)
    if made.type.shape != wanted.shape or made.type.is_pointer or wanted.is_pointer:
        importer.wrong(op, f"{symbol} gives {made.type}")
    # Tests give a truth value here and an integer in the library.
    return cast(importer, made, wanted.dtype) if made.type.dtype.is_bool else made


# ---- values without a meaning ----


@row("ub.poison", operands=0, types="result")
def _poison(importer: Importer, op: Operation, operands: list[Any]) -> Value:
    """A value that is never used, or of which any will do."""
    if not op.types:
        importer.wrong(op, "its type is missing")
    type = tile_type(op.types[0], op.position)
    if type.is_pointer:
        importer.refuse(op, "a pointer has no constants")
    return importer.constant(type, 0)
