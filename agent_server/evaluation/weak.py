"""A deliberately weak embedder, for one row of the ablation: another model's first dimensions, and no more."""

import hashlib
from collections.abc import Sequence
from dataclasses import replace

from agent_server.embedding import Embedded, Embedder, EmbedderIdentity, Vectors, unit_rows

DIMENSIONS = 48


def weakened(vectors: Vectors) -> Vectors:
    """The first DIMENSIONS columns of (n, d), at unit length."""
    return unit_rows(vectors[:, :DIMENSIONS])


class WeakEmbedder:
    """Cuts the vectors of `inner`, a model that was not trained to be cut: nearness gets coarse."""

    def __init__(self, inner: Embedder) -> None:
        self._inner = inner

    def identity(self) -> EmbedderIdentity:
        inner = self._inner.identity()
        return replace(
            inner,
            model=f"{inner.model}, first {DIMENSIONS} of {inner.dimensions} dimensions",
            digest=hashlib.sha256(f"{inner.digest}:{DIMENSIONS}".encode()).hexdigest(),
            dimensions=DIMENSIONS,
        )

    def embed_passages(self, texts: Sequence[str]) -> Embedded:
        got = self._inner.embed_passages(texts)
        return replace(got, vectors=weakened(got.vectors))

    def embed_query(self, text: str) -> Vectors:
        vector: Vectors = weakened(self._inner.embed_query(text)[None, :])[0]
        return vector

    def close(self) -> None:
        """The wrapped embedder belongs to whoever made it."""
