"""Kernels from source text that was written for Triton."""

from __future__ import annotations

import builtins
import linecache
import os
from collections.abc import Iterator
from types import FunctionType
from typing import Any

from ltl.jit import JitFunction
from ltl.packages import import_name, names_for_kernels
from ltl.tuning import Tuned


def load_source(text: str, file: str = "<triton source>", *, every: bool = False) -> dict[str, Any]:
    """Run source text of a module; gives its namespace, in which Triton's decorators have made kernels of LTL.

    The names triton, tl, triton_helpers, libdevice and tl_math are there without being imported. With `every`, plain
    functions become kernels too, as in recorded launches, whose decorators are gone. `file` is what diagnostics name.
    """
    if not os.path.exists(file):
        linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    namespace: dict[str, Any] = {
        **names_for_kernels(),
        "__name__": os.path.splitext(os.path.basename(file))[0],
        "__file__": file,
        "__builtins__": {**vars(builtins), "__import__": import_name},
    }
    exec(compile(text, file, "exec", dont_inherit=True), namespace)  # the user's own source, which is what is asked for
    if every:
        for name, value in list(namespace.items()):
            if isinstance(value, FunctionType) and value.__globals__ is namespace:
                namespace[name] = JitFunction(value)
    return namespace


def kernels_in(namespace: dict[str, Any]) -> Iterator[tuple[str, JitFunction | Tuned]]:
    """The kernels and kernel functions of a module's namespace, by name, in order of definition."""
    for name, value in namespace.items():
        if isinstance(value, (JitFunction, Tuned)) and value.__name__ == name:
            yield name, value


__all__ = ["kernels_in", "load_source"]
