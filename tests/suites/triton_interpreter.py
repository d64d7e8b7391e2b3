"""Random kernels of integers, by Triton's own interpreter and by Loom, compiled: the same arrays.

    python tests/suites/triton_interpreter.py [FIRST] [COUNT]

Expressions of every width with promotion, casts, folds, scans, sorts, gathers, loops, `while` and branches. Prints each
seed whose results differ, with the kernel, and leaves with 1 if there is one. A second of CPU makes about ten kernels.
"""

from __future__ import annotations

import importlib.util
import os
import random
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

TYPES = [f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)]
GRID = 2
HEAD = """\
import triton
import triton.language as tl


@triton.jit
def kernel(out, {inputs}, n, m, N: tl.constexpr):
    i = tl.arange(0, N)
"""


class Kernel:
    """One random kernel: `text`, the dtypes of its inputs, its block size and the number of its results."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.inputs = [self.random.choice(TYPES) for _ in range(self.random.randint(2, 3))]
        self.size = self.random.choice([4, 8, 16])
        self.lines: list[str] = []
        self.depth = 1
        self.typed: dict[str, str] = {}
        for number, dtype in enumerate(self.inputs):
            self.line(f"v{number} = tl.load(x{number} + i)")
            self.typed[f"v{number}"] = dtype
        for _ in range(self.random.randint(3, 9)):
            self.statement()
        shown = self.random.sample(sorted(self.typed), min(4, len(self.typed)))
        for number, name in enumerate(shown):
            place = f"(tl.program_id(0) * {len(shown)} + {number}) * N + i"
            self.line(f"tl.store(out + {place}, {name}.to(tl.int64))")
        self.results = len(shown)
        inputs = ", ".join(f"x{number}" for number in range(len(self.inputs)))
        self.text = HEAD.format(inputs=inputs) + "\n".join(self.lines) + "\n"

    def line(self, text: str) -> None:
        self.lines.append("    " * self.depth + text)

    def name(self) -> str:
        return self.random.choice(sorted(self.typed))

    def define(self, text: str) -> str:
        """A new variable of a random dtype."""
        name, dtype = f"v{len(self.typed)}_{len(self.lines)}", self.random.choice(TYPES)
        self.line(f"{name} = ({text}).to(tl.{dtype})")
        self.typed[name] = dtype
        return name

    def literal(self, dtype: str) -> int:
        info = np.iinfo(dtype)
        return self.random.choice([0, 1, 3, int(info.min), int(info.max), self.random.randint(info.min, info.max)])

    def expression(self) -> str:
        a, b, c = self.name(), self.name(), self.name()
        bits = np.iinfo(self.typed[a]).bits
        same = [name for name, dtype in self.typed.items() if dtype == self.typed[a]]
        wide = self.random.choice(["int32", "int64", "uint32", "uint64"])
        return self.random.choice([
            f"{a} {self.random.choice('+-*&|^')} {b}",
            f"{a} {self.random.choice('+-*&|^')} {self.literal(self.typed[a])}",
            f"{self.literal(self.typed[a])} {self.random.choice('+-*')} {a}",
            f"{a} {self.random.choice('<>')}= {b}",
            f"{a} {self.random.choice(['<<', '>>'])} {self.random.randrange(bits)}",
            f"{a} {self.random.choice(['//', '%'])} (({self.random.choice(same)} & 15) | 1)",
            f"tl.where({a} > {b}, {b}, {c})",
            f"tl.{self.random.choice(['minimum', 'maximum'])}({a}, {b})",
            f"tl.umulhi({a}.to(tl.{wide}), {b}.to(tl.{wide}))",
            f"~{a}", f"-{a}", f"tl.abs({a})", f"{a} + n", f"{a} * m",
            f"{b} + tl.{self.random.choice(['sum', 'max', 'min', 'xor_sum', 'argmax', 'argmin'])}({a}, 0)",
            f"tl.{self.random.choice(['cumsum', 'cumprod'])}({a}, 0, reverse={self.random.random() < 0.5})",
            f"tl.sort({a}, descending={self.random.random() < 0.5})", f"tl.flip({a}, 0)",
            f"tl.gather({a}, {b}.to(tl.int32) & (N - 1), 0)",
        ])  # fmt: skip

    def statement(self) -> None:
        kind = self.random.random()
        if kind < 0.75 or self.depth > 2:
            self.define(self.expression())
            return
        name = self.define(self.name())
        if kind < 0.83:
            self.line(self.random.choice([f"for k{name} in range(0, n, 2):", f"for k{name} in range(n, 0, -1):"]))
            self.block(name)
        elif kind < 0.9:
            self.line(f"k{name} = m * 1")
            self.line(f"while k{name} < n:")
            self.block(name)
            self.line(f"    k{name} += 1")
        else:
            self.line(f"if {self.random.choice(['n > 2', 'n == m', 'm < 0', '(n & 1) == 0 and m > 1'])}:")
            self.block(name)
            self.line("else:")
            self.block(name)

    def block(self, name: str) -> None:
        """An indented block that changes one variable; what it defines stays inside."""
        outside = dict(self.typed)
        self.depth += 1
        for _ in range(self.random.randint(0, 2)):
            self.statement()
        self.line(f"{name} = (({self.expression()}) + {name}).to(tl.{self.typed[name]})")
        self.depth -= 1
        self.typed = outside


def inputs_of(kernel: Kernel, seed: int) -> list[Any]:
    """Arrays with the least and largest values among others, and two small numbers."""
    generator = np.random.default_rng(seed)
    arrays = []
    for dtype in kernel.inputs:
        info = np.iinfo(dtype)
        array = generator.integers(info.min, info.max, kernel.size, dtype, endpoint=True)
        special = generator.choice(np.array([0, 1, info.min, info.max], dtype), kernel.size)
        arrays.append(np.where(generator.random(kernel.size) < 0.4, special, array))
    return [*arrays, int(generator.integers(0, 6)), int(generator.integers(-3, 6))]


def results(kernel: Kernel, inputs: list[Any], folder: Path) -> tuple[Any, Any]:
    """What Triton's interpreter stores, and what Loom stores."""
    import torch

    from loom.triton import load_source

    file = folder / "kernel.py"
    file.write_text(kernel.text)
    spec = importlib.util.spec_from_file_location("kernel", file)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    theirs = torch.zeros(GRID * kernel.results * kernel.size, dtype=torch.int64)
    tensors = [torch.from_numpy(value.copy()) if isinstance(value, np.ndarray) else value for value in inputs]
    module.kernel[(GRID,)](theirs, *tensors, N=kernel.size)
    ours = np.zeros(len(theirs), np.int64)
    load_source(kernel.text, str(file))["kernel"][(GRID,)](ours, *inputs, N=kernel.size)
    return theirs.numpy(), ours


def main(first: int, count: int) -> int:
    """Compare `count` kernels; the number of those that differ."""
    os.environ["TRITON_INTERPRET"] = "1"
    np.seterr(all="ignore")
    found: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(first, first + count):
            kernel = Kernel(seed)
            try:
                theirs, ours = results(kernel, inputs_of(kernel, seed), Path(folder))
            except Exception as error:  # noqa: BLE001
                # One side refuses: shown, for both should.
                found["refused"] += 1
                print(f"seed {seed}: {type(error).__name__}: {str(error).splitlines()[0]}")
                continue
            equal = np.array_equal(theirs, ours)
            found["equal" if equal else "different"] += 1
            if not equal:
                print(f"seed {seed} differs: {theirs} and {ours}\n{kernel.text}")
    print(", ".join(f"{number} {what}" for what, number in sorted(found.items())))
    return found["different"]


if __name__ == "__main__":
    numbers = [int(argument) for argument in sys.argv[1:3]]
    sys.exit(main(*(numbers + [0, 200][len(numbers) :])) > 0)
