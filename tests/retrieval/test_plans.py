"""The plan is pinned, not only the answer: 20,000 passages, rare and common words, both indexes by name."""

import random
import shutil
import subprocess
from collections.abc import Iterator

import psycopg
import pytest
from psycopg import sql as psycopg_sql

from agent_server import sql
from agent_server.catalog import Collection
from agent_server.db import Database, migrate
from agent_server.lexemes import lexical_text
from agent_server.postgres import find_binaries
from agent_server.retrieval import candidates, search, trace
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


def _plan(database: Database, collection: Collection, question: str) -> str:
    run = candidates.Run(
        collection, candidates.SearchOptions(), vector=candidates.vector_text(HashEmbedder().embed_query(question))
    )
    with database.reader(collection.reader_role, collection.schema_name) as connection:
        candidates.set_session(connection, run)
        run.lexical = candidates.plan_lexical(connection, run, lexical_text(question, question=True))
        explain = psycopg_sql.SQL("EXPLAIN (ANALYZE) ") + sql.load("hybrid").query()
        return "\n".join(r[0] for r in connection.execute(explain, candidates.variables(run)).fetchall())


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


def test_psql_sees_the_same_plan_for_a_recorded_question(large: tuple[Database, Collection]) -> None:
    database, collection = large
    result = search.search(database, "LARGE", "data time value", HashEmbedder())
    recorded = trace.get_trace(database, collection.schema_name, result.trace_id)
    script = trace.psql_script(recorded, collection.schema_name)
    script += "EXPLAIN (ANALYZE)\n" + sql.load("hybrid").path.read_text(encoding="utf-8") + ";\nROLLBACK;\n"
    psql = shutil.which("psql") or str(find_binaries() / "psql")
    command = [psql, "--no-psqlrc", "--quiet", "--set", "ON_ERROR_STOP=1", "--dbname", database.dsn]
    done = subprocess.run(command, input=script, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "Index Scan using chunks_embedding" in done.stdout, done.stdout
    assert "Bitmap Index Scan on chunks_tsv" in done.stdout, done.stdout
    assert "Seq Scan on chunks" not in done.stdout, done.stdout


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
