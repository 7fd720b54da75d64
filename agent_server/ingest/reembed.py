"""Another embedding model for a collection that is searched meanwhile.

The new vectors go into a second column of `chunks`, batch by batch, an index is built on it, and one short transaction
puts column, index and contract in the place of the old ones. Until then searches and ingestion know nothing of it.

Why a column and not a second table: whatever ingestion does to a passage meanwhile (it goes, another copy stands for
it, its file is renamed) is done to its new vector too, and references to passages stay what they are. The price is a
new version of each row; the room of the old vector is free for use when its row is next written.
"""

import json
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal

from agent_server import sql
from agent_server.catalog import Collection, check_width, get_collection
from agent_server.db import Conn, Database, execute, fetch_all, fetch_one, translated
from agent_server.embedding import Embedder, EmbedderIdentity
from agent_server.errors import EmbedderUnavailable
from agent_server.ingest import rebuild
from agent_server.ingest import vectors as vectors_by_content
from agent_server.ingest.halfvecs import finite_rows, half_vectors
from agent_server.ingest.pipeline import pipeline_version
from agent_server.ingest.prepare import passage_text
from agent_server.ingest.rebuild import LONGEST_PAUSE_S, Pause
from agent_server.ingest.report import without_vector

INDEX = "chunks_embedding_next"
Stage = Literal["embedding", "building index", "waiting for ingestion", "switching"]
#: Told what is going on, how many passages have their new vector, and how many there are.
Watcher = Callable[[Stage, int, int], None]


@dataclass(slots=True)
class ReembedReport:
    """What a run did. `state`: `switched`; `unchanged`, the collection had this model; `aborted`."""

    collection: str
    before: EmbedderIdentity
    after: EmbedderIdentity
    state: Literal["switched", "unchanged", "aborted"] = "switched"
    passages: int = 0
    resumed: int = 0  #: passages that an interrupted run had filled
    embedded: int = 0  #: texts sent to the embedder
    reused: int = 0  #: passages whose vector was known already
    without_vector: int = 0  #: passages that the new model refused: only their words find them
    seconds: dict[str, float] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "seconds": {k: round(v, 3) for k, v in self.seconds.items()}}


@dataclass(slots=True)
class _Run:
    database: Database
    session: Conn  #: autocommit, holds the locks
    collection: Collection
    target: Collection  #: the collection as it will be
    embedder: Embedder
    batch_size: int
    watch: Watcher
    pause: Pause
    report: ReembedReport
    again: bool  #: no vector is known before it was made in this run, or in the one that this one goes on with
    refused: dict[int, str] = field(default_factory=dict)  #: id -> why the new model gives it no vector


def reembed(
    database: Database,
    collection_name: str,
    embedder: Embedder,
    *,
    again: bool = False,
    batch_size: int = 32,
    watch: Watcher = lambda *_: None,
    pause: Pause = time.sleep,
    clock: Callable[[], float] = time.perf_counter,
) -> ReembedReport:
    """Give all passages of a collection vectors of `embedder`, then make its model the collection's.

    Until the switch nothing changes for searches and ingestion; on a failure or an interruption nothing has changed,
    and the next run with the same model goes on where this one stopped. Files that are ingested meanwhile are caught
    up; the switch waits for a running ingestion to end. `again`: also when it is the collection's model already, and no
    vector is taken over from before: the model may have changed under its name. Raises UnknownCollection,
    InvalidArgument (a model that is too wide), CollectionBusy, EmbedderUnavailable, EmbeddingRefused.
    """
    with translated():
        identity = embedder.identity()
        check_width(identity)
        with database.owner() as connection:
            collection = get_collection(connection, collection_name)
        with rebuild.rebuilding(database, collection) as session:
            collection = get_collection(session, collection_name)  # as it is now that nobody else switches it
            report = ReembedReport(collection.name, collection.contract, identity)
            if collection.contract == identity and not again:
                _drop_shadow(database, collection, pause)
                report.state = "unchanged"
                return report
            target = _with_model(collection, identity)
            run = _Run(database, session, collection, target, embedder, batch_size, watch, pause, report, again)
            started = clock()
            _open_shadow(run)
            _fill(run)
            report.seconds["vectors"] = clock() - started
            started = clock()
            _build_index(run)
            report.seconds["index"] = clock() - started
            started = clock()
            _wait_for_ingestion(run)
            _switch(run)
            execute(session, "analyze_chunks")
            report.seconds["switch"] = clock() - started
            counts = fetch_one(session, "chunk_count") or {}
            report.passages, report.without_vector = counts["chunks"], counts["without_vector"]
    return report


def abort(database: Database, collection_name: str, *, pause: Pause = time.sleep) -> bool:
    """Take away what an interrupted re-embedding has left; False when there was nothing.

    Raises UnknownCollection, and CollectionBusy while the re-embedding still runs.
    """
    with translated():
        with database.owner() as connection:
            collection = get_collection(connection, collection_name)
        with rebuild.rebuilding(database, collection):
            return _drop_shadow(database, collection, pause)


# -- the second column ------------------------------------------------------------------------------------------


def _open_shadow(run: _Run) -> None:
    """Make sure of a column for this model's vectors; one that was filled for another model goes."""
    contract = json.dumps(asdict(run.report.after), sort_keys=True)
    there = fetch_one(run.session, "shadow_get")
    if there is not None and there["contract"] == contract:
        counts = fetch_one(run.session, "shadow_count") or {}
        run.report.resumed = counts["filled"]
        return

    def add(connection: Conn) -> None:
        (note,) = connection.execute(sql.load("shadow_note").query(), {"contract": contract}).fetchone() or ("",)
        execute(connection, "chunks_lock")
        execute(connection, "shadow_drop")
        connection.execute(sql.load("shadow_add").query(dimensions=run.report.after.dimensions), {})
        connection.execute(note)

    _drop_shadow(run.database, run.collection, run.pause)
    rebuild.in_a_moment(run.database, run.collection, add, pause=run.pause)


