"""Upkeep: what is wrong is mended and counted, what is in order costs nothing."""

from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest

from agent_server.catalog import Collection, get_collection
from agent_server.db import Database, fetch_all, fetch_one
from agent_server.postgres import EmbeddedServer
from agent_server.retrieval.search import search
from agent_server.settings import Settings
from nightly import claims, maintain
from nightly.claims_review import Filter, decide
from nightly.jobs import NightContext, StepReport
from nightly.maintain import DenseIndex, least_pages
from tests.corpus import File, fill, put
from tests.hash_embedder import HashEmbedder
from tests.nightly.nights import Clock

FEE = "Each mooring contract costs at least 45 dollars a year, and dogs must be kept on a lead on every pier."


@pytest.fixture
def docs(database: Database) -> Collection:
    files = [File(f"f{n}.txt", [f"Bollard {n} stands at pier{n}. {FEE}"]) for n in range(6)]
    return fill(database, "DOCS", files)


def _keep(database: Database, settings: Settings, clock: Clock | None = None) -> StepReport:
    with database.owner() as connection:
        collection = get_collection(connection, "DOCS")
    return maintain.job(database, collection, NightContext(settings, clock or Clock(), None, HashEmbedder))


def _do(database: Database, statement: str, *values: Any) -> list[Any]:
    with database.owner("kb_docs") as connection:
        cursor = connection.execute(statement, values)  # type: ignore[call-overload]
        return cursor.fetchall() if cursor.description else []


def _valid(database: Database) -> dict[str, bool]:
    with database.owner("kb_docs") as connection:
        return {row["name"]: row["valid"] for row in fetch_all(connection, "doctor_indexes")}


def test_a_bank_in_order_is_left_as_it_is(database: Database, docs: Collection, settings: Settings) -> None:
    report = _keep(database, settings)
    assert report.ok
    assert not any(report.counts.values())
    assert (report.summary, report.findings) == ("all in order", ())


def test_wrong_lexeme_counts_are_recounted(database: Database, docs: Collection, settings: Settings) -> None:
    _do(database, "UPDATE lexemes SET ndoc = 99 WHERE lexeme IN ('bollard', '')")
    _do(database, "DELETE FROM lexemes WHERE lexeme = 'lead'")
    assert _keep(database, settings).counts["lexemes_mended"] == 3
    with database.owner("kb_docs") as connection:
        row = fetch_one(connection, "doctor_lexemes")
    assert row is not None
    assert (row["wrong"], row["stated"]) == (0, 6)


def test_wrong_counts_over_claims_are_recounted(database: Database, docs: Collection, settings: Settings) -> None:
    claims.refresh(database, docs)
    truth = _do(database, "SELECT lexeme, ndoc FROM claim_lexemes ORDER BY 1")
    assert truth
    _do(database, "UPDATE claim_lexemes SET ndoc = ndoc + 1 WHERE lexeme = ''")
    _do(database, "INSERT INTO claim_lexemes VALUES ('ghost', 3)")
    assert _keep(database, settings).counts["claim_lexemes_mended"] == 2
    assert _do(database, "SELECT lexeme, ndoc FROM claim_lexemes ORDER BY 1") == truth


def test_claims_long_stale_go_but_those_a_person_decided_on_and_those_that_may_still_be_asked_about(
    database: Database, docs: Collection, settings: Settings
) -> None:
    rules = {
        "long ago": "A visitor must pay the berth fee within 3 days after arrival.",
        "decided on": "A boat may stay at the guest quay for 14 days.",
        "just now": "Dogs may not enter the fuel dock.",
        "stands": "Each boat must carry two lights at night.",
    }
    for name, text in rules.items():
        put(database, docs, File(f"{name}.md", [text]))
    claims.refresh(database, docs)
    [boat] = _do(database, "SELECT id FROM claims WHERE statement LIKE '%%guest quay%%'")
    with database.owner("kb_docs") as connection:
        decide(connection, docs, Filter(ids=tuple(boat)), "verified", "Ann", "asked the harbour master")
    for name in ("long ago", "decided on", "just now"):
        put(database, docs, File(f"{name}.md", []))
    claims.refresh(database, docs)
    asked = "SELECT statement FROM claims WHERE status = 'stale' ORDER BY id"
    stale = [row[0] for row in _do(database, asked)]
    assert [any(s in text for s in stale) for text in rules.values()] == [True, True, True, False]
    days = maintain.STALE_CLAIMS_DAYS
    _do(database, "UPDATE claim_events SET at = %s - make_interval(days => %s)", Clock().now, days + 1)
    recent = "UPDATE claim_events SET at = %s FROM claims c WHERE c.id = claim AND c.statement LIKE %s"
    _do(database, recent, Clock().now - timedelta(days=days - 1), "%fuel dock%")
    standing = _do(database, "SELECT count(*) FROM claims WHERE status <> 'stale'")
    report = _keep(database, settings)
    assert report.counts["stale_claims_forgotten"] == 1
    assert report.counts["claim_lexemes_mended"] == 0
    assert {row[0] for row in _do(database, asked)} == {s for s in stale if "berth fee" not in s}
    assert _do(database, "SELECT count(*) FROM claims WHERE status <> 'stale'") == standing
    put(database, docs, File("long ago.md", [rules["long ago"]]))  # words that come back are read again
    claims.refresh(database, docs)
    assert _do(database, "SELECT status FROM claims WHERE statement LIKE '%%berth fee%%'") == [("verified",)]


