"""`ltl.target_info`: what kernels ask about the device that they are compiled for. It is neither of the GPUs' kinds."""

from __future__ import annotations


def current_target() -> None:
    """None: there is no GPU."""


def is_cuda() -> bool:
    """False."""
    return False


def cuda_capability_geq(major: int, minor: int = 0) -> bool:
    """False: no CUDA device has been asked for."""
    return False


def is_hip() -> bool:
    """False."""
    return False


def is_hip_cdna3() -> bool:
    """False."""
    return False


def is_hip_cdna4() -> bool:
    """False."""
    return False


def is_hip_gfx1250() -> bool:
    """False."""
    return False


__all__ = [
    "cuda_capability_geq",
    "current_target",
    "is_cuda",
    "is_hip",
    "is_hip_cdna3",
    "is_hip_cdna4",
    "is_hip_gfx1250",
]
