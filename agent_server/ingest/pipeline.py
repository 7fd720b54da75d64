"""The write path, top to bottom: folder -> plan -> per file: bytes -> document -> chunks -> vectors -> rows.

One transaction per file; what is unchanged costs nothing; what fails is said, and leaves the rest alone.
"""

import json
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from psycopg import errors as pg

from agent_server.catalog import Collection, get_collection
from agent_server.db import Conn, Database, execute, translated
from agent_server.embedding import Embedder, check_contract
from agent_server.errors import EmbedderUnavailable, EmbeddingRefused, InvalidArgument
from agent_server.ingest import index, roots, store
from agent_server.ingest.authority import AuthorityRules, load_rules
from agent_server.ingest.plan import Step, name_taken
from agent_server.ingest.rebuild import model_kept
from agent_server.ingest.report import IngestReport, Outcome, Reporter, Silent, foretold, without_vector
from agent_server.ingest.roots import Scope
from agent_server.ingest.sandbox import Sandbox, Task, read
from agent_server.ingest.store import LedgerRow
from agent_server.ingest.vectors import Got, passage_text, vectors_for
from agent_server.models import Chunk, Document, FileStatus, Rejected, SourceFile

#: Raise it when extraction or chunking changes what comes out: all files are then read again, and only the passages
#: that really differ are embedded.
PIPELINE = 2
TRIES = 5
BYTES_PER_CHUNK = 700  # a rough guess, to size a load before it is read


@dataclass(frozen=True, slots=True)
class IngestOptions:
    bank: Path = Path("knowledge-bank")  #: where source_authority.json lies when the root has none
    batch_size: int = 32
    max_file_bytes: int = 256 * 1024 * 1024
    extract_timeout_s: float = 120.0
    isolate: bool = True  #: read files in a child process
    dry_run: bool = False
    #: Tried on encrypted PDFs, also on those that were not opened before; never logged or stored.
    passwords: tuple[str, ...] = field(default=(), repr=False)


@dataclass(slots=True)
class _Run:
    database: Database
    collection: Collection
    embedder: Embedder
    options: IngestOptions
    reporter: Reporter
    rules: AuthorityRules | None
    report: IngestReport
    sandbox: Sandbox
    changed_rows: int = 0
    embedder_lost: str = ""

    @property
    def pipeline_version(self) -> str:
        return pipeline_version(self.collection)


def pipeline_version(c: Collection) -> str:
    """What the passages of a file depend on besides its bytes."""
    return f"{PIPELINE}:{c.chunk_size}/{c.chunk_overlap}:{c.model_digest[:12]}"


def ingest(
    database: Database,
    collection_name: str,
    paths: Sequence[Path],
    embedder: Embedder,
    options: IngestOptions = IngestOptions(),
    reporter: Reporter | None = None,
    *,
    clock: Callable[[], float] = time.perf_counter,
) -> IngestReport:
    """Make the collection hold what the folders and files of `paths` hold.

    A folder is synced: files that are no longer in it are removed. A single file is indexed, and removes nothing.
    Raises UnknownCollection, ContractMismatch, InvalidArgument (a path that is not there), EmbedderUnavailable (before
    anything was done); later faults become outcomes.
    """
    with (
        translated(),
        Sandbox(options.extract_timeout_s) as sandbox,
        model_kept(database, collection_name),
    ):
        with database.owner() as connection:
            collection = get_collection(connection, collection_name)
        check_contract(collection.contract, embedder.identity())
        report = IngestReport(collection.name)
        run = _Run(database, collection, embedder, options, reporter or Silent(), None, report, sandbox)
        started = clock()
        retry = frozenset({FileStatus.ENCRYPTED} if options.passwords else ())
        for path in paths:  # planned one after the other: what the first brought is known to the second
            with database.owner(collection.schema_name) as connection:
                part = roots.scope(connection, path, run.pipeline_version, retry)
                if options.dry_run:
                    connection.rollback()  # roots too are only recorded by a real run
            run.rules = load_rules(part.root_path, options.bank)
            run.reporter.planned(part.steps)
            if options.dry_run:
                report.outcomes.extend(foretold(step) for step in part.steps)
                continue
            _drop_index_before_large_load(run, part.steps)
            for step in part.steps:
                try:
                    outcome = _do(run, step, part)
                except store.NameTaken as taken:
                    outcome = Outcome("!", step.source, FileStatus.REJECTED, reason=name_taken(str(taken)))
                report.outcomes.append(outcome)
                run.reporter.finished(outcome)
        report.seconds["files"] = clock() - started
        if not options.dry_run:
            run.reporter.indexing()
            started = clock()
            report.index = index.finish_load(database, collection, changed_rows=run.changed_rows)
            report.seconds["index"] = clock() - started
    return report


