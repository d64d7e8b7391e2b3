"""Kernels from source text that was written for Triton."""

from __future__ import annotations

import ast
import builtins
import linecache
import os
from collections.abc import Iterator
from types import FunctionType
from typing import Any

from ltl.jit import JitFunction
from ltl.migration import defined_names, needed_statements
from ltl.packages import import_name, names_for_kernels
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


def load_kernels(text: str, file: str) -> tuple[dict[str, Any], dict[str, str]]:
    """As `load_source`, of only what the module's kernels need, so that nothing else of it runs.

    Statements that fail are passed over: the second result says why, by the names that they would have defined.
    SyntaxError if the text is no Python.
    """
    namespace, failures = _namespace(text, file), {}
    for statement in needed_statements(ast.parse(text)):
        code = compile(ast.Module([statement], []), file, "exec", dont_inherit=True)
        try:
            exec(code, namespace)  # the user's own source, as above
        except Exception as error:
            # Reported by the caller for the kernels that need the names.
            reason = f"line {statement.lineno}: {type(error).__name__}: {error}"
            failures.update(dict.fromkeys(defined_names(statement), reason))
    return namespace, failures


def kernels_in(namespace: dict[str, Any]) -> Iterator[tuple[str, JitFunction | Tuned]]:
    """The kernels and kernel functions of a module's namespace, by name, in order of definition."""
    for name, value in namespace.items():
        if isinstance(value, (JitFunction, Tuned)) and value.__name__ == name:
            yield name, value


__all__ = ["kernels_in", "load_kernels", "load_source"]
