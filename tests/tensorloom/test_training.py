"""Train blocks: every option does what it says, and wrong ones are reported."""

from __future__ import annotations

import math
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tensorloom.driver import check_file
from tensorloom.emit import emit
from tensorloom.training import EVENTS, LOSSES, OPTIMIZERS, OPTIONS, PRECISIONS, SCHEDULERS
from tests.tensorloom.programs import ENVIRONMENT, checked, losses, message, printed, problems, python

torch = pytest.importorskip("torch")

GALLERY = Path(__file__).resolve().parents[2] / "examples" / "tensorloom"


def one_layer(layer: str, result: str) -> str:
    return f"model Net:\n    layer a = {layer}\n    fn forward(self, x):\n        return {result}\nlet net = Net()\n"


NET = """
model Net:
    layer a = Linear(6, 8)
    layer b = Linear(8, 3)
    fn forward(self, x):
        return self.a(x) |> tanh |> self.b
let net = Net()
"""
DATA = "let data = load_dataset(batch_size=16, num_samples=48)\n"


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def train(*options: str, model: str = NET, data: str = DATA) -> str:
    options = options or ("pass",)
    return model + data + "train net on data:\n" + "".join(f"    {line}\n" for line in options)


def test_loss_is_the_mean_over_samples(tmp_path: Path) -> None:
    """A model that knows nothing has the loss ln 10, whatever the batches are."""
    model = one_layer("Linear(4, 10)", "self.a(x) * 0.0")
    data = "let data = load_dataset(batch_size=7, num_samples=30)\n"
    assert losses(printed(train("epochs = 1", model=model, data=data), tmp_path)) == [round(math.log(10), 4)]


def test_training_is_that_of_a_plain_loop(tmp_path: Path) -> None:
    text = train(
        "epochs = 2", "optimizer = SGD(0.1, momentum=0.5)", "seed = 3", data=DATA.replace("48", "48, shuffle=false")
    )
    found = losses(printed(text, tmp_path))
    torch.manual_seed(3)
    namespace: dict[str, Any] = {}
    source = python(text)
    exec(source[: source.index("\ndef train_net")], namespace)
    net, data = namespace["net"], namespace["data"]
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.5)
    expected = []
    for _ in range(2):
        total = 0.0
        for inputs, targets in data:
            optimizer.zero_grad()
            loss = torch.nn.functional.cross_entropy(net(inputs), targets)
            loss.backward()
            optimizer.step()
            total += loss.item() * len(inputs)
        expected.append(round(total / 48, 4))
    assert found == expected


@pytest.mark.parametrize(
    ("option", "text"),
    [
        ("optimizer = Adam", "optim.Adam(model.parameters())"),
        ("optimizer = AdamW(0.1)", "optim.AdamW(model.parameters(), lr=0.1)"),
        ("optimizer = RMSprop(lr=0.1, momentum=0.9)", "optim.RMSprop(model.parameters(), lr=0.1, momentum=0.9)"),
        ("optimizer = Adam(betas=[0.9, 0.99])", "optim.Adam(model.parameters(), betas=[0.9, 0.99])"),
        ("lr = 0.5", "optim.Adam(model.parameters(), lr=0.5)"),
        ("loss = CrossEntropyLoss(label_smoothing=0.1)", "nn.CrossEntropyLoss(label_smoothing=0.1)"),
        ("loss = NLLLoss", "nn.NLLLoss()"),
        ("loss = HuberLoss(delta=2.0)", "nn.HuberLoss(delta=2.0)"),
        ("scheduler = CosineAnnealingLR", "optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=epochs)"),
        ("scheduler = StepLR(2, gamma=0.5)", "optim.lr_scheduler.StepLR(optimizer, step_size=2, gamma=0.5)"),
        ("epochs = 4", "def train_net(model, data, epochs=4):"),
        ("loss = CrossEntropy", "def train_net(model, data, epochs=10):"),
        ("precision = bf16", "with torch.autocast(device.type, dtype=precision):"),
        ('precision = "fp16"', 'torch.amp.GradScaler(enabled=device.type == "cuda")'),
        ("compile = true", 'model.compile(mode="max-autotune")'),
    ],
)
def test_options_in_the_text(option: str, text: str) -> None:
    assert text in python(train(option))


