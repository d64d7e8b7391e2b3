"""`loomc migrate-triton`: which kernels of a Triton source file Loom takes, why not the others, and the file in LTL.

A source file does not say what its kernels are launched with. Types and constants come from `--arg` and `--const`, from
defaults and autotune configurations, and where these say nothing, from how parameters are used and called; the report
says what was assumed.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

import click

from loom_core.base.diagnostics import Diagnostic, LoomError, render
from loom_core.base.location import Location
from loom_core.tools.diagnostics import BadArgument, NeededNameMissing, NotTritonSource, UnreadableFile, UnwritableFile

if TYPE_CHECKING:
    from ltl.jit import JitFunction
    from ltl.signature import Parameter

Status = Literal["lowered", "traced", "refused"]

STATIC_SIZE: Final = 32
_SIZE: Final = re.compile(r"(^|_)(BLOCK|TILE|SIZE|DIM|HEAD|GROUP|NUM|[BMNKD])", re.IGNORECASE)
_FLAG: Final = re.compile(r"^(IS|HAS|USE|EVEN|CAUSAL|WITH|ENABLE|ALLOW|DO|NEED|TRANS|STORE|OUTPUT)(_|$)", re.IGNORECASE)
_INDEX: Final = re.compile(r"ids|idx|index|indices|label|target|offset|lens|table|count|position", re.IGNORECASE)
_TYPE: Final = re.compile(r"dtype|_type$|^type", re.IGNORECASE)
_MEMORY: Final = frozenset(
    "load store make_block_ptr make_tensor_descriptor atomic_add atomic_and atomic_cas atomic_max atomic_min atomic_or "
    "atomic_xchg atomic_xor atomic_load atomic_store".split()
)


@dataclass(frozen=True)
class KernelReport:
    """One kernel: whether it lowered to an object, only to IR, or not at all; why and where (line and column from 1).

    `assumed` says with which types and constants. `same_program`: whether the migrated text gives the same IR.
    """

    name: str
    line: int
    status: Status
    assumed: Mapping[str, str]
    diagnostics: tuple[Diagnostic, ...] = ()
    same_program: bool | None = None
    operations: int = 0

    def as_dict(self) -> dict[str, Any]:
        """For --json."""
        return {
            "kernel": self.name,
            "line": self.line,
            "status": self.status,
            "assumed": dict(self.assumed),
            "same_program": self.same_program,
            "operations": self.operations,
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


@dataclass
class Assumptions:
    """What the command line says of arguments: `NAME` or `KERNEL.NAME` to a type ("*fp32", "i32") or a constant."""

    types: dict[str, str] = field(default_factory=dict)
    constants: dict[str, Any] = field(default_factory=dict)

    def of(self, kernel: str, name: str) -> Any:
        """What is given for a parameter; None if nothing is."""
        for table in (self.types, self.constants):
            for key in (f"{kernel}.{name}", name):
                if key in table:
                    return table[key]
        return None


def parse_assumptions(types: Sequence[str], constants: Sequence[str]) -> Assumptions:
    """`x=*fp32` and `BLOCK=128`. BadArgument for what is neither."""
    found = Assumptions()
    for text in types:
        name, equals, value = text.partition("=")
        if not equals:
            raise BadArgument(text=text, reason="there is no `name=`", hint='write x="*fp32" or n=i32')
        found.types[name] = value
    for text in constants:
        name, equals, value = text.partition("=")
        if not equals:
            raise BadArgument(text=text, reason="there is no `name=`", hint="write BLOCK=128")
        try:
            found.constants[name] = ast.literal_eval(value)
        except (ValueError, SyntaxError):
            found.constants[name] = value
    return found


def reports(text: str, file: str, migrated: str, given: Assumptions) -> Iterator[KernelReport]:
    """A report for each kernel of a source text, in order; functions that only other kernels call are left out.

    NotTritonSource where there is none.
    """
    from ltl.migration import kernel_names
    from ltl.source import load_kernels

    tree = ast.parse(text)
    names = kernel_names(tree)
    if not names:
        raise NotTritonSource(Location(file), reason="no function is decorated with jit")
    namespace, failures = load_kernels(text, file)
    twin, _ = load_kernels(migrated, f"<LTL of {Path(file).name}>")
    functions = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
    called = {name for name in names for other in names if other != name and name in _names(functions[other])}
    for name in names:
        if name in called:
            continue
        line = functions[name].lineno
        if name in failures:
            yield KernelReport(name, line, "refused", {}, (_failure(file, line, name, failures[name]),))
        else:
            yield _Candidate(namespace[name], twin.get(name), given, failures).report(line)


def _names(function: ast.FunctionDef) -> set[str]:
    return {node.id for node in ast.walk(function) if isinstance(node, ast.Name)}


def _failure(file: str, line: int, name: str, reason: str) -> Diagnostic:
    return NeededNameMissing.diagnostic(Location(file, line), name=name, reason=reason)


class _Candidate:
    """One kernel, and what it may be launched with."""

    def __init__(self, found: Any, twin: Any, given: Assumptions, failures: Mapping[str, str]) -> None:
        self.found = found
        self.kernel = _innermost(found)
        self.twin = None if twin is None else _innermost(twin)
        self.given = given
        self.failures = failures

    def report(self, line: int) -> KernelReport:
        """The report, with the assumptions under which the kernel got furthest."""
        name = self.kernel.traced.name
        arguments, error = self._search()
        shown = {key: value if isinstance(value, str) else repr(value) for key, value in arguments.items()}
        if error is not None:
            missing = [n for n in self.kernel.traced.rewritten.free_names if n in self.failures]
            notes = [_failure(self.kernel.traced.source.file, line, n, self.failures[n]) for n in missing]
            return KernelReport(name, line, "refused", shown, (*error.diagnostics, *notes))
        function = self.kernel.lower(**arguments)
        operations = sum(1 for _ in function.walk())
        same = self.twin is not None and str(self.twin.lower(**arguments)) == str(function)
        try:
            self.kernel.compile(**arguments)
        except LoomError as problem:
            return KernelReport(name, line, "traced", shown, problem.diagnostics, same, operations)
        return KernelReport(name, line, "lowered", shown, (), same, operations)

    def _search(self) -> tuple[dict[str, Any], LoomError | None]:
        """Assumptions under which the kernel traces, or those that get furthest down its text and the error there."""
        best = assumed_arguments(self.kernel, self.found, self.given)
        error = self._trace(best)
        free = [p for p in self.kernel.parameters if self.given.of(self.kernel.traced.name, p.name) is None]
        attempts = 0
        while error is not None and error.diagnostics[0].code in _GUESSED_WRONG and attempts < MAX_ATTEMPTS:
            better = False
            for parameter in free:
                for value in _alternatives(parameter, best[parameter.name]):
                    attempts += 1
                    tried = {**best, parameter.name: value}
                    problem = self._trace(tried)
                    if problem is None or _reached(problem) > _reached(error):
                        best, error, better = tried, problem, True
                        break
                if better or attempts >= MAX_ATTEMPTS:
                    break
            if not better:
                break
        return best, error

    def _trace(self, arguments: Mapping[str, Any]) -> LoomError | None:
        try:
            self.kernel.lower(**arguments)
        except LoomError as error:
            return error
        return None


MAX_ATTEMPTS: Final = 80
_GUESSED_WRONG: Final = frozenset(
    "LOOM-F007 LOOM-F008 LOOM-F011 LOOM-F015 LOOM-F017 LOOM-F019 LOOM-F101 LOOM-F102 LOOM-F103 LOOM-F104 LOOM-F105 LOOM-F107 LOOM-F110".split()
)
"""Codes of problems that other types or constants may not have."""


def _alternatives(parameter: Parameter, value: Any) -> list[Any]:
    if not parameter.static:
        return [text for text in ("*fp32", "*i64", "*i32", "i32", "fp32") if text != value]
    if isinstance(value, bool):
        return [not value]
    return [other for other in (16, 64, True, False, None) if other != value] if isinstance(value, int) else []


def _reached(error: LoomError) -> tuple[int, int]:
    """How far down the kernel's own text an error is."""
    location = error.location.root()
    return location.line, location.column


