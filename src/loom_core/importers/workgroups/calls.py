"""Calls: the body of the function in place of the call."""

from __future__ import annotations

from loom_core.importers.workgroups.conversion import Conversion, converts
from loom_core.interchange.model import Operation
from loom_core.interchange.uniformity import divergent_values


@converts("func.call")
def _call(c: Conversion, op: Operation) -> None:
    symbol = c.module.find_symbol(str(op.attributes["callee"]))
    function = symbol.op if symbol is not None else None
    if function is None or function.name != "func.def" or len(function.regions[0].blocks) != 1:
        c.refuse("what is called is a function of one block of this module")
    if any(caller is function for caller in c.calls):
        c.refuse(f"@{op.attributes['callee']} calls itself")
    block = function.regions[0].blocks[0]
    for operand, argument in zip(op.operands, block.arg_ids, strict=True):
        c.pass_on(operand, argument)
    apart = {argument for argument in block.arg_ids if argument in c.values and not c.values[argument].type.is_scalar}
    c.divergent |= divergent_values(function.regions[0], c.module, apart, masked=c.lanes.mask is not None)
    c.calls.append(function)
    location = c.lanes.builder.location
    last = c.block(block)
    c.calls.pop()
    c.at, c.lanes.builder.location = op, location
    for operand, result in zip(last.operands, op.results, strict=True):
        c.pass_on(operand, result)