def test_compilation_is_for_gpus_or_on_request() -> None:
    on_gpu = 'if device.type == "cuda":\n    net.compile(mode="max-autotune")'
    assert on_gpu in python(train())
    assert on_gpu not in python(train("compile = false"))
    assert python(train("compile = true")).count("compile(mode") == 1


def test_options_may_use_variables_of_any_name(tmp_path: Path) -> None:
    text = "let epochs = 2\nlet lr = 0.1\nlet optimizer = 3\nlet batches = 1\n" + train(
        "epochs = epochs * 1", "optimizer = SGD(lr=lr)"
    )
    assert len(losses(printed(text, tmp_path))) == 2
    assert "optimizer_lr=lr" in python(text)


@pytest.mark.parametrize("name", sorted(OPTIMIZERS))
def test_every_optimizer_trains(name: str, tmp_path: Path) -> None:
    found = losses(printed(train("epochs = 2", f"optimizer = {name}(lr=0.01)", "seed = 0"), tmp_path))
    assert found[1] < found[0]


@pytest.mark.parametrize("name", sorted(SCHEDULERS))
def test_every_scheduler_steps(name: str, tmp_path: Path) -> None:
    needed = {"StepLR": "step_size=1", "ExponentialLR": "gamma=0.5", "OneCycleLR": "max_lr=0.1"}
    options = [
        f"scheduler = {name}({needed.get(name, '')})",
        "epochs = 3",
        "optimizer = SGD(lr=0.1)",
        "on epoch_end(m):",
        "    print(m.lr)",
    ]
    rates = re.findall(r"^[\d.e-]+$", printed(train(*options), tmp_path), re.MULTILINE)
    assert len(rates) == 3
    assert len(set(rates)) > 1 or name == "ReduceLROnPlateau"


@pytest.mark.parametrize("name", sorted(LOSSES))
def test_every_loss_trains(name: str, tmp_path: Path) -> None:
    model = NET.replace("|> self.b\n", "|> self.b |> sigmoid\n") if name.startswith("BCE") else NET
    if name.startswith("NLL"):
        model = NET.replace("|> self.b\n", "|> self.b |> log_softmax\n")
    data = DATA
    if name.startswith("BCE"):
        data = "let x = randn(8, 6)\nlet t = (randn(8, 3) > 0.0).float()\nlet data = [[x, t]]\n"
    output = printed(train("epochs = 2", f"loss = {name}", "seed = 0", model=model, data=data), tmp_path)
    found = losses(output)
    assert found[1] < found[0]
    assert ("accuracy" in output) == LOSSES[name].classes


@pytest.mark.parametrize("name", sorted(PRECISIONS))
def test_every_precision_trains(name: str, tmp_path: Path) -> None:
    output = printed(train("epochs = 2", f"precision = {name}", "seed = 0"), tmp_path)
    assert losses(output)[1] < losses(output)[0]
    assert output.count("this run uses bf16") == (PRECISIONS[name] == "float16")


def test_data_is_anything_that_gives_pairs(tmp_path: Path) -> None:
    data = "let x = ones(4, 6)\nlet t = tensor([0, 1, 2, 0])\nlet data = [[x, t], [x, t]]\n"
    assert len(losses(printed(train("epochs = 2", data=data), tmp_path))) == 2


def test_batch_size_and_shuffle_of_the_block(tmp_path: Path) -> None:
    options = ["epochs = 1", "batch_size = 6", "shuffle = false", "on batch_end(m):", '    print(f"b{m.batch}")']
    output = printed(train(*options), tmp_path)
    assert re.findall(r"^b\d+$", output, re.M) == [f"b{number}" for number in range(1, 9)]


def test_several_inputs(tmp_path: Path) -> None:
    model = """
model Net:
    layer a = Linear(6, 3)
    layer b = Embedding(5, 3)
    fn forward(self, x, k: Tensor[B]):
        return self.a(x) + self.b(k)
let net = Net()
"""
    assert len(losses(printed(train("epochs = 2", model=model), tmp_path))) == 2


def test_two_blocks_for_one_model(tmp_path: Path) -> None:
    text = train("epochs = 1") + "train net on data:\n    epochs = 2\n    optimizer = SGD\n"
    assert len(losses(printed(text, tmp_path))) == 3


# ---- events, validation, progress ------------------------------------------------------------------------------------


