"""The typed builders: signatures, what they refuse, and the stub that editors read."""

from __future__ import annotations

import inspect
from pathlib import Path

import pytest

import loom
import loom_core.interchange.builders as builders
from loom.builder import IRBuilder, ValueRef, tied
from loom.builders import LoomBuilder, default_ops, default_types, module_builder
from loom.importers import (
    KernelArgumentSpec,
    KernelConfigArgumentSpec,
    KernelModuleSpec,
    NameAllocator,
    SourceImportSession,
    create_kernel_module,
    kernel_module_ops,
    normalize_launch_tuple,
    print_loom_module,
    sanitize_identifier,
    sanitize_symbol,
    source_key,
    source_name,
    target_preset_amdgpu_kind,
    target_preset_amdgpu_subgroup_size,
)
from loom.ir import BUFFER_TYPE, F32, I1, I32, INDEX, OFFSET, FileLocation, Module
from loom_core.interchange.dialects.amdgpu import KINDS
from loom_core.interchange.stubs import builders_stub


@pytest.fixture
def function() -> tuple[Module, LoomBuilder, dict[str, ValueRef]]:
    module, builder = module_builder()
    region = builder.region([("x", F32), ("i", INDEX), ("b", BUFFER_TYPE), ("o", OFFSET), ("c", I1), ("w", I32)])
    builder.func.def_(callee="f", body=region)
    builder.ir.set_insertion_block(region.blocks[0])
    values = {module.values[value].name: ValueRef(module, value) for value in region.blocks[0].arg_ids}
    return module, builder, values


def test_the_root_exports() -> None:
    assert len(loom.default_ops()) > 300
    assert len(default_types()) > 0
    assert loom.module_builder is module_builder
    assert loom.verify_module(Module()).diagnostics == ()


def test_signatures() -> None:
    _, builder = module_builder()
    assert list(inspect.signature(builder.index.cast).parameters) == [
        "input", "results", "name", "names", "result_names", "location_id",
    ]  # fmt: skip
    assert "results" not in inspect.signature(builder.buffer.length).parameters
    assert "results" not in inspect.signature(builder.buffer.load_i8_u).parameters
    assert "results" not in inspect.signature(builder.kernel.subgroup_vote_any).parameters
    assert "results" in inspect.signature(builder.kernel.workitem_dispatch_id).parameters
    assert list(inspect.signature(builder.kernel.return_).parameters) == ["location_id"]
    assert list(inspect.signature(builder.cfg.switch).parameters) == [
        "selector", "case_keys", "case_dests", "default_dest", "location_id",
    ]  # fmt: skip


EXPECTED_METHODS = {
    "kernel": "def_ config return_ exit assert_ barrier shuffle broadcast first ballot copy group wait descriptor decl "
    "entry_decl workitem_id workgroup_id workgroup_size workgroup_count workitem_dispatch_id subgroup_id "
    "subgroup_count "
    "subgroup_size subgroup_lane_id subgroup_reduce subgroup_scan subgroup_vote_any cluster_id cluster_workgroup_id "
    "cluster_workgroup_flat_id cluster_size cluster_count workgroup_reduce workgroup_vote_count subgroup_match_any",
    "buffer": "alloca alignment memory_space noalias same_root view pack length load_i8_u store_i8 copy fill compare",
    "index": "constant cast assume add sub mul scale div rem min max madd andi ori xori shli shrsi shrui rotli rotri "
    "ctlzi cttzi ctpopi cmp",
    "scf": "for_ if_ while_ yield_ select lookup condition switch fence",
    "cfg": "br cond_br switch",
    "func": "def_ decl call apply return_ template ukernel provider_decl",
    "view": "subview refine load store reduce rmw cmpxchg prefetch",
    "vector": "load_mask store_mask expand compress gather_mask insert bitfield_insert reduce_axes range from_elements",
    "scalar": "constant extractu extracts addf cmpf geluf assume",
    "target": "generic decl",
}


