"""Objects to bytes."""

from __future__ import annotations

from loom_core.base.location import UNKNOWN
from loom_core.objfile.errors import InvalidSection
from loom_core.objfile.format import pack_sections
from loom_core.objfile.model import LoomObject, abi_faults
from loom_core.objfile.sections import object_sections


def write_object(obj: LoomObject) -> bytes:
    """The file of an object: the same bytes for equal objects, on any host, in any process.

    Raises InvalidSection for an ABI that does not fit the machine or a manifest that is not JSON. The command stream is
    written as it is: `isa.verify.verify_stream` is the compiler's to call, and every loader's.
    """
    for fault in abi_faults(obj.abi, obj.machine):
        raise InvalidSection(UNKNOWN, section="abi", reason=fault)
    return pack_sections(object_sections(obj), obj.machine.digest())
