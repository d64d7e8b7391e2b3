"""The functions that TorchInductor's generated kernels call beside Triton's: its module `triton_helpers`.

Kernels reach it as `triton_helpers`, with `libdevice` and `math` in it. Names and meanings are Inductor's.
"""

from __future__ import annotations

from typing import Any

from loom_core.base import dtype as core
from loom_core.trace.context import current
from ltl import libdevice as libdevice
from ltl import math as math
from ltl import random_numbers, reductions, semantic
from ltl.arguments import dtype_argument, static, static_flag, static_int
from ltl.control import device_assert
from ltl.errors import WrongDtype, fail
from ltl.functions import PropagateNan
from ltl.functions import exp as _exp
from ltl.functions import maximum as _maximum
from ltl.functions import minimum as _minimum
from ltl.memory import load
from ltl.operators import add, and_, compare, floordiv, invert, mod, or_, where
from ltl.rearranging import join, split
from ltl.reductions import reduce, tile_operand
from ltl.shaping import expand_dims, ravel, reshape
from ltl.tensor import tensor


def promote_to_tensor(x: Any) -> tensor:
    """A number or scalar as a tile of at least one dimension."""
    value = semantic.to_tensor(x)
    return value if value.shape else reshape(value, (1,))


def is_floating(x: Any) -> bool:
    """Whether x is of a float dtype."""
    element = semantic.to_tensor(x).ir_type.element
    return isinstance(element, core.DType) and element.is_float


def div_floor_integer(a: Any, b: Any) -> tensor:
    """The quotient of integers rounded towards minus infinity."""
    quotient, rest = floordiv(a, b), mod(a, b)
    lower = where(compare("ne", rest, 0), quotient - 1, quotient)
    return where(_signs_differ(a, b), lower, quotient)


def remainder_integer(a: Any, b: Any) -> tensor:
    """The remainder of the floored quotient: it has the sign of b."""
    rest = mod(a, b)
    return where(and_(compare("ne", rest, 0), _signs_differ(a, b)), rest + b, rest)


def _signs_differ(a: Any, b: Any) -> tensor:
    first, second = (compare("lt", semantic.to_tensor(value), 0) for value in (a, b))
    return compare("ne", first, second)


def pow_integer(base: Any, exponent: Any) -> tensor:
    """base to the power exponent of integers, modulo 2**bits, by repeated squaring."""
    power = semantic.to_tensor(exponent)
    dtype = power.ir_type.dtype
    unsigned = core.by_name(f"u{dtype.bits}")
    rest, factor = semantic.cast(power, unsigned), semantic.to_tensor(base)
    result = semantic.full(1, factor.ir_type.dtype, factor.shape)
    for _ in range(dtype.bits):
        result = where(compare("ne", and_(rest, 1), 0), result * factor, result)
        rest = rest >> 1
        factor = factor * factor
    return result


def minimum(a: Any, b: Any) -> tensor:
    """The smaller; NaN where either is."""
    return _minimum(a, b, PropagateNan.ALL)


def maximum(a: Any, b: Any) -> tensor:
    """The larger; NaN where either is."""
    return _maximum(a, b, PropagateNan.ALL)


def prod(input: Any, axis: Any) -> tensor:
    """The product along an axis."""
    return reductions.prod(input, axis)


def min2(a: Any, dim: Any) -> tensor:
    """The minimum along a dimension, in the dtype of `a`; NaN if there is one."""
    return reduce(a, dim, minimum)  # type: ignore[no-any-return]


def max2(a: Any, dim: Any) -> tensor:
    """The maximum along a dimension, in the dtype of `a`; NaN if there is one."""
    return reduce(a, dim, maximum)  # type: ignore[no-any-return]


def any(a: Any, dim: Any) -> tensor:
    """The bitwise or along a dimension."""
    return reduce(a, dim, or_)  # type: ignore[no-any-return]


def _with_index(a_value: Any, a_index: Any, b_value: Any, b_index: Any, predicate: str) -> tuple[tensor, tensor]:
    """The better of two values with its index: NaN before numbers, then by `predicate`, then the lower index."""
    better, equal = compare(predicate, a_value, b_value), compare("eq", a_value, b_value)
    if is_floating(a_value):
        a_nan, b_nan = compare("ne", a_value, a_value), compare("ne", b_value, b_value)
        better = or_(better, and_(a_nan, invert(b_nan)))
        equal = or_(equal, and_(a_nan, b_nan))
    better = or_(better, and_(equal, compare("lt", a_index, b_index)))
    return where(better, a_value, b_value), where(better, a_index, b_index)


def minimum_with_index(a_value: Any, a_index: Any, b_value: Any, b_index: Any) -> tuple[tensor, tensor]:
    """The smaller value with its index, NaN before numbers, the lower index of equal ones."""
    return _with_index(a_value, a_index, b_value, b_index, "lt")


