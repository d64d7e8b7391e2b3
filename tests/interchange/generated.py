"""Random modules that hold any operation of the dialect tables, valid by what the tables declare."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from loom_core.importers.kernel_module import KernelArgumentSpec, KernelModuleSpec, create_kernel_module, known_ops
from loom_core.interchange.attributes import Encoding, Predicate, PredicateArg
from loom_core.interchange.build_plan import build_plan
from loom_core.interchange.builder import ValueRef
from loom_core.interchange.builders import LoomBuilder, method_names, module_builder
from loom_core.interchange.declaration import OpDeclaration, TypedAttribute
from loom_core.interchange.locations import FileLocation, FusedLocation, OpaqueLocation, TaggedLocation
from loom_core.interchange.model import Block, Module
from loom_core.interchange.types import (
    BUFFER_TYPE,
    F32,
    F64,
    I1,
    I8,
    I32,
    I64,
    INDEX,
    NONE_TYPE,
    OFFSET,
    SCALARS,
    DialectType,
    DynamicDim,
    EncodingRole,
    EncodingType,
    FunctionType,
    ParameterizedType,
    PoolType,
    RegisterType,
    ShapedType,
    StaticDim,
    StaticEncoding,
    StorageSpace,
    StorageType,
    Type,
    TypeKind,
    element_of,
)  # fmt: skip

OPS = known_ops()
BY_NAME = {op.name: op for op in OPS}
SYMBOLIC = [op for op in OPS if op.symbol is not None]
STRUCTURED = {"scf.for", "scf.if", "scf.while", "scf.condition", "scf.switch", "scf.lookup", "scf.yield"}
PLAIN = [
    op
    for op in OPS
    if op.symbol is None and op.name not in STRUCTURED and not op.terminator and not op.successor_fields
]


def shaped(kind: TypeKind, element: Type, *sizes: int) -> ShapedType:
    return ShapedType(kind, element, tuple(map(StaticDim, sizes)))  # type: ignore[arg-type]


POOL: list[Type] = [
    *SCALARS.values(),
    *(shaped(TypeKind.VECTOR, scalar, 4) for scalar in SCALARS.values()),
    *(shaped(TypeKind.VIEW, scalar, 4) for scalar in SCALARS.values()),
    *(shaped(TypeKind.VIEW, scalar, 2, 8) for scalar in SCALARS.values()),
    BUFFER_TYPE,
    DialectType("kernel.async.token"),
    DialectType("kernel.async.group"),
    DialectType("kernel.tensor.lds.descriptor"),
]
OTHER_TYPES: list[Type] = [
    shaped(TypeKind.TENSOR, F32, 3, 0),
    shaped(TypeKind.TILE, I8),
    EncodingType(),
    EncodingType(EncodingRole.LAYOUT),
    PoolType(StaticDim(64)),
    StorageType(StorageSpace.WORKGROUP),
    FunctionType((F32, I1), (I64,)),
    FunctionType((), ()),
    RegisterType(7, 9, 2, None, F64),
    RegisterType(1, 0),
    DialectType("my.opaque", (I32, BUFFER_TYPE)),
    ParameterizedType("my.parameterized", (("width", 4), ("name", "x"))),
    NONE_TYPE,
]
TEXTS = ["", "plain", 'quote " and \\', "line\nbreak", "bell\x07", "żółć", "𝔘", "tab\t"]


@dataclass
class Generator:
    """Makes values and attributes from one source of randomness."""

    random: random.Random

    def types(self, op: OpDeclaration) -> dict[str, Type]:
        """Types of the operands and results of an operation, such that its relations hold."""
        slots = {**op.operand_fields, **op.result_fields}
        for _ in range(2000):
            chosen: dict[str, Type] = {}
            element = self.random.choice(list(SCALARS.values()))
            for relation, names in op.same:
                if relation == "SameType":
                    allowed = [t for t in POOL if all(slots[name].constraint.accepts(t) for name in names)]
                    near = [t for t in allowed if element_of(t) == element] or allowed
                    type = self.random.choice(near)
                    chosen.update(dict.fromkeys(names, type))
            for name, slot in slots.items():
                if name not in chosen:
                    allowed = [t for t in POOL if slot.constraint.accepts(t)]
                    near = [t for t in allowed if element_of(t) == element] or allowed
                    chosen[name] = self.random.choice(near)
            groups = [[chosen[name] for name in names] for relation, names in op.same if relation != "SameType"]
            if all(len({element_of(type) for type in group}) == 1 for group in groups):
                return chosen
        raise AssertionError(f"no types for {op.name}")

    def attribute(self, op: OpDeclaration, name: str, field: TypedAttribute, values: Sequence[ValueRef]) -> object:
        pick = self.random
        kinds: dict[str, Callable[[], object]] = {
            "i64": lambda: pick.choice([1, 2, 8, 64]),
            "f64": lambda: pick.choice([0.5, 1.0, -0.0, 1e300, float("inf")]),
            "string": lambda: pick.choice(TEXTS),
            "bool": lambda: pick.random() < 0.5,
            "word": lambda: pick.choice(["device", "regular"]),
            "i64s": lambda: sorted(pick.sample(range(16), pick.randrange(4))),
            "symbol": lambda: "reference",
            "dict": lambda: {"a": 1, "b": {"c": [1, 2], "d": "x"}, "e": b"\x00\xff", "f": 2.5, "g": True},
            "predicates": lambda: self.predicates(values),
            "enum": lambda: pick.choice([keyword for keyword in field.keywords if keyword]),
            "flags": lambda: "|".join(pick.sample(field.keywords, pick.randint(1, min(3, len(field.keywords))))),
            "literal": lambda: 1,
        }
        return kinds[field.attribute_kind]()

    def predicates(self, values: Sequence[ValueRef]) -> list[Predicate]:
        known = [PredicateArg("value", int(value)) for value in values]
        number = PredicateArg("const", self.random.choice([0, 1, -5, 64]))
        first = self.random.choice([*known, number])
        return [
            Predicate("ge", (first, number)),
            Predicate("pow2", (first,)),
            Predicate("range", (first, number, number)),
        ]

    def comments(self) -> tuple[str, ...]:
        return tuple(
            self.random.choice(["a remark", "", "  indented", "% @ ^ { }"]) for _ in range(self.random.randrange(3))
        )


def literal_for(type: Type, pick: random.Random) -> object:
    element = element_of(type)
    assert element is not None
    if element.kind.name.startswith(("F", "BF")):
        return pick.choice([0.0, -1.5, 1e-30, 3.0, float("nan"), float("-inf")])
    return pick.choice([0, 1])


def build_plain(g: Generator, builder: LoomBuilder, op: OpDeclaration, inside: Callable[[Type], ValueRef]) -> None:
    """Build one operation without control flow through its typed method."""
    types = g.types(op)
    plan = build_plan(op)
    given: dict[str, object] = {}
    values: list[ValueRef] = []
    for name, slot in op.operand_fields.items():
        if name in plan.index_lists:
            dynamic = inside(INDEX)
            given[name] = [g.random.choice([0, 3, dynamic]) for _ in range(view_rank(types))]
        elif slot.kind == "variadic":
            given[name] = [inside(types[name]) for _ in range(g.random.randint(1, 3))]
            values += given[name]  # type: ignore[arg-type]
        elif slot.kind == "one" or g.random.random() < 0.5:
            given[name] = inside(types[name])
            values.append(given[name])  # type: ignore[arg-type]
    for name, field in op.attribute_fields.items():
        if name in plan.parameters and (field.required or g.random.random() < 0.5):
            given[name] = g.attribute(op, name, field, values)
    given.update(adjustments(g, builder, op, types, values, inside))
    if "results" in plan.parameters and "results" not in given:
        count = len(values) if op.variadic_results else 1
        given["results"] = [types[name] for name in op.result_fields for _ in range(count)]
    method = next(
        name for name, candidate in method_names([o for o in OPS if o.dialect == op.dialect]).items() if candidate is op
    )
    getattr(getattr(builder, op.dialect), method)(**given)


def view_rank(types: dict[str, Type]) -> int:
    return next(
        (type.rank for type in types.values() if isinstance(type, ShapedType) and type.type_kind is TypeKind.VIEW), 1
    )


def adjustments(
    g: Generator,
    builder: LoomBuilder,
    op: OpDeclaration,
    types: dict[str, Type],
    values: list[ValueRef],
    inside: Callable[[Type], ValueRef],
) -> dict[str, object]:
    """What the rules of single operations ask for."""
    match op.name:
        case "index.constant" | "scalar.constant" | "vector.constant":
            return {"value": literal_for(types["result"], g.random)}
        case "buffer.pack":
            return {"minimum_alignments": [16] * len(values), "results": [OFFSET] * (len(values) + 1)}
        case "vector.deinterleave":
            return {"results": [types["source"], types["source"]]}
        case "kernel.launch":
            return {"kernel": "declared"}
        case "kernel.dispatch":
            return {"entry": "entered"}
        case "func.call":
            return {"callee": "helper", "operands": [inside(F32)], "results": [F32], "purity": None}
        case "kernel.launch.serial" | "kernel.launch.concurrent":
            region = builder.region()
            with builder.insertion_block(region.blocks[0]):
                builder.kernel.launch_yield()
            return {"body": region}
        case "index.assume" | "scalar.assume" | "buffer.assume.alignment" | "buffer.assume.noalias":
            return {"results": [value.type for value in values]}
    return {}


def operation_module(op: OpDeclaration, seed: int, *, in_kernel: bool = False) -> Module:
    """A module with an operation, in a kernel where it must stand in one or `in_kernel`, else in a function."""
    g = Generator(random.Random(seed))
    if in_kernel or "kernel.def" in op.ancestors or "kernel.def" in op.parents:
        spec = KernelModuleSpec("reference", "k", "k", [KernelArgumentSpec(0, "source")])
        shell = create_kernel_module(spec)
        module, builder, body, end = shell.module, shell.builder, shell.body_block, shell.builder.kernel.return_
    else:
        module, builder = module_builder(ops=OPS)
        builder.target.generic(kind="reference", symbol="reference")
        region = builder.region()
        builder.func.def_(callee="f", body=region)
        body, end = region.blocks[0], builder.func.return_
    builder.kernel.decl(callee="declared", args=[("x", F32)])
    builder.kernel.entry_decl(callee="entered")
    builder.func.decl(callee="helper", args=[("x", F32)], results=[F32])
    if op.symbol is None and op in PLAIN:
        with builder.insertion_block(body):

            def argument(type: Type) -> ValueRef:
                value = builder.value(g.random.choice(["", f"a{len(module.values)}"]), type)
                body.arg_ids.append(int(value))
                return value

            build_plain(g, builder, op, argument)
    with builder.insertion_block(body):
        end()
    decorate(g, module)
    return module


def decorate(g: Generator, module: Module) -> None:
    """Comments, blank lines, locations and encodings here and there."""
    module.sources += ["a.src", "b"]
    first = module.add_location(FileLocation(0, 1, 2, 3, 4))
    second = module.add_location(FileLocation(1, 7, 1, 7, 1))
    fused = module.add_location(FusedLocation((first, second)))
    opaque = module.add_location(OpaqueLocation(1, b"data"))
    tagged = module.add_location(TaggedLocation(0x8001, fused, b"\x01\x02"))
    module.file_header = g.comments()
    module.add_encoding(Encoding("my.rows", {"stride": 4, "tag": "x"}, "rows"))  # type: ignore[arg-type]
    for op in module.walk():
        op.comments = g.comments()
        op.leading_blank_line = g.random.random() < 0.3
        op.location_id = g.random.choice([0, first, fused, opaque, tagged])


def signature_module(seed: int) -> Module:
    """Functions whose signatures hold every kind of type, and every operation that defines a symbol."""
    g = Generator(random.Random(seed))
    module, builder = module_builder(ops=OPS)
    builder.target.generic(kind="reference", symbol="reference", subgroup_size=32, abi="c", export_symbol="x")
    builder.target.decl(symbol="elsewhere")
    encoding = StaticEncoding(module.add_encoding(Encoding("my.rows", {"stride": 4, "tag": "x"}, "rows")))  # type: ignore[arg-type]
    size = builder.value("n", INDEX)
    dynamic = ShapedType(TypeKind.VIEW, F32, (DynamicDim(int(size)), StaticDim(8)), encoding)
    kinds = g.random.sample(OTHER_TYPES, 5)
    arguments = [builder.value(f"t{i}", type) for i, type in enumerate(kinds)]
    view = builder.value("view", dynamic)
    facts = [Predicate("pow2", (PredicateArg("value", int(size)),))]
    region = builder.region()
    builder.func.def_(
        callee="f", visibility=g.random.choice([None, "public"]), cc="device", inline_policy="inline", abi="c",
        abi_attrs={"k": 1}, export_symbol="f", args=[view, size, *arguments], predicates=facts, body=region,
        results=[F32, arguments[0].as_type(kinds[0])], names=["r", ""], retain="retain",
    )  # fmt: skip
    with builder.insertion_block(region.blocks[0]):
        value = builder.scalar.constant(value=1.0, results=[F32])
        builder.func.return_(operands=[value, arguments[0]])
    builder.func.decl(callee="g", import_module="m", import_symbol="s", args=[("x", I32)], results=[I32])
    builder.kernel.decl(callee="k", target="elsewhere", workloads=[("n", INDEX)], args=[("b", BUFFER_TYPE)])
    builder.kernel.entry_decl(callee="e", args=[("b", BUFFER_TYPE)])
    implementing = builder.region([("x", F32)])
    builder.func.template(
        implements="contract", callee="t", priority=2, requires={"w": 1}, body=implementing, results=[F32]
    )
    with builder.insertion_block(implementing.blocks[0]):
        builder.func.return_(operands=[ValueRef(module, implementing.blocks[0].arg_ids[0])])
    builder.func.ukernel(implements="contract", callee="u", args=[("x", F32)], results=[F32])
    builder.func.provider_decl(implements="contract", callee="p", args=[("x", F32)])
    builder.amdgpu.target(kind="gfx1100", symbol="gpu")
    decorate(g, module)
    return module


def control_module(seed: int) -> Module:
    """Nested structured control flow and branches between blocks, of random shape."""
    g = Generator(random.Random(seed))
    module, builder = module_builder(ops=OPS)
    region = builder.region([("n", INDEX), ("flag", I1)])
    builder.func.def_(callee="f", body=region, results=[F32])
    n, flag = (ValueRef(module, value) for value in region.blocks[0].arg_ids)
    with builder.insertion_block(region.blocks[0]):
        start = builder.scalar.constant(value=0.5, results=[F32], name="start")
        nested = nest(g, builder, n, flag, start, 3)
        if g.random.random() < 0.5:
            left, right, join = Block("left"), Block(""), Block("join", builder.ir.arguments([("x", F32)]))
            region.blocks += [left, right, join] if g.random.random() < 0.5 else [join, right, left]
            if g.random.random() < 0.5:
                builder.cfg.cond_br(condition=flag, true_dest=left, false_dest=right)
            else:
                builder.cfg.switch(selector=n, case_keys=[1, 4], case_dests=[left, right], default_dest=right)
            with builder.insertion_block(left):
                builder.cfg.br(dest=join, args=[nested])
            with builder.insertion_block(right):
                builder.cfg.br(dest=join, args=[start])
            with builder.insertion_block(join):
                builder.func.return_(operands=[ValueRef(module, join.arg_ids[0])])
        else:
            builder.func.return_(operands=[nested])
    decorate(g, module)
    # A comment on an implied terminator would keep it in the text; most have none.
    for op in module.walk():
        if op.name == "scf.yield" and not op.operands:
            op.comments, op.leading_blank_line = (), False
    return module


def nest(g: Generator, builder: LoomBuilder, n: ValueRef, flag: ValueRef, value: ValueRef, depth: int) -> ValueRef:
    """A random nest of control flow that results in an f32."""
    name = g.random.choice(["", "value", "same"])
    if depth == 0:
        return builder.scalar.addf(lhs=value, rhs=value, fastmath="nnan|fast", results=[F32], name=name)
    kind = g.random.choice(["for", "if", "while", "switch", "lookup", "effects"])
    module = builder.module
    if kind == "for":
        region = builder.region([("i", INDEX), (g.random.choice(["acc", ""]), F32)])
        with builder.insertion_block(region.blocks[0]):
            inner = nest(g, builder, n, flag, ValueRef(module, region.blocks[0].arg_ids[1]), depth - 1)
            builder.scf.yield_(values=[inner])
        extra = g.random.choice([{}, {"unroll_factor": n, "unroll_schedule": "linear"}, {"unroll_policy": "unroll"}])
        (result,) = builder.scf.for_(
            lower_bound=n, upper_bound=n, step=n, iter_args=[value], results=[F32], body=region, names=[name], **extra
        )
        return result
    if kind == "while":
        before, after = builder.region([("b", F32)]), builder.region([("", F32)])
        with builder.insertion_block(before.blocks[0]):
            builder.scf.condition(condition=flag, forwarded=[ValueRef(module, before.blocks[0].arg_ids[0])])
        with builder.insertion_block(after.blocks[0]):
            inner = nest(g, builder, n, flag, ValueRef(module, after.blocks[0].arg_ids[0]), depth - 1)
            builder.scf.yield_(values=[inner])
        (result,) = builder.scf.while_(iter_args=[value], results=[F32], before=before, after=after, names=[name])
        return result
    if kind == "lookup":
        inner = nest(g, builder, n, flag, value, depth - 1)
        keys = g.random.choice([[], [0], [-3, 7]])
        (result,) = builder.scf.lookup(selector=n, case_keys=keys, values=[inner] * (len(keys) + 1), results=[F32])
        return result
    regions = []
    for _ in range({"if": 2, "switch": 3, "effects": 2}[kind]):
        region = builder.region()
        with builder.insertion_block(region.blocks[0]):
            inner = nest(g, builder, n, flag, value, depth - 1)
            builder.scf.yield_(values=[] if kind == "effects" else [inner])
        regions.append(region)
    if kind == "effects":
        builder.scf.if_(condition=flag, then_region=regions[0], else_region=g.random.choice([None, regions[1]]))
        return value
    if kind == "if":
        (result,) = builder.scf.if_(
            condition=flag, results=[F32], then_region=regions[0], else_region=regions[1], names=[name]
        )
    else:
        (result,) = builder.scf.switch(
            selector=n, case_keys=[0, 9], results=[F32], default_region=regions[0], case_regions=regions[1:]
        )
    return result


def modules(seed: int) -> list[Module]:
    """A module of every kind."""
    return [*(operation_module(op, seed) for op in PLAIN), signature_module(seed), control_module(seed)]
