"""Nights for tests: a clock that is set by hand, the hash embedder, jobs that do what a test wants."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from agent_server.catalog import Collection, create_collection
from agent_server.db import Database
from agent_server.settings import Settings
from nightly.jobs import Job, NightContext, StepReport
from nightly.record import Here, Record
from nightly.run import JOBS, Night
from tests.hash_embedder import HashEmbedder

HERE = Here("testhost", 4711)


@dataclass
class Clock:
    """Stands still until it is set."""

    now: datetime = datetime(2026, 3, 1, 2, 30, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now

    def forward(self, **span: float) -> None:
        self.now += timedelta(**span)


@dataclass
class Waited:
    """Instead of sleeping: what was waited for, and what happens meanwhile."""

    seconds: list[float] = field(default_factory=list)
    meanwhile: Callable[[], object] = lambda: None

    def __call__(self, seconds: float) -> None:
        self.seconds.append(seconds)
        self.meanwhile()


def night(
    database: Database,
    settings: Settings,
    *,
    clock: Clock | None = None,
    embedder: HashEmbedder | None = None,
    jobs: Sequence[Job] = JOBS,
    here: Here = HERE,
    pause: Callable[[float], None] | None = None,
) -> Night:
    """A night on the test's database; files are read in this process."""
    used = embedder or HashEmbedder()
    context = NightContext(settings, clock or Clock(), None, lambda: used, {"isolate": False})
    return Night(database, context, jobs, here, pause or Waited())


@dataclass
class Called:
    """A job that notes each call, and then does what `then` says."""

    name: str
    then: Callable[[str], StepReport | None] = lambda _: None
    calls: list[str] = field(default_factory=list)

    def job(self) -> Job:
        return Job(self.name, self._run)

    def _run(self, database: Database, collection: Collection, context: NightContext) -> StepReport:
        self.calls.append(collection.name)
        return self.then(collection.name) or StepReport({"done": 1})


def collections(database: Database, *names: str) -> None:
    """Empty collections."""
    for name in names:
        create_collection(database, name, HashEmbedder().identity())


def scheduled_since(database: Database, due_at: datetime) -> None:
    """As if a schedule had looked at that hour already."""
    Record(database, HERE, Waited()).skipped(due_at, due_at, "the schedule was there then")


def runs(database: Database) -> list[dict[str, Any]]:
    """All runs, oldest first, with their steps."""
    record = Record(database, HERE, Waited())
    return [record.run(row["run_id"]) or {} for row in reversed(record.runs(1000))]
