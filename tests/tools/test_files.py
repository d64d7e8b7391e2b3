"""Writing files whole or not at all."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from loom_core.tools.diagnostics import UnwritableFile
from loom_core.tools.files import write_file


def test_new_files_and_their_mode(tmp_path: Path) -> None:
    target = tmp_path / "a.loom"
    before = os.umask(0o027)
    try:
        write_file(target, b"one")
    finally:
        os.umask(before)
    assert target.read_bytes() == b"one" and stat.S_IMODE(target.stat().st_mode) == 0o640
    target.chmod(0o600)
    write_file(target, b"two")
    assert target.read_bytes() == b"two" and stat.S_IMODE(target.stat().st_mode) == 0o600
    assert list(tmp_path.iterdir()) == [target]


def test_links_stay_links(tmp_path: Path) -> None:
    target, link = tmp_path / "a.loom", tmp_path / "b.loom"
    target.write_bytes(b"one")
    link.symlink_to(target)
    write_file(link, b"two")
    assert link.is_symlink() and target.read_bytes() == b"two"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
def test_devices_are_written_to(tmp_path: Path) -> None:
    write_file(Path(os.devnull), b"one")
    assert not Path(os.devnull).is_file()


def test_a_full_disk_leaves_what_was_there(tmp_path: Path) -> None:
    resource = pytest.importorskip("resource")
    target = tmp_path / "a.loom"
    target.write_bytes(b"one")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, hard))
    try:
        with pytest.raises(UnwritableFile, match="File too large"):
            write_file(target, bytes(5000))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert target.read_bytes() == b"one" and list(tmp_path.iterdir()) == [target]


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UnwritableFile, match="No such file"):
        write_file(tmp_path / "none" / "a.loom", b"one")
