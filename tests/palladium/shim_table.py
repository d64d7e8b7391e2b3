"""Every function of the shim that jax has too, on every dtype and on special values, against jax itself.

    python -m tests.palladium.shim_table [--write]    all of it: what differs, what is refused; --write keeps it

The suite looks at a sample. Data holds zeros of both signs, infinities, NaN, the largest and smallest numbers, no
subnormal ones (jax flushes them on a CPU).
"""

from __future__ import annotations

import argparse
import json
import sys
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

from loom.experimental import palladium as lpl
from loom_core.base.diagnostics import LoomError
from loom_core.base.knobs import knobs
from tests.palladium.peers import SHIM, upstream

GOLDEN = Path(__file__).parent.parent / "golden" / "shim_table.json"
DTYPES = (
    "float32", "bfloat16", "float16", "int32", "int8", "int16", "uint8", "uint16", "uint32", "bool",
)  # fmt: skip
MODULES = ("jnp", "lax", "nn", "pl", "tpu")
Call = Callable[[Any, Any, Any], Any]


def chosen(x: Any, y: Any) -> Any:
    """Indices from -3 to 2 of a tile's shape."""
    return (x > y).astype(np.int32) * 2 - (x == x).astype(np.int32) * 3 * (y > 1).astype(np.int32)


