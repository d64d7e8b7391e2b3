"""Rewrite rules, erasing and cloning."""

from __future__ import annotations

import pytest

from loom_core.base.diagnostics import InternalError
from loom_core.ir.op import Op
from loom_core.ir.parser import parse_function
from loom_core.ir.printer import print_function
from loom_core.ir.rewriter import Rewriter, apply_rules, clone_function, erase_dead, rule
from loom_core.ir.verifier import verify_function
from loom_core.ops.elementwise import Add, Mul, Negate, Sub
from loom_core.ops.memory import Store
from loom_core.ops.shape import Constant

TEXT = """\
func @k(%p: ptr<i32>, %n: i32) {
  %zero = constant {value = 0} : i32
  %0 = add %n, %zero : i32
  %1 = neg %0 : i32
  %2 = neg %1 : i32
  %3 = for %n, %2, %0, %2 : i32 {
  ^(%i: i32, %x: i32):
    %4 = add %x, %zero : i32
    %5 = mul %4, %4 : i32
    yield %4
  }
  store %p, %3
  return
}
"""


@rule(Add)
def add_zero(op: Op, rewriter: Rewriter) -> bool:
    """x + 0 -> x"""
    made = op.rhs.defining_op
    if not isinstance(made, Constant) or made.value != 0:
        return False
    rewriter.replace(op, op.lhs)
    return True


@rule(Negate)
def double_negation(op: Op, rewriter: Rewriter) -> bool:
    """-(-x) -> x"""
    inner = op.operand.defining_op
    if not isinstance(inner, Negate):
        return False
    rewriter.replace(op, inner.operand)
    return True


def test_rules_apply_until_nothing_changes() -> None:
    function = parse_function(TEXT)
    log: list[str] = []
    assert apply_rules(function, [add_zero, double_negation], lambda name, op: log.append(name)) == 3
    verify_function(function)
    assert sorted(log) == ["add_zero", "add_zero", "double_negation"]
    assert print_function(function) == (
        "func @k(%p: ptr<i32>, %n: i32) {\n"
        "  %0 = for %n, %n, %n, %n : i32 {\n"
        "  ^(%i: i32, %x: i32):\n"
        "    yield %x\n"
        "  }\n"
        "  store %p, %0\n"
        "  return\n"
        "}\n"
    )


def test_erase_dead_keeps_effects() -> None:
    function = parse_function("func @k(%p: ptr<i32>, %n: i32) {\n %0 = neg %n : i32\n %1 = neg %0 : i32\n"
                              " store %p, %n\n return\n}")  # fmt: skip
    assert erase_dead(function) == 2
    assert [op.name for op in function.walk()] == ["store", "return"]
    verify_function(function)


def test_create_inserts_before_the_anchor_with_its_location() -> None:
    @rule(Sub)
    def subtract_by_negating(op: Op, rewriter: Rewriter) -> bool:
        negated = rewriter.create(op, Negate, op.rhs)
        rewriter.replace(op, rewriter.create(op, Add, op.lhs, negated))
        return True

    function = parse_function("func @k(%p: ptr<i32>, %n: i32) {\n %d = sub %n, %n : i32\n store %p, %d\n return\n}")
    location = function.body.operations[0].location
    assert apply_rules(function, [subtract_by_negating]) == 1
    verify_function(function)
    assert [op.name for op in function.walk()] == ["neg", "add", "store", "return"]
    assert function.body.operations[1].location == location
    assert function.body.operations[1].result.name == "d"


def test_set_operand_lets_the_old_definition_die() -> None:
    @rule(Store)
    def store_n(op: Op, rewriter: Rewriter) -> bool:
        value = function.arguments[1]
        if op.value is value:
            return False
        rewriter.set_operand(op, 1, value)
        return True

    function = parse_function("func @k(%p: ptr<i32>, %n: i32) {\n %0 = neg %n : i32\n store %p, %0\n return\n}")
    apply_rules(function, [store_n])
    verify_function(function)
    assert [op.name for op in function.walk()] == ["store", "return"]


def test_rules_that_do_not_settle_are_an_internal_error() -> None:
    @rule(Mul)
    def swap(op: Op, rewriter: Rewriter) -> bool:
        left, right = op.operands
        op.set_operand(0, right)
        op.set_operand(1, left)
        return True

    function = parse_function("func @k(%p: ptr<i32>, %n: i32) {\n %0 = mul %n, %n : i32\n store %p, %0\n return\n}")
    with pytest.raises(InternalError, match="swap"):
        apply_rules(function, [swap])


def test_a_replacement_has_as_many_values_as_results() -> None:
    function = parse_function(TEXT)
    with pytest.raises(ValueError, match="1 results, 2 values"):
        Rewriter().replace(function.body.operations[1], *function.arguments)


def test_clones_are_independent() -> None:
    function = parse_function(TEXT)
    copy = clone_function(function)
    verify_function(copy)
    assert print_function(copy, locations=True) == print_function(function, locations=True)
    apply_rules(copy, [add_zero, double_negation])
    assert print_function(function) == TEXT
    verify_function(function)
