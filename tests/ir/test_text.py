"""The text form of Tile IR: what is printed is read back, and what cannot be read is said with line and column."""

from __future__ import annotations

import math
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

import loom_core.ops  # noqa: F401 - registers the operations
from loom_core.base import dtype as core
from loom_core.base.diagnostics import LoomError
from loom_core.base.location import Location
from loom_core.ir.block import Block, Function
from loom_core.ir.builder import Builder
from loom_core.ir.parser import parse_function, parse_functions
from loom_core.ir.printer import print_float, print_function, print_op, print_value, same_value
from loom_core.ir.types import PointerType, TileType
from loom_core.ops.control import For, If, ProgramId, Return, Yield
from loom_core.ops.elementwise import Add, Compare
from loom_core.ops.memory import Load, Store
from loom_core.ops.shape import Constant

TEXT = """\
func @k(%x: ptr<f32>, %n: i32) {
  %0 = program_id {axis = 0} : i32
  %1 = constant {value = 0.0} : f32
  %mask = cmp %0, %n {predicate = "lt"} : bool
  %sum = for %0, %n, %0, %1 : f32 {
  ^(%i: i32, %sum_1: f32):
    %2 = add %sum_1, %1 : f32
    yield %2
  }
  %3 = if %mask : f32 {
    yield %sum
  } {
    yield %1
  }
  %4 = load %x, mask = %mask, other = %3 : f32
  store %x, %4, mask = %mask
  return
}
"""


def build() -> Function:
    """The function of TEXT, made by the builder."""
    function = Function("k", (TileType(PointerType(core.f32)), TileType(core.i32)), ("x", "n"))
    x, n = function.arguments
    b = Builder(function.body)
    index = b.create(ProgramId, axis=0)
    zero = b.create(Constant, value=0.0, type=TileType(core.f32))
    mask = b.create(Compare, index, n, predicate="lt")
    mask.name = "mask"
    body = Block((TileType(core.i32), TileType(core.f32)), ("i", "sum"))
    with b.at(body):
        b.create(Yield, [b.create(Add, body.arguments[1], zero)])
    total = b.create(For, index, n, index, [zero], regions=[body])
    total.name = "sum"
    on_true, on_false = Block(), Block()
    with b.at(on_true):
        b.create(Yield, [total])
    with b.at(on_false):
        b.create(Yield, [zero])
    chosen = b.create(If, mask, types=(TileType(core.f32),), regions=[on_true, on_false])
    b.create(Store, x, b.create(Load, x, mask, chosen), mask)
    b.create(Return)
    return function


def test_prints_every_part_of_a_function() -> None:
    assert print_function(build()) == TEXT


def test_reads_what_it_prints() -> None:
    function = parse_function(TEXT)
    assert print_function(function) == TEXT
    assert [value.name for value in function.arguments] == ["x", "n"]
    loop = next(op for op in function.walk() if isinstance(op, For))
    assert loop.result.name == "sum"
    assert [value.name for value in loop.regions[0].arguments] == ["i", "sum_1"]


def test_reads_several_functions_and_comments() -> None:
    functions = parse_functions("// two\nfunc @a() {\n  return // done\n}\nfunc @b() { return }")
    assert [function.name for function in functions] == ["a", "b"]


def test_operations_without_results_end_at_the_line() -> None:
    text = "func @k() {\n  %0 = program_id {axis = 0} : i32\n  %1 = add %0, %0 : i32\n  return\n}\n"
    assert print_function(parse_function(text)) == text


def test_locations_and_their_chains_survive() -> None:
    caller = Location("a b.py", 7, 4, 9, "kernel")
    function = build()
    function.location = caller
    for op in function.walk():
        op.location = Location("h.py", 3, 1, 8, 'f"', caller)
    text = print_function(function, locations=True)
    assert 'loc("h.py":3:1:8 "f\\"" from "a b.py":7:4:9 "kernel")' in text
    read = parse_function(text)
    assert {op.location for op in read.walk()} == {Location("h.py", 3, 1, 8, 'f"', caller)}
    assert print_function(read, locations=True) == text


def test_without_locations_operations_are_located_in_the_text() -> None:
    op = parse_function(TEXT, "kernel.loom").body.operations[1]
    assert (op.location.file, op.location.line, op.location.column) == ("kernel.loom", 3, 7)


