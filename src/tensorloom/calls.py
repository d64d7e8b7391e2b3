"""What calls make of shapes: of layers, models, functions, methods and kernels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from tensorloom.algebra import merged
from tensorloom.arguments import REQUIRED, Issue, Signature
from tensorloom.diagnostics import (
    NoForward,
    NotCallable,
    RecursiveModel,
    WrongArguments,
    WrongType,
)
from tensorloom.dims import Dim, Shape, as_size, shape_text
from tensorloom.functions import METHODS
from tensorloom.kernels import launch_plan
from tensorloom.layers import LayerSpec, make_layer, need_last, need_positive
from tensorloom.program import Unit
from tensorloom.tree import Attribute, Call, Expr, Function, Model, Name, Pipe
from tensorloom.values import (
    UNKNOWN,
    Builtin,
    Dataset,
    FunctionValue,
    Launcher,
    LayerClass,
    LayerValue,
    Method,
    ModelClass,
    ModelValue,
    PythonFunction,
    Step,
    Tensor,
)

if TYPE_CHECKING:
    from tensorloom.interpreter import Frame

Named = list[tuple[str, Any]]
_DEEPEST_CALL: Final = 24
_NUMERIC: Final[dict[str, Any]] = {"int": int, "float": float, "abs": abs, "min": min, "max": max, "round": round}


class Caller:
    """Interprets the calls of one frame."""

    def __init__(self, frame: Frame) -> None:
        self.frame = frame

    def call(self, node: Call | Pipe, callee: Expr, value: Any, positional: list[Any], named: Named) -> Any:
        """The result of calling `value`, which the expression `callee` stands for."""
        frame = self.frame
        rule = _CALLS.get(type(value))
        span = node.stage_span if isinstance(node, Pipe) else node.span
        try:
            if rule is not None:
                return rule(self, node, _name_of(callee), value, positional, named)
            if value is UNKNOWN or not isinstance(value, Tensor | Dataset | int | float | str | list | tuple | Dim):
                if isinstance(callee, Attribute):
                    frame.forget(callee.value)
                return UNKNOWN
            raise Issue(NotCallable, "", what=_kind_of(value))
        except Issue as issue:
            frame.report(span, issue)
            return UNKNOWN

    # ---- layers

    def layer(self, node: Call | Pipe, name: str, value: LayerValue, positional: list[Any], named: Named) -> Any:
        if value.spec.call == "recurrent":
            self.frame.checker.recurrent.add(node)
        what = f"{name} ({value.spec.name})" if name else value.spec.name
        return self.apply(what, name, value, positional, named)

    def apply(self, what: str, name: str, value: Any, positional: list[Any], named: Named) -> Any:
        """The result of a layer, or of a model among the parts of one, on its inputs."""
        if isinstance(value, ModelValue):
            return self.run_model(value, positional, named)
        if not isinstance(value, LayerValue):
            return UNKNOWN
        if not positional:
            raise Issue(WrongArguments, "", callee=what, reason="the input is missing")
        x = positional[0]
        if not isinstance(x, Tensor):
            if x is not UNKNOWN:
                raise Issue(WrongType, "", what=what, needed="a tensor", given=_kind_of(x))
            x = Tensor()
        spec = value.spec
        if spec.call in ("sequence", "repeat"):
            result = self.sequence(value, x)
        elif spec.call == "attention":
            result = self.attention(what, value, x, positional[1:], named)
        else:
            if spec.call == "one" and (len(positional) > 1 or named):
                raise Issue(WrongArguments, "", callee=what, reason="it takes one input")
            result = spec.rule(what, value.arguments, x)
        activations = self.frame.checker.activations
        if activations is not None and spec.call not in ("sequence", "repeat"):
            activations.append(result)
        owner = self.frame.owner
        if owner is not None and self.frame.record and isinstance(result, Tensor):
            conv = spec.name.startswith("Conv") or (len(result.shape or ()) > 3)
            owner.flow.append(Step(name or spec.name, x.shape, result.shape, conv))
        return result

    def sequence(self, value: LayerValue, x: Any) -> Any:
        """Through all parts, each of which must give a tensor."""
        for part in value.parts:
            if isinstance(part, LayerValue) and part.spec.call == "recurrent":
                hint = "call the layers one after another in a function"
                raise Issue(WrongType, hint, what="Sequential", needed="layers of one result", given=part.spec.name)
            before: Shape | None = x.shape if isinstance(x, Tensor) else None
            what = part.spec.name if isinstance(part, LayerValue) else ""
            recording, self.frame.record = self.frame.record, False
            try:
                x = self.apply(what, what, part, [x], [])
            finally:
                self.frame.record = recording
            repeats = value.spec.call == "repeat" and isinstance(x, Tensor) and x.shape == before
            if repeats and before is not None and self.frame.checker.activations is None:
                break
        return x

    def attention(self, what: str, value: LayerValue, x: Tensor, others: list[Any], named: Named) -> Tensor:
        result = value.spec.rule(what, value.arguments, x)
        key_sizes = (value.arguments["kdim"], value.arguments["vdim"])
        for other, size in zip(others, key_sizes, strict=False):
            if isinstance(other, Tensor) and other.shape is not None:
                need_last(what, other, as_size(value.arguments["embed_dim"] if size is None else size))
        return result

    def new_layer(self, node: Call | Pipe, name: str, value: LayerClass, positional: list[Any], named: Named) -> Any:
        return self.instance(value.spec, positional, named)

    def instance(self, spec: LayerSpec, positional: list[Any], named: Named) -> Any:
        if spec.call == "parameter":
            spec.signature.bind(spec.name, positional, named)
            sizes = positional[0] if len(positional) == 1 and isinstance(positional[0], list) else positional
            return Tensor(tuple(as_size(size) for size in sizes), "float", last="Parameter")
        if spec.call == "sequence":
            arguments = spec.signature.bind(spec.name, positional, named)
            return LayerValue(spec, {}, arguments["parts"])
        if spec.call == "repeat":
            arguments = spec.signature.bind(spec.name, positional, named)
            need_positive(spec.name, arguments)
            times = arguments["times"]
            count = min(times, 1000) if isinstance(times, int) else 1
            return LayerValue(spec, arguments, (arguments["layer"],) * count)
        return make_layer(spec, positional, named)

    # ---- models

    def new_model(self, node: Call | Pipe, name: str, value: ModelClass, positional: list[Any], named: Named) -> Any:
        frame = self.frame
        with frame.checker.following(frame.unit, node.span):
            made = instantiate(frame, value.model, value.unit, positional, named)
            if frame.owner is None:
                check_forward(frame, made)
        return made

    def model(self, node: Call | Pipe, name: str, value: ModelValue, positional: list[Any], named: Named) -> Any:
        frame = self.frame
        inputs = [item for item in positional if isinstance(item, Tensor)]
        with frame.checker.following(frame.unit, node.span):
            result = self.run_model(value, positional, named)
        given = inputs[0].shape if inputs else None
        if frame.owner is not None and frame.record and isinstance(result, Tensor):
            frame.owner.flow.append(Step(name or value.model.name, given, result.shape))
        return result

    def run_model(self, value: ModelValue, positional: list[Any], named: Named) -> Any:
        forward = value.model.forward
        if forward is None:
            raise Issue(NoForward, "give it a forward", model=value.model.name)
        return self.run(FunctionValue(forward, value.unit, value), positional, named)

    # ---- functions

    def function(self, node: Call | Pipe, name: str, value: FunctionValue, positional: list[Any], named: Named) -> Any:
        frame = self.frame
        with frame.checker.following(frame.unit, node.span):
            return self.run(value, positional, named)

    def run(self, value: FunctionValue, positional: list[Any], named: Named) -> Any:
        """Interpret the body of a function on its arguments."""
        frame, function = self.frame, value.function
        parameters = tuple(parameter for parameter in function.parameters if parameter.name != "self")
        bound = function_signature(function).bind(function.name, positional, named)
        key = (id(function), *map(_key_of, bound.values()))
        results = value.owner.results if value.owner is not None else frame.checker.results
        if None not in key and key in results and frame.checker.activations is None:
            return results[key]
        if len(frame.checker.sites) > _DEEPEST_CALL or not frame.checker.spend():
            return UNKNOWN
        inner = type(frame)(frame.checker, value.unit, value.owner, bound)
        symbols: dict[str, Any] = {}
        for parameter in parameters:
            if parameter.type is not None:
                given = bound[parameter.name]
                place = parameter.span
                bound[parameter.name] = inner.check_annotation(parameter.name, parameter.type, given, place, symbols)
        inner.run(function.body)
        result = _result(inner.returned)
        if None not in key:
            results[key] = result
        return result

    def builtin(self, node: Call | Pipe, name: str, value: Builtin, positional: list[Any], named: Named) -> Any:
        spec = value.spec
        return spec.rule(spec.signature.bind(spec.name, positional, named))

    def method(self, node: Call | Pipe, name: str, value: Method, positional: list[Any], named: Named) -> Any:
        return METHODS[value.name](value.tensor, positional, dict(named))

    def python(self, node: Call | Pipe, name: str, value: PythonFunction, positional: list[Any], named: Named) -> Any:
        if value.name == "len" and len(positional) == 1:
            (of,) = positional
            if isinstance(of, Tensor) and of.shape:
                return UNKNOWN if of.shape[0] is None else of.shape[0]
            return len(of) if isinstance(of, list | tuple | str) else UNKNOWN
        if value.name in _NUMERIC and positional and all(isinstance(item, int | float) for item in positional):
            try:
                return _NUMERIC[value.name](*positional)
            except (TypeError, ValueError, OverflowError):
                return UNKNOWN
        if value.name == "abs" and positional and isinstance(positional[0], Tensor):
            return positional[0]
        return UNKNOWN

    def launcher(self, node: Call | Pipe, name: str, value: Launcher, positional: list[Any], named: Named) -> Any:
        plan = launch_plan(value.kernel)
        parameters: list[tuple[str, Any]] = [(parameter, REQUIRED) for parameter in plan.inputs]
        parameters += [(parameter, 1024) for parameter in plan.constants]
        signature = Signature(tuple(parameters))
        bound = signature.bind(name or f"{value.kernel.name}_launcher", positional, named)
        if len(plan.results) != 1:
            return UNKNOWN
        tensors = [item for item in bound.values() if isinstance(item, Tensor)]
        return Tensor(tensors[0].shape, tensors[0].dtype) if tensors else UNKNOWN


_CALLS: Final[dict[type, Any]] = {
    LayerValue: Caller.layer,
    LayerClass: Caller.new_layer,
    ModelValue: Caller.model,
    ModelClass: Caller.new_model,
    FunctionValue: Caller.function,
    Builtin: Caller.builtin,
    Method: Caller.method,
    PythonFunction: Caller.python,
    Launcher: Caller.launcher,
}


def _name_of(callee: Expr) -> str:
    return callee.id if isinstance(callee, Name) else callee.name if isinstance(callee, Attribute) else ""


def _kind_of(value: Any) -> str:
    """A value in words."""
    if isinstance(value, Tensor):
        return f"a tensor {shape_text(value.shape)}"
    return "a data set" if isinstance(value, Dataset) else f"the {type(value).__name__} {value!r}"[:60]


def _key_of(value: Any) -> Any:
    """What a result can be found again by; None if the value has no such key."""
    if isinstance(value, Tensor):
        return None if value.shape is None else (value.shape, value.dtype)
    return (type(value), value) if isinstance(value, bool | int | float | str | Dim) else None


def _result(returned: list[Any]) -> Any:
    return merged(returned) if returned else None


def function_signature(function: Function) -> Signature:
    """The parameters of a function without self; defaults of its own have no known value."""
    return Signature(
        tuple(
            (parameter.name, REQUIRED if parameter.default is None else UNKNOWN)
            for parameter in function.parameters
            if parameter.name != "self"
        )
    )


def instantiate(frame: Frame, model: Model, unit: Unit, positional: list[Any], named: Named) -> ModelValue:
    """An instance of a model: its config with the overrides, and its layers. Raises Issue for wrong overrides."""
    checker = frame.checker
    parameters = Signature(tuple((entry.name, UNKNOWN) for entry in model.config))
    given = parameters.bind(model.name, positional, named)
    overridden = {entry.name for entry in model.config[: len(positional)]} | {name for name, _ in named}
    key: tuple[Any, ...] = (id(model), *((name, _key_of(given[name])) for name in sorted(overridden)))
    found = checker.instances.get(key) if all(value is not None for _, value in key[1:]) else None
    if found is not None:
        # An object of its own, as in the program; what is known of its shapes is shared.
        return ModelValue(model, unit, found.config, found.layers, results=found.results)
    if id(model) in checker.building:
        raise Issue(RecursiveModel, "", model=model.name)
    made = ModelValue(model, unit, {})
    inner = type(frame)(checker, unit, made, {})
    checker.building.append(id(model))
    try:
        for entry in model.config:
            value = given[entry.name] if entry.name in overridden else inner.evaluate(entry.value)
            made.config[entry.name] = value
        for entry in model.layers:
            made.layers[entry.name] = inner.evaluate(entry.value)
    finally:
        checker.building.pop()
    checker.instances[key] = made
    return made


def check_forward(frame: Frame, made: ModelValue) -> None:
    """Run an instance's forward on what its annotations say, or on tensors whose shapes the layers will tell."""
    forward = made.model.forward
    if forward is None or made.inputs:
        return
    inner = type(frame)(frame.checker, made.unit, made, {})
    inner.record = True
    for parameter in forward.parameters:
        if parameter.name == "self":
            continue
        if parameter.default is None and (parameter.type is None or parameter.type.name == "Tensor"):
            tensor = Tensor(inner.declared_shape(parameter.type))
            made.inputs.append(tensor)
            inner.env[parameter.name] = tensor
        else:
            inner.env[parameter.name] = UNKNOWN
    inner.run(forward.body)
    made.outcome = _result(inner.returned)
    for function in made.model.functions:
        if function is not forward:
            check_function(frame, FunctionValue(function, made.unit, made))


def check_function(frame: Frame, value: FunctionValue) -> None:
    """Run a function's body on what its annotations say, as far as they say anything."""
    given = [
        UNKNOWN
        if parameter.type is None or parameter.type.name != "Tensor"
        else Tensor(frame.declared_shape(parameter.type))
        for parameter in value.function.parameters
        if parameter.name != "self"
    ]
    frame.caller.run(value, given, [])
