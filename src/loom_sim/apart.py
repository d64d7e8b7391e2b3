"""The proof that parts of a launch may run side by side: on the launch's own numbers, byte by byte where need be.

A survey of every part (`survey`) finds the bytes of HBM that it would touch. The parts are apart where none writes what
another one reads or writes, order-free atomics aside: first by the hulls of what they touch, then, where hulls meet, by
every run of bytes. A survey follows scalars, not data: where data decide an address or a branch, nothing is proved.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt

from loom_core.base.dtype import by_name
from loom_core.isa.encoding import Command, Reg, operand_layout
from loom_core.isa.sce import ALL_SCE_OPS
from loom_core.objfile import CoreAxis
from loom_sim import state as words
from loom_sim import survey_layout as layout

if TYPE_CHECKING:
    from loom_sim.program import Launch, Program

MOST_COMMANDS: Final = 1 << 24
"""Commands of one part that a survey follows."""
MOST_PIECES: Final = 1 << 20
_ORDER_FREE: Final = ("add", "and", "or", "xor")
_EXTREMES: Final = ("max", "maxp", "min", "minp")

Pieces = npt.NDArray[np.int64]


# ---- what can be said without a launch ----


def obstacle(program: Program) -> str:
    """What forbids several cores whatever the launch, in words; "" for nothing."""
    for word, command in program.commands.items():
        if command.mnemonic == "report":
            return f"prints and assertions come in the order of programs ({_at(program, word)})"
    word = scalars_decide(program.commands)
    if word >= 0:
        command = program.commands[word]
        kind = "branch or loop" if command.mnemonic in _FLOW else command.mnemonic
        return f"what the {kind} {_at(program, word)} does depends on data"
    return ""


def _at(program: Program, word: int) -> str:
    location = program.location_of(word)
    return f"at line {location.line}" if location.known else f"at word {word}"


def scalars_decide(commands: dict[int, Command] | Any) -> int:
    """The first word whose command depends on a scalar that was loaded from memory, in what it does to HBM or where
    the stream goes on; -1 for none.

    Registers are followed along the stream, loops to a fixed point: bit r of a set says that register r came from
    memory.
    """
    order = list(commands)
    following = dict(itertools.pairwise(order))
    loaded: dict[int, int] = {order[0]: 0} if order else {}
    pending = list(order[:1])
    while pending:
        word = pending.pop()
        command, before = commands[word], loaded[word]
        for target, after in _flow(word, command, before, following):
            known = loaded.get(target)
            if known is None or after & ~known:
                loaded[target] = after | (known or 0)
                pending.append(target)
    decided = [word for word in order if word in loaded and _is_decided(commands[word], loaded[word])]
    # A branch or loop is the cause of much that comes after it.
    return next((word for word in decided if commands[word].mnemonic in _FLOW), decided[0] if decided else -1)


def _flow(word: int, command: Command, before: int, following: dict[int, int]) -> list[tuple[int, int]]:
    """Where the stream goes from a command, with the registers that then hold loaded scalars."""
    after = before
    specs = command.spec.operands
    if specs and specs[0].role == "register":
        target = command.operands[0]
        assert isinstance(target, int)
        sources = any(_holds(before, operand) for operand in command.operands[1:])
        came = command.mnemonic == "lds" or sources
        after = before | 1 << target if came else before & ~(1 << target)
    next_words = [following[word]] if word in following and command.mnemonic not in ("halt", "jump", "trap") else []
    if command.mnemonic in ("jump", "brz", "brnz", "while", "loop"):
        end = command.operands[-1]
        assert isinstance(end, int)
        next_words.append(end)
    return [(target, after) for target in next_words]


def _holds(loaded: int, operand: Any) -> bool:
    return isinstance(operand, Reg) and bool(loaded >> operand.number & 1)


_FLOW: Final = ("loop", "brz", "brnz")


def _is_decided(command: Command, loaded: int) -> bool:
    if not loaded:
        return False
    slots = operand_layout(command.spec, command.flags, len(command.operands)) or ()
    if command.mnemonic in (*_FLOW, "lds", "sts") or command.spec.engine == "dma":
        return any(
            _holds(loaded, operand) and slot.name not in ("fill", "value")
            for slot, operand in zip(slots, command.operands, strict=True)
        )
    return False


# ---- one way to divide a launch ----


class Attempt:
    """The surveys of the parts of a division."""

    def __init__(
        self, program: Program, launch: Launch, axis: CoreAxis, parts: tuple[tuple[int, int], ...], absolute: bool
    ) -> None:
        self._program = program
        self._launch = launch
        self._axis = axis
        self.parts = parts
        self._absolute = absolute
        self._spaces = 1 + program.object.spaces
        self._surveys = [self._survey(part) for part in parts]

    @property
    def nanoseconds(self) -> int:
        """An estimate of the work of all parts."""
        return sum(one.nanoseconds for one in self._surveys)

    @property
    def use(self) -> float:
        """The part of the time for which the cores work, if all had the same speed."""
        most = max(one.nanoseconds for one in self._surveys)
        return self.nanoseconds / (most * len(self._surveys)) if most else 1.0

    def balanced_parts(self) -> tuple[tuple[int, int], ...]:
        """As many parts that come nearest to equal work, by the estimates for each program along the axis."""
        work = np.cumsum(np.concatenate([one.by_place for one in self._surveys]) + 1)
        count = len(self.parts)
        shares = [int(work[-1]) * i // count for i in range(1, count)]
        bounds = [0, *(int(np.searchsorted(work, share)) + 1 for share in shares), len(work)]
        # None is empty: each bound leaves a program to those before and after.
        bounds = [min(max(bound, i), len(work) - count + i) for i, bound in enumerate(bounds)]
        return tuple(itertools.pairwise(bounds))

    def obstacle(self) -> str:
        """Why the parts must not run side by side, in words; "" if they may."""
        for one in self._surveys:
            if one.status != words.HALTED:
                return "a survey of its commands did not come to an end"
        contested = np.zeros((self._spaces, 2), np.int64)
        for space in range(1, self._spaces):
            reason = self._atomics_meet(space)
            if reason:
                return reason
            contested[space] = self._contested(space)
        if not contested.any():
            return ""
        pieces = []
        for part in self.parts:
            found = self._survey(part, contested).pieces
            if found is None:
                return "its accesses are in too many pieces to compare"
            pieces.append(found)
        return self._meeting(pieces)

    def _survey(self, part: tuple[int, int], contested: npt.NDArray[np.int64] | None = None) -> _Survey:
        return _Survey(self._program, self._launch, self._axis, part, self._absolute, contested)

    def _contested(self, space: int) -> tuple[int, int]:
        """The bytes of a space in which the hull of one core's writes meets that of another one's accesses."""
        low, high = layout.EMPTY_LOW, -layout.EMPTY_LOW
        for mine in self._surveys:
            for other in self._surveys:
                writes = mine.hull(space, layout.WRITE)
                for kind in (layout.READ, layout.WRITE) if mine is not other else ():
                    hull = other.hull(space, kind)
                    if _overlap(writes, hull):
                        low, high = min(low, max(writes[0], hull[0])), max(high, min(writes[1], hull[1]))
        return (low, high) if low < high else (0, 0)

    def _atomics_meet(self, space: int) -> str:
        """What the atomics on a space meet that other cores do; "" for nothing, or atomics of the same kind."""
        for mine in self._surveys:
            atomics = mine.hull(space, layout.ATOMIC)
            for other in self._surveys:
                for kind in range(layout.KINDS) if mine is not other else ():
                    hull = other.hull(space, kind)
                    same = kind == layout.ATOMIC and atomics[2] == hull[2] != layout.MIXED
                    if not same and _overlap(atomics, hull):
                        first, second = (_at(self._program, one[3]) for one in (atomics, hull))
                        return f"the atomics {first} may meet the accesses {second}"
        return ""

    def _meeting(self, pieces: Sequence[Pieces]) -> str:
        """The first place where cores meet, in words."""
        for i, mine in enumerate(pieces):
            for j, others in enumerate(pieces):
                for space in np.unique(mine[:, 0] >> 1) if i != j else ():
                    writes = mine[mine[:, 0] == space << 1 | layout.WRITE]
                    touched = others[others[:, 0] >> 1 == space]
                    pair = first_meeting(writes, touched)
                    if pair is not None:
                        return self._words(*pair)
        return ""

    def _words(self, write: Pieces, other: Pieces) -> str:
        for kind, _, _, word, _ in (write, other):
            mnemonic = self._program.commands[int(word)].mnemonic
            if mnemonic in ("gather", "scatter", "scatter_reduce", "compare_swap"):
                verb = "stores" if kind & 1 else "loads"
                return f"indices decide what the {mnemonic} {_at(self._program, int(word))} {verb}"
        where = self._element(int(write[0]) >> 1, max(int(write[1]), int(other[1])))
        at, there = (_at(self._program, int(piece[3])) for piece in (write, other))
        programs = f"programs {min(write[4], other[4])} and {max(write[4], other[4])}"
        if not other[0] & 1:
            return f"program {other[4]} loads {there} what program {write[4]} stores {at}: {where}"
        stores = f"the stores {at}" if at == there else f"the stores {at} and {there}"
        return f"{stores} of {programs} meet: {where}"

    def _element(self, space: int, byte: int) -> str:
        arguments = self._program.object.abi.buffers
        if self._absolute:
            for number, _ in enumerate(arguments, 1):
                at = words.SPACES + number * words.SPACE_WORDS
                base, low, high = self._launch._view[at], self._launch._view[at + 1], self._launch._view[at + 2]
                if low <= byte - base < high:
                    space, byte = number, byte - base
                    break
        argument = arguments[space - 1]
        return f"{argument.name}[{byte // by_name(argument.dtype).itemsize}]"


def _overlap(a: Sequence[int], b: Sequence[int]) -> bool:
    return a[0] < b[1] and b[0] < a[1]


def first_meeting(writes: Pieces, others: Pieces) -> tuple[Pieces, Pieces] | None:
    """The lowest of the pieces `writes` that has bytes in common with one of `others`, and that one."""
    if not len(writes) or not len(others):
        return None
    writes = writes[np.argsort(writes[:, 1], kind="stable")]
    ordered = others[np.argsort(others[:, 1], kind="stable")]
    # Of the pieces that begin before mine ends, the one that reaches farthest.
    reach = np.maximum.accumulate(ordered[:, 2])
    before = np.searchsorted(ordered[:, 1], writes[:, 2], "left")
    meets = (before > 0) & (reach[np.maximum(before, 1) - 1] > writes[:, 1])
    if not meets.any():
        return None
    write = writes[int(np.argmax(meets))]
    found = ordered[(ordered[:, 1] < write[2]) & (ordered[:, 2] > write[1])]
    return write, found[0]


class _Survey:
    """One run of the surveying interpreter over a part of a launch."""

    def __init__(
        self,
        program: Program,
        launch: Launch,
        axis: CoreAxis,
        part: tuple[int, int],
        absolute: bool,
        contested: npt.NDArray[np.int64] | None,
    ) -> None:
        from loom_sim.program import Launch

        spaces = 1 + program.object.spaces
        self._hulls = np.zeros((spaces, layout.KINDS, layout.HULL_WORDS), np.int64)
        self._hulls[..., layout.LOW], self._hulls[..., layout.HIGH] = layout.EMPTY_LOW, -layout.EMPTY_LOW
        boxes = np.zeros(layout.BOXES_WORDS, np.int64)
        order_free = order_free_atomics()
        found = np.zeros(layout.WORDS, np.int64)
        found[layout.BOXES], found[layout.HULLS] = boxes.ctypes.data, self._hulls.ctypes.data
        found[layout.ORDER_FREE] = order_free.ctypes.data
        found[layout.ABSOLUTE] = absolute
        found[layout.AXIS_COUNTER] = counter = words.LOOP_STACK + words.LOOP_WORDS * _loop_depth(program, axis)
        kept = None
        if contested is not None:
            kept = np.empty((MOST_PIECES, layout.PIECE_WORDS), np.int64)
            found[layout.PIECES], found[layout.PIECE_LIMIT] = kept.ctypes.data, MOST_PIECES
            found[layout.CONTESTED] = contested.ctypes.data
        run = Launch(program)
        self.by_place = np.zeros(part[1] - part[0], np.int64)
        found[layout.BY_PLACE], found[layout.PLACES] = self.by_place.ctypes.data, len(self.by_place)
        found[layout.FIRST_PLACE] = part[0]
        run.take(launch, axis, part)
        run.state[counter] = part[0]
        run.state[words.SURVEY] = found.ctypes.data
        self.status = run.follow(stopped=lambda: int(run.state[words.EXECUTED]) > MOST_COMMANDS)
        self.nanoseconds = int(found[layout.NANOSECONDS])
        count = int(found[layout.PIECE_COUNT])
        self.pieces: Pieces | None = None if kept is None or count > MOST_PIECES else kept[:count].copy()

    def hull(self, space: int, kind: int) -> list[int]:
        return self._hulls[space, kind].tolist()  # type: ignore[no-any-return]


def _loop_depth(program: Program, axis: CoreAxis) -> int:
    """How many loops are around the one over an axis."""
    depth = 0
    for command in program.commands.values():
        if command.mnemonic == "loop":
            if command.operands[1] == Reg(axis.start):
                break
            depth += 1
        depth -= command.mnemonic == "endloop"
    return depth


_order_free: npt.NDArray[np.int64] | None = None


def order_free_atomics() -> npt.NDArray[np.int64]:
    """1 at each SCE opcode by which atomics may combine in any order: of integers, and of floats min and max."""
    global _order_free
    if _order_free is None:
        table = np.zeros(0x2000, np.int64)
        for op in ALL_SCE_OPS:
            kind, _, dtype = op.mnemonic.partition(".")
            exact = kind in _ORDER_FREE and not by_name(dtype).is_float
            table[op.opcode] = exact or kind in _EXTREMES
        _order_free = table
    return _order_free
