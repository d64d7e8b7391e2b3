"""LOOM_DUMP_DIR and LOOM_DEBUG with a kernel that the disk cache has; what launches cost."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import loom
import ltl


def _kernel() -> ltl.JitFunction:
    @ltl.jit
    def triple(x, BLOCK: ltl.constexpr):  # type: ignore[no-untyped-def]
        at = ltl.arange(0, BLOCK)
        ltl.store(x + at, ltl.load(x + at) * 3)

    return triple


def test_a_cached_kernel_is_dumped(tmp_path: Path) -> None:
    with loom.knobs.override(cache_dir=tmp_path / "cache"):
        compiled = _kernel().compile("*fp32", 8)
        assert list((tmp_path / "cache").rglob("*.loom"))
        with loom.knobs.override(dump_dir=tmp_path / "dump"):
            _kernel().compile("*fp32", 8)
    assert (tmp_path / "dump" / "triple.loom").read_bytes() == loom.write_object(compiled)
    assert (tmp_path / "dump" / "triple.asm").is_file()


def test_a_cached_kernel_is_compiled_where_that_is_shown(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with loom.knobs.override(cache_dir=tmp_path, debug=1):
        _kernel().compile("*fp32", 8)
        _kernel().compile("*fp32", 8)
        assert "compiled triple" not in capfd.readouterr().err
        with loom.knobs.override(debug=2):
            _kernel().compile("*fp32", 8)
    assert "compiled triple: passes" in capfd.readouterr().err


def test_profile_gives_the_traces_of_launches_of_any_language() -> None:
    from loom.experimental import palladium as lpl

    kernel, x = _kernel(), np.ones(8, np.float32)
    double = lpl.kernel(lambda x_ref, o_ref: o_ref.__setitem__(..., x_ref[...] * 2), out_shape=x)
    kernel[(1,)](x, BLOCK=8)  # the next launch is a warm one
    with loom.profile() as traces:
        kernel[(1,)](x, BLOCK=8)
        found = double(x)
        with loom.profile() as inner:
            double(x)
    double(x)
    assert (x == 9).all() and (found == 18).all()
    assert [trace.cycles for trace in traces] == [
        kernel.trace(x, BLOCK=8, grid=(1,)).cycles,
        double.trace(x).cycles,
    ]
    assert traces.cycles == sum(trace.cycles for trace in traces) and len(inner) == 1


def test_cycles_of_launches_are_shown(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    kernel, x = _kernel(), np.ones(8, np.float32)
    kernel[(1,)](x, BLOCK=8)
    monkeypatch.setenv("LOOM_PROFILE", "1")
    kernel[(1,)](x, BLOCK=8)
    shown = capfd.readouterr().err
    assert shown.startswith("loom: triple <Trace on l1: ") and shown.count("\n") == 1
    assert (x == 9).all()
