"""Kernels in a REPL and in a notebook: their signature, and the variants of them that are compiled."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from loom_core.base.html import document, table, tag
from loom_core.base.units import byte_count

if TYPE_CHECKING:
    from loom_core.launch import Variant


def kernel_text(signature: str, where: str, variants: int) -> str:
    """One line: `<kernel add(x, y) at add.py:3, 2 variants>`."""
    compiled = "" if not variants else f", {variants} variant{'s' * (variants > 1)}"
    return f"<kernel {signature} at {where}{compiled}>"


def kernel_html(signature: str, where: str, parameters: Sequence[str], variants: Iterable[Variant]) -> str:
    """Signature and place, then a row for each object: what it was compiled for, its commands and SRAM."""
    rows = list(_rows(variants))
    objects = table((*parameters, "machine", "commands", "SRAM", "assumes"), rows)
    return document(
        tag("div", tag("b", "kernel "), tag("code", signature), " ", tag("span", where, class_="faint")),
        objects if rows else tag("div", "not compiled yet", class_="faint"),
    )


def _rows(variants: Iterable[Variant]) -> Iterator[Sequence[object]]:
    for variant in variants:
        for apart, kernel in variant.compiled():
            found = kernel.object
            used = byte_count(found.commands.nbytes), byte_count(found.abi.sram_bytes_used)
            assumes = "no overlap" if apart else ""
            yield (*(tag("code", spec) for spec in variant.specs), variant.machine.name, *used, assumes)
