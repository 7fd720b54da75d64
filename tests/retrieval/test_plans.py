"""The plan is pinned, not only the answer: 20,000 passages, rare and common words, both indexes by name."""

import random
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from datetime import date

import psycopg
import pytest
from psycopg import sql as psycopg_sql

from agent_server import sql
from agent_server.catalog import Collection
from agent_server.db import Database, migrate
from agent_server.lexemes import lexical_text
from agent_server.postgres import find_binaries
from agent_server.retrieval import candidates, filters, search, trace
from agent_server.retrieval.filters import NO_FILTERS, Filters
from tests.conftest import SECRET, Server
from tests.corpus import File, fill
from tests.hash_embedder import HashEmbedder

ROWS = 20_000
COMMON = ["system", "data", "time", "value", "file", "type", "name", "list"]


@pytest.fixture(scope="module")
def large(server: Server) -> Iterator[tuple[Database, Collection]]:
    """A collection of 20,000 short passages; each common word stands in a third of them."""
    name = psycopg_sql.Identifier("kb_test_plans")
    with psycopg.connect(server.admin_dsn, autocommit=True) as admin:
        admin.execute(psycopg_sql.SQL("DROP DATABASE IF EXISTS {}").format(name))
        admin.execute(psycopg_sql.SQL("CREATE DATABASE {}").format(name))
    rng = random.Random(3)
    files = []
    for n in range(0, ROWS, 1000):
        passages = [_passage(rng, n + k) for k in range(1000)]
        files.append(File(f"f{n}.txt", passages))
    with Database(server.dsn("kb_test_plans"), SECRET) as database:
        migrate(database)
        collection = fill(database, "LARGE", files)
        yield database, collection
    with psycopg.connect(server.admin_dsn, autocommit=True) as admin:
        admin.execute(psycopg_sql.SQL("DROP DATABASE {} WITH (FORCE)").format(name))
        admin.execute(psycopg_sql.SQL("DROP ROLE {}").format(psycopg_sql.Identifier(collection.reader_role)))


def _passage(rng: random.Random, n: int) -> str:
    common = [w for w in COMMON if rng.random() < 1 / 3]
    return " ".join([*common, *(f"term{int(rng.paretovariate(0.7))}" for _ in range(6)), f"id{n}"])


def _plan(database: Database, collection: Collection, question: str, asked: Filters = NO_FILTERS) -> str:
    options = candidates.SearchOptions(filters=asked)
    run = candidates.Run(collection, options, vector=candidates.vector_text(HashEmbedder().embed_query(question)))
    with database.reader(collection.reader_role, collection.schema_name) as connection:
        candidates.set_session(connection, run)
        run.filters = filters.variables(connection, "english", asked)
        if run.filters:
            run.exact, _ = filters.leaves_few(connection, run.filters)
            candidates.set_session(connection, run)
        run.lexical = candidates.plan_lexical(connection, run, lexical_text(question, question=True))
        values = candidates.variables(run)
        explain = psycopg_sql.SQL("EXPLAIN (ANALYZE) ") + sql.load("hybrid", given=values).query()
        return "\n".join(r[0] for r in connection.execute(explain, values).fetchall())


@pytest.mark.parametrize(
    "question", ["id777 term5", "system", "data time value", " ".join(COMMON), "term1 term2", "id12345 file"]
)
def test_both_indexes_are_used_and_chunks_is_never_read_from_end_to_end(
    large: tuple[Database, Collection], question: str
) -> None:
    plan = _plan(*large, question)
    assert "Index Scan using chunks_embedding" in plan, plan
    assert "Bitmap Index Scan on chunks_tsv" in plan, plan
    assert "Seq Scan on chunks" not in plan, plan


@pytest.mark.parametrize(
    "asked",
    [
        Filters(sources=("f1*.txt",)),  # 11 files of 20
        Filters(sources=("f?000.txt",), exclude=("file",)),
        Filters(exclude=("system",)),
    ],
    ids=lambda f: str(f) or "none",
)
def test_a_filter_that_leaves_much_keeps_both_indexes(large: tuple[Database, Collection], asked: Filters) -> None:
    plan = _plan(*large, "data time value", asked)
    assert "Index Scan using chunks_embedding" in plan, plan
    assert "Bitmap Index Scan on chunks_tsv" in plan, plan
    assert "Seq Scan on chunks" not in plan, plan


