"""Random values, addresses and masks for `random_kernels`: the operations that give a value of a wanted type.

Addresses stay inside the memories because only `small` scalars, and tiles made of them, become part of one.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any, Final

from loom_core.base.dtype import DType, bool_, f32, i8, i32, i64
from loom_core.base.location import Location
from loom_core.ir.block import Function
from loom_core.ir.builder import Builder
from loom_core.ir.op import Op
from loom_core.ir.types import PointerType, TileType
from loom_core.ir.value import Value
from loom_core.ops import elementwise as ew
from loom_core.ops import memory, shape

Shape = tuple[int, ...]
SPAN: Final = 1 << 14  # elements on either side of a buffer's origin
SMALL: Final = 12  # small scalars lie between -SMALL and SMALL
SIZES: Final = (1, 2, 3, 4, 5, 7, 8, 16, 17, 25, 33)

# name, element, how the kernel uses it
BUFFERS: Final = (
    ("xf", f32, "read"),
    ("xi", i32, "read"),
    ("xb", i8, "read"),
    ("index", i32, "small"),
    ("iof", f32, "both"),
    ("ioi", i32, "both"),
    ("outf", f32, "write"),
    ("outi", i32, "write"),
    ("outl", i64, "write"),
    ("outb", bool_, "write"),
)
READ_ONLY: Final = frozenset(name for name, _, use in BUFFERS if use in ("read", "small"))
SCALARS: Final = (("n", i32, "small"), ("step", i32, "small"), ("c", i32, "any"), ("s", f32, "any"))

UNARY: Final = {
    f32: (ew.Negate, ew.Abs, ew.Exp, ew.Floor, ew.Sqrt, ew.Copy),
    i32: (ew.Negate, ew.Abs, ew.Not, ew.Copy),
    i64: (ew.Negate, ew.Abs, ew.Not),
    bool_: (ew.Not, ew.Copy),
}
BINARY: Final = {
    f32: (ew.Add, ew.Sub, ew.Mul, ew.Min, ew.Max, ew.MaxPropagate),
    i32: (ew.Add, ew.Sub, ew.Mul, ew.Min, ew.Max, ew.And, ew.Xor, ew.ShiftLeft, ew.ShiftRight, ew.Div, ew.Rem),
    i64: (ew.Add, ew.Sub, ew.Mul, ew.Max, ew.Or),
    bool_: (ew.And, ew.Or, ew.Xor),
}
REDUCTIONS: Final = {f32: ("sum", "max", "min"), i32: ("sum", "max", "xor"), i64: ("sum",)}
PREDICATES: Final = ("eq", "ne", "lt", "le", "gt", "ge")


@dataclass
class Scope:
    """Values that may be used at one place. `small` scalars and `offsets` tiles may go into addresses."""

    values: dict[tuple[DType, Shape], list[Value]] = field(default_factory=lambda: defaultdict(list))
    small: list[Value] = field(default_factory=list)
    offsets: dict[Shape, list[Value]] = field(default_factory=lambda: defaultdict(list))
    pointers: dict[tuple[str, Shape], list[Value]] = field(default_factory=lambda: defaultdict(list))

    def inner(self) -> Scope:
        """What a nested block sees: the same, and what it adds stays inside."""
        copy = Scope()
        for mine, theirs in ((copy.values, self.values), (copy.offsets, self.offsets), (copy.pointers, self.pointers)):
            for key, found in theirs.items():
                mine[key] = list(found)  # type: ignore[index]
        copy.small = list(self.small)
        return copy


class ValueMaker:
    """Makes values of wanted types, addresses and masks for the function of one seed."""

    def __init__(self, seed: int, statements: int = 10, depth: int = 2) -> None:
        self.rng = random.Random(seed)
        self.seed = seed
        pick = self.rng.choice
        m, n = pick(SIZES), pick(SIZES)
        if self.rng.random() < 0.3:
            n = m
        self.sizes = (m, n, pick(SIZES[:8]))
        self.statements = statements
        self.max_depth = depth
        types = [TileType(PointerType(dtype)) for _, dtype, _ in BUFFERS] + [TileType(dtype) for _, dtype, _ in SCALARS]
        names = tuple(name for name, *_ in (*BUFFERS, *SCALARS))
        self.function = Function(f"random_{seed}", tuple(types), names, Location("kernel.py", 1, 0, 1, "kernel"))
        self.builder = Builder(self.function.body)
        self.line = 1
        self.scope = Scope()
        self.depth = 0
        self.scattering = 0.12
        self.buffers = dict(zip((name for name, *_ in BUFFERS), self.function.arguments, strict=False))
        for (name, dtype, use), value in zip(SCALARS, self.function.arguments[len(BUFFERS) :], strict=True):
            self.scope.values[dtype, ()].append(value)
            if use == "small":
                self.scope.small.append(value)
            assert value.name == name

    # ---- small steps ----

    def chance(self, probability: float) -> bool:
        return self.rng.random() < probability

    def create(self, kind: type[Op], /, *operands: Any, **attributes: Any) -> Any:
        return self.builder.create(kind, *operands, **attributes)

    def constant(self, value: Any, dtype: DType, sizes: Shape = ()) -> Value:
        return self.create(shape.Constant, value=value, type=TileType(dtype, sizes))  # type: ignore[no-any-return]

    def keep(self, value: Value) -> Value:
        self.scope.values[value.type.dtype, value.type.shape].append(value)
        return value

    def some_constant(self, dtype: DType) -> Any:
        if dtype is f32:
            return self.rng.choice([0.0, -0.0, 1.0, -1.5, 0.25, 3e38, float("inf"), -float("inf"), 1e-40, 2.5])
        if dtype is bool_:
            return self.chance(0.5)
        return self.rng.choice([0, 1, -1, 2, 3, 7, -5, 31, 32, 1000, (1 << 31) - 1, -(1 << 31)])

    def some_shape(self) -> Shape:
        m, n, k = self.sizes
        return self.rng.choice(
            [(), (m,), (n,), (m, n), (m, n), (n, m), (m, 1), (1, n), (m, k), (k, n), (2, m, n), (1, n, m), (2, 1, 3, n)]
        )

    def recent(self, values: Sequence[Value]) -> Value:
        """One of the values, the later ones more often."""
        return values[-1 - int(len(values) * self.rng.random() ** 2)]

    # ---- values of a wanted type ----

    def get(self, dtype: DType, sizes: Shape, effort: int = 2) -> Value:
        known = self.scope.values[dtype, sizes]
        if known and (effort <= 0 or self.chance(0.75)):
            return self.recent(known)
        return self.keep(self.make(dtype, sizes, effort - 1))

    def make(self, dtype: DType, sizes: Shape, effort: int) -> Value:
        ways: list[Callable[[DType, Shape, int], Value]] = [self.make_constant]
        if effort > 0:
            ways += [self.make_cast, self.make_elementwise, self.make_elementwise]
            if sizes:
                ways += [self.make_splat]
            if len(sizes) > 1:
                ways += [self.make_broadcast, self.make_broadcast]
        if dtype in (f32, i32):
            ways += [self.make_load, self.make_load]
        if dtype in (i32, i64) and sizes:
            ways += [self.make_index]
        return self.rng.choice(ways)(dtype, sizes, effort)

    def make_constant(self, dtype: DType, sizes: Shape, effort: int) -> Value:
        return self.constant(self.some_constant(dtype), dtype, sizes)

    def make_splat(self, dtype: DType, sizes: Shape, effort: int) -> Value:
        return self.create(shape.Splat, self.get(dtype, (), effort), shape=sizes)  # type: ignore[no-any-return]

    def make_broadcast(self, dtype: DType, sizes: Shape, effort: int) -> Value:
        """From a tile without one of the dimensions."""
        axis = self.rng.randrange(len(sizes))
        value = self.get(dtype, sizes[:axis] + sizes[axis + 1 :], effort)
        value = self.create(shape.ExpandDims, value, axis=axis)
        if self.chance(0.5):
            self.keep(value)
        return self.create(shape.Broadcast, value, shape=sizes)  # type: ignore[no-any-return]

    def make_cast(self, dtype: DType, sizes: Shape, effort: int) -> Value:
        sources = {f32: (i32, bool_, i64), i32: (f32, bool_, i64), i64: (i32, f32), bool_: (i32, f32)}
        if dtype is i32 and self.chance(0.2) and sizes:
            return self.create(ew.Cast, self.load("xb", i8, sizes), dtype=i32)  # type: ignore[no-any-return]
        return self.create(ew.Cast, self.get(self.rng.choice(sources[dtype]), sizes, effort), dtype=dtype)  # type: ignore[no-any-return]

    def make_index(self, dtype: DType, sizes: Shape, effort: int) -> Value:
        value = self.offsets(sizes)
        return self.create(ew.Cast, value, dtype=i64) if dtype is i64 else value

    def make_load(self, dtype: DType, sizes: Shape, effort: int) -> Value:
        return self.load(self.rng.choice(["xf", "iof"] if dtype is f32 else ["xi", "ioi"]), dtype, sizes)

    def make_elementwise(self, dtype: DType, sizes: Shape, effort: int) -> Value:
        if dtype is bool_ and self.chance(0.6):
            source = self.rng.choice([f32, i32, i32])
            predicate = self.rng.choice(PREDICATES)
            return self.create(  # type: ignore[no-any-return]
                ew.Compare, self.get(source, sizes, effort), self.get(source, sizes, effort), predicate=predicate
            )
        roll = self.rng.random()
        if roll < 0.25:
            return self.create(self.rng.choice(UNARY[dtype]), self.get(dtype, sizes, effort))  # type: ignore[no-any-return]
        if roll < 0.4:
            condition = self.get(bool_, sizes, effort)
            return self.create(  # type: ignore[no-any-return]
                ew.Select, condition, self.get(dtype, sizes, effort), self.get(dtype, sizes, effort)
            )
        kinds = BINARY[dtype]
        if not sizes and dtype in (i32, i64):
            kinds = (*kinds, ew.FloorDiv)
        lhs, rhs = self.get(dtype, sizes, effort), self.get(dtype, sizes, effort)
        return self.create(self.rng.choice(kinds), lhs, rhs)  # type: ignore[no-any-return]

    # ---- addresses ----

    def some_small(self) -> Value:
        if self.scope.small and self.chance(0.7):
            return self.recent(self.scope.small)
        value = self.constant(self.rng.randint(-3, 9), i32)
        self.scope.small.append(value)
        return value

    def clamped(self, value: Value) -> Value:
        """An i32 scalar limited to the small ones."""
        low, high = self.constant(-SMALL, i32), self.constant(SMALL, i32)
        value = self.create(ew.Min, self.create(ew.Max, value, low), high)
        self.scope.small.append(value)
        return value

    def iota(self, sizes: Shape, dim: int) -> Value:
        """The index along a dimension, over the whole shape."""
        start = self.rng.choice([0, 0, 0, 1, -2])
        value = self.create(shape.Iota, start=start, end=start + sizes[dim])
        return self.spread(value, sizes, dim)

    def spread(self, value: Value, sizes: Shape, dim: int) -> Value:
        """A tile of one dimension as dimension `dim` of a larger shape."""
        for axis in range(len(sizes)):
            if axis != dim:
                value = self.create(shape.ExpandDims, value, axis=axis)
        if value.type.shape != sizes:
            value = self.create(shape.Broadcast, value, shape=sizes)
        return value

    def scaled(self, value: Value, factor: int | Value) -> Value:
        sizes = value.type.shape
        if isinstance(factor, int):
            if factor in (2, 4, 8) and self.chance(0.3):
                return self.create(ew.ShiftLeft, value, self.constant(factor.bit_length() - 1, i32, sizes))  # type: ignore[no-any-return]
            if factor == -1 and self.chance(0.5):
                return self.create(ew.Negate, value)  # type: ignore[no-any-return]
            other = self.constant(factor, i32, sizes)
        else:
            other = self.create(shape.Splat, factor, shape=sizes)
        pair = (value, other) if self.chance(0.5) else (other, value)
        return self.create(ew.Mul, *pair)  # type: ignore[no-any-return]

    def offsets(self, sizes: Shape) -> Value:
        """An affine i32 tile whose elements stay in the memories."""
        known = self.scope.offsets[sizes]
        if known and self.chance(0.4):
            return self.recent(known)
        total: Value | None = None
        for dim in self.rng.sample(range(len(sizes)), len(sizes)):
            factor = self.rng.choice(
                [1, 1, 1, prod(sizes[dim + 1 :]), prod(sizes[dim + 1 :]), 2, 3, -1, self.some_small()]
            )
            term = self.scaled(self.iota(sizes, dim), factor) if factor != 1 else self.iota(sizes, dim)
            total = term if total is None else self.create(ew.Add, total, term)
        assert total is not None
        if self.chance(0.5):
            small = self.create(shape.Splat, self.some_small(), shape=sizes)
            total = self.create(self.rng.choice([ew.Add, ew.Sub]), total, small)
        self.scope.offsets[sizes].append(total)
        return total

    def base_pointer(self, buffer: str) -> Value:
        known = [*self.scope.pointers[buffer, ()], self.buffers[buffer]]
        pointer = self.recent(known)
        if self.chance(0.5):
            offset = self.some_small()
            if self.chance(0.4):
                offset = self.create(ew.Mul, offset, self.constant(self.rng.choice([2, 5, 17]), i32))
            pointer = self.create(memory.AddPointer, pointer, offset)
        return pointer

    def pointer(self, buffer: str, sizes: Shape) -> Value:
        known = self.scope.pointers[buffer, sizes]
        if known and self.chance(0.4):
            return self.recent(known)
        pointer = self.base_pointer(buffer)
        if not sizes:
            return pointer
        if len(sizes) == 2 and self.chance(0.25):
            turned = self.pointer(buffer, (sizes[1], sizes[0]))
            return self.create(shape.Transpose, turned, permutation=(1, 0))  # type: ignore[no-any-return]
        if buffer not in READ_ONLY:
            return self.scattered(self.distinct_pointers(pointer, sizes))
        if len(sizes) == 2 and self.chance(0.3):
            rows = self.pointer(buffer, sizes[:1])
            rows = self.create(shape.Broadcast, self.create(shape.ExpandDims, rows, axis=1), shape=sizes)
            return self.create(memory.AddPointer, rows, self.iota(sizes, 1))  # type: ignore[no-any-return]
        offsets = self.offsets(sizes)
        if self.chance(0.15):
            offsets = self.create(ew.Cast, offsets, dtype=i64)
        return self.scattered(self.create(memory.AddPointer, self.create(shape.Splat, pointer, shape=sizes), offsets))

    def scattered(self, pointers: Value) -> Value:
        """The pointers, now and then with offsets from memory added."""
        if not pointers.type.shape or not self.chance(self.scattering):
            return pointers
        sizes = pointers.type.shape
        places = self.create(
            memory.AddPointer, self.create(shape.Splat, self.buffers["index"], shape=sizes), self.offsets(sizes)
        )
        return self.create(memory.AddPointer, pointers, self.create(memory.Load, places, None, None))  # type: ignore[no-any-return]

    def distinct_pointers(self, pointer: Value, sizes: Shape) -> Value:
        """Pointers from `pointer` on, each to another element: of two stores to one it is not said which stays."""
        offsets: Value | None = None
        stride = 1
        for dim in self.rng.sample(range(len(sizes)), len(sizes)):
            index = self.iota(sizes, dim)
            term = self.scaled(index, stride if self.chance(0.8) else -stride) if stride != 1 else index
            offsets = term if offsets is None else self.create(ew.Add, offsets, term)
            stride *= sizes[dim] + self.rng.choice([0, 0, 0, 1, 3])
        assert offsets is not None
        if self.chance(0.4):
            offsets = self.create(ew.Add, offsets, self.create(shape.Splat, self.some_small(), shape=sizes))
        if self.chance(0.15):
            offsets = self.create(ew.Cast, offsets, dtype=i64)
        return self.create(memory.AddPointer, self.create(shape.Splat, pointer, shape=sizes), offsets)  # type: ignore[no-any-return]

    def mask(self, sizes: Shape) -> Value:
        """A mask, mostly one whose true elements are a box."""
        if self.chance(0.12):
            return self.get(bool_, sizes)
        terms = [self.mask_term(sizes) for _ in range(self.rng.choice([1, 1, 2, 3]))]
        mask = terms[0]
        for term in terms[1:]:
            mask = self.create(ew.And, mask, term)
        return mask

    def mask_term(self, sizes: Shape) -> Value:
        if not sizes:
            return self.get(bool_, ())
        roll = self.rng.random()
        if roll < 0.1:
            return self.constant(self.chance(0.8), bool_, sizes)
        if roll < 0.25:
            return self.create(shape.Splat, self.get(bool_, ()), shape=sizes)  # type: ignore[no-any-return]
        dim = self.rng.randrange(len(sizes))
        own = (sizes[dim],)
        compare_whole = self.chance(0.5)
        index = self.iota(sizes, dim) if compare_whole else self.iota(own, 0)
        factor = self.rng.choice([1, 1, 1, 2, 3, -1, -2])
        if factor != 1:
            index = self.scaled(index, factor)
        limit = self.some_small()
        if self.chance(0.3):
            limit = self.create(ew.Mul, limit, self.constant(self.rng.choice([2, 3]), i32))
        pair = [index, self.create(shape.Splat, limit, shape=index.type.shape)]
        if self.chance(0.3):
            pair.reverse()
        predicate = self.rng.choice(["lt", "lt", "le", "gt", "ge", "eq"])
        mask = self.create(ew.Compare, *pair, predicate=predicate)
        return mask if compare_whole else self.spread(mask, sizes, dim)

    def load(self, buffer: str, dtype: DType, sizes: Shape) -> Value:
        pointer = self.pointer(buffer, sizes)
        mask = self.mask(sizes) if self.chance(0.5) else None
        other = None
        if mask is not None and self.chance(0.6) and dtype is not i8:
            other = self.get(dtype, sizes, 0) if self.chance(0.3) else self.make_splat_or_constant(dtype, sizes)
        return self.create(memory.Load, pointer, mask, other)  # type: ignore[no-any-return]

    def make_splat_or_constant(self, dtype: DType, sizes: Shape) -> Value:
        if self.chance(0.5) or not sizes:
            return self.constant(self.some_constant(dtype), dtype, sizes)
        return self.make_splat(dtype, sizes, 0)
