"""The record of the nights, in kb.runs and kb.run_steps, and the lock that lets one of them run at a time.

A run has its row before it does anything, so that one that died is seen: its row says 'running' and nobody holds the
lock. The lock belongs to a session: it goes with the process, and also with the server's restart, after which the run
takes it again unless another run was quicker.
"""

import json
import os
import socket
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, TypeVar

import psycopg

from agent_server.db import Conn, Database, translated
from agent_server.errors import DatabaseUnavailable, ServiceError
from nightly.statements import execute, fetch_all

T = TypeVar("T")
Pause = Callable[[float], None]

#: A server that restarts is waited for: a night is worth more than a minute.
WAIT_TRIES = 19
WAIT_S = 5.0


class NightBusy(ServiceError):
    """Another run holds the lock; the message says which, where and since when."""

    code = "night_busy"


class NightLost(ServiceError):
    """The lock went with the database's restart, and another run has it now: this one stops."""

    code = "night_lost"


@dataclass(frozen=True, slots=True)
class Here:
    """The process that a run's row names."""

    host: str
    pid: int


def this_process() -> Here:
    return Here(socket.gethostname(), os.getpid())


def patiently(work: Callable[[], T], *, pause: Pause = time.sleep, tries: int = WAIT_TRIES) -> T:
    """Run `work`; again after a pause while the database cannot be reached. Raises DatabaseUnavailable in the end."""
    for _ in range(tries - 1):
        try:
            with translated():
                return work()
        except DatabaseUnavailable:
            pause(WAIT_S)
    with translated():
        return work()


class NightLock:
    """The lock of the night, held by a session of its own from `take` to the end of the `with` block."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._session: Conn | None = None
        self._stack = ExitStack()

    def __enter__(self) -> "NightLock":
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()
        self._session = None

    def take(self) -> bool:
        """Take the lock unless another session has it."""
        self._stack.close()  # a session that broke
        session = self._stack.enter_context(self._database.owner_autocommit())
        taken = bool(fetch_all(session, "night_lock")[0]["taken"])
        if taken:
            self._session = session
        else:
            self._stack.close()
        return taken

    def held(self) -> bool:
        """Whether the session that has the lock is still there."""
        if self._session is None:
            return False
        try:
            self._session.execute("SELECT 1")
        except psycopg.Error:
            self._session = None
            return False
        return True


@dataclass(slots=True)
class Step:
    """A step of a run as it is recorded."""

    job: str
    collection: str
    outcome: str = "running"
    counts: Mapping[str, Any] = field(default_factory=dict)
    findings: Sequence[str] = ()
    error: str = ""


class Record:
    """Writes the rows of runs; each call is a transaction, and waits for a server that restarts."""

    def __init__(self, database: Database, here: Here, pause: Pause = time.sleep) -> None:
        self._database = database
        self._here = here
        self._pause = pause

    def _do(self, name: str, values: Mapping[str, Any]) -> list[dict[str, Any]]:
        def work() -> list[dict[str, Any]]:
            with self._database.owner() as connection:
                return fetch_all(connection, name, dict(values))

        return patiently(work, pause=self._pause)

    def _write(self, name: str, values: Mapping[str, Any]) -> None:
        def work() -> None:
            with self._database.owner() as connection:
                execute(connection, name, dict(values))

        patiently(work, pause=self._pause)

    def start(self, due_at: datetime | None, now: datetime, settings: Mapping[str, Any]) -> int | None:
        """The new run's number; None when the hour has its record already."""
        values = {"due_at": due_at, "started_at": now, "settings": json.dumps(settings), **self._who()}
        rows = self._do("run_start", values)
        return int(rows[0]["run_id"]) if rows else None

    def end(self, run_id: int, now: datetime, outcome: str, summary: str) -> None:
        self._write("run_end", {"run_id": run_id, "ended_at": now, "outcome": outcome, "summary": summary})

    def bury(self, but: int, now: datetime) -> list[dict[str, Any]]:
        """Mark runs that died; those that were. Only for the holder of the lock."""
        summary = f"ended without a word; found by the run that started at {now:%Y-%m-%d %H:%M} UTC"
        return self._do("run_bury", {"but": but, "summary": summary})

    def interrupted(self, run_id: int, now: datetime) -> None:
        """A run and the step it was at were stopped by hand."""
        self._write("run_interrupted", {"run_id": run_id, "at": now})

    def revive(self, run_id: int) -> None:
        self._write("run_revive", {"run_id": run_id})

    def alive(self, run_id: int) -> bool:
        return bool(self._do("run_alive", {"run_id": run_id})[0]["alive"])

    def skipped(self, due_at: datetime, now: datetime, summary: str) -> None:
        """An hour at which nothing ran has a record too."""
        self._write("run_skipped", {"due_at": due_at, "at": now, "summary": summary, **self._who()})

    def last_due(self) -> datetime | None:
        """The newest hour of the schedule that has a record."""
        found: datetime | None = self._do("run_last_due", {})[0]["due_at"]
        return found

    def holder(self, but: int = 0) -> str | None:
        """Who holds the lock, in words: "run 12 on host (process 345) since 2026-01-02 03:04 UTC"; None: nobody."""
        row = next(iter(self._do("night_holder", {"but": but})), None)
        if row is None:
            return None
        since = f"since {row['since'].astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"
        if row["run_id"] is None:
            return f"a run that has no record yet, {since}"
        return f"run {row['run_id']} on {row['host']} (process {row['pid']}) {since}"

    def step_started(self, run_id: int, number: int, step: Step, now: datetime) -> None:
        values = {"run_id": run_id, "step": number, "job": step.job, "collection": step.collection, "started_at": now}
        self._write("step_start", values)

    def step_ended(self, run_id: int, number: int, step: Step, now: datetime) -> None:
        values = {
            "run_id": run_id,
            "step": number,
            "ended_at": now,
            "outcome": step.outcome,
            "counts": json.dumps(dict(step.counts)),
            "findings": json.dumps(list(step.findings)),
            "error": step.error,
        }
        self._write("step_end", values)

    def runs(self, limit: int) -> Sequence[dict[str, Any]]:
        """The newest runs, newest first; one that nobody works on any more is told as dead."""
        running = bool(self._do("night_holder", {"but": 0}))
        return [_as_it_is(row, running) for row in self._do("run_list", {"limit": limit})]

    def run(self, run_id: int = 0) -> dict[str, Any] | None:
        """One run with its steps; 0: the newest that was not skipped. None when there is none."""
        row = next(iter(self._do("run_get", {"run_id": run_id})), None)
        if row is None:
            return None
        running = bool(self._do("night_holder", {"but": 0}))
        steps = [_as_it_is(s, running) for s in self._do("run_steps", {"run_id": row["run_id"]})]
        return {**_as_it_is(row, running), "steps": steps}

    def _who(self) -> dict[str, Any]:
        return {"host": self._here.host, "pid": self._here.pid}


def _as_it_is(row: dict[str, Any], somebody_runs: bool) -> dict[str, Any]:
    dead = row["outcome"] == "running" and not somebody_runs
    return {**row, "outcome": "died"} if dead else row
