"""The state of one simulated core: one int64 array that Python prepares and compiled code works on.

Everything a command needs hangs on the address of this array. Indices are words; addresses are host addresses. The
space table comes last because its length depends on the launch.

    0 ..  63   fields: the constants below
   64 .. 319   initial values of the registers, copied at the start of a run
  320 .. 575   registers
  576 .. 671   loop stack, 16 entries of LOOP_WORDS: counter, hi, step, register, word after the loop command
  672 .. 767   boxes of the DMA engine
  768 .. 1039  operands of the running command where any came from a register: header, mask, up to 253 words
 1040 .. 1295  operand pointers of the running SCE program: registers 0..127, streams 128..
 1296 .. 1807  streams and views of the running SCE program (`stream`)
 1808 .. 2064  absent bytes of SRAM (`elision`)
 2072 ..       space table, SPACE_WORDS a space: base address, first legal byte, one past the last, 1 if writable

Module constants rather than an enum: compiled code freezes plain integers.
"""

from __future__ import annotations

from typing import Final

# ---- fields ----

PC: Final = 0  # word index of the next command
RUNNING: Final = (
    1  # 0 before the first command of a run: the interpreter then sets PC, EXECUTED, DEPTH, WATCHDOG, registers
)
EXECUTED: Final = 2  # commands executed by this run
SLICE: Final = 3  # work after which control returns to the host (see ENGINE_CREDIT)
DEPTH: Final = 4  # loops entered
WATCHDOG: Final = 5  # backward jumps left
WATCHDOG_BUDGET: Final = 6  # and at the start
CORE: Final = 7  # number of this core
STREAM: Final = 8  # address of the command stream
ENGINES: Final = 9  # address of the table opcode -> engine address
PROGRAMS: Final = 10  # address of the table program offset -> address of its descriptor
SPACE_COUNT: Final = 11
SRAM: Final = 12  # address; also the base of space 0
SRAM_BYTES: Final = 13
SCRATCH: Final = 14  # address of the stream engine's slots
TRACE: Final = 15  # address of the cycle model's state (tracing interpreter only)
COMBINES: Final = 16  # address of the table SCE opcode -> element engine of the instructions that scatter_reduce names
CHECK: Final = 17  # address of the checks' state (checking interpreter only)
SURVEY: Final = 18  # address of what a survey finds; 0 to run
ATOMIC_LOCK: Final = 19  # address of the word that cores which share a launch hold during atomics; 0 on one core
ELIDED_FROM: Final = 20  # bytes from which on a copy need not take place (`elision`); 0 where all must
NEXT_COPY: Final = 21  # address of the COPY that follows the running PROGRAM, 0 where none does
ALONE: Final = 23  # 1 where a PROGRAM must not take the next COPY along
REPLAY: Final = 22  # address of the state of a replay (replaying interpreter only)
FAULT_SPACE: Final = 24
FAULT_LOW: Final = 25  # first byte offset touched out of bounds
FAULT_HIGH: Final = 26  # one past the last; or a limit
FAULT_VALUE: Final = 27

# ---- areas ----

REGISTERS: Final = 256
INITIAL_REGISTERS: Final = 64
LIVE_REGISTERS: Final = INITIAL_REGISTERS + REGISTERS
LOOP_WORDS: Final = 6
LOOP_STACK: Final = LIVE_REGISTERS + REGISTERS
DMA_BOXES: Final = 672
OPERANDS: Final = 768
POINTERS: Final = 1040
STREAM_VIEWS: Final = 1296
ABSENT: Final = 1808
SPACES: Final = 2072
SPACE_WORDS: Final = 4

# ---- numbers that Python and compiled code agree on ----

ENGINE_VARIANTS: Final = 4  # engine addresses an opcode, by the two flag bits where DMA commands keep the element size
ENGINE_CREDIT: Final = 256  # work of an engine's command; a scalar one is 1
SLOT_PADDING: Final = 192  # keeps SCE slots apart by no multiple of 4096 bytes, where stores seem to meet later loads
RESULT_BYTES: Final = 4096 * 8  # of the block results of one reduction
SLOT_BYTES: Final = 4096 * 8 + SLOT_PADDING + RESULT_BYTES  # scratch memory that an SCE register or stream may need
CARRY_BYTES: Final = 32  # of the state that an instruction carries from block to block (`carried`)
SORT_COUNT_BYTES: Final = 8 * 256 * 8 + 64  # of the digit counts of a sort
MAX_STREAMS: Final = 24
ABSENCES: Final = 64  # absent ranges of SRAM at a time
ELIDED_BYTES: Final = 1024  # of the shortest copy that runs elide

# ---- what a run or an engine returns; engines return OK or a fault ----

OK: Final = 0
HALTED: Final = 1  # the program is done
PAUSED: Final = 2  # a slice is done: call again to go on
REPORTED: Final = 3  # FAULT_SPACE word of the command, FAULT_VALUE code, FAULT_LOW offset, FAULT_HIGH program; go on
WITH_NEXT: Final = 4  # an engine has executed the next command as well
OUT_OF_BOUNDS: Final = 16  # FAULT_SPACE, FAULT_LOW, FAULT_HIGH
UNKNOWN_SPACE: Final = 17  # FAULT_SPACE
OVERSIZED: Final = 18  # FAULT_VALUE elements, FAULT_HIGH limit
STEP_ZERO: Final = 19  # FAULT_VALUE register
WATCHDOG_EXPIRED: Final = 20
TRAPPED: Final = 21  # FAULT_VALUE code
READ_ONLY: Final = 22  # FAULT_SPACE
NO_ENGINE: Final = 23  # FAULT_VALUE opcode: a loader's mistake
