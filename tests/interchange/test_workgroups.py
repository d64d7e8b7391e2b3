"""Kernels that run: `loom.run` against an interpreter that runs each workitem on its own."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import loom
from loom.execution import prepare
from loom.format.bytecode import read_module, write_module
from loom.format.text import ParseError
from loom.importers import print_loom_module
from loom.ir import Module
from loom_core.tools.loomc import main
from tests.interchange.copy_kernel import build_copy_kernel
from tests.interchange.generated import PLAIN, operation_module
from tests.interchange.test_text import parse
from tests.interchange.workitems import run_workitems

Sizes = tuple[int, int, int]


def kernel(
    body: str, *, count: Sizes = (1, 1, 1), size: Sizes = (32, 1, 1), arguments: str = "%a: buffer, %b: buffer"
) -> Module:
    numbers = {f"%c{axis}": n for axis, n in zip("xyz", count, strict=True)}
    numbers |= {f"%s{axis}": n for axis, n in zip("xyz", size, strict=True)}
    constants = "\n".join(f"  {name} = index.constant {n} : index" for name, n in numbers.items())
    return parse(
        f"""\
target.generic<reference> @t {{subgroup_size = 8}}

kernel.def target(@t) export("k") @k() {{
{constants}
  kernel.launch.config workgroups(%cx, %cy, %cz) workgroup_size(%sx, %sy, %sz) : index
}} launch({arguments}) {{
  %c0 = index.constant 0 : index
  %c1 = index.constant 1 : index
  %c4 = index.constant 4 : index
  %zero = index.constant 0 : offset
  %g = kernel.workitem.dispatch.id<x> : index
  %l = kernel.workitem.id<x> : index
  %va = buffer.view %a[%zero] : buffer -> view<64xi32>
  %vb = buffer.view %b[%zero] : buffer -> view<64xi32>
  %x = view.load %va[%g] : view<64xi32> -> i32
  %li = index.cast %l : index to i32
  %two = scalar.constant 2 : i32
  %eight = scalar.constant 8 : i32
  %odd = scalar.andi %x, %one : i32
  %isodd = scalar.cmpi eq, %odd, %one : i32
{body}
  kernel.return
}}

func.decl @elsewhere()

