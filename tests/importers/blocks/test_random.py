"""Random functions of blocks: what Tile IR makes of them, and what jumping from block to block gives."""

from __future__ import annotations

import random

import numpy as np
import pytest

from loom_core.base.knobs import knobs
from loom_core.importers.ttir.errors import UnsupportedOperation
from ltl.imported import ImportedKernel
from tests.importers.blocks.programs import LIMIT, Code, random_program, reducible, run_program, text_of

BLOCKS = 12
SEEDS = 40
COMPILED = 4


def program(seed: int) -> list[Code]:
    rng = random.Random(seed)
    return random_program(rng, rng.randrange(3, BLOCKS), jumps_back=rng.choice((0, 0.2, 0.35)))


def recorded(kernel: ImportedKernel, x: int, *, interpret: bool) -> list[int]:
    out = np.zeros(LIMIT + 1, np.int32)
    with knobs.override(interpret=interpret):
        kernel[(1,)](out, x)
    return out.tolist()


def check(seed: int, *, interpret: bool) -> bool:
    """Whether some run of a program ended; what it recorded is compared."""
    code = program(seed)
    if not reducible(code):
        with pytest.raises(UnsupportedOperation, match="entered at several blocks"):
            ImportedKernel(text_of(code))
        return False
    kernel = ImportedKernel(text_of(code))
    ended = False
    for x in (0, 7, -5):
        wanted = run_program(code, x)
        if wanted is not None:
            ended = True
            assert recorded(kernel, x, interpret=interpret) == wanted + [0] * (LIMIT + 1 - len(wanted)), (seed, x)
    return ended


def test_random_blocks_by_the_interpreter() -> None:
    assert sum(check(seed, interpret=True) for seed in range(SEEDS)) > SEEDS / 2


def test_random_blocks_compiled() -> None:
    assert sum(check(seed, interpret=False) for seed in range(COMPILED)) > COMPILED / 2


def test_some_of_the_random_programs_are_not_reducible() -> None:
    assert {reducible(program(seed)) for seed in range(SEEDS)} == {True, False}
