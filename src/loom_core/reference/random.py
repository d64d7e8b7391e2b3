"""Counter-based random integers: Philox 4x32 and 4x64, Threefry 2x32 (J. Salmon, M. Moraes, R. Dror, D. Shaw, "Parallel
random numbers: as easy as 1, 2, 3", 2011). Their meaning is integer arithmetic; the engines have no opcode for them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from loom_core.reference.integers import mulhi

Words: TypeAlias = NDArray[Any]

PHILOX_ROUNDS: Final = 10
THREEFRY_ROUNDS: Final = 20
# Per word size: the two multipliers, the two increments of the key.
_PHILOX: Final[dict[int, tuple[int, int, int, int]]] = {
    4: (0xD2511F53, 0xCD9E8D57, 0x9E3779B9, 0xBB67AE85),
    8: (0xD2E7470EE14C6C93, 0xCA5A826395121157, 0x9E3779B97F4A7C15, 0xBB67AE8584CAA73B),
}
ROTATIONS: Final = ((13, 15, 26, 6), (17, 29, 16, 24))
PARITY: Final = 0x1BD11BDA


def philox(counter: Sequence[Words], key: Sequence[Any], rounds: int = PHILOX_ROUNDS) -> tuple[Words, ...]:
    """Four arrays of counters and a key of two numbers, all uint32 or all uint64, to four arrays of random words."""
    c0, c1, c2, c3 = (np.asarray(words) for words in counter)
    kind = c0.dtype.type
    multiply0, multiply1, raise0, raise1 = map(kind, _PHILOX[c0.dtype.itemsize])
    k0, k1 = map(kind, key)
    with np.errstate(over="ignore"):
        for _ in range(rounds):
            high0, low0 = mulhi(multiply0, c0), multiply0 * c0
            high1, low1 = mulhi(multiply1, c2), multiply1 * c2
            c0, c1, c2, c3 = high1 ^ c1 ^ k0, low1, high0 ^ c3 ^ k1, low0
            k0, k1 = k0 + raise0, k1 + raise1
    return c0, c1, c2, c3


def threefry2x32(counter: Sequence[Words], key: Sequence[Any], rounds: int = THREEFRY_ROUNDS) -> tuple[Words, Words]:
    """Two uint32 arrays of counters and a key of two numbers to two arrays of random words; rounds in fours."""
    keys = [np.uint32(key[0]), np.uint32(key[1])]
    keys.append(keys[0] ^ keys[1] ^ np.uint32(PARITY))
    with np.errstate(over="ignore"):
        x, y = np.asarray(counter[0], np.uint32) + keys[0], np.asarray(counter[1], np.uint32) + keys[1]
        for group in range(rounds // 4):
            for rotation in ROTATIONS[group % 2]:
                x = x + y
                y = (y << np.uint32(rotation) | y >> np.uint32(32 - rotation)) ^ x
            x = x + keys[(group + 1) % 3]
            y = y + keys[(group + 2) % 3] + np.uint32(group + 1)
    return x, y
