"""Source locations of the interchange model; a module interns them and hands out ids, 0 being unknown."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

LOCATION_UNKNOWN: Final = 0
LOCATION_FLAG_SYNTHETIC: Final = 1


@dataclass(frozen=True, slots=True)
class FileLocation:
    """A range of a source; lines and columns count from 1, `source_id` is a position in `module.sources`."""

    source_id: int
    start_line: int
    start_col: int
    end_line: int
    end_col: int
    flags: int = 0


@dataclass(frozen=True, slots=True)
class FusedLocation:
    """Several locations, by id."""

    children: tuple[int, ...]
    flags: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "children", tuple(self.children))


@dataclass(frozen=True, slots=True)
class OpaqueLocation:
    """Bytes of a foreign system; the source named by `source_id` is its tag."""

    source_id: int
    data: bytes
    flags: int = 0


@dataclass(frozen=True, slots=True)
class TaggedLocation:
    """A location with a tag and bytes; user tags start at 0x8000."""

    tag: int
    child: int = 0
    data: bytes = b""
    flags: int = 0


Location = FileLocation | FusedLocation | OpaqueLocation | TaggedLocation

LOCATION_TAGS: Final = {
    "sanitizer_site": 1,
    "template_instantiation": 2,
    "tile_lowering": 3,
    "ukernel_selection": 4,
}
