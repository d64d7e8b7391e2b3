"""Running kernels of interchange modules, and objects: `loom.run(module, ...)`, `loom.run(object, ..., grid=...)`."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, NoReturn

from libloom.arrays import ArrayView, UnusableArray, view_array
from libloom.kernel import LoadedKernel, overlaps, register_value
from loom_core.base.diagnostics import UserError
from loom_core.base.dtype import DType, by_name
from loom_core.base.knobs import knobs
from loom_core.importers.kernel_module import known_ops
from loom_core.importers.workgroups.convert import ConvertedKernel, convert_kernel
from loom_core.importers.workgroups.errors import BadLaunch
from loom_core.importers.workgroups.launch import evaluate_launch, find_kernel
from loom_core.interchange.model import Module, Operation
from loom_core.interchange.types import BufferType
from loom_core.interchange.verifier import verify_module
from loom_core.isa.machine import L1, MachineConfig
from loom_core.objfile import AbiArg, LoomObject
from loom_core.trace.context import caller

if TYPE_CHECKING:
    from loom_core.launch import Variant

KEPT_VARIANTS: Final = 64


class WrongRunArguments(UserError):
    code = "LOOM-R120"
    template = "{kernel}: {problem}"
    hint = "its arguments are: {arguments}"


@dataclass(frozen=True, slots=True)
class ModuleArgument:
    """An argument of a kernel's launch: its name, and its type as text ("buffer" for memory)."""

    name: str
    type: str

    @property
    def is_buffer(self) -> bool:
        return self.type == "buffer"


class Prepared:
    """What is ready to be launched: `arguments` are those of a launch, in order."""

    __slots__ = ()
    arguments: tuple[ModuleArgument, ...]

    @property
    def name(self) -> str:
        """How diagnostics call it."""
        raise NotImplementedError

    def refuse(self, problem: str) -> NoReturn:
        listed = ", ".join(f"{argument.name}: {argument.type}" for argument in self.arguments) or "none"
        raise WrongRunArguments(caller(), kernel=self.name, problem=problem, arguments=listed)

    def _view(self, name: str, value: Any) -> ArrayView:
        try:
            view = view_array(value)
        except UnusableArray as error:
            self.refuse(f"{name} cannot be used: {error}")
        if view is None:
            self.refuse(f"{name} is a buffer, and was given {value!r}")
        return view

    def _number(self, name: str, value: Any, dtype: DType) -> bool | int | float:
        plain = value.item() if hasattr(value, "item") else value
        if dtype.is_float and isinstance(plain, int | float):
            return float(plain)
        if not isinstance(plain, int):
            self.refuse(f"{name} is {dtype}, and was given {value!r}")
        number = int(plain)
        if not dtype.min_value <= number <= dtype.max_value:
            self.refuse(f"{name} is {dtype}, which cannot hold {number}")
        return bool(number) if dtype.is_bool else number


