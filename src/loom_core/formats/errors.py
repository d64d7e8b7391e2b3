"""Diagnostics of weight formats (LOOM-O3xx)."""

from __future__ import annotations

from loom_core.base.diagnostics import UserError


class UnknownFormat(UserError):
    code = "LOOM-O301"
    template = "there is no weight format {name}; the formats are {known}"
    hint = "docs/formats.md describes them"


class UnsuitableOption(UserError):
    code = "LOOM-O302"
    template = "{format}: {option} {reason}"
    hint = "docs/formats.md says which options a format takes"


class UnsuitableWeights(UserError):
    code = "LOOM-O303"
    template = "{format} cannot hold these weights: {reason}"


class NotRepresentable(UserError):
    code = "LOOM-O304"
    template = "{format} cannot hold the weight {value} at row {row}, column {column}: {reason}"


class DamagedWeights(UserError):
    code = "LOOM-O305"
    template = "damaged {format} weights: {part}: {reason}"
    hint = "encode the weights again, or copy the file again"
