"""Settings of a test run, which the pytest plugin fills in. Imports little, because every pytest run does."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path


def _in_cache() -> Path:
    from loom_core.base.knobs import knobs

    return knobs.cache_dir / "repros"


@dataclass
class Options:
    """examples: launches of a check; seed: which; folder: gives that of the files that repeat what is wrong."""

    examples: int = 100
    seed: int = 0
    folder: Callable[[], Path] = _in_cache
    saved: list[Path] = field(default_factory=list)


_OPTIONS = Options()


def options() -> Options:
    """The settings of this process."""
    return _OPTIONS
