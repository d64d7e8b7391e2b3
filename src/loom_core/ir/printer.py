"""Tile IR as text, derived from the declared fields of each operation.

    func @scale(%x: ptr<f32>, %n: i32) {
      %0 = program_id {axis = 0} : i32
      %1 = addptr %x, %0 : ptr<f32>
      %mask = cmp %0, %n {predicate = "lt"} : bool
      %2 = load %1, mask = %mask : f32
      ...
      return
    }

Operands come in the order of their fields, optional ones with their label; then the attributes that differ from their
defaults, the result types, and the regions. Attributes called `type` and `types` repeat the result types and are left
out. Floats are printed so that reading gives the same bits. The parser reads what this module prints.
"""

from __future__ import annotations

import json
import math
import struct
from typing import Any, Final

from loom_core.base.dtype import DType
from loom_core.base.location import Location
from loom_core.ir.block import Block, Function
from loom_core.ir.op import Op
from loom_core.ir.types import PointerType, TileType
from loom_core.ir.value import Value

RESULT_TYPE_ATTRIBUTES: Final = ("type", "types")
"""Attributes that say what stands behind the colon: not printed, read back from there."""

_QUIET_NAN: Final = 0x7FF8_0000_0000_0000
_INDENT: Final = "  "


def print_function(function: Function, *, locations: bool = False) -> str:
    """The function as text; with `locations`, each operation is followed by where it comes from."""
    return _Printer(locations).function(function)


def print_op(op: Op) -> str:
    """One operation and its regions as text, for messages; values from outside are named or numbered as they come."""
    printer = _Printer(False)
    printer.operation(op, "")
    return "\n".join(printer.lines)


def print_value(value: Any) -> str:
    """The text of an attribute value; TypeError for one that has no text form."""
    match value:
        case None:
            return "none"
        case bool():
            return "true" if value else "false"
        case int():
            return str(value)
        case float():
            return print_float(value)
        case str():
            return json.dumps(value)
        case DType():
            return value.name
        case PointerType():
            return str(value)
        case TileType():
            # A scalar tile type spelled `f32` would read as an element type.
            return str(value) if value.shape else f"tile<{_element(value)}>"
        case tuple():
            return "[" + ", ".join(print_value(item) for item in value) + "]"
    raise TypeError(f"an attribute of type {type(value).__name__} has no text form")


def print_float(value: float) -> str:
    """A float64 such that reading it gives the same bits: `0.1`, `-inf`, `nan`, `nan(0x7ff8000000000001)`."""
    if math.isnan(value):
        (bits,) = struct.unpack("<Q", struct.pack("<d", value))
        return "nan" if bits == _QUIET_NAN else f"nan({bits:#x})"
    return repr(value)


def _element(type: TileType) -> str:
    return type.element.name if isinstance(type.element, DType) else str(type.element)


def print_location(location: Location) -> str:
    """A location and its parents: `loc("a.py":3:4:9 "f" from "b.py":7:0:5)`."""
    parts = []
    for at in location.chain():
        function = f" {json.dumps(at.function)}" if at.function else ""
        parts.append(f"{json.dumps(at.file)}:{at.line}:{at.column}:{at.end_column}{function}")
    return f"loc({' from '.join(parts)})"


class _Printer:
    """Holds the lines written so far and the names given to values."""

    def __init__(self, locations: bool) -> None:
        self.locations = locations
        self.lines: list[str] = []
        self.names: dict[Value, str] = {}
        self.taken: set[str] = set()
        self.suffixes: dict[str, int] = {}
        self.count = 0

    def name(self, value: Value) -> str:
        found = self.names.get(value)
        if found is None:
            found = self.names[value] = self._new_name(value.name)
        return found

    def _new_name(self, wanted: str | None) -> str:
        if not wanted:
            name, self.count = f"%{self.count}", self.count + 1
            return name
        name = wanted
        if name in self.taken:
            suffix = self.suffixes.get(wanted, 0)
            while name in self.taken:
                suffix += 1
                name = f"{wanted}_{suffix}"
            self.suffixes[wanted] = suffix
        self.taken.add(name)
        return f"%{name}"

    def function(self, function: Function) -> str:
        arguments = ", ".join(f"{self.name(a)}: {a.type}" for a in function.arguments)
        where = f" {print_location(function.location)}" if self.locations and function.location.known else ""
        self.lines.append(f"func @{function.name}({arguments}){where} {{")
        for op in function.body.operations:
            self.operation(op, _INDENT)
        self.lines.append("}")
        return "\n".join(self.lines) + "\n"

    def operation(self, op: Op, indent: str) -> None:
        # Operands are named before results, so that numbers rise in the order of the text.
        body = " ".join(filter(None, [op.name, self._operands(op), self._attributes(op)]))
        results = ", ".join(self.name(result) for result in op.results)
        line = f"{indent}{results} = {body}" if results else f"{indent}{body}"
        if op.results:
            line += " : " + ", ".join(str(result.type) for result in op.results)
        if self.locations and op.location.known:
            line += f" {print_location(op.location)}"
        for region in op.regions:
            self.lines.append(line + " {")
            self.region(region, indent)
            line = indent + "}"
        self.lines.append(line)

    def region(self, region: Block, indent: str) -> None:
        if region.arguments:
            arguments = ", ".join(f"{self.name(a)}: {a.type}" for a in region.arguments)
            self.lines.append(f"{indent}^({arguments}):")
        for op in region.operations:
            self.operation(op, indent + _INDENT)

    def _operands(self, op: Op) -> str:
        parts: list[str] = []
        for (key, field), given in zip(type(op).operand_fields.items(), op.structured_operands(), strict=True):
            if isinstance(given, Value):
                label = f"{key} = " if field.kind == "optional" else ""
                parts.append(label + self.name(given))
            elif given is not None:
                parts.extend(self.name(value) for value in given if value is not None)
        return ", ".join(parts)

    def _attributes(self, op: Op) -> str:
        shown = [
            f"{key} = {print_value(op.attributes[key])}"
            for key, field in type(op).attribute_fields.items()
            if key not in RESULT_TYPE_ATTRIBUTES and not same_value(op.attributes[key], field.default)
        ]
        return "{" + ", ".join(shown) + "}" if shown else ""


def same_value(a: Any, b: Any) -> bool:
    """Whether two attribute values are the same, bit for bit: 1, 1.0 and True differ, and so do 0.0 and -0.0."""
    if type(a) is not type(b):
        return False
    if isinstance(a, float):
        return struct.pack("<d", a) == struct.pack("<d", b)
    if isinstance(a, tuple):
        return len(a) == len(b) and all(map(same_value, a, b))
    return bool(a == b)
