"""Writers of one collection wait for each other where they hold the same passage, and nowhere else."""

import numpy as np
import psycopg
import pytest

from agent_server.catalog import Collection, create_collection, get_collection
from agent_server.db import Conn, Database
from agent_server.ingest import store
from agent_server.ingest.store import LedgerRow, replace_file
from agent_server.models import Chunk, FileStatus
from tests.hash_embedder import HashEmbedder

PASSAGES = 60


@pytest.fixture
def docs(database: Database) -> Collection:
    create_collection(database, "DOCS", HashEmbedder(8).identity())
    with database.owner() as connection:
        connection.execute("UPDATE kb.collections SET avg_length = 5")  # known: the first writers need not take turns
        collection = get_collection(connection, "DOCS")
    with database.owner(collection.schema_name) as connection:
        connection.execute("INSERT INTO roots (root, path) VALUES ('docs', '/docs')")
    return collection


def _store(connection: Conn, collection: Collection, source: str, texts: list[str]) -> None:
    chunks = [
        Chunk(
            index=n, text=text, context="", heading_path=(), label="", page_first=None, page_last=None,
            char_start=n * 100, char_end=n * 100 + len(text), paragraphs=(),
        )
        for n, text in enumerate(texts)
    ]  # fmt: skip
    row = LedgerRow(source, "docs", source, 1, "text/plain", FileStatus.INDEXED, "", "1", chunk_count=len(chunks))
    assert replace_file(connection, collection, row, chunks, np.ones((len(chunks), 8), np.float32))


def _texts(name: str) -> list[str]:
    return [f"berth {name} {n}" for n in range(PASSAGES)]


@pytest.mark.parametrize("singly", [PASSAGES - 1, PASSAGES + 1], ids=["many", "few"])
def test_a_writer_waits_for_one_that_holds_the_same_passage(
    database: Database, docs: Collection, monkeypatch: pytest.MonkeyPatch, singly: int
) -> None:
    monkeypatch.setattr(store, "LOCKED_SINGLY", singly)
    with database.owner(docs.schema_name) as first, database.owner(docs.schema_name) as second:
        _store(first, docs, "a.txt", _texts("a"))
        second.execute("SET LOCAL lock_timeout = '50ms'")
        with pytest.raises(psycopg.errors.LockNotAvailable):
            _store(second, docs, "b.txt", [*_texts("b"), "berth a 7"])
        second.rollback()


def test_many_passages_and_few_wait_for_each_other_too(
    database: Database, docs: Collection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, "LOCKED_SINGLY", 10)
    with database.owner(docs.schema_name) as first, database.owner(docs.schema_name) as second:
        _store(first, docs, "a.txt", _texts("a"))
        second.execute("SET LOCAL lock_timeout = '50ms'")
        with pytest.raises(psycopg.errors.LockNotAvailable):
            _store(second, docs, "b.txt", ["berth a 7"])
        second.rollback()


def test_writers_of_other_passages_do_not_wait(database: Database, docs: Collection) -> None:
    """With one of 1,024 locks for each passage these would meet in one with a chance of 97 of 100."""
    with database.owner(docs.schema_name) as first, database.owner(docs.schema_name) as second:
        _store(first, docs, "a.txt", _texts("a"))
        second.execute("SET LOCAL lock_timeout = '50ms'")
        _store(second, docs, "b.txt", _texts("b"))
