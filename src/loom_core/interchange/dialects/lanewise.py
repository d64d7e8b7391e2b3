"""Operations on every element: rows that exist for scalars and, lane by lane, for vectors."""

from collections.abc import Iterator
from typing import Any, Final

from loom_core.interchange.declaration import OpDeclaration
from loom_core.interchange.dialects.enums import FASTMATH, FLOAT_PREDICATES, INTEGER_PREDICATES, OVERFLOW
from loom_core.interchange.form import op

INTEGER_BINARY: Final = {
    "divsi": "Signed quotient, towards zero.",
    "divui": "Unsigned quotient.",
    "remsi": "Remainder of `divsi`.",
    "remui": "Remainder of `divui`.",
    "ceildivsi": "Signed quotient, rounded up.",
    "ceildivui": "Unsigned quotient, rounded up.",
    "floordivsi": "Signed quotient, rounded down.",
    "minsi": "Lesser, signed.",
    "maxsi": "Greater, signed.",
    "minui": "Lesser, unsigned.",
    "maxui": "Greater, unsigned.",
    "andi": "Bitwise and.",
    "ori": "Bitwise or.",
    "xori": "Bitwise exclusive or.",
    "shrsi": "Shift right, the sign kept.",
    "shrui": "Shift right, zeros filled in.",
    "rotli": "Rotate left.",
    "rotri": "Rotate right.",
}
OVERFLOWING: Final = {"addi": "Sum.", "subi": "Difference.", "muli": "Product.", "shli": "Shift left."}
FLOAT_BINARY: Final = {
    "addf": "Sum.",
    "subf": "Difference.",
    "mulf": "Product.",
    "divf": "Quotient.",
    "remf": "Remainder, with the dividend's sign.",
    "minimumf": "Lesser; NaN if one is.",
    "maximumf": "Greater; NaN if one is.",
    "minnumf": "Lesser; the number if one is NaN.",
    "maxnumf": "Greater; the number if one is NaN.",
    "powf": "Power.",
    "atan2f": "Angle of the point (rhs, lhs).",
}
INTEGER_UNARY: Final = {
    "negi": "Negation.",
    "absi": "Magnitude.",
    "ctlzi": "Leading zero bits.",
    "cttzi": "Trailing zero bits.",
    "ctpopi": "One bits.",
    "signi": "-1, 0 or 1.",
}
FLOAT_UNARY: Final = {
    "negf": "Negation.",
    "absf": "Magnitude.",
    "expf": "e to the power.",
    "exp2f": "2 to the power.",
    "expm1f": "e to the power, less 1.",
    "logf": "Natural logarithm.",
    "log2f": "Logarithm of base 2.",
    "log10f": "Logarithm of base 10.",
    "log1pf": "Natural logarithm of 1 and the value.",
    "sqrtf": "Square root.",
    "rsqrtf": "Reciprocal of the square root.",
    "cbrtf": "Cube root.",
    "sinf": "Sine.",
    "cosf": "Cosine.",
    "sinturnsf": "Sine of so many turns.",
    "costurnsf": "Cosine of so many turns.",
    "tanf": "Tangent.",
    "asinf": "Inverse sine.",
    "acosf": "Inverse cosine.",
    "atanf": "Inverse tangent.",
    "sinhf": "Hyperbolic sine.",
    "coshf": "Hyperbolic cosine.",
    "tanhf": "Hyperbolic tangent.",
    "asinhf": "Inverse hyperbolic sine.",
    "acoshf": "Inverse hyperbolic cosine.",
    "atanhf": "Inverse hyperbolic tangent.",
    "erff": "Error function.",
    "erfcf": "1 less the error function.",
    "logisticf": "1 / (1 + e^-x).",
    "siluf": "x * logistic(x).",
    "softplusf": "log(1 + e^x).",
    "ceilf": "Rounded up.",
    "floorf": "Rounded down.",
    "roundf": "Rounded to the nearest, halves away from zero.",
    "roundevenf": "Rounded to the nearest, halves to even.",
    "truncf": "Rounded towards zero.",
}
TESTS: Final = {"isnanf": "Whether NaN.", "isinff": "Whether infinite.", "isfinitef": "Whether finite."}
CASTS: Final = {
    "sitofp": ("integer", "float", "Signed integer to float."),
    "uitofp": ("integer", "float", "Unsigned integer to float."),
    "fptosi": ("float", "integer", "Float to signed integer, towards zero."),
    "fptoui": ("float", "integer", "Float to unsigned integer, towards zero."),
    "extf": ("float", "float", "To a wider float."),
    "fptrunc": ("float", "float", "To a narrower float."),
    "extsi": ("integer", "integer", "To a wider integer, the sign kept."),
    "extui": ("integer", "integer", "To a wider integer, zeros filled in."),
    "trunci": ("integer", "integer", "To a narrower integer."),
    "bitcast": ("number", "number", "The same bits as another type."),
}
_BINARY: Final = "%lhs, %rhs : T(result)"
_UNARY: Final = "%input : T(result)"


