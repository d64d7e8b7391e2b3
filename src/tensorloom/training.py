"""Train blocks: the tables of optimizers, losses, schedulers, events and options, and their check."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from tensorloom.arguments import Issue, Signature, nearest_hint, signature
from tensorloom.calls import check_forward
from tensorloom.diagnostics import (
    BadOption,
    NoDataShape,
    NotTrainable,
    SoftmaxBeforeLoss,
    UnknownDataset,
    UnknownEvent,
    UnknownOption,
)
from tensorloom.dims import Dim, Shape, evaluate
from tensorloom.interpreter import Checker, Frame
from tensorloom.tree import Argument, Call, Constant, Entry, Every, Expr, Function, Name, Number, String, Train
from tensorloom.values import UNKNOWN, Dataset, FunctionValue, Metrics, ModelValue, Tensor


@dataclass(frozen=True, slots=True)
class OptimizerSpec:
    """`states`: tensors of the size of a weight that it keeps for each; `momentum`: one more if that is set."""

    torch: str
    signature: Signature
    states: int
    momentum: bool = False


@dataclass(frozen=True, slots=True)
class LossSpec:
    """`classes`: targets are class numbers, so there is an accuracy; `logits`: it applies softmax itself."""

    torch: str
    signature: Signature
    classes: bool = False
    logits: bool = False


@dataclass(frozen=True, slots=True)
class SchedulerSpec:
    """`each`: it steps after each `epoch` or `batch`, or `metric`: after each epoch, with the loss."""

    torch: str
    signature: Signature
    each: str = "epoch"
    emitted: tuple[tuple[str, str], ...] = ()


_ADAM: Final = signature("lr=None betas=None eps=None weight_decay=None amsgrad=None")
OPTIMIZERS: Final = {
    "Adam": OptimizerSpec("Adam", _ADAM, 2),
    "AdamW": OptimizerSpec("AdamW", _ADAM, 2),
    "SGD": OptimizerSpec(
        "SGD", signature("lr=None momentum=None dampening=None weight_decay=None nesterov=None"), 0, momentum=True
    ),
    "RMSprop": OptimizerSpec(
        "RMSprop",
        signature("lr=None alpha=None eps=None weight_decay=None momentum=None centered=None"),
        1,
        momentum=True,
    ),
}
_CROSS: Final = LossSpec(
    "CrossEntropyLoss", signature("weight=None ignore_index=None reduction=None label_smoothing=None"), True, True
)
_NLL: Final = LossSpec("NLLLoss", signature("weight=None ignore_index=None reduction=None"), True)
_MSE: Final = LossSpec("MSELoss", signature("reduction=None"))
_L1: Final = LossSpec("L1Loss", signature("reduction=None"))
_BCE: Final = LossSpec("BCELoss", signature("weight=None reduction=None"))
_BCE_LOGITS: Final = LossSpec("BCEWithLogitsLoss", signature("weight=None reduction=None pos_weight=None"))
_HUBER: Final = LossSpec("HuberLoss", signature("reduction=None delta=None"))
LOSSES: Final = {
    "CrossEntropy": _CROSS, "CrossEntropyLoss": _CROSS, "MSE": _MSE, "MSELoss": _MSE, "L1": _L1, "L1Loss": _L1,
    "BCE": _BCE, "BCELoss": _BCE, "BCEWithLogits": _BCE_LOGITS, "BCEWithLogitsLoss": _BCE_LOGITS,
    "NLL": _NLL, "NLLLoss": _NLL, "Huber": _HUBER, "HuberLoss": _HUBER,
}  # fmt: skip
SCHEDULERS: Final = {
    "StepLR": SchedulerSpec("StepLR", signature("step_size gamma=None")),
    "ExponentialLR": SchedulerSpec("ExponentialLR", signature("gamma")),
    "LinearLR": SchedulerSpec("LinearLR", signature("start_factor=None end_factor=None total_iters=None")),
    "CosineAnnealingLR": SchedulerSpec(
        "CosineAnnealingLR", signature("T_max=None eta_min=None"), emitted=(("T_max", "epochs"),)
    ),
    "OneCycleLR": SchedulerSpec(
        "OneCycleLR", signature("max_lr total_steps=None pct_start=None"), "batch",
        (("total_steps", "epochs * len(batches)"),),
    ),
    "ReduceLROnPlateau": SchedulerSpec(
        "ReduceLROnPlateau", signature("mode=None factor=None patience=None threshold=None"), "metric"
    ),
}  # fmt: skip
PRECISIONS: Final = {
    "fp32": "float32", "float32": "float32", "fp16": "float16", "float16": "float16",
    "bf16": "bfloat16", "bfloat16": "bfloat16",
}  # fmt: skip
EVENTS: Final = ("epoch_start", "epoch_end", "batch_end")
METRICS: Final = Metrics(("epoch", "batch", "loss", "accuracy", "val_loss", "val_accuracy", "lr"))
"""What callbacks are given."""
DATASETS: Final = {"mnist": (1, 28, 28), "fashion_mnist": (1, 28, 28), "cifar10": (3, 32, 32), "cifar100": (3, 32, 32)}
"""The data sets with a name, and the shape of their images."""
UNITS: Final = {"epoch": "epoch", "epochs": "epoch", "step": "step", "steps": "step"}


@dataclass(slots=True)
class Samples:
    """What the data of a train block looks like: shapes without the batch; `kind` of inputs float or int, whose values
    are below `vocabulary`; targets are numbers of one of `classes`, or floats where that is 0."""

    shapes: tuple[tuple[int, ...], ...]
    kinds: tuple[str, ...]
    vocabulary: int
    target: tuple[int, ...]
    classes: int


@dataclass(slots=True)
class TrainPlan:
    """A train block, checked. `class_axis`: of the model's outputs; None where there are no classes."""

    train: Train
    model: ModelValue | None = None
    data: Any = UNKNOWN
    epochs: Expr | None = None
    optimizer: OptimizerSpec = OPTIMIZERS["Adam"]
    optimizer_arguments: list[Argument] = field(default_factory=list)
    loss: LossSpec = _CROSS
    loss_arguments: list[Argument] = field(default_factory=list)
    scheduler: SchedulerSpec | None = None
    scheduler_arguments: list[Argument] = field(default_factory=list)
    precision: str = "float32"
    lr: Expr | None = None
    batch_size: Expr | None = None
    seed: Expr | None = None
    resume: Expr | None = None
    validation: Name | None = None
    shuffle: bool | None = None
    recompute: bool = False
    distributed: bool = False
    compile: bool | None = None
    progress: bool = False
    snapshots: list[Every] = field(default_factory=list)
    callbacks: list[Function] = field(default_factory=list)
    class_axis: int | None = None
    many_inputs: bool = False
    samples: Samples | None = None


