"""Element engines: one loop over `count` elements for each SCE opcode, made from its row and its scalar function.

An element engine is void(dst, a, b, c, count): addresses of `count` contiguous elements each (unused ones are ignored).
Element i is read from all operands before it is written, so dst may be one of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, TypeAlias

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from loom_core.base.dtype import by_name
from loom_core.isa.sce import SceOp
from loom_sim.bits import select
from loom_sim.carried import build_argument, build_scan
from loom_sim.descriptors import ONE, REPEATING
from loom_sim.element_types import VALUE_TYPES, after_load, before_store, memory_type
from loom_sim.reductions import build_reduction
from loom_sim.scalars import Scalar, compiled_scalar, ordinary_of, scalar_of

ElementEngine: TypeAlias = Callable[[int, int, int, int, int], None]


def _scopes(module: ir.Module) -> tuple[Any, Any]:
    """Alias scope list of an engine's loads.

    Stores are declared not to alias them, or LLVM would test for overlap and run an in-place update one element at a
    time. That is sound although dst may equal an operand: the value stored depends on every load of its element, and no
    other element is touched.
    """
    domain = module.add_metadata([ir.MetaDataString(module, "loom.elements")])
    scope = module.add_metadata([ir.MetaDataString(module, "loom.elements.loads"), domain])
    return domain, module.add_metadata([scope])


def _make_load(name: str) -> Any:
    memory = memory_type(name)

    @intrinsic
    def load(typing_context, base, index):  # type: ignore[no-untyped-def]
        """Element `index` of the array at `base`."""

        def generate(context: Any, builder: ir.IRBuilder, signature: Any, values: Sequence[ir.Value]) -> ir.Value:
            # One inttoptr and an indexed access: the form in which the vectoriser sees consecutive elements.
            pointer = builder.gep(builder.inttoptr(values[0], memory.as_pointer()), [values[1]])
            value = builder.load(pointer, align=1)
            value.set_metadata("alias.scope", _scopes(builder.module)[1])
            return after_load(builder, name, value)

        return VALUE_TYPES[name](types.int64, types.int64), generate

    return load


def _make_store(name: str) -> Any:
    memory = memory_type(name)

    @intrinsic
    def store(typing_context, base, index, value):  # type: ignore[no-untyped-def]
        """`value` to element `index` of the array at `base`."""

        def generate(context: Any, builder: ir.IRBuilder, signature: Any, values: Sequence[ir.Value]) -> ir.Value:
            pointer = builder.gep(builder.inttoptr(values[0], memory.as_pointer()), [values[1]])
            instruction = builder.store(before_store(builder, name, values[2]), pointer, align=1)
            instruction.set_metadata("noalias", _scopes(builder.module)[1])
            return context.get_dummy_value()

        return types.void(types.int64, types.int64, VALUE_TYPES[name]), generate

    return store


_LOADS: Final = {name: _make_load(name) for name in VALUE_TYPES}
_STORES: Final = {name: _make_store(name) for name in VALUE_TYPES}


def build_element(op: SceOp) -> ElementEngine:
    """The Python function of an opcode's engine, for `jit.engine_address`."""
    if op.is_scan:
        return build_scan(op, _LOADS[op.result], _STORES[op.result])
    if op.is_argument:
        return build_argument(op, _LOADS[f"{8 * by_name(op.operands[0]).itemsize}"], _STORES[op.result])
    if op.is_reduction:
        return build_reduction(op, _LOADS[op.result], _STORES[op.result])
    loads, store = [_LOADS[name] for name in op.operands], _STORES[op.result]
    ordinary = ordinary_of(op)
    if ordinary is not None:
        builder = (_guarded_unary, _guarded_binary)[len(op.operands) - 1]
        function, holds = compiled_scalar(ordinary.function), compiled_scalar(ordinary.holds)
        return builder(scalar_of(op), function, holds, loads, store)
    if op.mnemonic in REPEATING:
        return _repeating(scalar_of(op), loads, store)
    return (_unary, _binary, _ternary)[len(op.operands) - 1](scalar_of(op), loads, store)


def _unary(scalar: Scalar, loads: Sequence[Any], store: Any) -> ElementEngine:
    (load_a,) = loads

    def engine(dst, a, b, c, count):  # type: ignore[no-untyped-def]
        for i in range(count):
            store(dst, i, scalar(load_a(a, i)))

    return engine


def _binary(scalar: Scalar, loads: Sequence[Any], store: Any) -> ElementEngine:
    load_a, load_b = loads

    def engine(dst, a, b, c, count):  # type: ignore[no-untyped-def]
        for i in range(count):
            store(dst, i, scalar(load_a(a, i), load_b(b, i)))

    return engine


def _repeating(scalar: Scalar, loads: Sequence[Any], store: Any) -> ElementEngine:
    """`_binary`, whose second operand is one element for all where c is ONE."""
    load_a, load_b = loads

    def engine(dst, a, b, c, count):  # type: ignore[no-untyped-def]
        if c == ONE:
            second = load_b(b, 0)
            for i in range(count):
                store(dst, i, scalar(load_a(a, i), second))
        else:
            for i in range(count):
                store(dst, i, scalar(load_a(a, i), load_b(b, i)))

    return engine


def _ternary(scalar: Scalar, loads: Sequence[Any], store: Any) -> ElementEngine:
    load_a, load_b, load_c = loads

    def engine(dst, a, b, c, count):  # type: ignore[no-untyped-def]
        for i in range(count):
            store(dst, i, scalar(load_a(a, i), load_b(b, i), load_c(c, i)))

    return engine


# A function with a slow path for rare arguments: its vectorised variant runs where a whole chunk is ordinary.


def _guarded_unary(scalar: Scalar, ordinary: Scalar, holds: Scalar, loads: Sequence[Any], store: Any) -> ElementEngine:
    (load_a,) = loads

    def engine(dst, a, b, c, count):  # type: ignore[no-untyped-def]
        rare = np.int32(0)
        for i in range(count):
            rare = select(holds(load_a(a, i)), rare, np.int32(1))
        if rare == 0:
            for i in range(count):
                store(dst, i, ordinary(load_a(a, i)))
        else:
            for i in range(count):
                store(dst, i, scalar(load_a(a, i)))

    return engine


def _guarded_binary(scalar: Scalar, ordinary: Scalar, holds: Scalar, loads: Sequence[Any], store: Any) -> ElementEngine:
    load_a, load_b = loads

    def engine(dst, a, b, c, count):  # type: ignore[no-untyped-def]
        rare = np.int32(0)
        for i in range(count):
            rare = np.int32(rare | (not holds(load_a(a, i), load_b(b, i))))
        if rare == 0:
            for i in range(count):
                store(dst, i, ordinary(load_a(a, i), load_b(b, i)))
        else:
            for i in range(count):
                store(dst, i, scalar(load_a(a, i), load_b(b, i)))

    return engine
