"""Running kernels of interchange modules: `loom.run(module, ...)`."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from libloom.arrays import ArrayView, UnusableArray, view_array
from loom_core.base.diagnostics import UserError
from loom_core.base.dtype import DType
from loom_core.base.knobs import knobs
from loom_core.importers.kernel_module import known_ops
from loom_core.importers.workgroups.convert import ConvertedKernel, convert_kernel
from loom_core.importers.workgroups.errors import BadLaunch
from loom_core.importers.workgroups.launch import evaluate_launch, find_kernel
from loom_core.interchange.model import Module, Operation
from loom_core.interchange.types import BufferType
from loom_core.interchange.verifier import verify_module
from loom_core.isa.machine import L1, MachineConfig
from loom_core.trace.context import caller

if TYPE_CHECKING:
    from loom_core.launch import Variant

KEPT_VARIANTS: Final = 64


class WrongModuleArguments(UserError):
    code = "LOOM-R120"
    template = "@{kernel}: {problem}"
    hint = "its arguments are: {arguments}"


@dataclass(frozen=True, slots=True)
class ModuleArgument:
    """An argument of a kernel's launch: its name, and its type as text ("buffer" for memory)."""

    name: str
    type: str

    @property
    def is_buffer(self) -> bool:
        return self.type == "buffer"


@dataclass(frozen=True, slots=True)
class PreparedKernel:
    """A kernel of a module that is ready to be launched."""

    converted: ConvertedKernel
    arguments: tuple[ModuleArgument, ...]
    variant: Variant

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

    def refuse(self, problem: str) -> None:
        listed = ", ".join(f"{argument.name}: {argument.type}" for argument in self.arguments) or "none"
        name = self.converted.function.name
        raise WrongModuleArguments(caller(), kernel=name, problem=problem, arguments=listed)

    def _memory(self, name: str, value: Any) -> ArrayView:
        """The bytes of an array, and no others."""
        try:
            view = view_array(value)
        except UnusableArray as error:
            self.refuse(f"{name} cannot be used: {error}")
            raise
        if view is None:
            self.refuse(f"{name} is a buffer, and was given {value!r}")
            raise TypeError
        flags = getattr(value, "flags", None)
        contiguous = flags.c_contiguous if flags is not None else getattr(value, "is_contiguous", lambda: True)()
        if not contiguous:
            self.refuse(f"{name} is not contiguous; copy it first")
        return replace(view, low=0, high=int(value.nbytes))

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
    module: Module,
    *arguments: Any,
    kernel: str | None = None,
    config: Mapping[str, int] | None = None,
    machine: MachineConfig | None = None,
    **named: Any,
) -> None:
    """Launch a kernel of a module over the grid that it configures; buffers are written in place.

    arguments, named: those of the kernel's launch, by position or by name: contiguous arrays of any dtype (NumPy,
    torch, jax) for buffers, numbers for scalars. kernel: its symbol, where the module has several. config:
    configuration arguments by name. machine: the preset L1 unless given. Errors are those of `prepare`, and
    WrongModuleArguments.
    """
    prepared = prepare(module, kernel=kernel, config=config, machine=machine)
    prepared.launch(match_arguments(prepared, arguments, named))


def match_arguments(prepared: PreparedKernel, arguments: Sequence[Any], named: Mapping[str, Any]) -> dict[str, Any]:
    """Values by argument name. WrongModuleArguments for too many, unknown, repeated or missing ones."""
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


__all__ = ["BadLaunch", "ModuleArgument", "PreparedKernel", "WrongModuleArguments", "match_arguments", "prepare", "run"]
