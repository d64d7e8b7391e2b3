"""Arrays that the user has declared to hold nothing yet: until a launch has written to one, reading it is a finding."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from contextvars import ContextVar
from typing import Any, Final

from libloom.arrays import ArrayView, view_array
from libloom.kernel import overlaps
from loom_core.objfile import AbiArg

_DECLARED: Final[ContextVar[list[ArrayView] | None]] = ContextVar("loom_uninitialised_arrays", default=None)


@contextlib.contextmanager
def declared(arrays: Sequence[Any]) -> Iterator[None]:
    """In the block these arrays hold nothing. TypeError for what is no array."""
    views = []
    for array in arrays:
        view = view_array(array)
        if view is None:
            raise TypeError(f"uninitialised= takes arrays, not {array!r}")
        views.append(view)
    token = _DECLARED.set([*(_DECLARED.get() or ()), *views])
    try:
        yield
    finally:
        _DECLARED.reset(token)


def fresh_buffers(args: Sequence[AbiArg], views: Sequence[ArrayView]) -> list[int]:
    """Numbers (1, 2, ...) of the buffers of a launch that hold nothing; those that it writes are no longer declared."""
    waiting = _DECLARED.get()
    if not waiting:
        return []
    found = [number for number, view in enumerate(views, 1) if any(overlaps(view, other) for other in waiting)]
    for number in found:
        if args[number - 1].written:
            waiting[:] = [other for other in waiting if not overlaps(views[number - 1], other)]
    return found
