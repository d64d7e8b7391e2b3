"""What a wrong kernel says: its code, and what the caret stands under."""

from __future__ import annotations

import linecache
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import ltl
from loom_core.base.diagnostics import INTERNAL_PACKAGES, Diagnostic, LoomError
from loom_core.trace import context
from tests.ltl.kernel_runs import interpret

CASES: list[tuple[str, str, Callable[..., Any]]] = []
LIST = [1, 2]
ARRAY = np.zeros(3)


def case(code: str, caret: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A kernel (out, n) that fails with `code`, the caret under the text `caret`."""

    def add(function: Callable[..., Any]) -> Callable[..., Any]:
        CASES.append((code, caret, function))
        return function

    return add


def underlined(diagnostic: Diagnostic) -> str:
    """The text above the carets."""
    at = diagnostic.location
    line = linecache.getline(at.file, at.line).rstrip("\n").encode()
    return line[at.column : at.end_column].decode()


def failure(kernel: Callable[..., Any], *args: Any, **kwargs: Any) -> LoomError:
    with pytest.raises(LoomError) as caught:
        kernel(*args, **kwargs)
    return caught.value


@case("LOOM-F019", "ltl.expp")
def unknown_function(out, n):
    ltl.store(out, ltl.expp(n))


@case("LOOM-F019", "ltl.arange(0, 4).shap")
def unknown_attribute(out, n):
    ltl.store(out, ltl.arange(0, 4).shap)


@case("LOOM-F004", "missing")
def undefined_global(out, n):
    ltl.store(out, missing)  # noqa: F821


@case("LOOM-F004", "later")
def undefined_local(out, n):
    ltl.store(out, later)  # noqa: F821
    later = 1  # noqa: F841


@case("LOOM-F011", "ltl.arange(0, n)")
def runtime_shape(out, n):
    ltl.arange(0, n)


@case("LOOM-F011", "ltl.zeros((4, n), ltl.float32)")
def runtime_shape_of_zeros(out, n):
    ltl.zeros((4, n), ltl.float32)


@case("LOOM-F103", "ltl.zeros((4, 0), ltl.float32)")
def empty_shape(out, n):
    ltl.zeros((4, 0), ltl.float32)


@case("LOOM-F103", "ltl.arange(4, 4)")
def empty_range(out, n):
    ltl.arange(4, 4)


@case("LOOM-F101", "ltl.arange(0, 4) + ltl.arange(0, 8)")
def shapes_differ(out, n):
    ltl.arange(0, 4) + ltl.arange(0, 8)


@case("LOOM-F101", "ltl.dot(a, a)")
def dot_shapes(out, n):
    a = ltl.zeros((4, 8), ltl.float32)
    ltl.dot(a, a)


@case("LOOM-F104", "ltl.dot(a, a)")
def dot_rank(out, n):
    a = ltl.zeros((4,), ltl.float32)
    ltl.dot(a, a)


@case("LOOM-F102", "ltl.dot(a, a.to(ltl.float16))")
def dot_dtypes(out, n):
    a = ltl.zeros((4, 4), ltl.float32)
    ltl.dot(a, a.to(ltl.float16))


@case("LOOM-F110", 'ltl.dot(a, a, input_precision="fp32")')
def dot_precision(out, n):
    a = ltl.zeros((4, 4), ltl.float32)
    ltl.dot(a, a, input_precision="fp32")


@case("LOOM-F102", "ltl.exp(n)")
def exp_of_integer(out, n):
    ltl.exp(n)


@case("LOOM-F102", 'ltl.zeros((4,), "float")')
def no_dtype(out, n):
    ltl.zeros((4,), "float")


@case("LOOM-F106", "n.shape[-1]")
def dimension_of_a_scalar(out, n):
    ltl.static_print(n.shape[-1])


@case("LOOM-F106", "ltl.sum(ltl.arange(0, 4), axis=1)")
def axis_out_of_range(out, n):
    ltl.sum(ltl.arange(0, 4), axis=1)


@case("LOOM-F105", "ltl.load(n)")
def load_from_number(out, n):
    ltl.load(n)


@case("LOOM-F107", "ltl.load(out, other=0)")
def other_without_mask(out, n):
    ltl.load(out, other=0)


@case("LOOM-F107", "ltl.load(out, mask=ltl.arange(0, 4) < 2)")
def tile_mask_on_scalar_pointer(out, n):
    ltl.load(out, mask=ltl.arange(0, 4) < 2)


@case("LOOM-F101", "ltl.store(out, ltl.arange(0, 4))")
def tile_through_scalar_pointer(out, n):
    ltl.store(out, ltl.arange(0, 4))


@case("LOOM-F109", "x + 300")
def literal_too_large(out, n):
    x = ltl.zeros((4,), ltl.int8)
    x + 300


@case("LOOM-F110", "n + None")
def operand_is_none(out, n):
    n + None


@case("LOOM-F110", "ltl.program_id(3)")
def no_such_grid_axis(out, n):
    ltl.program_id(3)


@case("LOOM-F111", "ltl.arange(0, 4)[0]")
def element_of_tile(out, n):
    ltl.arange(0, 4)[0]


@case("LOOM-F111", "ltl.arange(0, 4)[1:]")
def slice_of_tile(out, n):
    ltl.arange(0, 4)[1:]


@case("LOOM-F112", "n % x")
def mixed_signs(out, n):
    x = ltl.zeros((4,), ltl.uint32)
    n % x


@case("LOOM-F114", 'ltl.inline_asm_elementwise("mov", "=r,r", [n], ltl.int32, True, 1)')
def refused_function(out, n):
    ltl.inline_asm_elementwise("mov", "=r,r", [n], ltl.int32, True, 1)


@case("LOOM-F114", "ltl.zeros((4,), ltl.float8e4b15)")
def refused_type(out, n):
    ltl.zeros((4,), ltl.float8e4b15)


@case("LOOM-F113", "ltl.reduce(ltl.arange(0, 8), 0, store_both)")
def combine_function_with_effect(out, n):
    ltl.reduce(ltl.arange(0, 8), 0, store_both)


@case("LOOM-F113", "ltl.reduce(ltl.arange(0, 8), 0, one_of_two)")
def combine_function_changes_type(out, n):
    ltl.reduce(ltl.arange(0, 8), 0, one_of_two)


@ltl.jit
def store_both(a, b):
    ltl.device_print("both", a, b)
    return a + b


@ltl.jit
def one_of_two(a, b):
    return a * 1.0


@case("LOOM-F003", "try:")
def try_statement(out, n):
    try:
        ltl.store(out, n)
    finally:
        ltl.store(out, n)


@case("LOOM-F003", 'with open("x"):')
def with_statement(out, n):
    with open("x"):
        pass


@case("LOOM-F003", "import os")
def import_statement(out, n):
    import os  # noqa: F401


@case("LOOM-F003", "class A:")
def class_statement(out, n):
    class A:
        pass


@case("LOOM-F003", "def inner():")
def nested_function(out, n):
    def inner():
        pass


@case("LOOM-F003", 'raise ValueError("odd")')
def raise_that_is_reached(out, n):
    if n & 1:
        raise ValueError("odd")


@case("LOOM-F003", "yield n")
def yield_expression(out, n):
    yield n


@case("LOOM-F003", "a.shape")
def attribute_assignment(out, n):
    a = ltl.arange(0, 4)
    a.shape = 5


@case("LOOM-F003", "a[0]")
def element_assignment(out, n):
    a = ltl.arange(0, 4)
    a[0] = 5


@case("LOOM-F003", "for i in range(n):")
def else_of_loop(out, n):
    for i in range(n):
        ltl.store(out + i, i)
    else:
        ltl.store(out, n)


@case("LOOM-F003", "m := n")
def walrus_in_lazy_operand(out, n):
    n > 0 and (m := n)  # noqa: F841


@case("LOOM-F012", "return")
def return_in_loop(out, n):
    for _ in range(n):
        return


@case("LOOM-F012", "ltl.static_range(8)")
def break_from_unrolled_loop_at_run_time(out, n):
    for i in ltl.static_range(8):
        if i > n:
            break


@case("LOOM-F007", "i * 1.0")
def while_changes_a_type(out, n):
    i = 0
    while i < n:
        i = i * 1.0


@case("LOOM-F012", "(m := n) > 0")
def assignment_in_a_condition_with_break(out, n):
    while (m := n) > 0:
        if m > 3:
            break
        n -= 1


@case("LOOM-F012", "True")
def endless_loop(out, n):
    while True:
        pass


@case("LOOM-F005", "y")
def only_in_loop(out, n):
    for _ in range(n):
        y = 1.0
    ltl.store(out, y)


@case("LOOM-F006", "y")
def only_in_branch(out, n):
    if n > 3:
        y = 1.0
    ltl.store(out, y)


@case("LOOM-F007", "a + 1.5")
def carried_type(out, n):
    a = 0
    for _ in range(n):
        a = a + 1.5
    ltl.store(out, a)


@case("LOOM-F007", "ltl.sum(a, keep_dims=True)")
def carried_shape(out, n):
    a = ltl.zeros((4,), ltl.float32)
    for _ in range(n):
        a = ltl.sum(a, keep_dims=True)
    ltl.store(out + ltl.arange(0, 4), a)


@case("LOOM-F008", "n > 3")
def branch_types(out, n):
    if n > 3:
        a = 1.0
    else:
        a = 2
    ltl.store(out, a)


@case("LOOM-F008", "1.0 if n > 3 else 2")
def expression_types(out, n):
    ltl.store(out, 1.0 if n > 3 else 2)


@case("LOOM-F009", "range(n)")
def static_changes_in_loop(out, n):
    name = "a"
    for _ in range(n):
        name = "b"
    ltl.static_assert(name == "a")


@case("LOOM-F009", "n > 3")
def static_changes_in_branch(out, n):
    name = "a"
    if n > 3:
        name = "b"
    ltl.static_assert(name == "a")


@case("LOOM-F010", "ltl.arange(0, 4) > n")
def truth_of_tile(out, n):
    if ltl.arange(0, 4) > n:
        ltl.store(out, n)


@case("LOOM-F011", "ltl.arange(0, a)")
def size_of_runtime_value(out, n):
    a: ltl.constexpr = n + 1
    ltl.arange(0, a)


@case("LOOM-F011", "ltl.arange(0, 4)")
def loop_over_tile(out, n):
    for _ in ltl.arange(0, 4):
        pass


@case("LOOM-F011", "a, b")
def unpack_tile(out, n):
    a, b = n
    ltl.store(out, a + b)


@case("LOOM-F013", "math.sqrt(n)")
def foreign_function(out, n):
    ltl.store(out, math.sqrt(n))


@case("LOOM-F014", "LIST")
def list_from_outside(out, n):
    ltl.store(out, LIST[0])


@case("LOOM-F014", "ARRAY")
def array_from_outside(out, n):
    ltl.store(out, ARRAY)


@case("LOOM-F022", "open")
def python_function(out, n):
    ltl.store(out, open)


@case("LOOM-F021", "ltl.load(out, foo=1)")
def unknown_keyword(out, n):
    ltl.load(out, foo=1)


@case("LOOM-F015", "1 // 0")
def python_error(out, n):
    ltl.store(out, 1 // 0)


@case("LOOM-F017", 'ltl.static_assert(out.dtype == ltl.float32, "floats")')
def static_assert_fails(out, n):
    ltl.static_assert(out.dtype == ltl.float32, "floats")


@case("LOOM-F017", "assert out.dtype == ltl.float32")
def assert_fails(out, n):
    assert out.dtype == ltl.float32


@case("LOOM-F021", "returns_a_value")
def returns_a_value(out, n):
    return n


@ltl.jit
def helper(x):
    return x + ltl.arange(0, 3)


@ltl.jit
def recursive(x):
    return recursive(x)


@case("LOOM-F021", "helper(n, n)")
def wrong_helper_call(out, n):
    helper(n, n)


@case("LOOM-F018", "recursive(n)")
def endless_recursion(out, n):
    recursive(n)


@case("LOOM-F023", "total + i")
def endless_unrolling(out, n):
    total = n
    for i in ltl.static_range(1 << 20):
        total = total + i


@case("LOOM-F110", 'ltl.load(out, n > 0, float("inf"))')
def infinite_integers(out, n):
    ltl.load(out, n > 0, float("inf"))


@case("LOOM-F114", "n**2")
def power(out, n):
    ltl.store(out, n**2)


@case("LOOM-F114", "2**n")
def power_of_a_number(out, n):
    ltl.store(out, 2**n)


@case("LOOM-F114", "tile @ tile")
def matrix_operator(out, n):
    tile = ltl.full((4, 4), 1.0, ltl.float32)
    ltl.store(out, tile @ tile)


@case("LOOM-F111", "out[n]")
def indexed_pointer(out, n):
    ltl.store(out, out[n])


@case("LOOM-F021", "ltl.arange(4)")
def argument_left_out(out, n):
    ltl.store(out + ltl.arange(4), 0)


@case("LOOM-F021", "ltl.sum(ltl.arange(0, 4), dim=0)")
def keyword_of_another_library(out, n):
    ltl.store(out, ltl.sum(ltl.arange(0, 4), dim=0))


@case("LOOM-F021", "ltl.arange(0, 4).sum(0, 1, 2, 3)")
def too_many_arguments(out, n):
    ltl.store(out, ltl.arange(0, 4).sum(0, 1, 2, 3))


@pytest.mark.parametrize(("code", "caret", "function"), CASES, ids=lambda case: getattr(case, "__name__", ""))
def test_wrong_kernels(monkeypatch: pytest.MonkeyPatch, code: str, caret: str, function: Callable[..., Any]) -> None:
    monkeypatch.setattr(context, "OPERATION_LIMIT", 1000)
    error = failure(ltl.jit(function).lower, "*i32", "i32")
    (diagnostic,) = error.diagnostics
    assert (diagnostic.code, underlined(diagnostic)) == (code, caret)
    assert diagnostic.hint
    assert diagnostic.location.file == __file__
    assert diagnostic.location.function == function.__name__ or function.__name__ == "endless_recursion"


@pytest.mark.parametrize("name", ["only_in_loop", "only_in_branch", "carried_type", "branch_types"])
def test_both_lines_are_shown(name: str) -> None:
    function = next(function for _, _, function in CASES if function.__name__ == name)
    text = str(failure(ltl.jit(function).lower, "*i32", "i32"))
    assert text.count(f"{__file__}:") >= 3


def test_unknown_functions_suggest_near_names() -> None:
    function = next(function for _, _, function in CASES if function.__name__ == "unknown_function")
    assert "did you mean exp" in str(failure(ltl.jit(function).lower, "*i32", "i32"))


def test_errors_in_helpers_show_the_chain_of_calls() -> None:
    @ltl.jit
    def kernel(out, n):
        ltl.store(out, helper(ltl.zeros((4,), ltl.float32)))

    error = failure(kernel.lower, "*i32", "i32")
    location = error.diagnostics[0].location
    assert location.function == "helper"
    assert location.parent is not None
    assert location.parent.function == "kernel"
    assert "inlined from" in str(error)


def test_errors_at_launch_are_free_of_internal_frames() -> None:
    kernel = ltl.jit(shapes_differ)
    error = failure(interpret, kernel, np.zeros(1, np.int32), 2)
    names = []
    entry = error.__traceback__
    while entry is not None:
        names.append(str(entry.tb_frame.f_globals.get("__name__", "")).split(".")[0])
        entry = entry.tb_next
    # One frame of the launching function remains: it is the one that raises.
    assert sum(name in INTERNAL_PACKAGES for name in names) == 1


def test_functions_without_source() -> None:
    namespace: dict[str, Any] = {"ltl": ltl}
    exec("def kernel(out, n):\n    ltl.store(out, n + 1)\n", namespace)
    assert failure(ltl.jit, namespace["kernel"]).diagnostics[0].code == "LOOM-F001"
    given = ltl.jit(namespace["kernel"], source="def kernel(out, n):\n    ltl.store(out, n + 1)\n")
    out = np.zeros(1, np.int32)
    interpret(given, out, 4)
    assert out[0] == 5


def test_errors_in_given_source_show_its_lines() -> None:
    namespace: dict[str, Any] = {"ltl": ltl}
    exec("def kernel(out):\n    ltl.foo(out)\n", namespace)
    kernel = ltl.jit(namespace["kernel"], source="    def kernel(out):\n        ltl.foo(out)\n")
    error = failure(kernel.lower, "*i32")
    assert underlined(error.diagnostics[0]) == "ltl.foo"
    assert "<source of kernel>:2:5" in str(error)


@pytest.mark.parametrize("text", ["x = 1", "def a(): pass\ndef b(): pass", "def kernel(:", "lambda x: x"])
def test_given_source_must_be_one_definition(text: str) -> None:
    kernel = ltl.jit(shapes_differ, source=text)
    assert failure(kernel.lower, "*i32", "i32").diagnostics[0].code == "LOOM-F002"


def test_lambdas_are_no_kernels() -> None:
    error = failure(ltl.jit, lambda out: None)
    assert error.diagnostics[0].code == "LOOM-F002"
    assert "lambda" in error.diagnostics[0].message


def test_language_functions_outside_kernels() -> None:
    error = failure(ltl.program_id, 0)
    assert error.diagnostics[0].code == "LOOM-F016"
    assert ltl.cdiv(10, 4) == 3


def test_too_many_copies_of_what_follows_returns() -> None:
    tests = "".join(f"    if n > {i}:\n        if n > {i + 100}:\n            return\n" for i in range(10))
    namespace: dict[str, Any] = {"ltl": ltl}
    text = f"def kernel(out, n):\n{tests}    ltl.store(out, n)\n"
    exec(text, namespace)
    kernel = ltl.jit(namespace["kernel"], source=text)
    assert failure(kernel.lower, "*i32", "i32").diagnostics[0].code == "LOOM-F020"
