"""Diagnostics of kernels that cannot be run (LOOM-F5xx)."""

from __future__ import annotations

from loom_core.base.diagnostics import UserError
from loom_core.base.location import UNKNOWN, Location
from loom_core.interchange.locations import FileLocation
from loom_core.interchange.model import Module, Operation
from loom_core.interchange.source_ranges import first_location


class NotMappable(UserError):
    code = "LOOM-F501"
    template = "{operation} cannot be run: {reason}"
    hint = "kernels run that compute with scalars and views, in structured control flow"


class NoSuchKernel(UserError):
    code = "LOOM-F502"
    template = "{problem}"
    hint = "the module's kernels: {known}"


class BadLaunch(UserError):
    code = "LOOM-F503"
    template = "@{kernel} cannot be launched: {reason}"


def location_of(module: Module, op: Operation | None) -> Location:
    """Where an operation comes from, in the terms of all other diagnostics."""
    found = first_location(module, op.location_id) if op is not None else None
    if found is None:
        return UNKNOWN
    return as_location(module, found)


def as_location(module: Module, found: FileLocation) -> Location:
    file = module.sources[found.source_id] if 0 <= found.source_id < len(module.sources) else "<unknown>"
    end = found.end_col - 1 if found.end_line == found.start_line else -1
    return Location(file, found.start_line, max(found.start_col - 1, -1), end)
