"""The job `ingest`: a collection holds what its folders hold, without anybody naming them again.

What cannot be seen from here removes nothing: a folder that is not there, and one that is empty while the ledger holds
files of it (a file system that is not mounted looks like that), are reported and left alone, and the step failed.
Files that were given one by one were added, not kept in step: one that is gone stays until somebody removes it, and is
told of without failing the step.
"""

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agent_server.catalog import Collection
from agent_server.db import Conn, Database, fetch_all
from agent_server.ingest import pipeline, plan, store
from agent_server.ingest.report import IngestReport
from agent_server.ingest.steps import IngestOptions
from agent_server.models import FileStatus
from agent_server.settings import Settings
from nightly.jobs import NightContext, StepReport

#: Files handed over by programs have no folder to be compared with.
UPLOADS = "upload:"
FINDINGS = 20
#: Single files that are gone, named of each folder.
MOST_NAMED = 3


@dataclass(frozen=True, slots=True)
class Reach:
    """What a sync can look at from here, and what it cannot."""

    paths: tuple[Path, ...]
    unreachable: tuple[str, ...]  #: folders left alone, a line each
    gone: tuple[str, ...] = ()  #: single files left alone, a line for each folder that they were taken from


def reach(connection: Conn) -> Reach:
    """The folders to sync. Of a folder that only single files were taken from, those files alone."""
    held: dict[str, list[str]] = {}
    for row in store.read_ledger(connection).values():
        if row.status != FileStatus.REMOVED:
            held.setdefault(row.root, []).append(row.source)
    paths: list[Path] = []
    unreachable: list[str] = []
    gone: list[str] = []
    for root in fetch_all(connection, "root_list"):
        if root["root"].startswith(UPLOADS):
            continue
        folder, sources = Path(root["path"]), sorted(held.get(root["root"], []))
        if not root["whole"]:
            there = [source for source in sources if (folder / source).is_file()]
            paths.extend(folder / source for source in there)
            if lost := sorted(set(sources) - set(there)):
                gone.append(f"of the single files taken from {folder} these are gone, and stay: {_named(lost)}")
        elif not folder.is_dir():
            unreachable.append(f"{folder} is not there: its {len(sources)} files stay as they are")
        elif sources and not plan.walk(folder):
            unreachable.append(
                f"{folder} is empty: its {len(sources)} files stay; `kb ingest` of it by hand takes them out"
            )
        else:
            paths.append(folder)
    return Reach(tuple(paths), tuple(unreachable), tuple(gone))


def _named(sources: Sequence[str]) -> str:
    more = f" and {len(sources) - MOST_NAMED} more" if len(sources) > MOST_NAMED else ""
    return f"{', '.join(sources[:MOST_NAMED])}{more} (`kb remove` takes them out)"


def job(database: Database, collection: Collection, context: NightContext) -> StepReport:
    """Sync all folders of the collection. Raises what `pipeline.ingest` raises."""
    with database.owner(collection.schema_name) as connection:
        found = reach(connection)
    if not found.paths:
        return StepReport(
            {"unreachable": len(found.unreachable)} if found.unreachable else {},
            ok=not found.unreachable,
            summary="no folder to look at",
            findings=(*found.unreachable, *found.gone),
        )
    with closing(context.embedder()) as embedder:
        report = pipeline.ingest(
            database, collection.name, found.paths, embedder, _options(context.settings, context.options)
        )
    return _told(report, found)


def _options(settings: Settings, options: Any) -> IngestOptions:
    return IngestOptions(
        bank=settings.bank,
        batch_size=settings.embed_batch_size,
        max_file_bytes=settings.max_file_bytes,
        workers=settings.ingest_workers,
        extract_timeout_s=settings.extract_timeout_s,
        isolate=bool(options.get("isolate", True)),
        follow_up=False,
    )


def _told(report: IngestReport, found: Reach) -> StepReport:
    """Files that cannot be read are the ledger's to tell; the night failed where another try may mend it."""
    counts: dict[str, int | float | str] = dict(report.to_json()["counts"])
    if found.unreachable:
        counts["unreachable"] = len(found.unreachable)
    lost = report.embedder_lost
    lost_told = [f"the embedder was lost: {lost}"] if lost else []
    findings = [*found.unreachable, *lost_told, *found.gone, *_not_indexed(report)]
    told = [f"{n} {what.replace('_', ' ')}" for what, n in counts.items() if n]
    return StepReport(
        counts,
        ok=not lost and not found.unreachable,
        summary=", ".join(told) or "no files",
        findings=tuple(findings),
    )


def _not_indexed(report: IngestReport) -> Iterator[str]:
    bad: Sequence[Any] = report.not_indexed
    for outcome in bad[:FINDINGS]:
        yield f"{outcome.source}: {outcome.status}: {outcome.reason}"
    if len(bad) > FINDINGS:
        yield f"and {len(bad) - FINDINGS} more: `kb files {report.collection}`"
