"""A week of nights in seconds: whatever goes wrong meanwhile, at its end the bank holds what the folder holds, each
night has one truthful record, and nothing ran twice.

Recife, October 2000: clocks went forward on the 8th and back on the 15th, both at midnight, so that with nights at
00:30 one of them is at an hour that does not exist, one has 23 hours and one has 25.
"""

import random
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest

from agent_server.catalog import create_collection, get_collection
from agent_server.db import Database
from agent_server.ingest import pipeline
from agent_server.ingest.steps import IngestOptions
from agent_server.models import FileStatus
from agent_server.postgres import EmbeddedServer
from agent_server.settings import Settings
from nightly.hours import hour
from nightly.jobs import Job, NightContext, StepReport
from nightly.record import Here
from nightly.run import JOBS
from nightly.schedule import Schedule
from tests.hash_embedder import HashEmbedder
from tests.nightly.nights import Clock, night, runs

RECIFE = hour("00:30", "America/Recife")
FIRST, LAST = date(2000, 10, 7), date(2000, 10, 15)
NOT_THERE, BEFORE_23_HOURS, BEFORE_25_HOURS = date(2000, 10, 8), date(2000, 10, 8), date(2000, 10, 14)
NAMES = ("HARBOUR", "QUIET")

PASSAGES = """
SELECT chunk_id, text, context, canonical, authority, tsv::text, embedding::text FROM chunks ORDER BY chunk_id
"""
FILES = "SELECT source, status, sha256 FROM files WHERE status <> 'removed' ORDER BY source"
EDGES = """
SELECT f.chunk_id, t.chunk_id, l.relation, l.anchor, l.from_start FROM links l
JOIN chunks f ON f.id = l.from_chunk JOIN chunks t ON t.id = l.to_chunk ORDER BY 1, 2, 3, 4, 5
"""
CLAIMS = "SELECT statement, quote FROM claims WHERE status = 'verified' ORDER BY 1, 2"
TERMS = "SELECT t.term, c.chunk_id FROM terms t JOIN chunks c ON c.id = t.chunk ORDER BY 1, 2"
COUNTED = """
SELECT lexeme, count(*) FROM chunks, unnest(tsv) WHERE canonical GROUP BY 1
UNION ALL SELECT '', count(*) FROM chunks WHERE canonical ORDER BY 1
"""


@contextmanager
def _in_mid_transaction(database: Database, happens: Callable[[], None]) -> Iterator[None]:
    """Once a file's row is being written, `happens`, and no earlier."""
    with database.owner("kb_harbour") as connection:
        connection.execute(
            "CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_sleep(60); RETURN NEW; END';"
            "CREATE TRIGGER slow BEFORE INSERT OR UPDATE ON files FOR EACH ROW EXECUTE FUNCTION slow()"
        )

    def wait() -> None:
        asleep = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep' AND datname = current_database()"
        with psycopg.connect(database.dsn, autocommit=True) as other:
            while not other.execute(asleep).fetchone()[0]:  # type: ignore[index]
                other.execute("SELECT pg_stat_clear_snapshot()")
        happens()
        with psycopg.connect(database.dsn, autocommit=True) as other:
            other.execute("DROP FUNCTION kb_harbour.slow CASCADE")

    thread = threading.Thread(target=wait)
    thread.start()
    yield
    thread.join()


@dataclass
class Folder:
    """Documents that change every day: some come, some change, one gets another name, one goes."""

    path: Path
    rng: random.Random
    made: int = 0

    def write(self, count: int) -> None:
        for _ in range(count):
            self.made += 1
            self._put(self.path / f"rule-{self.made:03}.md", self.made)

    def a_day_passes(self) -> None:
        there = sorted(self.path.glob("*.md"))
        changed, renamed, removed = self.rng.sample(there, 3)
        self._put(changed, self.rng.randrange(10**6))
        renamed.rename(self.path / f"moved-{self.made:03}.md")
        removed.unlink()
        self.write(2)

    def _put(self, path: Path, number: int) -> None:
        pier = self.rng.randrange(10**6)
        path.write_text(
            f"# Rule {path.stem}\n\n## 1 Terms\n\n“Berth fee {number}” means the price of a berth at pier {pier}.\n\n"
            f"## 2 Duties\n\nThe berth fee {number} must be paid within {number % 60 + 2} days; see section 1.\n\n"
            f"Every ship keeps the lights of the harbour in sight, whatever the weather and the hour of the night is.\n"
        )


