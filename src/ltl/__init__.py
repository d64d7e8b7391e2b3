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

from typing import Any

from ltl import math as math
from ltl.constant import constexpr
from ltl.control import (
    assume,
    debug_barrier,
    device_assert,
    max_constancy,
    max_contiguous,
    multiple_of,
    range,
    static_assert,
    static_print,
    static_range,
)
from ltl.dtypes import (
    bfloat16,
    block_type,
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
    fdiv,
    floor,
    fma,
    log,
    log2,
    maximum,
    minimum,
    rsqrt,
    sigmoid,
    sin,
    sqrt,
    sqrt_rn,
    tanh,
)
from ltl.jit import JitFunction, jit
from ltl.matmul import dot
from ltl.members import install as _install
from ltl.memory import load, store
from ltl.operators import add, mul, sub, where
from ltl.program import arange, full, num_programs, program_id, to_tensor, zeros, zeros_like
from ltl.reductions import max, min, prod, reduce_or, softmax, sum, xor_sum
from ltl.refused import REFUSED, refused_function
from ltl.shaping import broadcast, broadcast_to, expand_dims, permute, ravel, reshape, squeeze, trans, unsqueeze, view
from ltl.tensor import tensor

__all__ = [
    "JitFunction",
    "PropagateNan",
    "abs",
    "add",
    "arange",
    "assume",
    "bfloat16",
    "block_type",
    "broadcast",
    "broadcast_to",
    "cast",
    "cdiv",
    "ceil",
    "clamp",
    "constexpr",
    "cos",
    "debug_barrier",
    "device_assert",
    "div_rn",
    "dot",
    "dtype",
    "erf",
    "exp",
    "exp2",
    "expand_dims",
    "fdiv",
    "float8e4nv",
    "float8e5",
    "float16",
    "float32",
    "float64",
    "floor",
    "fma",
    "full",
    "int1",
    "int8",
    "int16",
    "int32",
    "int64",
    "jit",
    "load",
    "log",
    "log2",
    "math",
    "max",
    "max_constancy",
    "max_contiguous",
    "maximum",
    "min",
    "minimum",
    "mul",
    "multiple_of",
    "num_programs",
    "permute",
    "pi32_t",
    "pointer_type",
    "prod",
    "program_id",
    "range",
    "ravel",
    "reduce_or",
    "reshape",
    "rsqrt",
    "sigmoid",
    "sin",
    "softmax",
    "sqrt",
    "sqrt_rn",
    "squeeze",
    "static_assert",
    "static_print",
    "static_range",
    "store",
    "sub",
    "sum",
    "tanh",
    "tensor",
    "to_tensor",
    "trans",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "unsqueeze",
    "view",
    "where",
    "xor_sum",
    "zeros",
    "zeros_like",
]  # fmt: skip

_install()


def __getattr__(name: str) -> Any:
    """Functions of Triton that LTL knows and refuses, with the reason."""
    if name in REFUSED:
        return refused_function(name)
    raise AttributeError(f"ltl has no {name!r}")
