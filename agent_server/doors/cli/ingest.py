"""`kb ingest`, `kb files`, `kb remove`: what goes in, what became of it, what comes out again."""

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from agent_server.db import fetch_all
from agent_server.doors.cli import context, output, progress
from agent_server.doors.cli.collection import Name
from agent_server.doors.cli.output import Json
from agent_server.models import FileStatus
from agent_server.retrieval import trace as traces

if TYPE_CHECKING:
    from agent_server.ingest.report import IngestReport

SOME_NOT_INDEXED = 3


def register(app: typer.Typer) -> None:
    app.command()(ingest)
    app.command()(files)
    app.command()(remove)


def ingest(
    name: Name,
    paths: Annotated[
        list[Path], typer.Argument(metavar="PATH...", help="Folders to keep in step with, or single files.")
    ],
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would be done, and do nothing.")] = False,
    password: Annotated[
        list[str] | None,
        typer.Option("--password", help="Try it on encrypted PDFs; may be given several times. It is not stored."),
    ] = None,
    again: Annotated[
        bool, typer.Option("--again", help="Read also files that have not changed; known vectors are used again.")
    ] = False,
    as_json: Json = False,
) -> int:
    """Make a collection hold what folders and files hold.

    A folder is kept in step: files that are gone from it are removed. A single file removes nothing. One line a file:
    + indexed, = unchanged, ~ renamed, - removed, ! not indexed. Exit code 3 when some files were not indexed.
    """
    from agent_server.ingest import pipeline  # noqa: PLC0415  readers of all formats
    from agent_server.ingest.steps import IngestOptions  # noqa: PLC0415

    with context.opened() as (settings, database):
        found = context.collection_called(database, name)  # before a model is loaded
        options = IngestOptions(
            bank=settings.bank,
            batch_size=settings.embed_batch_size,
            max_file_bytes=settings.max_file_bytes,
            workers=settings.ingest_workers,
            extract_timeout_s=settings.extract_timeout_s,
            dry_run=dry_run,
            again=again,
            passwords=tuple(password or ()),
        )
        with context.opened_embedder(settings) as embedder, progress.reporter(quiet=as_json) as reporter:
            report = pipeline.ingest(database, name, paths, embedder, options, reporter)
        if not dry_run:
            with database.owner(found.schema_name) as connection:
                traces.prune(connection, settings.trace_retention_days, datetime.now(UTC))
    if as_json:
        output.emit({**report.to_json(), "dry_run": dry_run})
    else:
        if dry_run:
            for outcome in report.outcomes:
                output.write(progress.line(outcome))
        output.note(("dry run, nothing was done: " if dry_run else "") + summary(report))
        _tell_faults(report)
    return SOME_NOT_INDEXED if report.not_indexed else 0


def files(
    name: Name,
    status: Annotated[FileStatus | None, typer.Option(help="Only files with this status.")] = None,
    as_json: Json = False,
) -> None:
    """The ledger: every file seen with its status and the reason. Removed files are listed with --status removed."""
    with context.opened() as (_, database):
        found = context.collection_called(database, name)
        with database.owner(found.schema_name) as connection:
            rows = fetch_all(connection, "file_list", {"status": "" if status is None else str(status)})
    if status is None:
        rows = [r for r in rows if r["status"] != FileStatus.REMOVED]
    if as_json:
        output.emit({"collection": found.name, "files": rows})
    elif rows:
        cells = [[r["status"], r["chunk_count"], r["source"], r["reason"]] for r in rows]
        output.write(output.table(cells, ("status", "chunks", "source", "reason")))
    else:
        output.note(f"no files{'' if status is None else f' are {status}'} in {found.name}")


def remove(
    name: Name,
    sources: Annotated[list[str], typer.Argument(metavar="SOURCE...", help="Files as `kb files` lists them.")],
    as_json: Json = False,
) -> None:
    """Take files out of a collection. One that is still in its folder comes back with the next ingestion of it."""
    from agent_server.ingest import pipeline  # noqa: PLC0415  readers of all formats

    with context.opened() as (_, database):
        report = pipeline.remove(database, name, sources)
    if as_json:
        output.emit(report.to_json())
        return
    for outcome in report.outcomes:
        output.write(progress.line(outcome))
    output.note(summary(report))
    _tell_faults(report)


def _tell_faults(report: "IngestReport") -> None:
    for fault in report.faults:
        output.note(f"warning: {fault}")


def summary(report: "IngestReport") -> str:
    """`FINANCE: 3 indexed, 9 unchanged, 1 not indexed; 41 passages embedded, 7 vectors reused; 2.1 s`."""
    shown = report.to_json()
    counts = dict(shown["counts"])
    embedded, reused = counts.pop("embedded"), counts.pop("vectors_reused")
    told = [f"{n} {what.replace('_', ' ')}" for what, n in counts.items() if n]
    text = f"{report.collection}: {', '.join(told) or 'no files'}"
    if embedded or reused:
        text += f"; {embedded} passages embedded, {reused} vectors reused"
    seconds = sum(report.seconds.values())
    return text + (f"; {seconds:.1f} s" if seconds else "")
