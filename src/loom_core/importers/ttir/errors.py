"""Diagnostics of the Triton IR importer."""

from __future__ import annotations

from loom_core.base.diagnostics import UserError


class TritonIrError(UserError):
    """Triton IR that cannot be read or has no meaning here."""


class MalformedTritonIr(TritonIrError):
    code = "LOOM-F301"
    template = "the text is not Triton IR: {problem}"
    hint = "give the text that Triton printed (str(module), compiled.asm['ttir']), whole and unchanged"


class UnsupportedOperation(TritonIrError):
    code = "LOOM-F302"
    template = "{operation} cannot be imported: {reason}"
    hint = "import the TTIR of the kernel, before Triton's GPU passes, or replace the operation in the kernel's source"


class UnsupportedType(TritonIrError):
    code = "LOOM-F303"
    template = "the type {type} has no counterpart here"
    hint = "Loom has bool, 8- to 64-bit integers, f16, bf16, f32, f64, f8E4M3FN and f8E5M2"


class WrongOperands(TritonIrError):
    code = "LOOM-F304"
    template = "{operation}: {problem}"
    hint = "the text was changed after Triton printed it, or comes from a version of Triton that Loom does not know"
