"""One step of a plan: a file's bytes become rows, or its ledger row says why not. One transaction per file."""

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from agent_server.catalog import Collection
from agent_server.db import Database, execute
from agent_server.embedding import Embedder
from agent_server.errors import EmbedderUnavailable, EmbeddingRefused
from agent_server.ingest import store
from agent_server.ingest.authority import AuthorityRules
from agent_server.ingest.plan import Found, Step, name_taken
from agent_server.ingest.prepare import Part
from agent_server.ingest.reading import Finished, Opened, Read, Task
from agent_server.ingest.report import IngestReport, Outcome, Reporter, without_vector
from agent_server.ingest.roots import Scope
from agent_server.ingest.spool import EmbeddedPart, Spool
from agent_server.ingest.store import LedgerRow
from agent_server.ingest.vectors import vectors_for
from agent_server.models import Document, FileStatus, Rejected


@dataclass(frozen=True, slots=True)
class IngestOptions:
    bank: Path = Path("knowledge-bank")  #: where source_authority.json lies when the root has none
    batch_size: int = 32
    max_file_bytes: int = 256 * 1024 * 1024
    extract_timeout_s: float = 120.0
    workers: int = 2  #: files read and stored at once; one of them embeds at a time
    isolate: bool = True  #: read files in child processes
    dry_run: bool = False
    again: bool = False  #: read files again of which nothing has changed
    follow_up: bool = True  #: have refreshed what other packages derive from passages; the night does it in steps
    #: Tried on encrypted PDFs, also on those that were not opened before; never logged or stored.
    passwords: tuple[str, ...] = field(default=(), repr=False)


class Stopped(Exception):
    """The run was given up while this file was being worked on; nothing of it was stored."""


@dataclass(slots=True)
class Run:
    """What the steps of one ingestion share. Several threads use it: counts change under `lock`."""

    database: Database
    collection: Collection
    embedder: Embedder
    options: IngestOptions
    reporter: Reporter
    report: IngestReport
    pipeline_version: str
    rules: AuthorityRules | None = None
    changed_rows: int = 0
    embedder_lost: str = ""
    stopped: threading.Event = field(default_factory=threading.Event)
    lock: threading.Lock = field(default_factory=threading.Lock)
    #: One file embeds at a time: a crash repeats one batch, and a passage of two files is embedded once.
    embedding: threading.Lock = field(default_factory=threading.Lock)

    def changed(self, rows: int) -> None:
        with self.lock:
            self.changed_rows += rows


Reader = Callable[[Task], Iterator[Read]]


def do(run: Run, step: Step, part: Scope, reader: Reader) -> Outcome:
    """Carry out one step; what happens to its file stands in the outcome and in the ledger."""
    try:
        match step.action:
            case "unchanged":
                return _carry_authority(run, step)
            case "rename":
                return _rename(run, step, part, reader)
            case "remove":
                assert step.old is not None  # noqa: S101  by construction of the plan
                remove_rows(run.database, run.collection, step.old)
                run.changed(step.old.chunk_count)
                return Outcome("-", step.source, FileStatus.REMOVED)
            case "skip":
                return _skip(run, step, part)
            case "index":
                return _index_file(run, step, part, reader)
    except store.NameTaken as taken:
        return Outcome("!", step.source, FileStatus.REJECTED, reason=name_taken(str(taken)))


def _carry_authority(run: Run, step: Step) -> Outcome:
    """An unchanged file costs nothing, unless the operator's rules give it another authority now."""
    assert step.old is not None  # noqa: S101  by construction of the plan
    reason = step.old.reason
    authority = _authority(run, step)
    if abs(authority - step.old.authority) > 1e-6:
        with run.database.owner(run.collection.schema_name) as connection:
            store.set_authority(connection, run.collection, step.source, authority)
        reason = f"authority {step.old.authority:.2g} -> {authority:.2g}"
    if step.old.status in (FileStatus.INDEXED, FileStatus.PARTIAL):
        return Outcome("=", step.source, step.old.status, step.old.chunk_count, reason)
    return Outcome("!", step.source, step.old.status, reason=step.old.reason)


