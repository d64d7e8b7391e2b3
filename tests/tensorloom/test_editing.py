"""What an editor is told, directly and through the protocol."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tensorloom.editing import Document, open_document
from tests.tensorloom.programs import ENVIRONMENT

PART = """\
@model Part:
    @config:
        width = 4
    @layers:
        fc = Linear(width, 6)
    @forward(x):
        return fc(x)
"""
MAIN = """\
import part.nml as P

fn helper(a: Tensor):
    let twice = a * 2
    return twice

model Net:
    layer part = P(width=8)
    layer out = Linear(6, 2)

    fn forward(self, x):
        let y = self.part(x)
        return self.out(y) |> relu

let net = Net()
let y = helper(net(zeros(3, 8)))
let data = load_dataset()

train net on data:
    epochs = 1
"""


@pytest.fixture
def document(tmp_path: Path) -> Document:
    (tmp_path / "part.nml").write_text(PART)
    (tmp_path / "main.tl").write_text(MAIN)
    return open_document(tmp_path / "main.tl", {})


def at(document: Document, text: str, inside: str = "") -> int:
    """The offset of `inside` in the first place where `text` stands."""
    return document.source.text.index(text) + text.index(inside)


@pytest.mark.parametrize(
    ("text", "inside", "told"),
    [
        ("self.out(y)", "out", "out: Linear(in_features=6, out_features=2), 14 parameters\n[B, 6] -> [B, 2]"),
        ("layer part", "part", "part: Part(width=8), 54 parameters\n[B, 8] -> [B, 6]"),
        ("self.out(y)", "y", "y: Tensor[B, 6] float"),
        ("let twice", "twice", "twice"),
        ("return twice", "twice", "twice: Tensor[3, 2] float"),
        ("= Net()", "Net", "model Net()"),
        ("= P(width", "P", "model Part(width)"),
        ("|> relu", "relu", "relu(input): torch.relu"),
        ("= Linear(6", "Linear", "layer Linear(in_features, out_features, bias=True): nn.Linear"),
        ("helper(net", "net", "net: Net(), 68 parameters"),
        ("epochs = 1", "=", ""),
    ],
)
def test_hover(document: Document, text: str, inside: str, told: str) -> None:
    assert document.hover(at(document, text, inside)) == told


@pytest.mark.parametrize(
    ("text", "inside", "target"),
    [
        ("self.out(y)", "out", "out = Linear"),
        ("self.out(y)", "y", "y = self.part"),
        ("return twice", "twice", "twice = a"),
        ("a * 2", "a", "a: Tensor"),
        ("= Net()", "Net", "Net:"),
        ("helper(net", "helper", "helper(a"),
        ("train net on", "net", "net = Net"),
    ],
)
def test_definition(document: Document, text: str, inside: str, target: str) -> None:
    place = document.definition(at(document, text, inside))
    assert place is not None
    assert place.source.text.startswith(target, place.span.start)


def test_definition_in_another_file(document: Document) -> None:
    place = document.definition(at(document, "= P(width", "P"))
    assert place is not None
    assert place.source.file.endswith("part.nml")
    assert place.source.text.startswith("Part:", place.span.start)
    imported = document.definition(at(document, "part.nml"))
    assert imported is not None and imported.source.file.endswith("part.nml")


def test_completion(document: Document) -> None:
    def names(text: str, inside: str) -> set[str]:
        return {name for name, _ in document.completions(at(document, text, inside))}

    assert {"part", "out", "forward"} == names("self.out(y)", "out")
    assert {"Linear", "helper", "net", "P", "relu", "let", "twice"} <= names("return twice", "twice")
    assert {"optimizer", "AdamW", "epoch_end"} <= names("epochs = 1", "epochs")


def test_completion_in_a_line_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "part.nml").write_text(PART)
    text = MAIN.replace("return self.out(y) |> relu", "return self.")
    path = tmp_path / "main.tl"
    path.write_text(MAIN)
    document = open_document(path, {str(path.resolve()): text})
    assert not document.checked.ok
    found = dict(document.completions(text.index("return self.") + len("return self.")))
    assert found["out"] == "layer"


class Client:
    """Speaks to `tlc lsp` as an editor does."""

    def __init__(self) -> None:
        command = [sys.executable, "-m", "tensorloom", "lsp"]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=ENVIRONMENT)
        self.count = 0

    def send(self, method: str, params: dict[str, Any], reply: bool = True) -> Any:
        message: dict[str, Any] = {"jsonrpc": "2.0", "method": method, "params": params}
        if reply:
            self.count += 1
            message["id"] = self.count
        data = json.dumps(message).encode()
        assert self.process.stdin is not None
        self.process.stdin.write(b"Content-Length: %d\r\n\r\n" % len(data) + data)
        self.process.stdin.flush()
        while reply:
            answer = self.receive()
            if answer.get("id") == self.count:
                return answer["result"]
        return None

    def receive(self) -> dict[str, Any]:
        stream = self.process.stdout
        assert stream is not None
        length = 0
        while line := stream.readline().strip():
            name, _, value = line.partition(b":")
            length = int(value) if name.lower() == b"content-length" else length
        answer: dict[str, Any] = json.loads(stream.read(length))
        return answer


def test_protocol(tmp_path: Path) -> None:
    pytest.importorskip("pygls")
    (tmp_path / "part.nml").write_text(PART)
    path = tmp_path / "main.tl"
    path.write_text(MAIN)
    uri, client = path.as_uri(), Client()
    try:
        abilities = client.send("initialize", {"processId": None, "rootUri": None, "capabilities": {}})["capabilities"]
        assert {"hoverProvider", "definitionProvider", "completionProvider"} <= abilities.keys()
        client.send("initialized", {}, reply=False)
        broken = MAIN.replace("Linear(6, 2)", "Linear(7, 2) // größer 𝛼")
        opened = {"uri": uri, "languageId": "tensorloom", "version": 1, "text": broken}
        client.send("textDocument/didOpen", {"textDocument": opened}, reply=False)
        found = client.receive()
        while found["params"].get("uri") != uri:  # imported files come before it
            found = client.receive()
        assert found["method"] == "textDocument/publishDiagnostics"
        (diagnostic,) = found["params"]["diagnostics"]
        assert diagnostic["code"] == "LOOM-T302"
        assert diagnostic["range"] == {"start": {"line": 12, "character": 15}, "end": {"line": 12, "character": 26}}
        change = {"textDocument": {"uri": uri, "version": 2}, "contentChanges": [{"text": MAIN}]}
        client.send("textDocument/didChange", change, reply=False)
        place = {"textDocument": {"uri": uri}, "position": {"line": 12, "character": 21}}
        assert "[B, 6] -> [B, 2]" in client.send("textDocument/hover", place)["contents"]["value"]
        target = client.send("textDocument/definition", place)
        assert (target["uri"], target["range"]["start"]["line"]) == (uri, 8)
        labels = {item["label"] for item in client.send("textDocument/completion", place)}
        assert "out" in labels
        options = {"textDocument": {"uri": uri}, "options": {"tabSize": 4, "insertSpaces": True}}
        (edit,) = client.send("textDocument/formatting", options)
        assert edit["newText"] == MAIN
        client.send("shutdown", {})
    finally:
        client.process.kill()
        client.process.wait()