def check_train(frame: Frame, train: Train) -> TrainPlan:
    """Check a train block against the model and the data that it names."""
    plan = TrainPlan(train, snapshots=train.snapshots, callbacks=train.callbacks)
    for option in train.options:
        handler = OPTIONS.get(option.name)
        if handler is None:
            hint = nearest_hint(option.name, OPTIONS)
            frame.complain(option.name_span, UnknownOption, hint, name=option.name)
        else:
            try:
                handler(frame, plan, option)
            except Issue as issue:
                frame.report(option.value.span, issue)
    _check_model(frame, plan)
    _check_every(frame, plan)
    for callback in train.callbacks:
        if callback.name not in EVENTS:
            frame.complain(callback.name_span, UnknownEvent, events=", ".join(EVENTS), name=callback.name)
        value = FunctionValue(callback, frame.unit)
        frame.guarded(callback.span, frame.caller.run, value, [METRICS], [])
    return plan


# ---- options ---------------------------------------------------------------------------------------------------------

Handler = Callable[[Frame, TrainPlan, Entry], None]


def _bad(option: Entry, given: str, reason: str, hint: str = "") -> Issue:
    return Issue(BadOption, hint, name=option.name, given=given, reason=reason)


def _text(option: Entry) -> str:
    value = option.value
    if isinstance(value, Name):
        return value.id
    if isinstance(value, Call) and isinstance(value.function, Name):
        return f"{value.function.id}(...)"
    return f'"{value.body}"' if isinstance(value, String) else "..."