@dataclass(frozen=True, slots=True)
class PreparedKernel(Prepared):
    """A kernel of a module that is ready to be launched."""

    converted: ConvertedKernel
    arguments: tuple[ModuleArgument, ...]
    variant: Variant

    @property
    def name(self) -> str:
        return f"@{self.converted.function.name}"

    @property
    def written(self) -> tuple[str, ...]:
        """Names of the buffers that the kernel writes."""
        found = {
            parameter.argument
            for parameter, arg in zip(self._buffers(), self.variant.apart.object.abi.buffers, strict=True)
            if arg.written
        }
        return tuple(argument.name for argument in self.arguments if argument.name in found)

    def _buffers(self) -> list[Any]:
        return [parameter for parameter in self.converted.parameters if parameter.kind == "buffer"]

    def launch(self, given: Mapping[str, Any]) -> None:
        """Run on arguments by name."""
        from loom_core.launch import interpret_variant, run_variant

        views: list[ArrayView] = []
        scalars: list[tuple[DType, bool | int | float]] = []
        memory = {a.name: self._memory(a.name, given[a.name]) for a in self.arguments if a.is_buffer}
        for parameter in self.converted.parameters:
            if parameter.kind == "scalar":
                scalars.append(
                    (parameter.dtype, self._number(parameter.name, given[parameter.argument], parameter.dtype))
                )
            elif parameter.kind == "length":
                scalars.append((parameter.dtype, memory[parameter.argument].high))
            else:
                view = memory[parameter.argument]
                if view.address % parameter.dtype.itemsize:
                    self.refuse(f"{parameter.argument} is read as {parameter.dtype}, and not aligned to it")
                views.append(replace(view, dtype=parameter.dtype))
        run = interpret_variant if knobs.interpret else run_variant
        run(self.variant, views, scalars, self.converted.launch.count)

    def _memory(self, name: str, value: Any) -> ArrayView:
        """The bytes of an array, and no others."""
        view = self._view(name, value)
        flags = getattr(value, "flags", None)
        contiguous = flags.c_contiguous if flags is not None else getattr(value, "is_contiguous", lambda: True)()
        if not contiguous:
            self.refuse(f"{name} is not contiguous; copy it first")
        return replace(view, low=0, high=int(value.nbytes))


@dataclass(frozen=True, slots=True)
class PreparedObject(Prepared):
    """An object that is ready to be launched."""

    kernel: LoadedKernel
    arguments: tuple[ModuleArgument, ...]

    @property
    def name(self) -> str:
        return self.kernel.object.name or "the object"

    def launch(self, given: Mapping[str, Any], grid: tuple[int, int, int]) -> None:
        """Run on arguments by name."""
        from loom_core.launch import run_loaded

        abi = self.kernel.object.abi
        views = [self._array(arg, given[arg.name]) for arg in abi.buffers]
        by_slot = {arg.slot: (arg.name, view) for arg, view in zip(abi.buffers, views, strict=True)}
        for first, second in abi.noalias:
            if overlaps(by_slot[first][1], by_slot[second][1]):
                self.refuse(f"{by_slot[first][0]} and {by_slot[second][0]} overlap, and it was compiled for apart ones")
        dtypes = [by_name(arg.dtype) for arg in abi.scalars]
        numbers = [self._number(arg.name, given[arg.name], d) for arg, d in zip(abi.scalars, dtypes, strict=True)]
        if 0 not in grid:
            run_loaded(self.kernel, views, list(map(register_value, dtypes, numbers)), grid)

    def _array(self, arg: AbiArg, value: Any) -> ArrayView:
        view = self._view(arg.name, value)
        if view.dtype.name != arg.dtype:
            self.refuse(f"{arg.name} holds {arg.dtype}, and was given an array of {view.dtype.name}")
        if arg.written and not view.writable:
            self.refuse(f"{arg.name} is written, and was given a read-only {view.kind}")
        return view


@lru_cache(maxsize=KEPT_VARIANTS)
def _prepare_object(subject: LoomObject) -> PreparedObject:
    args = subject.abi.args
    shown = tuple(ModuleArgument(arg.name, f"{'*' * (arg.kind == 'buffer')}{arg.dtype}") for arg in args)
    return PreparedObject(LoadedKernel(subject), shown)


_variants: OrderedDict[tuple[str, str], Variant] = OrderedDict()
_lock = threading.Lock()


def prepare(
    module: Module, *, kernel: str | None = None, config: Mapping[str, int] | None = None,
    machine: MachineConfig | None = None,
) -> PreparedKernel:  # fmt: skip
    """Verify a module and convert one of its kernels for a launch.

    LoomDiagnosticError if the module breaks a rule, LoomError (NotMappable, BadLaunch) for what cannot be run.
    """
    verify_module(module, ops=known_ops(), hooks=True).raise_if_errors()
    chosen = find_kernel(module, kernel)
    converted = convert_kernel(module, chosen, evaluate_launch(module, chosen, config or {}))
    return PreparedKernel(converted, _arguments(module, chosen), _variant(converted, machine or L1))


