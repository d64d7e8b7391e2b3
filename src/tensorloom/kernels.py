"""What the launcher of a kernel must do, told from how the kernel uses its parameters.

Parameters called `..._ptr` are tensors. One that is stored to and never loaded from is a result, which the launcher
allocates; one that is both is changed in place and returned. The scalar that bounds a mask over all programs
(`offs < n`, where offs comes from `tl.program_id`) is the number of elements, which the launcher tells from the first
tensor; the other scalars are the launcher's parameters, in order.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from tensorloom.tree import (
    Assign,
    Attribute,
    Binary,
    Call,
    Compare,
    Expr,
    For,
    Kernel,
    Let,
    Name,
    Node,
    Number,
    Pipe,
    walk,
)

_POINTER: Final = "_ptr"


@dataclass(frozen=True, slots=True)
class LaunchPlan:
    """`arguments`: for each kernel parameter in order, the launcher's name for it.

    `inputs`: the launcher's parameters; `tensors`: those of them that are tensors; `constants`: its keywords with
    default 1024; `allocated`: results to allocate like the first tensor; `results`: what it returns; `size`: the name
    of the inferred size; `block`: what one program covers, as Python text. Without size and block, `grid` is a
    parameter, unless the kernel does not ask which program it is.
    """

    arguments: tuple[tuple[str, str], ...]
    inputs: tuple[str, ...]
    tensors: tuple[str, ...]
    in_place: tuple[str, ...]
    constants: tuple[str, ...]
    allocated: tuple[str, ...]
    results: tuple[str, ...]
    size: str
    block: str
    one_program: bool


@lru_cache(256)
def launch_plan(kernel: Kernel) -> LaunchPlan:
    """The plan for a kernel. It depends on its text alone."""
    use = _Use(kernel)
    names = {parameter.name: parameter.name for parameter in kernel.parameters}
    for name in use.pointers:
        short = name.removesuffix(_POINTER)
        if short not in names and short.isidentifier():
            names[name] = short
    written = [name for name in use.pointers if name in use.stored]
    loaded = [name for name in use.pointers if name not in use.stored or name in use.loaded]
    # Without a tensor that is read there is nothing to allocate a result like.
    allocated = [name for name in written if name not in use.loaded] if loaded else []
    constants = [parameter.name for parameter in kernel.parameters if parameter.constexpr]
    size = use.size if len(use.pointers) > len(allocated) and use.block else ""
    inputs = [
        names[parameter.name]
        for parameter in kernel.parameters
        if not parameter.constexpr and parameter.name not in (*allocated, size)
    ]
    tensors = [names[name] for name in use.pointers if name not in allocated]
    return LaunchPlan(
        arguments=tuple(names.items()),
        inputs=tuple(inputs),
        tensors=tuple(tensors),
        in_place=tuple(names[name] for name in written if name not in allocated),
        constants=tuple(constants),
        allocated=tuple(names[name] for name in allocated),
        results=tuple(names[name] for name in written),
        size=size,
        block=use.block,
        one_program=not use.asks_program,
    )


class _Use:
    """How a kernel uses its parameters, in one walk over its statements."""

    def __init__(self, kernel: Kernel) -> None:
        self.pointers = [p.name for p in kernel.parameters if p.name.endswith(_POINTER) and not p.constexpr]
        self.constants = [p.name for p in kernel.parameters if p.constexpr]
        self.scalars = [p.name for p in kernel.parameters if not p.constexpr and p.name not in self.pointers]
        self.loaded: set[str] = set()
        self.stored: set[str] = set()
        self.size = ""
        self.block = ""
        self.asks_program = False
        # Which pointers, and whether the program's number, a variable comes from.
        self.sources: dict[str, set[str]] = {name: {name} for name in self.pointers}
        self.by_program: set[str] = set()
        bounds: list[str] = []
        for node in walk(kernel.body):
            if isinstance(node, Let | Assign):
                self.assignment(node)
            elif isinstance(node, For):
                for target in node.targets:
                    self.derive(target.id, node.iterable)
            if isinstance(node, Call):
                self.call(node.function, [argument.value for argument in node.arguments])
            elif isinstance(node, Pipe):
                self.call(node.function, [node.value, *(argument.value for argument in node.arguments)])
            elif isinstance(node, Compare):
                bounds += self.bounds(node)
            elif isinstance(node, Binary) and node.operator == "*":
                self.product(node)
        if len(set(bounds)) == 1:
            self.size = bounds[0]
        if not self.block and self.constants:
            named = [name for name in self.constants if "BLOCK" in name.upper() or "SIZE" in name.upper()]
            self.block = (named or self.constants)[0]

    def assignment(self, node: Let | Assign) -> None:
        for target in node.targets:
            if isinstance(target, Name):
                self.derive(target.id, node.value)

    def derive(self, name: str, value: Expr) -> None:
        self.sources.setdefault(name, set()).update(self.pointers_in(value))
        if self.depends_on_program(value):
            self.by_program.add(name)

    def pointers_in(self, value: Node) -> set[str]:
        if isinstance(value, Call):
            return set()  # what was loaded is no pointer
        found: set[str] = set()
        for node in walk(value):
            if isinstance(node, Name):
                found |= self.sources.get(node.id, set())
        return found

    def depends_on_program(self, value: Node) -> bool:
        return any(
            (isinstance(node, Name) and node.id in self.by_program)
            or (isinstance(node, Attribute) and node.name == "program_id")
            for node in walk(value)
        )

    def call(self, function: Expr, arguments: list[Expr]) -> None:
        name = function.name if isinstance(function, Attribute) else ""
        if name == "program_id":
            self.asks_program = True
        where = {pointer for argument in arguments[:1] for pointer in self.pointers_in(argument)}
        if name == "load":
            self.loaded |= where
        elif name == "store":
            self.stored |= where
        elif name.startswith("atomic_") or isinstance(function, Name):
            # A read-modify-write, or another kernel that may do anything.
            touched = where if name else {p for argument in arguments for p in self.pointers_in(argument)}
            self.loaded |= touched
            self.stored |= touched

    def bounds(self, node: Compare) -> list[str]:
        """The scalars that bound something that differs from program to program."""
        found = []
        left = node.first
        for operator, right in zip(node.operators, node.operands, strict=True):
            low, high = (left, right) if operator in ("<", "<=") else (right, left)
            if isinstance(high, Name) and high.id in self.scalars and self.depends_on_program(low):
                found.append(high.id)
            left = right
        return found

    def product(self, node: Binary) -> None:
        """`program_id * BLOCK`: what one program covers."""
        for program, block in ((node.left, node.right), (node.right, node.left)):
            if self.block or not self.depends_on_program(program):
                continue
            if isinstance(block, Name) and block.id in self.constants:
                self.block = block.id
            elif isinstance(block, Number):
                self.block = block.text
