"""State of one kernel's code generation: where every value is, and what has been emitted."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from loom_core.base.dtype import DType
from loom_core.codegen.cores import CoreAxes
from loom_core.codegen.emitter import Access, Address, Emitter, Operand, Register, Window
from loom_core.codegen.errors import CodegenFault, NoSuchQueue
from loom_core.codegen.groups import VIEWS
from loom_core.codegen.rings import Ring
from loom_core.codegen.schedule import BlockSchedule
from loom_core.codegen.storage import Sharing, Tile, row_major, tile_of
from loom_core.ir.block import Block, Function
from loom_core.ir.op import Op
from loom_core.ir.value import Value
from loom_core.isa.commands import SPACE_SRAM, Queue
from loom_core.isa.machine import MachineConfig, acc_bytes
from loom_core.ops import matmul, memory, shape

# Codes of the `narrow` flag of ACP arithmetic.
NARROW = {"i64": 0, "u64": 0, "i32": 1, "u32": 2, "i16": 3, "u16": 4, "i8": 5, "u8": 6, "bool": 7}


MOST_SLOTS = 16


@dataclass(frozen=True)
class Options:
    """How to generate: `prefetch` "all" (loops and grid), "loops" or "none"; whether buffers may overlap; how many
    slots a window may have.
    """

    prefetch: str = "all"
    assume_noalias: bool = True
    slots: int = MOST_SLOTS


@dataclass(frozen=True)
class PanelUse:
    """A product's need of `root` in panel layout: `axes` are the root dimensions of (extent, depth), -1 for none."""

    side: str
    axes: tuple[int, int]
    shape: tuple[int, int]


@dataclass(frozen=True)
class Place:
    """An address: its space, the offset in it, and what an access to it touches."""

    space: int
    offset: Operand
    target: Window | int


