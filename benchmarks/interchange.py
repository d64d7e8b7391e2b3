"""A module of 10,000 operations: built, printed, parsed, written as bytecode and read."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

from benchmarks.result import Result

REPEATS = 9


def run() -> list[Result]:
    """Seconds of thread CPU time, medians."""
    from loom.builder import ValueRef
    from loom.builders import default_ops, module_builder
    from loom.format.bytecode import read_module, write_module
    from loom.format.text import Parser
    from loom.importers import print_loom_module
    from loom.ir import BUFFER_TYPE, F32, OFFSET, Module

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

    def parser() -> Parser:
        made = Parser()
        made.register_ops(default_ops())
        return made

    module = build()
    text = print_loom_module(module)
    data = write_module(module)
    claims: list[tuple[str, Callable[[], object], float]] = [
        ("built", build, 1.0),
        ("printed", lambda: print_loom_module(module), 1.0),
        ("parsed", lambda: parser().parse(text), 1.0),
        ("written as bytecode", lambda: write_module(module), 0.5),
        ("read from bytecode", lambda: read_module(data), 0.5),
    ]
    return [Result(f"10,000 operations {what}", _seconds(action), bar, "<=", "s") for what, action, bar in claims]


def _seconds(action: Callable[[], object]) -> float:
    samples = []
    for _ in range(REPEATS):
        start = time.thread_time()
        action()
        samples.append(time.thread_time() - start)
    return statistics.median(samples)
