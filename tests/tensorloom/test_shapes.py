"""Shapes: the rule of every layer against torch, and what is said of programs that do not fit."""

from __future__ import annotations

from typing import Any

import pytest

from tensorloom.dims import shape_text
from tensorloom.info import weights
from tensorloom.layers import LAYERS
from tensorloom.values import LayerValue, Tensor
from tests.tensorloom.programs import checked, evaluated, message, problems

torch = pytest.importorskip("torch")

LAYER_CASES = [
    ("Linear(6, 5)", (3, 6)),
    ("Linear(6, 5, bias=false)", (2, 3, 6)),
    ("Conv1d(4, 6, 3, stride=2, padding=1)", (2, 4, 9)),
    ("Conv1d(4, 6, 3, groups=2, dilation=2, bias=false)", (2, 4, 9)),
    ("Conv2d(4, 6, 3)", (2, 4, 9, 7)),
    ("Conv2d(4, 6, kernel_size=[3, 2], stride=[2, 1], padding=1, groups=2)", (2, 4, 9, 7)),
    ('Conv2d(4, 6, 3, padding="same")', (2, 4, 9, 7)),
    ("ConvTranspose2d(4, 6, 3, stride=2, output_padding=1)", (2, 4, 5, 5)),
    ("MaxPool1d(2)", (2, 4, 9)),
    ("MaxPool2d(3, stride=2, padding=1)", (2, 4, 9, 7)),
    ("AvgPool2d(2)", (2, 4, 9, 7)),
    ("AdaptiveAvgPool2d(3)", (2, 4, 9, 7)),
    ("AdaptiveAvgPool2d([2, 5])", (2, 4, 9, 7)),
    ("BatchNorm1d(4)", (3, 4)),
    ("BatchNorm2d(4, affine=false)", (2, 4, 5, 5)),
    ("BatchNorm2d(4)", (2, 4, 5, 5)),
    ("LayerNorm(6)", (2, 3, 6)),
    ("LayerNorm([3, 6], bias=false)", (2, 3, 6)),
    ("LayerNorm(6, elementwise_affine=false)", (2, 3, 6)),
    ("GroupNorm(2, 4)", (2, 4, 5, 5)),
    ("Embedding(10, 6)", (2, 3)),
    ("LSTM(6, 5)", (2, 3, 6)),
    ("LSTM(6, 5, num_layers=3, bidirectional=true, proj_size=2)", (2, 3, 6)),
    ("GRU(6, 5, num_layers=2, bidirectional=true, bias=false)", (2, 3, 6)),
    ("MultiHeadAttention(6, 2)", (2, 3, 6)),
    ("MultiHeadAttention(6, 3, bias=false, add_bias_kv=true, causal=false)", (2, 3, 6)),
    ("MultiheadAttention(6, 2, causal=true)", (2, 3, 6)),
    ("Dropout(0.2)", (2, 3)),
    ("ReLU()", (2, 3)),
    ("LeakyReLU(0.1)", (2, 3)),
    ("ELU()", (2, 3)),
    ("GELU()", (2, 3)),
    ("SiLU()", (2, 3)),
    ("Sigmoid()", (2, 3)),
    ("Tanh()", (2, 3)),
    ("Identity()", (2, 3)),
    ("Softmax()", (2, 3)),
    ("LogSoftmax()", (2, 3)),
    ("Flatten()", (2, 3, 4, 5)),
    ("Flatten(2)", (2, 3, 4, 5)),
    ("Sequential(Linear(6, 5), ReLU(), Linear(5, 2))", (2, 6)),
    ("Repeat(Linear(6, 6), 3)", (2, 6)),
    ("Repeat(Sequential(Linear(6, 6), Tanh()), 2)", (2, 6)),
]


