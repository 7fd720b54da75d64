"""The mean length that BM25 vectors are made with: one for all rows, fixed early, restated when it has moved."""

import itertools
import threading

import numpy as np
import psycopg
import pytest

from agent_server.catalog import Collection, create_collection, get_collection
from agent_server.db import Database
from agent_server.ingest import lengths
from agent_server.ingest.halfvecs import half_vectors
from agent_server.ingest.lengths import kept_length, restate_if_drifted
from agent_server.ingest.store import LedgerRow, replace_file
from agent_server.models import Chunk, FileStatus
from tests.hash_embedder import HashEmbedder

OTHER_LENGTH = """
SELECT count(*) FROM chunks, kb.collections
WHERE schema_name = current_schema() AND bm25::text <> bm25_doc(tsv, avg_length)::text
"""


@pytest.fixture
def docs(database: Database) -> Collection:
    create_collection(database, "DOCS", HashEmbedder(64).identity())
    with database.owner() as connection:
        collection = get_collection(connection, "DOCS")
    with database.owner(collection.schema_name) as connection:
        connection.execute("INSERT INTO roots (root, path) VALUES ('docs', '/docs')")
    return collection


def _store(database: Database, collection: Collection, source: str, passages: int, words: int) -> None:
    texts = [" ".join([f"berth {source} {n}", *["rope"] * words]) for n in range(passages)]
    chunks = [
        Chunk(
            index=n, text=text, context="Harbor", heading_path=("Harbor",), label="", page_first=None, page_last=None,
            char_start=n * 1000, char_end=n * 1000 + len(text), paragraphs=(),
        )
        for n, text in enumerate(texts)
    ]  # fmt: skip
    row = LedgerRow(
        source, "docs", "0" * 64, 1, "text/plain", FileStatus.INDEXED, "", "1", chunk_count=passages
    )  # fmt: skip
    with database.owner(collection.schema_name) as connection:
        assert replace_file(connection, collection, row, chunks, np.ones((passages, 64), np.float32))


def _length(database: Database) -> float | None:
    with database.owner() as connection:
        return get_collection(connection, "DOCS").avg_length


def _with_other_length(database: Database, collection: Collection) -> int:
    with database.owner(collection.schema_name) as connection:
        found = connection.execute(OTHER_LENGTH).fetchone()
    assert found is not None
    return int(found[0])


def test_a_first_load_fixes_the_mean_length_once_enough_is_stored(
    database: Database, docs: Collection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lengths, "SETTLED_PASSAGES", 6)
    _store(database, docs, "a", 4, words=10)
    assert _length(database) is None
    _store(database, docs, "b", 4, words=20)
    settled = _length(database)
    _store(database, docs, "c", 4, words=21)
    assert settled is not None
    assert _length(database) == settled
    assert _with_other_length(database, docs) == 0


def test_after_a_first_load_a_mean_that_is_about_right_stays_and_one_that_is_not_is_restated(
    database: Database, docs: Collection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lengths, "SETTLED_PASSAGES", 4)
    _store(database, docs, "a", 4, words=100)
    _store(database, docs, "b", 4, words=102)
    settled = _length(database)
    assert not restate_if_drifted(database, docs, changed_rows=8)
    assert _length(database) == settled
    _store(database, docs, "c", 4, words=130)
    assert restate_if_drifted(database, docs, changed_rows=12)
    assert _length(database) != settled
    assert _with_other_length(database, docs) == 0


def test_a_small_change_is_allowed_a_drift_that_a_load_is_not(
    database: Database, docs: Collection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lengths, "SETTLED_PASSAGES", 4)
    _store(database, docs, "a", 8, words=100)
    _store(database, docs, "b", 4, words=120)
    assert not restate_if_drifted(database, docs, changed_rows=4)
    assert restate_if_drifted(database, docs, changed_rows=12)


@pytest.mark.parametrize("of", [17, 100, 1000])
def test_wherever_a_first_load_has_come_to_it_has_files_from_all_over_the_folder(of: int) -> None:
    files = [f"file-{n:04}" for n in range(of)]
    order = lengths.spread(files)
    assert sorted(order) == files
    for count in (n for n in (4, 8, 16, 64, 256) if n <= of / 2):
        places = sorted(int(name[-4:]) for name in order[:count])
        gaps = [after - before for before, after in itertools.pairwise([*places, of])]
        assert max(gaps) <= 4 * of / count, f"the first {count} of {of}"
    assert lengths.spread(files[:16]) == files[:16]


def test_vectors_are_restated_only_after_those_that_are_being_stored(database: Database, docs: Collection) -> None:
    _store(database, docs, "a", 3, words=10)
    assert restate_if_drifted(database, docs, changed_rows=3)
    _store(database, docs, "b", 3, words=40)
    restated = threading.Thread(target=restate_if_drifted, args=(database, docs, 6))
    with database.owner(docs.schema_name) as connection:
        before = kept_length(connection, docs)
        restated.start()
        with database.owner() as other, pytest.raises(psycopg.errors.LockNotAvailable):
            other.execute("SELECT FROM kb.collections WHERE name = 'DOCS' FOR NO KEY UPDATE NOWAIT")
        assert kept_length(connection, docs) == before
    restated.join(30)
    assert _length(database) != before
    assert _with_other_length(database, docs) == 0


def test_vectors_arrive_as_half_precision_rounds_them_and_a_row_that_is_not_finite_is_null(
    database: Database, docs: Collection
) -> None:
    vectors = np.random.default_rng(1).normal(size=(5, 64)).astype(np.float32)
    vectors[0, :3] = (1e-7, 65504, -0.0)
    vectors[3, 7] = np.nan
    with database.owner(docs.schema_name) as connection:
        for given, expected in ((vectors, vectors), (None, np.full((5, 64), np.nan, np.float32)), (vectors[:0], [])):
            values = [half_vectors(connection, given, len(expected))]
            rows = connection.execute("SELECT v::text FROM unnest(%s::halfvec[]) AS v", values).fetchall()
            got = [None if text is None else np.array(text[1:-1].split(","), np.float16) for (text,) in rows]
            assert len(got) == len(expected)
            for row, wanted in zip(got, expected, strict=True):
                if row is None:
                    assert not np.isfinite(wanted).all()
                else:
                    assert np.array_equal(row, wanted.astype(np.float16))
        with pytest.raises(ValueError, match="5 vectors for 4 passages"):
            half_vectors(connection, vectors, 4)
