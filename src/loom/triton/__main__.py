"""`python -m loom.triton SCRIPT [ARGUMENTS...]`: runs a script whose Triton kernels run on Loom."""

from __future__ import annotations

import runpy
import sys
from collections.abc import Sequence
from pathlib import Path

from ltl.driver import install


def main(arguments: Sequence[str]) -> int:
    """Run `arguments[0]` as a script, with the others as its arguments."""
    if not arguments or arguments[0].startswith("-"):
        print((__doc__ or "").strip(), file=sys.stderr)
        return 2
    install()
    sys.argv = list(arguments)
    sys.path[0] = str(Path(arguments[0]).resolve().parent)
    runpy.run_path(arguments[0], run_name="__main__")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