def test_lengths_that_drifted_are_restated_and_small_drift_is_not(
    database: Database, docs: Collection, settings: Settings
) -> None:
    _do(database, "UPDATE kb.collections SET avg_length = avg_length * 1.05")
    assert _keep(database, settings).counts["restated"] == 0
    before = _do(database, "SELECT bm25::text FROM chunks ORDER BY id")
    _do(database, "UPDATE kb.collections SET avg_length = avg_length * 1.5")
    assert _keep(database, settings).counts["restated"] == 1
    assert _do(database, "SELECT bm25::text FROM chunks ORDER BY id") == before


def test_a_dense_index_that_is_missing_is_built_and_one_that_is_not_valid_is_built_anew(
    database: Database, docs: Collection, settings: Settings
) -> None:
    _do(database, "DROP INDEX chunks_embedding")
    assert _keep(database, settings).counts["dense_index_built"] == 1
    _do(database, "UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'chunks_tsv'::regclass")
    assert not _valid(database)["chunks_tsv"]
    report = _keep(database, settings)
    assert (report.counts["invalid_indexes"], report.counts["indexes_rebuilt"]) == (1, 1)
    assert all(_valid(database).values())


def test_the_pages_of_a_new_dense_index_are_those_of_the_formula(database: Database) -> None:
    for dimensions in (64, 384):
        _do_outside(database, "DROP TABLE IF EXISTS v")
        _do_outside(database, f"CREATE TABLE v (chunk int, canonical bool, embedding halfvec({dimensions}))")
        _do_outside(
            database,
            "INSERT INTO v SELECT n, true, array_agg(random())::halfvec"
            f" FROM generate_series(1, 1500) n, generate_series(1, {dimensions}) d GROUP BY n",
        )
        _do_outside(database, "CREATE INDEX v_embedding ON v USING hnsw (embedding halfvec_cosine_ops)")
        [(pages,)] = _do_outside(database, "SELECT pg_relation_size('v_embedding') / 8192")
        assert pages == pytest.approx(least_pages(1500, dimensions, 16), rel=0.03)


def _do_outside(database: Database, statement: str) -> list[Any]:
    with database.owner_autocommit() as connection:
        cursor = connection.execute(statement)  # type: ignore[call-overload]
        return cursor.fetchall() if cursor.description else []


def test_a_dense_index_has_the_dead_share_of_what_its_rows_do_not_need() -> None:
    full = least_pages(1000, 384, 16)
    assert DenseIndex(full, 1000, 384, 16).dead_share == 0.0
    assert DenseIndex(full, 500, 384, 16).dead_share == pytest.approx(0.5, abs=0.01)
    assert DenseIndex(full, 2000, 384, 16).dead_share == 0.0
    assert DenseIndex(0, 0, 384, 16).dead_share == 0.0


def test_a_dense_index_that_is_mostly_dead_is_built_anew_and_dead_rows_are_vacuumed(
    database: Database, settings: Settings
) -> None:
    embedder = HashEmbedder(256)
    files = [
        File(f"f{n}.txt", [f"Bollard {n}-{k} at pier{k} stands by ship{n}." for k in range(400)]) for n in range(4)
    ]
    fill(database, "DOCS", files, embedder)
    with database.owner() as connection:
        collection = get_collection(connection, "DOCS")
    assert _keep(database, settings).counts["indexes_rebuilt"] == 0
    for n in range(3):
        put(database, collection, File(f"f{n}.txt", []), embedder)
    with database.owner() as connection:
        connection.execute("SELECT pg_stat_force_next_flush()")
    report = _keep(database, settings)
    assert report.counts["dead_share"] > 0.6
    assert report.counts["rebuilt_for"] == "dead share"
    assert report.counts["indexes_rebuilt"] == 1
    assert report.counts["vacuumed"] >= 1
    again = _keep(database, settings)
    assert again.counts["dead_share"] < 0.1
    assert (again.counts["indexes_rebuilt"], again.counts["vacuumed"]) == (0, 0)


