"""Indexes and statistics around a load: what is dropped before it, and made true after it."""

import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from typing import TypeVar

import psycopg

from agent_server.catalog import Collection, get_collection
from agent_server.db import Database, execute, fetch_one
from agent_server.ingest.lengths import restate_if_drifted
from agent_server.ingest.rebuild import LOCK_TIMEOUT_MS

#: Adding a row to a standing HNSW index costs about this many times what the same row costs in a build of the whole
#: index (ops/bench/load.py measures it). The index is dropped when filling it row by row would cost more than
#: building it anew over all rows: new * COST > old + new.
INSERT_COST_OVER_BUILD = 6.0
#: Below this many new rows, row by row is a matter of seconds, and searches keep their index.
SMALL_LOAD_ROWS = 5_000
SECONDS_FOR_DDL = 3600
TRIES = 5
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class IndexReport:
    """What was done after a load."""

    restated: bool
    built_hnsw: bool
    canonical: int
    seconds: Mapping[str, float]  #: "statistics" and "dense index"


def should_drop_hnsw(existing: int, incoming: int) -> bool:
    """Whether a load of `incoming` rows into `existing` is faster without the dense index, and worth its absence."""
    return incoming >= SMALL_LOAD_ROWS and incoming * INSERT_COST_OVER_BUILD > existing + incoming


def count_chunks(database: Database, collection: Collection) -> int:
    with database.owner(collection.schema_name) as connection:
        row = fetch_one(connection, "chunk_count") or {}
    return int(row["canonical"])


def drop_hnsw(database: Database, collection: Collection) -> None:
    """Drop the dense index; searches compare vectors one by one until `finish_load` has built it again.

    It stays where something else works on the passages: searches would queue up behind our waiting.
    """
    with suppress(psycopg.errors.LockNotAvailable), database.owner(collection.schema_name) as connection:
        execute(connection, "lock_timeout", {"ms": str(LOCK_TIMEOUT_MS)})
        execute(connection, "hnsw_drop")


def finish_load(
    database: Database,
    collection: Collection,
    *,
    changed_rows: int,
    clock: Callable[[], float] = time.perf_counter,
) -> IndexReport:
    """Wait until what the run stored is on disk, merge lexeme counts, restate bm25 vectors when lengths have drifted,
    empty the text indexes' pending lists, and make sure the dense index stands.

    Safe to call after a run that changed nothing, and after one that was killed: what is missing is made good.
    """
    started = clock()
    # Counting lexemes takes one processor; lengths, pending lists and the planner's statistics take another. Runs that
    # wait for their turn hold no connection of the pool, which the one whose turn it is needs.
    with (
        database.owner_autocommit() as guard,
        guard.transaction(),
        ThreadPoolExecutor(1, thread_name_prefix="lexemes") as beside,
    ):
        execute(guard, "commits_flush")
        execute(guard, "lexemes_lock", {"collection": collection.name})
        counting = beside.submit(_count_lexemes, database, collection)
        if not changed_rows and counting.result():
            changed_rows = 1  # a run before this one was killed after its last file
        restated = restate_if_drifted(database, collection, changed_rows)
        with database.owner(collection.schema_name) as connection:
            execute(connection, "pending_flush")
        if changed_rows:
            _past_deadlocks(lambda: _analyze(database, collection, "chunks"))
        counting.result()
    counted = clock()
    built = _past_deadlocks(lambda: _ensure_hnsw(database, collection))
    seconds = {"statistics": counted - started, "dense index": clock() - counted}
    return IndexReport(restated, built, count_chunks(database, collection), seconds)


def _count_lexemes(database: Database, collection: Collection) -> int:
    """Merge the pending changes of lexeme counts; how many lexemes they were of."""
    with database.owner(collection.schema_name) as connection:
        merged = execute(connection, "lexemes_merge")
        execute(connection, "lexemes_prune")
    if merged:
        _analyze(database, collection, "lexemes")
    return merged


def _analyze(database: Database, collection: Collection, table: str) -> None:
    with database.owner_autocommit() as connection:
        connection.execute(psycopg.sql.SQL("ANALYZE {}").format(psycopg.sql.Identifier(collection.schema_name, table)))


def _past_deadlocks(work: Callable[[], T]) -> T:
    """Run `work`; again when it waited for a concurrent build (`kb reindex`, `kb reembed`) that waited for it."""
    for _ in range(TRIES - 1):
        with suppress(psycopg.errors.DeadlockDetected):
            return work()
    return work()


def _ensure_hnsw(database: Database, collection: Collection) -> bool:
    """Build the dense index unless a valid one stands. False when there was nothing to do."""
    with database.owner(collection.schema_name) as connection:
        execute(connection, "lexemes_lock", {"collection": collection.name})
        now = get_collection(connection, collection.name)
        count = fetch_one(connection, "chunk_count") or {}
        if now.has_hnsw or not count["canonical"]:
            return False
        try:
            with connection.transaction():
                execute(connection, "hnsw_drop")  # one left invalid by a build that was killed
                execute(connection, "hnsw_create")
        except (psycopg.errors.DiskFull, psycopg.errors.OutOfMemory):
            # A parallel build keeps the graph in shared memory, which containers limit to 64 MB by default.
            connection.execute("SET LOCAL max_parallel_maintenance_workers = 0")
            execute(connection, "hnsw_create")
    return True
