"""Axes of programs that cores may share: registers for the part of each core, and what forbids it.

Programs of the launch's grid keep nothing in SRAM for each other. A loop that a language made of a grid axis (`For`
with `axis`) may: a value that it carries, or a window that it writes and reads. Such an axis is serial, unless the
author has declared it parallel and nothing is read after it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from loom_core.codegen.emitter import Operand, Register
from loom_core.codegen.schedule import effects
from loom_core.ir.block import Block, Function
from loom_core.objfile import CoreAxis, SerialAxis
from loom_core.ops import control, memory, shape

GRID_NAMES = "xyz"


@dataclass
class CoreAxes:
    """What the axes of a kernel are: `bounds` by axis name, and their rows in the object's ABI."""

    bounds: dict[str, tuple[Register, Register]] = field(default_factory=dict)
    shared: list[CoreAxis] = field(default_factory=list)
    serial: list[SerialAxis] = field(default_factory=list)

    def of_grid(self, axis: int, extent: Operand) -> tuple[Operand, Operand]:
        """Bounds of the loop over a grid axis: those of the core's part, or all of it."""
        return self.bounds.get(GRID_NAMES[axis], (0, extent))

    def of_loop(self, loop: control.For, lower: Operand, upper: Operand) -> tuple[Operand, Operand]:
        """The same for a loop of the kernel."""
        return self.bounds.get(loop.axis, (lower, upper)) if loop.axis else (lower, upper)

    def add(self, name: str, register: int, extent: int = -1, size: int = 0) -> None:
        self.bounds[name] = Register(f"{name}.start", fixed=register), Register(f"{name}.end", fixed=register + 1)
        self.shared.append(CoreAxis(name, register, register + 1, extent, size))


def find_core_axes(function: Function, first_register: int) -> CoreAxes:
    """The axes of a kernel, outermost first; registers from `first_register` on are taken for them."""
    axes = CoreAxes()
    used = {op.axis for op in function.walk() if isinstance(op, control.ProgramId)}
    for axis in sorted(used, reverse=True):
        axes.add(GRID_NAMES[axis], first_register + 2 * len(axes.bounds), extent=axis)
    for loop in function.walk():
        if not isinstance(loop, control.For) or not loop.axis:
            continue
        reason, upper = _obstacle(loop), loop.upper.defining_op
        if reason:
            axes.serial.append(SerialAxis(loop.axis, reason))
        elif isinstance(upper, shape.Constant):
            axes.add(loop.axis, first_register + 2 * len(axes.bounds), size=upper.value)
    return axes


def _obstacle(loop: control.For) -> str:
    """What programs along a loop hand on in SRAM, in words; "" for nothing that counts."""
    block = loop.regions[0]
    for argument, result in zip(block.arguments[1:], loop.results, strict=True):
        if result.users or (argument.users and not loop.parallel):
            return f"{argument.name or 'a tile'} goes from program to program"
    touched = effects(loop)
    for window in touched.writes:
        op = window.defining_op
        if not isinstance(op, memory.Window) or _is_inside(op.parent, loop):
            continue
        read_after = any(not _is_inside(user.parent, loop) for user in window.users)
        if read_after or (window in touched.reads and not loop.parallel):
            return f"{window.name or 'a window of SRAM'} goes from program to program"
    return ""


def _is_inside(block: Block | None, loop: control.For) -> bool:
    while block is not None and block is not loop.regions[0]:
        block = block.parent.parent if block.parent is not None else None
    return block is not None