@pytest.mark.parametrize("dialect", EXPECTED_METHODS)
def test_method_names(dialect: str) -> None:
    _, builder = module_builder()
    methods = dir(getattr(builder, dialect))
    assert [name for name in EXPECTED_METHODS[dialect].split() if name not in methods] == []


def test_the_stub_is_current() -> None:
    path = Path(builders.__file__).with_suffix(".pyi")
    assert path.read_text(encoding="utf-8") == builders_stub(), "python -m loom_core.tools.docs"


def test_unknown_names_have_hints() -> None:
    _, builder = module_builder()
    with pytest.raises(AttributeError, match=r"no dialect 'indexx'; did you mean 'index'\?"):
        _ = builder.indexx  # type: ignore[attr-defined]
    with pytest.raises(AttributeError, match=r"no 'casst'; did you mean 'cast'\?"):
        _ = builder.index.casst  # type: ignore[attr-defined]


def test_refusals(function: tuple[Module, LoomBuilder, dict[str, ValueRef]]) -> None:
    _, builder, v = function
    index = builder.index
    with pytest.raises(TypeError, match=r"^index.cast: unexpected keyword argument 'inputs'; did you mean 'input'\?"):
        index.cast(inputs=v["i"], results=[OFFSET])  # type: ignore[call-arg]
    with pytest.raises(TypeError, match=r"^index.cast: missing keyword argument 'results'"):
        index.cast(input=v["i"])  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="pass only one"):
        index.cast(input=v["i"], results=[OFFSET], name="a", names=["b"])
    with pytest.raises(TypeError, match="1 results, 2 names"):
        index.cast(input=v["i"], results=[OFFSET], names=["b", "c"])
    with pytest.raises(TypeError, match="unexpected keyword argument 'results'"):
        builder.buffer.length(buffer=v["b"], results=[OFFSET])  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="a value is needed"):
        index.cast(input=3, results=[OFFSET])  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="dimension is 'w', not one of x, y, z"):
        builder.kernel.workitem_id(dimension="w", results=[INDEX])
    with pytest.raises(ValueError, match="has no flag 'quick'"):
        builder.scalar.addf(lhs=v["x"], rhs=v["x"], fastmath="quick", results=[F32])
    with pytest.raises(ValueError, match="workgroup_cluster_size_y is given, and workgroup_cluster_size_x before it"):
        sizes = {f"workgroup_{what}_{axis}": v["i"] for what in ("count", "size") for axis in "xyz"}
        builder.kernel.config(**sizes, workgroup_cluster_size_y=v["i"])
    with pytest.raises(ValueError, match=r"no operation 'index\.casts'"):
        builder.ir.build("index.casts")
    builder.ir.set_insertion_block(None)
    with pytest.raises(ValueError, match="needs an insertion block"):
        index.cast(input=v["i"], results=[OFFSET])


def test_results_and_names(function: tuple[Module, LoomBuilder, dict[str, ValueRef]]) -> None:
    module, builder, v = function
    assert builder.index.cast(input=v["i"], results=[OFFSET], name="here").name == "here"
    assert builder.buffer.store_i8(value=v["w"], target=v["b"], byte_offset=v["o"]) is None
    total, at = builder.buffer.pack(byte_lengths=[v["o"]], minimum_alignments=[8], results=[OFFSET, OFFSET])
    assert (total.type, at.type) == (OFFSET, OFFSET)
    value, valid = builder.kernel.shuffle(mode="xor", value=v["x"], offset=v["w"], width=v["w"], results=[F32, I1])
    assert (value.type, valid.type) == (F32, I1)
    assert builder.index.cmp(predicate="slt", lhs=v["i"], rhs=v["i"], results=[I1]).type == I1
    assert builder.index.cmp(predicate="slt", lhs=v["i"], rhs=v["i"]).type == I1
    assert tied(v["x"], F32) == v["x"].as_type(F32)
    assert int(v["x"]) == 0
    assert v["x"][v["i"], 0].indices == (v["i"], 0)
    assert builder.module is module


