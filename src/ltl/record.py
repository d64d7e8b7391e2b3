"""Recording launches of Triton kernels, on the machine that runs them, in the form that `loomc replay` reads.

    with loom.triton.record("launches"):
        kernel[grid](x, y, n, BLOCK=128)

Each launch becomes a folder: source, intermediate forms, arguments before and after (docs/replay.md). It needs Triton
and torch; Triton's interpreter is recorded as well as a GPU.
"""

from __future__ import annotations

import ast
import functools
import inspect
import json
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import numpy as np

from loom_core.base.syntax_trees import parse

_SCALARS: Final = (bool, int, float, str, type(None))
_TENSOR_TYPES: Final = {
    "bool": "i1", "uint8": "u8", "int8": "i8", "int16": "i16", "int32": "i32", "int64": "i64", "uint16": "u16",
    "uint32": "u32", "uint64": "u64", "float16": "fp16", "bfloat16": "bf16", "float32": "fp32", "float64": "fp64",
    "float8_e4m3fn": "fp8e4nv", "float8_e5m2": "fp8e5",
}  # fmt: skip


@contextmanager
def record(
    folder: str | Path, *, limit: int | None = None, select: Callable[[str], bool] | None = None
) -> Iterator[Path]:
    """Record every launch of a Triton kernel inside the block into `folder`, one folder a launch.

    limit: how many launches of each kernel to record, all by default. select: which kernels, by name.
    Launches with arguments of other kinds than tensors, tensor descriptors, numbers, strings, None and tuples of these
    are left alone. ImportError where Triton is not installed.
    """
    recorder = Recorder(Path(folder), limit, select)
    patched: list[tuple[Any, Any]] = []
    for kind in _launching_classes():
        original = kind.run
        patched.append((kind, original))
        setattr(kind, "run", _recording(original, recorder))  # noqa: B010 - a class of another package
    try:
        yield recorder.folder
    finally:
        for kind, original in patched:
            setattr(kind, "run", original)  # noqa: B010


def _launching_classes() -> list[Any]:
    from triton.runtime.interpreter import InterpretedFunction
    from triton.runtime.jit import JITFunction

    return [JITFunction, InterpretedFunction]


def _recording(original: Callable[..., Any], recorder: Recorder) -> Callable[..., Any]:
    @functools.wraps(original)
    def run(self: Any, *args: Any, grid: Any, warmup: bool = False, **kwargs: Any) -> Any:
        launch = None if warmup else recorder.begin(self, args, kwargs, grid)
        result = original(self, *args, grid=grid, warmup=warmup, **kwargs)
        if launch is not None:
            recorder.end(launch, result)
        return result

    return run


class Launch:
    """A launch on its way: what is known before it runs."""

    def __init__(self, kernel: Any, values: dict[str, Any], static: set[str], grid: tuple[int, ...]) -> None:
        self.kernel = kernel
        self.values = values
        self.static = static
        self.grid = grid
        self.before = {name: storage_bytes(tensor) for name, tensor in self.tensors().items()}

    def tensors(self) -> dict[str, Any]:
        """The tensors among the arguments, those of descriptors too."""
        found = {name: _tensor_of(value) for name, value in self.values.items()}
        return {name: tensor for name, tensor in found.items() if tensor is not None}


def _tensor_of(value: Any) -> Any:
    if hasattr(value, "untyped_storage"):
        return value
    base = getattr(value, "base", None)
    return base if hasattr(base, "untyped_storage") else None


def storage_bytes(tensor: Any) -> Any:
    """The bytes from a torch tensor's first element to the end of its storage, as a NumPy array."""
    import torch

    storage = tensor.untyped_storage()
    whole = torch.tensor([], dtype=torch.uint8, device=tensor.device).set_(storage)
    return whole[tensor.storage_offset() * tensor.element_size() :].cpu().numpy().copy()


class Recorder:
    """Writes launches into a folder."""

    def __init__(self, folder: Path, limit: int | None, select: Callable[[str], bool] | None) -> None:
        self.folder = folder
        self.limit = limit
        self.select = select
        self.counts: dict[str, int] = {}

    def begin(self, kernel: Any, args: Sequence[Any], kwargs: Mapping[str, Any], grid: Any) -> Launch | None:
        """Note the arguments of a launch; None if it is not to be recorded."""
        name = kernel.fn.__name__
        if self.select is not None and not self.select(name):
            return None
        if self.limit is not None and self.counts.get(name, 0) >= self.limit:
            return None
        signature = inspect.signature(kernel.fn)
        given = {key: value for key, value in kwargs.items() if key in signature.parameters}
        bound = signature.bind(*args, **given)
        bound.apply_defaults()
        values = dict(bound.arguments)
        if not all(_recordable(value) for value in values.values()):
            return None
        static = {key for key, p in signature.parameters.items() if _is_constexpr(p.annotation)}
        sizes = grid({**values, **kwargs}) if callable(grid) else grid
        sizes = (sizes,) if isinstance(sizes, int) else tuple(sizes)
        return Launch(kernel, values, static, (*(int(size) for size in sizes), 1, 1)[:3])

    def end(self, launch: Launch, compiled: Any) -> Path:
        """Write a launch that has run; gives its folder."""
        name = launch.kernel.fn.__name__
        number = self.counts.get(name, 0)
        self.counts[name] = number + 1
        folder = self.folder / f"{name}__{number:02d}"
        folder.mkdir(parents=True, exist_ok=True)
        arrays: dict[str, Any] = {}
        for index, (key, _) in enumerate(launch.values.items()):
            if key not in launch.before:
                continue
            after = storage_bytes(launch.tensors()[key])
            arrays[f"before_arg{index}"] = launch.before[key]
            if not np.array_equal(after, launch.before[key]):
                arrays[f"after_arg{index}"] = after
        np.savez_compressed(folder / "data.npz", allow_pickle=False, **arrays)
        (folder / "meta.json").write_text(json.dumps(describe(launch), indent=1), encoding="utf-8")
        (folder / "kernel.py").write_text(source_of(launch.kernel), encoding="utf-8")
        for form, text in getattr(compiled, "asm", {}).items():
            if form in ("ttir", "ttgir"):
                (folder / f"kernel.{form}").write_text(str(text), encoding="utf-8")
        return folder


