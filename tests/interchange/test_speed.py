"""A module of 10,000 operations is built, printed and parsed in a second each, and coded in half of one (CPU time)."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from loom.builder import ValueRef
from loom.builders import module_builder
from loom.format.bytecode import read_module, write_module
from loom.importers import print_loom_module
from loom.ir import BUFFER_TYPE, F32, OFFSET, Module
from tests.interchange.test_text import parse

Result = TypeVar("Result")


def build() -> Module:
    module, builder = module_builder()
    region = builder.region([("x", F32), ("b", BUFFER_TYPE), ("o", OFFSET)])
    builder.func.def_(callee="f", body=region)
    value, buffer, offset = (ValueRef(module, argument) for argument in region.blocks[0].arg_ids)
    with builder.insertion_block(region.blocks[0]):
        for number in range(3333):
            value = builder.scalar.addf(lhs=value, rhs=value, results=[F32], name=f"v{number}")
            byte = builder.buffer.load_i8_u(source=buffer, byte_offset=offset, name=f"w{number}")
            builder.buffer.store_i8(value=byte, target=buffer, byte_offset=offset)
        builder.func.return_()
    return module


def timed(seconds: float, action: Callable[[], Result]) -> Result:
    best = float("inf")
    for _ in range(3):
        started = time.thread_time()
        result = action()
        best = min(best, time.thread_time() - started)
        if best <= seconds:
            return result
    raise AssertionError(f"{best:.2f} s of CPU time, {seconds} s are allowed")


def test_ten_thousand_operations() -> None:
    parse("")
    module = timed(1.0, build)
    text = timed(1.0, lambda: print_loom_module(module))
    again = timed(1.0, lambda: parse(text))
    assert print_loom_module(again) == text
    data = timed(0.5, lambda: write_module(again))
    assert print_loom_module(timed(0.5, lambda: read_module(data))) == text
