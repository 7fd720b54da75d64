"""`kb nightly` and `python -m nightly`, over real HTTP to the Ollama double, in this process and in others."""

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from agent_server.catalog import create_collection
from agent_server.db import Database
from agent_server.embedding import make_embedder
from agent_server.ingest.pipeline import ingest
from agent_server.ingest.steps import IngestOptions
from agent_server.settings import Settings, load_settings
from nightly.hours import hour
from nightly.nightly_cli import JobName
from nightly.record import NightLock
from nightly.run import JOBS
from tests.conftest import Builder
from tests.doors.conftest import Kb, environment
from tests.doors.conftest import plain_kb as _plain_kb
from tests.nightly.nights import runs, scheduled_since
from tests.ollama_double import OllamaDouble

plain_kb = _plain_kb


@pytest.fixture
def double() -> Iterator[OllamaDouble]:
    with OllamaDouble() as running:
        yield running


@pytest.fixture
def environ(settings: Settings, double: OllamaDouble) -> dict[str, str]:
    return {**environment(settings), "KB_EMBEDDER": "ollama", "KB_OLLAMA_URL": double.url}


def _write(folder: Path) -> Path:
    folder.mkdir()
    (folder / "fees.md").write_text("# Fees\n\n“Berth fee” means the price of a place at the pier for one night.\n")
    return folder


def _harbour(database: Database) -> None:
    with OllamaDouble() as double, tempfile.TemporaryDirectory() as home:
        embedder = make_embedder(load_settings({"KB_EMBEDDER": "ollama", "KB_OLLAMA_URL": double.url}))
        create_collection(database, "HARBOUR", embedder.identity())
        ingest(database, "HARBOUR", [_write(Path(home) / "docs")], embedder, IngestOptions(isolate=False))
        embedder.close()


@pytest.fixture
def stock(request: pytest.FixtureRequest) -> Builder | None:
    return _harbour if "kb" in request.fixturenames else None


