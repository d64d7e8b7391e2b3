"""Elementwise groups and row reductions as SCE programs."""

from __future__ import annotations

from dataclasses import dataclass

from loom_core.codegen.context import Context
from loom_core.codegen.emitter import Access, Address, Operand
from loom_core.codegen.errors import CodegenFault, TooManyDimensions, Unsupported
from loom_core.codegen.groups import Group
from loom_core.codegen.registry import lowers
from loom_core.codegen.storage import Tile, row_major
from loom_core.ir.op import REGISTRY, Op
from loom_core.ir.value import Value
from loom_core.isa.commands import Queue
from loom_core.isa.program import R, S, SceInstr, SceOperand, SceProgram, StreamSpec
from loom_core.isa.sce import DTYPE_LOG2_BYTES, SCE_OPS
from loom_core.ops import elementwise as ew
from loom_core.ops import reduction, shape, special

MAX_PROGRAM_DIMS = 4


@dataclass
class _Stream:
    """One stream of a program under construction; `strides` per iteration dimension, bytes (iota: steps)."""

    spec: StreamSpec
    base: Operand
    strides: tuple[Operand, ...]
    access: Access | None = None


@dataclass(frozen=True)
class _Seen:
    """What a value looks like from an iteration space: what it is made of, and with which strides."""

    root: Value
    strides: tuple[Operand, ...]


def seen(context: Context, value: Value) -> _Seen:
    """Look through views down to stored, virtual or register values."""
    if value in context.tiles:
        return _Seen(value, context.tiles[value].strides)
    op = value.defining_op
    if isinstance(op, shape.Splat):
        return _Seen(seen(context, op.operand).root, (0,) * len(op.shape))
    if isinstance(op, shape.ExpandDims):
        inner = seen(context, op.operand)
        return _Seen(inner.root, (*inner.strides[: op.axis], 0, *inner.strides[op.axis :]))
    if isinstance(op, shape.Broadcast):
        inner = seen(context, op.operand)
        old = op.operand.type.shape
        repeated = (0 if a != b else s for s, a, b in zip(inner.strides, old, op.shape, strict=True))
        return _Seen(inner.root, tuple(repeated))
    if isinstance(op, shape.Transpose):
        inner = seen(context, op.operand)
        return _Seen(inner.root, tuple(inner.strides[d] for d in op.permutation))
    if isinstance(op, shape.Reshape):
        return _reshaped(context, op)
    if isinstance(op, shape.AffineTile):
        return _Seen(value, tuple(context.scalar(stride) for stride in op.strides))
    return _Seen(value, (0,) * len(value.type.shape))


def _reshaped(context: Context, op: shape.Reshape) -> _Seen:
    """A reshape of a row-major tile, or of one value repeated (`materialize` leaves no others)."""
    inner = seen(context, op.operand)
    if all(stride == 0 for stride in inner.strides):
        return _Seen(inner.root, (0,) * len(op.shape))
    return _Seen(inner.root, row_major(op.shape, op.result.type.dtype.itemsize))


def mnemonic_of(op: Op) -> str:
    """The SCE instruction of an operation; raises Unsupported where the engine has none for its type."""
    dtype, what = op.operands[0].type.dtype.name, f"`{op.name}`"
    if isinstance(op, ew.Compare):
        name, what = f"{op.predicate}.{dtype}", f"`{op.name}` by {op.predicate}"
        if name == "ne.bool":
            name = "xor.bool"
    elif isinstance(op, ew.Cast):
        clamps = op.saturate and op.dtype.is_float and op.dtype.bits == 8 and dtype != "bool"
        name, what = f"{'cast_sat' if clamps else 'cast'}.{dtype}.{op.dtype.name}", f"`{op.name}` to {op.dtype.name}"
    elif isinstance(op, ew.Select):
        dtype = op.on_true.type.dtype.name
        name = f"select.{dtype}"
    elif isinstance(op, reduction.Reduce):
        name, what = f"reduce_{op.kind}.{dtype}", f"`{op.name}` by {op.kind}"
    elif isinstance(op, reduction.Scan):
        name, what = f"scan_{op.kind}.{dtype}", f"`{op.name}` by {op.kind}"
    elif isinstance(op, special.CastTowardZero):
        name, what = f"cast_rtz.{dtype}.{op.dtype.name}", f"`{op.name}` to {op.dtype.name}"
    elif isinstance(op, ew.Bitcast):
        name = f"mov.{op.dtype.bits}"
    else:
        name = f"{op.name}.{dtype}"
    if name not in SCE_OPS:
        raise Unsupported(op.location, what=what, dtype=dtype)
    return name


