"""How fast extracted text becomes rows, with neither files nor an embedder in the way.

    python ops/bench/store.py [--megabytes 32 | --folder FOLDER] [--workers 2] [--rounds 3]

Markdown documents of about 100 kB are made, or those of a folder are taken, and extracted before the clock starts; each
passage has its vector already. Then processes cut them, find their lexemes and store them through the functions that
ingestion uses, one document a transaction; the clock stops when lexeme counts are merged and the text indexes have
nothing pending. The dense index is built afterwards and timed apart. `ops/bench/ingest.py` measures the whole write
path instead.
"""

import argparse
import multiprocessing
import sys
import time
from collections.abc import Sequence
from multiprocessing.synchronize import Barrier
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2]))
from agent_server import catalog
from agent_server.db import Database, execute
from agent_server.ingest import index, store
from agent_server.ingest.chunk import chunk_document
from agent_server.ingest.extract import extract
from agent_server.ingest.lengths import spread
from agent_server.ingest.store import LedgerRow
from agent_server.ingest.validate import read_source
from agent_server.models import Document, FileStatus, SourceFile
from ops.bench.ingest import DIMENSIONS, FILE_BYTES, MadeEmbedder, write
from ops.bench.private import private_bank

ROOT = "docs"
MAX_BYTES = 100_000_000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--megabytes", type=int, default=32)
    parser.add_argument("--folder", type=Path, help="documents to take instead of making some")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    with private_bank() as (database, home):
        if options.folder:
            documents = documents_of(options.folder)
        else:
            documents = made_documents(home, options.megabytes * 1_000_000 // FILE_BYTES)
        documents = spread(documents)
        for number in range(options.rounds):
            load(database, f"ROUND{number}", documents, options.workers)


def made_documents(folder: Path, count: int) -> list[tuple[str, Document]]:
    made = folder / "made"
    made.mkdir()
    for n in range(count):
        write(made / f"file-{n:05}.md", FILE_BYTES, seed=n, heading="## ")
    return documents_of(made)


def documents_of(folder: Path) -> list[tuple[str, Document]]:
    """All documents below a folder that can be read whole, by name."""
    documents = []
    for path in sorted(p for p in folder.rglob("*") if p.is_file()):
        file = read_source(path, folder, max_bytes=MAX_BYTES)
        document = extract(file) if isinstance(file, SourceFile) else None
        if isinstance(document, Document):
            documents.append((path.relative_to(folder).as_posix(), document))
    return documents


def load(database: Database, name: str, documents: Sequence[tuple[str, Document]], workers: int) -> None:
    """One first load by `workers` processes, and what it took."""
    collection = catalog.create_collection(database, name, MadeEmbedder().identity())
    with database.owner(collection.schema_name) as connection:
        execute(connection, "root_upsert", {"root": ROOT, "path": f"/{ROOT}"})
    index.drop_hnsw(database, collection)
    context = multiprocessing.get_context("fork")
    barrier = context.Barrier(workers + 1)
    processes = [
        context.Process(target=store_all, args=(database.dsn, name, documents[n::workers], barrier))
        for n in range(workers)
    ]
    for process in processes:
        process.start()
    barrier.wait()
    started = time.perf_counter()
    for process in processes:
        process.join()
        if process.exitcode:
            raise SystemExit(f"a worker ended with {process.exitcode}")
    stored = time.perf_counter() - started
    with database.owner(collection.schema_name) as connection:
        row = connection.execute("SELECT count(*) FROM chunks").fetchone()
    passages = row[0] if row else 0
    report = index.finish_load(database, collection, changed_rows=passages)
    ended = report.seconds["statistics"]
    print(
        f"{passages} passages in {stored + ended:.1f} s = {passages / (stored + ended):.0f} a second "
        f"(cut and stored {stored:.1f} s, statistics {ended:.1f} s; "
        f"dense index {report.seconds['dense index']:.1f} s apart)" + (", lengths restated" if report.restated else ""),
        flush=True,
    )
    catalog.drop_collection(database, name)  # else autovacuum works on it while the next is measured


def store_all(dsn: str, name: str, documents: Sequence[tuple[str, Document]], barrier: Barrier) -> None:
    """What one worker does: each document cut, its lexemes found, its passages stored."""
    vectors = np.random.default_rng(5).normal(size=(5_000, DIMENSIONS)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    with Database(dsn, b"bench") as database:
        with database.owner() as connection:
            collection = catalog.get_collection(connection, name)
        barrier.wait()
        for source, document in documents:
            chunks = chunk_document(document, size=collection.chunk_size, overlap=collection.chunk_overlap)
            row = LedgerRow(
                source=source,
                root=ROOT,
                sha256=source,
                size_bytes=FILE_BYTES,
                media_type="text/plain",
                status=FileStatus.INDEXED,
                reason="",
                pipeline_version="bench",
                chunk_count=len(chunks),
            )
            given = np.resize(vectors, (len(chunks), DIMENSIONS))
            store.store_file(
                database,
                collection,
                lambda c, row=row, chunks=chunks, given=given: store.replace_file(c, collection, row, chunks, given),
            )


if __name__ == "__main__":
    main()
