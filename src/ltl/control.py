"""Loops, assertions, messages while compiling, and hints."""

from __future__ import annotations

import builtins
from collections.abc import Iterator
from typing import Any

from loom_core.base.dtype import i32, i64
from loom_core.ir.value import Value
from loom_core.ops.debug import Assert, Print
from loom_core.trace.context import current
from loom_core.trace.errors import AssertionFails
from loom_core.trace.values import is_number
from ltl import semantic
from ltl.arguments import static, static_int
from ltl.errors import WrongDtype, WrongRank, WrongValue, fail, here
from ltl.tensor import tensor


class range:
    """A loop that runs at run time: `for i in ltl.range(start, end, step)`; Python's `range` means the same.

    Bounds are integers, run-time or static; the loop variable has their common dtype. A run-time step must be positive.
    The tuning options of Triton are accepted; Loom pipelines every loop by itself.
    """

    def __init__(
        self,
        arg1: Any,
        arg2: Any = None,
        step: Any = None,
        num_stages: Any = None,
        loop_unroll_factor: Any = None,
        disallow_acc_multi_buffer: Any = False,
        flatten: Any = False,
        warp_specialize: Any = False,
        disable_licm: Any = False,
    ) -> None:
        self.start: Any = 0 if arg2 is None else arg1
        self.end: Any = arg1 if arg2 is None else arg2
        self.step: Any = 1 if step is None else step
        self.dtype = i32

    def bounds(self) -> tuple[tensor, tensor, tensor]:
        """Start, end and step as scalars of one integer dtype."""
        values = [_loop_bound(value, name) for name, value in zip(("start", "end", "step"), self._parts(), strict=True)]
        if values[2].known == 0:
            fail(WrongValue, function="range", argument="step", given=0, expected="another number")
        dtype = values[0].ir_type.dtype
        for value in values[1:]:
            dtype = semantic.promote_integers(dtype, value.ir_type.dtype)
        self.dtype = dtype
        if dtype not in (i32, i64):
            # Narrow and unsigned counters would wrap where Python's do not.
            dtype = i32 if dtype.bits < 32 else i64
        start, end, step = (semantic.cast(value, dtype) for value in values)
        return start, end, step

    def variable(self, value: Value) -> tensor:
        """The loop variable in the common dtype of the bounds."""
        return semantic.cast(tensor(value.type, value), self.dtype)

    def _parts(self) -> tuple[Any, Any, Any]:
        return self.start, self.end, self.step

    def __iter__(self) -> Iterator[int]:
        """The indices, where a comprehension goes over the range; its bounds must be static."""
        return iter(builtins.range(*(static_int(part, "range", "bound") for part in self._parts())))


class static_range:
    """A loop that is unrolled while compiling: `for i in ltl.static_range(start, end, step)`, with static bounds."""

    def __init__(self, arg1: Any, arg2: Any = None, step: Any = None) -> None:
        start, end = (0, arg1) if arg2 is None else (arg1, arg2)
        by = 1 if step is None else step
        self.start = static_int(start, "static_range", "start")
        self.end = static_int(end, "static_range", "end")
        self.step = static_int(by, "static_range", "step")
        if self.step == 0:
            fail(WrongValue, function="static_range", argument="step", given=0, expected="another number")

    def __iter__(self) -> Iterator[int]:
        return iter(builtins.range(self.start, self.end, self.step))

    def __len__(self) -> int:
        return len(builtins.range(self.start, self.end, self.step))


def _loop_bound(value: Any, name: str) -> tensor:
    bound = semantic.to_tensor(value, "range", name)
    if bound.shape:
        fail(WrongRank, function="range", expected=f"a scalar {name}", given=f"a tile of shape {bound.shape}")
    if bound.ir_type.is_pointer or not bound.ir_type.dtype.is_integer:
        fail(WrongDtype, function="range", given=f"{name} of type {bound.type}", takes="loop bounds are integers")
    return bound


