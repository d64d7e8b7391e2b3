"""Affine addresses and masks as offsets, strides and bounds; everything the forms and regions know."""

from __future__ import annotations

import pytest

from loom_core.base.location import Location
from loom_core.ir.block import Function
from loom_core.ops import memory
from loom_core.passes.forms import NotAffine
from loom_core.passes.lower_addresses import lower_addresses
from loom_core.passes.simplify import simplify
from loom_core.passes.split_pointers import split_pointers
from tests.passes.rewriting import body_of, parsed, rewritten, text


def lowered(body: str) -> str:
    """After the pass and a clean-up of what it leaves."""
    return rewritten(lambda function: simplify(lower_addresses(function)), body)


def check(before: str, after: str) -> None:
    assert lowered(before) == text(after)


PRELUDE = """
%lane = iota {start = 0, end = 8} : tile<8xi32>
%ns = splat %n {shape = [8]} : tile<8xi32>
%ms = splat %m {shape = [8]} : tile<8xi32>
%xs = splat %x {shape = [8]} : tile<8xptr<f32>>
%three = constant {value = 3} : tile<8xi32>
%five = constant {value = 5} : tile<8xi32>
"""


def accesses(function: Function) -> list[memory.StridedAccess]:
    return [op for op in function.walk() if isinstance(op, memory.StridedAccess)]


def described(body: str) -> str:
    """One line for the only access of the 1-D `PRELUDE` kernel: offset and dimensions as expressions."""
    function = simplify(lower_addresses(parsed(PRELUDE + body)))
    (access,) = accesses(function)
    stride, lo, hi = (_expression(value) for value in access.dimensions[0])
    return f"offset {_expression(access.offset)}, stride {stride}, {lo} to {hi}"  # type: ignore[attr-defined]


_SIGNS = {"add": "+", "sub": "-", "mul": "*", "floordiv": "//"}


def _expression(value: object) -> str:
    """A scalar as text; casts to i64 are left out."""
    op = value.defining_op  # type: ignore[attr-defined]
    if op is None:
        return str(value.name)  # type: ignore[attr-defined]
    if op.name == "constant":
        return str(op.value)
    operands = [_expression(operand) for operand in op.operands]
    if op.name == "cast":
        return operands[0]
    if op.name in _SIGNS:
        return f"({operands[0]} {_SIGNS[op.name]} {operands[1]})"
    name = op.attributes.get("predicate", op.name)
    return f"{name}({', '.join(operands)})"


# ---- offsets and strides ----


@pytest.mark.parametrize(
    ("offset", "expected"),
    [
        ("%lane", "offset 0, stride 4, 0 to 8"),
        ("add %lane, %ns", "offset (n * 4), stride 4, 0 to 8"),
        ("sub %lane, %ns", "offset (n * -4), stride 4, 0 to 8"),
        ("sub %ns, %lane", "offset (n * 4), stride -4, 0 to 8"),
        ("mul %lane, %three", "offset 0, stride 12, 0 to 8"),
        ("mul %ns, %lane", "offset 0, stride (n * 4), 0 to 8"),
        ("shl %lane, %three", "offset 0, stride 32, 0 to 8"),
        ("neg %lane", "offset 0, stride -4, 0 to 8"),
        ("%ns", "offset (n * 4), stride 0, 0 to 8"),
        ("mul %ns, %ms", "offset ((n * m) * 4), stride 0, 0 to 8"),
        ("%three", "offset 12, stride 0, 0 to 8"),
    ],
)
def test_affine_offsets(offset: str, expected: str) -> None:
    steps = "" if offset.startswith("%") else f"%o = {offset} : tile<8xi32>\n"
    name = offset if offset.startswith("%") else "%o"
    assert described(f"{steps}%p = addptr %xs, {name} : tile<8xptr<f32>>\n%v = load %p : tile<8xf32>\n") == expected


def test_offsets_of_several_terms_come_in_order_of_definition() -> None:
    """So that a sum of loop invariants can leave the loop."""
    body = """
    %a = mul %lane, %ms : tile<8xi32>
    %c = add %a, %ns : tile<8xi32>
    %d = add %c, %five : tile<8xi32>
    %p = addptr %xs, %d : tile<8xptr<f32>>
    %v = load %p : tile<8xf32>
    """
    assert described(body) == "offset ((n * 4) + 20), stride (m * 4), 0 to 8"