def maximum_with_index(a_value: Any, a_index: Any, b_value: Any, b_index: Any) -> tuple[tensor, tensor]:
    """The larger value with its index, NaN before numbers, the lower index of equal ones."""
    return _with_index(a_value, a_index, b_value, b_index, "gt")


def min_with_index(value: Any, index: Any, dim: Any) -> tuple[tensor, tensor]:
    """Minimum along a dimension and its index."""
    return reduce((value, index), dim, minimum_with_index)  # type: ignore[no-any-return]


def max_with_index(value: Any, index: Any, dim: Any) -> tuple[tensor, tensor]:
    """Maximum along a dimension and its index."""
    return reduce((value, index), dim, maximum_with_index)  # type: ignore[no-any-return]


def exp(x: Any, use_fast_math: Any) -> tensor:
    """e to the power x; there is one precision here."""
    return _exp(x)


def online_softmax_reduce(lhs_max: Any, lhs_sum: Any, dim: Any, use_fast_math: Any) -> tuple[tensor, tensor]:
    """Maximum and rescaled sum of partial maxima and sums along a dimension."""
    out_max = max2(lhs_max, dim)
    kept = expand_dims(out_max, dim)
    delta = where(compare("eq", kept, float("-inf")), 0, lhs_max - kept)
    return out_max, reductions.sum(lhs_sum * _exp(delta), dim)


def _rescaling(part: Any, whole: tensor) -> tensor:
    return where(compare("eq", whole, float("-inf")), 1.0, _exp(part - whole))


def online_softmax_combine(lhs_max: Any, lhs_sum: Any, rhs_max: Any, use_fast_math: Any) -> tuple[tensor, tensor]:
    """Running maximum and sum with one more element, whose sum is 1."""
    out_max = maximum(lhs_max, rhs_max)
    return out_max, lhs_sum * _rescaling(lhs_max, out_max) + _rescaling(rhs_max, out_max)


def online_softmax_combine_with_sum(
    lhs_max: Any, lhs_sum: Any, rhs_max: Any, rhs_sum: Any, use_fast_math: Any
) -> tuple[tensor, tensor]:
    """Two partial maxima and sums as one."""
    out_max = maximum(lhs_max, rhs_max)
    return out_max, lhs_sum * _rescaling(lhs_max, out_max) + rhs_sum * _rescaling(rhs_max, out_max)


def welford_reduce(value: Any, mean: Any, m2: Any, weight: Any, first_iteration: Any) -> tuple[Any, Any, Any]:
    """Running mean, squared deviations and weight with one more element (B. Welford, 1962)."""
    first = semantic.unwrap(first_iteration)
    if isinstance(first, tensor) and first.known is None:
        started = _welford_first(value, m2, weight)
        updated = _welford_next(value, mean, m2, weight)
        flag = semantic.truth(first)
        return tuple(where(flag, a, b) for a, b in zip(started, updated, strict=True))  # type: ignore[return-value]
    if static_flag(first, "welford_reduce", "first_iteration"):
        return _welford_first(value, m2, weight)
    return _welford_next(value, mean, m2, weight)


def _welford_first(value: Any, m2: Any, weight: Any) -> tuple[Any, Any, Any]:
    return (
        value,
        semantic.full(0, m2.ir_type.dtype, m2.shape),
        semantic.full(1, weight.ir_type.dtype, weight.shape),
    )


def _welford_next(value: Any, mean: Any, m2: Any, weight: Any) -> tuple[Any, Any, Any]:
    delta = value - mean
    new_weight = weight + 1
    new_mean = mean + delta / new_weight
    return new_mean, m2 + delta * (value - new_mean), new_weight


def welford_combine(
    mean_1: Any, m2_1: Any, weight_1: Any, mean_2: Any, m2_2: Any, weight_2: Any
) -> tuple[Any, Any, Any]:
    """Two partial means, squared deviations and weights as one (T. Chan, G. Golub, R. LeVeque, 1979)."""
    delta = where(compare("eq", mean_1, mean_2), 0.0, mean_2 - mean_1)
    new_weight = weight_1 + weight_2
    share = where(compare("eq", new_weight, 0.0), 0.0, weight_2 / new_weight)
    return mean_1 + delta * share, m2_1 + m2_2 + delta * delta * weight_1 * share, new_weight


def welford(mean: Any, m2: Any, weight: Any, dim: Any) -> Any:
    """Partial means, squared deviations and weights combined along a dimension."""
    return reduce((mean, m2, weight), dim, welford_combine)


def device_assert_then(cond: Any, msg: Any, r: Any) -> Any:
    """`r`, after an assertion."""
    device_assert(cond, msg)
    return r


