"""Each seeded bug is found, with its code, at its line; and nothing else is found in that kernel's launch."""

from __future__ import annotations

import dataclasses
import linecache
import warnings
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest

import loom
import loom_core.codegen.kernel as codegen
import loom_sim
import ltl
from loom_core.base.diagnostics import Diagnostic, LoomWarning
from loom_core.isa.encoding import Command, Wait, decode_at, encode
from loom_core.objfile import LoomObject
from tests.check import palladium_kernels
from tests.check.seeds import BLOCK, PALLADIUM, SEEDS, Seed, kernels_in
from tests.codegen.ordering import waits_of, without_wait

LANGUAGES = ("ltl", "triton")


def kernel_of(language: str, name: str) -> Any:
    if language == "triton":
        pytest.importorskip("triton")
        return ltl.jit(getattr(kernels_in(language), name))
    return getattr(kernels_in(language), name)


def found(launch: Callable[[], None], **options: Any) -> list[tuple[str, str]]:
    """(code, source line) of all that a checked launch raises and warns of."""
    lines: list[tuple[str, str]] = []
    with warnings.catch_warnings(record=True) as given:
        warnings.simplefilter("always")
        try:
            with loom.check(**options):
                launch()
        except loom.LoomError as error:
            lines += [(d.code, source_of(d)) for d in error.diagnostics]
    for one in given:
        if issubclass(one.category, LoomWarning):
            head, line, *_ = str(one.message).splitlines()
            lines.append((head.partition("[")[2].partition("]")[0], line.partition("|")[2].strip()))
    return lines


def source_of(diagnostic: Diagnostic) -> str:
    return linecache.getline(diagnostic.location.file, diagnostic.location.line).strip()


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("seed", SEEDS, ids=lambda seed: seed.kernel)
def test_bugs_in_kernels(seed: Seed, language: str) -> None:
    kernel, arguments = kernel_of(language, seed.kernel), seed.arguments()
    blocks = {"BLOCK": BLOCK} if seed.block else {}
    fresh = [arguments[place] for place in seed.fresh]
    lines = found(lambda: kernel[(seed.grid,)](*arguments, **blocks), uninitialised=fresh, **seed.options)
    assert any(code == seed.code and line.endswith("# bug") for code, line in lines), lines
    assert all(line.endswith("# bug") or code == "LOOM-R210" for code, line in lines), lines


@pytest.mark.parametrize("name", PALLADIUM)
def test_bugs_in_palladium(name: str) -> None:
    lines = found(getattr(palladium_kernels, name), nan=True)
    assert [code for code, line in lines if line.endswith(f"# bug of {name}")] == [PALLADIUM[name]], lines
    assert len(lines) == 1


def test_what_is_declared_uninitialised_is_so_until_it_is_written() -> None:
    kernel, scratch = kernel_of("ltl", "half_written"), np.zeros(BLOCK, np.float32)
    x, out = np.ones(BLOCK, np.float32), np.zeros(BLOCK, np.float32)
    with loom.check(uninitialised=[scratch]):
        with pytest.raises(loom.LoomError, match="reads scratch\\[8\\], which nothing has written"):
            kernel[(1,)](x, scratch, out, BLOCK=BLOCK)
        kernel[(1,)](x, scratch, out, BLOCK=BLOCK)
    with pytest.raises(TypeError, match="uninitialised= takes arrays, not 3"), loom.check(uninitialised=[3]):
        pass


# ---- what is done to objects ----


@cache
def sound_object(language: str, prefetch: str) -> LoomObject:
    """`scaled_sum` in each of the languages."""
    from loom_core.compile import compile_kernel
    from loom_core.ir.rewriter import clone_function

    if language == "palladium":
        function = palladium_kernels.SCALED_SUM.lower(palladium_kernels.X, palladium_kernels.X)
    else:
        function = kernel_of(language, "scaled_sum").lower("*fp32", "*fp32", "*fp32", "i32", BLOCK=BLOCK)
    return compile_kernel(clone_function(function), machine=loom.L1, options={"prefetch": prefetch, "slots": 2})