@pytest.mark.parametrize(("layer", "shape"), LAYER_CASES, ids=[layer for layer, _ in LAYER_CASES])
def test_layer_as_in_torch(layer: str, shape: tuple[int, ...]) -> None:
    """Shape of the output, and number of weights."""
    dtype = ", dtype=int64" if "Embedding" in layer else ""
    text = f"let layer_of_it = {layer}\nlet x = zeros({', '.join(map(str, shape))}{dtype})\nlet y = layer_of_it(x)\n"
    program = checked(text).require()
    values = evaluated(text)
    assert program.values["y"].shape == tuple(values["y"].shape)
    module = values["layer_of_it"]
    assert weights(program.values["layer_of_it"]) == sum(p.numel() for p in module.parameters())


def test_every_layer_has_a_case() -> None:
    covered = {layer.partition("(")[0] for layer, _ in LAYER_CASES}
    assert set(LAYERS) - covered == {"Parameter"}


def test_parameter() -> None:
    text = """
        @model M:
            @layers:
                p = Parameter(1, 4, 6)
            @forward(x):
                return x + p
        let m = M()
        let y = m(zeros(2, 4, 6))
    """
    program = checked(text).require()
    assert program.values["y"].shape == (2, 4, 6)
    assert weights(program.values["m"]) == 24
    assert evaluated(text)["m"].p.requires_grad


EXPRESSION_CASES = [
    "x + y", "x * 2", "2 - x", "x / y", "x ** 2", "-x", "x @ y.transpose(-1, -2)", "x @ ones(4)", "ones(3) @ x",
    "x == y", "x[0]", "x[:, 1]", "x[1:, :2]", "x[:, :, ::2]", "x[-1, 0, 1]", "x.sum()", "x.mean(1)",
    "x.mean(dim=[0, 2])",
    "x.sum(1, keepdim=true)", "x.max()", "x.argmax(1)", "x.flatten()", "x.flatten(1)", "x.flatten(0, 1)", "flatten(x)",
    "flatten(x, 0)", "flatten(x, 2)", "x.reshape(6, 4)", "x.view(-1, 2)", "reshape(x, 4, 6)", "reshape(x, [2, -1])",
    "x.transpose(0, 1)", "x.permute(2, 0, 1)", "permute(x, 2, 0, 1)", "transpose(x, 0, 2)", "x.unsqueeze(1)",
    "unsqueeze(x, -1)", "x.unsqueeze(0).squeeze(0)", "squeeze(zeros(1, 3, 1))", "squeeze(zeros(1, 3, 1), 0)", "x.T",
    "x.mT", "cat([x, x])", "cat([x, y], dim=2)", "stack([x, y], dim=1)", "where(x > 0, x, y)",
    "maximum(x, y)",
    "relu(x)", "sigmoid(x)", "tanh(x)", "gelu(x)", "silu(x)", "softmax(x)", "log_softmax(x)", "softmax(x, dim=0)",
    "dropout(x)", "dropout(x, 0.2)", "normalize(x)", "layer_norm(x, [4])", "x |> softmax |> dropout(0.1)", "mean(x, 1)",
    "sum(x, dim=0)", "argmax(x, 1)", "exp(x)", "sqrt(x)", "matmul(x, y.mT)", "arange(5)", "full([2, 3], 1.5)",
    "rand(2)",
    "randn(2, 3)", "tensor([[1, 2], [3, 4]])", "tensor([[[1.5], [2.5]]])", "tensor(3)", "x.repeat(2, 1, 1)", "abs(x)",
    "batch_norm(x[0].unsqueeze(0), zeros(3), ones(3))", "x.float()", "x.long()", "x.contiguous()", "log(abs(x))",
    "minimum(x, y)", "cos(x) + sin(x)", "x.softmax(1)",
]  # fmt: skip


@pytest.mark.parametrize("text", EXPRESSION_CASES)
def test_expression_as_in_torch(text: str) -> None:
    program = f"let x = randn(2, 3, 4)\nlet y = randn(2, 3, 4)\nlet z = {text}\n"
    found, given = checked(program).require().values["z"], evaluated(program)["z"]
    assert found.shape == tuple(given.shape)
    kinds = {
        "float": given.is_floating_point(),
        "int": given.dtype in (torch.int64, torch.int32),
        "bool": given.dtype == torch.bool,
    }
    assert not found.dtype or kinds[found.dtype]