def _authority(run: Run, step: Step) -> float:
    """What the rules say of a source; without any rules what it had before."""
    if run.rules is None:
        return step.old.authority if step.old is not None else 0.0
    return run.rules.authority(run.collection.name, step.source)


def _skip(run: Run, step: Step, part: Scope) -> Outcome:
    """A link, or a file that cannot be read: kept in the ledger with the reason. A name that belongs to another root
    stays with that root's file."""
    if step.found is not None and step.found.problem:
        noted = step.old is not None and (step.old.status, step.old.reason) == (FileStatus.REJECTED, step.reason)
        if not noted:
            _store_rejected(run, step, part.root, Rejected(step.source, FileStatus.REJECTED, step.reason))
    return Outcome("!", step.source, FileStatus.REJECTED, reason=step.reason)


def _rename(run: Run, step: Step, part: Scope, reader: Reader) -> Outcome:
    old = step.old
    assert old is not None  # noqa: S101  by construction of the plan
    authority = _authority(run, step)
    if not store.store_file(
        run.database,
        run.collection,
        lambda c: store.rename_file(c, run.collection, old, step.source, part.root, authority),
    ):
        return _index_file(run, replace(step, old=None), part, reader)  # another run was here: look at the file itself
    return Outcome("~", step.source, old.status, old.chunk_count, f"was {old.source}")


def remove_rows(database: Database, collection: Collection, row: LedgerRow) -> None:
    gone = replace(row, status=FileStatus.REMOVED, reason="", chunk_count=0)
    store.store_file(database, collection, lambda c: store.replace_parts(c, collection, gone, ()))


# -- one file's content -----------------------------------------------------------------------------------------


def _index_file(run: Run, step: Step, part: Scope, reader: Reader) -> Outcome:
    """Bytes to rows; every way out leaves a true ledger row."""
    assert step.found is not None  # noqa: S101  by construction of the plan
    task = Task(
        path=step.found.path,
        root=part.root_path,
        source=step.source,
        max_bytes=run.options.max_file_bytes,
        chunk_size=run.collection.chunk_size,
        chunk_overlap=run.collection.chunk_overlap,
        passwords=run.options.passwords,
    )
    opened: Opened | None = None
    document: Document | None = None
    failures: dict[int, str] = {}
    embedded = 0
    lost = run.embedder_lost
    with Spool() as spool:
        for got in reader(task):
            if run.stopped.is_set():
                raise Stopped(step.source)
            match got:
                case Rejected():
                    known = _with_hash(got, step.found)
                    return _store_rejected(run, step, part.root, known)
                case Opened():
                    opened = got
                case Finished():
                    document = got.document
                case Part() if not lost:
                    try:
                        embedded += _embed(run, step.source, got, spool, failures)
                    except (EmbedderUnavailable, EmbeddingRefused) as error:
                        run.embedder_lost = lost = error.message
        assert opened is not None and document is not None  # noqa: S101  what `Read` promises
        row = _ledger_row(run, step, part.root, opened)
        if lost:
            return _not_embedded(run, step, row, lost)
        if not spool.passages:
            return _store_without_passages(run, step, replace(row, status=FileStatus.EMPTY, reason="holds no text"))
        return _store(run, step, _described(row, document, spool.passages, failures), spool, document, embedded)


def _embed(run: Run, source: str, part: Part, spool: Spool, failures: dict[int, str]) -> int:
    """Put the part with its vectors into the spool; how many texts were sent to the embedder."""

    def watch(done: int, total: int) -> None:
        if run.stopped.is_set():
            raise Stopped(source)
        run.reporter.embedding(source, spool.passages + done, spool.passages + total)

    with run.embedding:
        got = vectors_for(
            run.database, run.collection, run.embedder, part.texts, batch_size=run.options.batch_size, watch=watch
        )
    with run.lock:
        run.report.embedded += got.embedded
        run.report.cached += got.reused
    failures |= {spool.passages + n: reason for n, reason in got.failures.items()}
    spool.add(EmbeddedPart(part, got.vectors))
    return got.embedded


