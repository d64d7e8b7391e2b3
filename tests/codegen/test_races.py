"""No two commands of a kernel race, whatever is prefetched; and the check is able to see a race."""

from __future__ import annotations

import pytest

from loom_core.isa.machine import L1
from loom_core.objfile import LoomObject
from tests.codegen.example_launches import EXAMPLES
from tests.codegen.execution import Launch, bindings_of, compiled, faults, registers_of
from tests.codegen.ordering import Issued, expand, races, waits_of, without_wait
from tests.codegen.random_kernels import KernelMaker, random_launch

PREFETCH = ("all", "loops", "none")
NEEDED_WAITS = 0.75
"""Share of the waits without which a run must show a race; the others guard what this run does not do."""


@pytest.mark.parametrize("assume_noalias", [True, False], ids=["distinct", "overlapping"])
@pytest.mark.parametrize("prefetch", PREFETCH)
@pytest.mark.parametrize("name", EXAMPLES)
def test_examples_are_right_and_ordered(name: str, prefetch: str, assume_noalias: bool) -> None:
    example = EXAMPLES[name]()
    assert not faults(example.function(), example.launch(), L1, prefetch=prefetch, assume_noalias=assume_noalias)


def issued(obj: LoomObject, launch: Launch) -> list[Issued]:
    memories = launch.fresh()
    return expand(obj, bindings_of(launch, memories), registers_of(obj, launch))


def unseen_deletions(obj: LoomObject, launch: Launch, one_memory: bool) -> list[tuple[int, int]]:
    """Waits whose loss leaves no race in this run."""
    assert not races(issued(obj, launch), one_memory)
    return [wait for wait in waits_of(obj) if not races(issued(without_wait(obj, *wait), launch), one_memory)]


@pytest.mark.parametrize("assume_noalias", [True, False], ids=["distinct", "overlapping"])
@pytest.mark.parametrize("name", ["softmax", "linear_gelu", "pool"])
def test_almost_every_wait_is_needed(name: str, assume_noalias: bool) -> None:
    """Also says that waits follow from each other nowhere: such a one could be deleted. With two slots, all of which a
    short run comes to use.
    """
    example = EXAMPLES[name]()
    obj = compiled(example.function(), L1, assume_noalias=assume_noalias, slots=2)
    unseen = unseen_deletions(obj, example.launch(), not assume_noalias)
    assert len(unseen) <= (1 - NEEDED_WAITS) * len(waits_of(obj)), unseen


def test_deleted_waits_of_random_kernels_are_seen() -> None:
    """Random runs do not take every path, but they take many."""
    seen = total = 0
    for seed in range(6):
        launch, obj = random_launch(seed), compiled(KernelMaker(seed, statements=6, depth=1).run())
        total += len(waits_of(obj))
        seen += len(waits_of(obj)) - len(unseen_deletions(obj, launch, False))
    assert seen > total / 3