def _choose(option: Entry, table: dict[str, Any], what: str) -> tuple[Any, list[Argument]]:
    """The row that `Name` or `Name(arguments)` asks for, and the arguments."""
    value = option.value
    called = value.function if isinstance(value, Call) else value
    if not isinstance(called, Name):
        raise _bad(option, _text(option), f"this is no {what}", f"there are {', '.join(table)}")
    if called.id not in table:
        raise _bad(option, _text(option), f"there is no {what} {called.id}", nearest_hint(called.id, table))
    arguments = value.arguments if isinstance(value, Call) else []
    row = table[called.id]
    positional = [argument for argument in arguments if not argument.name]
    named = [(argument.name, argument) for argument in arguments if argument.name]
    row.signature.bind(called.id, positional, named)
    names = [name for name, _ in row.signature.parameters]
    return row, [
        Argument(argument.span, argument.name or names[i], argument.value) for i, argument in enumerate(arguments)
    ]


def _optimizer(frame: Frame, plan: TrainPlan, option: Entry) -> None:
    plan.optimizer, plan.optimizer_arguments = _choose(option, OPTIMIZERS, "optimizer")
    for argument in plan.optimizer_arguments:
        value = frame.evaluate(argument.value)
        if argument.name == "lr" and isinstance(value, int | float) and value < 0:
            raise _bad(option, _text(option), "a learning rate is not negative")


def _loss(frame: Frame, plan: TrainPlan, option: Entry) -> None:
    plan.loss, plan.loss_arguments = _choose(option, LOSSES, "loss")
    for argument in plan.loss_arguments:
        if argument.name == "reduction" and frame.evaluate(argument.value) != "mean":
            raise _bad(option, _text(option), "training needs the mean over a batch", "leave reduction out")


def _scheduler(frame: Frame, plan: TrainPlan, option: Entry) -> None:
    plan.scheduler, plan.scheduler_arguments = _choose(option, SCHEDULERS, "scheduler")


def _precision(frame: Frame, plan: TrainPlan, option: Entry) -> None:
    value = option.value
    name = value.id if isinstance(value, Name) else value.body if isinstance(value, String) else ""
    if name not in PRECISIONS:
        raise _bad(option, _text(option), "this is no precision", "there are fp32, fp16 and bf16")
    plan.precision = PRECISIONS[name]


def _flag(frame: Frame, option: Entry) -> bool:
    if not isinstance(option.value, Constant) or option.value.value is None:
        raise _bad(option, _text(option), "this is neither true nor false")
    return option.value.value


def _switch(attribute: str) -> Handler:
    def handler(frame: Frame, plan: TrainPlan, option: Entry) -> None:
        setattr(plan, attribute, _flag(frame, option))

    return handler


def _checkpoint(frame: Frame, plan: TrainPlan, option: Entry) -> None:
    try:
        plan.recompute = _flag(frame, option)
    except Issue as issue:
        issue.hint = "`checkpoint = true` computes activations again; `checkpoint every 2 epochs` saves the model"
        raise


def _count(attribute: str, lowest: int) -> Handler:
    """A whole number, at least `lowest`, or an expression that is not known yet."""

    def handler(frame: Frame, plan: TrainPlan, option: Entry) -> None:
        value = frame.evaluate(option.value)
        if value is not UNKNOWN and (not isinstance(value, int) or isinstance(value, bool) or value < lowest):
            raise _bad(option, str(value), f"this is no whole number from {lowest}")
        setattr(plan, attribute, option.value)

    return handler


