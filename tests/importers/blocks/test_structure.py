"""What blocks become: loops that count, other loops, joins, returns in the middle; their witnesses; what is refused."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from loom_core.base.knobs import knobs
from loom_core.importers.blocks import Compared, CountedWitness, Edge, Graph, JoinWitness, Node, Number, Structure, Sum
from loom_core.importers.blocks.check import problems
from loom_core.importers.ttir.errors import UnsupportedOperation
from ltl.imported import ImportedKernel
from tests.importers.ttir.modules import module, run

STORE = "tt.store %out, {} : !tt.ptr<i32>\ntt.return"


def names(kernel: ImportedKernel) -> list[str]:
    """The loops and branches of a kernel's Tile IR."""
    return [op.name for op in kernel.function.walk() if op.name in ("for", "while", "if")]


def kernel(lines: str, parameters: str = "%out: !tt.ptr<i32>, %n: i32") -> str:
    constants = "\n".join(f"%c{number} = arith.constant {number} : i32" for number in range(5))
    return module(constants + "\n" + lines, parameters)


def result(text: str, n: int) -> int:
    out = np.zeros(1, np.int32)
    run(text, out, n)
    return int(out[0])


def counting(test: str, step: str = "%c1", *, first: str = "%c0", swap: bool = False, flags: str = "") -> str:
    """The sum of the values of a loop's variable, times 1000, and its last value."""
    ways = "^exit, ^body" if swap else "^body, ^exit"
    return kernel(f"""
    %m1 = arith.constant -1 : i32
    %m3 = arith.constant -3 : i32
    %big = arith.constant 2147483646 : i32
    %k = arith.constant 1000 : i32
    cf.br ^head({first}, %c0 : i32, i32)
    ^head(%i: i32, %s: i32):
    %t = arith.cmpi {test} : i32
    cf.cond_br %t, {ways}
    ^body:
    %s2 = arith.addi %s, %i : i32
    %i2 = arith.addi %i, {step} {flags} : i32
    cf.br ^head(%i2, %s2 : i32, i32)
    ^exit:
    %r = arith.muli %s, %k : i32
    %q = arith.addi %r, %i : i32
    {STORE.format("%q")}
    ^end:""")


def by_hand(values: list[int], last: int) -> int:
    return sum(values) * 1000 + last


COUNTED = {
    "up": (counting("slt, %i, %n"), 7, by_hand(list(range(7)), 7)),
    "never": (counting("slt, %i, %n"), -2, 0),
    "turned": (counting("sgt, %n, %i"), 5, by_hand(list(range(5)), 5)),
    "negated": (counting("sge, %i, %n", swap=True), 6, by_hand(list(range(6)), 6)),
    "down": (counting("sgt, %i, %c0", "%m1", first="%n"), 4, by_hand([4, 3, 2, 1], 0)),
    "by three down, promised": (counting("sgt, %i, %c1", "%m3", first="%n", flags="overflow<nsw>"), 9,
                                by_hand([9, 6, 3], 0)),
    "with a constant bound": (counting("sle, %i, %c4", "%c2", first="%n"), 1, by_hand([1, 3], 5)),
}  # fmt: skip


@pytest.mark.parametrize("name", COUNTED)
def test_a_loop_that_counts_is_a_for(name: str) -> None:
    text, n, wanted = COUNTED[name]
    assert names(ImportedKernel(text)) == ["for"]
    assert result(text, n) == wanted


@pytest.mark.parametrize(
    ("text", "n", "wanted"),
    [
        (counting("slt, %i, %n", "%c3"), 7, by_hand([0, 3, 6], 9)),  # could wrap for the largest %n
        (counting("sle, %i, %n"), 4, by_hand([0, 1, 2, 3, 4], 5)),
        (counting("ne, %i, %n"), 4, by_hand([0, 1, 2, 3], 4)),
        (counting("slt, %i, %n", "%n", first="%c1"), 8, by_hand([1], 9)),  # a step that is not known
        (counting("slt, %i, %big", "%c3", first="%big"), 0, 2147483646),
    ],
)
def test_a_loop_that_may_wrap_is_a_while(text: str, n: int, wanted: int) -> None:
    assert names(ImportedKernel(text)) == ["while"]
    assert result(text, n) == wanted


