"""The layers: what each is in torch.nn, its parameters, what it makes of a shape, and how many weights it has.

A new layer is a new row of LAYERS.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from tensorloom.arguments import Issue, Signature, signature
from tensorloom.diagnostics import BadNumberValue, EmptyResult, WrongShape, WrongType
from tensorloom.dims import (
    Dim,
    Shape,
    Size,
    add,
    as_size,
    floor_divide,
    may_equal,
    merge,
    multiply,
    product,
    shape_text,
    subtract,
    symbol,
)
from tensorloom.values import UNKNOWN, LayerValue, Tensor

Arguments = dict[str, Any]
Rule = Callable[[str, Arguments, Tensor], Tensor]
Count = Callable[[Arguments], int]

BATCH, TIME, HEIGHT, WIDTH = symbol("B"), symbol("T"), symbol("H"), symbol("W")


_POSITIVE: Final = frozenset({
    "in_features", "out_features", "in_channels", "out_channels", "kernel_size", "num_features", "num_embeddings",
    "embedding_dim", "input_size", "hidden_size", "num_layers", "embed_dim", "num_heads", "times", "groups",
})  # fmt: skip
"""Parameters that are sizes or counts."""


@dataclass(frozen=True, slots=True)
class LayerSpec:
    """`torch`: the class in torch.nn, or a name of the prelude (`own`). `emitted`: defaults that torch does not have.

    `call`: how it is called: `one` (a tensor in, a tensor out), `attention`, `recurrent` (a pair with the state),
    `parameter` (it is a tensor), `sequence` and `repeat` (made of other layers).
    """

    name: str
    torch: str
    signature: Signature
    rule: Rule
    count: Count
    call: str = "one"
    own: bool = False
    emitted: tuple[tuple[str, str], ...] = ()


# ---- what a layer asks of its input ----------------------------------------------------------------------------------


def refine(x: Tensor, shape: Shape, dtype: str = "float") -> None:
    """Give a tensor of unknown shape, or unknown kind of elements, what its first layer asks for."""
    x.dtype = x.dtype or dtype
    if x.shape is None:
        x.shape = shape
        if x.flattened is not None:
            refine(x.flattened, shape, dtype)


def need_rank(what: str, x: Tensor, ranks: tuple[int, ...], form: str) -> Shape:
    assert x.shape is not None
    if len(x.shape) not in ranks:
        raise Issue(WrongShape, what=what, needed=form, given=shape_text(x.shape), hint=_rank_hint(x.shape, ranks))
    return x.shape


def _rank_hint(shape: Shape, ranks: tuple[int, ...]) -> str:
    if len(shape) == 3 and 4 in ranks:
        return "a dimension is missing: one for the batch, or one for the channels (unsqueeze)"
    if len(shape) == 4 and 3 in ranks:
        return "flatten(2) and transpose(1, 2) make a sequence [B, H*W, C] of an image"
    return ""


def need_float(what: str, x: Tensor) -> None:
    if x.dtype in ("int", "bool"):
        hint = "convert it with .float(), or put an Embedding before"
        raise Issue(WrongType, hint, what=what, needed="floating-point numbers", given=f"{x.dtype} elements")


def need_last(what: str, x: Tensor, size: Size) -> Shape:
    """The input's shape, whose last size is `size`."""
    assert x.shape is not None
    if not x.shape or not may_equal(x.shape[-1], size):
        raise Issue(
            WrongShape, what=what, needed=f"a last size of {size}", given=shape_text(x.shape), hint=_last_hint(x, size)
        )
    return (*x.shape[:-1], merge(size, x.shape[-1]))


def _last_hint(x: Tensor, size: Size) -> str:
    assert x.shape is not None
    if len(x.shape) == 4 and isinstance(size, int) and x.shape[1] == size:
        return "flatten(2) and transpose(1, 2) make a sequence [B, H*W, C] of an image"
    if len(x.shape) > 2 and product(x.shape[1:]) == size:
        return "flatten it first"
    return ""


def need_positive(what: str, arguments: Arguments) -> None:
    """Sizes and counts, as far as they are known, are positive whole numbers."""
    for name, value in arguments.items():
        if name not in _POSITIVE or (type(value) is int and value > 0):
            continue
        for number in value if isinstance(value, list | tuple) else (value,):
            if isinstance(number, bool | float | str | None) or (isinstance(number, int) and number < 1):
                given = "none" if number is None else number
                raise Issue(BadNumberValue, what=f"{what}: {name}", needed="a positive whole number", given=given)


