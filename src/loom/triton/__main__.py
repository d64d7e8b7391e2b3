"""`python -m loom.triton SCRIPT [ARGUMENTS...]`: runs a script whose Triton kernels run on Loom."""

from __future__ import annotations

import runpy
import sys
import types
from collections.abc import Sequence
from pathlib import Path


def main(arguments: Sequence[str]) -> int:
    """Run `arguments[0]` as `__main__`, with the others as its arguments. Its errors and exit codes are its own."""
    if not arguments or arguments[0].startswith("-"):
        print((__doc__ or "").strip(), file=sys.stderr)
        return 2
    script = Path(arguments[0])
    if not script.exists():
        print(f"there is no script {script}", file=sys.stderr)
        return 2
    from ltl.driver import install

    install()
    sys.argv = list(arguments)
    sys.path[0] = str(script.resolve().parent)
    sys.excepthook = _show
    runpy.run_path(str(script), run_name="__main__")
    return 0


def _show(kind: type[BaseException], error: BaseException, traceback: types.TracebackType | None) -> None:
    """The traceback as the script's own: without the frames that started it."""
    runners = {__file__, runpy.__file__, "<frozen runpy>"}
    while traceback is not None and traceback.tb_frame.f_code.co_filename in runners:
        traceback = traceback.tb_next
    sys.__excepthook__(kind, error.with_traceback(traceback), traceback)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
