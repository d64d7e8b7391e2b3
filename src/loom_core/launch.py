"""Compiled variants of kernels, and their runs on arrays and numbers: what all kernel languages launch through."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final

from libloom.arrays import ArrayView
from libloom.kernel import LoadedKernel, overlaps, register_value
from loom_core.base.diagnostics import LoomError, UserError
from loom_core.base.dtype import DType
from loom_core.base.knobs import encode_name, environment, knobs, overrides
from loom_core.base.location import Location
from loom_core.ir.block import Function
from loom_core.isa.machine import MachineConfig
from loom_core.objfile import LoomObject
from loom_core.trace.context import caller
from loom_core.trace.names import Watch

_DEBUG, _INTERPRET, _CHECK, _PROFILE = map(encode_name, ("LOOM_DEBUG", "LOOM_INTERPRET", "LOOM_CHECK", "LOOM_PROFILE"))
_OF_THE_SIMULATOR: Final = {"cores"}
_TRACES: Final[ContextVar[Traces | None]] = ContextVar("loom_traces", default=None)


KEPT: Final = 1024
"""What a variant remembers for its checks."""


def quiet() -> bool:
    """Whether no knob that concerns launches is set, neither in the environment nor by an override.

    Cores do not count: the simulator itself asks for them.
    """
    if _DEBUG in environment or _INTERPRET in environment or _CHECK in environment or _PROFILE in environment:
        return False
    found = overrides()
    return not found or found.keys() == _OF_THE_SIMULATOR


class ReadOnlyArgument(UserError):
    code = "LOOM-R106"
    template = "argument {name} is a read-only {kind}, and {function} writes to it"
    hint = "pass a writable array of your own, for example numpy.array(x)"


@dataclass(eq=False)
class Variant:
    """A kernel for one tuple of specs: traced, and compiled with and without the assumption that outputs are apart.

    `specs`, one for each argument, are the language's own; here they are only shown.
    """

    specs: tuple[Any, ...]
    function: Function
    watches: list[Watch]
    machine: MachineConfig
    kernel_name: str
    changes: int = 0
    _kernels: dict[bool, LoadedKernel] = field(default_factory=dict)
    _derived: dict[Hashable, Any] = field(default_factory=dict)
    _compiling: threading.Lock = field(default_factory=threading.Lock)

    def current(self) -> bool:
        """Whether everything that the kernel read from outside is as it was when it was traced.

        `changes` counts how often an equal value took another's place: code that compares identities is then outdated.
        """
        before = [watch.value for watch in self.watches]
        current = all(watch.unchanged() for watch in self.watches)
        self.changes += any(watch.value is not value for watch, value in zip(self.watches, before, strict=True))
        return current

    @property
    def apart(self) -> LoadedKernel:
        """Compiled for arrays that do not overlap what is written."""
        return self._kernel(True)

    @property
    def overlapping(self) -> LoadedKernel:
        """Compiled for arrays of which some may overlap."""
        return self._kernel(False)

    def compiled(self) -> list[tuple[bool, LoadedKernel]]:
        """What has been compiled so far, and whether for arrays that do not overlap."""
        return list(self._kernels.items())

    def _kernel(self, apart: bool) -> LoadedKernel:
        with self._compiling:
            if apart not in self._kernels:
                self._kernels[apart] = LoadedKernel(self.compile({} if apart else {"assume_noalias": False}))
            return self._kernels[apart]

    def derived(self, apart: bool, key: Hashable, build: Callable[[], Function], **options: Any) -> LoadedKernel:
        """The function that `build` makes of this one, compiled as `apart` or `overlapping`; kept under the key."""

        def make() -> LoadedKernel:
            other = Variant(self.specs, build(), self.watches, self.machine, self.kernel_name)
            return LoadedKernel(other.compile(options if apart else {"assume_noalias": False, **options}))

        kernel: LoadedKernel = self.remembered((apart, key), make)
        return kernel

    def remembered(self, key: Hashable, compute: Callable[[], Any]) -> Any:
        """What `compute` gives, which depends on this variant alone; computed once for each key."""
        if key not in self._derived:
            if len(self._derived) >= KEPT:
                self._derived.clear()
            self._derived[key] = compute()
        return self._derived[key]

    def compile(self, options: Mapping[str, Any]) -> LoomObject:
        """The object: from the cache on disk, or compiled and put there."""
        from loom_core.cache import object_cache
        from loom_core.compile import COMPILER_VERSION, SHOW_TIMING, compile_kernel
        from loom_core.ir.printer import print_function
        from loom_core.objfile import read_object, write_object

        # The IR with its locations holds all that the object is made of: the sources of the kernel and its helpers, the
        # signature, and the outside values that it read. So no change of any of them can meet a stale object.
        text = print_function(self.function, locations=True)
        key = cache_key(text, self.machine, options, COMPILER_VERSION)
        # What compiling shows or writes down is there only where it compiles.
        wanted = knobs.dump_dir is not None or knobs.debug >= SHOW_TIMING
        stored = None if wanted else object_cache.get(key)
        if stored is not None:
            return read_object(stored)
        # Compiling may change the function that it is given.
        from loom_core.ir.rewriter import clone_function

        obj = compile_kernel(clone_function(self.function), machine=self.machine, options=dict(options))
        object_cache.put(key, write_object(obj))
        return obj


def cache_key(text: str, machine: MachineConfig, options: Mapping[str, Any], compiler_version: str) -> str:
    """The name of an object in the cache: a hash of the traced program and of all else that decides its bytes."""
    from blake3 import blake3

    parts = [text, machine.digest(), repr(sorted(options.items())), compiler_version]
    digest = blake3()
    for part in parts:
        data = part.encode()
        digest.update(len(data).to_bytes(8, "little") + data)
    return digest.hexdigest()


@contextlib.contextmanager
def check(*, nan: bool = False, replay: int = 0, uninitialised: Sequence[Any] = ()) -> Iterator[None]:
    """`with loom.check():` looks at every access of the kernels that are launched in the block, as LOOM_CHECK=1 does.

    A launch runs to its end, then raises LoomError with all that was wrong: accesses outside of arrays, addresses that
    wrap in 32 bits, reads of what nothing has written, results that depend on masked elements of loads without
    `other`, programs of a grid that meet in memory, loops that wait for ever, missing waits between engines, windows of
    SRAM that share bytes. It warns (LoomWarning) of loads and products that nothing uses, and of stores that are
    overwritten at once.

    nan: a launch that leaves a NaN or an infinity raises too, and names the operation that made the first one.
    replay: so many further runs of each launch, in which engines have other speeds, must leave the same bytes; as many
    as there are engines (6) try each of them as the slow one, more leave it to chance.
    uninitialised: arrays that hold nothing yet, as torch.empty gives them: until a launch has written to one, reading
    it is a finding.
    """
    from loom_core.checks.declared import declared

    replays = replay or knobs.check_replay
    with declared(uninitialised), knobs.override(check=True, check_nan=nan or knobs.check_nan, check_replay=replays):
        yield


def cores(count: int) -> AbstractContextManager[None]:
    """`with loom.cores(n):` launches in the block run on `n` simulated cores, as LOOM_CORES=n does.

    A launch whose programs cannot be shared without changing a bit runs on one; `kernel.explain` says why. 0: as many
    as the machine and the CPUs allow. BadKnobValue for a negative number.
    """
    return knobs.override(cores=str(count))  # a text is checked


class Traces(list[Any]):
    """The traces of launches, in order."""

    @property
    def cycles(self) -> int:
        """Cycles of all of them, one after the other."""
        return sum(trace.cycles for trace in self)

    def _repr_html_(self) -> str:
        return "".join(trace._repr_html_() for trace in self)


@contextmanager
def profile() -> Iterator[Traces]:
    """`with loom.profile() as traces:` runs the kernels that are launched in the block under the cycle model.

    Gives a list that receives the simulator's trace of each launch, whatever language the kernel is in. A launch that
    is checked (`loom.check`) or interpreted has no trace.
    """
    traces = Traces()
    token = _TRACES.set(traces)
    try:
        with knobs.override(profile=True):
            yield traces
    finally:
        _TRACES.reset(token)


# ---- runs ------------------------------------------------------------------------------------------------------------


def choose(variant: Variant, views: Sequence[ArrayView]) -> LoadedKernel:
    """The compiled form whose assumption about overlap the arrays meet."""
    apart = variant.apart
    by_slot = {arg.slot: view for arg, view in zip(apart.object.abi.buffers, views, strict=True)}
    if any(overlaps(by_slot[a], by_slot[b]) for a, b in apart.object.abi.noalias):
        return variant.overlapping
    return apart


def check_writable(variant: Variant, views: Sequence[ArrayView]) -> None:
    """ReadOnlyArgument for a read-only array that the kernel writes to."""
    for arg, view in zip(variant.apart.object.abi.buffers, views, strict=True):
        if arg.written and not view.writable:
            raise ReadOnlyArgument(caller(), name=arg.name, kind=view.kind, function=variant.kernel_name)


def run_variant(
    variant: Variant,
    views: Sequence[ArrayView],
    scalars: Sequence[tuple[DType, bool | int | float]],
    grid: tuple[int, int, int],
) -> None:
    """Run a variant on arrays and numbers."""
    check_writable(variant, views)
    kernel = choose(variant, views)
    if knobs.debug >= 1:
        shown = ", ".join(map(str, variant.specs))
        print(f"loom: launch {variant.kernel_name}({shown}) over {grid}", file=sys.stderr)
    if 0 in grid:
        return
    values = [register_value(dtype, number) for dtype, number in scalars]
    try:
        if knobs.check:
            check_variant(variant, kernel, views, scalars, values, grid)
        else:
            run_loaded(kernel, views, values, grid)
    except LoomError as error:
        raise relocated(error, variant.function) from None


def run_loaded(
    kernel: LoadedKernel, views: Sequence[ArrayView], values: Sequence[int], grid: tuple[int, int, int]
) -> None:
    """Run an object on arrays and registers, as the knobs say: plainly, checked, or under the cycle model."""
    if knobs.check:
        from loom_sim.errors import CheckFinding

        findings = kernel.check(views, values, grid)
        if findings:
            raise CheckFinding.of(findings)
    elif knobs.profile:
        trace = kernel.program.trace(kernel.bindings(views), kernel.registers(values, grid))
        traces = _TRACES.get()
        if traces is None:
            print(f"loom: {kernel.object.name} {trace}", file=sys.stderr)
        else:
            traces.append(trace)
    else:
        kernel.run(views, values, grid)


def check_variant(
    variant: Variant,
    kernel: LoadedKernel,
    views: Sequence[ArrayView],
    scalars: Sequence[tuple[DType, bool | int | float]],
    values: Sequence[int],
    grid: tuple[int, int, int],
) -> None:
    """Run a variant, then raise for all that was wrong with it."""
    from loom_core.checks.launch import Launch
    from loom_core.checks.run import check_launch
    from loom_sim.errors import CheckFinding

    apart = kernel is variant.apart
    derive = partial(variant.derived, apart)
    launch = Launch(variant.function, kernel, views, values, scalars, grid, apart, derive, variant.remembered)
    findings = check_launch(launch)
    if findings:
        raise CheckFinding.of(findings)


def relocated(error: LoomError, function: Function) -> LoomError:
    """`error` of a run with its locations as the traced kernel knows them: full path, whole span, chain of calls."""
    known = {
        (os.path.basename(op.location.file), op.location.line, op.location.column): op.location
        for op in function.walk()
    }

    def full(at: Location) -> Location:
        return known.get((os.path.basename(at.file), at.line, at.column), at)

    return type(error).of(replace(found, location=full(found.location)) for found in error.diagnostics)


def trace_variant(
    variant: Variant,
    views: Sequence[ArrayView],
    scalars: Sequence[tuple[DType, bool | int | float]],
    grid: tuple[int, int, int],
) -> Any:
    """Run a variant under the cycle model; gives the simulator's trace."""
    check_writable(variant, views)
    kernel = choose(variant, views)
    values = [register_value(dtype, number) for dtype, number in scalars]
    return kernel.program.trace(kernel.bindings(views), kernel.registers(values, grid))


def explain_variant(
    variant: Variant,
    views: Sequence[ArrayView],
    scalars: Sequence[tuple[DType, bool | int | float]],
    grid: tuple[int, int, int],
) -> Any:
    """How a launch would be divided among cores; gives the simulator's division."""
    kernel = choose(variant, views)
    values = [register_value(dtype, number) for dtype, number in scalars]
    return kernel.program.division(kernel.bindings(views), kernel.registers(values, grid))


def interpret_variant(
    variant: Variant,
    views: Sequence[ArrayView],
    scalars: Sequence[tuple[DType, bool | int | float]],
    grid: tuple[int, int, int],
) -> None:
    """Run a variant by the reference meaning of its operations (LOOM_INTERPRET=1)."""
    from loom_core.checks.launch import interpreter_arguments
    from loom_core.interp import interpret
    from loom_core.ir.rewriter import clone_function
    from loom_core.passes.fold_dot import fold_dot_accumulator

    if not all(view.writable for view in views):
        check_writable(variant, views)
    if 0 not in grid:
        # What a product is added to takes part in its rounding: the one pass that defines bits.
        arguments = interpreter_arguments(variant.function, views, scalars)
        interpret(fold_dot_accumulator(clone_function(variant.function)), arguments, grid)
