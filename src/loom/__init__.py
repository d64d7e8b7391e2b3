"""Loom's public names. Everything here is re-exported from the layers below, at its first use."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from loom_core import __version__

if TYPE_CHECKING:
    from loom.execution import run
    from loom_core.base.diagnostics import LoomError
    from loom_core.base.knobs import knobs
    from loom_core.interchange.builders import (
        DialectBuilder,
        LoomBuilder,
        OpCallable,
        default_ops,
        default_types,
        module_builder,
    )
    from loom_core.interchange.diagnostics import (
        Diagnostic,
        DiagnosticEngine,
        DiagnosticFieldRef,
        DiagnosticHighlightRange,
        DiagnosticParam,
        DiagnosticRelatedLocation,
        DiagnosticSeverity,
        LoomDiagnosticError,
        SourceProvenance,
        SourceRange,
    )
    from loom_core.interchange.verifier import ModuleVerifier, VerifierRegistry, verify_module
    from loom_core.isa.machine import L1, L1_MINI, MachineConfig
    from loom_core.launch import check, cores, profile
    from loom_core.objfile import LoomObject, read_object, write_object

__all__ = [
    "L1", "L1_MINI", "Diagnostic", "DiagnosticEngine", "DiagnosticFieldRef", "DiagnosticHighlightRange",
    "DiagnosticParam", "DiagnosticRelatedLocation", "DiagnosticSeverity", "DialectBuilder", "LoomBuilder",
    "LoomDiagnosticError", "LoomError", "LoomObject", "MachineConfig", "ModuleVerifier", "OpCallable",
    "SourceProvenance", "SourceRange", "VerifierRegistry", "__version__", "check", "cores", "default_ops",
    "default_types", "knobs", "module_builder", "profile", "read_object", "run", "verify_module", "write_object",
]  # fmt: skip

_HOMES = {
    "L1": "loom_core.isa.machine",
    "L1_MINI": "loom_core.isa.machine",
    "LoomError": "loom_core.base.diagnostics",
    "LoomObject": "loom_core.objfile",
    "MachineConfig": "loom_core.isa.machine",
    "check": "loom_core.launch",
    "cores": "loom_core.launch",
    "knobs": "loom_core.base.knobs",
    "profile": "loom_core.launch",
    "read_object": "loom_core.objfile",
    "run": "loom.execution",
    "write_object": "loom_core.objfile",
    **dict.fromkeys(
        ("DialectBuilder", "LoomBuilder", "OpCallable", "default_ops", "default_types", "module_builder"),
        "loom_core.interchange.builders",
    ),
    **dict.fromkeys(
        (
            "Diagnostic",
            "DiagnosticEngine",
            "DiagnosticFieldRef",
            "DiagnosticHighlightRange",
            "DiagnosticParam",
            "DiagnosticRelatedLocation",
            "DiagnosticSeverity",
            "LoomDiagnosticError",
            "SourceProvenance",
            "SourceRange",
        ),
        "loom_core.interchange.diagnostics",
    ),
    **dict.fromkeys(("ModuleVerifier", "VerifierRegistry", "verify_module"), "loom_core.interchange.verifier"),
}


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}; it has {', '.join(__all__)}")
    return getattr(import_module(home), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
