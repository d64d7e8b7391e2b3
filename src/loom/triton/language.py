"""LTL, the Triton-like kernel language, under its public name."""

from typing import Any

import ltl
from ltl import *  # noqa: F403
from ltl import __all__ as __all__


def __getattr__(name: str) -> Any:
    """Names that LTL gives on demand."""
    return getattr(ltl, name)
