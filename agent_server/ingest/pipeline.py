"""The write path, top to bottom: folder -> plan -> per file: bytes -> document -> chunks -> vectors -> rows -> indexes.

One transaction per file; what is unchanged costs nothing; what fails is said, and leaves the rest alone. `steps` does
one file, `reading` what needs no database, in child processes.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from queue import SimpleQueue

from agent_server.catalog import Collection, get_collection
from agent_server.db import Database, translated
from agent_server.embedding import Embedder, check_contract
from agent_server.errors import InvalidArgument
from agent_server.ingest import index, roots, steps, store
from agent_server.ingest.after import run_hooks
from agent_server.ingest.authority import load_rules
from agent_server.ingest.lengths import spread
from agent_server.ingest.plan import Step
from agent_server.ingest.reading import read
from agent_server.ingest.rebuild import model_kept
from agent_server.ingest.report import IngestReport, Outcome, Reporter, Silent, foretold
from agent_server.ingest.roots import Scope
from agent_server.ingest.sandbox import Sandbox
from agent_server.ingest.steps import IngestOptions, Reader, Run
from agent_server.models import FileStatus

#: Raise it when extraction, chunking or lexemes change what comes out: all files are then read again, and only the
#: passages that really differ are embedded.
PIPELINE = 4
BYTES_PER_CHUNK = 700  # a rough guess, to size a load before it is read


def pipeline_version(c: Collection) -> str:
    """What the passages of a file depend on besides its bytes."""
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
    Outcomes come in the order of the plan. Raises UnknownCollection, ContractMismatch, InvalidArgument (a path that is
    not there), EmbedderUnavailable (before anything was done); later faults become outcomes.
    """
    with translated(), model_kept(database, collection_name):
        with database.owner() as connection:
            collection = get_collection(connection, collection_name)
        check_contract(collection.contract, embedder.identity())
        report = IngestReport(collection.name)
        run = Run(database, collection, embedder, options, reporter or Silent(), report, pipeline_version(collection))
        started = clock()
        retry = frozenset({FileStatus.ENCRYPTED} if options.passwords else ())
        if options.again:
            retry = frozenset(FileStatus)
        with _workers(run) as work:
            for path in paths:  # planned one after the other: what the first brought is known to the second
                with database.owner(collection.schema_name) as connection:
                    part = roots.scope(connection, path, run.pipeline_version, retry)
                    if options.dry_run:
                        connection.rollback()  # roots too are only recorded by a real run
                if collection.avg_length is None:
                    part = replace(part, steps=tuple(spread(part.steps)))
                run.rules = load_rules(part.root_path, options.bank)
                run.reporter.planned(part.steps)
                if options.dry_run:
                    report.outcomes.extend(foretold(step) for step in part.steps)
                    continue
                _drop_index_before_large_load(run, part.steps)
                for outcome in work(part):
                    report.outcomes.append(outcome)
                    run.reporter.finished(outcome)
        report.seconds["files"] = clock() - started
        if not options.dry_run:
            run.reporter.indexing()
            report.index = index.finish_load(database, collection, changed_rows=run.changed_rows, clock=clock)
            report.seconds |= report.index.seconds
            report.embedder_lost = run.embedder_lost
            if options.follow_up:
                _follow_up(database, report, collection)
    return report


def _follow_up(database: Database, report: IngestReport, collection: Collection) -> None:
    """Have refreshed what other packages derive from passages; the report says what was not."""
    changed = [o.source for o in report.outcomes if o.mark in "+~-" or o.status == FileStatus.PARTIAL]
    seconds, report.faults = run_hooks(database, collection, changed)
    report.seconds |= seconds


@contextmanager
def _workers(run: Run) -> Iterator[Callable[[Scope], Iterable[Outcome]]]:
    """Threads that carry out steps, each with a reader of its own. An exception ends them before their files are
    done; outcomes come in the order of the steps."""
    readers: SimpleQueue[Reader] = SimpleQueue()
    sandboxes = [Sandbox(run.options.extract_timeout_s) for _ in range(run.options.workers)]
    for sandbox in sandboxes:
        readers.put(sandbox.read if run.options.isolate else read)

    def one(step: Step, part: Scope) -> Outcome:
        reader = readers.get()
        try:
            return steps.do(run, step, part, reader)
        finally:
            readers.put(reader)

    # The pool is closed first: a child dies with the thread that started it.
    with ExitStack() as stack:
        for sandbox in sandboxes:
            stack.enter_context(sandbox)
        pool = stack.enter_context(ThreadPoolExecutor(run.options.workers, thread_name_prefix="ingest"))
        try:
            yield lambda part: pool.map(one, part.steps, [part] * len(part.steps))
        except BaseException:
            run.stopped.set()
            pool.shutdown(wait=False, cancel_futures=True)
            for sandbox in sandboxes:
                sandbox.kill()
            raise


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
            steps.remove_rows(database, collection, ledger[source])
            report.outcomes.append(Outcome("-", source, FileStatus.REMOVED))
        changed = sum(ledger[s].chunk_count for s in wanted)
        report.index = index.finish_load(database, collection, changed_rows=changed)
        _follow_up(database, report, collection)
    return report


def _drop_index_before_large_load(run: Run, planned: Sequence[Step]) -> None:
    """Before a load that is large against the table, drop the dense index; `finish_load` of this run, or of the next
    one if this is killed, builds it again."""
    new_bytes = sum(s.found.size_bytes for s in planned if s.action == "index" and s.found is not None)
    incoming = new_bytes // BYTES_PER_CHUNK
    if run.collection.has_hnsw and index.should_drop_hnsw(index.count_chunks(run.database, run.collection), incoming):
        index.drop_hnsw(run.database, run.collection)
