"""Train blocks as Python: one function with the loop, which is then called."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

from tensorloom.emit_expressions import ExpressionWriter
from tensorloom.operators import OR
from tensorloom.python_names import variable
from tensorloom.text import Origin, PythonText
from tensorloom.training import UNITS, TrainPlan
from tensorloom.tree import Argument, Expr, Name, walk
from tensorloom.values import Tensor

_DEFAULT_EPOCHS: Final = "10"


class TrainingWriter:
    """Writes the function of one train block. `name`: of the function."""

    def __init__(self, out: PythonText, writer: ExpressionWriter, plan: TrainPlan, name: str, origin: Origin) -> None:
        self.out = out
        self.writer = writer
        self.plan = plan
        self.name = name
        self.origin = origin
        self.parameters: list[str] = []
        self.callbacks: dict[str, list[str]] = {}
        self.imports: dict[str, None] = {}

    def need(self, snippet: str) -> str:
        self.writer.needs.snippets[snippet] = None
        return snippet

    # ---- values that the user wrote

    def value(self, expr: Expr, parameter: str) -> str:
        """The text for an option's value. One with names of the program becomes a parameter's default, which is
        evaluated where the function's own names are not yet there."""
        text = self.writer.text(expr, OR)
        if not any(isinstance(node, Name) for node in walk(expr)):
            return text
        self.parameters.append(f"{parameter}={text}")
        return parameter

    def arguments(self, what: str, arguments: list[Argument]) -> list[str]:
        return [f"{argument.name}={self.value(argument.value, f'{what}_{argument.name}')}" for argument in arguments]

    # ---- the function

    def write(self) -> None:
        plan, train = self.plan, self.plan.train
        body = PythonText(self.out.comments)
        epochs = _DEFAULT_EPOCHS if plan.epochs is None else self.writer.text(plan.epochs, OR)
        if plan.validation is not None:
            self.write_evaluation()
        self.out.blank(2)
        outer, self.out = self.out, body
        body.depth = 1
        self.write_setup()
        self.write_loop()
        if plan.distributed:
            body.add("dist.barrier()")
            body.add("dist.destroy_process_group()")
        self.out = outer
        parameters = ["model", "data", f"epochs={epochs}", *self.parameters]
        outer.add(f"def {self.name}({', '.join(parameters)}):", self.origin)
        outer.lines += body.lines
        outer.origins += body.origins
        outer.blank(2)
        outer.add(f"{self.name}({variable(train.model.id)}, {variable(train.data.id)})", self.origin)

    def write_setup(self) -> None:
        plan, add = self.plan, self.out.add
        if plan.distributed:
            add(f"{self.need('start_processes')}()")
        if plan.recompute:
            self.write_recomputation()
        if plan.compile:
            add('model.compile(mode="max-autotune")')
        if plan.distributed:
            add('ids = [device.index] if device.type == "cuda" else None')
            add("network = DistributedDataParallel(model, device_ids=ids)")
            self.imports["from torch.nn.parallel import DistributedDataParallel"] = None
        add(f"batches = {self.batches('data', plan.shuffle)}")
        if plan.validation is not None:
            add(f"held_out = {self.held_out()}")
        self.write_optimizer()
        add(f"criterion = nn.{plan.loss.torch}({', '.join(self.arguments('loss', plan.loss_arguments))})")
        if plan.scheduler is not None:
            self.write_scheduler()
        if plan.precision != "float32":
            self.write_precision()
        if self.callbacks:
            add("metrics = SimpleNamespace(epoch=0, batch=0, loss=math.nan, accuracy=math.nan)")
            add("metrics.val_loss = metrics.val_accuracy = math.nan")
            self.imports["from types import SimpleNamespace"] = None
            self.imports["import math"] = None
        self.write_resume()

    def write_recomputation(self) -> None:
        model = self.plan.model
        classes: list[str] = []
        if model is not None:
            for (home, name), text in self.writer.names.items():
                if any(home == id(made.unit) and name == made.model.name for made in _inner_models(model)):
                    classes.append(text)
        kinds = ", ".join(classes) + ("," if len(classes) == 1 else "")
        self.out.add(f"{self.need('recompute_activations')}(model, ({kinds}))")

    def batches(self, data: str, shuffle: bool | None) -> str:
        plan = self.plan
        extra = [] if plan.batch_size is None else [f"batch_size={self.value(plan.batch_size, 'batch_size')}"]
        extra += [] if shuffle is None else [f"shuffle={shuffle}"]
        if plan.distributed:
            return f"{self.need('share_of')}({', '.join([data, *extra])})"
        return f"{self.need('batches_of')}({', '.join([data, *extra])})" if extra else data

    def held_out(self) -> str:
        assert self.plan.validation is not None
        name = self.writer.name(self.plan.validation)
        self.parameters.append(f"validation={name}")
        return f"{self.need('share_of')}(validation, shuffle=False)" if self.plan.distributed else "validation"

    def write_optimizer(self) -> None:
        plan = self.plan
        given = self.arguments("optimizer", plan.optimizer_arguments)
        if plan.lr is not None and not any(argument.name == "lr" for argument in plan.optimizer_arguments):
            given.insert(0, f"lr={self.value(plan.lr, 'lr')}")
        self.out.add(f"optimizer = optim.{plan.optimizer.torch}({', '.join(['model.parameters()', *given])})")

    def write_scheduler(self) -> None:
        plan, spec = self.plan, self.plan.scheduler
        assert spec is not None
        given = ["optimizer", *self.arguments("scheduler", plan.scheduler_arguments)]
        names = {argument.name for argument in plan.scheduler_arguments}
        given += [f"{name}={default}" for name, default in spec.emitted if name not in names]
        self.out.add(f"scheduler = optim.lr_scheduler.{spec.torch}({', '.join(given)})")

    def write_precision(self) -> None:
        add = self.out.add
        if self.plan.precision == "float16":
            add('precision = torch.float16 if device.type == "cuda" else torch.bfloat16')
            add('scaler = torch.amp.GradScaler(enabled=device.type == "cuda")')
            with self.out.block(
                'if device.type != "cuda":' if not self.plan.distributed else 'if device.type != "cuda" and rank == 0:'
            ):
                add('print("fp16 needs a GPU; this run uses bf16")')
        else:
            add("precision = torch.bfloat16")

    @property
    def scaled(self) -> bool:
        return self.plan.precision == "float16"

    def state(self) -> str:
        """The arguments of the functions that save and load snapshots, behind the path."""
        scheduler = "scheduler" if self.plan.scheduler is not None else "None"
        return f"model, optimizer, {scheduler}, {'scaler' if self.scaled else 'None'}"

    def write_resume(self) -> None:
        plan, add = self.plan, self.out.add
        if plan.resume is None:
            if self.counts_steps:
                add("step = 0")
            return
        self.need("save_snapshot")
        path = self.value(plan.resume, "resume")
        add(f"done, step = load_snapshot({path}, {self.state()})")

    @property
    def counts_steps(self) -> bool:
        return bool(self.plan.snapshots) or self.plan.resume is not None

    # ---- the loop

    def write_loop(self) -> None:
        plan, out = self.plan, self.out
        first = "done + 1" if plan.resume is not None else "1"
        with out.block(f"for epoch in range({first}, epochs + 1):"):
            out.add("started = time.perf_counter()")
            self.imports["import time"] = None
            if plan.distributed:
                with out.block('if isinstance(getattr(batches, "sampler", None), DistributedSampler):'):
                    out.add("batches.sampler.set_epoch(epoch)")
            if self.callbacks:
                out.add("metrics.epoch, metrics.batch = epoch, 0")
                out.add('metrics.lr = optimizer.param_groups[0]["lr"]')
            self.call_back("epoch_start")
            out.add("model.train()")
            out.add("total_loss, correct, labels, samples = 0.0, 0, 0, 0")
            bar = self.batch_iterable()
            with out.block(f"for inputs, targets in {bar}:"):
                self.write_step()
            self.write_epoch_end()

    def batch_iterable(self) -> str:
        if not self.plan.progress:
            return "batches"
        bar = f'{self.need("show_progress")}(batches, f"epoch {{epoch}}")'
        return f"({bar} if rank == 0 else batches)" if self.plan.distributed else bar

    def write_moves(self) -> None:
        if self.plan.many_inputs:
            self.out.add("inputs = [part.to(device) for part in inputs]")
            self.out.add("targets = targets.to(device)")
        else:
            self.out.add("inputs, targets = inputs.to(device), targets.to(device)")

    def write_forward(self, network: str) -> None:
        """Outputs and loss, from here on with one row for each label."""
        plan, out = self.plan, self.out
        inputs = "*inputs" if plan.many_inputs else "inputs"

        def compute() -> None:
            out.add(f"outputs = {network}({inputs})")
            self.write_flattening()
            out.add("loss = criterion(outputs, targets)")

        if plan.precision == "float32":
            compute()
        else:
            with out.block("with torch.autocast(device.type, dtype=precision):"):
                compute()

    def write_flattening(self) -> None:
        """Classes of sequences stand in the last dimension; losses want one row for each label."""
        plan, out = self.plan, self.out
        outcome = plan.model.outcome if plan.model is not None else None
        shape = outcome.shape if isinstance(outcome, Tensor) else None
        if plan.class_axis != -1 or (shape is not None and len(shape) == 2):
            return
        text = "outputs, targets = outputs.flatten(0, -2), targets.flatten()"
        if shape is not None:
            out.add(text)
            return
        with out.block("if outputs.dim() > 2:"):
            out.add(text)

    def write_step(self) -> None:
        plan, add = self.plan, self.out.add
        self.write_moves()
        add("size = len(targets)")
        add("optimizer.zero_grad()")
        self.write_forward("network" if plan.distributed else "model")
        if self.scaled:
            add("scaler.scale(loss).backward()")
            add("scaler.step(optimizer)")
            add("scaler.update()")
        else:
            add("loss.backward()")
            add("optimizer.step()")
        if plan.scheduler is not None and plan.scheduler.each == "batch":
            add("scheduler.step()")
        add("samples += size")
        add("total_loss += loss.item() * size")
        self.write_hits()
        if self.counts_steps:
            add("step += 1")
        self.write_snapshots("step")
        if "batch_end" in self.callbacks:
            add("metrics.batch += 1")
            add("metrics.loss = loss.item()")
            if plan.class_axis is not None:
                add("metrics.accuracy = correct / labels")
            self.call_back("batch_end")

    def write_hits(self) -> None:
        if self.plan.class_axis is not None:
            axis = 1 if self.plan.class_axis == 1 else -1
            self.out.add(f"correct += (outputs.argmax({axis}) == targets).sum().item()")
            self.out.add("labels += targets.numel()")

    def write_totals(self) -> None:
        """Sums over all processes, and the means."""
        if self.plan.distributed:
            self.out.add("totals = torch.tensor([total_loss, correct, labels, samples], device=device)")
            self.out.add("dist.all_reduce(totals)")
            self.out.add("total_loss, correct, labels, samples = totals.tolist()")

    def write_epoch_end(self) -> None:
        plan, add = self.plan, self.out.add
        self.write_totals()
        add("mean_loss = total_loss / max(samples, 1)")
        report = ['f"epoch {epoch}/{epochs}: loss {mean_loss:.4f}"']
        if plan.class_axis is not None:
            add("accuracy = correct / max(labels, 1)")
            report.append('f"accuracy {accuracy:.4f}"')
        if plan.validation is not None:
            add(f"val_loss, val_accuracy = {self.name}_evaluate(model, held_out, criterion)")
            report.append('f"validation loss {val_loss:.4f}"')
            report += ['f"accuracy {val_accuracy:.4f}"'] if plan.class_axis is not None else []
        report += ['f"{seconds:.1f} s"', 'sep=", "']
        add("seconds = time.perf_counter() - started")
        if plan.scheduler is not None and plan.scheduler.each != "batch":
            loss = "val_loss" if plan.validation is not None else "mean_loss"
            add(f"scheduler.step({loss if plan.scheduler.each == 'metric' else ''})")
        self.first_process(lambda: add(f"print({', '.join(report)})"))
        if self.callbacks:
            add("metrics.loss = mean_loss")
            add(f"metrics.accuracy = {'accuracy' if plan.class_axis is not None else 'math.nan'}")
            if plan.validation is not None:
                add("metrics.val_loss, metrics.val_accuracy = val_loss, val_accuracy")
        self.write_snapshots("epoch")
        self.call_back("epoch_end")

    def first_process(self, write: Callable[[], Any]) -> None:
        """What only one process does."""
        if not self.plan.distributed:
            write()
            return
        with self.out.block("if rank == 0:"):
            write()

    def write_snapshots(self, unit: str) -> None:
        for i, every in enumerate(self.plan.snapshots):
            if UNITS.get(every.unit) != unit:
                continue
            count = self.value(every.count, f"every_{unit}" + (f"_{i}" if i else ""))
            condition = f"{unit} % {count} == 0"
            if self.plan.distributed:
                condition = f"rank == 0 and {condition}"
            path = f'f"checkpoint_{unit}_{{{unit}}}.pt"'
            with self.out.block(f"if {condition}:"):
                self.out.add(f"{self.need('save_snapshot')}({path}, {self.state()}, epoch, step)")

    def call_back(self, event: str) -> None:
        names = self.callbacks.get(event, [])
        if names:
            self.first_process(lambda: self.add_all(f"{name}(metrics)" for name in names))

    def add_all(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.out.add(line)

    def write_evaluation(self) -> None:
        """The function that measures a model on the data held out."""
        plan, out = self.plan, self.out
        out.blank(2)
        out.add("@torch.no_grad()")
        with out.block(f"def {self.name}_evaluate(model, batches, criterion):"):
            out.add("model.eval()")
            out.add("total_loss, correct, labels, samples = 0.0, 0, 0, 0")
            with out.block("for inputs, targets in batches:"):
                self.write_moves()
                out.add("size = len(targets)")
                precision, plan.precision = plan.precision, "float32"
                self.write_forward("model")
                plan.precision = precision
                out.add("samples += size")
                out.add("total_loss += loss.item() * size")
                self.write_hits()
            self.write_totals()
            self.imports["import math"] = None
            accuracy = "correct / max(labels, 1)" if plan.class_axis is not None else "math.nan"
            out.add(f"return total_loss / max(samples, 1), {accuracy}")


def _inner_models(model: Any) -> list[Any]:
    """A model and the models among its layers, all the way down."""
    found, queue = [], [model]
    while queue:
        value = queue.pop()
        if hasattr(value, "layers"):
            found.append(value)
            queue += value.layers.values()
        elif hasattr(value, "parts"):
            queue += value.parts[:1] if value.spec.call == "repeat" else value.parts
    return found
