"""Name resolution: what each name of a unit stands for, written into the tree as `Name.binding`.

The order of scopes: parameters and variables of the function; then, in a model, its layers, its config; then the
models, functions, kernels, imports and variables of the file; then what the language has.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from tensorloom.arguments import nearest_hint
from tensorloom.diagnostics import (
    BadKernel,
    LocalType,
    Misplaced,
    NeverDeclared,
    NoSuchMember,
    Redefined,
    ReservedMember,
    UndefinedName,
    UnknownLayer,
    UsedTooEarly,
)
from tensorloom.functions import DEVICES, DTYPES, FUNCTIONS, LOCAL_TYPES, PYTHON
from tensorloom.layers import LAYERS
from tensorloom.program import MODULES, Unit
from tensorloom.tree import (
    Argument,
    Assign,
    Attribute,
    Call,
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
    Node,
    Pipe,
    Return,
    Stmt,
    Train,
    Type,
    While,
    walk,
)

MODULE_MEMBERS: Final = frozenset({
    "add_module", "apply", "bfloat16", "buffers", "call_super_init", "children", "compile", "cpu", "cuda",
    "double", "dump_patches", "eval", "extra_repr", "float", "get_buffer", "get_extra_state", "get_parameter",
    "get_submodule", "half", "ipu", "load_state_dict", "modules", "mtia", "named_buffers", "named_children",
    "named_modules", "named_parameters", "parameters", "register_backward_hook", "register_buffer",
    "register_forward_hook", "register_forward_pre_hook", "register_full_backward_hook",
    "register_load_state_dict_post_hook", "register_module", "register_parameter",
    "register_state_dict_pre_hook", "requires_grad_", "set_extra_state", "set_submodule", "share_memory",
    "state_dict", "to", "to_empty", "train", "training", "type", "xpu", "zero_grad",
})  # fmt: skip
"""What nn.Module has, so that a model's own members cannot have these names."""
_TYPES: Final = ("Tensor", "int", "float", "bool", "str", "list")
_SPECIAL: Final = ("optimizer", "loss", "precision", "scheduler")
"""Options of train blocks whose value is looked up in a table of its own."""


def resolve(unit: Unit) -> None:
    """Bind every name of a unit; report names that stand for nothing."""
    top = _Scope(unit)
    for statement in unit.program.body:
        top.statement(statement)


