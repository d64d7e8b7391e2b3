"""`ltl.extra.cuda`: the math library, under the name that kernels for CUDA import it by. The rest is a GPU's own."""

from __future__ import annotations

from typing import Any, Final

from ltl import libdevice as libdevice
from ltl.errors import Refused, fail

__all__ = ["libdevice"]

REFUSED: Final = {
    "globaltimer": "programs have no clock; profile the object instead",
    "smid": "programs do not know the core that they run on",
    "num_threads": "programs have no threads",
    "num_warps": "programs have no warps",
    "gdc_wait": "launches do not overlap, so there is nothing to wait for",
    "gdc_launch_dependents": "launches do not overlap",
    "convert_custom_float8_sm70": "the format fp8e4b15 is not there",
    "convert_custom_float8_sm80": "the format fp8e4b15 is not there",
}


def __getattr__(name: str) -> Any:
    """Functions that are refused, with the reason."""
    if name not in REFUSED:
        raise AttributeError(f"ltl.extra.cuda has no {name!r}")

    def refused(*args: Any, **kwargs: Any) -> Any:
        fail(Refused, what=f"extra.cuda.{name}", reason=REFUSED[name], instead="leave it out")

    refused.__name__ = refused.__qualname__ = name
    return refused
