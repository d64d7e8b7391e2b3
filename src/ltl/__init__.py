"""LTL, the Triton-like kernel language.

    import loom.triton.language as ltl

    @ltl.jit
    def add(x_ptr, y_ptr, out_ptr, n, BLOCK: ltl.constexpr):
        offsets = ltl.program_id(0) * BLOCK + ltl.arange(0, BLOCK)
        mask = offsets < n
        x = ltl.load(x_ptr + offsets, mask=mask)
        y = ltl.load(y_ptr + offsets, mask=mask)
        ltl.store(out_ptr + offsets, x + y, mask=mask)

    add[(ltl.cdiv(n, 1024),)](x, y, out, n, BLOCK=1024)

Kernels are traced at their first call for each signature, compiled, cached and run on the simulated machine. Names,
signatures and meanings are Triton's; where Loom differs (any block size, exact float32 dots), the function says so.
"""

from builtins import slice, tuple
from typing import Any

from ltl import core as core
from ltl import extra as extra
from ltl import math as math
from ltl import target_info as target_info
from ltl.aggregates import aggregate, aggregate_replace
from ltl.atomics import (
    atomic_add,
    atomic_and,
    atomic_cas,
    atomic_load,
    atomic_max,
    atomic_min,
    atomic_or,
    atomic_poll,
    atomic_store,
    atomic_xchg,
    atomic_xor,
)
from ltl.block_pointers import (
    advance,
    load_tensor_descriptor,
    make_block_ptr,
    make_tensor_descriptor,
    store_tensor_descriptor,
    tensor_descriptor,
)
from ltl.constant import constexpr, constexpr_type
from ltl.control import (
    assume,
    condition,
    debug_barrier,
    device_assert,
    device_print,
    max_constancy,
    max_contiguous,
    multiple_of,
    range,
    static_assert,
    static_print,
    static_range,
)
from ltl.dtypes import REFUSED as _REFUSED_TYPES
from ltl.dtypes import (
    bfloat16,
    block_type,
    const,
    dtype,
    float8e4nv,
    float8e5,
    float16,
    float32,
    float64,
    int1,
    int8,
    int16,
    int32,
    int64,
    pi32_t,
    pointer_type,
    uint8,
    uint16,
    uint32,
    uint64,
    void,
)
from ltl.functions import (
    PropagateNan,
    abs,
    cast,
    cdiv,
    ceil,
    clamp,
    cos,
    div_rn,
    erf,
    exp,
    exp2,
    expect_zero,
    fdiv,
    floor,
    fma,
    log,
    log2,
    map_elementwise,
    maximum,
    minimum,
    rsqrt,
    sigmoid,
    sin,
    sqrt,
    sqrt_rn,
    tanh,
    umulhi,
)
from ltl.jit import JitFunction, jit
from ltl.matmul import dot, dot_scaled
from ltl.members import install as _install
from ltl.memory import load, store
from ltl.operators import where
from ltl.overflow import add, mul, sub
from ltl.packages import constexpr_function, next_power_of_2
from ltl.program import arange, full, num_programs, program_id, to_tensor, zeros, zeros_like
from ltl.random_numbers import (
    pair_uniform_to_normal,
    philox,
    philox_impl,
    rand,
    rand4x,
    randint,
    randint4x,
    randn,
    randn4x,
    uint_to_uniform_float,
)
from ltl.rearranging import (
    bitonic_merge,
    cat,
    flip,
    gather,
    histogram,
    interleave,
    join,
    sort,
    split,
    swizzle2d,
    topk,
)
from ltl.reductions import argmax, argmin, max, min, prod, reduce, reduce_or, softmax, sum, xor_sum
from ltl.refused import REFUSED, refused_function
from ltl.scans import associative_scan, cumprod, cumsum
from ltl.shaping import broadcast, broadcast_to, expand_dims, permute, ravel, reshape, squeeze, trans, unsqueeze, view
from ltl.tensor import tensor
from ltl.transfers import copy, token, window
from ltl.tuning import Config, autotune, heuristics

random = standard = core

TRITON_MAX_TENSOR_NUMEL = 1 << 20
"""Triton's limit for the elements of a tile. Loom's is the size of SRAM."""

__all__ = [
    "TRITON_MAX_TENSOR_NUMEL",
    "Config",
    "JitFunction",
    "PropagateNan",
    "abs",
    "add",
    "advance",
    "aggregate",
    "aggregate_replace",
    "arange",
    "argmax",
    "argmin",
    "associative_scan",
    "assume",
    "atomic_add",
    "atomic_and",
    "atomic_cas",
    "atomic_load",
    "atomic_max",
    "atomic_min",
    "atomic_or",
    "atomic_poll",
    "atomic_store",
    "atomic_xchg",
    "atomic_xor",
    "autotune",
    "bfloat16",
    "bitonic_merge",
    "block_type",
    "broadcast",
    "broadcast_to",
    "cast",
    "cat",
    "cdiv",
    "ceil",
    "clamp",
    "condition",
    "const",
    "constexpr",
    "constexpr_function",
    "constexpr_type",
    "copy",
    "cos",
    "cumprod",
    "cumsum",
    "debug_barrier",
    "device_assert",
    "device_print",
    "div_rn",
    "dot",
    "dot_scaled",
    "dtype",
    "erf",
    "exp",
    "exp2",
    "expand_dims",
    "expect_zero",
    "extra",
    "fdiv",
    "flip",
    "float8e4nv",
    "float8e5",
    "float16",
    "float32",
    "float64",
    "floor",
    "fma",
    "full",
    "gather",
    "heuristics",
    "histogram",
    "int1",
    "int8",
    "int16",
    "int32",
    "int64",
    "interleave",
    "jit",
    "join",
    "load",
    "load_tensor_descriptor",
    "log",
    "log2",
    "make_block_ptr",
    "make_tensor_descriptor",
    "map_elementwise",
    "math",
    "max",
    "max_constancy",
    "max_contiguous",
    "maximum",
    "min",
    "minimum",
    "mul",
    "multiple_of",
    "next_power_of_2",
    "num_programs",
    "pair_uniform_to_normal",
    "permute",
    "philox",
    "philox_impl",
    "pi32_t",
    "pointer_type",
    "prod",
    "program_id",
    "rand",
    "rand4x",
    "randint",
    "randint4x",
    "randn",
    "randn4x",
    "range",
    "ravel",
    "reduce",
    "reduce_or",
    "reshape",
    "rsqrt",
    "sigmoid",
    "sin",
    "slice",
    "softmax",
    "sort",
    "split",
    "sqrt",
    "sqrt_rn",
    "squeeze",
    "static_assert",
    "static_print",
    "static_range",
    "store",
    "store_tensor_descriptor",
    "sub",
    "sum",
    "swizzle2d",
    "tanh",
    "target_info",
    "tensor",
    "tensor_descriptor",
    "to_tensor",
    "token",
    "topk",
    "trans",
    "tuple",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "uint_to_uniform_float",
    "umulhi",
    "unsqueeze",
    "view",
    "void",
    "where",
    "window",
    "xor_sum",
    "zeros",
    "zeros_like",
]

_install()


def __getattr__(name: str) -> Any:
    """Functions and types of Triton that LTL knows and refuses, with the reason."""
    if name in REFUSED:
        return refused_function(name)
    if name in _REFUSED_TYPES:
        return _REFUSED_TYPES[name]
    raise AttributeError(f"ltl has no {name!r}")
