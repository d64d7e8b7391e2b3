"""Names of the program as names of the Python text: a name that Python or the text itself needs gets an underscore."""

from __future__ import annotations

import keyword
from typing import Final

_KEYWORDS: Final = frozenset(keyword.kwlist)
EMITTED: Final = frozenset(
    {
        "device", "torch", "nn", "F", "optim", "triton", "tl", "dist", "os", "sys", "time", "math", "glob",
        "SimpleNamespace", "checkpoint", "DataLoader", "TensorDataset", "DistributedSampler", "Attention",
        "DistributedDataParallel", "load_dataset", "load_images", "batches_of", "share_of", "save_snapshot",
        "load_snapshot", "recompute_activations", "show_progress", "start_processes", "rank", "local_rank",
        "world_size", "super",
    }
)  # fmt: skip
"""What the text uses at its top level."""


def variable(name: str) -> str:
    """A variable, parameter, function or model. Two names stay two."""
    base = name.rstrip("_")
    return f"{name}_" if base in EMITTED or base in _KEYWORDS else name


def member(name: str) -> str:
    """An attribute or the name of an argument of something that is not the program's own."""
    return f"{name}_" if name.rstrip("_") in _KEYWORDS else name
