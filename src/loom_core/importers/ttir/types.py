"""Types in Triton IR text, and their counterparts in Tile IR."""

from __future__ import annotations

import re
from typing import Final

from loom_core.base import dtype as core
from loom_core.base.dtype import DType
from loom_core.base.location import Location
from loom_core.importers.ttir.errors import UnsupportedType
from loom_core.importers.ttir.scanner import Scanner
from loom_core.importers.ttir.syntax import IrType
from loom_core.ir.types import PointerType, TileType

_DIMENSION: Final = re.compile(r"(\d{1,10})x")
_SCALAR: Final = re.compile(r"(?:index|none|i\d+|u\d+|si\d+|ui\d+|bf16|tf32|f\d+\w*)\b")
_ALIAS: Final = re.compile(r"![A-Za-z_][\w$]*(?![\w.<])")
_DIALECT: Final = re.compile(r"!?(?:tt|ttg|ttng|triton_gpu|triton_nvidia_gpu|amdg|llvm|gluon)\.[\w.]+")
_TENSOR: Final = re.compile(r"tensor(?=<)")
_ELIDED_MEMORY: Final = re.compile(r"<\s*\d+x")
_LAYOUT: Final = re.compile(r"#?[\w.$]+")
_LAYOUT_NAME: Final = re.compile(r"#\w+\.(\w+)")
_HINT: Final = "of the layouts, Loom takes those of registers and of shared memory; import the kernel's TTIR instead"
_INTEGER: Final = re.compile(r"-?\d+")

LAYOUTS: Final = frozenset(
    {"blocked", "slice", "dot_op", "linear", "nvidia_mma", "amd_mfma", "amd_wmma",  # of registers
     "tensor_memory_encoding", "tensor_memory",  # of the accumulators of matrix units
     "swizzled_shared", "padded_shared", "nvmma_shared", "shared_linear", "amd_rotating_shared", "shared_memory"}
)  # fmt: skip
"""Layouts that say where elements lie, and nothing else: they are read and have no further meaning here."""

SCALARS: Final[dict[str, DType]] = {
    "i1": core.bool_, "i8": core.i8, "i16": core.i16, "i32": core.i32, "i64": core.i64,
    "f16": core.f16, "bf16": core.bf16, "f32": core.f32, "f64": core.f64,
    "f8E4M3FN": core.f8e4m3, "f8E5M2": core.f8e5m2, "index": core.i64,
    # Descriptors of the host say whether their integers have a sign.
    "si8": core.i8, "si16": core.i16, "si32": core.i32, "si64": core.i64,
    "ui8": core.i8, "ui16": core.i16, "ui32": core.i32, "ui64": core.i64,
}  # fmt: skip
UNSIGNED: Final = {core.i8: core.u8, core.i16: core.u16, core.i32: core.u32, core.i64: core.u64}


class TypeReader:
    """Parses types; `aliases` are the module's names for types, `layouts` those for layouts, with their text."""

    def __init__(self, scanner: Scanner) -> None:
        self._scanner = scanner
        self.aliases: dict[str, IrType] = {}
        self.layouts: dict[str, str] = {}

    def read(self) -> IrType:
        """The type that follows. MalformedTritonIr where there is none."""
        with self._scanner.nested():
            return self._read()

    def _read(self) -> IrType:
        scanner = self._scanner
        if scanner.match(_TENSOR):
            return self._shaped("tensor")
        if (found := scanner.match(_ALIAS)) is not None:
            alias = self.aliases.get(found.group())
            return alias if alias is not None else scanner.fail(f"the type {found.group()} is not defined")
        if (found := scanner.match(_DIALECT)) is not None:
            return self._of_dialect(found.group())
        if scanner.looking_at("<"):
            # Where Triton leaves out `!tt.ptr` or `!tt.tensordesc`.
            return self._elided()
        if (found := scanner.match(_SCALAR)) is not None:
            return IrType(found.group())
        return scanner.fail(f"a type is missing before {scanner.here()}")

    def _of_dialect(self, written: str) -> IrType:
        scanner = self._scanner
        name = written.rpartition(".")[2]
        if name == "ptr":
            return self._elided()
        if name in ("tensordesc", "memdesc"):
            return self._shaped(name)
        text = scanner.balanced() if scanner.adjacent("<") else ""
        return IrType(f"{written}{text}")

    def _elided(self) -> IrType:
        """`<f32>`, `<f32, 3>` (an address space), `<tensor<4xf32>>`, `<4x8xf32, #shared>` (shared memory)."""
        scanner = self._scanner
        if scanner.ahead(_ELIDED_MEMORY):
            return self._shaped("memdesc")
        scanner.expect("<")
        element = self.read()
        if scanner.accept(","):
            scanner.need(_INTEGER, "an address space")
        scanner.expect(">")
        return IrType("ptr", element)

    def _shaped(self, name: str) -> IrType:
        """`<4x8xf32>`, with a layout `<4x8xf32, #layout>`; a descriptor also `<tensor<4x8xf32>>`."""
        scanner = self._scanner
        scanner.expect("<")
        shape: list[int] = []
        while (found := scanner.match(_DIMENSION)) is not None:
            shape.append(int(found.group(1)))
        element = self.read()
        if name != "tensor" and element.name == "tensor" and not shape:
            shape, encoding, element = list(element.shape), element.encoding, element.element or element
        else:
            encoding = ""
        while scanner.accept(","):
            encoding += ("," if encoding else "") + self._encoding()
        scanner.expect(">")
        return IrType(name, element, tuple(shape), encoding)

    def _encoding(self) -> str:
        """A layout: an alias, an attribute with its brackets, or a word (`mutable`). UnsupportedType for others."""
        scanner = self._scanner
        position = scanner.position()
        word = scanner.need(_LAYOUT, "a layout")
        text = word + (scanner.balanced() if scanner.adjacent("<") else "")
        if word.startswith("#") and "." not in word:
            text = self.layouts.get(word) or scanner.fail(f"the layout {word} is not defined")
        for name in _LAYOUT_NAME.findall(text):
            if name not in LAYOUTS:
                raise UnsupportedType(position, type=f"with the layout {name}", hint=_HINT)
        return text


def tile_type(type: IrType, location: Location) -> TileType:
    """The Tile IR type of a scalar, pointer or tensor. UnsupportedType where there is none."""
    if type.name == "tensor" and type.element is not None:
        inner = tile_type(type.element, location)
        if inner.shape or 0 in type.shape:
            raise UnsupportedType(location, type=str(type))
        return inner.with_shape(type.shape)
    if type.name == "ptr" and type.element is not None:
        pointee = tile_type(type.element, location)
        if pointee.shape or pointee.is_pointer:
            raise UnsupportedType(location, type=str(type))
        # Triton keeps truth values in memory as bytes.
        dtype = pointee.dtype
        return TileType(PointerType(core.i8 if dtype.is_bool else dtype))
    dtype_ = SCALARS.get(type.name)
    if dtype_ is None:
        raise UnsupportedType(location, type=str(type))
    return TileType(dtype_)
