"""`loom.triton.install()`: Loom as Triton's active driver, so that Triton's own launches run on the simulator.

Triton compiles a kernel to TTIR and asks the backend for the rest; here that is the text of the TTIR before any pass,
which is imported at the first launch (`ltl.imported`). Arguments are tensors in the memory of the host.
"""

from __future__ import annotations

import functools
import hashlib
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from itertools import compress
from types import ModuleType
from typing import Any, Final

from loom_core import __version__
from loom_core.base.syntax_trees import one_at_a_time
from ltl.imported import ImportedKernel
from ltl.packages import stand_in_for_triton
from ltl.testing import modelled_milliseconds
from ltl.upstream_launch import quicken

BACKEND: Final = "cpu"
"""The name of Triton's target: libraries look for a module of torch that is called so."""
FORM: Final = "loom"
"""The name of what is compiled to."""
_WARP: Final = 32
_MOST_SHARED: Final = 1 << 30


@dataclass(frozen=True)
class Options:
    """What Triton's frontend asks of a backend. Options of a GPU are accepted and mean nothing here."""

    num_warps: int = 4
    num_ctas: int = 1
    num_stages: int = 1
    warp_size: int = _WARP
    maxnreg: int | None = None
    enable_fp_fusion: bool = False
    launch_cooperative_grid: bool = False
    launch_pdl: bool = False
    supported_fp8_dtypes: tuple[str, ...] = ("fp8e5", "fp8e4nv")
    deprecated_fp8_dot_operand_dtypes: tuple[str, ...] = ()
    default_dot_input_precision: str = "ieee"
    allowed_dot_input_precisions: tuple[str, ...] = ("ieee", "tf32", "tf32x3", "bf16x3", "bf16x6")
    max_num_imprecise_acc_default: int = 0
    extern_libs: Any = ()
    debug: bool = False
    backend_name: str = BACKEND
    sanitize_overflow: bool = False
    arch: str = ""
    instrumentation_mode: str = ""
    ir_override: str | None = None
    fpsan_homomorphic_casts: bool = False

    def hash(self) -> str:
        return hashlib.sha256(repr(self).encode()).hexdigest()


_OPTIONS: Final = frozenset(field.name for field in fields(Options))


class _Compiler:
    """The methods of Triton's `BaseBackend`."""

    binary_ext = FORM

    @staticmethod
    def supports_target(target: Any) -> bool:
        return bool(target.backend == BACKEND)

    def hash(self) -> str:
        return f"{FORM}-{__version__}"

    def parse_options(self, options: Mapping[str, Any]) -> Options:
        return Options(**{name: value for name, value in options.items() if name in _OPTIONS and value is not None})

    def pack_metadata(self, metadata: Any) -> tuple[()]:
        return ()

    def get_codegen_implementation(self, options: Options) -> dict[str, Callable[..., Any]]:
        return {"min_dot_size": lambda left, right: (1, 1, 1)}

    def get_module_map(self) -> dict[str, ModuleType]:
        """The library of CUDA's functions: its symbols are those that the importer knows."""
        from triton.language.extra.cuda import libdevice

        return {"triton.language.extra.libdevice": libdevice}

    def load_dialects(self, context: Any) -> None:
        """Triton's own dialects are all that is needed."""

    def add_stages(self, stages: dict[str, Any], options: Options, language: Any) -> None:
        stages["ttir"] = lambda module, metadata: module
        stages[FORM] = _final_text


def _final_text(module: Any, metadata: dict[str, Any]) -> bytes:
    metadata["shared"] = 0
    metadata["name"] = module.get_entry_func_name()
    return str(module).encode()


class _Utilities:
    """What Triton asks of a driver's device."""

    def get_device_properties(self, device: int) -> dict[str, int]:
        return {"max_shared_mem": _MOST_SHARED, "multiprocessor_count": 1, "warpSize": _WARP, "max_num_regs": 1 << 16}

    def load_binary(self, name: str, kernel: bytes, shared: int, device: int) -> tuple[Any, Any, int, int, int]:
        loaded = load_kernel(kernel, name)
        return loaded, loaded, 0, 0, 1 << 20

    def unload_module(self, module: Any) -> None:
        """The garbage collector does."""


@functools.lru_cache(maxsize=1024)
def load_kernel(text: bytes, name: str) -> ImportedKernel:
    """The kernel of a compiled text."""
    return ImportedKernel(text.decode(), f"<TTIR of {name}>", name=name, assertions=True)


