"""Every command of an engine has words, typed operands of the matrix unit among them."""

from __future__ import annotations

import pytest

from loom_core.isa.commands import ALL_COMMANDS, COMMANDS
from loom_core.isa.encoding import Command, command, encode
from loom_core.isa.machine import L1_MINI
from loom_core.objfile import Abi, AbiArg, LoomObject
from loom_core.tools.explain import _DESCRIPTIONS, Step, explain

BOX = (0, 64, 0, 128)


def step_of(made: Command) -> Step:
    args = tuple(AbiArg(f"b{i}", "buffer", "u8", i, read=True, written=False) for i in (1, 2, 3))
    words = encode([made, command("halt")])
    (step,) = explain(LoomObject(commands=words, programs=words[:0], abi=Abi(args), machine=L1_MINI)).body
    assert isinstance(step, Step)
    return step


def test_every_command_is_described() -> None:
    silent = {"halt", "loop", "endloop"}  # shown by the loops themselves
    scalar = {spec.mnemonic for spec in ALL_COMMANDS if spec.flags and spec.flags[0].name == "narrow"}
    assert set(_DESCRIPTIONS) == set(COMMANDS) - silent - scalar


@pytest.mark.parametrize(
    ("made", "text", "size"),
    [
        (
            command("packf", 1, 0, 0, 64, 128, 256, 2, *BOX, 0, flags={"side": 0, "type": 0}),
            "pack bf16 of b1 as left operand",
            64 * 128 * 2,
        ),
        (
            command("packi", 1, 0, 0, 64, 128, 128, 1, *BOX, 0, flags={"side": 1, "type": 2}),
            "pack i4 of b1 as right operand",
            64 * 128,
        ),
        (
            command("decodei", 2, 0, 0, 64, 128, 48, 0, *BOX, flags={"side": 1, "format": 7}),
            "decode packed_int3 weights of b2 as right operand",
            64 * 48,
        ),
        (
            command("decodef", 2, 0, 0, 64, 125, 26, 0, *BOX, *[0] * 8, flags={"side": 1, "format": 4}),
            "decode packed_trit5_fp16_lut3 weights of b2 as right operand",
            64 * 25,
        ),
    ],
)
def test_typed_operands(made: Command, text: str, size: int) -> None:
    step = step_of(made)
    assert step.text.startswith(text)
    assert step.bytes == size


@pytest.mark.parametrize("mnemonic", ["matmul", "matmulf", "matmuli"])
def test_products(mnemonic: str) -> None:
    step = step_of(command(mnemonic, 0, 0, 0, 24, 32, 128))
    assert step.flops == 2 * 24 * 32 * 128
    assert step.text == "multiply 24 x 128 by 128 x 32, accumulate"
