"""`builders.pyi`: the signatures of all builder methods, for editors and type checkers."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Final

from loom_core.interchange.build_plan import build_plan
from loom_core.interchange.builders import method_names
from loom_core.interchange.declaration import OpDeclaration
from loom_core.interchange.dialects import amdgpu_ops, default_ops

_HEAD: Final = '''\
"""Written by `python -m loom_core.tools.docs` from the dialect tables; edit those."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from inspect import Signature
from typing import Any, Final

from loom_core.interchange.attributes import Predicate
from loom_core.interchange.builder import IRBuilder, TiedResultSpec, ValueRef
from loom_core.interchange.declaration import OpDeclaration
from loom_core.interchange.dialects import default_ops as default_ops
from loom_core.interchange.model import Block, Module, Region
from loom_core.interchange.types import Type

RESERVED: Final[frozenset[str]]

def default_types() -> tuple[Type, ...]: ...
def python_name(name: str) -> str: ...
def method_names(ops: Sequence[OpDeclaration]) -> dict[str, OpDeclaration]: ...

class OpCallable:
    decl: OpDeclaration
    __signature__: Signature
    def __init__(self, ir: IRBuilder, decl: OpDeclaration, method: str) -> None: ...
    def __call__(self, **given: Any) -> Any: ...

class DialectBuilder:
    def __init__(self, ir: IRBuilder, dialect: str, methods: Mapping[str, OpDeclaration]) -> None: ...
'''
_TAIL: Final = """
    @property
    def ir(self) -> IRBuilder: ...
    @property
    def module(self) -> Module: ...
    def __init__(self, ir: IRBuilder) -> None: ...
    def value(self, name: str, type: Type) -> ValueRef: ...
    def region(self, args: Iterable[ValueRef | tuple[str, Type]] = ()) -> Region: ...
    def insertion_block(self, block: Block) -> AbstractContextManager[Block]: ...
    def location(self, location_id: int) -> AbstractContextManager[None]: ...

def module_builder(
    *,
    module: Module | None = None,
    insertion_block: Block | None = None,
    ops: Iterable[OpDeclaration] | None = None,
    types: Iterable[Type] | None = None,
) -> tuple[Module, LoomBuilder]: ...
"""


def builders_stub() -> str:
    """The text of the stub file beside `builders.py`."""
    by_dialect: dict[str, list[OpDeclaration]] = {}
    for op in default_ops() + amdgpu_ops():
        by_dialect.setdefault(op.dialect, []).append(op)
    parts = [_HEAD]
    parts += [_dialect(name, ops) for name, ops in by_dialect.items()]
    members = "\n".join(f"    {name}: {name.capitalize()}Builder" for name in by_dialect)
    return "".join(parts) + f"\nclass LoomBuilder:\n{members}" + _TAIL


def _dialect(name: str, ops: Sequence[OpDeclaration]) -> str:
    methods = "".join(_method(method, op) for method, op in method_names(ops).items())
    return f"\nclass {name.capitalize()}Builder(DialectBuilder):\n{methods}"


def _method(name: str, op: OpDeclaration) -> str:
    signature = build_plan(op).signature
    lines = [f"    def {name}(", "        self,", "        *,"]
    for parameter in signature.parameters.values():
        default = "" if parameter.default is inspect.Parameter.empty else " = ..."
        lines.append(f"        {parameter.name}: {parameter.annotation}{default},")
    lines.append(f"    ) -> {signature.return_annotation}: ...")
    return "\n".join(lines) + "\n"
