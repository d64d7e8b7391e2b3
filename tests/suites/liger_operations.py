"""Liger-Kernel, unmodified, through `loom.triton.install()`: each operation forward and backward against torch.

    pip install liger-kernel
    python tests/suites/liger_operations.py [NAME...]

Prints a line for each operation, and leaves with 1 unless every one is right or listed as out of reach.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F

Tensor = torch.Tensor
TOLERANCE = 1e-4
OUT_OF_REACH = {
    "dyt": "its backward pass asks for the number of a GPU's multiprocessors, and knows CUDA, XPU and NPU alone",
    "mlp": "asserts that its tensors are CUDA's (ops/mlp.py, `input.is_cuda`)",
}


@dataclass(frozen=True)
class Case:
    """An operation: its inputs, what Liger makes of them, what torch makes of them."""

    inputs: Sequence[Tensor]
    ours: Callable[..., Tensor]
    theirs: Callable[..., Tensor]


def random(*shape: int) -> Tensor:
    return torch.randn(*shape).requires_grad_()


def first(value: Any) -> Tensor:
    """The first of several results."""
    result: Tensor = value[0] if isinstance(value, tuple) else value
    return result


def rms(x: Tensor) -> Tensor:
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)


def sparsemax(x: Tensor) -> Tensor:
    ordered, _ = torch.sort(x, dim=-1, descending=True)
    sums = ordered.cumsum(-1) - 1
    count = (ordered * torch.arange(1, x.shape[-1] + 1) > sums).sum(-1, keepdim=True)
    return torch.clamp(x - sums.gather(-1, count - 1) / count, min=0)


def divergence(x: Tensor, y: Tensor) -> Tensor:
    """Jensen and Shannon's, of logits."""
    p, q = F.log_softmax(x, -1), F.log_softmax(y, -1)
    middle = torch.log(0.5 * p.exp() + 0.5 * q.exp())
    parts = (F.kl_div(middle, side, reduction="batchmean", log_target=True) for side in (p, q))
    return sum(0.5 * part for part in parts)  # type: ignore[return-value]


def turned(x: Tensor) -> Tensor:
    a, b = x.chunk(2, -1)
    return torch.cat([-b, a], -1)


