"""The write path, top to bottom: folder -> plan -> per file: bytes -> document -> chunks -> vectors -> rows.

One transaction per file; what is unchanged costs nothing; what fails is said, and leaves the rest alone.
"""

import json
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from psycopg import errors as pg

from agent_server.catalog import Collection, get_collection
from agent_server.db import Conn, Database, execute, fetch_all, translated
from agent_server.embedding import Embedder, check_contract
from agent_server.errors import EmbedderUnavailable, InvalidArgument
from agent_server.ingest import index, plan, store
from agent_server.ingest.authority import AuthorityRules, load_rules
from agent_server.ingest.chunk import chunk_document
from agent_server.ingest.extract import extract
from agent_server.ingest.plan import Step
from agent_server.ingest.store import LedgerRow, Vectors
from agent_server.ingest.validate import read_source
from agent_server.models import Chunk, Document, FileStatus, Rejected, SourceFile

#: Raise it when extraction or chunking changes what comes out: all files are then read again, and only the passages
#: that really differ are embedded.
PIPELINE = 1
TRIES = 5
BYTES_PER_CHUNK = 700  # a rough guess, to size a load before it is read


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one file. `mark` is `+` indexed, `=` unchanged, `~` renamed, `-` removed, `!` not indexed."""

    mark: str
    source: str
    status: FileStatus
    chunks: int = 0
    reason: str = ""
    embedded: int = 0


@dataclass(slots=True)
class IngestReport:
    """What a run did: one outcome a file, in order, and the counts behind them."""

    collection: str
    outcomes: list[Outcome] = field(default_factory=list)
    embedded: int = 0  #: texts sent to the embedder
    cached: int = 0  #: passages whose vector was known already
    seconds: dict[str, float] = field(default_factory=dict)
    index: index.IndexReport | None = None

    @property
    def not_indexed(self) -> list[Outcome]:
        return [o for o in self.outcomes if o.mark == "!"]

    def to_json(self) -> dict[str, Any]:
        marks = {"+": "indexed", "=": "unchanged", "~": "renamed", "-": "removed", "!": "not_indexed"}
        counts = {name: sum(o.mark == mark for o in self.outcomes) for mark, name in marks.items()}
        return {
            "collection": self.collection,
            "counts": {**counts, "embedded": self.embedded, "vectors_reused": self.cached},
            "files": [
                {"mark": o.mark, "source": o.source, "status": str(o.status), "chunks": o.chunks, "reason": o.reason}
                for o in self.outcomes
            ],
            "seconds": {k: round(v, 3) for k, v in self.seconds.items()},
        }


class Reporter(Protocol):
    """Watches a run."""

    def planned(self, steps: Sequence[Step]) -> None: ...
    def embedding(self, source: str, done: int, total: int) -> None: ...
    def finished(self, outcome: Outcome) -> None: ...
    def indexing(self) -> None: ...


class Silent:
    """A reporter that says nothing."""

    def planned(self, steps: Sequence[Step]) -> None: ...
    def embedding(self, source: str, done: int, total: int) -> None: ...
    def finished(self, outcome: Outcome) -> None: ...
    def indexing(self) -> None: ...


@dataclass(frozen=True, slots=True)
class IngestOptions:
    bank: Path = Path("knowledge-bank")  #: where source_authority.json lies when the root has none
    batch_size: int = 32
    max_file_bytes: int = 256 * 1024 * 1024
    dry_run: bool = False


@dataclass(slots=True)
class _Run:
    database: Database
    collection: Collection
    embedder: Embedder
    options: IngestOptions
    reporter: Reporter
    rules: AuthorityRules
    report: IngestReport
    clock: Callable[[], float]
    changed_rows: int = 0
    embedder_lost: str = ""

    @property
    def pipeline_version(self) -> str:
        c = self.collection
        return f"{PIPELINE}:{c.chunk_size}/{c.chunk_overlap}:{c.model_digest[:12]}"


def ingest(
    database: Database,
    collection_name: str,
    paths: Sequence[Path],
    embedder: Embedder,
    options: IngestOptions = IngestOptions(),  # noqa: B008  frozen
    reporter: Reporter | None = None,
    *,
    clock: Callable[[], float] = time.perf_counter,
) -> IngestReport:
    """Make the collection hold what the folders and files of `paths` hold.

    A folder is synced: files that are no longer in it are removed. A single file is indexed, and removes nothing.
    Raises UnknownCollection, ContractMismatch, InvalidArgument (a path that is not there), EmbedderUnavailable (before
    anything was done); later faults become outcomes.
    """
    with translated():
        with database.owner() as connection:
            collection = get_collection(connection, collection_name)
        check_contract(collection.contract, embedder.identity())
        report = IngestReport(collection.name)
        run = _Run(
            database, collection, embedder, options, reporter or Silent(), AuthorityRules(), report, clock
        )  # fmt: skip
        started = clock()
        scopes = [_scope(run, path) for path in paths]
        for root, root_path, steps in scopes:
            run.rules = load_rules(root_path, options.bank)
            run.reporter.planned(steps)
            if options.dry_run:
                report.outcomes.extend(_foretold(step) for step in steps)
                continue
            _make_room(run, steps)
            for step in steps:
                outcome = _do(run, step, root, root_path)
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


# -- plan -------------------------------------------------------------------------------------------------------


def _scope(run: _Run, given: Path) -> tuple[str, Path, list[Step]]:
    """The root that a path belongs to, and the steps for what lies at that path."""
    if not given.exists():
        raise InvalidArgument("path", f"{given} does not exist", hint="Name a folder or a file.")
    path = given.resolve()
    with run.database.owner(run.collection.schema_name) as connection:
        root, root_path = _root_of(connection, path)
        ledger = store.read_ledger(connection)
    files = plan.walk(path) if path.is_dir() else [path]
    found = [plan.look(file, _source(file, root_path)) for file in files]
    below = "" if path == root_path else _source(path, root_path) + "/"
    in_scope = [s for s, row in ledger.items() if row.root == root and s.startswith(below)] if path.is_dir() else None
    steps = plan.make_plan(
        found, ledger, root=root, pipeline_version=run.pipeline_version, in_scope=in_scope
    )  # fmt: skip
    return root, root_path, steps


def _root_of(connection: Conn, path: Path) -> tuple[str, Path]:
    """The recorded root that holds `path`; a new one is recorded otherwise, or one that has moved."""
    known = {row["root"]: Path(row["path"]) for row in fetch_all(connection, "root_list")}
    for root, root_path in known.items():
        if path == root_path or root_path in path.parents:
            return root, root_path
    folder = path if path.is_dir() else path.parent
    name = folder.name or "root"
    if name in known and known[name].exists():
        name = next(f"{name}-{n}" for n in range(2, len(known) + 3) if f"{name}-{n}" not in known)
    execute(connection, "root_upsert", {"root": name, "path": str(folder)})
    return name, folder


def _source(path: Path, root: Path) -> str:
    """The name used in citations; bytes that are not UTF-8 are shown as \\xNN, reversibly."""
    text = path.relative_to(root).as_posix()
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def _foretold(step: Step) -> Outcome:
    """The outcome that a dry run shows for a step."""
    marks = {"index": "+", "unchanged": "=", "rename": "~", "remove": "-", "skip": "!"}
    row = step.old
    status = row.status if row is not None else FileStatus.INDEXED
    reason = step.reason or ("new" if row is None else "changed") if step.action == "index" else step.reason
    return Outcome(marks[step.action], step.source, status, 0, reason)


def _make_room(run: _Run, steps: Sequence[Step]) -> None:
    """Before a load that is large against the table, drop the dense index."""
    new_bytes = sum(s.found.size_bytes for s in steps if s.action == "index" and s.found is not None)
    incoming = new_bytes // BYTES_PER_CHUNK
    if run.collection.has_hnsw and index.should_drop_hnsw(index.count_chunks(run.database, run.collection), incoming):
        index.drop_hnsw(run.database, run.collection)


# -- one file ---------------------------------------------------------------------------------------------------


def _do(run: _Run, step: Step, root: str, root_path: Path) -> Outcome:
    match step.action:
        case "unchanged":
            return _unchanged(run, step)
        case "rename":
            return _rename(run, step, root)
        case "remove":
            assert step.old is not None  # noqa: S101  by construction of the plan
            _remove_rows(run.database, run.collection, step.old)
            run.changed_rows += step.old.chunk_count
            return Outcome("-", step.source, FileStatus.REMOVED)
        case "skip":
            return Outcome("!", step.source, FileStatus.REJECTED, reason=step.reason)
        case "index":
            return _index_file(run, step, root, root_path)


def _unchanged(run: _Run, step: Step) -> Outcome:
    assert step.old is not None  # noqa: S101  by construction of the plan
    authority = run.rules.authority(run.collection.name, step.source)
    if abs(authority - step.old.authority) > 1e-6:  # noqa: PLR2004  stored as real
        with run.database.owner(run.collection.schema_name) as connection:
            store.set_authority(connection, run.collection, step.source, authority)
    if step.old.status in (FileStatus.INDEXED, FileStatus.PARTIAL):
        return Outcome("=", step.source, step.old.status, step.old.chunk_count, step.old.reason)
    return Outcome("!", step.source, step.old.status, reason=step.old.reason)


def _rename(run: _Run, step: Step, root: str) -> Outcome:
    assert step.old is not None  # noqa: S101  by construction of the plan
    authority = run.rules.authority(run.collection.name, step.source)
    with run.database.owner(run.collection.schema_name) as connection:
        store.rename_file(connection, run.collection, step.old, step.source, root, authority)
    return Outcome("~", step.source, step.old.status, step.old.chunk_count, f"was {step.old.source}")


def _remove_rows(database: Database, collection: Collection, row: LedgerRow) -> None:
    gone = replace(row, status=FileStatus.REMOVED, reason="", chunk_count=0)
    _in_transaction(database, collection, lambda c: store.replace_file(c, collection, gone))


def _index_file(run: _Run, step: Step, root: str, root_path: Path) -> Outcome:
    assert step.found is not None  # noqa: S101  by construction of the plan
    file = read_source(step.found.path, root_path, max_bytes=run.options.max_file_bytes)
    document = extract(file) if isinstance(file, SourceFile) else file
    if isinstance(document, Rejected) or isinstance(file, Rejected):
        rejected = document if isinstance(document, Rejected) else file
        assert isinstance(rejected, Rejected)  # noqa: S101
        return _store_rejected(run, step, root, rejected)
    c = run.collection
    chunks = chunk_document(document, size=c.chunk_size, overlap=c.chunk_overlap)
    if not chunks:
        empty = Rejected(
            step.source, FileStatus.EMPTY, "holds no text", file.sha256, file.size_bytes, file.media_type
        )  # fmt: skip
        return _store_rejected(run, step, root, empty)
    if run.embedder_lost:
        return _not_embedded(run, step, root, file, run.embedder_lost)
    try:
        vectors, failures, embedded = _embed(run, step.source, chunks)
    except EmbedderUnavailable as error:
        run.embedder_lost = error.message
        return _not_embedded(run, step, root, file, error.message)
    return _store_document(run, step, root, file, document, chunks, vectors, failures, embedded)


def _embed(run: _Run, source: str, chunks: Sequence[Chunk]) -> tuple[Vectors, dict[int, str], int]:
    """Vectors of the chunks in their order, the reasons of those that have none, and how many texts were embedded.

    Batches reach the cache as they come, so that a crash repeats one batch. A text that stands twice is embedded once.
    """
    texts = [f"{c.context}\n\n{c.text}" for c in chunks]
    hashes = [store.content_hash(run.collection, text) for text in texts]
    known = store.cached_vectors(run.database, hashes)
    missing: dict[bytes, str] = {h: t for h, t in zip(hashes, texts, strict=True) if h not in known}
    run.report.cached += sum(h in known for h in hashes)
    reasons: dict[bytes, str] = {}
    todo = list(missing.items())
    for at in range(0, len(todo), run.options.batch_size):
        batch = todo[at : at + run.options.batch_size]
        run.reporter.embedding(source, at, len(todo))
        got = run.embedder.embed_passages([text for _, text in batch])
        store.cache_vectors(run.database, [h for h, _ in batch], got.vectors)
        known |= {h: v for (h, _), v in zip(batch, got.vectors, strict=True)}
        reasons |= {batch[n][0]: reason for n, reason in got.failures.items()}
    run.reporter.embedding(source, len(todo), len(todo))
    run.report.embedded += len(todo)
    vectors = np.stack([known[h] for h in hashes])
    return vectors, {n: reasons[h] for n, h in enumerate(hashes) if h in reasons}, len(todo)


def _store_document(
    run: _Run,
    step: Step,
    root: str,
    file: SourceFile,
    document: Document,
    chunks: Sequence[Chunk],
    vectors: Vectors,
    failures: dict[int, str],
    embedded: int,
) -> Outcome:
    reason = "; ".join(document.notes)
    status = FileStatus.INDEXED
    if failures:
        status = FileStatus.PARTIAL
        listed = "; ".join(f"passage {n}: {why}" for n, why in sorted(failures.items())[:5])
        reason = f"{len(failures)} of {len(chunks)} passages have no vector ({listed})"
    row = LedgerRow(
        source=step.source,
        root=root,
        sha256=file.sha256,
        size_bytes=file.size_bytes,
        media_type=file.media_type,
        status=status,
        reason=reason,
        pipeline_version=run.pipeline_version,
        chunk_count=len(chunks),
        title=document.title,
        dated=document.dated,
        metadata=json.dumps(dict(document.metadata), default=str),
        authority=run.rules.authority(run.collection.name, step.source),
    )
    done = _in_transaction(
        run.database,
        run.collection,
        lambda c: store.replace_file(c, run.collection, row, chunks, vectors, retired=document.retired),
    )
    if not done:
        return Outcome("=", step.source, status, len(chunks), "stored by another run")
    run.changed_rows += len(chunks)
    mark = "+" if status == FileStatus.INDEXED else "!"
    return Outcome(mark, step.source, status, len(chunks), reason, embedded)


def _store_rejected(run: _Run, step: Step, root: str, rejected: Rejected) -> Outcome:
    row = LedgerRow(
        source=step.source,
        root=root,
        sha256=rejected.sha256,
        size_bytes=rejected.size_bytes,
        media_type=rejected.media_type,
        status=rejected.status,
        reason=rejected.reason,
        pipeline_version=run.pipeline_version,
        authority=run.rules.authority(run.collection.name, step.source),
    )
    _in_transaction(run.database, run.collection, lambda c: store.replace_file(c, run.collection, row))
    if step.old is not None:
        run.changed_rows += step.old.chunk_count
    return Outcome("!", step.source, rejected.status, reason=rejected.reason)


def _not_embedded(run: _Run, step: Step, root: str, file: SourceFile, why: str) -> Outcome:
    """The embedder is gone: say so in the ledger, keep what the collection held before, try again at the next run."""
    old = step.old if step.old is not None and step.old.status != FileStatus.REMOVED else None
    kept = f"; its {old.chunk_count} passages of before are still there" if old and old.chunk_count else ""
    reason = f"not embedded: {why}{kept}"
    values = {
        "source": step.source,
        "root": root,
        "sha256": file.sha256,
        "size_bytes": file.size_bytes,
        "media_type": file.media_type,
        "reason": reason,
        "pipeline_version": run.pipeline_version,
    }
    _in_transaction(run.database, run.collection, lambda c: execute(c, "file_failed", values) >= 0)
    return Outcome("!", step.source, FileStatus.FAILED, reason=reason)


def _in_transaction(database: Database, collection: Collection, work: Callable[[Conn], bool]) -> bool:
    """Run `work` in one transaction; again when Postgres broke a tie between two writers against us."""
    for _ in range(TRIES - 1):
        with (
            suppress(pg.SerializationFailure, pg.DeadlockDetected, pg.UniqueViolation),
            database.owner(collection.schema_name) as connection,
        ):
            return work(connection)
    with database.owner(collection.schema_name) as connection:
        return work(connection)
