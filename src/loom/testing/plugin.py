"""The pytest plugin: options of `loom.testing`, and a list of the files that it saved."""

from __future__ import annotations

import random
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("loom", "kernels against references (loom.testing)")
    group.addoption(
        "--loom-repros", type=Path, metavar="DIR", help="where files go that repeat a wrong launch [pytest's cache]"
    )
    group.addoption("--loom-examples", type=int, metavar="N", help="launches of each check_kernel [100]")
    group.addoption("--loom-seed", metavar="N", help="which launches: a number, or `random` for others each time [0]")


def pytest_configure(config: pytest.Config) -> None:
    from loom.testing.options import options

    chosen = options()
    folder = config.getoption("--loom-repros")
    cache = getattr(config, "cache", None)
    if folder is not None:
        chosen.folder = lambda: config.invocation_params.dir / folder
    elif cache is not None:
        chosen.folder = lambda: Path(cache.mkdir("loom-repros"))
    chosen.examples = config.getoption("--loom-examples") or chosen.examples
    seed = config.getoption("--loom-seed")
    if seed is not None:
        chosen.seed = random.SystemRandom().randrange(1 << 32) if seed == "random" else int(seed)


def pytest_terminal_summary(terminalreporter: Any) -> None:
    from loom.testing.options import options

    chosen = options()
    if chosen.saved:
        terminalreporter.section("wrong launches of kernels")
        for path in dict.fromkeys(chosen.saved):
            terminalreporter.write_line(f"python {path}")
        terminalreporter.write_line(f"--loom-seed {chosen.seed} makes the same launches")
