"""Index maps: which block a grid point gets, for all grid points at once before a kernel runs.

A map is traced once; its operations are then evaluated by their references, on arrays with one element a grid point.
What is known so decides how blocks move and what is wrong with them (`blocks`).
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from loom_core.base import dtype as core
from loom_core.base.location import Location, from_code
from loom_core.ir.block import Function
from loom_core.ir.types import PointerType, TileType
from loom_core.ir.value import Value
from loom_core.ops import memory
from loom_core.trace.context import tracing
from palladium.errors import PalladiumError, WrongParameters
from palladium.trace import KernelTrace, user_faults
from palladium.values import array, to_array
from palladium.views import Buffer, Ref, Storage, whole_ref

Numbers = npt.NDArray[np.int64]


class WrongIndexMap(PalladiumError):
    code = "LOOM-F213"
    template = "the index map of {name} {problem}"
    hint = "it takes the grid's indices and gives one int for each dimension of the block"


@dataclass(frozen=True)
class Prefetched:
    """A scalar prefetch operand as index maps see it: shape, dtype, strides in elements."""

    name: str
    shape: tuple[int, ...]
    dtype: core.DType
    strides: tuple[int, ...]

    def ref(self, pointer: Value) -> Ref:
        return whole_ref(Buffer(self.name, self.shape, self.dtype, Storage(pointer, self.strides), writable=False))


@dataclass(frozen=True)
class IndexMap:
    """A traced index map: `function` takes the grid indices, then pointers to the prefetched; `results` are indices."""

    name: str
    function: Function
    results: tuple[Value, ...]

    @property
    def reads(self) -> set[int]:
        """The numbers of the prefetched operands on which it depends."""
        bases = [op.base for op in self.function.walk() if isinstance(op, memory.DmaLoad)]
        first = sum(not argument.type.is_pointer for argument in self.function.arguments)
        return {self.function.arguments.index(base) - first for base in bases}

    def over_grid(self, grid: Sequence[int], prefetched: Sequence[npt.NDArray[Any]]) -> Numbers:
        """The indices at every grid point, in order: shape (points, dimensions).

        `prefetched`: the operands' arrays, which a map that reads no memory does without.
        """
        points = grid_points(grid)
        env: dict[Value, Any] = {}
        arguments = self.function.arguments
        for argument, column in zip(arguments, points.T, strict=False):
            env[argument] = column.astype(np.int32)
        for argument, data in zip(arguments[len(grid) :], prefetched, strict=False):
            env[argument] = data
        for op in self.function.body.operations:
            if isinstance(op, memory.DmaLoad):
                env[op.result] = _read(op, env)
            elif op.ref is None or op.regions:
                raise WrongIndexMap(op.location, name=self.name, problem=f"uses {op.name}, which it cannot")
            else:
                env[op.results[0]] = op.ref(*(env[value] for value in op.operands))
        columns = [np.broadcast_to(np.asarray(env[value], np.int64), (len(points),)) for value in self.results]
        return np.stack(columns, axis=1) if columns else np.zeros((len(points), 0), np.int64)


def _read(op: memory.DmaLoad, env: Mapping[Value, Any]) -> Any:
    """Elements of a prefetched operand, one a grid point. Indices outside are left to the check of what is read."""
    data: npt.NDArray[Any] = env[op.base]
    flat = np.lib.stride_tricks.as_strided(data, (_extent(data),), (data.itemsize,))
    at = np.asarray(env[op.offset]) // data.itemsize
    return flat[np.clip(at, 0, len(flat) - 1)]


def _extent(data: npt.NDArray[Any]) -> int:
    steps = [stride // data.itemsize for stride in data.strides]
    return 1 + int(sum((size - 1) * step for size, step in zip(data.shape, steps, strict=True)))


def grid_points(grid: Sequence[int]) -> Numbers:
    """All points of a grid, the last axis fastest: shape (points, axes)."""
    if not grid:
        return np.zeros((1, 0), np.int64)
    axes = np.indices(tuple(grid), dtype=np.int64)
    return axes.reshape(len(grid), -1).T


def trace_index_map(
    name: str, index_map: Callable[..., Any] | None, rank: int, grid: Sequence[int], prefetched: Sequence[Prefetched],
    arrange: Callable[[list[Ref]], list[Any]],
) -> IndexMap:  # fmt: skip
    """Trace an index map that gives `rank` indices; None is 0 everywhere. `arrange` makes its arguments of refs."""
    types = [TileType(core.i32)] * len(grid) + [TileType(PointerType(one.dtype)) for one in prefetched]
    names = [f"i{axis}" for axis in range(len(grid))] + [one.name for one in prefetched]
    function = Function(f"index_map_of_{name}", tuple(types), tuple(names), definition(index_map))
    trace = KernelTrace(function)
    with tracing(trace), user_faults():
        ids = [
            array(value, interval=(0, max(size - 1, 0))) for value, size in zip(function.arguments, grid, strict=False)
        ]
        refs = [one.ref(value) for one, value in zip(prefetched, function.arguments[len(grid) :], strict=True)]
        results = tuple(value.value for value in indices(name, index_map, rank, ids, arrange(refs)))
    return IndexMap(name, function, results)


def indices(
    name: str, index_map: Callable[..., Any] | None, rank: int, ids: Sequence[Any], refs: Sequence[Any]
) -> list[array]:
    """What an index map gives in the present trace. WrongIndexMap where that is no index for each dimension."""
    if index_map is None:
        given: Any = (0,) * rank
    else:
        advice = "it takes the grid's indices, then the refs of prefetched operands"
        shown = f"the index map of {name}"
        check_parameters(index_map, shown, (*ids, *refs), {}, "arguments", advice, definition(index_map))
        given = index_map(*ids, *refs)
    found = list(given) if isinstance(given, (tuple, list)) else [given]
    if len(found) != rank:
        problem = f"gives {len(found)} indices for {rank} dimensions"
        raise WrongIndexMap(definition(index_map), name=name, problem=problem)
    values = []
    for index in found:
        value = to_array(index, "an index map")
        if value.shape or not value.core.is_integer:
            problem = f"gives {value}, which is no integer scalar"
            raise WrongIndexMap(definition(index_map), name=name, problem=problem)
        values.append(value)
    return values


def check_parameters(
    function: Callable[..., Any], name: str, args: Sequence[Any], kwargs: Mapping[str, Any], what: str, advice: str,
    location: Location,
) -> None:  # fmt: skip
    """WrongParameters where a Python function cannot be called with these arguments."""
    try:
        signature = inspect.signature(function)
    except ValueError:  # a builtin that does not tell
        return
    try:
        signature.bind(*args, **kwargs)
    except TypeError as problem:
        bare = inspect.Parameter.empty
        plain = [one.replace(annotation=bare) for one in signature.parameters.values()]
        raise WrongParameters(
            location, function=name, parameters=inspect.Signature(plain), count=len(args) + len(kwargs), what=what,
            problem=problem, advice=advice,
        ) from None  # fmt: skip


def definition(function: Any) -> Location:
    """Where a Python function is defined; UNKNOWN for other callables."""
    return from_code(getattr(function, "__code__", None))
