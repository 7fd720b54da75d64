"""Collections made differently, for one ablation each: made from the stored passages or files, dropped afterwards.

Names start with `eval-`; one left behind by a killed run is replaced by the next, and `kb collection drop` removes it.
"""

import hashlib
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from agent_server.catalog import Collection, create_collection, drop_collection, get_collection
from agent_server.db import Database, execute, fetch_all
from agent_server.embedding import Embedder, Vectors
from agent_server.errors import RunRefused, UnknownCollection
from agent_server.evaluation.weak import WeakEmbedder, weakened
from agent_server.ingest import index, store
from agent_server.ingest.pipeline import ingest
from agent_server.ingest.prepare import Part, prepare
from agent_server.ingest.spool import EmbeddedPart
from agent_server.ingest.steps import IngestOptions
from agent_server.ingest.vectors import vectors_for
from agent_server.models import Chunk, FileStatus, Paragraph

_SIZE = "size-"
_DESCRIPTION = "Throw-away, made by kb eval --ablate; drop it with kb collection drop."
_WITH_PASSAGES = (FileStatus.INDEXED, FileStatus.PARTIAL)


@dataclass(frozen=True, slots=True)
class Stored:
    """A file's passages as they stand: vectors (n, d), NaN rows where there is none."""

    source: str
    chunks: tuple[Chunk, ...]
    vectors: Vectors
    retired: bool


def is_in_place(variant: str, collection: Collection) -> bool:
    """Whether the collection is this variant already."""
    return variant in ("", f"{_SIZE}{collection.chunk_size}")


@contextmanager
def made(
    database: Database,
    collection: Collection,
    variant: str,
    embedder: Embedder,
    options: IngestOptions,
) -> Iterator[tuple[Collection, Embedder]]:
    """A variant of `collection` and the embedder to search it with; dropped at the end.

    Raises RunRefused for another chunk size when the files are not where they were ingested from.
    """
    name = f"eval-{collection.name[: 38 - len(variant) - 5]}-{variant}"
    _drop(database, name)
    searched_with = WeakEmbedder(embedder) if variant == "weak" else embedder
    size = int(variant.removeprefix(_SIZE)) if variant.startswith(_SIZE) else collection.chunk_size
    create_collection(
        database,
        name,
        searched_with.identity(),
        description=_DESCRIPTION,
        text_search_config="simple" if variant == "no-stemming" else collection.text_search_config,
        chunk_size=size,
        chunk_overlap=collection.chunk_overlap * size // collection.chunk_size,
    )
    try:
        new = _collection(database, name)
        if variant.startswith(_SIZE):
            _ingest_again(database, collection, new, embedder, options)
        else:
            _copy(database, collection, new, _change(database, new, variant, embedder, options.batch_size))
        yield _collection(database, name), searched_with
    finally:
        drop_collection(database, name)


def _collection(database: Database, name: str) -> Collection:
    with database.owner() as connection:
        return get_collection(connection, name)


def _drop(database: Database, name: str) -> None:
    with suppress(UnknownCollection):
        if _collection(database, name).description != _DESCRIPTION:
            raise RunRefused(
                f"collection {name} was not made by an evaluation, and will not be replaced",
                hint="Drop it or rename it first.",
            )
        drop_collection(database, name)


# -- from stored passages ---------------------------------------------------------------------------------------

Change = Callable[[Stored], tuple[Part, Vectors]]


def _change(database: Database, new: Collection, variant: str, embedder: Embedder, batch_size: int) -> Change:
    """What becomes of a file's passages in the variant."""

    def without_context(stored: Stored) -> tuple[Part, Vectors]:
        part = prepare([replace(c, context="") for c in stored.chunks])
        return part, vectors_for(database, new, embedder, part.texts, batch_size=batch_size).vectors

    def without_copies(stored: Stored) -> tuple[Part, Vectors]:
        return _never_equal(prepare(stored.chunks), stored.source), stored.vectors

    changes: dict[str, Change] = {
        "no-context": without_context,
        "no-folding": without_copies,
        "no-stemming": lambda stored: (prepare(stored.chunks), stored.vectors),
        "weak": lambda stored: (prepare(stored.chunks), weakened(stored.vectors)),
    }
    return changes[variant]


