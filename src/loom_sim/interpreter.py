"""The command processor: one compiled loop over the command stream.

Scalar commands and control flow are executed in the loop; every other command is a call of its engine through the table
of addresses, indexed by opcode and element size. Operands are handed to engines where they lie in the stream, unless
one of them is a register: then all of them are copied to the state, registers replaced. In `run` mode commands execute
at issue, which is a legal order whatever their tokens, so waits and signals are skipped.

The loop trusts what `isa.verify.verify_stream` guarantees (whole commands, existing registers, nested loops, jump
targets) and nothing that depends on run-time values.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from loom_core.isa import commands as isa
from loom_sim.bits import select
from loom_sim.elision import make_present
from loom_sim.jit import subroutine
from loom_sim.memory import (
    call_engine,
    divide,
    larger,
    load8,
    load16,
    load32,
    load64,
    load_word,
    remainder,
    smaller,
    store8,
    store16,
    store32,
    store64,
    store_word,
    wrapping_add,
    wrapping_multiply,
    wrapping_subtract,
)
from loom_sim.spaces import check_range, check_write, space_base
from loom_sim.state import (
    ABSENT,
    ALONE,
    DEPTH,
    ELIDED_FROM,
    ENGINE_CREDIT,
    ENGINE_VARIANTS,
    ENGINES,
    EXECUTED,
    FAULT_HIGH,
    FAULT_LOW,
    FAULT_SPACE,
    FAULT_VALUE,
    HALTED,
    INITIAL_REGISTERS,
    LIVE_REGISTERS,
    LOOP_STACK,
    LOOP_WORDS,
    NEXT_COPY,
    NO_ENGINE,
    OK,
    OPERANDS,
    PAUSED,
    PC,
    REGISTERS,
    REPORTED,
    RUNNING,
    SLICE,
    STEP_ZERO,
    STREAM,
    TRAPPED,
    WATCHDOG,
    WATCHDOG_BUDGET,
    WATCHDOG_EXPIRED,
    WITH_NEXT,
)

_FIRST_ENGINE: Final = isa.OP_COPY
COUNTER, HIGH, _STEP, _REGISTER, _BODY = range(5)
# Constants by name, for compiled code.
_HALT, _LOOP, _ENDLOOP, _JUMP, _BRZ, _BRNZ = (
    isa.OP_HALT,
    isa.OP_LOOP,
    isa.OP_ENDLOOP,
    isa.OP_JUMP,
    isa.OP_BRZ,
    isa.OP_BRNZ,
)
_WHILE, _TRAP, _LDS, _STS = isa.OP_WHILE, isa.OP_TRAP, isa.OP_LDS, isa.OP_STS
_REPORT = isa.OP_REPORT
_COPY, _PROGRAM = isa.OP_COPY, isa.OP_PROGRAM
_MOV, _ADD, _SUB, _MUL, _DIV, _REM, _FDIV = (
    isa.OP_MOV,
    isa.OP_ADD,
    isa.OP_SUB,
    isa.OP_MUL,
    isa.OP_DIV,
    isa.OP_REM,
    isa.OP_FDIV,
)
_CDIV, _MIN, _MAX, _AND, _OR, _XOR = isa.OP_CDIV, isa.OP_MIN, isa.OP_MAX, isa.OP_AND, isa.OP_OR, isa.OP_XOR
_SHL, _SHR, _SHRU = isa.OP_SHL, isa.OP_SHR, isa.OP_SHRU
_EQ, _NE, _LT, _LE, _LTU, _LEU, _SEL = isa.OP_EQ, isa.OP_NE, isa.OP_LT, isa.OP_LE, isa.OP_LTU, isa.OP_LEU, isa.OP_SEL


# ---- scalar commands -------------------------------------------------------------------------------------------------


@subroutine("int64(int64, int64, int64, int64)", inline=True)
def operand(operands, registers, mask, index):  # type: ignore[no-untyped-def]
    """Value of operand `index`: the word itself, or the register that it names. Both are loaded, neither load can
    fault.
    """
    word = load_word(operands, index)
    return select((mask >> index) & 1 != 0, load_word(registers, word & (REGISTERS - 1)), word)


@subroutine("int64(int64, int64)")
def floor_divide(a, b):  # type: ignore[no-untyped-def]
    quotient, rest = divide(a, b), remainder(a, b)
    return quotient - 1 if b != 0 and rest != 0 and (rest < 0) != (b < 0) else quotient


@subroutine("int64(int64, int64)")
def ceil_divide(a, b):  # type: ignore[no-untyped-def]
    quotient, rest = divide(a, b), remainder(a, b)
    return quotient + 1 if b != 0 and rest != 0 and (rest < 0) == (b < 0) else quotient


@subroutine("int64(int64, int64)")
def narrowed(value, code):  # type: ignore[no-untyped-def]
    """`value` wrapped to the type of a narrowing code and widened again."""
    if code == 1:
        return np.int64(np.int32(value))
    if code == 2:
        return value & 0xFFFFFFFF
    if code == 3:
        return np.int64(np.int16(value))
    if code == 4:
        return value & 0xFFFF
    if code == 5:
        return np.int64(np.int8(value))
    if code == 6:
        return value & 0xFF
    return np.int64(value != 0)


@subroutine("int64(int64, int64, int64, int64)", inline=True)
def arithmetic(opcode, a, b, c):  # type: ignore[no-untyped-def]
    """Result of a scalar command; for SEL, (a, b, c) are its operands in order."""
    shift_legal = b >= 0 and b < 64
    if opcode == _MOV:
        return a
    elif opcode == _ADD:  # noqa: RET505 - one chain, which LLVM makes a jump table
        return wrapping_add(a, b)
    elif opcode == _SUB:
        return wrapping_subtract(a, b)
    elif opcode == _MUL:
        return wrapping_multiply(a, b)
    elif opcode == _DIV:
        return divide(a, b)
    elif opcode == _REM:
        return remainder(a, b)
    elif opcode == _FDIV:
        return floor_divide(a, b)
    elif opcode == _CDIV:
        return ceil_divide(a, b)
    elif opcode == _MIN:
        return smaller(a, b)
    elif opcode == _MAX:
        return larger(a, b)
    elif opcode == _AND:
        return a & b
    elif opcode == _OR:
        return a | b
    elif opcode == _XOR:
        return a ^ b
    elif opcode == _SHL:
        return select(shift_legal, a << (b & 63), 0)
    elif opcode == _SHR:
        return a >> select(shift_legal, b, 63)
    elif opcode == _SHRU:
        return select(shift_legal, np.int64(np.uint64(a) >> np.uint64(b & 63)), 0)
    elif opcode == _EQ:
        return np.int64(a == b)
    elif opcode == _NE:
        return np.int64(a != b)
    elif opcode == _LT:
        return np.int64(a < b)
    elif opcode == _LE:
        return np.int64(a <= b)
    elif opcode == _LTU:
        return np.int64(np.uint64(a) < np.uint64(b))
    elif opcode == _LEU:
        return np.int64(np.uint64(a) <= np.uint64(b))
    else:
        return select(a != 0, b, c)


@subroutine("int64(int64, int64)")
def load_scalar(address, flags):  # type: ignore[no-untyped-def]
    """The integer of an LDS: log2 of its bytes in flags 0-2, sign in flag 3."""
    log2, signed = flags & 7, flags & 8 != 0
    if log2 == 0:
        value = load8(address)
        return np.int64(np.int8(value)) if signed else value
    if log2 == 1:
        value = load16(address)
        return np.int64(np.int16(value)) if signed else value
    if log2 == 2:
        value = load32(address)
        return np.int64(np.int32(value)) if signed else value
    return load64(address)


@subroutine("void(int64, int64, int64)")
def store_scalar(address, flags, value):  # type: ignore[no-untyped-def]
    log2 = flags & 7
    if log2 == 0:
        store8(address, value)
    elif log2 == 1:
        store16(address, value)
    elif log2 == 2:
        store32(address, value)
    else:
        store64(address, value)


@subroutine("int64(int64, int64, int64)")
def scalar_memory(state, command, operands):  # type: ignore[no-untyped-def]
    """LDS or STS, operands resolved: status."""
    header = load_word(operands, -2)
    flags = header >> 24 & 255
    size, loads = 1 << (flags & 7), header & 255 == _LDS
    if not loads or load_word(operands, 1) == 0:
        make_present(state, load_word(state, ABSENT))
    if loads:
        space, offset = load_word(operands, 1), load_word(operands, 2)
        status = check_range(state, space, offset, 0, size)
        if status == OK:
            register = load_word(operands, 0) & (REGISTERS - 1)
            value = load_scalar(space_base(state, space) + offset, flags)
            store_word(state, LIVE_REGISTERS + register, value)
        return status
    space, offset = load_word(operands, 0), load_word(operands, 1)
    status = check_write(state, space, offset, 0, size)
    if status == OK:
        store_scalar(space_base(state, space) + offset, flags, load_word(operands, 2))
    return status


# ---- commands of the queues ------------------------------------------------------------------------------------------


@subroutine("int64(int64, int64)")
def resolve_operands(state, command):  # type: ignore[no-untyped-def]
    """Address of the operands of the command at address `command`, copied to the state with registers replaced."""
    return resolve_to(state, command, state + OPERANDS * 8)


@subroutine("int64(int64, int64, int64)")
def resolve_to(state, command, place):  # type: ignore[no-untyped-def]
    """`resolve_operands` to another place: header, mask, operands."""
    header, mask = load_word(command, 0), load_word(command, 1)
    store_word(place, 0, header)
    store_word(place, 1, mask)
    for i in range(header >> 48 & 0xFFFF):
        word = load_word(command, 2 + i)
        if mask & 1 != 0:
            word = load_word(state, LIVE_REGISTERS + (word & (REGISTERS - 1)))
        store_word(place, 2 + i, word)
        mask = (mask >> 1) & ((1 << 63) - 1)
    return place + 16


@subroutine("void(int64, int64, int64)", inline=True)
def before_engine(state, opcode, following):  # type: ignore[no-untyped-def]
    """Prepare for an engine's command; `following`: address of the command after it. See `elision`."""
    if opcode == _PROGRAM:
        fits = load_word(state, ELIDED_FROM) != 0 and load_word(following, 0) & 255 == _COPY
        fits &= load_word(state, ALONE) == 0
        store_word(state, NEXT_COPY, select(fits, following, 0))
    elif opcode != _COPY and load_word(state, ABSENT) != 0:
        make_present(state, load_word(state, ABSENT))


