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

    `gate` is "" for none, "head" for one number a head, "element" for one a key element. `dtype` is that of the inputs;
    `arguments` name what follows q, k, v: "beta" and "g", and fixed options.
    """

    module: str
    gate: str = ""
    delta: bool = False
    retention: bool = False
    dtype: torch.dtype = torch.float32
    backward: bool = True
    names: tuple[str, ...] = ()
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
}


def plain(q: Tensor, k: Tensor, v: Tensor, g: Tensor | None, beta: Tensor | None) -> Tensor:
    """Step after step: the state decays by `g`, takes in k and v (by the delta rule with `beta`), and is read."""
    state = torch.zeros(BATCH, HEADS, WIDTH, WIDTH)
    outputs = []
    for t in range(LENGTH):
        if g is not None:
            decay = g[:, t].exp()
            state = state * (decay[..., None, None] if decay.dim() == 2 else decay[..., None])
        key, value = k[:, t], v[:, t]
        if beta is not None:
            value = (value - torch.einsum("bhk,bhkv->bhv", key, state)) * beta[:, t][..., None]
        state = state + key[..., None] * value[..., None, :]
        outputs.append(torch.einsum("bhk,bhkv->bhv", q[:, t] * WIDTH**-0.5, state))
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
    return {name: value.to(case.dtype) for name, value in made.items()}


def errors_of(name: str, case: Case) -> tuple[float, float]:
    """The greatest differences forward and backward, relative to the greatest magnitude."""
    given = inputs(case)
    ours = {key: value.clone().requires_grad_(case.backward) for key, value in given.items()}
    theirs = {key: value.float().requires_grad_(case.backward) for key, value in given.items()}
    function: Callable[..., Any] = getattr(import_module(f"fla.ops.{case.module}"), name)
    named = {argument: ours["beta" if argument == "beta" else "g"] for argument in case.names}
    result = function(ours["q"], ours["k"], ours["v"], **named, **dict(case.options))[0]
    gate = theirs.get("g")
    if case.retention:
        gate = torch.log(1 - 2.0 ** (-5 - torch.arange(HEADS).float())).expand(BATCH, LENGTH, HEADS)
    wanted = plain(theirs["q"], theirs["k"], theirs["v"], gate, theirs.get("beta"))
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