def test_events_and_metrics(tmp_path: Path) -> None:
    text = train(
        "epochs = 2",
        "batch_size = 24",
        "on epoch_start(m):",
        '    print(f"start {m.epoch}")',
        "on batch_end(m):",
        '    print(f"batch {m.batch} {m.loss > 0.0} {m.accuracy <= 1.0}")',
        "on epoch_end(m):",
        "    seen = seen + m.epoch",
        '    print(f"end {m.epoch} {m.loss:.4f} {m.accuracy:.4f} {m.lr}")',
    )
    output = printed("let seen = 0\n" + text + "print(seen)\n", tmp_path)
    lines = [line.split()[:2] for line in output.splitlines() if not line.startswith("epoch")]
    once = [["batch", "1"], ["batch", "2"]]
    assert lines == [["start", "1"], *once, ["end", "1"], ["start", "2"], *once, ["end", "2"], ["3"]]
    assert [f"{value:.4f}" for value in losses(output)] == re.findall(r"^end \d ([\d.]+)", output, re.MULTILINE)


def test_regression_has_no_accuracy(tmp_path: Path) -> None:
    output = printed(train("epochs = 1", "loss = MSE", "on epoch_end(m):", '    print(f"{m.accuracy}")'), tmp_path)
    assert "nan\n" in output


def test_validation(tmp_path: Path) -> None:
    held = DATA.replace("data =", "held =").replace("48", "48, seed=1, shuffle=false")
    options = [
        "epochs = 3",
        "validation = held",
        "optimizer = Adam(lr=0.05)",
        "on epoch_end(m):",
        '    print(f"v {m.val_loss:.4f} {m.val_accuracy:.4f}")',
    ]
    output = printed(train(*options, data=DATA + held), tmp_path)
    values = [float(value) for value in re.findall(r"^v ([\d.]+)", output, re.MULTILINE)]
    assert len(values) == 3
    assert values[-1] < values[0]