def test_sizes_are_values() -> None:
    program = checked(
        "let x = zeros(2, 3)\nlet a = x.shape[1] * 2\nlet b = len(x)\nlet c = x.size(0)\nlet d = x.ndim\n"
    )
    assert [program.values[name] for name in "abcd"] == [6, 2, 2, 2]


def flow(text: str) -> list[tuple[str, str, str]]:
    (made,) = checked(text).require().instances().values()
    return [(step.name, shape_text(step.given), shape_text(step.result)) for step in made.flow]


def model(layers: str, forward: str, parameter: str = "x") -> str:
    rows = "".join(f"    layer {line}\n" for line in layers.split("; "))
    body = "".join(f"        {line}\n" for line in forward.split("; "))
    return f"model M:\n{rows}    fn forward(self, {parameter}):\n{body}"


def test_the_input_comes_from_the_first_layer_used() -> None:
    text = model(
        "b = Linear(8, 2); a = Conv2d(3, 8, 3, padding=1); p = AdaptiveAvgPool2d(1)",
        "return x |> self.a |> self.p |> flatten |> self.b",
    )
    assert flow(text) == [
        ("a", "[B, 3, H, W]", "[B, 8, H, W]"),
        ("p", "[B, 8, H, W]", "[B, 8, 1, 1]"),
        ("b", "[B, 8]", "[B, 2]"),
    ]


def test_symbols_go_through() -> None:
    text = model("c = Conv2d(3, 8, 3, stride=2, padding=1)", "return self.c(x)", "x: Tensor[N, 3, H, W]")
    assert flow(text) == [("c", "[N, 3, H, W]", "[N, 8, (H-1)//2+1, (W-1)//2+1]")]
    text = model("a = Linear(4, 4)", "let y = self.a(x); return y.reshape(y.shape[0], -1)", "x: Tensor[B, T, 4]")
    made = next(iter(checked(text).instances().values()))
    assert shape_text(made.outcome.shape) == "[B, 4*T]"


def test_a_let_is_followed() -> None:
    text = model("a = Linear(4, 6); b = Linear(5, 2)", "let y = self.a(x); let z = y; return self.b(z)")
    assert problems(text) == [("T302", "7:16")]


@pytest.mark.parametrize(
    ("layers", "forward"),
    [
        ("a = Linear(4, 6); b = Linear(5, 2)", "return x |> self.a |> self.b"),
        ("a = Linear(4, 6)", "print(self.a(self.a(x))); return x"),
        ("a = Linear(4, 6)", "if x.sum() > 0:;     return x;         ; else:;     return self.a(self.a(x))"),
        ("a = Linear(4, 6)", "for i in range(3):;     x = self.a(self.a(x)); return x"),
        ("a = Linear(4, 6)", "return [self.a(self.a(x))]"),
        ("a = Conv2d(3, 4, 3); b = BatchNorm2d(5)", "return x |> self.a |> self.b"),
        ("a = Conv2d(3, 4, 3); b = Conv2d(3, 4, 3)", "return self.b(self.a(x))"),
        ("a = Conv1d(3, 4, 3); b = Conv2d(4, 4, 3)", "return self.b(self.a(x))"),
        ("a = Linear(3, 4); b = LayerNorm(5)", "return self.b(self.a(x))"),
        ("a = Linear(3, 4); b = Embedding(5, 6)", "return self.b(self.a(x))"),
        ("a = Embedding(5, 6); b = Linear(5, 6)", "return self.b(self.a(x))"),
        ("a = Embedding(5, 6); b = Linear(6, 6)", "return self.b(x) + self.a(x)"),
        ("a = Embedding(5, 6); b = LSTM(5, 6)", "return self.b(self.a(x))"),
        ("a = LSTM(5, 6, bidirectional=true); b = Linear(6, 6)", "return self.b(self.a(x))"),
        ("a = Linear(4, 6); b = MultiHeadAttention(4, 2)", "return self.b(x, self.a(x))"),
        ("a = Linear(4, 6)", "return x + self.a(x)"),
        ("a = Linear(4, 6)", "return self.a(x) @ zeros(5, 2)"),
        ("a = Sequential(Linear(4, 6), Linear(5, 2))", "return self.a(x)"),
        ("a = Repeat(Linear(4, 6), 2)", "return self.a(x)"),
        ("a = Linear(4, 6)", "return self.a(x).reshape(2, 4)[0] + self.a(x)"),
        ("a = Conv2d(3, 4, 5)", "return self.a(zeros(1, 3, 4, 4))"),
        ("a = Linear(4, 6)", "return self.a(3)"),
        ("a = Linear(4, 6)", "return self.a()"),
        ("a = Linear(4, 6)", "return self.a(x, x)"),
        ("a = Linear(4, 6)", "return cat([x, self.a(x).mean(0)], dim=0)"),
    ],
)
def test_what_does_not_fit(layers: str, forward: str) -> None:
    found = checked(model(layers, forward)).diagnostics
    assert len(found) == 1
    assert found[0].code.startswith("LOOM-T30")


