"""Cells of notebooks by the numbers that their readers see, in place of the files that IPython says they are in."""

from __future__ import annotations

import linecache
import os
import sys
from typing import Any


def shown_file(file: str) -> str:
    """A file as diagnostics name it: `Cell In[3]` for a cell of the notebook that runs, else the name as it is.

    `file` may be the last part of a path alone, as objects have it.
    """
    if _shell() is None:
        return file
    return _cell(file) or next((_cell(known) or file for known in linecache.cache if _same(known, file)), file)


def _same(known: Any, file: str) -> bool:
    return isinstance(known, str) and os.path.basename(known) == file


def _shell() -> Any:
    """IPython's shell, where there is one."""
    asked = getattr(sys.modules.get("IPython"), "get_ipython", None)
    return None if asked is None else asked()


def _cell(file: str) -> str | None:
    found = _shell().compile.format_code_name(file)
    return None if found is None else " ".join(found)
