"""How fast passages are stored, and where dropping the dense index before a load pays: all in one run, side by side.

    python ops/bench/load.py [--rows 20000] [--dimensions 384]

Texts are made words with a natural frequency curve, vectors are made clusters: nothing here says anything about
quality. A private server is started for it and removed afterwards. The figures behind
`agent_server.ingest.index.INSERT_COST_OVER_BUILD` come from its last lines.
"""

import argparse
import sys
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2]))
from agent_server import catalog
from agent_server.db import Database, execute
from agent_server.embedding import EmbedderIdentity, Vectors
from agent_server.ingest import index, store
from agent_server.models import Chunk, FileStatus
from ops.bench.private import private_bank

PER_FILE = 100


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--dimensions", type=int, default=384)
    options = parser.parse_args()
    with private_bank() as (database, _):
        measure(database, options.rows, options.dimensions)


def measure(database: Database, rows: int, dimensions: int) -> None:
    identity = EmbedderIdentity("local", "made", "0", dimensions, "", "", 256)
    collection = catalog.create_collection(database, "BENCH", identity)
    with database.owner(collection.schema_name) as connection:
        execute(connection, "root_upsert", {"root": "r", "path": "/r"})
    rng = np.random.default_rng(5)
    words = np.array([f"word{n}" for n in range(30_000)])
    frequency = 1 / np.arange(1, len(words) + 1) ** 1.05
    centres = rng.normal(size=(200, dimensions))

    def load(name: str, count: int) -> float:
        """Store `count` made passages; seconds for it, the making not counted."""
        seconds = 0.0
        for at in range(0, count, PER_FILE):
            size = min(PER_FILE, count - at)
            picked = rng.choice(words, size=(size, 120), p=frequency / frequency.sum())
            chunks = [_chunk(n, " ".join(row)) for n, row in enumerate(picked)]
            vectors = _vectors(rng, centres, size)
            started = time.perf_counter()
            with database.owner(collection.schema_name) as connection:
                store.replace_file(connection, collection, _row(f"{name}-{at}", size), chunks, vectors)
            seconds += time.perf_counter() - started
        return seconds

    stored = load("first", rows)
    print(f"store: {rows} passages in {stored:.1f} s = {rows / stored:.0f} a second, one process, no dense index")
    started = time.perf_counter()
    with database.owner(collection.schema_name) as connection:
        execute(connection, "hnsw_create")
    built = time.perf_counter() - started
    print(f"dense index: built over {rows} rows in {built:.1f} s = {built / rows * 1e6:.0f} µs a row")
    more = max(PER_FILE, rows // 10)
    with_index = load("with", more)
    index.drop_hnsw(database, collection)
    without = load("without", more)
    extra = (with_index - without) / more
    print(f"row by row: {more} more rows cost {extra * 1e6:.0f} µs each in a standing index")
    print(f"insert over build: {extra / (built / rows):.1f} (in use: {index.INSERT_COST_OVER_BUILD:g})")


def _chunk(n: int, text: str) -> Chunk:
    return Chunk(n, text, "Made", ("Made",), "", None, None, n * 2000, n * 2000 + len(text))


def _row(source: str, count: int) -> store.LedgerRow:
    return store.LedgerRow(source, "r", source, count, "text/plain", FileStatus.INDEXED, "", "bench", count)


def _vectors(rng: np.random.Generator, centres: np.ndarray, count: int) -> Vectors:
    raw = centres[rng.integers(len(centres), size=count)] + 0.6 * rng.normal(size=(count, centres.shape[1]))
    unit: Vectors = (raw / np.linalg.norm(raw, axis=1, keepdims=True)).astype(np.float32)
    return unit


if __name__ == "__main__":
    main()
