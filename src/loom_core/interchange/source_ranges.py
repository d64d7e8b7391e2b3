"""Where operations come from, as source ranges of diagnostics."""

from __future__ import annotations

from typing import Final

from loom_core.interchange.diagnostics import DiagnosticRelatedLocation, SourceProvenance, SourceRange
from loom_core.interchange.locations import FileLocation, FusedLocation, TaggedLocation
from loom_core.interchange.model import Module

MAX_RELATED: Final = 8


def first_location(module: Module, location_id: int) -> FileLocation | None:
    """The first place in a file that a location leads to."""
    return next(iter(_file_locations(module, location_id)), None)


def source_ranges(module: Module, location_id: int) -> list[SourceRange]:
    """The files that a location leads to, in order."""
    return [_range(module, location) for location in _file_locations(module, location_id)]


def _file_locations(module: Module, location_id: int) -> list[FileLocation]:
    found: list[FileLocation] = []
    stack = [location_id]
    seen: set[int] = set()
    while stack and len(found) <= MAX_RELATED:
        at = stack.pop()
        if at in seen or not 0 < at < len(module.locations):
            continue
        seen.add(at)
        location = module.locations.get(at)
        if isinstance(location, FileLocation):
            found.append(location)
        elif isinstance(location, FusedLocation):
            stack += reversed(location.children)
        elif isinstance(location, TaggedLocation):
            stack.append(location.child)
    return found


def _range(module: Module, location: FileLocation) -> SourceRange:
    known = 0 <= location.source_id < len(module.sources)
    return SourceRange(
        SourceProvenance.EXACT_SOURCE,
        module.sources[location.source_id] if known else "",
        start_line=location.start_line,
        start_column=location.start_col,
        end_line=location.end_line,
        end_column=location.end_col,
    )


def related_locations(ranges: list[SourceRange]) -> tuple[DiagnosticRelatedLocation, ...]:
    """All but the first, as notes."""
    return tuple(DiagnosticRelatedLocation("also from here", place) for place in ranges[1:])
