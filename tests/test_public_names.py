"""What `loom` and `loom.triton` give."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import loom
import loom.triton as triton
import ltl


@pytest.mark.parametrize("module", [loom, triton])
def test_every_name_is_there(module: object) -> None:
    names = module.__all__  # type: ignore[attr-defined]
    assert [name for name in names if not hasattr(module, name)] == []
    assert set(names) <= set(dir(module))


def test_objects_are_written_and_read(tmp_path: Path) -> None:
    @ltl.jit
    def twice(x, BLOCK: ltl.constexpr):  # type: ignore[no-untyped-def]
        at = ltl.arange(0, BLOCK)
        ltl.store(x + at, ltl.load(x + at) * 2)

    compiled = twice.compile("*fp32", 8, machine=loom.L1_MINI)
    path = tmp_path / "twice.loom"
    path.write_bytes(loom.write_object(compiled))
    again = loom.read_object(path.read_bytes())
    assert isinstance(again, loom.LoomObject)
    assert again.machine == loom.L1_MINI
    assert loom.write_object(again) == path.read_bytes()
    with pytest.raises(loom.LoomError):
        loom.read_object(b"nothing")


def test_triton_names() -> None:
    assert triton.jit is ltl.jit
    assert triton.cdiv(1000, 256) == 4
    assert [triton.next_power_of_2(n) for n in (1, 2, 3, 1000, 1024)] == [1, 2, 4, 1024, 1024]
    assert triton.language.load is ltl.load


def test_a_kernel_spelled_like_triton() -> None:
    tl = triton.language

    @triton.jit
    def add(x, y, n, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
        at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        tl.store(y + at, tl.load(x + at, mask=at < n) + 1, mask=at < n)

    x, y = np.arange(10, dtype=np.float32), np.zeros(10, np.float32)
    add[(triton.cdiv(10, 4),)](x, y, 10, BLOCK=triton.next_power_of_2(3))
    assert np.array_equal(y, x + 1)


def test_absent_names_say_what_is_there() -> None:
    with pytest.raises(AttributeError, match=r"loom\.triton has no 'reinterpret'; it has .*\bjit\b"):
        _ = triton.reinterpret
    with pytest.raises(AttributeError, match=r"has no attribute 'compile'; it has .*read_object"):
        _ = loom.compile
