"""Puts a BEIR folder's documents into its throw-away collection, once, as ingestion would: vectors through the cache,
rows, counts and indexes by the same functions."""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agent_server.catalog import Collection, create_collection, drop_collection, get_collection
from agent_server.db import Database, execute, fetch_one
from agent_server.embedding import Embedder
from agent_server.errors import RunRefused, UnknownCollection
from agent_server.evaluation.arms import IN_PLACE, Arm
from agent_server.evaluation.beir import SOURCE, Doc, Folder, collection_name, dataset, read_folder
from agent_server.evaluation.runs import Given, run
from agent_server.ingest import index, store
from agent_server.ingest.paragraphs import paragraph_hash
from agent_server.ingest.prepare import prepare
from agent_server.ingest.spool import EmbeddedPart, Spool
from agent_server.ingest.vectors import vectors_for
from agent_server.models import Chunk, FileStatus, Paragraph
from agent_server.retrieval.candidates import SearchOptions

LAYOUT = 1  #: raise it when documents become passages in another way
ROOT = "beir"
PART = 512  #: documents prepared and embedded at a time
_DESCRIPTION = "Throw-away, made by kb eval --beir; drop it with kb collection drop."


@dataclass(frozen=True, slots=True)
class Loaded:
    """A collection whose passage n is document `ids[n]`, and counts for the result file."""

    collection: Collection
    ids: tuple[str, ...]
    about: Mapping[str, Any]
    reused: bool


def load(
    database: Database,
    folder: Folder,
    embedder: Embedder,
    *,
    text_search_config: str = "english",
    batch_size: int = 32,
    watch: Callable[[str, int, int], None] = lambda *_: None,
) -> Loaded:
    """The folder's collection, made unless it holds these documents with this model's vectors already.

    Raises BadQuestions for faulty documents, RunRefused when the name belongs to a collection that is not a throw-away
    one, and what the embedder raises; interrupted, it keeps the vectors made so far.
    """
    name = collection_name(folder.name, text_search_config)
    there = _there(database, name)
    identity = embedder.identity()
    version = f"beir-{LAYOUT}:{identity.digest[:12]}:{text_search_config}"
    if there is not None:
        about = _about(database, there, folder.corpus_sha256, version)
        if about is not None and there.contract == identity:
            return Loaded(there, tuple(d.id for d in folder.documents()), about, reused=True)
        drop_collection(database, name)
    documents = list(folder.documents())
    made = create_collection(database, name, identity, description=_DESCRIPTION, text_search_config=text_search_config)
    about = _fill(database, made, folder, documents, embedder, version, batch_size, watch)
    with database.owner() as connection:
        return Loaded(get_collection(connection, name), tuple(d.id for d in documents), about, reused=False)


def measure(
    database: Database,
    path: Path,
    embedder: Embedder,
    chosen: Sequence[Arm],
    given: Given,
    base: SearchOptions,
    *,
    split: str = "test",
    text_search_config: str = "english",
    batch_size: int = 32,
    limit: int = 0,
) -> list[dict[str, Any]]:
    """A run for each arm on a BEIR folder. Raises RunRefused for an arm that needs documents cut another way, and what
    `read_folder`, `load` and `run` raise."""
    if unfit := [arm.name for arm in chosen if arm.variant]:
        raise RunRefused(
            f"arm {unfit[0]} needs a collection made differently; a BEIR folder has one passage a document",
            hint=f"Arms for BEIR folders: {', '.join(IN_PLACE)}.",
        )
    folder = read_folder(path, split)
    loaded = load(
        database, folder, embedder, text_search_config=text_search_config, batch_size=batch_size, watch=given.watch
    )
    questions = dataset(folder, loaded.collection.name, loaded.ids, loaded.about, limit=limit)
    return [run(database, embedder, questions, arm, given, base) for arm in chosen]


def _there(database: Database, name: str) -> Collection | None:
    try:
        with database.owner() as connection:
            found = get_collection(connection, name)
    except UnknownCollection:
        return None
    if found.description != _DESCRIPTION:
        raise RunRefused(
            f"collection {found.name} was not made by an evaluation, and will not be replaced",
            hint="Give the folder another name, or drop the collection.",
        )
    return found


def _about(database: Database, collection: Collection, corpus_sha256: str, version: str) -> dict[str, Any] | None:
    """The counts of an earlier load of these very documents; None when there was none, or it was not finished."""
    with database.owner(collection.schema_name) as connection:
        row = fetch_one(connection, "file_get", {"source": SOURCE})
    if row is None or (row["sha256"], row["pipeline_version"]) != (corpus_sha256, version) or not collection.has_hnsw:
        return None
    return dict(row["metadata"])


def _fill(
    database: Database,
    collection: Collection,
    folder: Folder,
    documents: Sequence[Doc],
    embedder: Embedder,
    version: str,
    batch_size: int,
    watch: Callable[[str, int, int], None],
) -> dict[str, Any]:
    without_vector = 0
    with Spool() as spool:
        for at in range(0, len(documents), PART):
            part = prepare([passage(n, d) for n, d in enumerate(documents[at : at + PART], at)])

            def told(done: int, _: int, at: int = at) -> None:
                watch(f"embedding {folder.name}", at + done, len(documents))

            got = vectors_for(database, collection, embedder, part.texts, batch_size=batch_size, watch=told)
            without_vector += len(got.failures)
            spool.add(EmbeddedPart(part, got.vectors))
        watch(f"storing {folder.name}", len(documents), len(documents))
        # Nothing is cut: an embedder reads long texts part by part.
        about = {"documents": len(documents), "without_vector": without_vector, "cut": 0}
        row = store.LedgerRow(
            source=SOURCE,
            root=ROOT,
            sha256=folder.corpus_sha256,
            size_bytes=0,
            media_type="application/jsonl",
            status=FileStatus.INDEXED,
            reason="",
            pipeline_version=version,
            chunk_count=len(documents),
            title=folder.name,
            metadata=json.dumps(about),
        )
        with database.owner(collection.schema_name) as connection:
            execute(connection, "root_upsert", {"root": ROOT, "path": f"/{ROOT}/{folder.name}"})
            store.replace_parts(connection, collection, row, spool)
    index.finish_load(database, collection, changed_rows=len(documents))
    return about


def passage(n: int, document: Doc) -> Chunk:
    """A document as one passage; its title is the context line. Pure."""
    return Chunk(
        index=n,
        text=document.text,
        context=document.title,
        heading_path=(),
        label="",
        page_first=None,
        page_last=None,
        char_start=0,
        char_end=len(document.text),
        paragraphs=tuple(_paragraphs(document.text)),
    )


def _paragraphs(text: str) -> list[Paragraph]:
    """Paragraphs long enough to be known again, each hash once."""
    found: dict[int, Paragraph] = {}
    for match in re.finditer(r"\S.*?(?=\s*\n\s*\n|\s*\Z)", text, re.DOTALL):
        hash_ = paragraph_hash(match[0])
        if hash_ is not None:
            found.setdefault(hash_, Paragraph(match.start(), match.end(), hash_))
    return list(found.values())