def move_mnemonic(tile: Tile, dtype_name: str, itemsize: int) -> str:
    """A move: bits as they are, but canonical NaNs when they leave an accumulator."""
    return f"mov.{dtype_name}" if tile.accumulator else f"mov.{8 * itemsize}"


class ProgramBuilder:
    """Builds the program of one group."""

    def __init__(self, context: Context, space: tuple[int, ...], order: tuple[int, ...] | None = None) -> None:
        self.context = context
        self.space = space or (1,)
        self.order = order or tuple(range(len(self.space)))
        self.streams: list[_Stream] = []
        self.instructions: list[SceInstr] = []
        self.fold = 0
        self.flags: dict[str, int] = {}
        self._inputs: dict[tuple[object, ...], S] = {}
        self._results: dict[Value, SceOperand] = {}
        self._registers = 0

    def add(self, op: Op) -> None:
        """Append an operation. A reduction writes its window; others a register, see `finish`."""
        sources = [self.operand(value) for value in op.operands]
        mnemonic = self._mnemonic(op)
        result = op.results[0]
        if isinstance(op, reduction.Reduce):
            self.fold = 1
            self.instructions.append(_instr(mnemonic, self._store(result, reduced=True), sources))
            return
        if isinstance(op, ew.Bitcast) and op.operand.type.dtype.is_float:
            sources = [self._canonical(op.operand.type.dtype.name, sources[0])]
        if isinstance(op, special.RoundMantissa):
            sources.append(self._number(op.bits))
        self._results[result] = self.register()
        self.instructions.append(_instr(mnemonic, self._results[result], sources))

    def _number(self, number: int) -> S:
        """A number that instructions take as an operand."""
        key = ("number", number)
        if key not in self._inputs:
            zero = (0,) * len(self.space)
            self._inputs[key] = self._stream(_Stream(StreamSpec("scalar", "i32"), number, zero))
        return self._inputs[key]

    def _canonical(self, dtype: str, source: SceOperand) -> SceOperand:
        """The float with its NaNs made canonical, as it is when its bits are looked at."""
        register = self.register()
        self.instructions.append(SceInstr(f"mov.{dtype}", register, source))
        return register

    def _mnemonic(self, op: Op) -> str:
        if isinstance(op, ew.Copy):
            root = seen(self.context, op.operand).root
            dtype = op.operand.type.dtype
            tile = self.context.tiles.get(root)
            if tile is not None and tile.accumulator:
                return move_mnemonic(tile, dtype.name, dtype.itemsize)
            return "mov.bool" if dtype.kind == "bool" else f"mov.{8 * dtype.itemsize}"
        return mnemonic_of(op)

    def finish(self, stored: list[Value]) -> None:
        """Store the results that were computed into registers: straight from the last instruction where possible."""
        for value in stored:
            register = self._results[value]
            target = self._store(value, reduced=False)
            dtype = value.type.dtype
            move = "mov.bool" if dtype.kind == "bool" else f"mov.{8 * dtype.itemsize}"
            self.instructions.append(SceInstr(move, target, register))
        self._forward_stores()

    def _forward_stores(self) -> None:
        """r = op ...; ...; s = mov r  becomes  s = op ..., and other readers of r read s back, where none in between
        reads the window of s.
        """
        for move in [i for i in self.instructions if i.mnemonic.startswith("mov.") and isinstance(i.dst, S)]:
            source = move.a
            if not isinstance(source, R):
                continue
            at = next(i for i, instr in enumerate(self.instructions) if instr.dst == source)
            end = self.instructions.index(move)
            assert isinstance(move.dst, S)
            if any(
                self._same_window(operand, move.dst) for i in self.instructions[at + 1 : end] for operand in i.operands
            ):
                continue
            first = self.instructions[at]
            self.instructions[at] = SceInstr(first.mnemonic, move.dst, first.a, first.b, first.c)
            del self.instructions[end]
            self.instructions = [_reading(instr, source, move.dst) for instr in self.instructions]

    def _same_window(self, operand: SceOperand, store: S) -> bool:
        if not isinstance(operand, S):
            return False
        a, b = self.streams[operand.number].access, self.streams[store.number].access
        return a is not None and b is not None and a.target is b.target

    def register(self) -> R:
        self._registers += 1
        return R(self._registers - 1)

    def operand(self, value: Value) -> SceOperand:
        """A value as an operand: computed in this program, or read through a stream."""
        if value in self._results:
            return self._results[value]
        view = seen(self.context, value)
        if view.root in self._results:
            raise CodegenFault(self.context.emitter.location, reason="a program reads a view of its own result")
        key = (view.root, view.strides)
        if key not in self._inputs:
            self._inputs[key] = self._input(view, value)
        return self._inputs[key]

    def _input(self, view: _Seen, value: Value) -> S:
        context, root = self.context, view.root
        dtype = root.type.dtype
        strides = self._ordered(view.strides or (0,))
        op = root.defining_op
        if root in context.tiles:
            tile = context.tiles[root]
            spec = StreamSpec("load", dtype.name, tile.accumulator)
            return self._stream(_Stream(spec, tile.base, strides, context.access(tile, write=False)))
        if isinstance(op, shape.AffineTile):
            if dtype.name not in ("i32", "i64"):
                raise Unsupported(context.emitter.location, what="an index tile", dtype=dtype.name)
            return self._stream(_Stream(StreamSpec("iota", dtype.name), context.scalar(op.offset), strides))
        zero = tuple(0 for _ in strides)
        return self._stream(_Stream(StreamSpec("scalar", dtype.name), context.scalar(root), zero))

    def _ordered(self, strides: tuple[Operand, ...]) -> tuple[Operand, ...]:
        return tuple(strides[d] for d in self.order)

    def _stream(self, stream: _Stream) -> S:
        self.streams.append(stream)
        return S(len(self.streams) - 1)

    def _store(self, value: Value, reduced: bool) -> S:
        tile = self.context.define(value)
        strides: tuple[Operand, ...] = tile.strides
        if reduced:
            strides = (*strides, 0)
        return self.store_to(tile, value, strides or (0,))

    def store_ordered(self, value: Value) -> S:
        """A store stream for a result of the iteration space's shape, in the program's order of dimensions."""
        tile = self.context.define(value)
        return self.store_to(tile, value, self._ordered(tile.strides))

    def store_to(self, tile: Tile, value: Value, strides: tuple[Operand, ...]) -> S:
        spec = StreamSpec("store", value.type.dtype.name, tile.accumulator)
        return self._stream(_Stream(spec, tile.base, strides, self.context.access(tile, write=True)))

    # Emission

    def emit(self, note: str) -> None:
        sizes = tuple(self.space[d] for d in self.order)
        sizes = self._collapse(sizes)
        if len(sizes) > MAX_PROGRAM_DIMS:
            raise TooManyDimensions(
                self.context.emitter.location, rank=len(sizes), verb="computed on", limit=MAX_PROGRAM_DIMS
            )
        order = sorted(range(len(self.streams)), key=lambda i: not self._dynamic(self.streams[i]))
        renumber = {old: new for new, old in enumerate(order)}
        streams = [self.streams[i] for i in order]
        instructions = [_renumbered(instr, renumber) for instr in self.instructions]
        program = allocate_registers(tuple(stream.spec for stream in streams), instructions)
        drain = any(stream.spec.acc for stream in streams)
        operands: list[Operand] = [0, *sizes]
        for stream in streams:
            operands += [stream.base, *stream.strides]
        accesses = [stream.access for stream in streams if stream.access is not None]
        self.context.emitter.emit(
            "program",
            operands,
            flags={"ndim": len(sizes), "fold": self.fold, "drain": int(drain), **self.flags},
            queue=Queue.MXU if drain else Queue.SCE,
            program=program,
            accesses=accesses,
            note=note,
        )

    @staticmethod
    def _dynamic(stream: _Stream) -> bool:
        return not all(isinstance(operand, int | Address) for operand in (stream.base, *stream.strides))

    def _collapse(self, sizes: tuple[int, ...]) -> tuple[int, ...]:
        """Merge neighbouring dimensions that every stream walks as one."""
        kept = list(sizes)
        d = len(kept) - 2
        while d >= 0:
            crosses_fold = self.fold and d == len(kept) - 1 - self.fold
            if not crosses_fold and all(_mergeable(stream, d, kept[d + 1], kept[d]) for stream in self.streams):
                for stream in self.streams:
                    inner = d + 1 if kept[d + 1] != 1 else d
                    stream.strides = (*stream.strides[:d], stream.strides[inner], *stream.strides[d + 2 :])
                kept[d : d + 2] = [kept[d] * kept[d + 1]]
            d -= 1
        return tuple(kept)


