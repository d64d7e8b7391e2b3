"""How an operation is declared.

An operation is one class in `loom_core/ops`. Its typed fields say what it takes:

    class AddPointer(Op):
        "Pointer plus an element offset."
        name = "addptr"
        pointer = operand()
        offset = operand()

From the fields derive the constructor, accessors, the printed and the parsed form, cloning and the table tests. `infer`
gives the result types, `verify` checks what types cannot, `ref` is the meaning in NumPy. How it becomes commands
is said once more, by `@lowers(Op)` in `loom_core/codegen`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from loom_core.base.location import UNKNOWN, Location
from loom_core.ir.block import Block
from loom_core.ir.types import TileType
from loom_core.ir.value import Value

REQUIRED: Any = object()


@dataclass(frozen=True)
class OperandField:
    """One operand slot: required, optional (may be absent) or variadic (any number, last)."""

    kind: str


@dataclass(frozen=True)
class AttributeField:
    """A static property of the operation."""

    default: Any


def operand() -> Any:
    """Declare a required operand."""
    return OperandField("one")


def optional_operand() -> Any:
    """Declare an operand that may be absent (None)."""
    return OperandField("optional")


def variadic_operand() -> Any:
    """Declare a list of operands; must be the last operand field."""
    return OperandField("variadic")


def attribute(default: Any = REQUIRED) -> Any:
    """Declare an attribute, required unless a default is given."""
    return AttributeField(default)


class _OperandAccess:
    """Descriptor that reads the operand of its slot from `Op.operands`."""

    __slots__ = ("kind", "slot")

    def __init__(self, slot: int, kind: str) -> None:
        self.slot = slot
        self.kind = kind

    def __get__(self, op: Op | None, owner: type[Op]) -> Any:
        if op is None:
            return self
        if self.kind == "variadic":
            return op.operands[op.segments[self.slot] :]
        start = op.segments[self.slot]
        if op.segments[self.slot + 1] == start:
            return None
        return op.operands[start]


class _AttributeAccess:
    """Descriptor that reads an attribute from `Op.attributes`."""

    __slots__ = ("key",)

    def __init__(self, key: str) -> None:
        self.key = key

    def __get__(self, op: Op | None, owner: type[Op]) -> Any:
        return self if op is None else op.attributes[self.key]


REGISTRY: dict[str, type[Op]] = {}


class Op:
    """Base of all operations.

    Class attributes an op may set:
      name          its unique name in text and bytecode (classes without one are families)
      pure          no effect beyond its results; may be removed, merged and repeated
      elementwise   result element i depends on operand elements i alone
      terminator    ends a block
      region_count  number of nested blocks
      isolated      nested blocks use nothing from outside
      no_reference, no_lowering
                    the reason why the op declares none (checked by the completeness test)
    """

    __slots__ = ("attributes", "location", "operands", "parent", "regions", "results", "segments")

    name: ClassVar[str] = ""
    pure: ClassVar[bool] = True
    elementwise: ClassVar[bool] = False
    terminator: ClassVar[bool] = False
    region_count: ClassVar[int] = 0
    isolated: ClassVar[bool] = False
    no_reference: ClassVar[str] = ""
    no_lowering: ClassVar[str] = ""
    operand_fields: ClassVar[dict[str, OperandField]] = {}
    attribute_fields: ClassVar[dict[str, AttributeField]] = {}
    ref: ClassVar[Callable[..., Any] | None] = None

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        operands = dict(cls.operand_fields)
        attributes = dict(cls.attribute_fields)
        for key, field in list(vars(cls).items()):
            if isinstance(field, OperandField):
                setattr(cls, key, _OperandAccess(len(operands), field.kind))
                operands[key] = field
            elif isinstance(field, AttributeField):
                setattr(cls, key, _AttributeAccess(key))
                attributes[key] = field
        cls.operand_fields = operands
        cls.attribute_fields = attributes
        if cls.name and "name" in vars(cls):
            if cls.name in REGISTRY:
                raise TypeError(f"two operations are named {cls.name!r}")
            REGISTRY[cls.name] = cls

    def __init__(
        self,
        operands: Sequence[Value | Sequence[Value] | None],
        attributes: dict[str, Any] | None = None,
        regions: Sequence[Block] = (),
        location: Location = UNKNOWN,
    ) -> None:
        """`operands` follow the declared fields: None for an absent optional, a sequence for the variadic one."""
        cls = type(self)
        flat: list[Value] = []
        segments = [0]
        if len(operands) > len(cls.operand_fields):
            raise TypeError(f"{cls.name} takes {len(cls.operand_fields)} operands, {len(operands)} given")
        for i, (key, field) in enumerate(cls.operand_fields.items()):
            given = operands[i] if i < len(operands) else (() if field.kind == "variadic" else None)
            if field.kind == "variadic":
                flat.extend(given)  # type: ignore[arg-type]
            elif given is not None:
                flat.append(given)  # type: ignore[arg-type]
            elif field.kind == "one":
                raise TypeError(f"{cls.name} needs operand {key!r}")
            segments.append(len(flat))
        self.operands = flat
        self.segments = segments
        self.attributes = self._complete_attributes(attributes or {})
        self.regions = list(regions)
        for region in self.regions:
            region.parent = self
        self.location = location
        self.parent: Block | None = None
        self.results = [Value(type, self, i) for i, type in enumerate(self.infer())]
        for value in flat:
            value.users.append(self)

    @classmethod
    def _complete_attributes(cls, given: dict[str, Any]) -> dict[str, Any]:
        complete = {}
        for key, field in cls.attribute_fields.items():
            value = given.get(key, field.default)
            if value is REQUIRED:
                raise TypeError(f"{cls.name} needs attribute {key!r}")
            complete[key] = value
        unknown = given.keys() - complete.keys()
        if unknown:
            raise TypeError(f"{cls.name} has no attribute {sorted(unknown)[0]!r}")
        return complete

    def infer(self) -> tuple[TileType, ...]:
        """Types of the results, from operands, attributes and regions."""
        return ()

    def verify(self) -> str | None:
        """What is wrong with this operation beyond its types, or None."""
        return None

    @property
    def result(self) -> Value:
        """The only result."""
        (value,) = self.results
        return value

    def structured_operands(self) -> list[Value | Sequence[Value] | None]:
        """Operands by declared field, in the form that `__init__` takes."""
        grouped: list[Value | Sequence[Value] | None] = []
        for i, field in enumerate(type(self).operand_fields.values()):
            part = self.operands[self.segments[i] : self.segments[i + 1]]
            grouped.append(part if field.kind == "variadic" else (part[0] if part else None))
        return grouped

    def set_operand(self, index: int, new: Value) -> None:
        """Replace the operand at flat position `index`, keeping use lists right."""
        old = self.operands[index]
        old.users.remove(self)
        self.operands[index] = new
        new.users.append(self)

    def erase(self) -> None:
        """Remove from the block; no result may have users."""
        for result in self.results:
            if result.users:
                raise ValueError(f"{self.name} is erased while its result is used")
        self.drop_operands()
        if self.parent is not None:
            self.parent.operations.remove(self)
            self.parent = None

    def drop_operands(self) -> None:
        """Give up all uses, also those of the operations in nested regions."""
        for value in self.operands:
            value.users.remove(self)
        self.operands = []
        self.segments = [0] * len(self.segments)
        for region in self.regions:
            for op in region.operations:
                op.drop_operands()

    def walk(self) -> Iterator[Op]:
        yield self
        for region in self.regions:
            yield from region.walk()

    def __repr__(self) -> str:
        return f"<Op {self.name} -> {', '.join(str(r.type) for r in self.results)}>"
