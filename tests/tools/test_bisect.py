"""`loomc bisect`: broken lowerings, commands and recordings are found at their operation and line."""

from __future__ import annotations

import dataclasses
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result

from loom_core.codegen import stream
from loom_core.codegen.errors import TileTooLarge
from loom_core.ir.block import Function
from loom_core.isa.encoding import Command, decode, encode
from loom_core.isa.machine import L1
from loom_core.objfile import LoomObject
from loom_core.tools.bisect import operations
from loom_core.tools.bisect.operations import Launch, bisect
from loom_core.tools.bisect.probes import Grid, Probe
from loom_core.tools.loomc import main

CORPUS = Path(__file__).resolve().parents[1] / "corpus"

FLASH_DECODE = """\
import loom.triton.language as ltl


@ltl.jit
def decode(q, k, v, out, scale, length, HEADS: ltl.constexpr, KEYS: ltl.constexpr, DIM: ltl.constexpr):
    head, key, dim = ltl.arange(0, HEADS), ltl.arange(0, KEYS), ltl.arange(0, DIM)
    query = ltl.load(q + head[:, None] * DIM + dim[None, :])
    best = ltl.full((HEADS,), -float("inf"), ltl.float32)
    total = ltl.zeros((HEADS,), ltl.float32)
    acc = ltl.zeros((HEADS, DIM), ltl.float32)
    for start in range(0, length, KEYS):
        at = (start + key)[:, None] * DIM + dim[None, :]
        keys = ltl.load(k + at, mask=(start + key)[:, None] < length, other=0.0)
        values = ltl.load(v + at, mask=(start + key)[:, None] < length, other=0.0)
        scores = ltl.sum(query[:, None, :] * keys[None, :, :], axis=2) * scale
        scores = ltl.where((start + key)[None, :] < length, scores, -float("inf"))
        largest = ltl.maximum(best, ltl.max(scores, axis=1))
        weights = ltl.exp(scores - largest[:, None])
        shrunk = ltl.exp(best - largest)
        acc = acc * shrunk[:, None] + ltl.sum(weights[:, :, None] * values[None, :, :], axis=1)
        total = total * shrunk + ltl.sum(weights, axis=1)
        best = largest
    ltl.store(out + head[:, None] * DIM + dim[None, :], acc / total[:, None])
"""
ARGUMENTS = (
    *("--arg", "q=f32[4,8]", "--arg", "k=f32[20,8]", "--arg", "v=f32[20,8]", "--arg", "out=f32[4,8]"),
    *("--arg", "scale=0.003", "--arg", "length=20", "--const", "HEADS=4", "--const", "KEYS=8", "--const", "DIM=8"),
)


def loomc(*arguments: str | Path) -> Result:
    result = CliRunner().invoke(main, ["bisect", *map(str, arguments)])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def line_of(text: str, part: str) -> int:
    (found,) = [number for number, line in enumerate(text.splitlines(), 1) if part in line]
    return found


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "decode.py"
    path.write_text(FLASH_DECODE)
    return path


def instead(monkeypatch: pytest.MonkeyPatch, wanted: str, given: str) -> None:
    """The stream engine gets one instruction for another."""
    right = stream.mnemonic_of
    monkeypatch.setattr(stream, "mnemonic_of", lambda op: given if right(op) == wanted else right(op))


@pytest.mark.report("P88")
def test_nothing_differs_where_nothing_is_broken(source: Path) -> None:
    result = loomc(source, *ARGUMENTS)
    assert (result.exit_code, result.stdout) == (0, "nothing differs\n")


