"""Vectors by content: what a model has embedded once is never paid for again, whichever file or collection asks."""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from agent_server.catalog import Collection
from agent_server.db import Database, execute, fetch_all
from agent_server.embedding import Embedded, Embedder, Vectors, storable
from agent_server.errors import EmbeddingRefused
from agent_server.ingest.halfvecs import finite_rows, half_vectors

_NOT_STORABLE = "the embedder gave no vector that half precision can hold: not finite, or zero"


@dataclass(frozen=True, slots=True)
class Got:
    """Vectors of some texts, (n, d) in their order; rows of NaN have their reason in `failures`, by position."""

    vectors: Vectors
    failures: Mapping[int, str]
    embedded: int  #: texts sent to the embedder
    reused: int  #: texts whose vector was known


def vectors_for(
    database: Database,
    collection: Collection,
    embedder: Embedder,
    texts: Sequence[str],
    *,
    batch_size: int,
    watch: Callable[[int, int], None] = lambda *_: None,
) -> Got:
    """Vectors of `texts` under the collection's model, from the cache or from `embedder`.

    Batches reach the cache as they come, so that a crash repeats one batch. A text that stands twice is embedded once.
    `watch` is told how many were embedded, and how many there are to embed.
    """
    hashes = [content_hash(collection, text) for text in texts]
    known = cached_vectors(database, hashes)
    missing: dict[bytes, str] = {h: t for h, t in zip(hashes, texts, strict=True) if h not in known}
    reused = sum(h in known for h in hashes)
    reasons: dict[bytes, str] = {}
    todo = list(missing.items())
    for at in range(0, len(todo), batch_size):
        batch = todo[at : at + batch_size]
        watch(at, len(todo))
        got = _checked(embedder.embed_passages([text for _, text in batch]), len(batch), collection.dimensions)
        cache_vectors(database, [h for h, _ in batch], got.vectors)
        known |= {h: v for (h, _), v in zip(batch, got.vectors, strict=True)}
        reasons |= {batch[n][0]: reason for n, reason in got.failures.items()}
    watch(len(todo), len(todo))
    vectors = np.stack([known[h] for h in hashes])
    return Got(vectors, {n: reasons[h] for n, h in enumerate(hashes) if h in reasons}, len(todo), reused)


def _checked(got: Embedded, count: int, dimensions: int) -> Embedded:
    """The embedder's answer with every row that cannot be stored among the failures. Raises EmbeddingRefused where
    the rows are not those that were asked for: nothing says which text would get which."""
    if got.vectors.shape != (count, dimensions):
        raise EmbeddingRefused(
            f"the embedder answered {' x '.join(map(str, got.vectors.shape))} numbers, expected {count} x {dimensions}",
            hint="Nothing of the file was stored; the next run tries again.",
        )
    bad = [int(n) for n in np.flatnonzero(~storable(got.vectors))]
    if set(bad) == set(got.failures):
        return got
    vectors = got.vectors.copy()
    vectors[bad] = np.nan
    return replace(got, vectors=vectors, failures=dict.fromkeys(bad, _NOT_STORABLE) | dict(got.failures))


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
    finite = finite_rows(vectors)
    good = [h for h, is_finite in zip(hashes, finite.tolist(), strict=True) if is_finite]
    if good:
        with database.owner() as connection:
            embeddings = half_vectors(connection, vectors[finite], len(good))
            execute(connection, "vector_cache_put", {"hashes": good, "embeddings": embeddings})


def forget_vectors(database: Database, collection: Collection, texts: Sequence[str]) -> None:
    """Have these texts embedded again under the collection's model when they are next asked for."""
    with database.owner() as connection:
        execute(connection, "vector_cache_forget", {"hashes": [content_hash(collection, text) for text in texts]})
