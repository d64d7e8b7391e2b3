"""Pieces of HTML for displays in notebooks: text is escaped unless it is `Markup`, pictures are SVG; no scripts.

Colours are such that they can be read on light and on dark ground: text has the colour of its surroundings, areas are
translucent. Imported by `_repr_html_` methods when they are called.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Sequence
from typing import Final

STYLE: Final = """\
.loom{font-size:13px;line-height:1.4;max-width:960px}
.loom table{border-collapse:collapse;margin:4px 0}
.loom td,.loom th{padding:1px 10px 1px 0;text-align:left;border:0;background:none;white-space:nowrap}
.loom th{font-weight:600;border-bottom:1px solid rgba(127,127,127,.5)}
.loom .number{text-align:right}
.loom pre,.loom code{font-family:ui-monospace,Menlo,Consolas,monospace;font-size:12px;background:none;color:inherit}
.loom pre{margin:4px 0;padding:6px 8px;background:rgba(127,127,127,.1);overflow:auto;max-height:480px;line-height:1.35}
.loom svg{display:block;margin:4px 0}
.loom svg text{fill:currentColor;font-size:11px;font-family:inherit}
.loom .faint{opacity:.7}
.loom .name{color:#2f7fd1}.loom .word{color:#b0651d}.loom .type{color:#3d8f52}.loom .note{opacity:.65}
.loom .error{color:#d64545;font-weight:600}
"""

DMA, MXU, SCE, ACP, WAITING = "#3b82f6", "#e08a1e", "#2fa36b", "#8b6fd1", "#d64545"
"""Colours of the queues, and of waiting."""


class Markup(str):
    """Text that is HTML already."""

    __slots__ = ()


def tag(name: str, *children: object, **attributes: object) -> Markup:
    """An element. Names of attributes have `-` for `_`, and none at their end: `class_="x"`; None leaves one out."""
    given = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{html.escape(str(value))}"'
        for key, value in attributes.items()
        if value is not None
    )
    return Markup(f"<{name}{given}>{join(children)}</{name}>")


def join(children: Iterable[object]) -> Markup:
    """Children behind each other, escaped where they are plain."""
    return Markup("".join(child if isinstance(child, Markup) else html.escape(str(child)) for child in children))


def table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> Markup:
    """A table; cells that are numbers stand to the right."""
    lines = [tag("tr", *(tag("th", column) for column in columns))] if any(columns) else []
    lines += [tag("tr", *map(_cell, row)) for row in rows]
    return tag("table", *lines)


def _cell(value: object) -> Markup:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return tag("td", f"{value:,}" if isinstance(value, int) else f"{value:g}", class_="number")
    return tag("td", value)


_ANSI: Final = re.compile("\033\\[([0-9;]*)m")
_CLASSES: Final = {"1;31": "error", "1;32": "type", "1;33": "word", "1;36": "name"}


def coloured(text: str) -> Markup:
    """Text with the colour codes of a terminal, each stretch up to the next code with the class of its colour."""
    first, *rest = _ANSI.split(text)
    pairs = zip(rest[::2], rest[1::2], strict=True)
    return join(
        (first, *(tag("span", part, class_=_CLASSES[code]) if code in _CLASSES else part for code, part in pairs))
    )


def bar(parts: Sequence[tuple[float, str, str]], width: int = 240, height: int = 10) -> Markup:
    """A bar of `width` pixels on faint ground: of each part the share (0 to 1), the colour and what it is."""
    drawn = [tag("rect", width=width, height=height, fill="rgba(127,127,127,.18)")]
    left = 0.0
    for share, colour, title in parts:
        drawn.append(
            tag("rect", tag("title", title), x=f"{left:.2f}", width=f"{share * width:.2f}", height=height, fill=colour)
        )
        left += share * width
    return tag("svg", *drawn, width=width, height=height, viewBox=f"0 0 {width} {height}")


def document(*children: object) -> str:
    """What a `_repr_html_` returns: the children with the style that they need."""
    return str(tag("div", Markup(f"<style>{STYLE}</style>"), *children, class_="loom"))


def page(title: str, body: str) -> str:
    """A file of its own that shows `body`, the result of `document`."""
    return (
        '<!doctype html><html><head><meta charset="utf-8"><meta name="color-scheme" content="light dark">'
        f"<title>{html.escape(title)}</title></head><body>{body}</body></html>\n"
    )
