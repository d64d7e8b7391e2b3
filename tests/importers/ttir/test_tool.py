"""`loomc import-ttir`."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
from click.testing import CliRunner, Result

from loom_core.tools.loomc import main
from ltl.host_descriptor import TensorDescriptor
from ltl.imported import ImportedKernel
from tests.importers.ttir.modules import CORPUS


def loomc(*arguments: str | Path) -> Result:
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


def test_an_object_that_runs(tmp_path: Path) -> None:
    source, inputs, outputs = tmp_path / "vadd.ttir", tmp_path / "in.npz", tmp_path / "out.npz"
    shutil.copy(CORPUS / "features" / "feat_vadd__00" / "kernel.ttir", source)
    made = loomc("import-ttir", source)
    assert made.exit_code == 0, made.output
    x, y = np.arange(1000, dtype=np.float32), np.ones(1000, np.float32)
    np.savez(inputs, allow_pickle=False, x=x, y=y, z=np.zeros(1000, np.float32))
    ran = loomc(
        "run", tmp_path / "vadd.loom", "--inputs", inputs, "--arg", "n=1000", "--grid", "4", "--outputs", outputs
    )
    assert ran.exit_code == 0, ran.output
    assert np.load(outputs)["z"].tolist()[:256] == (x + y).tolist()[:256]


def test_the_tile_ir() -> None:
    shown = loomc("import-ttir", "--ir", CORPUS / "features" / "feat_vadd__00" / "kernel.ttir")
    assert shown.exit_code == 0
    assert shown.output.startswith("func @vadd(")


def test_what_cannot_be_read(tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.ttir"
    wrong.write_text("module {", encoding="utf-8")
    found = loomc("import-ttir", wrong)
    assert found.exit_code == 1
    assert "LOOM-F301" in found.output and "wrong.ttir:1" in found.output
    assert loomc("import-ttir", tmp_path / "absent.ttir").exit_code == 2


TWO = """module attributes {"ttg.num-warps" = 8 : i32, ttg.target = "cuda:90"} {
  tt.func private @twice(%a: i32) -> i32 {
    %b = arith.addi %a, %a : i32
    tt.return %b : i32
  }
  tt.func public @first(%out: !tt.ptr<i32> {tt.divisibility = 16 : i32}, %n: i32) {
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    cf.br ^head(%zero, %zero : i32, i32)
  ^head(%i: i32, %sum: i32):
    %c = arith.cmpi slt, %i, %n : i32
    cf.cond_br %c, ^body, ^end
  ^body:
    %t = tt.call @twice(%i) : (i32) -> i32
    %s = arith.addi %sum, %t : i32
    %j = arith.addi %i, %one : i32
    cf.br ^head(%j, %s : i32, i32)
  ^end:
    tt.store %out, %sum : !tt.ptr<i32>
    tt.return
  }
  tt.func public @second(%x: !tt.tensordesc<2x4xf32>, %x.shape.0: i32, %x.shape.1: i32, %x.stride.0: i64, %x.stride.1: i64) {
    %zero = arith.constant 0 : i32
    %v = tt.descriptor_load %x[%zero, %zero] : !tt.tensordesc<2x4xf32> -> tensor<2x4xf32>
    %rows = arith.sitofp %x.shape.0 : i32 to f32
    %r = tt.splat %rows : f32 -> tensor<2x4xf32>
    %w = arith.addf %v, %r : tensor<2x4xf32>
    tt.descriptor_store %x[%zero, %zero], %w : !tt.tensordesc<2x4xf32>, tensor<2x4xf32>
    tt.return
  }
}
"""  # noqa: E501


def test_a_module_with_several_kernels(tmp_path: Path) -> None:
    source = tmp_path / "two.ttir"
    source.write_text(TWO, encoding="utf-8")
    made = loomc("import-ttir", "--json", source)
    assert made.exit_code == 0, made.output
    first, second = json.loads(made.stdout)
    assert [first["kernel"], second["kernel"]] == ["first", "second"]
    assert first["object"] == str(tmp_path / "two.first.loom")
    assert first["launch"] == {"num_warps": 8, "target": "cuda:90"}
    assert first["calls"] == ["twice"]
    (loop,) = first["loops"]
    assert loop == {
        "at": f"{source}:12:5", "kind": "for", "variable": "%i: i32", "upper": "%n", "step": 1,
        "carried": ["%sum: i32"],
    }  # fmt: skip
    out, n = first["arguments"]
    assert (out["kind"], out["dtype"], out["read"], out["written"]) == ("array", "i32", False, True)
    assert out["hints"] == {"tt.divisibility": 16}
    assert (n["kind"], n["parameter"]) == ("number", "%n: i32")
    names = ["x_base", "x_size0", "x_size1", "x_stride0", "x_stride1"]
    assert [argument["name"] for argument in second["arguments"]] == names
    assert second["arguments"][2]["meaning"] == "size 1 of descriptor x"


def test_what_is_said_of_running_is_right(tmp_path: Path) -> None:
    source, inputs = tmp_path / "two.ttir", tmp_path / "in.npz"
    source.write_text(TWO, encoding="utf-8")
    shown = loomc("import-ttir", "--name", "second", "-o", tmp_path / "one.loom", source)
    assert shown.exit_code == 0, shown.output
    assert "array of f32, read and written" in shown.output
    command = shown.output.partition("run it with: loomc ")[2].strip()
    for name, value in (("size0", 2), ("size1", 3), ("stride0", 3), ("stride1", 1)):
        command = command.replace(f"x_{name}=N", f"x_{name}={value}")
    command = command.replace("ARRAYS.npz", str(inputs)).replace("X,Y,Z", "1")
    command = command.replace("RESULTS.npz", str(tmp_path / "out.npz"))
    np.savez(inputs, allow_pickle=False, x_base=np.arange(6, dtype=np.float32))
    ran = loomc(*command.split())
    assert ran.exit_code == 0, ran.output
    assert np.load(tmp_path / "out.npz")["x_base"].tolist() == [2, 3, 4, 5, 6, 7]


def test_descriptors_stand_for_what_repeats_them() -> None:
    x = np.arange(8, dtype=np.float32).reshape(2, 4)
    descriptor = TensorDescriptor(x, (2, 4), (4, 1), (2, 4))
    ImportedKernel(TWO, name="second")[(1,)](descriptor)
    ImportedKernel(TWO, name="second")[(1,)](descriptor, 2, 4, 4, 1)
    assert x.reshape(-1).tolist() == list(range(4, 12))


def test_options_that_do_not_fit_the_module(tmp_path: Path) -> None:
    source = tmp_path / "two.ttir"
    source.write_text(TWO, encoding="utf-8")
    several = loomc("import-ttir", "-o", tmp_path / "one.loom", source)
    assert several.exit_code == 2 and "first, second: say --name too" in several.output
    absent = loomc("import-ttir", "--name", "third", source)
    assert absent.exit_code == 1 and "a function third is needed, it has twice, first, second" in absent.output
    nowhere = loomc("import-ttir", "--name", "first", "-o", tmp_path / "no" / "one.loom", source)
    assert nowhere.exit_code == 2 and "cannot be written" in nowhere.output