def cases() -> dict[str, Case]:
    """The operations by name."""
    import liger_kernel.ops as liger

    labels, tokens, rows = torch.randint(0, 50, (6,)), torch.randint(0, 20, (3, 7)), torch.randn(4, 32)
    shares = F.softmax(rows, -1)
    angles = torch.randn(1, 5, 8).repeat(1, 1, 2)
    cos, sin = angles.cos(), angles.sin()
    three, sections = torch.randn(3, 2, 5, 8).repeat(1, 1, 1, 2), [2, 3, 3]
    teacher, wide = torch.randn(6, 24), torch.randn(50, 24)
    logits, targets = torch.randn(6, 50), F.softmax(torch.randn(6, 50), -1)
    experts, gates = torch.randint(0, 4, (6, 2), dtype=torch.int32), F.softmax(torch.randn(6, 2), -1)
    frequencies = torch.polar(torch.ones(5, 8), torch.randn(5, 8))
    layer = torch.nn.Linear(16, 16)
    old, reference = -3 + 0.1 * torch.randn(2, 2, 6)
    answers, advantages = torch.randint(0, 20, (2, 6)), torch.randn(2)

    def rotated(q: Tensor, k: Tensor) -> Tensor:
        return torch.cat([x * cos[:, None] + turned(x) * sin[:, None] for x in (q, k)], 1)

    def sectioned(q: Tensor, k: Tensor) -> Tensor:
        split = (enumerate(side.split(sections * 2, -1)) for side in (three.cos(), three.sin()))
        c, s = (torch.cat([part[i % 3] for i, part in parts], -1)[:, None] for parts in split)
        return torch.cat([x * c + turned(x) * s for x in (q, k)], 1)

    return {
        "attn_res": Case(
            [random(3, 2, 5, 16), random(16), random(16)],
            lambda v, q, w: liger.LigerAttnResFunction.apply(v, q, w, 1e-6),
            lambda v, q, w: (torch.softmax((rms(v) * w) @ q, 0)[..., None] * v).sum(0),
        ),
        "cross_entropy": Case(
            [random(6, 50)],
            lambda x: first(
                liger.LigerCrossEntropyFunction.apply(x, labels, None, -100, 0.0, 0.0, "mean", None, False)
            ),
            lambda x: F.cross_entropy(x, labels),
        ),
        "dyt": Case(
            [random(5, 64), random(1), random(64), random(64)],
            liger.LigerDyTFunction.apply,
            lambda x, a, g, b: g * torch.tanh(a * x) + b,
        ),
        "embedding": Case(
            [random(20, 16)],
            lambda w: liger.LigerEmbeddingFunction.apply(w, tokens),
            lambda w: F.embedding(tokens, w),
        ),
        "fused_add_rms_norm": Case(
            [random(6, 64), random(6, 64), random(64)],
            lambda x, r, w: first(liger.LigerFusedAddRMSNormFunction.apply(x, r, w, 1e-6, 0.0, "llama", False)),
            lambda x, r, w: rms(x + r) * w,
        ),
        "fused_linear_cross_entropy": Case(
            [random(6, 16), random(50, 16)],
            lambda x, w: first(liger.LigerFusedLinearCrossEntropyFunction.apply(x, w, labels, None)),
            lambda x, w: F.cross_entropy(x @ w.T, labels),
        ),
        "fused_linear_jsd": Case(
            [random(6, 16), random(50, 16)],
            lambda x, w: first(liger.LigerFusedLinearJSDFunction.apply(x, w, teacher, wide)),
            lambda x, w: divergence(x @ w.T, teacher @ wide.T),
        ),
        "fused_ce_tvd": Case(
            [random(6, 50)],
            lambda x: torch.cat(liger.LigerFusedCETVDFunction.apply(x, logits, labels, -100)),
            lambda x: torch.cat([
                F.cross_entropy(x, labels, reduction="none"),
                0.5 * (F.softmax(x, -1) - F.softmax(logits, -1)).abs().sum(-1),
            ]),
        ),
        "fused_linear_kl_div": Case(
            [random(6, 16), random(50, 16)],
            lambda x, w: liger.LigerFusedLinearKLDivFunction.apply(x, w, targets),
            lambda x, w: F.kl_div(F.log_softmax(x @ w.T, -1), targets, reduction="batchmean"),
        ),
        "fused_linear_scaled_cross_entropy": Case(
            [random(6, 16), random(50, 16)],
            lambda x, w: first(liger.LigerFusedLinearScaledCrossEntropyFunction.apply(x, w, labels)),
            lambda x, w: F.cross_entropy(x @ w.T, labels, reduction="none"),
        ),
        "fused_moe": Case(
            [random(6, 16), random(4, 64, 16), random(4, 16, 32)],
            lambda x, up, down: liger.LigerFusedMoEFunction.apply(x, up, down, experts, gates),
            lambda x, up, down: mixture(x, up, down, experts, gates),
        ),
        "fused_neighborhood_attention": Case(
            [random(1, 2, 16, 16) for _ in range(3)],
            lambda q, k, v: liger.LigerFusedNeighborhoodAttentionFunction.apply(q, k, v, 5, 1, None),
            lambda q, k, v: neighbours(q, k, v, 5),
        ),
        "geglu": Case(
            [random(5, 100), random(5, 100)],
            liger.LigerGELUMulFunction.apply,
            lambda a, b: F.gelu(a, approximate="tanh") * b,
        ),
        "group_norm": Case(
            [random(2, 8, 12), random(8), random(8)],
            lambda x, w, b: first(liger.LigerGroupNormFunction.apply(x, w, b, 8, 4, 1e-5)),
            lambda x, w, b: F.group_norm(x, 4, w, b, 1e-5),
        ),
        "grpo_loss": Case(
            [random(2, 7, 20)],
            lambda x: first(liger.GrpoLossFunction.apply(
                x, old, reference, answers, advantages, None, 0.9, 0.04, 0.2, 0.4, False, "grpo", None, True
            )),
            lambda x: policy_loss(x, old, reference, answers, advantages),
        ),
        "jsd": Case(
            [random(4, 32)],
            lambda x: liger.LigerJSDFunction.apply(F.log_softmax(x, -1), F.log_softmax(rows, -1), None, 0.5, -100),
            lambda x: divergence(x, rows),
        ),
        "kl_div": Case(
            [random(4, 32)],
            lambda x: liger.LigerKLDivLossFunction.apply(F.log_softmax(x, -1), shares, "batchmean", False, 1e-10),
            lambda x: F.kl_div(F.log_softmax(x, -1), shares, reduction="batchmean"),
        ),
        "layer_norm": Case(
            [random(6, 96), random(96), random(96)],
            lambda x, w, b: liger.LigerLayerNormFunction.apply(x, w, b, 1e-5),
            lambda x, w, b: F.layer_norm(x, (96,), w, b, 1e-5),
        ),
        "llama4_rope": Case(
            [random(2, 5, 4, 16), random(2, 5, 2, 16)],
            lambda q, k: torch.cat(liger.LigerLlama4RopeFunction.apply(q, k, frequencies), 2),
            lambda q, k: torch.cat([complex_turned(x, frequencies) for x in (q, k)], 2),
        ),
        "mhc_coeffs": Case(
            [random(3, 4, 16), random(64, 24), random(24), *(torch.ones(()).requires_grad_() for _ in range(3))],
            lambda *given: parts(*liger.LigerMHCCoeffsFunction.apply(*given, True, 4, 1e-6, 0.0, 1e-6, 2.0)),
            lambda *given: parts(*coefficients(*given, rounds=4)),
        ),
        "mhc_post_res": Case(
            [random(3, 4, 16), random(3, 16), random(3, 4), random(3, 4, 4)],
            liger.LigerMHCPostResFunction.apply,
            lambda x, f, post, mix: f[:, None] * post[..., None] + torch.einsum("noi,nic->noc", mix, x),
        ),
        "mhc_pre": Case(
            [random(3, 4, 16), random(3, 4)],
            liger.LigerMHCPreFunction.apply,
            lambda x, pre: torch.einsum("nhc,nh->nc", x, pre),
        ),
        "mlp": Case(
            [random(1, 8, 16), random(32, 16), random(32, 16), random(16, 32)],
            liger.LigerMLPFunction.apply,
            lambda x, gate, up, down: (F.silu(x @ gate.T) * (x @ up.T)) @ down.T,
        ),
        "modulated_rms_norm": Case(
            [random(2, 6, 64), random(64), random(2, 64), random(2, 64)],
            lambda x, w, s, t: liger.LigerModulatedRMSNormFunction.apply(x, w, s, t, 1e-6, 0.0, "llama", False),
            lambda x, w, s, t: rms(x) * w * (1 + s[:, None]) + t[:, None],
        ),
        "multi_token_attention": Case(
            [random(2, 4, 8, 8), random(4, 4, 3, 3)],
            lambda x, w: liger.LigerMultiTokenAttentionFunction.apply(x, w, None, 1, 1, 1, 1, False),
            lambda x, w: masked_convolution(x, w),
        ),
        "poly_norm": Case(
            [random(5, 64), random(3), torch.randn(()).requires_grad_()],
            lambda x, w, b: liger.LigerPolyNormFunction.apply(x, w, b, 1e-6, False),
            lambda x, w, b: w[0] * rms(x**3) + w[1] * rms(x**2) + w[2] * rms(x) + b,
        ),
        "qwen2vl_mrope": Case(
            [random(2, 4, 5, 16), random(2, 2, 5, 16)],
            lambda q, k: torch.cat(
                liger.LigerQwen2VLMRopeFunction.apply(q, k, three.cos(), three.sin(), sections), 1
            ),
            sectioned,
        ),
        "relu_squared": Case([random(5, 100)], liger.LigerReLUSquaredFunction.apply, lambda x: F.relu(x) ** 2),
        "rms_norm": Case(
            [random(6, 64), random(64)],
            lambda x, w: liger.LigerRMSNormFunction.apply(x, w, 1e-6, 0.0, "llama", False),
            lambda x, w: rms(x) * w,
        ),
        "rope": Case(
            [random(2, 4, 5, 16), random(2, 2, 5, 16)],
            lambda q, k: torch.cat(liger.LigerRopeFunction.apply(q, k, cos, sin), 1),
            rotated,
        ),
        "softmax": Case([random(5, 100)], liger.LigerSoftmaxFunction.apply, lambda x: F.softmax(x, -1)),
        "sparsemax": Case([random(4, 32)], lambda x: liger.LigerSparsemaxFunction.apply(x, -1), sparsemax),
        "swiglu": Case([random(5, 100), random(5, 100)], liger.LigerSiLUMulFunction.apply, lambda a, b: F.silu(a) * b),
        "swiglu_fused_gate_up": Case(
            [random(5, 200)],
            liger.LigerFusedGateUpSiLUMulFunction.apply,
            lambda y: F.silu(y[:, :100]) * y[:, 100:],
        ),
        "tiled_mlp": Case(
            [random(8, 16)],
            lambda x: liger.apply_tiled_mlp(
                lambda module, part: liger.LigerSiLUMulFunction.apply(module(part), part), layer, x, 2
            ),
            lambda x: F.silu(layer(x)) * x,
        ),
        "tvd": Case(
            [random(4, 32)],
            lambda x: liger.LigerTVDLossFunction.apply(F.softmax(x, -1), shares, None, "batchmean", -100),
            lambda x: 0.5 * (F.softmax(x, -1) - shares).abs().sum() / 4,
        ),
        "vocab_parallel_cross_entropy": Case(
            [random(3, 2, 50)],
            lambda x: liger.LigerVocabParallelCEFunction.apply(
                x, labels.view(3, 2), None, -100, 0.0, "megatron", "mean"
            ),
            lambda x: F.cross_entropy(x.view(6, 50), labels, reduction="none").view(3, 2),
        ),
    }  # fmt: skip


