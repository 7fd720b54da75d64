"""A quick embedder for tests that need vectors but no meaning. No figure of quality may rest on it."""

import hashlib
import re
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from agent_server.embedding import Embedded, EmbedderIdentity
from agent_server.errors import EmbedderUnavailable


class HashEmbedder:
    """Each word votes on a few of `dimensions` coordinates: shared words make near vectors."""

    def __init__(self, dimensions: int = 64, *, digest: str = "hash-1") -> None:
        self.dimensions = dimensions
        self.digest = digest
        self.calls: list[list[str]] = []
        self.poison: str | None = None  #: a text that holds this gets no vector
        self.lost_after: int | None = None  #: unavailable after so many calls

    def identity(self) -> EmbedderIdentity:
        return EmbedderIdentity(
            kind="local",
            model="hash",
            digest=self.digest,
            dimensions=self.dimensions,
            query_prefix="",
            passage_prefix="",
            context_tokens=8192,
        )

    def embed_passages(self, texts: Sequence[str]) -> Embedded:
        if self.lost_after is not None and len(self.calls) >= self.lost_after:
            raise EmbedderUnavailable("the hash embedder is switched off")
        self.calls.append(list(texts))
        failures = {n: "poison" for n, t in enumerate(texts) if self.poison is not None and self.poison in t}
        vectors = np.stack([self._vector(t) for t in texts])
        for n in failures:
            vectors[n] = np.nan
        return Embedded(vectors=vectors, failures=failures)

    def embed_query(self, text: str) -> NDArray[np.float32]:
        if self.lost_after is not None and len(self.calls) >= self.lost_after:
            raise EmbedderUnavailable("the hash embedder is switched off")
        return self._vector(text)

    def close(self) -> None:
        pass

    @property
    def texts(self) -> list[str]:
        return [text for call in self.calls for text in call]

    def _vector(self, text: str) -> NDArray[np.float32]:
        vector = np.full(self.dimensions, 1e-3, np.float32)
        for word in re.findall(r"\w+", text.lower()):
            digest = hashlib.blake2b(word.encode(), digest_size=12).digest()
            for at in range(0, 12, 4):
                value = int.from_bytes(digest[at : at + 4], "big")
                vector[value % self.dimensions] += 1.0 if value >> 31 else -1.0
        return vector / np.float32(np.linalg.norm(vector))
