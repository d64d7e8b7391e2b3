"""What an editor asks about a program: what is here, where does it come from, what could stand here."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tensorloom.arguments import REQUIRED, Issue, Signature
from tensorloom.dims import shape_text
from tensorloom.driver import Checked, check_file
from tensorloom.functions import FUNCTIONS, PYTHON
from tensorloom.info import weights
from tensorloom.interpreter import Frame
from tensorloom.layers import LAYERS
from tensorloom.lexer import KEYWORDS
from tensorloom.program import MODULES
from tensorloom.source import Source, Span
from tensorloom.training import EVENTS, LOSSES, OPTIMIZERS, OPTIONS, SCHEDULERS
from tensorloom.tree import (
    Attribute,
    Entry,
    Expr,
    For,
    Function,
    Kernel,
    KernelParameter,
    Let,
    Model,
    Name,
    Node,
    Parameter,
    Train,
    children,
    walk,
)
from tensorloom.values import UNKNOWN, Builtin, LayerClass, LayerValue, ModelClass, ModelValue, Tensor

_NO_VALUES: Final[dict[Node, Any]] = {}


class RecordingFrame(Frame):
    """Remembers what each expression stood for first, or first with a shape: that is the most general."""

    values: dict[Node, Any] = _NO_VALUES

    def evaluate(self, node: Expr) -> Any:
        value = super().evaluate(node)
        before = self.values.get(node)
        if before is None or (isinstance(before, Tensor) and before.shape is None):
            self.values[node] = value
        return value


@dataclass(frozen=True, slots=True)
class Place:
    source: Source
    span: Span


@dataclass(slots=True)
class Document:
    """A checked file with the values of its expressions."""

    checked: Checked
    values: dict[Node, Any]

    @property
    def source(self) -> Source:
        return self.checked.unit.source

    # ---- hover

    def hover(self, offset: int) -> str:
        """What stands at a character, in a line or a few; empty if there is nothing to say."""
        path = self.path(offset)
        for node in reversed(path):
            if isinstance(node, Entry):
                owner = next((outer for outer in path if isinstance(outer, Model)), None)
                return self.member_text(owner, node.name) if owner else ""
            if isinstance(node, Model):
                config = ", ".join(entry.name for entry in node.config)
                return f"model {node.name}({config})"
            if isinstance(node, Name | Attribute):
                name = node.id if isinstance(node, Name) else node.name
                if self.member_of(node, path) is not None:
                    return self.member_text(self.member_of(node, path), name)
                return value_text(name, self.values.get(node, UNKNOWN))
            if isinstance(node, Parameter) and node.type is not None:
                return f"{node.name}: {node.type.name}"
        return ""

    def member_of(self, node: Node, path: list[Node]) -> Model | None:
        """The model whose layer or config entry a name stands for."""
        model = next((outer for outer in path if isinstance(outer, Model)), None)
        own = isinstance(node, Name) and node.binding in ("layer", "config")
        dotted = isinstance(node, Attribute) and isinstance(node.value, Name) and node.value.binding == "self"
        return model if own or dotted else None

    def member_text(self, model: Model | None, name: str) -> str:
        """A layer with its shapes and weights, or a config entry with its value."""
        made = next((made for made in self.checker_instances() if made.model is model), None)
        if made is None:
            return name
        value = made.layers.get(name, made.config.get(name, UNKNOWN))
        lines = [value_text(name, value)]
        lines += [f"{shape_text(step.given)} -> {shape_text(step.result)}" for step in made.flow if step.name == name]
        return "\n".join(dict.fromkeys(lines))

    def checker_instances(self) -> list[ModelValue]:
        """The instances, those with a known flow first."""
        held = [value for value in self.checked.values.values() if isinstance(value, ModelValue)]
        made = [*held, *self.checked.checker.instances.values()]
        return sorted(made, key=lambda instance: not instance.flow)

    # ---- definitions

    def definition(self, offset: int) -> Place | None:
        """Where the name at a character is defined."""
        unit, path = self.checked.unit, self.path(offset)
        for node in reversed(path):
            if isinstance(node, Attribute):
                model = self.member_of(node, path)
                return self.member_place(model, node.name) if model else None
            if isinstance(node, Name):
                return self.name_place(node, path)
        for statement, imported in unit.imports:
            if statement.span.start <= offset < statement.span.end:
                return Place(imported.source, Span(0, 0))
        return None

    def name_place(self, node: Name, path: list[Node]) -> Place | None:
        unit, name = self.checked.unit, node.id
        if node.binding == "model":
            model, home = unit.models[name]
            return Place(home.source, model.name_span)
        if node.binding == "function":
            return Place(unit.source, unit.functions[name].name_span)
        if node.binding in ("kernel", "launcher"):
            return Place(unit.source, unit.kernels[name.removesuffix("_launcher")].name_span)
        if node.binding == "variable":
            return Place(unit.source, unit.variables[name])
        if node.binding == "local":
            scope = next(outer for outer in path if isinstance(outer, Function | Kernel))
            span = next((span for declared, span in _declarations(scope) if declared == name), None)
            return Place(unit.source, span) if span is not None else None
        model_here = self.member_of(node, path)
        return self.member_place(model_here, name) if model_here else None

    def member_place(self, model: Model, name: str) -> Place | None:
        members: list[Entry | Function] = [*model.layers, *model.config, *model.functions]
        found = next((member for member in members if member.name == name), None)
        return Place(self.source, found.name_span) if found is not None else None

    # ---- completion

    def completions(self, offset: int) -> list[tuple[str, str]]:
        """Names that could stand at a character, each with its kind: keyword, layer, function, ..."""
        text = self.source.text
        start = offset
        while start > 0 and (text[start - 1].isalnum() or text[start - 1] == "_"):
            start -= 1
        path = self.path(max(start - 1, 0))
        if start > 0 and text[start - 1] == ".":
            return self.members_before(text[:start], path)
        found = [(word, "keyword") for word in sorted(KEYWORDS)]
        if any(isinstance(node, Train) for node in path):
            found += [(name, "option") for name in OPTIONS]
            found += [(name, "value") for table in (OPTIMIZERS, LOSSES, SCHEDULERS) for name in table]
            found += [(name, "event") for name in EVENTS]
        unit = self.checked.unit
        for scope in path:
            if isinstance(scope, Model):
                found += _member_names(scope)
            elif isinstance(scope, Function | Kernel):
                found += [(name, "variable") for name, _ in _declarations(scope)]
        found += [(name, "variable") for name in unit.variables]
        found += [(name, "model") for name in unit.models]
        found += [(name, "function") for name in (*unit.functions, *FUNCTIONS, *PYTHON)]
        found += [(f"{name}_launcher", "function") for name in unit.kernels]
        found += [(name, "layer") for name in LAYERS]
        return list(dict.fromkeys(found))

    def members_before(self, text: str, path: list[Node]) -> list[tuple[str, str]]:
        """The members of what stands before a dot."""
        owner = text[:-1]
        begin = len(owner)
        while begin > 0 and (owner[begin - 1].isalnum() or owner[begin - 1] == "_"):
            begin -= 1
        name = owner[begin:]
        unit = self.checked.unit
        if name == "self":
            model = next((node for node in path if isinstance(node, Model)), None)
            return _member_names(model) if model is not None else []
        if name in unit.modules:
            module = unit.modules[name]
            return [(member, "function") for member in (LAYERS if module == "nn" else MODULES[module])]
        value = self.checked.values.get(name)
        return _member_names(value.model) if isinstance(value, ModelValue) else []

    # ---- the tree

    def path(self, offset: int) -> list[Node]:
        """The nodes around a character, outermost first."""
        found: list[Node] = []
        node: Node | None = self.checked.unit.program
        while node is not None:
            found.append(node)
            node = next((part for part in _parts(node) if part.span[0] <= offset < part.span[1]), None)
        return found


def _parts(node: Node) -> Iterator[Node]:
    for _, value in children(node):
        yield from _nodes_in(value)


def _nodes_in(value: Any) -> Iterator[Node]:
    if isinstance(value, Node):
        yield value
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _nodes_in(item)


def _member_names(model: Model) -> list[tuple[str, str]]:
    found = [(entry.name, "layer") for entry in model.layers] + [(entry.name, "config") for entry in model.config]
    return found + [(function.name, "function") for function in model.functions]


def _declarations(scope: Function | Kernel) -> Iterator[tuple[str, Span]]:
    """The parameters and variables of a function."""
    for node in walk(scope):
        if isinstance(node, Parameter | KernelParameter):
            yield node.name, node.span
        elif isinstance(node, Let | For):
            for target in node.targets:
                yield target.id, target.span


def value_text(name: str, value: Any) -> str:
    """A value in words."""
    if isinstance(value, Tensor):
        return f"{name}: Tensor{shape_text(value.shape)} {value.dtype}".rstrip()
    if isinstance(value, LayerValue):
        return f"{name}: {value.spec.name}({_arguments_text(value)}){_weights_text(value)}"
    if isinstance(value, ModelValue):
        config = ", ".join(f"{key}={item}" for key, item in value.config.items())
        return f"{name}: {value.model.name}({config}){_weights_text(value)}"
    if isinstance(value, ModelClass):
        return f"model {value.model.name}({', '.join(entry.name for entry in value.model.config)})"
    if isinstance(value, LayerClass):
        return f"layer {value.spec.name}({signature_text(value.spec.signature)}): nn.{value.spec.torch}"
    if isinstance(value, Builtin):
        return f"{value.spec.name}({signature_text(value.spec.signature)}): {value.spec.torch}"
    if isinstance(value, bool | int | float | str):
        return f"{name} = {value!r}"
    return name


def signature_text(signature: Signature) -> str:
    parts = [name if default is REQUIRED else f"{name}={default}" for name, default in signature.parameters]
    return ", ".join([f"*{signature.rest}"] * bool(signature.named) + parts)


def _arguments_text(value: LayerValue) -> str:
    defaults = dict(value.spec.signature.parameters)
    given = {name: item for name, item in value.arguments.items() if defaults.get(name, REQUIRED) != item}
    return ", ".join(f"{name}={item}" for name, item in given.items() if not isinstance(item, LayerValue | ModelValue))


def _weights_text(value: Any) -> str:
    try:
        count = weights(value)
    except Issue:
        return ""
    return f", {count:,} parameters" if count else ""


def open_document(path: Path, overlay: dict[str, str]) -> Document:
    """Check a file as an editor has it. Raises TensorLoomError if it cannot be read."""
    values: dict[Node, Any] = {}
    frame = type("DocumentFrame", (RecordingFrame,), {"values": values})
    return Document(check_file(path, overlay=overlay, frame=frame), values)
