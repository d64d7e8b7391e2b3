"""Typed builders: `builder.index.cast(input=..., results=[...], name=...)`, derived from the dialect tables."""

from __future__ import annotations

import difflib
import inspect
import keyword
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

from loom_core.interchange.build_plan import build_plan
from loom_core.interchange.builder import IRBuilder, ValueRef
from loom_core.interchange.declaration import OpDeclaration
from loom_core.interchange.dialects import default_ops
from loom_core.interchange.model import Block, Module, Region
from loom_core.interchange.types import BUFFER_TYPE, SCALARS, Type

RESERVED: Final = frozenset(("insertion_block", "ir", "location", "module", "region", "value"))
"""Members of a builder: a dialect of such a name, or of a Python keyword's, gets a trailing underscore."""


def default_types() -> tuple[Type, ...]:
    """The types without parameters."""
    return (*SCALARS.values(), BUFFER_TYPE)


def python_name(name: str) -> str:
    """A name that Python takes: keywords get a trailing underscore."""
    return f"{name}_" if keyword.iskeyword(name) else name


def method_names(ops: Sequence[OpDeclaration]) -> dict[str, OpDeclaration]:
    """Builder method -> operation, for the operations of one dialect.

    A method is called by the last part of the operation's name, by the whole of it where that is not unique, or as its
    row says.
    """
    last = Counter(op.local_name.rpartition(".")[2] for op in ops)
    found = {}
    for op in ops:
        short = op.local_name.rpartition(".")[2]
        name = op.builder_name or (short if last[short] == 1 else op.local_name.replace(".", "_"))
        found[python_name(name)] = op
    return found


class OpCallable:
    """Builds one operation from keyword arguments."""

    def __init__(self, ir: IRBuilder, decl: OpDeclaration, method: str) -> None:
        self._ir = ir
        self.decl = decl
        self.__name__ = method
        self.__doc__ = f"`{decl.name}`: {decl.doc}"
        self._plan = build_plan(decl)

    @property
    def __signature__(self) -> inspect.Signature:
        return self._plan.signature

    def __call__(self, **given: Any) -> Any:
        return self._plan.build(self._ir, given)

    def __repr__(self) -> str:
        return f"<builder of {self.decl.name}>"


class DialectBuilder:
    """The builder methods of one dialect."""

    def __init__(self, ir: IRBuilder, dialect: str, methods: Mapping[str, OpDeclaration]) -> None:
        self._ir = ir
        self._dialect = dialect
        self._methods = methods

    def __getattr__(self, name: str) -> OpCallable:
        decl = self._methods.get(name)
        if decl is None:
            raise AttributeError(f"the dialect {self._dialect} has no {name!r}{_did_you_mean(name, self._methods)}")
        built = OpCallable(self._ir, decl, name)
        self.__dict__[name] = built
        return built

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *self._methods})


class LoomBuilder:
    """Builds a module: `builder.<dialect>.<method>(...)`; `ir` builds by name."""

    def __init__(self, ir: IRBuilder) -> None:
        self.ir = ir
        by_dialect: dict[str, list[OpDeclaration]] = {}
        for decl in ir.declarations.values():
            by_dialect.setdefault(decl.dialect, []).append(decl)
        self._dialects = {
            f"{name}_" if name in RESERVED or keyword.iskeyword(name) else name: (name, method_names(ops))
            for name, ops in by_dialect.items()
        }

    @property
    def module(self) -> Module:
        return self.ir.module

    def value(self, name: str, type: Type) -> ValueRef:
        """A new value, such as an argument."""
        return self.ir.value(name, type)

    def region(self, args: Iterable[ValueRef | tuple[str, Type]] = ()) -> Region:
        """A region of one block with these arguments."""
        return self.ir.region(args)

    @contextmanager
    def insertion_block(self, block: Block) -> Iterator[Block]:
        """Build into `block` for a while."""
        outer = self.ir.insertion_block
        self.ir.insertion_block = block
        try:
            yield block
        finally:
            self.ir.insertion_block = outer

    @contextmanager
    def location(self, location_id: int) -> Iterator[None]:
        """Give `location_id` to the operations built inside that name none."""
        with self.ir.location(location_id):
            yield

    def __getattr__(self, name: str) -> DialectBuilder:
        found = self.__dict__.get("_dialects", {}).get(name)
        if found is None:
            raise AttributeError(
                f"there is no dialect {name!r}{_did_you_mean(name, self.__dict__.get('_dialects', {}))}"
            )
        built = DialectBuilder(self.ir, *found)
        self.__dict__[name] = built
        return built

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *self._dialects})


def _did_you_mean(name: str, known: Iterable[str]) -> str:
    near = difflib.get_close_matches(name, list(known), 1, 0.5)
    return f"; did you mean {near[0]!r}?" if near else ""


def module_builder(
    *,
    module: Module | None = None,
    insertion_block: Block | None = None,
    ops: Iterable[OpDeclaration] | None = None,
    types: Iterable[Type] | None = None,
) -> tuple[Module, LoomBuilder]:
    """A module, new unless given, and its builder; `ops` are all of the default dialects unless given."""
    ir = IRBuilder(module, insertion_block)
    ir.register_ops(default_ops() if ops is None else ops)
    ir.register_types(default_types() if types is None else types)
    return ir.module, LoomBuilder(ir)