def test_scalar_arithmetic_stays_as_it_was_written() -> None:
    """It wraps in its own type; only then it becomes part of an address."""
    body = """
    %k = mul %n, %m : i32
    %q = addptr %x, %k : ptr<f32>
    %qs = splat %q {shape = [8]} : tile<8xptr<f32>>
    %p = addptr %qs, %lane : tile<8xptr<f32>>
    %v = load %p : tile<8xf32>
    """
    assert described(body) == "offset ((n * m) * 4), stride 4, 0 to 8"
    assert "mul %n, %m : i32" in lowered(PRELUDE + body)


def test_an_offset_widened_to_64_bits() -> None:
    body = """
    %a = add %lane, %ns : tile<8xi32>
    %w = cast %a {dtype = i64} : tile<8xi64>
    %p = addptr %xs, %w : tile<8xptr<f32>>
    %v = load %p : tile<8xf32>
    """
    assert described(body) == "offset (n * 4), stride 4, 0 to 8"


def test_a_store() -> None:
    body = "%p = addptr %xs, %lane : tile<8xptr<f32>>\n%v = splat %s {shape = [8]} : tile<8xf32>\nstore %p, %v\n"
    assert described(body) == "offset 0, stride 4, 0 to 8"


def test_rows_and_columns() -> None:
    check(
        """
        %r = iota {start = 0, end = 4} : tile<4xi32>
        %rs = splat %n {shape = [4]} : tile<4xi32>
        %ro = mul %r, %rs : tile<4xi32>
        %re = expand_dims %ro {axis = 1} : tile<4x1xi32>
        %rb = broadcast %re {shape = [4, 8]} : tile<4x8xi32>
        %c = iota {start = 2, end = 10} : tile<8xi32>
        %ce = expand_dims %c {axis = 0} : tile<1x8xi32>
        %cb = broadcast %ce {shape = [4, 8]} : tile<4x8xi32>
        %o = add %rb, %cb : tile<4x8xi32>
        %xs = splat %x {shape = [4, 8]} : tile<4x8xptr<f32>>
        %p = addptr %xs, %o : tile<4x8xptr<f32>>
        %t = transpose %p {permutation = [1, 0]} : tile<8x4xptr<f32>>
        %v = load %t : tile<8x4xf32>
        """,
        """
        %0 = constant {value = 8} : i64
        %1 = constant {value = 0} : i64
        %2 = constant {value = 4} : i64
        %3 = cast %n {dtype = i64} : i64
        %4 = mul %3, %2 : i64
        %v = dma_load %x, %0, %2, %1, %0, %4, %1, %2 {tile_shape = [8, 4]} : tile<8x4xf32>
        """,
    )


def test_dimensions_of_one_element() -> None:
    """They have no stride, so a mask along them is a condition and they may be repeated."""
    check(
        """
        %r = iota {start = 0, end = 1} : tile<1xi32>
        %ns = splat %n {shape = [1]} : tile<1xi32>
        %k = cmp %r, %ns {predicate = "lt"} : tile<1xbool>
        %ke = expand_dims %k {axis = 1} : tile<1x1xbool>
        %kb = broadcast %ke {shape = [1, 8]} : tile<1x8xbool>
        %c = iota {start = 0, end = 8} : tile<8xi32>
        %ce = reshape %c {shape = [1, 8]} : tile<1x8xi32>
        %xs = splat %x {shape = [1, 8]} : tile<1x8xptr<f32>>
        %p = addptr %xs, %ce : tile<1x8xptr<f32>>
        %v = load %p, mask = %kb : tile<1x8xf32>
        """,
        """
        %0 = constant {value = 0} : i64
        %1 = constant {value = 1} : i64
        %2 = cast %n {dtype = i64} : i64
        %3 = cmp %0, %2 {predicate = "lt"} : bool
        %4 = select %3, %1, %0 : i64
        %5 = constant {value = 8} : i64
        %6 = constant {value = 4} : i64
        %v = dma_load %x, %0, %0, %0, %4, %6, %0, %5 {tile_shape = [1, 8]} : tile<1x8xf32>
        """,
    )


def test_scalar_accesses() -> None:
    check(
        """
        %p = addptr %i, %n : ptr<i32>
        %v = load %p, mask = %b : i32
        %q = addptr %i, %v : ptr<i32>
        store %q, %v
        """,
        """
        %0 = cast %n {dtype = i64} : i64
        %1 = constant {value = 4} : i64
        %2 = mul %0, %1 : i64
        %3 = constant {value = 0} : i64
        %4 = constant {value = 1} : i64
        %5 = select %b, %4, %3 : i64
        %v = dma_load %i, %2, %3, %3, %5 {tile_shape = []} : i32
        %6 = cast %v {dtype = i64} : i64
        %7 = mul %6, %1 : i64
        dma_store %i, %7, %v, %3, %3, %4
        """,
    )