def test_loops_get_their_arguments(function: tuple[Module, LoomBuilder, dict[str, ValueRef]]) -> None:
    module, builder, v = function
    (result,) = builder.scf.for_(
        lower_bound=v["i"], upper_bound=v["i"], step=v["i"], iter_args=[v["x"]], results=[F32], names=["sum"]
    )
    loop = builder.ir.insertion_block.ops[-1]  # type: ignore[union-attr]
    body = loop.regions[0].blocks[0]
    assert [module.values[value].type for value in body.arg_ids] == [INDEX, F32]
    with builder.insertion_block(body):
        builder.scf.yield_(values=[ValueRef(module, body.arg_ids[1])])
    builder.func.return_()
    text = print_loom_module(module)
    assert f"%sum = scf.for %{body.arg_ids[0]} = [%i to %i step %i](%{body.arg_ids[1]} = %x : f32) -> (f32) {{" in text
    assert result.name == "sum"


def test_locations(function: tuple[Module, LoomBuilder, dict[str, ValueRef]]) -> None:
    module, builder, v = function
    module.sources.append("a.src")
    first, second = (module.add_location(FileLocation(0, line, 1, line, 2)) for line in (1, 2))
    assert module.add_location(FileLocation(0, 1, 1, 1, 2)) == first
    with builder.location(first):
        builder.scalar.negf(input=v["x"], results=[F32])
        builder.scalar.negf(input=v["x"], results=[F32], location_id=second)
    builder.scalar.negf(input=v["x"], results=[F32])
    assert builder.ir.insertion_block is not None
    assert [op.location_id for op in builder.ir.insertion_block.ops] == [first, second, 0]


def test_index_lists(function: tuple[Module, LoomBuilder, dict[str, ValueRef]]) -> None:
    from loom.format.text import parse_type_string

    _, builder, v = function
    view = builder.value("v", parse_type_string("view<2x4xf32>"))
    builder.view.load(view=view, indices=[3, v["i"]], results=[F32])
    op = builder.ir.insertion_block.ops[-1]  # type: ignore[union-attr]
    assert op.attributes["static_indices"] == [3, -(2**63)]
    assert op.operands == [view.id, v["i"].id]
    builder.view.load(view=view[3, v["i"]], results=[F32])  # type: ignore[call-arg,arg-type]
    again = builder.ir.insertion_block.ops[-1]  # type: ignore[union-attr]
    assert (again.attributes, again.operands) == (op.attributes, op.operands)
    with pytest.raises(TypeError, match="view has indices, and indices is given too"):
        builder.view.load(view=view[3, 0], indices=[1, 1], results=[F32])  # type: ignore[arg-type]


# ---- importers' core ----


@pytest.mark.parametrize(
    ("given", "expected"), [("%123", "_123"), ("a.b-c", "a_b_c"), ("...", "v"), ("%x", "x"), ("_x_", "x"), ("ż", "v")]
)
def test_identifiers(given: str, expected: str) -> None:
    assert sanitize_identifier(given) == expected


def test_symbols() -> None:
    assert sanitize_symbol("hip -mcpu=gfx1100") == "hip_mcpu_gfx1100"
    assert sanitize_symbol(None) == "symbol"
    assert sanitize_symbol("9x", fallback="target") == "target_9x"


def test_allocated_names() -> None:
    names = NameAllocator(["reserved"])
    assert [names.fresh("value"), names.fresh("value"), names.fresh("value"), names.fresh("reserved")] == [
        "value", "value_2", "value_3", "reserved_2",
    ]  # fmt: skip
    assert names.reserve_or_fresh("free") == "free"
    assert names.reserve_or_fresh("free") == "free_2"
    names.capture("taken")
    assert names.fresh("taken") == "taken_2"
    assert "value_3" in names.used