def remove(database: Database, collection_name: str, sources: Iterable[str]) -> IngestReport:
    """Take files out of the collection by their source, whether or not they are still in their folder."""
    with translated():
        with database.owner() as connection:
            collection = get_collection(connection, collection_name)
        with database.owner(collection.schema_name) as connection:
            ledger = store.read_ledger(connection)
        report = IngestReport(collection.name)
        wanted = list(sources)
        for source in wanted:
            if source not in ledger or ledger[source].status == FileStatus.REMOVED:
                raise InvalidArgument("source", f"{source!r} is not in {collection.name}", hint="See `kb files`.")
        for source in wanted:
            _remove_rows(database, collection, ledger[source])
            report.outcomes.append(Outcome("-", source, FileStatus.REMOVED))
        changed = sum(ledger[s].chunk_count for s in wanted)
        report.index = index.finish_load(database, collection, changed_rows=changed)
    return report


def _drop_index_before_large_load(run: _Run, steps: Sequence[Step]) -> None:
    """Before a load that is large against the table, drop the dense index; `finish_load` of this run, or of the next
    one if this is killed, builds it again."""
    new_bytes = sum(s.found.size_bytes for s in steps if s.action == "index" and s.found is not None)
    incoming = new_bytes // BYTES_PER_CHUNK
    if run.collection.has_hnsw and index.should_drop_hnsw(index.count_chunks(run.database, run.collection), incoming):
        index.drop_hnsw(run.database, run.collection)


# -- one file ---------------------------------------------------------------------------------------------------


def _do(run: _Run, step: Step, part: Scope) -> Outcome:
    match step.action:
        case "unchanged":
            return _carry_authority(run, step)
        case "rename":
            return _rename(run, step, part)
        case "remove":
            assert step.old is not None  # noqa: S101  by construction of the plan
            _remove_rows(run.database, run.collection, step.old)
            run.changed_rows += step.old.chunk_count
            return Outcome("-", step.source, FileStatus.REMOVED)
        case "skip":
            return _skip(run, step, part)
        case "index":
            return _index_file(run, step, part)


def _carry_authority(run: _Run, step: Step) -> Outcome:
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


def _authority(run: _Run, step: Step) -> float:
    """What the rules say of a source; without any rules what it had before."""
    if run.rules is None:
        return step.old.authority if step.old is not None else 0.0
    return run.rules.authority(run.collection.name, step.source)


def _skip(run: _Run, step: Step, part: Scope) -> Outcome:
    """A link, or a file that cannot be read: kept in the ledger with the reason. A name that belongs to another root
    stays with that root's file."""
    if step.found is not None and step.found.problem:
        noted = step.old is not None and (step.old.status, step.old.reason) == (FileStatus.REJECTED, step.reason)
        if not noted:
            _store_rejected(run, step, part.root, Rejected(step.source, FileStatus.REJECTED, step.reason))
    return Outcome("!", step.source, FileStatus.REJECTED, reason=step.reason)


def _rename(run: _Run, step: Step, part: Scope) -> Outcome:
    old = step.old
    assert old is not None  # noqa: S101  by construction of the plan
    authority = _authority(run, step)
    if not _in_transaction(
        run.database,
        run.collection,
        lambda c: store.rename_file(c, run.collection, old, step.source, part.root, authority),
    ):
        return _index_file(run, replace(step, old=None), part)  # another run was here: look at the file itself
    return Outcome("~", step.source, old.status, old.chunk_count, f"was {old.source}")


def _remove_rows(database: Database, collection: Collection, row: LedgerRow) -> None:
    gone = replace(row, status=FileStatus.REMOVED, reason="", chunk_count=0)
    _in_transaction(database, collection, lambda c: store.replace_file(c, collection, gone))


