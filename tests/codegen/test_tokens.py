"""Waits: none that follows from another, tokens shared where there are too few, gates where a command has too many."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager

import pytest

from loom_core.codegen.emitter import Access, Emitter, Register, Window
from loom_core.codegen.tokens import assign_tokens
from loom_core.isa.commands import MAX_WAITS, Queue
from loom_core.isa.encoding import Command, Label, decode
from loom_core.isa.machine import L1_MINI, MachineConfig
from loom_core.objfile import LoomObject
from tests.codegen.execution import compiled, faults
from tests.codegen.sketch import Sketch


def commands(obj: LoomObject, *mnemonics: str) -> list[Command]:
    return [item for item in decode(obj.commands) if item.mnemonic in mnemonics]


def test_no_wait_follows_from_another() -> None:
    """The store waits for the program, not for the load; the next load for the program that reads its window."""
    k = Sketch()
    tile = k.load((8,))
    k.store(k.add(tile, tile))
    obj = compiled(k.finished(), prefetch="none")
    (load, store), (program,) = commands(obj, "copy"), commands(obj, "program")
    waits = [[(wait.token, wait.lag) for wait in item.waits] for item in (load, program, store)]
    assert waits == [[(program.signal, 0)], [(load.signal, 0), (store.signal, 0)], [(program.signal, 0)]]


@pytest.mark.parametrize("slots", [2, 3, 16])
def test_waits_lag_behind_the_other_slots(slots: int) -> None:
    """The program for the loads that run ahead, and for the stores of the tiles before."""
    k = Sketch(grid=(3, 1, 1))
    tile = k.load((8,))
    k.store(k.add(tile, tile))
    obj = compiled(k.finished(), prefetch="all", slots=slots)
    (program,) = commands(obj, "program")
    assert [wait.lag for wait in program.waits] == [slots - 1, slots - 1]
    store = commands(obj, "copy")[-1]
    assert [wait.lag for wait in store.waits] == [0]


def test_no_token_is_signalled_in_vain() -> None:
    k = Sketch(grid=(2, 1, 1))
    for _ in range(5):
        k.store(k.dot(k.load((8, 8)), k.load((8, 8))))
    items = decode(compiled(k.finished()).commands)
    waited = {wait.token for item in items for wait in item.waits}
    assert {item.signal for item in items if item.signal} == waited


class Streams:
    """Commands that only say what they touch, by name, and the waits that they get."""

    def __init__(self) -> None:
        self.emitter = Emitter()
        self.names: dict[int, str] = {}

    def window(self, offset: int) -> Window:
        window = self.emitter.window("window", 64)
        window.offset = offset
        return window

    def add(self, name: str, queue: Queue, *, reads: Sequence[Window] = (), writes: Sequence[Window] = ()) -> None:
        self.names[len(self.emitter.items)] = name
        accesses = [Access(window, False) for window in reads] + [Access(window, True) for window in writes]
        self.emitter.emit("accfill", [], queue=queue, accesses=accesses)

    def loop(self) -> AbstractContextManager[None]:
        return self.emitter.loop(Register("i"), 0, 4, 1)

    def branch(self, body: Callable[[], None]) -> None:
        end = Label("end")
        self.emitter.emit("brz", [Register("c"), end])
        body()
        self.emitter.items.append(end)

    def waits(self) -> dict[str, set[str]]:
        found = assign_tokens(self.emitter, False, 1024)
        by_token = {found[index].signal: name for index, name in self.names.items() if found[index].signal}
        return {name: {by_token[wait.token] for wait in found[index].waits} for index, name in self.names.items()}


LOAD, STORE = Queue.DMA0, Queue.DMA3


def test_a_window_that_is_taken_twice_in_an_iteration() -> None:
    """The first program waits for the store of the previous iteration, the second for that of its own."""
    s = Streams()
    tile = s.window(0)
    with s.loop():
        s.add("first", Queue.SCE, writes=[tile])
        s.add("store", STORE, reads=[tile])
        s.add("second", Queue.SCE, writes=[tile])
    assert s.waits() == {"first": {"store"}, "store": {"first"}, "second": {"store"}}


def test_what_a_waited_for_command_waited_for_is_known() -> None:
    s = Streams()
    a, b, c = s.window(0), s.window(64), s.window(128)
    s.add("load", LOAD, writes=[a])
    s.add("program", Queue.SCE, reads=[a], writes=[b])
    s.add("product", Queue.MXU, reads=[a, b], writes=[c])
    s.add("store", STORE, reads=[a, c])
    assert s.waits() == {"load": set(), "program": {"load"}, "product": {"program"}, "store": {"product"}}


def test_what_a_branch_waited_for_is_not_known_after_it() -> None:
    s = Streams()
    a, b = s.window(0), s.window(64)
    s.add("load", LOAD, writes=[a])
    s.branch(lambda: s.add("program", Queue.SCE, reads=[a], writes=[b]))
    s.add("store", STORE, reads=[a, b])
    assert s.waits()["store"] == {"load", "program"}


def test_a_command_in_a_loop_is_known_to_be_complete_only_after_a_wait_for_all_its_runs() -> None:
    s = Streams()
    a, b = s.window(0), s.window(64)
    with s.loop():
        s.add("load", LOAD, writes=[a])
        s.add("program", Queue.SCE, reads=[a], writes=[b])
    s.add("store", STORE, reads=[a, b])
    s.add("later", STORE, reads=[a])
    assert s.waits() == {"load": {"program"}, "program": {"load"}, "store": {"program"}, "later": set()}


def test_the_inner_loop_goes_on_after_what_was_waited_for_before_it() -> None:
    """Before the inner loop all stores of the last iteration are complete; in it there are new ones."""
    s = Streams()
    a = s.window(0)
    with s.loop():
        s.add("before", Queue.SCE, writes=[a])
        with s.loop():
            s.add("program", Queue.SCE, writes=[a])
            s.add("store", STORE, reads=[a])
    assert s.waits() == {"before": {"store"}, "program": {"store"}, "store": {"program"}}


def test_windows_that_share_addresses_conflict() -> None:
    s = Streams()
    s.add("first", Queue.SCE, writes=[s.window(0)])
    s.add("other", Queue.MXU, writes=[s.window(32)])
    s.add("apart", STORE, reads=[s.window(96)])
    assert s.waits() == {"first": set(), "other": {"first"}, "apart": set()}


def straight(count: int) -> Sketch:
    k = Sketch(grid=(2, 1, 1))
    first = k.load((8,))
    for _ in range(count):
        k.store(k.add(k.load((8,)), first))
    return k


@pytest.mark.parametrize("tokens", [2, 3, 7, 8, 9, 20, 1024])
def test_few_tokens_are_shared(tokens: int) -> None:
    machine = dataclasses.replace(L1_MINI, name="few", tokens=tokens)
    k = straight(12)
    obj = compiled(k.finished(), machine)
    assert max(item.signal for item in decode(obj.commands)) < tokens
    assert not faults(k.finished(), k.launch(), machine)


def after_many_branches() -> Sketch:
    """The last load overwrites windows of commands that may have run or not: no wait follows from another."""
    k = Sketch(n=3)
    shared = k.load((8,))
    for number in range(20):
        blocks: list[object] = []
        with k.arm(blocks):  # type: ignore[arg-type]
            k.store(k.add(k.load((8,)), shared))
            k.give()
        with k.arm(blocks):  # type: ignore[arg-type]
            k.store(k.load((8,)))
            k.give()
        k.branch(k.compare("gt", k.n, k.constant(number - 10)), blocks)  # type: ignore[arg-type]
    k.store(k.dot(k.load((64, 64)), k.load((64, 64))))
    return k


def gates(obj: LoomObject) -> list[Command]:
    """Copies of nothing."""
    return [item for item in commands(obj, "copy") if item.operands[5] == 0]


@pytest.mark.parametrize("assume_noalias", [True, False])
def test_more_waits_than_fit_a_command(assume_noalias: bool) -> None:
    k = after_many_branches()
    obj = compiled(k.finished(), prefetch="none", assume_noalias=assume_noalias)
    found = gates(obj)
    assert found
    assert all(item.queue == Queue.DMA0 and item.signal for item in found)
    assert max(len(item.waits) for item in decode(obj.commands)) <= MAX_WAITS
    assert not faults(k.finished(), k.launch(), prefetch="none", assume_noalias=assume_noalias)


@pytest.mark.parametrize("machine", [L1_MINI, dataclasses.replace(L1_MINI, name="one-queue", dma_queues=1)])
def test_loads_take_turns_on_the_queues(machine: MachineConfig) -> None:
    k = Sketch()
    tiles = [k.load((8,)) for _ in range(6)]
    total = tiles[0]
    for tile in tiles[1:]:
        total = k.add(total, tile)
    k.store(total)
    *loads, store = (item.queue for item in commands(compiled(k.finished(), machine, prefetch="none"), "copy"))
    assert set(loads) == set(range(Queue.DMA0, Queue.DMA0 + max(1, machine.dma_queues - 1)))
    assert store == Queue.DMA0 + machine.dma_queues - 1
