"""Diagnostics of modules."""

from loom_core.interchange.diagnostics import (
    DOMAINS,
    EMITTERS,
    ERRORS,
    Diagnostic,
    DiagnosticEngine,
    DiagnosticFieldRef,
    DiagnosticHighlightRange,
    DiagnosticParam,
    DiagnosticRelatedLocation,
    DiagnosticSeverity,
    ErrorDefinition,
    LoomDiagnosticError,
    SourceProvenance,
    SourceRange,
)

__all__ = [
    "DOMAINS",
    "EMITTERS",
    "ERRORS",
    "Diagnostic",
    "DiagnosticEngine",
    "DiagnosticFieldRef",
    "DiagnosticHighlightRange",
    "DiagnosticParam",
    "DiagnosticRelatedLocation",
    "DiagnosticSeverity",
    "ErrorDefinition",
    "LoomDiagnosticError",
    "SourceProvenance",
    "SourceRange",
]
