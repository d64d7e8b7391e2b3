"""The text form: what prints, what parses, what is refused and where."""

from __future__ import annotations

import pytest

from loom.format.text import ParseError, Parser, parse_type_string, print_type
from loom.format.text.tokenizer import Tokenizer, TokenKind
from loom.importers import print_loom_module
from loom.ir import F32, INDEX, Module, SymbolName
from loom.verify import verify_module
from loom_core.importers.kernel_module import known_ops
from loom_core.interchange.text.tokenizer import decode_string, encode_string
from loom_core.interchange.text.types import float_text
from tests.interchange.copy_kernel import build_copy_kernel
from tests.interchange.generated import OTHER_TYPES, POOL, TEXTS, modules

COPY_KERNEL = """\
target.generic<reference> @reference

kernel.def target(@reference) export("copy_64_bytes") @copy_64_bytes() {
  %wg_count_x = index.constant 1 : index
  %wg_count_y = index.constant 1 : index
  %wg_count_z = index.constant 1 : index
  %wg_size_x = index.constant 64 : index
  %wg_size_y = index.constant 1 : index
  %wg_size_z = index.constant 1 : index
  kernel.launch.config workgroups(%wg_count_x, %wg_count_y, %wg_count_z) \
workgroup_size(%wg_size_x, %wg_size_y, %wg_size_z) : index
} launch(%source: buffer, %target: buffer) {
  %workitem_index = kernel.workitem.dispatch.id<x> : index
  %byte_offset = index.cast %workitem_index : index to offset
  %value = buffer.load.i8.u %source[%byte_offset]
  buffer.store.i8 %value, %target[%byte_offset]
  kernel.return
}
"""

FUNCTION = """\
// a file
// of its own

#rows = #my.rows<stride = 4>

target.generic<reference> @reference {index_bitwidth = 32, subgroup_size = 16}

func.decl import("m", "s") @ext(%a: f32) -> (f32)

// a function
func.def public inline @f(%x: view<[%n]x4xf32, #rows>, %n: index, %b: buffer) -> (f32) where [pow2(%n), lt(0, %n)] {
  %zero = scalar.constant 0.0 : f32
  %c0 = index.constant 0 : index
  %s = scf.for %i = [%c0 to %n step %n](%acc = %zero : f32) -> (f32) {
    %y = scalar.addf<nnan|nsz> %acc, %acc : f32
    scf.yield %y : f32
  }

  // compare
  %cond = index.cmp slt, %n, %c0 : index
  %r, %q = scf.if %cond -> (f32, index) {
    scf.yield %s, %c0 : f32, index
  } else {
    scf.yield %zero, %n : f32, index
  }
  scf.if %cond {
  }
  %k = scf.lookup %c0 {
    0 = (%s),
    2 = (%r)
  } default(%zero) : f32
  scf.switch %c0 {
    case 0 {
    }
    default {

      %d = index.add %c0, %n : index
    }
  }
  %w = scf.while(%z = %zero : f32) -> (f32) {
    scf.condition %cond, %z : i1, f32
  } do(%t: f32) {
    scf.yield %t : f32
  }
  scf.while {
    scf.condition %cond : i1
  } do {
    scf.yield
  }
  %e = func.call @ext(%w) : (f32) -> (f32)
  %l = view.load<volatile> %x[%c0, 3] {cache_scope = cu} : view<[%n]x4xf32, #rows> -> f32
  cfg.cond_br %cond, ^a, ^b
^a:
  cfg.br ^c(%e: f32)

// an odd one
^b:
  cfg.switch %c0 cases [0, 2] -> [^a, ^d] default ^d
^c(%u: f32):
  func.return %u : f32
^d:
  func.return %w : f32
}
"""


def parse(text: str, filename: str = "<input>") -> Module:
    parser = Parser()
    parser.register_ops(known_ops())
    return parser.parse(text, filename)


def test_the_copy_kernel() -> None:
    module = build_copy_kernel()
    assert not verify_module(module, hooks=True).diagnostics
    assert print_loom_module(module) == COPY_KERNEL
    assert print_loom_module(parse(COPY_KERNEL)) == COPY_KERNEL


def test_an_empty_module() -> None:
    assert print_loom_module(Module()) == ""
    assert print_loom_module(parse("\n \n")) == ""


def test_a_function_of_every_construct() -> None:
    assert print_loom_module(parse(FUNCTION)) == FUNCTION


def test_layout_is_made_canonical() -> None:
    loose = """

//header

func.decl @a() // trailing

//  indented
//
func.decl   @b ( %x :f32 )
func.def @c() {


  // in front

  %x   =   scalar.constant   0x10 :i32   // behind

  func.return
  // dropped
}

"""
    assert (
        print_loom_module(parse(loose))
        == """\
// header

func.decl @a()

// trailing
//  indented
//
func.decl @b(%x: f32)

func.def @c() {

  // in front
  %x = scalar.constant 16 : i32

  // behind
  func.return
}
"""
    )