# ---- loops -----------------------------------------------------------------------------------------------------------


@subroutine("boolean(int64, int64, int64)", inline=True)
def inside(counter, high, step):  # type: ignore[no-untyped-def]
    return counter < high if step > 0 else counter > high


@subroutine("void(int64, int64, int64, int64, int64, int64)", inline=True)
def push_loop(entry, counter, high, step, register, body):  # type: ignore[no-untyped-def]
    store_word(entry, COUNTER, counter)
    store_word(entry, HIGH, high)
    store_word(entry, _STEP, step)
    store_word(entry, _REGISTER, register)
    store_word(entry, _BODY, body)


@subroutine("int64(int64, int64, int64)", inline=True)
def next_iteration(entry, registers, after):  # type: ignore[no-untyped-def]
    """Word index where the innermost loop goes on: its body, or `after` if it is done."""
    counter, step = load_word(entry, COUNTER), load_word(entry, _STEP)
    following = wrapping_add(counter, step)
    overflows = (following < counter) != (step < 0)
    store_word(registers, load_word(entry, _REGISTER), following)
    if overflows or not inside(following, load_word(entry, HIGH), step):
        return after
    store_word(entry, COUNTER, following)
    return load_word(entry, _BODY)


@subroutine("void(int64)")
def start(state):  # type: ignore[no-untyped-def]
    for i in range(REGISTERS):
        store_word(state, LIVE_REGISTERS + i, load_word(state, INITIAL_REGISTERS + i))
    store_word(state, PC, 0)
    store_word(state, EXECUTED, 0)
    store_word(state, DEPTH, 0)
    store_word(state, WATCHDOG, load_word(state, WATCHDOG_BUDGET))
    store_word(state, RUNNING, 1)
    store_word(state, ABSENT, 0)


