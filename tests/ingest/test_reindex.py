"""New indexes while the collection is searched: whatever state the old ones are in, no search fails."""

import threading
from typing import Any

import psycopg
import pytest

from agent_server import doctor, sql
from agent_server.catalog import Collection, get_collection
from agent_server.db import Database
from agent_server.errors import CollectionBusy
from agent_server.ingest import index, rebuild
from agent_server.ingest.reindex import REBUILT, reindex
from tests.corpus import File, fill, put
from tests.hash_embedder import HashEmbedder
from tests.ingest.searching import searched

QUESTIONS = {"the price of the ferry": "a.txt", "who paints the lighthouse": "b.txt"}
LONG = (
    "Whoever paints the lighthouse has to ask the harbor office for a ladder, a bucket and the better part of a week."
)


@pytest.fixture
def collection(database: Database, hash_embedder: HashEmbedder) -> Collection:
    files = [File("a.txt", ["The price of the ferry is ninepence."]), File("b.txt", [f"{LONG}\n\nMore follows."])]
    files += [File(f"n{n}.txt", [f"Bollard number {n} of street{n}.\n\n{n} {LONG}"]) for n in range(30)]
    return fill(database, "DOCS", files, hash_embedder)


def _rows(database: Database, query: str) -> list[tuple[Any, ...]]:
    with database.owner("kb_docs") as connection:
        return connection.execute(query).fetchall()  # type: ignore[call-overload, no-any-return]


def _do(database: Database, statement: str) -> None:
    with database.owner("kb_docs") as connection:
        connection.execute(statement)  # type: ignore[call-overload]


def _indexes(database: Database) -> dict[str, str]:
    return dict(_rows(database, "SELECT indexname, indexdef FROM pg_indexes WHERE schemaname = 'kb_docs'"))  # type: ignore[arg-type]


def _files(database: Database) -> dict[str, int]:
    query = "SELECT relname, relfilenode FROM pg_class WHERE relnamespace = 'kb_docs'::regnamespace AND relkind = 'i'"
    return dict(_rows(database, query))  # type: ignore[arg-type]


def _sound(database: Database) -> None:
    with database.owner() as connection:
        collection = get_collection(connection, "DOCS")
    assert collection.has_hnsw
    with database.owner(collection.schema_name) as connection:
        assert [c for c in doctor.check_collection(connection, collection) if c.status != "ok"] == []


def test_the_search_indexes_are_new_and_the_same_as_before_and_no_search_fails(
    database: Database, collection: Collection, hash_embedder: HashEmbedder
) -> None:
    definitions, files = _indexes(database), _files(database)
    with searched(database, "DOCS", QUESTIONS, hash_embedder) as seen:
        report = reindex(database, "DOCS")
    assert seen.failures == []
    assert report.rebuilt == list(REBUILT)
    assert (report.dropped, report.repaired) == ([], [])
    assert _indexes(database) == definitions
    assert {name for name, node in _files(database).items() if node != files[name]} == set(REBUILT)
    _sound(database)


@pytest.mark.parametrize("name", list(REBUILT))
@pytest.mark.parametrize(
    "damage", ["UPDATE pg_index SET indisvalid = false WHERE indexrelid = '{}'::regclass", "DROP INDEX {}"]
)
def test_an_index_that_is_invalid_or_missing_stands_again(
    database: Database, collection: Collection, hash_embedder: HashEmbedder, name: str, damage: str
) -> None:
    definitions = _indexes(database)
    _do(database, damage.format(name))
    reindex(database, "DOCS")
    assert _indexes(database) == definitions
    _sound(database)


def test_what_killed_builds_left_behind_goes_first(database: Database, collection: Collection) -> None:
    definitions = _indexes(database)
    leftovers = {"chunks_tsv_new", "chunks_tsv_ccnew", "chunks_embedding_ccold1"}
    for name in leftovers:
        _do(database, f"CREATE INDEX {name} ON chunks USING gin (tsv) WHERE canonical")
        _do(database, f"UPDATE pg_index SET indisvalid = false WHERE indexrelid = '{name}'::regclass")
    report = reindex(database, "DOCS")
    assert set(report.dropped) == leftovers
    assert _indexes(database) == definitions
    _sound(database)


def test_a_build_cancelled_by_postgres_leaves_the_old_index_in_use_and_the_next_run_cleans_up(
    database: Database, collection: Collection, hash_embedder: HashEmbedder
) -> None:
    """The build waits for a transaction of ours; there it is cancelled, as pg_cancel_backend or Ctrl-C would."""
    definitions = _indexes(database)
    canceller = threading.Thread(target=_cancel_the_build, args=(database,))
    with database.owner("kb_docs") as open_transaction:
        open_transaction.execute("UPDATE files SET title = title")
        open_transaction.execute("LOCK TABLE chunks IN ROW EXCLUSIVE MODE")
        canceller.start()
        with pytest.raises(psycopg.errors.QueryCanceled):
            reindex(database, "DOCS")
        canceller.join(30)
    assert "chunks_tsv_new" in _indexes(database)
    with searched(database, "DOCS", QUESTIONS, hash_embedder) as seen:
        assert reindex(database, "DOCS").dropped == ["chunks_tsv_new"]
    assert seen.failures == []
    assert _indexes(database) == definitions
    _sound(database)


