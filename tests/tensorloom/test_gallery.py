"""The programs of examples/tensorloom: each is sound, compiles, runs and learns."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tensorloom.driver import check_file
from tensorloom.emit import emit
from tensorloom.info import model_infos
from tests.tensorloom.programs import losses, run_file

torch = pytest.importorskip("torch")

GALLERY = Path(__file__).resolve().parents[2] / "examples" / "tensorloom"
FILES = sorted(path.name for path in GALLERY.iterdir())
TRAINED = ("mnist", "train_gpt", "train_lstm", "train_resnet", "train_transformer", "train_vit")


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A copy, as programs write their snapshots beside themselves."""
    return Path(shutil.copytree(GALLERY, tmp_path / "gallery"))


def test_all_that_should_be_there_is() -> None:
    names = ["resnet", "lstm_seq2seq", "vision_transformer", "transformer", "gpt"]
    trains = ["train_resnet", "train_lstm", "train_vit", "train_transformer", "train_gpt", "mnist", "vector_add"]
    assert sorted([f"{name}.nml" for name in names] + [f"{name}.tl" for name in trains]) == FILES


@pytest.mark.parametrize("name", FILES)
def test_is_sound_and_compiles(name: str) -> None:
    checked = check_file(GALLERY / name)
    assert checked.diagnostics == []
    first, second = emit(checked), emit(check_file(GALLERY / name))
    assert first == second
    compile(first.text, name, "exec")


@pytest.mark.parametrize("name", [name for name in FILES if name != "vector_add.tl"])
def test_parameters_are_counted_as_torch_does(name: str) -> None:
    """Of the models that variables hold, or of each model with its defaults, made by the compiled classes."""
    checked = check_file(GALLERY / name)
    namespace: dict[str, object] = {"__name__": "compiled"}
    text = emit(checked).text
    training = text.find("\ndef train_")
    exec(text if training < 0 else text[:training], namespace)
    for info in model_infos(checked, 2):
        module = namespace.get(info.name)
        module = module(**info.config) if isinstance(module, type) else module
        assert isinstance(module, torch.nn.Module)
        assert info.weights == sum(parameter.numel() for parameter in module.parameters())
        assert info.activations


@pytest.mark.parametrize("name", TRAINED)
def test_learns(name: str, folder: Path) -> None:
    found = losses(run_file(folder / f"{name}.tl"))
    assert len(found) >= 2
    assert found[-1] < 0.8 * found[0]


def test_vector_add(folder: Path) -> None:
    assert run_file(folder / "vector_add.tl") == "largest difference from PyTorch: 0.0\n"


def test_snapshots_of_the_gallery(folder: Path) -> None:
    run_file(folder / "train_lstm.tl")
    assert sorted(path.name for path in folder.glob("*.pt")) == ["checkpoint_epoch_2.pt", "checkpoint_epoch_4.pt"]


def median_cpu(action: object, count: int = 15) -> float:
    """Milliseconds of CPU time of this thread."""
    times = []
    for _ in range(count):
        started = time.thread_time()
        action()  # type: ignore[operator]
        times.append(1000 * (time.thread_time() - started))
    return sorted(times)[count // 2]


def test_speed() -> None:
    """The bars are 3 ms for a check and 5 ms for a compilation; here with room for a slow machine."""
    largest = max((path for path in GALLERY.glob("*.tl")), key=lambda path: median_cpu(lambda: check_file(path), 3))
    assert median_cpu(lambda: check_file(largest)) < 9
    assert median_cpu(lambda: emit(check_file(largest))) < 15