def test_recall_below_the_target_has_the_dense_index_built_anew_once(
    database: Database, docs: Collection, settings: Settings
) -> None:
    clock = Clock()

    def measured(recall: float, *, filtered: bool = False) -> None:
        _do(
            database,
            "INSERT INTO kb.recall_samples"
            " (collection, at, filtered, searches, k, ef_search, recall, index_ms, exact_ms)"
            " VALUES ('DOCS', %s, %s, 50, 10, 1000, %s, 1, 1)",
            clock.now,
            filtered,
            recall,
        )

    def kept() -> str:
        """As a run does it, which keeps the counts."""
        report = _keep(database, settings, clock)
        _do(
            database,
            "WITH r AS (INSERT INTO kb.runs (started_at, outcome) VALUES (%s, 'ok') RETURNING run_id)"
            " INSERT INTO kb.run_steps (run_id, step, job, collection, started_at, counts)"
            " SELECT run_id, 1, 'maintain', 'DOCS', %s, %s FROM r",
            clock.now,
            clock.now,
            psycopg.types.json.Jsonb(dict(report.counts)),
        )
        return str(report.counts.get("rebuilt_for", ""))

    measured(0.5)
    measured(0.97)
    measured(0.4, filtered=True)
    assert kept() == ""  # the last word of the audit counts, on searches without a filter
    clock.forward(hours=1)
    measured(0.80)
    clock.forward(hours=23)
    assert kept() == "recall"
    clock.forward(hours=1)
    measured(0.80)  # it was no help
    clock.forward(hours=23)
    assert kept() == ""
    clock.forward(days=7)
    measured(0.80)
    clock.forward(hours=1)
    assert kept() == "recall"


def test_old_traces_are_forgotten_by_the_clock_of_the_night(
    database: Database, docs: Collection, settings: Settings
) -> None:
    now = datetime(2026, 3, 1, tzinfo=UTC)
    for days in (1, 89, 91, 400):
        _do(
            database,
            "INSERT INTO tool_calls (at, tool, arguments, outcome) VALUES (%s, 't', '{}', 'ok')",
            now - timedelta(days=days),
        )
    report = _keep(database, settings, Clock(now))
    assert report.counts["tool_calls_forgotten"] == 2
    assert _do(database, "SELECT count(*) FROM tool_calls") == [(2,)]


def test_without_pg_stat_statements_nothing_is_said_of_slow_statements(database: Database, docs: Collection) -> None:
    assert maintain.slowest(database, docs) == []


@pytest.mark.full
def test_with_pg_stat_statements_the_slowest_statements_of_the_collections_searches_are_told(
    own_server: EmbeddedServer, own_database: Database
) -> None:
    with psycopg.connect(own_server.dsn_for("knowledge_bank", "postgres"), autocommit=True) as admin:
        admin.execute("ALTER SYSTEM SET shared_preload_libraries = 'pg_stat_statements'")
        admin.execute("CREATE EXTENSION pg_stat_statements")
        admin.execute("GRANT pg_read_all_stats TO kb_owner")
    collection = fill(own_database, "DOCS", [File("a.txt", ["Dogs are kept on a lead."])])
    assert maintain.slowest(own_database, collection) == []  # installed, and not loaded yet
    own_server.stop()
    own_server.start()
    for _ in range(3):
        search(own_database, "DOCS", "dogs on a lead", HashEmbedder())
    told = maintain.slowest(own_database, collection)
    assert 0 < len(told) <= maintain.SLOWEST
    assert any(" in 3 calls, " in line for line in told)
    assert not any("insufficient privilege" in line for line in told)


def test_upkeep_needs_no_superuser(own_database: Database, own_settings: Settings) -> None:
    fill(own_database, "DOCS", [File("a.txt", ["Dogs are kept on a lead."])])
    assert _keep(own_database, own_settings).summary == "all in order"
