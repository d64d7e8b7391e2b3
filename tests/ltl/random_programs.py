"""Kernels in LTL that hypothesis writes, as source text: they go through the whole of Loom, and shrink to what is read.

A program is a list of statements over typed values: expressions of all element types, casts, loads and stores through
affine, gathered and block-pointer addresses with masks, reductions, scans, sorts, products, atomics, loops, branches.
Addresses stay inside the memories by construction; each program of the grid stores into parts of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from math import prod
from typing import Any, Final

from hypothesis import strategies as st

from loom_core.base.dtype import DType, by_name

Shape = tuple[int, ...]
Draw = Callable[[Any], Any]

HALF: Final = 4096
"""Elements of a memory on either side of what its pointer names."""
REACH: Final = 1900
"""How far from its pointer a load may begin."""
PART: Final = 1024
"""Elements of an output that belong to one program of the grid."""
PROGRAMS: Final = 3

LTL_NAMES: Final = {
    "f64": "float64", "f32": "float32", "f16": "float16", "bf16": "bfloat16", "f8e4m3": "float8e4nv",
    "f8e5m2": "float8e5", "i64": "int64", "i32": "int32", "i16": "int16", "i8": "int8", "u64": "uint64",
    "u32": "uint32", "u16": "uint16", "u8": "uint8", "bool": "int1",
}  # fmt: skip
DTYPES: Final = tuple(map(by_name, LTL_NAMES))
NARROW: Final = ("f8e4m3", "f8e5m2")
USUAL: Final = ("f32", "i32", "f16", "bf16", "i64")
_SIZES: Final = (1, 2, 3, 4, 7, 8, 16, 33)
_FUNCTIONS: Final = ("exp", "log", "sqrt", "rsqrt", "floor", "ceil", "sin", "cos", "exp2", "log2", "erf", "sigmoid")
_COMPARISONS: Final = ("<", "<=", ">", ">=", "==", "!=")

_EIGHT: Final = st.integers(0, 7)
_BYTE: Final = st.integers(0, 255)


@dataclass(frozen=True)
class Program:
    """A kernel `kernel(...)` as text, with the numbers that it is launched with."""

    text: str
    buffers: tuple[str, ...]
    n: int
    seed: int
    grid: int

    def __repr__(self) -> str:
        return f"n={self.n}, seed={self.seed}, grid={self.grid}\n{self.text}"


@st.composite
def programs(draw: Draw, statements: int = 7) -> Program:
    """Programs of about so many statements, with what is nested in them."""
    return Writer(draw).program(statements)


@dataclass(frozen=True)
class Name:
    """A variable."""

    text: str
    dtype: str
    shape: Shape


class Writer:
    """Writes one program."""

    def __init__(self, draw: Draw) -> None:
        self.draw = draw
        self.lines: list[str] = []
        self.indent = 1
        self.names: list[Name] = []
        self.small: list[str] = ["pid", "n"]
        self.count = 0
        self.stored = 0
        self.buffers: set[str] = set()
        self.depth = 0

    # ---- choices ----

    def among(self, values: Sequence[Any]) -> Any:
        """One of the values, the first ones for the smallest draws."""
        return values[self.draw(_BYTE) % len(values)] if len(values) > 8 else values[self.draw(_EIGHT) % len(values)]

    def chance(self, eighths: int) -> bool:
        return self.draw(_EIGHT) >= 8 - eighths  # type: ignore[no-any-return]

    def dtype(self) -> str:
        return str(self.among(USUAL) if self.chance(5) else self.among(DTYPES).name)

    def shape(self) -> Shape:
        m, n = self.sizes
        return self.among([(), (n,), (m, n), (n,), (m, n), (m,), (n, m), (m, n)])  # type: ignore[no-any-return]

    def new(self, dtype: str, shape: Shape) -> Name:
        self.count += 1
        return Name(f"v{self.count}", dtype, shape)

    def line(self, text: str) -> None:
        self.lines.append("    " * self.indent + text)

    # ---- the whole ----

    def program(self, statements: int) -> Program:
        self.sizes = (self.among(_SIZES[:6]), self.among(_SIZES))
        self.line("pid = ltl.program_id(0)")
        for _ in range(2):
            dtype, shape = self.dtype(), self.shape()
            self.assign(self.load(dtype, shape, 1), dtype, shape)
        for _ in range(1 + self.draw(st.integers(0, statements))):
            self.statement()
        for name in [name for name in self.names if name.shape or self.chance(4)][-4:]:
            self.store(name.text, name.dtype, name.shape)
        buffers = tuple(sorted(self.buffers))
        head = f"@ltl.jit\ndef kernel({', '.join([*buffers, 'n'])}):"
        n, seed, grid = self.draw(st.integers(0, 40)), self.draw(_BYTE), 1 + self.draw(_EIGHT) % PROGRAMS
        return Program("\n".join([head, *self.lines, ""]), buffers, n, seed, grid)

    def statement(self) -> None:
        choices: list[Callable[[], None]] = [
            self.compute, self.compute, self.compute, self.reduce, self.rearrange, self.dot, self.keep, self.atomic,
            self.compute, self.reduce,
        ]  # fmt: skip
        if self.depth < 2:
            choices += [self.loop, self.branch, self.loop, self.while_loop, self.branch, self.loop]
        self.among(choices)()

    # ---- statements ----

    def assign(self, text: str, dtype: str, shape: Shape) -> Name:
        name = self.new(dtype, shape)
        self.line(f"{name.text} = {text}")
        self.names.append(name)
        return name

    def compute(self) -> None:
        dtype, shape = self.dtype(), self.shape()
        self.assign(self.expression(dtype, shape, 2), dtype, shape)

    def reduce(self) -> None:
        shape = self.shape()
        if not shape:
            self.compute()
            return
        axis = self.draw(_EIGHT) % len(shape)
        rest = shape[:axis] + shape[axis + 1 :]
        dtype = self.among(["f32", "i32", "f64", "f16", "i64", "bf16", "u32", "i8"])
        value = self.expression(dtype, shape, 1)
        kind = self.among(["sum", "max", "min", "argmax", "cumsum", "xor_sum", "argmin", "cummax"])
        is_float = by_name(dtype).is_float
        if kind == "xor_sum" and is_float:
            kind = "sum"
        if kind.startswith("arg"):
            self.assign(f"ltl.{kind}({value}, axis={axis})", "i32", rest)
        elif kind == "cummax":
            self.assign(f"ltl.associative_scan({value}, {axis}, larger)", dtype, shape)
        elif kind == "cumsum":
            reverse = ", reverse=True" if self.chance(3) else ""
            self.assign(f"ltl.cumsum({value}, axis={axis}{reverse}, dtype=ltl.{LTL_NAMES[dtype]})", dtype, shape)
        elif kind in ("sum", "xor_sum"):
            # Narrow types are summed up in wider ones: the result is taken back.
            self.assign(f"ltl.{kind}({value}, axis={axis}).to(ltl.{LTL_NAMES[dtype]})", dtype, rest)
        else:
            self.assign(f"ltl.{kind}({value}, axis={axis}).to(ltl.{LTL_NAMES[dtype]})", dtype, rest)

    def rearrange(self) -> None:
        m, n = self.sizes
        dtype = self.dtype()
        roll = self.draw(_EIGHT)
        if roll == 0:
            self.assign(f"ltl.trans({self.expression(dtype, (m, n), 1)})", dtype, (n, m))
        elif roll == 1:
            self.assign(f"ltl.reshape({self.expression(dtype, (m, n), 1)}, ({n}, {m}))", dtype, (n, m))
        elif roll == 2:
            index = self.index((m, n), n)
            self.assign(f"ltl.gather({self.expression(dtype, (m, n), 1)}, {index}, axis=1)", dtype, (m, n))
        elif roll == 3 and dtype not in NARROW and dtype != "bool" and n & (n - 1) == 0:
            self.assign(f"ltl.sort({self.expression(dtype, (m, n), 1)})", dtype, (m, n))
        elif roll == 4 and n & (n - 1) == 0:
            self.assign(f"ltl.flip({self.expression(dtype, (n,), 1)}, 0)", dtype, (n,))
        elif roll == 5:
            self.assign(f"ltl.histogram({self.index((n,), 8)}, 8)", "i32", (8,))
        elif roll == 6:
            rows, columns = self.expression(dtype, (m,), 1), self.expression(dtype, (n,), 1)
            if dtype in NARROW or dtype == "bool":
                self.assign(f"ltl.broadcast_to({rows}[:, None], ({m}, {n}))", dtype, (m, n))
            else:
                self.assign(f"{rows}[:, None] + {columns}[None, :]", dtype, (m, n))
        else:
            self.assign(self.block_load(dtype, (m, n)), dtype, (m, n))

    def dot(self) -> None:
        m, n = self.sizes
        k = self.among([2, 16, 5, 130])
        if max(m, n) * k > 2200:
            k = 2
        dtype = self.among(["f32", "f16", "bf16", "i8"])
        result = "i32" if dtype == "i8" else "f32"
        a, b = self.load(dtype, (m, k), 0), self.load(dtype, (k, n), 0)
        text = f"ltl.dot({a}, {b})"
        if self.chance(4):
            text = f"ltl.dot({a}, {b}, {self.expression(result, (m, n), 1)})"
        self.assign(text, result, (m, n))

    def keep(self) -> None:
        dtype, shape = self.dtype(), self.shape()
        self.store(self.expression(dtype, shape, 1), dtype, shape)

    def store(self, text: str, dtype: str, shape: Shape) -> None:
        """Into a part of the output that this statement and this program alone write."""
        size = prod(shape)
        if self.stored + 2 * size > PART:
            return
        place = f"pid * {PART} + {self.stored}"
        self.stored += 2 * size
        if len(shape) == 2:
            steps = (1, shape[0]) if self.chance(2) else (shape[1], 1)
        else:
            steps = (1 + self.chance(2),) * len(shape)
        where = self.pointer("out", dtype, place, shape, steps)
        if self.chance(3):
            self.line(f"ltl.store({where}, {text}, mask={self.mask(shape)})")
        else:
            self.line(f"ltl.store({where}, {text})")

    def atomic(self) -> None:
        dtype = self.among(["i32", "f32", "i64", "u32"])
        shape = self.shape()
        kinds = ["add", "max", "min", "xchg", "and", "or", "xor"] if dtype != "f32" else ["add", "max", "min", "xchg"]
        kind, value = self.among(kinds), self.expression(dtype, shape, 1)
        self.buffers.add(f"acc_{dtype}")
        # Elements of one address have an order in Loom, so that exchanges may meet.
        where = f"acc_{dtype} + {self.index(shape, 32)}"
        mask = f", mask={self.mask(shape)}" if self.chance(3) else ""
        text = f"ltl.atomic_{kind}({where}, {value}{mask})"
        if self.chance(4) and not mask:
            self.assign(text, dtype, shape)
        else:
            self.line(text)

    # ---- control ----

    @contextmanager
    def nested(self) -> Iterator[None]:
        """What is named inside is not known outside."""
        names, small = list(self.names), list(self.small)
        self.indent += 1
        self.depth += 1
        before = len(self.lines)
        yield
        if len(self.lines) == before:
            self.line("pass")
        self.depth -= 1
        self.indent -= 1
        self.names, self.small = names, small

    def body(self) -> None:
        for _ in range(1 + self.draw(_EIGHT) % 2):
            if self.names and self.chance(5):
                self.change()
            else:
                self.statement()

    def change(self) -> None:
        """A variable from outside gets another value, of the same type."""
        name = self.among(self.names[-6:])
        self.line(f"{name.text} = {self.expression(name.dtype, name.shape, 2)}")

    def loop(self) -> None:
        self.count += 1
        counter = f"i{self.count}"
        kind = self.draw(_EIGHT)
        bounds = ["range(0, 2)", "range(0, n // 16)", "range(1, 7, 3)", "ltl.static_range(2)", "range(2, -1, -1)",
                  "range(pid, pid + 2)", "range(0, 3)", "range(0, 0)"]  # fmt: skip
        self.line(f"for {counter} in {bounds[kind]}:")
        with self.nested():
            self.small.append(counter)
            self.body()

    def while_loop(self) -> None:
        self.count += 1
        counter = f"i{self.count}"
        self.line(f"{counter} = pid")
        self.line(f"while {counter} < {self.among([2, 3])}:")
        with self.nested():
            self.small.append(counter)
            self.body()
            self.line(f"{counter} += 1")

    def branch(self) -> None:
        self.line(f"if {self.condition()}:")
        with self.nested():
            self.body()
        if self.chance(4):
            self.line("else:")
            with self.nested():
                self.body()

    def condition(self) -> str:
        known = [name.text for name in self.names if name.dtype == "bool" and not name.shape]
        if known and self.chance(3):
            return str(self.among(known))
        return f"{self.scalar()} {self.among(_COMPARISONS)} {self.draw(_EIGHT)}"

    # ---- addresses ----

    def scalar(self) -> str:
        """A small integer, between -20 and 60."""
        return str(self.among(self.small))

    def place(self) -> str:
        """A scalar offset, well inside the memories."""
        roll = self.draw(_EIGHT)
        if roll < 3:
            return str(self.draw(st.integers(0, 40)))
        factor = self.among([1, 2, 8, -3])
        return f"{self.scalar()} * {factor} + {self.draw(st.integers(0, 40))}"

    def steps(self, shape: Shape) -> Shape:
        if len(shape) == 1:
            return (self.among([1, 1, 2, 3, -1, 0]),)
        rows, columns = shape[0], shape[-1]
        if rows * columns > HALF // 4:
            return self.among([(columns, 1), (1, rows)])  # type: ignore[no-any-return]
        return self.among([(columns, 1), (columns + 1, 1), (1, rows), (columns * 2, 2), (0, 1), (-columns, 1), (1, 0)])  # type: ignore[no-any-return]

    def pointer(self, kind: str, dtype: str, place: str, shape: Shape, steps: Shape) -> str:
        name = f"{kind}_{dtype}"
        self.buffers.add(name)
        terms = [name, place]
        for axis, (size, step) in enumerate(zip(shape, steps, strict=True)):
            index = f"ltl.arange(0, {size})"
            if len(shape) == 2:
                index += "[:, None]" if axis == 0 else "[None, :]"
            terms.append(index if step == 1 else f"{index} * {step}")
        return " + ".join(terms)

    def load(self, dtype: str, shape: Shape, depth: int) -> str:
        if shape and depth and self.chance(2):
            self.buffers.add(f"x_{dtype}")
            where = f"x_{dtype} + {self.index(shape, 64)}"
        else:
            where = self.pointer("x", dtype, self.place(), shape, self.steps(shape) if shape else ())
        if not self.chance(3):
            return f"ltl.load({where})"
        other = self.literal(dtype) if self.chance(6) or not depth else self.expression(dtype, shape, depth - 1)
        return f"ltl.load({where}, mask={self.mask(shape, depth)}, other={other})"

    def block_load(self, dtype: str, shape: Shape) -> str:
        """Through a block pointer or a descriptor, partly outside of a small matrix."""
        self.buffers.add(f"x_{dtype}")
        rows, columns = self.among([3, 8, 20]), self.among([4, 8, 33])
        offsets = f"({self.scalar()}, {self.draw(_EIGHT)})"
        block = f"ltl.make_block_ptr(x_{dtype}, ({rows}, {columns}), ({columns}, 1), {offsets}, {shape}, (1, 0))"
        return f'ltl.load({block}, boundary_check=(0, 1), padding_option="zero")'

    def index(self, shape: Shape, limit: int) -> str:
        """Numbers from 0 to below `limit`."""
        value = self.expression("i32", shape, 1)
        return f"(({value}) & {limit - 1})" if limit & (limit - 1) == 0 else f"ltl.abs(({value}) % {limit})"

    def mask(self, shape: Shape, depth: int = 1) -> str:
        if not shape:
            return f"{self.scalar()} {self.among(_COMPARISONS)} {self.draw(_EIGHT)}"
        if depth and self.chance(2):
            return self.expression("bool", shape, 1)
        terms = []
        for axis, size in enumerate(shape):
            index = f"ltl.arange(0, {size})"
            if len(shape) == 2:
                index += "[:, None]" if axis == 0 else "[None, :]"
            limit = self.scalar() if self.chance(4) else str(self.draw(_EIGHT))
            terms.append(f"({index} {self.among(['<', '<', '>=', '!='])} {limit})")
        return " & ".join(terms)

    # ---- expressions ----

    def literal(self, dtype: str) -> str:
        kind = by_name(dtype)
        if kind.is_bool:
            return str(self.chance(4))
        if not kind.is_float:
            ends = [kind.max_value, kind.min_value] if kind.bits > 8 else [100, kind.min_value]
            return str(self.among([1, 0, 2, 7, ends[0], ends[1], 3, 5]))
        return str(self.among(["1.0", "0.0", "-0.5", "3.0", "float('inf')", "float('nan')", "-0.0", "0.1"]))

    def expression(self, dtype: str, shape: Shape, depth: int) -> str:
        if depth <= 0 or self.chance(1):
            return self.leaf(dtype, shape)
        if dtype == "bool":
            return self.boolean(shape, depth)
        if dtype in NARROW:
            return self.cast(dtype, shape, depth)
        roll = self.draw(_EIGHT)
        if roll == 0:
            return self.leaf(dtype, shape)
        if roll == 1:
            return self.cast(dtype, shape, depth)
        a = self.expression(dtype, shape, depth - 1)
        if roll == 2:
            return self.unary(dtype, a)
        if roll == 3:
            b = self.expression(dtype, shape, depth - 1)
            return f"ltl.where({self.expression('bool', shape, depth - 1)}, {a}, {b})"
        if roll == 4:
            b = self.expression(dtype, shape, depth - 1)
            return f"ltl.{self.among(['maximum', 'minimum'])}({a}, {b})"
        if roll == 5 and self.plain(dtype):
            return f"({a} {self.among(['+', '-', '*'])} {self.literal(dtype)})"
        return self.binary(dtype, a, self.expression(dtype, shape, depth - 1))

    def plain(self, dtype: str) -> bool:
        """Whether a literal beside a value of the type leaves the type alone."""
        return by_name(dtype).bits >= 16

    def binary(self, dtype: str, a: str, b: str) -> str:
        if by_name(dtype).is_float:
            operator = self.among(["+", "-", "*", "/", "+", "-", "*", "+"])
            # Quotients of narrow types are wider.
            return f"({a} {operator} {b}).to(ltl.{LTL_NAMES[dtype]})"
        operator = self.among(["+", "-", "*", "&", "|", "^", "//", "%"])
        return f"({a} {operator} {b}).to(ltl.{LTL_NAMES[dtype]})"

    def unary(self, dtype: str, a: str) -> str:
        kind = by_name(dtype)
        if dtype in ("f32", "f64") and self.chance(5):
            return f"ltl.{self.among(_FUNCTIONS)}({a})"
        if not kind.is_float and self.chance(4):
            return f"({a} {self.among(['<<', '>>'])} {self.among([1, 2, kind.bits - 1])})"
        if kind.is_signed and self.chance(4):
            return f"ltl.abs({a})"
        return f"(-{a})" if kind.is_float or kind.is_signed else f"(~{a})"

    def boolean(self, shape: Shape, depth: int) -> str:
        if self.chance(2):
            a, b = self.expression("bool", shape, depth - 1), self.expression("bool", shape, depth - 1)
            return f"({a} {self.among(['&', '|', '^'])} {b})"
        dtype = self.dtype()
        if dtype in NARROW or dtype == "bool":
            dtype = "f32"
        a, b = self.expression(dtype, shape, depth - 1), self.expression(dtype, shape, depth - 1)
        return f"({a} {self.among(_COMPARISONS)} {b})"

    def cast(self, dtype: str, shape: Shape, depth: int) -> str:
        kind = by_name(dtype)
        if self.chance(2) and not kind.is_bool:
            same = [d.name for d in DTYPES if d.bits == kind.bits and d is not kind and not d.is_bool]
            if same:
                return f"{self.expression(self.among(same), shape, depth - 1)}.to(ltl.{LTL_NAMES[dtype]}, bitcast=True)"
        source = self.dtype()
        if dtype in NARROW and source in ("i64", "u64", "f64", "bool", *NARROW) and source != dtype:
            source = "f32"
        return f"{self.expression(source, shape, depth - 1)}.to(ltl.{LTL_NAMES[dtype]})"

    def leaf(self, dtype: str, shape: Shape) -> str:
        """A variable of this type, one of another shape made to fit, or something new."""
        same = [name.text for name in self.names if (name.dtype, name.shape) == (dtype, shape)]
        if same and not self.chance(1):
            return str(same[-1 - self.draw(_EIGHT) % len(same)])
        scalars = [name.text for name in self.names if name.dtype == dtype and not name.shape]
        if shape and scalars and self.chance(3):
            return f"ltl.broadcast_to({self.among(scalars)}, {shape})"
        if len(shape) == 2:
            rows = [name.text for name in self.names if name.dtype == dtype and name.shape == shape[1:]]
            if rows and self.chance(4):
                return f"ltl.broadcast_to({self.among(rows)}[None, :], {shape})"
        if dtype == "i32" and len(shape) == 1 and self.chance(3):
            return f"ltl.arange(0, {shape[0]})"
        if dtype == "i32" and not shape and self.chance(4):
            return self.scalar()
        if not shape and dtype not in NARROW and self.chance(2):
            return f"ltl.full((), {self.literal(dtype)}, ltl.{LTL_NAMES[dtype]})"
        if self.chance(2) and shape and dtype not in NARROW:
            return f"ltl.full({shape}, {self.literal(dtype)}, ltl.{LTL_NAMES[dtype]})"
        return self.load(dtype, shape, 0)


def element_type(buffer: str) -> DType:
    """That of an argument `x_f32`, `out_i8`, `acc_i64`."""
    return by_name(buffer.partition("_")[2])