def test_a_loop_that_wraps_goes_on() -> None:
    """In 8 bits by five up to 126: past 127 it comes back as a negative number."""
    text = kernel("""
    %first = arith.constant 0 : i8
    %five = arith.constant 5 : i8
    %bound = arith.trunci %n : i32 to i8
    cf.br ^head(%first, %c0 : i8, i32)
    ^head(%i: i8, %count: i32):
    %t = arith.cmpi slt, %i, %bound : i8
    cf.cond_br %t, ^body, ^exit
    ^body:
    %i2 = arith.addi %i, %five : i8
    %more = arith.addi %count, %c1 : i32
    cf.br ^head(%i2, %more : i8, i32)
    ^exit:
    tt.store %out, %count : !tt.ptr<i32>""")
    value, count = 0, 0
    while value < 126:
        value, count = (value + 5 + 128) % 256 - 128, count + 1
    assert count > 26
    assert names(ImportedKernel(text)) == ["while"]
    assert result(text, 126) == count


def test_nested_loops() -> None:
    text = kernel(f"""
    cf.br ^outer(%c0, %c0 : i32, i32)
    ^outer(%i: i32, %s: i32):
    %t = arith.cmpi slt, %i, %n : i32
    cf.cond_br %t, ^start, ^exit
    ^start:
    cf.br ^inner(%c0, %s : i32, i32)
    ^inner(%j: i32, %u: i32):
    %v = arith.cmpi slt, %j, %i : i32
    cf.cond_br %v, ^body, ^next
    ^body:
    %p = arith.muli %i, %j : i32
    %w = arith.addi %u, %p : i32
    %j2 = arith.addi %j, %c1 : i32
    cf.br ^inner(%j2, %w : i32, i32)
    ^next:
    %i2 = arith.addi %i, %c1 : i32
    cf.br ^outer(%i2, %u : i32, i32)
    ^exit:
    {STORE.format("%s")}
    ^end:""")
    assert names(ImportedKernel(text)) == ["for", "for"]
    assert result(text, 6) == sum(i * j for i in range(6) for j in range(i))


def test_a_loop_with_two_exits_and_a_return_inside() -> None:
    text = kernel(f"""
    cf.br ^head(%c0, %c1 : i32, i32)
    ^head(%i: i32, %x: i32):
    %t = arith.cmpi slt, %i, %n : i32
    cf.cond_br %t, ^body, ^done
    ^body:
    %y = arith.muli %x, %c3 : i32
    %limit = arith.constant 200 : i32
    %u = arith.cmpi sgt, %y, %limit : i32
    cf.cond_br %u, ^large, ^next
    ^large:
    {STORE.format("%y")}
    ^next:
    %i2 = arith.addi %i, %c1 : i32
    cf.br ^head(%i2, %y : i32, i32)
    ^done:
    {STORE.format("%i")}
    ^end:""")
    assert [result(text, n) for n in (0, 3, 5, 100)] == [0, 3, 243, 243]


def test_a_loop_tested_at_its_end() -> None:
    text = kernel(f"""
    cf.br ^head(%n : i32)
    ^head(%i: i32):
    %h = arith.divsi %i, %c2 : i32
    %t = arith.cmpi sgt, %h, %c1 : i32
    cf.cond_br %t, ^head(%h : i32), ^exit
    ^exit:
    {STORE.format("%h")}
    ^end:""")
    assert [result(text, n) for n in (100, 2, 7)] == [1, 1, 1]


def test_a_switch() -> None:
    text = kernel(f"""
    cf.switch %n : i32, [default: ^other(%c0 : i32), 1: ^same(%c3 : i32), 7: ^other(%c4 : i32), -2: ^same(%c2 : i32)]
    ^other(%a: i32):
    %b = arith.muli %a, %c3 : i32
    cf.br ^same(%b : i32)
    ^same(%r: i32):
    {STORE.format("%r")}
    ^end:""")
    assert [result(text, n) for n in (1, 7, -2, 3)] == [3, 12, 2, 0]