class _Launcher:
    """Launches one compiled kernel with the arguments of its Python signature."""

    def __init__(self, source: Any, metadata: Any) -> None:
        from triton.runtime.jit import TensorWrapper

        self._wrapper = TensorWrapper
        self._types = list(source.signature.values())
        self._plain = all(isinstance(type, str) and not type.startswith("tensordesc") for type in self._types)
        self._kept = [type != "constexpr" for type in self._types]

    def __call__(
        self, x: int, y: int, z: int, stream: Any, kernel: ImportedKernel, packed: Any, launch: Any, enter: Any,
        leave: Any, *args: Any,
    ) -> None:  # fmt: skip
        given = tuple(compress(args, self._kept) if self._plain else self._leaves(self._types, args))
        if self._wrapper in map(type, given):
            # What `triton.reinterpret` gives holds a tensor whose elements have the same size.
            given = tuple(value.base if type(value) is self._wrapper else value for value in given)
        if enter is not None:
            enter(launch)
        kernel.launch((x, y, z), given)
        if leave is not None:
            leave(launch)

    def _leaves(self, types: Sequence[Any], values: Sequence[Any]) -> Iterator[Any]:
        """What a kernel's TTIR takes for arguments: nothing for constants, the parts of tuples."""
        for kind, value in zip(types, values, strict=True):
            if isinstance(kind, tuple):
                yield from self._leaves(kind, value)
            elif kind.startswith("tensordesc"):
                # The sizes and strides stand beside the descriptor too.
                base = value.base
                yield replace(value, base=base.base) if isinstance(base, self._wrapper) else value
                yield from map(int, value.shape)
                yield from map(int, value.strides)
            elif kind != "constexpr":
                yield value


# ---- measuring -------------------------------------------------------------------------------------------------------


def benchmark(function: Callable[[], Any], quantiles: Sequence[float], **options: Any) -> list[float]:
    """Milliseconds that the cycle model gives for what `function` launches, the same each time; 0 where there is no
    model, so that the first configuration is chosen.
    """
    return [modelled_milliseconds(function) or 0.0] * len(quantiles)


class _Event:
    """A moment of the host's clock: `triton.testing.do_bench` tells how long simulating takes."""

    def __init__(self, enable_timing: bool = False) -> None:
        self._at = 0.0

    def record(self, stream: Any = None) -> None:
        self._at = time.perf_counter()

    def elapsed_time(self, end: _Event) -> float:
        """Milliseconds until `end`."""
        return (end._at - self._at) * 1e3


class _DeviceInterface:
    """What Triton uses of a module such as `torch.cuda`."""

    Event = _Event

    @staticmethod
    def synchronize(device: Any = None) -> None:
        """Launches are done when they return."""

    @staticmethod
    def current_device() -> int:
        return 0

    @staticmethod
    def device_count() -> int:
        return 1

    @staticmethod
    def is_available() -> bool:
        return True


# ---- the driver ------------------------------------------------------------------------------------------------------


class _Driver:
    """The methods of Triton's `DriverBase`."""

    launcher_cls = _Launcher
    binary_ext = FORM

    def __init__(self) -> None:
        self.utils = _Utilities()

    @classmethod
    def is_active(cls) -> bool:
        return True

    def map_python_to_cpp_type(self, type: str) -> str:
        return type

    def get_current_target(self) -> Any:
        from triton.backends.compiler import GPUTarget

        return GPUTarget(BACKEND, 0, _WARP)

    def get_device_capability(self, device: int = 0) -> tuple[int, int]:
        return 0, 0

    def get_current_stream(self, device: int = 0) -> int:
        return 0

    def get_current_device(self) -> int:
        return 0

    def set_current_device(self, device: int) -> None:
        """There is one."""

    def get_active_torch_device(self) -> Any:
        import torch

        return torch.device("cpu")

    def get_device_interface(self) -> type[_DeviceInterface]:
        return _DeviceInterface

    def get_benchmarker(self) -> Callable[..., Any]:
        return benchmark

    def get_empty_cache_for_benchmark(self) -> Any:
        import torch

        return torch.empty(0)

    def clear_cache(self, cache: Any) -> None:
        """The cycle model begins each run alike."""


def install() -> None:
    """Make Loom Triton's active driver: kernels of any Triton program then run on the simulator, on CPU tensors.

    No GPU is needed. Where Triton is not installed, `import triton` gives LTL's stand-ins afterwards. Autotuners choose
    by modelled cycles. Dots of float32 are exact unless they ask for an `input_precision`, or TRITON_F32_DEFAULT names
    one.
    """
    try:
        import triton
    except ModuleNotFoundError as error:
        if error.name != "triton":
            raise
        stand_in_for_triton()
        return
    import triton.backends
    import triton.knobs
    from triton.backends.compiler import BaseBackend
    from triton.backends.driver import DriverBase
    from triton.runtime.driver import driver
    from triton.runtime.jit import JITFunction

    compiler = type("LoomBackend", (_Compiler, BaseBackend), {})
    made = type("LoomDriver", (_Driver, DriverBase), {})
    triton.backends.backends[BACKEND] = triton.backends.Backend(compiler=compiler, driver=made)
    active = made()
    driver.set_active(active)
    quicken(lambda: driver._active is active)
    if not hasattr(JITFunction.parse, "__wrapped__"):
        JITFunction.parse = one_at_a_time(JITFunction.parse)  # first launches may come from several threads
    if triton.knobs.language.fp32_default is None:
        triton.knobs.language.fp32_default = "ieee"


__all__ = ["install", "load_kernel"]
