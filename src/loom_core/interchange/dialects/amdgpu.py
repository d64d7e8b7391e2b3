"""amdgpu: target records of AMD processors. The position of a processor in `KINDS` is its number."""

from typing import Final

from loom_core.interchange.dialects.target import RECORD, RECORD_ATTRIBUTES
from loom_core.interchange.form import op

KINDS: Final = (
    "", "gfx942", "gfx950", "gfx1100", "gfx1200", "gfx1250", "gfx1150", "gfx11-generic", "gfx12-generic",
    "gfx12-5-generic", "gfx940", "gfx941", "gfx1101", "gfx1102", "gfx1103", "gfx1151", "gfx1152", "gfx1153", "gfx1170",
    "gfx1171", "gfx1172", "gfx1201", "gfx1251", "gfx9-4-generic",
)  # fmt: skip

OPS: Final = (
    op("amdgpu.target", "<$kind> $symbol{attrs}", attributes=f"kind:{'|'.join(KINDS)} {RECORD_ATTRIBUTES}",
       symbol=RECORD, doc="An AMD processor."),
)  # fmt: skip