def _store(run: Run, step: Step, row: LedgerRow, spool: Spool, document: Document, embedded: int) -> Outcome:
    done = store.store_file(
        run.database,
        run.collection,
        lambda c: store.replace_parts(c, run.collection, row, spool, retired=document.retired, again=run.options.again),
    )
    if not done:
        return Outcome("=", step.source, row.status, row.chunk_count, "stored by another run")
    run.changed(row.chunk_count)
    mark = "+" if row.status == FileStatus.INDEXED else "!"
    return Outcome(mark, step.source, row.status, row.chunk_count, row.reason, embedded)


def _ledger_row(run: Run, step: Step, root: str, file: Opened | Rejected) -> LedgerRow:
    return LedgerRow(
        source=step.source,
        root=root,
        sha256=file.sha256,
        size_bytes=file.size_bytes,
        media_type=file.media_type,
        status=file.status if isinstance(file, Rejected) else FileStatus.INDEXED,
        reason=file.reason if isinstance(file, Rejected) else "",
        # Without a version it is tried again at the next run.
        pipeline_version="" if isinstance(file, Rejected) and not file.settled else run.pipeline_version,
        authority=_authority(run, step),
    )


def _described(row: LedgerRow, document: Document, passages: int, failures: Mapping[int, str]) -> LedgerRow:
    """The ledger row of a file whose text is known; `partial` when some passages have no vector."""
    status, reason = FileStatus.INDEXED, "; ".join(document.notes)
    if failures:
        status, reason = FileStatus.PARTIAL, without_vector(failures, passages)
    return replace(
        row,
        status=status,
        reason=reason,
        chunk_count=passages,
        title=document.title,
        dated=document.dated,
        metadata=json.dumps(dict(document.metadata), default=str),
    )


def _with_hash(rejected: Rejected, found: Found) -> Rejected:
    """A file that broke its reader before its hash was known is settled by the plan's hash. One that has become a
    link, another size or nothing since the plan was made has no hash: the next run looks at it again."""
    meanwhile = rejected.status in (FileStatus.REJECTED, FileStatus.FAILED)
    if rejected.sha256 or meanwhile or rejected.size_bytes not in (0, found.size_bytes):
        return rejected
    return replace(rejected, sha256=found.sha256, size_bytes=found.size_bytes)


def _store_rejected(run: Run, step: Step, root: str, rejected: Rejected) -> Outcome:
    return _store_without_passages(run, step, _ledger_row(run, step, root, rejected))


def _store_without_passages(run: Run, step: Step, row: LedgerRow) -> Outcome:
    """Say in the ledger why a file has no passages; those of an earlier version go."""
    store.store_file(run.database, run.collection, lambda c: store.replace_parts(c, run.collection, row, ()))
    if step.old is not None:
        run.changed(step.old.chunk_count)
    return Outcome("!", step.source, row.status, reason=row.reason)


def _not_embedded(run: Run, step: Step, row: LedgerRow, why: str) -> Outcome:
    """The embedder is gone: say so in the ledger, keep what the collection held before, try again at the next run."""
    old = step.old if step.old is not None and step.old.status != FileStatus.REMOVED else None
    kept = f"; its {old.chunk_count} passages of before are still there" if old and old.chunk_count else ""
    reason = f"not embedded: {why}{kept}"
    values = {
        "source": row.source,
        "root": row.root,
        "sha256": row.sha256,
        "size_bytes": row.size_bytes,
        "media_type": row.media_type,
        "reason": reason,
        "pipeline_version": row.pipeline_version,
    }
    store.store_file(run.database, run.collection, lambda c: execute(c, "file_failed", values) == 1)
    return Outcome("!", step.source, FileStatus.FAILED, reason=reason)
