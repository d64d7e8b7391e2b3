"""A checked program as Python text: models as classes, functions, kernels with launchers, statements, training."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from tensorloom.diagnostics import NoSuchTarget
from tensorloom.driver import Checked
from tensorloom.emit_expressions import ExpressionWriter, Needs
from tensorloom.emit_training import TrainingWriter
from tensorloom.kernels import launch_plan
from tensorloom.operators import OR
from tensorloom.prelude import needed
from tensorloom.program import Unit
from tensorloom.python_names import member, variable
from tensorloom.source import Span
from tensorloom.text import Origin, PythonText
from tensorloom.training import Samples
from tensorloom.tree import (
    Assign,
    Call,
    Constant,
    Entry,
    Expr,
    ExprStmt,
    For,
    Function,
    If,
    Import,
    Jump,
    Kernel,
    Let,
    Model,
    Name,
    Number,
    Pipe,
    Return,
    Stmt,
    String,
    Train,
    Unary,
    While,
    walk,
)

_DEVICE: Final = 'device = torch.device("cuda" if torch.cuda.is_available() else "cpu")'
_PROCESSES: Final = """\
rank, world_size = int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))
local_rank = int(os.environ.get("LOCAL_RANK", 0))
device = torch.device("cuda", local_rank) if torch.cuda.is_available() else torch.device("cpu")
if device.type == "cuda":
    torch.cuda.set_device(device)"""
_KERNEL_IMPORTS: Final = """\
if torch.cuda.is_available():
    import triton
    import triton.language as tl
