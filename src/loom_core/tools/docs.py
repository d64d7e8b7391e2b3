"""`python -m loom_core.tools.docs`: writes the documents that are generated from tables into docs/."""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import click

from loom_core.base.diagnostics import CODE_RANGES, INTERNAL_PACKAGES, LoomError, catalogue
from loom_core.base.knobs import all_knobs
from loom_core.formats.manual import formats_markdown
from loom_core.interchange.manual import interchange_markdown
from loom_core.interchange.stubs import builders_stub
from loom_core.isa.manual import isa_markdown
from loom_core.tools.architecture import architecture_markdown
from loom_core.tools.diagnostics import NotInTheSourceTree
from loom_core.tools.language import language_markdown
from loom_core.tools.ops_page import ops_markdown
from loom_core.tools.palladium_page import palladium_markdown
from loom_core.tools.performance import is_current as is_current_performance
from loom_core.tools.performance import performance_markdown
from loom_core.tools.scores_page import scores_markdown
from loom_core.tools.tools_page import tools_markdown
from loom_core.tools.triton_page import triton_ir_markdown

SOURCES: Final = Path(__file__).resolve().parents[2]
_DECLARES_A_CODE: Final = re.compile(r'^ +code\b.*= "LOOM-', re.MULTILINE)
_MARKUP: Final = re.compile(r"[\[<*]")
"""What would begin a link, a tag or an emphasis in a text that is none of these."""
_GENERATED: Final = "<!-- Written by `./run golden` from the tables in the code; edit those. -->\n"


def knobs_markdown() -> str:
    """docs/knobs.md from the table of knobs."""
    lines = [
        "# Knobs",
        "",
        _GENERATED,
        "Each is read from the environment at every use. In Python, `loom.knobs.NAME` is its value, and",
        "`with loom.knobs.override(NAME=value): ...` changes it for the current thread.",
        "",
        "| variable | name | value | default | what it does |",
        "|---|---|---|---|---|",
    ]
    for knob in all_knobs():
        cells = (f"`{knob.variable}`", f"`{knob.name}`", knob.value_type.description, knob.default_text, knob.doc)
        lines.append("| " + " | ".join(map(_cell, cells)) + " |")
    return "\n".join(lines) + "\n"


def diagnostics_markdown() -> str:
    """docs/diagnostics.md: every code that the installed packages declare, by the layer that its letter names."""
    for module in modules_that_declare_codes():
        importlib.import_module(module)
    ours = [entry for entry in catalogue() if entry.__module__.partition(".")[0] in INTERNAL_PACKAGES]
    lines = ["# Diagnostics", "", _GENERATED]
    for letter, layer in CODE_RANGES.items():
        entries = [entry for entry in ours if entry.code.removeprefix("LOOM-").startswith(letter)]
        if entries:
            lines += [f"## LOOM-{letter}: {layer}", "", "| code | name | message | hint |", "|---|---|---|---|"]
            lines += [_diagnostic_row(entry) for entry in entries]
            lines.append("")
    return "\n".join(lines)


def _diagnostic_row(entry: type[LoomError]) -> str:
    severity = "" if entry.severity == "error" else f" ({entry.severity})"
    texts = (_MARKUP.sub(r"\\\g<0>", text) for text in (entry.template, entry.hint))
    return "| " + " | ".join(map(_cell, (f"{entry.code}{severity}", entry.__name__, *texts))) + " |"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", "<br>")


def modules_that_declare_codes() -> Iterator[str]:
    """The names of the modules in whose source a diagnostic code is declared."""
    for package in INTERNAL_PACKAGES:
        for path in sorted((SOURCES / package).rglob("*.py")):
            if _DECLARES_A_CODE.search(path.read_text(encoding="utf-8")):
                yield ".".join(path.relative_to(SOURCES).with_suffix("").parts).removesuffix(".__init__")


DOCUMENTS: Final[dict[str, Callable[[], str]]] = {
    "architecture.md": architecture_markdown,
    "language.md": language_markdown,
    "palladium.md": palladium_markdown,
    "tools.md": tools_markdown,
    "performance.md": performance_markdown,
    "formats.md": formats_markdown,
    "isa.md": isa_markdown,
    "ops.md": ops_markdown,
    "scores.md": scores_markdown,
    "triton-ir.md": triton_ir_markdown,
    "interchange.md": interchange_markdown,
    "knobs.md": knobs_markdown,
    "diagnostics.md": diagnostics_markdown,
}
"""File name in docs/ -> what writes it."""


MEASURED: Final[dict[str, Callable[[str], bool]]] = {"performance.md": is_current_performance}
"""Documents with figures of some host -> whether a text is up to date apart from these."""


def is_current(name: str, text: str) -> bool:
    """Whether the text of a document is what the code says now, by whatever host its figures were measured."""
    return MEASURED[name](text) if name in MEASURED else text == DOCUMENTS[name]()


def out_of_date(folder: Path) -> list[str]:
    """The documents in `folder` that are not what the code says now, or are not there."""

    def stale(name: str) -> bool:
        path = folder / name
        return not path.is_file() or not is_current(name, path.read_text(encoding="utf-8"))

    return [name for name in DOCUMENTS if stale(name)]


@click.command()
@click.option("--check", is_flag=True, help="Change nothing; leave with 1 if a document is out of date.")
@click.option(
    "--out", type=click.Path(path_type=Path, file_okay=False), help="The folder [default: docs/ of the tree]."
)
def main(check: bool, out: Path | None) -> None:
    """Write the generated documents."""
    if out is None:
        if not (SOURCES.parent / "setup.cfg").is_file():
            raise click.ClickException(str(NotInTheSourceTree(path=SOURCES.parent)))
        out = SOURCES.parent / "docs"
    stale = out_of_date(out)
    for name in stale:
        click.echo(f"{'out of date' if check else 'written'}: {out / name}")
    if check:
        raise SystemExit(1 if stale else 0)
    out.mkdir(parents=True, exist_ok=True)
    for name in dict.fromkeys([*stale, *MEASURED]):
        (out / name).write_text(DOCUMENTS[name](), encoding="utf-8", newline="\n")
    if out == SOURCES.parent / "docs":
        stub = SOURCES / "loom_core" / "interchange" / "builders.pyi"
        stub.write_text(builders_stub(), encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main()
