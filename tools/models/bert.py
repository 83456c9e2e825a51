"""The original model in float64: slow, plain, and the truth that everything else is measured against.

Written from the description of BERT, sharing nothing with the graph that `minilm.py` writes, so that
a mistake in one shows as a difference between the two.
"""

from collections.abc import Callable

import numpy
from scipy.special import erf

HEADS = 12
LAYERS = 6
NORM_EPSILON = 1e-12


def embed(weights: dict, ids: list[int]) -> numpy.ndarray:
    """The sentence vector: mean of the token states, scaled to length one."""
    mean = token_states(weights, ids).mean(axis=0)
    return mean / numpy.linalg.norm(mean)


def token_states(weights: dict, ids: list[int], seen: Callable = lambda name, values: None) -> numpy.ndarray:
    """The last hidden state, [tokens, 384]. `seen` is told the input of every dense layer."""

    def weight(name: str) -> numpy.ndarray:
        return weights[name].astype(numpy.float64)

    def dense(name: str, x: numpy.ndarray) -> numpy.ndarray:
        seen(name, x)
        return x @ weight(f"{name}.weight").T + weight(f"{name}.bias")

    def norm(name: str, x: numpy.ndarray) -> numpy.ndarray:
        centred = x - x.mean(axis=-1, keepdims=True)
        deviation = numpy.sqrt((centred**2).mean(axis=-1, keepdims=True) + NORM_EPSILON)
        return centred / deviation * weight(f"{name}.weight") + weight(f"{name}.bias")

    def heads(x: numpy.ndarray) -> numpy.ndarray:
        return x.reshape(len(ids), HEADS, -1).transpose(1, 0, 2)

    words = weights["embeddings.word_embeddings.weight"][ids].astype(numpy.float64)
    positions = weight("embeddings.position_embeddings.weight")[: len(ids)]
    x = norm("embeddings.LayerNorm", words + positions + weight("embeddings.token_type_embeddings.weight")[0])

    for layer in range(LAYERS):
        at = f"encoder.layer.{layer}"
        query, key, value = (heads(dense(f"{at}.attention.self.{part}", x)) for part in ("query", "key", "value"))
        scores = query @ key.transpose(0, 2, 1) / numpy.sqrt(query.shape[-1])
        scores = numpy.exp(scores - scores.max(axis=-1, keepdims=True))
        scores /= scores.sum(axis=-1, keepdims=True)
        context = (scores @ value).transpose(1, 0, 2).reshape(x.shape)
        x = norm(f"{at}.attention.output.LayerNorm", x + dense(f"{at}.attention.output.dense", context))
        hidden = dense(f"{at}.intermediate.dense", x)
        hidden = hidden * (1 + erf(hidden / numpy.sqrt(2))) / 2
        x = norm(f"{at}.output.LayerNorm", x + dense(f"{at}.output.dense", hidden))
    return x
