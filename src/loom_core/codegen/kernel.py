"""One kernel to one object."""

from __future__ import annotations

import contextlib
from collections import Counter
from typing import Any

import loom_core.codegen.indexed
import loom_core.codegen.memory
import loom_core.codegen.rearrange
import loom_core.codegen.reports
import loom_core.codegen.rows
import loom_core.codegen.stream  # noqa: F401  (the imports register lowerings)
from loom_core.codegen.allocate import Lifetimes, number_registers, place_windows
from loom_core.codegen.assemble import Assembly, window_table
from loom_core.codegen.context import MOST_SLOTS, Context, Options
from loom_core.codegen.control import lower_grid
from loom_core.codegen.cores import find_core_axes
from loom_core.codegen.emitter import Emitted, Register
from loom_core.codegen.errors import TileTooLarge, TooManyScalars
from loom_core.codegen.matmul import product_command
from loom_core.codegen.rings import plan_rings
from loom_core.codegen.schedule import BlockSchedule, effects
from loom_core.codegen.storage import Sharing
from loom_core.ir.block import Block, Function
from loom_core.isa.machine import MachineConfig
from loom_core.objfile import Abi, AbiArg, LoomObject
from loom_core.ops import matmul

GRID_DIMS = 3
WHILE_BUDGET = 1 << 32
"""Backward jumps that a run may take: endless loops end, honest ones do not notice."""
LEVELS = (("all", MOST_SLOTS), ("all", 2), ("loops", 2), ("none", 1))
"""What runs ahead, and the slots that a window may have: from the fastest to what takes least room."""


def generate(function: Function, machine: MachineConfig, options: Options) -> LoomObject:
    """Commands for a function that went through `passes.pipeline`.

    Prefetching multiplies windows and keeps their addresses in registers: where they do not fit, it becomes shorter, is
    then given up for the grid, then for loops.
    """
    names = [name for name, _ in LEVELS]
    for name, slots in LEVELS[names.index(options.prefetch) : -1]:
        level = Options(name, options.assume_noalias, min(slots, options.slots))
        with contextlib.suppress(TileTooLarge, TooManyScalars):
            return _generate(function, machine, level)
    return _generate(function, machine, Options("none", options.assume_noalias, 1))


def _generate(function: Function, machine: MachineConfig, options: Options) -> LoomObject:
    context = _context(function, machine, options)
    args = _bind_arguments(context)
    reserved = GRID_DIMS + sum(arg.kind == "scalar" for arg in args)
    axes = context.core_axes = find_core_axes(function, reserved)
    reserved += 2 * len(axes.shared)
    lower_grid(context, function.body)
    context.emitter.remove_dead_scalars()
    lifetimes = Lifetimes(context.emitter)
    number_registers(lifetimes, function, machine, reserved)
    used = place_windows(lifetimes, function, machine)
    assembly = Assembly(context.emitter, not options.assume_noalias, machine)
    abi = Abi(tuple(args), (0, 1, 2), used, _noalias(args, options), tuple(axes.shared), tuple(axes.serial))
    return LoomObject(
        commands=assembly.commands,
        programs=assembly.programs,
        abi=abi,
        sourcemap=assembly.sourcemap,
        loops=assembly.loops,
        manifest=_manifest(context, window_table(lifetimes, assembly.words)),
        machine=machine,
    )


def _context(function: Function, machine: MachineConfig, options: Options) -> Context:
    context = Context(function, machine, options, {}, Sharing({}))
    blocks: list[Block] = [function.body]
    for op in function.walk():
        blocks += op.regions
        if isinstance(op, matmul.Dot):
            product_command(op)  # diagnose before anything is emitted
    for block in blocks:
        context.schedules[block] = BlockSchedule(block, context.may_alias, machine)
    context.sharing = Sharing(context.schedules)
    context.sharing.build(function.body)
    context.sharing.build_branches(function.body)
    context.collect_panels()
    plan_rings(context)
    return context


def _bind_arguments(context: Context) -> list[AbiArg]:
    """Pointers become bindings 1.., scalars the registers after the grid's."""
    context.grid = [Register(f"grid.{axis}", fixed=i) for i, axis in enumerate("xyz")]
    touched = [effects(op) for op in context.function.body.operations]
    read = {base for effect in touched for base in effect.reads}
    written = {base for effect in touched for base in effect.writes}
    args: list[AbiArg] = []
    register = GRID_DIMS
    for value in context.function.arguments:
        name = value.name or f"arg{value.index}"
        if value.type.is_pointer:
            context.bindings[value] = len(context.bindings) + 1
            slot, dtype = context.bindings[value], value.type.pointee
            args.append(AbiArg(name, "buffer", dtype.name, slot, value in read, value in written))
        else:
            context.scalars[value] = Register(name, fixed=register)
            args.append(AbiArg(name, "scalar", value.type.dtype.name, register))
            register += 1
    return args


def _noalias(args: list[AbiArg], options: Options) -> tuple[tuple[int, int], ...]:
    """Pairs of a buffer that is written and another one that is used at all."""
    if not options.assume_noalias:
        return ()
    used = [arg for arg in args if arg.kind == "buffer" and (arg.read or arg.written)]
    return tuple((a.slot, b.slot) for i, a in enumerate(used) for b in used[i + 1 :] if a.written or b.written)


def _manifest(context: Context, windows: list[dict[str, object]]) -> dict[str, Any]:
    counts = Counter(item.mnemonic for item in context.emitter.items if isinstance(item, Emitted))
    budget = {"while_budget": WHILE_BUDGET} if counts["while"] else {}
    reports = {"reports": context.reports} if context.reports else {}
    return {
        **budget,
        **reports,
        "kernel": context.function.name,
        "options": {"prefetch": context.options.prefetch, "assume_noalias": context.options.assume_noalias},
        "commands": dict(sorted(counts.items())),
        "windows": windows,
    }