def _seed(frame: Frame, plan: TrainPlan, option: Entry) -> None:
    if not isinstance(option.value, Number) or not isinstance(option.value.value, int):
        # It is set before anything of the program runs.
        raise _bad(option, _text(option), "a seed is a whole number, written as such")
    plan.seed = option.value


def _lr(frame: Frame, plan: TrainPlan, option: Entry) -> None:
    value = frame.evaluate(option.value)
    if value is not UNKNOWN and (isinstance(value, bool) or not isinstance(value, int | float) or value < 0):
        raise _bad(option, str(value), "a learning rate is a number that is not negative")
    plan.lr = option.value


def _resume(frame: Frame, plan: TrainPlan, option: Entry) -> None:
    value = frame.evaluate(option.value)
    if value is not UNKNOWN and not isinstance(value, bool | str):
        raise _bad(option, str(value), "this is neither true, for the newest snapshot, nor the name of a file")
    plan.resume = None if value is False else option.value


def _validation(frame: Frame, plan: TrainPlan, option: Entry) -> None:
    if not isinstance(option.value, Name):
        raise _bad(option, _text(option), "this is not the name of a data set")
    plan.validation = option.value


OPTIONS: Final[dict[str, Handler]] = {
    "epochs": _count("epochs", 0),
    "optimizer": _optimizer,
    "loss": _loss,
    "precision": _precision,
    "checkpoint": _checkpoint,
    "distributed": _switch("distributed"),
    "batch_size": _count("batch_size", 1),
    "lr": _lr,
    "shuffle": _switch("shuffle"),
    "scheduler": _scheduler,
    "validation": _validation,
    "resume": _resume,
    "progress": _switch("progress"),
    "compile": _switch("compile"),
    "seed": _seed,
}


def _check_every(frame: Frame, plan: TrainPlan) -> None:
    for every in plan.snapshots:
        if every.unit not in UNITS:
            hint = "units are epochs and steps"
            frame.complain(
                every.unit_span, BadOption, hint, name="checkpoint every", given=every.unit, reason="no such unit"
            )
        value = frame.evaluate(every.count)
        if value is not UNKNOWN and (not isinstance(value, int) or isinstance(value, bool) or value < 1):
            reason = "this is no whole number from 1"
            frame.complain(every.count.span, BadOption, "", name="checkpoint every", given=str(value), reason=reason)


# ---- the model and its data ------------------------------------------------------------------------------------------


def _check_model(frame: Frame, plan: TrainPlan) -> None:
    train = plan.train
    model, data = frame.evaluate(train.model), frame.evaluate(train.data)
    plan.data = data
    if not isinstance(model, ModelValue):
        if model is not UNKNOWN:
            frame.complain(train.model.span, NotTrainable, name=train.model.id)
        return
    plan.model = model
    check_forward(frame, model)
    outcome = model.outcome
    plan.many_inputs = len(model.inputs) > 1
    if isinstance(outcome, Tensor):
        if plan.loss.logits and outcome.last == "softmax":
            loss = plan.loss.torch.removesuffix("Loss")
            frame.complain(train.model.span, SoftmaxBeforeLoss, model=model.model.name, loss=loss)
        if plan.loss.classes:
            plan.class_axis = _class_axis(model, outcome)
    if isinstance(data, list) and data and isinstance(data[0], list | tuple) and len(data[0]) == 2:
        given = data[0][0]
        inputs = list(given) if plan.many_inputs and isinstance(given, list | tuple) else [given]
        with frame.checker.following(frame.unit, train.data.span):
            frame.guarded(train.data.span, frame.caller.run_model, model, inputs, [])
    if isinstance(data, Dataset):
        if data.name is not None and data.name and data.name not in DATASETS:
            known = ", ".join(DATASETS)
            frame.complain(train.data.span, UnknownDataset, known=known, name=data.name)
        elif not any(found.severity == "error" for found in frame.checker.diagnostics):
            samples = frame.guarded(train.data.span, _samples, frame, plan, model, data)
            plan.samples = samples if isinstance(samples, Samples) else None


