"""Scratch that lives while a part of a kernel runs, and read-modify-write on refs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from loom_core.base import dtype as core
from loom_core.ops.atomic import AtomicCas, AtomicRmw
from loom_core.trace.context import current
from palladium import refs
from palladium.operators import logical
from palladium.semaphores import semaphore_buffer
from palladium.signature import is_buffer, scratch_of
from palladium.specs import MemorySpace, Semaphore, leaves, rebuild
from palladium.trace import kernel_trace
from palladium.values import array, convert, to_array, to_shape
from palladium.views import Ref, select, whole_ref


def run_scoped(f: Callable[..., Any], *types: Any, **named: Any) -> Any:
    """What `f` gives for refs of fresh scratch, one for each of `types`; the scratch is gone after it."""
    kernel_trace("run_scoped")
    return f(*(_fresh(one) for one in types), **{name: _fresh(one) for name, one in named.items()})


def _fresh(tree: Any) -> Any:
    found = [_ref(i, one) for i, one in enumerate(leaves(tree, is_buffer))]
    return rebuild(tree, iter(found), is_buffer)


def _ref(position: int, given: Any) -> Ref:
    one = scratch_of(given)
    if isinstance(one, Semaphore) or one.space is MemorySpace.SEMAPHORE:
        return whole_ref(semaphore_buffer(f"scoped_semaphore{position}", one))
    return whole_ref(refs.window(f"scoped{position}", one.shape, one.core))


def read_modify_write(kind: str, ref: Ref, index: Any, value: Any, mask: Any = None) -> array:
    """ref[index] = f(ref[index], value) element by element in row-major order; gives the old elements."""
    kernel_trace(f"atomic_{kind}")
    pointers, valid, shape = _pointers(ref, index, mask)
    data = to_shape(convert(to_array(value, f"atomic_{kind}"), ref.core), shape)
    flag = None if valid is None else valid.value
    return array(current().builder.create(AtomicRmw, pointers, data.value, flag, kind=kind))


def compare_and_swap(ref: Ref, index: Any, compare: Any, value: Any) -> array:
    """ref[index] = value where it equals `compare`; gives the old elements."""
    kernel_trace("atomic_cas")
    pointers, _, shape = _pointers(ref, index, None)
    parts = [to_shape(convert(to_array(part, "atomic_cas"), ref.core), shape) for part in (compare, value)]
    return array(current().builder.create(AtomicCas, pointers, *(part.value for part in parts)))


def _pointers(ref: Ref, index: Any, mask: Any) -> tuple[Any, array | None, tuple[int, ...]]:
    view = select(ref, index)
    ref.buffer.is_read = True
    refs.require_writable(ref)
    pointers, valid, shape = refs.pointer_tile(view, ref.buffer.storage)
    if mask is None:
        return pointers, valid, shape
    flag = to_shape(convert(to_array(mask, "a mask"), core.bool_), shape)
    return pointers, flag if valid is None else logical("and", valid, flag), shape
