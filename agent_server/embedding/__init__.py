"""Embedders: one protocol, one contract stored with each collection.

`make_embedder` chooses by the settings and imports lazily: the base install has neither onnxruntime nor a model.
"""

import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from agent_server.errors import ContractMismatch
from agent_server.settings import Settings

Vectors = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class EmbedderIdentity:
    """The contract: vectors made under another one are never mixed in, nor searched with."""

    kind: Literal["ollama", "local"]
    model: str
    digest: str  #: of the weights: a tag may come to point at others
    dimensions: int
    query_prefix: str
    passage_prefix: str
    context_tokens: int


@dataclass(frozen=True, slots=True)
class Embedded:
    """Vectors of some passages, float32 (n, d), unit rows in the order asked; failed rows are NaN."""

    vectors: Vectors
    #: position -> why this text has no vector
    failures: Mapping[int, str] = field(default_factory=dict)
    #: positions of texts longer than the model reads: embedded part by part, the mean taken, nothing cut off
    split: frozenset[int] = frozenset()


class Embedder(Protocol):
    """Turns texts into unit vectors. Raises EmbedderUnavailable when another try later may help, EmbeddingRefused
    when it will not."""

    def identity(self) -> EmbedderIdentity:
        """The contract that this embedder offers; asks the server once."""
        ...

    def embed_passages(self, texts: Sequence[str]) -> Embedded:
        """Vectors of passages; one that cannot be embedded does not cost the others."""
        ...

    def embed_query(self, text: str) -> Vectors:
        """The vector (d,) of a question, within the short time-out of a search."""
        ...

    def close(self) -> None: ...


def make_embedder(settings: Settings) -> Embedder:
    """The embedder that the settings name. Nothing is loaded or asked yet."""
    if settings.embedder_kind == "ollama":
        from agent_server.embedding.ollama import OllamaEmbedder  # noqa: PLC0415  lazily, as the module says
        from agent_server.embedding.ollama_host import parse_host  # noqa: PLC0415

        return OllamaEmbedder(
            parse_host(settings.ollama_url or ""),
            settings.embed_model,
            query_timeout_s=settings.query_timeout_s,
            passage_timeout_s=settings.embed_timeout_s,
            batch_size=settings.embed_batch_size,
        )
    from agent_server.embedding.local import LocalEmbedder  # noqa: PLC0415  lazily, as the module says

    return LocalEmbedder(settings.local_model_dir)


def check_contract(stored: EmbedderIdentity, offered: EmbedderIdentity) -> None:
    """Raise ContractMismatch unless vectors of `offered` belong among those of `stored`."""
    differ = [
        f"{name} is {ours!r}, the collection has {theirs!r}"
        for name, theirs, ours in (
            ("embedder", stored.kind, offered.kind),
            ("model", stored.model, offered.model),
            ("digest", stored.digest[:12], offered.digest[:12]),
            ("width", stored.dimensions, offered.dimensions),
            ("query prefix", stored.query_prefix, offered.query_prefix),
            ("passage prefix", stored.passage_prefix, offered.passage_prefix),
        )
        if ours != theirs
    ]
    if differ:
        raise ContractMismatch(
            "the embedder is not the one the vectors come from: " + "; ".join(differ),
            hint="Set KB_EMBEDDER and KB_EMBED_MODEL to the collection's model, or give the collection this one: "
            "`kb reembed NAME`; searches go on meanwhile.",
            details={"stored": stored.model, "offered": offered.model, "differ": differ},
        )


def is_blank(text: str) -> bool:
    """Whether `text` holds nothing a model could read: white space, control and zero-width characters alone."""
    return all(c.isspace() or unicodedata.category(c) in ("Cc", "Cf") for c in text)


def storable(vectors: Vectors) -> NDArray[np.bool_]:
    """Which rows of (n, d) are finite and not zero once they are stored in half precision."""
    with np.errstate(over="ignore", invalid="ignore"):  # a value beyond half precision becomes inf, and is caught
        half = vectors.astype(np.float16).astype(np.float32)
        good: NDArray[np.bool_] = np.isfinite(half).all(axis=1) & (np.linalg.norm(half, axis=1) > 0)
    return good


def unit_rows(vectors: Vectors) -> Vectors:
    """Rows of (n, d) at length 1; rows that have no direction become NaN."""
    with np.errstate(divide="ignore", invalid="ignore"):
        # In double precision: the squares of large float32 values overflow.
        norms = np.linalg.norm(vectors.astype(np.float64), axis=1, keepdims=True)
        out = np.where(norms > 1e-6, vectors / norms, np.nan).astype(np.float32)
    out[~storable(out)] = np.nan
    return out
