"""The runner: steps in order, each with a true record; one run at a time; what failed stops nothing else."""

import json
from datetime import timedelta

import psycopg
import pytest

from agent_server.catalog import drop_collection
from agent_server.db import Database, execute
from agent_server.errors import DatabaseUnavailable, EmbedderUnavailable, InvalidArgument, UnknownCollection
from agent_server.settings import Settings
from nightly.jobs import StepReport
from nightly.record import Here, NightBusy, NightLock, NightLost, Record, patiently
from nightly.run import Request
from nightly.statements import fetch_all
from tests.nightly.nights import Called, Clock, Waited, collections, night, runs


@pytest.fixture(autouse=True)
def _two(database: Database) -> None:
    collections(database, "ONE", "TWO")


def _failing(_: str) -> StepReport:
    raise EmbedderUnavailable("nobody answers", hint="Start it.")


def _steps(run: dict[str, object]) -> list[tuple[str, str, str]]:
    return [(s["job"], s["collection"], s["outcome"]) for s in run["steps"]]  # type: ignore[attr-defined]


def test_jobs_run_in_order_over_all_collections_and_leave_a_record(database: Database, settings: Settings) -> None:
    clock = Clock()

    def worked(_: str) -> StepReport:
        clock.forward(minutes=3)
        return StepReport({"rows": 7, "share": 0.5, "why": "because"}, findings=("look here",))

    first, second = Called("first", worked), Called("second")
    report = night(database, settings, clock=clock, jobs=[first.job(), second.job()]).run(Request())
    assert (report.outcome, report.summary) == ("ok", "4 steps: 4 ok")
    [found] = runs(database)
    assert _steps(found) == [
        ("first", "ONE", "ok"),
        ("first", "TWO", "ok"),
        ("second", "ONE", "ok"),
        ("second", "TWO", "ok"),
    ]
    assert (found["host"], found["pid"], found["due_at"], found["outcome"]) == ("testhost", 4711, None, "ok")
    assert found["ended_at"] - found["started_at"] == timedelta(minutes=6)
    assert found["steps"][0]["ended_at"] - found["steps"][0]["started_at"] == timedelta(minutes=3)
    assert found["steps"][0]["counts"] == {"rows": 7, "share": 0.5, "why": "because"}
    assert found["steps"][0]["findings"] == ["look here"]


def test_a_record_is_there_while_the_step_is_still_at_work(database: Database, settings: Settings) -> None:
    seen: list[tuple[str, str]] = []

    def look(_: str) -> None:
        [found] = runs(database)
        seen.append((found["outcome"], found["steps"][-1]["outcome"]))

    night(database, settings, jobs=[Called("only", look).job()]).run(Request(only=("ONE",)))
    assert seen == [("running", "running")]


def test_jobs_and_collections_can_be_chosen_and_unknown_ones_are_refused(
    database: Database, settings: Settings
) -> None:
    first, second = Called("first"), Called("second")
    made = night(database, settings, jobs=[first.job(), second.job()])
    made.run(Request(jobs=("second",), only=("two", "TWO")))
    assert (first.calls, second.calls) == ([], ["TWO"])
    with pytest.raises(InvalidArgument, match="there is no job 'third'"):
        made.run(Request(jobs=("third",)))
    with pytest.raises(UnknownCollection):
        made.run(Request(only=("THREE",)))
    assert len(runs(database)) == 1


def test_a_failed_step_stops_no_other_but_the_evaluation_of_what_was_not_ingested(
    database: Database, settings: Settings
) -> None:
    jobs = [
        Called("ingest", lambda name: _failing(name) if name == "ONE" else None),
        Called("citations"),
        Called("evaluate"),
    ]
    report = night(database, settings, jobs=[j.job() for j in jobs]).run(Request())
    assert report.outcome == "failed"
    assert report.summary.startswith("6 steps: 4 ok, 1 failed, 1 skipped; failed: ingest ONE (EmbedderUnavailable")
    [found] = runs(database)
    assert [s["outcome"] for s in found["steps"]] == ["failed", "ok", "ok", "ok", "skipped", "ok"]
    assert found["steps"][0]["error"] == "EmbedderUnavailable: nobody answers (Start it.)"
    assert found["steps"][4]["error"] == "ingest failed"