@pytest.mark.report("P88")
@pytest.mark.parametrize(
    ("wanted", "given", "operation", "line"),
    [
        ("mul.f32", "add.f32", "`mul` %", "scores = ltl.sum(query[:, None, :] * keys"),
        ("exp.f32", "exp2.f32", "`exp` %weights", "weights = ltl.exp("),
        ("div.f32", "mul.f32", "`div` %", "ltl.store(out"),
    ],
)
def test_a_broken_lowering(
    source: Path, monkeypatch: pytest.MonkeyPatch, wanted: str, given: str, operation: str, line: str
) -> None:
    instead(monkeypatch, wanted, given)
    result = loomc(source, *ARGUMENTS)
    assert result.exit_code == 1
    place, *rest = result.stdout.splitlines()
    assert place.startswith(f"{source}:{line_of(FLASH_DECODE, line)}: {operation}")
    assert place.endswith("is the first that differs")
    text = "\n".join(rest)
    assert "the object gives" in text and "its reference says" in text
    assert ("iteration 0" in text) == (wanted != "div.f32")


def test_what_could_not_be_seen_is_said(source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    probed = operations.probed

    def without_room(function: Function, probes: Sequence[Probe], grid: Grid) -> Function:
        ops = list(function.walk())
        for probe in probes:
            if ops[probe.op].name == "exp":
                raise TileTooLarge(ops[probe.op].location, kernel="decode", needed=2, machine="l1", limit=1)
        return probed(function, probes, grid)

    monkeypatch.setattr(operations, "probed", without_room)
    instead(monkeypatch, "exp.f32", "exp2.f32")
    result = loomc(source, *ARGUMENTS)
    assert result.exit_code == 1
    *_, last = result.stdout.splitlines()
    assert last == "  not compared, since the object with a look at them does not fit the machine: `exp`"
    assert "`exp` %" not in result.stdout.splitlines()[0]


def test_operands_are_shown(source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    instead(monkeypatch, "sub.f32", "add.f32")
    lines = loomc(source, *ARGUMENTS).stdout.splitlines()
    assert lines[0].startswith(f"{source}:{line_of(FLASH_DECODE, 'weights = ltl.exp(')}: `sub`")
    assert [line.split(" = ")[0].strip() for line in lines[4:]][:1] == ["%scores[0, 0]"]
    assert any("%largest[0] = " in line for line in lines[4:])


def launch(kernel: Any, *arguments: Any, grid: tuple[int, int, int] = (1, 1, 1)) -> Launch:
    views, numbers = kernel.leaves(arguments, {})
    return Launch(kernel.lower(*arguments), L1, views, numbers, grid)


def halved(command: Command, target: int) -> Command:
    """A copy to a memory with half of its elements; other commands as they are."""
    if command.mnemonic != "copy" or command.operands[2] != target:
        return command
    operands = list(command.operands)
    operands[5] = 4
    return dataclasses.replace(command, operands=tuple(operands))


def test_a_broken_command(monkeypatch: pytest.MonkeyPatch) -> None:
    """The copy to memory takes half of the elements: no operation differs by itself, the store does."""
    from examples import vector_add

    right = operations.compile_kernel

    def broken(*arguments: Any, **options: Any) -> LoomObject:
        obj = right(*arguments, **options)
        out = [argument.name for argument in obj.abi.buffers].index("out_ptr") + 1
        return dataclasses.replace(obj, commands=encode([halved(c, out) for c in decode(obj.commands)]))

    x, y, out = (np.arange(8, dtype=np.float32) for _ in range(3))
    given = launch(vector_add.add, x, y, out, 8, 8)
    assert bisect(given) is None
    monkeypatch.setattr(operations, "compile_kernel", broken)
    found = bisect(given)
    assert found is not None
    assert (found.what, found.index) == ("`store` to out_ptr", (4,))
    assert found.location.line == line_of(Path(vector_add.__file__).read_text(), "ltl.store(")


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    target = tmp_path / "softmax"
    shutil.copytree(CORPUS / "features" / "feat_softmax_rows__00", target)
    return target


def change(folder: Path, argument: int, element: int) -> tuple[float, float]:
    """Change one recorded result; gives it as it was and as it is."""
    with np.load(folder / "data.npz") as data:
        stored = {name: np.array(data[name]) for name in data.files}
    after = stored[f"after_arg{argument}"].reshape(-1).view(np.float32)
    before = float(after[element])
    after[element] = before + 0.25
    np.savez(folder / "data.npz", **stored)
    return before, float(after[element])


@pytest.mark.report("P88")
@pytest.mark.parametrize("form", ["source", "ttir"])
def test_a_recording_that_differs(recording: Path, form: str) -> None:
    unchanged = loomc(recording, "--from", form)
    assert (unchanged.exit_code, unchanged.stdout) == (0, "nothing differs\n")
    with np.load(recording / "data.npz") as data:
        (changed,) = [int(name.removeprefix("after_arg")) for name in data.files if name.startswith("after_arg")]
    _, recorded = change(recording, changed, 700)
    result = loomc(recording, "--from", form)
    assert result.exit_code == 1
    text = (recording / "kernel.py").read_text()
    if form == "source":
        assert result.stdout.startswith(
            f"{recording / 'kernel.py'}:{line_of(text, 'tl.store(')}: this `store` is the first"
        )
    assert "[700] is " in result.stdout and f"recorded as {recorded!r}" in result.stdout
    assert "exp, line" in result.stdout and "div, line" in result.stdout


TWICE = """\
from loom.experimental import palladium as lpl


@lpl.kernel(out_shape=lpl.ShapeDtypeStruct((16, 8), "float32"), grid=(4,),
            in_specs=[lpl.BlockSpec((4, 8), lambda i: (i, 0))], out_specs=lpl.BlockSpec((4, 8), lambda i: (i, 0)))
def twice(x, out):
    shifted = x[...] - 1.0
    out[...] = shifted * 2.0
"""


def test_palladium_kernels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "twice.py"
    path.write_text(TWICE)
    assert loomc(path, "--arg", "x=f32[16,8]").exit_code == 0
    instead(monkeypatch, "sub.f32", "add.f32")
    result = loomc(path, "--arg", "x=f32[16,8]")
    assert result.exit_code == 1
    assert result.stdout.startswith(f"{path}:{line_of(TWICE, 'shifted = ')}: `sub`")
    assert "iteration 0, element [0, 0]" in result.stdout


def test_inputs_of_a_file_and_a_seed(source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    instead(monkeypatch, "exp.f32", "exp2.f32")
    ones = {name: np.ones(shape, np.float32) for name, shape in {"q": (4, 8), "k": (20, 8), "v": (20, 8)}.items()}
    np.savez(tmp_path / "in.npz", **ones)
    first, again, other = (loomc(source, *ARGUMENTS, "--seed", seed).stdout for seed in (1, 1, 2))
    assert first == again != other
    given = loomc(source, *ARGUMENTS, "--inputs", tmp_path / "in.npz")
    # All scores are equal, so that the weights are exp(0) by both: what differs is the shrinking of nothing.
    assert given.stdout == "nothing differs\n"


def test_too_large_launches_are_refused(source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(operations, "MOST_BYTES", 1 << 10)
    result = loomc(source, *ARGUMENTS)
    assert result.exit_code == 2
    assert "LOOM-K116" in result.stderr


def test_what_the_kernel_never_stores(recording: Path) -> None:
    with np.load(recording / "data.npz") as data:
        stored = {name: np.array(data[name]) for name in data.files}
    (changed,) = [
        name for name in stored if name.startswith("before_arg") and name.replace("before", "after") not in stored
    ][:1]
    after = stored[changed].copy()
    after.reshape(-1).view(np.float32)[3] += 1
    stored[changed.replace("before", "after")] = after
    np.savez(recording / "data.npz", **stored)
    result = loomc(recording)
    assert result.exit_code == 1
    assert "[3] is " in result.stdout and "the kernel does not store to it" in result.stdout
