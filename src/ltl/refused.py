"""Functions of Triton that this version of LTL does not have, and what to do without them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from ltl.errors import NotYet, fail

_ATOMICS: Final = "let each program write its own elements, and combine them in a second kernel"
_POINTERS: Final = "build tiles of pointers: ptr + rows[:, None] * stride + columns[None, :]"
_RANDOM: Final = "make the numbers on the host and pass them in"
_ORDER: Final = "compute it with NumPy on the host"
_SCANS: Final = "keep a running value in a loop"

REFUSED: Final[dict[str, str]] = {
    **{f"atomic_{op}": _ATOMICS for op in (
        "add", "and", "cas", "load", "max", "min", "or", "poll", "store", "xchg", "xor")},
    **dict.fromkeys(
        ("make_block_ptr", "advance", "make_tensor_descriptor", "load_tensor_descriptor", "store_tensor_descriptor"),
        _POINTERS,
    ),
    **dict.fromkeys(
        ("philox", "philox_impl", "rand", "rand4x", "randint", "randint4x", "randn", "randn4x",
         "pair_uniform_to_normal", "uint_to_uniform_float"),
        _RANDOM,
    ),
    **dict.fromkeys(("sort", "topk", "bitonic_merge", "histogram", "gather", "flip"), _ORDER),
    **dict.fromkeys(("associative_scan", "cumsum", "cumprod", "reduce", "argmax", "argmin"), _SCANS),
    **dict.fromkeys(("cat", "join", "split", "interleave"), "store the parts through two pointers"),
    "dot_scaled": "scale the operands, then use dot",
    "device_print": "store the values, or use static_print for what is known when the kernel is compiled",
    "inline_asm_elementwise": "Loom has no assembly of a GPU; write it with the language's functions",
    "map_elementwise": "call the function on the tiles",
    "umulhi": "convert to int64, multiply and shift",
    "swizzle2d": "compute the program's place with // and %",
    "condition": "use for over range(...)",
}  # fmt: skip


def refused_function(name: str) -> Callable[..., Any]:
    """A function that says why `ltl.<name>` cannot be used."""

    def refused(*args: Any, **kwargs: Any) -> Any:
        fail(NotYet, what=f"ltl.{name}", instead=REFUSED[name])

    refused.__name__ = refused.__qualname__ = name
    refused.__doc__ = f"Not available: {REFUSED[name]}."
    return refused