def test_pointers_and_tiles_that_leave_a_loop() -> None:
    """A pointer that some ways out define only, and a tile computed in the loop and read behind it."""
    text = kernel(
        """
    %o = tt.make_range {end = 8 : i32, start = 0 : i32} : tensor<8xi32>
    %xs = tt.splat %x : !tt.ptr<i32> -> tensor<8x!tt.ptr<i32>>
    cf.br ^head(%c0, %xs : i32, tensor<8x!tt.ptr<i32>>)
    ^head(%i: i32, %p: tensor<8x!tt.ptr<i32>>):
    %q = tt.addptr %p, %o : tensor<8x!tt.ptr<i32>>, tensor<8xi32>
    %v = tt.load %q : tensor<8x!tt.ptr<i32>>
    %m = "tt.reduce"(%v) <{axis = 0 : i32}> ({
    ^bb0(%a: i32, %b: i32):
      %s = arith.maxsi %a, %b : i32
      tt.reduce.return %s : i32
    }) : (tensor<8xi32>) -> i32
    %t = arith.cmpi sgt, %m, %n : i32
    cf.cond_br %t, ^found, ^next
    ^next:
    %eight = arith.constant dense<8> : tensor<8xi32>
    %p2 = tt.addptr %p, %eight : tensor<8x!tt.ptr<i32>>, tensor<8xi32>
    %i2 = arith.addi %i, %c1 : i32
    %u = arith.cmpi slt, %i2, %c4 : i32
    cf.cond_br %u, ^head(%i2, %p2 : i32, tensor<8x!tt.ptr<i32>>), ^none
    ^found:
    %outs = tt.splat %out : !tt.ptr<i32> -> tensor<8x!tt.ptr<i32>>
    %w = tt.addptr %outs, %o : tensor<8x!tt.ptr<i32>>, tensor<8xi32>
    %again = tt.load %q : tensor<8x!tt.ptr<i32>>
    %both = arith.addi %v, %again : tensor<8xi32>
    tt.store %w, %both : tensor<8x!tt.ptr<i32>>
    tt.return
    ^none:""",
        "%out: !tt.ptr<i32>, %x: !tt.ptr<i32>, %n: i32",
    )
    x = np.arange(32, dtype=np.int32)
    for n, row in ((3, 0), (7, 1), (20, 2), (31, None)):
        out = np.zeros(8, np.int32)
        run(text, out, x, n)
        assert out.tolist() == (x[8 * row : 8 * row + 8] * 2 if row is not None else out * 0).tolist()


def test_a_helper_with_several_blocks() -> None:
    """A call of it becomes its blocks, also in the function of a reduction, where ways are chosen by values."""
    helper = """
    tt.func private @clipped(%a: i32, %b: i32) -> i32 attributes {noinline = true} {
      %limit = arith.constant 50 : i32
      %s = arith.addi %a, %b : i32
      %t = arith.cmpi sgt, %s, %limit : i32
      cf.cond_br %t, ^large, ^small
    ^large:
      tt.return %limit : i32
    ^small:
      %z = arith.constant 0 : i32
      %u = arith.cmpi slt, %s, %z : i32
      cf.cond_br %u, ^end(%z : i32), ^end(%s : i32)
    ^end(%r: i32):
      tt.return %r : i32
    }
    """
    body = """
    %o = tt.make_range {end = 8 : i32, start = 0 : i32} : tensor<8xi32>
    %xs = tt.splat %x : !tt.ptr<i32> -> tensor<8x!tt.ptr<i32>>
    %q = tt.addptr %xs, %o : tensor<8x!tt.ptr<i32>>, tensor<8xi32>
    %v = tt.load %q : tensor<8x!tt.ptr<i32>>
    %m = "tt.reduce"(%v) <{axis = 0 : i32}> ({
    ^bb0(%a: i32, %b: i32):
      %s = tt.call @clipped(%a, %b) : (i32, i32) -> i32
      tt.reduce.return %s : i32
    }) : (tensor<8xi32>) -> i32
    %r = tt.call @clipped(%m, %n) : (i32, i32) -> i32
    tt.store %out, %r : !tt.ptr<i32>
    """
    text = module(body, "%out: !tt.ptr<i32>, %x: !tt.ptr<i32>, %n: i32", helper)
    for values, n, wanted in (([1] * 8, 5, 13), ([9] * 8, -20, 30), ([3] * 8, -100, 0)):
        out = np.zeros(1, np.int32)
        run(text, out, np.array(values, np.int32), n)
        assert out[0] == wanted


