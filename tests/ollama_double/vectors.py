"""Made-up vectors and a made-up token rule: exact, repeatable, and no measure of any quality.

Texts that share words or pieces of words are near each other, so ranking is not arbitrary; meaning plays no part.
"""

import hashlib
import itertools
import re
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

CHARS_PER_TOKEN = 4


def count_tokens(text: str) -> int:
    """One token per started four characters of each word."""
    return sum(-(-len(word) // CHARS_PER_TOKEN) for word in text.split())


def cut_tokens(text: str, limit: int) -> str:
    """The head of `text` that holds at most `limit` tokens."""
    left = limit
    for word in re.finditer(r"\S+", text):
        need = -(-len(word.group()) // CHARS_PER_TOKEN)
        if need > left:
            return text[: word.start() + left * CHARS_PER_TOKEN].rstrip()
        left -= need
    return text


def hashed_vector(digest: str, text: str, dimensions: int) -> NDArray[np.float32]:
    """The unit vector (d,) that a model with these weights has for `text`, prefix included."""
    vector = np.zeros(dimensions, np.float64)
    words = re.findall(r"\w+|[^\w\s]", text.lower())
    for word in words:
        for feature, weight in _features(word):
            for place, sign in _votes(digest, feature, dimensions):
                vector[place] += sign * weight
    for pair in itertools.pairwise(words):
        for place, sign in _votes(digest, " ".join(pair), dimensions):
            vector[place] += sign * 0.3
    for place, sign in _votes(digest, "\0bias", dimensions):
        vector[place] += sign * 0.01  # texts without a word have a direction as well
    return (vector / max(float(np.linalg.norm(vector)), 1e-12)).astype(np.float32)


def _features(word: str) -> list[tuple[str, float]]:
    padded = f"<{word}>"
    return [(word, 1.0), *((padded[n : n + 3], 0.25) for n in range(len(padded) - 2))]


@lru_cache(maxsize=100_000)
def _votes(digest: str, feature: str, dimensions: int) -> tuple[tuple[int, float], ...]:
    raw = hashlib.blake2b(feature.encode("utf-8", "replace"), key=digest.encode()[:64], digest_size=32).digest()
    return tuple(
        (int.from_bytes(raw[n : n + 3], "big") % dimensions, 1.0 if raw[n + 3] & 1 else -1.0) for n in range(0, 32, 4)
    )
