"""`loomc migrate-triton`: which kernels of a Triton source file Loom takes, why not the others, and the file in LTL.

A source file does not say what its kernels are launched with. Types and constants come from `--arg` and `--const`, from
defaults and autotune configurations, and where these say nothing, from how parameters are used and called; the report
says what was assumed.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

import click

from loom_core.base.diagnostics import Diagnostic, LoomError, render
from loom_core.base.location import Location
from loom_core.base.syntax_trees import parse
from loom_core.tools.assumed import (
    MAX_ATTEMPTS,
    Assumptions,
    assumed_arguments,
    descriptor_parameters,
    innermost,
    parse_assumptions,
    variations,
)
from loom_core.tools.diagnostics import NeededNameMissing, NotTritonSource
from loom_core.tools.files import file_text, write_file

if TYPE_CHECKING:
    from loom_core.launch import Variant
    from ltl.jit import JitFunction
    from ltl.source import Loaded

Status = Literal["lowered", "traced", "refused"]


@dataclass(frozen=True)
class KernelReport:
    """One kernel: whether it lowered to an object, only to IR, or not at all; why and where (line and column from 1).

    `assumed` says with which types and constants. `same_program`: whether the migrated text gives the same IR. `notes`
    are sentences on what was left out or taken from other files.
    """

    name: str
    line: int
    status: Status
    assumed: Mapping[str, str]
    diagnostics: tuple[Diagnostic, ...] = ()
    same_program: bool | None = None
    operations: int = 0
    notes: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """For --json."""
        return {
            "kernel": self.name,
            "line": self.line,
            "status": self.status,
            "assumed": dict(self.assumed),
            "same_program": self.same_program,
            "operations": self.operations,
            "notes": list(self.notes),
            "problems": [
                {
                    "code": d.code,
                    "message": d.message,
                    "line": d.location.line,
                    "column": d.location.column + 1,
                    "hint": d.hint,
                }
                for d in self.diagnostics
            ],
        }


def reports(text: str, file: str, migrated: str, given: Assumptions) -> Iterator[KernelReport]:
    """A report for each kernel of a source text, in order; functions that only other kernels call are left out.

    NotTritonSource where there is none.
    """
    from ltl.migration import kernel_names
    from ltl.source import load_kernels

    tree = parse(text)
    names = kernel_names(tree)
    if not names:
        raise NotTritonSource(Location(file), reason="no function is decorated with jit")
    loaded = load_kernels(text, file)
    twin = load_kernels(migrated, f"<LTL of {Path(file).name}>", beside=file)
    functions = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
    called = {name for name in names for other in names if other != name and name in _names(functions[other])}
    for name in names:
        if name in called:
            continue
        line = functions[name].lineno
        if name in loaded.failures:
            yield KernelReport(name, line, "refused", {}, (_failure(file, line, name, loaded.failures[name]),))
        else:
            yield _Candidate(name, loaded, twin, given).report(line)


def _names(function: ast.FunctionDef) -> set[str]:
    return {node.id for node in ast.walk(function) if isinstance(node, ast.Name)}


def _failure(file: str, line: int, name: str, reason: str) -> Diagnostic:
    return NeededNameMissing.diagnostic(Location(file, line), name=name, reason=reason)


class _Candidate:
    """One kernel, and what it may be launched with."""

    def __init__(self, name: str, loaded: Loaded, twin: Loaded, given: Assumptions) -> None:
        kernel = innermost(loaded.namespace[name])
        assert kernel is not None
        self.found = loaded.namespace[name]
        self.kernel = kernel
        self.traced = _entry(kernel)
        other = innermost(twin.namespace.get(name))
        self.twin = None if other is None else _entry(other)
        self.loaded = loaded
        self.given = given

    def report(self, line: int) -> KernelReport:
        """The report, with the assumptions under which the kernel got furthest."""
        name = self.kernel.traced.name
        arguments, error = self._search()
        shown = {key: value if isinstance(value, str) else repr(value) for key, value in arguments.items()}
        notes = tuple(self._notes())
        if error is not None:
            failures = self.loaded.failures
            missing = [n for n in self.kernel.traced.rewritten.free_names if n in failures]
            added = [_failure(self.kernel.traced.source.file, line, n, failures[n]) for n in missing]
            return KernelReport(name, line, "refused", shown, (*error.diagnostics, *added), notes=notes)
        variant = _variant(self.traced, arguments)
        operations = sum(1 for _ in variant.function.walk())
        same = self.twin is not None and str(_variant(self.twin, arguments).function) == str(variant.function)
        try:
            variant.compile({})
        except LoomError as problem:
            return KernelReport(name, line, "traced", shown, problem.diagnostics, same, operations, notes)
        return KernelReport(name, line, "lowered", shown, (), same, operations, notes)

    def _notes(self) -> Iterator[str]:
        for text, reason in self.loaded.left_out.get(self.kernel.traced.name, ()):
            yield f"without {text}: {reason}"
        given = {name: self.given.of(self.kernel.traced.name, name) for name in descriptor_parameters(self.kernel)}
        unknown = [name for name, value in given.items() if value is None]
        if unknown:
            example = f'--arg {unknown[0]}="tensordesc<fp16[64, 32]>"'
            yield f"tensor descriptors, of blocks that the source does not show: {', '.join(unknown)}; say {example}"
        for name in sorted(self.kernel.traced.rewritten.free_names):
            if name in self.loaded.elsewhere:
                yield f"{name} is read from {self.loaded.elsewhere[name]}, which is to be migrated too"

    def _search(self) -> tuple[dict[str, Any], LoomError | None]:
        """Assumptions under which the kernel traces, or those that get furthest down its text and the error there."""
        best = assumed_arguments(self.kernel, self.found, self.given)
        error = self._trace(best)
        free = [p for p in self.kernel.parameters if self.given.of(self.kernel.traced.name, p.name) is None]
        attempts = 0
        while error is not None and error.diagnostics[0].code in _GUESSED_WRONG and attempts < MAX_ATTEMPTS:
            reached = _reached(error)
            for tried in variations(best, free):
                attempts += 1
                problem = self._trace(tried)
                if problem is None or _reached(problem) > reached:
                    best, error = tried, problem
                    break
            else:
                break
        return best, error

    def _trace(self, arguments: Mapping[str, Any]) -> LoomError | None:
        try:
            _variant(self.traced, arguments)
        except LoomError as error:
            return error
        return None


_GUESSED_WRONG: Final = frozenset(
    f"LOOM-F{number:03}" for number in (7, 8, 11, 15, 17, 19, 101, 102, 103, 104, 105, 107, 110)
)
"""Codes of problems that other types or constants may not have."""


def _reached(error: LoomError) -> tuple[int, int]:
    """How far down the kernel's own text an error is."""
    location = error.location
    while location.parent is not None and location.parent.function != _ENTRY:
        location = location.parent
    # Of the expressions in a line, those that end first are evaluated first.
    return location.line, location.end_column


