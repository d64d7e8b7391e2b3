"""Declared rules and hook rules, each by a text that breaks it."""

from __future__ import annotations

import pytest

from loom.builder import ValueRef
from loom.builders import module_builder
from loom.diagnostics import DiagnosticEngine, LoomDiagnosticError
from loom.format.text import Parser
from loom.ir import F32, I1, INDEX, Block, Module, Operation, Region, Symbol, SymbolKind, Value
from loom.verify import ModuleVerifier, VerifierRegistry, type_satisfies_constraint, verify_module
from loom_core.importers.kernel_module import known_ops
from tests.interchange.copy_kernel import build_copy_kernel


def parse(text: str) -> Module:
    parser = Parser()
    parser.register_ops(known_ops())
    return parser.parse(text, "x.loom")


def in_function(body: str, signature: str = "%x: f32, %i: index, %c: i1, %b: buffer, %o: offset, %w: i32") -> str:
    return f"func.def @f({signature}) {{\n{body}\n  func.return\n}}\n"


def in_kernel(body: str) -> str:
    config = "\n".join(f"  %{axis} = index.constant 1 : index" for axis in "abc")
    return f"""\
target.generic<reference> @t

kernel.def target(@t) export("k") @k() {{
{config}
  kernel.launch.config workgroups(%a, %b, %c) workgroup_size(%a, %b, %c) : index
}} launch(%b: buffer, %p: i1, %i: index, %v: view<4xf32>) {{
{body}
  kernel.return
}}
"""


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (in_function("  func.call @nowhere() : () -> ()"), "unresolved symbol reference"),
        (
            in_function("  func.call @t() : () -> ()") + "\ntarget.decl @t\n",
            "symbol reference target has wrong interface",
        ),
        ("target.decl @t\n\ntarget.decl @t\n", "duplicate symbol name"),
        (in_function("  %y = kernel.workitem.id<x> : index"), "op is missing required ancestor"),
        (in_function("  scf.if %c {\n    scf.condition %c : i1\n  }"), "region terminated by wrong op"),
        (in_kernel("  kernel.launch.serial {\n  }"), "op has forbidden ancestor"),
        ("%x = index.constant 1 : index\n", "op is not permitted at module scope"),
        (in_function("  target.decl @t"), "symbol op is nested"),
        (in_function("  %y = scalar.addi %x, %x : f32"), "operand type constraint violated"),
        (in_function("  %y = scalar.fptosi %x : f32 to f32"), "result type constraint violated"),
        (in_function("  %y = scalar.addf %x, %x : f64"), "SameType constraint violated"),
        (in_function("  %y = view.refine %v : view<4xf32> -> view<4xi32>", "%v: view<4xf32>"), "SameElementType"),
        (in_function("  %y = index.constant 1.0 : index"), "AttrMatchesElementType"),
        (in_function("  %y = scalar.constant 1 : f32"), "AttrMatchesElementType"),
        (in_function("  func.return"), "terminator is not last in block"),
        ("func.def @f() {\n}\n", "block is missing required terminator"),
        ("func.def @f(%c: i1) {\n  scf.condition %c : i1\n}\n", "region terminated by wrong op"),
        (in_function("  kernel.launch.serial {\n    kernel.exit %c : i1\n  }"), "op has wrong parent"),
        ("func.def @f() {\n^a:\n  cfg.br ^a\n}\n", "successor targets the function entry block"),
        (in_function("  %y = scf.if %c -> (f32) {\n    scf.yield %x : f32\n  }"), "missing required else region"),
        (
            in_function("  %y = scf.if %c -> (f32) {\n    scf.yield %x : f32\n  } else {\n    scf.yield\n  }"),
            "exit has the wrong number of values",
        ),
        ("func.def @f(%x: f32) -> (i32) {\n  func.return %x : f32\n}\n", "exit value has the wrong type"),
        ("func.def @f(%x: f32) -> (f32, f32) {\n  func.return %x : f32\n}\n", "exit has the wrong number of values"),
        (
            in_function("  scf.for %j = [%i to %i step %i](%a = %x : f32) {\n  }"),
            "IterArgsMatchResults constraint violated",
        ),
        (
            in_function("  %y = scf.while(%a = %x : f32) -> (f32) {\n    scf.condition %c : i1\n  } do {\n"
                        "    scf.yield %x : f32\n  }"),
            "loop carries the wrong number of values",
        ),
        (in_function("  scf.if %c {\n    cfg.br ^b\n  ^b:\n    scf.yield\n  }"), "single-block region"),
        (in_function("  %y = buffer.pack [align(4) %o] : offset", "%o: offset"), "SameCount constraint violated"),
    ],
)  # fmt: skip
def test_declared_rules(text: str, message: str) -> None:
    found = verify_module(parse(text), ops=known_ops())
    assert message in found.diagnostics[0].message, [str(d) for d in found.diagnostics]
    assert found.diagnostics[0].source.startswith("module ")
    assert "x.loom:" in str(found.diagnostics[0])


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (in_kernel("").replace('export("k")', "linkage(dso_local)"), "STRUCTURE/014"),
        (in_kernel("").replace("  %c = index.constant 1", "  %z = index.constant 1 : index\n"
         "  %l = buffer.alloca<private> align(4) %o : buffer\n  %c = index.constant 1").replace(
         "@k() {", "@k(%o: offset, %q: buffer) {\n  %g = buffer.load.i8.u %q[%o]"), "STRUCTURE/052"),
        (in_kernel("  %t = kernel.workitem.id<x> : index\n  %q = index.cmp slt, %t, %i : index\n  scf.if %q {\n"
                   "    kernel.barrier<workgroup> scope(workgroup) ordering(acq_rel)\n  }"), "STRUCTURE/038"),
        (in_kernel("  kernel.barrier<workgroup> scope(workgroup) ordering(acquire)"), "STRUCTURE/014"),
        (in_kernel("  kernel.barrier<global> scope(subgroup) ordering(acquire)"), "STRUCTURE/014"),
        (in_kernel("  %m = kernel.subgroup.vote.ballot %p : i1 -> i8"), "TYPE/004"),
        (in_kernel("  %m = kernel.subgroup.reduce<addi> %i {cluster_stride = 2} : index"), "STRUCTURE/014"),
        (in_kernel("  %m = kernel.subgroup.broadcast.first %b : buffer"), "TYPE/003"),
        (in_kernel("  %m = view.load %v[%i, 0] : view<4xf32> -> f32"), "STRUCTURE/001"),
        (in_function("  %y = buffer.alloca<private> align(3) %o : buffer"), "STRUCTURE/014"),
        (in_function("  %y = buffer.alloca<constant> align(4) %o : buffer"), "STRUCTURE/014"),
        (in_function("  %y, %z = buffer.pack [align(3) %o] : offset, offset"), "STRUCTURE/014"),
        (in_function("  %y = buffer.assume.alignment %b {minimum_alignment = 0} : buffer"), "STRUCTURE/014"),
        (in_function("  %y = buffer.assume.memory_space<unknown> %b : buffer"), "STRUCTURE/014"),
        (in_function("  %y = buffer.assume.memory_space<global> %b : buffer\n"
                     "  %z = buffer.assume.memory_space<host> %y : buffer"), "STRUCTURE/014"),
        (in_function("  %y = index.constant -1 : offset"), "STRUCTURE/014"),
        (in_function("  %y = index.cast %x : f32 to index"), "TYPE/003"),
        (in_function("  %y = index.cast %w : i32 to i64"), "TYPE/003"),
        (in_function("  %y = scalar.constant 1 : index"), "TYPE/004"),
        (in_function("  %y = scalar.constant 256 : i8"), "STRUCTURE/014"),
        (in_function("  %y = scalar.constant 2 : i1"), "STRUCTURE/014"),
        (in_function("  %y = scalar.extf %x : f32 to f16"), "TYPE/004"),
        (in_function("  %y = scalar.bitcast %x : f32 to i64"), "TYPE/004"),
        (in_function("  %y = scalar.geluf<erf> %x {scale = 1.0} : f32"), "STRUCTURE/014"),
        (in_function("  %y = scalar.geluf<logistic> %x : f32"), "STRUCTURE/014"),
        (in_function("  %y = scalar.bitfield.extractu %w {offset = 30, width = 3} : i32 -> i32"), "STRUCTURE/014"),
        (in_function("  %y = scalar.poison : i32\n  buffer.store.i8 %y, %b[%o]"), "TYPE/012"),
        (in_function("  scf.switch %i {\n    case 2 {\n    }\n    case 1 {\n    }\n    default {\n    }\n  }"),
         "STRUCTURE/014"),
        (in_function("  scf.for %j = [%i to %i step %i] schedule(linear) {\n  }"), "STRUCTURE/014"),
        (in_function("  cfg.br ^a\n^a(%y: f32):"), "STRUCTURE/025"),
        (in_function("  cfg.br ^a(%w: i32)\n^a(%y: f32):"), "STRUCTURE/026"),
        (in_function("  func.call pure @g() : () -> ()") + "\nfunc.decl @g()\n", "STRUCTURE/034"),
        (in_function("  buffer.store.i8 %w, %b[%o]").replace("func.def ", "func.def pure "), "STRUCTURE/017"),
        (in_function("  cfg.cond_br %c, ^a, ^b\n^a:\n  %y = scalar.negf %x : f32\n  cfg.br ^b\n^b:\n"
                     "  %z = scalar.negf %y : f32"), "DOMINANCE/001"),
    ],
)  # fmt: skip
def test_hook_rules(text: str, code: str) -> None:
    module = parse(text)
    assert not verify_module(module, ops=known_ops()).diagnostics
    found = verify_module(module, ops=known_ops(), hooks=True).diagnostics
    assert found
    assert found[0].error_def is not None
    assert found[0].error_def.name == code, [str(d) for d in found]


