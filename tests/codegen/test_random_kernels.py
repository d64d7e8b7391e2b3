"""Random kernels: reference before the passes, after them, and the simulator agree to the byte; nothing races.

A failure names its seed: `KernelMaker(seed, ...)` makes the same kernel everywhere.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

from loom_core.ir.parser import parse_function
from loom_core.ir.printer import print_function
from loom_core.ir.verifier import verify_function
from loom_core.isa.verify import verify_stream
from loom_core.objfile import read_object, validate, write_object
from tests.codegen.execution import compiled, faults
from tests.codegen.random_kernels import KernelMaker, random_launch

SMALL = range(50)
LARGE = range(1000, 1015)
DETERMINISM = range(2000, 2006)
ROOT = Path(__file__).resolve().parents[2]


def check(seed: int, statements: int, depth: int) -> None:
    function = KernelMaker(seed, statements, depth).run()
    verify_function(function)
    rng = random.Random(seed)
    overlap = rng.random() < 0.4
    prefetch = rng.choice(["all", "all", "loops", "none"])
    found = faults(function, random_launch(seed, overlap), prefetch=prefetch, assume_noalias=not overlap)
    assert not found, f"seed {seed}, prefetch {prefetch}, overlapping buffers {overlap}:\n" + "\n".join(found[:5])


@pytest.mark.parametrize("seed", SMALL)
def test_small(seed: int) -> None:
    check(seed, statements=10, depth=2)


@pytest.mark.parametrize("seed", LARGE)
def test_large(seed: int) -> None:
    check(seed, statements=20, depth=3)


@pytest.mark.parametrize("seed", DETERMINISM)
def test_objects_are_sound_and_the_same_each_time(seed: int) -> None:
    function = KernelMaker(seed).run()
    obj = compiled(function)
    data = write_object(obj)
    assert not validate(data)
    verify_stream(obj.commands, obj.programs, obj.machine, spaces=obj.spaces, writable=obj.writable)
    assert write_object(read_object(data)) == data
    assert write_object(compiled(function)) == data
    text = print_function(function, locations=True)
    assert write_object(compiled(parse_function(text))) == data, "of the kernel that its text gives"


DIGESTS = """
import hashlib
from loom_core.objfile import write_object
from tests.codegen.execution import compiled
from tests.codegen.random_kernels import KernelMaker
for seed in range({first}, {last}):
    print(hashlib.sha256(write_object(compiled(KernelMaker(seed).run()))).hexdigest())
"""


def digests(hash_seed: int) -> str:
    path = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
    environment = {**os.environ, "PYTHONHASHSEED": str(hash_seed), "PYTHONPATH": path}
    program = DIGESTS.format(first=DETERMINISM.start, last=DETERMINISM.stop)
    command = [sys.executable, "-c", program]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout


def test_objects_do_not_depend_on_the_hash_seed() -> None:
    first = digests(1)
    assert len(first.split()) == len(DETERMINISM)
    assert first == digests(2)
