"""`kb nightly`: run the night or some of its jobs, wait for its hour, see what became of it."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from agent_server.doors.cli import context, output
from agent_server.doors.cli.output import Json
from agent_server.errors import CallerError, InvalidArgument

if TYPE_CHECKING:
    from agent_server.db import Database
    from agent_server.settings import Settings
    from nightly.run import Night, RunReport
    from nightly.schedule import Schedule

#: Exit codes of `kb nightly run`, beside 2 for usage and 130 for an interruption.
OK, FAILED, BUSY = 0, 1, 4

nightly = typer.Typer(no_args_is_help=True, help="The nightly run: run, schedule, status, list.")


class JobName(StrEnum):
    """The jobs of the night, in their order."""

    INGEST = "ingest"
    CITATIONS = "citations"
    DEFINES = "defines"
    CLAIMS = "claims"
    MAINTAIN = "maintain"
    AUDIT = "audit"
    EVALUATE = "evaluate"


class UnknownRun(CallerError):
    code = "unknown_run"
    http_status = 404


Jobs = Annotated[list[JobName] | None, typer.Argument(metavar="[JOB]...", help=f"Of {', '.join(JobName)}; unset: all.")]
Only = Annotated[
    list[str] | None, typer.Option("--only", metavar="COLLECTION", help="This collection; may be given several times.")
]


def register(app: typer.Typer) -> None:
    app.add_typer(nightly, name="nightly")


@nightly.command()
def run(
    jobs: Jobs = None,
    only: Only = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with what the last run that failed or died left undone.")
    ] = False,
    due: Annotated[
        bool, typer.Option("--due", help="Run only when an hour of the schedule has come and has no run yet.")
    ] = False,
    accept: Annotated[
        bool, typer.Option("--accept", help="Take the scores of the gold questions as good, although they fell.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would be done, and do nothing.")] = False,
    as_json: Json = False,
) -> int:
    """Run the night now: its jobs in order, each over all collections.

    Exit codes: 0 all is well, or nothing was due; 1 a step failed; 2 usage; 4 another run is at work (with --due the
    hour is recorded as skipped).
    """
    from nightly.record import NightBusy  # noqa: PLC0415  --help costs nothing
    from nightly.run import Request  # noqa: PLC0415

    if resume and (due or jobs or only):
        raise InvalidArgument("--resume", "takes neither jobs nor collections nor --due: it goes on with what was left")
    request = Request(jobs=tuple(jobs or ()), only=tuple(only or ()), resume=resume)
    with context.opened() as (settings, database):
        night = _night(settings, database, quiet=as_json, options={"accept": accept})
        if dry_run:
            _show_plan(night, request, as_json=as_json)
            return OK
        try:
            report = _schedule(settings, night, request.jobs, request.only).look() if due else night.run(request)
        except NightBusy as error:
            output.show_error(error, as_json=as_json)
            return BUSY
    return _tell(report, as_json=as_json)


@nightly.command()
def schedule(jobs: Jobs = None, only: Only = None) -> None:
    """Stay and run the night at KB_NIGHTLY_AT in KB_TIMEZONE; at once when it missed an hour (KB_NIGHTLY_GRACE_H)."""
    from nightly.schedule import serve  # noqa: PLC0415

    with context.opened() as (settings, database):
        night = _night(settings, database, quiet=True)
        planned = _schedule(settings, night, tuple(jobs or ()), tuple(only or ()))
        next_due = planned.hour.next_due(night.context.clock())
        output.note(f"every day at {settings.nightly_at} {settings.timezone}; next {_moment(next_due)}")
        serve(planned)


@nightly.command()
def status(
    number: Annotated[int, typer.Argument(metavar="[RUN]", min=0, help="Number of a run; unset: the newest.")] = 0,
    as_json: Json = False,
) -> None:
    """One run with its steps, and when the next one is due."""
    with context.opened() as (settings, database):
        night = _night(settings, database, quiet=True)
        found = night.record.run(number)
        next_due = _schedule(settings, night, (), ()).hour.next_due(night.context.clock())
    if number and found is None:
        raise UnknownRun(f"there is no run {number}", hint="`kb nightly list` shows the newest.")
    if as_json:
        output.emit({"run": found, "next_due": next_due.isoformat()})
        return
    if found is None:
        output.write("there was no run yet")
    else:
        output.write(render(found))
    output.note(f"next hour of the schedule: {_moment(next_due)} ({settings.nightly_at} {settings.timezone})")


@nightly.command("list")
def list_runs(
    limit: Annotated[int, typer.Option(min=1, max=10_000, help="How many at most.")] = 20, as_json: Json = False
) -> None:
    """The newest runs, newest first."""
    with context.opened() as (settings, database):
        rows = _night(settings, database, quiet=True).record.runs(limit)
    if as_json:
        output.emit({"runs": rows})
    elif rows:
        cells = [
            [r["run_id"], _moment(r["started_at"]), _moment(r["due_at"]), r["outcome"], r["steps"], r["summary"]]
            for r in rows
        ]
        output.write(output.table(cells, ("run", "started", "due", "outcome", "steps", "summary")))
    else:
        output.note("there was no run yet")


def render(found: dict[str, Any]) -> str:
    """A run for people."""
    due = f" · due {_moment(found['due_at'])}" if found["due_at"] else ""
    lines = [
        f"run      {found['run_id']} · {found['outcome']}{due}",
        f"started  {_moment(found['started_at'])} on {output.clean(found['host'])}, process {found['pid']}",
        f"ended    {_moment(found['ended_at']) or 'not known'}",
        f"summary  {output.clean(found['summary'])}",
    ]
    if not found["steps"]:
        return "\n".join(lines)
    cells = [
        [s["step"], s["outcome"], s["job"], s["collection"], _seconds(s), s["error"] or counts(s["counts"])]
        for s in found["steps"]
    ]
    lines += ["", output.table(cells, ("step", "outcome", "job", "collection", "seconds", "")), ""]
    for s in found["steps"]:
        lines += [f"- {s['job']} {s['collection']}: {output.clean(finding)}" for finding in s["findings"]]
    return "\n".join(lines).rstrip()


def counts(found: dict[str, Any]) -> str:
    """`indexed 3, unchanged 9`: what is not nothing."""
    return ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in found.items() if value)


def _night(
    settings: "Settings", database: "Database", *, quiet: bool, options: Mapping[str, Any] | None = None
) -> "Night":
    from nightly.jobs import context_for  # noqa: PLC0415
    from nightly.run import Night, Watcher  # noqa: PLC0415
    from nightly.told import Lines  # noqa: PLC0415

    return Night(database, context_for(settings, options=options), watcher=Watcher() if quiet else Lines())


def _schedule(settings: "Settings", night: "Night", jobs: tuple[str, ...], only: tuple[str, ...]) -> "Schedule":
    from nightly.hours import hour  # noqa: PLC0415
    from nightly.schedule import Schedule  # noqa: PLC0415

    grace = timedelta(hours=settings.nightly_grace_h)
    return Schedule(night, hour(settings.nightly_at, settings.timezone), grace, jobs, only, told=output.note)


def _show_plan(night: "Night", request: Any, *, as_json: bool) -> None:
    steps = night.plan(request)
    if as_json:
        output.emit({"dry_run": True, "steps": [{"job": s.job, "collection": s.collection} for s in steps]})
        return
    for step in steps:
        output.write(f"{step.job:<10} {step.collection}")
    output.note(f"dry run, nothing was done: {len(steps)} steps")


def _tell(report: "RunReport | None", *, as_json: bool) -> int:
    """Print the end of a run; its exit code."""
    if as_json:
        output.emit({"outcome": "nothing due"} if report is None else report.to_json())
    elif report is None:
        output.note("nothing is due")
    else:
        for dead in report.died:
            output.note(f"run {dead['run_id']} on {dead['host']} (process {dead['pid']}) had died")
        output.write(
            f"run {report.run_id}: {report.outcome}: {output.clean(report.summary)}"
            if report.run_id
            else report.summary
        )
        for warning in report.warnings:
            output.note(f"warning: {output.clean(warning)}")
    return FAILED if report is not None and report.outcome == "failed" else OK


def _moment(moment: datetime | None) -> str:
    return "" if moment is None else f"{moment.astimezone(UTC):%Y-%m-%d %H:%M} UTC"


def _seconds(step: dict[str, Any]) -> str:
    if step["ended_at"] is None:
        return ""
    return f"{(step['ended_at'] - step['started_at']).total_seconds():.1f}"
