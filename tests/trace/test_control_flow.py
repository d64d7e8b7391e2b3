"""Control flow under a trace: the same kernels as plain Python would run them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import ltl
from loom_core.base.diagnostics import LoomError
from loom_core.ir.printer import print_function
from tests.ltl.kernel_runs import result

POINTER, INT = "*i32", "i32"


def names(kernel: ltl.JitFunction, *args: Any, **kwargs: Any) -> list[str]:
    """The operations of a traced kernel."""
    return [op.name for op in kernel.lower(*args, **kwargs).walk()]


@ltl.jit
def nested_branches(out, n, B: ltl.constexpr):
    p = ltl.program_id(0)
    o = p * B + ltl.arange(0, B)
    v = o.to(ltl.float32)
    if p < n:
        if p % 2 == 0:
            w = v * 2.0
        else:
            w = v - 1.0
    else:
        w = -v
    ltl.store(out + o, w)


def test_branches_join_and_nest() -> None:
    v = np.arange(16, dtype=np.float32).reshape(4, 4)
    expected = np.stack([v[0] * 2, v[1] - 1, v[2] * 2, -v[3]]).ravel()
    assert np.array_equal(result(nested_branches, 16, np.float32, 3, B=4, grid=4), expected)


@ltl.jit
def return_early(out, n):
    p = ltl.program_id(0)
    if p >= n:
        return
    ltl.store(out + p, p + 1)


def test_kernels_return_early() -> None:
    assert result(return_early, 5, np.int32, 3, grid=5).tolist() == [1, 2, 3, 0, 0]


@ltl.jit
def grade(p, n):
    if p < n:
        return p * 2
    if p == n:
        return p * 3
    return p


@ltl.jit
def use_grade(out, n):
    p = ltl.program_id(0)
    ltl.store(out + p, grade(p, n))


def test_helpers_return_early() -> None:
    assert result(use_grade, 5, np.int32, 3, grid=5).tolist() == [0, 2, 4, 9, 4]


@ltl.jit
def partial_return(p, n):
    if p < n:
        if p == 0:
            return p + 100
        p += 1
    return p * 10


@ltl.jit
def use_partial_return(out, n):
    p = ltl.program_id(0)
    ltl.store(out + p, partial_return(p, n))


def test_helpers_return_from_inside_branches() -> None:
    expected = [100, 20, 30, 30, 40]
    assert result(use_partial_return, 5, np.int32, 3, grid=5).tolist() == expected


@ltl.jit
def odd_sum(out, n):
    acc = 0
    for i in range(n):
        if i % 2 == 0:
            continue
        acc += i
    ltl.store(out, acc)


def test_continue_in_a_runtime_loop() -> None:
    assert result(odd_sum, 1, np.int32, 8)[0] == 16


@ltl.jit
def static_loops(out, N: ltl.constexpr):
    acc = 0
    for i in ltl.static_range(N):
        if i == 1:
            continue
        if i == 3:
            break
        acc += i
    k: ltl.constexpr = 5
    left = 5
    while left > 0:
        acc += 10
        left -= 1
        if left == 2:
            break
    for step in ltl.static_range(4, 0, -2):
        acc += step * 100
    for a, b in ((1, 2), (3, 4)):
        acc += a * b * k
    ltl.store(out, acc)


def test_loops_over_static_values_unroll() -> None:
    assert result(static_loops, 1, np.int32, N=6)[0] == 0 + 2 + 30 + 600 + (2 + 12) * 5
    assert "for" not in names(static_loops, POINTER, N=6)


@ltl.jit
def chosen(KIND: ltl.constexpr, a: ltl.constexpr):
    if KIND == "double":
        return a * 2
    if KIND == "half":
        return a // 2
    raise ValueError(f"no {KIND} here")


@ltl.jit
def declared(out, n, KIND: ltl.constexpr):
    k: ltl.constexpr = -7
    ltl.store(out, k // 2)
    k = k + 0
    ltl.store(out + 1, k // 2)
    width: ltl.constexpr = n + 1
    ltl.store(out + 2, chosen(KIND, width * n))


def test_declared_values_as_in_triton() -> None:
    """A plain assignment makes a run-time value of a constexpr; run-time values may go into constexprs of functions."""
    assert list(result(declared, 3, np.int32, 5, KIND="double")) == [-4, -3, 60]
    assert list(result(declared, 3, np.int32, 5, KIND="half")) == [-4, -3, 15]
    with pytest.raises(LoomError, match=r"raise ValueError.* cannot be used in a kernel"):
        declared.lower("*i32", "i32", KIND="third")


@ltl.jit
def static_bounds(out, N: ltl.constexpr):
    acc = 0
    for i in range(N):
        acc += i
    ltl.store(out, acc)


def test_range_makes_a_loop_even_of_static_bounds() -> None:
    assert "for" in names(static_bounds, POINTER, N=6)
    assert result(static_bounds, 1, np.int32, N=6)[0] == 15
    assert result(static_bounds, 1, np.int32, N=0)[0] == 0


@ltl.jit
def fibonacci(out, n):
    a, b = 0, 1
    for _ in range(n):
        a, b = b, a + b
    ltl.store(out, a)


def test_carried_values_may_swap() -> None:
    assert [result(fibonacci, 1, np.int32, n)[0] for n in (0, 2, 10)] == [0, 1, 55]


@ltl.jit
def swap(out, n):
    pair = (ltl.program_id(0) + 1, 2.5)
    for _ in range(n):
        pair = (pair[0] * 2, pair[1] * 0.5)
    ltl.store(out, pair[0] + pair[1])


def test_tuples_are_carried() -> None:
    assert result(swap, 1, np.float32, 3)[0] == 8 + 2.5 / 8


@ltl.jit
def walk_pointer(out, x, n):
    total = 0.0
    for i in range(n):
        for _ in range(i):
            total += ltl.load(x)
        x += 1
    ltl.store(out, total)


def test_pointers_are_carried_and_loops_nest() -> None:
    x = np.arange(1, 6, dtype=np.float32)
    assert result(walk_pointer, 1, np.float32, x, 5)[0] == sum(i * x[i] for i in range(5))


@ltl.jit
def count_down(out, n):
    for i in range(n, 0, -1):
        ltl.store(out + i, n - i)


def test_negative_steps() -> None:
    assert result(count_down, 6, np.int32, 5).tolist() == [0, 4, 3, 2, 1, 0]


@ltl.jit
def expressions(out, a, b):
    x = a if a > b else b
    both = a > 0 and b > 0 and not (a == b)  # noqa: SIM201 - `not` is what is tested
    if both or 0 < a < 10:
        x += 100
    ltl.store(out, x)


@pytest.mark.parametrize(("a", "b"), [(3, 2), (2, 2), (-1, 4), (50, 50), (11, 12)])
def test_expressions_of_conditions(a: int, b: int) -> None:
    both = a > 0 and b > 0 and not (a == b)  # noqa: SIM201 - `not` is what is tested
    expected = max(a, b) + (100 if both or 0 < a < 10 else 0)
    assert result(expressions, 1, np.int32, a, b)[0] == expected


@ltl.jit
def static_choice(out, n, FLAG: ltl.constexpr, other=None):
    if FLAG == "double":
        value = n * 2
    elif FLAG is None or other is not None:
        value = n * 3
    else:
        value = n
    ltl.store(out, value)


def test_static_conditions_leave_no_branch() -> None:
    for flag, factor in (("double", 2), (None, 3), ("x", 1)):
        assert result(static_choice, 1, np.int32, 7, flag)[0] == 7 * factor
        assert "if" not in names(static_choice, POINTER, INT, flag)
    assert result(static_choice, 1, np.int32, 7, "x", np.zeros(1))[0] == 21


@ltl.jit
def short_circuit(out, n, limit: ltl.constexpr):
    if limit is not None and n > limit:
        ltl.store(out, 1)


def test_static_operands_short_circuit() -> None:
    assert result(short_circuit, 1, np.int32, 5, None)[0] == 0
    assert result(short_circuit, 1, np.int32, 5, 4)[0] == 1


@ltl.jit
def overwritten(out, n):
    v = n + 1
    for i in range(n):
        v = i * 2
    ltl.store(out, v)


def test_a_variable_that_only_the_loop_changes_survives_it() -> None:
    assert result(overwritten, 1, np.int32, 4)[0] == 6
    assert result(overwritten, 1, np.int32, 0)[0] == 1


@ltl.jit
def unchanged(out, n, x):
    v = x + 1
    for i in range(n):
        v = v
        w = v + i
        ltl.store(out + i, w)
    ltl.store(out + n, v)


def test_what_a_loop_does_not_change_is_not_carried() -> None:
    function = unchanged.lower(POINTER, INT, INT)
    (loop,) = (op for op in function.walk() if op.name == "for")
    assert loop.results == []
    assert result(unchanged, 4, np.int32, 3, 5).tolist() == [6, 7, 8, 6]


@ltl.jit
def same_in_both(out, n):
    if n > 3:
        scale = 2
        shift = n
    else:
        scale = 2
        shift = n + 1
    ltl.store(out + ltl.arange(0, scale), shift)


def test_equal_known_values_stay_known_after_a_branch() -> None:
    assert result(same_in_both, 2, np.int32, 3).tolist() == [4, 4]


@ltl.jit
def induction_after(out, n):
    i = 7
    for i in range(n):
        ltl.store(out + i, 1)
    ltl.store(out + 5, i)


def test_the_loop_variable_keeps_its_last_value() -> None:
    assert result(induction_after, 6, np.int32, 3).tolist() == [1, 1, 1, 0, 0, 2]
    assert result(induction_after, 6, np.int32, 0).tolist() == [0, 0, 0, 0, 0, 7]


@ltl.jit
def comprehensions(out, N: ltl.constexpr):
    parts = [ltl.full((4,), i * i, ltl.int32) for i in ltl.static_range(N) if i != 1]
    total = ltl.zeros((4,), ltl.int32)
    for part in parts:
        total += part
    table = {name: i for i, name in enumerate(("a", "b"))}
    scale = (lambda x: x * 2)(table["b"])
    ltl.store(out + ltl.arange(0, 4), total * scale)


def test_comprehensions_and_lambdas_over_static_values() -> None:
    assert result(comprehensions, 4, np.int32, N=4).tolist() == [26] * 4


@ltl.jit
def walrus(out, n):
    if (m := n * 2) > 5:
        ltl.store(out, m)


def test_assignment_expressions() -> None:
    assert result(walrus, 1, np.int32, 3)[0] == 6
    assert result(walrus, 1, np.int32, 2)[0] == 0


@ltl.jit
def wide_bounds(out, low, high):
    for i in range(low, high):
        ltl.store(out + (i - low), i)


def test_loop_variables_have_the_common_dtype_of_the_bounds() -> None:
    low = 2**40
    assert result(wide_bounds, 2, np.int64, low, low + 2).tolist() == [low, low + 1]
    assert "^(%i: i64)" in print_function(wide_bounds.lower("*i64", "i64", "i32"))


@ltl.jit
def unsigned_bounds(out, n: ltl.uint32):
    for i in range(n):
        ltl.static_assert(i.dtype == ltl.uint32)
        ltl.store(out + i, i // 2)


def test_unsigned_bounds_give_an_unsigned_variable() -> None:
    assert result(unsigned_bounds, 4, np.uint32, 4).tolist() == [0, 0, 1, 1]


# ---- while and break at run time -------------------------------------------------------------------------------------


@ltl.jit
def doubled(out, n):
    i = 0
    acc = 1
    while ltl.condition(i < n):
        acc = acc * 2
        i += 1
    ltl.store(out, acc)
    ltl.store(out + 1, i)


@pytest.mark.parametrize(("n", "expected"), [(5, [32, 5]), (0, [1, 0]), (-3, [1, 0])])
def test_while_at_run_time(n: int, expected: list[int]) -> None:
    assert result(doubled, 2, np.int32, n).tolist() == expected
    assert "while" in names(doubled, POINTER, INT)


@ltl.jit
def until_break(out, n):
    i = 0
    while True:
        i += 3
        if i > n:
            break
    ltl.store(out, i)


def test_endless_while_left_by_a_break() -> None:
    assert result(until_break, 1, np.int32, 10)[0] == 12
    assert result(until_break, 1, np.int32, 0)[0] == 3


@ltl.jit
def odd_sum_to(out, n, limit):
    acc = 0
    for i in range(n):
        if i == limit:
            break
        if i % 2 == 0:
            continue
        acc += i
    ltl.store(out, acc)


@pytest.mark.parametrize(("n", "limit"), [(10, 6), (4, 6), (0, 0), (7, 0)])
def test_break_from_a_runtime_loop(n: int, limit: int) -> None:
    assert result(odd_sum_to, 1, np.int32, n, limit)[0] == sum(i for i in range(min(n, limit)) if i % 2)


@ltl.jit
def leave_falling(out, n):
    for k in range(10, 0, -2):
        if k < n:
            break
        ltl.store(out, k)


def test_break_from_a_falling_loop() -> None:
    assert result(leave_falling, 1, np.int32, 5)[0] == 6


@ltl.jit
def length(out, p):
    n = 0
    while (x := ltl.load(p + n)) > 0:
        n += 1
    ltl.store(out, n)
    ltl.store(out + 1, x)


def test_assignment_in_a_condition() -> None:
    assert result(length, 2, np.int32, np.array([3, 2, 1, -4, 5], np.int32)).tolist() == [3, -4]


@ltl.jit
def nested_whiles(out, n, limit):
    i = 0
    acc = 0
    while i < n:
        j = 0
        while j < i:
            if acc > limit:
                break
            acc += j
            j += 1
        i += 1
    ltl.store(out, acc)
    ltl.store(out + 1, i)


def test_break_leaves_the_inner_loop_only() -> None:
    acc = 0
    for i in range(6):
        for j in range(i):
            if acc > 7:
                break
            acc += j
    assert result(nested_whiles, 2, np.int32, 6, 7).tolist() == [acc, 6]


@ltl.jit
def condition_is_not_evaluated_after_a_break(out, p, n):
    i = 0
    while ltl.load(p + i) > 0:
        i += 1
        if i == n:
            break
    ltl.store(out, i)


def test_the_condition_is_not_evaluated_after_a_break() -> None:
    """Reading p[n] would be out of bounds."""
    assert result(condition_is_not_evaluated_after_a_break, 1, np.int32, np.ones(4, np.int32), 4)[0] == 4


@ltl.jit
def first_iterations_static(out, n):
    i = 0
    going = True
    while going:
        i += 1
        going = i < n
    ltl.store(out, i)


def test_a_condition_that_becomes_a_runtime_value() -> None:
    assert result(first_iterations_static, 1, np.int32, 4)[0] == 4
    assert result(first_iterations_static, 1, np.int32, 0)[0] == 1
