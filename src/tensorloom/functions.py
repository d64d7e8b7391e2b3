"""The functions and tensor methods that the compiler knows: their spelling in PyTorch and their shapes.

A new function is a new row of FUNCTIONS, a new method one of METHODS. Methods that are not listed are allowed; their
results are unknown.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from tensorloom import algebra
from tensorloom.arguments import Signature, signature
from tensorloom.dims import as_size, multiply
from tensorloom.layers import flatten_from
from tensorloom.values import UNKNOWN, Dataset, Tensor

Arguments = dict[str, Any]


@dataclass(frozen=True, slots=True)
class FunctionSpec:
    """`torch`: what is emitted. `emitted`: defaults that PyTorch does not have, or has differently, as Python text."""

    name: str
    torch: str
    signature: Signature
    rule: Callable[[Arguments], Any]
    emitted: tuple[tuple[str, str], ...] = ()


# ---- rules -----------------------------------------------------------------------------------------------------------


def _tensor(arguments: Arguments, name: str = "input") -> Tensor | None:
    value = arguments[name]
    return value if isinstance(value, Tensor) else None


def _same(arguments: Arguments) -> Any:
    x = _tensor(arguments)
    if x is None:
        return UNKNOWN
    return x if x.shape is None else Tensor(x.shape, "float" if x.dtype == "int" else x.dtype)


def _softmax(arguments: Arguments) -> Any:
    x = _tensor(arguments)
    if x is None or x.shape is None:
        return x or UNKNOWN
    algebra.axis(x.shape, arguments["dim"], "softmax")
    return Tensor(x.shape, "float", last="softmax")


def _flatten(arguments: Arguments) -> Any:
    x = _tensor(arguments)
    return UNKNOWN if x is None else flatten_from(x, arguments["start_dim"], arguments["end_dim"])


def _reshape(arguments: Arguments) -> Any:
    x = _tensor(arguments)
    return UNKNOWN if x is None else algebra.reshape(x, _sizes(arguments["shape"]))


def _sizes(values: Sequence[Any]) -> Sequence[Any]:
    """Sizes given one by one, or as one list."""
    return values[0] if len(values) == 1 and isinstance(values[0], list | tuple) else values


def _unsqueeze(arguments: Arguments) -> Any:
    x = _tensor(arguments)
    return UNKNOWN if x is None else algebra.unsqueeze(x, arguments["dim"])


def _squeeze(arguments: Arguments) -> Any:
    x = _tensor(arguments)
    return UNKNOWN if x is None else algebra.squeeze(x, arguments["dim"])


def _reduce(arguments: Arguments) -> Any:
    x = _tensor(arguments)
    return UNKNOWN if x is None else algebra.reduced(x, arguments["dim"], arguments["keepdim"] is True, "reduction")


def _argmax(arguments: Arguments) -> Any:
    x = _tensor(arguments)
    return UNKNOWN if x is None else algebra.reduced(x, arguments["dim"], arguments["keepdim"] is True, "argmax", "int")


def _cat(arguments: Arguments) -> Any:
    return algebra.concatenate(arguments["tensors"], arguments["dim"], "cat", new=False)


def _stack(arguments: Arguments) -> Any:
    return algebra.concatenate(arguments["tensors"], arguments["dim"], "stack", new=True)


def _matmul(arguments: Arguments) -> Any:
    a, b = _tensor(arguments), _tensor(arguments, "other")
    return algebra.matmul(a, b) if a is not None and b is not None else UNKNOWN


def _pairwise(arguments: Arguments) -> Any:
    a, b = arguments["input"], arguments["other"]
    return algebra.combine(a, b) if isinstance(a, Tensor) or isinstance(b, Tensor) else UNKNOWN


def _where(arguments: Arguments) -> Any:
    condition, a, b = arguments["condition"], arguments["input"], arguments["other"]
    chosen = algebra.combine(a, b) if isinstance(a, Tensor) or isinstance(b, Tensor) else a
    return (
        algebra.combine(condition, chosen, chosen.dtype if isinstance(chosen, Tensor) else "")
        if isinstance(condition, Tensor)
        else UNKNOWN
    )


def _transpose(arguments: Arguments) -> Any:
    x = _tensor(arguments)
    return UNKNOWN if x is None else algebra.transpose(x, arguments["dim0"], arguments["dim1"])


def _permute(arguments: Arguments) -> Any:
    x = _tensor(arguments)
    return UNKNOWN if x is None else algebra.permute(x, _sizes(arguments["dims"]))


def _filled(dtype: str) -> Callable[[Arguments], Any]:
    def rule(arguments: Arguments) -> Any:
        kind = dtype_kind(arguments["dtype"]) if "dtype" in arguments else ""
        return Tensor(tuple(as_size(size) for size in _sizes(arguments["size"])), kind or dtype)

    return rule


def _full(arguments: Arguments) -> Any:
    sizes = arguments["size"]
    shape = tuple(map(as_size, sizes)) if isinstance(sizes, list | tuple) else None
    return Tensor(shape, algebra.number_kind(arguments["fill_value"]))


def _arange(arguments: Arguments) -> Any:
    bounds = arguments["bounds"]
    if len(bounds) == 1:
        kind = algebra.number_kind(bounds[0])
        return Tensor(
            (as_size(bounds[0]) if kind != "float" else None,), dtype_kind(arguments["dtype"]) or kind or "int"
        )
    return Tensor((None,), dtype_kind(arguments["dtype"]))


def _literal(arguments: Arguments) -> Any:
    value = arguments["data"]
    made = value if isinstance(value, Tensor) else algebra.literal(value)
    return Tensor(made.shape, dtype_kind(arguments["dtype"]) or made.dtype)


def _unknown(arguments: Arguments) -> Any:
    return UNKNOWN


def _load_dataset(arguments: Arguments) -> Any:
    name = arguments["name"]
    return Dataset(name if isinstance(name, str | None) else "")


def dtype_kind(value: Any) -> str:
    """The kind of a dtype value, which is the DType that `names.DTYPES` gives; empty if unknown."""
    name = getattr(value, "torch_name", "")
    if name.startswith(("torch.float", "torch.bfloat")):
        return "float"
    return "bool" if name == "torch.bool" else "int" if name.startswith("torch.int") else ""


@dataclass(frozen=True, slots=True)
class DType:
    """A dtype as a value: `float16` in `dtype=float16`."""

    torch_name: str


DTYPES: Final = {
    "float16": "torch.float16", "float32": "torch.float32", "float64": "torch.float64", "bfloat16": "torch.bfloat16",
    "int8": "torch.int8", "int32": "torch.int32", "int64": "torch.int64", "bool": "torch.bool",
    "fp16": "torch.float16", "fp32": "torch.float32", "bf16": "torch.bfloat16",
}  # fmt: skip
DEVICES: Final = {"gpu": "device", "cuda": "device", "cpu": '"cpu"'}
LOCAL_TYPES: Final = {"dtype": DTYPES, "precision": DTYPES, "device": DEVICES}
"""Names that are known only as the value of the argument of this name."""


# ---- the tables ------------------------------------------------------------------------------------------------------

_DIM: Final = (("dim", "-1"),)
_ON_DEVICE: Final = (("device", "device"),)


def _row(
    name: str,
    torch: str,
    parameters: str,
    rule: Callable[[Arguments], Any],
    rest: str = "",
    emitted: tuple[tuple[str, str], ...] = (),
) -> FunctionSpec:
    named = rest in ("size", "bounds")
    return FunctionSpec(name, torch, signature(parameters, rest, named), rule, emitted)


_ELEMENTWISE: Final = ("relu", "sigmoid", "tanh", "exp", "log", "sqrt", "sin", "cos")
_ROWS: Final = (
    *(_row(name, f"torch.{name}", "input", _same) for name in _ELEMENTWISE),
    _row("gelu", "F.gelu", "input approximate=none", _same),
    _row("silu", "F.silu", "input", _same),
    _row("softmax", "torch.softmax", "input dim=-1", _softmax, emitted=_DIM),
    _row("log_softmax", "F.log_softmax", "input dim=-1", _same, emitted=_DIM),
    _row(
        "dropout", "F.dropout", "input p=0.5 training=None", _same,
        emitted=(("p", "0.5"), ("training", "self.training")),
    ),
    _row("normalize", "F.normalize", "input p=2 dim=1", _same),
    _row("layer_norm", "F.layer_norm", "input normalized_shape weight=None bias=None eps=1e-5", _same),
    _row(
        "batch_norm", "F.batch_norm",
        "input running_mean running_var weight=None bias=None training=False momentum=0.1 eps=1e-5", _same,
    ),
    _row("flatten", "torch.flatten", "input start_dim=1 end_dim=-1", _flatten, emitted=(("start_dim", "1"),)),
    _row("reshape", "torch.reshape", "input", _reshape, "shape"),
    _row("unsqueeze", "torch.unsqueeze", "input dim", _unsqueeze),
    _row("squeeze", "torch.squeeze", "input dim=None", _squeeze),
    _row("mean", "torch.mean", "input dim=None keepdim=False", _reduce),
    _row("sum", "torch.sum", "input dim=None keepdim=False", _reduce),
    _row("argmax", "torch.argmax", "input dim=None keepdim=False", _argmax),
    _row("cat", "torch.cat", "tensors dim=0", _cat),
    _row("stack", "torch.stack", "tensors dim=0", _stack),
    _row("matmul", "torch.matmul", "input other", _matmul),
    _row("maximum", "torch.maximum", "input other", _pairwise),
    _row("minimum", "torch.minimum", "input other", _pairwise),
    _row("where", "torch.where", "condition input other", _where),
    _row("transpose", "torch.transpose", "input dim0 dim1", _transpose),
    _row("permute", "torch.permute", "input", _permute, "dims"),
    _row("zeros", "torch.zeros", "dtype=None device=None", _filled("float"), "size", _ON_DEVICE),
    _row("ones", "torch.ones", "dtype=None device=None", _filled("float"), "size", _ON_DEVICE),
    _row("rand", "torch.rand", "dtype=None device=None", _filled("float"), "size", _ON_DEVICE),
    _row("randn", "torch.randn", "dtype=None device=None", _filled("float"), "size", _ON_DEVICE),
    _row("full", "torch.full", "size fill_value dtype=None device=None", _full, emitted=_ON_DEVICE),
    _row("arange", "torch.arange", "dtype=None device=None", _arange, "bounds", _ON_DEVICE),
    _row("tensor", "torch.tensor", "data dtype=None device=None requires_grad=False", _literal, emitted=_ON_DEVICE),
    _row("manual_seed", "torch.manual_seed", "seed", _unknown),
    _row(
        "load_dataset", "load_dataset", "name=None batch_size=64 shuffle=True num_samples=1000 seed=0", _load_dataset
    ),
)  # fmt: skip
FUNCTIONS: Final = {row.name: row for row in _ROWS}
PYTHON: Final = (
    "print", "len", "range", "type", "list", "int", "float", "str", "bool", "abs", "min", "max", "enumerate", "zip",
    "round",
)  # fmt: skip

# ---- methods of tensors ----------------------------------------------------------------------------------------------

MethodRule = Callable[[Tensor, Sequence[Any], dict[str, Any]], Any]


def _first(positional: Sequence[Any], named: dict[str, Any], name: str, default: Any = None) -> Any:
    return positional[0] if positional else named.get(name, default)


def _second(positional: Sequence[Any], named: dict[str, Any], name: str, default: Any = None) -> Any:
    return positional[1] if len(positional) > 1 else named.get(name, default)


def _unchanged(x: Tensor, positional: Sequence[Any], named: dict[str, Any]) -> Any:
    return x if x.shape is None else Tensor(x.shape, x.dtype)


def _cast(dtype: str) -> MethodRule:
    return lambda x, positional, named: Tensor(x.shape, dtype)


def _reduction(x: Tensor, positional: Sequence[Any], named: dict[str, Any]) -> Any:
    dims = (
        positional if len(positional) > 1 and not isinstance(positional[1], bool) else _first(positional, named, "dim")
    )
    return algebra.reduced(x, dims, named.get("keepdim") is True, "reduction")


def _extreme(x: Tensor, positional: Sequence[Any], named: dict[str, Any]) -> Any:
    dim = _first(positional, named, "dim")
    if dim is None:
        return Tensor((), x.dtype)
    keep = named.get("keepdim") is True
    return (algebra.reduced(x, dim, keep, "max"), algebra.reduced(x, dim, keep, "max", "int"))


def _size(x: Tensor, positional: Sequence[Any], named: dict[str, Any]) -> Any:
    if x.shape is None:
        return UNKNOWN
    if not positional:
        return tuple(UNKNOWN if size is None else size for size in x.shape)
    at = algebra.axis(x.shape, positional[0], "size")
    return UNKNOWN if at is None or x.shape[at] is None else x.shape[at]


def _repeat(x: Tensor, positional: Sequence[Any], named: dict[str, Any]) -> Any:
    times = _sizes(positional)
    if x.shape is None or len(times) < len(x.shape):
        return Tensor(None, x.dtype)
    padded = (1,) * (len(times) - len(x.shape)) + x.shape
    return Tensor(tuple(multiply(size, as_size(by)) for size, by in zip(padded, times, strict=True)), x.dtype)


METHODS: Final[dict[str, MethodRule]] = {
    **dict.fromkeys(
        ("contiguous", "clone", "detach", "cpu", "cuda", "relu", "abs", "exp", "log", "sqrt", "pow", "clamp", "to",
         "masked_fill", "sigmoid", "tanh", "tril", "triu"), _unchanged),
    "float": _cast("float"), "half": _cast("float"), "bfloat16": _cast("float"), "double": _cast("float"),
    "long": _cast("int"), "int": _cast("int"), "bool": _cast("bool"),
    "mean": _reduction, "sum": _reduction, "std": _reduction, "var": _reduction,
    "max": _extreme, "min": _extreme,
    "argmax": lambda x, p, n: algebra.reduced(x, _first(p, n, "dim"), n.get("keepdim") is True, "argmax", "int"),
    "flatten": lambda x, p, n: flatten_from(x, _first(p, n, "start_dim", 0), _second(p, n, "end_dim", -1)),
    "reshape": lambda x, p, n: algebra.reshape(x, _sizes(p)),
    "view": lambda x, p, n: algebra.reshape(x, _sizes(p)),
    "transpose": lambda x, p, n: algebra.transpose(x, _first(p, n, "dim0", UNKNOWN), _second(p, n, "dim1", UNKNOWN)),
    "permute": lambda x, p, n: algebra.permute(x, _sizes(p)),
    "unsqueeze": lambda x, p, n: algebra.unsqueeze(x, _first(p, n, "dim", UNKNOWN)),
    "squeeze": lambda x, p, n: algebra.squeeze(x, _first(p, n, "dim")),
    "softmax": lambda x, p, n: Tensor(x.shape, "float", last="softmax"),
    "size": _size,
    "repeat": _repeat,
    "numel": lambda x, p, n: UNKNOWN,
    "item": lambda x, p, n: UNKNOWN,
    "tolist": lambda x, p, n: UNKNOWN,
}  # fmt: skip
