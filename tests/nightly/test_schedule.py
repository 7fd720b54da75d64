"""The schedule: each hour has one record at most, whoever looks and however late."""

import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import psycopg
import pytest
from apscheduler.schedulers.background import BackgroundScheduler

from agent_server.db import Database
from agent_server.errors import DatabaseUnavailable
from agent_server.settings import Settings
from nightly.hours import hour
from nightly.record import Here
from nightly.run import Request
from nightly.schedule import HourTrigger, Schedule, background
from tests.conftest import SECRET
from tests.nightly.nights import HERE, Called, Clock, collections, night, runs, scheduled_since

BERLIN = hour("02:30", "Europe/Berlin")
DAY = timedelta(days=1)


@pytest.fixture(autouse=True)
def _one(database: Database) -> None:
    collections(database, "ONE")


def _at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def _schedule(
    database: Database,
    settings: Settings,
    clock: Clock,
    called: Called,
    *,
    grace: timedelta = DAY,
    here: Here = HERE,
    told: Callable[[str], None] = lambda _: None,
) -> Schedule:
    made = night(database, settings, clock=clock, jobs=[called.job()], here=here)
    return Schedule(made, BERLIN, grace, told=told)


def _told(database: Database) -> list[tuple[str, str]]:
    return [(f"{r['due_at'].astimezone(UTC):%m-%d %H:%M}", r["outcome"]) for r in runs(database)]


def test_a_run_that_comes_seconds_late_is_one_run_with_due_and_actual_time(
    database: Database, settings: Settings
) -> None:
    clock, called = Clock(_at("2026-01-11 01:30:02")), Called("only")
    schedule = _schedule(database, settings, clock, called)
    report = schedule.look()
    assert report is not None
    assert report.outcome == "ok"
    for later in ("01:30:03", "02:30:00", "23:59:59"):
        clock.now = _at(f"2026-01-11 {later}")
        assert schedule.look() is None
    [found] = runs(database)
    assert (found["due_at"], found["started_at"]) == (_at("2026-01-11 01:30"), _at("2026-01-11 01:30:02"))
    assert called.calls == ["ONE"]


def test_hours_missed_are_made_up_for_by_one_run_and_the_others_are_recorded(
    database: Database, settings: Settings
) -> None:
    clock, called = Clock(_at("2026-01-11 01:30")), Called("only")
    schedule = _schedule(database, settings, clock, called)
    schedule.look()
    clock.now = _at("2026-01-14 09:00")  # off since the first night
    schedule.look()
    assert schedule.look() is None
    assert called.calls == ["ONE", "ONE"]
    assert sorted(_told(database)) == [
        ("01-11 01:30", "ok"),
        ("01-12 01:30", "skipped"),
        ("01-13 01:30", "skipped"),
        ("01-14 01:30", "ok"),
    ]
    skipped = next(r for r in runs(database) if r["outcome"] == "skipped")
    assert skipped["summary"] == (
        "missed: nothing looked at the clock; the run due at 2026-01-14 01:30 UTC makes up for it"
    )


def test_a_schedule_that_is_set_up_by_day_waits_for_its_first_night(database: Database, settings: Settings) -> None:
    clock, called = Clock(_at("2026-01-11 13:00")), Called("only")
    schedule = _schedule(database, settings, clock, called)
    assert schedule.look() is None
    assert called.calls == []
    [found] = runs(database)
    assert (found["outcome"], found["due_at"]) == ("skipped", _at("2026-01-11 01:30"))
    assert found["summary"] == "before the schedule's first look; its first run is due at 2026-01-12 01:30 UTC"
    clock.now = _at("2026-01-12 13:00")  # from now on a late look makes up for the night
    assert schedule.look() is not None
    assert _told(database) == [("01-11 01:30", "skipped"), ("01-12 01:30", "ok")]


def test_an_hour_missed_by_more_than_the_grace_waits_for_the_next(database: Database, settings: Settings) -> None:
    clock, called = Clock(_at("2026-01-11 01:30")), Called("only")
    schedule = _schedule(database, settings, clock, called, grace=timedelta(hours=2))
    schedule.look()
    clock.now = _at("2026-01-12 03:31")
    assert schedule.look() is None
    clock.now = _at("2026-01-13 03:30")
    assert schedule.look() is not None
    assert _told(database) == [("01-11 01:30", "ok"), ("01-12 01:30", "skipped"), ("01-13 01:30", "ok")]
    assert runs(database)[1]["summary"] == "missed by 2.0 h, more than KB_NIGHTLY_GRACE_H"


@pytest.mark.parametrize("night_of", ["2026-03-29", "2026-10-25"])
def test_on_the_night_of_a_clock_change_exactly_one_run_starts(
    database: Database, settings: Settings, night_of: str
) -> None:
    clock, called = Clock(_at(f"{night_of} 00:00") - 2 * timedelta(hours=6)), Called("only")
    schedule = _schedule(database, settings, clock, called)
    schedule.look()  # the hour of the day before
    called.calls.clear()
    for _ in range(24 * 6):
        clock.forward(minutes=10)
        schedule.look()
    assert called.calls == ["ONE"]
    due = runs(database)[-1]["due_at"].astimezone(BERLIN.zone)
    assert due.date().isoformat() == night_of
    assert due.strftime("%H:%M") in ("02:30", "03:30")