def parts(*tensors: Tensor) -> Tensor:
    """All elements of several results."""
    return torch.cat([tensor.reshape(-1) for tensor in tensors])


def mixture(x: Tensor, up: Tensor, down: Tensor, experts: Tensor, gates: Tensor) -> Tensor:
    """Each token through its experts, a gated layer each, weighted."""
    total = []
    for token, chosen, weights in zip(x, experts.tolist(), gates, strict=True):
        outputs = []
        for expert in chosen:
            gate, value = (up[expert] @ token).chunk(2)
            outputs.append(down[expert] @ (F.silu(gate) * value))
        total.append((torch.stack(outputs) * weights[:, None]).sum(0))
    return torch.stack(total)


def neighbours(q: Tensor, k: Tensor, v: Tensor, size: int) -> Tensor:
    """Attention to the positions at most size // 2 away."""
    place = torch.arange(q.shape[2])
    far = (place[:, None] - place[None, :]).abs() > size // 2
    scores = (q @ k.transpose(-1, -2)) * q.shape[-1] ** -0.5
    return torch.softmax(scores.masked_fill(far, float("-inf")), -1) @ v


def policy_loss(x: Tensor, old: Tensor, reference: Tensor, answers: Tensor, advantages: Tensor) -> Tensor:
    """The clipped loss of group relative policy optimisation, with the divergence from a reference."""
    chosen = F.log_softmax(x[:, :-1] / 0.9, -1).gather(-1, answers[..., None])[..., 0]
    ratio = torch.exp(chosen - old)
    gain = advantages[:, None]
    loss = -torch.minimum(ratio * gain, ratio.clamp(0.8, 1.4) * gain)
    apart = reference - chosen
    return (loss + 0.04 * (torch.exp(apart) - apart - 1)).mean()