def test_progress_bar(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "program.tl"
    path.write_text(train("epochs = 1", "progress = true"))
    from tensorloom.execution import run

    assert run(emit(check_file(path).require()), str(path.with_suffix(".py")), tmp_path) == 0
    assert "epoch 1 [##############################] 3/3" in capfd.readouterr().err


# ---- snapshots -------------------------------------------------------------------------------------------------------


def test_snapshots_have_plain_keys(tmp_path: Path) -> None:
    printed(train("epochs = 4", "checkpoint every 2 epochs", "checkpoint every 5 steps"), tmp_path)
    names = sorted(path.name for path in tmp_path.glob("*.pt"))
    assert names == ["checkpoint_epoch_2.pt", "checkpoint_epoch_4.pt", "checkpoint_step_10.pt", "checkpoint_step_5.pt"]
    state = torch.load(tmp_path / "checkpoint_epoch_2.pt")
    assert list(state["model"]) == ["a.weight", "a.bias", "b.weight", "b.bias"]
    assert (state["epoch"], state["step"]) == (2, 6)


@pytest.mark.parametrize("choice", ["true", '"checkpoint_epoch_2.pt"'])
def test_resuming_is_as_if_nothing_had_happened(choice: str, tmp_path: Path) -> None:
    data = DATA.replace("48", "48, shuffle=false")
    options = ["optimizer = Adam(lr=0.05)", "scheduler = ExponentialLR(gamma=0.5)", "seed = 1"]
    whole = losses(printed(train("epochs = 4", *options, data=data), tmp_path))
    printed(train("epochs = 2", *options, "checkpoint every 2 epochs", data=data), tmp_path)
    rest = losses(printed(train("epochs = 4", *options, f"resume = {choice}", data=data), tmp_path))
    assert rest == whole[2:]


def test_resume_without_a_snapshot_starts_at_the_beginning(tmp_path: Path) -> None:
    assert len(losses(printed(train("epochs = 2", "resume = true"), tmp_path))) == 2


def test_recomputed_activations_change_nothing(tmp_path: Path) -> None:
    model = """
model Part:
    layer a = Linear(6, 6)
    fn forward(self, x):
        return self.a(x) |> gelu
model Net:
    layer parts = Repeat(Part(), 2)
    layer b = Linear(6, 3)
    fn forward(self, x):
        return self.b(self.parts(x))
let net = Net()
"""
    plain = train("epochs = 2", "seed = 0", model=model)
    again = train("epochs = 2", "seed = 0", "checkpoint = true", model=model)
    assert "recompute_activations(model, (Net, Part))" in python(again).replace("(Part, Net)", "(Net, Part)")
    assert losses(printed(plain, tmp_path)) == losses(printed(again, tmp_path))


# ---- synthetic data --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("layers", "forward", "loss", "samples"),
    [
        ("a = Linear(5, 3)", "self.a(x)", "CrossEntropy", (((5,),), ("float",), (), 3)),
        ("a = Linear(5, 3)", "self.a(x)", "MSE", (((5,),), ("float",), (3,), 0)),
        ("a = Conv2d(3, 4, 3, padding=1)", "self.a(x)", "CrossEntropy", (((3, 28, 28),), ("float",), (28, 28), 4)),
        (
            "a = Conv2d(3, 4, 3); b = Linear(4 * 30 * 30, 2)",
            "self.b(flatten(self.a(x)))",
            "CrossEntropy",
            (((3, 32, 32),), ("float",), (), 2),
        ),
        ("a = Embedding(9, 4); b = Linear(4, 9)", "self.b(self.a(x))", "CrossEntropy", (((16,),), ("int",), (16,), 9)),
        ("a = LayerNorm(4); b = Linear(4, 2)", "self.b(self.a(x))", "CrossEntropy", (((16, 4),), ("float",), (16,), 2)),
        (
            "a = MultiHeadAttention(4, 2); b = Linear(4, 2)",
            "self.b(self.a(x).mean(1))",
            "CrossEntropy",
            (((16, 4),), ("float",), (), 2),
        ),
        ("a = GRU(4, 2)", "self.a(x)", "CrossEntropy", (((16, 4),), ("float",), (16,), 2)),
        ("a = Linear(28 * 28, 3)", "self.a(flatten(x))", "CrossEntropy", (((784,),), ("float",), (), 3)),
    ],
)
def test_data_comes_from_the_model(
    layers: str, forward: str, loss: str, samples: tuple[Any, ...], tmp_path: Path
) -> None:
    rows = "".join(f"    layer {row}\n" for row in layers.split("; "))
    model = f"model Net:\n{rows}    fn forward(self, x):\n        return {forward}\nlet net = Net()\n"
    text = train(
        "epochs = 1", f"loss = {loss}", model=model, data="let data = load_dataset(num_samples=8, batch_size=4)\n"
    )
    (plan,) = checked(text).require().trains.values()
    assert plan.samples is not None
    found = plan.samples
    assert (found.shapes, found.kinds, found.target, found.classes) == samples
    assert len(losses(printed(text, tmp_path))) == 1


def test_named_data_and_modules(tmp_path: Path) -> None:
    model = one_layer("Linear(784, 10)", "self.a(flatten(x))")
    for data in (
        'let data = load_dataset("mnist", num_samples=64)\n',
        "import data.mnist\nlet data = mnist.load(batch_size=32, num_samples=64)\n",
        "import data as sets\nlet data = sets.load_dataset(num_samples=64)\n",
    ):
        assert len(losses(printed(train("epochs = 1", model=model, data=data), tmp_path))) == 1
    assert problems(train(model=model, data='let data = load_dataset("mnits")\n'))[0][0] == "T407"


def test_real_data_is_read_where_torchvision_has_it() -> None:
    """The text asks torchvision for the images; without it, or without files, the samples are synthetic."""
    text = python(
        train(
            data='let data = load_dataset("cifar10")\n',
            model=NET.replace("self.a(x)", "self.a(flatten(x))").replace("Linear(6", "Linear(3 * 32 * 32"),
        )
    )
    assert "from torchvision import datasets" in text


# ---- what is wrong ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("option", "code"),
    [
        ("epoch = 3", "T401"),
        ("epochs = -1", "T402"),
        ("epochs = 2.5", "T402"),
        ("optimizer = Adamm", "T402"),
        ("optimizer = Adam(rl=0.1)", "T301"),
        ("optimizer = Adam(lr=-0.1)", "T402"),
        ("optimizer = 3", "T402"),
        ("loss = CrossEntropi", "T402"),
        ('loss = MSE(reduction="sum")', "T402"),
        ("scheduler = StepLR", "T301"),
        ("precision = fp8", "T402"),
        ("distributed = 1", "T402"),
        ("checkpoint = 2", "T402"),
        ("batch_size = 0", "T402"),
        ("lr = true", "T402"),
        ("resume = 3", "T402"),
        ("validation = 3", "T402"),
        ("seed = 1.5", "T402"),
        ("seed = net", "T402"),
        ("checkpoint every 2 hours", "T402"),
        ("checkpoint every 0 epochs", "T402"),
        ("on epoch_stop(m):\n        pass", "T403"),
        ("epochs = 1\n    epochs = 2", "T108"),
    ],
)
def test_wrong_options(option: str, code: str) -> None:
    assert [found for found, _ in problems(train(option))] == [code]


