"""Arguments of a launch from the command line: arrays of an .npz file, `--arg` texts, the grid."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from loom_core.base.dtype import by_name
from loom_core.base.location import Location
from loom_core.objfile import Abi, AbiArg
from loom_core.tools.diagnostics import (
    BadArgument,
    BadGrid,
    MissingArgument,
    UnknownArgument,
    UnreadableFile,
    UnwritableFile,
    WrongArgument,
)

Array = npt.NDArray[Any]
_INTEGER_TEXT: Final = re.compile(r"[+-]?(0[xX][0-9a-fA-F]+|0|[1-9]\d*)")
_BUFFER_TEXT: Final = re.compile(r"(\w+)\[([\d,\s]*)\]")


@dataclass(frozen=True)
class Launch:
    """What a run needs: one C-contiguous array for each buffer, by argument name, and the initial registers."""

    buffers: dict[str, Array]
    registers: dict[int, int]

    @property
    def bindings(self) -> list[tuple[int, int, int]]:
        """For each buffer in ABI order its address, and the first and one past the last legal byte offset."""
        return [(array.ctypes.data, 0, array.nbytes) for array in self.buffers.values()]


def read_arrays(path: Path) -> dict[str, Array]:
    """The arrays of an .npz file, by name. UnreadableFile if it is not one (pickled objects are refused)."""
    where = Location(str(path))
    try:
        found = np.load(path, allow_pickle=False)
        if isinstance(found, np.ndarray):
            raise UnreadableFile(where, reason="it holds one array without a name; save it with numpy.savez")
        with found:
            return {name: found[name] for name in found.files}
    except (OSError, ValueError, EOFError, zipfile.BadZipFile) as error:
        raise UnreadableFile(where, reason=str(error)) from error


def write_arrays(path: Path, arrays: Mapping[str, Array]) -> None:
    """Write an .npz file of exactly this name. UnwritableFile if that fails."""
    try:
        with path.open("wb") as file:
            np.savez(file, allow_pickle=False, **arrays)
    except OSError as error:
        raise UnwritableFile(Location(str(path)), reason=error.strerror or str(error)) from error


def parse_grid(text: str) -> tuple[int, int, int]:
    """`8`, `4,2` or `4x2x1` -> the grid in x, y, z; absent dimensions are 1."""
    parts = re.split(r"[,x]", text)
    if len(parts) > 3 or not all(part.strip().isdigit() for part in parts):
        raise BadGrid(text=text, reason="not one to three whole numbers")
    sizes = [int(part) for part in parts]
    if not all(1 <= size < 2**31 for size in sizes):
        raise BadGrid(text=text, reason="each must be from 1 to 2147483647")
    x, y, z = (*sizes, 1, 1)[:3]
    return x, y, z


def parse_argument(text: str) -> tuple[str, Array]:
    """`x=f32[1024,64]` -> a zeroed array, `n=1024` or `eps=1e-5` -> an array without dimensions."""
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise BadArgument(text=text, reason="there is no `name=`")
    buffer = _BUFFER_TEXT.fullmatch(value.strip())
    if buffer is None:
        return name, _parse_scalar(text, value.strip())
    try:
        dtype = by_name(buffer[1]).numpy
    except KeyError as error:
        raise BadArgument(text=text, reason=str(error.args[0])) from None
    return name, np.zeros([int(size) for size in buffer[2].split(",") if size.strip()], dtype)


def _parse_scalar(text: str, value: str) -> Array:
    if _INTEGER_TEXT.fullmatch(value):
        return np.array(int(value, 0))
    try:
        return np.array(float(value))
    except ValueError:
        raise BadArgument(text=text, reason=f"{value!r} is neither a number nor a typed shape") from None


def prepare(abi: Abi, arrays: Mapping[str, Array], typed: Sequence[str], grid: tuple[int, int, int]) -> Launch:
    """Match arrays and `--arg` texts (which win) with an object's arguments; buffers are copied.

    Errors: UnknownArgument, MissingArgument, WrongArgument.
    """
    given = {**arrays, **dict(parse_argument(text) for text in typed)}
    known = {argument.name for argument in abi.args}
    for name in given:
        if name not in known:
            raise UnknownArgument(name=name, known=", ".join(argument.name for argument in abi.args) or "none")
    buffers: dict[str, Array] = {}
    registers = dict(zip(abi.grid_registers, grid, strict=True))
    for argument in abi.args:
        if argument.name not in given:
            example = f"{argument.name}={f'{argument.dtype}[1024]' if argument.kind == 'buffer' else '1024'}"
            raise MissingArgument(name=argument.name, kind=argument.kind, dtype=argument.dtype, example=example)
        if argument.kind == "buffer":
            buffers[argument.name] = _buffer(argument, given[argument.name])
        else:
            registers[argument.slot] = _register_bits(argument, given[argument.name])
    return Launch(buffers, registers)


def _buffer(argument: AbiArg, array: Array) -> Array:
    dtype = by_name(argument.dtype).numpy
    # .npz files keep bf16 and fp8 as bare bytes of the same width.
    if array.dtype.kind == "V" and array.dtype.names is None and array.dtype.itemsize == dtype.itemsize:
        array = np.ascontiguousarray(array).view(dtype)
    if array.dtype != dtype:
        raise WrongArgument(name=argument.name, kind="buffer", expected=argument.dtype, given=f"{array.dtype}")
    return np.array(array, order="C", copy=True)


def _register_bits(argument: AbiArg, array: Array) -> int:
    """The register's 64 bits as int64: an integer's value, a float's IEEE bits zero extended."""
    dtype = by_name(argument.dtype)

    def wrong(given: str) -> WrongArgument:
        return WrongArgument(name=argument.name, kind="scalar", expected=argument.dtype, given=given)

    if array.size != 1:
        raise wrong(f"an array of shape {array.shape}")
    value = array.reshape(())[()]
    if dtype.is_float:
        if not np.issubdtype(array.dtype, np.number):
            raise wrong(f"{array.dtype}")
        raw = np.array(value, dtype.numpy).tobytes()
        return int.from_bytes(raw, "little", signed=dtype.itemsize == 8)
    if array.dtype.kind not in "iub":
        raise wrong(f"{array.dtype}")
    if not dtype.min_value <= int(value) <= dtype.max_value:
        raise wrong(f"{int(value)}, which is outside {dtype.min_value} .. {dtype.max_value}")
    integer = int(value)
    return integer - (1 << 64) if integer >= 1 << 63 else integer
