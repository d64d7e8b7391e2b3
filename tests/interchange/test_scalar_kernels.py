"""Every scalar and index operation that runs, and random kernels, against workitems on their own."""

from __future__ import annotations

import random
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import loom
from loom.ir import Module
from loom_core.importers.workgroups.convert import MAPPED
from tests.interchange.test_text import parse
from tests.interchange.workitems import FLOATS, NUMPY, run_workitems

LANES = 32
INTEGERS = {"i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64}
INTEGER_BINARY = [
    "addi",
    "subi",
    "muli",
    "divsi",
    "divui",
    "remsi",
    "remui",
    "ceildivsi",
    "ceildivui",
    "floordivsi",
    "minsi",
    "maxsi",
    "minui",
    "maxui",
    "andi",
    "ori",
    "xori",
    "shli",
    "shrsi",
    "shrui",
    "rotli",
    "rotri",
]
INTEGER_UNARY = ["negi", "absi", "signi", "ctlzi", "cttzi", "ctpopi"]
INDEX_BINARY = [
    "add",
    "sub",
    "mul",
    "div",
    "rem",
    "min",
    "max",
    "andi",
    "ori",
    "xori",
    "shli",
    "shrsi",
    "shrui",
    "rotli",
    "rotri",
]
PREDICATES = ["eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge"]
FLOAT_BINARY = ["addf", "subf", "mulf", "divf", "minimumf", "maximumf", "minnumf", "maxnumf", "copysignf", "remf"]
FLOAT_UNARY = ["negf", "absf", "sqrtf", "ceilf", "floorf", "truncf", "roundevenf"]
FLOAT_PREDICATES = ["oeq", "ogt", "oge", "olt", "ole", "one", "ord", "ueq", "ugt", "uge", "ult", "ule", "une", "uno"]


def kernel(element: str, result: str, lines: list[tuple[str, str]]) -> Module:
    """A kernel that stores the value of each line (name, text) to a row of its output."""
    body = "\n".join(
        f"  {text}\n  view.store %{name}, %out[{row}, %l] : {result}, view<{len(lines)}x{LANES}x{result}>"
        for row, (name, text) in enumerate(lines)
    )
    return parse(f"""\
target.generic<reference> @t

kernel.def target(@t) export("k") @k() {{
  %one = index.constant 1 : index
  %size = index.constant {LANES} : index
  kernel.launch.config workgroups(%one, %one, %one) workgroup_size(%size, %one, %one) : index
}} launch(%a: buffer, %b: buffer, %o: buffer) {{
  %zero = index.constant 0 : offset
  %l = kernel.workitem.id<x> : index
  %va = buffer.view %a[%zero] : buffer -> view<{LANES}x{element}>
  %vb = buffer.view %b[%zero] : buffer -> view<{LANES}x{element}>
  %out = buffer.view %o[%zero] : buffer -> view<{len(lines)}x{LANES}x{result}>
  %x = view.load %va[%l] : view<{LANES}x{element}> -> {element}
  %y = view.load %vb[%l] : view<{LANES}x{element}> -> {element}
{body}
  kernel.return
}}
""")


def compare(module: Module, a: Any, b: Any, rows: int, result: Any) -> None:
    """The rows that the simulator writes, bit for bit those of the workitems on their own; NaNs are alike."""
    out, expected = np.zeros((2, rows, LANES), result)
    loom.run(module, a, b, out)
    arguments = [array.view(np.uint8).reshape(-1) for array in (a, b, expected)]
    run_workitems(module, (1, 1, 1), (LANES, 1, 1), arguments)
    np.testing.assert_array_equal(out, expected)
    if out.dtype.kind == "f":
        numbers = ~np.isnan(out)
        np.testing.assert_array_equal(np.signbit(out[numbers]), np.signbit(expected[numbers]))


def integers(dtype: Any, seed: int) -> Any:
    info = np.iinfo(dtype)
    edges = [0, 1, -1, 2, -2, 7, 31, info.max, info.min, info.max - 1, info.min + 1]
    pick = np.random.default_rng(seed)
    found = np.concatenate([edges, pick.integers(info.min, info.max, LANES - len(edges), dtype=np.int64)]).astype(dtype)
    return pick.permutation(found)


@pytest.mark.parametrize("name", INTEGERS)
def test_integers(name: str) -> None:
    dtype = INTEGERS[name]
    lines = [(f"r{op}", f"%r{op} = scalar.{op} %x, %y : {name}") for op in INTEGER_BINARY]
    lines += [(f"r{op}", f"%r{op} = scalar.{op} %x : {name}") for op in INTEGER_UNARY]
    lines.append(("rfma", f"%rfma = scalar.fmai %x, %y, %x : {name}"))
    for kind in ("extractu", "extracts"):
        lines.append((f"r{kind}", f"%r{kind} = scalar.bitfield.{kind} %x {{offset = 2, width = 5}} : {name} -> {name}"))
    for predicate in PREDICATES:
        text = f"%c{predicate} = scalar.cmpi {predicate}, %x, %y : {name}\n"
        lines.append((f"p{predicate}", f"{text}  %p{predicate} = scf.select %c{predicate}, %x, %y : {name}"))
    compare(kernel(name, name, lines), integers(dtype, 1), integers(dtype, 2), len(lines), dtype)


def test_indices() -> None:
    lines = [(f"i{op}", f"%i{op} = index.{op} %ix, %iy : index") for op in INDEX_BINARY]
    lines += [(f"i{op}", f"%i{op} = index.{op} %ix : index") for op in ("ctlzi", "cttzi", "ctpopi")]
    lines.append(("imadd", "%imadd = index.madd %ix, %iy, %ix : index"))
    for predicate in PREDICATES:
        text = f"%c{predicate} = index.cmp {predicate}, %ix, %iy : index\n"
        lines.append((f"ip{predicate}", f"{text}  %ip{predicate} = scf.select %c{predicate}, %ix, %iy : index"))
    stored = [(f"r{name}", f"{text}\n  %r{name} = index.cast %{name} : index to i64") for name, text in lines]
    head = "%ix = index.cast %x : i64 to index\n  %iy = index.cast %y : i64 to index\n  "
    stored[0] = (stored[0][0], head + stored[0][1])
    compare(kernel("i64", "i64", stored), integers(np.int64, 3), integers(np.int64, 4), len(stored), np.int64)


@pytest.mark.parametrize("source", INTEGERS)
def test_conversions_of_integers(source: str) -> None:
    wider = [name for name in INTEGERS if INTEGERS[name]().itemsize > INTEGERS[source]().itemsize]
    narrower = [name for name in INTEGERS if INTEGERS[name]().itemsize < INTEGERS[source]().itemsize]
    lines = []
    for target in wider:
        for op in ("extsi", "extui"):
            lines.append((f"{op}{target}", f"%{op}{target} = scalar.{op} %x : {source} to {target}", target))
    lines += [(f"t{target}", f"%t{target} = scalar.trunci %x : {source} to {target}", target) for target in narrower]
    lines.append(("bit", f"%bit = scalar.trunci %x : {source} to i1", "i1"))
    to_64 = [
        (
            f"w{name}",
            text + f"\n  %w{name} = {'index.cast' if target == 'i64' else 'scalar.extsi'} %{name} : {target} to i64",
        )
        for name, text, target in lines
    ]
    to_64 = [(name, text.replace("index.cast", "scalar.addi").replace(": i64 to i64", ": i64")) for name, text in to_64]
    to_64 = [
        (
            name,
            text
            if "scalar.addi" not in text
            else text.replace(f"scalar.addi %{name[1:]}", f"scalar.addi %{name[1:]}, %zero64"),
        )
        for name, text in to_64
    ]
    head = "%zero64 = scalar.constant 0 : i64\n  "
    to_64[0] = (to_64[0][0], head + to_64[0][1])
    dtype = INTEGERS[source]
    compare(kernel(source, "i64", to_64), integers(dtype, 5), integers(dtype, 6), len(to_64), np.int64)


def floats(dtype: Any, seed: int) -> Any:
    special = [0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.5, 2.5, -2.5, 0.5, 1e-7, 3e4]
    pick = np.random.default_rng(seed)
    return pick.permutation(np.concatenate([special, pick.normal(0, 100, LANES - len(special))])).astype(dtype)


@pytest.mark.parametrize("name", ["f32", "f64", "f16"])
def test_floats(name: str) -> None:
    dtype = {"f32": np.float32, "f64": np.float64, "f16": np.float16}[name]
    lines = [(f"r{op}", f"%r{op} = scalar.{op} %x, %y : {name}") for op in FLOAT_BINARY if op in FLOATS]
    lines += [(f"r{op}", f"%r{op} = scalar.{op} %x : {name}") for op in FLOAT_UNARY]
    for predicate in FLOAT_PREDICATES:
        text = f"%c{predicate} = scalar.cmpf {predicate}, %x, %y : {name}\n"
        lines.append((f"p{predicate}", f"{text}  %p{predicate} = scf.select %c{predicate}, %one_, %two_ : {name}"))
    for op in ("isnanf", "isinff", "isfinitef"):
        lines.append(
            (f"q{op}", f"%c{op} = scalar.{op} %x : {name}\n  %q{op} = scf.select %c{op}, %one_, %two_ : {name}")
        )
    head = f"%one_ = scalar.constant 1.0 : {name}\n  %two_ = scalar.constant 2.0 : {name}\n  "
    lines[0] = (lines[0][0], head + lines[0][1])
    compare(kernel(name, name, lines), floats(dtype, 7), floats(dtype, 8), len(lines), dtype)


FUNCTIONS = {
    "expf": np.exp, "exp2f": np.exp2, "expm1f": np.expm1, "logf": np.log, "log2f": np.log2, "log10f": np.log10,
    "log1pf": np.log1p, "rsqrtf": lambda x: 1 / np.sqrt(x), "cbrtf": np.cbrt, "sinf": np.sin, "cosf": np.cos,
    "tanf": np.tan, "asinf": lambda x: np.arcsin(x / 4), "atanf": np.arctan, "sinhf": np.sinh, "coshf": np.cosh,
    "tanhf": np.tanh, "asinhf": np.arcsinh, "logisticf": lambda x: 1 / (1 + np.exp(-x)),
    "siluf": lambda x: x / (1 + np.exp(-x)), "softplusf": lambda x: np.log1p(np.exp(x)),
}  # fmt: skip


def test_functions() -> None:
    lines = [(f"r{op}", f"%r{op} = scalar.{op} {'%q' if op == 'asinf' else '%x'} : f32") for op in FUNCTIONS]
    head = "%quarter = scalar.constant 0.25 : f32\n  %q = scalar.mulf %x, %quarter : f32\n  "
    lines[0] = (lines[0][0], head + lines[0][1])
    x = np.random.default_rng(9).uniform(0.1, 4, LANES).astype(np.float32)
    out = np.zeros((len(lines), LANES), np.float32)
    loom.run(kernel("f32", "f32", lines), x, x, out)
    for row, (name, function) in zip(out, FUNCTIONS.items(), strict=True):
        expected = function(x.astype(np.float64))
        assert np.all(np.abs(row - expected) <= 4 * np.spacing(np.abs(expected).astype(np.float32))), name


def test_conversions_of_floats() -> None:
    lines = [
        ("s", "%i = scalar.fptosi %x : f32 to i32\n  %s = scalar.sitofp %i : i32 to f32"),
        ("u", "%u = scalar.uitofp %i : i32 to f32"),
        ("h", "%half = scalar.fptrunc %x : f32 to f16\n  %h = scalar.extf %half : f16 to f32"),
        ("g", "%brain = scalar.fptrunc %x : f32 to bf16\n  %g = scalar.extf %brain : bf16 to f32"),
        ("same", "%bits = scalar.bitcast %x : f32 to i32\n  %flipped = scalar.xori %bits, %bits : i32\n"
              "  %or = scalar.ori %flipped, %bits : i32\n  %same = scalar.bitcast %or : i32 to f32"),
        ("c", "%c = scalar.clampf<number> %x, %s, %y : f32"),
        ("m", "%m = scalar.fmaf %x, %y, %x : f32"),
    ]  # fmt: skip
    x = np.random.default_rng(10).uniform(-1000, 1000, LANES).astype(np.float32)
    y = np.float32(1000) + x
    out = np.zeros((len(lines), LANES), np.float32)
    loom.run(kernel("f32", "f32", lines), x, y, out)
    whole = x.astype(np.int32)
    exact = (x.astype(np.longdouble) * y + x).astype(np.float32)
    rows = [
        whole, whole.astype(np.uint32), x.astype(np.float16), x.astype(ml_dtypes.bfloat16), x,
        np.minimum(np.maximum(x, whole.astype(np.float32)), y), exact,
    ]  # fmt: skip
    for got, expected in zip(out, rows, strict=True):
        np.testing.assert_array_equal(got, expected.astype(np.float32))


# ---- random kernels ----


class RandomKernel:
    """Text of a kernel of nested control flow over i32 values, some of which differ among workitems."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.count = 0
        self.lines: list[str] = []

    def name(self) -> str:
        self.count += 1
        return f"%v{self.count}"

    def emit(self, indent: str, text: str) -> None:
        self.lines.append(indent + text)

    def body(self, indent: str, values: list[str], depth: int) -> list[str]:
        """Statements; the values that can be used after them."""
        values = list(values)
        for _ in range(self.random.randint(2, 4)):
            getattr(
                self,
                self.random.choice(
                    ["binary", "binary", "store", "load", *(["branch", "loop", "turn"] if depth else [])]
                ),
            )(indent, values, depth)
        return values

    def pick(self, values: list[str]) -> str:
        return self.random.choice(values)

    def binary(self, indent: str, values: list[str], depth: int) -> None:
        op = self.random.choice(
            ["addi", "subi", "muli", "andi", "ori", "xori", "minsi", "maxui", "shrui", "divsi", "remui"]
        )
        name = self.name()
        self.emit(indent, f"{name} = scalar.{op} {self.pick(values)}, {self.pick(values)} : i32")
        values.append(name)

    def place(self, indent: str, values: list[str]) -> str:
        """An index within the output, the workitem's own or, for reading, that of another array."""
        masked, index = self.name(), self.name()
        self.emit(indent, f"{masked} = scalar.andi {self.pick(values)}, %c31 : i32")
        self.emit(indent, f"{index} = index.cast {masked} : i32 to index")
        return index

    def load(self, indent: str, values: list[str], depth: int) -> None:
        at, name = self.place(indent, values), self.name()
        self.emit(indent, f"{name} = view.load %va[{at}] : view<32xi32> -> i32")
        values.append(name)

    def store(self, indent: str, values: list[str], depth: int) -> None:
        self.emit(indent, f"view.store {self.pick(values)}, %out[{self.random.randrange(4)}, %l] : i32, view<4x32xi32>")

    def condition(self, indent: str, values: list[str]) -> str:
        name = self.name()
        predicate = self.random.choice(PREDICATES)
        self.emit(indent, f"{name} = scalar.cmpi {predicate}, {self.pick(values)}, {self.pick(values)} : i32")
        return name

    def branch(self, indent: str, values: list[str], depth: int) -> None:
        condition, result = self.condition(indent, values), self.name()
        self.emit(indent, f"{result} = scf.if {condition} -> (i32) {{")
        inner = self.body(indent + "  ", values, depth - 1)
        self.emit(indent, f"  scf.yield {self.pick(inner)} : i32")
        self.emit(indent, "} else {")
        inner = self.body(indent + "  ", values, depth - 1)
        self.emit(indent, f"  scf.yield {self.pick(inner)} : i32")
        self.emit(indent, "}")
        values.append(result)

    def loop(self, indent: str, values: list[str], depth: int) -> None:
        bits, upper, result, i, carried, number = (self.name() for _ in range(6))
        self.emit(indent, f"{bits} = scalar.andi {self.pick(values)}, %c3 : i32")
        self.emit(indent, f"{upper} = index.cast {bits} : i32 to index")
        self.emit(
            indent,
            f"{result} = scf.for {i} = [%i0 to {upper} step %i1]({carried} = {self.pick(values)} : i32) -> (i32) {{",
        )
        self.emit(indent, f"  {number} = index.cast {i} : index to i32")
        inner = self.body(indent + "  ", [*values, carried, number], depth - 1)
        self.emit(indent, f"  scf.yield {self.pick(inner)} : i32")
        self.emit(indent, "}")
        values.append(result)

    def turn(self, indent: str, values: list[str], depth: int) -> None:
        """A while loop that counts down."""
        start, result, at, going, handed, less = (self.name() for _ in range(6))
        self.emit(indent, f"{start} = scalar.andi {self.pick(values)}, %c3 : i32")
        self.emit(indent, f"{result} = scf.while({at} = {start} : i32) -> (i32) {{")
        self.emit(indent, f"  {going} = scalar.cmpi sgt, {at}, %c0 : i32")
        self.emit(indent, f"  scf.condition {going}, {at} : i1, i32")
        self.emit(indent, f"}} do({handed}: i32) {{")
        self.body(indent + "  ", [*values, handed], depth - 1)
        self.emit(indent, f"  {less} = scalar.subi {handed}, %c1 : i32")
        self.emit(indent, f"  scf.yield {less} : i32")
        self.emit(indent, "}")
        values.append(result)

    def text(self) -> str:
        values = self.body("  ", ["%x", "%y", "%li", "%u", "%c1", "%c3"], 3)
        self.emit("  ", f"view.store {values[-1]}, %out[0, %l] : i32, view<4x32xi32>")
        return "\n".join(self.lines)


@pytest.mark.parametrize("seed", range(8))
def test_random_kernels(seed: int) -> None:
    head = "\n".join(
        ["%li = index.cast %l : index to i32", "  %i0 = index.constant 0 : index", "  %i1 = index.constant 1 : index",
         "  %u = view.load %va[3] : view<32xi32> -> i32"]
        + [f"  %c{n} = scalar.constant {n} : i32" for n in (0, 1, 3, 31)]
    )  # fmt: skip
    body = RandomKernel(seed).text().strip()
    lines = [("c0", head), ("c1", ""), ("c3", ""), ("c31", body)]
    module = kernel("i32", "i32", lines)
    compare(module, integers(np.int32, seed), integers(np.int32, seed + 100), 4, np.int32)


def test_no_mapped_operation_is_untested() -> None:
    """Arithmetic that runs is named above; what other tests run is theirs."""
    named = {
        *(f"scalar.{op}" for op in [*INTEGER_BINARY, *INTEGER_UNARY, *FLOAT_BINARY, *FLOAT_UNARY, *FUNCTIONS]),
        *(f"index.{op}" for op in INDEX_BINARY),
    }
    others = {
        f"scalar.{op}"
        for op in [
            "constant",
            "assume",
            "cmpi",
            "cmpf",
            "fmai",
            "fmaf",
            "clampf",
            "isnanf",
            "isinff",
            "isfinitef",
            "sitofp",
            "uitofp",
            "fptosi",
            "fptoui",
            "extf",
            "fptrunc",
            "extsi",
            "extui",
            "trunci",
            "bitcast",
            "bitfield.extractu",
            "bitfield.extracts",
            "signf",
            "powf",
            "atan2f",
            "acosf",
            "acoshf",
            "atanhf",
            "erff",
            "erfcf",
            "roundf",
            "geluf",
            "sinturnsf",
            "costurnsf",
            "bitfield.insert",
            "poison",
        ]
    } | {f"index.{op}" for op in ["constant", "cast", "assume", "scale", "madd", "ctlzi", "cttzi", "ctpopi", "cmp"]}
    arithmetic = {name for name in MAPPED if name.startswith(("scalar.", "index."))}
    assert arithmetic == named | others
    assert set(NUMPY)