def _innermost(found: Any) -> JitFunction:
    from ltl.jit import JitFunction
    from ltl.tuning import Tuned

    kernel = found.jit_function if isinstance(found, Tuned) else found
    assert isinstance(kernel, JitFunction)
    return kernel


# ---- what kernels may be launched with -------------------------------------------------------------------------------


def assumed_arguments(kernel: JitFunction, found: Any, given: Assumptions) -> dict[str, Any]:
    """A type or constant for each parameter."""
    configured = _first_configuration(found)
    pointers = pointer_parameters(kernel.traced.source.tree)
    arguments: dict[str, Any] = {}
    for parameter in kernel.parameters:
        stated = given.of(kernel.traced.name, parameter.name)
        if stated is not None:
            arguments[parameter.name] = stated
        elif parameter.name in configured:
            arguments[parameter.name] = configured[parameter.name]
        elif not parameter.required:
            arguments[parameter.name] = parameter.default
        elif parameter.static:
            arguments[parameter.name] = _assumed_constant(parameter)
        else:
            pointer = "*i64" if _INDEX.search(parameter.name) else "*fp32"
            arguments[parameter.name] = pointer if parameter.name in pointers else "i32"
    return arguments


def _first_configuration(found: Any) -> dict[str, Any]:
    from ltl.tuning import Autotuned, Tuned

    constants: dict[str, Any] = {}
    while isinstance(found, Tuned):
        if isinstance(found, Autotuned):
            constants |= found.configs[0].kwargs
        found = found.kernel
    return constants


