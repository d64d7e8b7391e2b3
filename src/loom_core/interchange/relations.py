"""Relations among the values of an operation, of its regions, and of what ends them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from loom_core.interchange.declaration import OpDeclaration
from loom_core.interchange.model import Module, Operation, Region
from loom_core.interchange.text.types import print_type
from loom_core.interchange.types import ADDRESS_KINDS, FLOAT_KINDS, ShapedType, Type, element_of

Found = Callable[..., None]


def check_relations(module: Module, op: Operation, decl: OpDeclaration, found: Found) -> None:
    """What the row of the operation and its form relate."""
    values = module.values
    for relation, names in decl.same:
        types = [values[value].type for name in names for value in _group(op, decl, name)]
        shown: Sequence[Type | None] = types if relation == "SameType" else [element_of(type) for type in types]
        if any(type != shown[0] for type in shown[1:]):
            spelled = ", ".join(print_type(type, module) for type in types)
            found(f"{relation} constraint violated", f"{', '.join(names)} of {op.name} are {spelled}")
    check = _SPECIAL.get(op.name)
    if check is not None:
        check(module, op, decl, found)


def _group(op: Operation, decl: OpDeclaration, name: str) -> list[int]:
    if name in decl.operand_fields:
        return (decl.split_operands(op.operands, op.operand_segment_counts) or {}).get(name, [])
    return decl.split_results(op.results).get(name, [])


def _same_types(module: Module, op: Operation, decl: OpDeclaration, found: Found) -> None:
    """Each result has the type of the operand at its position."""
    if len(op.operands) != len(op.results):
        found("SameCount constraint violated", f"{op.name} has {len(op.operands)} operands, {len(op.results)} results")
        return
    for operand, result in zip(op.operands, op.results, strict=True):
        if module.values[operand].type != module.values[result].type:
            found("SameType constraint violated", f"a result of {op.name} differs in type from its operand")


def _constant(module: Module, op: Operation, decl: OpDeclaration, found: Found) -> None:
    """The literal of a constant fits its type."""
    literal = op.attributes.get("value", 0)
    type = module.values[op.results[0]].type
    element = element_of(type)
    if element is None:
        return
    said = f"{op.name} {str(literal).lower()} : {print_type(type, module)}"
    if element.kind in ADDRESS_KINDS:
        fits = type_is_int(literal)
    elif element.kind in FLOAT_KINDS:
        fits = isinstance(literal, float)
    else:
        fits = type_is_int(literal) or (isinstance(literal, bool) and element.bitwidth == 1)
    if not fits:
        found("AttrMatchesElementType constraint violated", said)


def type_is_int(value: object) -> bool:
    """An integer that is no bool."""
    return isinstance(value, int) and not isinstance(value, bool)


def _pack(module: Module, op: Operation, decl: OpDeclaration, found: Found) -> None:
    lengths = len(op.operands)
    if len(op.attributes.get("minimum_alignments", ())) != lengths or len(op.results) != lengths + 1:
        found("SameCount constraint violated", "buffer.pack has a total and an offset for each length and alignment")


def _lookup(module: Module, op: Operation, decl: OpDeclaration, found: Found) -> None:
    rows = len(op.attributes.get("case_keys", ())) + 1
    width = len(op.results)
    payload = op.operands[1:]
    if len(payload) != rows * width:
        found("SameCount constraint violated", f"scf.lookup has {rows} rows of {width}, {len(payload)} values")
        return
    for position, value in enumerate(payload):
        if module.values[value].type != module.values[op.results[position % width]].type:
            found("SameType constraint violated", "a value of a row differs in type from its result")


def _switch(module: Module, op: Operation, decl: OpDeclaration, found: Found) -> None:
    if len(op.attributes.get("case_keys", ())) != len(op.regions) - 1:
        found("SameCount constraint violated", "scf.switch has a region for each key and one more")


def _branches(module: Module, op: Operation, decl: OpDeclaration, found: Found) -> None:
    if len(op.attributes.get("case_keys", ())) != len(op.successors) - 1:
        found("SameCount constraint violated", "cfg.switch has a block for each key and one more")


def _loop_counts(module: Module, op: Operation, decl: OpDeclaration, found: Found) -> None:
    inits = _group(op, decl, "iter_args")
    if len(inits) != len(op.results):
        found("IterArgsMatchResults constraint violated", f"{len(inits)} initial values, {len(op.results)} results")


def _call(module: Module, op: Operation, decl: OpDeclaration, found: Found) -> None:
    """Operands and results are those of the callee."""
    symbol = module.find_symbol(str(op.attributes.get("callee", "")))
    if symbol is None or symbol.op is None or not symbol.op.regions or not symbol.op.regions[0].blocks:
        return
    callee = symbol.op
    pairs = (("operands", op.operands, callee.regions[0].blocks[0].arg_ids), ("results", op.results, callee.results))
    for what, given, declared in pairs:
        if len(given) != len(declared):
            found("SameCount constraint violated", f"@{symbol.name} has {len(declared)} {what}, {len(given)} here")
        elif any(
            0 <= b < len(module.values) and not _alike(module.values[a].type, module.values[b].type)
            for a, b in zip(given, declared, strict=True)
        ):
            found("SameType constraint violated", f"{what} differ in type from those of @{symbol.name}")


def _alike(a: Type, b: Type) -> bool:
    """Equal, or shaped alike where dimensions are values of different functions."""
    if isinstance(a, ShapedType) and isinstance(b, ShapedType) and not (a.is_all_static and b.is_all_static):
        return a.type_kind is b.type_kind and a.element_type == b.element_type and a.rank == b.rank
    return a == b


_SPECIAL: Final[dict[str, Callable[[Module, Operation, OpDeclaration, Found], None]]] = {
    "index.assume": _same_types,
    "scalar.assume": _same_types,
    "buffer.assume.alignment": _same_types,
    "buffer.assume.noalias": _same_types,
    "index.constant": _constant,
    "scalar.constant": _constant,
    "vector.constant": _constant,
    "buffer.pack": _pack,
    "scf.lookup": _lookup,
    "scf.switch": _switch,
    "cfg.switch": _branches,
    "scf.for": _loop_counts,
    "func.call": _call,
}


# ---- exits and loops ----

_EXITS: Final = {"func.def": "func.return", "func.template": "func.return"}
_YIELDING: Final = frozenset(("scf.if", "scf.switch", "scf.for"))


def check_exits(module: Module, op: Operation, decl: OpDeclaration, found: Found) -> None:
    """What ends the regions of an operation hands over values of its results' types."""
    exit_name = _EXITS.get(op.name)
    if exit_name is not None:
        for block in op.regions[0].blocks if op.regions else ():
            if block.ops and block.ops[-1].name == exit_name:
                _match_exit(module, op, block.ops[-1], op.results, found)
    elif op.name in _YIELDING:
        for region in op.regions:
            last = _last(region)
            if last is not None and last.name == "scf.yield":
                _match_exit(module, op, last, op.results, found)