class _Scope:
    """The names visible at one place. `model`: of the model whose function or section this is."""

    def __init__(self, unit: Unit, model: Model | None = None, function: Function | Kernel | None = None) -> None:
        self.unit = unit
        self.model = model
        self.function = function
        self.layers = {entry.name for entry in model.layers} if model else set()
        self.config = {entry.name for entry in model.config} if model else set()
        self.visible: set[str] = set()
        self.later: frozenset[str] = frozenset()

    # ---- statements

    def statement(self, statement: Stmt) -> None:
        kind = type(statement)
        if kind is Let:
            self.let(statement)  # type: ignore[arg-type]
        elif kind is Assign:
            self.assign(statement)  # type: ignore[arg-type]
        elif kind is Return:
            if statement.value is not None:  # type: ignore[attr-defined]
                self.expr(statement.value)  # type: ignore[attr-defined]
        elif kind is ExprStmt:
            self.expr(statement.value)  # type: ignore[attr-defined]
        else:
            self.compound(statement)

    def compound(self, statement: Stmt) -> None:
        match statement:
            case If():
                for condition, body in statement.branches:
                    self.expr(condition)
                    self.statements(body)
                self.statements(statement.otherwise)
            case For():
                self.expr(statement.iterable)
                for target in statement.targets:
                    self.declare(target)
                self.statements(statement.body)
            case While():
                self.expr(statement.condition)
                self.statements(statement.body)
            case Model():
                self.model_definition(statement)
            case Function():
                self.enter(statement, None)
            case Kernel():
                self.kernel(statement)
            case Train():
                self.train(statement)
            case Import() | Jump():
                pass
            case _:
                raise AssertionError(type(statement).__name__)

    def statements(self, statements: Iterable[Stmt]) -> None:
        for statement in statements:
            self.statement(statement)

    def let(self, statement: Let) -> None:
        if statement.type is not None:
            self.type(statement.type)
        self.expr(statement.value)
        for target in statement.targets:
            self.declare(target)

    def declare(self, target: Name) -> None:
        if self.function is None:
            self.unit.variables.setdefault(target.id, target.span)
        target.binding = "variable" if self.function is None else "local"
        self.visible.add(target.id)

    def assign(self, statement: Assign) -> None:
        self.expr(statement.value)
        for target in statement.targets:
            if not isinstance(target, Name):
                self.expr(target)
            elif target.id in self.visible:
                target.binding = "variable" if self.function is None else "local"
            elif isinstance(self.function, Function) and target.id in self.unit.variables:
                target.binding = "variable"
                if target.id not in self.function.global_names:
                    self.function.global_names.append(target.id)
            else:
                self.unit.report(NeverDeclared, target.span, name=target.id)
                self.declare(target)

    # ---- definitions

    def model_definition(self, model: Model) -> None:
        seen: dict[str, Entry | Function] = {}
        members: list[Entry | Function] = [*model.config, *model.layers, *model.functions]
        for member in members:
            if member.name in MODULE_MEMBERS:
                self.unit.report(ReservedMember, member.name_span, name=member.name)
            other = seen.setdefault(member.name, member)
            if other is not member:
                line = self.unit.source.line(other.name_span.start)
                self.unit.report(Redefined, member.name_span, name=member.name, line=line)
        scope = _Scope(self.unit, model)
        layers, config = scope.layers, scope.config
        # An entry sees those before it.
        scope.layers, scope.config = set(), set()
        for entry in model.config:
            scope.expr(entry.value)
            scope.config.add(entry.name)
        scope.config = config
        for entry in model.layers:
            scope.layer_definition(entry)
            scope.layers.add(entry.name)
        scope.layers = layers
        for function in model.functions:
            scope.enter(function, model)

    def layer_definition(self, entry: Entry) -> None:
        value = entry.value
        if isinstance(value, Call) and isinstance(value.function, Name):
            name = value.function
            if self.binding(name.id) is None:
                known = [*LAYERS, *self.unit.models]
                self.unit.report(UnknownLayer, name.span, nearest_hint(name.id, known), name=name.id)
                name.binding = "unknown"
                for argument in value.arguments:
                    self.argument(argument)
                return
        self.expr(value)

    def enter(self, function: Function, model: Model | None) -> None:
        """Resolve a function's body in a scope of its own."""
        scope = _Scope(self.unit, model, function)
        for i, parameter in enumerate(function.parameters):
            if parameter.name == "self" and (model is None or i):
                where = "as the first parameter of a function of a model"
                self.unit.report(Misplaced, parameter.span, what="self", where=where)
            if parameter.type is not None:
                self.type(parameter.type)
            if parameter.default is not None:
                self.constant(parameter.default)
            scope.visible.add(parameter.name)
        if function.returns is not None:
            self.type(function.returns)
        scope.later = frozenset(node.id for node in _declared(function.body))
        scope.statements(function.body)

    def constant(self, value: Expr) -> None:
        """The default of a parameter, which is evaluated when the function is defined."""
        names = [node for node in walk(value) if isinstance(node, Name)]
        for name in names:
            hint = "use none as the default, and set it in the body"
            self.unit.report(Misplaced, name.span, hint, what="a name", where="outside defaults of parameters")

    def kernel(self, kernel: Kernel) -> None:
        scope = _KernelScope(self.unit, None, kernel)
        scope.visible = {parameter.name for parameter in kernel.parameters}
        scope.later = frozenset(node.id for node in _declared(kernel.body))
        scope.statements(kernel.body)

    def train(self, train: Train) -> None:
        for name in (train.model, train.data):
            self.expr(name)
        for option in train.options:
            value = option.value
            if option.name not in _SPECIAL:
                self.expr(value)
            elif isinstance(value, Call):
                for argument in value.arguments:
                    self.argument(argument)
        for every in train.snapshots:
            self.expr(every.count)
        for callback in train.callbacks:
            self.enter(callback, None)

    def type(self, node: Type) -> None:
        if node.name not in _TYPES and node.name not in self.unit.models:
            known = [*_TYPES, *self.unit.models]
            self.unit.report(UndefinedName, node.span, nearest_hint(node.name, known), name=node.name)

    # ---- expressions

    def expr(self, node: Node) -> None:
        kind = type(node)
        if kind is Name:
            self.name(node)  # type: ignore[arg-type]
        elif kind is Call:
            self.expr(node.function)  # type: ignore[attr-defined]
            for argument in node.arguments:  # type: ignore[attr-defined]
                self.argument(argument)
        elif kind is Pipe:
            self.expr(node.value)  # type: ignore[attr-defined]
            self.expr(node.function)  # type: ignore[attr-defined]
            for argument in node.arguments:  # type: ignore[attr-defined]
                self.argument(argument)
        elif kind is Attribute:
            self.attribute(node)  # type: ignore[arg-type]
        else:
            for name in kind.__slots__:
                value = getattr(node, name)
                if isinstance(value, Node):
                    self.expr(value)
                elif isinstance(value, list):
                    for item in value:
                        if isinstance(item, Node):
                            self.expr(item)

    def argument(self, argument: Argument) -> None:
        value = argument.value
        if type(value) is Name and argument.name in LOCAL_TYPES and self.binding(value.id, local_only=True) is None:
            if value.id in LOCAL_TYPES[argument.name]:
                value.binding = "device" if argument.name == "device" else "dtype"
                return
            if value.id not in FUNCTIONS and value.id not in PYTHON:
                hint = nearest_hint(value.id, LOCAL_TYPES[argument.name])
                self.unit.report(UndefinedName, value.span, hint, name=value.id)
                return
        self.expr(value)

    def attribute(self, node: Attribute) -> None:
        owner = node.value
        self.expr(owner)
        if not isinstance(owner, Name):
            return
        if owner.binding == "self" and self.model is not None:
            functions = {function.name for function in self.model.functions}
            known = self.layers | self.config | functions
            if node.name not in known | MODULE_MEMBERS | _assigned_members(self.model):
                hint = nearest_hint(node.name, known)
                self.unit.report(NoSuchMember, node.name_span, hint, owner=self.model.name, name=node.name)
        elif owner.binding == "module":
            module = self.unit.modules[owner.id]
            members = LAYERS if module == "nn" else MODULES[module]
            if node.name not in members:
                hint = nearest_hint(node.name, members)
                self.unit.report(NoSuchMember, node.name_span, hint, owner=module, name=node.name)

    def name(self, node: Name) -> None:
        binding = self.binding(node.id)
        if (binding in ("variable", "function", "model", "python") and node.id in self.later) or (
            binding == "variable" and self.function is None and node.id not in self.visible
        ):
            self.unit.report(UsedTooEarly, node.span, name=node.id)
        elif binding is None:
            self.undefined(node)
        node.binding = binding or "unknown"

    def binding(self, name: str, local_only: bool = False) -> str | None:
        """What kind of thing a name is here; None if it is nothing. `local_only`: among the program's own names."""
        unit = self.unit
        if name in self.visible:
            return "variable" if self.function is None else "self" if name == "self" else "local"
        if name in self.layers:
            return "layer"
        if name in self.config:
            return "config"
        for binding, names in (
            ("variable", unit.variables),
            ("model", unit.models),
            ("function", unit.functions),
            ("kernel", unit.kernels),
            ("module", unit.modules),
        ):
            if name in names:
                return binding
        if name.endswith("_launcher") and name[: -len("_launcher")] in unit.kernels:
            return "launcher"
        if local_only:
            return None
        if name == "self" and self.model is not None:
            return "self"
        if name in FUNCTIONS:
            return "builtin"
        if name in LAYERS:
            return "layer class"
        return "python" if name in PYTHON else None

    def undefined(self, node: Name) -> None:
        name = node.id
        if name in self.later:
            self.unit.report(UsedTooEarly, node.span, name=name)
        elif name in DTYPES or name in DEVICES:
            self.unit.report(LocalType, node.span, name=name)
        elif name == "self":
            self.unit.report(Misplaced, node.span, what="self", where="in a function of a model")
        else:
            known = [*self.visible, *self.layers, *self.config, *self.unit.models, *self.unit.functions]
            known += [*self.unit.variables, *self.unit.modules, *FUNCTIONS, *LAYERS, *PYTHON]
            hint = nearest_hint(name, known)
            self.unit.report(UndefinedName, node.span, hint if hint.startswith("did") else "", name=name)