func.def inline @both(%p: i32, %q: i32, %v: view<64xi32>) -> (i32, i32) {{
  %l = kernel.workitem.id<x> : index
  %more = scalar.cmpi sgt, %p, %q : i32
  %r = scf.if %more -> (i32) {{
    %y = view.load %v[%l] : view<64xi32> -> i32
    scf.yield %y : i32
  }} else {{
    scf.yield %q : i32
  }}
  func.return %r, %p : i32, i32
}}
""".replace("  %odd =", "  %one = scalar.constant 1 : i32\n  %odd =")
    )


def both(
    module: Module, *more: Any, count: Sizes = (1, 1, 1), size: Sizes = (32, 1, 1), seed: int = 0
) -> np.ndarray[Any, Any]:
    """Run on the simulator, by the references, and workitem by workitem; the bytes of the second buffer, all equal."""
    pick = np.random.default_rng(seed)
    a = pick.integers(-1000, 1000, 64).astype(np.int32)
    b = pick.integers(-1000, 1000, 64).astype(np.int32)
    results = []
    for interpret in (False, True):
        first, second = a.copy(), b.copy()
        with loom.knobs.override(interpret=interpret):
            loom.run(module, first, second, *more)
        results.append((first, second))
    first, second = a.copy(), b.copy()
    run_workitems(module, count, size, [first.view(np.uint8), second.view(np.uint8), *more], subgroup=8)
    for result in results:
        np.testing.assert_array_equal(result[0], first)
        np.testing.assert_array_equal(result[1], second)
    return second


STORE = "\n  view.store %r, %vb[%g] : i32, view<64xi32>"
BODIES = {
    "straight": "  %r = scalar.addi %x, %li : i32" + STORE,
    "divergent if": """\
  %r = scf.if %isodd -> (i32) {
    %y = scalar.muli %x, %two : i32
    view.store %y, %va[%g] : i32, view<64xi32>
    scf.yield %y : i32
  } else {
    scf.yield %li : i32
  }""" + STORE,
    "one-sided if": """\
  scf.if %isodd {
    view.store %li, %vb[%g] : i32, view<64xi32>
  }""",
    "uniform if": """\
  %w = kernel.workgroup.id<x> : index
  %first = index.cmp eq, %w, %c0 : index
  %r = scf.if %first -> (i32) {
    scf.yield %x : i32
  } else {
    scf.yield %two : i32
  }""" + STORE,
    "uniform loop": """\
  %r = scf.for %i = [%c0 to %c4 step %c1](%acc = %x : i32) -> (i32) {
    %v = view.load %va[%i] : view<64xi32> -> i32
    %n = scalar.addi %acc, %v : i32
    scf.yield %n : i32
  }""" + STORE,
    "loop with divergent bounds": """\
  %r = scf.for %i = [%c0 to %l step %c4](%acc = %one : i32) -> (i32) {
    %v = view.load %va[%i] : view<64xi32> -> i32
    %n = scalar.xori %acc, %v : i32
    scf.if %isodd {
      view.store %n, %va[%g] : i32, view<64xi32>
    }
    scf.yield %n : i32
  }""".replace("      view.store %n, %va[%g]", "      view.store %n, %vb[%g]") + STORE,
    "loop in a branch": """\
  %r = scf.if %isodd -> (i32) {
    %s = scf.for %i = [%c0 to %c4 step %c1](%acc = %x : i32) -> (i32) {
      %n = scalar.addi %acc, %li : i32
      scf.yield %n : i32
    }
    scf.yield %s : i32
  } else {
    scf.yield %x : i32
  }""" + STORE,
    "divergent while": """\
  %h = scalar.andi %x, %seven : i32
  %r, %steps = scf.while(%v = %h : i32, %k = %one : i32) -> (i32, i32) {
    %go = scalar.cmpi sgt, %v, %one : i32
    scf.condition %go, %v, %k : i1, i32, i32
  } do(%p: i32, %q: i32) {
    %d = scalar.subi %p, %two : i32
    %m = scalar.addi %q, %li : i32
    scf.yield %d, %m : i32, i32
  }
  view.store %steps, %va[%g] : i32, view<64xi32>""" + STORE,
    "switch": """\
  %m = index.andi %l, %c3 : index
  %r = scf.switch %m -> (i32) {
    case 0 {
      scf.yield %x : i32
    }
    case 2 {
      %y = scalar.addi %x, %x : i32
      scf.yield %y : i32
    }
    default {
      scf.yield %li : i32
    }
  }""" + STORE,
    "lookup and select": """\
  %m = index.andi %l, %c3 : index
  %p, %q = scf.lookup %m {
    0 = (%x, %one),
    2 = (%li, %two)
  } default(%eight, %x) : i32, i32
  %r = scf.select %isodd, %p, %q : i32""" + STORE,
    "exit": """\
  kernel.exit %isodd : i1 {
    view.store %one, %vb[%g] : i32, view<64xi32>
  }
  %r = scalar.negi %x : i32""" + STORE,
    "nested divergence": """\
  %r = scf.for %i = [%c0 to %l step %c1](%acc = %x : i32) -> (i32) {
    %p = index.andi %i, %c1 : index
    %even = index.cmp eq, %p, %c0 : index
    %n = scf.if %even -> (i32) {
      %s = scf.if %isodd -> (i32) {
        %y = scalar.addi %acc, %li : i32
        scf.yield %y : i32
      } else {
        scf.yield %acc : i32
      }
      scf.yield %s : i32
    } else {
      %y = scalar.xori %acc, %two : i32
      scf.yield %y : i32
    }
    scf.yield %n : i32
  }""" + STORE,
    "workgroup memory": """\
  %bytes = index.constant 128 : offset
  %m = buffer.alloca<workgroup> align(16) %bytes : buffer
  %vm = buffer.view %m[%zero] : buffer -> view<32xi32>
  view.store %x, %vm[%l] : i32, view<32xi32>
  kernel.barrier<workgroup> scope(workgroup) ordering(acq_rel)
  %last = index.constant 31 : index
  %back = index.sub %last, %l : index
  %r = view.load %vm[%back] : view<32xi32> -> i32""" + STORE,
    "subgroup reduction": "  %r = kernel.subgroup.reduce<addi> %x : i32" + STORE,
    "subgroup scans": """\
  %p = kernel.subgroup.scan<addi> %x {direction = forward, mode = inclusive} : i32
  %q = kernel.subgroup.scan<xori> %x {direction = reverse, mode = exclusive} : i32
  %r = scalar.addi %p, %q : i32""" + STORE,
    "workgroup reductions and scans": """\
  %p = kernel.workgroup.reduce<maxsi> %x : i32
  %q = kernel.workgroup.scan<addi> %x {direction = forward, mode = exclusive} : i32
  %r = scalar.addi %p, %q : i32""" + STORE,
    "reduction of some": """\
  %r = scf.if %isodd -> (i32) {
    %s = kernel.subgroup.reduce<addi> %x : i32
    %f = kernel.subgroup.broadcast.first %x : i32
    %m = kernel.subgroup.active.mask : i32
    %t = scalar.addi %s, %f : i32
    %u = scalar.addi %t, %m : i32
    scf.yield %u : i32
  } else {
    scf.yield %x : i32
  }""" + STORE,
    "votes": """\
  %big = scalar.cmpi sgt, %x, %eight : i32
  %any = kernel.subgroup.vote.any %big : i1
  %all = kernel.subgroup.vote.all %big : i1
  %ballot = kernel.subgroup.vote.ballot %big : i1 -> i32
  %n = kernel.workgroup.vote.count %big : i1 -> i32
  %p = scalar.extui %any : i1 to i32
  %q = scalar.extsi %all : i1 to i32
  %s = scalar.addi %p, %q : i32
  %t = scalar.addi %ballot, %n : i32
  %r = scalar.xori %s, %t : i32""" + STORE,
    "shuffles": """\
  %p, %vp = kernel.subgroup.shuffle<xor> %x, %two, %eight : i32, i32, i32
  %q, %vq = kernel.subgroup.shuffle<up> %x, %one, %four : i32, i32, i32
  %s, %vs = kernel.subgroup.shuffle<down> %x, %two, %eight : i32, i32, i32
  %t, %vt = kernel.subgroup.shuffle<index> %x, %one, %four : i32, i32, i32
  %u = kernel.subgroup.broadcast %x from %two : i32, i32
  %e = scalar.extui %vq : i1 to i32
  %f = scalar.extui %vs : i1 to i32
  %m = scalar.addi %p, %q : i32
  %n = scalar.addi %s, %t : i32
  %o = scalar.addi %u, %e : i32
  %w = scalar.addi %m, %n : i32
  %y = scalar.addi %o, %f : i32
  %r = scalar.xori %w, %y : i32""" + STORE,
    "atomics": """\
  %old = view.atomic.rmw<addi> %x, %vb[0] {ordering = relaxed, scope = workgroup} : i32, view<64xi32> -> i32
  scf.if %isodd {
    view.atomic.reduce<maxsi> %x, %vb[1] {ordering = relaxed, scope = workgroup} : i32, view<64xi32>
  }""",
    "matches": """\
  %near = scalar.andi %x, %one : i32
  %m = kernel.subgroup.match.any %near : i32 -> i32
  %r = scf.if %isodd -> (i32) {
    %all, %alike = kernel.subgroup.match.all %near : i32 -> i32
    %bit = scalar.extui %alike : i1 to i32
    %s = scalar.addi %all, %bit : i32
    scf.yield %s : i32
  } else {
    %all, %alike = kernel.subgroup.match.all %x : i32 -> i32
    scf.yield %all : i32
  }
  view.store %m, %va[%g] : i32, view<64xi32>""" + STORE,
    "private memory": """\
  %bytes = index.constant 16 : offset
  %m = buffer.alloca<private> align(4) %bytes : buffer
  %vm = buffer.view %m[%zero] : buffer -> view<4xi32>
  scf.for %i = [%c0 to %c4 step %c1] {
    %ii = index.cast %i : index to i32
    %y = scalar.muli %ii, %x : i32
    view.store %y, %vm[%i] : i32, view<4xi32>
  }
  %at = index.andi %l, %c3 : index
  %r = view.load %vm[%at] : view<4xi32> -> i32""" + STORE,
    "ranges of bytes": """\
  %o = index.cast %g : index to offset
  %length = index.constant 5 : offset
  %start = index.constant 16 : offset
  %p = index.scale %g, %start : index, offset -> offset
  %six = index.constant 6 : offset
  %p6 = index.add %p, %six : offset
  %low = index.cmp slt, %g, %c4 : index
  %f = scf.if %low -> (i32) {
    buffer.copy %a[%o], %b[%p], %length
    %half = scalar.trunci %x : i32 to i16
    buffer.fill %half, %b[%p6], %length : i16
    %c = buffer.compare %a[%o], %b[%p], %length
    scf.yield %c : i32
  } else {
    scf.yield %x : i32
  }
  %q = index.madd %g, %c4, %c3 : index
  scf.if %low {
    view.store %f, %vb[%q] : i32, view<64xi32>
  }""",
    "calls": """\
  %p, %q = func.call @both(%x, %li, %va) : (i32, i32, view<64xi32>) -> (i32, i32)
  %s, %t = func.call @both(%two, %one, %va) : (i32, i32, view<64xi32>) -> (i32, i32)
  %u = scalar.addi %p, %q : i32
  %v = scalar.addi %s, %t : i32
  %r = scalar.xori %u, %v : i32""" + STORE,
    "uniform while": """\
  %first = view.load %va[0] : view<64xi32> -> i32
  %start = scalar.andi %first, %seven : i32
  %last, %sum = scf.while(%i = %start : i32, %acc = %x : i32) -> (i32, i32) {
    %go = scalar.cmpi sgt, %i, %one : i32
    scf.condition %go, %i, %acc : i1, i32, i32
  } do(%p: i32, %q: i32) {
    %d = scalar.subi %p, %two : i32
    %m = scalar.addi %q, %li : i32
    scf.yield %d, %m : i32, i32
  }
  %r = scalar.xori %sum, %last : i32""" + STORE,
    "loads while some run": """\
  kernel.exit %isodd : i1
  %r = scf.for %i = [%c0 to %c4 step %c1](%acc = %one : i32) -> (i32) {
    %v = view.load %va[%i] : view<64xi32> -> i32
    %n = scalar.addi %acc, %v : i32
    scf.yield %n : i32
  }""" + STORE,
    "bytes": """\
  %o = index.cast %g : index to offset
  %byte = buffer.load.i8.u %a[%o]
  %n = buffer.length %a
  %len = index.cast %n : offset to i32
  %sum = scalar.addi %byte, %len : i32
  buffer.store.i8 %sum, %b[%o]""",
    "scaled offsets": """\
  %stride = index.constant 16 : offset
  %o = index.scale %c1, %stride : index, offset -> offset
  %part = buffer.view %a[%o] : buffer -> view<2x[%c4]xi32>
  %col = index.andi %l, %c3 : index
  %v = view.load %part[1, %col] : view<2x[%c4]xi32> -> i32
  %row = view.subview %part[1, 0] : view<2x[%c4]xi32> -> view<1x[%c4]xi32>
  %w = view.load %row[0, %col] : view<1x[%c4]xi32> -> i32
  %r = scalar.subi %v, %w : i32
  view.store %v, %vb[%g] : i32, view<64xi32>""",
}  # fmt: skip
PROLOGUE = "  %c3 = index.constant 3 : index\n  %four = scalar.constant 4 : i32\n  %seven = scalar.constant 7 : i32\n"


@pytest.mark.parametrize("name", BODIES)
def test_against_workitems_on_their_own(name: str) -> None:
    module = kernel(PROLOGUE + BODIES[name], count=(2, 1, 1))
    both(module, count=(2, 1, 1))


@pytest.mark.parametrize("size", [(1, 1, 1), (3, 1, 1), (5, 2, 2), (64, 1, 1)])
def test_sizes_of_workgroups(size: Sizes) -> None:
    body = """\
  %y = kernel.workitem.id<y> : index
  %z = kernel.workitem.id<z> : index
  %w = kernel.workgroup.size<x> : index
  %yz = index.madd %z, %c4, %y : index
  %at = index.madd %yz, %w, %l : index
  %ati = index.cast %at : index to i32
  scf.if %isodd {
    view.store %ati, %vb[%at] : i32, view<64xi32>
  }"""
    both(kernel(PROLOGUE + body, size=size), size=size)


def test_numbers_of_the_launch() -> None:
    body = "  %p = scalar.muli %x, %k : i32\n  %r = scalar.addi %p, %li : i32" + STORE
    module = kernel(body, arguments="%a: buffer, %b: buffer, %k: i32")
    both(module, -7)
    with pytest.raises(loom.LoomError, match="k is i32, which cannot hold 4294967296"):
        loom.run(module, np.zeros(64, np.int32), np.zeros(64, np.int32), 2**32)


def test_arguments() -> None:
    module = kernel("  %r = scalar.negi %x : i32" + STORE)
    a, b = np.arange(64, dtype=np.int32), np.zeros(64, np.int32)
    loom.run(module, a, b=b, kernel="k")
    assert np.array_equal(b[:32], -a[:32])
    for given, message in (
        ((a,), "b is missing"),
        ((a, b, b), "3 arguments given, it has 2"),
        ((a, 3), "b is a buffer, and was given 3"),
        ((a, b[::2]), "b is not contiguous"),
    ):
        with pytest.raises(loom.LoomError, match=message):
            loom.run(module, *given)
    with pytest.raises(loom.LoomError, match="it has no argument c"):
        loom.run(module, a, b, c=b)
    with pytest.raises(loom.LoomError, match="no kernel @other"):
        loom.run(module, a, b, kernel="other")
    with pytest.raises(loom.LoomError, match="not aligned"):
        loom.run(module, a, np.zeros(257, np.uint8)[1:])
    b.flags.writeable = False
    with pytest.raises(loom.LoomError, match="read-only"):
        loom.run(module, a, b)


def test_on_the_command_line(tmp_path: Path) -> None:
    text = print_loom_module(build_copy_kernel())
    for name, data in (("copy.loom", text.encode()), ("copy.loombc", write_module(parse(text)))):
        (tmp_path / name).write_bytes(data)
        source = np.arange(64, dtype=np.uint8)[::-1]
        np.savez(tmp_path / "in.npz", source=source)
        files = [str(tmp_path / name) for name in (name, "in.npz", "out.npz")]
        command = ["run", files[0], "--inputs", files[1], "--arg", "target=u8[64]", "--outputs", files[2]]
        result = CliRunner().invoke(main, command)
        assert (result.exit_code, result.stderr) == (0, "")
        with np.load(files[2]) as found:
            assert found.files == ["target"]
            assert np.array_equal(found["target"], source)


@pytest.mark.parametrize(
    ("arguments", "code", "exit_code"),
    [
        ([], "LOOM-K103", 2),
        (["--arg", "source=u8[64]", "--arg", "target=u8[64]", "--arg", "more=1"], "LOOM-K104", 2),
        (["--grid", "2"], "LOOM-K106", 2),
        (["--config", "n"], "LOOM-K102", 2),
        (["--config", "n=1"], "LOOM-F503", 1),
        (["--kernel", "other"], "LOOM-F502", 1),
        (["--arg", "source=u8[64]", "--arg", "target=u8[63]"], "LOOM-S101", 1),
    ],
)
def test_misuse_on_the_command_line(tmp_path: Path, arguments: list[str], code: str, exit_code: int) -> None:
    path = tmp_path / "copy.loom"
    path.write_text(print_loom_module(build_copy_kernel()), encoding="utf-8")
    result = CliRunner().invoke(main, ["run", str(path), *arguments])
    assert f"error[{code}]" in result.stderr
    assert result.exit_code == exit_code


def test_unsound_modules_on_the_command_line(tmp_path: Path) -> None:
    path = tmp_path / "bad.loom"
    path.write_text("func.def @f() {\n  func.call @x() : () -> ()\n  func.return\n}\n", encoding="utf-8")
    result = CliRunner().invoke(main, ["run", str(path)])
    assert result.exit_code == 1
    assert f"{path}:2:3: error [SYMBOL/002]" in result.stderr
    assert "error[LOOM-K110]" in result.stderr


def test_bounds_are_checked() -> None:
    module = kernel("  %r = scalar.negi %x : i32" + STORE)
    with pytest.raises(loom.LoomError, match="LOOM-S101"):
        loom.run(module, np.zeros(64, np.int32), np.zeros(31, np.int32))


def test_configuration_arguments() -> None:
    text = print_loom_module(kernel("  %r = scalar.negi %x : i32" + STORE, size=(16, 1, 1)))
    module = parse(text.replace("@k() {\n  %cx = index.constant 1 : index\n", "@k(%cx: index) {\n"))
    a, b = np.arange(64, dtype=np.int32), np.zeros(64, np.int32)
    loom.run(module, a, b, config={"cx": 3})
    assert np.array_equal(b, np.where(np.arange(64) < 48, -a, 0))
    with pytest.raises(loom.LoomError, match="its configuration needs cx"):
        loom.run(module, a, b)
    with pytest.raises(loom.LoomError, match="a size of 0 is none"):
        loom.run(module, a, b, config={"cx": 0})


def test_deep_control_flow() -> None:
    """As deep as texts may nest, from a deep stack: no recursion ends anything."""
    depth = 62
    body = "  scf.if %isodd {\n" * depth + "  view.store %li, %vb[%g] : i32, view<64xi32>\n" + "  }\n" * depth

    def from_below(frames: int) -> None:
        if frames:
            from_below(frames - 1)
            return
        module = kernel(body)
        assert print_loom_module(read_module(write_module(module), verify=True)) == print_loom_module(module)
        prepare(module)

    from_below(300)
    with pytest.raises(ParseError, match="regions nest more than 64 deep"):
        kernel("  scf.if %isodd {\n" * 70)


@pytest.mark.parametrize("seed", range(2))
def test_every_operation_is_converted_or_refused(seed: int) -> None:
    outcomes = Counter[str]()
    for op in PLAIN:
        module = operation_module(op, seed, in_kernel=True)
        try:
            prepare(module)
            outcomes["converted"] += 1
        except loom.LoomError as error:
            assert {found.code for found in error.diagnostics} <= {"LOOM-F501"}
            outcomes["refused"] += 1
        except loom.LoomDiagnosticError:
            outcomes["unsound"] += 1
    assert outcomes["converted"] > 50
    assert outcomes["refused"] > 50


REFUSED = {
    "  cfg.br ^b\n^b:": "control flow between blocks",
    "  %v = vector.splat %x : vector<4xi32>": "vectors of a workitem are not mapped",
    "  %o = index.cast %g : index to offset\n  %v = buffer.view %a[%o] : buffer -> view<4xf32>": "a multiple of 4",
    "  view.atomic.reduce<muli> %x, %vb[0] {ordering = relaxed, scope = device} : i32, view<64xi32>": "atomic muli",
    "  %p = buffer.alloca<global> align(4) %zero : buffer": "global memory is not allocated by kernels",
    "  %f = scalar.sitofp %x : i32 to f32\n  %s = scalar.sinturnsf %f : f32": "no function of these bits",
    "  %m = kernel.cluster.id<x> : index": "no counterpart on the machine",
    "  func.call @elsewhere() : () -> ()": "a function of one block of this module",
}


@pytest.mark.parametrize("body", REFUSED)
def test_what_has_no_counterpart_fails_closed(body: str) -> None:
    module = kernel(body)
    with pytest.raises(loom.LoomError) as caught:
        loom.run(module, np.zeros(64, np.int32), np.zeros(64, np.int32))
    (found,) = caught.value.diagnostics
    assert found.code == "LOOM-F501"
    assert REFUSED[body] in found.message
    assert found.location.file == "<input>"
    assert found.location.line > 20 or "cfg" in body