def complex_turned(x: Tensor, frequencies: Tensor) -> Tensor:
    pairs = torch.view_as_complex(x.view(*x.shape[:-1], -1, 2))
    return torch.view_as_real(pairs * frequencies[None, :, None]).flatten(-2)


def coefficients(
    x: Tensor, phi: Tensor, bias: Tensor, pre: Tensor, post: Tensor, residual: Tensor, rounds: int
) -> tuple[Tensor, Tensor, Tensor]:
    """The gates of a hyper-connection: before, after, and a matrix whose rows and columns are balanced."""
    count = x.shape[1]
    mixed = rms(x.flatten(1)) @ phi
    matrix = mixed[:, 2 * count :] * residual + bias[2 * count :]
    matrix = torch.softmax(matrix.view(-1, count, count), -1) + 1e-6
    for i in range(rounds):
        if i:
            matrix = matrix / (matrix.sum(2, keepdim=True) + 1e-6)
        matrix = matrix / (matrix.sum(1, keepdim=True) + 1e-6)
    gates = [(mixed[:, :count], pre, bias[:count]), (mixed[:, count : 2 * count], post, bias[count : 2 * count])]
    before, after = (torch.sigmoid(value * scale + shift) for value, scale, shift in gates)
    return before, 2.0 * after, matrix


