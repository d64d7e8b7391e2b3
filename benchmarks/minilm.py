"""The MiniLM encoder of `examples/minilm.py` against PyTorch's eager model."""

from __future__ import annotations

from benchmarks.measure import compare
from benchmarks.result import Result
from examples.minilm import SENTENCES, forward, load_weights, tokenize, torch_forward


def run() -> list[Result]:
    """Reported, without a bar: PyTorch works on a padded batch, Loom on a ragged one."""
    import torch

    torch.set_num_threads(1)
    weights, batch = load_weights(), tokenize(SENTENCES)
    eager = torch_forward(SENTENCES)
    assert eager is not None
    measured = compare(lambda: forward(weights, batch), eager)
    detail = {"ours_ms": measured.ours * 1e3, "torch_ms": measured.theirs * 1e3}
    return [Result("MiniLM encoder against torch eager", measured.ratio, None, detail=detail)]