def _match_exit(module: Module, op: Operation, last: Operation, results: list[int], found: Found) -> None:
    if len(last.operands) != len(results):
        said = f"{op.name} has {len(results)} results, {last.name} hands over {len(last.operands)}"
        found("exit has the wrong number of values", said)
        return
    for given, result in zip(last.operands, results, strict=True):
        if not 0 <= given < len(module.values):
            continue
        if module.values[given].type != module.values[result].type:
            types = [print_type(module.values[value].type, module) for value in (result, given)]
            found("exit value has the wrong type", f"{op.name} has a result {types[0]}, {last.name} gives {types[1]}")


def _last(region: Region) -> Operation | None:
    return region.blocks[-1].ops[-1] if region.blocks and region.blocks[-1].ops else None


def check_loop(module: Module, op: Operation, decl: OpDeclaration, found: Found) -> None:
    """Initial values, region arguments and what iterations hand over agree."""
    if op.name == "scf.for":
        _check_for(module, op, decl, found)
    elif op.name == "scf.while":
        _check_while(module, op, found)


def _types(module: Module, values: Sequence[int]) -> list[Type]:
    return [module.values[value].type for value in values if 0 <= value < len(module.values)]


def _check_for(module: Module, op: Operation, decl: OpDeclaration, found: Found) -> None:
    inits = _types(module, _group(op, decl, "iter_args"))
    arguments = _types(module, op.regions[0].blocks[0].arg_ids)
    if len(arguments) != len(inits) + 1:
        found("loop carries the wrong number of values", f"{len(arguments)} arguments, {len(inits)} initial values")
        return
    bound = module.values[op.operands[0]].type
    if arguments[0] != bound:
        found("loop argument has the wrong type", "the induction variable has the type of the bounds")
    _match_loop(arguments[1:], inits, _types(module, op.results), found)


def _match_loop(arguments: Sequence[Type], inits: Sequence[Type], results: Sequence[Type], found: Found) -> None:
    for argument, init in zip(arguments, inits, strict=True):
        if argument != init:
            found("loop argument has the wrong type", "an argument has the type of its initial value")
    for init, result in zip(inits, results, strict=False):
        if init != result:
            found("initial value has the wrong type", "a carried value keeps its type")


def _check_while(module: Module, op: Operation, found: Found) -> None:
    before, after = op.regions
    inits = _types(module, op.operands)
    arguments = _types(module, before.blocks[0].arg_ids)
    if len(arguments) != len(inits):
        found("loop carries the wrong number of values", f"{len(arguments)} arguments, {len(inits)} initial values")
        return
    for argument, init in zip(arguments, inits, strict=True):
        if argument != init:
            found("loop argument has the wrong type", "an argument has the type of its initial value")
    condition, last = _last(before), _last(after)
    if condition is not None and condition.name == "scf.condition":
        forwarded = _types(module, condition.operands[1:])
        received = _types(module, after.blocks[0].arg_ids)
        if len(forwarded) != len(received) or len(forwarded) != len(op.results):
            found("loop carries the wrong number of values", "scf.condition hands over what the loop results in")
        elif forwarded != received:
            found("loop argument has the wrong type", "an argument of the second region differs from what it is handed")
        elif forwarded != _types(module, op.results):
            found("exit value has the wrong type", "scf.condition hands over the results of the loop")
    if last is not None and last.name == "scf.yield":
        given = _types(module, last.operands)
        if len(given) != len(inits):
            found("exit has the wrong number of values", f"{len(inits)} values are carried, {len(given)} yielded")
        elif given != inits:
            found("exit value has the wrong type", "a carried value keeps its type")