@pytest.mark.parametrize("seed", range(2))
def test_every_operation_survives_text(seed: int) -> None:
    for module in modules(seed):
        assert not verify_module(module, ops=known_ops()).diagnostics
        text = print_loom_module(module)
        assert print_loom_module(parse(text)) == text
        located = print_loom_module(module, print_locations=True)
        again = parse(located)
        assert print_loom_module(again) == text
        # What carries no location gets that of its line.
        expected = [op.location_id and module.locations.get(op.location_id) for op in module.walk()]
        found = [again.locations.get(op.location_id) for op in again.walk()]
        assert len(found) == len(expected)
        assert [type(b) for a, b in zip(expected, found, strict=True) if a] == [type(a) for a in expected if a]


@pytest.mark.parametrize("type", [*POOL, *OTHER_TYPES], ids=str)
def test_types(type: object) -> None:
    assert parse_type_string(print_type(type)) == type  # type: ignore[arg-type]


@pytest.mark.parametrize("text", TEXTS)
def test_strings(text: str) -> None:
    assert decode_string(encode_string(text)) == text


def test_string_escapes() -> None:
    assert encode_string('"\\\b\f\n\r\t\x1f/') == '"\\"\\\\\\b\\f\\n\\r\\u0009\\u001F/"'
    assert decode_string('"\\/\\t\\u00e9\\uD834\\uDD1E"') == "/\té𝄞"
    assert decode_string('"\\uD834"') is None
    assert decode_string('"\\q"') is None


@pytest.mark.parametrize(
    ("value", "text"),
    [(1.0, "1.0"), (0.1, "0.10000000000000001"), (1e300, "1.0000000000000001e+300"), (-0.0, "-0.0"),
     (float("inf"), "inf"), (float("-inf"), "-inf"), (float("nan"), "nan"), (-float("nan"), "-nan"),
     (2.0**60, "1.152921504606847e+18")],
)  # fmt: skip
def test_floats(value: float, text: str) -> None:
    assert float_text(value) == text


def test_tokens() -> None:
    tokens = Tokenizer('%a-b @f ^0 #x.y index.cast word-x 0x1F -3 1.5e3 "s" -> |', "f").tokens
    assert [(token.kind.name, token.text) for token in tokens] == [
        ("SSA", "a-b"), ("SYMBOL", "f"), ("LABEL", "0"), ("HASH", "x.y"), ("OP_NAME", "index.cast"),
        ("IDENTIFIER", "word-x"), ("INTEGER", "0x1F"), ("INTEGER", "-3"), ("FLOAT", "1.5e3"), ("STRING", '"s"'),
        ("PUNCTUATION", "->"), ("PUNCTUATION", "|"), ("END", ""),
    ]  # fmt: skip
    assert tokens[-1].kind is TokenKind.END


BODY = "func.def @f(%x: f32, %i: index, %c: i1, %b: buffer) {\n  "


