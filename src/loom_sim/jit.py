"""Engines: Python functions compiled to native code that is called by address, kept on disk between processes.

An engine takes and returns int64 only (addresses, counts, status codes), so that one function pointer type serves all
of them and the interpreter can call any engine through a table of addresses. Numba compiles it as it compiles a C
callback, except that the entry point contains the body: numba's own callback wrapper keeps the call out of line and
carries code for Python exceptions, which engines never raise.

The cache is numba's (`numba.core.caching.Cache`) with a place, a key and a file format of its own:

* place: `knobs.cache_dir / "engines"`, never numba's directories; NUMBA_CACHE_DIR is not looked at, nothing global is
  changed;
* key: name and signature of the engine, the target's triple, CPU and features, the settings that change code
  generation, the versions, and a stamp of the sources that an engine comes from (`stamps`). Closures are fine: the
  name says what they close over;
* file: one file an engine and key, written beside and moved into place, with a checksum over all of it. Concurrent
  processes can at worst compile the same engine twice.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import hashlib
import inspect
import os
import pickle
import sys
import tempfile
import threading
import weakref
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import llvmlite
import numba
from llvmlite import ir
from numba.core import caching, compiler, config, registry, sigutils
from numba.core.compiler_lock import global_compiler_lock
from numba.core.dispatcher import _FunctionCompiler  # type: ignore[attr-defined]

from loom_core.base.atomic import replace_file
from loom_core.base.diagnostics import warn
from loom_core.base.knobs import knobs
from loom_core.base.progress import Progress
from loom_sim.errors import EngineCacheDamaged, EngineCacheUnwritable
from loom_sim.stamps import source_stamp, sources_are_as_imported

ENGINE_SIGNATURE: Final = "int64(int64, int64)"  # (operands address, state address) -> status
INTERPRETER_SIGNATURE: Final = "int64(int64)"  # (state address) -> status
ELEMENT_SIGNATURE: Final = "void(int64, int64, int64, int64, int64)"  # (dst, a, b, c, count)

_MAGIC: Final = b"LOOMENG1"
_DIGEST_BYTES: Final = 32
_FILES_KEPT: Final = 4096  # about 100 MB; the oldest leave when an engine is saved
_OPTIONS: Final = {"error_model": "numpy", "forceinline": True, "nopython": True}


@dataclass
class Stats:
    """What this process did for engines: names in the order of arrival, one list for each way to get them."""

    compiled: list[str] = field(default_factory=list)
    loaded: list[str] = field(default_factory=list)

    def clear(self) -> None:
        self.compiled.clear()
        self.loaded.clear()


stats: Final = Stats()
_addresses: dict[str, int] = {}
_alive: list[Any] = []  # code libraries: their code must outlive every address handed out
_lock = threading.RLock()


def engine_address(
    name: str, build: Callable[[], Callable[..., Any]], signature: str = ENGINE_SIGNATURE, home: str | None = None
) -> int:
    """Native address of the engine called `name`, compiled or loaded at the first request of the process.

    `build` returns the Python function; it runs only if the cache has no code for it. `name` must identify the function
    and all it closes over, `home` the module that it comes from with what that imports (None: it may come from any).
    The machine code obeys the host's C calling convention.
    """
    address = _addresses.get(name)
    if address is not None:
        return address
    with _lock, global_compiler_lock:
        if name not in _addresses:
            _addresses[name] = _obtain(name, build, signature, home)
        return _addresses[name]


def _obtain(name: str, build: Callable[[], Callable[..., Any]], signature: str, home: str | None) -> int:
    target = registry.cpu_target.target_context
    cache = EngineCache(name, _cache_directory(), source_stamp(home))
    parsed = sigutils.normalize_signature(signature)
    library = cache.load_overload(parsed, target)
    if library is None:
        with _collector_paused(), Progress() as progress:
            progress.show(f"loom: compiling engine {name} for this processor")
            library = _compile(name, build(), parsed)
        cache.save_overload(parsed, library)
        stats.compiled.append(name)
    else:
        stats.loaded.append(name)
    _alive.append(library)
    return int(library.get_pointer_to_function(_symbol(name)))


@contextlib.contextmanager
def _collector_paused() -> Iterator[None]:
    """No garbage collections: numba makes many objects that live until it is done. Saves a sixth of its time."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _symbol(name: str) -> str:
    return "loom_engine." + name


# ---- compilation -----------------------------------------------------------------------------------------------------


class _EngineCompiler(_FunctionCompiler):  # type: ignore[misc]
    """Numba's pipeline for one function, stopped before its library is closed."""

    def _customize_flags(self, flags: Any) -> Any:
        flags.no_cpython_wrapper = True
        flags.no_cfunc_wrapper = True
        flags.no_compile = True
        return flags


