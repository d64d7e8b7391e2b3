"""cfg: branches between blocks."""

from typing import Final

from loom_core.interchange.form import op

OPS: Final = (
    op("cfg.br", "^dest!passed(args)", operands="args*:any", successors="dest", traits="terminator",
       doc="Go to a block."),
    op("cfg.cond_br", "%condition, ^true_dest, ^false_dest", operands="condition:i1", successors="true_dest false_dest",
       traits="terminator", doc="Go to one of two blocks."),
    op("cfg.switch", "%selector cases !branches(case_keys,case_dests) default ^default_dest", operands="selector:index",
       attributes="case_keys:i64s", successors="case_dests* default_dest", traits="terminator",
       doc="Go to the block of a key, or the default one."),
)  # fmt: skip