def bucketize_binary_search(
    values: Any,
    boundaries_ptr: Any,
    BOUNDARIES_SIZE: Any,
    BOUNDARIES_UNDERLYING_NUMEL: Any,
    BOUNDARIES_STRIDE: Any,
    boundary_indices: Any,
    indexing_dtype: Any,
    right: Any,
    sorter_ptr: Any,
    SORTER_STRIDE: Any,
    sorter_indices: Any,
) -> tensor:
    """For each value the index of the first of the sorted boundaries that is not below it (above it if `right`).

    The boundaries of a value begin at element `boundary_indices` and are BOUNDARIES_STRIDE apart; `sorter_ptr`, where
    it is given, holds the order in which they are sorted.
    """
    current("triton_helpers.bucketize_binary_search")
    dtype = dtype_argument(indexing_dtype, "bucketize_binary_search")
    wanted = tile_operand(values, "bucketize_binary_search")
    low = semantic.full(0, dtype, wanted.shape)
    high = semantic.to_shape(semantic.cast(semantic.to_tensor(BOUNDARIES_SIZE), dtype), wanted.shape)
    sorter = static(sorter_ptr, "sorter_ptr") if not isinstance(sorter_ptr, tensor) else sorter_ptr
    predicate = "ge" if static_flag(right, "bucketize_binary_search", "right") else "gt"
    remaining = static_int(BOUNDARIES_SIZE, "bucketize_binary_search", "BOUNDARIES_SIZE") + 1
    while remaining > 1:
        middle = floordiv(high + low, 2)
        inside = compare("lt", middle * BOUNDARIES_STRIDE + boundary_indices, BOUNDARIES_UNDERLYING_NUMEL)
        inside = and_(inside, compare("lt", middle, BOUNDARIES_SIZE))
        place: Any = middle
        if sorter is not None and semantic.unwrap(SORTER_STRIDE) is not None:
            place = load(sorter + sorter_indices + SORTER_STRIDE * middle, mask=inside, other=0)
        bound = load(boundaries_ptr + boundary_indices + BOUNDARIES_STRIDE * place, mask=inside, other=0)
        above = compare(predicate, wanted, bound)
        if is_floating(wanted):
            above = or_(above, compare("ne", wanted, wanted))
        low = where(and_(above, inside), middle + 1, low)
        high = where(above, high, middle)
        remaining = (remaining + 1) // 2
    return low


def randint64(seed: Any, offset: Any, low: Any, high: Any) -> tensor:
    """Random int64 in [low, high) for a seed and offsets."""
    first, second, _, _ = random_numbers.randint4x(seed, offset)
    wide = or_(semantic.cast(first, core.u64), semantic.cast(second, core.u64) << 32)
    size = semantic.cast(semantic.to_tensor(high - low), core.u64)
    return add(semantic.cast(mod(wide, size), core.i64), low)  # type: ignore[no-any-return]


def rand4x(seed: Any, offsets: Any, BLOCK: Any) -> tensor:
    """Uniform float32 of a block of consecutive offsets, four to a Philox call."""
    return _four_at_once(seed, offsets, BLOCK, random_numbers.rand4x, random_numbers.rand)


def randn4x(seed: Any, offsets: Any, BLOCK: Any) -> tensor:
    """Normal float32 of a block of consecutive offsets, four to a Philox call."""
    return _four_at_once(seed, offsets, BLOCK, random_numbers.randn4x, random_numbers.randn)


