"""What `kb doctor --fix` does: all that needs no decision and can be done while searches and ingestion go on."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import psycopg

from agent_server.catalog import Collection, ensure_roles, get_collection, list_collections
from agent_server.db import Database, execute, fetch_all, fetch_one, translated
from agent_server.doctor.indexes import DENSE, check_dead, dense_problem, missing_indexes, schema_indexes
from agent_server.doctor.passages import check_counts, check_length
from agent_server.doctor.roles import ROLES, check_reader
from agent_server.embedding import Embedder, check_contract
from agent_server.errors import KnowledgeBankError
from agent_server.ingest import index, reindex, store
from agent_server.ingest.after import run_hooks
from agent_server.ingest.halfvecs import half_vectors
from agent_server.ingest.prepare import passage_text
from agent_server.ingest.rebuild import model_kept
from agent_server.ingest.report import without_vector
from agent_server.ingest.vectors import vectors_for
from agent_server.retrieval import trace
from agent_server.settings import Settings


@dataclass(slots=True)
class Mended:
    """What was done, in order, and what was not, and why."""

    done: list[str] = field(default_factory=list)
    left: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Ground:
    database: Database
    collection: Collection
    settings: Settings
    embedder: Callable[[], Embedder]
    now: datetime


def mend(database: Database, settings: Settings, embedder: Callable[[], Embedder], now: datetime) -> Mended:
    """Put in order what the checks found. `embedder` opens one where vectors are missing.

    What cannot be done now (a rebuild is at work, the embedder is not there) keeps the rest from nothing.
    """
    mended = Mended()
    with translated():
        with database.owner() as connection:
            collections = list_collections(connection)
        locked_out = [c.name for c in collections if any(k.cure == ROLES for k in check_reader(database, c))]
        ensure_roles(database)
        mended.done += [f"{name}: reader role made anew" for name in locked_out]
        for collection in collections:
            ground = _Ground(database, collection, settings, embedder, now)
            for step in _STEPS:
                try:
                    for what in step(ground):
                        mended.done.append(f"{collection.name}: {what}")
                except KnowledgeBankError as error:
                    mended.left.append(f"{collection.name}: {error.message}")
    return mended


def _copies(ground: _Ground) -> Iterator[str]:
    database, collection = ground.database, ground.collection
    with database.owner(collection.schema_name) as connection:
        broken = fetch_all(connection, "doctor_copies")
        store.fold_copies(connection, [bytes(r["passage_hash"]) for r in broken])
    if broken:
        yield f"chose the copy that stands for {len(broken)} passages"


def _missing_indexes(ground: _Ground) -> Iterator[str]:
    database, collection = ground.database, ground.collection
    made = schema_indexes(collection.schema_name, collection.dimensions)
    with database.owner_autocommit(collection.schema_name) as connection:
        for name in sorted(missing_indexes(fetch_all(connection, "doctor_indexes"))):
            # The only text vouched for as LiteralString is that of files shipped with this package: collection.sql.
            connection.execute(psycopg.sql.SQL(made[name]))
            yield f"index {name} made"


def _vectors(ground: _Ground) -> Iterator[str]:
    """Vectors of passages that lost theirs; what the model refuses is said in the ledger."""
    database, collection = ground.database, ground.collection
    values: dict[str, Any] = {"after": 0, "limit": ground.settings.embed_batch_size}
    with model_kept(database, collection.name):
        rows = _unembedded(database, collection, values)
        if not rows:
            return
        given, refused = 0, dict[str, dict[int, str]]()
        with closing(ground.embedder()) as opened:
            check_contract(collection.contract, opened.identity())
            while rows:
                failures = _embed(database, collection, opened, rows)
                given += len(rows) - len(failures)
                for n, why in failures.items():
                    refused.setdefault(rows[n]["source"], {})[rows[n]["chunk_index"]] = why
                values["after"] = rows[-1]["id"]
                rows = _unembedded(database, collection, values)
        if refused:
            with database.owner(collection.schema_name) as connection:
                held = {source: row.chunk_count for source, row in store.read_ledger(connection).items()}
                reasons = [without_vector(why, held[source]) for source, why in refused.items()]
                execute(connection, "doctor_refused", {"sources": list(refused), "reasons": reasons})
    yield f"{given} passages got their vector, the model refused {sum(map(len, refused.values()))}"


def _unembedded(database: Database, collection: Collection, values: dict[str, Any]) -> list[dict[str, Any]]:
    with database.owner(collection.schema_name) as connection:
        return fetch_all(connection, "doctor_unembedded", values)


def _embed(
    database: Database, collection: Collection, embedder: Embedder, rows: Sequence[dict[str, Any]]
) -> dict[int, str]:
    """Vectors of these passages, stored; why some have none, by position."""
    texts = [passage_text(r["context"], r["text"]) for r in rows]
    got = vectors_for(database, collection, embedder, texts, batch_size=len(texts))
    with database.owner(collection.schema_name) as connection:
        embeddings = half_vectors(connection, got.vectors, len(rows))
        execute(connection, "doctor_embed", {"ids": [r["id"] for r in rows], "embeddings": embeddings})
    return dict(got.failures)


def _derived(ground: _Ground) -> Iterator[str]:
    """Edges and claims that do not fit their passages go; the sources that they were read from are read again."""
    database, collection = ground.database, ground.collection
    with database.owner(collection.schema_name) as connection:
        edges = fetch_one(connection, "doctor_edges") or {}
        claims = fetch_one(connection, "doctor_claims") or {}
        if edges["gone"] or edges["misread"]:
            execute(connection, "doctor_fix_edges")
            yield f"{edges['gone'] + edges['misread']} edges and terms that led nowhere deleted"
        if claims["unfounded"]:
            execute(connection, "doctor_fix_evidence")
            execute(connection, "doctor_fix_claims")
            yield f"{claims['unfounded']} claims rest on other evidence now, or are stale"
    if edges["gone"] or edges["misread"] or claims["unfounded"]:
        _, faults = run_hooks(database, collection, [])
        yield from faults


def _counts(ground: _Ground) -> Iterator[str]:
    database, collection = ground.database, ground.collection
    with database.owner(collection.schema_name) as connection:
        # Held to the end: no ingestion merges counts meanwhile.
        execute(connection, "lexemes_lock", {"collection": collection.name})
        counts = fetch_one(connection, "doctor_lexemes") or {}
        if check_counts(collection.name, counts).status != "ok":
            execute(connection, "doctor_fix_lexemes")
            yield f"term counts made anew, {counts['wrong']} were wrong"
        claims = fetch_one(connection, "doctor_claim_lexemes") or {}
        if claims["wrong"]:
            execute(connection, "doctor_fix_claim_lexemes")
            yield f"term counts of claims made anew, {claims['wrong']} were wrong"


def _lengths(ground: _Ground) -> Iterator[str]:
    database, collection = ground.database, ground.collection
    with database.owner(collection.schema_name) as connection:
        now = get_collection(connection, collection.name)
        measured = fetch_one(connection, "length_measure") or {}
    if check_length(now, measured).status != "ok":
        index.finish_load(database, collection, changed_rows=1)
        yield "BM25 made anew with the mean length of now"


def _dense_index(ground: _Ground) -> Iterator[str]:
    database, collection = ground.database, ground.collection
    with database.owner(collection.schema_name) as connection:
        searched = (fetch_one(connection, "chunk_count") or {})["canonical"]
        problem = dense_problem(fetch_all(connection, "doctor_indexes"))
    if searched and problem:
        reindex.reindex(database, collection.name, only=(DENSE,))
        yield f"dense index built over {searched} passages"


def _dead_rows(ground: _Ground) -> Iterator[str]:
    database, collection = ground.database, ground.collection
    with database.owner_autocommit(collection.schema_name) as connection:
        row = fetch_one(connection, "doctor_activity") or {}
        if check_dead(collection.name, row).status != "ok":
            execute(connection, "vacuum_chunks")
            yield f"{row['dead']} dead rows cleaned up"
        else:
            execute(connection, "analyze_chunks")


def _old(ground: _Ground) -> Iterator[str]:
    with ground.database.owner(ground.collection.schema_name) as connection:
        pruned = sum(trace.prune(connection, ground.settings.trace_retention_days, ground.now).values())
    if pruned:
        yield f"{pruned} old searches and tool calls deleted"


#: Copies before the index that allows one of them alone; the dense index before what may touch every row.
_STEPS = (_copies, _missing_indexes, _vectors, _derived, _counts, _dense_index, _lengths, _old, _dead_rows)