def _index_file(run: _Run, step: Step, part: Scope) -> Outcome:
    """Bytes to rows; every way out leaves a true ledger row."""
    assert step.found is not None  # noqa: S101  by construction of the plan
    collection = run.collection
    task = Task(
        path=step.found.path,
        root=part.root_path,
        source=step.source,
        max_bytes=run.options.max_file_bytes,
        chunk_size=collection.chunk_size,
        chunk_overlap=collection.chunk_overlap,
        passwords=run.options.passwords,
    )
    # validate, extract and cut into chunks, in a child process: sandbox.read is those three steps
    got = run.sandbox.read(task) if run.options.isolate else read(task)
    if isinstance(got, Rejected):
        # Where the file broke its reader before the hash was known, the plan's hash settles it.
        known = got if got.sha256 else replace(got, sha256=step.found.sha256, size_bytes=step.found.size_bytes)
        return _store_rejected(run, step, part.root, known)
    row = _ledger_row(run, step, part.root, got.file)
    document, chunks = got.document, got.chunks
    if not chunks:
        empty = replace(row, status=FileStatus.EMPTY, reason="holds no text")
        return _store_without_passages(run, step, empty)
    if run.embedder_lost:
        return _not_embedded(run, step, row, run.embedder_lost)
    try:
        got_vectors = _embed(run, step.source, chunks)
    except (EmbedderUnavailable, EmbeddingRefused) as error:
        run.embedder_lost = error.message
        return _not_embedded(run, step, row, error.message)
    row = _described(row, document, chunks, got_vectors.failures)
    done = _in_transaction(
        run.database,
        run.collection,
        lambda c: store.replace_file(c, run.collection, row, chunks, got_vectors.vectors, retired=document.retired),
    )
    if not done:
        return Outcome("=", step.source, row.status, len(chunks), "stored by another run")
    run.changed_rows += len(chunks)
    mark = "+" if row.status == FileStatus.INDEXED else "!"
    return Outcome(mark, step.source, row.status, len(chunks), row.reason, got_vectors.embedded)


def _embed(run: _Run, source: str, chunks: Sequence[Chunk]) -> Got:
    """Vectors of the chunks in their order."""
    texts = [passage_text(c.context, c.text) for c in chunks]
    got = vectors_for(
        run.database,
        run.collection,
        run.embedder,
        texts,
        batch_size=run.options.batch_size,
        watch=lambda done, total: run.reporter.embedding(source, done, total),
    )
    run.report.embedded += got.embedded
    run.report.cached += got.reused
    return got


def _ledger_row(run: _Run, step: Step, root: str, file: SourceFile | Rejected) -> LedgerRow:
    return LedgerRow(
        source=step.source,
        root=root,
        sha256=file.sha256,
        size_bytes=file.size_bytes,
        media_type=file.media_type,
        status=file.status if isinstance(file, Rejected) else FileStatus.INDEXED,
        reason=file.reason if isinstance(file, Rejected) else "",
        pipeline_version=run.pipeline_version,
        authority=_authority(run, step),
    )


def _described(row: LedgerRow, document: Document, chunks: Sequence[Chunk], failures: Mapping[int, str]) -> LedgerRow:
    """The ledger row of a file whose text is known; `partial` when some passages have no vector."""
    status, reason = FileStatus.INDEXED, "; ".join(document.notes)
    if failures:
        status, reason = FileStatus.PARTIAL, without_vector(failures, len(chunks))
    return replace(
        row,
        status=status,
        reason=reason,
        chunk_count=len(chunks),
        title=document.title,
        dated=document.dated,
        metadata=json.dumps(dict(document.metadata), default=str),
    )


def _store_rejected(run: _Run, step: Step, root: str, rejected: Rejected) -> Outcome:
    return _store_without_passages(run, step, _ledger_row(run, step, root, rejected))


def _store_without_passages(run: _Run, step: Step, row: LedgerRow) -> Outcome:
    """Say in the ledger why a file has no passages; those of an earlier version go."""
    _in_transaction(run.database, run.collection, lambda c: store.replace_file(c, run.collection, row))
    if step.old is not None:
        run.changed_rows += step.old.chunk_count
    return Outcome("!", step.source, row.status, reason=row.reason)


def _not_embedded(run: _Run, step: Step, row: LedgerRow, why: str) -> Outcome:
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
    _in_transaction(run.database, run.collection, lambda c: execute(c, "file_failed", values) == 1)
    return Outcome("!", step.source, FileStatus.FAILED, reason=reason)


def _in_transaction(database: Database, collection: Collection, work: Callable[[Conn], bool]) -> bool:
    """Run `work` in one transaction; again when Postgres chose it as the loser among writers of the same rows (a
    unique violation is two runs choosing the canonical copy of one passage)."""
    for _ in range(TRIES - 1):
        with (
            suppress(pg.SerializationFailure, pg.DeadlockDetected, pg.UniqueViolation),
            database.owner(collection.schema_name) as connection,
        ):
            return work(connection)
    with database.owner(collection.schema_name) as connection:
        return work(connection)
