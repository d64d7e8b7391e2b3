"""Triton IR text (TTIR) to Tile IR."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from loom_core.base.dtype import i64
from loom_core.base.location import Location
from loom_core.importers.ttir import (
    amd,
    arith,
    assembly,
    branches,
    extended,
    folds,
    memory,
    pointers,
    products,
    program,
    shapes,
    shared,
    structured,
    tensor_memory,
    tma,
    windows,
)
from loom_core.importers.ttir.errors import MalformedTritonIr
from loom_core.importers.ttir.importer import ImportedLoop, Importer, ImportTrace, Library
from loom_core.importers.ttir.parser import IrModule, parse_module
from loom_core.importers.ttir.syntax import IrFunction, IrType
from loom_core.importers.ttir.types import tile_type
from loom_core.importers.ttir.windows import Window
from loom_core.ir.block import Function
from loom_core.ir.types import PointerType, TileType
from loom_core.ir.value import Value
from loom_core.ir.verifier import verify_function
from loom_core.ops.control import Return
from loom_core.trace.context import tracing

TABLES = (
    amd, arith, assembly, branches, extended, folds, memory, pointers, products, program, shapes, shared, structured,
    tensor_memory, tma, windows,
)  # fmt: skip


@dataclass(frozen=True)
class ImportedFunction:
    """A kernel: its Tile IR, and for each parameter of the Triton kernel the rank of its descriptor (0: none).

    `given`: for each parameter whether a caller gives it. Triton repeats the sizes and strides of a descriptor `d` as
    `%d.shape.0` and `%d.stride.0`; here they are those of the descriptor. `loops` are those that were made of blocks.
    """

    function: Function
    ranks: tuple[int, ...]
    given: tuple[bool, ...]
    module: IrModule
    source: IrFunction
    loops: tuple[ImportedLoop, ...]


def import_ttir(
    text: str, library: Library, *, file: str = "<ttir>", name: str | None = None, assertions: bool = False,
    nan_padded: Collection[str] = (),
) -> ImportedFunction:  # fmt: skip
    """The kernel in the text of a Triton IR module.

    name: which function, by default the only public one. library: gives the device's math functions. assertions:
    whether device assertions are checked. nan_padded: the parameters, as in `%x`, that are descriptors which read NaN
    outside of their array, and not 0. A descriptor among the parameters becomes its base pointer, then its sizes
    and strides as i64. MalformedTritonIr, WrongOperands, UnsupportedOperation, UnsupportedType at the line in the text
    or, where it is known, the user's line.
    """
    module = parse_module(text, file)
    source = _entry(module, file, name)
    at = module.locations.resolve(source.operation.location, source.operation.position)
    repeated = _repeated(source)
    types, names, ranks = _parameters(source, repeated)
    function = Function(source.name, tuple(types), tuple(names), at)
    trace = ImportTrace(function, library.frontend)
    importer = Importer(module, trace, library, assertions=assertions)
    with tracing(trace):
        values = list(function.arguments)
        for (name_, type), rank in zip(source.arguments, ranks, strict=True):
            if name_ in repeated:
                importer.scope[name_] = _from_descriptor(importer, source, repeated[name_], type)
                continue
            base, rest, values = values[0], values[1 : 1 + 2 * rank], values[1 + 2 * rank :]
            padding = "nan" if name_ in nan_padded else "zero"
            importer.scope[name_] = Window(base, rest[:rank], rest[rank:], (), type.shape, padding) if rank else base
        returned = branches.import_blocks(importer, source.operation, source.blocks)
        if returned:
            importer.wrong(source.operation, "a kernel returns nothing")
        trace.at = at
        trace.builder.create(Return)
    verify_function(function)
    given = tuple(name_ not in repeated for name_, _ in source.arguments)
    return ImportedFunction(function, ranks, given, module, source, tuple(importer.loops))


def _entry(module: IrModule, file: str, name: str | None) -> IrFunction:
    """The kernel of a module."""
    found = [f for f in module.functions.values() if f.blocks and (f.name == name if name else f.public)]
    if len(found) != 1:
        wanted = f"a function {name}" if name else "exactly one public function"
        raise MalformedTritonIr(Location(file, 1), problem=f"{wanted} is needed, it has {', '.join(module.functions)}")
    return found[0]


def kernel_names(text: str, file: str = "<ttir>") -> list[str]:
    """The public functions of the module in `text`. MalformedTritonIr."""
    return parse_module(text, file).kernels


def _repeated(source: IrFunction) -> dict[str, tuple[str, int]]:
    """The parameters that repeat what a descriptor before them says: its name, and which of its sizes and strides."""
    found: dict[str, tuple[str, int]] = {}
    for name, type in source.arguments:
        if type.name == "tensordesc":
            places = [f"{name}.{what}.{d}" for what in ("shape", "stride") for d in range(len(type.shape))]
            found |= {place: (name, number) for number, place in enumerate(places)}
    return found


def _from_descriptor(importer: Importer, source: IrFunction, place: tuple[str, int], type: IrType) -> Value:
    """One of the sizes and strides of a descriptor, in the type that a parameter for it has."""
    window, number = importer.scope.get(place[0]), place[1]
    wanted = tile_type(type, source.operation.position)
    if not isinstance(window, Window) or wanted.shape or wanted.is_pointer or not wanted.dtype.is_integer:
        importer.wrong(source.operation, f"{place[0]} is followed by a parameter of type {type}")
    return arith.cast(importer, [*window.sizes, *window.steps][number], wanted.dtype)


def _parameters(
    source: IrFunction, repeated: Mapping[str, object]
) -> tuple[list[TileType], list[str], tuple[int, ...]]:
    types: list[TileType] = []
    names: list[str] = []
    ranks = []
    for name, type in source.arguments:
        plain = name[1:]
        if name in repeated:
            ranks.append(0)
            continue
        if type.name != "tensordesc":
            types.append(tile_type(type, source.operation.position))
            names.append(plain)
            ranks.append(0)
            continue
        rank = len(type.shape)
        types += [_base_type(type, source), *[TileType(i64)] * (2 * rank)]
        names += [f"{plain}_base", *(f"{plain}_{what}{d}" for what in ("size", "stride") for d in range(rank))]
        ranks.append(rank)
    return types, names, tuple(ranks)


def _base_type(type: IrType, source: IrFunction) -> TileType:
    element = tile_type(type.element or type, source.operation.position)
    return TileType(PointerType(element.dtype))
