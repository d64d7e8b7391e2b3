"""`ltl.extra`: the functions of device libraries."""

from ltl import libdevice as libdevice
from ltl.extra import cuda as cuda

__all__ = ["cuda", "libdevice"]
