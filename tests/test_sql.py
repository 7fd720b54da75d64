"""The `.sql` files: psql's variables become psycopg's, and every statement fits the schema."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from psycopg import sql as psycopg_sql

from agent_server import sql
from agent_server.catalog import create_collection
from agent_server.db import Database
from tests.conftest import SECRET, Server, Stocks
from tests.hash_embedder import HashEmbedder

DDL = {
    *("schema", "collection", "collection_drop", "reader_grants", "hnsw_create", "hnsw_drop", "analyze_chunks"),
    *("chunks_lock", "chunks_lock_writers", "index_drop", "index_repair", "index_swap"),
    *("reindex_embedding", "reindex_paragraphs", "reindex_tsv"),
    *("shadow_add", "shadow_drop", "shadow_index", "steady", "switch_vectors", "vacuum_chunks"),
}
STATEMENTS = sorted(p.stem for p in sql.HERE.glob("*.sql") if p.stem not in DDL)


def _parsed(text: str) -> sql.Statement:
    return sql.parse("test", Path("test.sql"), text)


def test_values_identifiers_and_integers_become_psycopg_forms() -> None:
    statement = _parsed("""SELECT :'a'::int, '10%' FROM :"t" LIMIT :n -- :'not'""")
    query = statement.query(identifiers={"t": 'we"ird'}, n=3)
    assert query.as_string(None) == """SELECT %(a)s::int, '10%%' FROM "we""ird" LIMIT 3 -- :'not'"""


def test_nothing_is_replaced_inside_literals_comments_and_dollar_quotes() -> None:
    text = "SELECT ':a', $$ :'b' $$, $x$ :c $x$, 'it''s :d' -- :'e'\n, x::text"
    assert _parsed(text).numbered() == text


def test_the_same_value_twice_is_one_numbered_parameter() -> None:
    assert _parsed("SELECT :'a'::int + :'b'::int + :'a'::int").numbered() == "SELECT $1::int + $2::int + $1::int"


def test_an_integer_variable_takes_nothing_but_integers() -> None:
    with pytest.raises(TypeError, match="must be an integer"):
        _parsed("SELECT halfvec(:width)").query(width="3); DROP TABLE x; --")  # type: ignore[arg-type]


def test_optional_parts_are_there_when_their_variable_is_given() -> None:
    inner = "  \\if :{?b}\n, :'b'::int\n  \\else\n, 0\n  \\endif\n"
    text = "SELECT 1\n\\if :{?a}\n, :'a'::int\n" + inner + "\\else\n, -1\n\\endif\n"

    def lines(*given: str) -> str:
        return sql.parse("test", Path("test.sql"), text, given).numbered().replace("\n", "")

    assert lines() == lines("b") == "SELECT 1, -1"
    assert lines("a") == "SELECT 1, $1::int, 0"
    assert lines("a", "b", "other") == "SELECT 1, $1::int, $2::int"


@pytest.mark.parametrize("text", ["\\if :{?a}\n", "\\endif\n", "\\else\n", "\\i other.sql\n", "\\if true\n\\endif\n"])
def test_any_other_line_of_psqls_is_an_error_that_names_file_and_line(text: str) -> None:
    with pytest.raises(ValueError, match=r"test\.sql"):
        _parsed("SELECT 1\n" + text)


def test_the_optional_parts_of_a_file_are_chosen_by_what_is_given() -> None:
    assert "exclude" not in sql.load("hybrid").values
    assert "exclude" in sql.load("hybrid", given=["exclude", "filtered", "unknown"]).values
    assert sql.load("hybrid", given=["unknown"]) is sql.load("hybrid")


@pytest.mark.parametrize("flags", [set(), {"of_files"}, {"exact"}, {"of_files", "exact"}, {"copies", "of_files"}])
@pytest.mark.parametrize("name", ["hybrid", "lexical_probe", "filter_count", "expand", "explain_fit", "explain_ranks"])
def test_filtered_statement_is_planned_by_postgres(name: str, flags: set[str], planning_database: Database) -> None:
    text = sql.load(name).path.read_text(encoding="utf-8")
    conditions = set(re.findall(r"\\if :\{\?(\w+)\}", text)) - {"of_files", "exact", "copies"}
    with planning_database.owner("kb_plans") as connection:
        statement = sql.load(name, given=conditions | flags).numbered()
        connection.execute(psycopg_sql.SQL("EXPLAIN (GENERIC_PLAN) " + statement))  # type: ignore[arg-type]


@pytest.mark.parametrize("name", STATEMENTS)
def test_statement_is_planned_by_postgres_without_values(name: str, planning_database: Database) -> None:
    with planning_database.owner("kb_plans") as connection:
        text = sql.load(name).numbered()
        connection.execute(psycopg_sql.SQL("EXPLAIN (GENERIC_PLAN) " + text))  # type: ignore[arg-type]


@pytest.mark.parametrize("name", [*STATEMENTS, *sorted(DDL - {"schema"})])
def test_statement_says_what_it_answers(name: str) -> None:
    first = sql.load(name).path.read_text(encoding="utf-8").splitlines()[0]
    assert first.startswith("-- ")
    assert len(first) > 20


@pytest.fixture(scope="module")
def planning_database(server: Server, stocks: Stocks) -> Iterator[Database]:
    with Database(server.dsn(stocks.template(_planned)), SECRET) as database:
        yield database


def _planned(database: Database) -> None:
    collection = create_collection(database, "PLANS", HashEmbedder().identity())
    with database.owner(collection.schema_name) as connection:  # as it is while a re-embedding goes on
        connection.execute(sql.load("shadow_add").query(dimensions=32), {})
