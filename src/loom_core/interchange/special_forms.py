"""Elements of forms that single operations need: signatures, loops, cases, rows and branch targets."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from loom_core.interchange.declaration import OpDeclaration
from loom_core.interchange.form import Element
from loom_core.interchange.text.tokenizer import TokenKind

if TYPE_CHECKING:
    from loom_core.interchange.text.op_reader import OpReader
    from loom_core.interchange.text.printer import OpWriter


class Signature(Element):
    """`(%a: T, ...)`, the arguments of a region."""

    def __init__(self, decl: OpDeclaration, region: str, parameter: str = "args") -> None:
        self.region = region
        self.argument_regions = (region,)
        self.parameters = (parameter,)

    def write(self, w: OpWriter) -> None:
        arguments = w.region_arguments(self.region)
        w.out.append(f"({', '.join([f'{w.names[value]}: {w.type_of(value)}' for value in arguments])})")

    def read(self, r: OpReader) -> None:
        r.signature(self.region)

    def present(self, w: OpWriter) -> bool:
        return bool(w.region_arguments(self.region))

    def starts(self, r: OpReader) -> bool:
        return r.next_is("(")


class OptionalSignature(Signature):
    """As `Signature`, nothing without arguments."""

    def __init__(self, decl: OpDeclaration, region: str) -> None:
        super().__init__(decl, region)
        self.parameters = ()

    def write(self, w: OpWriter) -> None:
        if w.region_arguments(self.region):
            super().write(w)

    def read(self, r: OpReader) -> None:
        if r.next_is("("):
            super().read(r)


class Where(Element):
    """` where [predicates]`, nothing without any; the predicates speak of the arguments of a region."""

    def __init__(self, decl: OpDeclaration, attribute: str, region: str) -> None:
        self.attribute = attribute
        self.region = region
        self.attributes = (attribute,)
        self.parameters = (attribute,)

    def write(self, w: OpWriter) -> None:
        predicates = w.op.attributes.get(self.attribute)
        if predicates:
            w.out.append(f" where {w.text.predicates(predicates)}")

    def read(self, r: OpReader) -> None:
        if r.accept("where"):
            r.attributes[self.attribute] = r.within(self.region, r.predicates)


class Induction(Element):
    """The induction variable of a loop, the first argument of its body; it has the type of the lower bound."""

    def __init__(self, decl: OpDeclaration, region: str, bound: str) -> None:
        self.region = region
        self.bound = bound
        self.argument_regions = (region,)

    def write(self, w: OpWriter) -> None:
        arguments = w.region_arguments(self.region)
        w.out.append(w.names[arguments[0]] if arguments else "%?")

    def read(self, r: OpReader) -> None:
        r.region_arguments.setdefault(self.region, []).append(r.new_name())


class Carried(Element):
    """`(%a = %init : T, ...)`: arguments of a region, from the `skip`-th on, with their first values."""

    def __init__(self, decl: OpDeclaration, operands: str, region: str, skip: str = "0") -> None:
        self.operands = operands
        self.region = region
        self.skip = int(skip)
        self.argument_regions = (region,)
        self.parameters = (operands,)

    def write(self, w: OpWriter) -> None:
        inits = w.operands[self.operands]
        arguments = w.region_arguments(self.region)[self.skip :]
        if inits or arguments:
            parts = [
                f"{w.names[argument]} = {w.names[init]} : {w.type_of(argument)}"
                for argument, init in zip(arguments, inits, strict=False)
            ]
            w.out.append(f"({', '.join(parts)})")

    def read(self, r: OpReader) -> None:
        arguments = r.region_arguments.setdefault(self.region, [])
        inits = r.operands.setdefault(self.operands, [])
        if not r.accept("("):
            return
        while True:
            name = r.new_name()
            r.expect("=")
            inits.append(r.use_value())
            r.expect(":")
            at, spelled = r.position(), r.type()
            r.check_types(inits[-1:], [(at, spelled)])
            arguments.append((*name[:2], spelled))
            if not r.accept(","):
                break
        r.expect(")")


class Cases(Element):
    """`{ case K {..} ... default {..} }`, a case a line; the default region is the first of the operation's."""

    def __init__(self, decl: OpDeclaration, keys: str, default: str, cases: str) -> None:
        self.keys = keys
        self.default = default
        self.cases = cases
        self.field = decl.region_fields[default]
        self.attributes = (keys,)
        self.parameters = (keys, default, cases)

    def write(self, w: OpWriter) -> None:
        w.out.append("{\n")
        regions = [*zip(w.op.attributes.get(self.keys, ()), w.regions[self.cases], strict=False)]
        for head, region in [*((f"case {key} ", region) for key, region in regions)] + [
            ("default ", region) for region in w.regions[self.default]
        ]:
            w.out.append(f"{w.indent}  {head}")
            w.nested_region(region, self.field)
            w.out.append("\n")
        w.out.append(f"{w.indent}}}")

    def read(self, r: OpReader) -> None:
        r.expect("{")
        keys: list[int] = []
        cases = r.regions.setdefault(self.cases, [])
        while r.accept("case"):
            keys.append(r.integer())
            cases.append(r.region(self.field, self.cases))
        r.expect("default")
        r.regions[self.default] = [r.region(self.field, self.default)]
        r.expect("}")
        r.attributes[self.keys] = keys


