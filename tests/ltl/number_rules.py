"""Small computations on which Triton on a GPU, Triton's interpreter and Loom may disagree.

`python number_rules.py cuda` prints what the installed Triton gives on a GPU as JSON, `TRITON_INTERPRET=1 python
number_rules.py cpu` what its interpreter gives. number_rules.json holds both, and what Loom gives. Results are bits, as
hexadecimal numbers, so that NaN and -0 can be told apart.
"""

from __future__ import annotations

import json
import sys
import tempfile
from dataclasses import dataclass
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

INF, NAN = float("inf"), float("nan")


@dataclass(frozen=True)
class Rule:
    """`code` computes from tiles x, y, z of `dtype`, whose elements are `operands`; the result is stored as `out`.

    `why`: what Loom does, for the reader. `bits`: the rule is about the bits of a NaN; otherwise NaN is NaN. `host`:
    the interpreter leaves it to the processor that it runs on, so that it may give something else elsewhere.
    """

    name: str
    dtype: str
    out: str
    operands: tuple[tuple[float, ...], ...]
    code: str
    why: str = ""
    bits: bool = False
    host: bool = False


_BF16, _F16, _F32, _I32 = "bfloat16", "float16", "float32", "int32"
_DOT = (
    "tl.sum(tl.sum(tl.dot(tl.zeros((16, 16), tl.float32) + x, tl.zeros((16, 16), tl.float32) + y), axis=0), axis=0)"
    " / 4096 + x * 0"
)
RULES = (
    Rule("bfloat16 `x * y + z`", _BF16, _BF16, ((1.0078125, 3.0), (1.0078125, 0.333984375), (-1.015625, -1.0)),
         "x * y + z", "rounds after each operation"),
    Rule("bfloat16 `x + y - x`", _BF16, _BF16, ((256.0, 1.0), (1.0, 0.00390625)), "x + y - x",
         "rounds after each operation"),
    Rule("float16 `x * y + z`", _F16, _F16, ((1.0009765625,), (1.0009765625,), (-1.001953125,)), "x * y + z",
         "rounds after each operation"),
    Rule("float16 `x + y`", _F16, _F16, ((65504.0, 65504.0), (16.0, 15.0)), "x + y"),
    Rule("float32 `x * y + z`", _F32, _F32, ((1.0000001, 3.0), (1.0000001, 0.33333334), (-1.0000002, -1.0)),
         "x * y + z", "`fma` only where the kernel says `tl.fma`"),
    Rule("float32 `x / y`", _F32, _F32, ((1.0, 5.0, 2.0, 7.0), (3.0, 49.0, 41.0, 55.0)), "x / y",
         "correctly rounded"),
    Rule("float32 `tl.sqrt(x)`", _F32, _F32, ((2.0, 5.0, 7.0, 11.0),), "tl.sqrt(x)", "correctly rounded"),
    Rule("float32 `tl.exp2(x)`", _F32, _F32, ((-130.0, -140.0),), "tl.exp2(x)", "subnormal numbers are kept"),
    Rule("float32 `x * y`", _F32, _F32, ((1e-30, 1e-38), (1e-10, 0.25)), "x * y"),
    Rule("float32 `tl.dot(x, y)`, of equal elements", _F32, _F32, ((1.000244140625,), (1.000244140625,)), _DOT,
         "ieee by default; the GPU rounds operands to tf32"),
    Rule("the NaN of `x - x`", _F32, _F32, ((INF,),), "x - x", "one NaN", bits=True),
    Rule("float32 `tl.maximum(x, y)`", _F32, _F32, ((NAN, 1.0), (1.0, NAN)), "tl.maximum(x, y)"),
    Rule("float32 `tl.maximum(x, y, tl.PropagateNan.ALL)`", _F32, _F32, ((NAN, 1.0), (1.0, NAN)),
         "tl.maximum(x, y, tl.PropagateNan.ALL)"),
    Rule("float32 `tl.max(x)`", _F32, _F32, ((1.0, NAN, 3.0, 2.0),), "tl.max(x, axis=0) + tl.zeros((N,), tl.float32)"),
    Rule("float32 `tl.argmax(x)`", _F32, _I32, ((1.0, NAN, 3.0, 2.0),),
         "tl.argmax(x, axis=0) + tl.arange(0, N) * 0", "passes NaN over; the GPU's threads disagree"),
    Rule("float32 to bfloat16", _F32, _BF16, ((1.00390625, 1.01171875, 3.4e38, NAN),), "x.to(tl.bfloat16)",
         "to nearest even; the interpreter truncates"),
    Rule("float32 to float8e4nv", _F32, "float8e4nv", ((1.0625, 449.0, 1000.0, INF, -INF, NAN, 0.001, -0.0),),
         "x.to(tl.float8e4nv)", "to nearest even, saturating"),
    Rule("float32 to float8e5", _F32, "float8e5", ((1.125, 1.375, 60000.0, 1e6, INF, -INF, NAN, 1e-5),),
         "x.to(tl.float8e5)", "to nearest even, saturating"),
    Rule("float8e4nv to float32", "float8e4nv", _F32, ((0.001953125, 448.0, NAN, -0.0),), "x.to(tl.float32)",
         "exact; NaN is NaN"),
    Rule("float32 to int32", _F32, _I32, ((2.9, -2.9, 3e9, -3e9, INF, NAN),), "x.to(tl.int32)",
         "truncates and saturates; NaN gives 0", host=True),
    Rule("float32 to int8", _F32, "int8", ((300.0, -300.0, 127.9, NAN),), "x.to(tl.int8)",
         "saturates at the ends of its own type", host=True),
    Rule("float32 to uint32", _F32, "uint32", ((-1.0, 5e9, NAN, 3e9),), "x.to(tl.uint32)",
         "saturates; NaN gives 0", host=True),
    Rule("float32 to uint8", _F32, "uint8", ((-1.0, 300.0, NAN, 255.9),), "x.to(tl.uint8)",
         "saturates at the ends of its own type", host=True),
    Rule("float32 to int64", _F32, "int64", ((1e19, -1e19, INF, NAN),), "x.to(tl.int64)",
         "saturates; NaN gives 0", host=True),
    Rule("int32 `x // y`", _I32, _I32, ((7, -7, 7, -7, -2147483648), (2, 2, -2, -2, -1)), "x // y"),
    Rule("int32 `x % y`", _I32, _I32, ((7, -7, 7, -7, -2147483648), (2, 2, -2, -2, -1)), "x % y"),
    Rule("int32 `x // 0`", _I32, _I32, ((7, -7, 0), (0, 0, 0)), "x // y", "all ones"),
    Rule("int32 `x % 0`", _I32, _I32, ((7, -7, 0), (0, 0, 0)), "x % y", "x"),
    Rule("int32 `x << y`", _I32, _I32, ((1, 1, 3, -1), (31, 32, 33, 40)), "x << y"),
    Rule("int32 `x >> y`", _I32, _I32, ((-8, -8, 8, 8), (1, 32, 32, 40)), "x >> y"),
    Rule("int32 `x / y`", _I32, _F32, ((1, 16777217, -7, 0), (3, 1, 2, 0)), "x / y"),
)  # fmt: skip

