"""The examples of docs/examples/integration/python-importer, as they are documented."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from click.testing import CliRunner

import loom
from loom.diagnostics import LoomDiagnosticError
from loom.format.bytecode import read_module, write_module
from loom.format.text import Parser
from loom.importers import print_loom_module
from loom.ir import Module
from loom.verify import verify_module
from loom_core.importers.kernel_module import known_ops
from loom_core.tools.loom_format import main as loom_format

EXAMPLE = Path(__file__).resolve().parents[2] / "docs" / "examples" / "integration" / "python-importer"


def example(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, EXAMPLE / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    # Dataclasses look their module up.
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def text_of(name: str) -> str:
    return (EXAMPLE / name).read_text(encoding="utf-8")


def parse(text: str) -> Module:
    parser = Parser()
    parser.register_ops(known_ops())
    return parser.parse(text, "printed.loom")


def test_the_copy_kernel(tmp_path: Path) -> None:
    example("copy_64_bytes").main(tmp_path)
    text = (tmp_path / "copy_64_bytes.loom").read_text(encoding="utf-8")
    assert text == text_of("copy_64_bytes.loom")
    assert print_loom_module(read_module((tmp_path / "copy_64_bytes.loombc").read_bytes(), verify=True)) == text
    result = CliRunner().invoke(loom_format, ["--check", str(EXAMPLE / "copy_64_bytes.loom")])
    assert (result.exit_code, result.output) == (0, "")


def test_the_copy_kernel_copies() -> None:
    source = np.random.default_rng(0).integers(0, 256, 64).astype(np.uint8)
    target = np.zeros(64, np.uint8)
    loom.run(parse(text_of("copy_64_bytes.loom")), source, target)
    assert np.array_equal(target, source)


def test_byteline_runs() -> None:
    module = example("byteline").import_byteline(text_of("invert.byteline"), "invert.byteline").module
    source, target = np.arange(64, dtype=np.uint8), np.zeros(64, np.uint8)
    loom.run(module, source=source, target=target)
    assert np.array_equal(target, 255 - source)


def test_byteline_prints_with_its_locations() -> None:
    result = example("byteline").import_byteline(text_of("invert.byteline"), "invert.byteline")
    text = print_loom_module(result.module, print_locations=True)
    assert text == text_of("invert.loom")
    assert print_loom_module(parse(text), print_locations=True).count("invert.byteline") == text.count(
        "invert.byteline"
    )
    again = read_module(write_module(result.module))
    assert print_loom_module(again, print_locations=True) == text


def test_diagnostics_come_at_bytelines_own_lines() -> None:
    with pytest.raises(LoomDiagnosticError) as caught:
        example("byteline").import_byteline(text_of("mistaken.byteline"), "mistaken.byteline")
    assert str(caught.value).startswith("mistaken.byteline:3:5: error: operand type constraint violated\n")


def test_diagnostics_keep_their_lines_through_text_and_bytecode() -> None:
    byteline = example("byteline")
    byteline.BytelineSession.finish = lambda self, options=None: byteline.ImportResult(
        self.builder.module, self.diagnostics
    )
    module = byteline.import_byteline(text_of("mistaken.byteline"), "mistaken.byteline").module
    printed = parse(print_loom_module(module, print_locations=True))
    coded = read_module(write_module(module))
    for kept in (module, printed, coded):
        found = verify_module(kept).diagnostics
        assert [d.primary_location.display for d in found] == ["mistaken.byteline:3:5"] * 2


@pytest.mark.parametrize(
    ("line", "message", "column"),
    [
        ("    x = y", "nothing is called y", 5),
        ("  what", "this is no statement: what", 3),
        ("  x = 1 ? 2", "no expression", 3),
    ],
)
def test_what_byteline_itself_refuses(line: str, message: str, column: int) -> None:
    with pytest.raises(LoomDiagnosticError) as caught:
        example("byteline").import_byteline(f"kernel k(a) over 8\n{line}\n", "k.byteline")
    (found,) = caught.value.diagnostics
    assert message in found.message
    assert str(found).startswith(f"k.byteline:2:{column}: error: ")
