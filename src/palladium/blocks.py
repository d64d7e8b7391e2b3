"""How the blocks of an operand move over a grid: what the compiler may take for granted, and what is wrong.

The rules, each a diagnostic that names operand, grid point and block:
  out of range  a block begins outside the array                         LOOM-R121
  revisited     an output block is left and comes back later             LOOM-R122
  parallel      an axis declared parallel has steps that share a block   LOOM-R126
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from loom_core.base.diagnostics import UserError
from loom_core.base.location import Location
from palladium.index_maps import Numbers, grid_points
from palladium.specs import Blocked, Element, Squeezed


class BlockOutOfRange(UserError):
    code = "LOOM-R121"
    template = "block {block} of {name} at grid point {point} is outside: dimension {axis} has {count} {unit}"
    hint = "{advice}"


class BlockRevisited(UserError):
    code = "LOOM-R122"
    template = "block {block} of output {name} is written at grid point {first} and again at {point}, after others"
    hint = "blocks that accumulate must follow each other: let the axes that reduce be the last of the grid"


class NotParallel(UserError):
    code = "LOOM-R126"
    template = (
        "grid axis {axis} is declared parallel, and the grid points {first} and {point} share block {block} of {name}"
    )
    hint = "an axis along which an output accumulates is arbitrary"


Dimension = Blocked | Element | Squeezed


def size_of(dimension: Dimension) -> int:
    """Elements of a block along a dimension."""
    return 1 if isinstance(dimension, Squeezed) else dimension.size


def padding_of(dimension: Dimension) -> tuple[int, int]:
    return dimension.padding if isinstance(dimension, Element) else (0, 0)


def scale_of(dimension: Dimension) -> int:
    """Elements that an index counts."""
    return dimension.size if isinstance(dimension, Blocked) else 1


@dataclass(frozen=True)
class Movement:
    """What is known of the blocks of one operand over a grid.

    `level`: the last grid axis on which they depend, -1 for none. `ragged`: per dimension, whether some block reaches
    over the array's end or begin. `regular`: no two index combinations of the axes up to `level` have one block.
    `covers`: every element of the array is in some block.
    """

    level: int
    ragged: tuple[bool, ...]
    regular: bool
    covers: bool


def check_range(
    name: str, dimensions: Sequence[Dimension], shape: Sequence[int], grid: Sequence[int], found: Numbers,
    location: Location, may_read_poison: bool = False,
) -> None:  # fmt: skip
    """BlockOutOfRange for the first grid point whose block begins outside the array; `may_read_poison`: of an operand
    for which that can be allowed.
    """
    for axis, (dimension, size) in enumerate(zip(dimensions, shape, strict=True)):
        before, behind = padding_of(dimension)
        starts = found[:, axis] * scale_of(dimension) - before
        bad = (starts < -before) | (starts >= max(size, 1) + behind)
        if not bad.any():
            continue
        at = int(np.argmax(bad))
        point = tuple(int(i) for i in grid_points(grid)[at])
        blocked = isinstance(dimension, Blocked)
        raise BlockOutOfRange(
            location,
            block=tuple(int(i) for i in found[at]),
            name=name,
            point=point,
            axis=axis,
            count=-(-size // dimension.size) if isinstance(dimension, Blocked) else size,
            unit="blocks" if blocked else "elements",
            advice=_advice(dimension, int(found[at, axis]), may_read_poison),
        )


def _advice(dimension: Dimension, index: int, may_read_poison: bool) -> str:
    if isinstance(dimension, Blocked) and index > 0 and dimension.size > 1 and index % dimension.size == 0:
        return "index maps give block indices, not element offsets"
    if may_read_poison:
        return "end the grid with the array, or read poison there with out_of_bounds_reads='uninitialized'"
    return "end the grid with the array"


def movement(dimensions: Sequence[Dimension], shape: Sequence[int], grid: Sequence[int], found: Numbers) -> Movement:
    """The facts of in-range blocks; `found` are their indices, one row a grid point."""
    ragged, level = [], -1
    for axis, (dimension, size) in enumerate(zip(dimensions, shape, strict=True)):
        starts = found[:, axis] * scale_of(dimension) - padding_of(dimension)[0]
        ragged.append(bool((starts < 0).any() or (starts + size_of(dimension) > size).any()))
    table = found.reshape(*grid, len(dimensions)) if grid else found.reshape(len(dimensions))
    for axis in range(len(grid)):
        if (np.diff(table, axis=axis) != 0).any():
            level = axis
    # The first point of every run of points that share the axes up to `level`.
    steps = prod(grid[: level + 1])
    runs = found.reshape(steps, -1, len(dimensions))[:, 0]
    distinct = len(np.unique(runs, axis=0)) if len(runs) else 0
    return Movement(level, tuple(ragged), distinct == steps, _covers(dimensions, shape, distinct))


def _covers(dimensions: Sequence[Dimension], shape: Sequence[int], distinct: int) -> bool:
    if any(
        isinstance(dimension, Element) and dimension.size < size
        for dimension, size in zip(dimensions, shape, strict=True)
    ):
        return False
    return distinct == prod(-(-size // size_of(dimension)) for dimension, size in zip(dimensions, shape, strict=True))


def shared_along(axis: int, grid: Sequence[int], found: Numbers) -> tuple[int, ...] | None:
    """The first grid point that has the block of its next one along an axis; None where there is none."""
    if grid[axis] < 2:
        return None
    table = found.reshape(*grid, found.shape[1])
    before, after = (np.take(table, range(start, start + grid[axis] - 1), axis=axis) for start in (0, 1))
    same = (before == after).all(axis=-1)
    return tuple(int(i) for i in np.argwhere(same)[0]) if same.any() else None


def not_parallel(name: str, axis: int, first: tuple[int, ...], block: Sequence[int], location: Location) -> NotParallel:
    """The diagnostic for a block that grid points along a parallel axis share."""
    point = tuple(i + (d == axis) for d, i in enumerate(first))
    return NotParallel(location, axis=axis, first=first, point=point, block=tuple(map(int, block)), name=name)


def check_revisits(name: str, grid: Sequence[int], found: Numbers, location: Location) -> None:
    """BlockRevisited for the first grid point that comes back to a block after it was left."""
    if len(found) < 2:
        return
    changes = np.flatnonzero((found[1:] != found[:-1]).any(axis=1)) + 1
    begins = np.concatenate([[0], changes])
    _, first, inverse = np.unique(found[begins], axis=0, return_index=True, return_inverse=True)
    again = first[inverse.reshape(-1)] < np.arange(len(begins))
    if not again.any():
        return
    run = int(np.argmax(again))
    points = grid_points(grid)
    here = int(begins[run])
    before = int(begins[first[inverse.reshape(-1)[run]]])
    raise BlockRevisited(
        location,
        block=tuple(int(i) for i in found[here]),
        name=name,
        first=tuple(int(i) for i in points[before]),
        point=tuple(int(i) for i in points[here]),
    )