# ---- masks ----


def masked(steps: str) -> str:
    """lo and hi of a load under the mask %k."""
    found = described(f"{steps}%p = addptr %xs, %lane : tile<8xptr<f32>>\n%v = load %p, mask = %k : tile<8xf32>\n")
    return found.removeprefix("offset 0, stride 4, ")


@pytest.mark.parametrize(
    ("lhs", "predicate", "rhs", "bounds"),
    [
        ("%lane", "lt", "%ns", "0 to n"),
        ("%lane", "le", "%ns", "0 to (n + 1)"),
        ("%lane", "gt", "%ns", "(n + 1) to 8"),
        ("%lane", "ge", "%ns", "n to 8"),
        ("%lane", "eq", "%ns", "n to (n + 1)"),
        ("%ns", "lt", "%lane", "(n + 1) to 8"),
        ("%ns", "ge", "%lane", "0 to (n + 1)"),
        ("%three", "le", "%lane", "3 to 8"),
        ("%lane", "eq", "%five", "5 to 6"),
        # Strides: i < ceil(p / d) and i > floor(p / d).
        ("%triple", "lt", "%ns", "0 to (((n + -1) // 3) + 1)"),
        ("%triple", "le", "%ns", "0 to ((n // 3) + 1)"),
        ("%triple", "gt", "%ns", "((n // 3) + 1) to 8"),
        ("%triple", "ge", "%ns", "(((n + -1) // 3) + 1) to 8"),
        ("%triple", "eq", "%ns", "(((n + -1) // 3) + 1) to ((n // 3) + 1)"),
        ("%minus", "lt", "%ns", "((n * -1) + 1) to 8"),
        ("%minus", "ge", "%ns", "0 to ((n * -1) + 1)"),
        # A sum on the left, an index on both sides.
        ("%moved", "lt", "%ms", "0 to ((n * -1) + m)"),
        ("%triple", "lt", "%moved", "0 to (((n + -1) // 2) + 1)"),
    ],
)
def test_comparisons(lhs: str, predicate: str, rhs: str, bounds: str) -> None:
    steps = f"""
    %triple = mul %lane, %three : tile<8xi32>
    %minus = neg %lane : tile<8xi32>
    %moved = add %lane, %ns : tile<8xi32>
    %k = cmp {lhs}, {rhs} {{predicate = "{predicate}"}} : tile<8xbool>
    """
    assert masked(steps) == bounds


@pytest.mark.parametrize("n", range(-10, 26))
@pytest.mark.parametrize("stride", [-3, -1, 1, 2, 3])
def test_bounds_hold_exactly_where_the_comparison_does(stride: int, n: int) -> None:
    for predicate, holds in {
        "lt": lambda i: stride * i < n,
        "le": lambda i: stride * i <= n,
        "gt": lambda i: stride * i > n,
        "ge": lambda i: stride * i >= n,
        "eq": lambda i: stride * i == n,
    }.items():
        body = f"""
        %by = constant {{value = {stride}}} : tile<8xi32>
        %limit = constant {{value = {n}}} : tile<8xi32>
        %o = mul %lane, %by : tile<8xi32>
        %k = cmp %o, %limit {{predicate = "{predicate}"}} : tile<8xbool>
        """
        lo, hi = (int(bound) for bound in masked(body).split(" to "))
        assert [i for i in range(8) if holds(i)] == list(range(max(lo, 0), min(hi, 8))), predicate


def test_two_sides() -> None:
    steps = """
    %j = cmp %lane, %ns {predicate = "lt"} : tile<8xbool>
    %l = cmp %lane, %three {predicate = "ge"} : tile<8xbool>
    %h = cmp %lane, %ms {predicate = "le"} : tile<8xbool>
    %a = and %j, %l : tile<8xbool>
    %k = and %a, %h : tile<8xbool>
    """
    assert masked(steps) == "3 to min(n, (m + 1))"


