"""The machine that programs are compiled for: one frozen record, presets, a digest, user files in TOML.

Every number that a program, the cost model or the simulator uses comes from a `MachineConfig`. The digest goes into
every object file, and a cycle figure names it.
"""

from __future__ import annotations

import dataclasses
import functools
import tomllib
from pathlib import Path
from typing import Any

from blake3 import blake3

from loom_core.base.location import UNKNOWN
from loom_core.isa.errors import InvalidMachine

# Bounds set by the encoding: field -> (lowest, highest). A machine outside them cannot be addressed by the commands.
_ENCODING_BOUNDS: dict[str, tuple[int, int]] = {
    "cores": (1, 64),
    "sram_bytes": (1024, 1 << 40),
    "hbm_bytes": (1024, 1 << 48),
    "hbm_latency": (0, 1 << 20),
    "dma_queues": (1, 4),
    "acp_registers": (8, 256),
    "tokens": (2, 65536),
    "sce_registers": (1, 64),
    "sce_streams": (1, 24),
    "sce_instructions": (1, 65535),
    "loop_depth": (1, 16),
}


FIELD_DOCS: dict[str, str] = {
    "clock_hz": "cycles per second",
    "cores": "cores of the chip",
    "sram_bytes": "SRAM of a core, bytes",
    "sram_banks": "banks of it",
    "sram_bank_bytes": "bytes that a bank moves in a cycle",
    "hbm_bytes": "memory that all cores share, bytes",
    "hbm_bytes_per_s": "its bandwidth, shared by all cores",
    "hbm_latency": "cycles from an access to its data",
    "dma_queues": "DMA queues of a core",
    "dma_descriptor_cycles": "cycles to start a DMA command",
    "dma_min_burst": "a shorter contiguous run costs this many bytes",
    "mxu_rows": "rows of the multiplier array (k)",
    "mxu_cols": "columns of the array (n)",
    "mxu_fp32_divisor": "cycles for a row of f32 operands; 16-bit floats take one",
    "mxu_fp8_rate": "rows of 8-bit floats in a cycle",
    "mxu_int8_rate": "rows of integers in a cycle",
    "mxu_fill_latency": "cycles from the last row in to the last result out",
    "panel_rows": "rows of a panel of A; tiles are padded to it",
    "panel_cols": "columns of a panel of B; tiles are padded to it",
    "panel_element_bytes": "bytes of an element in a panel",
    "pass_depth": "k of a pass of the dot rule",
    "sce_lanes": "lane operations in a cycle",
    "sce_startup_cycles": "cycles to start a program",
    "sce_alu_slots": "lane operations of a simple instruction",
    "sce_wide_slots": "the same on 64-bit types",
    "sce_divide_slots": "the same for division, square root and reciprocal",
    "sce_transcendental_slots": "the same for exp and its kin",
    "sce_registers": "registers of a program",
    "sce_streams": "streams of a program",
    "sce_instructions": "instructions of a program",
    "reduce_lanes": "lanes of the reduction rule",
    "reduce_block": "elements of a block of the reduction rule",
    "acp_registers": "scalar registers of a command processor",
    "tokens": "tokens of a core, number 0 included, which means none",
    "loop_depth": "loops that may be nested",
    "acp_scalar_cycles": "cycles of a scalar or control command",
    "acp_issue_cycles": "cycles to issue a command to a queue",
    "acp_memory_cycles": "cycles of a scalar load or store, without HBM's latency",
}
"""What each field but the name means, in declaration order."""


