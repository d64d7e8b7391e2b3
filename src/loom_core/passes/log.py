"""LOOM_DEBUG=5: every rewrite of a pass, one line each on the error stream."""

from __future__ import annotations

import sys

from loom_core.base.knobs import knobs
from loom_core.ir.op import Op
from loom_core.ir.printer import print_op

SHOW_REWRITES = 5


def log_rewrite(rule: str, op: Op) -> None:
    """Tell that `rule` is about to change `op`."""
    if knobs.debug >= SHOW_REWRITES:
        print(f"#   {rule}: {print_op(op).splitlines()[0]}", file=sys.stderr)
