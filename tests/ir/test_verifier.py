"""Every rule of the verifier, broken once."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from loom_core.base import dtype as core
from loom_core.base.location import Location
from loom_core.ir.block import Block, Function
from loom_core.ir.parser import parse_function
from loom_core.ir.types import TileType
from loom_core.ir.value import Value
from loom_core.ir.verifier import VerificationError, check_function, verify_function
from loom_core.ops.control import For, Return, Yield
from loom_core.ops.elementwise import Add, Negate

TEXT = """\
func @k(%n: i32, %x: f32) {
  %0 = neg %n : i32
  %1 = add %0, %n : i32
  %2 = for %n, %0, %1, %x : f32 {
  ^(%i: i32, %y: f32):
    %3 = add %y, %x : f32
    yield %3
  }
  return
}
"""


@pytest.fixture
def function() -> Function:
    return parse_function(TEXT)


def test_a_sound_function_passes(function: Function) -> None:
    assert check_function(function) == []
    verify_function(function)


def use_before_definition(function: Function) -> None:
    first, second = function.body.operations[:2]
    function.body.operations[:2] = [second, first]


def use_out_of_a_region(function: Function) -> None:
    loop = function.body.operations[2]
    inner = loop.regions[0].operations[0].result
    function.body.operations[1].set_operand(1, loop.regions[0].arguments[0])
    assert inner.users


def forgotten_use(function: Function) -> None:
    function.arguments[0].users.pop()


def invented_use(function: Function) -> None:
    function.arguments[1].users.append(function.body.operations[0])


def no_return(function: Function) -> None:
    function.body.operations.pop()


def code_after_return(function: Function) -> None:
    function.body.operations.append(function.body.operations.pop(0))


def ends_in_yield(function: Function) -> None:
    function.body.operations.pop()
    function.body.append(Yield([[]]))


def return_in_a_region(function: Function) -> None:
    region = function.body.operations[2].regions[0]
    region.operations.pop().drop_operands()
    region.append(Return([]))


def wrong_parent(function: Function) -> None:
    function.body.operations[0].parent = Block()


def region_without_operation(function: Function) -> None:
    function.body.operations[2].regions[0].parent = None


def missing_region(function: Function) -> None:
    loop = function.body.operations[2]
    region = loop.regions.pop()
    for op in region.operations:
        op.drop_operands()


def listed_twice(function: Function) -> None:
    function.body.operations.insert(1, function.body.operations[0])


def wrong_result_type(function: Function) -> None:
    function.body.operations[0].results[0].type = TileType(core.i64)


def wrong_index(function: Function) -> None:
    function.body.operations[0].results[0].index = 5


def operands_differ(function: Function) -> None:
    function.body.operations[1].set_operand(1, function.arguments[1])


def yields_wrong_type(function: Function) -> None:
    loop = function.body.operations[2]
    loop.regions[0].operations[-1].set_operand(0, loop.regions[0].arguments[0])


def missing_attribute(function: Function) -> None:
    function.body.operations[0].attributes["axis"] = 0


def broken_segments(function: Function) -> None:
    function.body.operations[1].segments = [0, 2, 2]


def unregistered(function: Function) -> None:
    # Nobody registers a class without a name of its own.
    kind = type("Copy", (Negate,), {})
    function.body.operations[0].__class__ = kind


def infer_fails(function: Function) -> None:
    function.body.operations[0].operands = []
    function.body.operations[0].segments = [0, 0]
    function.arguments[0].users.pop(0)


BROKEN: list[tuple[Callable[[Function], None], str]] = [
    (use_before_definition, "LOOM-I103"),
    (use_out_of_a_region, "LOOM-I103"),
    (forgotten_use, "LOOM-I104"),
    (invented_use, "LOOM-I104"),
    (no_return, "LOOM-I102"),
    (code_after_return, "LOOM-I102"),
    (ends_in_yield, "LOOM-I102"),
    (return_in_a_region, "LOOM-I101"),
    (wrong_parent, "LOOM-I102"),
    (region_without_operation, "LOOM-I102"),
    (missing_region, "LOOM-I101"),
    (listed_twice, "LOOM-I102"),
    (wrong_result_type, "LOOM-I105"),
    (wrong_index, "LOOM-I102"),
    (operands_differ, "LOOM-I101"),
    (yields_wrong_type, "LOOM-I101"),
    (missing_attribute, "LOOM-I101"),
    (broken_segments, "LOOM-I101"),
    (unregistered, "LOOM-I101"),
    (infer_fails, "LOOM-I101"),
]


@pytest.mark.parametrize(("damage", "code"), BROKEN, ids=lambda case: getattr(case, "__name__", case))
def test_each_rule_is_checked(function: Function, damage: Callable[[Function], None], code: str) -> None:
    damage(function)
    with pytest.raises(VerificationError) as caught:
        verify_function(function)
    assert code in [diagnostic.code for diagnostic in caught.value.diagnostics]


def test_findings_carry_the_location_of_their_operation(function: Function) -> None:
    function.body.operations[1].location = Location("k.py", 12, 4, 9, "k")
    operands_differ(function)
    found = [d for d in check_function(function) if d.code == "LOOM-I101"]
    assert [d.location for d in found] == [Location("k.py", 12, 4, 9, "k")]
    assert "operands differ" in found[0].message


def test_all_findings_are_given(function: Function) -> None:
    operands_differ(function)
    yields_wrong_type(function)
    assert len(check_function(function)) >= 2


def test_a_value_from_another_function_is_out_of_scope(function: Function) -> None:
    stranger = Value(TileType(core.i32), Block((TileType(core.i32),)), 0)
    function.body.operations[1].set_operand(0, stranger)
    assert "LOOM-I103" in [d.code for d in check_function(function)]


def test_the_operations_used_here_exist() -> None:
    assert {For.name, Add.name, Return.name} == {"for", "add", "return"}
