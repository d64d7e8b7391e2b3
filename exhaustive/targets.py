"""The same bits whatever instructions a CPU has: digests of the results of opcodes of the stream engine, and of the
matrix unit with every element type, in processes of other targets.

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
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import numpy as np

from exhaustive import matrix
from exhaustive.engines import run_element, run_rows
from exhaustive.inputs import is_of_rows, mixed_values, operands
from loom_core.isa.sce import SCE_OPS, SceOp
from loom_sim.mxu_elements import ELEMENTS
from loom_sim.mxu_kernel import PAIR_TILE, REGISTER_TILE

ROOT: Final = Path(__file__).resolve().parent.parent
TARGETS: Final[dict[str, dict[str, str]]] = {
    "baseline": {"NUMBA_CPU_NAME": "generic", "NUMBA_CPU_FEATURES": ""},
    "AVX2 and FMA": {"NUMBA_CPU_NAME": "haswell", "NUMBA_CPU_FEATURES": "+avx2,+fma,+avx,+sse4.2,+bmi2,+f16c"},
}
"""What the processes get, for x86-64; they are compared with this process, which is of the host's target."""
UNIT_TYPES: Final = tuple(ELEMENTS)


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


def digests(mnemonics: Sequence[str], types: Sequence[str]) -> dict[str, str]:
    """Digests of these opcodes and of the matrix unit with these element types, by name."""
    return {
        **{name: digest(SCE_OPS[name]) for name in mnemonics},
        **{f"product of {name}": matrix.digest(name) for name in types},
    }


def digests_of(target: str, mnemonics: Sequence[str], types: Sequence[str]) -> dict[str, str]:
    """The same from a process of its own. Raises RuntimeError with what it said if it failed."""
    paths = os.pathsep.join(filter(None, [str(ROOT / "src"), str(ROOT), os.environ.get("PYTHONPATH", "")]))
    result = subprocess.run(
        [sys.executable, "-m", "exhaustive.targets"],
        input=json.dumps([list(mnemonics), list(types)]),
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": paths, **TARGETS[target]},
        check=False,
    )
    if result.returncode:
        raise RuntimeError(result.stderr)
    found: dict[str, str] = json.loads(result.stdout)
    return found


def faults(target: str, ops: Sequence[SceOp], types: Sequence[str] = ()) -> Iterator[str]:
    """What has other bits on a target than in this process."""
    mnemonics = [op.mnemonic for op in ops]
    theirs = digests_of(target, mnemonics, types)
    for name, ours in digests(mnemonics, types).items():
        if theirs[name] != ours:
            yield f"{name}: other bits on {target}"


def main() -> None:
    """Reads a list of mnemonics and one of element types; writes digests, and which tiles the matrix unit has."""
    warnings.simplefilter("ignore", RuntimeWarning)
    json.dump({**digests(*json.load(sys.stdin)), "tiles": f"{REGISTER_TILE} {PAIR_TILE}"}, sys.stdout)


if __name__ == "__main__":
    main()
