"""Diagnostics of object files (LOOM-O1xx)."""

from __future__ import annotations

from loom_core.base.diagnostics import UserError


class NotAnObject(UserError):
    code = "LOOM-O101"
    template = "this is not a .loom object but {what}"


class UnsupportedVersion(UserError):
    code = "LOOM-O102"
    template = "object version {version} is not supported; this reader knows version {known}"
    hint = "compile the kernel again with this version of Loom"


class DamagedObject(UserError):
    code = "LOOM-O103"
    template = "damaged object: {where}, file offset {offset}: {reason}"
    hint = "compile the kernel again, or copy the file again"


class UnknownSection(UserError):
    code = "LOOM-O104"
    template = "the object requires section {section}, which this reader does not know"
    hint = "a newer version of Loom wrote this object"


class InvalidSection(UserError):
    code = "LOOM-O105"
    template = "section {section}: {reason}"
