"""What following edges costs: the same questions with expansion off and on, in turn, in one run.

    python ops/bench/expand.py [--rows 20000] [--dimensions 384] [--questions 200]

Every passage cites four others, one passage is cited by all, every tenth passage defines a term. Texts and vectors are
made: nothing here says anything about quality. A private server is started for it and removed afterwards.
"""

import argparse
import statistics
import sys
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2]))
from agent_server.db import Database
from agent_server.retrieval.candidates import SearchOptions
from agent_server.retrieval.search import search
from ops.bench import clusters
from ops.bench.private import private_bank

LINKS = """
INSERT INTO links (from_chunk, to_chunk, relation, anchor, from_start, from_end, to_start, to_end, target_label, said)
SELECT c.id, 1 + (c.id * 7919 + k * 104729) %% %(rows)s, 'cites', 'see there', k, k + 1, 0, 1, 'there',
       citing_lexemes('english', text, k, k + 1)
FROM chunks c, generate_series(1, 4) AS k
UNION ALL
SELECT id, 1, 'cites', 'see the first', 9, 10, 0, 1, 'first', citing_lexemes('english', text, 9, 10) FROM chunks
"""
TERMS = """
INSERT INTO terms (term, folded, chunk, form, scope, from_start, from_end)
SELECT 'Clause ' || id / 20, 'clause ' || id / 20, id, 'means', 'document', 0, length(text) FROM chunks
WHERE id %% 10 = 0
"""
ARMS: dict[str, SearchOptions] = {
    "off": SearchOptions(top_k=10, expand=()),
    "cites": SearchOptions(top_k=10, expand=("cites",)),
    "defines": SearchOptions(top_k=10, expand=("defines",)),
    "both": SearchOptions(top_k=10, expand=("cites", "defines")),
    "both, two hops": SearchOptions(top_k=10, expand=("cites", "defines"), hops=2),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--dimensions", type=int, default=384)
    parser.add_argument("--questions", type=int, default=200)
    options = parser.parse_args()
    with private_bank() as (database, _):
        started = time.perf_counter()
        made = clusters.make(database, "BENCH", rows=options.rows, dimensions=options.dimensions, seed=4)
        with database.owner(made.collection.schema_name) as connection:
            connection.execute(LINKS, {"rows": options.rows})
            connection.execute(TERMS, {})
        with database.owner_autocommit(made.collection.schema_name) as connection:
            connection.execute("ANALYZE links")
            connection.execute("ANALYZE terms")
        print(f"{options.rows} passages, {5 * options.rows} edges made in {time.perf_counter() - started:.0f} s")
        table(database, made, options.questions)


def table(database: Database, made: clusters.Made, count: int) -> None:
    """One line an arm; every question goes through all arms before the next one is asked."""
    embedder = clusters.Given(made.vectors.shape[1])
    rng = np.random.default_rng(9)
    whole: dict[str, list[float]] = {name: [] for name in ARMS}
    part: dict[str, list[float]] = {name: [] for name in ARMS}
    added: dict[str, int] = dict.fromkeys(ARMS, 0)
    for n in range(count + 10):
        row = int(rng.integers(len(made.sources)))
        asks = n % 2
        question = f"What does clause {row // 20} mean?" if asks else f"id{row} and what stands around it in summer"
        embedder.known[question] = made.vectors[row]
        for name in sorted(ARMS, key=lambda _: rng.random()):
            result = search(database, "BENCH", question, embedder, ARMS[name])
            if n >= 10:  # the first ones fill caches
                whole[name].append(result.timings_ms["total"])
                part[name].append(result.timings_ms["expand"])
                added[name] += sum(p.via != "search" for p in result.passages)
    print("arm              whole search ms p50   p95   of it expansion p50   p95   passages added a question")
    for name in ARMS:
        total, own = sorted(whole[name]), sorted(part[name])
        print(
            f"{name:<16} {statistics.median(total):19.2f} {total[int(0.95 * len(total))]:5.1f} "
            f"{statistics.median(own):21.2f} {own[int(0.95 * len(own))]:5.1f} {added[name] / count:27.2f}"
        )


if __name__ == "__main__":
    main()
