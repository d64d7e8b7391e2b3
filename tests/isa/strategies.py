"""Hypothesis strategies that draw legal commands and SCE programs from the tables."""

from __future__ import annotations

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from loom_core.isa.commands import ALL_COMMANDS, CommandSpec, OperandSpec
from loom_core.isa.encoding import Command, Operand, Reg, Wait, legal_queues, operand_layout, pack_flags
from loom_core.isa.program import R, S, SceInstr, SceOperand, SceProgram, StreamSpec
from loom_core.isa.sce import ALL_SCE_OPS, DTYPE_CODES, DTYPE_NAMES, SCE_BY_OPCODE, SceOp

unhurried = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
"""For tests that draw commands: on a loaded machine drawing one may take long."""

INT64 = st.integers(-(1 << 63), (1 << 63) - 1)
WORD = st.integers(0, (1 << 64) - 1)
REGISTER = st.integers(0, 255)


def _operand(slot: OperandSpec, index: int) -> st.SearchStrategy[Operand]:
    if slot.role == "register":
        return REGISTER
    if slot.role == "dtype":
        return st.sampled_from(sorted(DTYPE_NAMES))
    if slot.role == "instruction":
        return st.sampled_from([0, *sorted(SCE_BY_OPCODE)])
    plain = st.integers(0, 0xFFFF) if slot.role == "space" else INT64
    if slot.may_be_register and index < 64:
        return st.one_of(plain, st.builds(Reg, REGISTER))
    return plain


@st.composite
def commands(draw: st.DrawFn, specs: tuple[CommandSpec, ...] = ALL_COMMANDS) -> Command:
    """Any command that the table allows; targets are any integers."""
    spec = draw(st.sampled_from(specs))
    flags = pack_flags(spec, {field.name: draw(st.integers(field.minimum, field.limit)) for field in spec.flags})
    count = len(spec.operands)
    if spec.groups:
        ndim = spec.flag("ndim").get(flags)
        streams = draw(st.integers(1, 24)) if any(group.count == "streams" for group in spec.groups) else 0
        count += streams * (1 + ndim) + ndim * sum(len(group.members) for group in spec.groups if group.count == "ndim")
    layout = operand_layout(spec, flags, count)
    assert layout is not None
    operands = tuple(draw(_operand(slot, i)) for i, slot in enumerate(layout))
    queue = int(draw(st.sampled_from(legal_queues(spec, flags))))
    if not spec.synchronises:
        return Command(spec.mnemonic, operands, flags, queue)
    wait = st.builds(Wait, st.integers(1, 0xFFFF), st.integers(0, 0xFFFFFFFF))
    waits = tuple(draw(st.lists(wait, max_size=15)))
    return Command(spec.mnemonic, operands, flags, queue, waits, draw(st.integers(0, 0xFFFF)))


def _stream_type(wanted: str) -> str:
    """A dtype name that an operand of type `wanted` accepts."""
    return {"8": "i8", "16": "f16", "32": "u32", "64": "f64"}.get(wanted, wanted)


@st.composite
def programs(draw: st.DrawFn) -> SceProgram:
    """A well-formed program: a chain of instructions, each reading fresh streams or an earlier result of its type."""
    streams: list[StreamSpec] = []
    registers: list[str] = []
    instructions: list[SceInstr] = []

    def source(wanted: str) -> SceOperand:
        matching = [number for number, kind in enumerate(registers) if kind == wanted]
        if matching and draw(st.booleans()):
            return R(draw(st.sampled_from(matching)))
        dtype = _stream_type(wanted)
        kinds = ["load", "scalar", "iota"] if dtype in ("i32", "i64") else ["load", "scalar"]
        kind = draw(st.sampled_from(kinds))
        streams.append(StreamSpec(kind, dtype, kind == "load" and draw(st.booleans())))
        return S(len(streams) - 1)

    body = [op for op in ALL_SCE_OPS if op.is_elementwise]
    for _ in range(draw(st.integers(0, 4))):
        op: SceOp = draw(st.sampled_from(body))
        sources = [source(wanted) for wanted in op.operands]
        registers.append(op.result)
        instructions.append(SceInstr(op.mnemonic, R(len(registers) - 1), *sources))
    last: SceOp = draw(st.sampled_from(ALL_SCE_OPS))
    sources = [source(wanted) for wanted in last.operands]
    result = last.result if last.result in DTYPE_CODES else _stream_type(last.result)
    streams.append(StreamSpec("store", result))
    instructions.append(SceInstr(last.mnemonic, S(len(streams) - 1), *sources))
    return SceProgram(tuple(streams), tuple(instructions), len(registers))
