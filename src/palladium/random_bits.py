"""Random numbers in a kernel: Threefry 2x32 with 20 rounds, in the way in which jax.random uses it.

After `prng_seed(s)` the first `prng_random_bits(shape)` gives the bits of `jax.random.bits(jax.random.key(s), shape)`;
what is drawn later goes on counting where that ended. The state lives as long as the kernel runs, over all grid points.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any, Final

from loom_core.base import dtype as core
from loom_core.ops.shape import Iota
from palladium import elementwise, operators, refs, shaping
from palladium.errors import Refused, fail
from palladium.promotion import as_dtype
from palladium.trace import KernelTrace, kernel_trace
from palladium.values import array, as_shape, convert, emit, known_scalar, to_array
from palladium.views import Ref, whole_ref

_ROTATIONS: Final = ((13, 15, 26, 6), (17, 29, 16, 24))
_PARITY: Final = 0x1BD11BDA


def threefry(key: tuple[Any, Any], counter: tuple[array, array]) -> tuple[array, array]:
    """The block of a counter under a key, all pairs of uint32."""
    first, second = (_unsigned(word) for word in key)
    third = operators.xor(operators.xor(first, second), _word(_PARITY))
    keys = (first, second, third)
    x, y = operators.add(counter[0], keys[0]), operators.add(counter[1], keys[1])
    for turn in range(5):
        for rotation in _ROTATIONS[turn % 2]:
            x = operators.add(x, y)
            left, right = operators.left_shift(y, _word(rotation)), operators.right_shift(y, _word(32 - rotation))
            y = operators.xor(operators.or_(left, right), x)
        x = operators.add(x, keys[(turn + 1) % 3])
        y = operators.add(y, operators.add(keys[(turn + 2) % 3], _word(turn + 1)))
    return x, y


def _word(number: int) -> array:
    return known_scalar(number, core.u32)


def _unsigned(value: Any) -> array:
    return convert(to_array(value, "prng_seed"), core.u32)


@dataclass
class State:
    """Key and number of the next element, in SRAM."""

    key: tuple[Ref, Ref]
    drawn: Ref


def _state(trace: KernelTrace) -> State:
    """The kernel's state, made where the kernel begins."""
    if trace.random is None:
        with trace.elsewhere(trace.function.body):
            words = [whole_ref(refs.window(f"random{i}", (), core.u32)) for i in range(3)]
            for word in words:
                refs.store(word, ..., 0)
        trace.random = State((words[0], words[1]), words[2])
    state: State = trace.random
    return state


def prng_seed(*seeds: Any) -> None:
    """Begin anew from one or more integers; each after the first is mixed in, as jax.random.fold_in does."""
    state = _state(kernel_trace("prng_seed"))
    if not seeds:
        fail(Refused, what="prng_seed()", reason="there is nothing to begin from", instead="give an integer")
    key = _word(0), refs.require_scalar(_unsigned(seeds[0]), "prng_seed")
    for seed in seeds[1:]:
        key = threefry(key, (_word(0), refs.require_scalar(_unsigned(seed), "prng_seed")))
    for word, value in zip(state.key, key, strict=True):
        refs.store(word, ..., value)
    refs.store(state.drawn, ..., 0)


def _draw(shape: Any, function: str) -> array:
    trace = kernel_trace(function)
    state, sizes = _state(trace), as_shape(shape, function) if shape != () else ()
    count = prod(sizes)
    begin = refs.load(state.drawn, ...)
    numbers = operators.add(convert(emit(Iota, start=0, end=count), core.u32), begin)
    first, second = (refs.load(word, ...) for word in state.key)
    x, y = threefry((first, second), (shaping.full((count,), 0, core.u32), numbers))
    refs.store(state.drawn, ..., operators.add(begin, _word(count)))
    return shaping.reshape(operators.xor(x, y), sizes)


def prng_random_bits(shape: Any) -> array:
    """Random bits, int32."""
    return elementwise.bitcast_convert_type(_draw(shape, "prng_random_bits"), core.i32)


def stateful_bits(shape: Any = (), dtype: Any = core.u32) -> array:
    """Random bits, of a type of 32 bits or less."""
    bits, target = _draw(shape, "stateful_bits"), as_dtype(dtype)
    return bits if target is core.u32 else convert(bits, target)


def stateful_uniform(shape: Any = (), dtype: Any = core.f32, minval: Any = 0.0, maxval: Any = 1.0) -> array:
    """Numbers from [minval, maxval), all multiples of 2**-23 of its width equally likely."""
    if as_dtype(dtype) is not core.f32:
        fail(Refused, what=f"stateful_uniform of {as_dtype(dtype).name}", reason="it draws 32 bits", instead="convert")
    mantissa = operators.right_shift(_draw(shape, "stateful_uniform"), _word(9))
    one = elementwise.bitcast_convert_type(operators.or_(mantissa, _word(0x3F800000)), core.f32)
    unit = operators.subtract(one, 1.0)
    low, high = (convert(to_array(bound, "stateful_uniform"), core.f32) for bound in (minval, maxval))
    return elementwise.maximum(low, operators.add(operators.multiply(unit, operators.subtract(high, low)), low))


def stateful_normal(shape: Any = (), dtype: Any = core.f32) -> array:
    """Numbers of the standard normal distribution: sqrt(2) erf_inv(u) of u from (-1, 1)."""
    uniform = stateful_uniform(shape, dtype, minval=_ABOVE_MINUS_ONE, maxval=1.0)
    return operators.multiply(_SQRT_2, elementwise.erf_inv(uniform))


_ABOVE_MINUS_ONE: Final = -0.99999994039535522461
_SQRT_2: Final = 1.4142135381698608


def stateful_bernoulli(p: Any = 0.5, shape: Any = None) -> array:
    """True with probability p."""
    chance = to_array(p, "stateful_bernoulli")
    return operators.compare("lt", stateful_uniform(chance.shape if shape is None else shape), chance)
