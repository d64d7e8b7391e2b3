"""What a command costs, in cycles and bytes: the one place from which every cycle figure comes.

Each function is plain integer Python that numba compiles as it stands (int64, //, comparisons, no calls), so that the
cycle model runs inside the simulator's interpreter, and callable from Python with NumPy arrays or lists. All have the
signature

    cost(operands, flags, programs, constants) -> (occupancy, latency, hbm_bytes, sram_bytes)

operands: register operands already replaced; flags: the header's byte; programs: the words of the programs section;
constants: `cost_constants(machine)`; all int64. `occupancy`: cycles for which the queue (for ACP commands: the ACP)
cannot begin its next command, with all of the bandwidth to itself; `latency`: further cycles until the result is there
and tokens are signalled; `hbm_bytes`, `sram_bytes`: traffic, for the model of shared bandwidth. A command that moves or
computes nothing costs its start-up alone.

Formulas:
- ACP: `acp_scalar_cycles` a scalar command, `acp_issue_cycles` to issue a queued one, lds, sts and report
  `acp_memory_cycles`, and `hbm_latency` more for HBM.
- DMA: a side's traffic is its bytes, in contiguous runs of at least `dma_min_burst` bytes. Decoding reads the codes
  of its valid box, each table that they name once, and a scale for each group and row. Occupancy is the larger of
  HBM traffic over HBM bytes per cycle and SRAM traffic over SRAM bytes per cycle, + `dma_descriptor_cycles`; latency
  `hbm_latency` if a side is in HBM.
  Indexed commands reach memory in runs: an element, or as many as inner dimensions without an index stride make
  contiguous. They take a cycle a run at least, since each has an address of its own, and read, combine and write move
  memory twice.
- MXU: the array holds mxu_rows x mxu_cols weights, so a product streams m rows ceil(k / rows) * ceil(n / cols) times,
  each taking `mxu_fp32_divisor` cycles for f32, one for 16-bit floats, and for 8-bit floats and integers one over
  `mxu_fp8_rate` and `mxu_int8_rate`; the fill latency comes after. accfill and accload: accumulator bytes over SRAM
  bytes per cycle.
- SCE: the larger of (elements * slots of the body + leading elements * slots of the tail) / `sce_lanes` and SRAM
  traffic over SRAM bytes per cycle, + `sce_startup_cycles`. A stream moves each element that it addresses once:
  dimensions of stride 0 are free. Scans take a step of at least a cycle an element of the row, rows side by side in the
  lanes.
- combine: reduce costs the body once an element and a start-up a level of the tree; scan steps as scans do, each step
  the whole body. sort is a sorting network: s * (s + 1) / 2 stages of an ALU slot an element, s the bits of the row's
  length. histogram takes two ALU slots an element.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from loom_core.isa.codes import ALL_CODE_FORMATS, FIRST_INTEGER_FORMAT
from loom_core.isa.commands import ALL_COMMANDS
from loom_core.isa.sce import (
    ALL_SCE_OPS,
    OPERAND_STREAM,
    SLOT_NAMES,
    STREAM_LOAD,
    STREAM_STORE,
)

if TYPE_CHECKING:
    from loom_core.isa.machine import MachineConfig

Cost: TypeAlias = tuple[int, int, int, int]
CostFunction: TypeAlias = Callable[[Any, int, Any, Any], Cost]

# Indices into the vector of `cost_constants`.
C_HBM_BYTES_PER_CYCLE: Final = 0
C_HBM_LATENCY: Final = 1
C_SRAM_BYTES_PER_CYCLE: Final = 2
C_DMA_DESCRIPTOR: Final = 3
C_DMA_MIN_BURST: Final = 4
C_MXU_ROWS: Final = 5
C_MXU_COLS: Final = 6
C_MXU_FP32_DIVISOR: Final = 7
C_MXU_FILL: Final = 8
C_PANEL_ROWS: Final = 9
C_PANEL_COLS: Final = 10
C_PANEL_ELEMENT_BYTES: Final = 11
C_SCE_LANES: Final = 12
C_SCE_STARTUP: Final = 13
C_ACP_SCALAR: Final = 14
C_ACP_ISSUE: Final = 15
C_ACP_MEMORY: Final = 16
C_MXU_FP8_RATE: Final = 17
C_MXU_INT8_RATE: Final = 18
C_ONE: Final = 19
C_SCE_ALU: Final = 20
C_SCE_WIDE: Final = 21
# From here, indexed by SCE opcode: slots << 8 | is a scan << 4 | operand count << 1 | is a reduction.
C_SCE_OPS: Final = 32
_SCE_OPCODES: Final = 0x2000
# From here, three words a format of codes: the codes of a unit, its bytes, the bytes of a table.
C_CODES: Final = C_SCE_OPS + _SCE_OPCODES
_CODE_WORDS: Final = 3

_MACHINE_FIELDS: Final = (
    (C_HBM_BYTES_PER_CYCLE, "hbm_bytes_per_cycle"),
    (C_HBM_LATENCY, "hbm_latency"),
    (C_SRAM_BYTES_PER_CYCLE, "sram_bytes_per_cycle"),
    (C_DMA_DESCRIPTOR, "dma_descriptor_cycles"),
    (C_DMA_MIN_BURST, "dma_min_burst"),
    (C_MXU_ROWS, "mxu_rows"),
    (C_MXU_COLS, "mxu_cols"),
    (C_MXU_FP32_DIVISOR, "mxu_fp32_divisor"),
    (C_MXU_FILL, "mxu_fill_latency"),
    (C_PANEL_ROWS, "panel_rows"),
    (C_PANEL_COLS, "panel_cols"),
    (C_PANEL_ELEMENT_BYTES, "panel_element_bytes"),
    (C_SCE_LANES, "sce_lanes"),
    (C_SCE_STARTUP, "sce_startup_cycles"),
    (C_ACP_SCALAR, "acp_scalar_cycles"),
    (C_ACP_ISSUE, "acp_issue_cycles"),
    (C_ACP_MEMORY, "acp_memory_cycles"),
    (C_SCE_ALU, "sce_alu_slots"),
    (C_SCE_WIDE, "sce_wide_slots"),
    (C_MXU_FP8_RATE, "mxu_fp8_rate"),
    (C_MXU_INT8_RATE, "mxu_int8_rate"),
)


def cost_constants(machine: MachineConfig) -> npt.NDArray[np.int64]:
    """The machine's numbers as the int64 vector that the cost functions take."""
    constants = np.zeros(C_CODES + _CODE_WORDS * len(ALL_CODE_FORMATS), np.int64)
    for index, field in _MACHINE_FIELDS:
        constants[index] = getattr(machine, field)
    constants[C_ONE] = 1
    for row in ALL_CODE_FORMATS:
        at = C_CODES + _CODE_WORDS * row.number
        constants[at : at + _CODE_WORDS] = row.unit_codes, row.unit_bytes, 2 * row.entries
    for op in ALL_SCE_OPS:
        slots = getattr(machine, f"sce_{SLOT_NAMES[op.slot_class]}_slots")
        constants[C_SCE_OPS + op.opcode] = slots << 8 | op.is_scan << 4 | len(op.operands) << 1 | op.is_reduction
    return constants


