"""Expressions as Python text, with the parentheses that precedences ask for and no others."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from tensorloom.functions import DEVICES, DTYPES, FUNCTIONS, FunctionSpec
from tensorloom.layers import LAYERS, LayerSpec
from tensorloom.operators import BINARY, COMPARE, NEGATE, OR, POSTFIX, POWER, UNARY
from tensorloom.program import Unit
from tensorloom.python_names import member, variable
from tensorloom.tree import (
    Argument,
    Attribute,
    Binary,
    Call,
    Compare,
    Constant,
    Expr,
    FString,
    ListExpr,
    Model,
    Name,
    Node,
    Number,
    Pipe,
    Slice,
    String,
    Subscript,
    TupleExpr,
    Unary,
)

RECURRENT: Final = frozenset(name for name, spec in LAYERS.items() if spec.call == "recurrent")


@dataclass(slots=True)
class Needs:
    """What the text uses: snippets of the prelude, and modules."""

    snippets: dict[str, None] = field(default_factory=dict)
    functional: bool = False
    nn: bool = False


class ExpressionWriter:
    """Writes the expressions of one place. `model`: of the model whose function it is; `names`: of models by unit."""

    def __init__(
        self,
        unit: Unit,
        names: dict[tuple[int, str], str],
        needs: Needs,
        recurrent: set[Node],
        model: Model | None = None,
    ) -> None:
        self.unit = unit
        self.names = names
        self.needs = needs
        self.recurrent = recurrent
        self.model = model

    def text(self, node: Expr, at_least: int = 0) -> str:
        """The expression; in parentheses if it binds weaker than `at_least`."""
        text = _WRITE[type(node)](self, node)
        return f"({text})" if _precedence(node) < at_least else text

    def number(self, node: Number) -> str:
        # Python has no leading zeros.
        return node.text if isinstance(node.value, float) else str(node.value)

    def name(self, node: Name) -> str:
        binding, name = node.binding, node.id
        if binding in ("layer", "config"):
            return f"self.{member(name)}"
        if binding == "model":
            model, home = self.unit.models[name]
            return self.names[id(home), model.name]
        if binding == "function":
            return self.names[id(self.unit), name]
        if binding == "builtin":
            return self.builtin_name(FUNCTIONS[name])
        if binding == "layer class":
            return self.layer_name(LAYERS[name])
        if binding == "dtype":
            return DTYPES[name]
        if binding == "device":
            return DEVICES[name]
        return name if binding in ("self", "python", "tl") else variable(name)

    def builtin_name(self, spec: FunctionSpec) -> str:
        if spec.torch == spec.name:
            self.needs.snippets[spec.name] = None
        self.needs.functional |= spec.torch.startswith("F.")
        return spec.torch

    def layer_name(self, spec: LayerSpec) -> str:
        if spec.own:
            self.needs.snippets[spec.torch] = None
            return spec.torch
        self.needs.nn = True
        return f"nn.{spec.torch}"

    def string(self, node: String) -> str:
        return f'"{node.body}"'

    def fstring(self, node: FString) -> str:
        """An f-string; where Python 3.11 allows a value no place in one, `format` with the values as arguments."""
        values = [self.text(part.value) for part in node.parts if not isinstance(part, str)]
        plain = [value.replace('"', "'") for value in values]
        if any("\\" in value or (value.count('"') and "'" in value) for value in values):
            return self.formatted(node, values)
        text, rest = "", iter(plain)
        for part in node.parts:
            if isinstance(part, str):
                text += part
            else:
                value = next(rest)
                text += (
                    "{" + (" " if value.startswith("{") else "") + value + _after(part.conversion, part.format) + "}"
                )
        return f'f"{text}"'

    def formatted(self, node: FString, values: list[str]) -> str:
        text = "".join(
            part if isinstance(part, str) else "{" + _after(part.conversion, part.format) + "}" for part in node.parts
        )
        return f'"{text}".format({", ".join(values)})'

    def list_(self, node: ListExpr) -> str:
        return f"[{', '.join(self.text(item, OR) for item in node.items)}]"

    def tuple_(self, node: TupleExpr) -> str:
        items = [self.text(item, 0 if isinstance(item, Slice) else OR) for item in node.items]
        return ", ".join(items) + ("," if len(items) == 1 else "")

    def unary(self, node: Unary) -> str:
        level = UNARY[node.operator].precedence
        space = " " if node.operator == "not" else ""
        return f"{node.operator}{space}{self.text(node.operand, level)}"

    def binary(self, node: Binary) -> str:
        level = BINARY[node.operator].precedence
        # Chains group to the left, powers to the right; a sign may stand in an exponent but not in a base.
        left, right = (level + 1, NEGATE) if level == POWER else (level, level + 1)
        space = "" if level == POWER and _simple(node.left) and _simple(node.right) else " "
        return f"{self.text(node.left, left)}{space}{node.operator}{space}{self.text(node.right, right)}"

    def compare(self, node: Compare) -> str:
        parts = [self.text(node.first, COMPARE + 1)]
        for operator, operand in zip(node.operators, node.operands, strict=True):
            parts += [operator, self.text(operand, COMPARE + 1)]
        return " ".join(parts)

    def attribute(self, node: Attribute) -> str:
        value = node.value
        if isinstance(value, Name) and value.binding == "module":
            if self.unit.modules[value.id] == "nn":
                return self.layer_name(LAYERS[node.name]) if node.name in LAYERS else f"nn.{node.name}"
            return self.builtin_name(FUNCTIONS["load_dataset"])
        text = self.text(value, POSTFIX)
        # `1.real` would be read as a number.
        return f"({text}).{member(node.name)}" if isinstance(value, Number) else f"{text}.{member(node.name)}"

    def subscript(self, node: Subscript) -> str:
        value = self.call_text(node.value) if isinstance(node.value, Call | Pipe) else self.text(node.value, POSTFIX)
        return f"{value}[{self.text(node.index)}]"

    def slice_(self, node: Slice) -> str:
        start, stop, step = ("" if part is None else self.text(part, OR) for part in (node.start, node.stop, node.step))
        return f"{start}:{stop}" + (f":{step}" if step else "")

    # ---- calls

    def call(self, node: Call | Pipe) -> str:
        """A call as one value: of a recurrent layer that is its output, without the state."""
        return self.call_text(node) + ("[0]" if self.is_recurrent(node) else "")

    def is_recurrent(self, node: Call | Pipe) -> bool:
        if node in self.recurrent:
            return True
        function = node.function
        name = function.id if isinstance(function, Name) and function.binding == "layer" else ""
        if isinstance(function, Attribute) and isinstance(function.value, Name) and function.value.binding == "self":
            name = function.name
        layers = self.model.layers if self.model is not None else []
        made = next((entry.value for entry in layers if entry.name == name), None)
        return isinstance(made, Call) and isinstance(made.function, Name) and made.function.id in RECURRENT

    def call_text(self, node: Call | Pipe) -> str:
        """A call with whatever it gives."""
        arguments = list(node.arguments)
        if isinstance(node, Pipe):
            arguments.insert(0, Argument(node.value.span, "", node.value))
        function = node.function
        if isinstance(function, Attribute) and isinstance(function.value, Name) and function.value.binding == "module":
            return self.module_call(function, arguments)
        if isinstance(function, Name):
            if function.binding == "builtin":
                return self.builtin_call(FUNCTIONS[function.id], arguments)
            if function.binding == "layer class":
                return self.layer_call(LAYERS[function.id], arguments)
            if function.binding in ("model", "function", "local", "variable", "launcher"):
                return f"{self.name(function)}({self.arguments(arguments, variable)})"
        return f"{self.text(function, POSTFIX)}({self.arguments(arguments, member)})"

    def arguments(self, arguments: list[Argument], name_of: Callable[[str], str]) -> str:
        return ", ".join(
            (f"{name_of(argument.name)}=" if argument.name else "") + self.text(argument.value, OR)
            for argument in arguments
        )

    def module_call(self, function: Attribute, arguments: list[Argument]) -> str:
        assert isinstance(function.value, Name)
        module = self.unit.modules[function.value.id]
        if module == "nn":
            return self.layer_call(LAYERS[function.name], arguments)
        name = ['"mnist"'] if module == "data.mnist" else []
        given = self.arguments(arguments, member)
        return f"{self.builtin_name(FUNCTIONS['load_dataset'])}({', '.join(name + ([given] if given else []))})"

    def builtin_call(self, spec: FunctionSpec, arguments: list[Argument]) -> str:
        positional = [argument for argument in arguments if not argument.name]
        named = [argument for argument in arguments if argument.name]
        parts = [self.text(argument.value, OR) for argument in positional]
        if spec.signature.rest in ("shape", "dims") and len(parts) > 2:
            parts = [parts[0], f"({', '.join(parts[1:])})"]
        parts += [f"{member(argument.name)}={self.text(argument.value, OR)}" for argument in named]
        given = {argument.name for argument in named}
        if not spec.signature.named:
            given |= {name for name, _ in spec.signature.parameters[: len(positional)]}
        for name, default in spec.emitted:
            if name not in given:
                parts.append(f"{name}={self.default(default)}")
        return f"{self.builtin_name(spec)}({', '.join(parts)})"

    def default(self, text: str) -> str:
        """A default of a function: outside a model nothing is being trained."""
        return "False" if text == "self.training" and self.model is None else text

    def layer_call(self, spec: LayerSpec, arguments: list[Argument]) -> str:
        self.needs.nn = True
        if spec.call == "parameter":
            sizes = self.arguments(arguments, member)
            return f"nn.Parameter(0.02 * torch.randn({sizes}))"
        if spec.call == "repeat":
            given = {
                argument.name or name: argument for argument, name in zip(arguments, ("layer", "times"), strict=True)
            }
            layer, times = self.text(given["layer"].value, OR), self.text(given["times"].value, OR)
            return f"nn.Sequential(*[{layer} for _ in range({times})])"
        text = self.arguments(arguments, member)
        given_names = {argument.name for argument in arguments}
        places = sum(not argument.name for argument in arguments)
        given_names |= {name for name, _ in spec.signature.parameters[:places]}
        extra = [f"{name}={default}" for name, default in spec.emitted if name not in given_names]
        return f"{self.layer_name(spec)}({', '.join([text] * bool(text) + extra)})"


def _after(conversion: str, spec: str) -> str:
    return (f"!{conversion}" if conversion else "") + (f":{spec}" if spec else "")


def _precedence(node: Expr) -> int:
    return POSTFIX if isinstance(node, Pipe) else node.precedence


def _simple(node: Expr) -> bool:
    """Whether formatters write a power of this without spaces."""
    if isinstance(node, Unary) and node.operator != "not":
        return isinstance(node.operand, Number)
    while isinstance(node, Attribute):
        node = node.value
    return isinstance(node, Name | Number)


_WRITE: Final[dict[type, Callable[[ExpressionWriter, Any], str]]] = {
    Name: ExpressionWriter.name,
    Number: ExpressionWriter.number,
    String: ExpressionWriter.string,
    FString: ExpressionWriter.fstring,
    Constant: lambda writer, node: str(node.value),
    ListExpr: ExpressionWriter.list_,
    TupleExpr: ExpressionWriter.tuple_,
    Unary: ExpressionWriter.unary,
    Binary: ExpressionWriter.binary,
    Compare: ExpressionWriter.compare,
    Call: ExpressionWriter.call,
    Pipe: ExpressionWriter.call,
    Attribute: ExpressionWriter.attribute,
    Subscript: ExpressionWriter.subscript,
    Slice: ExpressionWriter.slice_,
}
