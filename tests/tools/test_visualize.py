"""`loomc visualize`: the graph of commands and tokens, and the page with pictures."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import loom
import loom.triton.language as ltl
from loom_core.isa.encoding import decode_at
from loom_core.tools.explain import explain
from loom_core.tools.loomc import main
from loom_core.tools.visualize import dot_graph
from tests.displays.markup import parsed, text_of


@ltl.jit
def scaled_product(a, b, out, n, BLOCK: ltl.constexpr):  # type: ignore[no-untyped-def]
    row, column = ltl.arange(0, BLOCK)[:, None], ltl.arange(0, BLOCK)[None, :]
    acc = ltl.zeros((BLOCK, BLOCK), dtype=ltl.float32)
    for k in range(0, n, BLOCK):
        acc = ltl.dot(ltl.load(a + row * n + k + column), ltl.load(b + (k + row) * BLOCK + column), acc)
    ltl.store(out + row * BLOCK + column, ltl.exp(acc))


@pytest.fixture(scope="module")
def compiled() -> loom.LoomObject:
    return scaled_product.compile("*fp32", "*fp32", "*fp32", "i32", BLOCK=16)


def test_the_graph_has_every_engine_command_in_its_loop(compiled: loom.LoomObject) -> None:
    graph = dot_graph(compiled)
    engine = sum(explain(compiled).commands_per_queue.values())
    nodes = re.findall(r"^ *w(\d+) \[label=", graph, re.MULTILINE)
    assert len(nodes) == len(set(nodes)) == engine
    assert graph.count("{") == graph.count("}") and graph.startswith('digraph "scaled_product" {')
    assert re.findall(r'label="for (\S+) in', graph)[:3] == ["pid.z", "pid.y", "pid.x"]
    assert ' .. n by 16"' in graph


def test_edges_are_the_tokens_that_are_waited_for(compiled: loom.LoomObject) -> None:
    graph = dot_graph(compiled)
    nodes = set(re.findall(r"^ *(w\d+) \[label=", graph, re.MULTILINE))
    edges = re.findall(r'^  (w\d+) -> (w\d+) \[label="t(\d+)(?: but \d+)?"\]$', graph, re.MULTILINE)
    commands = {f"w{word}": command for word, command in decode_at(compiled.commands).items()}
    expected = {
        (a, b, str(wait.token))
        for b in nodes
        for wait in commands[b].waits
        for a in nodes
        if commands[a].signal == wait.token
    }
    assert expected and set(edges) == expected
    for a, b in re.findall(r"^  (w\d+) -> (w\d+) \[style=dotted\]$", graph, re.MULTILINE):
        assert commands[a].queue == commands[b].queue


def test_names_from_a_file_stay_texts(compiled: loom.LoomObject) -> None:
    hostile = dataclasses.replace(compiled, manifest={**compiled.manifest, "kernel": 'x" {\n\\'})
    assert dot_graph(hostile).startswith('digraph "x\\" {\\n\\\\" {\n')


def run(folder: Path, *arguments: str) -> Result:
    return CliRunner().invoke(main, ["visualize", str(folder / "p.loom"), *arguments])


@pytest.fixture
def folder(tmp_path: Path, compiled: loom.LoomObject) -> Path:
    (tmp_path / "p.loom").write_bytes(loom.write_object(compiled))
    return tmp_path


def body_of(path: Path) -> str:
    found = re.search(r"<body>(.*)</body>", path.read_text(encoding="utf-8"), re.DOTALL)
    assert found is not None
    return found.group(1)


def test_the_page_of_an_object(folder: Path) -> None:
    result = run(folder)
    assert result.exit_code == 0 and result.output == f"wrote {folder / 'p.html'}\n"
    text = text_of(parsed(body_of(folder / "p.html")))
    assert "windows in SRAM" in text and "mxu: multiply 16 x 16 by 16 x 16" in text and "cycles (" not in text


def test_the_page_of_a_run(folder: Path) -> None:
    arrays = [f"--arg={name}=f32[16,64]" for name in ("a", "b", "out")]
    result = run(folder, *arrays, "--arg=n=64", "--grid=1", f"--out={folder / 'run.html'}")
    assert result.exit_code == 0, result.output
    page = body_of(folder / "run.html")
    assert "cycles (" in text_of(parsed(page)) and "<script" not in page


def test_the_graph_goes_to_standard_output(folder: Path, compiled: loom.LoomObject) -> None:
    assert run(folder, "--dot").output == dot_graph(compiled)


def test_a_page_that_cannot_be_written(folder: Path) -> None:
    result = run(folder, f"--out={folder / 'missing' / 'page.html'}")
    assert result.exit_code != 0 and "LOOM-K" in result.output
