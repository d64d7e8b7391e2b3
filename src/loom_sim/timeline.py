"""The cycle model: where each command falls in time, kept by the tracing interpreter beside its execution.

Commands are met in issue order, and a wait refers to commands met before, so one pass places everything: a command
starts when its queue is free, the ACP has issued it and its tokens have come. What it then takes says `isa.cost`; the
model adds one thing, the bandwidth of HBM that all queues share.

State: one int64 array at the address in `TRACE`; words as below. Tokens keep the completion times of their last RING
signals; a wait with a longer lag than that counts as one for the oldest kept, which is later than the right one. HBM is
cut into buckets of BUCKET cycles, each with the bytes that it has left, in a ring of BUCKETS: a transfer takes what is
free from its start on, whatever was placed before it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Final

from loom_core.isa.commands import (
    ALL_COMMANDS,
    OP_COMBINE,
    OP_LDS,
    OP_MATMUL,
    OP_MATMULF,
    OP_MATMULI,
    OP_PROGRAM,
    OP_REPORT,
    OP_STS,
    QUEUE_COUNT,
)
from loom_core.isa.cost import C_ACP_ISSUE, C_ACP_SCALAR, C_HBM_BYTES_PER_CYCLE, COST_FUNCTIONS
from loom_sim import descriptors as d
from loom_sim.jit import subroutine
from loom_sim.memory import bounded_product, larger, load_word, smaller, store_word, word_pointer
from loom_sim.state import PROGRAMS, STREAM, TRACE

# ---- layout of the trace array; Python fills the first fields and reads the rest ----

ACP_TIME: Final = 0  # when the ACP is free
LAST_DONE: Final = 1  # when the last result is there
CONSTANTS: Final = 2  # address of `cost_constants(machine)`
PROGRAM_WORDS: Final = 3  # address of the programs section
TOKENS: Final = 4  # address of the token area, TOKEN_WORDS a token
HBM: Final = 8  # address of the ring of buckets, two words each: number of the bucket, bytes taken
EVENTS: Final = 9  # address of the event area
EVENT_LIMIT: Final = 10
EVENT_COUNT: Final = 11  # all, kept or not
HBM_BYTES: Final = 12
SRAM_BYTES: Final = 13
MATRIX_FLOPS: Final = 14  # 2 a multiply-add
STREAM_OPERATIONS: Final = 15  # elements times instructions
COST: Final = 16  # 4 words: what the command that is placed costs
QUEUES: Final = 24  # QUEUE_WORDS a queue
FREE, BUSY, WAITING, COMMANDS = range(
    4
)  # cycles: free from when; at work; with a command that waits for tokens; and a count
QUEUE_WORDS: Final = 8
TRACE_WORDS: Final = QUEUES + QUEUE_WORDS * QUEUE_COUNT

RING: Final = 32
TOKEN_WORDS: Final = 1 + RING  # signals issued, then completion times by number modulo RING
BUCKET: Final = 64
BUCKETS: Final = 4096

# An event: word index, queue, issued, started, queue free again, result there, HBM bytes, SRAM bytes; core, by Python
EVENT_WORDS: Final = 9


# ---- costs ----


_ARGUMENTS: Final = "CPointer(int64), int64, CPointer(int64), CPointer(int64)"


def _cost_case(opcode: int, otherwise: Any) -> Any:
    """The cost of one command; `otherwise` knows those of the others."""
    cost = subroutine(f"UniTuple(int64, 4)({_ARGUMENTS})")(COST_FUNCTIONS[opcode])

    @subroutine(f"UniTuple(int64, 4)(int64, {_ARGUMENTS})", inline=True)
    def cost_case(number, operands, flags, programs, constants):  # type: ignore[no-untyped-def]
        if number == opcode:
            return cost(operands, flags, programs, constants)
        return otherwise(number, operands, flags, programs, constants)

    return cost_case


@subroutine(f"UniTuple(int64, 4)(int64, {_ARGUMENTS})", inline=True)
def _no_cost(number, operands, flags, programs, constants):  # type: ignore[no-untyped-def]
    return 0, 0, 0, 0


_COMMANDS_WITH_COST: Final = [spec.opcode for spec in ALL_COMMANDS if spec.synchronises]
_cost_of: Final = functools.reduce(lambda known, opcode: _cost_case(opcode, known), _COMMANDS_WITH_COST, _no_cost)


@subroutine("void(int64, int64, int64)")
def find_cost(opcode, operands, trace):  # type: ignore[no-untyped-def]
    """Leave the four numbers of `isa.cost` for a command at COST."""
    occupancy, latency, hbm_bytes, sram_bytes = _cost_of(
        opcode,
        word_pointer(operands),
        load_word(operands, -2) >> 24 & 255,
        word_pointer(load_word(trace, PROGRAM_WORDS)),
        word_pointer(load_word(trace, CONSTANTS)),
    )
    store_word(trace, COST, occupancy)
    store_word(trace, COST + 1, latency)
    store_word(trace, COST + 2, hbm_bytes)
    store_word(trace, COST + 3, sram_bytes)


# ---- tokens ----


@subroutine("int64(int64, int64)")
def tokens_ready(trace, command):  # type: ignore[no-untyped-def]
    """When the last of a command's waits is met."""
    header = load_word(command, 0)
    waits, ready = command + (2 + (header >> 48 & 0xFFFF)) * 8, 0
    for i in range(header >> 20 & 15):
        word = load_word(waits, i)
        token = load_word(trace, TOKENS) + (word & 0xFFFFFFFF) * (TOKEN_WORDS * 8)
        issued = load_word(token, 0)
        needed = issued - (word >> 32 & 0xFFFFFFFF)
        if needed > 0:
            known = larger(needed, issued - RING + 1)
            ready = larger(ready, load_word(token, 1 + (known - 1) % RING))
    return ready


