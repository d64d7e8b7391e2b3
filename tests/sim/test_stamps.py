"""Which edits make an engine stale."""

from __future__ import annotations

import ast

import pytest

from loom_sim import engines, stamps

HOMES = sorted(
    {f"loom_sim.{module}" for module, *_ in [*engines._BY_ELEMENT.values(), *engines._BUILDERS.values()]}
    | {f"loom_sim.{module}" for module in ("interpreter", "timeline", "checker", "elements")}
)
SOURCES = stamps._sources()


def parsed_imports(source: bytes) -> set[str]:
    """What a module imports, by Python's own grammar."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found.update(name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0 and node.module is not None
            names = {f"{node.module}.{name.name}" for name in node.names}
            found |= names & set(SOURCES)
            if not names <= set(SOURCES):
                found.add(node.module)
    return found & set(SOURCES)


def test_every_import_of_every_module_is_found() -> None:
    assert len(SOURCES) > 50
    for name, source in SOURCES.items():
        found = stamps.imported_modules(source.decode(), SOURCES)
        assert found >= parsed_imports(source), name


def edited(module: str) -> stamps.Sources:
    return stamps.Sources({**SOURCES, module: SOURCES[module] + b"\n"})


def test_an_edit_concerns_those_that_import_it() -> None:
    before = {home: stamps.Sources(SOURCES).stamp(home) for home in HOMES}

    def stale(module: str) -> set[str]:
        return {home for home in HOMES if edited(module).stamp(home) != before[home]}

    assert stale("loom_sim.dma") == {"loom_sim.dma"}
    assert stale("loom_sim.memory") == stale("loom_sim.jit") == set(HOMES)
    assert stale("loom_sim.trace") == set()
    assert {"loom_sim.stream", "loom_sim.elements"} <= stale("loom_sim.elementary.exponential")
    assert "loom_sim.interpreter" in stale("loom_core.isa.commands")


def test_an_engine_of_unknown_origin_minds_every_edit() -> None:
    before = stamps.Sources(SOURCES).stamp(None)
    assert all(edited(module).stamp(None) != before for module in SOURCES)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("from loom_sim import jit", {"loom_sim.jit"}),
        ("from loom_sim import descriptors as d, jit", {"loom_sim.descriptors", "loom_sim.jit"}),
        ("from loom_sim import load", {"loom_sim"}),
        (
            "def f():\n    from loom_sim.memory import (\n        load8,  # a word\n        load16,\n    )",
            {"loom_sim.memory"},
        ),
        ("import loom_core.isa.commands", {"loom_core.isa.commands"}),
        ("from loom_core.isa import commands as isa", {"loom_core.isa.commands"}),
        ("from loom_core.base.knobs import knobs", set()),
    ],
)
def test_imports_are_found_in_the_text(text: str, found: set[str]) -> None:
    assert stamps.imported_modules(text, SOURCES) == found
