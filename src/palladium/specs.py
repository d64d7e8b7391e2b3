"""What a kernel is told about its operands: block shapes, index maps, memory spaces, scratch, grids."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Final, NoReturn

from loom_core.base.dtype import DType
from palladium import promotion
from palladium.errors import WrongSpec, fail


class MemorySpace(Enum):
    """Where an operand or a scratch buffer lives. Called with a shape and a dtype it describes a scratch buffer."""

    ANY = "any"
    HBM = "hbm"
    SRAM = "sram"
    SCALAR = "scalar"
    SEMAPHORE = "semaphore"

    def __call__(self, shape: Sequence[int], dtype: Any) -> Scratch:
        return Scratch(tuple(shape), promotion.as_dtype(dtype), self)

    @property
    def blocked(self) -> bool:
        """Whether operands there come in blocks."""
        return self not in (MemorySpace.ANY, MemorySpace.HBM)


ANY: Final = MemorySpace.ANY
HBM: Final = MemorySpace.HBM
SRAM: Final = MemorySpace.SRAM
SCALAR: Final = MemorySpace.SCALAR


@dataclass(frozen=True)
class Scratch:
    """A buffer of SRAM that lives while the kernel runs, over all grid points."""

    shape: tuple[int, ...]
    core: DType
    space: MemorySpace = MemorySpace.SRAM

    @property
    def dtype(self) -> Any:
        return self.core.numpy


@dataclass(frozen=True)
class Semaphore:
    """Semaphores in a scratch buffer of `shape` (one: ()); of copies, or counting (`kind` "regular")."""

    kind: str = "copy"
    shape: tuple[int, ...] = ()

    def __call__(self, shape: Sequence[int]) -> Semaphore:
        return Semaphore(self.kind, tuple(shape))


@dataclass(frozen=True)
class ShapeDtypeStruct:
    """The shape and dtype of an output."""

    shape: tuple[int, ...]
    dtype: Any

    def __post_init__(self) -> None:
        object.__setattr__(
            self, "shape", tuple(known_size(size, "a size of out_shape", least=0) for size in self.shape)
        )


@dataclass(frozen=True)
class Blocked:
    """A dimension in blocks of `size`; the index map counts blocks."""

    size: int

    def __post_init__(self) -> None:
        known_size(self.size, "a block size")


@dataclass(frozen=True)
class Element:
    """A dimension in blocks of `size` at any place; the index map counts elements.

    `padding` widens the array by so many elements before and behind, which read as poison.
    """

    size: int
    padding: tuple[int, int] = (0, 0)

    def __post_init__(self) -> None:
        known_size(self.size, "a block size")


@dataclass(frozen=True)
class Squeezed:
    """A dimension of which a block has one element, and the kernel's ref none."""


squeezed: Final = Squeezed()


@dataclass(frozen=True)
class Buffered:
    """How many blocks of an operand are in SRAM at once: 1 loads when needed, n load n - 1 blocks ahead.

    Of an output it is how many blocks may be on their way out. `revisits` lets an output come back to blocks that it
    has left: it then goes on with what it wrote there.
    """

    count: int = 2
    revisits: bool = False

    def __post_init__(self) -> None:
        known_size(self.count, "the count of Buffered")


@dataclass(frozen=True, eq=False)
class BlockSpec:
    """How an operand is cut into blocks, and which one a grid point gets.

    block_shape: for each dimension of the array an int (so many elements), None or `squeezed` (one, and no dimension in
        the ref), or `Element(n)`; None takes the whole array.
    index_map: a function of the grid indices, and of the refs of scalar prefetch operands, to one index a dimension;
        None is 0 everywhere.
    memory_space: ANY or HBM leave the operand where it is: the ref is of the whole array.
    pipeline_mode: `Buffered(n)` says how many blocks are in SRAM at once; None leaves it to the compiler.
    """

    block_shape: Any = None
    index_map: Any = None
    memory_space: Any = None
    pipeline_mode: Any = None

    def __post_init__(self) -> None:
        # Upstream once had the index map first.
        if callable(self.block_shape):
            shape, index_map = self.index_map, self.block_shape
            object.__setattr__(self, "block_shape", shape)
            object.__setattr__(self, "index_map", index_map)
        if self.block_shape is not None:
            sizes = self.block_shape
            if not isinstance(sizes, Iterable) or isinstance(sizes, str):
                wrong_spec("BlockSpec", f"block_shape is {sizes!r}", "give one size for each dimension, in a tuple")
            object.__setattr__(self, "block_shape", tuple(sizes))
            for size in self.block_shape:
                dimension(size)
        if self.index_map is not None and not callable(self.index_map):
            advice = "it is a function of the grid's indices"
            wrong_spec("BlockSpec", f"index_map is {self.index_map!r}", advice)
        memory_space(self.memory_space)
        if not (self.pipeline_mode is None or isinstance(self.pipeline_mode, Buffered)):
            wrong_spec("BlockSpec", f"pipeline_mode is {self.pipeline_mode!r}", "write Buffered(n), or leave it out")

    @property
    def slots(self) -> int:
        """How many blocks are in SRAM at once, 0 where that is left open."""
        return 0 if self.pipeline_mode is None else self.pipeline_mode.count

    @property
    def revisits(self) -> bool:
        """Whether an output may come back to blocks that it has left."""
        return self.pipeline_mode is not None and self.pipeline_mode.revisits

    @property
    def whole(self) -> bool:
        """Whether the ref is of the whole array, in place."""
        space = memory_space(self.memory_space)
        return (space is not None and not space.blocked) or (self.block_shape is None and self.index_map is None)


