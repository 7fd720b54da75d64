"""What a job of the night is: a name, and a function that works on one collection and reports in counts."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from agent_server.catalog import Collection
from agent_server.db import Database
from agent_server.embedding import Embedder, make_embedder
from agent_server.settings import Settings

#: The time now, aware, in UTC.
Clock = Callable[[], datetime]


def utc_now() -> datetime:
    """The clock of real runs; tests hand in their own."""
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True)
class NightContext:
    """What the jobs of one run share."""

    settings: Settings
    clock: Clock
    run_id: int | None  #: row of kb.runs; None where a job is called outside a run
    embedder: Callable[[], Embedder]  #: opens one; whoever opens it closes it
    options: Mapping[str, Any] = field(default_factory=dict)  #: what was asked for on the command line, by name


@dataclass(frozen=True, slots=True)
class StepReport:
    """What a step did. `ok` is False when it could be carried out and what it found is bad: a search that got worse,
    files that could not be embedded. What kept it from being carried out is raised instead."""

    counts: Mapping[str, int | float | str] = field(default_factory=dict)
    ok: bool = True
    summary: str = ""  #: one line for people
    findings: tuple[str, ...] = ()  #: what a person should look at, a line each


@dataclass(frozen=True, slots=True)
class Job:
    """A step of the night. `run` opens its own transactions; an exception marks the step as failed."""

    name: str
    run: Callable[[Database, Collection, NightContext], StepReport]


def context_for(settings: Settings, *, options: Mapping[str, Any] | None = None) -> NightContext:
    """The context of a real run, with the embedder that the settings name."""
    return NightContext(settings, utc_now, None, lambda: make_embedder(settings), options or {})
