"""The same bits whatever instructions a CPU has: digests of every opcode's results, in processes of other targets.

`python -m exhaustive.targets` prints them for the target of its own process, which numba takes from NUMBA_CPU_NAME and
NUMBA_CPU_FEATURES.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import warnings
import zlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

import numpy as np

from exhaustive.engines import run_element, run_rows
from exhaustive.inputs import is_of_rows, mixed_values, operands
from loom_core.isa.sce import ALL_SCE_OPS, SceOp

ROOT: Final = Path(__file__).resolve().parent.parent
TARGETS: Final[dict[str, dict[str, str]]] = {
    "host": {},
    "baseline": {"NUMBA_CPU_NAME": "generic", "NUMBA_CPU_FEATURES": ""},
    "AVX2 and FMA": {"NUMBA_CPU_NAME": "haswell", "NUMBA_CPU_FEATURES": "+avx2,+fma,+avx,+sse4.2,+bmi2,+f16c"},
}
"""What the processes get, for x86-64."""


def sample(one_in: int) -> list[SceOp]:
    """About one opcode in so many, spread over all."""
    return [op for op in ALL_SCE_OPS if zlib.crc32(f"target {op.mnemonic}".encode()) % one_in == 0]


def digest(op: SceOp) -> str:
    """Digest of an opcode's results for special values in pairs and a mixture; or of rows of 1 to 200."""
    hasher = hashlib.blake2b(digest_size=12)
    if is_of_rows(op):
        for length in (1, 31, 32, 33, 200):
            values = mixed_values(op.operands[0], np.random.default_rng(length), 17 * length)
            hasher.update(run_rows(op, values.reshape(17, length)).tobytes())
    else:
        hasher.update(run_element(op, operands(op, 2000, 3)).tobytes())
    return hasher.hexdigest()


def digests_of(target: str, ops: Sequence[SceOp]) -> dict[str, str]:
    """Digest by mnemonic, from a process of its own. Raises RuntimeError with what it said if it failed."""
    paths = os.pathsep.join(filter(None, [str(ROOT / "src"), str(ROOT), os.environ.get("PYTHONPATH", "")]))
    clean = {name: value for name, value in os.environ.items() if not name.startswith("NUMBA_CPU")}
    result = subprocess.run(
        [sys.executable, "-m", "exhaustive.targets"],
        input=json.dumps([op.mnemonic for op in ops]),
        capture_output=True,
        text=True,
        env={**clean, "PYTHONPATH": paths, **TARGETS[target]},
        check=False,
    )
    if result.returncode:
        raise RuntimeError(result.stderr)
    found: dict[str, str] = json.loads(result.stdout)
    return found


def faults(ops: Sequence[SceOp]) -> Iterator[str]:
    """Opcodes whose bits depend on the target."""
    by_target: Mapping[str, Mapping[str, str]] = {target: digests_of(target, ops) for target in TARGETS}
    for op in ops:
        differing = [name for name, found in by_target.items() if found[op.mnemonic] != by_target["host"][op.mnemonic]]
        if differing:
            yield f"{op.mnemonic}: other bits on {', '.join(differing)}"


def main() -> None:
    """Reads a list of mnemonics, writes digests."""
    warnings.simplefilter("ignore", RuntimeWarning)
    known = {op.mnemonic: op for op in ALL_SCE_OPS}
    json.dump({name: digest(known[name]) for name in json.load(sys.stdin)}, sys.stdout)


if __name__ == "__main__":
    main()