def test_scalar_conditions() -> None:
    steps = """
    %c = splat %b {shape = [8]} : tile<8xbool>
    %j = cmp %lane, %ns {predicate = "lt"} : tile<8xbool>
    %l = cmp %ns, %ms {predicate = "lt"} : tile<8xbool>
    %a = and %c, %j : tile<8xbool>
    %k = and %a, %l : tile<8xbool>
    """
    assert masked(steps) == "0 to select(lt(n, m), select(b, n, 0), 0)"


def test_constant_masks() -> None:
    assert masked("%k = constant {value = true} : tile<8xbool>\n") == "0 to 8"
    assert masked("%k = constant {value = false} : tile<8xbool>\n") == "0 to 0"


def test_a_mask_under_views() -> None:
    body = """
    %ns = splat %n {shape = [8]} : tile<8xi32>
    %c = iota {start = 0, end = 8} : tile<8xi32>
    %k = cmp %c, %ns {predicate = "lt"} : tile<8xbool>
    %ke = expand_dims %k {axis = 0} : tile<1x8xbool>
    %kb = broadcast %ke {shape = [4, 8]} : tile<4x8xbool>
    %kt = transpose %kb {permutation = [1, 0]} : tile<8x4xbool>
    %kr = reshape %kt {shape = [8, 1, 4]} : tile<8x1x4xbool>
    %xs = splat %x {shape = [8, 1, 4]} : tile<8x1x4xptr<f32>>
    %v = load %xs, mask = %kr : tile<8x1x4xf32>
    """
    (load,) = accesses(simplify(lower_addresses(parsed(body))))
    assert [[_expression(v) for v in dimension[1:]] for dimension in load.dimensions] == [
        ["0", "n"],
        ["0", "1"],
        ["0", "4"],
    ]


# ---- fill ----


@pytest.mark.parametrize(
    ("other", "fill"),
    [
        ("%o = constant {value = 2.0} : tile<8xf32>", "2.0"),
        ("%o = splat %s {shape = [8]} : tile<8xf32>", "s"),
    ],
)
def test_one_value_outside_the_mask_is_the_fill(other: str, fill: str) -> None:
    load = '%k = cmp %lane, %ns {predicate = "lt"} : tile<8xbool>\n%v = load %xs, mask = %k, other = %o : tile<8xf32>\n'
    function = simplify(lower_addresses(parsed(f"{PRELUDE}{other}\n{load}")))
    (access,) = accesses(function)
    assert _expression(access.fill) == fill  # type: ignore[attr-defined]


def test_other_values_are_selected() -> None:
    body = """
    %o = load %xs : tile<8xf32>
    %k = cmp %lane, %ns {predicate = "lt"} : tile<8xbool>
    %v = load %xs, mask = %k, other = %o : tile<8xf32>
    store %xs, %v
    """
    found = lowered(PRELUDE + body)
    assert "= select " in found and "cmp" in found and "fill" not in found


# ---- index tiles as data ----


def data(steps: str, value: str) -> str:
    """How `value` is made where it is stored."""
    cast = f"%r = cast {value} {{dtype = i32}} : tile<8xi32>\n"
    store = "%t = splat %i {shape = [8]} : tile<8xptr<i32>>\nstore %t, %r\n"
    lines = lowered(PRELUDE + steps + cast + store).splitlines()
    return "\n".join(line for line in lines if "tile<8x" in line and "dma_store" not in line)


def operations(lines: str) -> list[str]:
    return [line.split(" = ")[1].split()[0] for line in lines.splitlines()]


def test_an_affine_tile_is_one_operation() -> None:
    assert operations(data("%d = add %lane, %ns : tile<8xi32>\n", "%d")) == ["affine"]


def test_the_same_value_everywhere_is_a_splat_or_a_constant() -> None:
    assert data("", "%ns").endswith(" = splat %n {shape = [8]} : tile<8xi32>")
    assert operations(data("%d = add %ns, %ns : tile<8xi32>\n", "%d")) == ["splat"]
    assert data("%d = mul %three, %five : tile<8xi32>\n", "%d").endswith(" = constant {value = 15} : tile<8xi32>")


def test_what_was_widened_is_computed_as_written() -> None:
    """The i32 sum may wrap before it is widened; as an address it is taken to be exact, as data it is not."""
    steps = (
        "%d = add %lane, %ns : tile<8xi32>\n%w = cast %d {dtype = i64} : tile<8xi64>\n%e = add %w, %w : tile<8xi64>\n"
    )
    assert operations(data(steps, "%e")) == ["affine", "cast", "add", "cast"]


