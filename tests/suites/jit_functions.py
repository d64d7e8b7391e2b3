"""Every `@triton.jit` function of an installed package: which of them Loom compiles, and why not the others.

    pip install liger-kernel fla-core einops
    python -m tests.suites.jit_functions liger_kernel [--write]
    python -m tests.suites.jit_functions fla [--write]

A function is `launched` where an operation of the package's suite beside this file launches it, `compiled` where it
makes an object for types and constants that its text suggests (as in `loomc migrate-triton`), `inlined` where it is a
part of one that does. Others are `refused`, with code and line, or `unused`: an alternative that is not defined here,
or what nothing calls. `--write` keeps the table in exhaustive/scores.json. Leaves with 1 if a function is refused.
"""

from __future__ import annotations

import argparse
import ast
import importlib.metadata
import importlib.util
import signal
import sys
import warnings
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any, Final
from unittest import mock

from exhaustive import scores

OPERATIONS: Final = {"liger_kernel": "tests.suites.liger_operations", "fla": "tests.suites.fla_operations"}
DISTRIBUTIONS: Final = {"liger_kernel": "liger-kernel", "fla": "fla-core"}
MOST_SECONDS: Final = 120
"""What the functions of one file may take."""
TYPES: Final = {
    "chunkwise_fwd_kernel.level_scales": "*fp32",
    "chunkwise_bwd_kernel_diag.l": "*fp32",
    "chunk_kda_bwd_kernel_dAv_npu.do": "*fp32",
}
CONSTANTS: Final = {"chunk_oja_bwd_kernel_dvwg_h.USE_GV": True}
"""What the callers give, where the text of a kernel suggests something else."""


@dataclass(frozen=True)
class Function:
    """A function: its file, relative to the package, its name and the line of its `def`."""

    file: str
    name: str
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line} {self.name}"


class Table:
    """What became of each function of a package."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.functions = list(_functions(root))
        self._at = {(function.file, function.line): function for function in self.functions}
        self.found: dict[Function, str] = {}

    def note(self, file: str, line: int, what: str) -> None:
        """Of the function whose definition (with its decorators) begins before `line` in `file`."""
        path = Path(file)
        if path.is_relative_to(self.root):
            function = self._at.get((str(path.relative_to(self.root)), line))
            if function is not None and _rank(what) < _rank(self.found.get(function, "unused")):
                self.found[function] = what

    def rows(self) -> list[tuple[Function, str]]:
        """Each function with what became of it."""
        return [(function, self.found.get(function, "unused")) for function in self.functions]


def _rank(what: str) -> int:
    """How much an outcome says, the most first; refusals come after what was reached in another way."""
    order = ("launched", "compiled", "inlined")
    return order.index(what) if what in order else len(order) + (what == "unused")


def _functions(root: Path) -> Iterator[Function]:
    for file in sorted(root.rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef) and any(map(_is_triton_jit, node.decorator_list)):
                yield Function(str(file.relative_to(root)), node.name, node.lineno)


def _is_triton_jit(decorator: ast.expr) -> bool:
    target = decorator.func if isinstance(decorator, ast.Call) else decorator
    return ast.unparse(target) == "triton.jit"


def _line_of(function: Any) -> int:
    """The line of a Python function's `def`."""
    import inspect

    lines, first = inspect.getsourcelines(function)
    return first + next(i for i, line in enumerate(lines) if line.lstrip().startswith("def "))


def launch_operations(package: str, table: Table) -> None:
    """Run the suite of the package's operations, and note what they launch."""
    import triton

    def listen(src: Any, **options: Any) -> None:
        note(src.fn, "launched")

    seen: set[tuple[Any, str]] = set()

    def note(kernel: Any, what: str) -> None:
        function = kernel.fn
        if (function, what) in seen:
            return
        seen.add((function, what))
        table.note(function.__code__.co_filename, _line_of(function), what)
        for name in function.__code__.co_names:
            if isinstance(function.__globals__.get(name), triton.JITFunction):
                note(function.__globals__[name], "inlined")

    operations = importlib.import_module(OPERATIONS[package])
    triton.knobs.compilation.listener = listen
    operations.main([])
    _MORE[package](operations)
    triton.knobs.compilation.listener = None