@subroutine("void(int64, int64, int64)")
def signal(trace, token, done):  # type: ignore[no-untyped-def]
    """Count one signal of a token, complete at `done` or when the one before it is, if that is later."""
    at = load_word(trace, TOKENS) + token * (TOKEN_WORDS * 8)
    issued = load_word(at, 0)
    before = load_word(at, 1 + (issued - 1) % RING) if issued > 0 else 0
    store_word(at, 1 + issued % RING, larger(before, done))
    store_word(at, 0, issued + 1)


# ---- shared bandwidth ----


@subroutine("int64(int64, int64, int64)")
def transfer(trace, start, count):  # type: ignore[no-untyped-def]
    """When `count` bytes of HBM traffic that begin at `start` are through."""
    ring = load_word(trace, HBM)
    rate = load_word(load_word(trace, CONSTANTS), C_HBM_BYTES_PER_CYCLE)
    number, finish = start // BUCKET, start
    while count > 0:
        bucket = ring + number % BUCKETS * 16
        owner = load_word(bucket, 0)
        if owner <= number:
            taken = load_word(bucket, 1) if owner == number else 0
            taken = larger(taken, (finish - number * BUCKET) * rate)
            part = smaller(count, BUCKET * rate - taken)
            if part > 0:
                taken += part
                count -= part
                finish = number * BUCKET + (taken + rate - 1) // rate
                store_word(bucket, 0, number)
                store_word(bucket, 1, taken)
        # Else the ring has come round: a transfer far ahead in time was placed, this one waits for what is known.
        number += 1
        finish = larger(finish, number * BUCKET) if count > 0 else finish
    return finish


# ---- commands ----


@subroutine("void(int64, int64, int64)", inline=True)
def add_to(trace, word, amount):  # type: ignore[no-untyped-def]
    store_word(trace, word, load_word(trace, word) + amount)


@subroutine("void(int64, int64, int64)")
def count_work(state, trace, operands):  # type: ignore[no-untyped-def]
    """Multiply-adds of a product, doubled; instructions times elements of a PROGRAM or COMBINE."""
    header = load_word(operands, -2)
    opcode = header & 255
    if opcode in (OP_MATMUL, OP_MATMULF, OP_MATMULI):
        m, n, k = load_word(operands, 3), load_word(operands, 4), load_word(operands, 5)
        add_to(trace, MATRIX_FLOPS, 2 * bounded_product(bounded_product(larger(m, 0), larger(n, 0)), larger(k, 0)))
    elif opcode in (OP_PROGRAM, OP_COMBINE):
        ndim, fold = header >> 24 & 7, header >> 27 & 7 if opcode == OP_PROGRAM else 0
        total, rows = 1, 1
        for dim in range(ndim):
            size = larger(load_word(operands, 1 + dim), 0)
            total *= size
            if dim < ndim - fold:
                rows *= size
        descriptor = load_word(load_word(state, PROGRAMS), load_word(operands, 0))
        if total > 0:
            tail = rows * load_word(descriptor, d.TAIL_COUNT)
            add_to(trace, STREAM_OPERATIONS, total * load_word(descriptor, d.BODY_COUNT) + tail)


