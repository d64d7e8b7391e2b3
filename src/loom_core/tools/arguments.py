"""Arguments of a launch from the command line: arrays of an .npz file, `--arg` texts, the grid."""

from __future__ import annotations

import math
import re
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from loom_core.base.dtype import DType, by_name
from loom_core.base.location import Location
from loom_core.base.units import byte_count
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
from loom_core.tools.file_kinds import identify

Array = npt.NDArray[Any]
_INTEGER_TEXT: Final = re.compile(r"[+-]?(0[xX][0-9a-fA-F]+|0|[1-9][0-9]*)")
_BUFFER_TEXT: Final = re.compile(r"(\w+)\[([^\[\]]*)\]")
_MOST_DIGITS: Final = 40
"""No number with more is a size or fits a register; Python refuses to read numbers of thousands of digits."""
_MOST_DIMENSIONS: Final = 64
_ADDRESSABLE: Final = 1 << 47
"""No host has an array of so many bytes."""
_ZIP_MAGICS: Final = (b"PK\x03\x04", b"PK\x05\x06")
_NPY_MAGIC: Final = b"\x93NUMPY"
_PROBED_BYTES: Final = 1 << 16


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
    """The arrays of an .npz file, by name. UnreadableFile if it is not one, or holds something else than numbers."""
    where = Location(str(path))
    try:
        with path.open("rb") as file:
            _refuse_other_kinds(where, file.read(_PROBED_BYTES))
        with np.load(path, allow_pickle=False) as found:
            return {name: _member(where, found, name) for name in found.files}
    except OSError as error:
        raise UnreadableFile(where, reason=error.strerror or str(error)) from error
    except (ValueError, EOFError, RuntimeError, zipfile.BadZipFile, zlib.error) as error:
        raise UnreadableFile(
            where, reason="it begins like an .npz file, but is cut off, damaged or encrypted"
        ) from error
    except MemoryError as error:
        raise UnreadableFile(where, reason="its arrays do not fit this computer's memory") from error


def _refuse_other_kinds(where: Location, start: bytes) -> None:
    if start.startswith(_NPY_MAGIC):
        raise UnreadableFile(where, reason="it holds one array without a name; save it with numpy.savez(path, x=x)")
    if not start.startswith(_ZIP_MAGICS):
        reason = f"this is not an .npz file but {identify(start)}; write one with numpy.savez(path, x=x, ...)"
        raise UnreadableFile(where, reason=reason)


def _member(where: Location, found: Any, name: str) -> Array:
    try:
        array = found[name]
    except ValueError as error:
        # NumPy asks to be allowed to unpickle it, which could run any code.
        reason = f"its member {name} holds Python objects, or is damaged; kernels take arrays of numbers"
        raise UnreadableFile(where, reason=reason) from error
    if not isinstance(array, np.ndarray):
        raise UnreadableFile(where, reason=f"its member {name} is not an array")
    return array


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
    if len(parts) > 3 or not all(re.fullmatch(r"\s*[0-9]+\s*", part) for part in parts):
        raise BadGrid(text=text, reason="not one to three whole numbers")
    sizes = [_natural(part) for part in parts]
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
        dtype = by_name(buffer[1])
    except KeyError as error:
        raise BadArgument(text=text, reason=str(error.args[0])) from None
    return name, _zeros(text, buffer[2], dtype)


def _zeros(text: str, shape: str, dtype: DType) -> Array:
    parts = [part.strip() for part in shape.split(",")]
    if parts[-1] == "":  # `f32[]`, `f32[4,]`
        parts.pop()
    if not all(re.fullmatch(r"[0-9]+", part) for part in parts):
        raise BadArgument(text=text, reason=f"[{shape}] is not a list of sizes")
    if len(parts) > _MOST_DIMENSIONS:
        raise BadArgument(text=text, reason=f"{len(parts)} dimensions; {_MOST_DIMENSIONS} are the most")
    sizes = [_natural(part) for part in parts]
    needed = math.prod(size or 1 for size in sizes) * dtype.itemsize
    if needed > _ADDRESSABLE:
        raise BadArgument(text=text, reason="no computer has memory for so many elements")
    try:
        return np.zeros(sizes, dtype.numpy)
    except MemoryError:
        raise BadArgument(text=text, reason=f"this computer has no {byte_count(needed)} for it") from None