def rows(dialect: str, kind: str) -> Iterator[OpDeclaration]:
    """The rows of a dialect; `kind` is "" for scalars, "v." for vectors."""

    def row(name: str, form: str, doc: str, **fields: Any) -> OpDeclaration:
        return op(f"{dialect}.{name}", form, traits="pure", doc=doc, **fields)

    def binary(name: str, of: str, doc: str, flags: str = "") -> OpDeclaration:
        attribute = flags.partition("?")[0]
        form = f"[[<${attribute}>]] {_BINARY}" if flags else _BINARY
        return row(name, form, doc, operands=f"lhs:{kind}{of} rhs:{kind}{of}", attributes=flags,
                   results=f"result:{kind}{of}", same="lhs rhs result")  # fmt: skip

    def unary(name: str, of: str, doc: str, flags: str = "") -> OpDeclaration:
        form = f"[[<$fastmath>]] {_UNARY}" if flags else _UNARY
        return row(name, form, doc, operands=f"input:{kind}{of}", attributes=flags, results=f"result:{kind}{of}",
                   same="input result")  # fmt: skip

    def ternary(name: str, of: str, doc: str, flags: str) -> OpDeclaration:
        attribute = flags.partition("?")[0]
        return row(name, f"[[<${attribute}>]] %a, %b, %c : T(result)", doc,
                   operands=f"a:{kind}{of} b:{kind}{of} c:{kind}{of}", attributes=flags, results=f"result:{kind}{of}",
                   same="a b c result")  # fmt: skip

    overflow, fastmath = f"overflow?:{OVERFLOW}", f"fastmath?:{FASTMATH}"
    spelled = "T(lhs) -> T(result)" if kind else "T(lhs)"
    tested = "T(input) -> T(result)" if kind else "T(input)"
    truth = f"result:{kind}bool" if kind else "result~i1"
    yield from (binary(name, "integer", doc, overflow) for name, doc in OVERFLOWING.items())
    yield from (binary(name, "integer", doc) for name, doc in INTEGER_BINARY.items())
    yield from (binary(name, "float", doc, fastmath) for name, doc in FLOAT_BINARY.items())
    yield binary("copysignf", "float", "The magnitude of one, the sign of the other.")
    yield from (unary(name, "integer", doc) for name, doc in INTEGER_UNARY.items())
    yield from (unary(name, "float", doc, fastmath) for name, doc in FLOAT_UNARY.items())
    yield unary("signf", "float", "-1, 0 or 1 with the sign kept.")
    yield row("geluf", "<$mode[[, $fastmath]]> %input{attrs} : T(result)", "Gaussian error linear unit.",
              operands=f"input:{kind}float", attributes=f"mode:erf|tanh|logistic {fastmath} scale?:f64",
              results=f"result:{kind}float", same="input result")  # fmt: skip
    yield ternary("fmai", "integer", "a * b + c.", overflow)
    yield ternary("fmaf", "float", "a * b + c, rounded once.", fastmath)
    yield row("clampf", "<$mode[[, $fastmath]]> %value, %lower, %upper : T(result)", "A value between two bounds.",
              operands=f"value:{kind}float lower:{kind}float upper:{kind}float",
              attributes=f"mode:ordered|number|ieee {fastmath}", results=f"result:{kind}float",
              same="value lower upper result")  # fmt: skip
    for name, (source, target, doc) in CASTS.items():
        yield row(name, "%input : T(input) to T(result)", doc, operands=f"input:{kind}{source}",
                  results=f"result:{kind}{target}")  # fmt: skip
    yield row("cmpi", f"$predicate, %lhs, %rhs : {spelled}", "Comparison of integers.",
              operands=f"lhs:{kind}integer rhs:{kind}integer", attributes=f"predicate:{INTEGER_PREDICATES}",
              results=truth, same="lhs rhs")  # fmt: skip
    yield row("cmpf", f"[[<$fastmath>]] $predicate, %lhs, %rhs : {spelled}", "Comparison of floats.",
              operands=f"lhs:{kind}float rhs:{kind}float", attributes=f"{fastmath} predicate:{FLOAT_PREDICATES}",
              results=truth, same="lhs rhs")  # fmt: skip
    for name, doc in TESTS.items():
        yield row(name, f"%input : {tested}", doc, operands=f"input:{kind}float", results=truth)
    for name, doc in {"extractu": "zero", "extracts": "sign"}.items():
        yield row(f"bitfield.{name}", "%source{attrs} : T(source) -> T(result)", f"A field of bits, {doc} extended.",
                  operands=f"source:{kind}integer", attributes="offset:i64 width:i64",
                  results=f"result:{kind}integer")  # fmt: skip
    yield row("bitfield.insert", "%field, %base{attrs} : T(field), T(base) -> T(result)", "Bits put into a field.",
              operands=f"field:{kind}integer base:{kind}integer", attributes="offset:i64 width:i64",
              results=f"result:{kind}integer", same="base result", builder_name="bitfield_insert")  # fmt: skip
