"""What `loom.testing` says when a kernel, a reference or a declaration is wrong."""

from __future__ import annotations

from loom_core.base.diagnostics import UserError


class KernelDiffers(UserError):
    code = "LOOM-R130"
    template = "{kernel} is wrong: {fault}"


class ReferenceFails(UserError):
    code = "LOOM-R131"
    template = "the reference fails ({error}) for {sizes}"
    hint = "if it is not meant for these sizes, bound them: sizes=dict(n=(1, 100))"


class BadDeclaration(UserError):
    code = "LOOM-R132"
    template = "check_kernel: {problem}"
    hint = "docs/testing.md shows how arguments are declared"


class NoHypothesis(UserError):
    code = "LOOM-R133"
    template = "check_kernel makes its launches with hypothesis, which is not installed"
    hint = "pip install 'loom-tile[testing]', or pip install hypothesis"
