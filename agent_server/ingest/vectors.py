"""Vectors by content: what a model has embedded once is never paid for again, whichever file or collection asks."""

import hashlib
from collections.abc import Sequence

import numpy as np

from agent_server.catalog import Collection
from agent_server.db import Database, execute, fetch_all
from agent_server.embedding import Vectors


def content_hash(collection: Collection, text: str) -> bytes:
    """Key of a passage's vector: everything that the vector depends on."""
    parts = (
        collection.model,
        collection.model_digest,
        str(collection.dimensions),
        collection.passage_prefix,
        text,
    )
    return hashlib.sha256("\0".join(parts).encode()).digest()


def cached_vectors(database: Database, hashes: Sequence[bytes]) -> dict[bytes, Vectors]:
    """Vectors embedded before, those of `hashes` that are known."""
    if not hashes:
        return {}
    with database.owner() as connection:
        rows = fetch_all(connection, "vector_cache_get", {"hashes": list(set(hashes))})
    return {bytes(r["content_hash"]): np.array(r["embedding"][1:-1].split(","), np.float32) for r in rows}


def cache_vectors(database: Database, hashes: Sequence[bytes], vectors: Vectors) -> None:
    """Remember one batch; committed at once, so that a crash repeats no more than the next batch."""
    good = [(h, v) for h, v in zip(hashes, vectors, strict=True) if np.isfinite(v).all()]
    if good:
        texts = vector_texts(np.stack([v for _, v in good]), len(good))
        with database.owner() as connection:
            execute(connection, "vector_cache_put", {"hashes": [h for h, _ in good], "embeddings": texts})


def vector_texts(vectors: Vectors | None, count: int) -> list[str | None]:
    """Rows as halfvec texts; None for a passage without a vector. Counts must agree."""
    if vectors is None:
        return [None] * count
    if len(vectors) != count:
        raise ValueError(f"{len(vectors)} vectors for {count} passages")
    return [
        "[" + ",".join(f"{x:.6g}" for x in row) + "]" if np.isfinite(row).all() else None for row in vectors.tolist()
    ]