def test_what_cannot_wrap_may_be_widened() -> None:
    steps = "%w = cast %lane {dtype = i64} : tile<8xi64>\n%e = add %w, %w : tile<8xi64>\n"
    assert operations(data(steps, "%e")) == ["affine", "cast"]


def test_narrow_types_wrap_at_once() -> None:
    steps = "%c = constant {value = 100} : tile<8xi8>\n%d = add %c, %c : tile<8xi8>\n"
    assert data(steps, "%d").endswith(" = constant {value = -56} : tile<8xi32>")


# ---- loops ----


def test_carried_pointers_are_offsets() -> None:
    found = lowered(
        PRELUDE
        + """
        %zero = constant {value = 0} : i32
        %one = constant {value = 1} : i32
        %p = addptr %xs, %lane : tile<8xptr<f32>>
        %r = for %zero, %n, %one, %p : tile<8xptr<f32>> {
        ^(%k: i32, %q: tile<8xptr<f32>>):
          %v = load %q : tile<8xf32>
          store %q, %v
          %next = addptr %q, %ms : tile<8xptr<f32>>
          yield %next
        }
        %w = load %r : tile<8xf32>
        """
    )
    assert "^(%k: i32, %q: i64):" in found
    assert "ptr" not in found
    assert "%4 = cast %m {dtype = i64} : i64\n  %5 = add %4, %q : i64\n  yield %5" in found


def test_a_carried_index_tile_is_its_offset_where_the_strides_stay() -> None:
    steps = """
    %zero = constant {{value = 0}} : i32
    %one = constant {{value = 1}} : i32
    %r = for %zero, %n, %one, %lane : tile<8xi32> {{
    ^(%k: i32, %q: tile<8xi32>):
      %next = {next} : tile<8xi32>
      yield %next
    }}
    """
    assert " : i64 {" in lowered(PRELUDE + text(steps.format(next="add %q, %ns")) + USE)
    assert " : tile<8xi32> {" in lowered(PRELUDE + text(steps.format(next="sub %ns, %q")) + USE)
    assert " : tile<8xi32> {" in lowered(PRELUDE + text(steps.format(next="mul %q, %three")) + USE)


USE = "%is = splat %i {shape = [8]} : tile<8xptr<i32>>\nstore %is, %r\n"


def test_a_loop_inside_a_loop_that_changes_its_mind() -> None:
    """The inner loop is looked at again when the outer assumption falls; its scalars are those of the last look."""
    found = lowered(
        PRELUDE
        + """
        %zero = constant {value = 0} : i32
        %one = constant {value = 1} : i32
        %r = for %zero, %n, %one, %lane : tile<8xi32> {
        ^(%k: i32, %q: tile<8xi32>):
          %o = for %zero, %m, %one, %lane : tile<8xi32> {
          ^(%l: i32, %w: tile<8xi32>):
            %at = add %k, %l : i32
            %p = addptr %x, %at : ptr<f32>
            %v = load %p : f32
            store %p, %v
            %grown = mul %w, %three : tile<8xi32>
            yield %grown
          }
          %next = sub %o, %q : tile<8xi32>
          yield %next
        }
        """
        + USE
    )
    assert found.count(" : tile<8xi32> {") == 2
    assert found.count("dma_load") == 1


def test_a_carried_pointer_with_an_index_tile_is_an_offset_too() -> None:
    found = lowered(
        PRELUDE
        + """
        %zero = constant {value = 0} : i32
        %one = constant {value = 1} : i32
        %wrapped = rem %lane, %three : tile<8xi32>
        %p = addptr %xs, %wrapped : tile<8xptr<f32>>
        %r = for %zero, %n, %one, %p : tile<8xptr<f32>> {
        ^(%k: i32, %q: tile<8xptr<f32>>):
          %v = load %q : tile<8xf32>
          store %q, %v
          %next = addptr %q, %ms : tile<8xptr<f32>>
          yield %next
        }
        """
    )
    assert "^(%k: i32, %q: i64):" in found
    assert "dma_gather %x, %" in found and "index = %wrapped" in found and "dma_scatter" in found