def _never_equal(part: Part, source: str) -> Part:
    """`part` with passage hashes that no other passage has, so that every copy is searched."""
    rows = json.loads(part.rows)
    hashes = []
    for row in rows:
        own = hashlib.sha256(f"{source}::{row['chunk_index']}".encode()).digest()
        row["passage_hash"] = f"\\x{own.hex()}"
        hashes.append(own)
    return Part(part.texts, tuple(hashes), json.dumps(rows))


def _copy(database: Database, old: Collection, new: Collection, change: Change) -> None:
    """Every file of `old` with its ledger row, its passages changed."""
    with database.owner(old.schema_name) as connection:
        ledger = store.read_ledger(connection)
        roots = fetch_all(connection, "root_list")
    with database.owner(new.schema_name) as connection:
        for root in roots:
            execute(connection, "root_upsert", root)
    passages = 0
    for row in ledger.values():
        if row.status not in _WITH_PASSAGES:
            continue
        stored = _stored(database, old, row.source)
        part, vectors = change(stored)
        with database.owner(new.schema_name) as connection:
            store.replace_parts(connection, new, row, [EmbeddedPart(part, vectors)], retired=stored.retired)
        passages += len(stored.chunks)
    index.finish_load(database, new, changed_rows=passages)


def _stored(database: Database, collection: Collection, source: str) -> Stored:
    with database.owner(collection.schema_name) as connection:
        rows = fetch_all(connection, "variant_chunks", {"source": source})
    none = np.full(collection.dimensions, np.nan, np.float32)
    vectors = [none if r["embedding"] is None else _vector(r["embedding"]) for r in rows]
    return Stored(source, tuple(map(_chunk, rows)), np.stack(vectors), all(r["retired"] for r in rows))


def _vector(text: str) -> Vectors:
    return np.array(text[1:-1].split(","), np.float32)


def _chunk(row: dict[str, Any]) -> Chunk:
    spans = row["paragraph_spans"]
    pairs = zip(row["paragraph_hashes"], spans[0::2], spans[1::2], strict=True)
    return Chunk(
        index=row["chunk_index"],
        text=row["text"],
        context=row["context"],
        heading_path=tuple(row["heading_path"]),
        label=row["label"],
        page_first=row["page_first"],
        page_last=row["page_last"],
        char_start=row["char_start"],
        char_end=row["char_end"],
        paragraphs=tuple(Paragraph(start, end, hash_) for hash_, start, end in pairs),
    )


# -- from files -------------------------------------------------------------------------------------------------


def _ingest_again(
    database: Database, old: Collection, new: Collection, embedder: Embedder, options: IngestOptions
) -> None:
    """The files of `old`, read again for `new`, with the authority that they have there (its rules go by name)."""
    with database.owner(old.schema_name) as connection:
        ledger = store.read_ledger(connection)
        roots = [Path(row["path"]) for row in fetch_all(connection, "root_list")]
    if gone := [str(root) for root in roots if not root.exists()]:
        raise RunRefused(
            f"chunks of {new.chunk_size} characters need the files of {old.name}, and {gone[0]} is not there",
            hint="Ingest the collection again from where its files are now, or leave the size-… arms out.",
        )
    ingest(database, new.name, roots, embedder, options)
    with database.owner(new.schema_name) as connection:
        here = store.read_ledger(connection)
    if lost := sorted(s for s, row in ledger.items() if row.status in _WITH_PASSAGES and s not in here):
        raise RunRefused(f"{len(lost)} files of {old.name} are no longer where they were: {lost[0]} …")
    for source in here:
        if source in ledger:
            with database.owner(new.schema_name) as connection:
                store.set_authority(connection, new, source, ledger[source].authority)
