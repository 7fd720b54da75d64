"""A night, top to bottom: the lock, a row in kb.runs, then job after job over all collections, a row a step.

Each job opens its own transactions, and what it stores is whole at any time. So a step that fails stops no other one:
citations, definitions, claims, upkeep and the audit work on what is stored, old or new. Only `evaluate` of a collection
is skipped when its `ingest` failed in this run: half of last night's changes are no state to compare with.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from agent_server.catalog import Collection, get_collection, list_collections
from agent_server.db import Database, translated
from agent_server.errors import DatabaseUnavailable, InvalidArgument, KnowledgeBankError, UnknownCollection
from nightly import derived, evaluate, ingestion, maintain, recall_audit
from nightly.jobs import Job, NightContext, StepReport
from nightly.notify import notify
from nightly.record import Here, NightBusy, NightLock, NightLost, Pause, Record, Step, patiently, this_process

#: The jobs, in the order of the night.
JOBS: tuple[Job, ...] = (
    Job("ingest", ingestion.job),
    Job("citations", derived.citations_job),
    Job("defines", derived.defines_job),
    Job("claims", derived.claims_job),
    Job("maintain", maintain.job),
    Job("audit", recall_audit.job),
    Job("evaluate", evaluate.job),
)
#: job -> the job of the same collection that must not have failed before it in the same run
NEEDS: Mapping[str, str] = {"evaluate": "ingest"}
#: A lock that was taken when asked for, and free when asked who has it, is asked for again this often.
LOCK_TRIES = 5


@dataclass(frozen=True, slots=True)
class Request:
    """What a run is to do. Empty: all of it."""

    jobs: tuple[str, ...] = ()
    only: tuple[str, ...] = ()  #: collections
    due_at: datetime | None = None  #: the hour of the schedule that it stands for
    resume: bool = False  #: the unfinished steps of the last run that failed or died


@dataclass(slots=True)
class RunReport:
    """A run as it went."""

    run_id: int | None
    outcome: str
    steps: list[dict[str, Any]] = field(default_factory=list)
    summary: str = ""
    due_at: datetime | None = None
    died: list[dict[str, Any]] = field(default_factory=list)  #: earlier runs found dead
    warnings: list[str] = field(default_factory=list)  #: why somebody could not be told of a failure

    def to_json(self) -> dict[str, Any]:
        return {
            "run_id": self.run_id,
            "outcome": self.outcome,
            "due_at": self.due_at,
            "summary": self.summary,
            "steps": self.steps,
            "died": self.died,
            "warnings": self.warnings,
        }


class Watcher:
    """Told of each step; this one says nothing."""

    def started(self, number: int, of: int, step: Step) -> None: ...
    def ended(self, step: Step, report: StepReport | None, seconds: float) -> None: ...


@dataclass(frozen=True, slots=True)
class Night:
    """What runs need; a run is a call of `run`."""

    database: Database
    context: NightContext
    jobs: Sequence[Job] = JOBS
    here: Here = field(default_factory=this_process)
    pause: Pause = time.sleep
    watcher: Watcher = field(default_factory=Watcher)
    seconds: Callable[[], float] = time.perf_counter

    @property
    def record(self) -> Record:
        return Record(self.database, self.here, self.pause)

    def plan(self, request: Request) -> list[Step]:
        """The steps that `request` asks for, in order. Raises InvalidArgument, UnknownCollection."""
        if request.resume:
            return self._unfinished()
        names = [job.name for job in self.jobs]
        for name in request.jobs:
            if name not in names:
                raise InvalidArgument("job", f"there is no job {name!r}", hint=f"Jobs: {', '.join(names)}.")
        with self.database.owner() as connection:
            if request.only:
                chosen = [get_collection(connection, name).name for name in request.only]
            else:
                chosen = [collection.name for collection in list_collections(connection)]
        wanted = [name for name in names if not request.jobs or name in request.jobs]
        return [Step(name, collection) for name in wanted for collection in dict.fromkeys(chosen)]

    def _unfinished(self) -> list[Step]:
        """What the last run was to do and did not do; nothing when it was well."""
        last = self.record.run()
        if last is None or last["outcome"] not in ("failed", "died"):
            return []
        done = {(s["job"], s["collection"]) for s in last["steps"] if s["outcome"] == "ok"}
        planned = [tuple(pair) for pair in last["settings"].get("steps", [])]
        names = {job.name for job in self.jobs}
        return [Step(job, name) for job, name in planned if (job, name) not in done and job in names]

    def run(self, request: Request) -> RunReport:
        """Do what `request` asks for, record it as it goes, and tell whom the settings name when it failed or when an
        earlier run is found dead.

        Raises NightBusy when another run is at work (an hour of the schedule is then recorded as skipped), NightLost
        when another one took over while the database was away, DatabaseUnavailable when that lasted too long.
        """
        settings = self.context.settings
        try:
            report = self._run(request)
        except (NightLost, DatabaseUnavailable) as error:
            notify(settings, {"outcome": "failed", "due_at": request.due_at, **error.to_json()})
            raise
        if report.outcome == "failed" or report.died:
            report.warnings = notify(settings, report.to_json())
        return report

    def _run(self, request: Request) -> RunReport:
        record = self.record
        with NightLock(self.database) as lock:
            died: list[dict[str, Any]] = []
            if request.due_at is None:
                self._take(lock, record, None)
                died = record.bury(0, self.context.clock())
            steps = patiently(lambda: self.plan(request), pause=self.pause)
            if request.resume and not steps:
                return RunReport(None, "ok", summary="nothing was left undone", died=died)
            # An hour is claimed before the lock is taken: of two schedules, one has it, and the other knows.
            run_id = record.start(request.due_at, self.context.clock(), _settings(request, steps))
            if run_id is None:
                return RunReport(None, "skipped", summary="this hour has its run already", due_at=request.due_at)
            if request.due_at is not None:
                self._take(lock, record, run_id)
                record.revive(run_id)
                died = record.bury(run_id, self.context.clock())
            report = RunReport(run_id, "running", due_at=request.due_at, died=died)
            try:
                self._steps(lock, record, run_id, steps, report)
            except KeyboardInterrupt:
                record.interrupted(run_id, self.context.clock())
                raise
            failed = [s for s in report.steps if s["outcome"] == "failed"]
            report.outcome = "failed" if failed else "ok"
            report.summary = _summary(report.steps)
            record.end(run_id, self.context.clock(), report.outcome, report.summary)
        return report

    def _take(self, lock: NightLock, record: Record, run_id: int | None) -> None:
        holder: str | None = None
        for _ in range(LOCK_TRIES):
            if patiently(lock.take, pause=self.pause):
                return
            holder = record.holder(run_id or 0)
            if holder is not None:
                break
        holder = holder or "a run that has just ended"
        if run_id is not None:
            record.end(run_id, self.context.clock(), "skipped", f"{holder} was still at work")
        raise NightBusy(
            f"another run is at work: {holder}",
            hint="Wait for it: `kb nightly status` shows how far it is.",
            details={"holder": holder},
        )

    def _steps(self, lock: NightLock, record: Record, run_id: int, steps: Sequence[Step], report: RunReport) -> None:
        jobs = {job.name: job for job in self.jobs}
        context = replace(self.context, run_id=run_id)
        for number, step in enumerate(steps, 1):
            self._keep(lock, record, run_id)
            record.step_started(run_id, number, step, context.clock())
            self.watcher.started(number, len(steps), step)
            started = self.seconds()
            done = self._do(jobs[step.job], step, context, report.steps)
            seconds = self.seconds() - started
            record.step_ended(run_id, number, step, context.clock())
            self.watcher.ended(step, done, seconds)
            report.steps.append(
                {
                    "job": step.job,
                    "collection": step.collection,
                    "outcome": step.outcome,
                    "counts": dict(step.counts),
                    "error": step.error,
                    "summary": done.summary if done is not None else "",
                    "findings": list(step.findings),
                    "seconds": round(seconds, 3),
                }
            )

    def _do(
        self, job: Job, step: Step, context: NightContext, before: Sequence[Mapping[str, Any]]
    ) -> StepReport | None:
        """Carry out one step; `step` says how it went. None when it was not carried out to its end."""
        needed = NEEDS.get(step.job)
        if any((s["job"], s["collection"], s["outcome"]) == (needed, step.collection, "failed") for s in before):
            step.outcome, step.error = "skipped", f"{needed} failed"
            return None
        try:
            with translated():
                done = job.run(self.database, self._collection(step.collection), context)
        except UnknownCollection as error:
            step.outcome, step.error = "skipped", error.message
            return None
        except Exception as error:  # noqa: BLE001  whatever it is, it is recorded, and the other steps go on
            step.outcome, step.error = "failed", told(error)
            return None
        step.outcome = "ok" if done.ok else "failed"
        step.counts, step.findings = done.counts, done.findings
        step.error = "" if done.ok else next(iter(done.findings), done.summary)
        return done

    def _collection(self, name: str) -> Collection:
        """As it is now: the steps before may have changed it."""
        with self.database.owner() as connection:
            return get_collection(connection, name)

    def _keep(self, lock: NightLock, record: Record, run_id: int) -> None:
        """Make sure that the lock is ours before a step. Raises NightLost."""
        if lock.held():
            return
        if patiently(lock.take, pause=self.pause) and record.alive(run_id):
            return
        other = record.holder(run_id) or "another run"
        raise NightLost(
            f"run {run_id} lost its lock when the database restarted, and {other} took over",
            hint="Nothing is to be done: the other run does what was left.",
        )


def told(error: Exception) -> str:
    """An exception in a line or two: its kind, what it says, its notes, and what to do."""
    words = error.message if isinstance(error, KnowledgeBankError) else str(error)
    hint = f" ({error.hint})" if isinstance(error, KnowledgeBankError) and error.hint else ""
    notes = "".join(f"; {note}" for note in getattr(error, "__notes__", ()))
    return f"{type(error).__name__}: {' '.join(words.split())[:1000]}{hint}{notes}"


def _settings(request: Request, steps: Sequence[Step]) -> dict[str, Any]:
    return {
        "jobs": list(request.jobs),
        "only": list(request.only),
        "resume": request.resume,
        "steps": [[step.job, step.collection] for step in steps],
    }


def _summary(steps: Sequence[Mapping[str, Any]]) -> str:
    """`14 steps: 12 ok, 1 failed, 1 skipped; failed: ingest FINANCE (EmbedderUnavailable: …)`."""
    counts = {o: sum(s["outcome"] == o for s in steps) for o in ("ok", "failed", "skipped")}
    text = f"{len(steps)} steps: " + ", ".join(f"{n} {o}" for o, n in counts.items() if n) if steps else "nothing to do"
    failed = [f"{s['job']} {s['collection']} ({s['error'][:200]})" for s in steps if _bad(s)]
    return text + (f"; failed: {'; '.join(failed)}" if failed else "")


def _bad(step: Mapping[str, Any]) -> bool:
    return bool(step["outcome"] == "failed")