@pytest.mark.parametrize(
    "asked",
    [Filters(sources=("f0.txt",)), Filters(phrases=("system term1",)), Filters(sources=("f0.txt",), exclude=("data",))],
)
def test_a_filter_that_leaves_little_is_searched_exactly_without_reading_all_passages(
    large: tuple[Database, Collection], asked: Filters
) -> None:
    plan = _plan(*large, "data time value", asked)
    assert "chunks_embedding" not in plan, plan
    assert "Seq Scan on chunks" not in plan, plan
    if asked.sources:
        assert "chunks_source_chunk_index_key" in plan, plan
    else:
        assert "Bitmap Index Scan on chunks_tsv" in plan, plan


def test_psql_runs_a_filtered_search_with_its_recorded_variables(large: tuple[Database, Collection]) -> None:
    database, collection = large
    asked = Filters(sources=("f1*.txt", "a\\ 'b\".txt"), exclude=("list's file",), fields=(("it's", 'a "b"'),))
    everything = replace(asked, fields=())
    for chosen in (asked, everything, Filters(phrases=("term1 term2",), since=date(2020, 1, 1))):
        options = candidates.SearchOptions(filters=chosen)
        result = search.search(database, "LARGE", "data time value", HashEmbedder(), options)
        shown = {p.chunk_id for p in result.passages}
        assert bool(shown) == (chosen is everything)
        recorded = trace.get_trace(database, collection.schema_name, result.trace_id)
        done = _psql(database, trace.psql_script(recorded, collection.schema_name), "")
        assert shown <= set(done.split("|")), done
        assert ("f1000.txt::" in done) == bool(shown)


def _psql(database: Database, script: str, before: str) -> str:
    """What psql prints for hybrid.sql as it stands."""
    script += before + sql.load("hybrid").path.read_text(encoding="utf-8") + ";\nROLLBACK;\n"
    psql = shutil.which("psql") or str(find_binaries() / "psql")
    command = [psql, "--no-psqlrc", "--quiet", "--tuples-only", "--no-align", "--set", "ON_ERROR_STOP=1"]
    done = subprocess.run(
        [*command, "--dbname", database.dsn], input=script, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_psql_sees_the_same_plan_for_a_recorded_question(large: tuple[Database, Collection]) -> None:
    database, collection = large
    result = search.search(database, "LARGE", "data time value", HashEmbedder())
    recorded = trace.get_trace(database, collection.schema_name, result.trace_id)
    script = trace.psql_script(recorded, collection.schema_name)
    plan = _psql(database, script, "EXPLAIN (ANALYZE)\n")
    assert "Index Scan using chunks_embedding" in plan, plan
    assert "Bitmap Index Scan on chunks_tsv" in plan, plan
    assert "Seq Scan on chunks" not in plan, plan


def test_the_collection_is_as_large_as_the_plans_claim(large: tuple[Database, Collection]) -> None:
    database, collection = large
    with database.owner(collection.schema_name) as connection:
        row = connection.execute("SELECT count(*) FROM chunks").fetchone()
    assert row == (ROWS,)
    assert collection.has_hnsw


def test_the_dense_index_is_for_cosine(large: tuple[Database, Collection]) -> None:
    database, collection = large
    with database.owner(collection.schema_name) as connection:
        row = connection.execute("SELECT pg_get_indexdef('chunks_embedding'::regclass)").fetchone()
    assert row is not None
    assert "halfvec_cosine_ops" in row[0]


def test_ten_distinct_hits_come_back_right_after_the_nearest_forty_were_deleted(
    large: tuple[Database, Collection],
) -> None:
    database, collection = large
    question = "term3 term4 term9 system"
    before = search.search(
        database, "LARGE", question, HashEmbedder(), candidates.SearchOptions(top_k=40, fusion="dense")
    )
    gone = [p.chunk_id for p in before.passages]
    assert len(gone) == 40
    with database.owner(collection.schema_name) as connection:
        connection.execute("DELETE FROM chunks WHERE chunk_id = ANY(%s)", (gone,))
    after = search.search(
        database, "LARGE", question, HashEmbedder(), candidates.SearchOptions(top_k=10, fusion="dense")
    )
    assert len(after.passages) == 10
    assert not {p.chunk_id for p in after.passages} & set(gone)
