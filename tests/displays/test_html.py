"""The pieces that displays are made of."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree

import pytest

from loom_core.base import html
from loom_core.base.diagnostics import Diagnostic
from loom_core.base.location import Location
from tests.displays.markup import parsed, text_of


def test_text_is_escaped_and_markup_is_not() -> None:
    made = html.tag("td", "<script>", html.tag("b", "x & y"), title='a"b')
    assert made == '<td title="a&quot;b">&lt;script&gt;<b>x &amp; y</b></td>'
    assert html.tag("rect", stroke_width=2, class_="x", fill=None) == '<rect stroke-width="2" class="x"></rect>'


def test_a_table_sets_numbers_to_the_right() -> None:
    tree = parsed(html.table(("name", "count"), [("<a>", 1234), ("b", 0.5), ("c", True)]))
    cells = [(cell.text, cell.get("class")) for cell in tree.iter("td")]
    assert cells == [("<a>", None), ("1,234", "number"), ("b", None), ("0.5", "number"), ("c", None), ("True", None)]


def test_parts_of_a_bar_stand_behind_each_other() -> None:
    _, first, second = parsed(html.bar([(0.5, "red", "busy"), (0.25, "blue", "waits")], width=200)).iter("rect")
    assert (first.get("x"), first.get("width"), text_of(first)) == ("0.00", "100.00", "busy")
    assert (second.get("x"), second.get("width")) == ("100.00", "50.00")


def test_terminal_colours_become_classes() -> None:
    assert html.coloured("a<\033[1;31merror\033[0m b") == 'a&lt;<span class="error">error</span> b'
    assert html.coloured("\033[35mx\033[0m") == "x"


def test_documents_and_pages_hold_no_script() -> None:
    whole = html.page("<title>", html.document("a < b"))
    assert "<script" not in whole and "a &lt; b" in whole and "&lt;title&gt;" in whole
    with pytest.raises(ElementTree.ParseError):
        parsed("<div><b></div>")


def test_a_diagnostic_shows_its_line_and_caret() -> None:
    where = Location(__file__, 1, 3, 9)
    found = Diagnostic("LOOM-X999", "a < b", where, hint="write <c>")
    text = text_of(parsed(found._repr_html_()))
    assert "error[LOOM-X999]: a < b" in text and "hint: write <c>" in text
    assert '"""The pieces that' in text and "^^^^^^" in text