def masked_convolution(scores: Tensor, weight: Tensor) -> Tensor:
    """Softmax of the lower triangle, convolved, the upper triangle 0."""
    later = torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1)
    mixed = F.conv2d(torch.softmax(scores.masked_fill(later, -1e9), -1), weight, padding=1)
    return mixed.masked_fill(later, 0.0)


def errors_of(case: Case) -> tuple[float, float]:
    """The greatest differences forward and backward, relative to the greatest magnitude (at least 1)."""
    ours, theirs = ([x.detach().clone().requires_grad_(x.requires_grad) for x in case.inputs] for _ in range(2))
    results = case.ours(*ours), case.theirs(*theirs)
    gradient = torch.randn_like(results[1])
    for result in results:
        result.backward(gradient)  # type: ignore[no-untyped-call]
    pairs = [(a.grad, b.grad) for a, b in zip(ours, theirs, strict=True)]
    return difference(*results), max(difference(a, b) for a, b in pairs)


def difference(a: Tensor | None, b: Tensor | None) -> float:
    assert a is not None and b is not None
    return float((a - b).abs().max() / max(1.0, float(b.abs().max())))


def main(names: Sequence[str]) -> int:
    """Run the named operations, by default all; the number of those that are wrong."""
    import loom.triton

    warnings.filterwarnings("ignore")
    loom.triton.install()
    torch.manual_seed(0)
    wrong = 0
    for name, case in cases().items():
        if names and name not in names:
            continue
        if name in OUT_OF_REACH and not names:
            print(f"{name:28} out of reach: {OUT_OF_REACH[name]}")
            continue
        try:
            forward, backward = errors_of(case)
            right = max(forward, backward) <= TOLERANCE
            text = f"{'right' if right else 'WRONG'}  forward {forward:.1e}  backward {backward:.1e}"
        except Exception as error:  # noqa: BLE001
            # One operation must not hide the others.
            right, text = False, f"FAILED {type(error).__name__}: {str(error)[:500]}"
        wrong += not right
        print(f"{name:28} {text}")
    return wrong


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]) > 0)
