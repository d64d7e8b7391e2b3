"""Kernels from source text that was written for Triton."""

from __future__ import annotations

import ast
import builtins
import linecache
import os
from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import dataclass, field
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

from loom_core.base.syntax_trees import compile_tree, parse
from ltl.jit import JitFunction
from ltl.migration import bound_name, defined_names, is_jit, kernel_names, needed_statements
from ltl.packages import import_name, is_stand_in, names_for_kernels
from ltl.tuning import Tuned


def load_source(text: str, file: str = "<triton source>", *, every: bool = False) -> dict[str, Any]:
    """Run source text of a module; gives its namespace, in which Triton's decorators have made kernels of LTL.

    The names triton, tl, triton_helpers, libdevice and tl_math are there without being imported. With `every`, plain
    functions become kernels too, as in recorded launches, whose decorators are gone. `file` is what diagnostics name.
    """
    namespace = _namespace(text, file)
    exec(compile(text, file, "exec", dont_inherit=True), namespace)  # the user's own source, which is what is asked for
    if every:
        for name, value in list(namespace.items()):
            if isinstance(value, FunctionType) and value.__globals__ is namespace:
                namespace[name] = JitFunction(value)
    return namespace


def _namespace(text: str, file: str) -> dict[str, Any]:
    if not os.path.exists(file):
        linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    return {
        **names_for_kernels(),
        "__name__": os.path.splitext(os.path.basename(file))[0],
        "__file__": file,
        "__builtins__": {**vars(builtins), "__import__": import_name},
    }


@dataclass
class Loaded:
    """What is known of a module of which only the kernels, and what they need, were run.

    `failures`: why names could not be made. `left_out`: of kernels, decorators that were passed over, as text, and why.
    `elsewhere`: names that were read from another file of the same package.
    """

    namespace: dict[str, Any]
    failures: dict[str, str] = field(default_factory=dict)
    left_out: dict[str, list[tuple[str, str]]] = field(default_factory=dict)
    elsewhere: dict[str, str] = field(default_factory=dict)


def load_kernels(
    text: str,
    file: str,
    *,
    names: Sequence[str] | None = None,
    beside: str | None = None,
    reading: frozenset[str] = frozenset(),
) -> Loaded:
    """As `load_source`, of only what the module's kernels (or `names`) need, so that nothing else of it runs.

    Statements that fail are passed over. What they import from files of the same package, which are looked for where
    `beside` (or else `file`) lies, is read in the same way; `reading` are the files that are being read. SyntaxError if
    the text is no Python.
    """
    tree = parse(text)
    loaded = Loaded(_namespace(text, file))
    reading |= {beside or file}
    for statement in needed_statements(tree, kernel_names(tree) if names is None else names):
        rest = _after_neighbours(statement, beside or file, loaded, reading)
        try:
            if rest is not None:
                _define(rest, file, loaded)
        except Exception as error:  # noqa: BLE001
            # Reported by the caller for the kernels that need the names.
            reason = f"line {statement.lineno}: {_text(error)}"
            loaded.failures.update(dict.fromkeys(defined_names(statement), reason))
    return loaded


