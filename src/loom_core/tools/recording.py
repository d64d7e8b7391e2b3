"""Recorded launches: a folder with a kernel's source and IR, its arguments before and after, and how it was launched.

kernel.py     the source: the kernel and functions that it calls, without decorators
meta.json     name, grid, and for each argument name, kind, dtype, shape, stride, alias_group or value
data.npz      before_argI: the bytes from argument I's first element to the end of its storage; after_argI: the same
              afterwards, where they changed
kernel.ttir, kernel.ttgir   Triton's intermediate forms
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from loom_core.base.dtype import DType, by_name, from_numpy
from loom_core.base.location import Location
from loom_core.tools.diagnostics import BadRecording

Array = npt.NDArray[Any]

_TORCH_NAMES = {"bfloat16": "bf16", "float8_e4m3fn": "f8e4m3", "float8_e5m2": "f8e5m2"}


@dataclass(frozen=True)
class TensorArgument:
    """One array argument: `alias_group` numbers the storages, `before` and `after` are bytes from its first element."""

    name: str
    dtype: DType
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    alias_group: int
    before: npt.NDArray[np.uint8]
    after: npt.NDArray[np.uint8]
    block_shape: tuple[int, ...] | None = None


@dataclass(frozen=True)
class ScalarArgument:
    """One number, string or None; `static` where it was a constexpr. `type` is Triton's name of its type."""

    name: str
    value: Any
    static: bool
    type: str


Argument = TensorArgument | ScalarArgument


@dataclass(frozen=True)
class Recording:
    """A folder as read. `arguments` are in the order of the kernel's parameters."""

    folder: Path
    name: str
    grid: tuple[int, ...]
    arguments: tuple[Argument, ...]

    @property
    def run_time(self) -> tuple[Argument, ...]:
        """The arguments that Triton's IR has parameters for."""
        return tuple(a for a in self.arguments if not (isinstance(a, ScalarArgument) and a.static))

    @property
    def source(self) -> Path:
        return self.folder / "kernel.py"

    @property
    def tensors(self) -> list[TensorArgument]:
        return [argument for argument in self.arguments if isinstance(argument, TensorArgument)]


def read_recording(folder: Path) -> Recording:
    """The recording in a folder. BadRecording for what is missing or does not fit."""
    where = Location(str(folder))
    try:
        meta = json.loads((folder / "meta.json").read_text(encoding="utf-8"))
        with np.load(folder / "data.npz", allow_pickle=False) as data:
            stored = {key: data[key] for key in data.files}
        arguments = tuple(_argument(i, entry, stored) for i, entry in enumerate(meta["args"]))
        return Recording(folder, str(meta["name"]), tuple(int(size) for size in meta["grid"]), arguments)
    except (OSError, ValueError, KeyError, TypeError, zipfile.BadZipFile) as error:
        reason = f"there is no {error}" if isinstance(error, KeyError) else str(error)
        raise BadRecording(where, reason=reason) from error


def _argument(index: int, entry: Mapping[str, Any], stored: Mapping[str, Array]) -> Argument:
    if entry["kind"] == "scalar":
        return ScalarArgument(entry["name"], _value(entry["value"]), entry["type"] == "constexpr", entry["type"])
    before = stored[f"before_arg{index}"].reshape(-1).view(np.uint8)
    after = stored.get(f"after_arg{index}", before).reshape(-1).view(np.uint8)
    if before.shape != after.shape:
        raise ValueError(f"argument {entry['name']} has {before.size} bytes before and {after.size} after")
    block = entry.get("block_shape")
    return TensorArgument(
        entry["name"],
        _dtype(entry["dtype"]),
        tuple(int(size) for size in entry["shape"]),
        tuple(int(step) for step in entry["stride"]),
        int(entry["alias_group"]),
        before,
        after,
        None if block is None else tuple(int(size) for size in block),
    )


def _value(value: Any) -> Any:
    """A JSON value as it was: a list was a tuple; floats that JSON has no form for are strings."""
    if isinstance(value, list):
        return tuple(_value(item) for item in value)
    if isinstance(value, str) and value in ("inf", "-inf", "nan"):
        return float(value)
    return value


def _dtype(name: str) -> DType:
    return by_name(_TORCH_NAMES[name]) if name in _TORCH_NAMES else from_numpy(name)


class Memory:
    """The storages of a recording's arrays, rebuilt: one buffer for each alias group.

    The recorded bytes of a group's members end together, at the end of their storage, so the longest shows where the
    others begin.
    """

    def __init__(self, recording: Recording) -> None:
        self._groups: dict[int, npt.NDArray[np.uint8]] = {}
        for argument in recording.tensors:
            held = self._groups.get(argument.alias_group)
            if held is None or held.size < argument.before.size:
                self._groups[argument.alias_group] = argument.before
        self._groups = {group: np.array(data) for group, data in self._groups.items()}

    def bytes_of(self, argument: TensorArgument) -> npt.NDArray[np.uint8]:
        """The bytes from the argument's first element to the end of its storage, shared."""
        storage = self._groups[argument.alias_group]
        return storage[storage.size - argument.before.size :]

    def argument(self, argument: Argument) -> Any:
        """What the launch gets for an argument."""
        if isinstance(argument, ScalarArgument):
            return argument.value
        if argument.block_shape is None:
            return self.array(argument)
        from ltl.host_descriptor import TensorDescriptor

        return TensorDescriptor(self.array(argument), argument.shape, argument.strides, argument.block_shape)

    def array(self, argument: TensorArgument) -> Array:
        """The argument as an array that shares the storage."""
        itemsize = argument.dtype.itemsize
        data = self.bytes_of(argument)
        flat = data[: data.size // itemsize * itemsize].view(argument.dtype.numpy)
        steps = tuple(step * itemsize for step in argument.strides)
        if flat.size == 0:
            return flat.reshape(argument.shape)
        return np.lib.stride_tricks.as_strided(flat, argument.shape, steps)


def elements(data: npt.NDArray[np.uint8], dtype: DType) -> Array:
    """Bytes as elements; odd ones at the end are left out."""
    return np.ascontiguousarray(data[: data.size // dtype.itemsize * dtype.itemsize]).view(dtype.numpy)
