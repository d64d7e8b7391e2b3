"""fla-core, unmodified, through `loom.triton.install()`: chunked, parallel and recurrent forms against a plain loop.

    pip install fla-core einops
    python tests/suites/fla_operations.py [NAME...]

Prints a line for each operation, forward and backward, and leaves with 1 unless every one is right.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import torch
import torch.nn.functional as F

Tensor = torch.Tensor
BATCH, LENGTH, HEADS, WIDTH = 1, 64, 2, 16


@dataclass(frozen=True)
class Case:
    """An operation of `fla.ops`: what it takes beside q, k and v, and how close it must come.

    `gate` is "" for none, "head" for one number a head, "element" for one a key element. `low_rank`: the state is also
    multiplied by a matrix of rank one, of a and b; `bonus`: what comes in is read weighted by u, and decays afterwards.
    `dtype` is that of the inputs; `names` are the parameters beside q, k and v, `named` the inputs of those that are
    called otherwise.
    """

    module: str
    gate: str = ""
    delta: bool = False
    retention: bool = False
    lightning: bool = False
    low_rank: bool = False
    bonus: bool = False
    dtype: torch.dtype = torch.float32
    backward: bool = True
    names: tuple[str, ...] = ()
    named: tuple[tuple[str, str], ...] = ()
    scale: float = WIDTH**-0.5
    options: tuple[tuple[str, Any], ...] = ()

    @property
    def tolerance(self) -> float:
        return 1e-4 if self.dtype is torch.float32 else 2e-2


CASES = {
    "chunk_linear_attn": Case("linear_attn", options=(("normalize", False),)),
    "fused_recurrent_linear_attn": Case("linear_attn", options=(("normalize", False),)),
    "chunk_gla": Case("gla", "element", names=("g",)),
    "fused_recurrent_gla": Case("gla", "element", names=("gk",)),
    "chunk_simple_gla": Case("simple_gla", "head", names=("g",)),
    "fused_recurrent_simple_gla": Case("simple_gla", "head", names=("g",)),
    "parallel_simple_gla": Case("simple_gla", "head", names=("g",)),
    "chunk_retention": Case("retention", retention=True),
    "fused_recurrent_retention": Case("retention", retention=True),
    "parallel_retention": Case("retention", retention=True),
    "chunk_delta_rule": Case("delta_rule", delta=True, names=("beta",), dtype=torch.bfloat16),
    "fused_recurrent_delta_rule": Case("delta_rule", delta=True, names=("beta",)),
    "chunk_gated_delta_rule": Case("gated_delta_rule", "head", delta=True, names=("g", "beta")),
    "fused_recurrent_gated_delta_rule": Case(
        "gated_delta_rule", "head", delta=True, names=("g", "beta"), backward=False
    ),
    "chunk_kda": Case("kda", "element", delta=True, names=("g", "beta")),
    "fused_recurrent_kda": Case("kda", "element", delta=True, names=("g", "beta"), backward=False),
    "chunk_lightning_attn": Case("lightning_attn", lightning=True, options=(("layer_idx", 1), ("num_layers", 4))),
    "fused_recurrent_lightning_attn": Case(
        "lightning_attn", lightning=True, options=(("layer_idx", 1), ("num_layers", 4))
    ),
    "chunk_iplr_delta_rule": Case(
        "generalized_delta_rule", low_rank=True, names=("a", "b"), dtype=torch.bfloat16, backward=False
    ),
    "fused_recurrent_iplr_delta_rule": Case("generalized_delta_rule", low_rank=True, names=("a", "b")),
    "chunk_dplr_delta_rule": Case("generalized_delta_rule", "element", low_rank=True, names=("a", "b", "gk")),
    "fused_recurrent_dplr_delta_rule": Case(
        "generalized_delta_rule", "element", low_rank=True, names=("a", "b", "gk"), backward=False
    ),
    "chunk_rwkv6": Case("rwkv6", "element", bonus=True, names=("w", "u"), named=(("r", "q"), ("w", "g"))),
    "fused_recurrent_rwkv6": Case("rwkv6", "element", bonus=True, names=("w", "u"), named=(("r", "q"), ("w", "g"))),
    "chunk_rwkv7": Case(
        "rwkv7", "element", low_rank=True, names=("w", "a", "b"), named=(("r", "q"), ("w", "g")), scale=1.0
    ),
}


def plain(given: dict[str, Tensor], case: Case) -> Tensor:
    """Step after step: the state decays by g, takes in k and v (by the delta rule with beta), and is read with q."""
    q, k, v, gate = (given.get(name) for name in "qkvg")
    assert q is not None and k is not None and v is not None
    if case.retention:
        gate = torch.log(1 - 2.0 ** (-5 - torch.arange(HEADS).float())).expand(BATCH, LENGTH, HEADS)
    if case.lightning:
        options = dict(case.options)
        slope = 8 / HEADS * (1 - options["layer_idx"] / options["num_layers"])
        gate = (-slope * torch.arange(HEADS).float()).expand(BATCH, LENGTH, HEADS)
    state = torch.zeros(BATCH, HEADS, WIDTH, WIDTH)
    outputs = []
    for t in range(LENGTH):
        decayed = state
        if gate is not None:
            decay = gate[:, t].exp()
            decayed = state * (decay[..., None, None] if decay.dim() == 2 else decay[..., None])
        key, value, query = k[:, t], v[:, t], q[:, t] * case.scale
        if case.delta:
            value = (value - torch.einsum("bhk,bhkv->bhv", key, decayed)) * given["beta"][:, t][..., None]
        if case.low_rank:
            read = torch.einsum("bhk,bhkv->bhv", given["a"][:, t], state)
            decayed = decayed + given["b"][:, t][..., None] * read[..., None, :]
        taken = key[..., None] * value[..., None, :]
        seen = state + given["u"][..., None] * taken if case.bonus else decayed + taken
        outputs.append(torch.einsum("bhk,bhkv->bhv", query, seen))
        state = decayed + taken
    return torch.stack(outputs, 1)


def inputs(case: Case) -> dict[str, Tensor]:
    """Random inputs by name."""
    q, k, v = (torch.randn(BATCH, LENGTH, HEADS, WIDTH) for _ in range(3))
    made = {"q": q, "k": F.normalize(k, dim=-1) if case.delta else k, "v": v}
    if case.gate:
        shape = (BATCH, LENGTH, HEADS, WIDTH)[: 4 if case.gate == "element" else 3]
        made["g"] = F.logsigmoid(torch.randn(shape))
    if case.delta:
        made["beta"] = torch.rand(BATCH, LENGTH, HEADS)
    if case.low_rank:
        made["a"] = F.normalize(torch.randn(BATCH, LENGTH, HEADS, WIDTH), dim=-1)
        made["b"] = -made["a"] * torch.rand(BATCH, LENGTH, HEADS, 1)
    if case.bonus:
        made["u"] = torch.randn(HEADS, WIDTH)
    return {name: value.to(case.dtype) for name, value in made.items()}


def errors_of(name: str, case: Case) -> tuple[float, float]:
    """The greatest differences forward and backward, relative to the greatest magnitude."""
    given = inputs(case)
    ours = {key: value.clone().requires_grad_(case.backward) for key, value in given.items()}
    theirs = {key: value.float().requires_grad_(case.backward) for key, value in given.items()}
    function: Callable[..., Any] = getattr(import_module(f"fla.ops.{case.module}"), name)
    source = {"gk": "g", **dict(case.named)}
    parameters = {*("qkv" if "r" not in source else "rkv"), *case.names}
    named = {parameter: ours[source.get(parameter, parameter)] for parameter in parameters}
    result = function(**named, **dict(case.options))[0]
    wanted = plain(theirs, case)
    if not case.backward:
        return difference(result, wanted), 0.0
    gradient = torch.randn_like(wanted)
    wanted.backward(gradient)  # type: ignore[no-untyped-call]
    result.backward(gradient.to(result.dtype))
    return difference(result, wanted), max(difference(ours[key].grad, theirs[key].grad) for key in given)


def difference(a: Tensor | None, b: Tensor | None) -> float:
    assert a is not None and b is not None
    return float((a.float() - b).abs().max() / b.abs().max())


def main(names: Sequence[str]) -> int:
    """Run the named operations, by default all; the number of those that are wrong."""
    import loom.triton

    warnings.filterwarnings("ignore")
    loom.triton.install()
    torch.manual_seed(0)
    wrong = 0
    for name, case in CASES.items():
        if names and name not in names:
            continue
        try:
            forward, backward = errors_of(name, case)
            right = max(forward, backward) <= case.tolerance
            shown = f"backward {backward:.1e}" if case.backward else "no backward pass"
            text = f"{'right' if right else 'WRONG'}  forward {forward:.1e}  {shown}"
        except Exception as error:  # noqa: BLE001
            # One operation must not hide the others.
            right, text = False, f"FAILED {type(error).__name__}: {str(error)[:500]}"
        wrong += not right
        print(f"{name:34} {text}", flush=True)
    return wrong


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]) > 0)