@pytest.mark.parametrize(
    "text",
    [
        "let a = Linear(4)",
        "let a = Linear(4, 6, biass=true)",
        "let a = Linear(0, 6)",
        "let a = Linear(4, 6.5)",
        "let a = Conv2d(3, 4)",
        "let a = MultiHeadAttention(6, 4)",
        "let a = tensor([[1, 2], [3]])",
        "let a = tensor([[[1], [2]], [[3], [4, 5]]])",
        "let a = zeros(2, 3) + zeros(2, 4)",
        "let a = zeros(2, 3) @ zeros(2, 3)",
        "let a = zeros(5, 2, 3) @ zeros(4, 3, 2)",
        "let a = zeros(2, 3).reshape(4, 2)",
        "let a = zeros(2, 3).mean(2)",
        "let a = zeros(2, 3)[0, 0, 0]",
        "let a = zeros(2, 3)[5]",
        "let a = cat([zeros(2, 3), zeros(2, 4)])",
        "let a = zeros(2, 3).permute(0, 0)",
        "let a: Tensor[2, 4] = zeros(2, 3)",
        "let a: Tensor[N, N] = zeros(2, 3)",
        "fn f(x: Tensor[2, 3]):\n    return x\nlet a = f(zeros(2, 4))",
        "fn f(x):\n    return x @ x\nlet a = f(zeros(2, 4))",
        "fn f(x):\n    return x\nlet a = f()",
        "let a, b = (1, 2, 3)",
        "let a = 3\nlet b = a(1)",
        "let a = LSTM(2, 3)(zeros(1, 5, 4))",
        "let a = Sequential(LSTM(2, 3), Linear(3, 1))(zeros(1, 5, 2))",
    ],
)
def test_expressions_that_do_not_fit(text: str) -> None:
    (found,) = checked(text + "\n").diagnostics
    assert found.code.startswith("LOOM-T3")


@pytest.mark.parametrize(
    "text",
    [
        "let a = zeros(2, 3) + zeros(3)",
        "let a = zeros(2, 1, 3) * zeros(4, 1)",
        "let a: Tensor[N, 3] = zeros(2, 3)",
        "let a: Tensor[?, 3] = zeros(2, 3)",
        "let a: Tensor = zeros(2, 3)",
        "fn f(x: Tensor[B, 3], y: Tensor[B, 4]):\n    return x\nlet a = f(zeros(2, 3), zeros(2, 4))",
        "let xs = []\nfor i in range(3):\n    xs.append(zeros(2, 3))\nlet a = cat(xs)",
        "let a = zeros(2, 3)\nfor i in range(3):\n    a = cat([a, a])\nlet b = a @ zeros(3, 4)",
        "let a = zeros(2, 3).unknown_method(4)",
    ],
)
def test_nothing_is_said_of_what_fits(text: str) -> None:
    assert problems(text + "\n") == []