def test_a_step_that_finds_something_bad_fails_with_its_counts(database: Database, settings: Settings) -> None:
    bad = Called("evaluate", lambda _: StepReport({"fell": 2}, ok=False, summary="worse", findings=("kind x fell",)))
    report = night(database, settings, jobs=[bad.job()]).run(Request(only=("ONE",)))
    assert report.outcome == "failed"
    step = runs(database)[0]["steps"][0]
    assert (step["outcome"], step["counts"], step["error"]) == ("failed", {"fell": 2}, "kind x fell")


def test_a_collection_that_is_dropped_meanwhile_is_skipped(database: Database, settings: Settings) -> None:
    def drop(name: str) -> None:
        if name == "ONE":
            drop_collection(database, "TWO")

    first = Called("first", drop)
    report = night(database, settings, jobs=[first.job()]).run(Request())
    assert [s["outcome"] for s in report.steps] == ["ok", "skipped"]
    assert report.outcome == "ok"


def test_a_second_run_is_told_who_is_at_work_and_leaves_no_record(database: Database, settings: Settings) -> None:
    other = night(database, settings, jobs=[Called("only").job()], here=Here("otherhost", 1))
    said: list[str] = []

    def second(_: str) -> None:
        with pytest.raises(NightBusy) as refused:
            other.run(Request())
        said.append(refused.value.message)

    night(database, settings, jobs=[Called("only", second).job()]).run(Request(only=("ONE",)))
    assert said == ["another run is at work: run 1 on testhost (process 4711) since 2026-03-01 02:30:00 UTC"]
    assert [r["outcome"] for r in runs(database)] == ["ok"]
    assert other.run(Request()).outcome == "ok"


def test_a_run_that_holds_the_lock_and_has_no_record_yet_is_told_by_its_session(
    database: Database, settings: Settings
) -> None:
    with NightLock(database) as lock:
        assert lock.take()
        with pytest.raises(NightBusy, match="a run that has no record yet, since 20"):
            night(database, settings, jobs=[]).run(Request())


def test_the_lock_is_free_as_soon_as_its_run_has_ended(database: Database) -> None:
    with database.owner_autocommit() as other:
        for _ in range(100):  # a closed session keeps its locks until its server process has ended
            with NightLock(database) as lock:
                assert lock.take()
            assert fetch_all(other, "night_lock") == [{"taken": True}]
            execute(other, "locks_release")


