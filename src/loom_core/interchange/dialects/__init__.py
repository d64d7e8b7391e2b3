"""The operations of each dialect, one table a dialect."""

from __future__ import annotations

from functools import cache
from typing import Final

from loom_core.interchange.declaration import OpDeclaration
from loom_core.interchange.dialects import amdgpu, buffer, cfg, func, index, kernel, scalar, scf, target, vector, view

DEFAULT_DIALECTS: Final = (target, kernel, buffer, index, scalar, scf, cfg, func, view, vector)


@cache
def default_ops() -> tuple[OpDeclaration, ...]:
    """The operations of all dialects but those of single targets."""
    return tuple(op for dialect in DEFAULT_DIALECTS for op in dialect.OPS)


@cache
def amdgpu_ops() -> tuple[OpDeclaration, ...]:
    """The operations of the AMDGPU dialect that importers need: its target records."""
    return amdgpu.OPS