# ---- rules -----------------------------------------------------------------------------------------------------------


def _same(what: str, arguments: Arguments, x: Tensor) -> Tensor:
    return x if x.shape is None else Tensor(x.shape, x.dtype, last=what)


def _linear(what: str, arguments: Arguments, x: Tensor) -> Tensor:
    size = as_size(arguments["in_features"])
    refine(x, (BATCH, size))
    need_float(what, x)
    return Tensor((*need_last(what, x, size)[:-1], as_size(arguments["out_features"])), "float")


def _pair(value: Any, rank: int) -> tuple[Any, ...]:
    """A number, or one for each axis, as one for each axis."""
    if isinstance(value, list | tuple) and len(value) == rank:
        return tuple(value)
    return (value,) * rank if not isinstance(value, list | tuple) else (UNKNOWN,) * rank


def window_sizes(what: str, shape: Shape, arguments: Arguments, rank: int) -> Shape:
    """`floor((n + 2 padding - dilation (kernel - 1) - 1) / stride) + 1` for each of the last `rank` axes."""
    kernel = _pair(arguments["kernel_size"], rank)
    stride = _pair(arguments["stride"], rank)
    stride = kernel if arguments["stride"] is None else stride
    padding, dilation = _pair(arguments["padding"], rank), _pair(arguments.get("dilation", 1), rank)
    if arguments["padding"] == "same":
        return shape[-rank:]
    if arguments["padding"] == "valid":
        padding = (0,) * rank
    sizes: list[Size] = []
    for size, k, s, p, d in zip(shape[-rank:], kernel, stride, padding, dilation, strict=True):
        if not all(isinstance(number, int) and not isinstance(number, bool) for number in (k, s, p, d)) or s < 1:
            sizes.append(None)
            continue
        result = add(floor_divide(subtract(add(size, 2 * p), d * (k - 1) + 1), s), 1)
        if isinstance(result, int) and result < 1:
            raise Issue(EmptyResult, what=what, given=shape_text(shape), hint="use a smaller kernel, or padding")
        sizes.append(result)
    return tuple(sizes)


_AXES: Final = ((BATCH, None, TIME), (BATCH, None, HEIGHT, WIDTH))
_FORMS: Final = ("[B, {}, L]", "[B, {}, H, W]")


def _channels(what: str, x: Tensor, channels: Size, rank: int) -> Shape:
    """The shape of an input with channels: its rank and, where `channels` is known, its second size are right."""
    axes = _AXES[rank - 1]
    refine(x, (axes[0], channels, *axes[2:]))
    need_float(what, x)
    form = _FORMS[rank - 1].format("C" if channels is None else channels)
    shape = need_rank(what, x, (rank + 2,), form)
    if not may_equal(shape[1], channels):
        raise Issue(WrongShape, what=what, needed=form, given=shape_text(shape))
    return shape


def _conv(rank: int) -> Rule:
    def rule(what: str, arguments: Arguments, x: Tensor) -> Tensor:
        shape = _channels(what, x, as_size(arguments["in_channels"]), rank)
        out = as_size(arguments["out_channels"])
        return Tensor((shape[0], out, *window_sizes(what, shape, arguments, rank)), "float")

    return rule


def _conv_transpose(what: str, arguments: Arguments, x: Tensor) -> Tensor:
    shape = _channels(what, x, as_size(arguments["in_channels"]), 2)
    kernel, stride = _pair(arguments["kernel_size"], 2), _pair(arguments["stride"], 2)
    padding, extra = _pair(arguments["padding"], 2), _pair(arguments["output_padding"], 2)
    sizes: list[Size] = []
    for size, k, s, p, e in zip(shape[2:], kernel, stride, padding, extra, strict=True):
        numbers = all(isinstance(number, int) for number in (k, s, p, e)) and arguments["dilation"] == 1
        sizes.append(add(multiply(subtract(size, 1), s), k - 2 * p + e) if numbers else None)
    return Tensor((shape[0], as_size(arguments["out_channels"]), *sizes), "float")


