"""A collection and gold questions written for the tests of the evaluation."""

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from agent_server.catalog import Collection
from agent_server.db import Database
from tests.corpus import File, fill
from tests.hash_embedder import HashEmbedder

LATE = "A payment that arrives after the fifth of the month counts as late and costs twelve dollars."
PETS = "Dogs and cats are welcome in the garden flats if a deposit of two hundred dollars was paid."
KEYS = "Lost keys are replaced within two days; code KY-31 stands for a key that was never returned."

FILES = (
    File("rules.md", (LATE, "The office opens at nine in the morning on weekdays.", KEYS), authority=1.0),
    File("leaflet.md", (PETS, LATE)),
    File("old.md", ("Pets are forbidden in every flat.",), retired=True),
)

Write = Callable[[Sequence[Mapping[str, Any]]], Path]


def question(id_: str, text: str, *labels: tuple[str, str], kind: str = "factual") -> dict[str, Any]:
    relevant = [{"source": source, "quote": quote} for source, quote in labels]
    return {"id": id_, "kind": kind if labels else "unanswerable", "question": text, "relevant": relevant}


QUESTIONS = (
    question("q1", "What does a late payment cost?", ("rules.md", "costs twelve dollars")),
    question("q2", "May I keep dogs and cats?", ("leaflet.md", "a deposit of two hundred dollars"), kind="paraphrase"),
    question("q3", "What is KY-31?", ("rules.md", "a key that was never returned"), kind="identifier"),
    question("q4", "Is there a swimming pool?"),
)


@pytest.fixture
def write_gold(tmp_path: Path) -> Write:
    """Writes questions into a gold file."""

    def write(rows: Sequence[Mapping[str, Any]]) -> Path:
        path = tmp_path / "gold.jsonl"
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        return path

    return write


@pytest.fixture
def gold(write_gold: Write) -> Path:
    return write_gold(QUESTIONS)


@pytest.fixture
def flats(database: Database, hash_embedder: HashEmbedder) -> Collection:
    return fill(database, "FLATS", FILES, hash_embedder)
