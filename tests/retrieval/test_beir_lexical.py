"""Two phases against all passages on outside collections: the same scores, rank by rank."""

import json
import os
import random
from pathlib import Path

import pytest

from agent_server.db import Database, fetch_one
from agent_server.lexemes import lexical_text
from agent_server.retrieval import lexical
from tests.corpus import File, fill

DATA = os.environ.get("KB_TEST_DATA", "")
COMMON = [
    *("the", "use", "system", "method", "result", "time"),
    *("data", "provide", "require", "relevant", "person", "study"),
]
DEPTH = 20

pytestmark = [
    pytest.mark.needs_data,
    pytest.mark.skipif(not DATA, reason="KB_TEST_DATA does not name the folder of outside documents"),
]


def _rows(path: Path) -> list[dict[str, str]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


@pytest.mark.parametrize(("collection", "least_pruned"), [("scifact", 5), ("obliqa", 20), ("cacm", 0)])
def test_the_top_20_is_that_of_ranking_every_passage(database: Database, collection: str, least_pruned: int) -> None:
    folder = Path(DATA) / "beir" / collection
    rows = _rows(folder / "corpus.jsonl")
    texts = [t for r in rows if (t := f"{r.get('title', '')} {r['text']}".replace("\x00", "").strip())]
    made = fill(
        database,
        "BEIR",
        (File(f"{n}.txt", texts[n : n + 500]) for n in range(0, len(texts), 500)),
    )
    asked = [row["text"] for row in _rows(folder / "queries.jsonl")]
    rng = random.Random(11)
    questions = rng.sample(asked, min(60, len(asked)))
    questions += [" ".join(rng.sample(COMMON, rng.randint(1, 5))) for _ in range(40)]
    pruned = compared = 0
    with database.reader(made.reader_role, made.schema_name) as connection:

        def top(tsquery: str, bm25: str) -> list[float]:
            rows = connection.execute(
                "SELECT -(bm25 <#> %s::sparsevec) FROM chunks WHERE canonical AND tsv @@ %s::tsquery"
                " ORDER BY 1 DESC LIMIT %s",
                (bm25, tsquery, DEPTH),
            )
            return [r[0] for r in rows.fetchall()]

        def probe(tsquery: str, bm25: str) -> float | None:
            values = {"tsquery": tsquery, "bm25": bm25, "depth": DEPTH, "excluded": []}
            row = fetch_one(connection, "lexical_probe", values)
            return None if row is None else float(row["score"])

        for question in questions:
            terms = lexical.fetch_terms(connection, "english", lexical_text(question, question=True))
            if not terms:
                continue
            query = lexical.plan(terms, probe)
            everything = lexical.any_of(terms)
            assert top(query.tsquery, query.bm25) == pytest.approx(top(everything, query.bm25), abs=1e-3), question
            compared += 1
            pruned += query.tsquery != everything
    print(f"{collection}: {compared} questions compared, {pruned} of them pruned")
    assert compared >= 90
    assert pruned >= least_pruned