else:  # Loom's simulator runs the kernels
    import loom.triton as triton
    import loom.triton.language as tl"""


@dataclass(frozen=True, slots=True)
class Emitted:
    """Python text, and for each of its lines the line of the program that it comes from, if any."""

    text: str
    origins: tuple[Origin | None, ...]


def generator(target: str) -> Generator:
    """The code generator for a target: `torch`. Raises NoSuchTarget for one that is not there yet."""
    if target not in _GENERATORS:
        raise NoSuchTarget(target=target)
    return _GENERATORS[target]


def emit(checked: Checked, comments: bool = True) -> Emitted:
    """The Python text of a program without errors. The same program gives the same text, everywhere.

    `comments`: lines end with the place in the program that they come from.
    """
    return _Emitter(checked, comments).run()


Generator = Callable[[Checked, bool], Emitted]
_GENERATORS: Final[dict[str, Generator]] = {"torch": emit}


class _Emitter:
    def __init__(self, checked: Checked, comments: bool) -> None:
        self.checked = checked
        self.comments = comments
        self.needs = Needs()
        self.names = _global_names(checked)
        self.imports: dict[str, None] = {}
        self.out = PythonText(comments)
        self.unit = checked.unit
        self.writer = self.writer_of(checked.unit)
        self.train_names: dict[str, int] = {}

    def writer_of(self, unit: Unit, model: Model | None = None) -> ExpressionWriter:
        return ExpressionWriter(unit, self.names, self.needs, self.checked.checker.recurrent, model)

    def origin(self, span: Span) -> Origin:
        return Origin(self.unit.source.file, self.unit.source.line(span.start))

    # ---- the whole text

    def run(self) -> Emitted:
        main = self.checked.unit
        for unit in self.checked.units:
            self.unit, self.writer = unit, self.writer_of(unit)
            self.definitions(unit)
        self.statements_of(main)
        body, self.out = self.out, PythonText(self.comments)
        self.head(main)
        self.out.lines += body.lines
        self.out.origins += body.origins
        text = self.out.text()
        return Emitted(text, tuple(self.out.origins[: text.count("\n")]))

    def head(self, main: Unit) -> None:
        out = self.out
        distributed = any(plan.distributed for plan in self.checked.trains.values())
        snippets = needed(self.needs.snippets)
        kernels = any(unit.kernels for unit in self.checked.units)
        imports = dict.fromkeys(["import torch", *(line for snippet in snippets for line in snippet.imports)])
        imports.update(self.imports)
        if self.needs.nn or self.checked.trains or any(unit.own_models for unit in self.checked.units):
            imports["from torch import nn"] = None
        if any(self.checked.trains):
            imports["from torch import optim"] = None
        if self.needs.functional:
            imports["import torch.nn.functional as F"] = None
        if distributed:
            imports |= dict.fromkeys(["import os", "import torch.distributed as dist"])
        name = re.split(r"[/\\]", main.source.file)[-1]
        out.verbatim(f'"""Compiled from {_ascii(name)} by TensorLoom."""\n\n{import_lines(imports)}')
        if kernels:
            out.blank()
            out.verbatim(_KERNEL_IMPORTS)
        out.blank()
        out.verbatim(_PROCESSES if distributed else _DEVICE)
        if any(not isinstance(statement, Import | Model | Function | Kernel) for statement in main.program.body):
            self.announce(distributed)
        seeds = [plan.seed for plan in self.checked.trains.values() if plan.seed is not None]
        if seeds:
            out.add(f"torch.manual_seed({self.writer_of(main).text(seeds[0], OR)})")
        for snippet in snippets:
            out.blank(2)
            out.verbatim(snippet.text)
        out.blank(2)

    def announce(self, distributed: bool) -> None:
        """What a script runs on; once, not for each process."""
        line = 'print(f"TensorLoom: PyTorch {torch.__version__}, {device}")'
        if not distributed:
            self.out.add(line)
            return
        with self.out.block("if rank == 0:"):
            self.out.add(line)

    # ---- definitions

    def definitions(self, unit: Unit) -> None:
        for statement in unit.program.body:
            if isinstance(statement, Model):
                self.model(statement)
            elif isinstance(statement, Function):
                self.out.blank(2)
                self.function(statement, self.writer, self.names[id(unit), statement.name])
            elif isinstance(statement, Kernel):
                self.kernel(statement)

    def model(self, model: Model) -> None:
        out = self.out
        writer = self.writer_of(self.unit, model)
        out.blank(2)
        with out.block(f"class {self.names[id(self.unit), model.name]}(nn.Module):", self.origin(model.span)):
            self.constructor(model, writer)
            for function in model.functions:
                out.blank()
                self.function(function, writer, member(function.name), method=True)

    def constructor(self, model: Model, writer: ExpressionWriter) -> None:
        """Config entries become parameters; defaults that need others are made in the body, after their overrides."""
        out = self.out
        fixed = {entry.name: _is_literal(entry.value) for entry in model.config}
        parameters = ["self"]
        for entry in model.config:
            default = writer.text(entry.value, OR) if fixed[entry.name] else "None"
            parameters.append(f"{variable(entry.name)}={default}")
        with out.block(f"def __init__({', '.join(parameters)}):"):
            out.add("super().__init__()")
            for entry in model.config:
                name = variable(entry.name)
                value = name
                if not fixed[entry.name]:
                    value = f"{writer.text(entry.value, OR)} if {name} is None else {name}"
                out.add(f"self.{member(entry.name)} = {value}", self.origin(entry.span))
            for entry in model.layers:
                self.layer(entry, writer)

    def layer(self, entry: Entry, writer: ExpressionWriter) -> None:
        self.out.add(f"self.{member(entry.name)} = {writer.text(entry.value, OR)}", self.origin(entry.span))

    def function(self, function: Function, writer: ExpressionWriter, name: str, method: bool = False) -> None:
        parameters = ["self"] if method else []
        for parameter in function.parameters:
            if parameter.name != "self":
                default = "" if parameter.default is None else f"={writer.text(parameter.default, OR)}"
                parameters.append(f"{variable(parameter.name)}{default}")
        with self.out.block(f"def {name}({', '.join(parameters)}):", self.origin(function.span)):
            if function.global_names:
                self.out.add(f"global {', '.join(map(variable, function.global_names))}")
            self.block(function.body, writer)

    def kernel(self, kernel: Kernel) -> None:
        out, plan = self.out, launch_plan(kernel)
        name = self.names[id(self.unit), kernel.name]
        parameters = [
            variable(parameter.name) + (": tl.constexpr" if parameter.constexpr else "")
            for parameter in kernel.parameters
        ]
        out.blank(2)
        out.add("@triton.jit")
        with out.block(f"def {name}({', '.join(parameters)}):", self.origin(kernel.span)):
            self.block(kernel.body, self.writer)
        out.blank(2)
        short = dict(plan.arguments)
        needs_grid = not plan.one_program and not (plan.size and plan.block)
        heads = [*map(variable, plan.inputs), *(f"{variable(constant)}=1024" for constant in plan.constants)]
        heads += ["*, grid"] if needs_grid else []
        with out.block(f"def {variable(kernel.name + '_launcher')}({', '.join(heads)}):", self.origin(kernel.span)):
            first = variable(plan.tensors[0]) if plan.tensors else ""
            for tensor in plan.tensors:
                if tensor not in plan.in_place:
                    out.add(f"{variable(tensor)} = {variable(tensor)}.contiguous()")
            for result in plan.allocated:
                out.add(f"{variable(result)} = torch.empty_like({first})")
            if plan.size:
                out.add(f"{variable(plan.size)} = {first}.numel()")
            if not needs_grid:
                block = plan.block if plan.block.isdigit() else variable(plan.block)
                cells = f"triton.cdiv({variable(plan.size)}, {block})" if not plan.one_program else "1"
                out.add(f"grid = ({cells},)")
            given = [
                f"{variable(parameter.name)}={variable(parameter.name)}"
                if parameter.constexpr
                else variable(short[parameter.name])
                for parameter in kernel.parameters
            ]
            out.add(f"{name}[grid]({', '.join(given)})")
            if plan.results:
                out.add(f"return {', '.join(map(variable, plan.results))}")

    # ---- statements

    def statements_of(self, unit: Unit) -> None:
        """The statements of the main file; its definitions stand before them."""
        self.out.blank(2)
        for statement in unit.program.body:
            if isinstance(statement, Import):
                self.aliases(statement)
            elif isinstance(statement, Train):
                self.train(statement)
            elif not isinstance(statement, Model | Function | Kernel):
                self.statement(statement, self.writer)

    def aliases(self, statement: Import) -> None:
        """The name under which a model is imported, if it is not the model's own."""
        if statement.alias and statement.alias in self.unit.models:
            model, home = self.unit.models[statement.alias]
            name = self.names[id(home), model.name]
            if name != variable(statement.alias):
                self.out.add(f"{variable(statement.alias)} = {name}", self.origin(statement.span))

    def block(self, statements: list[Stmt], writer: ExpressionWriter) -> None:
        for statement in statements:
            self.statement(statement, writer)
        if not statements:
            self.out.add("pass")

    def statement(self, statement: Stmt, writer: ExpressionWriter) -> None:
        out, origin = self.out, self.origin(statement.span)
        match statement:
            case Let():
                self.let(statement, writer)
            case Assign():
                targets: list[Expr] = list(statement.targets)
                out.add(f"{self.targets(targets, writer)} = {self.assigned(statement, writer)}", origin)
            case ExprStmt():
                out.add(writer.text(statement.value), origin)
            case Return():
                out.add("return" if statement.value is None else f"return {writer.text(statement.value)}", origin)
            case Jump():
                out.add(statement.word, origin)
            case If():
                for i, (condition, body) in enumerate(statement.branches):
                    with out.block(f"{'elif' if i else 'if'} {writer.text(condition)}:", self.origin(condition.span)):
                        self.block(body, writer)
                if statement.otherwise:
                    with out.block("else:"):
                        self.block(statement.otherwise, writer)
            case For():
                names = ", ".join(variable(target.id) for target in statement.targets)
                with out.block(f"for {names} in {writer.text(statement.iterable)}:", origin):
                    self.block(statement.body, writer)
            case While():
                with out.block(f"while {writer.text(statement.condition)}:", origin):
                    self.block(statement.body, writer)

    def targets(self, targets: list[Expr], writer: ExpressionWriter) -> str:
        return ", ".join(writer.text(target) for target in targets)

    def assigned(self, statement: Let | Assign, writer: ExpressionWriter) -> str:
        """The right-hand side; for several targets a call gives all that it has."""
        value = statement.value
        if len(statement.targets) > 1 and isinstance(value, Call | Pipe):
            return writer.call_text(value)
        return writer.text(value)

    def let(self, statement: Let, writer: ExpressionWriter) -> None:
        out, origin = self.out, self.origin(statement.span)
        targets: list[Expr] = list(statement.targets)
        value = self.assigned(statement, writer)
        made = self.at_top and _makes(statement.value)
        if made == "module":
            value += ".to(device)"
        elif made == "data":
            value = self.with_samples(statement, value)
        out.add(f"{self.targets(targets, writer)} = {value}", origin)
        if made == "module" and isinstance(statement.value, Call | Pipe) and len(targets) == 1:
            self.compile_on_gpu(statement.targets[0].id)

    @property
    def at_top(self) -> bool:
        return self.out.depth == 0

    def compile_on_gpu(self, name: str) -> None:
        plans = [plan for plan in self.checked.trains.values() if plan.train.model.id == name]
        if plans and all(plan.compile is None for plan in plans):
            with self.out.block('if device.type == "cuda":'):
                self.out.add(f'{variable(name)}.compile(mode="max-autotune")')

    def with_samples(self, statement: Let, value: str) -> str:
        """A call of load_dataset with what the model that is trained on the data wants."""
        name = statement.targets[0].id
        samples = self.samples_for(name)
        if samples is None:
            return value
        texts = {
            "shapes": repr(samples.shapes),
            "kinds": repr(samples.kinds).replace("'", '"'),
            "vocabulary": repr(samples.vocabulary),
            "target": repr(samples.target),
            "classes": repr(samples.classes),
        }
        if samples.vocabulary == 2 and "int" not in samples.kinds:
            del texts["vocabulary"]
        inside = value[value.index("(") + 1 : -1]
        extra = [f"{key}={text}" for key, text in texts.items()]
        return f"{value[: value.index('(')]}({', '.join([inside] * bool(inside) + extra)})"

    def samples_for(self, name: str) -> Samples | None:
        for plan in self.checked.trains.values():
            validation = plan.validation.id if plan.validation is not None else ""
            if plan.samples is not None and name in (plan.train.data.id, validation):
                return plan.samples
        return None

    # ---- training

    def train(self, statement: Train) -> None:
        plan = self.checked.trains[statement]
        count = self.train_names.get(statement.model.id, 0) + 1
        self.train_names[statement.model.id] = count
        name = f"train_{statement.model.id}" + (f"_{count}" if count > 1 else "")
        taken = {text for (home, _), text in self.names.items()} | set(self.unit.variables)
        while name in taken:
            name += "_"
        training = TrainingWriter(self.out, self.writer, plan, name, self.origin(statement.span))
        for i, callback in enumerate(plan.callbacks):
            function = f"{name}_{callback.name}" + (f"_{i}" if callback.name in training.callbacks else "")
            self.out.blank(2)
            self.function(callback, self.writer, function)
            training.callbacks.setdefault(callback.name, []).append(function)
        training.write()
        self.imports.update(training.imports)