_SHAPES = {
    "expand_dims": lambda f, x, y: f(x, (0,)),
    "swapaxes": lambda f, x, y: f(x, 0, 1),
    "moveaxis": lambda f, x, y: f(x, 0, 1),
    "rollaxis": lambda f, x, y: f(x, 1),
    "reshape": lambda f, x, y: f(x, (6, 4)),
    "broadcast_to": lambda f, x, y: f(x, (2, 4, 6)),
    "repeat": lambda f, x, y: f(x, 2, 1),
    "roll": lambda f, x, y: f(x, 3, 1),
    "tile": lambda f, x, y: f(x, (2, 1)),
    "split": lambda f, x, y: f(x, 2, 1)[1],
    "array_split": lambda f, x, y: f(x, 4, 1)[1],
    "hsplit": lambda f, x, y: f(x, 2)[1],
    "vsplit": lambda f, x, y: f(x, 2)[1],
    "dsplit": lambda f, x, y: f(x.reshape(2, 3, 4), 2)[1],
    "unstack": lambda f, x, y: f(x)[2],
    "stack": lambda f, x, y: f([x, y]),
    "concatenate": lambda f, x, y: f([x, y], 0),
    "concat": lambda f, x, y: f([x, y], axis=1),
    "hstack": lambda f, x, y: f([x, y]),
    "vstack": lambda f, x, y: f([x, y]),
    "dstack": lambda f, x, y: f([x, y]),
    "column_stack": lambda f, x, y: f([x, y]),
    "take": lambda f, x, y: f(x, chosen(x, y), 0),
    "where": lambda f, x, y: f(x > y, x, y),
    "select": lambda f, x, y: f([x > y, x < y], [x, y], 0),
    "squeeze": lambda f, x, y: f(x.reshape(4, 1, 6)),
    "permute_dims": lambda f, x, y: f(x, (1, 0)),
    "outer": lambda f, x, y: f(x[0], y[1]),
    "dot": lambda f, x, y: f(x, y.T),
    "matmul": lambda f, x, y: f(x, y.T),
    "tensordot": lambda f, x, y: f(x, y.T, 1),
    "einsum": lambda f, x, y: f("ij,kj->ik", x, y),
    "vecmat": lambda f, x, y: f(x[:, 0], y),
    "matvec": lambda f, x, y: f(x, y[0]),
    "diag": lambda f, x, y: f(x[0], 1),
    "pad": lambda f, x, y: f(x, ((1, 2), (0, 3))),
    "ldexp": lambda f, x, y: f(x, chosen(x, y) * 50),
    "astype": lambda f, x, y: f(x, np.float32),
    "empty_like": None,
    "arange": lambda f, x, y: f(2, 9, 3),
    "linspace": lambda f, x, y: f(0.0, 3.0, 7),
    "eye": lambda f, x, y: f(4, 5, k=1),
    "tri": lambda f, x, y: f(4, 5, 1),
    "identity": lambda f, x, y: f(4),
    "indices": lambda f, x, y: f((2, 3)),
    "full": lambda f, x, y: f((2, 3), 7),
    "ones": lambda f, x, y: f((2, 3)),
    "zeros": lambda f, x, y: f((2, 3)),
    "full_like": lambda f, x, y: f(x, 1),
    "searchsorted": lambda f, x, y: f(y[0] * 0 + 1, y),
    "cumulative_sum": lambda f, x, y: f(x[0]),
    "cumulative_prod": lambda f, x, y: f(x[0]),
    "matrix_transpose": lambda f, x, y: f(x),
    "meshgrid": lambda f, x, y: f(x[0], y[:, 1])[1],
    "broadcast_arrays": lambda f, x, y: f(x, y[0])[1],
    "take_along_axis": lambda f, x, y: f(x, chosen(x, y), 0),
    "frexp": lambda f, x, y: f(x)[0],
    "modf": lambda f, x, y: f(x)[1],
    "divmod": lambda f, x, y: f(x, y)[1],
    "round": lambda f, x, y: f(x),
    "around": lambda f, x, y: f(x),
    "one_hot": lambda f, x, y: f(x, 5),
    "power": lambda f, x, y: f(x, 3),
    "pow": lambda f, x, y: f(x, 3),
    "median": lambda f, x, y: f(x, 1),
    "gcd": lambda f, x, y: f(x % 100, y % 100),
    "lcm": lambda f, x, y: f(x % 100, y % 100),
    "average": lambda f, x, y: f(x, 1),
}
_LAX = {
    "squeeze": lambda f, x, y: f(x.reshape(4, 1, 6), (1,)),
    "select": lambda f, x, y: f(x > y, x, y),
    "select_n": lambda f, x, y: f(x > y, x, y),
    "split": lambda f, x, y: f(x, (1, 3), 0)[1],
    "stack": lambda f, x, y: f([x, y]),
    "unstack": lambda f, x, y: f(x)[2],
    "pad": lambda f, x, y: f(x, y[0, 0], ((1, -1, 0), (0, 2, 1))),
    "slice": lambda f, x, y: f(x, (1, 0), (4, 5), (2, 1)),
    "slice_in_dim": lambda f, x, y: f(x, 1, 3, axis=0),
    "index_in_dim": lambda f, x, y: f(x, 1),
    "dynamic_slice": lambda f, x, y: f(x, (2, 9), (2, 3)),
    "dynamic_slice_in_dim": lambda f, x, y: f(x, 1, 2),
    "dynamic_index_in_dim": lambda f, x, y: f(x, -1),
    "dynamic_update_slice": lambda f, x, y: f(x, y[:2, :2], (3, 1)),
    "dynamic_update_slice_in_dim": lambda f, x, y: f(x, y[:2], 1, 0),
    "dynamic_update_index_in_dim": lambda f, x, y: f(x, y[0], 1, 0),
    "rev": lambda f, x, y: f(x, (1,)),
    "collapse": lambda f, x, y: f(x, 0),
    "broadcast": lambda f, x, y: f(x, (2,)),
    "broadcast_in_dim": lambda f, x, y: f(x, (4, 2, 6), (0, 2)),
    "broadcast_to_rank": lambda f, x, y: f(x, 3),
    "broadcasted_iota": lambda f, x, y: f(x.dtype, (3, 4), 1),
    "iota": lambda f, x, y: f(x.dtype, 5),
    "reshape": lambda f, x, y: f(x, (6, 4)),
    "transpose": lambda f, x, y: f(x, (1, 0)),
    "concatenate": lambda f, x, y: f([x, y], 1),
    "convert_element_type": lambda f, x, y: f(x, np.float32),
    "bitcast_convert_type": lambda f, x, y: f(x, {1: np.int8, 2: np.int16, 4: np.int32}[np.dtype(x.dtype).itemsize]),
    "integer_pow": lambda f, x, y: f(x, 3),
    "dot": lambda f, x, y: f(x, y.T),
    "dot_general": lambda f, x, y: f(x, y, (((1,), (1,)), ((0,), (0,)))),
    "batch_matmul": lambda f, x, y: f(x.reshape(2, 2, 6), y.reshape(2, 6, 2)),
    "argmax": lambda f, x, y: f(x, 1, np.int32),
    "argmin": lambda f, x, y: f(x, 0, np.int32),
    "reduce_precision": lambda f, x, y: f(x, 8, 7),
    "sort": lambda f, x, y: f(x, dimension=0),
    "sort_key_val": lambda f, x, y: f(x, y, 1)[1],
    "top_k": lambda f, x, y: f(x, 3)[1],
    "clamp": lambda f, x, y: f(y[0, 0], x, y[0, 1]),
    "full": lambda f, x, y: f((2, 3), 7, x.dtype),
    "full_like": lambda f, x, y: f(x, 1),
    "expand_dims": lambda f, x, y: f(x, (1,)),
    "tile": lambda f, x, y: f(x, (2, 1)),
    "map": lambda f, x, y: f(lambda row: row + row, x),
    **{f"reduce_{kind}": lambda f, x, y: f(x, (1,)) for kind in ("sum", "prod", "max", "min", "and", "or", "xor")},
    **{f"cum{kind}": lambda f, x, y: f(x, 1) for kind in ("sum", "prod", "max", "min")},
    "empty": None, "scan": None, "cond": None, "switch": None, "while_loop": None, "fori_loop": None, "dot_": None,
    "broadcast_shapes": None, "optimization_barrier": lambda f, x, y: f(x), "stop_gradient": lambda f, x, y: f(x),
}  # fmt: skip
_OTHER = {
    "pl": {"cdiv": lambda f, x, y: f(x, 3), "reciprocal": lambda f, x, y: f(x)},
    "tpu": {
        "roll": lambda f, x, y: f(x, 2, 1),
        "bitcast": None, "repeat": None,
    },
}  # fmt: skip
_NO_VALUES = {
    "promote_types", "issubdtype", "ndim", "shape", "size", "isscalar", "result_type", "broadcast_shapes", "array",
    "asarray", "empty", "finfo", "iinfo", "dtype",
}  # fmt: skip


