"""Random Tile IR kernels, the same for the same seed on every host, with memory to run them on.

A kernel is a list of random statements over pools of values: elementwise operations, reductions, broadcasts and other
views, products, loads and stores through random affine addresses and masks, loops and branches with everything that
they may carry.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from math import prod
from typing import Any

import numpy as np

from loom_core.base.dtype import DType, bool_, f32, i32, i64
from loom_core.base.location import Location
from loom_core.ir.block import Block, Function
from loom_core.ir.types import TileType
from loom_core.ir.value import Value
from loom_core.ops import atomic, control, matmul, memory, rearrange, reduction, shape
from loom_core.ops import elementwise as ew
from tests.codegen.execution import Launch, Place
from tests.codegen.random_values import BINARY, BUFFERS, REDUCTIONS, SPAN, Shape, ValueMaker

DATA = ("value", "small")
"""What a `while` may carry: pointers and index tiles are carried as offsets by counted loops only."""


class KernelMaker(ValueMaker):
    """Builds one kernel from a seed."""

    # ---- statements ----

    def run(self) -> Function:
        for axis in (0, 1):
            self.scope.small.append(self.create(control.ProgramId, axis=axis))
        self.scope.small.append(self.create(control.NumPrograms, axis=0))
        for _ in range(self.statements):
            self.statement()
        self.store_everything()
        self.builder.create(control.Return)
        return self.function

    def statement(self) -> None:
        self.line += 1
        choices: list[tuple[float, Callable[[], None]]] = [
            (6, self.do_elementwise),
            (2, self.do_reduce),
            (1, self.do_broadcast),
            (1, self.do_transpose),
            (1, self.do_reshape),
            (1.5, self.do_dot),
            (1.5, self.do_store),
            (1, self.do_load),
            (1.5, self.do_small),
            (1, self.do_pointer),
            (0.7, self.do_offsets),
            (0.5, self.do_views),
            (0.7, self.do_atomic),
            (0.7, self.do_rows),
            (0.4, self.do_fold),
        ]
        if self.depth < self.max_depth:
            choices += [(2.5, self.do_loop), (1.2, self.do_branch), (0.8, self.do_while)]
        weights = [weight for weight, _ in choices]
        with self.builder.located(Location("kernel.py", self.line, 4, 9, "kernel")):
            self.rng.choices([action for _, action in choices], weights)[0]()

    def do_elementwise(self) -> None:
        dtype = self.rng.choice([f32, f32, f32, i32, bool_, i64])
        self.keep(self.make_elementwise(dtype, self.some_shape(), 2))

    def do_broadcast(self) -> None:
        sizes = self.some_shape()
        if len(sizes) > 1:
            self.keep(self.make_broadcast(self.rng.choice([f32, f32, i32]), sizes, 2))

    def do_reduce(self) -> None:
        sizes = self.some_shape()
        if sizes:
            dtype = self.rng.choice([f32, f32, i32, i64])
            value = self.get(dtype, sizes)
            axis = self.rng.randrange(len(sizes))
            self.keep(self.create(reduction.Reduce, value, kind=self.rng.choice(REDUCTIONS[dtype]), axis=axis))

    def do_transpose(self) -> None:
        sizes = self.some_shape()
        order = tuple(self.rng.sample(range(len(sizes)), len(sizes)))
        value = self.get(self.rng.choice([f32, f32, i32, bool_]), sizes)
        if sizes:
            self.keep(self.create(shape.Transpose, value, permutation=order))

    def do_reshape(self) -> None:
        value = self.get(self.rng.choice([f32, f32, i32, bool_]), self.some_shape())
        size = value.type.size
        small = next((d for d in (2, 3, 5) if size % d == 0), 1)
        target = self.rng.choice([(size,), (small, size // small), (1, size), (size, 1), (size // small, 1, small)])
        self.keep(self.create(shape.Reshape, value, shape=target))

    def do_views(self) -> None:
        """Several views on top of each other."""
        value = self.get(self.rng.choice([f32, i32]), self.some_shape())
        for _ in range(3):
            sizes = value.type.shape
            roll = self.rng.random()
            if roll < 0.3 and len(sizes) < 4:
                value = self.create(shape.ExpandDims, value, axis=self.rng.randint(0, len(sizes)))
            elif roll < 0.6 and sizes:
                value = self.create(
                    shape.Transpose, value, permutation=tuple(self.rng.sample(range(len(sizes)), len(sizes)))
                )
            else:
                value = self.create(shape.Reshape, value, shape=(value.type.size,))
        self.keep(value)

    def do_atomic(self) -> None:
        """Read-modify-write; the old elements are kept, and may not be used."""
        dtype = self.rng.choice([f32, i32])
        sizes = self.some_shape()
        pointer = self.pointer("iof" if dtype is f32 else "ioi", sizes)
        value = self.get(dtype, sizes)
        if self.chance(0.3):
            old = self.create(atomic.AtomicCas, pointer, self.get(dtype, sizes), value)
        else:
            mask = self.mask(sizes) if self.chance(0.4) else None
            kind = self.rng.choice(["add", "max", "xchg"] if dtype is f32 else ["add", "min", "xor", "xchg"])
            old = self.create(atomic.AtomicRmw, pointer, value, mask, kind=kind)
        if self.chance(0.6):
            self.keep(old)

    def do_rows(self) -> None:
        """Scans, sorts, picking and counting of elements."""
        dtype, sizes = self.rng.choice([f32, i32]), self.some_shape()
        if not sizes:
            return
        value, axis, roll = self.get(dtype, sizes), self.rng.randrange(len(sizes)), self.rng.random()
        if roll < 0.4:
            kind, reverse = self.rng.choice(["sum", "max"]), self.chance(0.4)
            self.keep(self.create(reduction.Scan, value, kind=kind, axis=axis, reverse=reverse))
        elif roll < 0.6:
            self.keep(self.create(rearrange.Sort, value, descending=self.chance(0.4)))
        elif roll < 0.85:
            self.keep(self.create(rearrange.Gather, value, self.get(i32, sizes), axis=axis))
        else:
            flat = self.get(i32, (self.sizes[0],))
            mask = self.get(bool_, flat.type.shape) if self.chance(0.4) else None
            self.keep(self.create(rearrange.Histogram, flat, mask, bins=self.rng.choice([1, 5, 8])))

    def do_fold(self) -> None:
        """Where the largest element of each row is, by a region of two values; or all prefixes of that."""
        sizes = self.some_shape()
        if not sizes:
            return
        axis = self.rng.randrange(len(sizes))
        inputs = [self.get(f32, sizes), self.get(i32, sizes)]
        block = Block((TileType(f32), TileType(i32), TileType(f32), TileType(i32)))
        left, left_at, right, right_at = block.arguments
        with self.builder.at(block):
            larger = self.create(ew.Compare, left, right, predicate="gt")
            chosen = self.create(ew.Add, self.create(ew.Select, larger, left_at, right_at), self.constant(1, i32))
            self.builder.create(control.Yield, [self.create(ew.Select, larger, left, right), chosen])
        if self.chance(0.5):
            op = self.builder.create_op(reduction.ReduceRegion, inputs, regions=[block], axis=axis)
        else:
            reverse = self.chance(0.4)
            op = self.builder.create_op(reduction.ScanRegion, inputs, regions=[block], axis=axis, reverse=reverse)
        for result in op.results:
            self.keep(result)

    def do_dot(self) -> None:
        m, n, k = self.rng.sample(self.sizes, 3)
        if self.chance(0.2):
            k = 130
        if m * k > 4096 or k * n > 4096:
            k = 2
        a = self.matrix(m, k)
        b = self.matrix(k, n)
        roll = self.rng.random()
        if roll < 0.35:
            value = self.create(matmul.Dot, a, b, None, dtype=f32)
        elif roll < 0.7:
            acc = self.constant(self.some_constant(f32), f32, (m, n)) if self.chance(0.3) else self.get(f32, (m, n))
            value = self.create(matmul.Dot, a, b, acc, dtype=f32)
        else:
            acc, product = self.get(f32, (m, n)), self.create(matmul.Dot, a, b, None, dtype=f32)
            value = self.create(ew.Add, *((acc, product) if self.chance(0.5) else (product, acc)))
        self.keep(value)

    def matrix(self, rows: int, columns: int) -> Value:
        if self.chance(0.3):
            turned = self.get(f32, (columns, rows))
            return self.create(shape.Transpose, turned, permutation=(1, 0))  # type: ignore[no-any-return]
        if rows == 1 and self.chance(0.5):
            return self.create(shape.ExpandDims, self.get(f32, (columns,)), axis=0)  # type: ignore[no-any-return]
        return self.get(f32, (rows, columns))

    def do_load(self) -> None:
        dtype = self.rng.choice([f32, f32, i32])
        self.keep(self.make_load(dtype, self.some_shape(), 1))

    def do_small(self) -> None:
        roll = self.rng.random()
        if roll < 0.3:
            self.scope.small.append(self.create(memory.Load, self.base_pointer("index"), None, None))
        elif roll < 0.7:
            kind = self.rng.choice([*BINARY[i32], ew.FloorDiv])
            self.clamped(self.create(kind, self.some_small(), self.some_small()))
        elif roll < 0.85:
            self.clamped(self.get(i32, ()))
        else:
            condition = self.get(bool_, ())
            self.scope.small.append(self.create(ew.Select, condition, self.some_small(), self.some_small()))

    def do_pointer(self) -> None:
        buffer = self.rng.choice(["xf", "iof", "outf", "xi"])
        sizes = self.some_shape()
        self.scope.pointers[buffer, sizes].append(self.pointer(buffer, sizes))

    def do_offsets(self) -> None:
        sizes = self.some_shape()
        if sizes:
            self.keep(self.offsets(sizes))

    def do_store(self) -> None:
        dtype = self.rng.choice([f32, f32, f32, i32])
        self.store(self.get(dtype, self.some_shape()))

    def store(self, value: Value) -> None:
        buffers = {f32: ["outf", "iof", "iof"], i32: ["outi", "ioi"], i64: ["outl"], bool_: ["outb"]}
        sizes = value.type.shape
        pointer = self.pointer(self.rng.choice(buffers[value.type.dtype]), sizes)
        mask = self.mask(sizes) if self.chance(0.4) else None
        self.builder.create(memory.Store, pointer, value, mask)

    def store_everything(self) -> None:
        """Most of what was computed, so that errors are seen."""
        self.line += 1
        values = [value for found in self.scope.values.values() for value in found]
        self.rng.shuffle(values)
        with self.builder.located(Location("kernel.py", self.line, 4, 9, "kernel")):
            for number, value in enumerate(values[:12]):
                sizes, dtype = value.type.shape, value.type.dtype
                buffer = {f32: "outf", i32: "outi", i64: "outl", bool_: "outb"}[dtype]
                pointer = self.create(memory.AddPointer, self.buffers[buffer], self.constant(2048 + 400 * number, i32))
                if sizes:
                    offsets = self.dense_offsets(sizes)
                    splat = self.create(shape.Splat, pointer, shape=sizes)
                    pointer = self.create(memory.AddPointer, splat, offsets)
                self.builder.create(memory.Store, pointer, value, None)

    def dense_offsets(self, sizes: Shape) -> Value:
        total: Value | None = None
        for dim in range(len(sizes)):
            index = self.spread(self.create(shape.Iota, start=0, end=sizes[dim]), sizes, dim)
            term = self.create(ew.Mul, index, self.constant(prod(sizes[dim + 1 :]), i32, sizes))
            total = term if total is None else self.create(ew.Add, total, term)
        assert total is not None
        return total

    # ---- control ----

    @contextmanager
    def nested(self, block: Block) -> Iterator[None]:
        saved, self.scope = self.scope, self.scope.inner()
        self.depth += 1
        with self.builder.at(block):
            yield
        self.depth -= 1
        self.scope = saved

    def bounds(self) -> tuple[Value, Value, Value]:
        roll = self.rng.random()
        step = self.rng.choice([1, 1, 1, 2, 3])
        if roll < 0.5:
            low, count = self.rng.randint(-2, 3), self.rng.choice([0, 1, 2, 2, 3])
            low, high = (self.constant(v, i32) for v in (low, low + count * step - self.rng.choice([0, 0, step - 1])))
        elif roll < 0.75:
            low = self.constant(self.rng.randint(-1, 2), i32)
            high = self.few(low)
        else:
            low = self.some_small()
            high = self.few(low)
        if self.chance(0.2):
            return high, low, self.constant(-step, i32)
        if self.chance(0.1):
            known = self.create(ew.Max, self.some_small(), self.constant(1, i32))
            return low, high, known
        return low, high, self.constant(step, i32)

    def few(self, low: Value) -> Value:
        """A bound at most three above `low`, known at run time only."""
        most = self.create(ew.Add, low, self.constant(self.rng.choice([2, 3]), i32))
        value = self.create(ew.Min, self.some_small(), most)
        self.scope.small.append(value)
        return value  # type: ignore[no-any-return]

    def carried(self) -> tuple[str, Any, Value]:
        """A class of carried value (what may be yielded for it), its key, and the initial value."""
        roll = self.rng.random()
        if roll < 0.5:
            dtype, sizes = self.rng.choice([f32, f32, i32, bool_]), self.some_shape()
            return "value", (dtype, sizes), self.get(dtype, sizes)
        if roll < 0.7:
            return "small", None, self.some_small()
        if roll < 0.85:
            buffer, sizes = self.rng.choice(["xf", "iof", "outf"]), self.some_shape()
            return "pointer", (buffer, sizes), self.carried_pointer(buffer, sizes)
        sizes = self.some_shape() or self.sizes[:1]
        if self.chance(0.3):  # may become anything
            return "value", (i32, sizes), self.offsets(sizes)
        return "offsets", sizes, self.offsets(sizes)

    def carried_pointer(self, buffer: str, sizes: Shape) -> Value:
        """One that a loop may carry: at most one tile of offsets from memory, added at the end."""
        self.scattering, usual = 0.0, self.scattering
        known = self.scope.pointers.pop((buffer, sizes), [])
        pointer = self.pointer(buffer, sizes)
        self.scope.pointers[buffer, sizes] = known
        self.scattering = usual
        return self.scattered(pointer)

    def do_loop(self) -> None:
        lower, upper, step = self.bounds()
        carried = [self.carried() for _ in range(self.rng.choice([0, 1, 2, 2, 3]))]
        if carried and self.chance(0.4):  # another of the same kind, so that they can be swapped
            kind, key, initial = self.rng.choice(carried)
            if kind == "value":
                initial = self.get(*key)
            elif kind == "small":
                initial = self.some_small()
            carried.append((kind, key, initial))
        block = Block((TileType(i32), *(initial.type for _, _, initial in carried)))
        for number, argument in enumerate(block.arguments):
            argument.name = f"arg{self.line}_{number}"
        with self.nested(block):
            self.scope.small.append(block.arguments[0])
            for (kind, key, _), argument in zip(carried, block.arguments[1:], strict=True):
                self.admit(kind, key, argument)
            for _ in range(self.rng.choice([1, 2, 3, 4])):
                self.statement()
            yields = [
                self.following(kind, key, argument, block)
                for (kind, key, _), argument in zip(carried, block.arguments[1:], strict=True)
            ]
            self.builder.create(control.Yield, yields)
        initials = [initial for _, _, initial in carried]
        loop = self.builder.create_op(control.For, lower, upper, step, initials, regions=[block])
        for (kind, key, _), result in zip(carried, loop.results, strict=True):
            self.admit(kind, key, result)

    def admit(self, kind: str, key: Any, value: Value) -> None:
        if kind == "value":
            self.scope.values[key].append(value)
        elif kind == "small":
            self.scope.small.append(value)
        elif kind == "pointer":
            self.scope.pointers[key].append(value)
        else:
            self.scope.offsets[key].append(value)
            self.keep(value)

    def following(self, kind: str, key: Any, argument: Value, block: Block) -> Value:
        """What a loop carries on: something computed, another carried value, the same, or one from outside."""
        if kind == "value":
            roll = self.rng.random()
            same = [value for value in block.arguments[1:] if value.type == argument.type]
            if roll < 0.3:
                return self.rng.choice(same)
            if roll < 0.35 and key[0] is i32:
                return self.create(ew.Sub, self.constant(0, *key), argument)  # type: ignore[no-any-return]
            if roll < 0.5:
                return self.make_elementwise(*key, 1)
            if roll < 0.6 and key[0] in (f32, i32):
                return self.make_load(*key, 1)
            if roll < 0.7:
                return self.make_constant(*key, 1)
            return self.get(*key)
        if kind == "small":
            return (
                self.some_small()
                if self.chance(0.6)
                else self.clamped(self.create(ew.Add, argument, self.some_small()))
            )
        if kind == "pointer":
            step = self.some_small()
            if key[1]:
                step = self.create(shape.Splat, step, shape=key[1])
            return self.create(memory.AddPointer, argument, step)  # type: ignore[no-any-return]
        return self.create(ew.Add, argument, self.create(shape.Splat, self.some_small(), shape=key))  # type: ignore[no-any-return]

    def do_while(self) -> None:
        """Up to three iterations: a counter is carried and handed on beside everything else."""
        carried = [kind for kind in (self.carried() for _ in range(self.rng.choice([0, 1, 2]))) if kind[0] in DATA]
        keys = [(kind, key) for kind, key, _ in carried]
        order = self.rng.sample(range(len(keys)), len(keys))  # the condition may hand values on in another order
        handed = [keys[i] for i in order]
        counter, last = self.some_small(), self.few(self.some_small())
        types = [TileType(i32), *(initial.type for _, _, initial in carried)]
        blocks = [Block(tuple(types)), Block((types[0], *(types[1 + i] for i in order)))]
        with self.nested(blocks[0]):
            self.admit_all(keys, blocks[0])
            if self.chance(0.4):
                self.statement()
            goes_on = self.create(ew.Compare, blocks[0].arguments[0], last, predicate="lt")
            given = [self.following(kind, key, blocks[0].arguments[1 + i], blocks[0]) for i, (kind, key) in
                     zip(order, handed, strict=True)]  # fmt: skip
            self.builder.create(control.Yield, [goes_on, blocks[0].arguments[0], *given])
        with self.nested(blocks[1]):
            self.admit_all(handed, blocks[1])
            for _ in range(self.rng.choice([1, 2])):
                self.statement()
            following = self.create(ew.Add, self.create(ew.Max, blocks[1].arguments[0], self.create(
                ew.Sub, last, self.constant(3, i32))), self.constant(1, i32))  # fmt: skip
            back = [self.following(kind, key, blocks[1].arguments[1 + order.index(i)], blocks[1]) for i, (kind, key) in
                    enumerate(keys)]  # fmt: skip
            self.builder.create(control.Yield, [following, *back])
        initials = [counter, *(initial for _, _, initial in carried)]
        result_types = tuple(argument.type for argument in blocks[1].arguments)
        op = self.builder.create_op(control.While, initials, regions=blocks, types=result_types)
        for (kind, key), result in zip(handed, op.results[1:], strict=True):
            self.admit(kind, key, result)

    def admit_all(self, keys: Sequence[tuple[str, Any]], block: Block) -> None:
        """The arguments of a block of a `while`; the first is the counter."""
        for (kind, key), argument in zip(keys, block.arguments[1:], strict=True):
            self.admit(kind, key, argument)

    def do_branch(self) -> None:
        condition = self.get(bool_, ())
        wanted: list[tuple[str, Any]] = []
        for _ in range(self.rng.choice([0, 1, 2, 2])):
            wanted.append(
                ("small", None) if self.chance(0.3) else ("value", (self.rng.choice([f32, i32]), self.some_shape()))
            )
        types = tuple(TileType(i32) if kind == "small" else TileType(*key) for kind, key in wanted)
        blocks = []
        for _ in range(2):
            block = Block()
            with self.nested(block):
                for _ in range(self.rng.choice([0, 1, 2])):
                    self.statement()
                yields = [self.some_small() if kind == "small" else self.get(*key) for kind, key in wanted]
                self.builder.create(control.Yield, yields)
            blocks.append(block)
        op = self.builder.create_op(control.If, condition, regions=blocks, types=types)
        for (kind, key), result in zip(wanted, op.results, strict=True):
            self.admit(kind, key, result)


# ---- memory ----


def random_launch(seed: int, overlap: bool = False) -> Launch:
    """Memories and arguments for any kernel of `KernelMaker`; with `overlap`, `xf` reads what `iof` writes."""
    rng = np.random.default_rng(seed)
    memories, arguments = [], []
    for name, dtype, use in BUFFERS:
        memories.append(_contents(rng, name, dtype, use))
        arguments.append(Place(len(memories) - 1, SPAN * dtype.itemsize))
    if overlap:
        names = [name for name, *_ in BUFFERS]
        arguments[names.index("xf")] = Place(names.index("iof"), (SPAN + 3) * 4)
    n, step = (int(rng.integers(low, 9)) for low in (-1, 1))
    scalars = (n, step, int(rng.integers(-(1 << 31), 1 << 31)), float(np.float32(rng.standard_normal())))
    grid = tuple(int(v) for v in rng.choice([[1, 1, 1], [2, 1, 1], [3, 1, 1], [2, 2, 1], [1, 2, 1]]))
    return Launch(tuple(memories), (*arguments, *scalars), grid)  # type: ignore[arg-type]


def _contents(rng: np.random.Generator, name: str, dtype: DType, use: str) -> np.ndarray:
    count = 2 * SPAN
    if use == "write":
        return np.full(count * dtype.itemsize, 0xA5, np.uint8)
    if use == "small":
        return rng.integers(-3, 10, count).astype(dtype.numpy).view(np.uint8)
    if dtype is f32:
        special = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1e-42, 3e38], np.float32)
        values = rng.standard_normal(count).astype(np.float32)
        places = rng.integers(0, count, count // 50)
        values[places] = special[rng.integers(0, len(special), len(places))]
        return values.view(np.uint8)
    limits = np.iinfo(dtype.numpy)
    wide = rng.integers(limits.min, limits.max, count, endpoint=True)
    return np.where(rng.random(count) < 0.5, rng.integers(-4, 5, count), wide).astype(dtype.numpy).view(np.uint8)