def test_index_tiles_that_are_added_one_after_another_and_seen_through_views() -> None:
    """`x + (i % 3)[:, None] + (i % 5)[None, :] + i[None, :]`, carried."""
    found = lowered(
        PRELUDE
        + """
        %zero = constant {value = 0} : i32
        %one = constant {value = 1} : i32
        %row = rem %lane, %three : tile<8xi32>
        %column = rem %lane, %five : tile<8xi32>
        %rows = expand_dims %row {axis = 1} : tile<8x1xi32>
        %columns = expand_dims %column {axis = 0} : tile<1x8xi32>
        %lanes = expand_dims %lane {axis = 0} : tile<1x8xi32>
        %xc = expand_dims %xs {axis = 1} : tile<8x1xptr<f32>>
        %p = addptr %xc, %rows : tile<8x1xptr<f32>>
        %pb = broadcast %p {shape = [8, 8]} : tile<8x8xptr<f32>>
        %cb = broadcast %columns {shape = [8, 8]} : tile<8x8xi32>
        %q = addptr %pb, %cb : tile<8x8xptr<f32>>
        %lb = broadcast %lanes {shape = [8, 8]} : tile<8x8xi32>
        %start = addptr %q, %lb : tile<8x8xptr<f32>>
        %m2 = splat %m {shape = [8, 8]} : tile<8x8xi32>
        %r = for %zero, %n, %one, %start : tile<8x8xptr<f32>> {
        ^(%k: i32, %at: tile<8x8xptr<f32>>):
          %v = load %at : tile<8x8xf32>
          %next = addptr %at, %m2 : tile<8x8xptr<f32>>
          yield %next
        }
        """
    )
    assert "^(%k: i32, %at: i64):" in found
    assert found.count("dma_gather %x, %") == 1


def test_a_carried_pointer_whose_index_tile_changes() -> None:
    body = """
    %zero = constant {value = 0} : i32
    %one = constant {value = 1} : i32
    %wrapped = rem %lane, %three : tile<8xi32>
    %other = rem %lane, %five : tile<8xi32>
    %p = addptr %xs, %wrapped : tile<8xptr<f32>>
    %r = for %zero, %n, %one, %p : tile<8xptr<f32>> {
    ^(%k: i32, %q: tile<8xptr<f32>>):
      %next = addptr %xs, %other : tile<8xptr<f32>>
      yield %next
    }
    %v = load %r : tile<8xf32>
    """
    with pytest.raises(NotAffine):
        lower_addresses(parsed(PRELUDE + body))
    assert "dma_gather" in body_of(lower_addresses(split_pointers(parsed(PRELUDE + body))))


# ---- what is refused ----


@pytest.mark.parametrize(
    ("body", "what"),
    [
        ('%k = cmp %lane, %ns {predicate = "ne"} : tile<8xbool>\n%v = load %xs, mask = %k : tile<8xf32>\n', "mask"),
        (
            '%j = cmp %lane, %ns {predicate = "lt"} : tile<8xbool>\n%k = not %j : tile<8xbool>\n'
            "%v = load %xs, mask = %k : tile<8xf32>\n",
            "mask",
        ),
        (
            "%us = splat %u {shape = [8]} : tile<8xu32>\n%lu = cast %lane {dtype = u32} : tile<8xu32>\n"
            '%d = sub %lu, %us : tile<8xu32>\n%k = cmp %d, %us {predicate = "lt"} : tile<8xbool>\n'
            "%v = load %xs, mask = %k : tile<8xf32>\n",
            "mask",
        ),
    ],
    ids=["not equal", "negation", "an unsigned difference"],
)
def test_masks_that_are_no_boxes(body: str, what: str) -> None:
    """Refused, or loaded element by element; never as a wrong box."""
    try:
        function = lower_addresses(parsed(PRELUDE + body))
    except NotAffine as error:
        assert f"the {what} of this load" in str(error)
        assert error.location.line > 0
    else:
        assert not accesses(function), body_of(function)


def test_unsigned_indices_that_cannot_be_negative() -> None:
    steps = """
    %us = splat %u {shape = [8]} : tile<8xu32>
    %lu = cast %lane {dtype = u32} : tile<8xu32>
    %k = cmp %lu, %us {predicate = "lt"} : tile<8xbool>
    """
    assert masked(steps) == "0 to u"


def test_a_pointer_that_a_loop_exchanges() -> None:
    body = """
    %zero = constant {value = 0} : i32
    %one = constant {value = 1} : i32
    %r = for %zero, %n, %one, %x : ptr<f32> {
    ^(%k: i32, %q: ptr<f32>):
      yield %y
    }
    %v = load %r : f32
    """
    with pytest.raises(NotAffine) as caught:
        lower_addresses(parsed(body))
    assert caught.value.location != Location("", 0)
    assert "dma_load" in body_of(lower_addresses(split_pointers(parsed(body))))
