"""The printer of the text form."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from loom_core.interchange.declaration import OpDeclaration, RegionField, TypedAttribute
from loom_core.interchange.locations import (
    LOCATION_TAGS,
    FileLocation,
    FusedLocation,
    Location,
    OpaqueLocation,
    TaggedLocation,
)
from loom_core.interchange.model import Block, Module, Operation, Region
from loom_core.interchange.order import printing_order
from loom_core.interchange.text.names import plan_names
from loom_core.interchange.text.tokenizer import encode_string
from loom_core.interchange.text.types import TypeText

_TAG_NAMES: Final = {number: name for name, number in LOCATION_TAGS.items()}


class Printer:
    """Prints modules and operations canonically; operations that are not registered are refused with ValueError."""

    def __init__(
        self,
        *,
        print_locations: bool = False,
        use_aliases: bool = True,
        indent: bool = True,
        print_regions: bool = True,
    ) -> None:
        self.print_locations = print_locations
        self.use_aliases = use_aliases
        self.indent = indent
        self.print_regions = print_regions
        self.declarations: dict[str, OpDeclaration] = {}

    def register_ops(self, ops: Iterable[OpDeclaration]) -> None:
        self.declarations.update((op.name, op) for op in ops)

    def register_types(self, types: Iterable[Any]) -> None:
        """Types print by their structure; there is nothing to register."""

    def print_module(self, module: Module) -> str:
        """The module as text that ends in one newline; nothing for an empty one."""
        return _ModuleText(self, module).whole()

    def print_operation(self, op: Operation, module: Module) -> str:
        """One operation as text, without a final newline."""
        return _ModuleText(self, module).single(op)


class OpWriter:
    """What the elements of a form see of the operation that is being printed."""

    __slots__ = (
        "decl",
        "indent",
        "module_text",
        "names",
        "op",
        "operands",
        "out",
        "regions",
        "results",
        "successors",
        "text",
    )

    def __init__(self, module_text: _ModuleText, op: Operation, decl: OpDeclaration) -> None:
        self.module_text = module_text
        self.op = op
        self.decl = decl
        self.out = module_text.out
        self.names = module_text.names
        self.text = module_text.text
        self.indent = module_text.indent
        operands = decl.split_operands(op.operands, op.operand_segment_counts)
        if operands is None:
            raise ValueError(f"{op.name} has {len(op.operands)} operands, which its declaration does not allow")
        self.operands = operands
        self.results = decl.split_results(op.results)
        self.regions: dict[str, list[Region]] = decl.split_regions(op.regions) if op.regions else {}
        self.successors: dict[str, list[Block]] = decl.split_successors(op.successors) if op.successors else {}

    def type_of(self, value: int) -> str:
        return self.text.type(self.module_text.values[value].type)

    def result_spec(self, value: int) -> str:
        """The type of one of several results, with the operand that it is tied to or the name it has in a signature."""
        index = self.op.results.index(value)
        for tie in self.op.tied_results:
            if tie.result_index == index:
                return f"{self.names[self.tied_value(tie.operand_index)]} as {self.type_of(value)}"
        name = self.module_text.values[value].name
        if self.decl.symbol is not None and name:
            return f"{self.names[value]}: {self.type_of(value)}"
        return self.type_of(value)

    def tied_value(self, operand_index: int) -> int:
        """The value behind an operand index of a tie: of a function, one of its arguments."""
        if self.decl.symbol is None:
            return self.op.operands[operand_index]
        arguments = [value for name in self.decl.argument_regions for value in self.region_arguments(name)]
        return arguments[operand_index]

    def region_arguments(self, name: str) -> list[int]:
        found = self.regions.get(name)
        return found[0].blocks[0].arg_ids if found and found[0].blocks else []

    def label(self, block: Block) -> str:
        return f"^{self.module_text.labels[id(block)]}"

    def attribute(self, field: TypedAttribute, value: Any) -> str:
        kind = field.attribute_kind
        if kind in ("enum", "flags", "word") and isinstance(value, str):
            return value
        if kind == "symbol" and isinstance(value, str):
            return f"@{value}"
        if kind == "string" and isinstance(value, str):
            return encode_string(value)
        if kind == "f64" and isinstance(value, int):
            return self.text.value(float(value))
        if kind == "predicates":
            return self.text.predicates(value)
        if kind == "enums":
            return f"[{', '.join(value)}]"
        return self.text.value(value)

    def region(self, region: Region, field: RegionField, arguments_in_form: bool) -> None:
        self.module_text.region(region, field, arguments_in_form)

    def nested_region(self, region: Region, field: RegionField) -> None:
        """A region one level deeper than the operation."""
        self.module_text.deeper()
        self.module_text.region(region, field, False)
        self.module_text.shallower()


class _ModuleText:
    """The text of one module so far."""

    def __init__(self, printer: Printer, module: Module) -> None:
        self.printer = printer
        self.declarations = printer.declarations
        self.module = module
        self.values = module.values
        self.out: list[str] = []
        self.indent = ""
        self.step = "  " if printer.indent else ""
        self.names: Mapping[int, str] = {}
        self.labels: dict[int, str] = {}
        self.text = TypeText(module.encodings, self.name_of, printer.use_aliases)

    def name_of(self, value: int) -> str:
        return self.names.get(value, f"%{value}")

    def single(self, op: Operation) -> str:
        self.names = plan_names(self.module, self.declarations)
        self.operation(op)
        return "".join(self.out).removesuffix("\n")

    def whole(self) -> str:
        """The module: header comments, aliases, operations."""
        module = self.module
        self.names = plan_names(module, self.declarations)
        self.out += [_comment(line) for line in module.file_header]
        aliases = [encoding for encoding in module.encodings if encoding.alias] if self.printer.use_aliases else []
        if self.out and aliases:
            self.out.append("\n")
        self.out += [f"#{encoding.alias} = {self.text.encoding_body(encoding)}\n" for encoding in aliases]
        ops = [op for op in module.body.ops if not op.is_dead]
        for op in ops:
            if self.out and (self._defines_symbol(op) or op.leading_blank_line or op is ops[0]):
                self.out.append("\n")
            self.operation(op, blank=False)
        return "".join(self.out)

    def _defines_symbol(self, op: Operation) -> bool:
        decl = self.declarations.get(op.name)
        return decl is not None and decl.symbol is not None

    def operation(self, op: Operation, blank: bool = True) -> None:
        decl = self.declarations.get(op.name)
        if decl is None:
            raise ValueError(f"the operation {op.name!r} is not registered")
        out = self.out
        if op.leading_blank_line and blank:
            out.append("\n")
        for line in op.comments:
            out.append(_comment(line, self.indent))
        out.append(self.indent)
        if op.results and decl.symbol is None:
            names = self.names
            out.append(", ".join([names[result] for result in op.results]) + " = ")
        out.append(op.name)
        writer = OpWriter(self, op, decl)
        for element in decl.form:
            element.write(writer)
        if self.printer.print_locations and op.location_id:
            out.append(f" loc({self.location(op.location_id)})")
        out.append("\n")

    # ---- regions ----

    def deeper(self) -> None:
        self.indent += self.step

    def shallower(self) -> None:
        self.indent = self.indent[: len(self.indent) - len(self.step)]

    def region(self, region: Region, field: RegionField, arguments_in_form: bool) -> None:
        """A region in braces, from the current column on."""
        if not self.printer.print_regions:
            self.out.append("{...}")
            return
        self.out.append("{\n")
        self.name_labels(region)
        blocks = printing_order(region)
        for block in blocks:
            entry = block is blocks[0]
            self.block_label(block, entry and arguments_in_form)
            self.deeper()
            for op in self.printed_operations(block, field):
                self.operation(op)
            self.shallower()
        self.out.append(f"{self.indent}}}")

    def printed_operations(self, block: Block, field: RegionField) -> list[Operation]:
        """Operations without the terminator that text leaves out."""
        ops = [op for op in block.ops if not op.is_dead]
        if field.implicit and ops and is_implied(ops[-1], field):
            return ops[:-1]
        return ops

    def name_labels(self, region: Region) -> None:
        targeted = {id(target) for block in region.blocks for op in block.ops for target in op.successors}
        taken = {block.label for block in region.blocks if block.label}
        for index, block in enumerate(region.blocks):
            label = block.label
            if not label and (index or id(block) in targeted):
                label = f"_bb{index}"
                suffix = 0
                while label in taken:
                    suffix += 1
                    label = f"_bb{index}_{suffix}"
                taken.add(label)
            self.labels[id(block)] = label

    def block_label(self, block: Block, arguments_in_form: bool) -> None:
        label = self.labels[id(block)]
        arguments = [] if arguments_in_form else block.arg_ids
        if not label and not arguments:
            return
        if block.leading_blank_line:
            self.out.append("\n")
        for line in block.comments:
            self.out.append(_comment(line, self.indent))
        spelled = ", ".join(f"{self.names[value]}: {self.text.type(self.values[value].type)}" for value in arguments)
        self.out.append(f"{self.indent}^{label or '_bb0'}{f'({spelled})' if spelled else ''}:\n")

    # ---- locations ----

    def location(self, location_id: int) -> str:
        return self._location(self.module.locations.get(location_id))

    def _location(self, location: Location | None) -> str:
        match location:
            case FileLocation():
                point = self._point(location)
                return f"{point} to {location.end_line}:{location.end_col}"
            case FusedLocation():
                children = (self.module.locations.get(child) for child in location.children)
                return f"fused<{', '.join(map(self._child, children))}>"
            case OpaqueLocation():
                tag = encode_string(self.module.sources[location.source_id])
                return f"opaque<{tag}, {_opaque(location.data)}>"
            case TaggedLocation():
                tag = _TAG_NAMES.get(location.tag, str(location.tag))
                child = f", {self._child(self.module.locations.get(location.child))}" if location.child else ""
                return f'tagged<{tag}, "{location.data.hex()}"{child}>'
            case None:
                return "unknown"

    def _child(self, location: Location | None) -> str:
        if isinstance(location, FileLocation):
            at_point = (location.start_line, location.start_col) == (location.end_line, location.end_col)
            end = "" if at_point else f" to {location.end_line}:{location.end_col}"
            return self._point(location) + end
        return self._location(location)

    def _point(self, location: FileLocation) -> str:
        return f"{encode_string(self.module.sources[location.source_id])}:{location.start_line}:{location.start_col}"


def is_implied(op: Operation, field: RegionField) -> bool:
    """Whether an operation is the terminator that text may leave out."""
    bare = not (op.operands or op.attributes or op.results or op.comments or op.successors or op.leading_blank_line)
    return bare and op.name == field.terminators[0]


def _opaque(data: bytes) -> str:
    """Bytes as a string where they are UTF-8, else as hexadecimal digits."""
    try:
        return encode_string(data.decode())
    except UnicodeDecodeError:
        return f'bytes("{data.hex()}")'


def _comment(text: str, indent: str = "") -> str:
    """A comment, a line for each of its lines, without spaces at the end."""
    return "".join(f"{indent}// {line}".rstrip() + "\n" for line in text.split("\n"))


def print_module(module: Module, ops: Iterable[OpDeclaration], *, print_locations: bool = False) -> str:
    """The canonical text of a module whose operations are among `ops`."""
    printer = Printer(print_locations=print_locations)
    printer.register_ops(ops)
    return printer.print_module(module)