def _pool(rank: int) -> Rule:
    def rule(what: str, arguments: Arguments, x: Tensor) -> Tensor:
        shape = _channels(what, x, None, rank)
        return Tensor((*shape[:2], *window_sizes(what, shape, arguments, rank)), "float")

    return rule


def _adaptive_pool(what: str, arguments: Arguments, x: Tensor) -> Tensor:
    shape = _channels(what, x, None, 2)
    sizes = _pair(arguments["output_size"], 2)
    kept = zip(sizes, shape[2:], strict=True)
    return Tensor((*shape[:2], *(old if size is None else as_size(size) for size, old in kept)), "float")


def _batch_norm_2d(what: str, arguments: Arguments, x: Tensor) -> Tensor:
    return Tensor(_channels(what, x, as_size(arguments["num_features"]), 2), "float")


def _batch_norm_1d(what: str, arguments: Arguments, x: Tensor) -> Tensor:
    channels = as_size(arguments["num_features"])
    refine(x, (BATCH, channels))
    shape = need_rank(what, x, (2, 3), f"[B, {channels}] or [B, {channels}, L]")
    if not may_equal(shape[1], channels):
        raise Issue(WrongShape, what=what, needed=f"{channels} features in dimension 1", given=shape_text(shape))
    return Tensor(shape, "float")


def _group_norm(what: str, arguments: Arguments, x: Tensor) -> Tensor:
    channels = as_size(arguments["num_channels"])
    refine(x, (BATCH, channels, HEIGHT, WIDTH))
    assert x.shape is not None
    if len(x.shape) < 2 or not may_equal(x.shape[1], channels):
        raise Issue(WrongShape, what=what, needed=f"{channels} channels in dimension 1", given=shape_text(x.shape))
    return Tensor(x.shape, "float")


def _layer_norm(what: str, arguments: Arguments, x: Tensor) -> Tensor:
    sizes = arguments["normalized_shape"]
    if isinstance(sizes, list | tuple):
        return _same(what, arguments, x)
    size = as_size(sizes)
    refine(x, (BATCH, TIME, size))
    need_float(what, x)
    return Tensor(need_last(what, x, size), "float")


def _embedding(what: str, arguments: Arguments, x: Tensor) -> Tensor:
    refine(x, (BATCH, TIME), "int")
    if x.dtype in ("float", "bool"):
        raise Issue(
            WrongType, what=what, needed="integers", given=f"{x.dtype} elements", hint="convert it with .long()"
        )
    assert x.shape is not None
    return Tensor((*x.shape, as_size(arguments["embedding_dim"])), "float")


def _directions(arguments: Arguments) -> int:
    return 2 if arguments["bidirectional"] is True else 1


def _recurrent(what: str, arguments: Arguments, x: Tensor) -> Tensor:
    size = as_size(arguments["input_size"])
    refine(x, (BATCH, TIME, size))
    need_float(what, x)
    need_rank(what, x, (2, 3), f"[B, T, {size}]")
    hidden = as_size(arguments.get("proj_size") or arguments["hidden_size"])
    return Tensor((*need_last(what, x, size)[:-1], multiply(hidden, _directions(arguments))), "float")


def _attention(what: str, arguments: Arguments, x: Tensor) -> Tensor:
    size = as_size(arguments["embed_dim"])
    refine(x, (BATCH, TIME, size))
    need_float(what, x)
    need_rank(what, x, (2, 3), f"[B, T, {size}]")
    return Tensor(need_last(what, x, size), "float")


def check_heads(what: str, arguments: Arguments) -> None:
    size, heads = arguments["embed_dim"], arguments["num_heads"]
    if isinstance(size, int) and isinstance(heads, int) and (heads < 1 or size % heads):
        hint = "choose a number of heads that divides the width"
        raise Issue(BadNumberValue, hint, what=f"{what}: num_heads", needed=f"a divisor of {size}", given=heads)


def flatten_from(x: Tensor, start: Any, end: Any = -1) -> Tensor:
    """`x` with the dimensions from start to end made one."""
    if x.shape is None:
        return Tensor(None, x.dtype, flattened=x) if start == 1 and end == -1 else Tensor(None, x.dtype)
    rank = len(x.shape)
    if not isinstance(start, int) or not isinstance(end, int):
        return Tensor(None, x.dtype)
    first, last = start % rank if rank else 0, end % rank if rank else 0
    if not -rank <= start < rank or not -rank <= end < rank or first > last:
        raise Issue(WrongShape, what=f"flatten({start})", needed="an existing dimension", given=shape_text(x.shape))
    return Tensor((*x.shape[:first], product(x.shape[first : last + 1]), *x.shape[last + 1 :]), x.dtype)


