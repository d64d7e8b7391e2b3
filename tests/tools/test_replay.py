"""Recorded launches of a GPU, run again from their source."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result

from loom_core.base.dtype import bf16, f32
from loom_core.ops.distance import ulp_distance
from loom_core.tools.loomc import main
from loom_core.tools.recording import Memory, read_recording
from loom_core.tools.refusals import MOST_REFUSED, read_refusals
from loom_core.tools.replay import find_folders, replay

CORPUS = Path(__file__).resolve().parents[1] / "corpus"
FOLDERS = find_folders([CORPUS / "features", CORPUS / "inductor"])


def loomc(*arguments: str | Path) -> Result:
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_recorded_launch_by_the_interpreter(folder: Path) -> None:
    result = replay(folder, interpret=True)
    assert result.verdict == "passed", result.text + result.details


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_recorded_launch_compiled(folder: Path) -> None:
    result = replay(folder)
    assert result.verdict == "passed", result.text + result.details


def test_the_corpus_is_whole() -> None:
    assert len(list((CORPUS / "features").iterdir())) == 28
    assert len(FOLDERS) >= 48


@pytest.fixture
def copied(tmp_path: Path) -> Any:
    """Copies a recording and changes the bytes of one of its arrays afterwards."""

    def copy(name: str, key: str = "", change: Any = None) -> Path:
        folder = tmp_path / name
        shutil.copytree(next(folder for folder in FOLDERS if folder.name == name), folder)
        if change is not None:
            with np.load(folder / "data.npz") as data:
                arrays = dict(data)
            arrays[key] = change(arrays[key])
            np.savez(folder / "data.npz", allow_pickle=False, **arrays)
        return folder

    return copy


def scaled(factor: float) -> Any:
    return lambda data: (data.view(np.float32) * np.float32(factor)).view(np.uint8)


# Elementwise, a reduction in another order, running means of a loop, a product, a combination through atomics.
SENSITIVE = {
    "feat_vadd__00": "after_arg2",
    "layer_norm__00": "after_arg4",
    "red_var_outer__00": "after_arg2",
    "feat_dot_bf16_acc__00": "after_arg3",
    "index_put_acc__02": "after_arg2",
    "grid_sample__00": "after_arg0",
}


@pytest.mark.parametrize("name", SENSITIVE)
def test_results_that_are_a_little_wrong_fail(copied: Any, name: str) -> None:
    """One part in ten thousand is far outside the tolerance of each of these kernels."""
    recording = read_recording(copied(name))
    with np.load(recording.folder / "data.npz") as data:
        keys = [key for key in data.files if key.startswith("after")]
    floats = [k for k in keys if recording.arguments[int(k.removeprefix("after_arg"))].dtype is f32]  # type: ignore[union-attr]
    changed = copied_again(recording.folder, floats[0])
    result = replay(changed, interpret=True)
    assert result.verdict == "failed", result.text
    assert "elements are wrong" in result.text


def copied_again(folder: Path, key: str) -> Path:
    with np.load(folder / "data.npz") as data:
        arrays = dict(data)
    arrays[key] = scaled(1 + 1e-4)(arrays[key])
    np.savez(folder / "data.npz", allow_pickle=False, **arrays)
    return folder


def test_an_integer_that_differs_fails(copied: Any) -> None:
    def flip(data: Any) -> Any:
        data = data.copy()
        data[8] ^= 1
        return data

    result = replay(copied("feat_argmaxmin__00", "after_arg1", flip), interpret=True)
    assert result.verdict == "failed"
    assert "1 of" in result.text and "the first at 2" in result.text


def test_a_byte_that_no_program_writes_must_stay(copied: Any) -> None:
    def flip(data: Any) -> Any:
        data = data.copy()
        data[0] ^= 1
        return data

    folder = copied("feat_vadd__00", "before_arg0", flip)
    with np.load(folder / "data.npz") as data:
        arrays = dict(data)
    arrays["after_arg0"] = flip(arrays["before_arg0"])
    np.savez(folder / "data.npz", allow_pickle=False, **arrays)
    assert replay(folder, interpret=True).verdict == "failed"


def test_summary_and_exit_codes(copied: Any, tmp_path: Path) -> None:
    copied("feat_vadd__00")
    source = copied("feat_argmaxmin__00") / "kernel.py"
    source.write_text("def argmaxmin(x, a, b, M: tl.constexpr, N: tl.constexpr):\n    tl.inline_asm_elementwise(x)\n")
    done = loomc("replay", tmp_path, "--interpret", "--verbose")
    assert done.exit_code == 0
    assert done.output.splitlines()[-1] == "1 passed, 0 failed, 1 refused"
    assert "refused  feat_argmaxmin__00  LOOM-F114" in done.output
    assert "tl.inline_asm_elementwise(x)" in done.output
    source.write_text("def argmaxmin(x, a, b, M: tl.constexpr, N: tl.constexpr):\n    pass\n")
    done = loomc("replay", tmp_path, "--interpret", "--json")
    assert done.exit_code == 1
    report = json.loads(done.output)
    assert (report["passed"], report["failed"], report["refused"]) == (1, 1, 0)
    assert [entry["verdict"] for entry in report["results"]] == ["failed", "passed"]


REFUSALS = CORPUS / "refusals.txt"


def test_the_list_of_refusals_is_the_documents() -> None:
    page = (CORPUS.parents[1] / "docs" / "replay.md").read_text(encoding="utf-8")
    listed = read_refusals(REFUSALS)
    assert 0 < len(listed) <= MOST_REFUSED * 247
    assert [f"| `{name}` | {code} |" in page for name, code in listed.items()] == [True] * len(listed)


def test_refusals_that_are_not_listed_fail(copied: Any, tmp_path: Path) -> None:
    """20 launches pass and one is refused; a list must say so, with its code."""
    for number in range(19):
        shutil.copytree(FOLDERS[0], tmp_path / f"copy{number}")
    copied("feat_vadd__00")
    refused = copied("feat_argmaxmin__00")
    (refused / "kernel.py").write_text("def argmaxmin(x, a, b, M: tl.constexpr, N: tl.constexpr):\n    absent(x)\n")
    listing = tmp_path / "refusals.txt"

    def outcome(text: str) -> tuple[int, str]:
        listing.write_text(text)
        done = loomc("replay", tmp_path, "--interpret", "--refusals", listing)
        return done.exit_code, done.output.splitlines()[-1]

    right = "feat_argmaxmin__00 LOOM-F004 a helper is absent  # comment\n"
    assert outcome(right) == (0, "20 passed, 0 failed, 1 refused")
    assert outcome("# none\n") == (1, "20 passed, 1 failed, 0 refused")
    assert outcome("feat_argmaxmin__00 LOOM-F114 another code") == (1, "20 passed, 1 failed, 0 refused")
    assert outcome(right + "feat_vadd__00 LOOM-F004 it passes") == (1, "19 passed, 1 failed, 1 refused")
    shutil.rmtree(tmp_path / "copy0")
    shutil.rmtree(tmp_path / "copy1")
    assert outcome(right) == (1, "18 passed, 0 failed, 1 refused"), "that is more than 5%"
    listing.write_text("feat_argmaxmin__00 LOOM-F004\n")
    done = loomc("replay", tmp_path, "--refusals", listing)
    assert done.exit_code == 2 and "LOOM-K115" in done.stderr


def test_what_is_no_recording(tmp_path: Path) -> None:
    done = loomc("replay", tmp_path)
    assert done.exit_code == 2 and "LOOM-K112" in done.stderr
    folder = tmp_path / "broken"
    folder.mkdir()
    (folder / "meta.json").write_text("{")
    done = loomc("replay", folder)
    assert done.exit_code == 0 and "refused  broken  LOOM-K111" in done.output


def test_arrays_of_one_storage_are_rebuilt_in_it(tmp_path: Path) -> None:
    """The second argument begins two elements behind the first, and both end at the storage's end."""
    storage = np.arange(8, dtype=np.float32)
    entry = {"kind": "tensor", "type": "*fp32", "dtype": "float32", "stride": [1], "alias_group": 3}
    args = [{**entry, "name": "a", "shape": [8]}, {**entry, "name": "b", "shape": [3], "stride": [2]}]
    (tmp_path / "meta.json").write_text(json.dumps({"name": "f", "grid": [1], "args": args}))
    np.savez(tmp_path / "data.npz", before_arg0=storage.view(np.uint8), before_arg1=storage[2:].view(np.uint8))
    recording = read_recording(tmp_path)
    memory = Memory(recording)
    a, b = (memory.array(argument) for argument in recording.tensors)
    assert b.tolist() == [2, 4, 6]
    b[1] = 100
    assert a[4] == 100


def test_distance_in_units_in_the_last_place() -> None:
    x = np.array([1.0, 1.0, 0.0, np.inf], np.float32)
    y = np.array([np.nextafter(np.float32(1), np.float32(2)), 1.0, 2.0**-149, 1.0], np.float32)
    assert ulp_distance(y, x, f32).tolist() == [1, 0, 1, np.inf]
    assert ulp_distance(np.array([1.0078125], bf16.numpy), np.array([1.0], bf16.numpy), bf16).tolist() == [1]
