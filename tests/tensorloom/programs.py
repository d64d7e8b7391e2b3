"""Programs as text, what is wrong with them, and what they do."""

from __future__ import annotations

import contextlib
import io
import linecache
import os
import re
import textwrap
from pathlib import Path
from typing import Any

from tensorloom.driver import Checked, check_file, check_text
from tensorloom.emit import emit
from tensorloom.execution import run

ENVIRONMENT = {**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[2] / "src")}
"""For processes that run this tree, wherever they start."""


def checked(text: str, file: str = "program.tl") -> Checked:
    return check_text(textwrap.dedent(text).lstrip("\n"), file)


def problems(text: str) -> list[tuple[str, str]]:
    """Code and `line:column` of each diagnostic."""
    return [places(diagnostic) for diagnostic in checked(text).diagnostics]


def places(diagnostic: Any) -> tuple[str, str]:
    location = diagnostic.location
    return diagnostic.code.removeprefix("LOOM-"), f"{location.line}:{location.column + 1}"


def message(text: str) -> str:
    """The only diagnostic of a program: message and hint."""
    (found,) = checked(text).diagnostics
    return f"{found.message} | {found.hint}"


def python(text: str, comments: bool = False) -> str:
    """The whole Python text of a sound program."""
    return emit(checked(text).require(), comments).text


def statements(text: str) -> list[str]:
    """The lines of Python that a program's own lines become."""
    emitted = emit(checked(text).require(), comments=False)
    pairs = zip(emitted.text.splitlines(), emitted.origins, strict=True)
    return [line for line, origin in pairs if origin is not None]


def expression(text: str) -> str:
    """What an expression over the integers a, b, c and the list xs becomes."""
    lines = statements(f"let a = 5\nlet b = 3\nlet c = 2\nlet xs = [1, 2, 3]\nlet result = {text}\n")
    return lines[-1].removeprefix("result = ")


def evaluated(text: str) -> Any:
    """Run the Python of a program; its variables."""
    namespace: dict[str, Any] = {}
    exec(python(text), namespace)
    return namespace


def launched(text: str) -> dict[str, Any]:
    """The names of a program with kernels, which need to be read from a source."""
    source = python(text)
    file = f"<compiled {abs(hash(source))}>"
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
    namespace: dict[str, Any] = {"__name__": "compiled"}
    exec(compile(source, file, "exec"), namespace)
    return namespace


def printed(text: str, folder: Path) -> str:
    """What a program prints when it runs in a folder."""
    path = folder / "program.tl"
    path.write_text(textwrap.dedent(text), encoding="utf-8")
    return run_file(path)


def run_file(path: Path) -> str:
    """What a sound program prints; AssertionError if it fails."""
    emitted = emit(check_file(path).require())
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = run(emitted, str(path.with_suffix(".py")), path.parent)
    assert code == 0, err.getvalue()
    head, _, rest = out.getvalue().partition("\n")
    assert head.startswith("TensorLoom: PyTorch ")
    return rest


def losses(output: str) -> list[float]:
    """The losses that training reports, one for each epoch."""
    return [float(value) for value in re.findall(r"^epoch .*?: loss (\S+?),", output, re.MULTILINE)]