def test_a_lock_that_is_given_back_while_we_ask_who_has_it_is_taken(
    database: Database, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = NightLock(database)
    assert other.take()
    asked = Record.holder

    def gone_meanwhile(record: Record, but: int = 0) -> str | None:
        other.__exit__()
        return asked(record, but)

    monkeypatch.setattr(Record, "holder", gone_meanwhile)
    assert night(database, settings, jobs=[Called("only").job()]).run(Request()).outcome == "ok"


def test_a_dead_run_is_found_by_the_next_and_told(database: Database, settings: Settings) -> None:
    with database.owner() as connection:
        connection.execute(
            "INSERT INTO kb.runs (started_at, host, pid) VALUES ('2026-02-28 02:30+00', 'gone', 99);"
            "INSERT INTO kb.run_steps (run_id, step, job, collection, started_at)"
            " VALUES (1, 1, 'ingest', 'ONE', '2026-02-28 02:30+00')"
        )
    made = night(database, settings, jobs=[Called("only").job()])
    assert runs(database)[0]["outcome"] == "died"  # nobody holds the lock
    report = made.run(Request())
    assert [(d["run_id"], d["host"], d["pid"]) for d in report.died] == [(1, "gone", 99)]
    with database.owner() as connection:
        stored = connection.execute("SELECT outcome, ended_at, summary FROM kb.runs ORDER BY run_id").fetchall()
        steps = connection.execute("SELECT outcome FROM kb.run_steps WHERE run_id = 1").fetchall()
    assert stored[0] == ("died", None, "ended without a word; found by the run that started at 2026-03-01 02:30 UTC")
    assert stored[1][0] == "ok"
    assert steps == [("died",)]


def test_resuming_does_what_was_left_undone_and_nothing_else(database: Database, settings: Settings) -> None:
    broken = [True]

    def sometimes(name: str) -> None:
        if broken[0] and name == "TWO":
            _failing(name)

    first, second = Called("ingest", sometimes), Called("evaluate")
    made = night(database, settings, jobs=[first.job(), second.job()])
    assert made.run(Request()).outcome == "failed"
    broken[0] = False
    first.calls.clear(), second.calls.clear()
    report = made.run(Request(resume=True))
    assert (first.calls, second.calls) == (["TWO"], ["TWO"])
    assert report.outcome == "ok"
    again = made.run(Request(resume=True))
    assert (again.run_id, again.summary) == (None, "nothing was left undone")
    assert [r["outcome"] for r in runs(database)] == ["failed", "ok"]


def test_resuming_a_run_that_died_does_the_step_it_was_at_and_those_after(
    database: Database, settings: Settings
) -> None:
    plan = json.dumps({"steps": [["first", "ONE"], ["first", "TWO"], ["second", "ONE"], ["gone", "ONE"]]})
    with database.owner() as connection:
        connection.execute(
            "INSERT INTO kb.runs (started_at, host, pid, settings) VALUES ('2026-02-28 02:30+00', 'gone', 99, %s)",
            (plan,),
        )
        connection.execute(
            "INSERT INTO kb.run_steps (run_id, step, job, collection, started_at, outcome) VALUES"
            " (1, 1, 'first', 'ONE', '2026-02-28 02:30+00', 'ok'),"
            " (1, 2, 'first', 'TWO', '2026-02-28 02:31+00', 'running')"
        )
    first, second = Called("first"), Called("second")
    report = night(database, settings, jobs=[first.job(), second.job()]).run(Request(resume=True))
    assert (first.calls, second.calls) == (["TWO"], ["ONE"])
    assert len(report.died) == 1


def test_an_interrupted_run_says_so(database: Database, settings: Settings) -> None:
    def ctrl_c(_: str) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        night(database, settings, jobs=[Called("only", ctrl_c).job()]).run(Request())
    [found] = runs(database)
    assert (found["outcome"], found["summary"]) == ("died", "interrupted")
    assert _steps(found) == [("only", "ONE", "died")]


def _end_all_sessions(database: Database) -> None:
    with psycopg.connect(database.dsn, autocommit=True) as admin:
        admin.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )


def test_a_run_whose_sessions_are_ended_in_mid_step_records_that_and_goes_on(
    database: Database, settings: Settings
) -> None:
    def restart(name: str) -> None:
        if name == "ONE":
            with database.owner() as connection:
                _end_all_sessions(database)
                connection.execute("SELECT 1")

    first, second = Called("first", restart), Called("second")
    report = night(database, settings, jobs=[first.job(), second.job()]).run(Request())
    assert [s["outcome"] for s in report.steps] == ["failed", "ok", "ok", "ok"]
    [found] = runs(database)
    assert found["outcome"] == "failed"
    assert found["steps"][0]["error"].startswith("DatabaseUnavailable: the connection broke")


def test_a_run_that_lost_its_lock_to_another_stops(database: Database, settings: Settings) -> None:
    other = Called("second")

    def overtaken(_: str) -> None:
        _end_all_sessions(database)
        night(database, settings, jobs=[other.job()], here=Here("otherhost", 1)).run(Request())

    with pytest.raises(NightLost, match="run 1 lost its lock"):
        night(database, settings, jobs=[Called("first", overtaken).job()]).run(Request())
    assert [(r["host"], r["outcome"]) for r in runs(database)] == [("testhost", "died"), ("otherhost", "ok")]
    assert other.calls == ["ONE", "TWO"]


def test_a_database_that_comes_back_is_waited_for_and_one_that_stays_away_is_an_error() -> None:
    waited = Waited()

    def back_at(attempt: int) -> str:
        if len(waited.seconds) < attempt:
            raise psycopg.OperationalError("connection refused")
        return "written"

    assert patiently(lambda: back_at(3), pause=waited) == "written"
    assert len(waited.seconds) == 3
    waited.seconds.clear()
    with pytest.raises(DatabaseUnavailable, match="connection refused"):
        patiently(lambda: back_at(10**6), pause=waited)
    assert 60 <= sum(waited.seconds) <= 120
