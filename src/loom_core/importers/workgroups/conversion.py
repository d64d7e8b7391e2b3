"""The state of converting one kernel, and the table of what converts each operation."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from math import gcd
from typing import Final, Literal, NoReturn

from loom_core.base.dtype import DType, i64
from loom_core.importers.workgroups.errors import NotMappable, location_of
from loom_core.importers.workgroups.lanes import DTYPES, Lanes
from loom_core.importers.workgroups.launch import Launch
from loom_core.interchange.declaration import OpDeclaration
from loom_core.interchange.model import Block, Module, Operation
from loom_core.interchange.types import ScalarType, Type
from loom_core.ir.block import Function
from loom_core.ir.types import PointerType, TileType
from loom_core.ir.value import Value


@dataclass(frozen=True, slots=True)
class KernelParameter:
    """A parameter of the Tile IR kernel: an argument of the launch as memory of `dtype`, as a number, or its length in
    bytes."""

    name: str
    argument: str
    kind: Literal["buffer", "scalar", "length"]
    dtype: DType


@dataclass(eq=False, slots=True)
class Memory:
    """Bytes: an argument of the launch, or a window of `byte_count` bytes that the kernel allocates, for the workgroup
    or, if private, for each workitem."""

    name: str
    byte_count: int | None = None
    private: bool = False
    dtype: DType | None = None
    pointer: Value | None = None


@dataclass(frozen=True, slots=True)
class View:
    """A typed view: memory from a byte offset on, plus an offset in elements; its sizes as i64 values or numbers."""

    memory: Memory
    byte_offset: Value
    element_offset: Value | None
    sizes: tuple[int | Value, ...]
    strides: tuple[int | Value, ...]
    dtype: DType


Converter = Callable[["Conversion", Operation], None]
CONVERTERS: Final[dict[str, Converter]] = {}


def converts(*names: str) -> Callable[[Converter], Converter]:
    """Register what converts these operations."""

    def register(converter: Converter) -> Converter:
        for name in names:
            CONVERTERS[name] = converter
        return converter

    return register


class Conversion:
    """One kernel on its way to Tile IR."""

    def __init__(
        self, module: Module, kernel: Operation, launch: Launch, declarations: dict[str, OpDeclaration],
        divergent: set[int], subgroup_size: int,
    ) -> None:  # fmt: skip
        self.module = module
        self.kernel = kernel
        self.launch = launch
        self.declarations = declarations
        self.divergent = divergent
        self.subgroup_size = subgroup_size
        self.function = Function(str(kernel.attributes["callee"]), (), (), location_of(module, kernel))
        self.parameters: list[KernelParameter] = []
        self.lanes = Lanes(self.function.body, launch.lanes)
        self.values: dict[int, Value] = {}
        self.memories: dict[int, Memory] = {}
        self.views: dict[int, View] = {}
        self.multiples: dict[int, int] = {}
        """A number that is known to divide a value, where it is more than 1; 0 divides only 0."""
        self.at: Operation = kernel
        self.calls: list[Operation] = []
        """The functions that are being put in place of calls, outermost first."""

    # ---- refusals ----

    def refuse(self, reason: str) -> NoReturn:
        raise NotMappable(location_of(self.module, self.at), operation=self.at.name, reason=reason)

    # ---- values ----

    def value(self, id: int) -> Value:
        found = self.values.get(id)
        if found is None:
            self.refuse(f"%{self.module.values[id].name or id} is no number here")
        return found

    def tile(self, id: int) -> Value:
        return self.lanes.spread(self.value(id))

    def bind(self, id: int, value: Value) -> None:
        name = self.module.values[id].name
        if name and not value.name:
            value.name = name
        self.values[id] = value

    def pass_on(self, source: int, target: int) -> None:
        """Let `target` stand for what `source` stands for."""
        if source in self.memories:
            self.memories[target] = self.memories[source]
        elif source in self.views:
            self.views[target] = self.views[source]
        else:
            self.values[target] = self.value(source)
            self.multiples[target] = self.multiple(source)

    def dtype_of(self, type: Type) -> DType:
        if not isinstance(type, ScalarType):
            self.refuse("values of workitems are scalars")
        return DTYPES[type.kind]

    def result_dtype(self, op: Operation, index: int = 0) -> DType:
        return self.dtype_of(self.module.values[op.results[index]].type)

    def operands(self, op: Operation) -> dict[str, list[int]]:
        found = self.declarations[op.name].split_operands(op.operands, op.operand_segment_counts)
        assert found is not None
        return found

    def multiple(self, id: int) -> int:
        return self.multiples.get(id, 1)

    # ---- memory ----

    def memory(self, id: int) -> Memory:
        found = self.memories.get(id)
        if found is None:
            self.refuse("a buffer is an argument of the kernel or allocated by it")
        return found

    def pointer(self, memory: Memory, dtype: DType) -> Value:
        """The pointer to the elements of memory taken as `dtype`."""
        if memory.byte_count is not None:
            if memory.dtype not in (None, dtype) or memory.pointer is None:
                self.refuse(f"allocated memory is used as {memory.dtype} and as {dtype}")
            return memory.pointer
        for parameter, argument in zip(self.parameters, self.function.arguments, strict=True):
            if parameter.argument == memory.name and parameter.kind == "buffer" and parameter.dtype is dtype:
                return argument
        taken = {parameter.name for parameter in self.parameters}
        name = memory.name if memory.name not in taken else f"{memory.name}_{dtype.name}"
        self.parameters.append(KernelParameter(name, memory.name, "buffer", dtype))
        return self.function.body.add_argument(TileType(PointerType(dtype)), name)

    def number(self, argument: str, kind: Literal["scalar", "length"], dtype: DType) -> Value:
        """The parameter that holds a number of the launch."""
        for parameter, found in zip(self.parameters, self.function.arguments, strict=True):
            if parameter.argument == argument and parameter.kind == kind:
                return found
        name = argument if kind == "scalar" else f"{argument}_length"
        self.parameters.append(KernelParameter(name, argument, kind, dtype))
        return self.function.body.add_argument(TileType(dtype), name)

    # ---- walking ----

    def block(self, block: Block) -> Operation:
        """Convert all but the terminator of a block, which is returned."""
        for op in block.ops[:-1]:
            self.operation(op)
        self.at = block.ops[-1]
        return block.ops[-1]

    def operation(self, op: Operation) -> None:
        self.at = op
        self.lanes.builder.location = location_of(self.module, op)
        converter = CONVERTERS.get(op.name)
        if converter is None:
            self.refuse(_reason(op))
        converter(self, op)

    def index(self, number: int) -> Value:
        return self.lanes.constant(number, i64)


def _reason(op: Operation) -> str:
    dialect = op.name.partition(".")[0]
    if dialect == "cfg" or op.successors:
        return "control flow between blocks is not mapped; use scf"
    if dialect == "vector":
        return "workitems compute with scalars; vectors of a workitem are not mapped"
    if dialect == "func":
        return "only functions of this module are called"
    return "it has no counterpart on the machine"


def common_multiple(numbers: Iterable[int]) -> int:
    """What divides a sum of numbers that these divide."""
    return gcd(*numbers)