def test_branches_by_config() -> None:
    text = """
        @model M:
            @config:
                pool = true
            @layers:
                a = Linear(4, 4)
            @forward(x: Tensor[B, T, 4]):
                let y = a(x)
                if pool:
                    y = y.mean(1)
                return y
        let m = M()
        let n = M(pool=false)
    """
    program = checked(text).require()
    assert [shape_text(program.values[name].outcome.shape) for name in "mn"] == ["[B, 4]", "[B, T, 4]"]


def test_each_instance_is_checked_with_its_overrides() -> None:
    text = """
        @model M:
            @config:
                width = 4
            @layers:
                a = Linear(4, 6)
                b = Linear(width + 2, 3)
            @forward(x):
                return b(a(x))
        let m = M()
        let n = M(width=5)
    """
    (found,) = checked(text).diagnostics
    assert [(p.line, p.column + 1) for p in found.location.chain()] == [(8, 16), (10, 9)]


def test_the_vision_transformer_of_image_and_norm() -> None:
    text = model(
        "a = Conv2d(3, 8, 4, stride=4); b = LayerNorm(8)", "return self.b(self.a(x))", "x: Tensor[B, 3, 64, 64]"
    )
    assert "flatten(2) and transpose(1, 2)" in message(text)


def test_models_that_contain_themselves() -> None:
    assert [
        code for code, _ in problems("model M:\n    layer a = M()\n    fn forward(self, x):\n        return x\n")
    ] == ["T312"]


def test_models_without_forward() -> None:
    assert problems("model M:\n    layer a = ReLU()\nlet m = M()\nlet y = m(zeros(1))\n") == [("T311", "4:9")]


def test_recurrent_state() -> None:
    text = """
        let rnn = LSTM(2, 3)
        let x = zeros(1, 5, 2)
        let out = rnn(x)
        let seq, state = rnn(x)
        let first = rnn(x)[0]
        let hidden = rnn(x)[1][0]
        let piped = x |> rnn |> relu
    """
    values: dict[str, Any] = evaluated(text)
    for name in ("out", "seq", "first", "piped"):
        assert tuple(values[name].shape) == (1, 5, 3)
        assert checked(text).values[name].shape == (1, 5, 3)
    assert tuple(values["hidden"].shape) == (1, 1, 3)


def test_attention_of_one_two_and_three_inputs() -> None:
    text = """
        let a = MultiHeadAttention(4, 2, dropout=0.0)
        let x = randn(2, 3, 4)
        let k = randn(2, 5, 4)
        let y = a(x)
        let z = a(x, k)
        let w = a(x, k, k)
        let c = MultiHeadAttention(4, 2, batch_first=false)(x)
    """
    values = evaluated(text)
    assert torch.equal(values["z"], values["w"])
    plain = torch.nn.MultiheadAttention(4, 2, batch_first=True)
    plain.load_state_dict(values["a"].state_dict())
    x = values["x"]
    assert torch.allclose(values["y"], plain(x, x, x)[0], atol=1e-6)


def test_causal_attention_looks_back_only() -> None:
    values = evaluated("let a = MultiHeadAttention(4, 2, causal=true)\nlet x = randn(1, 5, 4)\n")
    x = values["x"]
    changed = x.clone()
    changed[:, 3:] += 1
    assert torch.equal(values["a"](x)[:, :3], values["a"](changed)[:, :3])


def test_dropout_outside_models_is_off() -> None:
    assert torch.equal(evaluated("let y = dropout(ones(100))\n")["y"], torch.ones(100))


def test_layer_values_know_their_arguments() -> None:
    value = checked("let a = Linear(4, 6, bias=false)\n").values["a"]
    assert isinstance(value, LayerValue)
    assert value.arguments == {"in_features": 4, "out_features": 6, "bias": False}
    assert isinstance(checked("let a = zeros(2)\n").values["a"], Tensor)
