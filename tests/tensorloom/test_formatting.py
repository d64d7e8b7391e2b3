"""The common layout: stable, with all comments, and without a change of meaning."""

from __future__ import annotations

from pathlib import Path

import pytest

from tensorloom.diagnostics import TensorLoomError
from tensorloom.formatting import format_source, same_tree
from tensorloom.parser import parse
from tensorloom.source import Source

GALLERY = Path(__file__).resolve().parents[2] / "examples" / "tensorloom"

UGLY = """

// top
let   x=1+2*-3   // behind
/* block */
let y =[1,2 ,
   3,   // three
  4]
if x==1 :
  // inner
    print( x , y [ 0:2 ] )


    print( -x ** - 2 )   /* a */
    // end of the block
// outer
else:
    f( a = 1,b= [ -1 ] )
fn f(b:int,a : Tensor [ B,3 ]= none)->int:
      return a
       |> g( 1 )
          |> h
@model M :
  @forward( x ):
    return not x
"""
NEAT = """\
// top
let x = 1 + 2 * -3  // behind
/* block */
let y = [1, 2,
    3,  // three
    4]
if x == 1:
    // inner
    print(x, y[0:2])

    print(-x ** -2)  /* a */
    // end of the block
// outer
else:
    f(a=1, b=[-1])
fn f(b: int, a: Tensor[B, 3]=none) -> int:
    return a
        |> g(1)
        |> h
@model M:
    @forward(x):
        return not x
"""


def formatted(text: str) -> str:
    return format_source(Source(text, "x.tl"))


def test_layout() -> None:
    assert formatted(UGLY) == NEAT


def test_layout_is_stable() -> None:
    assert formatted(NEAT) == NEAT


@pytest.mark.parametrize("path", sorted(GALLERY.iterdir()), ids=lambda path: path.name)
def test_the_gallery_has_the_layout(path: Path) -> None:
    assert formatted(path.read_text()) == path.read_text()


@pytest.mark.parametrize(
    "text", ["", "\n\n", "// only\n", "/* a\n b */\n", "let a = 1 /* in */ + 2\n", "f(\n// c\n1)\n"]
)
def test_edges(text: str) -> None:
    once = formatted(text)
    assert formatted(once) == once
    assert once.count("//") + once.count("/*") == text.count("//") + text.count("/*")


def test_what_cannot_be_read_is_left() -> None:
    with pytest.raises(TensorLoomError, match="LOOM-T101"):
        formatted("let = 1\n")


def test_the_comparison_of_trees_sees_differences() -> None:
    def tree(text: str) -> object:
        return parse(Source(text, "x.tl")).program

    assert same_tree(tree("let a = 1+2"), tree("let a = (1 + 2)"))
    assert not same_tree(tree("let a = 1+2"), tree("let a = 1-2"))
    assert not same_tree(tree("let a = 1"), tree("let a = 1.0"))
    assert not same_tree(tree("f(a)"), tree("f(a, b)"))
