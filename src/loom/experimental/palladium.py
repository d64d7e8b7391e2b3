"""Palladium, the Pallas-like kernel language, under its public name."""

from palladium import *  # noqa: F403
from palladium import __all__ as __all__
