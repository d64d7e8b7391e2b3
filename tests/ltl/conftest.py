"""What tests of the kernel language share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture
def triton_on_loom(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Loom as the driver of the installed Triton, with caches of its own."""
    import triton
    from triton.runtime.driver import driver

    import loom.triton

    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    before = driver._active
    monkeypatch.setattr(triton.knobs.language, "fp32_default", None)
    loom.triton.install()
    yield
    driver.set_active(before)
