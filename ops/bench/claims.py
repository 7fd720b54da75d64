"""How fast verified claims are recalled among many, and how fast they are stored.

    python ops/bench/claims.py [--claims 100000] [--questions 300] [--rounds 5]
    python ops/bench/claims.py --gold

`--gold` measures how good the answers are instead (`claims_gold`).

Words are made, with a natural frequency curve; a third of the claims define a term, the others state a limit.
Questions: a defined term, a term that nothing defines, a code, a sentence that half repeats a claim, common words
alone. They are asked in several rounds; the smallest of the rounds' medians is the one that other work on the machine
disturbed least. A private server is started for it and removed afterwards.
"""

import argparse
import itertools
import random
import statistics
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2]))
from agent_server import catalog
from agent_server.catalog import Collection
from agent_server.db import Database, execute
from agent_server.embedding import EmbedderIdentity
from agent_server.ingest import store
from agent_server.models import Chunk, FileStatus
from agent_server.retrieval.recall import recall_claims
from nightly.claims_rules.model import Found
from nightly.claims_store import claim_row, merge_counts, put, settle
from ops.bench import claims_gold
from ops.bench.private import private_bank

PER_PASSAGE = 8
PASSAGES_A_FILE = 100
WHO = "bench"
VOCABULARY = 30_000
#: Zipf's law with Mandelbrot's flattened head: the commonest word is one in forty.
_FREQUENCY = list(itertools.accumulate(1 / (rank + 3) ** 1.05 for rank in range(VOCABULARY)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--claims", type=int, default=100_000)
    parser.add_argument("--questions", type=int, default=300, help="of each kind")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--gold", action="store_true", help="answers on the sample bank instead of speed")
    options = parser.parse_args()
    with private_bank() as (database, _):
        if options.gold:
            claims_gold.measure(database)
        else:
            measure(database, options.claims, options.questions, options.rounds)


def measure(database: Database, count: int, questions: int, rounds: int) -> None:
    identity = EmbedderIdentity("local", "made", "0", 4, "", "", 256)
    collection = catalog.create_collection(database, "BENCH", identity)
    rng = random.Random(5)
    started = time.perf_counter()
    stored = store_claims(database, collection, made_claims(rng, count))
    seconds = time.perf_counter() - started
    print(f"store: {stored} verified claims in {seconds:.1f} s = {stored / seconds:.0f} a second")
    ask(database, collection, made_questions(rng, count, questions), rounds)


def ask(database: Database, collection: Collection, kinds: dict[str, Sequence[str]], rounds: int) -> None:
    """Ask all questions in each round and print the times of each kind, and of all kinds together."""
    taken: dict[str, list[list[float]]] = {kind: [] for kind in [*kinds, "all of these"]}
    found = dict.fromkeys(taken, 0)
    for _ in range(rounds):
        for kind, asked in kinds.items():
            times = []
            for query in asked:
                began = time.perf_counter()
                found[kind] += bool(recall_claims(database, [collection], query).claims)
                times.append((time.perf_counter() - began) * 1000)
            taken[kind].append(times)
        taken["all of these"].append([t for kind in kinds for t in taken[kind][-1]])
    for kind, every in taken.items():
        medians = sorted(statistics.median(times) for times in every)
        tail = min(sorted(times)[int(len(times) * 0.95)] for times in every)
        with_claims = f", {found[kind]} of {sum(map(len, every))} with claims" if kind in kinds else ""
        print(
            f"recall, {kind:<14} median {medians[0]:5.1f} ms (rounds: {medians[0]:.1f} to {medians[-1]:.1f}), "
            f"95 of 100 within {tail:5.1f} ms{with_claims}"
        )


def words(rng: random.Random, count: int) -> list[str]:
    """Words as frequent as in natural text: a few everywhere, most of them rare."""
    return [spelled(n) for n in rng.choices(range(VOCABULARY), cum_weights=_FREQUENCY, k=count)]


def spelled(number: int) -> str:
    """A number as a made word without digits."""
    out = "v"
    for digit in str(number):
        out += "bacedifogu"[int(digit)] + "lk"[number % 2]
    return out


def made_claims(rng: random.Random, count: int) -> Iterator[Found]:
    """Claims whose quote is their statement: definitions of "term N", codes, and limits."""
    for n in range(count):
        some = " ".join(words(rng, 12))
        if n % 3 == 0:
            subject, kind, text = f"term {spelled(n)} {some.split()[0]}", "definition", f"means {some}"
        elif n % 3 == 1:
            subject, kind, text = f"QX-{n}", "definition", f"is {some}"
        else:
            subject, kind, text = some.split()[0], "limit", f"must {some} within {n % 90 + 1} days"
        statement = f"{subject} {text}."
        yield Found(kind, subject, statement, 0, len(statement), "made")  # type: ignore[arg-type]


def made_questions(rng: random.Random, count: int, number: int) -> dict[str, Sequence[str]]:
    defined = rng.sample(
        [c.subject for c in made_claims(random.Random(5), count) if c.subject.startswith("term")], number
    )
    codes = rng.sample(range(1, count, 3), number)
    return {
        "defined term": [f"What is a {term}?" for term in defined],
        "undefined term": [f"What does {' '.join(words(rng, 2))} {spelled(n)}zz mean?" for n in range(number)],
        "code": [f"QX {n}" for n in codes],
        "sentence": [f"When must {' '.join(words(rng, 6))} be done within days" for _ in range(number)],
        "common words": [" ".join(spelled(rng.randint(1, 4)) for _ in range(4)) + " must" for _ in range(number)],
    }


def store_claims(database: Database, collection: Collection, made: Iterator[Found]) -> int:
    """Passages with PER_PASSAGE claims each, and the claims, verified; how many."""
    with database.owner(collection.schema_name) as connection:
        execute(connection, "root_upsert", {"root": "r", "path": "/r"})
    stored = number = 0
    while batch := [one for one, _ in zip(made, range(PER_PASSAGE * PASSAGES_A_FILE), strict=False)]:
        parts = [batch[at : at + PER_PASSAGE] for at in range(0, len(batch), PER_PASSAGE)]
        chunks = [_chunk(n, "\n".join(one.statement for one in part)) for n, part in enumerate(parts)]
        source = f"f{number}.txt"
        number += 1
        row = store.LedgerRow(source, "r", source, 1, "text/plain", FileStatus.INDEXED, "", "bench", len(chunks))
        with database.owner(collection.schema_name) as connection:
            store.replace_file(connection, collection, row, chunks, np.full((len(chunks), 4), 0.5, np.float32))
            ids = dict(connection.execute("SELECT chunk_index, id FROM chunks WHERE source = %s", (source,)).fetchall())
            rows = []
            for chunk, part in zip(chunks, parts, strict=True):
                at = 0
                for one in part:
                    placed = Found(one.kind, one.subject, one.statement, at, at + len(one.statement), one.rule)
                    rows.append(claim_row(ids[chunk.index], chunk.text, placed, vouched=True))
                    at += len(one.statement) + 1
            there = put(connection, collection, rows, "rules", WHO, "made")
            settle(connection, there.values(), WHO, "made")
            stored += len(there)
    with database.owner(collection.schema_name) as connection:
        merge_counts(connection, collection)
    with database.owner_autocommit(collection.schema_name) as connection:
        connection.execute("VACUUM ANALYZE claims")
        connection.execute("ANALYZE claim_evidence")
        connection.execute("ANALYZE chunks")
    return stored


def _chunk(n: int, text: str) -> Chunk:
    return Chunk(n, text, "Made", ("Made",), "", None, None, n * 2000, n * 2000 + len(text))


if __name__ == "__main__":
    main()