def _compile(name: str, function: Callable[..., Any], parsed: tuple[Any, Any]) -> Any:
    arguments, result = parsed
    target = registry.cpu_target
    made = _EngineCompiler(function, target, _OPTIONS, {}, compiler.Compiler).compile(arguments, result)
    library = made.library
    _add_entry_point(target.target_context, library, made.fndesc, _symbol(name))
    optimize = library._optimize_final_module

    def optimize_closed() -> None:
        _internalize(library._final_module, keep=_symbol(name))
        optimize()

    library._optimize_final_module = optimize_closed
    library.enable_object_caching()
    library.finalize()
    return library


def engine_and_assembly(
    name: str, build: Callable[[], Callable[..., Any]], signature: str = ENGINE_SIGNATURE
) -> tuple[int, str]:
    """Address and assembly of a freshly compiled engine, for those who look at the code; nothing is cached."""
    with global_compiler_lock:
        library = _compile(name, build(), sigutils.normalize_signature(signature))
    _alive.append(library)
    assembly = str(library._codegen._tm.emit_assembly(library._final_module))
    return int(library.get_pointer_to_function(_symbol(name))), assembly


def _internalize(module: Any, keep: str) -> None:
    """Hide every function but `keep`.

    Numba's symbols are a qualified name and a count of the process: objects that come from the caches of two processes
    may give one symbol to two closures, and the linker would call the wrong one. Besides, LLVM drops what it inlined
    everywhere.
    """
    for function in module.functions:
        if not function.is_declaration and function.name != keep:
            function.linkage = "internal"


def _add_entry_point(context: Any, library: Any, descriptor: Any, symbol: str) -> None:
    """Add the C function `symbol` that calls the compiled function; LLVM inlines the call (`forceinline`)."""
    module = context.create_module("engine_entry")
    native = ir.Function(
        module, context.call_conv.get_function_type(descriptor.restype, descriptor.argtypes), descriptor.llvm_func_name
    )
    is_void = descriptor.restype == numba.types.none
    result = ir.VoidType() if is_void else context.get_value_type(descriptor.restype)
    entry = ir.Function(
        module, ir.FunctionType(result, [context.get_value_type(t) for t in descriptor.argtypes]), symbol
    )
    builder = ir.IRBuilder(entry.append_basic_block("entry"))
    _, value = context.call_conv.call_function(builder, native, descriptor.restype, descriptor.argtypes, entry.args)
    if is_void:
        builder.ret_void()
    else:
        builder.ret(value)
    library.add_ir_module(module)


# ---- subroutines -----------------------------------------------------------------------------------------------------


def subroutine(signature: str, inline: bool = False) -> Callable[[Callable[..., Any]], Any]:
    """Decorator of a function that engines call: compiled into the library of each engine that uses it.

    numba.njit would do, at five times the time: it gives every function a library, machine code and wrappers of its
    own. `signature` is numba's text of the exact types; literals and narrower integers convert. Exceptions do not pass:
    a subroutine must not raise.
    """
    arguments, result = sigutils.normalize_signature(signature)
    result = numba.types.none if result is None else result

    def decorate(function: Callable[..., Any]) -> Any:
        def define(typing_context: Any, *given: Any) -> Any:
            return result(*arguments), functools.partial(_call_subroutine, function, inline)

        parameters = inspect.signature(function).parameters.values()
        context = inspect.Parameter("typing_context", inspect.Parameter.POSITIONAL_ONLY)
        define.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
            [context, *(p.replace(kind=inspect.Parameter.POSITIONAL_ONLY) for p in parameters)]
        )
        define.__name__ = function.__name__
        return numba.extending.intrinsic(define)

    return decorate


def _call_subroutine(
    function: Callable[..., Any], inline: bool, context: Any, builder: ir.IRBuilder, signature: Any, values: Any
) -> Any:
    descriptor = _lower_subroutine(context, function, inline, signature)
    _, value = context.call_internal_no_propagate(builder, descriptor, signature, values)
    return value


_lowered: weakref.WeakKeyDictionary[Any, dict[Callable[..., Any], Any]] = weakref.WeakKeyDictionary()


def _lower_subroutine(context: Any, function: Callable[..., Any], inline: bool, signature: Any) -> Any:
    """Descriptor of `function` in the library that is being compiled, lowered into it at the first call."""
    library = context.active_code_library
    known = _lowered.setdefault(library, {})
    if function not in known:
        flags = compiler.Flags()
        flags.error_model = "numpy"
        flags.no_compile = flags.no_cpython_wrapper = flags.no_cfunc_wrapper = True
        flags.no_rewrites = True  # of array expressions and the like
        if inline:
            flags.forceinline = True
        made = compiler.compile_extra(
            context.typing_context, context, function, signature.args, signature.return_type, flags, {}, library=library
        )
        known[function] = made.fndesc
    return known[function]


# ---- cache -----------------------------------------------------------------------------------------------------------


class _EngineLocator(caching._CacheLocator):  # type: ignore[misc]
    """Where engines lie, and the stamp of the sources they come from."""

    def __init__(self, directory: Path | None, stamp: str) -> None:
        self._directory = directory
        self._stamp = stamp
        self._py_file = __file__  # named in numba's warnings

    def get_cache_path(self) -> str:
        return str(self._directory)

    def get_source_stamp(self) -> str:
        return self._stamp

    def get_disambiguator(self) -> str:
        return ""

    def ensure_cache_path(self) -> None:
        """The directory was made and tried when it was chosen."""


