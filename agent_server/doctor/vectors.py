"""The embedder: it answers, is the one that each collection was made with, and still says what it said then."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from agent_server.catalog import Collection
from agent_server.db import Database, fetch_all
from agent_server.doctor.check import Check, cure
from agent_server.embedding import Embedder, EmbedderIdentity, check_contract
from agent_server.errors import ContractMismatch, KnowledgeBankError
from agent_server.ingest.prepare import passage_text

#: Passages whose vectors are made again.
CANARIES = 3
#: The same model's vectors differ in the last digits: half precision, batches, the arithmetic of another processor.
#: Those of another model have nothing to do with each other (cosine about 0).
LEAST_COSINE = 0.97


def check_embedder(offered: EmbedderIdentity) -> Check:
    return Check("embedder", "ok", f"{offered.model} ({offered.kind}), {offered.dimensions} wide")


def no_embedder(error: KnowledgeBankError) -> Check:
    """What keeps it from answering, with the embedder's own advice."""
    return Check("embedder", "error", error.message, error.hint or cure("doctor"))


def check_models(database: Database, collections: Sequence[Collection], embedder: Embedder) -> Iterator[Check]:
    """Each collection's contract against the embedder's, then its canaries. Raises EmbedderUnavailable."""
    offered = embedder.identity()
    for collection in collections:
        try:
            check_contract(collection.contract, offered)
        except ContractMismatch as error:
            found = f"{error.message}; or set KB_EMBEDDER and KB_EMBED_MODEL to the collection's model"
            yield Check(f"{collection.name} model", "error", found, cure("reembed", collection.name))
            continue
        with database.owner(collection.schema_name) as connection:
            rows = fetch_all(connection, "doctor_canaries", {"limit": CANARIES})
        yield check_canaries(collection.name, rows, embedder)


def check_canaries(name: str, rows: Sequence[Mapping[str, Any]], embedder: Embedder) -> Check:
    """Vectors of a few passages, made again, against those stored when they came in: a digest says which model was
    asked for, this says what it answers. `rows` are those of doctor_canaries.sql."""
    title = f"{name} canaries"
    if not rows:
        return Check(title, "ok", "nothing to compare yet")
    # One at a time: in a batch, quantised models let one text's vector hang on the others.
    now = np.stack([embedder.embed_passages([passage_text(r["context"], r["text"])]).vectors[0] for r in rows])
    then = np.array([r["vector"][1:-1].split(",") for r in rows], np.float32)
    if now.shape != then.shape or not np.isfinite(now).all():
        found = "the embedder gives no vectors for passages that it gave some for when they came in"
        return Check(title, "error", found, cure("reembed", name, "--again"))
    lengths = np.linalg.norm(now, axis=1) * np.linalg.norm(then, axis=1)
    worst = float(np.min(np.sum(now * then, axis=1) / lengths))
    if worst < LEAST_COSINE:
        found = f"the model says the same name and digest, and gives other vectors than are stored (cosine {worst:.3f})"
        return Check(title, "error", found, cure("reembed", name, "--again"))
    return Check(title, "ok", f"{len(rows)} passages embedded again: as stored (cosine {worst:.4f})")


def unfinished(name: str) -> Check:
    """Another model's vectors stand beside those that are searched."""
    found = "another model's vectors are unfinished: a re-embedding runs, or was interrupted; --abort gives it up"
    return Check(f"{name} re-embedding", "warn", found, cure("reembed", name))