_ENTRY: Final = "call_of_a_function"
_CALLED: Final = "function_that_is_called"


def _entry(kernel: JitFunction) -> JitFunction:
    """What is traced of a kernel: itself, or of a function that returns values, a kernel that calls it."""
    from ltl.jit import JitFunction

    tree = kernel.traced.source.tree
    if not any(isinstance(node, ast.Return) and node.value is not None for node in ast.walk(tree)):
        return kernel
    signature = ", ".join(f"{p.name}: constexpr" if p.static else p.name for p in kernel.parameters)
    names = ", ".join(f"{p.name}={p.name}" for p in kernel.parameters)
    text = f"def {_ENTRY}({signature}):\n    {_CALLED}({names})\n"
    namespace: dict[str, Any] = {_CALLED: kernel}
    exec(text, namespace)
    return JitFunction(namespace[_ENTRY], source=text)


def _variant(kernel: JitFunction, arguments: Mapping[str, Any]) -> Variant:
    return kernel.variant(kernel.specs((), arguments))


# ---- the command -----------------------------------------------------------------------------------------------------


@click.command(name="migrate-triton")
@click.argument("source", type=click.Path(path_type=Path), metavar="SRC.py")
@click.option("--arg", "types", multiple=True, metavar="NAME=TYPE", help='A parameter\'s type: x="*fp16", n=i64.')
@click.option("--const", "constants", multiple=True, metavar="NAME=VALUE", help="A constexpr's value: BLOCK=128.")
@click.option("--out", "-o", type=click.Path(path_type=Path), help="Write the LTL source here instead of printing it.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def migrate_command(
    source: Path, types: tuple[str, ...], constants: tuple[str, ...], out: Path | None, as_json: bool
) -> None:
    """Say which kernels of a Triton source file Loom takes, and print the file in LTL.

    Leaves with 1 if some kernel does not lower. NAME may be KERNEL.NAME.
    """
    from ltl.migration import migrate

    text = file_text(source)
    try:
        migration = migrate(text)
    except SyntaxError as error:
        raise NotTritonSource(Location(str(source), error.lineno or 0), reason=str(error.msg)) from None
    found = list(reports(text, str(source), migration.text, parse_assumptions(types, constants)))
    if out is not None:
        write_file(out, migration.text.encode())
    if as_json:
        left = [{"name": item.name, "line": item.line} for item in migration.left]
        document = {"file": str(source), "kernels": [r.as_dict() for r in found], "not_migrated": left}
        click.echo(json.dumps({**document, "text": migration.text}, indent=2))
    else:
        _show(found, migration.left, None if out is not None else migration.text)
    if any(report.status != "lowered" for report in found):
        raise SystemExit(1)


def _show(found: Sequence[KernelReport], left: Sequence[Any], text: str | None) -> None:
    width = max(len(report.name) for report in found)
    for report in found:
        assumed = ", ".join(f"{name}={value}" for name, value in report.assumed.items())
        same = "" if report.same_program is not False else "; THE MIGRATED TEXT GIVES ANOTHER PROGRAM"
        click.echo(f"{report.status:8} {report.name.ljust(width)}  ({assumed}){same}")
        for note in report.notes:
            click.echo(f"         {note}")
        for diagnostic in report.diagnostics:
            click.echo(render(diagnostic))
    counts = {status: sum(report.status == status for report in found) for status in ("lowered", "traced", "refused")}
    click.echo(", ".join(f"{count} {status}" for status, count in counts.items()))
    for item in left:
        click.echo(f"line {item.line}: {item.name} has no counterpart and stays")
    if text is not None:
        click.echo()
        click.echo(text, nl=False)
