"""LOOM_DUMP_DIR and LOOM_DEBUG with a kernel that the disk cache has."""

from __future__ import annotations

from pathlib import Path

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