def test_while_a_run_is_still_at_work_the_next_hour_is_skipped_and_recorded(
    database: Database, settings: Settings
) -> None:
    clock = Clock(_at("2026-01-11 01:30"))
    said: list[str] = []
    other = Called("only")
    late = _schedule(database, settings, clock, other, here=Here("otherhost", 1), told=said.append)

    def slow(_: str) -> None:
        clock.now = _at("2026-01-12 01:30")
        late.tick()

    schedule = _schedule(database, settings, clock, Called("only", slow))
    schedule.look()
    assert other.calls == []
    assert said == ["another run is at work: run 1 on testhost (process 4711) since 2026-01-11 01:30:00 UTC"]
    clock.forward(hours=1)
    assert schedule.look() is None  # the hour has its record
    assert _told(database) == [("01-11 01:30", "ok"), ("01-12 01:30", "skipped")]
    assert "run 1 on testhost (process 4711)" in runs(database)[1]["summary"]
    clock.now = _at("2026-01-13 01:30")
    assert schedule.look() is not None


def test_an_hour_claimed_by_another_schedule_is_left_to_it(database: Database, settings: Settings) -> None:
    clock, called = Clock(_at("2026-01-11 01:30")), Called("only")
    made = night(database, settings, clock=clock, jobs=[called.job()])
    assert made.record.start(_at("2026-01-11 01:30"), clock.now, {}) == 1  # the other one has not got the lock yet
    report = made.run(Request(due_at=_at("2026-01-11 01:30")))
    assert (report.run_id, report.outcome) == (None, "skipped")
    assert called.calls == []
    made.run(Request())  # by hand; it finds a run without the lock and buries it
    made.record.revive(1)  # what the other one does as soon as it has the lock
    assert [r["outcome"] for r in runs(database)][1] == "ok"


def test_many_schedules_that_wake_up_at_once_make_one_run(database_dsn: str, settings: Settings) -> None:
    clock, workers = Clock(_at("2026-01-11 01:30")), 6
    called = [Called("only") for _ in range(workers)]
    together = threading.Barrier(workers)
    databases = [Database(database_dsn, SECRET) for _ in range(workers)]

    def look(n: int) -> None:
        schedule = _schedule(databases[n], settings, clock, called[n], here=Here(f"host{n}", n))
        with databases[n].owner():  # connected before the start
            together.wait()
        schedule.look()

    threads = [threading.Thread(target=look, args=(n,)) for n in range(workers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(len(c.calls) for c in called) == 1
    assert _told(databases[0]) == [("01-11 01:30", "ok")]
    for database in databases:
        database.close()


def test_a_look_that_failed_is_made_up_for_at_the_next_wake_up(database: Database, settings: Settings) -> None:
    clock, called, said = Clock(_at("2026-01-11 01:30")), Called("only"), list[str]()
    schedule = _schedule(database, settings, clock, called, told=said.append)
    with Database("postgresql:///nowhere?host=/nonexistent", SECRET) as nowhere:
        lost = _schedule(nowhere, settings, clock, called, told=said.append)
        with pytest.raises(DatabaseUnavailable):
            lost.look()
        lost.tick()
        lost.night = schedule.night
        lost.tick_again()
        lost.tick_again()
    assert "no connection to Postgres" in said[0]
    assert called.calls == ["ONE"]
    assert said[1] == "run 1: ok: 1 steps: 1 ok"
    assert len(said) == 2


def test_the_trigger_fires_at_the_hours_and_once_for_those_that_were_slept_through() -> None:
    trigger = HourTrigger(BERLIN)
    now = _at("2026-03-28 12:00")
    first = trigger.get_next_fire_time(None, now)
    assert first == _at("2026-03-29 01:30")
    assert trigger.get_next_fire_time(first, first) == _at("2026-03-30 00:30")


def test_the_scheduler_looks_at_once_and_then_waits_for_the_hour(database: Database, settings: Settings) -> None:
    ran = threading.Event()

    def worked(_: str) -> None:
        ran.set()

    clock = Clock(datetime.now(UTC))
    scheduled_since(database, BERLIN.last_due(clock.now - DAY))
    scheduler: BackgroundScheduler = background(_schedule(database, settings, clock, Called("only", worked)))
    scheduler.start()
    try:
        assert ran.wait(20)
        next_run = scheduler.get_job("night").next_run_time
        assert next_run == BERLIN.next_due(datetime.now(UTC))
        assert scheduler.get_job("wake").next_run_time - datetime.now(UTC) <= timedelta(seconds=60)
    finally:
        scheduler.shutdown(wait=True)
    [_, found] = runs(database)
    assert (found["outcome"], found["due_at"]) == ("ok", BERLIN.last_due(clock.now))


def test_the_database_refuses_a_second_record_for_an_hour(database: Database) -> None:
    with database.owner() as connection:
        insert = "INSERT INTO kb.runs (due_at, started_at) VALUES ('2026-01-11 01:30+00', now())"
        connection.execute(insert)
        with pytest.raises(psycopg.errors.UniqueViolation), connection.transaction():
            connection.execute(insert)
