"""Arrays of other libraries as the simulated machine sees them: an address, and the bytes around it that it may touch.

A kernel gets the address of element 0 of what it is passed; strides are the kernel's business. It may touch whatever
the array's owner holds: for NumPy the memory of the array that the view was made from, for torch the tensor's storage.
Those bounds are what the simulator checks.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from loom_core.base import dtype as core
from loom_core.base.dtype import DType


@dataclass(frozen=True, slots=True)
class ArrayView:
    """One array argument.

    `address` is that of element 0; bytes `low` <= b < `high` relative to it may be touched. `owner` keeps the memory
    alive. `kind` says in words what was passed.
    """

    dtype: DType
    address: int
    low: int
    high: int
    writable: bool
    kind: str
    owner: Any


class UnusableArray(Exception):
    """An array that no kernel can take; the text says why. Callers make a diagnostic of it that names the argument."""


def view_array(value: Any) -> ArrayView | None:
    """The view of an array of a known library; None if `value` is none. UnusableArray if kernels cannot take it."""
    if isinstance(value, np.ndarray):
        return _view_numpy(value)
    reader = _READERS.get(type(value).__module__.split(".", 1)[0])
    return None if reader is None else reader(value)


# ---- NumPy -----------------------------------------------------------------------------------------------------------


def _view_numpy(array: np.ndarray[Any, Any], kind: str = "NumPy array") -> ArrayView:
    dtype = _numpy_dtype(array.dtype)
    if not array.flags.aligned:
        raise UnusableArray(f"its elements are not aligned to {array.dtype.itemsize} bytes; copy it first")
    address: int = array.__array_interface__["data"][0]
    start, end = numpy_bounds(array)
    return ArrayView(dtype, address, start - address, end - address, array.flags.writeable, kind, array)


def _numpy_dtype(dtype: np.dtype[Any]) -> DType:
    try:
        return core.from_numpy(dtype)
    except TypeError:
        order = "; its byte order is foreign, use .astype()" if not dtype.isnative else ""
        raise UnusableArray(f"dtype {dtype} has no counterpart in kernels{order}") from None


def numpy_bounds(array: np.ndarray[Any, Any]) -> tuple[int, int]:
    """First and one-past-last address of the memory that `array` is a view of."""
    start, end = _extent(array)
    base = array.base
    while base is not None:
        if isinstance(base, np.ndarray):
            low, high = _extent(base)
            start, end = min(start, low), max(end, high)
        # as_strided puts an object between a view and the array that it is of.
        base = getattr(base, "base", None)
    return start, end


def _extent(array: np.ndarray[Any, Any]) -> tuple[int, int]:
    """First and one-past-last address of the elements of an array."""
    start: int = array.__array_interface__["data"][0]
    if array.size == 0:
        return start, start
    end = start + array.itemsize
    for size, stride in zip(array.shape, array.strides, strict=True):
        reach = (size - 1) * stride
        start, end = start + min(reach, 0), end + max(reach, 0)
    return start, end


def owner_bounds(array: np.ndarray[Any, Any]) -> tuple[int, int]:
    """`numpy_bounds`, quicker for a plain view of an array that owns its memory. Needs `NumpyFields.usable`."""
    base = array.base
    if type(base) is np.ndarray:
        place = id(base) >> 3
        if NumpyFields.words[place + NumpyFields.FLAGS] & NumpyFields.OWNS:
            start = NumpyFields.words[place + NumpyFields.DATA]
            return start, start + base.nbytes
    return numpy_bounds(array)


# ---- torch and jax ---------------------------------------------------------------------------------------------------


def _view_torch(tensor: Any) -> ArrayView | None:
    torch = sys.modules["torch"]
    if not isinstance(tensor, torch.Tensor):
        return None
    dtype = _torch_dtypes().get(tensor.dtype)
    if dtype is None:
        raise UnusableArray(f"dtype {tensor.dtype} has no counterpart in kernels")
    if tensor.device.type != "cpu":
        raise UnusableArray(f"it is on device {tensor.device}; move it with .cpu()")
    if tensor.layout is not torch.strided:
        raise UnusableArray(f"its layout is {tensor.layout}; use .to_dense()")
    if tensor.is_conj() or tensor.is_neg():
        raise UnusableArray("it is a lazily conjugated or negated view; use .resolve_conj().resolve_neg()")
    storage = tensor.untyped_storage()
    address: int = tensor.data_ptr()
    if address % dtype.itemsize:
        raise UnusableArray(f"its elements are not aligned to {dtype.itemsize} bytes; copy it first")
    start: int = storage.data_ptr()
    return ArrayView(dtype, address, start - address, start - address + storage.nbytes(), True, "torch tensor", tensor)


_TORCH_NAMES: Final = {
    core.f64: "float64", core.f32: "float32", core.f16: "float16", core.bf16: "bfloat16",
    core.f8e4m3: "float8_e4m3fn", core.f8e5m2: "float8_e5m2", core.i64: "int64", core.i32: "int32", core.i16: "int16",
    core.i8: "int8", core.u64: "uint64", core.u32: "uint32", core.u16: "uint16", core.u8: "uint8", core.bool_: "bool",
}  # fmt: skip
_TORCH_DTYPES: dict[Any, DType] = {}


def _torch_dtypes() -> dict[Any, DType]:
    if not _TORCH_DTYPES:
        torch = sys.modules["torch"]
        # Older versions lack some of the types.
        found = {getattr(torch, name, None): dtype for dtype, name in _TORCH_NAMES.items()}
        _TORCH_DTYPES.update({key: dtype for key, dtype in found.items() if key is not None})
    return _TORCH_DTYPES


def torch_dtype(dtype: DType) -> Any:
    """The torch dtype of a dtype."""
    torch = sys.modules["torch"]
    return getattr(torch, _TORCH_NAMES[dtype])


def _view_jax(array: Any) -> ArrayView | None:
    jax = sys.modules.get("jax")
    if jax is None or not isinstance(array, jax.Array):
        return None
    if isinstance(array, jax.core.Tracer):
        raise UnusableArray("it is being traced by jax; kernels are launched outside jax.jit")
    if any(device.platform != "cpu" for device in array.devices()):
        raise UnusableArray("it is not on the CPU; use jax.device_get")
    # A copy where jax cannot share its memory; jax arrays are immutable, so either way it is read only.
    view = np.asarray(array)
    view.flags.writeable = False
    return _view_numpy(view, "jax array")


_READERS: Final[dict[str, Callable[[Any], ArrayView | None]]] = {
    "torch": _view_torch,
    "jaxlib": _view_jax,
    "jax": _view_jax,
}


# ---- NumPy's own fields ----------------------------------------------------------------------------------------------


class NumpyFields:
    """Where CPython keeps the fields of an array object, in words of 8 bytes from the object's address.

    `words[(id(array) >> 3) + DATA]` is its data pointer. Reading it so costs a tenth of `array.ctypes.data`; `usable`
    says whether the layout was found to be the expected one on this interpreter.
    """

    DATA: Final = 2
    FLAGS: Final = 8
    FLAG_BITS: Final = 0xFFFF_FFFF
    OWNS: Final = 0x0004
    ALIGNED: Final = 0x0100
    WRITABLE: Final = 0x0400

    words: Any = None
    usable: bool = False


def _probe_numpy_fields() -> None:
    """Check the layout on arrays of several kinds before it is relied on."""
    if ctypes.sizeof(ctypes.c_void_p) != 8 or sys.implementation.name != "cpython":
        return
    words = (ctypes.c_int64 * (1 << 59)).from_address(0)
    owner = np.arange(12, dtype=np.float32).reshape(3, 4)
    locked = np.zeros(3)
    locked.flags.writeable = False
    for array in (owner, np.arange(12.0), owner[1:, ::2], owner.T, np.zeros(()), np.zeros((0, 3), np.int8), locked):
        place = id(array) >> 3
        flags = words[place + NumpyFields.FLAGS] & NumpyFields.FLAG_BITS
        expected = {
            NumpyFields.OWNS: array.flags.owndata,
            NumpyFields.ALIGNED: array.flags.aligned,
            NumpyFields.WRITABLE: array.flags.writeable,
        }
        if words[place + NumpyFields.DATA] != array.__array_interface__["data"][0]:
            return
        if any(bool(flags & bit) != value for bit, value in expected.items()):
            return
    NumpyFields.words, NumpyFields.usable = words, True


_probe_numpy_fields()