@pytest.mark.parametrize(
    ("text", "code", "line", "column"),
    [
        (BODY + "%y = scalar.negf %q : f32\n}", "PARSE/001", 2, 20),
        (BODY + "%y = scalar.negf %y : f32\n}", "PARSE/001", 2, 20),
        (BODY + "%x = scalar.negf %x : f32\n}", "PARSE/002", 2, 3),
        (BODY + "%y = scalar.negf %x f32\n}", "PARSE/003", 2, 23),
        (BODY + "%y = scalar.negf %x : f33\n}", "PARSE/004", 2, 25),
        (BODY + "%y = scalar.negf %x : vector<f32x>\n}", "PARSE/007", 2, 25),
        (BODY + "%y = scalar.negf %x : vector<f32>\n}", "PARSE/007", 2, 25),
        (BODY + 'kernel.assert %c "msg\n : i1\n}', "PARSE/005", 2, 20),
        (BODY + 'kernel.assert %c "\\q" : i1\n}', "PARSE/023", 2, 20),
        (BODY + "%y = scalar.negq %x : f32\n}", "PARSE/006", 2, 8),
        (BODY + "%y = scalar.negf %x : vector<4xf32, #no>\n}", "PARSE/008", 2, 39),
        (BODY + "scalar.negf %x : f32\n}", "PARSE/009", 2, 3),
        (BODY + "%y = func.call @g(%x) : () -> (f32)\n}", "PARSE/010", 2, 27),
        (BODY + "%y = scalar.negf %x : f32 loc(here)\n}", "PARSE/011", 2, 33),
        (BODY + "%y = index.assume %i [even(%i)] : index\n}", "PARSE/013", 2, 25),
        (BODY + "%y = index.assume %i [pow2(%i, 2)] : index\n}", "PARSE/031", 2, 25),
        (BODY + "%y = index.constant 99999999999999999999 : index\n}", "PARSE/015", 2, 23),
        (BODY + "%y = kernel.workitem.id<w> : index\n}", "PARSE/017", 2, 27),
        (BODY + "%y = scalar.addf<quick> %x, %x : f32\n}", "PARSE/018", 2, 20),
        (BODY + "% = scalar.negf %x : f32\n}", "PARSE/024", 2, 3),
        (BODY + "%y ~ scalar.negf %x : f32\n}", "PARSE/025", 2, 6),
        (BODY + "%y = scf.lookup %i {1 = (%x)} default(%x, %x) : f32, f32\n}", "PARSE/030", 2, 47),
        (BODY + "cfg.br ^nowhere\n}", "PARSE/032", 2, 10),
        (BODY + "cfg.br ^a\n^a:\n  func.return\n^a:\n  func.return\n}", "PARSE/033", 5, 1),
        (BODY + "%y = index.cast %x : i32 to index\n}", "TYPE/003", 2, 24),
        ("func.def @f(%x: tile<[%n]xf32>) {\n  func.return\n}", "PARSE/022", 1, 23),
        ("target.generic<reference> @t {a = 1}", "PARSE/003", 1, 31),
        ("target.generic<reference> @t {subgroup_size = 1, subgroup_size = 2}", "PARSE/020", 1, 50),
        ("target.generic<reference> @t {subgroup_size = 1.5}", "TYPE/005", 1, 47),
        ("func.def abi(c, " + "{a = " * 12 + "1" + "}" * 12 + ") @f() {\n  func.return\n}", "PARSE/021", 1, 62),
        ("func.def @f() " + "{\n scf.if" * 3, "PARSE/003", 2, 8),
    ],
)  # fmt: skip
def test_refusals(text: str, code: str, line: int, column: int) -> None:
    with pytest.raises(ParseError) as caught:
        parse(text, "x.loom")
    error = caught.value
    assert (error.code, error.location.line, error.location.column) == (code, line, column), str(error)
    assert str(error).startswith(f"x.loom:{line}:{column}: error: ")


def test_older_forms_are_read_and_the_newest_is_printed() -> None:
    older = """\
func.def inline @f(%n: offset) {
  %b = buffer.alloca %n {base_alignment = 16, memory_space = workgroup} : buffer
  kernel.barrier {memory_space = workgroup, ordering = acq_rel, scope = workgroup}
  kernel.barrier<workgroup> {ordering = acq_rel, scope = workgroup}
  func.return
}
"""
    newest = """\
func.def inline @f(%n: offset) {
  %b = buffer.alloca<workgroup> align(16) %n : buffer
  kernel.barrier<workgroup> scope(workgroup) ordering(acq_rel)
  kernel.barrier<workgroup> scope(workgroup) ordering(acq_rel)
  func.return
}
"""
    assert print_loom_module(parse(older)) == newest
    assert print_loom_module(parse(newest)) == newest


def test_names_that_clash_are_told_apart() -> None:
    from loom.builders import module_builder

    module, builder = module_builder()
    region = builder.region([("x", F32)])
    builder.func.def_(callee="f", body=region)
    from loom.builder import ValueRef

    x = ValueRef(module, region.blocks[0].arg_ids[0])
    with builder.insertion_block(region.blocks[0]):
        y = builder.scalar.negf(input=x, results=[F32], name="x")
        builder.scalar.negf(input=y, results=[F32])
        builder.scalar.negf(input=y, results=[F32], name="2")
        builder.func.return_()
    text = print_loom_module(module)
    assert "%x$1 = scalar.negf %x : f32\n  %2 = scalar.negf %x$1" in text
    assert "%$2$3 = scalar.negf" in text
    assert print_loom_module(parse(text)) == text


def test_shadowing_in_a_nested_region() -> None:
    text = """\
func.def @f(%x: index, %c: i1) {
  scf.if %c {
    %x = index.constant 1 : index
    %y = index.add %x, %x : index
  }
  func.return
}
"""
    assert print_loom_module(parse(text)) == text


def test_symbols_of_a_module() -> None:
    module = parse(FUNCTION)
    assert [symbol.name for symbol in module.symbols] == ["reference", "ext", "f"]
    assert [symbol.flags for symbol in module.symbols] == [0, 2 | 16, 1]
    (call,) = [op for op in module.walk() if op.name == "func.call"]
    assert call.attributes == {"callee": SymbolName("ext")}
    assert module.values[module.body.ops[2].regions[0].blocks[0].arg_ids[1]].type == INDEX
