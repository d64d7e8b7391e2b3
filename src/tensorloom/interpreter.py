"""Abstract interpretation: runs a program on shapes instead of tensors, and reports what does not fit.

A `Frame` is one activation: of a file, a function, or a section of a model. The `Checker` holds what they share.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

from loom_core.base.diagnostics import Diagnostic
from tensorloom import algebra
from tensorloom.arguments import Issue, nearest_hint
from tensorloom.calls import Caller
from tensorloom.diagnostics import AnnotationDiffers, BadUnpack, NoSuchMember, TensorLoomError
from tensorloom.dims import Dim, Shape, Size, add, as_size, may_equal, merge, multiply, shape_text, subtract, symbol
from tensorloom.functions import DEVICES, DTYPES, FUNCTIONS, METHODS, DType
from tensorloom.layers import LAYERS
from tensorloom.names import MODULE_MEMBERS
from tensorloom.program import Unit
from tensorloom.source import Span
from tensorloom.tree import (
    Argument,
    Assign,
    Attribute,
    Binary,
    Call,
    Compare,
    Constant,
    Expr,
    ExprStmt,
    For,
    FString,
    If,
    Let,
    ListExpr,
    Name,
    Node,
    Number,
    Pipe,
    Placeholder,
    Return,
    Slice,
    Stmt,
    String,
    Subscript,
    TupleExpr,
    Type,
    Unary,
    While,
)
from tensorloom.values import (
    UNKNOWN,
    Builtin,
    FunctionValue,
    Launcher,
    LayerClass,
    Method,
    Metrics,
    ModelClass,
    ModelValue,
    Namespace,
    PythonFunction,
    Tensor,
)

_MOST_ITERATIONS: Final = 32
_MOST_ITEMS: Final = 10_000
_MOST_STEPS: Final = 5_000
_MOST_BITS: Final = 256


@dataclass(slots=True)
class Checker:
    """`recurrent`: the calls whose result is an output with a state. `sites`: the calls that are being followed.
    `activations`: where the outputs of layers are noted, if they are wanted. `results`: of functions, by their
    arguments."""

    diagnostics: list[Diagnostic] = field(default_factory=list)
    seen: set[tuple[str, Span, str]] = field(default_factory=set)
    globals: dict[int, dict[str, Any]] = field(default_factory=dict)
    recurrent: set[Node] = field(default_factory=set)
    sites: list[tuple[Unit, Span]] = field(default_factory=list)
    instances: dict[Any, ModelValue] = field(default_factory=dict)
    building: list[Any] = field(default_factory=list)
    activations: list[Tensor] | None = None
    results: dict[Any, Any] = field(default_factory=dict)
    budget: int = _MOST_STEPS

    def spend(self) -> bool:
        """Whether one more call or iteration may be followed: programs are checked in bounded time."""
        self.budget -= 1
        return self.budget >= 0

    def report(self, unit: Unit, span: Span, issue: Issue) -> None:
        key = (unit.source.file, span, issue.kind.code)
        if key in self.seen:
            return
        self.seen.add(key)
        location = unit.source.location(span)
        if self.sites:
            caller, place = self.sites[0]
            location = location.inlined_at(caller.source.location(place))
        made = issue.kind.diagnostic(location, hint=issue.hint, **issue.fields)  # type: ignore[arg-type]
        self.diagnostics.append(made)

    @contextmanager
    def following(self, unit: Unit, span: Span) -> Iterator[None]:
        """While the code that a call at this place runs is interpreted."""
        self.sites.append((unit, span))
        try:
            yield
        finally:
            self.sites.pop()


class Frame:
    """Evaluates expressions and executes statements with the variables `env`."""

    def __init__(self, checker: Checker, unit: Unit, owner: ModelValue | None, env: dict[str, Any]) -> None:
        self.checker = checker
        self.unit = unit
        self.owner = owner
        self.env = env
        self.returned: list[Any] = []
        self.record = False
        self.caller = Caller(self)

    def report(self, span: Span, issue: Issue) -> None:
        self.checker.report(self.unit, span, issue)

    def complain(self, span: Span, kind: type[TensorLoomError], hint: str | None = None, **fields: object) -> None:
        self.report(span, Issue(kind, hint, **fields))

    def guarded(self, span: Span, rule: Callable[..., Any], *arguments: Any) -> Any:
        """What a rule gives; where it raises Issue that is reported, and the result is unknown."""
        try:
            return rule(*arguments)
        except Issue as issue:
            self.report(span, issue)
            return UNKNOWN

    # ---- statements

    def run(self, statements: Sequence[Stmt]) -> bool:
        """Execute statements; whether they are sure to return."""
        sure = False
        for statement in statements:
            sure = self.execute(statement) or sure
        return sure

    def execute(self, statement: Stmt) -> bool:
        match statement:
            case Let():
                value = self.evaluate(statement.value)
                if statement.type is not None:
                    value = self.declared(statement, value)
                self.bind([target.id for target in statement.targets], value, statement)
            case Assign():
                self.assign(statement)
            case ExprStmt():
                self.evaluate(statement.value)
            case Return():
                value = None if statement.value is None else self.evaluate(statement.value)
                self.returned.append(value)
                return True
            case If():
                return self.execute_if(statement)
            case For():
                self.execute_for(statement)
            case While():
                self.evaluate(statement.condition)
                self.loop_body(statement.body)
        return False

    def assign(self, statement: Assign) -> None:
        value = self.evaluate(statement.value)
        names = [target.id if isinstance(target, Name) else "" for target in statement.targets]
        for target in statement.targets:
            if isinstance(target, Attribute | Subscript):
                self.evaluate(target.value)
                self.forget(target.value)
        values = self.unpacked(value, len(names), statement) if len(names) > 1 else [value]
        for target, item in zip(statement.targets, values, strict=True):
            if isinstance(target, Name):
                home = self.env if target.binding == "local" else self.checker.globals[id(self.unit)]
                home[target.id] = item

    def bind(self, names: list[str], value: Any, statement: Let | Assign) -> None:
        values = self.unpacked(value, len(names), statement) if len(names) > 1 else [value]
        self.env.update(zip(names, values, strict=True))

    def unpacked(self, value: Any, count: int, statement: Let | Assign) -> Sequence[Any]:
        """The parts of a value that is assigned to several names."""
        if statement.value in self.checker.recurrent:
            value = (value, UNKNOWN)
        if isinstance(value, list | tuple):
            if len(value) == count:
                return value
            self.complain(statement.span, BadUnpack, hint="", count=count, given=f"{len(value)} values")
        return [UNKNOWN] * count

    def forget(self, changed: Expr) -> None:
        """A list, or whatever else a variable holds, is changed in place."""
        if isinstance(changed, Name) and not isinstance(self.env.get(changed.id), Tensor | ModelValue):
            self.env[changed.id] = UNKNOWN

    def declared(self, statement: Let, value: Any) -> Any:
        assert statement.type is not None
        return self.check_annotation(statement.targets[0].id, statement.type, value, statement.value.span, {})

    def check_annotation(self, name: str, declared: Type, value: Any, span: Span, symbols: dict[str, Size]) -> Any:
        """`value` with what its declared type says. `symbols`: the sizes that symbols stand for so far."""
        wanted = self.declared_shape(declared)
        if wanted is None or not isinstance(value, Tensor):
            return value
        if value.shape is None:
            value.shape = wanted
            return value
        fits = len(wanted) == len(value.shape)
        for want, size in zip(wanted, value.shape, strict=False):
            if isinstance(want, Dim):
                first = symbols.setdefault(str(want), size)
                fits = fits and may_equal(first, size)
            else:
                fits = fits and may_equal(want, size)
        if not fits:
            texts = {"declared": f"Tensor{shape_text(wanted)}", "given": f"Tensor{shape_text(value.shape)}"}
            self.complain(span, AnnotationDiffers, hint="", name=name, **texts)
            return Tensor(wanted, value.dtype)
        merged = tuple(merge(size, want) for size, want in zip(value.shape, wanted, strict=True))
        return value if merged == value.shape else Tensor(merged, value.dtype, last=value.last)

    def declared_shape(self, declared: Type | None) -> Shape | None:
        """The shape that `Tensor[...]` says; None if it says none. A name of the config stands for its value."""
        if declared is None or declared.dims is None:
            return None
        config = self.owner.config if self.owner is not None else {}
        sizes = (config.get(dim, dim) if isinstance(dim, str) else dim for dim in declared.dims)
        return tuple(symbol(dim) if isinstance(dim, str) else as_size(dim) for dim in sizes)

    def execute_if(self, statement: If) -> bool:
        """Branches whose condition is known are taken or left; of the others all are, and what they agree on stays."""
        before = self.env
        ends: list[dict[str, Any]] = []
        sure = True
        for condition, body in statement.branches:
            value = self.evaluate(condition)
            if value is False or value is None:
                continue
            self.env = dict(before)
            if not self.run(body):
                ends.append(self.env)
                sure = False
            if value is True:
                break
        else:
            self.env = dict(before)
            if not self.run(statement.otherwise):
                ends.append(self.env)
                sure = False
        self.env = before
        if ends:
            _merge_into(before, ends)
        return sure

    def execute_for(self, statement: For) -> None:
        iterable = self.evaluate(statement.iterable)
        names = [target.id for target in statement.targets]
        if isinstance(iterable, list | tuple) and len(iterable) <= _MOST_ITERATIONS and len(names) == 1:
            for item in iterable:
                if not self.checker.spend():
                    break
                self.env[names[0]] = item
                self.run(statement.body)
            else:
                return
        item = UNKNOWN
        if isinstance(iterable, Tensor) and iterable.shape:
            item = Tensor(iterable.shape[1:], iterable.dtype)
        self.env.update(dict.fromkeys(names, UNKNOWN if len(names) > 1 else item))
        self.loop_body(statement.body)

    def loop_body(self, body: Sequence[Stmt]) -> None:
        """Run a body once; what it changes is known afterwards only as far as it stays the same."""
        before = dict(self.env)
        self.run(body)
        _merge_into(self.env, [before, dict(self.env)])

    # ---- expressions

    def evaluate(self, node: Expr) -> Any:
        return _EVALUATE[type(node)](self, node)

    def name(self, node: Name) -> Any:
        binding, name = node.binding, node.id
        if binding == "local":
            return self.env.get(name, UNKNOWN)
        if binding == "layer" or binding == "config":
            return self.member(name)
        if binding == "variable":
            return self.checker.globals.get(id(self.unit), {}).get(name, UNKNOWN)
        if binding == "self":
            return self.owner if self.owner is not None else UNKNOWN
        return _NAMED[binding](self.unit, name) if binding in _NAMED else UNKNOWN

    def member(self, name: str) -> Any:
        owner = self.owner
        if owner is None:
            return UNKNOWN
        return owner.layers.get(name, owner.config.get(name, UNKNOWN))

    def sequence(self, node: ListExpr | TupleExpr) -> Any:
        items = [self.evaluate(item) for item in node.items]
        return items if isinstance(node, ListExpr) else tuple(items)

    def fstring(self, node: FString) -> Any:
        for part in node.parts:
            if isinstance(part, Placeholder):
                self.evaluate(part.value)
        return UNKNOWN

    def unary(self, node: Unary) -> Any:
        value = self.evaluate(node.operand)
        if node.operator == "not":
            return not value if isinstance(value, bool) else UNKNOWN
        if isinstance(value, Tensor):
            return value if value.shape is None else Tensor(value.shape, value.dtype)
        if node.operator == "-" and isinstance(value, int | float | Dim):
            return multiply(-1, value) if isinstance(value, Dim) else -value
        return value

    def binary(self, node: Binary) -> Any:
        left = self.evaluate(node.left)
        right = self.evaluate(node.right)
        operator = node.operator
        if operator in ("and", "or"):
            return _logic(operator, left, right)
        if operator == "@":
            both = isinstance(left, Tensor) and isinstance(right, Tensor)
            return self.guarded(node.span, algebra.matmul, left, right) if both else UNKNOWN
        if isinstance(left, Tensor) or isinstance(right, Tensor):
            dtype = "float" if operator == "/" else ""
            return self.guarded(node.span, algebra.combine, left, right, dtype)
        if isinstance(left, list) and isinstance(right, list) and operator == "+":
            return [*left, *right] if len(left) + len(right) <= _MOST_ITEMS else UNKNOWN
        return _arithmetic(operator, left, right)

    def compare(self, node: Compare) -> Any:
        left = self.evaluate(node.first)
        result: Any = True
        for operator, operand in zip(node.operators, node.operands, strict=True):
            right = self.evaluate(operand)
            if isinstance(left, Tensor) or isinstance(right, Tensor):
                result = self.guarded(node.span, algebra.combine, left, right, "bool")
            elif result is True or result is False:
                result = result and _comparison(operator, left, right)
            left = right
        return result

    def attribute(self, node: Attribute) -> Any:
        owner, name = self.evaluate(node.value), node.name
        if isinstance(owner, ModelValue):
            return self.model_member(owner, node)
        if isinstance(owner, Tensor):
            if name == "shape":
                return UNKNOWN if owner.shape is None else tuple(UNKNOWN if s is None else s for s in owner.shape)
            if name == "T" and owner.shape is not None:
                return Tensor(owner.shape[::-1], owner.dtype)
            if name == "mT" and owner.shape is not None and len(owner.shape) > 1:
                return algebra.transpose(owner, -1, -2)
            if name == "ndim":
                return UNKNOWN if owner.shape is None else len(owner.shape)
            return Method(owner, name) if name in METHODS else UNKNOWN
        if isinstance(owner, Metrics):
            if name not in owner.names:
                hint = nearest_hint(name, owner.names)
                self.complain(node.name_span, NoSuchMember, hint, owner="the argument of a callback", name=name)
            return UNKNOWN
        if isinstance(owner, Namespace):
            if owner.name == "nn":
                return LayerClass(LAYERS[name]) if name in LAYERS else UNKNOWN
            return Builtin(FUNCTIONS["load_dataset"])
        return UNKNOWN

    def model_member(self, owner: ModelValue, node: Attribute) -> Any:
        name = node.name
        for members in (owner.layers, owner.config):
            if name in members:
                return members[name]
        for function in owner.model.functions:
            if function.name == name:
                return FunctionValue(function, owner.unit, owner)
        own = isinstance(node.value, Name) and node.value.binding == "self"
        if not own and name not in MODULE_MEMBERS:
            known = [*owner.layers, *owner.config, *(function.name for function in owner.model.functions)]
            hint = nearest_hint(name, known)
            self.complain(node.name_span, NoSuchMember, hint, owner=owner.model.name, name=name)
        return UNKNOWN

    def subscript(self, node: Subscript) -> Any:
        value = self.evaluate(node.value)
        items = node.index.items if isinstance(node.index, TupleExpr) else [node.index]
        indices = [self.evaluate(item) for item in items]
        if node.value in self.checker.recurrent:
            return value if indices == [0] else UNKNOWN
        if isinstance(value, Tensor):
            return self.guarded(node.span, algebra.index, value, indices)
        (first, *rest) = indices
        if isinstance(value, list | tuple) and not rest:
            if isinstance(first, int) and not isinstance(first, bool) and -len(value) <= first < len(value):
                return value[first]
            if isinstance(first, slice) and all(
                bound is None or isinstance(bound, int) for bound in (first.start, first.stop, first.step)
            ):
                return value[first] if first.step != 0 else UNKNOWN
        return UNKNOWN

    def slice(self, node: Slice) -> Any:
        parts = [None if part is None else self.evaluate(part) for part in (node.start, node.stop, node.step)]
        return slice(*parts)

    def call(self, node: Call) -> Any:
        function = self.evaluate(node.function)
        positional, named = self.arguments(node.arguments)
        return self.caller.call(node, node.function, function, positional, named)

    def pipe(self, node: Pipe) -> Any:
        value = self.evaluate(node.value)
        function = self.evaluate(node.function)
        positional, named = self.arguments(node.arguments)
        return self.caller.call(node, node.function, function, [value, *positional], named)

    def arguments(self, arguments: list[Argument]) -> tuple[list[Any], list[tuple[str, Any]]]:
        positional: list[Any] = []
        named: list[tuple[str, Any]] = []
        for argument in arguments:
            value = self.evaluate(argument.value)
            if argument.name:
                named.append((argument.name, value))
            else:
                positional.append(value)
        return positional, named


def _merge_into(env: dict[str, Any], ends: list[dict[str, Any]]) -> None:
    for name in dict.fromkeys(name for end in ends for name in end):
        values = [end[name] for end in ends if name in end]
        env[name] = algebra.merged(values)


def _logic(operator: str, left: Any, right: Any) -> Any:
    if isinstance(left, bool):
        return right if left is (operator == "and") else left
    return UNKNOWN


def _arithmetic(operator: str, left: Any, right: Any) -> Any:
    """Of numbers and symbolic sizes; unknown where Python would fail, or the result would be huge."""
    if not algebra.is_number(left) or not algebra.is_number(right):
        return UNKNOWN
    if isinstance(left, Dim) or isinstance(right, Dim):
        return _size_arithmetic(operator, left, right)
    huge = any(isinstance(value, int) and value.bit_length() > _MOST_BITS for value in (left, right))
    if huge or (operator == "**" and not (abs(left) <= 1 << 16 and abs(right) <= 32)):
        return UNKNOWN
    try:
        value = _ARITHMETIC[operator](left, right)
    except (ZeroDivisionError, OverflowError):
        return UNKNOWN
    return value if isinstance(value, int | float) else UNKNOWN


def _size_arithmetic(operator: str, left: Any, right: Any) -> Any:
    if isinstance(left, float) or isinstance(right, float):
        return UNKNOWN
    rule = {"+": add, "-": subtract, "*": multiply}.get(operator)
    value = rule(left, right) if rule else None
    return UNKNOWN if value is None else value


_ARITHMETIC: Final[dict[str, Callable[[Any, Any], Any]]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": lambda a, b: a / b,
    "%": lambda a, b: a % b,
    "**": lambda a, b: a**b,
}
_COMPARISONS: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    ">": lambda a, b: a > b,
    "<=": lambda a, b: a <= b,
    ">=": lambda a, b: a >= b,
}


def _comparison(operator: str, left: Any, right: Any) -> Any:
    comparable = (isinstance(left, int | float) and isinstance(right, int | float)) or (
        isinstance(left, str) and isinstance(right, str)
    )
    if left is None or right is None:
        comparable = operator in ("==", "!=") and left is not UNKNOWN and right is not UNKNOWN
    return _COMPARISONS[operator](left, right) if comparable else UNKNOWN


def _model(unit: Unit, name: str) -> Any:
    model, home = unit.models[name]
    return ModelClass(model, home)


_NAMED: Final[dict[str, Callable[[Unit, str], Any]]] = {
    "model": _model,
    "function": lambda unit, name: FunctionValue(unit.functions[name], unit),
    "launcher": lambda unit, name: Launcher(unit.kernels[name.removesuffix("_launcher")], unit),
    "module": lambda unit, name: Namespace(unit.modules[name]),
    "builtin": lambda unit, name: Builtin(FUNCTIONS[name]),
    "layer class": lambda unit, name: LayerClass(LAYERS[name]),
    "python": lambda unit, name: PythonFunction(name),
    "dtype": lambda unit, name: DType(DTYPES[name]),
    "device": lambda unit, name: DEVICES[name],
}
_EVALUATE: Final[dict[type, Callable[[Frame, Any], Any]]] = {
    Name: Frame.name,
    Number: lambda frame, node: node.value,
    String: lambda frame, node: node.body,
    FString: Frame.fstring,
    Constant: lambda frame, node: node.value,
    ListExpr: Frame.sequence,
    TupleExpr: Frame.sequence,
    Unary: Frame.unary,
    Binary: Frame.binary,
    Compare: Frame.compare,
    Call: Frame.call,
    Attribute: Frame.attribute,
    Subscript: Frame.subscript,
    Slice: Frame.slice,
    Pipe: Frame.pipe,
}