@dataclasses.dataclass(frozen=True, slots=True)
class MachineConfig:
    """One machine; `FIELD_DOCS` says what its fields mean. Times are in cycles of `clock_hz`.

    Raises `InvalidMachine` (LOOM-O001) when a field is not a positive integer or does not fit the encoding.
    """

    name: str
    # chip and memory
    clock_hz: int = 1_000_000_000
    cores: int = 2
    sram_bytes: int = 4 << 20
    sram_banks: int = 32
    sram_bank_bytes: int = 64
    hbm_bytes: int = 16 << 30
    hbm_bytes_per_s: int = 512_000_000_000
    hbm_latency: int = 400
    # DMA
    dma_queues: int = 4
    dma_descriptor_cycles: int = 8
    dma_min_burst: int = 64
    # matrix engine
    mxu_rows: int = 128
    mxu_cols: int = 128
    mxu_fp32_divisor: int = 4
    mxu_fp8_rate: int = 1
    mxu_int8_rate: int = 2
    mxu_fill_latency: int = 128
    panel_rows: int = 24
    panel_cols: int = 32
    panel_element_bytes: int = 4
    pass_depth: int = 128
    # stream engine
    sce_lanes: int = 1024
    sce_startup_cycles: int = 16
    sce_alu_slots: int = 1
    sce_wide_slots: int = 2
    sce_divide_slots: int = 4
    sce_transcendental_slots: int = 4
    sce_registers: int = 32
    sce_streams: int = 24
    sce_instructions: int = 1024
    reduce_lanes: int = 32
    reduce_block: int = 4096
    # command processor
    acp_registers: int = 256
    tokens: int = 1024
    loop_depth: int = 16
    acp_scalar_cycles: int = 1
    acp_issue_cycles: int = 4
    acp_memory_cycles: int = 8

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if field.name == "name":
                if not isinstance(value, str) or not value:
                    raise InvalidMachine(UNKNOWN, field="name", value=repr(value), reason="must be a non-empty string")
                continue
            low, high = _ENCODING_BOUNDS.get(field.name, (1, (1 << 62)))
            if type(value) is not int or not low <= value <= high:
                reason = f"must be an integer from {low} to {high}"
                raise InvalidMachine(UNKNOWN, field=field.name, value=repr(value), reason=reason)
        if self.reduce_block % self.reduce_lanes:
            raise InvalidMachine(
                UNKNOWN, field="reduce_block", value=str(self.reduce_block), reason="must be a multiple of reduce_lanes"
            )

    def digest(self) -> str:
        """Hex digest (32 digits) of every field but the name: equal machines have equal digests on any host."""
        return _digest(self)

    @property
    def hbm_bytes_per_cycle(self) -> int:
        """HBM bytes that the whole chip moves in one cycle, at least 1."""
        return max(1, self.hbm_bytes_per_s // self.clock_hz)

    @property
    def sram_bytes_per_cycle(self) -> int:
        """SRAM bytes that one core moves in one cycle when no two accesses meet in a bank."""
        return self.sram_banks * self.sram_bank_bytes

    def as_dict(self) -> dict[str, Any]:
        """Plain fields, in declaration order."""
        return dataclasses.asdict(self)

    @classmethod
    def from_dict(cls, fields: dict[str, Any]) -> MachineConfig:
        """Inverse of `as_dict`; absent fields take L1's values. Raises InvalidMachine for an unknown field."""
        known = {field.name for field in dataclasses.fields(cls)}
        for key in fields:
            if key not in known:
                raise InvalidMachine(UNKNOWN, field=str(key), value=repr(fields[key]), reason="is not a field")
        if "name" not in fields:
            raise InvalidMachine(UNKNOWN, field="name", value="absent", reason="must be given")
        return cls(**fields)

    @classmethod
    def from_toml(cls, path: str | Path) -> MachineConfig:
        """Read a machine from a TOML file: fields at top level, `base = "l1-mini"` takes the rest from a preset.

        Raises InvalidMachine when the file is not TOML or a field is wrong, OSError when it cannot be read.
        """
        path = Path(path)
        try:
            fields = tomllib.loads(path.read_text(encoding="utf-8"))
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise InvalidMachine(UNKNOWN, field=str(path), value="text", reason=f"is not TOML: {error}") from error
        base = fields.pop("base", "l1")
        if not isinstance(base, str) or base not in PRESETS:
            raise InvalidMachine(UNKNOWN, field="base", value=repr(base), reason=f"must be one of {sorted(PRESETS)}")
        return cls.from_dict({**PRESETS[base].as_dict(), "name": path.stem, **fields})


@functools.cache
def _digest(config: MachineConfig) -> str:
    lines = [f"{name}={value}\n" for name, value in config.as_dict().items() if name != "name"]
    return blake3("".join(lines).encode()).hexdigest(length=16)


L1 = MachineConfig(name="l1")
# Small enough that tests meet tiling, spilling and window pressure with small shapes.
L1_MINI = MachineConfig(
    name="l1-mini",
    sram_bytes=256 << 10,
    sram_banks=8,
    hbm_bytes=256 << 20,
    hbm_bytes_per_s=64_000_000_000,
    sce_lanes=128,
)
PRESETS: dict[str, MachineConfig] = {config.name: config for config in (L1, L1_MINI)}


def round_up(value: int, multiple: int) -> int:
    """Smallest multiple of `multiple` that is >= value."""
    return -(-value // multiple) * multiple


def panel_bytes(config: MachineConfig, side: str, extent: int, depth: int, itemsize: int = 4) -> int:
    """SRAM bytes of an operand packed for the matrix engine, of any type.

    `side` is "a" (extent = rows) or "b" (extent = columns); depth is k. `itemsize` is the source element's bytes:
    panels hold 4-byte elements whatever it is.
    """
    multiple = {"a": config.panel_rows, "b": config.panel_cols}[side]
    return round_up(extent, multiple) * depth * config.panel_element_bytes


def acc_shape(config: MachineConfig, m: int, n: int) -> tuple[int, int]:
    """Shape (rows, columns) of the padded accumulator tile of an m x n result."""
    return round_up(m, config.panel_rows), round_up(n, config.panel_cols)


def acc_bytes(config: MachineConfig, m: int, n: int) -> int:
    """SRAM bytes of that tile; accumulators are 4 bytes an element (f32 or i32)."""
    rows, cols = acc_shape(config, m, n)
    return rows * cols * 4