def test_callbacks_know_what_they_are_given() -> None:
    assert "did you mean accuracy?" in message(train("on epoch_end(m):", "    print(m.acuracy)"))


def test_hints() -> None:
    assert "did you mean epochs?" in message(train("epoch = 3"))
    assert "did you mean AdamW?" in message(train("optimizer = AdanW"))
    assert "checkpoint every 2 epochs" in message(train("checkpoint = 2"))


def test_what_cannot_be_trained() -> None:
    assert [code for code, _ in problems("let net = 3\n" + DATA + "train net on data:\n    epochs = 1\n")] == ["T405"]
    assert [code for code, _ in problems("let net = 3\ntrain net on daat:\n    pass\n")] == ["T405", "T201"]


def test_softmax_before_cross_entropy_is_a_warning() -> None:
    program = checked(train(model=NET.replace("|> self.b\n", "|> self.b |> softmax\n")))
    assert program.ok
    assert [diagnostic.code for diagnostic in program.diagnostics] == ["LOOM-T404"]


def test_data_that_does_not_fit_the_model() -> None:
    data = "let x = ones(4, 5)\nlet t = tensor([0, 1, 2, 0])\nlet data = [[x, t]]\n"
    (found,) = checked(train(data=data)).diagnostics
    assert found.code == "LOOM-T302"


def test_shapes_that_nothing_tells() -> None:
    model = "model Net:\n    fn forward(self, x):\n        return x\nlet net = Net()\n"
    assert [code for code, _ in problems(train(model=model))] == ["T406"]


def test_the_tables_are_the_documented_names() -> None:
    assert sorted(OPTIMIZERS) == ["Adam", "AdamW", "RMSprop", "SGD"]
    assert {"CrossEntropy", "MSE", "L1", "BCEWithLogits", "NLLLoss", "HuberLoss", "BCE"} <= LOSSES.keys()
    assert EVENTS == ("epoch_start", "epoch_end", "batch_end")
    assert {
        "epochs",
        "optimizer",
        "loss",
        "precision",
        "checkpoint",
        "distributed",
        "batch_size",
        "lr",
        "shuffle",
    } <= OPTIONS.keys()


# ---- several processes -----------------------------------------------------------------------------------------------


def test_distributed_alone(tmp_path: Path) -> None:
    """Without other processes, for loaders, data sets and lists."""
    lists = "let x = ones(4, 6)\nlet t = tensor([0, 1, 2, 0])\nlet data = [[x, t], [x, t]]\n"
    for data in (DATA, lists):
        text = train("epochs = 2", "distributed = true", "checkpoint every 2 epochs", "validation = data", data=data)
        output = printed(text + "print(rank, world_size)\n".replace("rank, world_size", "1"), tmp_path)
        assert len(losses(output)) == 2
    assert list(torch.load(tmp_path / "checkpoint_epoch_2.pt")["model"]) == ["a.weight", "a.bias", "b.weight", "b.bias"]


def test_two_processes_have_the_losses_of_one(tmp_path: Path) -> None:
    for path in (GALLERY / "transformer.nml", GALLERY / "train_transformer.tl"):
        (tmp_path / path.name).write_text(path.read_text())
    program = tmp_path / "train_transformer.tl"
    command = [sys.executable, "-m", "tensorloom", "run", str(program), "--processes", "2"]
    environment = {**ENVIRONMENT, "OMP_NUM_THREADS": "1"}
    environment.pop("RANK", None)
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, check=False)
    assert ran.returncode == 0, ran.stderr
    two = losses(ran.stdout)
    one = losses(printed(program.read_text(), tmp_path))
    assert len(two) == 3  # one process reports
    assert two == pytest.approx(one, abs=2e-3)
