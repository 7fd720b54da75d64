"""The bank that the quality gate searches: part of the sample bank with the local model, asked two sets of questions.

`gold` are those of K12's gold questions whose answers stand in that part. `places` name what only the heading or title
above a passage says, which few gold questions do. `make gate` (python -m tests.evaluation.gate_bank) records what they
bring now; a change that is meant to move the figures is committed with the file that it makes.
"""

import json
import shutil
import tempfile
from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import Any

from agent_server.catalog import Collection, create_collection, drop_collection, get_collection
from agent_server.db import Database, open_database
from agent_server.embedding import Embedder
from agent_server.embedding.local import LocalEmbedder
from agent_server.evaluation import results
from agent_server.evaluation.arms import ARMS, PLAIN
from agent_server.evaluation.dataset import gold_dataset
from agent_server.evaluation.runs import TOP_K, Given, run
from agent_server.ingest.pipeline import ingest
from agent_server.ingest.steps import IngestOptions
from agent_server.retrieval.candidates import SearchOptions
from agent_server.settings import load_settings

ROOT = Path(__file__).parents[2]
BANK = ROOT / "knowledge-bank"
GATE = ROOT / "evaluation" / "gate"
RECORDED = GATE / "recorded.json"
NAME = "GATE"
FOLDERS = ("policies", "bulletins")
#: What is measured: hybrid search without edges, which collections made differently lack.
SETS = ("gold", "places")


def build(database: Database, embedder: Embedder) -> None:
    """A collection GATE of the part of K12 that FOLDERS name."""
    create_collection(database, NAME, embedder.identity(), description="quality gate")
    with tempfile.TemporaryDirectory() as home:
        for folder in FOLDERS:
            shutil.copytree(BANK / "documents" / "K12" / folder, Path(home) / folder)
        options = IngestOptions(bank=BANK, isolate=False, follow_up=False)
        ingest(database, NAME, [Path(home)], embedder, options)


def gold_questions() -> str:
    """Those of K12's gold questions whose answers stand in FOLDERS, as a gold file's text."""
    lines = (BANK / "gold" / "K12.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)
    return "".join(line for line in lines if _answered_here(json.loads(line)))


def _answered_here(question: dict[str, Any]) -> bool:
    labels = [*question["relevant"], *([question["citing"]] if question.get("citing") else [])]
    return bool(question["relevant"]) and all(label["source"].split("/")[0] in FOLDERS for label in labels)


def measure(
    database: Database,
    embedder: Embedder,
    collection: Collection | None = None,
    sets: Sequence[str] = SETS,
) -> list[dict[str, Any]]:
    """Sets of questions asked of GATE, or of a variant of it: a run for each."""
    if collection is None:
        with database.owner() as connection:
            collection = get_collection(connection, NAME)
    with tempfile.TemporaryDirectory() as home:
        gold = Path(home) / "gold.jsonl"
        gold.write_text(gold_questions(), encoding="utf-8")
        paths = {"gold": gold, "places": GATE / "places.jsonl"}
        asked = [gold_dataset(database, collection, paths[name], name=name) for name in sets]
    given, options = Given(date.today().isoformat(), "make gate"), SearchOptions(top_k=TOP_K)
    return [run(database, embedder, questions, ARMS[PLAIN], given, options) for questions in asked]


def record() -> None:
    """Write what is measured now, in the database that the environment names."""
    with open_database(load_settings()) as database:
        embedder = LocalEmbedder()
        build(database, embedder)
        try:
            found = measure(database, embedder)
        finally:
            drop_collection(database, NAME)
    results.write(RECORDED, [results.without_rankings(r) for r in found])
    for r in found:
        print(r["dataset"]["name"], r["arm"], r["dataset"]["questions"], r["metrics"]["ndcg@10"])


if __name__ == "__main__":
    record()
