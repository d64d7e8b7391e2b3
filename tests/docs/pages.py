"""The code blocks of README.md and of the pages in docs/, run as their reader would run them."""

from __future__ import annotations

import contextlib
import io
import re
import shlex
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from click.testing import CliRunner

from loom_core.base.diagnostics import LoomError
from loom_core.tools.loomc import main as loomc

ROOT: Final = Path(__file__).resolve().parents[2]
PAGES: Final = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
_FENCE: Final = re.compile(r"^( *)```(\w*)\n(.*?)^\1```$", re.DOTALL | re.MULTILINE)


@dataclass(frozen=True)
class Block:
    """A block of code of a page: where its text is, the language ("" without one), the text."""

    start: int
    language: str
    text: str


def blocks_of(page: Path) -> list[Block]:
    """The blocks of a page, in order."""
    text = page.read_text(encoding="utf-8")
    return [Block(found.start(3), found.group(2), found.group(3)) for found in _FENCE.finditer(text)]


def run_page(page: Path, before: str, folder: Path) -> list[tuple[Block, Block]]:
    """Run a page in `folder`, the working directory; gives blocks that show output, and what they should be.

    The `python` blocks are one script, which `before` prepares and is not part of. A `text` block behind one is what it
    prints, or the diagnostic that it ends with. A `console` block is a command of loomc behind `$`, and its output.
    """
    blocks = blocks_of(page)
    script = folder / f"{page.stem}.py"
    script.write_text("\n".join(block.text for block in blocks if block.language == "python"), encoding="utf-8")
    namespace: dict[str, Any] = {"__name__": page.stem}
    exec(compile(before, f"<before {page.name}>", "exec"), namespace)
    shown, at = [], 0
    for block, following in zip(blocks, [*blocks[1:], None], strict=True):
        if block.language == "python":
            output = following if following is not None and following.language == "text" else None
            printed = _run(block, script.name, at, namespace, output is not None)
            at += block.text.count("\n") + 1
            if output is not None:
                shown.append((output, replace(output, text=printed)))
        elif block.language == "console":
            command = block.text.split("\n", 1)[0]
            result = CliRunner().invoke(loomc, shlex.split(command.removeprefix("$ loomc ")))
            shown.append((block, replace(block, text=f"{command}\n{result.output}")))
    return shown


def _run(block: Block, file: str, at: int, namespace: dict[str, Any], may_fail: bool) -> str:
    with contextlib.redirect_stdout(io.StringIO()) as out:
        try:
            exec(compile("\n" * at + block.text, file, "exec"), namespace)
        except LoomError as error:
            if not may_fail:
                raise
            print(error)
    return out.getvalue()


def with_outputs(text: str, shown: list[tuple[Block, Block]]) -> str:
    """The text of a page with what its blocks show replaced by what they should."""
    for old, new in reversed(shown):
        text = text[: old.start] + new.text + text[old.start + len(old.text) :]
    return text