def _more_of_liger(operations: Any) -> None:
    """Operations that insist on CUDA's tensors, told that they have them, and one without a backward pass."""
    import torch
    from liger_kernel.ops.experimental import mm_int8int2

    with mock.patch.object(torch.Tensor, "is_cuda", True):
        operations.main(["mlp"])
        case = operations.cases()["mlp"]
        with torch.no_grad():
            case.ours(*(value.detach() for value in case.inputs))
    packed = mm_int8int2.pack_weights(torch.randint(0, 3, (128, 32), dtype=torch.int8))
    mm_int8int2.matmul(torch.randint(-8, 8, (32, 128), dtype=torch.int8), packed.contiguous())


def _more_of_fla(operations: Any) -> None:
    """An operation that insists on CUDA's tensors, told that it has them."""
    import torch
    from fla.ops import fused_attnres

    with mock.patch.object(torch.Tensor, "is_cuda", True):
        query, weight = (torch.randn(16, requires_grad=True) for _ in range(2))
        fused_attnres(query, [torch.randn(4, 16, requires_grad=True) for _ in range(3)], weight).sum().backward()


_MORE: Final = {"liger_kernel": _more_of_liger, "fla": _more_of_fla}


@contextmanager
def calls(table: Table) -> Iterator[list[tuple[str, int]]]:
    """The kernels that are called from the one that is traced meanwhile, as (file, line)."""
    from ltl.jit import JitFunction

    seen: list[tuple[str, int]] = []
    plain = JitFunction.__call__

    def call(self: JitFunction, /, *args: Any, **kwargs: Any) -> Any:
        source = self.traced.source
        seen.append((source.file, source.definition.line))
        return plain(self, *args, **kwargs)

    JitFunction.__call__ = call  # type: ignore[method-assign]
    try:
        yield seen
    finally:
        JitFunction.__call__ = plain  # type: ignore[method-assign]


def compile_file(path: Path, table: Table) -> None:
    """Compile the kernels of a file, with types and constants that its text suggests."""
    from loom_core.tools.assumed import Assumptions
    from loom_core.tools.migrate import reports
    from ltl.migration import kernel_names, migrate

    text = path.read_text(encoding="utf-8")
    if not kernel_names(ast.parse(text)):
        return  # all of them are defined inside other statements
    with calls(table) as seen:
        for report in reports(text, str(path), migrate(text).text, Assumptions(TYPES, CONSTANTS)):
            if report.status == "lowered":
                table.note(str(path), report.line, "compiled")
                for file, line in seen:
                    table.note(file, line, "inlined")
            else:
                problem = report.diagnostics[0]
                table.note(str(path), report.line, f"{problem.code} line {problem.location.line}: {problem.message}")
            seen.clear()


def _too_long(number: int, frame: FrameType | None) -> None:
    raise TimeoutError(f"more than {MOST_SECONDS} s")


def main() -> int:
    """1 if a function is refused."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("package", choices=sorted(OPERATIONS))
    parser.add_argument("--write", action="store_true", help="keep the table in exhaustive/scores.json")
    known = parser.parse_args()
    warnings.filterwarnings("ignore")
    spec = importlib.util.find_spec(known.package)
    if spec is None or spec.origin is None:
        parser.error(f"{known.package} is not installed")
    table = Table(Path(spec.origin).parent)
    launch_operations(known.package, table)
    signal.signal(signal.SIGALRM, _too_long)
    for file in sorted({function.file for function in table.functions}):
        signal.alarm(MOST_SECONDS)
        try:
            compile_file(table.root / file, table)
        except TimeoutError as error:
            print(f"{file}: {error}")
        finally:
            signal.alarm(0)
    rows = table.rows()
    for function, what in rows:
        print(f"{function}: {what}", flush=True)
    counts = Counter("refused" if what.startswith("LOOM") else what for _, what in rows)
    print(", ".join(f"{number} {what}" for what, number in counts.most_common()))
    if known.write:
        name = DISTRIBUTIONS[known.package]
        scores.record_all(f"functions of {name} {importlib.metadata.version(name)}", {str(f): what for f, what in rows})
    return int(counts["refused"] > 0)


if __name__ == "__main__":
    sys.exit(main())
