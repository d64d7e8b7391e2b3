"""Verifying modules."""

from loom_core.interchange.verifier import ModuleVerifier, VerifierRegistry, type_satisfies_constraint, verify_module

__all__ = [
    "ModuleVerifier",
    "VerifierRegistry",
    "type_satisfies_constraint",
    "verify_module",
]
