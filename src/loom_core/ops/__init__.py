"""The operations of Tile IR, one family a file. Importing this package registers them all."""

from loom_core.ops import control, elementwise, matmul, memory, reduction, shape

__all__ = ["control", "elementwise", "matmul", "memory", "reduction", "shape"]
