"""Tables in plain text and byte counts."""

from __future__ import annotations

import pytest

from loom_core.base.units import byte_count
from loom_core.tools.console import show_table


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0 B"), (1023, "1023 B"), (1024, "1 KiB"), (1536, "1.5 KiB"), (4 << 20, "4 MiB"), (1 << 60, "1048576 TiB")],
)
def test_byte_count(value: int, text: str) -> None:
    assert byte_count(value) == text


def test_plain_table(capsys: pytest.CaptureFixture[str]) -> None:
    show_table(("queue", "busy"), [("mxu", 1234), ("dma0", 7)], title="cycles")
    assert capsys.readouterr().out == "cycles\nqueue  busy\nmxu    1234\ndma0      7\n"


def test_table_without_rows(capsys: pytest.CaptureFixture[str]) -> None:
    show_table(("a", "b"), [])
    assert capsys.readouterr().out == "a  b\n"