def recipes(module: str, name: str) -> list[Call]:
    """How a function is called on two tiles: as the tables say, else with the first one, else with both."""
    table = {"jnp": _SHAPES, "nn": _SHAPES, "lax": _LAX}.get(module, _OTHER.get(module, {}))
    if name in _NO_VALUES:
        return []
    if name in table:
        return [] if table[name] is None else [table[name]]  # type: ignore[list-item]
    if module in ("pl", "tpu"):
        return []
    return [lambda f, x, y: f(x), lambda f, x, y: f(x, y)]


FLOATS = [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.5, -2.5, 3.0, np.inf, -np.inf, np.nan, 0.3, -0.7, 1e-3, 7.0, 100.0, -9.5,
          1.5, 0.9, -0.1, 12.0, 5e3, -4.0]  # fmt: skip
OTHERS = [2.0, -0.0, 0.0, -3.0, 0.25, 1.0, -1.5, 0.5, np.inf, 1.0, -2.0, 1.0, np.nan, 0.1, -1e-2, 2.0, 0.0, 3.0, -0.5,
          np.inf, 4.0, -8.0, 1.0, 0.7]  # fmt: skip
INTEGERS = [0, 1, -1, 2, -3, 7, 127, -128, 100, 5, 33, -9, 12, 3, 64, 8, 31, 4, -5, 90, 6, 77, -77, 10]
SMALL = [1, 2, 3, -1, 2, 0, 4, 1, 3, 7, 2, 1, -2, 5, 6, 3, 1, 0, 2, 4, 1, 3, 2, 5]


def operands(dtype: str) -> tuple[np.ndarray, np.ndarray]:
    """Two tiles of shape (4, 6)."""
    target = np.dtype(getattr(ml_dtypes, dtype, dtype))
    if dtype == "bool":
        pair = (np.array(INTEGERS) > 3, np.array(SMALL) > 2)
    elif target.kind in "iu":
        limits = np.iinfo(target)
        ends = [limits.max, limits.min]
        pair = tuple(np.array([*numbers[:22], *ends]).astype(target) for numbers in (INTEGERS, SMALL))  # type: ignore[assignment]
    else:
        pair = tuple(np.array(numbers).astype(target) for numbers in (FLOATS, OTHERS))  # type: ignore[assignment]
    return pair[0].reshape(4, 6), pair[1].reshape(4, 6)


# ---- bounds ----------------------------------------------------------------------------------------------------------

_BOUNDS: dict[int, str] = {
    8: """
        exp expm1 log log2 log10 log1p sqrt rsqrt cbrt sin cos tan tanh arcsin arccos arctan arcsinh arccosh arctanh
        asin acos atan asinh acosh atanh arctan2 atan2 hypot logistic sigmoid erf erfc erf_inv sinc degrees radians
        deg2rad rad2deg frexp ldexp nextafter
    """,
    64: """
        exp2 sinh cosh power pow float_power logaddexp logaddexp2 lgamma digamma logsumexp softmax log_softmax gelu silu
        swish mish softplus log_sigmoid elu celu selu glu squareplus soft_sign standardize logmeanexp log1mexp
        sparse_plus hard_sigmoid hard_silu hard_swish
    """,
    16: """
        sum mean var std prod nansum nanprod average dot matmul tensordot einsum inner vdot vecdot vecmat matvec trace
        dot_general batch_matmul cumsum cumprod cumulative_sum cumulative_prod reduce_sum reduce_prod linspace
    """,
}
ULPS = {name: bound for bound, names in _BOUNDS.items() for name in names.split()}
"""How many units in the last place of the largest finite element of the result two results may differ by (elementwise
functions: of the element itself); all others are equal, zeros to the sign."""
ABSOLUTE = dict.fromkeys(("lgamma", "gelu", "log_softmax"), 2.0**-20)
"""Bounds where results near 0 are differences of larger numbers."""
EQUAL_ZEROS = frozenset({"sort"})
"""What orders -0 before +0, and leaves them in no order upstream."""
_SUMS = frozenset(name for name, bound in ULPS.items() if bound == 16)