class Rows(Element):
    """`{K = (%a, ..), ...} default(%d, ..)`, a row a line; the operands are the rows, the default one last."""

    def __init__(self, decl: OpDeclaration, keys: str, values: str) -> None:
        self.keys = keys
        self.values = values
        self.attributes = (keys,)
        self.parameters = (keys, values)

    def write(self, w: OpWriter) -> None:
        keys = w.op.attributes.get(self.keys, ())
        names = [w.names[value] for value in w.operands[self.values]]
        width = len(names) // (len(keys) + 1)
        rows = [f"({', '.join(names[i * width : (i + 1) * width])})" for i in range(len(keys) + 1)]
        lines = [f"{w.indent}  {key} = {row}" for key, row in zip(keys, rows, strict=False)]
        inside = "{\n" + ",\n".join(lines) + f"\n{w.indent}}}" if lines else "{}"
        w.out.append(f"{inside} default{rows[-1]}")

    def read(self, r: OpReader) -> None:
        keys: list[int] = []
        rows: list[list[int]] = []
        r.expect("{")
        while not r.next_is("}"):
            keys.append(r.integer())
            r.expect("=")
            rows.append(self._row(r))
            if not r.accept(","):
                break
        r.expect("}")
        r.expect("default")
        rows.append(self._row(r))
        if any(len(row) != len(rows[-1]) for row in rows):
            r.refuse(f"rows have {', '.join(str(len(row)) for row in rows)} values", "PARSE/030", back=1)
        r.attributes[self.keys] = keys
        r.operands[self.values] = [value for row in rows for value in row]

    def _row(self, r: OpReader) -> list[int]:
        r.expect("(")
        found: list[int] = []
        while r.next_kind() is TokenKind.SSA:
            found.append(r.use_value())
            if not r.accept(","):
                break
        r.expect(")")
        return found


class BranchCases(Element):
    """`[0, 2] -> [^a, ^b]`."""

    def __init__(self, decl: OpDeclaration, keys: str, targets: str) -> None:
        self.keys = keys
        self.targets = targets
        self.attributes = (keys,)
        self.parameters = (keys, targets)

    def write(self, w: OpWriter) -> None:
        keys = ", ".join(map(str, w.op.attributes.get(self.keys, ())))
        w.out.append(f"[{keys}] -> [{', '.join(map(w.label, w.successors[self.targets]))}]")

    def read(self, r: OpReader) -> None:
        r.attributes[self.keys] = r.integers()
        r.expect("->")
        r.expect("[")
        targets = r.successors.setdefault(self.targets, [])
        while not r.next_is("]"):
            targets.append(r.label())
            if not r.accept(","):
                break
        r.expect("]")


class BranchArguments(Element):
    """`(%a: T, ...)` after a branch target, nothing without any."""

    def __init__(self, decl: OpDeclaration, operands: str) -> None:
        self.operands = operands
        self.parameters = (operands,)

    def write(self, w: OpWriter) -> None:
        values = w.operands[self.operands]
        if values:
            w.out.append(f"({', '.join([f'{w.names[value]}: {w.type_of(value)}' for value in values])})")

    def read(self, r: OpReader) -> None:
        values = r.operands.setdefault(self.operands, [])
        if not r.accept("("):
            return
        while True:
            values.append(r.use_value())
            r.expect(":")
            at, spelled = r.position(), r.type()
            r.check_types(values[-1:], [(at, spelled)])
            if not r.accept(","):
                break
        r.expect(")")


class Ranges(Element):
    """`[align(A) %n, ...]`: lengths with their alignments."""

    def __init__(self, decl: OpDeclaration, lengths: str, alignments: str) -> None:
        self.lengths = lengths
        self.alignments = alignments
        self.attributes = (alignments,)
        self.parameters = (lengths, alignments)

    def write(self, w: OpWriter) -> None:
        alignments = w.op.attributes.get(self.alignments, ())
        values = w.operands[self.lengths]
        parts = [f"align({a}) {w.names[value]}" for a, value in zip(alignments, values, strict=False)]
        w.out.append(f"[{', '.join(parts)}]")

    def read(self, r: OpReader) -> None:
        alignments: list[int] = []
        lengths = r.operands.setdefault(self.lengths, [])
        r.expect("[")
        while r.accept("align"):
            r.expect("(")
            alignments.append(r.integer())
            r.expect(")")
            lengths.append(r.use_value())
            if not r.accept(","):
                break
        r.expect("]")
        r.attributes[self.alignments] = alignments


class Clause(Element):
    """`name("string"[, {attributes}])`, as `export` and `abi` of functions; nothing where absent."""

    def __init__(self, decl: OpDeclaration, word: str, main: str, more: str) -> None:
        self.word = word
        self.main = main
        self.more = more
        self.field = decl.attribute_fields[main]
        self.more_field = decl.attribute_fields[more]
        self.attributes = (main, more)
        self.parameters = (main, more)

    def write(self, w: OpWriter) -> None:
        attributes = w.op.attributes
        if self.main in attributes:
            more = f", {w.attribute(self.more_field, attributes[self.more])}" if self.more in attributes else ""
            w.out.append(f"{self.word}({w.attribute(self.field, attributes[self.main])}{more}) ")

    def read(self, r: OpReader) -> None:
        if r.accept(self.word):
            r.expect("(")
            r.attributes[self.main] = r.attribute(self.field, self.main)
            if r.accept(","):
                r.attributes[self.more] = r.attribute(self.more_field, self.more)
            r.expect(")")


SPECIAL: Final[dict[str, Callable[..., Element]]] = {
    "args": Signature,
    "do": OptionalSignature,
    "where": Where,
    "induction": Induction,
    "carried": Carried,
    "cases": Cases,
    "rows": Rows,
    "branches": BranchCases,
    "passed": BranchArguments,
    "ranges": Ranges,
    "clause": Clause,
}
"""Elements by the name that forms call them."""
