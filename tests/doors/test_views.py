"""ops/views.sql, as psql runs it: the same figures as `kb stats`, over all collections that there are."""

import csv
import os
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest

from agent_server.catalog import create_collection
from agent_server.db import Database
from agent_server.settings import Settings
from tests.doors.conftest import Kb, environment
from tests.hash_embedder import HashEmbedder

VIEWS = Path(__file__).parents[2] / "ops" / "views.sql"
Row = dict[str, str]


def _select(settings: Settings, *names: str) -> list[list[Row]]:
    """The rows of some views, by one psql that runs the file as its head says."""
    words = ["db", "psql", "-q", "--csv", "-f", str(VIEWS)]
    for name in names:
        words += ["-c", f"SELECT * FROM {name}", "-c", r"\echo ----"]
    program = [sys.executable, "-m", "agent_server.doors.cli.main", *words]
    done = subprocess.run(program, env=os.environ | environment(settings), capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return [list(csv.DictReader(part.strip().splitlines())) for part in done.stdout.split("----\n")[: len(names)]]


def test_the_views_have_the_figures_of_kb_stats(
    bank: Kb, database: Database, settings: Settings, hash_embedder: HashEmbedder
) -> None:
    create_collection(database, "A-second", hash_embedder.identity())
    for question in ("income", "loan"):
        bank("search", "FINANCE", question)
    with database.owner() as connection:
        connection.execute("UPDATE kb_finance.searches SET timings_ms = '{\"total\": 99999}' WHERE query = 'loan'")
    stats = bank("stats", "FINANCE", "--json").json
    collections, growth, statuses, slow = _select(settings, "collections", "growth", "file_statuses", "slow_searches")
    assert [c["collection"] for c in collections] == ["A-second", "FINANCE"]
    for figure in ("files", "passages", "searched", "bytes", "searches"):
        assert int(collections[1][figure]) == stats[figure], figure
    assert [(g["day"], int(g["files"]), int(g["passages"])) for g in growth] == [
        (g["day"], g["files"], g["passages"]) for g in stats["growth"]
    ]
    assert {s["status"]: int(s["files"]) for s in statuses} == stats["files_by_status"]
    assert [s["query"] for s in slow] == ["loan", "income"]
    assert stats["p95_ms"] > stats["median_ms"] > 0


def test_the_views_tell_of_nights_recall_and_evaluations(bank: Kb, database: Database, settings: Settings) -> None:
    with database.owner() as connection:
        for statement in (
            "INSERT INTO kb.runs (started_at, outcome) VALUES ('2026-03-29 01:30+00', 'failed')",
            "INSERT INTO kb.run_steps (run_id, step, job, collection, started_at, ended_at, outcome)"
            " SELECT run_id, 1, 'ingest', 'FINANCE', started_at, started_at + interval '90 s', 'ok' FROM kb.runs",
            "INSERT INTO kb.recall_samples"
            " (collection, at, filtered, searches, k, ef_search, recall, index_ms, exact_ms)"
            " SELECT 'FINANCE', '2026-03-29'::date + n, n = 3, 20, 10, 40 * n, 0.9 + n / 100.0, 1, 2"
            " FROM generate_series(1, 3) n",
            "INSERT INTO kb.evaluations (collection, at, good, metrics, questions, context)"
            " VALUES ('FINANCE', now(), true, '{}', '{}', '{}')",
        ):
            connection.execute(statement)
    nights, recall, evaluations = _select(settings, "nights", "recall", "evaluations")
    assert [(n["run"], n["job"], n["outcome"], n["seconds"]) for n in nights] == [("failed", "ingest", "ok", "90.0")]
    assert [(r["ef_search"], r["recall"]) for r in recall] == [("40", "0.9100"), ("80", "0.9200"), ("120", "0.9300")]
    assert [e["good"] for e in evaluations] == ["t"]
    assert bank("stats", "FINANCE", "--json").json["recall"] == pytest.approx(0.92)  # unfiltered


def test_the_views_stand_before_there_is_any_collection_and_keep_none_from_being_dropped(
    kb: Kb, settings: Settings, database_dsn: str
) -> None:
    assert _select(settings, "collections", "growth", "slow_searches", "nights") == [[], [], [], []]
    # psql's own views go with its session, which may take a moment longer than psql
    kept = "SELECT count(*) FROM pg_views WHERE viewname = 'growth' AND schemaname NOT LIKE 'pg_temp%'"
    with psycopg.connect(database_dsn) as connection:
        assert connection.execute(kept).fetchone() == (0,)
