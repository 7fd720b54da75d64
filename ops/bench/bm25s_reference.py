"""BM25 alone against the library bm25s, on the same stems with the same parameters: nDCG@10 of both, side by side.

    pip install bm25s
    python ops/bench/bm25s_reference.py FOLDER... [--split test]

Each FOLDER is a BEIR folder; it is loaded as `kb eval --beir` does it, in the home that the environment names. The
library gets the word lexemes of each passage's `tsv` as often as they stand there, and those of each question, so that
nothing but the ranking differs: two phases over a GIN index here, every document scored there. A second figure of the
library has the identifier lexemes too ('#…'), which here count for the score and not for the length.
"""

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from datetime import date
from pathlib import Path

import bm25s

sys.path.insert(0, str(Path(__file__).parents[2]))
from agent_server.db import Conn, Database, open_database
from agent_server.embedding import make_embedder
from agent_server.evaluation import beir, beir_load, metrics
from agent_server.evaluation.arms import ARMS
from agent_server.evaluation.dataset import Dataset
from agent_server.evaluation.gold import Shown
from agent_server.evaluation.runs import Given, run
from agent_server.lexemes import lexical_text
from agent_server.retrieval.lexical import K1, fetch_terms
from agent_server.settings import load_settings

B = 0.75  #: of bm25_doc in sql/collection.sql
TOP_K = 10
NEAR = 0.01


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folders", type=Path, nargs="+", metavar="FOLDER")
    parser.add_argument("--split", default="test")
    options = parser.parse_args()
    settings = load_settings()
    embedder = make_embedder(settings)
    far = 0
    print(f"nDCG@{TOP_K}, k1 = {K1}, b = {B}, bm25s {bm25s.__version__} ('lucene')")
    print(f"{'dataset':<12} {'questions':>9} {'here':>7} {'bm25s':>7} {'change':>7} {'with codes':>11}")
    with open_database(settings) as database:
        for path in options.folders:
            folder = beir.read_folder(path, options.split)
            loaded = beir_load.load(database, folder, embedder)
            asked = beir.dataset(folder, loaded.collection.name, loaded.ids, loaded.about)
            here = _here(database, asked)
            schema = loaded.collection.schema_name
            words, all_lexemes = (library(database, schema, asked, codes) for codes in (False, True))
            far += abs(here - words) > NEAR
            figures = f"{here:>7.4f} {words:>7.4f} {here - words:>+7.4f} {all_lexemes:>11.4f}"
            print(f"{asked.name:<12} {len(asked.questions):>9} {figures}", flush=True)
    print(f"within {NEAR} on all" if not far else f"farther than {NEAR} apart on {far}")
    return 1 if far else 0


def _here(database: Database, asked: Dataset) -> float:
    found = run(database, None, asked, ARMS["bm25"], Given(date.today().isoformat()))
    return float(found["metrics"][f"ndcg@{TOP_K}"]["mean"])


def library(database: Database, schema: str, asked: Dataset, codes: bool) -> float:
    """Mean nDCG of the library's ranking; `codes`: with identifier lexemes."""
    with database.owner(schema) as connection:
        passages = _passages(connection, codes)
        questions = {q.id: _question(connection, q.text, codes) for q in asked.questions}
    index = bm25s.BM25(k1=K1, b=B, method="lucene")
    index.index(list(passages.values()), show_progress=False)
    chunk_ids = list(passages)
    found = ranked(index, chunk_ids, questions)
    return metrics.mean([metrics.ndcg(asked.judge(id_, found(id_)), TOP_K) for id_ in questions])


def ranked(
    index: bm25s.BM25, chunk_ids: Sequence[str], questions: Mapping[str, list[str]]
) -> Callable[[str], list[Shown]]:
    """The best passages of a question, those that hold none of its words left out."""
    known = index.vocab_dict

    def found(id_: str) -> list[Shown]:
        tokens = [token for token in questions[id_] if token in known]
        if not tokens:
            return []
        rows, scores = index.retrieve([tokens], k=TOP_K, show_progress=False)
        best = zip(rows[0].tolist(), scores[0].tolist(), strict=True)
        return [Shown(chunk_ids[row], "") for row, score in best if score > 0]

    return found


def _passages(connection: Conn, codes: bool) -> dict[str, list[str]]:
    """Each passage's lexemes, as often as they stand in it, by chunk_id; copies too, which the search folds."""
    rows = connection.execute(
        """SELECT c.chunk_id, t.lexeme, cardinality(t.positions)
           FROM chunks c CROSS JOIN LATERAL unnest(c.tsv) AS t
           WHERE NOT c.retired
           ORDER BY c.id"""
    )
    out: dict[str, list[str]] = {}
    for chunk_id, lexeme, count in rows:
        tokens = out.setdefault(chunk_id, [])
        if codes or not lexeme.startswith("#"):
            tokens.extend([lexeme] * count)
    return out


def _question(connection: Conn, text: str, codes: bool) -> list[str]:
    """A question's lexemes, as the search makes them."""
    terms = fetch_terms(connection, "english", lexical_text(text, question=True))
    return [t.lexeme for t in terms if codes or not t.is_code for _ in range(t.qtf)]


if __name__ == "__main__":
    sys.exit(main())
