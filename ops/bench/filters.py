"""Filtered search against exact search: hits, recall and time for filters that follow the content, and random ones.

    python ops/bench/filters.py [--rows 50000] [--dimensions 384] [--questions 40] [--exact-share 0.05]

A private server is started for it and removed afterwards. Recall compares the dense arm's first ten with the ten
nearest rows that numpy finds. `--exact-share 0` shows what the dense index alone would bring: the figures behind
`agent_server.retrieval.filters.EXACT_SHARE`.
"""

import argparse
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2]))
from agent_server.db import Database
from agent_server.retrieval import filters, trace
from agent_server.retrieval.candidates import SearchOptions
from agent_server.retrieval.filters import Filters
from agent_server.retrieval.search import search
from ops.bench import clusters
from ops.bench.private import private_bank

TOP_K = 10


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=50_000)
    parser.add_argument("--dimensions", type=int, default=384)
    parser.add_argument("--questions", type=int, default=40)
    parser.add_argument("--exact-share", type=float, default=filters.EXACT_SHARE)
    parser.add_argument("--exact-passages", type=int, default=filters.EXACT_PASSAGES)
    options = parser.parse_args()
    filters.EXACT_SHARE, filters.EXACT_PASSAGES = options.exact_share, options.exact_passages
    with private_bank() as (database, _):
        started = time.perf_counter()
        made = clusters.make(database, "BENCH", rows=options.rows, dimensions=options.dimensions, seed=4)
        print(f"{len(made.sources)} rows made and indexed in {time.perf_counter() - started:.0f} s")
        table(database, made, options.questions)


def table(database: Database, made: clusters.Made, count: int) -> None:
    """One line a filter: the dense arm against numpy, then the whole search's hits and time."""
    print(
        "filter          rows left  exact  recall@10  least  fewest hits of 10   dense ms p50   both arms ms p50  p95"
    )
    everything = np.ones(len(made.sources), bool)
    line(database, made, "none", Filters(), everything, count)
    kinds: list[tuple[str, Callable[..., tuple[Filters, np.ndarray]]]] = [
        ("path", clusters.by_path), ("random", clusters.by_lot),
    ]  # fmt: skip
    for kind, choose in kinds:
        for share in clusters.SHARES:
            line(database, made, f"{kind} {share:.2%}", *choose(made, share), count)


def line(database: Database, made: clusters.Made, name: str, asked: Filters, left: np.ndarray, count: int) -> None:
    embedder = clusters.Given(made.vectors.shape[1])
    rng = np.random.default_rng(9)
    recalls, hits, dense_ms, both_ms = [], [], [], []
    rows = np.flatnonzero(left)
    ids = np.array([f"{s}::{n % clusters.ROWS_A_FILE}" for n, s in enumerate(made.sources)])
    stored = made.vectors.astype(np.float16).astype(np.float32)
    exact = 0
    for n, vector in enumerate(clusters.questions(made, count, rng)):
        question = f"word{n + 3} word{2 * n + 5} topic{rng.integers(clusters.CLUSTERS)}w{n % 30}"
        embedder.known[question] = vector
        nearest = rows[np.argsort(-(stored[rows] @ vector), kind="stable")[:TOP_K]]
        for fusion, times in (("dense", dense_ms), ("rrf", both_ms)):
            options = SearchOptions(top_k=TOP_K, fusion=fusion, filters=asked)  # type: ignore[arg-type]
            found = search(database, made.collection.name, question, embedder, options)
            times.append(found.timings_ms["sql"])
            if fusion == "dense":
                recalls.append(len(set(ids[nearest]) & {p.chunk_id for p in found.passages}) / len(nearest))
        hits.append(len(found.passages))
    recorded = trace.get_trace(database, made.collection.schema_name, found.trace_id)
    exact = "exact" in recorded["variables"]
    print(
        f"{name:14} {len(rows):10} {'yes' if exact else 'no':>6} {statistics.mean(recalls):10.3f} {min(recalls):6.2f}"
        f" {min(hits):10} {statistics.median(dense_ms):20.1f} {statistics.median(both_ms):18.1f}"
        f" {np.percentile(both_ms, 95):5.1f}"
    )


if __name__ == "__main__":
    main()