@pytest.fixture
def kb(
    plain_kb: Kb, environ: dict[str, str], database: Database, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Kb:
    """`kb` where HARBOUR holds a folder, in which there is a new file."""
    for key, value in environ.items():
        monkeypatch.setenv(key, value)
    folder = _write(tmp_path / "docs")
    with database.owner("kb_harbour") as connection:
        connection.execute("UPDATE roots SET path = %s", (str(folder.resolve()),))
    (folder / "dogs.md").write_text("# Dogs\n\nDogs are kept on a lead on every pier of the harbour, day and night.\n")
    return plain_kb


def _last_hour_but_one(zone: str = "UTC") -> datetime:
    due = hour("02:30", zone)
    return due.last_due(due.last_due(datetime.now(UTC)) - timedelta(seconds=1))


def test_the_names_on_the_command_line_are_those_of_the_jobs_in_their_order() -> None:
    assert [str(name) for name in JobName] == [job.name for job in JOBS]


def test_a_run_says_what_each_step_did_and_is_listed_afterwards(kb: Kb) -> None:
    said = kb("nightly", "run")
    assert said.code == 0
    lines = said.out.splitlines()
    assert [line.split()[:3] for line in lines[:-1] if not line.startswith(" ")] == [
        ["ok", job.name, "HARBOUR"] for job in JOBS
    ]
    assert "1 indexed, 1 unchanged" in lines[0]
    assert lines[-1] == "run 1: ok: 7 steps: 7 ok"
    status = kb("nightly", "status")
    assert "run      1 · ok" in status.out
    assert "indexed 1" in status.out
    assert "next hour of the schedule: " in status.err
    listed = kb("nightly", "list", "--json").json["runs"]
    assert [(r["run_id"], r["outcome"], r["steps"]) for r in listed] == [(1, "ok", 7)]
    assert "7 steps: 7 ok" in kb("nightly", "list", "--limit", "1").out


def test_with_json_a_run_prints_one_value(kb: Kb) -> None:
    found = kb("nightly", "run", "ingest", "defines", "--only", "harbour", "--json").json
    assert (found["run_id"], found["outcome"], found["died"]) == (1, "ok", [])
    assert [(s["job"], s["outcome"]) for s in found["steps"]] == [("ingest", "ok"), ("defines", "ok")]
    assert found["steps"][0]["counts"]["indexed"] == 1
    shown = kb("nightly", "status", "1", "--json").json
    assert shown["run"]["steps"][0]["counts"] == found["steps"][0]["counts"]
    assert shown["next_due"].endswith("+00:00")


def test_a_dry_run_shows_the_plan_and_does_nothing(kb: Kb, database: Database) -> None:
    said = kb("nightly", "run", "--dry-run")
    assert [line.split() for line in said.out.splitlines()] == [[job.name, "HARBOUR"] for job in JOBS]
    assert kb("nightly", "run", "maintain", "--dry-run", "--json").json["steps"] == [
        {"job": "maintain", "collection": "HARBOUR"}
    ]
    assert runs(database) == []
    assert "there was no run yet" in kb("nightly", "status").out
    assert "there was no run yet" in kb("nightly", "list").err


def test_a_failed_run_ends_with_1_and_is_gone_on_with(kb: Kb, double: OllamaDouble) -> None:
    double.fault(path="*", status=500)
    said = kb("nightly", "run", "ingest", "defines", "evaluate")
    assert said.code == 1
    assert [line.split()[0] for line in said.out.splitlines()][:3] == ["failed", "ok", "skipped"]
    double.clear()
    resumed = kb("nightly", "run", "--resume", "--json")
    assert (resumed.code, [s["job"] for s in resumed.json["steps"]]) == (0, ["ingest", "evaluate"])
    assert "nothing was left undone" in kb("nightly", "run", "--resume").out


def test_while_another_run_is_at_work_the_exit_code_is_4(kb: Kb, database: Database) -> None:
    with NightLock(database) as lock:
        assert lock.take()
        said = kb("nightly", "run", "maintain")
        assert (said.code, said.out) == (4, "")
        assert "another run is at work" in said.err
        scheduled_since(database, _last_hour_but_one())
        assert kb("nightly", "run", "--due", "--json").code == 4
    assert [r["outcome"] for r in runs(database)] == ["skipped", "skipped"]  # the hour has its record


def test_what_is_due_runs_once(kb: Kb, monkeypatch: pytest.MonkeyPatch, database: Database) -> None:
    scheduled_since(database, _last_hour_but_one("Europe/Berlin"))
    monkeypatch.setenv("KB_TIMEZONE", "Europe/Berlin")
    assert kb("nightly", "run", "maintain", "--due").code == 0
    again = kb("nightly", "run", "--due")
    assert (again.code, again.out) == (0, "")
    assert "nothing is due" in again.err
    assert kb("nightly", "run", "--due", "--json").json == {"outcome": "nothing due"}
    [_, found] = runs(database)
    assert found["due_at"] is not None
    assert [s["job"] for s in found["steps"]] == ["maintain"]


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["run", "sleep"], 2),
        (["run", "--resume", "--due"], 1),
        (["run", "--resume", "ingest"], 1),
        (["run", "--only", "NOWHERE"], 1),
        (["status", "99"], 1),
    ],
)
def test_what_cannot_be_done_is_refused_with_nothing_on_standard_output(
    kb: Kb, database: Database, arguments: list[str], code: int
) -> None:
    said = kb("nightly", *arguments)
    assert (said.code, said.out) == (code, "")
    assert runs(database) == []


def test_python_m_nightly_is_the_same_run(kb: Kb, environ: dict[str, str], tmp_path: Path, database: Database) -> None:
    command = [sys.executable, "-m", "nightly", "ingest", "--accept", "--json"]
    done = subprocess.run(
        command, env={**os.environ, **environ}, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    [found] = runs(database)
    assert found["steps"][0]["counts"]["indexed"] == 1


def test_the_process_that_stays_makes_up_for_a_missed_hour_and_ends_when_asked(
    kb: Kb, environ: dict[str, str], tmp_path: Path, database: Database
) -> None:
    scheduled_since(database, _last_hour_but_one())
    process: subprocess.Popen[Any] = subprocess.Popen(
        [sys.executable, "-m", "agent_server.doors.cli.main", "nightly", "schedule", "defines"],
        env={**os.environ, **environ},
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stderr is not None
        first, second = process.stderr.readline(), process.stderr.readline()
        process.send_signal(signal.SIGTERM)
        out, rest = process.communicate(timeout=60)
    finally:
        process.kill()
    assert first.startswith("every day at 02:30 UTC; next ")
    assert second == "run 2: ok: 1 steps: 1 ok\n"
    assert (process.returncode, out) == (0, "")
    assert rest.startswith("stopping; ")
    assert [(r["outcome"], r["due_at"] is not None) for r in runs(database)[1:]] == [("ok", True)]