def _flatten(what: str, arguments: Arguments, x: Tensor) -> Tensor:
    return flatten_from(x, arguments["start_dim"], arguments["end_dim"])


def _softmax(what: str, arguments: Arguments, x: Tensor) -> Tensor:
    return Tensor(x.shape, "float", last="softmax") if x.shape is not None else x


def _no_rule(what: str, arguments: Arguments, x: Tensor) -> Tensor:
    return Tensor()


# ---- numbers of weights ----------------------------------------------------------------------------------------------


def known_int(value: Any) -> int:
    """A size as a number. Raises Issue if it is not known."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise Issue(BadNumberValue, what="a size of a layer", needed="a known whole number", given=_value_text(value))
    return value


def _value_text(value: Any) -> str:
    return "not known" if value is UNKNOWN or isinstance(value, Dim) else str(value)


def _no_weights(arguments: Arguments) -> int:
    return 0


def _linear_weights(arguments: Arguments) -> int:
    inputs, outputs = known_int(arguments["in_features"]), known_int(arguments["out_features"])
    return inputs * outputs + (outputs if arguments["bias"] else 0)


def _conv_weights(rank: int) -> Count:
    def count(arguments: Arguments) -> int:
        inputs, outputs = known_int(arguments["in_channels"]), known_int(arguments["out_channels"])
        window = math.prod(known_int(size) for size in _pair(arguments["kernel_size"], rank))
        return outputs * inputs // known_int(arguments["groups"]) * window + (outputs if arguments["bias"] else 0)

    return count


def _norm_weights(size: str, switch: str) -> Count:
    def count(arguments: Arguments) -> int:
        sizes = arguments[size]
        total = math.prod(map(known_int, sizes)) if isinstance(sizes, list | tuple) else known_int(sizes)
        return (2 if arguments.get("bias", True) else 1) * total if arguments[switch] else 0

    return count


def _embedding_weights(arguments: Arguments) -> int:
    return known_int(arguments["num_embeddings"]) * known_int(arguments["embedding_dim"])


def _recurrent_weights(gates: int) -> Count:
    def count(arguments: Arguments) -> int:
        inputs, hidden = known_int(arguments["input_size"]), known_int(arguments["hidden_size"])
        projected = known_int(arguments.get("proj_size", 0))
        result, directions = projected or hidden, _directions(arguments)

        def one(given: int) -> int:
            biases = 2 * gates * hidden if arguments["bias"] else 0
            return directions * (gates * hidden * (given + result) + biases + projected * hidden)

        return one(inputs) + (known_int(arguments["num_layers"]) - 1) * one(result * directions)

    return count


def _attention_weights(arguments: Arguments) -> int:
    size = known_int(arguments["embed_dim"])
    key = size if arguments["kdim"] is None else known_int(arguments["kdim"])
    value = size if arguments["vdim"] is None else known_int(arguments["vdim"])
    total = size * (2 * size + key + value) + (4 * size if arguments["bias"] else 0)
    return total + (2 * size if arguments["add_bias_kv"] else 0)


def _parameter_weights(arguments: Arguments) -> int:
    return math.prod(known_int(size) for size in arguments["sizes"])


# ---- the table -------------------------------------------------------------------------------------------------------

_CONV: Final = (
    "in_channels out_channels kernel_size stride=1 padding=0 dilation=1 groups=1 bias=True padding_mode=zeros"
)
_POOL: Final = "kernel_size stride=None padding=0"
_BATCH_NORM: Final = "num_features eps=1e-5 momentum=0.1 affine=True track_running_stats=True"
_RNN: Final = (
    "input_size hidden_size num_layers=1 bias=True batch_first=True dropout=0.0 bidirectional=False"
)  # fmt: skip
_HEADS: Final = (
    "embed_dim num_heads dropout=0.0 bias=True add_bias_kv=False add_zero_attn=False kdim=None vdim=None"
    " batch_first=True causal=False"
)
_DIM: Final = (("dim", "-1"),)
_BATCH_FIRST: Final = (("batch_first", "True"),)


def _simple(
    name: str, parameters: str = "", rule: Rule = _same, emitted: tuple[tuple[str, str], ...] = ()
) -> LayerSpec:
    return LayerSpec(name, name, signature(parameters), rule, _no_weights, emitted=emitted)


def _rnn(name: str, gates: int, extra: str) -> LayerSpec:
    parameters, count = signature(_RNN + extra), _recurrent_weights(gates)
    return LayerSpec(name, name, parameters, _recurrent, count, "recurrent", emitted=_BATCH_FIRST)


def _multi_head(name: str) -> LayerSpec:
    return LayerSpec(name, "Attention", signature(_HEADS), _attention, _attention_weights, "attention", own=True)


_ROWS: Final = (
    LayerSpec("Linear", "Linear", signature("in_features out_features bias=True"), _linear, _linear_weights),
    LayerSpec("Conv1d", "Conv1d", signature(_CONV), _conv(1), _conv_weights(1)),
    LayerSpec("Conv2d", "Conv2d", signature(_CONV), _conv(2), _conv_weights(2)),
    LayerSpec(
        "ConvTranspose2d", "ConvTranspose2d",
        signature(
            "in_channels out_channels kernel_size stride=1 padding=0 output_padding=0 groups=1 bias=True dilation=1"
        ),
        _conv_transpose, _conv_weights(2),
    ),
    _simple("MaxPool1d", _POOL + " dilation=1", _pool(1)),
    _simple("MaxPool2d", _POOL + " dilation=1", _pool(2)),
    _simple("AvgPool2d", _POOL, _pool(2)),
    _simple("AdaptiveAvgPool2d", "output_size", _adaptive_pool),
    LayerSpec(
        "BatchNorm1d", "BatchNorm1d", signature(_BATCH_NORM), _batch_norm_1d, _norm_weights("num_features", "affine")
    ),
    LayerSpec(
        "BatchNorm2d", "BatchNorm2d", signature(_BATCH_NORM), _batch_norm_2d, _norm_weights("num_features", "affine")
    ),
    LayerSpec(
        "LayerNorm", "LayerNorm", signature("normalized_shape eps=1e-5 elementwise_affine=True bias=True"),
        _layer_norm, _norm_weights("normalized_shape", "elementwise_affine"),
    ),
    LayerSpec(
        "GroupNorm", "GroupNorm", signature("num_groups num_channels eps=1e-5 affine=True"),
        _group_norm, _norm_weights("num_channels", "affine"),
    ),
    LayerSpec(
        "Embedding", "Embedding", signature("num_embeddings embedding_dim padding_idx=None max_norm=None"),
        _embedding, _embedding_weights,
    ),
    _rnn("LSTM", 4, " proj_size=0"),
    _rnn("GRU", 3, ""),
    _multi_head("MultiHeadAttention"),
    _multi_head("MultiheadAttention"),
    _simple("Dropout", "p=0.5 inplace=False"),
    _simple("ReLU", "inplace=False"),
    _simple("LeakyReLU", "negative_slope=0.01 inplace=False"),
    _simple("ELU", "alpha=1.0 inplace=False"),
    _simple("GELU", "approximate=none"),
    _simple("SiLU", "inplace=False"),
    _simple("Sigmoid"),
    _simple("Tanh"),
    _simple("Identity"),
    _simple("Softmax", "dim=-1", _softmax, _DIM),
    _simple("LogSoftmax", "dim=-1", emitted=_DIM),
    _simple("Flatten", "start_dim=1 end_dim=-1", _flatten),
    LayerSpec("Sequential", "Sequential", signature("", "parts"), _no_rule, _no_weights, "sequence"),
    LayerSpec("Repeat", "Sequential", signature("layer times"), _no_rule, _no_weights, "repeat"),
    LayerSpec("Parameter", "Parameter", signature("", "sizes"), _no_rule, _parameter_weights, "parameter"),
)  # fmt: skip
LAYERS: Final = {row.name: row for row in _ROWS}


def make_layer(spec: LayerSpec, positional: list[Any], named: list[tuple[str, Any]]) -> LayerValue:
    """An instance of a layer that is no container. Raises Issue where its arguments do not fit."""
    arguments = spec.signature.bind(spec.name, positional, named)
    need_positive(spec.name, arguments)
    if spec.call == "attention":
        check_heads(spec.name, arguments)
    return LayerValue(spec, arguments)
