"""`loomc doctor` in a healthy place and in broken ones."""

from __future__ import annotations

import importlib.metadata
import json
import os
from pathlib import Path

import pytest
from click.testing import CliRunner

from loom_core.tools import doctor
from loom_core.tools.loomc import main


def findings(**environment: str) -> tuple[int, list[dict[str, str]]]:
    result = CliRunner().invoke(main, ["doctor", "--json"], env=environment)
    return result.exit_code, json.loads(result.stdout)


def about(found: list[dict[str, str]], subject: str) -> dict[str, str]:
    return next(finding for finding in found if finding["subject"] == subject)


def test_a_healthy_place() -> None:
    code, found = findings()
    assert code == 0 and all(finding["status"] != "wrong" for finding in found)
    assert about(found, "numba")["found"] == importlib.metadata.version("numba")
    assert about(found, "trial")["found"].startswith("product and softmax, bits as the reference has them")
    plain = CliRunner().invoke(main, ["doctor"])
    assert plain.exit_code == 0 and "\x1b" not in plain.stdout
    assert all(finding["subject"] in plain.stdout for finding in found)


def test_wrong_and_unknown_variables() -> None:
    code, found = findings(LOOM_VERIFY="never", LOOM_CHEK="1")
    assert code == 1
    assert about(found, "LOOM_VERIFY")["status"] == "wrong"
    assert about(found, "LOOM_CHEK") == {
        "subject": "LOOM_CHEK", "found": "'1', which nothing reads", "status": "note",
        "hint": "did you mean LOOM_CHECK?",
    }  # fmt: skip


def test_a_cache_that_is_a_file(tmp_path: Path) -> None:
    place = tmp_path / "taken"
    place.write_text("")
    with pytest.warns(UserWarning, match="compiled objects cannot be kept"):
        code, found = findings(LOOM_CACHE_DIR=str(place))
    assert code == 1
    broken = next(finding for finding in found if finding["subject"] == "cache" and finding["status"] == "wrong")
    assert "cannot be written" in broken["found"] and "LOOM_CACHE_DIR" in broken["hint"]
    assert about(found, "trial")["status"] == "ok"  # it works all the same


def test_a_kernel_with_wrong_bits_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    import loom_core.launch

    plain = loom_core.launch.interpret_variant

    def off_by_one(variant, views, scalars, grid):  # type: ignore[no-untyped-def]
        import ctypes

        plain(variant, views, scalars, grid)
        ctypes.c_uint32.from_address(views[1].address).value ^= 1

    monkeypatch.setattr(loom_core.launch, "interpret_variant", off_by_one)
    found = list(doctor.trial())
    assert found[0].status == "wrong" and found[0].found == "1 of 4096 elements differ from the reference"


def test_a_check_that_breaks_is_a_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken():  # type: ignore[no-untyped-def]
        raise OSError("no such thing")
        yield

    monkeypatch.setattr(doctor, "CHECKS", (broken,))
    assert [(f.subject, f.found, f.status) for f in doctor.examine()] == [("broken", "OSError: no such thing", "wrong")]
    monkeypatch.setitem(os.environ, "LOOM_FULL_TRACEBACK", "1")
    with pytest.raises(OSError, match="no such thing"):
        list(doctor.examine())