def memory_space(given: Any) -> MemorySpace | None:
    """A memory space for itself, or for its name. WrongSpec for anything else."""
    if given is None or isinstance(given, MemorySpace):
        return given
    if given not in MemorySpace._value2member_map_:
        wrong_spec("memory_space", f"there is no memory space {given!r}", "it is ANY, HBM, SRAM or SCALAR")
    return MemorySpace(given)


def dimension(given: Any) -> Blocked | Element | Squeezed:
    """A dimension of a block shape as one of our three kinds. WrongSpec where it is none."""
    if given is None:
        return squeezed
    if isinstance(given, (Blocked, Element, Squeezed)):
        return given
    return Blocked(known_size(given, "a block size"))


def known_size(given: Any, what: str, least: int = 1) -> int:
    """A size as an int. WrongSpec where it is none, or below `least`."""
    try:
        size = int(given.__index__())
    except (AttributeError, TypeError):
        wrong_spec(what, f"{given!r} is no int", "sizes are known before a kernel is compiled")
    if size < least:
        wrong_spec(what, f"{size} is below {least}", "give the number of elements")
    return size


def wrong_spec(what: str, problem: str, advice: str) -> NoReturn:
    """Raise WrongSpec."""
    fail(WrongSpec, what=what, problem=problem, advice=advice)


@dataclass(frozen=True, eq=False)
class GridSpec:
    """A grid with the specs of its operands, and the scratch of its kernel."""

    grid: Any = ()
    in_specs: Any = None
    out_specs: Any = None
    scratch_shapes: Any = ()
    num_scalar_prefetch: int = field(default=0, kw_only=True)


@dataclass(frozen=True, eq=False)
class PrefetchScalarGridSpec(GridSpec):
    """A grid whose first `num_scalar_prefetch` operands are read by index maps."""

    def __init__(
        self, num_scalar_prefetch: int, grid: Any = (), in_specs: Any = None, out_specs: Any = None,
        scratch_shapes: Any = (),
    ) -> None:  # fmt: skip
        for name, value in (
            ("grid", grid), ("in_specs", in_specs), ("out_specs", out_specs), ("scratch_shapes", scratch_shapes),
            ("num_scalar_prefetch", num_scalar_prefetch),
        ):  # fmt: skip
            object.__setattr__(self, name, value)


# ---- trees of specs and values ---------------------------------------------------------------------------------------


def leaves(tree: Any, leaf: Callable[[Any], bool] = lambda value: False) -> list[Any]:
    """The leaves of nested tuples, lists and dictionaries; None is none."""
    if tree is None:
        return []
    if leaf(tree):
        return [tree]
    if isinstance(tree, (tuple, list)):
        return [found for item in tree for found in leaves(item, leaf)]
    if isinstance(tree, dict):
        return [found for key in sorted(tree) for found in leaves(tree[key], leaf)]
    return [tree]


def rebuild(tree: Any, values: Any, leaf: Callable[[Any], bool] = lambda value: False) -> Any:
    """`tree` with its leaves replaced by the next of `values`, an iterator."""
    if tree is None:
        return None
    if leaf(tree):
        return next(values)
    if isinstance(tree, tuple):
        items = [rebuild(item, values, leaf) for item in tree]
        make = getattr(type(tree), "_make", None)
        return make(items) if make is not None else tuple(items)
    if isinstance(tree, list):
        return [rebuild(item, values, leaf) for item in tree]
    if isinstance(tree, dict):
        found = {key: rebuild(tree[key], values, leaf) for key in sorted(tree)}
        return {key: found[key] for key in tree}
    return next(values)
