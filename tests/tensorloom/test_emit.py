"""The Python text: readable, in ruff's layout, deterministic, with origins."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from tensorloom.driver import check_file
from tensorloom.emit import emit
from tensorloom.text import WIDTH, broken, split_arguments
from tests.tensorloom.programs import checked, python, statements

GALLERY = Path(__file__).resolve().parents[2] / "examples" / "tensorloom"


def test_the_gallery_has_ruffs_layout(tmp_path: Path) -> None:
    pytest.importorskip("ruff")
    for path in GALLERY.iterdir():
        for comments in (True, False):
            text = emit(check_file(path, path.name), comments).text
            (tmp_path / f"{path.stem}_{path.suffix[1:]}_{comments}.py").write_text(text)
    command = [sys.executable, "-m", "ruff", "format", "--diff", "--isolated", "--line-length", str(WIDTH), "."]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout
    command = [sys.executable, "-m", "ruff", "check", "--isolated", "--select", "F", "--output-format", "concise", "."]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout


def test_a_model_as_text() -> None:
    text = """
        @model Encoder:
            @config:
                width = 64
                inner = width * 2
            @layers:
                up = Linear(width, inner)
                down = Linear(inner, width)
            @forward(x):
                let kept = x
                return kept + down(gelu(up(x)))
    """
    assert python(text).partition("\n\n\n")[2] == (
        "class Encoder(nn.Module):\n"
        "    def __init__(self, width=64, inner=None):\n"
        "        super().__init__()\n"
        "        self.width = width\n"
        "        self.inner = self.width * 2 if inner is None else inner\n"
        "        self.up = nn.Linear(self.width, self.inner)\n"
        "        self.down = nn.Linear(self.inner, self.width)\n"
        "\n"
        "    def forward(self, x):\n"
        "        kept = x\n"
        "        return kept + self.down(F.gelu(self.up(x)))\n"
    )


def test_type_hints_are_dropped_and_defaults_filled() -> None:
    assert statements("fn f(x: Tensor) -> Tensor:\n    return x |> softmax |> dropout\n") == [
        "def f(x):",
        "    return F.dropout(torch.softmax(x, dim=-1), p=0.5, training=False)",
    ]


def test_every_line_of_the_user_has_its_origin() -> None:
    emitted = emit(checked("let a = 1\n\nfn f():\n    return a\nprint(f())\n").require(), comments=False)
    pairs = zip(emitted.text.splitlines(), emitted.origins, strict=True)
    assert [(line, origin.line) for line, origin in pairs if origin is not None] == [
        ("def f():", 3),
        ("    return a", 4),
        ("a = 1", 1),
        ("print(f())", 5),
    ]


def test_comments_name_the_origin() -> None:
    assert "a = 1  # program.tl:1" in python("let a = 1\n", comments=True)


def test_the_head() -> None:
    text = python("let a = 1\n")
    assert text == (
        '"""Compiled from program.tl by TensorLoom."""\n\nimport torch\n\n'
        'device = torch.device("cuda" if torch.cuda.is_available() else "cpu")\n'
        'print(f"TensorLoom: PyTorch {torch.__version__}, {device}")\n\n\na = 1\n'
    )


def test_models_move_to_the_device_and_keep_their_keys() -> None:
    text = "model N:\n    layer a = Linear(1, 1)\n    fn forward(self, x):\n        return self.a(x)\nlet n = N()\n"
    assert "n = N().to(device)" in python(text)
    train = "let d = load_dataset()\ntrain n on d:\n    epochs = 1\n"
    assert 'if device.type == "cuda":\n    n.compile(mode="max-autotune")' in python(text + train)


def test_long_lines() -> None:
    call = f"function({', '.join(f'argument_{i}={i}' for i in range(9))})"
    lines = broken(f"x = {call}", 80)
    assert lines[0] == "x = function("
    assert lines[-1] == ")"
    assert all(len(line) <= 80 for line in lines)
    ast.parse("\n".join(lines))
    assert broken("x = 1", 80) == ["x = 1"]


def test_splitting_looks_past_strings_and_brackets() -> None:
    assert split_arguments('a, f(b, c), "d, e", [1, 2]') == ["a", "f(b, c)", '"d, e"', "[1, 2]"]