def _recordable(value: Any) -> bool:
    if isinstance(value, tuple):
        return all(isinstance(item, _SCALARS) for item in value)
    return isinstance(value, _SCALARS) or _tensor_of(value) is not None


def _is_constexpr(annotation: Any) -> bool:
    if isinstance(annotation, str):
        return annotation.rsplit(".", 1)[-1].strip() == "constexpr"
    return getattr(annotation, "__name__", "") == "constexpr"


def describe(launch: Launch) -> dict[str, Any]:
    """meta.json of a launch."""
    import torch
    import triton

    groups: dict[int, int] = {}
    arguments = [_describe(name, value, name in launch.static, groups) for name, value in launch.values.items()]
    return {
        "name": launch.kernel.fn.__name__,
        "grid": list(launch.grid),
        "args": arguments,
        "constants": {f"({i},)": entry["value"] for i, entry in enumerate(arguments) if entry["type"] == "constexpr"},
        "signature": {entry["name"]: entry["type"] for entry in arguments},
        "triton": triton.__version__,
        "torch": torch.__version__,
    }


def _describe(name: str, value: Any, static: bool, groups: dict[int, int]) -> dict[str, Any]:
    tensor = _tensor_of(value)
    if tensor is None:
        return {"name": name, "type": _scalar_type(value, static), "kind": "scalar", "value": _json_value(value)}
    dtype = str(tensor.dtype).removeprefix("torch.")
    group = groups.setdefault(tensor.untyped_storage().data_ptr(), len(groups))
    entry: dict[str, Any] = {
        "name": name,
        "type": f"*{_TENSOR_TYPES[dtype]}",
        "kind": "tensor",
        "dtype": dtype,
        "shape": list(tensor.shape),
        "stride": list(tensor.stride()),
        "alias_group": group,
    }
    if tensor is not value:
        entry |= {"kind": "descriptor", "block_shape": [int(size) for size in value.block_shape]}
        entry |= {"shape": [int(size) for size in value.shape], "stride": [int(step) for step in value.strides]}
    return entry


def _scalar_type(value: Any, static: bool) -> str:
    if static or value is None or isinstance(value, (str, tuple)):
        return "constexpr"
    if isinstance(value, bool):
        return "i1"
    if isinstance(value, float):
        return "fp32"
    return "i32" if -(1 << 31) <= value < 1 << 31 else "i64" if value < 1 << 63 else "u64"


def _json_value(value: Any) -> Any:
    if isinstance(value, float) and not np.isfinite(value):
        return str(value)
    return list(value) if isinstance(value, tuple) else value


# ---- source ----------------------------------------------------------------------------------------------------------


def source_of(kernel: Any) -> str:
    """The source of a kernel and of what it calls and reads of its module, without decorators; helpers first."""
    parts: dict[str, str] = {}
    _collect(kernel.fn, parts)
    return "\n\n".join(parts.values()) + "\n"


def _collect(function: Any, parts: dict[str, str]) -> None:
    tree = parse(textwrap.dedent(inspect.getsource(function))).body[0]
    assert isinstance(tree, ast.FunctionDef)
    tree.decorator_list = []
    own = {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)}
    own |= {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)} - own
    parts.setdefault(function.__name__, "")
    outside = {**function.__globals__, **inspect.getclosurevars(function).nonlocals}
    for name in sorted(names & outside.keys() - parts.keys()):
        value = outside[name]
        plain = value.value if type(value).__name__ == "constexpr" else value
        inner = getattr(value, "fn", value)
        if isinstance(plain, (bool, int, float, str)):
            finite = not isinstance(plain, float) or np.isfinite(plain)
            parts[name] = f"{name} = {plain!r}" if finite else f'{name} = float("{plain}")'
        elif inspect.isfunction(inner) and inner is not function and not (inner.__module__ or "").startswith("triton."):
            _collect(inner, parts)
    # A function stands behind what it uses.
    parts.pop(function.__name__)
    parts[function.__name__] = ast.unparse(tree)


__all__ = ["record"]
