"""The operations of Tile IR, one family a file. Importing this package registers them all."""

from loom_core.ops import (
    atomic,
    bits,
    control,
    debug,
    elementwise,
    matmul,
    memory,
    rearrange,
    reduction,
    shape,
    special,
)

__all__ = [
    "atomic",
    "bits",
    "control",
    "debug",
    "elementwise",
    "matmul",
    "memory",
    "rearrange",
    "reduction",
    "shape",
    "special",
]
