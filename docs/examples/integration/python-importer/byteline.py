"""An importer for Byteline, a language of kernels that work on one byte a workitem.

    kernel NAME(BUFFER, ...) over SIZE      SIZE workitems, numbered by i
        NAME = EXPRESSION                   a value
        BUFFER[i] = EXPRESSION              byte i of a buffer

An expression is a term or `term OP term`, OP one of + - * & | ^ min max; a term is a number, a name or `BUFFER[i]`.
`#` starts a comment. Byteline has no types: what does not fit is found by Loom's verifier, and reported at Byteline's
lines.
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from pathlib import Path

from loom.builder import ValueRef
from loom.builders import LoomBuilder
from loom.importers import (
    ImportResult,
    KernelArgumentSpec,
    KernelLaunchConfigSpec,
    KernelModuleSpec,
    LoomDiagnosticError,
    SourceImportSession,
    SourceRange,
    create_kernel_module,
    print_loom_module,
)
from loom.ir import I32, INDEX, OFFSET, FileLocation, Type

HEADER = re.compile(r"kernel (\w+)\(([^)]*)\) over (\d+)")
ASSIGNMENT = re.compile(r"(\w+)(\[i\])?\s*=\s*(.+)")
TERM = r"\w+(?:\[i\])?"
EXPRESSION = re.compile(rf"({TERM})(?:\s*(\+|-|\*|&|\||\^|min|max)\s*({TERM}))?")
OPERATIONS = {
    "+": "addi", "-": "subi", "*": "muli", "&": "andi", "|": "ori", "^": "xori", "min": "minsi", "max": "maxsi",
}  # fmt: skip


@dataclass
class Line:
    """One line of a program: its number, and its text without comment and spaces at the ends."""

    number: int
    text: str
    column: int

    @property
    def end(self) -> int:
        return self.column + len(self.text)


class BytelineSession(SourceImportSession):
    """Translates the lines of one kernel."""

    file: str
    offset: ValueRef

    def type(self, source_type: object) -> Type:
        return I32

    def build_constant(self, value: object, type: Type, name: str) -> ValueRef:
        return self.builder.scalar.constant(value=value, results=[type], name=name)

    def refuse(self, line: Line, message: str) -> None:
        place = SourceRange.line(self.file, line.number, column=line.column, end_column=line.end)
        self.diagnostics.error(message, source_location=place)

    def statement(self, line: Line) -> None:
        found = ASSIGNMENT.fullmatch(line.text)
        if found is None:
            self.refuse(line, f"this is no statement: {line.text}")
            return
        name, indexed, text = found.groups()
        value = self.expression(line, text)
        if value is None:
            return
        if indexed:
            target = self.named(line, name)
            if target is not None:
                self.builder.buffer.store_i8(value=value, target=target, byte_offset=self.offset)
        else:
            self.map_value(name, value)
        self.record_converted(line.text, "buffer.store.i8" if indexed else "scalar")

    def expression(self, line: Line, text: str) -> ValueRef | None:
        found = EXPRESSION.fullmatch(text.strip())
        if found is None:
            self.refuse(line, f"this is no expression: {text}")
            return None
        left, operation, right = found.groups()
        first = self.term(line, left)
        second = self.term(line, right) if right else None
        if first is None or (right and second is None):
            return None
        if operation is None:
            return first
        build = getattr(self.builder.scalar, OPERATIONS[operation])
        return build(lhs=first, rhs=second, results=[I32], name=self.fresh_name("result"))

    def term(self, line: Line, text: str) -> ValueRef | None:
        if text.isdigit():
            return self.ensure_constant(int(text), I32, f"c{text}")
        name = text.removesuffix("[i]")
        value = self.named(line, name)
        if value is None or name == text:
            return value
        return self.builder.buffer.load_i8_u(source=value, byte_offset=self.offset, name=self.fresh_name("byte"))

    def named(self, line: Line, name: str) -> ValueRef | None:
        try:
            return self.mapped(name)
        except KeyError:
            self.refuse(line, f"nothing is called {name}")
            return None


def lines_of(source: str) -> list[Line]:
    """The lines that say something."""
    found = []
    for number, raw in enumerate(source.splitlines(), 1):
        text = raw.partition("#")[0].rstrip()
        if text.strip():
            found.append(Line(number, text.strip(), len(text) - len(text.lstrip()) + 1))
    return found


def import_byteline(source: str, file: str) -> ImportResult:
    """The module of a Byteline program. LoomDiagnosticError, with Byteline's lines, for one that is none."""
    header, *body = lines_of(source)
    found = HEADER.fullmatch(header.text)
    if found is None:
        raise ValueError(f"{file}:{header.number}: a program begins with kernel NAME(BUFFER, ...) over SIZE")
    name, names, size = found.groups()
    buffers = [part.strip() for part in names.split(",") if part.strip()]
    shell = create_kernel_module(
        KernelModuleSpec(
            target_preset="reference",
            export_symbol=name,
            callee=name,
            arguments=[KernelArgumentSpec(ordinal, buffer) for ordinal, buffer in enumerate(buffers)],
            launch_config=KernelLaunchConfigSpec(workgroup_size=(int(size),)),
        )
    )
    shell.module.sources.append(file)
    session = BytelineSession(shell.builder, dict(zip(buffers, shell.body_arguments_by_ordinal.values(), strict=True)))
    session.file = file
    with shell.builder.insertion_block(shell.body_block):
        with located(shell.builder, header):
            index = shell.builder.kernel.workitem_dispatch_id(dimension="x", results=[INDEX], name="i")
            session.offset = shell.builder.index.cast(input=index, results=[OFFSET], name="offset")
        for line in body:
            with located(shell.builder, line):
                session.statement(line)
        shell.builder.kernel.return_()
    return session.finish()


def located(builder: LoomBuilder, line: Line):  # type: ignore[no-untyped-def]
    """Give the place of a line to the operations that it becomes."""
    place = FileLocation(0, line.number, line.column, line.number, line.end)
    return builder.location(builder.module.add_location(place))


if __name__ == "__main__":
    path = Path(sys.argv[1])
    try:
        result = import_byteline(path.read_text(encoding="utf-8"), path.name)
    except LoomDiagnosticError as error:
        sys.exit(str(error))
    print(print_loom_module(result.module, print_locations=True), end="")