@dataclass
class World:
    """A bank, its folders, a clock, and what goes wrong at which night."""

    database: Database
    settings: Settings
    folders: dict[str, Folder]
    restart: Callable[[], None]
    jobs: Sequence[Job] = JOBS
    clock: Clock = field(default_factory=Clock)
    embedder: HashEmbedder = field(default_factory=HashEmbedder)
    during: dict[str, Callable[[], None]] = field(default_factory=dict)  #: job -> what happens once before it
    ran: Counter[tuple[Any, str, str]] = field(default_factory=Counter)

    def schedule(self, host: str = "testhost") -> Schedule:
        watched = [Job(job.name, self._watched(job)) for job in self.jobs]
        made = night(
            self.database, self.settings, clock=self.clock, embedder=self.embedder, jobs=watched, here=Here(host, 1)
        )
        return Schedule(made, RECIFE, timedelta(hours=24))

    def _watched(self, job: Job) -> Callable[..., StepReport]:
        def run(database: Database, collection: Any, context: NightContext) -> StepReport:
            if (happens := self.during.pop(job.name, None)) is not None:
                happens()
            self.ran[context.run_id, job.name, collection.name] += 1
            return job.run(database, collection, context)

        return run

    def rows(self, name: str, query: str) -> list[tuple[Any, ...]]:
        with self.database.owner() as connection:
            schema = get_collection(connection, name).schema_name
        with self.database.owner(schema) as connection:
            return connection.execute(query).fetchall()  # type: ignore[call-overload, no-any-return]


def _due(day: date) -> datetime:
    noon = datetime(day.year, day.month, day.day, 12, tzinfo=RECIFE.zone)
    return RECIFE.last_due(noon)


def _make(database: Database, settings: Settings, root: Path, seed: int, files: int, restart: Any) -> World:
    folders: dict[str, Folder] = {}
    for name in NAMES:
        path = root / name
        path.mkdir()
        folders[name] = Folder(path, random.Random(f"{name} {seed}"))
        folders[name].write(files)
        create_collection(database, name, HashEmbedder().identity())
        pipeline.ingest(database, name, [path], HashEmbedder(), IngestOptions(isolate=False))
    return World(database, settings, folders, restart)


def _live(world: World, troubles: dict[date, str]) -> dict[date, str]:
    """Every night of the week with its trouble; what its record is expected to say."""
    expected: dict[date, str] = {}
    for n in range((LAST - FIRST).days + 1):
        day = FIRST + timedelta(days=n)
        if n:
            for folder in world.folders.values():
                folder.a_day_passes()
        trouble = troubles.get(day, "")
        if expected.get(day) == "skipped":
            continue  # the run of the night before was still at work
        world.clock.now = _due(day)
        expected[day] = "ok"
        stack = ExitStack()
        match trouble:
            case "embedder down":
                world.embedder.lost_after = 0
                expected[day] = "failed"
            case "database restarts":
                stack.enter_context(_in_mid_transaction(world.database, world.restart))
                expected[day] = "failed"
            case "machine off":
                world.clock.forward(hours=6)
            case "run too long":
                tomorrow = day + timedelta(days=1)
                world.during["claims"] = lambda: _next_hour_comes(world, tomorrow)  # noqa: B023
                expected[tomorrow] = "skipped"
        with stack:
            world.schedule().tick()
        world.clock.forward(seconds=20)
        world.schedule("secondhost").tick()  # another one looks a little later
        world.schedule().tick()
        world.embedder.lost_after = None
    return expected


def _next_hour_comes(world: World, day: date) -> None:
    world.clock.now = _due(day)
    world.schedule("secondhost").tick()
    world.clock.forward(minutes=30)


def _check(world: World, expected: dict[date, str], troubles: dict[date, str]) -> None:
    found = [r for r in runs(world.database) if r["due_at"] is not None]
    nights = {r["due_at"].astimezone(RECIFE.zone).date(): r for r in found}
    assert len(nights) == len(found) == (LAST - FIRST).days + 1
    assert {day: r["outcome"] for day, r in nights.items()} == expected, [r["summary"] for r in found]
    for day, record in nights.items():
        _check_record(record, day, troubles.get(day, ""), len(world.jobs) * len(NAMES))
    planned = {
        (r["run_id"], job.name, name)
        for r in found
        if r["outcome"] != "skipped"
        for job in world.jobs
        for name in NAMES
    }
    assert set(world.ran.values()) == {1}
    left_out = planned - set(world.ran)
    assert {job for _, job, _ in left_out} <= {"evaluate"}
    assert len(left_out) == sum(
        s["outcome"] == "skipped" or "DatabaseUnavailable" in s["error"] for r in found for s in r["steps"]
        if (r["run_id"], s["job"], s["collection"]) in left_out
    )  # fmt: skip