def _four_at_once(seed: Any, offsets: Any, BLOCK: Any, four: Any, one: Any) -> tensor:
    size = static_int(BLOCK, "rand4x", "BLOCK")
    at = semantic.cast(tile_operand(offsets, "rand4x"), core.u32)
    key = reductions.min(semantic.to_tensor(seed) + at * 0, axis=0)
    if size < 4 or size % 4:
        return one(key, at)  # type: ignore[no-any-return]
    base = reductions.min(at, axis=0)
    r0, r1, r2, r3 = four(key, floordiv(base, 4) + reductions.iota(size // 4))
    return reshape(join(join(r0, r2), join(r1, r3)), (size,))


def frexp(x: Any) -> tuple[tensor, tensor]:
    """Fraction in [0.5, 1) by magnitude, and exponent; zeros, infinities and NaN are their own fractions."""
    from loom_core.ops.special import FrexpExponent, FrexpFraction
    from ltl.operators import emit

    value = semantic.to_tensor(x)
    return emit(FrexpFraction, value), emit(FrexpExponent, value)


def sort_with_index(
    x: Any, idxs: Any, rnumel: Any, dim: Any = None, stable: Any = False, descending: Any = False
) -> tuple[tensor, tensor]:
    """Values in order along the last dimension with their indices; those with an index from `rnumel` on come last.

    NaN are above every number. Equal values are in the order of their indices, which is what `stable` asks for.
    """
    value, index = tile_operand(x, "sort_with_index"), tile_operand(idxs, "sort_with_index")
    value, index = semantic.broadcast_pair(value, index, "sort_with_index")
    wanted = static(dim, "the dim of sort_with_index")
    axis = len(value.shape) - 1 if wanted is None else wanted
    if axis not in (len(value.shape) - 1, -1):
        fail(WrongDtype, function="sort_with_index", given=f"dimension {axis}", takes="it sorts the last dimension")
    return _ordered_by_rank(value, index, rnumel, static_flag(descending, "sort_with_index", "descending"))


def _ordered_by_rank(value: tensor, index: tensor, rnumel: Any, descending: bool) -> tuple[tensor, tensor]:
    """Each element goes to where as many stand before it as are to: n^2 comparisons, summed along a dimension."""
    rank = len(value.shape)
    mine = [expand_dims(tile, rank) for tile in (value, index)]
    others = [expand_dims(tile, rank - 1) for tile in (value, index)]
    before = compare("gt" if descending else "lt", others[0], mine[0])
    equal = compare("eq", others[0], mine[0])
    if is_floating(value):
        my_nan, other_nan = (compare("ne", tile, tile) for tile in (mine[0], others[0]))
        first, second = (other_nan, my_nan) if descending else (my_nan, other_nan)
        before = or_(before, and_(first, invert(second)))
        equal = or_(equal, and_(my_nan, other_nan))
    before = or_(before, and_(equal, compare("lt", others[1], mine[1])))
    if semantic.unwrap(rnumel) is not None:
        my_valid, other_valid = (compare("lt", tile, rnumel) for tile in (mine[1], others[1]))
        same = compare("eq", my_valid, other_valid)
        before = or_(and_(other_valid, invert(my_valid)), and_(same, before))
    place = reductions.sum(semantic.cast(before, core.i32), rank)
    slots = reductions.along_axis(reductions.iota(value.shape[-1]), rank - 1, value.shape)
    here = compare("eq", expand_dims(place, rank - 1), expand_dims(slots, rank))
    source = reductions.sum(where(here, expand_dims(slots, rank - 1), 0), rank)
    from ltl.rearranging import gather

    return gather(value, source, rank - 1), gather(index, source, rank - 1)


def select_one(x: Any, mask: Any, dim: Any, keep_dims: Any = False) -> tensor:
    """The one element along a dimension where `mask` holds, bit for bit."""
    value = tile_operand(x, "select_one")
    unsigned = core.by_name(f"u{value.ir_type.dtype.bits}")
    pattern = semantic.bitcast(value, unsigned) * mask
    summed = reductions.sum(pattern, dim, keep_dims)
    return semantic.bitcast(semantic.cast(summed, unsigned), value.ir_type.dtype)


def constexpr_next_power_of_2(n: Any) -> int:
    """The smallest power of two that is not below n."""
    return 1 << max(static_int(n, "constexpr_next_power_of_2", "n") - 1, 0).bit_length()


def if_mask(mask: Any, val: Any) -> Any:
    """`val`, or None where the mask is None."""
    return None if semantic.unwrap(mask) is None else val


def inline_asm_pack(x: Any, pack: Any) -> tensor:
    """All elements in one dimension, padded with zeros to at least `pack`."""
    result = ravel(x)
    while result.numel < static_int(pack, "inline_asm_pack", "pack"):
        result = reshape(join(result, semantic.full(0, result.ir_type.dtype, result.shape)), (result.numel * 2,))
    return result


def inline_asm_unpack(x: Any, orig: Any, pack: Any) -> tensor:
    """What `inline_asm_pack` padded, in the shape of `orig`."""
    result = tile_operand(x, "inline_asm_unpack")
    while result.numel > orig.numel:
        result, _ = split(reshape(result, (result.numel // 2, 2)))
    return reshape(result, orig.shape)


__all__ = [
    "any", "bucketize_binary_search", "constexpr_next_power_of_2", "device_assert_then", "div_floor_integer", "exp",
    "frexp", "if_mask", "inline_asm_pack", "inline_asm_unpack", "is_floating", "libdevice", "math", "max2",
    "max_with_index", "maximum", "maximum_with_index", "min2", "min_with_index", "minimum", "minimum_with_index",
    "online_softmax_combine", "online_softmax_combine_with_sum", "online_softmax_reduce", "pow_integer", "prod",
    "promote_to_tensor", "rand4x", "randint64", "randn4x", "remainder_integer", "select_one", "sort_with_index",
    "welford", "welford_combine", "welford_reduce",
]  # fmt: skip
