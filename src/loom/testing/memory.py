"""Arrays at chosen places: addresses, bounds and strides of a launch, the same in a search and in what it saves."""

from __future__ import annotations

import base64
import zlib
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from loom_core.base.dtype import from_numpy

Array = npt.NDArray[Any]
ALIGNMENT: Final = 128


def placed(values: Any, at: int = 0) -> Array:
    """A copy of one-dimensional values whose address leaves the rest `at` when divided by 128.

    It is all that kernels may touch: what lies before and behind it is out of bounds.
    """
    values = np.asarray(values)
    room = bytearray(values.nbytes + 2 * ALIGNMENT)
    address = np.frombuffer(room, np.uint8).ctypes.data
    start = (at - address) % ALIGNMENT
    memory: Array = np.frombuffer(memoryview(room)[start : start + values.nbytes], np.uint8).view(values.dtype)
    memory[:] = values
    return memory


def view(memory: Array, start: int, shape: Sequence[int], strides: Sequence[int], *, torch: bool = False) -> Any:
    """An array of elements of `memory`, from element `start` on, strides in elements; NumPy's or PyTorch's."""
    if torch:
        return _tensor(memory, start, shape, strides)
    steps = [step * memory.itemsize for step in strides]
    # Not as_strided, which does not take the 8-bit floats.
    return np.ndarray(tuple(shape), memory.dtype, memory.view(np.uint8), start * memory.itemsize, steps)


def _tensor(memory: Array, start: int, shape: Sequence[int], strides: Sequence[int]) -> Any:
    import torch

    from libloom.arrays import torch_dtype

    whole = torch.from_numpy(memory.view(np.uint8)).view(torch_dtype(from_numpy(memory.dtype)))
    return whole.as_strided(tuple(shape), tuple(strides), start)


def as_numpy(value: Any) -> Array:
    """An array of any library as NumPy's; shared where it can be."""
    if type(value).__module__.partition(".")[0] != "torch":
        return np.asarray(value)
    import torch

    from libloom.arrays import view_array

    value = value.detach().contiguous()
    seen = view_array(value)
    assert seen is not None
    flat: Array = value.reshape(-1).view(torch.uint8).numpy()
    return flat.view(seen.dtype.numpy).reshape(tuple(value.shape))


def packed(values: Array) -> str:
    """The bytes of an array as text, for `unpacked`."""
    return base64.b85encode(zlib.compress(values.tobytes(), 9)).decode()


def unpacked(text: str, dtype: Any) -> Array:
    """The array that `packed` made a text of."""
    return np.frombuffer(zlib.decompress(base64.b85decode(text)), np.uint8).view(dtype)
