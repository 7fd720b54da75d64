"""What people met in systems like this one, replayed on the search."""

import re
from pathlib import Path

import psycopg
import pytest
from psycopg import sql as psycopg_sql

from agent_server import sql
from agent_server.catalog import Collection, get_collection
from agent_server.db import Database
from agent_server.models import SearchResult
from agent_server.retrieval import candidates, trace
from agent_server.retrieval.candidates import SearchOptions
from agent_server.retrieval.search import search
from tests.conftest import Builder
from tests.corpus import File, fill
from tests.hash_embedder import HashEmbedder

QUAYS = 300
FOOTER = (
    "This page belongs to the handbook of the harbor and may be copied by members for their own use, free of charge."
)


def _quays(database: Database) -> None:
    fill(database, "QUAYS", [File(f"q{n}.txt", (f"Quay {n} lies at berth w{n * 7 % QUAYS}.",)) for n in range(QUAYS)])
    fill(database, "FEES", [File("fees.txt", ("The fee table of the branch: a copy costs 30 dollars.",))])


@pytest.fixture(scope="module")
def stock() -> Builder:
    return _quays


def _collection(database: Database, name: str) -> Collection:
    with database.owner() as connection:
        return get_collection(connection, name)


@pytest.mark.parametrize(
    "question",
    ["|---|" * 12, "fee table\n" + "-" * 80, "-" * 33, " - " * 40, "|" + " --- |" * 40 + "\nfee", "=" * 500 + " fee"],
)
def test_dashes_of_a_pasted_table_or_rule_are_no_operators(database: Database, question: str) -> None:
    found = search(database, "FEES", question, HashEmbedder())
    assert [p.source for p in found.passages] == ["fees.txt"]
    symbols = not re.search(r"\w", question)
    assert [d.arm for d in found.degraded] == (["lexical"] if symbols else [])


@pytest.mark.parametrize("state", ["XX000", "54000", "22023"])
def test_whatever_postgres_says_of_the_words_the_vectors_answer_and_the_trace_names_it(
    database: Database, state: str
) -> None:
    collection = _collection(database, "FEES")
    with database.owner(collection.schema_name) as connection:
        connection.execute(
            psycopg_sql.SQL(
                "CREATE OR REPLACE FUNCTION lexdim(lexeme text) RETURNS integer LANGUAGE plpgsql AS $$ BEGIN "
                "RAISE EXCEPTION 'tsquery stack too small' USING ERRCODE = {}; END $$"
            ).format(psycopg_sql.Literal(state))
        )
    found = search(database, "FEES", "fee table", HashEmbedder())
    assert [p.source for p in found.passages] == ["fees.txt"]
    assert [(d.arm, d.reason) for d in found.degraded] == [("lexical", "tsquery stack too small")]
    recorded = trace.get_trace(database, collection.schema_name, found.trace_id)
    assert recorded["degraded"] == [{"arm": "lexical", "reason": "tsquery stack too small"}]


def _dense(database: Database, top_k: int, wanted: int) -> SearchResult:
    options = SearchOptions(top_k=top_k, candidates=wanted, fusion="dense", expand=())
    return search(database, "QUAYS", "berth of a quay", HashEmbedder(), options)


def test_the_dense_index_brings_as_many_as_are_asked_for_whatever_its_ef_search(database: Database) -> None:
    collection = _collection(database, "QUAYS")
    assert collection.has_hnsw
    assert len(_dense(database, 100, 100).passages) == 100
    found = _dense(database, 10, 250)
    recorded = trace.get_trace(database, collection.schema_name, found.trace_id)
    assert recorded["candidates"]["dense"] == 250
    assert recorded["request"]["session"]["hnsw.ef_search"] == "500"
    assert recorded["variables"].get("exact") is None  # the index brought them


def test_no_plan_is_kept_for_another_searchs_values(database: Database) -> None:
    collection = _collection(database, "QUAYS")
    with database.reader(collection.reader_role, collection.schema_name) as connection:
        assert connection.execute("SHOW plan_cache_mode").fetchone() == ("force_custom_plan",)
        assert connection.prepare_threshold is None


def test_every_distance_is_measured_between_half_vectors() -> None:
    """A list bound as it is would be double precision[], for which pgvector has no operator."""
    measured = 0
    for path in sorted(Path(sql.HERE).glob("*.sql")):
        statement = re.sub(r"--[^\n]*", "", path.read_text(encoding="utf-8"))
        for distance in re.finditer(r"<=>\s*(.{0,80})", statement, re.DOTALL):
            measured += 1
            operand = distance[1]
            assert "::halfvec" in operand or re.match(r"\(?\w+\.(embedding|vector)", operand), (path.name, operand)
    assert measured > 5


def test_a_vector_as_a_list_is_what_postgres_refuses(database: Database) -> None:
    collection = _collection(database, "QUAYS")
    with (
        database.reader(collection.reader_role, collection.schema_name) as connection,
        pytest.raises(psycopg.errors.UndefinedFunction),
    ):
        connection.execute("SELECT id FROM chunks ORDER BY embedding <=> %s LIMIT 1", ([0.1] * 64,))
    vector = HashEmbedder().embed_query("quay")
    assert candidates.vector_text(vector).startswith("[")


def test_a_footer_in_40_files_leaves_room_for_the_answer_and_for_two_passages_of_one_file(database: Database) -> None:
    pages = [File(f"page{n}.txt", (FOOTER,)) for n in range(40)]
    rules = ("Members of the harbor pay for copies of a chart.", "Free copies for members end with the year.")
    fill(database, "FOOTER", [*pages, File("rules.txt", rules)])
    found = search(database, "FOOTER", "copies for members free of charge", HashEmbedder(), SearchOptions(top_k=5))
    sources = [p.source for p in found.passages]
    assert sources.count("rules.txt") == 2
    assert len(sources) == 3
    (footer,) = [p for p in found.passages if p.source != "rules.txt"]
    assert len(footer.also_in) == 39
