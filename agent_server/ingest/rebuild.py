"""What re-embedding and reindexing share: who may run, transactions that searches do not notice, concurrent builds."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from psycopg import errors as pg

from agent_server import sql
from agent_server.catalog import Collection
from agent_server.db import Conn, Database, execute, fetch_one
from agent_server.errors import CollectionBusy

T = TypeVar("T")
Pause = Callable[[float], None]

#: Searches queue up behind whoever waits for the table alone: no longer than this. Less than Postgres's
#: deadlock_timeout (1 s), so that we give way before it picks a victim.
LOCK_TIMEOUT_MS = 400
LOCK_TRIES = 40
#: New ingestions wait behind a re-embedding that waits for running ones, for no longer than this at a time.
MODEL_WAIT_MS = 2000
BUILD_TRIES = 5
LONGEST_PAUSE_S = 2.0


@contextmanager
def rebuilding(database: Database, collection: Collection) -> Iterator[Conn]:
    """A session that alone may re-embed or reindex the collection, in autocommit mode with its tables in the search
    path. Raises CollectionBusy when another one does."""
    with database.owner_autocommit(collection.schema_name) as connection:
        row = fetch_one(connection, "rebuild_take", {"collection": collection.name}) or {}
        if not row["taken"]:
            raise CollectionBusy(
                f"another run of `kb reembed` or `kb reindex` is at work on {collection.name}",
                hint="Wait for it, or stop it with Ctrl-C.",
            )
        yield connection


@contextmanager
def model_kept(database: Database, collection_name: str) -> Iterator[None]:
    """Meanwhile no re-embedding switches the collection's model. Read the contract inside."""
    with database.owner_autocommit() as connection:
        execute(connection, "model_keep", {"collection": collection_name})
        yield


def model_taken(connection: Conn, collection: Collection) -> bool:
    """Keep ingestions of the collection from starting for as long as this session lasts; False when those that run
    do not end soon."""
    try:
        with connection.transaction():
            execute(connection, "lock_timeout", {"ms": str(MODEL_WAIT_MS)})
            execute(connection, "model_take", {"collection": collection.name})
    except pg.LockNotAvailable:
        return False
    return True


def in_a_moment(
    database: Database, collection: Collection, work: Callable[[Conn], T], *, pause: Pause = time.sleep
) -> T:
    """Run `work` in a transaction that may need the passages for itself, which only takes a moment when it gets them.

    It waits for them so briefly that no search runs into its time limit behind it, and tries again after a pause.
    Raises CollectionBusy when it never gets them.
    """
    for attempt in range(LOCK_TRIES):
        try:
            with database.owner(collection.schema_name) as connection:
                execute(connection, "lexemes_lock", {"collection": collection.name})  # index work of ingestions
                execute(connection, "lock_timeout", {"ms": str(LOCK_TIMEOUT_MS)})
                return work(connection)
        except (pg.LockNotAvailable, pg.DeadlockDetected):
            pause(min(LONGEST_PAUSE_S, 0.05 * 2**attempt))
    raise CollectionBusy(
        f"the passages of {collection.name} were in use at each of {LOCK_TRIES} tries; nothing was changed",
        hint="Something reads them for long: a backup, or a forgotten psql. Try again after it.",
    )


def build_concurrently(connection: Conn, statement: str, index: str) -> None:
    """Run `sql/<statement>.sql`, which makes `index`; a half-built one of before goes first.

    `connection` is in autocommit mode, outside any transaction. A build waits for older transactions, and one of them
    may come to wait for it: where Postgres breaks that tie against the build, it starts again.
    """
    for attempt in range(BUILD_TRIES):
        try:
            drop_index(connection, index)
            execute(connection, statement)
        except pg.DeadlockDetected:
            if attempt == BUILD_TRIES - 1:
                raise
        except (pg.DiskFull, pg.OutOfMemory):
            if attempt == BUILD_TRIES - 1:
                raise
            # A parallel build keeps the graph in shared memory, which containers limit to 64 MB by default.
            connection.execute("SET max_parallel_maintenance_workers = 0")
        else:
            return


def drop_index(connection: Conn, index: str) -> None:
    """Drop an index that no search uses, if it is there."""
    connection.execute(sql.load("index_drop").query(identifiers={"name": index}), {})
