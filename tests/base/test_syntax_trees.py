"""Syntax trees from many threads."""

from __future__ import annotations

import ast
import gc
import sys
from concurrent.futures import ThreadPoolExecutor

from loom_core.base.syntax_trees import compile_tree, one_at_a_time, parse

TEXT = "def f(x):\n" + "".join(f"    x = ({'(' * 40}x + {n}{')' * 40})\n" for n in range(40)) + "    return x\n"


def test_threads_that_parse_and_compile_at_once() -> None:
    interval = sys.getswitchinterval()
    thresholds = gc.get_threshold()
    sys.setswitchinterval(1e-6)
    gc.set_threshold(5)  # collections run code, which lets another thread in
    try:

        def work(number: int) -> int:
            namespace: dict[str, object] = {}
            for _ in range(6):
                exec(compile_tree(parse(TEXT), "<text>"), namespace)
            return int(namespace["f"](number))  # type: ignore[operator]

        with ThreadPoolExecutor(8) as pool:
            assert list(pool.map(work, range(8))) == [n + sum(range(40)) for n in range(8)]
    finally:
        sys.setswitchinterval(interval)
        gc.set_threshold(*thresholds)


def test_only_one_thread_is_inside() -> None:
    inside: list[int] = []
    most: list[int] = []

    @one_at_a_time
    def convert(number: int) -> int:
        inside.append(number)
        most.append(len(inside))
        ast.parse(TEXT)
        inside.remove(number)
        return number

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(convert, range(32))) == list(range(32))
    assert max(most) == 1