_KERNEL = """
@triton.jit
def rule_{number}(x_ptr, y_ptr, z_ptr, out_ptr, N: tl.constexpr):
    at = tl.arange(0, N)
    x, y, z = tl.load(x_ptr + at), tl.load(y_ptr + at), tl.load(z_ptr + at)
    tl.store(out_ptr + at, {code})
"""
SOURCE = "import triton\nimport triton.language as tl\n" + "".join(
    _KERNEL.format(number=number, code=rule.code) for number, rule in enumerate(RULES)
)


def results(module: dict[str, Any], device: str) -> dict[str, list[str]]:
    """What the kernels of `SOURCE`, in the namespace of a module, give for torch tensors on a device."""
    import torch

    types = {"float8e4nv": torch.float8_e4m3fn, "float8e5": torch.float8_e5m2}
    bits = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
    found = {}
    for number, rule in enumerate(RULES):
        dtype, out_dtype = (types.get(name) or getattr(torch, name) for name in (rule.dtype, rule.out))
        count = len(rule.operands[0])
        size = 1 << (count - 1).bit_length()
        full = [values + values[:1] * (size - count) for values in rule.operands]
        full += [(0,) * size] * (3 - len(full))
        tensors = [torch.tensor(values, dtype=dtype, device=device) for values in full]
        out = torch.zeros(size, dtype=out_dtype, device=device)
        module[f"rule_{number}"][(1,)](*tensors, out, N=size)
        width = out.element_size()
        values = out.view(bits[width]).tolist()[:count]
        found[rule.name] = [f"{value & (1 << 8 * width) - 1:0{2 * width}x}" for value in values]
    return found


def main(device: str) -> None:
    """Print the results of the installed Triton on a device: "cuda", or "cpu" under TRITON_INTERPRET=1."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rules.py"
        path.write_text(SOURCE)
        spec = spec_from_file_location("rules", path)
        assert spec is not None and spec.loader is not None
        module = module_from_spec(spec)
        spec.loader.exec_module(module)
        print(json.dumps(results(vars(module), device)))


if __name__ == "__main__":
    main(sys.argv[1])