@pytest.mark.parametrize(
    "text",
    [
        in_kernel(
            "  %q = index.cmp slt, %i, %i : index\n  scf.if %q {\n"
            "    kernel.barrier<workgroup> scope(workgroup) ordering(acq_rel)\n  }"
        ),
        in_function("  %y = kernel.workitem.id<x> : index").replace("func.def ", "func.def inline "),
    ],
)
def test_what_the_rules_allow(text: str) -> None:
    found = verify_module(parse(text), ops=known_ops(), hooks=True)
    assert not found.diagnostics


def test_hand_made_faults() -> None:
    module = build_copy_kernel()
    load = next(op for op in module.walk() if op.name == "buffer.load.i8.u")
    load.operands[0] = 999
    (found,) = verify_module(module).diagnostics
    assert found.message == "operation references missing value"
    assert found.source == "module operation[1] kernel.def.regions[1].blocks[0].ops[2] buffer.load.i8.u"
    load.operands = []
    assert [d.message for d in verify_module(module).diagnostics] == ["wrong operand count"]
    load.operands, load.name = [0, 0], "buffer.lode"
    assert [d.message for d in verify_module(module).diagnostics] == ["unknown op"]


def test_ownership_of_symbols() -> None:
    module = Module()
    module.symbols.append(Symbol("", SymbolKind.RECORD))
    module.add_top_level_operation(Operation(name="target.decl", attributes={"symbol": "t"}))
    messages = [d.message for d in verify_module(module).diagnostics]
    assert messages == [
        "symbol has empty name", "symbol op is not owned by the module", "symbol op is not in the symbol table",
    ]  # fmt: skip