def _assumed_constant(parameter: Parameter) -> Any:
    import ltl

    name = parameter.name
    if _FLAG.search(name):
        return False
    if _TYPE.search(name):
        return ltl.float32
    return STATIC_SIZE if _SIZE.search(name) else 1


def pointer_parameters(function: ast.FunctionDef) -> set[str]:
    """The parameters that are used as pointers, as far as the text shows: what loads and stores add offsets to.

    `a = x + offsets; load(a + i)` makes x one: names that lead to a pointer through assignments count, and of several
    in one sum, those that are called like one, or else the first.
    """
    parameters = [a.arg for a in (*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs)]
    assigned: dict[str, list[ast.expr]] = {}
    for node in ast.walk(function):
        if isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value is not None:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for target in targets:
                if isinstance(target, ast.Name):
                    assigned.setdefault(target.id, []).append(node.value)
    found: set[str] = set()
    seen: set[str] = set()
    pending = [node.args[0] for node in ast.walk(function) if _is_access(node) and node.args]  # type: ignore[attr-defined]
    while pending:
        names = _addends(pending.pop())
        direct = [name for name in names if name in parameters and name not in assigned]
        chosen = [name for name in direct if "ptr" in name.lower()] or direct[:1]
        found.update(chosen)
        for name in names:
            if name in assigned and name not in seen and (not chosen or "ptr" in name.lower()):
                seen.add(name)
                pending += assigned[name]
                if name in parameters:
                    found.add(name)
    return found | {name for name in parameters if name.lower().endswith(("_ptr", "ptr", "_ptrs"))}


def _is_access(node: ast.AST) -> bool:
    if not isinstance(node, ast.Call):
        return False
    target = node.func
    return (target.attr if isinstance(target, ast.Attribute) else getattr(target, "id", "")) in _MEMORY


def _addends(node: ast.expr) -> list[str]:
    """The names that an expression adds up, outermost sum only."""
    if isinstance(node, ast.Name):
        return [node.id]
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Sub)):
        return _addends(node.left) + (_addends(node.right) if isinstance(node.op, ast.Add) else [])
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args:
        return _addends(node.args[0])
    return []


# ---- the command -----------------------------------------------------------------------------------------------------


@click.command(name="migrate-triton")
@click.argument("source", type=click.Path(path_type=Path), metavar="SRC.py")
@click.option("--arg", "types", multiple=True, metavar="NAME=TYPE", help='A parameter\'s type: x="*fp16", n=i64.')
@click.option("--const", "constants", multiple=True, metavar="NAME=VALUE", help="A constexpr's value: BLOCK=128.")
@click.option("--out", type=click.Path(path_type=Path), help="Write the LTL source here instead of printing it.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def migrate_command(
    source: Path, types: tuple[str, ...], constants: tuple[str, ...], out: Path | None, as_json: bool
) -> None:
    """Say which kernels of a Triton source file Loom takes, and print the file in LTL.

    Leaves with 1 if some kernel does not lower. NAME may be KERNEL.NAME.
    """
    from ltl.migration import migrate

    where = Location(str(source))
    try:
        text = source.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UnreadableFile(where, reason=getattr(error, "strerror", None) or str(error)) from error
    try:
        migration = migrate(text)
    except SyntaxError as error:
        raise NotTritonSource(Location(str(source), error.lineno or 0), reason=str(error.msg)) from None
    found = list(reports(text, str(source), migration.text, parse_assumptions(types, constants)))
    if out is not None:
        try:
            out.write_text(migration.text, encoding="utf-8")
        except OSError as error:
            raise UnwritableFile(Location(str(out)), reason=error.strerror or str(error)) from error
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
        for diagnostic in report.diagnostics:
            click.echo(render(diagnostic))
    counts = {status: sum(report.status == status for report in found) for status in ("lowered", "traced", "refused")}
    click.echo(", ".join(f"{count} {status}" for status, count in counts.items()))
    for item in left:
        click.echo(f"line {item.line}: {item.name} has no counterpart and stays")
    if text is not None:
        click.echo()
        click.echo(text, nl=False)
