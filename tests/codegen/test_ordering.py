"""The model of queues and tokens on streams written by hand, where what is ordered is known."""

from __future__ import annotations

import numpy as np
import pytest

from loom_core.isa.commands import Queue
from loom_core.isa.encoding import Command, Label, Reg, Wait, command, encode
from loom_core.isa.machine import L1_MINI
from loom_core.objfile import Abi, AbiArg, LoomObject
from tests.codegen.ordering import expand, layout_faults, races, token_faults, waits_of, without_wait

BYTES = 256


def copy(
    source: int,
    target: int,
    at: int = 0,
    *,
    queue: int = Queue.DMA0,
    waits: tuple[Wait, ...] = (),
    signal: int = 0,
) -> Command:
    """Copy 16 bytes between SRAM, space 0, at offset `at`, and offset 0 of a buffer."""
    offsets = (0, at) if source else (at, 0)
    operands = (source, offsets[0], target, offsets[1], 0, 16, 1, 1, 0, 16)
    return command("copy", *operands, flags={"ndim": 1}, queue=int(queue), waits=waits, signal=signal)


def built(*stream: Command | Label) -> LoomObject:
    args = tuple(AbiArg(f"b{i}", "buffer", "u8", i, True, True) for i in (1, 2))
    return LoomObject(encode([*stream, command("halt")]), abi=Abi(args, sram_bytes_used=BYTES), machine=L1_MINI)


def found(obj: LoomObject, one_memory: bool = False) -> int:
    memory = np.zeros(2 * BYTES, np.uint8)
    bindings = [(memory.ctypes.data, 0, BYTES), (memory.ctypes.data + BYTES, 0, BYTES)]
    return len(races(expand(obj, bindings, {}), one_memory))


LOAD, STORE = copy(1, 0, signal=1), copy(0, 2, queue=Queue.DMA1)


def waiting(*waits: Wait, signal: int = 0) -> Command:
    return copy(0, 2, queue=Queue.DMA1, waits=waits, signal=signal)


def test_a_queue_is_in_order() -> None:
    assert found(built(copy(1, 0), copy(0, 2))) == 0


def test_queues_are_not_ordered_with_each_other() -> None:
    assert found(built(LOAD, STORE)) == 1


def test_a_wait_orders() -> None:
    assert found(built(LOAD, waiting(Wait(1)))) == 0


def test_a_wait_that_lags_does_not_cover_the_last_signal() -> None:
    assert found(built(LOAD, waiting(Wait(1, 1)))) == 1
    assert found(built(LOAD, copy(1, 0, 64, signal=1), waiting(Wait(1, 1)))) == 0


def test_what_a_waited_for_command_waited_for_is_complete_too() -> None:
    second = copy(1, 0, 64, queue=Queue.DMA2, waits=(Wait(1),), signal=2)
    assert found(built(LOAD, second, waiting(Wait(2)))) == 0


def test_other_bytes_do_not_conflict() -> None:
    assert found(built(LOAD, copy(0, 2, 16, queue=Queue.DMA1))) == 0


def test_readers_do_not_conflict() -> None:
    assert found(built(LOAD, waiting(Wait(1)), copy(0, 1, queue=Queue.DMA2, waits=(Wait(1),)))) == 0


def test_buffers_conflict_where_they_may_be_one_memory() -> None:
    obj = built(copy(1, 0), copy(0, 2, 32, queue=Queue.DMA1))
    assert (found(obj), found(obj, one_memory=True)) == (0, 1)


def test_the_command_processor_stands_still_for_its_scalar_loads() -> None:
    scalar = command("lds", 9, 0, 0, waits=(Wait(1),))
    assert found(built(LOAD, scalar, STORE)) == 0
    assert found(built(LOAD, command("lds", 9, 0, 0), STORE)) == 2


def test_loops_and_branches_are_followed_with_the_values_of_registers() -> None:
    end, over = Label(), Label()
    stream = (
        command("loop", 3, 0, 3, 1, end),
        command("eq", 4, Reg(3), 1),
        command("brz", Reg(4), over),
        LOAD,
        over,
        STORE,
        command("endloop"),
        end,
    )
    assert found(built(*stream)) == 3  # the load meets the stores of all three iterations


def test_what_scalar_loads_find_is_learnt_from_a_run() -> None:
    over = Label()
    stream = (command("sts", 0, 0, 7), command("lds", 5, 0, 0), command("brnz", Reg(5), over), LOAD, over, STORE)
    assert found(built(*stream)) == 0


def test_tokens_that_nothing_signals_are_reported() -> None:
    assert token_faults(built(copy(1, 0, signal=1), waiting(Wait(2))))
    assert not token_faults(built(LOAD, waiting(Wait(1))))


def test_a_lag_on_a_token_of_two_queues_is_reported() -> None:
    both = (LOAD, copy(1, 0, 64, queue=Queue.DMA2, signal=1))
    assert token_faults(built(*both, waiting(Wait(1, 1))))
    assert not token_faults(built(*both, waiting(Wait(1))))


def test_reading_what_nobody_wrote_is_reported() -> None:
    def faults(*stream: Command) -> list[str]:
        memory = np.zeros(2 * BYTES, np.uint8)
        obj = built(*stream)
        return layout_faults(obj, expand(obj, [(memory.ctypes.data, 0, BYTES)] * 2, {}))

    assert faults(STORE)
    assert not faults(LOAD, STORE)
    assert faults(command("accfill", 0, 1, 1, 0), STORE), "an accumulator read by a copy"
    assert faults(copy(1, 0, BYTES - 8)), "past the bytes that the object says it uses"


def test_a_wait_can_be_made_void() -> None:
    obj = built(LOAD, waiting(Wait(1)))
    ((word, position),) = waits_of(obj)
    assert found(without_wait(obj, word, position)) == 1


@pytest.mark.parametrize(
    ("mnemonic", "a", "b", "result"),
    [
        ("div", -7, 2, -3),
        ("fdiv", -7, 2, -4),
        ("rem", -7, 2, -1),
        ("div", 5, 0, -1),
        ("rem", 5, 0, 5),
        ("shr", -1, 99, -1),
        ("shru", -1, 1, (1 << 63) - 1),
        ("shl", 1, 64, 0),
        ("ltu", 1, -1, 1),
    ],
)
def test_arithmetic_is_that_of_the_simulator(mnemonic: str, a: int, b: int, result: int) -> None:
    """The value goes into a copy's size operand in the model, and to memory in the simulator."""
    stream = (command(mnemonic, 5, a, b), command("sts", 0, 0, Reg(5), flags={"log2_bytes": 3}))
    obj = built(*stream)
    assert expand(obj, [(0, 0, 0)] * 2, {})[0].operands[2] == result