@dataclass
class Context:
    """Shared by all lowerings of one kernel."""

    function: Function
    machine: MachineConfig
    options: Options
    schedules: dict[Block, BlockSchedule]
    sharing: Sharing
    emitter: Emitter = field(default_factory=Emitter)
    scalars: dict[Value, Operand] = field(default_factory=dict)
    tiles: dict[Value, Tile] = field(default_factory=dict)
    panels: dict[tuple[Value, PanelUse], Tile] = field(default_factory=dict)
    panel_uses: dict[Value, list[PanelUse]] = field(default_factory=dict)
    bindings: dict[Value, int] = field(default_factory=dict)
    program_ids: list[Register] = field(default_factory=list)
    grid: list[Register] = field(default_factory=list)
    windows: dict[Value, Window] = field(default_factory=dict)
    regions: dict[Value, Window] = field(default_factory=dict)
    prefetched: set[Op] = field(default_factory=set)
    rings: dict[Block, list[Ring]] = field(default_factory=dict)  # of what a loop over the block stores
    turns: dict[Value, Ring] = field(default_factory=dict)  # the same by value
    reports: list[dict[str, Any]] = field(default_factory=list)
    core_axes: CoreAxes = field(default_factory=CoreAxes)
    _dma_turn: int = 0

    def may_alias(self, a: Value, b: Value) -> bool:
        """Whether two pointer arguments may reach the same memory."""
        own = isinstance(a.defining_op, memory.Window) or isinstance(b.defining_op, memory.Window)
        return a is b or not (own or self.options.assume_noalias)

    def place(self, base: Value, offset: Operand) -> Place:
        """Where `offset` bytes from a pointer are: in an array that the kernel was given, or in a window."""
        window = self.regions.get(base)
        if window is None:
            return Place(self.bindings[base], offset, self.bindings[base])
        if isinstance(offset, int):
            return Place(SPACE_SRAM, Address(window, offset), window)
        return Place(SPACE_SRAM, self.emitter.scalar("add", offset, Address(window), name="at"), window)

    # Scalars

    def scalar(self, value: Value) -> Operand:
        """A scalar, or the element of a tile of one, as an operand: a number, or a register (a float's bits)."""
        op = value.defining_op
        if isinstance(op, shape.Constant):
            return constant_bits(op.value, op.type.dtype)
        if value in self.scalars:
            return self.scalars[value]
        if value in self.tiles:
            return self.load_scalar(value)  # not kept: what is loaded in a branch is not there after it
        if isinstance(op, VIEWS):
            return self.scalar(op.operands[0])  # a tile of one element
        if isinstance(op, shape.AffineTile):
            return self.scalar(op.offset)
        raise CodegenFault(self.emitter.location, reason=f"scalar {value!r} has no register")

    def load_scalar(self, value: Value) -> Register:
        """Fetch a scalar from its window into a register."""
        dtype = value.type.dtype
        register = Register(value.name or "scalar")
        tile = self.tiles[value]
        self.emitter.emit(
            "lds",
            [register, SPACE_SRAM, tile.base],
            flags={"log2_bytes": dtype.itemsize.bit_length() - 1, "signed": int(dtype.kind == "int")},
            accesses=[self.access(tile, write=False)],
        )
        return register

    # Windows

    def define(self, value: Value) -> Tile:
        """The tile in which `value` is to be written; shares its class's window."""
        if value in self.tiles:
            return self.tiles[value]
        if value in self.turns:
            ring = self.turns[value]
            strides = row_major(value.type.shape, value.type.dtype.itemsize)
            self.tiles[value] = Tile(ring.window, ring.current, strides, phase="cur")
            return self.tiles[value]
        accumulator = self.sharing.is_accumulator(value)
        root = self.sharing.root(value)
        window = self.windows.get(root)
        if window is None:
            window = self.windows[root] = self.emitter.window(self.name_of(value), self.bytes_of(value, accumulator))
        tile = tile_of(window, value, self.machine, accumulator)
        self.tiles[value] = tile
        return tile

    def bytes_of(self, value: Value, accumulator: bool) -> int:
        if accumulator:
            return acc_bytes(self.machine, *value.type.shape)
        return value.type.size * value.type.dtype.itemsize

    def name_of(self, value: Value) -> str:
        op = value.defining_op
        return value.name or (op.name if op is not None else "argument")

    def access(self, tile: Tile, write: bool) -> Access:
        return Access(tile.window, write, tile.phase)

    def dma_queue(self) -> Queue:
        """Loads take turns on all queues but the last, which is for stores."""
        count = max(1, self.machine.dma_queues - 1)
        queue = Queue(Queue.DMA0 + self._dma_turn % count)
        self._dma_turn += 1
        return queue

    def numbered_queue(self, number: int) -> Queue:
        """The DMA queue of a number. NoSuchQueue where the machine has fewer."""
        if not 0 <= number < self.machine.dma_queues:
            raise NoSuchQueue(
                self.emitter.location, number=number, machine=self.machine.name, count=self.machine.dma_queues
            )
        return Queue(Queue.DMA0 + number)

    @property
    def store_queue(self) -> Queue:
        return Queue(Queue.DMA0 + self.machine.dma_queues - 1)

    # Products' operands

    def collect_panels(self) -> None:
        """Note for every value which products need it in panel layout, and how."""
        for op in self.function.walk():
            if isinstance(op, matmul.Dot):
                for side, value in (("a", op.a), ("b", op.b)):
                    root, use = panel_use(side, value)
                    uses = self.panel_uses.setdefault(root, [])
                    if use not in uses:
                        uses.append(use)

    def only_panels(self, value: Value) -> bool:
        """Whether products are all that the value is used for, so that it need not exist in plain layout."""

        def check(value: Value) -> bool:
            return all(
                check(user.results[0])
                if isinstance(user, VIEWS)
                else isinstance(user, matmul.Dot) and user.acc is not value
                for user in value.users
            )

        return value in self.panel_uses and check(value)


def panel_use(side: str, value: Value) -> tuple[Value, PanelUse]:
    """The stored value behind a product's operand, and which of its dimensions are extent and depth."""
    axes = list(range(len(value.type.shape)))
    root = value
    while isinstance(root.defining_op, shape.Transpose | shape.ExpandDims):
        op = root.defining_op
        if isinstance(op, shape.Transpose):
            axes = [op.permutation[d] if d >= 0 else d for d in axes]
        else:
            axes = [d if d < op.axis else (-1 if d == op.axis else d - 1) for d in axes]
        root = op.operands[0]
    rows, columns = value.type.shape
    if side == "a":
        return root, PanelUse(side, (axes[0], axes[1]), (rows, columns))
    return root, PanelUse(side, (axes[1], axes[0]), (columns, rows))


def constant_bits(value: object, dtype: DType) -> int:
    """A constant as an operand: the integer, or the IEEE bits of a float."""
    if dtype.kind != "float":
        return int(value)  # type: ignore[call-overload,no-any-return]
    if dtype.bits == 32:
        return int(struct.unpack("<I", struct.pack("<f", np.float32(value)))[0])  # type: ignore[arg-type]
    raw = np.asarray(value, dtype=dtype.numpy).tobytes()
    return int.from_bytes(raw, "little")
