"""docs/interchange.md: the operations of the dialect tables."""

from __future__ import annotations

from typing import Final

from loom_core.interchange.declaration import OpDeclaration
from loom_core.interchange.dialects import amdgpu_ops, default_ops
from loom_core.interchange.form import unspelled

_INTRODUCTION: Final = """\
# Interchange modules

<!-- Written by `./run golden` from the tables in the code; edit those. -->

Programs outside Loom build modules with `loom.importers` and `loom.builders`, keep them as text or bytecode
(`loom.format`), and check them with `loom.verify` or `loom-format`. An example is in
[examples/integration/python-importer](examples/integration/python-importer/README.md).

`loom.run(module, ...)` and `loomc run FILE` run a kernel over the grid that it configures. One program is one
workgroup: what all its workitems agree on is a scalar, the rest tiles with an element for each workitem. Control flow
that workitems take alike stays; where they part, both ways run under masks. Each operation ends for all workitems
before the next begins, so barriers add nothing. Reductions and scans of floats have the order of
[numerics.md](numerics.md). Kernels of scalars, views and structured control flow run, calls, allocated memory, atomics,
subgroup and workgroup operations included; branches between blocks, vectors of a workitem, clusters and
asynchronous copies are refused (LOOM-F501).

In the forms below `%x` is an operand (`%x*` any number), `T(x)` its type, `$x` an attribute, `{attrs}` all further
attributes, `#x` an index list of constants and values, `^x` a block, `R(x)` a region, and what stands in `[[ ]]` may
be left out. The builder method of an operation takes these names as keywords, in this order.
"""


def interchange_markdown() -> str:
    """The page, from the tables."""
    lines = [_INTRODUCTION]
    by_dialect: dict[str, list[OpDeclaration]] = {}
    for op in default_ops() + amdgpu_ops():
        by_dialect.setdefault(op.dialect, []).append(op)
    for dialect, ops in by_dialect.items():
        lines += [f"## {dialect}", "", "| operation | form | types | meaning |", "|---|---|---|---|"]
        lines += [_row(op) for op in ops]
        lines.append("")
    return "\n".join(lines)


def _row(op: OpDeclaration) -> str:
    constraints = [(name, slot.constraint) for name, slot in op.operand_fields.items()]
    constraints += [(name, slot.constraint) for name, slot in op.result_fields.items()]
    types = ", ".join(f"{name}: {constraint.name}" for name, constraint in constraints)
    cells = (f"`{op.name}`", f"`{unspelled(op)}`" if op.form_text else "", types, op.doc)
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