def _check_record(record: dict[str, Any], day: date, trouble: str, planned: int) -> None:
    steps = {(s["job"], s["collection"]): s for s in record["steps"]}
    bad = {where[0] for where, s in steps.items() if s["outcome"] == "failed"}
    assert record["due_at"] == _due(day)
    assert all(s["outcome"] in ("ok", "failed", "skipped") for s in record["steps"])
    match trouble:
        case "embedder down":
            assert "ingest" in bad
            assert "the hash embedder is switched off" in record["summary"]
        case "database restarts":
            assert bad == {"ingest"}
            assert "the connection broke" in record["summary"] or "no connection" in record["summary"]
        case "machine off":
            assert record["started_at"] - record["due_at"] == timedelta(hours=6)
        case _ if record["outcome"] == "skipped":
            assert steps == {}
            assert "was still at work" in record["summary"]
        case _:
            assert bad == set()
            assert record["started_at"] == record["due_at"]
            assert len(steps) == planned


def _check_bank(world: World) -> None:
    """The same as one that was made of the folder as it is now; no passage was paid for twice."""
    repeated = [text for text, times in Counter(world.embedder.texts).items() if times > 1]
    assert len(repeated) <= world.settings.embed_batch_size  # what a broken session may cost
    for name, folder in world.folders.items():
        calm = f"CALM-{name}"
        create_collection(world.database, calm, HashEmbedder().identity())
        pipeline.ingest(world.database, calm, [folder.path], HashEmbedder(), IngestOptions(isolate=False))
        for query in (FILES, PASSAGES, EDGES, TERMS, CLAIMS):
            rows = world.rows(name, query)
            assert rows == world.rows(calm, query)
            assert rows
        assert [r[0] for r in world.rows(name, FILES)] == sorted(p.name for p in folder.path.iterdir())
        assert {r[1] for r in world.rows(name, FILES)} == {FileStatus.INDEXED}
        assert world.rows(name, "SELECT lexeme, ndoc FROM lexemes ORDER BY 1") == world.rows(name, COUNTED)
        assert world.rows(name, "SELECT count(*) FROM lexeme_deltas") == [(0,)]
        removed = world.rows(name, "SELECT count(*) FROM files WHERE status = 'removed'")
        assert removed[0][0] > 0


def test_the_week_has_what_its_story_needs() -> None:
    due = {day: _due(day) for day in (FIRST + timedelta(days=n) for n in range(9))}
    local = {day: moment.astimezone(RECIFE.zone) for day, moment in due.items()}
    assert [day for day in local if local[day].strftime("%H:%M") != "00:30"] == [NOT_THERE]
    gaps = {day: due[day + timedelta(days=1)] - due[day] for day in due if day != LAST}
    assert [day for day in gaps if gaps[day] == timedelta(hours=23)] == [BEFORE_23_HOURS]
    assert [day for day in gaps if gaps[day] == timedelta(hours=25)] == [BEFORE_25_HOURS]


TROUBLES = {
    date(2000, 10, 9): "embedder down",
    date(2000, 10, 10): "database restarts",
    date(2000, 10, 11): "machine off",
    date(2000, 10, 12): "run too long",
}


def test_after_a_week_of_trouble_the_bank_holds_what_the_folder_holds(
    database: Database, settings: Settings, tmp_path: Path
) -> None:
    def end_sessions() -> None:
        with psycopg.connect(database.dsn, autocommit=True) as admin:
            admin.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )

    world = _make(database, settings, tmp_path, seed=7, files=5, restart=end_sessions)
    world.jobs = [job for job in JOBS if job.name != "audit"]  # half of the time
    expected = _live(world, TROUBLES)
    _check(world, expected, TROUBLES)
    _check_bank(world)


@pytest.mark.full
@pytest.mark.parametrize("seed", range(3))
def test_weeks_of_trouble_at_any_night_with_a_server_that_really_restarts(
    own_server: EmbeddedServer, own_database: Database, own_settings: Settings, tmp_path: Path, seed: int
) -> None:
    def restart() -> None:
        own_server.stop()
        own_server.start()

    rng = random.Random(seed)
    kinds = list(TROUBLES.values())
    rng.shuffle(kinds)
    days = sorted(rng.sample(range(1, (LAST - FIRST).days - 2), len(kinds)))
    troubles = dict(zip((FIRST + timedelta(days=n) for n in days), kinds, strict=True))
    taken = [day for day, kind in troubles.items() if kind == "run too long"]
    troubles.pop(taken[0] + timedelta(days=1), None)  # a night that is skipped has no other trouble
    world = _make(own_database, own_settings, tmp_path, seed, files=40, restart=restart)
    expected = _live(world, troubles)
    _check(world, expected, troubles)
    _check_bank(world)
