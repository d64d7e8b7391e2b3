"""Target presets: text as on a compiler's command line."""

from __future__ import annotations

import shlex

from loom_core.interchange.declaration import OpDeclaration
from loom_core.interchange.dialects import amdgpu_ops, default_ops
from loom_core.interchange.dialects.amdgpu import KINDS


def target_preset_amdgpu_kind(preset: str) -> str | None:
    """The AMD processor that a preset names with `-mcpu`, None for any other preset."""
    try:
        words = shlex.split(preset)
    except ValueError:
        return None
    named = None
    for position, word in enumerate(words):
        option, equals, value = word.partition("=")
        if option in ("-mcpu", "--mcpu"):
            named = value if equals else "".join(words[position + 1 : position + 2])
    return named if named and named in KINDS else None


def target_preset_amdgpu_subgroup_size(preset: str) -> int | None:
    """Workitems of a subgroup of the AMD processor that a preset names."""
    kind = target_preset_amdgpu_kind(preset)
    if kind is None:
        return None
    return 64 if kind.startswith("gfx9") else 32


def target_preset_amdgpu_matrix_profile(preset: str) -> str | None:
    """The family of matrix instructions of the AMD processor that a preset names: mfma or wmma."""
    kind = target_preset_amdgpu_kind(preset)
    if kind is None:
        return None
    return "mfma" if kind.startswith("gfx9") else "wmma"


def kernel_module_ops(preset: str) -> tuple[OpDeclaration, ...]:
    """The operations that a kernel module for the preset may hold."""
    return default_ops() + (amdgpu_ops() if target_preset_amdgpu_kind(preset) else ())
