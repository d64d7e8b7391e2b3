"""`ltl.math`: the elementwise functions under the names of Triton's math modules and libdevice."""

from ltl.functions import (
    abs,
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
    umulhi,
)

max = maximum
min = minimum

__all__ = [
    "abs", "ceil", "clamp", "cos", "div_rn", "erf", "exp", "exp2", "fdiv", "floor", "fma", "log", "log2", "max",
    "maximum", "min", "minimum", "rsqrt", "sigmoid", "sin", "sqrt", "sqrt_rn", "tanh", "umulhi",
]  # fmt: skip