# ---- the loop --------------------------------------------------------------------------------------------------------


@subroutine("void(int64)", inline=True)
def ignore_scalar(state):  # type: ignore[no-untyped-def]
    """What an untraced run notes of a command that the loop executes."""


@subroutine("void(int64, int64, int64)", inline=True)
def ignore_command(state, command, operands):  # type: ignore[no-untyped-def]
    """What an untraced run notes of any other command."""


@subroutine("int64(int64, int64, int64, int64)", inline=True)
def run_engine(state, command, operands, engine):  # type: ignore[no-untyped-def]
    """Status of a command of the queues: what its engine says."""
    return call_engine(engine, operands, state)


def build_interpreter(
    on_scalar: Any = ignore_scalar,
    on_command: Any = ignore_command,
    before_command: Any = ignore_command,
    run_command: Any = run_engine,
    move_scalar: Any = scalar_memory,
) -> Callable[[int], int]:
    """int64(int64 state): run until HALT, a fault or the end of the slice; returns the status.

    Other interpreters pass hooks of their own: `on_scalar(state)` is called after each command that the loop executes
    itself; `before_command(state, command, operands)` and `on_command` before and after each other one, also LDS, STS
    and REPORT, with the command's address and its operands, registers replaced. `run_command(state, command, operands,
    engine)` and `move_scalar(state, command, operands)` stand for the execution of a command, and of LDS and STS.
    """

    def interpreter(state):  # type: ignore[no-untyped-def]
        if load_word(state, RUNNING) == 0:
            start(state)
        stream, engines = load_word(state, STREAM), load_word(state, ENGINES)
        registers, loops = state + LIVE_REGISTERS * 8, state + LOOP_STACK * 8
        pc, executed, credit = load_word(state, PC), load_word(state, EXECUTED), load_word(state, SLICE)
        depth = load_word(state, DEPTH)
        status = OK
        while True:
            if credit <= 0:
                status = PAUSED
                break
            command = stream + pc * 8
            header, mask = load_word(command, 0), load_word(command, 1)
            operands = command + 16
            opcode = header & 255
            following = pc + (header >> 8 & 255)
            if opcode >= _FIRST_ENGINE:
                if mask != 0:
                    operands = resolve_operands(state, command)
                engine = load_word(engines, opcode * ENGINE_VARIANTS + (header >> 27 & (ENGINE_VARIANTS - 1)))
                if engine == 0:
                    store_word(state, FAULT_VALUE, opcode)
                    status = NO_ENGINE
                    break
                before_command(state, command, operands)
                before_engine(state, opcode, stream + following * 8)
                status = run_command(state, command, operands, engine)
                if status != OK:
                    if status != WITH_NEXT:
                        break
                    following += load_word(stream, following) >> 8 & 255
                    executed += 1
                on_command(state, command, operands)
                credit -= ENGINE_CREDIT
                pc = following
            elif opcode == _REPORT:
                operands = resolve_operands(state, command)
                make_present(state, load_word(state, ABSENT))
                before_command(state, command, operands)
                store_word(state, FAULT_SPACE, pc)
                store_word(state, FAULT_VALUE, load_word(operands, 0))
                store_word(state, FAULT_LOW, load_word(operands, 1))
                store_word(state, FAULT_HIGH, load_word(operands, 2))
                on_command(state, command, operands)
                pc = following
                executed += 1
                status = REPORTED
                break
            elif opcode >= _LDS:
                operands = resolve_operands(state, command)
                before_command(state, command, operands)
                status = move_scalar(state, command, operands)
                if status != OK:
                    break
                on_command(state, command, operands)
                pc = following
            elif opcode >= _MOV:
                result = arithmetic(
                    opcode,
                    operand(operands, registers, mask, 1),
                    operand(operands, registers, mask, 2),
                    operand(operands, registers, mask, 3) if opcode == _SEL else 0,
                )
                narrow = header >> 24 & 15
                if narrow != 0:
                    result = narrowed(result, narrow)
                store_word(registers, load_word(operands, 0) & (REGISTERS - 1), result)
                on_scalar(state)
                pc = following
            elif opcode == _ENDLOOP:
                pc = next_iteration(loops + (depth - 1) * (LOOP_WORDS * 8), registers, following)
                if pc == following:
                    depth -= 1
                on_scalar(state)
            elif opcode == _LOOP:
                low, high = operand(operands, registers, mask, 1), operand(operands, registers, mask, 2)
                step = operand(operands, registers, mask, 3)
                register = load_word(operands, 0) & (REGISTERS - 1)
                if step == 0:
                    store_word(state, FAULT_VALUE, register)
                    status = STEP_ZERO
                    break
                if inside(low, high, step):
                    push_loop(loops + depth * (LOOP_WORDS * 8), low, high, step, register, following)
                    store_word(registers, register, low)
                    depth += 1
                    pc = following
                else:
                    pc = load_word(operands, 4)
                on_scalar(state)
            elif opcode == _JUMP:
                pc = load_word(operands, 0)
                on_scalar(state)
            elif opcode in (_BRZ, _BRNZ):
                taken = (operand(operands, registers, mask, 0) == 0) == (opcode == _BRZ)
                pc = load_word(operands, 1) if taken else following
                on_scalar(state)
            elif opcode == _WHILE:
                left = load_word(state, WATCHDOG)
                if left <= 0:
                    status = WATCHDOG_EXPIRED
                    break
                store_word(state, WATCHDOG, left - 1)
                pc = load_word(operands, 0)
                on_scalar(state)
            elif opcode == _TRAP:
                store_word(state, FAULT_VALUE, operand(operands, registers, mask, 0))
                status = TRAPPED
                break
            else:
                status = HALTED
                break
            executed += 1
            credit -= 1
        store_word(state, PC, pc)
        store_word(state, EXECUTED, executed)
        store_word(state, DEPTH, depth)
        return status

    return interpreter