def _drop_shadow(database: Database, collection: Collection, pause: Pause) -> bool:
    def drop(connection: Conn) -> bool:
        if fetch_one(connection, "shadow_get") is None:
            return False
        execute(connection, "chunks_lock")
        execute(connection, "shadow_drop")
        return True

    return rebuild.in_a_moment(database, collection, drop, pause=pause)


def _fill(run: _Run) -> None:
    """New vectors for all passages that have none yet, in rounds: rows may come, or be busy, while a round goes on."""
    counts = fetch_one(run.session, "shadow_count") or {}
    done, total = counts["filled"], counts["passages"]
    after, left_behind = 0, False
    while True:
        run.watch("embedding", done, total)
        values = {"after": after, "refused": sorted(run.refused), "limit": run.batch_size}
        rows = fetch_all(run.session, "shadow_pending", values)
        if not rows:
            if after == 0:
                break
            if left_behind:
                run.pause(0.05)
            after, left_behind = 0, False
            continue
        after = rows[-1]["id"]
        filled, wanted = _fill_rows(run, rows)
        left_behind |= filled < wanted
        done, total = done + filled, max(total, done + filled)


def _fill_rows(run: _Run, rows: list[dict[str, Any]]) -> tuple[int, int]:
    """How many of these passages got their vector, and how many could have."""
    texts = [passage_text(r["context"], r["text"]) for r in rows]
    if run.again:
        vectors_by_content.forget_vectors(run.database, run.target, texts)
    try:
        got = vectors_by_content.vectors_for(run.database, run.target, run.embedder, texts, batch_size=run.batch_size)
    except EmbedderUnavailable as error:
        hint = f"Searches use the old model. `kb reembed {run.collection.name}` goes on here, --abort gives it up."
        raise EmbedderUnavailable(error.message, hint=hint, details=error.details) from error
    run.report.embedded += got.embedded
    run.report.reused += got.reused
    run.refused |= {rows[n]["id"]: reason for n, reason in got.failures.items()}
    finite = finite_rows(got.vectors)
    ids = [r["id"] for r, is_finite in zip(rows, finite.tolist(), strict=True) if is_finite]
    if not ids:
        return 0, 0
    with run.database.owner(run.collection.schema_name) as connection:
        embeddings = half_vectors(connection, got.vectors[finite], len(ids))
        return execute(connection, "shadow_fill", {"ids": ids, "embeddings": embeddings}), len(ids)


def _build_index(run: _Run) -> None:
    """Make sure of a valid index on the new vectors, unless nothing is searched yet."""
    counts = fetch_one(run.session, "shadow_count") or {}
    there = fetch_one(run.session, "shadow_get") or {}
    if counts["searched"] and not there["indexed"]:
        run.watch("building index", counts["filled"], counts["passages"])
        rebuild.build_concurrently(run.session, "shadow_index", INDEX)


# -- the switch -------------------------------------------------------------------------------------------------


def _wait_for_ingestion(run: _Run) -> None:
    """Until no ingestion runs and none can start; what they have written is caught up."""
    wait = 0.05
    while not rebuild.model_taken(run.session, run.collection):
        run.watch("waiting for ingestion", 1, 1)
        run.pause(wait)
        wait = min(LONGEST_PAUSE_S, wait * 2)
        _fill(run)
    _fill(run)
    _build_index(run)


def _switch(run: _Run) -> None:
    """Put the new vectors in the place of the old ones, all at once; whoever wrote past our lock is caught up first."""
    run.watch("switching", 1, 1)

    def switch(connection: Conn) -> bool:
        execute(connection, "chunks_lock_writers")
        values = {"after": 0, "refused": sorted(run.refused), "limit": 1}
        if fetch_all(connection, "shadow_pending", values):
            return False
        execute(connection, "switch_contract", {"name": run.collection.name, **_contract_values(run.report.after)})
        execute(connection, "switch_files", _ledger_values(run, connection))
        execute(connection, "chunks_lock")
        connection.execute(sql.load("switch_vectors").query(), {})
        return True

    while not rebuild.in_a_moment(run.database, run.collection, switch, pause=run.pause):
        _fill(run)
        _build_index(run)


def _with_model(collection: Collection, identity: EmbedderIdentity) -> Collection:
    return replace(
        collection,
        embedder=identity.kind,
        model=identity.model,
        model_digest=identity.digest,
        dimensions=identity.dimensions,
        context_tokens=identity.context_tokens,
        query_prefix=identity.query_prefix,
        passage_prefix=identity.passage_prefix,
    )


def _contract_values(identity: EmbedderIdentity) -> dict[str, Any]:
    values = asdict(identity)
    return {**values, "embedder": values.pop("kind"), "model_digest": values.pop("digest")}


def _ledger_values(run: _Run, connection: Conn) -> dict[str, Any]:
    """What switch_files.sql is run with: files of the old pipeline count as read by the new one."""
    by_file: dict[str, tuple[int, dict[int, str]]] = {}
    for row in fetch_all(connection, "shadow_refused"):
        _, failures = by_file.setdefault(row["source"], (row["chunks"], {}))
        failures[row["chunk_index"]] = run.refused[row["id"]]
    return {
        "old_version": pipeline_version(run.collection),
        "new_version": pipeline_version(run.target),
        "partial": list(by_file),
        "reasons": [without_vector(failures, chunks) for chunks, failures in by_file.values()],
    }
