"""Philox and Threefry: references against Triton, JAX and published vectors; programs of integer opcodes the same."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from loom_core.isa.program import R, S, SceInstr, SceOperand, SceProgram, StreamSpec
from loom_core.reference.random import PARITY, ROTATIONS, philox, threefry2x32
from tests.sim.harness import build, launch, sce, whole

Words = NDArray[np.uint32]

COUNT = 1000


class _Integers:
    """Writes a program over u32 streams: counters in, scalars for constants, random words out."""

    def __init__(self, counters: int) -> None:
        self.streams = [StreamSpec("load", "u32")] * counters
        self.scalars: list[int] = []
        self.instructions: list[SceInstr] = []
        self._registers = 0

    def scalar(self, value: int) -> SceOperand:
        if value not in self.scalars:
            self.scalars.append(value)
            self.streams.append(StreamSpec("scalar", "u32"))
        return S(len(self.streams) - len(self.scalars) + self.scalars.index(value))

    def op(self, function: str, *operands: SceOperand) -> R:
        a, b = operands
        self._registers += 1
        self.instructions.append(SceInstr(f"{function}.u32", R(self._registers - 1), a, b))
        return R(self._registers - 1)

    def rotated(self, word: SceOperand, count: int) -> R:
        up = self.op("shl", word, self.scalar(count))
        return self.op("or", up, self.op("shr", word, self.scalar(32 - count)))

    def run(self, counters: Sequence[Words], results: Sequence[SceOperand]) -> list[Words]:
        """The words that the simulator computes."""
        inputs, first_store = len(counters), len(self.streams)
        stores = [SceInstr("mov.32", S(first_store + i), result) for i, result in enumerate(results)]
        streams = (*self.streams, *[StreamSpec("store", "u32")] * len(results))
        program = _with_few_registers(SceProgram(streams, (*self.instructions, *stores), self._registers))
        bytes_each = counters[0].nbytes
        given = [(i * bytes_each, 4) for i in range(inputs)] + [(value, 0) for value in self.scalars]
        given += [((inputs + i) * bytes_each, 4) for i in range(len(results))]
        memory = np.concatenate([*counters, np.zeros(COUNT * len(results), np.uint32)])
        commands = [whole((1, 0), (0, 0), memory.nbytes), sce(0, (COUNT,), given)]
        (after,) = launch(build([*commands, whole((0, 0), (1, 0), memory.nbytes)], [program], 1), [memory])
        return list(after[inputs * COUNT :].reshape(len(results), COUNT))


def _with_few_registers(program: SceProgram) -> SceProgram:
    """The same program with registers used again after their last read."""
    last = {o.number: i for i, instr in enumerate(program.instructions) for o in instr.operands if isinstance(o, R)}
    place: dict[int, int] = {}
    free, most, instructions = list(range(32)), 0, []
    for i, instr in enumerate(program.instructions):
        sources = [R(place[o.number]) if isinstance(o, R) else o for o in instr.operands]
        free += [place.pop(n) for n in {o.number for o in instr.operands if isinstance(o, R)} if last[n] == i]
        target: SceOperand = instr.dst
        if isinstance(target, R):
            place[target.number] = min(free)
            free.remove(place[target.number])
            most = max(most, place[target.number] + 1)
            target = R(place[target.number])
        a, b = (*sources, None)[:2]
        instructions.append(SceInstr(instr.mnemonic, target, a, b))
    return SceProgram(program.streams, tuple(instructions), most)


def philox_program(counters: Sequence[Words], key: tuple[int, int]) -> list[Words]:
    p = _Integers(4)
    multiply0, multiply1 = p.scalar(0xD2511F53), p.scalar(0xCD9E8D57)
    c0, c1, c2, c3 = (S(i) for i in range(4))
    k0, k1 = p.op("or", p.scalar(key[0]), p.scalar(0)), p.op("or", p.scalar(key[1]), p.scalar(0))
    state: list[Any] = [c0, c1, c2, c3]
    for _ in range(10):
        c0, c1, c2, c3 = state
        high0, low0 = p.op("mulhi", multiply0, c0), p.op("mul", multiply0, c0)
        high1, low1 = p.op("mulhi", multiply1, c2), p.op("mul", multiply1, c2)
        first = p.op("xor", p.op("xor", high1, c1), k0)
        state = [first, low1, p.op("xor", p.op("xor", high0, c3), k1), low0]
        k0, k1 = p.op("add", k0, p.scalar(0x9E3779B9)), p.op("add", k1, p.scalar(0xBB67AE85))
    return p.run(counters, state)


def threefry_program(counters: Sequence[Words], key: tuple[int, int]) -> list[Words]:
    p = _Integers(2)
    keys = [key[0], key[1], key[0] ^ key[1] ^ PARITY]
    x, y = p.op("add", S(0), p.scalar(keys[0])), p.op("add", S(1), p.scalar(keys[1]))
    for group in range(5):
        for rotation in ROTATIONS[group % 2]:
            x = p.op("add", x, y)
            y = p.op("xor", p.rotated(y, rotation), x)
        x = p.op("add", x, p.scalar(keys[(group + 1) % 3]))
        y = p.op("add", y, p.scalar((keys[(group + 2) % 3] + group + 1) % 2**32))
    return p.run(counters, [x, y])


def _words(count: int, seed: int) -> list[Words]:
    return list(np.random.default_rng(seed).integers(0, 2**32, (count, COUNT), np.uint32))


def test_published_vectors() -> None:
    zero, ones = np.zeros(1, np.uint32), np.full(1, 0xFFFFFFFF, np.uint32)
    assert [int(w[0]) for w in philox([zero] * 4, (0, 0))] == [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]
    got = philox([ones] * 4, (0xFFFFFFFF, 0xFFFFFFFF))
    assert [int(w[0]) for w in got] == [0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD]
    assert [int(w[0]) for w in threefry2x32([zero] * 2, (0, 0))] == [0x6B200159, 0x99BA4EFE]
    got = threefry2x32([ones] * 2, (0xFFFFFFFF, 0xFFFFFFFF))
    assert [int(w[0]) for w in got] == [0x1CB996FC, 0xBB002BE7]


_TRITON = """
import json, sys, torch, triton, triton.language as tl