def _class_axis(model: ModelValue, outcome: Tensor) -> int:
    """1 after a convolution, else the last."""
    convolution = bool(model.flow) and model.flow[-1].conv
    return 1 if convolution and outcome.shape is not None and len(outcome.shape) > 2 else -1


_LENGTHS: Final = (16, 8, 32, 4, 64, 128, 256, 512)
_SIDES: Final = (28, 32, 16, 64, 8, 224, 96, 128)


def _samples(frame: Frame, plan: TrainPlan, model: ModelValue, data: Dataset) -> Samples:
    """The shapes of data for a model: sizes that nothing fixes are tried until the model accepts them."""
    named = DATASETS.get(data.name or "")
    for tensor in model.inputs:
        if tensor.shape is None or not tensor.shape or any(size is None for size in tensor.shape):
            if named and len(model.inputs) == 1:
                tensor = Tensor((None, *named), "float")
                model.inputs = [tensor]
                continue
            raise Issue(NoDataShape, reason="no layer says what the input is")
    for shapes in candidate_shapes(model.inputs):
        outcome = try_shapes(frame, model, [(64, *shape) for shape in shapes])
        if outcome is None:
            continue
        if outcome.shape is None or any(not isinstance(size, int) for size in outcome.shape):
            raise Issue(NoDataShape, reason="the shape of the output is not known")
        sizes = tuple(size for size in outcome.shape if isinstance(size, int))
        if not sizes:
            raise Issue(NoDataShape, reason="the model gives a single number")
        kinds = tuple("int" if tensor.dtype == "int" else "float" for tensor in model.inputs)
        target, classes = sizes[1:], 0
        if plan.class_axis is not None and len(sizes) > 1:
            axis = plan.class_axis % len(sizes)
            classes, target = sizes[axis], sizes[1:axis] + sizes[axis + 1 :]
        return Samples(tuple(shapes), kinds, _vocabulary(model), target, classes)
    raise Issue(NoDataShape, reason="no size of the input fits the layers")


def candidate_shapes(inputs: list[Tensor]) -> Iterator[list[tuple[int, ...]]]:
    """Shapes without batches for inputs whose symbols may be anything."""
    for length, side in zip(_LENGTHS, _SIDES, strict=True):
        yield [_sized(tensor.shape, length, side) for tensor in inputs]


def _sized(shape: Shape | None, length: int, side: int) -> tuple[int, ...]:
    """A shape without its batch, symbols replaced: sides of images, else lengths of sequences."""
    assert shape is not None
    number = side if len(shape) == 4 else length
    names = {name: number for size in shape[1:] if isinstance(size, Dim) for name, _ in size.terms}
    return tuple(max(1, evaluate(size, names) or number) for size in shape[1:])


def try_shapes(
    frame: Frame, model: ModelValue, shapes: list[tuple[int, ...]], activations: list[Tensor] | None = None
) -> Tensor | None:
    """The model's output for inputs of these shapes; None if it does not accept them. `activations` receives the
    outputs of its layers."""
    checker = Checker(globals=frame.checker.globals, activations=activations)
    trial = type(frame)(checker, frame.unit, None, {})
    tensors = [Tensor(shape, tensor.dtype) for shape, tensor in zip(shapes, model.inputs, strict=True)]
    fresh = ModelValue(model.model, model.unit, model.config, model.layers)
    try:
        outcome = trial.caller.run_model(fresh, tensors, [])
    except Issue:
        return None
    return outcome if isinstance(outcome, Tensor) and not checker.diagnostics else None


def _vocabulary(model: ModelValue) -> int:
    """The smallest number of embeddings that a model, or a model in it, has; 2 without any."""
    sizes: list[int] = []
    queue: list[Any] = list(model.layers.values())
    while queue:
        value = queue.pop()
        if isinstance(value, ModelValue):
            queue += value.layers.values()
        elif hasattr(value, "parts"):
            queue += value.parts
            size = value.arguments.get("num_embeddings")
            if isinstance(size, int):
                sizes.append(size)
    return min(sizes, default=2)
