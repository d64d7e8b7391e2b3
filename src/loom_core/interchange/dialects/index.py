"""index: arithmetic of indices and byte offsets."""

from typing import Final

from loom_core.interchange.declaration import OpDeclaration
from loom_core.interchange.dialects.enums import INTEGER_PREDICATES
from loom_core.interchange.form import op


def binary(name: str, constraint: str, doc: str) -> OpDeclaration:
    return op(
        f"index.{name}", "%lhs, %rhs : T(result)", operands=f"lhs:{constraint} rhs:{constraint}",
        results=f"result:{constraint}", same="lhs rhs result", traits="pure", doc=doc,
    )  # fmt: skip


def unary(name: str, doc: str) -> OpDeclaration:
    return op(
        f"index.{name}", "%input : T(result)", operands="input:index", results="result:index", traits="pure", doc=doc
    )


OPS: Final = (
    op("index.constant", "$value : T(result)", attributes="value:literal", results="result:address", traits="pure",
       doc="An integer."),
    op("index.cast", "%input : T(input) to T(result)", operands="input:scalar", results="result:scalar", traits="pure",
       doc="Between integers, indices and offsets."),
    op("index.assume", "%values* $predicates : T(results*)", operands="values*:address",
       attributes="predicates:predicates", results="results*:address", traits="pure",
       doc="The same values, with facts that hold for them."),
    binary("add", "address", "Sum."),
    binary("sub", "address", "Difference."),
    binary("mul", "index", "Product."),
    op("index.scale", "%index, %stride : T(index), T(stride) -> T(result)", operands="index:index stride:offset",
       results="result:offset", traits="pure", doc="Index times stride."),
    binary("div", "index", "Quotient, towards zero."),
    binary("rem", "index", "Remainder of `div`."),
    binary("min", "index", "Lesser, signed."),
    binary("max", "index", "Greater, signed."),
    op("index.madd", "%a, %b, %c : T(result)", operands="a:index b:index c:index", results="result:index",
       traits="pure", doc="a * b + c."),
    binary("andi", "index", "Bitwise and."),
    binary("ori", "index", "Bitwise or."),
    binary("xori", "index", "Bitwise exclusive or."),
    binary("shli", "index", "Shift left."),
    binary("shrsi", "index", "Shift right, the sign kept."),
    binary("shrui", "index", "Shift right, zeros filled in."),
    binary("rotli", "index", "Rotate left."),
    binary("rotri", "index", "Rotate right."),
    unary("ctlzi", "Leading zero bits."),
    unary("cttzi", "Trailing zero bits."),
    unary("ctpopi", "One bits."),
    op("index.cmp", "$predicate, %lhs, %rhs : T(lhs)", operands="lhs:address rhs:address",
       attributes=f"predicate:{INTEGER_PREDICATES}", results="result~i1", same="lhs rhs", traits="pure",
       doc="Comparison."),
)  # fmt: skip