@triton.jit
def kernel(out, seed, N: tl.constexpr):
    i = tl.arange(0, N).to(tl.uint32)
    a, b, c, d = tl.philox(seed, i, i * 3, i * 0, i ^ 5)
    for word in tl.static_range(4):
        tl.store(out + word * N + tl.arange(0, N), (a, b, c, d)[word].to(tl.int64))

out = torch.zeros(4 * 16, dtype=torch.int64)
kernel[(1,)](out, 0x123456789ABCDEF, N=16)
print(json.dumps((out % 2**32).tolist()))
"""


def test_philox_gives_the_integers_of_triton(tmp_path: Any) -> None:
    pytest.importorskip("triton")
    pytest.importorskip("torch")
    script = tmp_path / "kernel.py"  # Triton reads a kernel's source
    script.write_text(_TRITON)
    environment = {**os.environ, "TRITON_INTERPRET": "1"}
    result = subprocess.run([sys.executable, script], capture_output=True, text=True, env=environment, check=False)
    assert result.returncode == 0, result.stderr
    i = np.arange(16, dtype=np.uint32)
    words = philox([i, i * np.uint32(3), i * np.uint32(0), i ^ np.uint32(5)], (0x89ABCDEF, 0x01234567))
    assert np.concatenate(words).tolist() == json.loads(result.stdout)


def test_threefry_gives_the_integers_of_jax() -> None:
    random = pytest.importorskip("jax.extend.random")
    x, y = _words(2, 5)
    key = np.array([0xDEADBEEF, 0x01234567], np.uint32)
    expected = np.asarray(random.threefry_2x32(key, np.concatenate([x, y])))
    assert np.concatenate(threefry2x32([x, y], key)).tolist() == expected.tolist()


def test_philox_of_64_bits_against_integers_of_any_length() -> None:
    counters = [np.array([0, 1, 2**64 - 1, 0x123456789ABCDEF0], np.uint64) + np.uint64(i) for i in range(4)]
    got = philox(counters, (7, 2**63 + 1))
    for column in range(4):
        c = [int(words[column]) for words in counters]
        k0, k1 = 7, 2**63 + 1
        for _ in range(10):
            one, two = 0xD2E7470EE14C6C93 * c[0], 0xCA5A826395121157 * c[2]
            c = [two >> 64 ^ c[1] ^ k0, two % 2**64, one >> 64 ^ c[3] ^ k1, one % 2**64]
            k0, k1 = (k0 + 0x9E3779B97F4A7C15) % 2**64, (k1 + 0xBB67AE8584CAA73B) % 2**64
        assert [int(words[column]) for words in got] == c


def test_philox_as_a_program() -> None:
    counters, key = _words(4, 1), (0x89ABCDEF, 0xFEDCBA98)
    for got, expected in zip(philox_program(counters, key), philox(counters, key), strict=True):
        assert got.tolist() == expected.tolist()


def test_threefry_as_a_program() -> None:
    counters, key = _words(2, 2), (0x89ABCDEF, 0xFEDCBA98)
    for got, expected in zip(threefry_program(counters, key), threefry2x32(counters, key), strict=True):
        assert got.tolist() == expected.tolist()
