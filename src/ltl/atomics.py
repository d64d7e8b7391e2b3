"""Read-modify-write of memory. Programs run one after another, so every one of these is atomic and in program order."""

from __future__ import annotations

from typing import Any

from loom_core.ir.value import Value
from loom_core.ops.atomic import AtomicCas, AtomicRmw
from loom_core.trace.context import current
from ltl import semantic
from ltl.arguments import static
from ltl.errors import WrongDtype, WrongValue, fail
from ltl.memory import load, mask_operand, pointer_operand, store, to_pointer_shape
from ltl.operators import compare
from ltl.tensor import tensor

_SEMANTICS = (None, "acquire", "release", "acq_rel", "relaxed")
_SCOPES = (None, "gpu", "cta", "sys", "cluster")


def _options(sem: Any, scope: Any, function: str) -> None:
    """Check the memory order and scope, which mean nothing where programs run one after another."""
    for value, name, known in ((sem, "sem", _SEMANTICS), (scope, "scope", _SCOPES)):
        given = static(value, f"the {name} of {function}")
        if given not in known:
            expected = "one of " + ", ".join(repr(option) for option in known if option)
            fail(WrongValue, function=function, argument=name, given=repr(given), expected=expected)


def _rmw(pointer: Any, val: Any, mask: Any, sem: Any, scope: Any, kind: str) -> tensor:
    function = f"atomic_{kind}"
    trace = current(f"ltl.{function}")
    _options(sem, scope, function)
    target = pointer_operand(pointer, function)
    pointee = target.ir_type.pointee
    if pointee.is_float and kind in ("and", "or", "xor"):
        fail(WrongDtype, function=function, given=str(target.type), takes="it takes integers")
    value = semantic.cast(semantic.to_tensor(val, function, "val"), pointee)
    value = to_pointer_shape(value, target, "value", function)
    flag = mask_operand(mask, function)
    if flag is not None:
        flag = to_pointer_shape(flag, target, "mask", function)
    made: Value = trace.builder.create(
        AtomicRmw, target.value, value.value, None if flag is None else flag.value, kind=kind
    )
    return tensor(made.type, made)


def atomic_add(pointer: Any, val: Any, mask: Any = None, sem: Any = None, scope: Any = None) -> tensor:
    """Add `val` to what `pointer` points to where `mask` holds; gives the old values (0 where it does not)."""
    return _rmw(pointer, val, mask, sem, scope, "add")


def atomic_max(pointer: Any, val: Any, mask: Any = None, sem: Any = None, scope: Any = None) -> tensor:
    """Store the larger of `val` and the old value, a number before NaN; gives the old values."""
    return _rmw(pointer, val, mask, sem, scope, "max")


def atomic_min(pointer: Any, val: Any, mask: Any = None, sem: Any = None, scope: Any = None) -> tensor:
    """Store the smaller of `val` and the old value, a number before NaN; gives the old values."""
    return _rmw(pointer, val, mask, sem, scope, "min")


def atomic_and(pointer: Any, val: Any, mask: Any = None, sem: Any = None, scope: Any = None) -> tensor:
    """Bitwise and of `val` and memory; gives the old values."""
    return _rmw(pointer, val, mask, sem, scope, "and")


def atomic_or(pointer: Any, val: Any, mask: Any = None, sem: Any = None, scope: Any = None) -> tensor:
    """Bitwise or of `val` and memory; gives the old values."""
    return _rmw(pointer, val, mask, sem, scope, "or")


def atomic_xor(pointer: Any, val: Any, mask: Any = None, sem: Any = None, scope: Any = None) -> tensor:
    """Bitwise exclusive or of `val` and memory; gives the old values."""
    return _rmw(pointer, val, mask, sem, scope, "xor")


def atomic_xchg(pointer: Any, val: Any, mask: Any = None, sem: Any = None, scope: Any = None) -> tensor:
    """Store `val`; gives the old values."""
    return _rmw(pointer, val, mask, sem, scope, "xchg")


def atomic_cas(pointer: Any, cmp: Any, val: Any, sem: Any = None, scope: Any = None) -> tensor:
    """Store `val` where memory holds the bits of `cmp`; gives the old values."""
    trace = current("ltl.atomic_cas")
    _options(sem, scope, "atomic_cas")
    target = pointer_operand(pointer, "atomic_cas")
    operands = []
    for given, name in ((cmp, "cmp"), (val, "val")):
        value = semantic.cast(semantic.to_tensor(given, "atomic_cas", name), target.ir_type.pointee)
        operands.append(to_pointer_shape(value, target, name, "atomic_cas"))
    made: Value = trace.builder.create(AtomicCas, target.value, *(value.value for value in operands))
    return tensor(made.type, made)


def atomic_load(pointer: Any, mask: Any = None, sem: Any = None, scope: Any = None) -> tensor:
    """`load`, which is atomic here; 0 where `mask` does not hold."""
    _options(sem, scope, "atomic_load")
    return load(pointer, mask)


def atomic_store(pointer: Any, val: Any, mask: Any = None, sem: Any = None, scope: Any = None) -> None:
    """`store`, which is atomic here."""
    _options(sem, scope, "atomic_store")
    store(pointer, val, mask)


def atomic_poll(
    pointer: Any, expected_value: Any, sem: Any = None, scope: Any = None, timeout_ns: Any = None
) -> tensor:
    """Whether memory holds `expected_value`, as int1.

    Programs run one after another, so waiting cannot change what is there: a poll with a time-out gives its answer at
    once, one without is an error if the value is not there (checked where assertions are, see `device_assert`).
    """
    from ltl.control import always_assert

    _options(sem, scope, "atomic_poll")
    value = load(pointer)
    if not value.ir_type.dtype.is_integer or value.ir_type.dtype.bits < 16:
        fail(WrongDtype, function="atomic_poll", given=str(value.type), takes="it takes 16-, 32- and 64-bit integers")
    expected = semantic.cast(semantic.to_tensor(expected_value, "atomic_poll", "expected_value"), value.ir_type.dtype)
    there = compare("eq", value, expected)
    if semantic.unwrap(timeout_ns) is None:
        always_assert(there, "atomic_poll waits for a value that no earlier program stored")
    return there


__all__ = [
    "atomic_add", "atomic_and", "atomic_cas", "atomic_load", "atomic_max", "atomic_min", "atomic_or", "atomic_poll",
    "atomic_store", "atomic_xchg", "atomic_xor",
]  # fmt: skip
