"""Triton's own frontend: the TTIR of a recorded kernel before any pass. It needs no GPU."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from loom_core.tools.recording import Recording, ScalarArgument


def unoptimised_ttir(recording: Recording, folder: Path) -> str:
    """The text that Triton makes of a recording's source, which is written to `folder` with decorators first."""
    function = _jitted(recording, folder)
    meta = json.loads((recording.folder / "meta.json").read_text(encoding="utf-8"))
    statics = {a.name: a.value for a in recording.arguments if isinstance(a, ScalarArgument) and a.static}
    return module_text(function, {entry["name"]: entry["type"] for entry in meta["args"]}, statics)


def module_text(
    function: Any,
    signature: dict[str, str],
    constants: dict[str, Any],
    *,
    stages: Sequence[str] = (),
    capability: int = 90,
) -> str:
    """The text of a Triton function's module after `stages` of the backend for NVIDIA's GPUs ("ttir", "ttgir")."""
    from triton._C.libtriton import ir
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource
    from triton.compiler.compiler import make_backend

    keys = {(function.arg_names.index(name),): value for name, value in constants.items()}
    types = {**signature, **dict.fromkeys(constants, "constexpr")}
    source = ASTSource(function, types, keys, {})
    target = GPUTarget("cuda", capability, 32)
    backend = make_backend(target)
    options = backend.parse_options({})
    context = ir.context()
    ir.load_dialects(context)
    backend.load_dialects(context)
    code = backend.get_codegen_implementation(options)
    module = source.make_ir(target, options, code, backend.get_module_map(), context)
    passes: dict[str, Any] = {}
    backend.add_stages(passes, options, source.language)
    metadata: dict[str, Any] = {**options.__dict__}
    for stage in stages:
        module = passes[stage](module, metadata)
    return str(module)


COMBINE = {
    "add": "a + b",
    "mul": "a * b",
    "maximum": "triton_helpers.maximum(a, b)",
    "minimum": "triton_helpers.minimum(a, b)",
}


def _jitted(recording: Recording, folder: Path) -> Any:
    """The kernel as a Triton function; Triton wants its source in a file."""
    import triton
    import triton.language as tl
    from triton.language.extra import libdevice

    text = recording.source.read_text(encoding="utf-8")
    # Inductor's combine functions are named after what they do; recordings do not hold them.
    for name in sorted(set(re.findall(r"_triton_helper_fn_\w+", text))):
        operation = name.removeprefix("_triton_helper_fn_").rstrip("0123456789")
        text += f"\ndef {name}(a, b):\n    return {COMBINE[operation]}\n"
    tree = ast.parse(text)
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            node.decorator_list = [ast.parse("triton.jit", mode="eval").body]
    path = folder / "kernel_with_decorators.py"
    path.write_text(ast.unparse(ast.fix_missing_locations(tree)), encoding="utf-8")
    namespace: dict[str, Any] = {"triton": triton, "tl": tl, "libdevice": libdevice, "__name__": "kernels"}
    if "triton_helpers" in text or "tl_math" in text:
        from torch._inductor.runtime import triton_helpers

        namespace |= {"triton_helpers": triton_helpers, "tl_math": triton_helpers.math}
    exec(compile(path.read_text(encoding="utf-8"), str(path), "exec"), namespace)
    return namespace[recording.name]
