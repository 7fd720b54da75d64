"""Examines an installation. Every finding comes with its cure: a command that exists.

Layer: above retrieval and ingestion, whose steps it repeats, with statements of its own, `sql/doctor_*.sql`. A file an
area; each check is a function of the rows that it is given, so that it can be shown what broken looks like.
"""

from collections.abc import Iterator, Sequence
from contextlib import closing
from datetime import UTC, datetime

from agent_server.catalog import Collection, list_collections
from agent_server.db import Conn, Database, fetch_all, fetch_one, open_database, translated
from agent_server.doctor import derived, files, indexes, mend, nights, passages, roles, server, vectors
from agent_server.doctor.check import Check
from agent_server.doctor.mend import Mended
from agent_server.embedding import make_embedder
from agent_server.errors import KnowledgeBankError
from agent_server.settings import Settings

__all__ = ["Check", "Mended", "check_collection", "examine", "fix"]


def examine(settings: Settings, now: datetime | None = None) -> list[Check]:
    """All checks that can be made; one that finds the ground missing ends the list. `now`: this host's time, aware."""
    now = now or datetime.now(UTC)
    try:
        with translated(), open_database(settings, migrated=False) as database:
            return list(_examine(settings, database, now))
    except KnowledgeBankError as error:
        return [Check("postgres", "error", error.message, error.hint)]


def fix(settings: Settings, now: datetime | None = None) -> Mended:
    """Mend what needs no decision. Raises DatabaseUnavailable, MigrationNeeded."""
    with translated(), open_database(settings) as database:
        return mend.mend(database, settings, lambda: make_embedder(settings), now or datetime.now(UTC))


def _examine(settings: Settings, database: Database, now: datetime) -> Iterator[Check]:
    with database.owner() as connection:
        measured = fetch_one(connection, "doctor_server") or {}
        versions = list(server.check_versions(connection, measured))
        yield from versions
        if any(c.status == "error" for c in versions):
            return
        yield server.check_clock(measured["now"], now)
        graphs = fetch_one(connection, "doctor_graphs") or {}
        machine = server.look_at_machine(settings, measured)
        yield from server.check_memory(measured, graphs, machine.shared_memory_free_bytes)
        yield server.check_disk(machine, graphs)
        yield nights.check_nights(fetch_one(connection, "doctor_nights"), now)
        collections = list_collections(connection)
    with database.owner("kb") as connection:
        yield indexes.check_shared_indexes(fetch_all(connection, "doctor_indexes"))
    for collection in collections:
        with database.owner(collection.schema_name) as connection:
            yield from check_collection(connection, collection)
            yield from _check_surroundings(connection, collection, settings, now)
        yield from roles.check_reader(database, collection)
        yield from indexes.check_searching(database, collection)
    yield from _check_embedder(settings, database, collections)


def check_collection(connection: Conn, collection: Collection) -> Iterator[Check]:
    """What the database holds of the collection in the connection's search path, against itself."""
    name = collection.name
    found = fetch_one(connection, "doctor_passages") or {}
    yield from indexes.check_indexes(name, fetch_all(connection, "doctor_indexes"), found["searched"])
    yield indexes.check_dead(name, fetch_one(connection, "doctor_activity") or {})
    yield passages.check_vectors(name, found)
    yield passages.check_width(collection, found)
    if fetch_one(connection, "shadow_get") is not None:
        yield vectors.unfinished(name)
    yield passages.check_copies(name, fetch_all(connection, "doctor_copies"))
    yield passages.check_counts(name, fetch_one(connection, "doctor_lexemes") or {})
    yield passages.check_length(collection, fetch_one(connection, "length_measure") or {})
    yield derived.check_edges(name, fetch_one(connection, "doctor_edges") or {})
    yield derived.check_claims(name, fetch_one(connection, "doctor_claims") or {})
    yield passages.check_counts(name, fetch_one(connection, "doctor_claim_lexemes") or {}, "claims")
    statuses = {r["status"]: r["files"] for r in fetch_all(connection, "stats_status")}
    roots = {r["root"]: r["path"] for r in fetch_all(connection, "root_list")}
    yield files.check_ledger(name, statuses, fetch_all(connection, "doctor_ledger"), roots)


def _check_surroundings(connection: Conn, collection: Collection, settings: Settings, now: datetime) -> Iterator[Check]:
    """The collection against its folders and the hosts' time."""
    ledger = fetch_all(connection, "file_list", {"status": ""})
    yield from files.check_folders(collection.name, ledger, fetch_all(connection, "root_list"))
    oldest = (fetch_one(connection, "doctor_traces") or {})["oldest"]
    yield nights.check_traces(collection.name, oldest, settings.trace_retention_days, now)


def _check_embedder(settings: Settings, database: Database, collections: Sequence[Collection]) -> Iterator[Check]:
    try:
        with closing(make_embedder(settings)) as embedder:
            yield vectors.check_embedder(embedder.identity())
            yield from vectors.check_models(database, collections, embedder)
    except KnowledgeBankError as error:
        yield vectors.no_embedder(error)