def difference(name: str, mine: np.ndarray, theirs: np.ndarray) -> str:
    """How two results differ beyond their bound; empty where they do not."""
    if (mine.shape, mine.dtype) != (theirs.shape, theirs.dtype):
        return f"{mine.dtype}{list(mine.shape)}, jax {theirs.dtype}{list(theirs.shape)}"
    kind = np.dtype(mine.dtype).kind
    if kind in "iub":
        wrong = mine != theirs
        a, b = mine, theirs
    else:
        a, b = mine.astype(np.float64), theirs.astype(np.float64)
        unit = 2.0 ** -ml_dtypes.finfo(mine.dtype).nmant
        finite = np.abs(b[np.isfinite(b)])
        scale = finite.max(initial=0.0) if name in _SUMS else np.abs(b)
        smallest = float(ml_dtypes.finfo(mine.dtype).smallest_normal)
        with np.errstate(invalid="ignore"):
            bound = ULPS.get(name, 0) * unit * scale + (ABSOLUTE.get(name, smallest) if name in ULPS else 0)
            wrong = ~((a == b) | (np.isnan(a) & np.isnan(b)) | (np.abs(a - b) <= bound))
        if name not in ULPS and name not in EQUAL_ZEROS:
            wrong |= (a == 0) & (b == 0) & (np.signbit(a) != np.signbit(b))
    if not wrong.any():
        return ""
    at = tuple(int(i) for i in np.argwhere(wrong)[0])
    return f"{a[at]} at {list(at)}, jax {b[at]}"


# ---- the table -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Row:
    """A function, one way to call it, a dtype."""

    module: str
    name: str
    way: int
    dtype: str

    @property
    def key(self) -> str:
        return f"{self.module}.{self.name}/{self.way} {self.dtype}"


def rows() -> Iterator[Row]:
    """All of the table."""
    for module in MODULES:
        mine, theirs = getattr(SHIM, module), getattr(upstream(), module)
        for name in sorted(dir(mine)):
            function = getattr(mine, name)
            if name.startswith("_") or isinstance(function, type) or not callable(function):
                continue
            if not callable(getattr(theirs, name, None)):
                continue
            for way in range(len(recipes(module, name))):
                for dtype in DTYPES:
                    yield Row(module, name, way, dtype)


def judge(row: Row) -> str:
    """What the two do: "" for the same, "no" where jax refuses, "refused", or how they differ."""
    import jax

    call = recipes(row.module, row.name)[row.way]
    x, y = operands(row.dtype)
    theirs = getattr(getattr(upstream(), row.module), row.name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            found = call(theirs, jax.numpy.asarray(x), jax.numpy.asarray(y))
        except (TypeError, ValueError, NotImplementedError, AttributeError, IndexError, KeyError, ZeroDivisionError):
            return "no"
    if not hasattr(found, "dtype") or (not found.shape and not hasattr(found, "__array__")):
        return "no"
    wanted = np.asarray(found)
    if not wanted.size:
        return "no"
    function = getattr(getattr(SHIM, row.module), row.name)

    def body(a: Any, b: Any, o: Any) -> None:
        result = call(function, a[...], b[...])
        if np.dtype(result.dtype) != wanted.dtype:
            other.append(f"{np.dtype(result.dtype)}{list(result.shape)}, jax {wanted.dtype}{list(wanted.shape)}")
        o[...] = lpl.astype(result, wanted.dtype)

    other: list[str] = []
    kernel = lpl.kernel(body, out_shape=lpl.ShapeDtypeStruct(wanted.shape, wanted.dtype))
    try:
        with knobs.override(interpret=True):
            mine = kernel(x, y)
    except LoomError as error:
        return f"refused: {error.diagnostics[0].code}"
    return other[0] if other else difference(row.name, mine, wanted)


def main() -> int:
    """Judge all rows."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--only", default="")
    given = parser.parse_args()
    verdicts = {row.key: judge(row) for row in rows() if given.only in row.key}
    compared = {key: verdict for key, verdict in verdicts.items() if verdict != "no"}
    wrong = {key: verdict for key, verdict in compared.items() if verdict}
    for key, verdict in wrong.items():
        print(f"{key}: {verdict}")
    print(f"{len(compared)} calls that jax takes: {len(compared) - len(wrong)} the same, {len(wrong)} not")
    if given.write:
        score = {"calls": len(compared), "same": len(compared) - len(wrong), "others": wrong}
        GOLDEN.write_text(json.dumps(score, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
