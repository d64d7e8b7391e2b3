"""An import session: values and names by foreign object, constants, records, the result."""

from __future__ import annotations

from typing import Any

import pytest

from loom.builder import ValueRef
from loom.builders import LoomBuilder, module_builder
from loom.importers import ImportOptions, LoomDiagnosticError, SourceImportSession
from loom.ir import I32, Block, Module, Type


class Session(SourceImportSession):
    def type(self, source_type: Any) -> Type:
        return I32

    def build_constant(self, value: Any, type: Type, name: str) -> ValueRef:
        return self.builder.scalar.constant(value=value, results=[type], name=name)


@pytest.fixture
def parts() -> tuple[Module, LoomBuilder, Block]:
    module, builder = module_builder()
    region = builder.region([("x", I32)])
    builder.func.def_(callee="f", body=region)
    builder.ir.set_insertion_block(region.blocks[0])
    return module, builder, region.blocks[0]


def test_a_translation(parts: tuple[Module, LoomBuilder, Block]) -> None:
    module, builder, block = parts
    session = Session.create(builder, {"x": ValueRef(module, block.arg_ids[0])}, preview_block=block)
    session.map_value(3, session.ensure_constant(3, session.type("int")))
    assert session.ensure_constant(3, I32) == session.mapped(3)
    session.build_binary(builder.scalar.addi, "x + 3", "x", 3, I32)
    session.record_converted("x + 3", "scalar.addi")
    child = session.fork()
    child.build_binary(builder.scalar.muli, "twice", "x + 3", 3, I32)
    child.record_region_candidate("a loop")
    child.record_blocked("a jump")
    session.merge_child_records(child)
    assert session.mapped_operands(["x", 3])[0].name == "x"
    assert (session.reserve_name("free"), session.fresh_name("x")) == ("free", "x_2")
    with pytest.raises(KeyError, match="twice"):
        session.mapped("twice")
    builder.func.return_()
    result = session.finish(ImportOptions(include_report=True))
    assert result.module is module
    assert result.report is not None
    assert result.report.lines == (
        "%c = scalar.constant 3 : i32",
        "%x_3 = scalar.addi %x, %c : i32",
        "%twice = scalar.muli %x_3, %c : i32",
        "func.return",
    )
    assert [record.target for record in result.report.converted] == [("scalar.addi",)]
    assert (result.report.blocked, result.report.region_candidates) == (("a jump",), ("a loop",))


def test_what_is_unsupported_ends_the_import(parts: tuple[Module, LoomBuilder, Block]) -> None:
    _, builder, _ = parts
    session = Session.create(builder)
    session.record_unsupported("goto")
    session.record_unsupported("goto")
    assert session.unsupported_counts["goto"] == 2
    with pytest.raises(LoomDiagnosticError, match="error: unsupported: goto\nerror: unsupported: goto"):
        session.finish()


def test_structure_is_verified_unless_refused(parts: tuple[Module, LoomBuilder, Block]) -> None:
    _, builder, _ = parts
    assert Session.create(builder).finish(ImportOptions(verify_structure=False)).diagnostics.diagnostics == ()
    with pytest.raises(LoomDiagnosticError, match="block is missing required terminator"):
        Session.create(builder).finish()
