"""Hashes of the simulator's results over all 2**32 float32 operands, for every opcode of one float32 operand.

`hashes.json` holds what is published: for each opcode one BLAKE3 digest over all, and the first bytes of the digest of
each of 64 parts of 2**26 operands, by which a part can be checked alone. Operands ascend by bit pattern.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

import numpy as np
from blake3 import blake3

from exhaustive.engines import CALL
from exhaustive.inputs import is_of_rows, result_type
from loom_core.base.dtype import by_name
from loom_core.isa.sce import ALL_SCE_OPS, SceOp
from loom_sim.engines import element_address
from loom_sim.stamps import source_stamp

PARTS: Final = 64
PART_OPERANDS: Final = (1 << 32) // PARTS
PART_DIGITS: Final = 8
PUBLISHED: Final = Path(__file__).with_name("hashes.json")
PROGRESS: Final = Path(__file__).resolve().parent.parent / "build" / "exhaustive" / "hashes.json"
_BLOCK: Final = 1 << 19  # operands at a time: both arrays stay in the second-level cache


def hashed_ops() -> list[SceOp]:
    """Every elementwise opcode of one float32 operand."""
    return [op for op in ALL_SCE_OPS if op.operands == ("f32",) and not is_of_rows(op)]


def part_digest(op: SceOp, part: int, operands: int = PART_OPERANDS) -> str:
    """Digest of the results for `operands` operands from the beginning of a part on, in hexadecimal."""
    engine, hasher = CALL(element_address(op)), blake3()
    first = part * PART_OPERANDS
    patterns = np.arange(first, first + min(_BLOCK, operands), dtype=np.uint32)
    results = np.zeros(len(patterns), f"u{by_name(result_type(op)).itemsize}")
    for start in range(0, operands, len(patterns)):
        if start:
            patterns += np.uint32(len(patterns))
        engine(results.ctypes.data, patterns.ctypes.data, 0, 0, len(patterns))
        hasher.update(results.data.cast("B"))
    return hasher.hexdigest()


def summary(parts: Sequence[str]) -> dict[str, str]:
    """What is published of the digests of all parts."""
    whole = blake3("".join(parts).encode()).hexdigest()
    return {"all": whole, "parts": "".join(digest[:PART_DIGITS] for digest in parts)}


def published() -> dict[str, dict[str, str]]:
    """The committed hashes by mnemonic."""
    known: dict[str, dict[str, str]] = json.loads(PUBLISHED.read_text()) if PUBLISHED.exists() else {}
    return known


def published_part(mnemonic: str, part: int) -> str:
    """The first digits of a part's published digest."""
    return published()[mnemonic]["parts"][part * PART_DIGITS : (part + 1) * PART_DIGITS]


class _Progress:
    """Digests of the parts that are done, on disk, so that an interrupted pass goes on where it was."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._stamp = source_stamp()
        stored = json.loads(PROGRESS.read_text()) if PROGRESS.exists() else {}
        # Digests of other sources may be of other results.
        self._parts: dict[str, str] = stored.get("parts", {}) if stored.get("stamp") == self._stamp else {}

    def digest(self, op: SceOp, part: int) -> str:
        key = f"{op.mnemonic}/{part}"
        with self._lock:
            found = self._parts.get(key)
        if found is None:
            found = part_digest(op, part)
            with self._lock:
                self._parts[key] = found
                PROGRESS.parent.mkdir(parents=True, exist_ok=True)
                PROGRESS.write_text(json.dumps({"stamp": self._stamp, "parts": self._parts}))
        return found


def run(ops: Sequence[SceOp], say: Callable[[str], None], write: bool = False, threads: int = 2) -> Iterator[str]:
    """Hash everything of these opcodes; yields what differs from the published hashes, which `write` replaces."""
    progress, known = _Progress(), published()
    with ThreadPoolExecutor(threads) as pool:
        for number, op in enumerate(ops, 1):
            start = time.monotonic()
            element_address(op)
            parts = list(pool.map(lambda part: progress.digest(op, part), range(PARTS)))  # noqa: B023 (done at once)
            found = summary(parts)
            say(f"{number:3} of {len(ops)}  {op.mnemonic:24} {time.monotonic() - start:7.1f} s  {found['all'][:16]}")
            if write:
                known[op.mnemonic] = found
                PUBLISHED.write_text(json.dumps(dict(sorted(known.items())), indent=0) + "\n")
            elif op.mnemonic not in known:
                yield f"{op.mnemonic}: no hash is published"
            elif known[op.mnemonic] != found:
                yield f"{op.mnemonic}: parts {_different(known[op.mnemonic], found)} differ from what is published"


def _different(one: dict[str, str], other: dict[str, str]) -> list[int]:
    cuts = [slice(i * PART_DIGITS, (i + 1) * PART_DIGITS) for i in range(PARTS)]
    return [i for i, cut in enumerate(cuts) if one["parts"][cut] != other["parts"][cut]]