def _arguments(module: Module, kernel: Operation) -> tuple[ModuleArgument, ...]:
    from loom_core.interchange.text.types import print_type

    found = []
    for position, value in enumerate(kernel.regions[1].blocks[0].arg_ids):
        argument = module.values[value]
        spelled = "buffer" if isinstance(argument.type, BufferType) else print_type(argument.type, module)
        found.append(ModuleArgument(argument.name or f"argument_{position}", spelled))
    return tuple(found)


def _variant(converted: ConvertedKernel, machine: MachineConfig) -> Variant:
    from loom_core.ir.printer import print_function
    from loom_core.launch import Variant

    key = (print_function(converted.function, locations=True), machine.digest())
    with _lock:
        found = _variants.get(key)
        if found is None:
            types = tuple(str(value.type) for value in converted.function.arguments)
            found = _variants[key] = Variant(types, converted.function, [], machine, converted.function.name)
            while len(_variants) > KEPT_VARIANTS:
                _variants.popitem(last=False)
        _variants.move_to_end(key)
    return found


def run(
    subject: Module | LoomObject,
    *arguments: Any,
    grid: int | Sequence[int] | None = None,
    kernel: str | None = None,
    config: Mapping[str, int] | None = None,
    machine: MachineConfig | None = None,
    **named: Any,
) -> None:
    """Launch an object over `grid`, or a kernel of a module over the grid that it configures; arrays change in place.

    arguments, named: those of the launch, by position or by name: arrays (NumPy, torch, jax) for buffers, numbers for
    scalars. Of an object arrays have the dtypes that it was compiled for, of a module any, and they are contiguous.
    grid: one to three ints; of an object alone, 1 by default. kernel: its symbol, where a module has several. config:
    configuration arguments of a module by name. machine: what a module is compiled for, the preset L1 unless given.
    Errors are those of `prepare`, those of running, and WrongRunArguments.
    """
    if isinstance(subject, LoomObject):
        prepared = _prepare_object(subject)
        if kernel is not None or config is not None or machine is not None:
            prepared.refuse("kernel, config and machine are for modules; this is an object, which is compiled")
        prepared.launch(match_arguments(prepared, arguments, named), _grid(prepared, 1 if grid is None else grid))
        return
    ready = prepare(subject, kernel=kernel, config=config, machine=machine)
    if grid is not None:
        ready.refuse("a grid was given, and a kernel of a module configures its own")
    ready.launch(match_arguments(ready, arguments, named))


def _grid(prepared: Prepared, given: int | Sequence[int]) -> tuple[int, int, int]:
    sizes = [given] if isinstance(given, int) else list(given)
    if not 1 <= len(sizes) <= 3 or not all(type(size) is int and 0 <= size < 1 << 31 for size in sizes):
        prepared.refuse(f"the grid is {given!r}, and should be one to three ints from 0 below 2**31")
    x, y, z = [*sizes, 1, 1][:3]
    return x, y, z


def match_arguments(prepared: Prepared, arguments: Sequence[Any], named: Mapping[str, Any]) -> dict[str, Any]:
    """Values by argument name. WrongRunArguments for too many, unknown, repeated or missing ones."""
    names = [argument.name for argument in prepared.arguments]
    if len(arguments) > len(names):
        prepared.refuse(f"{len(arguments)} arguments given, it has {len(names)}")
    found = dict(zip(names, arguments, strict=False))
    for name, value in named.items():
        if name not in names:
            prepared.refuse(f"it has no argument {name}")
        if name in found:
            prepared.refuse(f"{name} is given twice")
        found[name] = value
    missing = [name for name in names if name not in found]
    if missing:
        prepared.refuse(f"{missing[0]} is missing")
    return found


__all__ = [
    "BadLaunch",
    "ModuleArgument",
    "PreparedKernel",
    "PreparedObject",
    "WrongRunArguments",
    "match_arguments",
    "prepare",
    "run",
]
