"""A kernel is traced again when anything has changed that its trace read from outside."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

import palladium as lpl
from palladium.fingerprint import fingerprint

GLOBAL = 10
MODULE = ModuleType("settings")
MODULE.level = 3  # type: ignore[attr-defined]
MODULE.inner = ModuleType("settings.inner")  # type: ignore[attr-defined]
MODULE.inner.depth = 1  # type: ignore[attr-defined]
TABLE = np.arange(4.0)
HIDDEN = SimpleNamespace(sub=SimpleNamespace(S=7, table=np.arange(3)), items=[1, {"a": 2}])


class Settings:
    scale = 5


class Derived(Settings):
    pass


class Config:
    def __init__(self) -> None:
        self.step = 2
        self.sub = Slotted()

    def doubled(self) -> int:
        return self.sub.width * GLOBAL

    @property
    def total(self) -> int:
        return self.step + self.doubled()


class Slotted:
    __slots__ = ("width",)

    def __init__(self) -> None:
        self.width = 4


@dataclass
class Options:
    rate: int = 6


CONFIG, OPTIONS = Config(), Options()


def twice(x: Any) -> Any:
    return x * 2


def thrice(x: Any) -> Any:
    return x * 3


CHOSEN = twice


def aliased() -> Any:
    module = MODULE
    return module.level


class Elements(dict[int, Any]):
    """Elements of an array as `monkeypatch` sets items."""

    def __init__(self, table: np.ndarray[Any, Any]) -> None:
        super().__init__(enumerate(table.tolist()))
        self.table = table

    def __setitem__(self, index: int, value: Any) -> None:
        self.table[index] = value


READERS: dict[str, tuple[Callable[[], Any], Callable[[pytest.MonkeyPatch], None]]] = {
    "global": (lambda: GLOBAL, lambda patch: patch.setattr(sys.modules[__name__], "GLOBAL", 20)),
    "helper": (lambda: CHOSEN(2), lambda patch: patch.setattr(sys.modules[__name__], "CHOSEN", thrice)),
    "class": (lambda: Settings.scale, lambda patch: patch.setattr(Settings, "scale", 6)),
    "base class": (lambda: Derived.scale, lambda patch: patch.setattr(Settings, "scale", 6)),
    "module": (lambda: MODULE.level, lambda patch: patch.setattr(MODULE, "level", 4)),
    "module by another name": (aliased, lambda patch: patch.setattr(MODULE, "level", 4)),
    "inner module": (lambda: MODULE.inner.depth, lambda patch: patch.setattr(MODULE.inner, "depth", 2)),
    "object": (lambda: CONFIG.step, lambda patch: patch.setattr(CONFIG, "step", 3)),
    "chain": (lambda: CONFIG.sub.width, lambda patch: patch.setattr(CONFIG.sub, "width", 5)),
    "method": (lambda: CONFIG.doubled(), lambda patch: patch.setattr(CONFIG.sub, "width", 5)),
    "global of a method": (lambda: CONFIG.doubled(), lambda patch: patch.setattr(sys.modules[__name__], "GLOBAL", 11)),
    "property": (lambda: CONFIG.total, lambda patch: patch.setattr(CONFIG, "step", 3)),
    "dataclass": (lambda: OPTIONS.rate, lambda patch: patch.setattr(OPTIONS, "rate", 7)),
    "namespace": (lambda: HIDDEN.sub.S, lambda patch: patch.setattr(HIDDEN.sub, "S", 8)),
    "list in a namespace": (lambda: HIDDEN.items[1]["a"], lambda patch: patch.setitem(HIDDEN.items[1], "a", 3)),
    "array": (lambda: float(TABLE[0]), lambda patch: patch.setitem(Elements(TABLE), 0, 9)),
    "array of an object": (
        lambda: int(HIDDEN.sub.table[0]),
        lambda patch: patch.setitem(Elements(HIDDEN.sub.table), 0, 9),
    ),
}


@pytest.mark.parametrize("what", READERS)
def test_a_change_between_calls_is_seen(monkeypatch: pytest.MonkeyPatch, what: str) -> None:
    read, change = READERS[what]

    def body(o: Any) -> None:
        o[...] = lpl.full((1,), read(), np.float32)

    kernel = lpl.call(body, out_shape=lpl.ShapeDtypeStruct((1,), np.float32))
    first = [float(kernel()[0]) for _ in range(2)]
    assert first == [float(read())] * 2
    change(monkeypatch)
    assert float(read()) != first[0]
    assert [float(kernel()[0]) for _ in range(2)] == [float(read())] * 2
    monkeypatch.undo()
    assert float(kernel()[0]) == first[0]


def test_a_changed_index_map_is_seen() -> None:
    at = SimpleNamespace(block=0)
    spec = lpl.BlockSpec((2,), lambda: (at.block,))
    x = np.arange(4, dtype=np.float32)

    def body(x: Any, o: Any) -> None:
        o[...] = x[...]

    kernel = lpl.kernel(body, out_shape=lpl.ShapeDtypeStruct((2,), np.float32), in_specs=[spec])
    assert kernel(x).tolist() == [0, 1]
    at.block = 1
    assert kernel(x).tolist() == [2, 3]


def test_functions_that_shared_a_kernel_part_when_one_changes() -> None:
    def made(options: Options) -> Any:
        def body(o: Any) -> None:
            o[...] = lpl.full((1,), options.rate, np.int32)

        return lpl.call(body, out_shape=lpl.ShapeDtypeStruct((1,), np.int32))

    one, other = Options(1), Options(1)
    first, second = made(one), made(other)
    assert first()[0] == second()[0] == 1
    other.rate = 2
    assert (first()[0], second()[0]) == (1, 2)


def test_equal_functions_are_one_and_cycles_end() -> None:
    def made(number: int) -> Any:
        def recursive(n: int) -> int:
            return number if n == 0 else recursive(n - 1)

        return recursive

    assert fingerprint(made(1)) == fingerprint(made(1)) != fingerprint(made(2))
    knot: list[Any] = []
    knot.append(knot)
    assert fingerprint(knot) == fingerprint(knot)
    hash(fingerprint(knot))


HELD = 1.0
BOX = [1.0]
ROW = np.full(4, 1.0, np.float32)


def _helper(value: Any) -> Any:
    return value * HELD


def _of_a_global(x: Any, o: Any) -> None:
    o[...] = _helper(x[...]) + BOX[0]


def _of_an_array(x: Any, o: Any) -> None:
    o[...] = _helper(x[...]) + ROW


def _of_a_helper(x: Any, o: Any) -> None:
    o[...] = _helper(x[...])


def test_what_changes_between_calls_that_are_alike_is_seen() -> None:
    """The third call of a kind takes the shortest way: it looks at the identity of what the function reads."""
    x = np.ones(4, np.float32)
    for body, change in (
        (_of_a_global, "box"),
        (_of_an_array, "array"),
        (_of_a_helper, "global"),
        (_of_a_helper, "code"),
    ):
        kernel = lpl.kernel(body, out_shape=lpl.ShapeDtypeStruct((4,), np.float32))
        before = [kernel(x).tolist() for _ in range(4)]
        assert before == [before[0]] * 4
        saved = _helper.__code__
        if change == "box":
            BOX[0] += 1.0
        elif change == "array":
            ROW[:] = 5.0
        elif change == "global":
            globals()["HELD"] = HELD * 3.0
        else:
            _helper.__code__ = (lambda value: value * 7.0).__code__
        try:
            assert kernel(x).tolist() != before[0]
        finally:
            _helper.__code__ = saved
    assert kernel(x[::-1]).tolist() == kernel(x).tolist()
    wide = kernel(np.ones((4, 2), np.float32)[:, 0])
    assert wide.tolist() == kernel(x).tolist()