def _mergeable(stream: _Stream, d: int, inner_size: int, outer_size: int) -> bool:
    if stream.spec.kind == "scalar" or inner_size == 1:
        return True
    if outer_size == 1:
        return True
    outer, inner = stream.strides[d], stream.strides[d + 1]
    return isinstance(outer, int) and isinstance(inner, int) and outer == inner * inner_size


def _instr(mnemonic: str, dst: SceOperand, sources: list[SceOperand]) -> SceInstr:
    a, b, c = (*sources, None, None, None)[:3]
    return SceInstr(mnemonic, dst, a, b, c)


def _reading(instr: SceInstr, old: SceOperand, new: SceOperand) -> SceInstr:
    """The instruction with one of its sources replaced."""
    a, b, c = (new if operand == old else operand for operand in (instr.a, instr.b, instr.c))
    return SceInstr(instr.mnemonic, instr.dst, a, b, c)


def _renumbered(instr: SceInstr, renumber: dict[int, int]) -> SceInstr:
    def fix(operand: SceOperand | None) -> SceOperand | None:
        return S(renumber[operand.number]) if isinstance(operand, S) else operand

    dst = fix(instr.dst)
    assert dst is not None
    return SceInstr(instr.mnemonic, dst, fix(instr.a), fix(instr.b), fix(instr.c))


