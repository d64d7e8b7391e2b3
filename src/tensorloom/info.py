"""`tlc info`: weights of each layer, and memory for training at a batch size, for each instance of a program."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tensorloom.arguments import Issue
from tensorloom.dims import Shape, numel
from tensorloom.driver import Checked
from tensorloom.interpreter import Frame
from tensorloom.layers import LAYERS, known_int
from tensorloom.training import OPTIMIZERS, TrainPlan, candidate_shapes, try_shapes
from tensorloom.values import LayerValue, ModelValue, Tensor


@dataclass(frozen=True, slots=True)
class LayerInfo:
    """`weights`: None if a size is not known."""

    name: str
    kind: str
    weights: int | None


@dataclass(frozen=True, slots=True)
class ModelInfo:
    """`optimizer`: what training uses, with how many numbers it keeps for a weight. `activations`: elements of the
    outputs of all layers for inputs of `shapes`; None if they are not known."""

    name: str
    model: str
    config: dict[str, Any]
    layers: list[LayerInfo]
    optimizer: str
    states: int
    batch: int
    shapes: list[Shape]
    activations: int | None

    @property
    def weights(self) -> int | None:
        counts = [layer.weights for layer in self.layers]
        return None if None in counts else sum(count for count in counts if count is not None)


def model_infos(checked: Checked, batch: int) -> list[ModelInfo]:
    """One for each instance that a variable holds, or for each model of the file where there is none."""
    return [_model_info(checked, name, made, batch) for name, made in checked.instances().items()]


def _model_info(checked: Checked, name: str, made: ModelValue, batch: int) -> ModelInfo:
    plan = next((plan for plan in checked.trains.values() if plan.train.model.id == name), None)
    optimizer, states = _optimizer(checked, plan)
    shapes, activations = _activations(checked, made, batch)
    layers = []
    counted: list[Any] = []
    for layer, value in made.layers.items():
        # A second name for the same layer has no weights of its own.
        shared = any(value is other for other in counted)
        counted.append(value)
        layers.append(LayerInfo(layer, _kind(value), 0 if shared else _known_weights(value)))
    return ModelInfo(name, made.model.name, made.config, layers, optimizer, states, batch, shapes, activations)


def _optimizer(checked: Checked, plan: TrainPlan | None) -> tuple[str, int]:
    if plan is None:
        return "Adam", OPTIMIZERS["Adam"].states
    frame = Frame(checked.checker, checked.unit, None, checked.values)
    momentum = 0
    for argument in plan.optimizer_arguments:
        if argument.name == "momentum" and plan.optimizer.momentum and frame.evaluate(argument.value) != 0:
            momentum = 1
    return plan.optimizer.torch, plan.optimizer.states + momentum


def _kind(value: Any) -> str:
    if isinstance(value, LayerValue):
        return value.spec.name
    return value.model.name if isinstance(value, ModelValue) else "Parameter" if isinstance(value, Tensor) else "value"


def _known_weights(value: Any) -> int | None:
    try:
        return weights(value)
    except Issue:
        return None


def weights(value: Any) -> int:
    """The number of weights of a layer or model, as torch counts parameters. Raises Issue if a size is not known."""
    if isinstance(value, ModelValue):
        different = {id(layer): layer for layer in value.layers.values()}
        return sum(weights(layer) for layer in different.values())
    if isinstance(value, Tensor):
        return _tensor_weights(value)
    if not isinstance(value, LayerValue):
        return 0
    if value.spec.call == "repeat":
        return weights(value.parts[0]) * known_int(value.arguments["times"])
    return value.spec.count(value.arguments) + sum(weights(part) for part in value.parts)


def _tensor_weights(value: Tensor) -> int:
    return LAYERS["Parameter"].count({"sizes": value.shape or ()}) if value.last == "Parameter" else 0


def _activations(checked: Checked, made: ModelValue, batch: int) -> tuple[list[Shape], int | None]:
    """The shapes of the inputs, and the elements of all outputs of layers."""
    frame = Frame(checked.checker, checked.unit, None, {})
    if not made.inputs or any(tensor.shape is None or None in tensor.shape for tensor in made.inputs):
        return [], None
    for shapes in candidate_shapes(made.inputs):
        outputs: list[Tensor] = []
        given = [(batch, *shape) for shape in shapes]
        if try_shapes(frame, made, given, outputs) is None:
            continue
        counts = [None if output.shape is None else numel(output.shape) for output in outputs]
        total = None if None in counts else sum(count for count in counts if count is not None)
        return list(given), total
    return [], None