def findings(obj: LoomObject, replays: int = 0) -> list[Diagnostic]:
    arrays = [np.arange(128, dtype=np.float32) + i for i in range(3)]
    registers = dict(zip(obj.abi.grid_registers, (1 if obj.abi.args[-1].kind == "buffer" else 8, 1, 1), strict=True))
    registers.update((arg.slot, 128) for arg in obj.abi.scalars)
    return loom_sim.load(obj).check([(a.ctypes.data, 0, a.nbytes) for a in arrays], registers, replays=replays)


def with_command(obj: LoomObject, word: int, changed: Command) -> LoomObject:
    commands = decode_at(obj.commands)
    commands[word] = changed
    return dataclasses.replace(obj, commands=encode(list(commands.values())))


def lines_of(obj: LoomObject, word: int) -> int:
    return loom_sim.load(obj).location_of(word).line


OBJECTS = (*LANGUAGES, "palladium")


@pytest.mark.parametrize("language", OBJECTS)
def test_objects_are_clean(language: str) -> None:
    for prefetch in ("all", "none"):
        assert not findings(sound_object(language, prefetch), replays=7)


@pytest.mark.parametrize("language", OBJECTS)
def test_lost_waits(language: str) -> None:
    obj, seen = sound_object(language, "all"), 0
    for word, position in waits_of(obj):
        mutant = findings(without_wait(obj, word, position), replays=12)
        races = [d for d in mutant if d.code == "LOOM-S201"]
        if races:
            seen += 1
            assert races[0].notes[0].startswith(f"at word {word},") and races[0].location.line == lines_of(obj, word)
            assert "LOOM-S206" in {d.code for d in mutant}
    assert seen >= 2


@pytest.mark.parametrize("language", OBJECTS)
def test_waits_for_nothing(language: str) -> None:
    obj = sound_object(language, "all")
    commands = decode_at(obj.commands)
    for word, position in waits_of(obj)[:2]:
        waits = list(commands[word].waits)
        waits[position] = Wait(99)
        mutant = findings(with_command(obj, word, dataclasses.replace(commands[word], waits=tuple(waits))))
        (nothing,) = [d for d in mutant if d.code == "LOOM-S207"]
        assert nothing.message.endswith("waits for token 99, which no command signals")
        assert nothing.location.line == lines_of(obj, word)


@pytest.mark.parametrize("language", OBJECTS)
def test_windows_that_share_bytes(language: str, monkeypatch: pytest.MonkeyPatch) -> None:
    place = codegen.place_windows

    def placed_badly(lifetimes: Any, *args: Any) -> int:
        used = place(lifetimes, *args)
        windows = sorted((w for w in lifetimes.spans if hasattr(w, "slots")), key=lambda w: w.offset)
        windows[1].offset = windows[0].offset
        return used

    monkeypatch.setattr(codegen, "place_windows", placed_badly)
    for prefetch in ("loops", "none"):
        sound_object.cache_clear()
        obj = sound_object(language, prefetch)
        shared = [d for d in findings(obj) if d.code == "LOOM-S209"]
        names = {w["name"] for w in obj.manifest["windows"]}
        assert shared and all(any(name in d.message for name in names) for d in shared)
        assert all(d.location.line > 0 for d in shared)
    sound_object.cache_clear()


@pytest.mark.parametrize("language", OBJECTS)
def test_accesses_beside_their_window(language: str) -> None:
    obj = sound_object(language, "none")
    commands = decode_at(obj.commands)
    moved = 0
    for word, item in commands.items():
        if item.mnemonic == "copy" and item.operands[2] == 0 and isinstance(item.operands[3], int) and moved < 2:
            moved += 1
            beside = (*item.operands[:3], item.operands[3] + (1 << 16), *item.operands[4:])
            mutant = findings(with_command(obj, word, dataclasses.replace(item, operands=beside)))
            (outside, *_) = [d for d in mutant if d.code == "LOOM-S210"]
            assert outside.message.startswith("copy writes bytes") and outside.location.line == lines_of(obj, word)
    assert moved == 2
