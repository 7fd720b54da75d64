"""Puts passages into a collection without files, for tests of the read path."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Any

from agent_server.catalog import Collection, create_collection, get_collection
from agent_server.db import Conn, Database, execute
from agent_server.ingest import index, store
from agent_server.ingest.paragraphs import paragraph_hash
from agent_server.models import Chunk, FileStatus, Paragraph
from tests.hash_embedder import HashEmbedder


@dataclass(frozen=True)
class File:
    """A source with its passages; each passage is a sequence of paragraphs."""

    source: str
    passages: Sequence[str]
    authority: float = 0.0
    retired: bool = False
    heading: str = ""
    media_type: str = "text/plain"
    dated: date | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)


def chunk(n: int, text: str, context: str = "") -> Chunk:
    paragraphs = []
    at = 0
    for part in text.split("\n\n"):
        if (hash_ := paragraph_hash(part)) is not None:
            paragraphs.append(Paragraph(at, at + len(part), hash_))
        at += len(part) + 2
    return Chunk(
        index=n,
        text=text,
        context=context,
        heading_path=(context,) if context else (),
        label="",
        page_first=None,
        page_last=None,
        char_start=n * 10_000,
        char_end=n * 10_000 + len(text),
        paragraphs=tuple(paragraphs),
    )


def fill(
    database: Database,
    name: str,
    files: Iterable[File],
    embedder: HashEmbedder | None = None,
    *,
    config: str = "english",
) -> Collection:
    """A collection that holds `files`, indexed."""
    embedder = embedder or HashEmbedder()
    collection = create_collection(database, name, embedder.identity(), text_search_config=config)
    with database.owner(collection.schema_name) as connection:
        execute(connection, "root_upsert", {"root": "r", "path": "/r"})
    rows = 0
    with database.owner(collection.schema_name) as connection:
        for file in files:
            _replace(connection, collection, file, embedder)
            rows += len(file.passages)
    index.finish_load(database, collection, changed_rows=rows)
    return collection_of(database, name)


def collection_of(database: Database, name: str) -> Collection:
    with database.owner() as connection:
        return get_collection(connection, name)


def put(database: Database, collection: Collection, file: File, embedder: HashEmbedder | None = None) -> None:
    """Replace one file's passages."""
    with database.owner(collection.schema_name) as connection:
        _replace(connection, collection, file, embedder or HashEmbedder())


def _replace(connection: Conn, collection: Collection, file: File, embedder: HashEmbedder) -> None:
    chunks = [chunk(n, text, file.heading) for n, text in enumerate(file.passages)]
    vectors = embedder.embed_passages([c.text for c in chunks]).vectors if chunks else None
    row = store.LedgerRow(
        source=file.source,
        root="r",
        sha256=str(hash(tuple(file.passages))),
        size_bytes=1,
        media_type=file.media_type,
        status=FileStatus.INDEXED if chunks else FileStatus.REMOVED,
        reason="",
        pipeline_version="test",
        chunk_count=len(chunks),
        title=file.source,
        authority=file.authority,
        dated=file.dated,
        metadata=json.dumps(file.metadata),
    )
    store.replace_file(connection, collection, row, chunks, vectors, retired=file.retired)
