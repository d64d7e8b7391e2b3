"""Programs that must work as they stand."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tensorloom.driver import check_file
from tests.tensorloom.programs import launched, losses, run_file

torch = pytest.importorskip("torch")

PROGRAMS = Path(__file__).with_name("specified")


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize("path", sorted(PROGRAMS.iterdir()), ids=lambda path: path.name)
def test_is_sound(path: Path) -> None:
    assert check_file(path).diagnostics == []


@pytest.mark.parametrize(("name", "epochs"), [("digits.tl", 3), ("train_encoder.tl", 2)])
def test_runs(name: str, epochs: int, tmp_path: Path) -> None:
    folder = shutil.copytree(PROGRAMS, tmp_path / "programs")
    assert len(losses(run_file(folder / name))) == epochs


def test_the_kernel() -> None:
    x, y = torch.randn(3000), torch.randn(3000)
    launcher = launched((PROGRAMS / "scale_add.tl").read_text())["scale_add_launcher"]
    result = launcher(x, y, 1.5, BLOCK=1024)
    assert torch.allclose(result, 1.5 * x + y, atol=1e-6)
    assert torch.equal(launcher(x, y, 1.5), result)