def test_missing_attributes_and_counts() -> None:
    module = Module()
    value = module.add_value(Value("x", INDEX))
    op = Operation(name="index.constant", results=[value, value])
    region = Region([Block("", [], [op, Operation(name="func.return")])])
    function = Operation(name="func.def", attributes={"callee": "f"}, regions=[region])
    module.add_symbol(Symbol("f", SymbolKind.FUNC_DEF, 0, function))
    assert [d.message for d in verify_module(module).diagnostics] == [
        "wrong result count",
        "missing required attribute",
    ]
    function.regions = []
    assert [d.message for d in verify_module(module).diagnostics] == ["wrong region count"]


def test_diagnostics_go_to_the_given_engine() -> None:
    engine = DiagnosticEngine()
    engine.warning("early")
    module = build_copy_kernel()
    assert verify_module(module, diagnostics=engine) is engine
    engine.raise_if_errors()
    module.symbols[0].name = ""
    ModuleVerifier(module, engine, VerifierRegistry.from_ops(known_ops())).verify()
    with pytest.raises(LoomDiagnosticError) as caught:
        engine.raise_if_errors()
    assert [str(d.severity) for d in caught.value.diagnostics][:2] == ["warning", "error"]
    assert str(caught.value).startswith("warning: early\nerror: symbol has empty name")


def test_exits_carry_their_error() -> None:
    module = parse("func.def @f(%x: f32) -> (i32) {\n  func.return %x : f32\n}\n")
    (found,) = verify_module(module).diagnostics
    assert found.error_id == "ERR_TYPE_009"
    assert "error ERR_TYPE_009: exit value has the wrong type" in str(found)


def test_constraints_by_name() -> None:
    assert type_satisfies_constraint(I1, "integer")
    assert not type_satisfies_constraint(F32, "address")


def test_tied_results() -> None:
    module, builder = module_builder()
    region = builder.region([("x", F32)])
    builder.func.def_(callee="f", body=region)
    (x,) = (builder.module.values[value] for value in region.blocks[0].arg_ids)
    assert x.is_block_argument
    from loom.builder import ValueRef

    ref = ValueRef(module, region.blocks[0].arg_ids[0])
    with builder.insertion_block(region.blocks[0]):
        builder.scalar.negf(input=ref, results=[ref.as_type(F32)])
        builder.scalar.negf(input=ref, results=[F32])
        builder.func.return_()
    found = verify_module(module, hooks=True).diagnostics
    assert [d.error_def and d.error_def.name for d in found] == ["DOMINANCE/002"]


def test_regions_that_nest_too_deeply() -> None:
    module, builder = module_builder()
    region = builder.region([("c", I1)])
    builder.func.def_(callee="f", body=region)
    condition = ValueRef(module, region.blocks[0].arg_ids[0])
    block = region.blocks[0]
    for _ in range(80):
        inner = builder.region()
        with builder.insertion_block(block):
            builder.scf.if_(condition=condition, then_region=inner)
        block.ops.append(Operation(name="func.return" if block is region.blocks[0] else "scf.yield"))
        block = inner.blocks[0]
    block.ops.append(Operation(name="scf.yield"))
    assert [d.message for d in verify_module(module).diagnostics] == ["regions nest too deeply"]
