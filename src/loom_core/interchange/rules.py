"""The verifier's rules by message, with the error that each is in the table of errors."""

from __future__ import annotations

from typing import Final

RULES: Final = {
    "symbol has empty name": "SYMBOL/001",
    "duplicate symbol name": "SYMBOL/005",
    "symbol op is not owned by the module": "SYMBOL/001",
    "symbol op is not in the symbol table": "SYMBOL/001",
    "op is not permitted at module scope": "STRUCTURE/011",
    "operation references missing value": "DOMINANCE/001",
    "tied result is out of range": "STRUCTURE/002",
    "unknown op": "PARSE/006",
    "op has wrong parent": "STRUCTURE/029",
    "op is missing required ancestor": "STRUCTURE/029",
    "op has forbidden ancestor": "STRUCTURE/029",
    "symbol op is nested": "STRUCTURE/029",
    "regions nest too deeply": "PARSE/021",
    "wrong operand count": "STRUCTURE/001",
    "wrong result count": "STRUCTURE/002",
    "wrong successor count": "STRUCTURE/023",
    "wrong region count": "STRUCTURE/004",
    "missing required else region": "STRUCTURE/004",
    "missing required attribute": "STRUCTURE/003",
    "operand type constraint violated": "TYPE/003",
    "result type constraint violated": "TYPE/004",
    "attribute kind constraint violated": "TYPE/005",
    "attribute value constraint violated": "STRUCTURE/014",
    "SameType constraint violated": "TYPE/001",
    "SameElementType constraint violated": "TYPE/002",
    "SameCount constraint violated": "STRUCTURE/013",
    "AttrMatchesElementType constraint violated": "TYPE/005",
    "IterArgsMatchResults constraint violated": "STRUCTURE/013",
    "YieldTypesMatchResults constraint violated": "TYPE/009",
    "unresolved symbol reference": "SYMBOL/002",
    "symbol reference target has wrong interface": "SYMBOL/003",
    "single-block region has wrong block count": "STRUCTURE/006",
    "region has no block": "STRUCTURE/006",
    "terminator is not last in block": "STRUCTURE/012",
    "block is missing required terminator": "STRUCTURE/005",
    "region terminated by wrong op": "STRUCTURE/018",
    "successor is outside the enclosing region": "STRUCTURE/023",
    "successor targets the function entry block": "STRUCTURE/024",
    "exit has the wrong number of values": "STRUCTURE/008",
    "exit value has the wrong type": "TYPE/009",
    "loop carries the wrong number of values": "STRUCTURE/007",
    "loop argument has the wrong type": "TYPE/013",
    "initial value has the wrong type": "TYPE/001",
}
"""Message -> name in `diagnostics.ERRORS`."""

IDENTIFIED: Final = frozenset(
    message
    for message in RULES
    if "constraint violated" in message and not message.startswith(("operand", "result", "attribute"))
) | frozenset(list(RULES)[-5:])
"""Messages whose diagnostics carry their error: relations, exits of callables, and loops."""