def _natural(digits: str) -> int:
    """A whole number; one of very many digits as some number that is too large for every use."""
    digits = digits.strip()
    return int(digits) if len(digits) <= _MOST_DIGITS else 10**_MOST_DIGITS


def _parse_scalar(text: str, value: str) -> Array:
    if _INTEGER_TEXT.fullmatch(value):
        integer = int(value, 0) if len(value) <= _MOST_DIGITS else 10**_MOST_DIGITS
        if not -(1 << 63) <= integer < 1 << 64:
            raise BadArgument(text=text, reason="the integer exceeds 64 bits")
        return np.array(integer)
    try:
        return np.array(float(value))
    except ValueError:
        raise BadArgument(text=text, reason=f"{value!r} is neither a number nor a typed shape") from None


def prepare(abi: Abi, arrays: Mapping[str, Array], typed: Sequence[str], grid: tuple[int, int, int]) -> Launch:
    """Match arrays and `--arg` texts (which win) with an object's arguments; buffers are copied.

    Errors: UnknownArgument, MissingArgument, WrongArgument.
    """
    written = dict(parse_argument(text) for text in typed)
    given = {**arrays, **written}
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
        value = given[argument.name]
        try:
            if argument.kind == "scalar":
                registers[argument.slot] = _register_bits(argument, value)
            elif argument.name in written:
                buffers[argument.name] = _checked(argument, value)
            else:
                buffers[argument.name] = np.array(_checked(argument, value), order="C", copy=True)
        except MemoryError:
            given_as = f"an array of {byte_count(value.nbytes)}, which this computer has no memory to copy"
            raise WrongArgument(name=argument.name, kind="buffer", expected=argument.dtype, given=given_as) from None
        except _Mismatch as mismatch:
            hint = _hint(argument) if argument.name in written else None
            raise WrongArgument(
                name=argument.name, kind=argument.kind, expected=argument.dtype, given=str(mismatch), hint=hint
            ) from None
    return Launch(buffers, registers)


class _Mismatch(Exception):
    """What was given for an argument, in words, where it is of another kind."""


def _hint(argument: AbiArg) -> str:
    """How to write this argument on the command line."""
    if argument.kind == "buffer":
        return f"write --arg {argument.name}={argument.dtype}[...] with the array's sizes"
    if by_name(argument.dtype).is_float:
        return f"write a number, as in --arg {argument.name}=0.5"
    return f"write a whole number, as in --arg {argument.name}=1024"


def _checked(argument: AbiArg, array: Array) -> Array:
    """The array as elements of the argument's type. _Mismatch if it is of another type."""
    dtype = by_name(argument.dtype).numpy
    # .npz files keep bf16 and fp8 as bare bytes of the same width.
    if array.dtype.kind == "V" and array.dtype.names is None and array.dtype.itemsize == dtype.itemsize:
        array = np.ascontiguousarray(array).view(dtype)
    if array.dtype != dtype:
        raise _Mismatch(str(array.dtype) if array.ndim else f"the number {array[()]}")
    return array


def _register_bits(argument: AbiArg, array: Array) -> int:
    """The register's 64 bits as int64: an integer's value, a float's IEEE bits zero extended."""
    dtype = by_name(argument.dtype)
    if array.size != 1:
        raise _Mismatch(f"an array of shape {array.shape}")
    value = array.reshape(())[()]
    if dtype.is_float:
        if not np.issubdtype(array.dtype, np.number):
            raise _Mismatch(f"{array.dtype}")
        with np.errstate(over="ignore"):
            raw = np.array(value, dtype.numpy).tobytes()
        return int.from_bytes(raw, "little", signed=dtype.itemsize == 8)
    if array.dtype.kind not in "iub":
        raise _Mismatch(f"{value} ({array.dtype})")
    if not dtype.min_value <= int(value) <= dtype.max_value:
        raise _Mismatch(f"{int(value)}, which is outside {dtype.min_value} .. {dtype.max_value}")
    integer = int(value)
    return integer - (1 << 64) if integer >= 1 << 63 else integer
