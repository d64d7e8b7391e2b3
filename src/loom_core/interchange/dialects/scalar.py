"""scalar: arithmetic of single integers and floats."""

from typing import Final

from loom_core.interchange.dialects.lanewise import rows
from loom_core.interchange.form import op

OPS: Final = (
    *rows("scalar", ""),
    op("scalar.constant", "$value : T(result)", attributes="value:literal", results="result:scalar", traits="pure",
       doc="A number."),
    op("scalar.poison", ": T(result)", results="result:scalar", traits="pure", doc="A value that nothing may use."),
    op("scalar.assume", "%values* $predicates : T(results*)", operands="values*:scalar",
       attributes="predicates:predicates", results="results*:scalar", traits="pure",
       doc="The same values, with facts that hold for them."),
)  # fmt: skip
