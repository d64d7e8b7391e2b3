"""Rules of single operations, beyond what their rows declare. They run on modules that the declared rules accept."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from loom_core.interchange.declaration import OpDeclaration
from loom_core.interchange.diagnostics import DiagnosticEngine
from loom_core.interchange.dominance import check_dominance
from loom_core.interchange.hook_attributes import check_attribute
from loom_core.interchange.model import Module, Operation, Region
from loom_core.interchange.text.types import print_type
from loom_core.interchange.types import ADDRESS_KINDS, INDEX, OFFSET, ScalarType, ShapedType, Type, element_of
from loom_core.interchange.uniformity import depends_on_workitem, divergent_values
from loom_core.interchange.verifier import Finding, VerifierRegistry


@dataclass(frozen=True, slots=True)
class Checked:
    """An operation under the hook rules."""

    module: Module
    registry: VerifierRegistry
    op: Operation
    decl: OpDeclaration
    path: str
    found: Finding

    def operand(self, name: str) -> Type:
        """The type of an operand that is there."""
        operands = self.decl.split_operands(self.op.operands, self.op.operand_segment_counts) or {}
        return self.module.values[operands[name][0]].type

    @property
    def result(self) -> Type:
        return self.module.values[self.op.results[0]].type

    def spell(self, type: Type) -> str:
        return print_type(type, self.module)


Hook = Callable[[Checked], None]
HOOKS: Final[dict[str, list[Hook]]] = {}


def hook(*names: str) -> Callable[[Hook], Hook]:
    """Register a rule of these operations."""

    def register(rule: Hook) -> Hook:
        for name in names:
            HOOKS.setdefault(name, []).append(rule)
        return rule

    return register


def check_hooks(module: Module, diagnostics: DiagnosticEngine, registry: VerifierRegistry) -> None:
    """All hook rules, then dominance and ownership."""
    for path, op in walk_with_paths(module):
        decl = registry.get(op.name)
        if decl is None:
            continue
        found = Finding(module, diagnostics, op, path)
        for name, value in op.attributes.items():
            check_attribute(decl, name, value, found)
        if found.count:
            continue
        checked = Checked(module, registry, op, decl, path, found)
        for rule in HOOKS.get(op.name, ()):
            rule(checked)
    check_dominance(module, diagnostics, registry)


def walk_with_paths(module: Module) -> Iterator[tuple[str, Operation]]:
    """Every operation with its path, outer ones first."""
    stack = [(f"module operation[{index}] {op.name}", op) for index, op in reversed(list(enumerate(module.body.ops)))]
    while stack:
        path, op = stack.pop()
        yield path, op
        inner = [
            (f"{path}.regions[{r}].blocks[{b}].ops[{i}] {child.name}", child)
            for r, region in enumerate(op.regions)
            for b, block in enumerate(region.blocks)
            for i, child in enumerate(block.ops)
        ]
        stack += reversed(inner)


def is_power_of_two(number: Any) -> bool:
    return isinstance(number, int) and number > 0 and number & (number - 1) == 0


# ---- kernels ----


@hook("kernel.def", "kernel.decl")
def _linkage(c: Checked) -> None:
    if "export_linkage" in c.op.attributes and "export_symbol" not in c.op.attributes:
        c.found.rule("STRUCTURE/014", "linkage is given to a kernel that is not exported")


EFFECTS: Final = frozenset(("read", "write", "convergent", "observable"))


@hook("kernel.def")
def _pure_configuration(c: Checked) -> None:
    for op in _inside(c.op.regions[0]):
        decl = c.registry.get(op.name)
        effects = sorted(decl.traits & EFFECTS) if decl is not None else []
        if effects:
            message = f"the configuration of a kernel has no effects, and {op.name} has: {', '.join(effects)}"
            Finding(c.module, c.found.diagnostics, op, c.path).rule("STRUCTURE/052", message)


@hook("kernel.def")
def _uniform_barriers(c: Checked) -> None:
    body = c.op.regions[1]
    waiting = {"kernel.barrier"} | {
        op.name for op in _inside(body) if op.name.startswith("kernel.workgroup.") and _convergent(c, op)
    }
    if not any(op.name in waiting for op in _inside(body)):
        return
    divergent = divergent_values(body, c.module)
    for op in _reached_apart(body, divergent, False):
        if op.name in waiting:
            message = f"not all workitems of a workgroup reach this {op.name}"
            detail = "control flow around it depends on the workitem"
            Finding(c.module, c.found.diagnostics, op, c.path).rule("STRUCTURE/038", message, detail)


def _convergent(c: Checked, op: Operation) -> bool:
    decl = c.registry.get(op.name)
    return decl is not None and "convergent" in decl.traits


def _reached_apart(region: Region, divergent: set[int], apart: bool) -> Iterator[Operation]:
    """Operations that not all workitems may reach together."""
    apart = apart or any(
        len(op.successors) > 1 and op.operands and op.operands[0] in divergent for b in region.blocks for op in b.ops
    )
    for block in region.blocks:
        for op in block.ops:
            if apart:
                yield op
            inside = apart or (bool(op.regions) and depends_on_workitem(op, divergent))
            for inner in op.regions:
                yield from _reached_apart(inner, divergent, inside)


def _inside(region: Region) -> Iterator[Operation]:
    for block in region.blocks:
        for op in block.ops:
            yield op
            for inner in op.regions:
                yield from _inside(inner)


@hook("kernel.subgroup.shuffle", "kernel.subgroup.broadcast", "kernel.subgroup.broadcast.first")
def _lane_values(c: Checked) -> None:
    type = c.operand("value")
    if not (isinstance(type, ScalarType) or (isinstance(type, ShapedType) and type.rank == 1)):
        c.found.rule("TYPE/003", f"lanes exchange scalars and rank-1 vectors, not {c.spell(type)}")


@hook("kernel.subgroup.reduce", "kernel.subgroup.scan")
def _clusters(c: Checked) -> None:
    attributes = c.op.attributes
    if "cluster_stride" in attributes and "cluster_size" not in attributes:
        c.found.rule("STRUCTURE/014", "cluster_stride is given without cluster_size")
    for name in ("cluster_size", "cluster_stride"):
        if name in attributes and attributes[name] <= 0:
            c.found.rule("STRUCTURE/014", f"{name} is positive")


@hook(
    "kernel.subgroup.vote.ballot", "kernel.subgroup.active.mask", "kernel.subgroup.match.any",
    "kernel.subgroup.match.all", "kernel.workgroup.vote.count",
)  # fmt: skip
def _mask_width(c: Checked) -> None:
    element = element_of(c.result)
    if not isinstance(c.result, ScalarType) or element is None or element.bitwidth not in (32, 64):
        c.found.rule("TYPE/004", f"the result is i32 or i64, not {c.spell(c.result)}")


@hook("kernel.barrier")
def _barrier(c: Checked) -> None:
    space, scope, ordering = (c.op.attributes.get(name) for name in ("memory_space", "scope", "ordering"))
    if space == "workgroup" and (ordering != "acq_rel" or scope not in ("subgroup", "workgroup")):
        c.found.rule("STRUCTURE/014", "a barrier of workgroup memory is acq_rel, of subgroup or workgroup scope")
    if space == "global" and (ordering not in ("acquire", "release", "acq_rel") or scope != "workgroup"):
        c.found.rule(
            "STRUCTURE/014", "a barrier of global memory has workgroup scope and is acquire, release or acq_rel"
        )


# ---- buffers ----


@hook("buffer.alloca")
def _allocation(c: Checked) -> None:
    if not is_power_of_two(c.op.attributes["base_alignment"]):
        c.found.rule("STRUCTURE/014", "base_alignment is a power of two")
    if c.op.attributes["memory_space"] not in ("global", "workgroup", "private", "host", "generic"):
        c.found.rule("STRUCTURE/014", f"nothing is allocated in {c.op.attributes['memory_space']} memory")


@hook("buffer.pack")
def _ranges(c: Checked) -> None:
    alignments = c.op.attributes["minimum_alignments"]
    if not alignments:
        c.found.rule("STRUCTURE/014", "at least one range is packed")
    if not all(map(is_power_of_two, alignments)):
        c.found.rule("STRUCTURE/014", "alignments are powers of two")


@hook("buffer.assume.alignment")
def _alignment(c: Checked) -> None:
    if not is_power_of_two(c.op.attributes["minimum_alignment"]):
        c.found.rule("STRUCTURE/014", "minimum_alignment is a power of two")


@hook("buffer.assume.memory_space")
def _assumed_space(c: Checked) -> None:
    space = c.op.attributes["memory_space"]
    if space == "unknown":
        c.found.rule("STRUCTURE/014", "an unknown memory space says nothing")
    for op in c.module.walk():
        if op.name in ("buffer.assume.memory_space", "buffer.alloca") and op.results == c.op.operands:
            known = op.attributes.get("memory_space")
            if known not in (space, "generic", "unknown"):
                c.found.rule("STRUCTURE/014", f"the buffer is known to be in {known} memory, not {space}")


# ---- numbers ----


@hook("index.constant")
def _index_constant(c: Checked) -> None:
    if c.result == OFFSET and c.op.attributes["value"] < 0:
        c.found.rule("STRUCTURE/014", f"an offset is not negative, {c.op.attributes['value']} is")


@hook("index.cast")
def _index_cast(c: Checked) -> None:
    source, target = c.operand("input"), c.result
    kinds = [type.kind for type in (source, target) if isinstance(type, ScalarType)]
    if any(kind.name.startswith(("F", "BF")) for kind in kinds) or not any(kind in ADDRESS_KINDS for kind in kinds):
        said = f"{c.spell(source)} to {c.spell(target)}"
        c.found.rule("TYPE/003", f"index.cast is between integers and index or offset, not {said}")


@hook("scalar.constant")
def _scalar_constant(c: Checked) -> None:
    if c.result in (INDEX, OFFSET):
        c.found.rule("TYPE/004", f"a constant of {c.spell(c.result)} is an index.constant")


@hook("scalar.constant", "vector.constant")
def _constant_range(c: Checked) -> None:
    element, value = element_of(c.result), c.op.attributes["value"]
    if element is None or isinstance(value, float | bool):
        return
    bits = element.bitwidth
    low = 0 if bits == 1 else -(1 << (bits - 1))
    if not low <= value < 1 << bits:
        c.found.rule("STRUCTURE/014", f"{value} does not fit {c.spell(element)}")


@hook("scalar.geluf", "vector.geluf")
def _gelu(c: Checked) -> None:
    if ("scale" in c.op.attributes) != (c.op.attributes["mode"] == "logistic"):
        c.found.rule("STRUCTURE/014", "scale is given with the logistic form, and with it alone")


_WIDTH_RULES: Final[dict[str, tuple[Callable[[int, int], bool], str]]] = {
    "extf": (lambda source, target: target > source, "wider"),
    "extsi": (lambda source, target: target > source, "wider"),
    "extui": (lambda source, target: target > source, "wider"),
    "fptrunc": (lambda source, target: target < source, "narrower"),
    "trunci": (lambda source, target: target < source, "narrower"),
    "bitcast": (lambda source, target: target == source, "of the same width"),
}


@hook(*(f"{dialect}.{name}" for dialect in ("scalar", "vector") for name in _WIDTH_RULES))
def _cast_widths(c: Checked) -> None:
    rule, words = _WIDTH_RULES[c.decl.local_name]
    source, target = c.operand("input"), c.result
    if not rule(_bits(source), _bits(target)):
        c.found.rule("TYPE/004", f"the result of {c.op.name} is {words}: {c.spell(source)} to {c.spell(target)}")


@hook(
    *(
        f"vector.{name}"
        for name in ("sitofp", "uitofp", "fptosi", "fptoui", "extf", "extsi", "extui", "fptrunc", "trunci")
    )
)
def _lane_counts(c: Checked) -> None:
    source, target = c.operand("input"), c.result
    if isinstance(source, ShapedType) and isinstance(target, ShapedType) and source.dims != target.dims:
        c.found.rule("TYPE/004", f"{c.op.name} keeps the shape: {c.spell(source)} to {c.spell(target)}")


def _bits(type: Type) -> int:
    element = element_of(type)
    assert element is not None
    total = element.bitwidth
    if isinstance(type, ShapedType):
        for dim in type.dims:
            total *= getattr(dim, "size", 1)
    return total


@hook("scalar.poison", "vector.poison")
def _poison(c: Checked) -> None:
    for op in c.module.walk():
        decl = c.registry.get(op.name)
        ends = decl is not None and ("write" in decl.traits or op.name == "func.return")
        if ends and c.op.results[0] in op.operands:
            c.found.rule("TYPE/012", f"poison reaches {op.name}")


# ---- control flow ----


@hook("scf.switch", "scf.lookup", "cfg.switch")
def _ascending_keys(c: Checked) -> None:
    keys = list(c.op.attributes["case_keys"])
    if keys != sorted(set(keys)):
        c.found.rule("STRUCTURE/014", f"the keys of {c.op.name} ascend: {keys}")


@hook("scf.for")
def _unrolling(c: Checked) -> None:
    attributes = c.op.attributes
    factors = (c.decl.split_operands(c.op.operands, c.op.operand_segment_counts) or {})["unroll_factor"]
    if "unroll_schedule" in attributes and not factors and "unroll_policy" not in attributes:
        c.found.rule("STRUCTURE/014", "a schedule is given to a loop that is not unrolled")


@hook("cfg.br", "cfg.cond_br", "cfg.switch")
def _branch_arguments(c: Checked) -> None:
    given = c.op.operands if c.op.name == "cfg.br" else []
    for target in c.op.successors:
        if len(target.arg_ids) != len(given):
            c.found.rule("STRUCTURE/025", f"the block takes {len(target.arg_ids)} values, {len(given)} are given")
            continue
        values = c.module.values
        if any(values[a].type != values[b].type for a, b in zip(given, target.arg_ids, strict=True)):
            c.found.rule("STRUCTURE/026", "a value differs in type from the block's argument")


@hook("func.call")
def _pure_call(c: Checked) -> None:
    symbol = c.module.find_symbol(str(c.op.attributes["callee"]))
    pure = symbol is None or symbol.op is None or symbol.op.attributes.get("purity") == "pure"
    if c.op.attributes.get("purity") == "pure" and not pure:
        c.found.rule("STRUCTURE/034", f"@{c.op.attributes['callee']} is not pure")


@hook("func.def")
def _pure_function(c: Checked) -> None:
    if c.op.attributes.get("purity") != "pure":
        return
    for op in _inside(c.op.regions[0]):
        decl = c.registry.get(op.name)
        impure_call = op.name == "func.call" and op.attributes.get("purity") != "pure"
        if impure_call or (decl is not None and decl.traits & EFFECTS):
            Finding(c.module, c.found.diagnostics, op, c.path).rule("STRUCTURE/017", f"{op.name} in a pure function")


# ---- views ----


@hook(
    *(
        f"view.{name}"
        for name in ("load", "store", "subview", "prefetch", "atomic.reduce", "atomic.rmw", "atomic.cmpxchg")
    ),
    *(
        f"vector.{name}"
        for name in (
            "load",
            "store",
            "load.mask",
            "store.mask",
            "load.expand",
            "store.compress",
            "gather",
            "scatter",
            "gather.mask",
            "scatter.mask",
        )
    ),
)
def _index_count(c: Checked) -> None:
    name = "offsets" if c.op.name == "view.subview" else "indices"
    type = c.operand("source" if name == "offsets" else "view")
    given = len(c.op.attributes.get(f"static_{name}", ()))
    if isinstance(type, ShapedType) and given != type.rank:
        c.found.rule("STRUCTURE/001", f"{given} indices, the view has rank {type.rank}")


@hook("scalar.bitfield.extractu", "scalar.bitfield.extracts", "scalar.bitfield.insert")
def _bit_range(c: Checked) -> None:
    offset, width = c.op.attributes["offset"], c.op.attributes["width"]
    bits = _bits(c.result if c.op.name.endswith("insert") else c.operand("source"))
    if offset < 0 or width <= 0 or offset + width > bits:
        c.found.rule("STRUCTURE/014", f"bits {offset} to {offset + width} of {bits}")