@subroutine("void(int64, int64, int64, int64, int64, int64, int64)")
def note_event(trace, word, queue, issued, started, freed, done):  # type: ignore[no-untyped-def]
    number = load_word(trace, EVENT_COUNT)
    store_word(trace, EVENT_COUNT, number + 1)
    if number < load_word(trace, EVENT_LIMIT):
        event = load_word(trace, EVENTS) + number * (EVENT_WORDS * 8)
        store_word(event, 0, word)
        store_word(event, 1, queue)
        store_word(event, 2, issued)
        store_word(event, 3, started)
        store_word(event, 4, freed)
        store_word(event, 5, done)
        store_word(event, 6, load_word(trace, COST + 2))
        store_word(event, 7, load_word(trace, COST + 3))


@subroutine("void(int64)", inline=True)
def time_scalar(state):  # type: ignore[no-untyped-def]
    """A command of the ACP alone."""
    trace = load_word(state, TRACE)
    cycles = load_word(load_word(trace, CONSTANTS), C_ACP_SCALAR)
    add_to(trace, ACP_TIME, cycles)
    add_to(trace, QUEUES + BUSY, cycles)
    add_to(trace, QUEUES + COMMANDS, 1)


@subroutine("void(int64, int64, int64)")
def time_command(state, command, operands):  # type: ignore[no-untyped-def]
    """A queued command, or a scalar load or store, for which the ACP stands still."""
    trace = load_word(state, TRACE)
    header = load_word(command, 0)
    opcode, queue_number = header & 255, header >> 16 & 15
    queue = trace + (QUEUES + queue_number * QUEUE_WORDS) * 8
    find_cost(opcode, operands, trace)
    occupancy, latency = load_word(trace, COST), load_word(trace, COST + 1)
    hbm_bytes = load_word(trace, COST + 2)
    on_acp = opcode in (OP_LDS, OP_STS, OP_REPORT)
    if on_acp:
        issued = free = load_word(trace, ACP_TIME)
    else:
        issue = load_word(load_word(trace, CONSTANTS), C_ACP_ISSUE)
        add_to(trace, ACP_TIME, issue)
        add_to(trace, QUEUES + BUSY, issue)
        issued, free = load_word(trace, ACP_TIME), load_word(queue, FREE)
    started = larger(larger(issued, free), tokens_ready(trace, command))
    freed = started + occupancy
    if hbm_bytes > 0:
        # The transfer comes after what the command does first: alone on the chip, it would end at `freed`.
        rate = load_word(load_word(trace, CONSTANTS), C_HBM_BYTES_PER_CYCLE)
        lead = larger(occupancy - (hbm_bytes + rate - 1) // rate, 0)
        freed = larger(freed, transfer(trace, started + lead, hbm_bytes))
    done = freed + latency
    add_to(queue, BUSY, freed - started)
    add_to(queue, WAITING, started - larger(issued, free))
    add_to(queue, COMMANDS, 1)
    store_word(queue, FREE, freed)
    if on_acp:
        store_word(trace, ACP_TIME, freed)
    if header >> 32 & 0xFFFF != 0:
        signal(trace, header >> 32 & 0xFFFF, done)
    store_word(trace, LAST_DONE, larger(load_word(trace, LAST_DONE), done))
    add_to(trace, HBM_BYTES, hbm_bytes)
    add_to(trace, SRAM_BYTES, load_word(trace, COST + 3))
    count_work(state, trace, operands)
    word = (command - load_word(state, STREAM)) // 8
    note_event(trace, word, queue_number, issued, started, freed, done)


def build_tracing_interpreter() -> Callable[[int], int]:
    """The command processor with the cycle model."""
    from loom_sim.interpreter import build_interpreter

    return build_interpreter(time_scalar, time_command)