def test_many_blocks_in_a_row() -> None:
    lines, value = [], "%n"
    for number in range(400):
        lines.append(f"%t{number} = arith.cmpi slt, {value}, %c0 : i32")
        lines.append(f"cf.cond_br %t{number}, ^a{number}, ^j{number}({value} : i32)")
        lines.append(f"^a{number}:\n%m{number} = arith.addi {value}, %c3 : i32\ncf.br ^j{number}(%m{number} : i32)")
        lines.append(f"^j{number}(%x{number}: i32):")
        value = f"%x{number}"
    text = kernel("\n".join(lines) + f"\ntt.store %out, {value} : !tt.ptr<i32>")
    out = np.zeros(1, np.int32)
    with knobs.override(interpret=True):
        ImportedKernel(text)[(1,)](out, -1000)
    assert out[0] == -1000 + 3 * 334


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        ("cf.cond_br %b, ^a, ^b\n^a:\ncf.br ^b\n^b:\ncf.br ^a\n^c:", "several blocks"),
        ("".join(f"cf.cond_br %b, ^a{i}, ^end\n^a{i}:\n" for i in range(70)) + "cf.br ^end\n^end:", "64 levels"),
        ("".join(f"cf.br ^a{i}\n^a{i}:\n" for i in range(2100)), "2000 blocks"),
        ("cf.switch %b : i1, [default: ^end, 1: ^a]\n^a:\ncf.br ^end\n^end:", "its condition is bool"),
    ],
)
def test_what_is_refused(lines: str, reason: str) -> None:
    with pytest.raises(UnsupportedOperation, match=reason) as caught:
        ImportedKernel(kernel(lines, "%out: !tt.ptr<i32>, %n: i32, %b: i1"), "kernel.ttir")
    assert caught.value.location.file == "kernel.ttir"


# ---- witnesses -------------------------------------------------------------------------------------------------------

HEAD = Node(
    "head", (Edge("body"), Edge("exit")), ("i", "s"), frozenset({"c"}), frozenset({"c"}), "c", (), True,
    {"c": Compared("slt", "i", "n", 32)},
)  # fmt: skip
GRAPH = Graph(
    [
        Node("entry", (Edge("head", ("z", "z")),), (), frozenset("z"), frozenset("zkn"), facts={"k": Number(4)}),
        HEAD,
        Node("body", (Edge("head", ("j", "s")),), (), frozenset("ik"), frozenset("j"), facts={"j": Sum("i", "k")}),
        Node("exit", (Edge(""),)),
    ],
    "entry",
)  # fmt: skip
RIGHT = CountedWitness("head", ("i", "s"), 0, "n", 4)


def test_a_witness_that_holds() -> None:
    assert list(problems(GRAPH, Structure((RIGHT,), (JoinWitness("head", "exit", ()),)))) == []


@pytest.mark.parametrize(
    ("claim", "message"),
    [
        (replace(RIGHT, step=2), "does not add 2"),
        (replace(RIGHT, step=-4), "does not add -4"),
        (replace(RIGHT, upper="k"), "against k"),
        (replace(RIGHT, upper=4), "against 4"),
        (replace(RIGHT, upper="j"), "j changes"),
        (replace(RIGHT, position=1), "does not add 4 to s"),
        (replace(RIGHT, parameters=("i",)), "does not take i"),
        (replace(RIGHT, header="body", parameters=()), "no way from body"),
    ],
)
def test_a_witness_that_does_not_hold(claim: CountedWitness, message: str) -> None:
    assert any(message in problem for problem in problems(GRAPH, Structure((claim,))))


def test_a_join_that_is_reached_around_its_owner() -> None:
    assert list(problems(GRAPH, Structure((), (JoinWitness("body", "exit", ()),)))) == [
        "block exit is reached around body"
    ]