def _global_names(checked: Checked) -> dict[tuple[int, str], str]:
    """For each model, function and kernel of each file a name of its own; those of the main file come first."""
    found: dict[tuple[int, str], str] = {}
    taken = {variable(name) for name in checked.unit.variables}
    for unit in reversed(checked.units):
        for statement in unit.program.body:
            if not isinstance(statement, Model | Function | Kernel):
                continue
            name = variable(statement.name)
            stem = re.sub(r"\W", "_", re.split(r"[/\\]", unit.source.file)[-1].partition(".")[0])
            while name in taken:
                name = f"{name}_{stem}" if not name.endswith(stem) else f"{name}_"
            taken.add(name)
            found[id(unit), statement.name] = name
    return found


def _is_literal(value: Expr) -> bool:
    """Whether a default can stand in the signature."""
    if isinstance(value, Unary):
        return _is_literal(value.operand)
    return isinstance(value, Number | String | Constant)


def _makes(value: Expr) -> str:
    """Whether an expression makes a `module` (a model or a layer), or loads `data`."""
    if not isinstance(value, Call):
        return ""
    function = value.function
    if isinstance(function, Name):
        if function.binding in ("model", "layer class"):
            return "module"
        return "data" if function.binding == "builtin" and function.id == "load_dataset" else ""
    modules = [node for node in walk(function) if isinstance(node, Name) and node.binding == "module"]
    name: Any = getattr(function, "name", "")
    return "" if not modules else "data" if name in ("load", "load_dataset") else "module"


def _ascii(text: str) -> str:
    return text.encode("ascii", "backslashreplace").decode().replace("\\", "/").replace('"', "'")


def import_lines(imports: dict[str, None]) -> str:
    """Import statements, sorted: the standard library, then PyTorch; names from one module in one statement."""
    plain = sorted(line for line in imports if line.startswith("import "))
    names: dict[str, set[str]] = {}
    for line in imports:
        if line.startswith("from "):
            module, _, what = line.removeprefix("from ").partition(" import ")
            names.setdefault(module, set()).update(part.strip() for part in what.split(","))
    joined = [f"from {module} import {', '.join(sorted(parts))}" for module, parts in sorted(names.items())]

    def torch_line(line: str) -> bool:
        return line.split()[1].partition(".")[0] == "torch"

    groups = [[line for line in plain + joined if torch_line(line) is wanted] for wanted in (False, True)]
    return "\n\n".join("\n".join(group) for group in groups if group)
