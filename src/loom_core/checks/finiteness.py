"""The first NaN or infinity: the operation that made it, of operands that had none.

On demand (`loom.check(nan=True)`), and where a result holds one: the launch runs again, on copies, with a probe behind
each operation on floats.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from loom_core.base.diagnostics import Diagnostic, LoomError, UserError
from loom_core.checks.launch import Copies, Launch, bytes_of
from loom_core.checks.probes import Maker, Probed, first_failure, following, quiet_copy
from loom_core.ir.block import Function
from loom_core.ir.op import Op
from loom_core.ir.value import Value
from loom_core.ops import elementwise, matmul, reduction, shape

_MOVING: Final = (elementwise.Select, elementwise.Copy, elementwise.Bitcast, elementwise.Negate, elementwise.Abs)
"""Operations whose results are among their operands."""
_NAMES: Final = ("f16", "bf16", "f32", "f64")


class NotFinite(UserError):
    code = "LOOM-R217"
    template = "{place} is {value}; {operation} made the first one of finite numbers, in {program}{element}"
    hint = "look at its operands there: a division by 0, a logarithm, a sum or an exponent that is too large"


class NotFiniteFromNowhere(UserError):
    code = "LOOM-R218"
    template = "{place} is {value}, and no operation made it of finite numbers: it was there before, or is written"


def not_finite(launch: Launch, before: Copies) -> Iterator[Diagnostic]:
    """After a launch: where the first NaN or infinity of its results comes from."""
    found = _first_in_results(launch)
    if found is None:
        return
    place, value = found
    try:
        probed = launch.remember("finiteness probes", lambda: with_probes(launch.function))
        failure = first_failure(launch, "finiteness", probed, before)
    except LoomError:
        failure = None
    if failure is None:
        yield NotFiniteFromNowhere.diagnostic(launch.function.location, place=place, value=value)
        return
    op = failure.subject
    assert isinstance(op, Op)
    yield NotFinite.diagnostic(
        op.location,
        place=place,
        value=value,
        operation=f"this {op.name}",
        program=failure.program,
        element=f", {failure.element} of its tile" if failure.element else "",
    )


def _first_in_results(launch: Launch) -> tuple[str, str] | None:
    """The first element of a written array of floats that is NaN or infinite, and which of the two."""
    for arg, view in zip(launch.kernel.object.abi.buffers, launch.views, strict=True):
        if not arg.written or view.dtype.name not in _NAMES:
            continue
        size = view.dtype.itemsize
        skipped = -view.low % size
        content = bytes_of(view)[skipped:]
        values = content[: len(content) // size * size].view(view.dtype.numpy)
        with np.errstate(all="ignore"):
            wrong = ~np.isfinite(values.astype(np.float64))
        if wrong.any():
            first = int(np.argmax(wrong))
            return f"{arg.name}[{first + (view.low + skipped) // size}]", str(float(values[first]))
    return None


def with_probes(function: Function) -> Probed:
    """A copy that stops at the first operation whose result is a NaN of numbers, or an infinity of finite ones."""
    copy = quiet_copy(function)
    probed = Probed(copy)
    originals = [op for op in function.walk() if op.name != "print"]
    for original, op in zip(originals, list(copy.walk()), strict=True):
        if _is_probed(op):
            anchor = following(op)
            probed.expect(_fine(op, Maker(anchor)), anchor, original)
    return probed


def _is_probed(op: Op) -> bool:
    if not op.pure or len(op.results) != 1 or op.regions or op.result.type.is_pointer:
        return False
    arithmetic = isinstance(op, elementwise.Elementwise | elementwise.Cast | reduction.Reduce | matmul.Dot)
    return arithmetic and not isinstance(op, _MOVING) and op.result.type.dtype.name in _NAMES


def _fine(op: Op, maker: Maker) -> Value:
    """Whether an operation made no NaN and no infinity of its own."""
    operands = [v for v in op.operands if not v.type.is_pointer and v.type.dtype.name in _NAMES]
    result_finite = _finite(maker, op.result)
    if isinstance(op, reduction.Reduce):
        rows = [maker.make(reduction.Reduce, _finite(maker, v), kind="and", axis=op.axis) for v in operands]
        return _any(maker, [result_finite, *map(maker.negation, rows)])
    if isinstance(op, matmul.Dot):
        tiles = [_all(maker, _finite(maker, v), op.result) for v in operands]
        return _any(maker, [result_finite, *map(maker.negation, tiles)])
    nan = maker.make(elementwise.Compare, op.result, op.result, predicate="ne")
    # A NaN of operands that are none, or an infinity of finite ones, is new.
    old_nans = [maker.make(elementwise.Compare, v, v, predicate="ne") for v in operands]
    old_others = [maker.negation(_finite(maker, v)) for v in operands]
    from_nan = _any(maker, [maker.negation(nan), *old_nans])
    from_other = _any(maker, [result_finite, nan, *old_others])
    return maker.conjunction(from_nan, from_other)


def _any(maker: Maker, parts: list[Value]) -> Value:
    first, *rest = parts
    for part in rest:
        first = maker.make(elementwise.Or, first, part)
    return first


def _finite(maker: Maker, value: Value) -> Value:
    return maker.compare("lt", maker.make(elementwise.Abs, value), float("inf"))


def _all(maker: Maker, flags: Value, like: Value) -> Value:
    """Whether all flags hold, in the shape of another value."""
    flat = maker.make(shape.Reshape, flags, shape=(flags.type.size,)) if flags.type.shape else flags
    one = maker.make(reduction.Reduce, flat, kind="and", axis=0) if flags.type.shape else flags
    return maker.make(shape.Splat, one, shape=like.type.shape) if like.type.shape else one