@given(st.integers(0, 2**64 - 1))
def test_floats_are_exact(bits: int) -> None:
    (value,) = struct.unpack("<d", struct.pack("<Q", bits))
    text = f"func @k() {{\n  %0 = constant {{value = {print_float(value)}}} : f64\n  return\n}}\n"
    (read,) = (op.value for op in parse_function(text).walk() if isinstance(op, Constant))
    assert struct.pack("<d", read) == struct.pack("<Q", bits)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1, "1"), (-3, "-3"), (True, "true"), (1.0, "1.0"), (-0.0, "-0.0"), (math.inf, "inf"), (-math.inf, "-inf"),
        (math.nan, "nan"), (None, "none"), ('a"b', '"a\\"b"'), (core.bf16, "bf16"), ((1, 2), "[1, 2]"), ((), "[]"),
        (TileType(core.f32, (2, 3)), "tile<2x3xf32>"), (TileType(core.f32), "tile<f32>"),
        (PointerType(core.i8), "ptr<i8>"), (TileType(PointerType(core.i8), (4,)), "tile<4xptr<i8>>"),
    ],
)  # fmt: skip
def test_attribute_values(value: object, text: str) -> None:
    assert print_value(value) == text
    # `shape` of a splat takes any value that the text form has.
    source = f"func @k(%x: f32) {{\n  %0 = constant {{value = {text}}} : f32\n  return\n}}\n"
    (read,) = (op.value for op in parse_function(source).walk() if isinstance(op, Constant))
    assert same_value(read, value) or (isinstance(value, float) and math.isnan(value) and math.isnan(read))


def test_values_without_text_form_are_refused() -> None:
    with pytest.raises(TypeError, match="list"):
        print_value([1])


def test_same_value_tells_types_and_bits_apart() -> None:
    assert not same_value(1, True)
    assert not same_value(1, 1.0)
    assert not same_value(0.0, -0.0)
    assert not same_value((0.0,), (-0.0,))
    assert same_value((1, "a"), (1, "a"))


def test_names_stay_unique() -> None:
    function = Function("k", (TileType(core.i32),) * 3, ("a", "a", "a_1"))
    text = print_function(function)
    assert text.startswith("func @k(%a: i32, %a_1: i32, %a_1_1: i32)")
    assert print_function(parse_function(text)) == text


def test_one_operation_prints_alone() -> None:
    loop = next(op for op in build().walk() if isinstance(op, For))
    assert print_op(loop).startswith("%sum = for %0, %n, %0, %1 : f32 {")


BAD = [
    ("func k() { return }", "LOOM-I001", 1, 6),
    ("func @k() {\n  return\n", "LOOM-I001", 3, 1),
    ("func @k() {\n  %0 = fly : i32\n}", "LOOM-I002", 2, 8),
    ("func @k() {\n  %0 = neg %1 : i32\n}", "LOOM-I003", 2, 12),
    ("func @k(%a: i32) {\n  %a = neg %a : i32\n}", "LOOM-I004", 2, 3),
    ("func @k(%a: i32) {\n  %0 = neg %a, %a : i32\n}", "LOOM-I005", 2, 8),
    ("func @k(%a: i32) {\n  %0 = add %a : i32\n}", "LOOM-I005", 2, 8),
    ("func @k(%a: i32) {\n  %0 = neg %a : f32\n}", "LOOM-I005", 2, 8),
    ("func @k(%a: i32) {\n  %0 = neg %a {axis = 1} : i32\n}", "LOOM-I005", 2, 16),
    ("func @k() {\n  %0 = program_id : i32\n}", "LOOM-I005", 2, 8),
    ("func @k(%a: i32) {\n  %0, %1 = neg %a : i32, i32\n}", "LOOM-I005", 2, 12),
    ("func @k(%a: i32) {\n  %0 = dot %a, %a {dtype = f32} : f32\n}", "LOOM-I005", 2, 8),
    ("func @k(%a: i33) {\n  return\n}", "LOOM-I001", 1, 13),
    ("func @k(%a: i32) {\n  %0 = neg %a : tile<4xi32\n}", "LOOM-I001", 3, 1),
    ("func @k() {\n  ?\n}", "LOOM-I001", 2, 3),
    ("", "LOOM-I001", 1, 1),
]


@pytest.mark.parametrize(("text", "code", "line", "column"), BAD, ids=range(len(BAD)))
def test_errors_have_a_code_and_a_place(text: str, code: str, line: int, column: int) -> None:
    with pytest.raises(LoomError) as caught:
        parse_function(text)
    (diagnostic,) = caught.value.diagnostics
    assert (diagnostic.code, diagnostic.location.line, diagnostic.location.column + 1) == (code, line, column)


def test_errors_show_the_line() -> None:
    with pytest.raises(LoomError) as caught:
        parse_function("func @k() {\n  %0 = fly : i32\n}")
    assert "    2 |   %0 = fly : i32\n      |        ^^^\n" in str(caught.value)


def test_values_of_a_region_end_with_it() -> None:
    text = TEXT.replace("%4 = load %x, mask = %mask, other = %3", "%4 = load %x, mask = %mask, other = %2")
    with pytest.raises(LoomError) as caught:
        parse_function(text)
    assert caught.value.diagnostics[0].code == "LOOM-I003"