def cost_scalar(operands: Any, flags: int, programs: Any, constants: Any) -> Cost:
    """Control flow and arithmetic of the ACP."""
    return constants[C_ACP_SCALAR], 0, 0, 0


def cost_lds(operands: Any, flags: int, programs: Any, constants: Any) -> Cost:
    """Scalar load; the ACP stands still for the whole of it."""
    size = 1 << (flags & 7)
    if operands[1] != 0:
        return constants[C_ACP_MEMORY] + constants[C_HBM_LATENCY], 0, max(size, constants[C_DMA_MIN_BURST]), 0
    return constants[C_ACP_MEMORY], 0, 0, size


def cost_sts(operands: Any, flags: int, programs: Any, constants: Any) -> Cost:
    """Scalar store; the ACP stands still for the whole of it."""
    size = 1 << (flags & 7)
    if operands[0] != 0:
        return constants[C_ACP_MEMORY] + constants[C_HBM_LATENCY], 0, max(size, constants[C_DMA_MIN_BURST]), 0
    return constants[C_ACP_MEMORY], 0, 0, size


def cost_report(operands: Any, flags: int, programs: Any, constants: Any) -> Cost:
    """The host's time is not counted."""
    return constants[C_ACP_MEMORY], 0, 0, 0


def cost_copy(operands: Any, flags: int, programs: Any, constants: Any) -> Cost:
    """Strided copy; a dimension's five operands are size, source stride, destination stride, lo, hi."""
    ndim = flags & 7
    element = 1 << (flags >> 3 & 3)
    skip = flags >> 5 & 1
    total = element
    valid = element
    for d in range(ndim):
        size = operands[5 + 5 * d]
        lo = max(operands[8 + 5 * d], 0)
        hi = min(operands[9 + 5 * d], size)
        total *= max(size, 0)
        valid *= max(hi - lo, 0)
    # Contiguous runs: from the innermost dimension outwards, for as long as the stride continues the run and whole
    # rows move.
    src_run = element
    dst_run = element
    src_open = True
    dst_open = True
    for back in range(ndim):
        at = 5 + 5 * (ndim - 1 - back)
        size = operands[at]
        extent = max(min(operands[at + 4], size) - max(operands[at + 3], 0), 0)
        moved = extent if skip == 1 else size
        src_open = src_open and operands[at + 1] == src_run
        dst_open = dst_open and operands[at + 2] == dst_run
        if src_open:
            src_run *= max(extent, 1)
        if dst_open:
            dst_run *= max(moved, 1)
        src_open = src_open and extent == size
        dst_open = dst_open and moved == size
    written = valid if skip == 1 else total
    burst = constants[C_DMA_MIN_BURST]
    src_bytes = valid // src_run * max(src_run, burst)
    dst_bytes = written // dst_run * max(dst_run, burst)
    hbm = 0
    sram = 0
    latency = 0
    if operands[0] != 0:
        hbm += src_bytes
        latency = constants[C_HBM_LATENCY]
    else:
        sram += src_bytes
    if operands[2] != 0:
        hbm += dst_bytes
        latency = constants[C_HBM_LATENCY]
    else:
        sram += dst_bytes
    per_hbm = constants[C_HBM_BYTES_PER_CYCLE]
    per_sram = constants[C_SRAM_BYTES_PER_CYCLE]
    busy = max((hbm + per_hbm - 1) // per_hbm, (sram + per_sram - 1) // per_sram)
    return busy + constants[C_DMA_DESCRIPTOR], latency, hbm, sram


def _indexed(fixed: int, members: int, space: int, passes: int) -> CostFunction:
    """Cost of an indexed command: `fixed` operands before the `members` of each dimension, number of the space
    operand, and how often memory moves.
    """

    def cost_indexed(operands: Any, flags: int, programs: Any, constants: Any) -> Cost:
        ndim = flags & 7
        element = 1 << (flags >> 3 & 3)
        total = element
        for d in range(ndim):
            total *= max(operands[fixed + members * d], 0)
        run = element
        contiguous = True
        for back in range(ndim):
            at = fixed + members * (ndim - 1 - back)
            contiguous = contiguous and operands[at + 3] == 0 and operands[at + 1] == run
            if contiguous:
                run *= max(operands[at], 1)
        runs = total // run
        memory = passes * runs * max(run, constants[C_DMA_MIN_BURST])
        # The tile; index elements; mask bytes; old elements and expected ones, of the commands that have them.
        sram = total + runs * (8 if flags >> 5 & 1 else 4)
        if flags >> 6 & 1:
            sram += total // element
        if members > 5 and flags >> 7 & 1:
            sram += total
        if members > 6:
            sram += total
        hbm = 0
        latency = 0
        if operands[space] != 0:
            hbm = memory
            latency = constants[C_HBM_LATENCY]
        else:
            sram += memory
        per_hbm = constants[C_HBM_BYTES_PER_CYCLE]
        per_sram = constants[C_SRAM_BYTES_PER_CYCLE]
        busy = max((hbm + per_hbm - 1) // per_hbm, (sram + per_sram - 1) // per_sram)
        return max(busy, runs) + constants[C_DMA_DESCRIPTOR], latency, hbm, sram

    return cost_indexed


cost_gather: Final = _indexed(fixed=7, members=5, space=0, passes=1)
cost_scatter: Final = _indexed(fixed=6, members=5, space=1, passes=1)
cost_scatter_reduce: Final = _indexed(fixed=8, members=6, space=1, passes=2)
cost_compare_swap: Final = _indexed(fixed=8, members=7, space=1, passes=2)


def _packing(low: int, high: int) -> CostFunction:
    """Cost of a move into panel layout; log2 of an element's bytes is `low`, or `high` where flag bit 4 is set."""

    def cost_pack(operands: Any, flags: int, programs: Any, constants: Any) -> Cost:
        """Reads the valid box of the source, writes whole panels."""
        element = 1 << (high if flags >> 4 & 1 else low)
        extent = max(operands[3], 0)
        depth = max(operands[4], 0)
        rows = max(min(operands[8], extent) - max(operands[7], 0), 0)
        columns = max(min(operands[10], depth) - max(operands[9], 0), 0)
        read = rows * columns * element
        run = element
        if operands[6] == element:
            run = element * max(columns, 1)
            if operands[5] == run and columns == depth:
                run *= max(rows, 1)
        elif operands[5] == element:
            run = element * max(rows, 1)
            if operands[6] == run and rows == extent:
                run *= max(columns, 1)
        read = read // run * max(run, constants[C_DMA_MIN_BURST])
        multiple = constants[C_PANEL_COLS] if flags & 1 else constants[C_PANEL_ROWS]
        sram = (extent + multiple - 1) // multiple * multiple * depth * constants[C_PANEL_ELEMENT_BYTES]
        hbm = 0
        latency = 0
        if operands[0] != 0:
            hbm = read
            latency = constants[C_HBM_LATENCY]
        else:
            sram += read
        per_hbm = constants[C_HBM_BYTES_PER_CYCLE]
        per_sram = constants[C_SRAM_BYTES_PER_CYCLE]
        busy = max((hbm + per_hbm - 1) // per_hbm, (sram + per_sram - 1) // per_sram)
        return busy + constants[C_DMA_DESCRIPTOR], latency, hbm, sram

    return cost_pack


def _decoding(floats: bool) -> CostFunction:
    """Cost of decoding weights: to floats, with the operands of tables and scales, or to integers."""

    def cost_decode(operands: Any, flags: int, programs: Any, constants: Any) -> Cost:
        """Reads codes, tables and scales, writes whole panels."""
        code_format = flags >> 3 & 15
        extent = max(operands[3], 0)
        depth = max(operands[4], 0)
        first = max(operands[9], 0)
        columns = max(min(operands[10], depth) - first, 0)
        rows = max(min(operands[8], extent) - max(operands[7], 0), 0) if columns > 0 else 0
        burst = constants[C_DMA_MIN_BURST]
        multiple = constants[C_PANEL_COLS] if flags & 1 else constants[C_PANEL_ROWS]
        sram = (extent + multiple - 1) // multiple * multiple * depth * constants[C_PANEL_ELEMENT_BYTES]
        hbm = 0
        unit = C_CODES + _CODE_WORDS * code_format
        size = (columns * constants[unit + 1] + constants[unit] - 1) // constants[unit]
        if operands[0] != 0:
            hbm += rows * max(size, burst)
        else:
            sram += rows * size
        if floats:
            group = operands[18]
            start = operands[6] + first
            groups = (start + columns - 1) // group - start // group + 1 if group > 0 and columns > 0 else 1
            if code_format < FIRST_INTEGER_FORMAT:
                tables = (rows if operands[13] != 0 else min(rows, 1)) * (groups if operands[14] != 0 else 1)
                size = constants[unit + 2]
                if operands[11] != 0:
                    hbm += tables * max(size, burst)
                else:
                    sram += tables * size
            if flags & 2:
                if operands[15] != 0:
                    hbm += rows * max(2 * groups, burst)
                else:
                    sram += rows * 2 * groups
        latency = constants[C_HBM_LATENCY] if hbm > 0 or operands[0] != 0 else 0
        per_hbm = constants[C_HBM_BYTES_PER_CYCLE]
        per_sram = constants[C_SRAM_BYTES_PER_CYCLE]
        busy = max((hbm + per_hbm - 1) // per_hbm, (sram + per_sram - 1) // per_sram)
        return busy + constants[C_DMA_DESCRIPTOR], latency, hbm, sram

    return cost_decode


cost_pack = _packing(2, 2)
cost_packf = _packing(1, 0)
cost_packi = _packing(0, 0)
cost_decodef = _decoding(True)
cost_decodei = _decoding(False)


def _multiplying(cycles: int, rate: int, narrow_rate: int) -> CostFunction:
    """Cost of a product, constants[cycles] / constants[rate] cycles a row; with flag bit 3, narrow_rate for rate."""

    def cost_product(operands: Any, flags: int, programs: Any, constants: Any) -> Cost:
        """Weight-stationary array."""
        m = max(operands[3], 0)
        n = max(operands[4], 0)
        k = max(operands[5], 0)
        rows = constants[C_MXU_ROWS]
        columns = constants[C_MXU_COLS]
        tiles = (k + rows - 1) // rows * ((n + columns - 1) // columns)
        per_cycle = constants[narrow_rate if flags >> 3 & 1 else rate]
        busy = (tiles * m * constants[cycles] + per_cycle - 1) // per_cycle
        read = (tiles * m * rows + k * n) * constants[C_PANEL_ELEMENT_BYTES]
        return busy, constants[C_MXU_FILL], 0, read

    return cost_product


cost_matmul = _multiplying(C_MXU_FP32_DIVISOR, C_ONE, C_ONE)
cost_matmulf = _multiplying(C_ONE, C_ONE, C_MXU_FP8_RATE)
cost_matmuli = _multiplying(C_ONE, C_MXU_INT8_RATE, C_MXU_INT8_RATE)


def cost_accfill(operands: Any, flags: int, programs: Any, constants: Any) -> Cost:
    """Write a whole padded accumulator."""
    panel_rows = constants[C_PANEL_ROWS]
    panel_cols = constants[C_PANEL_COLS]
    rows = (max(operands[1], 0) + panel_rows - 1) // panel_rows * panel_rows
    columns = (max(operands[2], 0) + panel_cols - 1) // panel_cols * panel_cols
    sram = rows * columns * 4
    per_sram = constants[C_SRAM_BYTES_PER_CYCLE]
    return (sram + per_sram - 1) // per_sram, 0, 0, sram


def cost_accload(operands: Any, flags: int, programs: Any, constants: Any) -> Cost:
    """Read a tile, write a whole padded accumulator."""
    panel_rows = constants[C_PANEL_ROWS]
    panel_cols = constants[C_PANEL_COLS]
    m = max(operands[2], 0)
    n = max(operands[3], 0)
    rows = (m + panel_rows - 1) // panel_rows * panel_rows
    columns = (n + panel_cols - 1) // panel_cols * panel_cols
    sram = (rows * columns + m * n) * 4
    per_sram = constants[C_SRAM_BYTES_PER_CYCLE]
    return (sram + per_sram - 1) // per_sram, 0, 0, sram


def cost_program(operands: Any, flags: int, programs: Any, constants: Any) -> Cost:
    """SCE program; its words are read from the programs section. The program must have passed `check_program`."""
    ndim = flags & 7
    fold = flags >> 3 & 7
    offset = operands[0]
    n_streams = int(programs[offset]) & 0xFFFF
    n_instructions = int(programs[offset]) >> 16 & 0xFFFF
    leading = 1
    total = 1
    for d in range(ndim):
        size = max(operands[1 + d], 0)
        total *= size
        if d < ndim - fold:
            leading *= size
    first = offset + 1 + n_streams
    body = 0
    tail = 0
    reduced_registers = 0
    reduced_streams = 0
    in_tail = False
    scans = False
    for i in range(n_instructions):
        word = int(programs[first + i])
        entry = constants[C_SCE_OPS + (word & 0x1FFF)]
        scans = scans or (entry >> 4 & 1) == 1
        for j in range(entry >> 1 & 7):
            source = word >> (24 + 8 * j) & 0xFF
            if source < OPERAND_STREAM:
                in_tail = in_tail or (reduced_registers >> source & 1) == 1
            elif in_tail:
                reduced_streams |= 1 << (source - OPERAND_STREAM)
        dst = word >> 16 & 0xFF
        reduced = in_tail or (entry & 1) == 1
        if in_tail:
            tail += entry >> 8
        else:
            body += entry >> 8
        if dst >= OPERAND_STREAM:
            if reduced:
                reduced_streams |= 1 << (dst - OPERAND_STREAM)
        elif reduced:
            reduced_registers |= 1 << dst
        else:
            reduced_registers &= ~(1 << dst)
    sram = 0
    for s in range(n_streams):
        word = int(programs[offset + 1 + s])
        kind = word & 0xFF
        if kind in (STREAM_LOAD, STREAM_STORE):
            dims = ndim - fold if (reduced_streams >> s & 1) == 1 else ndim
            moved = 1 << (word >> 8 & 0xFF)
            for d in range(dims):
                size = max(operands[1 + d], 0)
                if size == 0 or operands[2 + ndim + s * (1 + ndim) + d] != 0:
                    moved *= size
            sram += moved
    if total == 0:
        sram = 0
        leading = 0
    lanes = constants[C_SCE_LANES]
    per_sram = constants[C_SRAM_BYTES_PER_CYCLE]
    busy = max((total * body + leading * tail + lanes - 1) // lanes, (sram + per_sram - 1) // per_sram)
    if scans and total > 0:
        busy = max(busy, total // leading * ((leading + lanes - 1) // lanes))
    return busy + constants[C_SCE_STARTUP], 0, 0, sram


def cost_combine(operands: Any, flags: int, programs: Any, constants: Any) -> Cost:
    """Fold by a program, which must have passed `combined_values`."""
    ndim = flags & 7
    mode = flags >> 3 & 3
    offset = operands[0]
    n_streams = int(programs[offset]) & 0xFFFF
    n_instructions = int(programs[offset]) >> 16 & 0xFFFF
    rows = 1
    for d in range(ndim - 1):
        rows *= max(operands[1 + d], 0)
    row = max(operands[ndim], 0)
    body = 0
    for i in range(n_instructions):
        body += constants[C_SCE_OPS + (int(programs[offset + 1 + n_streams + i]) & 0x1FFF)] >> 8
    moved = 0
    for s in range(n_streams):
        word = int(programs[offset + 1 + s])
        size = 1 << (word >> 8 & 0xFF)
        if word & 0xFF == STREAM_STORE:
            # In comes a row for each store, out goes an element of it or all of them.
            moved += size * rows * (row + (1 if mode == 0 else row))
    if rows * row == 0:
        return constants[C_SCE_STARTUP], 0, 0, 0
    lanes = constants[C_SCE_LANES]
    per_sram = constants[C_SRAM_BYTES_PER_CYCLE]
    startup = constants[C_SCE_STARTUP]
    work = 0
    if mode == 0:
        left = row
        while left > 1:
            work += (rows * (left // 2) * body + lanes - 1) // lanes + startup
            left = (left + 1) // 2
    else:
        work = row * max((rows * body + lanes - 1) // lanes, 1)
    return max(work, (moved + per_sram - 1) // per_sram) + startup, 0, 0, moved


def cost_sort(operands: Any, flags: int, programs: Any, constants: Any) -> Cost:
    """Sorting network over each row."""
    ndim = flags & 7
    element = 1 << (flags >> 3 & 3)
    rows = 1
    for d in range(ndim - 1):
        rows *= max(operands[6 + 4 * d], 0)
    row = max(operands[6 + 4 * (ndim - 1)], 0)
    kept = max(min(operands[4], row), 0)
    steps = 0
    while (1 << steps) < row:
        steps += 1
    slots = constants[C_SCE_WIDE] if element == 8 else constants[C_SCE_ALU]
    stored = (element if flags >> 6 & 1 else 0) + (4 if flags >> 7 & 1 else 0)
    sram = rows * (row * element + kept * stored)
    lanes = constants[C_SCE_LANES]
    per_sram = constants[C_SRAM_BYTES_PER_CYCLE]
    work = (rows * row * (steps * (steps + 1) // 2) * slots + lanes - 1) // lanes
    return max(work, (sram + per_sram - 1) // per_sram) + constants[C_SCE_STARTUP], 0, 0, sram


def cost_histogram(operands: Any, flags: int, programs: Any, constants: Any) -> Cost:
    """Counts of a tile's values."""
    ndim = flags & 7
    total = 1
    for d in range(ndim):
        total *= max(operands[4 + 3 * d], 0)
    bins = max(operands[3], 0)
    if bins == 0:
        return constants[C_SCE_STARTUP], 0, 0, 0
    element = (1 << (flags >> 3 & 3)) + (flags >> 6 & 1)
    sram = total * element + bins * (8 if flags >> 7 & 1 else 4)
    lanes = constants[C_SCE_LANES]
    per_sram = constants[C_SRAM_BYTES_PER_CYCLE]
    work = (2 * total * constants[C_SCE_ALU] + lanes - 1) // lanes
    return max(work, (sram + per_sram - 1) // per_sram) + constants[C_SCE_STARTUP], 0, 0, sram


_BY_MNEMONIC: Final[dict[str, CostFunction]] = {
    "lds": cost_lds,
    "sts": cost_sts,
    "report": cost_report,
    "copy": cost_copy,
    "pack": cost_pack,
    "packf": cost_packf,
    "packi": cost_packi,
    "decodef": cost_decodef,
    "decodei": cost_decodei,
    "matmul": cost_matmul,
    "matmulf": cost_matmulf,
    "matmuli": cost_matmuli,
    "accfill": cost_accfill,
    "accload": cost_accload,
    "program": cost_program,
    "combine": cost_combine,
    "sort": cost_sort,
    "histogram": cost_histogram,
    "gather": cost_gather,
    "scatter": cost_scatter,
    "scatter_reduce": cost_scatter_reduce,
    "compare_swap": cost_compare_swap,
}
COST_FUNCTIONS: Final[dict[int, CostFunction]] = {
    spec.opcode: _BY_MNEMONIC.get(spec.mnemonic, cost_scalar)
    for spec in ALL_COMMANDS
    if spec.mnemonic in _BY_MNEMONIC or spec.engine == "acp"
}
"""Opcode -> cost function, for every command (a test holds it complete)."""


def command_cost(
    opcode: int, operands: Sequence[int], flags: int, programs: Sequence[int], constants: npt.NDArray[np.int64]
) -> Cost:
    """Cost of one command with plain operands, as Python integers: for tools and compiler heuristics."""
    occupancy, latency, hbm, sram = COST_FUNCTIONS[opcode](operands, flags, programs, constants)
    return int(occupancy), int(latency), int(hbm), int(sram)
