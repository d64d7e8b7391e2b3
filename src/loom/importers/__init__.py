"""Building modules from foreign programs."""

from loom.importers.core import *  # noqa: F403
from loom.importers.core import __all__ as __all__