def allocate_registers(streams: tuple[StreamSpec, ...], instructions: list[SceInstr]) -> SceProgram:
    """Reuse a register as soon as its value has been read for the last time.

    A result takes the register of one of its own operands only where both have one width: an engine writes element i
    after it has read element i, not the bytes of other elements.
    """
    last = {
        operand.number: i
        for i, instr in enumerate(instructions)
        for operand in instr.operands
        if isinstance(operand, R)
    }
    assigned: dict[int, int] = {}
    width: dict[int, int] = {}
    free: set[int] = set()
    count = 0
    result = []
    for i, instr in enumerate(instructions):
        sources = [R(assigned[o.number]) if isinstance(o, R) else o for o in instr.operands]
        ending = {assigned[o.number] for o in instr.operands if isinstance(o, R) and last[o.number] == i}
        dst = instr.dst
        if isinstance(dst, R):
            bytes_each = DTYPE_LOG2_BYTES[_result_dtype(instr)]
            usable = free | {register for register in ending if width[register] == bytes_each}
            register = min(usable) if usable else count
            count = max(count, register + 1)
            free.discard(register)
            ending.discard(register)
            assigned[dst.number], width[register] = register, bytes_each
            if dst.number not in last:
                ending.add(register)
            dst = R(register)
        free |= ending
        result.append(_instr(instr.mnemonic, dst, sources))
    return SceProgram(streams, tuple(result), count)


def _result_dtype(instr: SceInstr) -> str:
    result = SCE_OPS[instr.mnemonic].result
    return f"u{result}" if result.isdigit() else result


# ---- groups ----


def lower_group(context: Context, group: Group) -> None:
    """One group as one program."""
    order = None
    if group.permuted:
        axis = group.ops[0].attributes["axis"]
        order = (*(d for d in range(len(group.shape)) if d != axis), axis)
    program = ProgramBuilder(context, group.shape, order)
    with context.emitter.located(group.ops[-1].location):
        for op in group.ops:
            program.add(op)
        program.finish([value for value in group.outputs if not isinstance(value.defining_op, reduction.Reduce)])
        program.emit(" ".join(op.name for op in group.ops))


def emit_move(context: Context, value: Value, target: Tile, space: tuple[int, ...]) -> None:
    """Copy a value, through whatever view, into another tile of the same shape."""
    program = ProgramBuilder(context, space)
    source = program.operand(value)
    root = seen(context, value).root
    dtype = value.type.dtype
    tile = context.tiles.get(root, target)
    move = move_mnemonic(tile, dtype.name, dtype.itemsize) if dtype.kind != "bool" else "mov.bool"
    destination = program.store_to(target, value, target.strides or (0,))
    program.instructions.append(SceInstr(move, destination, source))
    program.emit("move")


def _declare_stream_ops() -> list[type[Op]]:
    return [kind for kind in REGISTRY.values() if kind.elementwise] + [reduction.Reduce]


@lowers(*_declare_stream_ops())
def lower_stream_op(context: Context, op: Op) -> None:
    """Elementwise operations and reductions are lowered with their group, see `lower_group`."""
    raise CodegenFault(op.location, reason=f"{op.name} outside a group")
