"""Indexes that are gone, not valid, of another kind, or lack rows are found, and what is printed cures them."""

import pytest

from agent_server.doctor import indexes
from tests.doctor.ground import COPY_OF_A_ROW, Ground

INVALID = "UPDATE pg_index SET indisvalid = false WHERE indexrelid = '{}'::regclass"
DROP_DENSE = "DROP INDEX chunks_embedding"
MAKE_DENSE = "CREATE INDEX chunks_embedding ON chunks USING hnsw"
#: A row that an index does not know of: it was not ready when the row came.
UNREADY = "UPDATE pg_index SET indisready = {} WHERE indexrelid = '{}'::regclass"
MANY_ROWS = (
    "INSERT INTO chunks (source, chunk_index, text, context, heading_path, label, char_start, char_end, passage_hash,"
    " paragraph_hashes, paragraph_spans, canonical, authority, retired, tsv, bm25, embedding)"
    " SELECT source, n, text, context, heading_path, label, char_start, char_end, int4send(n), paragraph_hashes,"
    " paragraph_spans, true, authority, false, to_tsvector('simple', 'word' || n), bm25, embedding"
    " FROM chunks, generate_series({}, {}) AS n WHERE source = 'guide.md' AND chunk_index = 0"
)
FAR_AWAY = "(SELECT array_agg(CASE WHEN n % 2 = 0 THEN 1 ELSE -1 END) FROM generate_series(1, 64) n)::real[]::halfvec"


DAMAGES = {
    "dense index dropped": ("FINANCE dense index", [DROP_DENSE]),
    "dense index invalid": ("FINANCE dense index", [INVALID.format("chunks_embedding")]),
    "dense index of another distance": (
        "FINANCE dense index",
        [DROP_DENSE, f"{MAKE_DENSE} (embedding halfvec_l2_ops) WHERE canonical"],
    ),
    "dense index over all rows": (
        "FINANCE dense index",
        [DROP_DENSE, f"{MAKE_DENSE} (embedding halfvec_cosine_ops)"],
    ),
    "word index dropped": ("FINANCE chunks_tsv", ["DROP INDEX chunks_tsv"]),
    "word index invalid": ("FINANCE chunks_tsv", [INVALID.format("chunks_tsv")]),
    "paragraph index dropped": ("FINANCE chunks_paragraphs", ["DROP INDEX chunks_paragraphs"]),
    "another index invalid": ("FINANCE searches_at", [INVALID.format("searches_at")]),
    "other indexes dropped": ("FINANCE other indexes", ["DROP INDEX searches_at, chunks_copies, links_to"]),
    "an index of the shared schema invalid": ("shared indexes", [INVALID.format("kb.runs_started")]),
    "a row missing in the dense index": (
        "FINANCE dense entries",
        [
            UNREADY.format("false", "chunks_embedding"),
            COPY_OF_A_ROW.format("'\\x01'", FAR_AWAY),
            UNREADY.format("true", "chunks_embedding"),
        ],
    ),
    "a row missing in the word index": (
        "FINANCE word entries",
        [
            MANY_ROWS.format(1, 300),
            UNREADY.format("false", "chunks_tsv"),
            MANY_ROWS.format(301, 310),
            UNREADY.format("true", "chunks_tsv"),
        ],
    ),
    "a planner setting of the database": ("FINANCE plan", ['ALTER DATABASE "{database}" SET enable_indexscan = off']),
    "a planner setting of the role": ("FINANCE plan", ['ALTER ROLE "{reader}" SET enable_bitmapscan = off']),
}


@pytest.mark.parametrize(("name", "damage"), DAMAGES.values(), ids=DAMAGES)
def test_a_broken_index_is_found_and_cured_as_printed(ground: Ground, name: str, damage: list[str]) -> None:
    ground.break_by_sql(damage)
    ground.cured_of(name)


def test_dead_rows_are_found_when_they_are_many_and_a_large_share() -> None:
    assert indexes.check_dead("X", {"live": 100, "dead": 900}).status == "ok"
    assert indexes.check_dead("X", {"live": 100_000, "dead": 2000}).status == "ok"
    assert indexes.check_dead("X", {"live": 2000, "dead": 2000}).cure == "kb doctor --fix"


def test_no_dense_index_is_needed_where_nothing_is_searched() -> None:
    assert next(indexes.check_indexes("X", [], 0)).status == "ok"
    assert next(indexes.check_indexes("X", [], 1)).status == "error"