class Odd:
    """A foreign object that cannot be hashed and is equal to everything."""

    __hash__ = None  # type: ignore[assignment]

    def __eq__(self, other: object) -> bool:
        return True

    def get_name(self) -> str:
        return "odd.name"


def test_sources_are_known_by_identity() -> None:
    _, builder = module_builder()
    session = SourceImportSession.create(builder)
    first, second = Odd(), Odd()
    session.map_value(first, builder.value(session.result_name(first), F32), "float")
    session.map_value(second, builder.value(session.result_name(second), F32))
    session.map_value("text", builder.value("t", F32))
    assert (session.ssa(first), session.ssa(second), session.ssa("text")) == ("%odd_name", "%odd_name_2", "%t")
    assert session.mapped_value_type(first) == "float"
    assert session.mapped_value_type(second) is None
    assert source_name(first) == "odd.name"
    assert source_key(1) != source_key(True)
    with pytest.raises(KeyError):
        session.mapped(Odd())
    with pytest.raises(NotImplementedError):
        session.type("float")


def test_launch_tuples() -> None:
    assert normalize_launch_tuple((64,)) == (64, 1, 1)
    with pytest.raises(ValueError, match="unsupported launch rank"):
        normalize_launch_tuple((1, 2, 3, 4))


def test_config_and_body_have_scopes_of_their_own() -> None:
    shell = create_kernel_module(
        KernelModuleSpec(
            "reference", "k", "k", [KernelArgumentSpec(0, "n", INDEX), KernelArgumentSpec(1, "n", INDEX)],
            config_arguments=[KernelConfigArgumentSpec(0, "n")],
        )
    )  # fmt: skip
    assert shell.config_arguments_by_ordinal[0] != shell.body_arguments_by_ordinal[0]
    assert shell.config_arguments_by_ordinal[0].id in shell.config_block.arg_ids
    with shell.builder.insertion_block(shell.body_block):
        shell.builder.kernel.return_()
    text = print_loom_module(shell.module)
    assert "@k(%n: index) {\n" in text
    assert "launch(%n: index, %n_2: index) {\n" in text


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind])
def test_amdgpu_targets(kind: str) -> None:
    preset = f"hip -mcpu={kind}"
    shell = create_kernel_module(KernelModuleSpec(preset, "k", "k", []))
    symbol = "hip_mcpu_" + kind.replace("-", "_")
    assert print_loom_module(shell.module).startswith(f"amdgpu.target<{kind}> @{symbol}\n")
    assert target_preset_amdgpu_subgroup_size(preset) == (64 if kind.startswith("gfx9") else 32)


@pytest.mark.parametrize("preset", ["reference", "hip -mcpu=gfx9999", "hip -mcpu", "'unbalanced", "", "x86"])
def test_other_targets_are_generic(preset: str) -> None:
    assert target_preset_amdgpu_kind(preset) is None
    assert target_preset_amdgpu_subgroup_size(preset) is None
    assert len(kernel_module_ops(preset)) == len(default_ops())
    shell = create_kernel_module(KernelModuleSpec(preset, "k", "k", []))
    assert print_loom_module(shell.module).startswith("target.generic<reference> @")


@pytest.mark.parametrize("preset", ["--mcpu gfx950", "-mcpu gfx950", "--mcpu=gfx950", "a 'b c' -mcpu=gfx950"])
def test_spellings_of_processors(preset: str) -> None:
    assert target_preset_amdgpu_kind(preset) == "gfx950"


def test_the_generic_builder() -> None:
    ir = IRBuilder()
    ir.register_ops(default_ops())
    region = ir.region()
    ir.build("func.def", attributes={"callee": "f"}, regions=[region], func_args=[("x", F32)])
    ir.set_insertion_block(region.blocks[0])
    (x,) = region.blocks[0].arg_ids
    negated = ir.build("scalar.negf", [x], results=[F32], result_names=["y"])
    assert isinstance(negated, ValueRef)
    assert ir.build("func.return") is None
    assert "%y = scalar.negf %x : f32" in print_loom_module(ir.module)