def _text(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"


def _run(statement: ast.stmt, file: str, loaded: Loaded) -> None:
    # The user's own source, as above.
    exec(compile_tree(ast.Module([statement], []), file), loaded.namespace)


def _define(statement: ast.stmt, file: str, loaded: Loaded) -> None:
    """Run a statement. A kernel is made without the decorators that fail, or without all but `jit`."""
    if not isinstance(statement, ast.FunctionDef) or not any(map(is_jit, statement.decorator_list)):
        return _run(statement, file, loaded)
    others = [d for d in statement.decorator_list if not is_jit(d)]
    reasons = {d: _problem(d, loaded) for d in others}
    failing = [d for d in others if reasons[d]]
    problem: Exception | None = None
    for left_out in ([], failing, others):
        made = copy(statement)
        made.decorator_list = [d for d in statement.decorator_list if d not in left_out]
        try:
            _run(made, file, loaded)
        except Exception as error:  # noqa: BLE001
            problem = problem or error
            continue
        if isinstance(loaded.namespace[statement.name], (JitFunction, Tuned)):
            reason = "it makes something else of the kernel" if problem is None else _text(problem)
            loaded.left_out[statement.name] = [(f"@{ast.unparse(d)}", reasons[d] or reason) for d in left_out]
            return None
    assert problem is not None, "jit makes a kernel, or fails"
    raise problem


def _problem(decorator: ast.expr, loaded: Loaded) -> str:
    """Why a decorator cannot be made; empty if it can."""
    try:
        code = compile_tree(ast.Expression(decorator), "<decorator>", "eval")
        made = eval(code, loaded.namespace)  # the user's own source, as above
    except Exception as error:  # noqa: BLE001
        return _text(error)
    return "" if callable(made) else f"it is {made!r}"


def _after_neighbours(statement: ast.stmt, file: str, loaded: Loaded, reading: frozenset[str]) -> ast.stmt | None:
    """The statement, without what it imports from files of the package that `file` is in; those names are defined."""
    path = _neighbour(statement, Path(file)) if isinstance(statement, ast.ImportFrom) else None
    if path is None or str(path) in reading:
        return statement
    assert isinstance(statement, ast.ImportFrom)
    names = [alias.name for alias in statement.names]
    try:
        found = load_kernels(path.read_text(encoding="utf-8"), str(path), names=names, reading=reading)
    except (OSError, UnicodeDecodeError, SyntaxError):
        return statement
    missing = []
    for alias in statement.names:
        inner = _inner_module(path, alias.name, reading)
        if alias.name in found.namespace:
            value, source = found.namespace[alias.name], found.elsewhere.get(alias.name, str(path))
        elif inner is not None:
            value, source = inner, str(inner.__file__)
        else:
            missing.append(alias)
            continue
        loaded.namespace[bound_name(alias)] = value
        loaded.elsewhere[bound_name(alias)] = source
    rest = ast.ImportFrom(statement.module, missing, statement.level)
    return ast.copy_location(rest, statement) if missing else None


def _inner_module(package: Path, name: str, reading: frozenset[str]) -> ModuleType | None:
    """The kernels of a module inside a package, as a module."""
    path = package.parent / f"{name}.py"
    if package.name != "__init__.py" or not path.is_file() or str(path) in reading:
        return None
    try:
        found = load_kernels(path.read_text(encoding="utf-8"), str(path), reading=reading)
    except (OSError, UnicodeDecodeError, SyntaxError):
        return None
    made = ModuleType(name)
    vars(made).update(found.namespace)
    return made


def _neighbour(statement: ast.ImportFrom, file: Path) -> Path | None:
    """The file of the module that is imported from, if it is in the package, or just the folder, that a file is in."""
    folder = file.absolute().parent
    parts = statement.module.split(".") if statement.module else []
    if parts and is_stand_in(statement.module or ""):
        return None
    for _ in range(statement.level - 1):
        folder = folder.parent
    roots = [folder]
    while not statement.level and (roots[-1] / "__init__.py").is_file():
        roots.append(roots[-1].parent)
    for root in roots:
        path = root.joinpath(*parts)
        for candidate in (path.with_suffix(".py") if parts else path, path / "__init__.py"):
            if candidate.is_file():
                return candidate
    return None


def kernels_in(namespace: dict[str, Any]) -> Iterator[tuple[str, JitFunction | Tuned]]:
    """The kernels and kernel functions of a module's namespace, by name, in order of definition."""
    for name, value in namespace.items():
        if isinstance(value, (JitFunction, Tuned)) and getattr(value, "__name__", None) == name:
            yield name, value


__all__ = ["Loaded", "kernels_in", "load_kernels", "load_source"]