def _cancel_the_build(database: Database) -> None:
    query = """SELECT pg_cancel_backend(a.pid) FROM pg_stat_activity a
               WHERE a.datname = current_database() AND a.query LIKE '%%CREATE INDEX CONCURRENTLY%%'
                 AND a.wait_event_type = 'Lock' AND a.pid <> pg_backend_pid()"""
    for _ in range(100_000):
        with database.owner_autocommit() as connection:
            if connection.execute(query).fetchall():  # type: ignore[call-overload]
                return


def test_other_invalid_indexes_are_repaired_where_they_stand(database: Database, collection: Collection) -> None:
    definitions = _indexes(database)
    _do(database, "UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'chunks_copies'::regclass")
    assert reindex(database, "DOCS").repaired == ["chunks_copies"]
    assert _indexes(database) == definitions
    _sound(database)


def test_a_wrong_definition_is_put_right(database: Database, collection: Collection) -> None:
    definitions = _indexes(database)
    _do(database, "DROP INDEX chunks_embedding; CREATE INDEX chunks_embedding ON chunks (chunk_index)")
    reindex(database, "DOCS")
    assert _indexes(database) == definitions


def test_passages_stored_during_a_build_are_in_the_new_indexes(
    database: Database, collection: Collection, hash_embedder: HashEmbedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    def build(connection: Any, statement: str, name: str) -> None:
        put(database, collection, File(f"{name}.txt", [f"Stored while {name} was being built."]), hash_embedder)
        real(connection, statement, name)
        put(database, collection, File(f"{name}.txt", [f"Stored after {name} had been built."]), hash_embedder)

    real = rebuild.build_concurrently
    monkeypatch.setattr(rebuild, "build_concurrently", build)
    reindex(database, "DOCS")
    index.finish_load(database, collection, changed_rows=3)
    questions = {f"stored after {name}_new had been built": f"{name}_new.txt" for name in REBUILT}
    with searched(database, "DOCS", questions, hash_embedder) as seen:
        pass
    assert seen.failures == []
    _sound(database)


def test_an_empty_collection_has_no_dense_index_to_build(database: Database, hash_embedder: HashEmbedder) -> None:
    fill(database, "DOCS", [], hash_embedder)
    assert reindex(database, "DOCS").rebuilt == ["chunks_tsv", "chunks_paragraphs"]


def test_two_runs_at_once_are_refused(database: Database, collection: Collection) -> None:
    with rebuild.rebuilding(database, collection), pytest.raises(CollectionBusy, match="another run"):
        reindex(database, "DOCS")


def test_a_build_that_postgres_breaks_a_deadlock_against_starts_again(
    database: Database, collection: Collection, monkeypatch: pytest.MonkeyPatch
) -> None:
    tries: list[str] = []
    real = rebuild.execute

    def deadlocked(connection: Any, name: str, values: dict[str, Any] | None = None) -> int:
        if name in REBUILT.values():
            tries.append(name)
            if len(tries) == 1:
                raise psycopg.errors.DeadlockDetected("deadlock detected")
        return real(connection, name, values)

    monkeypatch.setattr(rebuild, "execute", deadlocked)
    reindex(database, "DOCS")
    assert tries == ["reindex_tsv", *REBUILT.values()]


def test_a_load_that_wants_the_dense_index_gone_lets_it_stand_while_the_table_is_in_use(
    database: Database, collection: Collection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(index, "LOCK_TIMEOUT_MS", 5)
    with database.owner("kb_docs") as reading:
        reading.execute("SELECT FROM chunks")
        index.drop_hnsw(database, collection)
    assert "chunks_embedding" in _indexes(database)
    index.drop_hnsw(database, collection)
    assert "chunks_embedding" not in _indexes(database)


def test_the_statements_say_what_collection_sql_and_hnsw_create_sql_say() -> None:
    def squeezed(name: str) -> str:
        lines = sql.load(name).path.read_text(encoding="utf-8").splitlines()
        return " ".join(" ".join(line for line in lines if not line.startswith("--")).split())

    made = squeezed("collection").replace(':"schema".', "") + squeezed("hnsw_create")
    for name, statement in {**REBUILT, "chunks_embedding_next": "shadow_index"}.items():
        plain = squeezed(statement).replace(" CONCURRENTLY", "").replace(f"{name}_new", name)
        plain = plain.replace("chunks_embedding_next", "chunks_embedding").replace("embedding_next", "embedding")
        assert plain in made, statement