class _KernelScope(_Scope):
    """Inside a kernel: its parameters and variables, `tl`, other kernels, and what Python has."""

    def binding(self, name: str, local_only: bool = False) -> str | None:
        if name in self.visible:
            return "local"
        if name == "tl":
            return "tl"
        if name in self.unit.kernels:
            return "kernel"
        return "python" if name in PYTHON else None

    def attribute(self, node: Attribute) -> None:
        self.expr(node.value)

    def undefined(self, node: Name) -> None:
        assert isinstance(self.function, Kernel)
        if node.id in self.unit.variables and node.id not in self.later:
            reason = f"it cannot see {node.id}, a variable of the program"
            hint = "pass it as an argument"
            self.unit.report(BadKernel, node.span, hint, kernel=self.function.name, reason=reason)
            return
        super().undefined(node)

    def argument(self, argument: Argument) -> None:
        self.expr(argument.value)


def _declared(body: Iterable[Stmt]) -> Iterable[Name]:
    """The names that the statements of a function make its variables."""
    for statement in body:
        match statement:
            case Let() | For():
                yield from statement.targets
        match statement:
            case If():
                for _, block in statement.branches:
                    yield from _declared(block)
                yield from _declared(statement.otherwise)
            case For() | While():
                yield from _declared(statement.body)


def _assigned_members(model: Model) -> set[str]:
    """The names x of `self.x = ...` in a model's functions."""
    return {
        target.name
        for statement in walk(model.functions)
        if isinstance(statement, Assign)
        for target in statement.targets
        if isinstance(target, Attribute) and isinstance(target.value, Name) and target.value.id == "self"
    }
