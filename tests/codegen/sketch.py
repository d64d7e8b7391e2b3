"""Small kernels written operation by operation, for tests that need one exact situation."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from math import prod
from typing import Any, Final

import numpy as np

from loom_core.base.dtype import DType, bool_, f32, i32
from loom_core.base.location import Location
from loom_core.ir.block import Block, Function
from loom_core.ir.builder import Builder
from loom_core.ir.op import Op
from loom_core.ir.types import PointerType, TileType
from loom_core.ir.value import Value
from loom_core.ops import control, matmul, memory, shape
from loom_core.ops import elementwise as ew
from tests.codegen.execution import Launch, Place

ELEMENTS: Final = 1 << 14
FILE: Final = "sketch.py"


class Sketch:
    """A kernel with an f32 input `x`, an i32 input `xi`, outputs `out` and `outi`, and scalars n (i32) and s (f32).

    Values are loaded from and stored to places of their own, one after another. Every operation is on its own line.
    """

    def __init__(self, n: int = 3, s: float = 1.5, grid: tuple[int, int, int] = (1, 1, 1)) -> None:
        pointers = [TileType(PointerType(dtype)) for dtype in (f32, i32, f32, i32)]
        names = ("x", "xi", "out", "outi", "n", "s")
        self.function = Function("sketch", (*pointers, TileType(i32), TileType(f32)), names, Location(FILE, 1, 0, 1))
        self.x, self.xi, self.out, self.outi, self.n, self.s = self.function.arguments
        self.builder = Builder(self.function.body)
        self.scalars = (n, s)
        self.grid = grid
        self.line = 1
        self._loaded = 0
        self._stored = 0

    # ---- operations ----

    def op(self, kind: type[Op], /, *operands: Any, **attributes: Any) -> Any:
        self.line += 1
        self.builder.location = Location(FILE, self.line, 4, 9, "sketch")
        return self.builder.create(kind, *operands, **attributes)

    def constant(self, value: Any, dtype: DType = i32, sizes: tuple[int, ...] = ()) -> Value:
        return self.op(shape.Constant, value=value, type=TileType(dtype, sizes))  # type: ignore[no-any-return]

    def splat(self, value: Value, sizes: tuple[int, ...]) -> Value:
        return self.op(shape.Splat, value, shape=sizes)  # type: ignore[no-any-return]

    def add(self, a: Value, b: Value) -> Value:
        return self.op(ew.Add, a, b)  # type: ignore[no-any-return]

    def mul(self, a: Value, b: Value) -> Value:
        return self.op(ew.Mul, a, b)  # type: ignore[no-any-return]

    def compare(self, predicate: str, a: Value, b: Value) -> Value:
        return self.op(ew.Compare, a, b, predicate=predicate)  # type: ignore[no-any-return]

    def cast(self, value: Value, dtype: DType) -> Value:
        return self.op(ew.Cast, value, dtype=dtype)  # type: ignore[no-any-return]

    def transposed(self, value: Value) -> Value:
        return self.op(shape.Transpose, value, permutation=(1, 0))  # type: ignore[no-any-return]

    def dot(self, a: Value, b: Value, acc: Value | None = None) -> Value:
        return self.op(matmul.Dot, a, b, acc, dtype=f32)  # type: ignore[no-any-return]

    def index(self, sizes: tuple[int, ...], dim: int) -> Value:
        """The i32 index along `dim`, over the whole shape."""
        value = self.op(shape.Iota, start=0, end=sizes[dim])
        for axis in range(len(sizes)):
            if axis != dim:
                value = self.op(shape.ExpandDims, value, axis=axis)
        return self.op(shape.Broadcast, value, shape=sizes)  # type: ignore[no-any-return]

    def row_major(self, pointer: Value, sizes: tuple[int, ...]) -> Value:
        """Pointers to a dense tile whose first element is at the scalar `pointer`."""
        if not sizes:
            return pointer
        tile = self.splat(pointer, sizes)
        for dim in range(len(sizes)):
            stride = self.constant(prod(sizes[dim + 1 :]), i32, sizes)
            tile = self.op(memory.AddPointer, tile, self.mul(self.index(sizes, dim), stride))
        return tile

    # ---- memory ----

    def load(self, sizes: tuple[int, ...] = (), dtype: DType = f32, offset: Value | None = None) -> Value:
        """A tile from fresh elements of the input of that type, or from `offset` elements on."""
        if offset is None:
            offset = self.constant(self._loaded)
            self._loaded += prod(sizes)
        pointer = self.op(memory.AddPointer, self.x if dtype is f32 else self.xi, offset)
        return self.op(memory.Load, self.row_major(pointer, sizes), None, None)  # type: ignore[no-any-return]

    def store(self, value: Value, offset: Value | None = None) -> None:
        """Into fresh elements of the output of that type (a bool as i32), or from `offset` elements on."""
        if value.type.dtype is bool_ or value.type.dtype.bits == 64:
            value = self.cast(value, i32)
        sizes = value.type.shape
        if offset is None:
            offset = self.constant(self._stored)
            self._stored += prod(sizes)
        pointer = self.op(memory.AddPointer, self.out if value.type.dtype is f32 else self.outi, offset)
        self.op(memory.Store, self.row_major(pointer, sizes), value, None)

    # ---- control ----

    @contextmanager
    def loop(self, upper: Value | int, initials: Sequence[Value], results: list[Value]) -> Iterator[LoopBody]:
        """A loop from 0 to `upper` by 1; its results are appended to `results`."""
        lower, step = self.constant(0), self.constant(1)
        upper = self.constant(upper) if isinstance(upper, int) else upper
        block = Block((TileType(i32), *(value.type for value in initials)))
        body = LoopBody(self, block)
        with self.builder.at(block):
            yield body
        results += self.builder.create_op(control.For, lower, upper, step, initials, regions=[block]).results

    def while_loop(
        self,
        initials: Sequence[Value],
        condition: Callable[..., tuple[Value, Sequence[Value]]],
        body: Callable[..., Sequence[Value]],
    ) -> list[Value]:
        """`condition` takes the carried values and gives a bool and what is handed on, which `body` takes."""
        before = Block(tuple(value.type for value in initials))
        with self.builder.at(before):
            holds, handed = condition(*before.arguments)
            self.give(holds, *handed)
        after = Block(tuple(value.type for value in handed))
        with self.builder.at(after):
            self.give(*body(*after.arguments))
        types = tuple(value.type for value in handed)
        return self.builder.create_op(control.While, list(initials), regions=[before, after], types=types).results

    @contextmanager
    def arm(self, blocks: list[Block]) -> Iterator[None]:
        """One block of a branch, appended to `blocks`; ends it with `give`."""
        block = Block()
        with self.builder.at(block):
            yield
        blocks.append(block)

    def give(self, *values: Value) -> None:
        self.op(control.Yield, list(values))

    def branch(self, condition: Value, blocks: list[Block]) -> list[Value]:
        types = tuple(value.type for value in blocks[0].operations[-1].operands)
        self.line += 1
        location = Location(FILE, self.line, 4, 9, "sketch")
        op = self.builder.create_op(control.If, condition, regions=blocks, types=types, location=location)
        return op.results

    # ---- running ----

    def finished(self) -> Function:
        if self.function.body.terminator is None:
            self.builder.create(control.Return)
        return self.function

    def launch(self) -> Launch:
        rng = np.random.default_rng(7)
        x = rng.standard_normal(ELEMENTS).astype(np.float32)
        xi = rng.integers(-4, 9, ELEMENTS).astype(np.int32)
        out = np.zeros(4 * ELEMENTS, np.uint8)
        memories = (x.view(np.uint8), xi.view(np.uint8), out, out.copy())
        return Launch(memories, (*(Place(i, 0) for i in range(4)), *self.scalars), self.grid)


class LoopBody:
    """What is inside a loop: the counter, the carried values, and how they go on."""

    def __init__(self, sketch: Sketch, block: Block) -> None:
        self.sketch = sketch
        self.counter, *self.carried = block.arguments

    def give(self, *values: Value) -> None:
        self.sketch.give(*values)