def static_assert(cond: Any, msg: Any = "") -> None:
    """Stop compiling with `msg` unless `cond`, which must be static, holds."""
    if not static(cond, "the condition of static_assert"):
        text = str(static(msg, "the message of static_assert"))
        raise AssertionFails(here(), message=f": {text}" if text else "")


def static_print(*values: Any, sep: str = " ", end: str = "\n", file: Any = None, flush: bool = False) -> None:
    """Print while compiling: static values as they are, tiles by their type."""
    print(*(semantic.unwrap(value) for value in values), sep=sep, end=end, file=file, flush=flush)


def condition(arg1: Any, disable_licm: Any = False) -> Any:
    """The condition of a `while`, as it is: Triton's way to give options with it, which mean nothing here."""
    current("ltl.condition")
    return semantic.unwrap(arg1)


def assume(cond: Any) -> None:
    """Accepted: a hint that `cond` holds."""
    current("ltl.assume")
    semantic.operand(cond, "assume", "cond")


def multiple_of(input: Any, values: Any) -> Any:
    """Accepted: a hint that the values are divisible. Gives `input` back."""
    return input


def max_contiguous(input: Any, values: Any) -> Any:
    """Accepted: a hint that the values are consecutive. Gives `input` back."""
    return input


def max_constancy(input: Any, values: Any) -> Any:
    """Accepted: a hint that the values are constant. Gives `input` back."""
    return input


def debug_barrier() -> None:
    """Accepted: programs run one at a time, so there is nothing to wait for."""
    current("ltl.debug_barrier")


def device_assert(cond: Any, msg: Any = "", mask: Any = None) -> None:
    """Stop the run with `msg` unless `cond` holds for all elements (where `mask` does).

    Checked only in kernels made or launched with debug=True, as in Triton.
    """
    trace = current("ltl.device_assert")
    flag = semantic.truth(semantic.to_tensor(cond, "device_assert", "cond"))
    text = str(static(msg, "the message of device_assert"))
    if not trace.assertions:
        return
    if semantic.unwrap(mask) is not None:
        from ltl.operators import invert, or_

        flag = or_(flag, invert(semantic.truth(semantic.to_tensor(mask, "device_assert", "mask"))))
    always_assert(flag, text)


def always_assert(flag: tensor, message: str) -> None:
    """An assertion that every kernel checks."""
    current().builder.create(Assert, flag.value, message=message)


def builtin_print(*values: Any, **options: Any) -> None:
    """Python's print: of run-time values, or behind a text, `device_print`; else, and with options, `static_print`."""
    first = semantic.unwrap(values[0]) if values else None
    prefix, rest = (first, values[1:]) if isinstance(first, str) else ("", values)
    numbers = [semantic.unwrap(value) for value in rest]
    printable = all(isinstance(value, tensor) or is_number(value) for value in numbers)
    if not options and printable and (prefix or any(isinstance(value, tensor) for value in numbers)):
        device_print(prefix, *rest)
    else:
        static_print(*values, **options)


def _printable(value: Any) -> tensor:
    made = semantic.to_tensor(value, "device_print", "an argument")
    if made.ir_type.is_pointer:
        fail(WrongDtype, function="device_print", given="a pointer", takes="print the offsets that are added to it")
    return made


def device_print(prefix: Any, *args: Any, hex: Any = False) -> None:
    """Print `prefix` and the values of `args` when the kernel runs; integers in hexadecimal if `hex`."""
    trace = current("ltl.device_print")
    text = static(prefix, "the prefix of device_print")
    if not isinstance(text, str) or not text.isascii():
        fail(WrongValue, function="device_print", argument="prefix", given=repr(text), expected="a static ASCII string")
    values = [_printable(value).value for value in args]
    trace.builder.create(Print, values, prefix=text, hex=bool(static(hex, "the hex of device_print")))