class _EngineImpl(caching.CodeLibraryCacheImpl):  # type: ignore[misc]
    """What is stored for an engine: the code library, as object code."""

    def __init__(self, name: str, directory: Path | None, stamp: str) -> None:
        self._lineno = 0
        self._locator = _EngineLocator(directory, stamp)
        self._filename_base = name


class EngineCache(caching.Cache):  # type: ignore[misc]
    """Numba's cache for the engine `name` made from the sources that `stamp` stands for; `directory` None means that
    nothing is stored.
    """

    _impl_class = _EngineImpl

    def __init__(self, name: str, directory: Path | None, stamp: str) -> None:
        self._name = name
        self._stamp = stamp
        self._impl = _EngineImpl(name, directory, stamp)
        self._cache_path = self._impl.locator.get_cache_path()
        self._cache_file = _EngineFile(directory, name)
        self._enabled = directory is not None

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """The code library, or None. The target is not refreshed: machine code needs none of numba's implementations,
        and importing them takes longer than everything else in a warm start."""
        with self._guard_against_spurious_io_errors():
            return self._load_overload(sig, target_context)

    def save_overload(self, sig: Any, data: Any) -> None:
        """Store the code library, unless an edit of the sources leaves it open what it was made from."""
        if not sources_are_as_imported():
            return
        try:
            super().save_overload(sig, data)
        except OSError as error:
            _warn_unwritable(self._cache_path, error)

    def _index_key(self, sig: Any, codegen: Any) -> tuple[str, ...]:
        settings = (config.OPT, config.LOOP_VECTORIZE, config.SLP_VECTORIZE, config.DEBUGINFO_DEFAULT)
        versions = (numba.__version__, llvmlite.__version__, sys.version_info[:2])
        return tuple(map(str, (self._name, sig, *codegen.magic_tuple(), settings, versions, self._stamp)))


class _EngineFile:
    """Storage of one engine: numba's `IndexDataCacheFile` without the index, over which hosts could fight."""

    def __init__(self, directory: Path | None, name: str) -> None:
        self._directory = directory
        self._name = name

    def _path(self, key: tuple[str, ...]) -> Path:
        assert self._directory is not None
        digest = hashlib.blake2b("\0".join(key).encode(), digest_size=12).hexdigest()
        return self._directory / f"{self._name}-{digest}.engine"

    def load(self, key: tuple[str, ...]) -> Any:
        """What `save` stored under `key`, or None; a damaged file counts as absent, with a warning."""
        path = self._path(key)
        try:
            content = path.read_bytes()
        except OSError:
            return None  # absent, or in a cache that this user cannot read: compiling is the answer to both
        payload = content[len(_MAGIC) + _DIGEST_BYTES :]
        if content[: len(_MAGIC) + _DIGEST_BYTES] != _MAGIC + _checksum(payload):
            warn(EngineCacheDamaged.diagnostic(path=str(path)))
            return None
        return pickle.loads(payload)

    def save(self, key: tuple[str, ...], data: Any) -> None:
        """Store `data`; readers see all of it or nothing."""
        payload = pickle.dumps(data, protocol=pickle.HIGHEST_PROTOCOL)
        path = self._path(key)
        replace_file(path, _MAGIC + _checksum(payload) + payload)
        _drop_oldest(path.parent)

    def flush(self) -> None:
        """Remove every stored version of this engine."""
        if self._directory is not None:
            for path in self._directory.glob(f"{self._name}-*.engine"):
                path.unlink(missing_ok=True)


def _checksum(payload: bytes) -> bytes:
    return hashlib.blake2b(payload, digest_size=_DIGEST_BYTES).digest()


def _drop_oldest(directory: Path) -> None:
    """Keep the `_FILES_KEPT` newest engines; files that another process removes meanwhile are no concern."""

    def files() -> Iterator[tuple[float, str]]:
        with os.scandir(directory) as entries:
            for entry in entries:
                with contextlib.suppress(FileNotFoundError):
                    yield entry.stat().st_mtime, entry.path

    for _, path in sorted(files(), reverse=True)[_FILES_KEPT:]:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)


def _cache_directory() -> Path | None:
    directory = Path(knobs.cache_dir) / "engines"
    return directory if _is_writable(directory) else None


@functools.cache
def _is_writable(directory: Path) -> bool:
    try:
        directory.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=directory).close()
    except OSError as error:
        _warn_unwritable(str(directory), error)
        return False
    return True


_warned_of: set[str] = set()


def _warn_unwritable(directory: str, error: OSError) -> None:
    if directory not in _warned_of:
        _warned_of.add(directory)
        warn(EngineCacheUnwritable.diagnostic(path=directory, reason=error.strerror or str(error)))


def _after_fork_in_child() -> None:
    # Another thread of the parent may have held the lock at the fork; in the child nobody will ever release it.
    global _lock
    _lock = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)
