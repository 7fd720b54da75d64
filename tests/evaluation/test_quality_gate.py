"""The hybrid search is as good as it was recorded to be, and the gate that says so notices when it is not."""

import copy
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from agent_server.catalog import get_collection
from agent_server.db import Database
from agent_server.embedding import Embedded, EmbedderIdentity, Vectors
from agent_server.embedding.local import LocalEmbedder
from agent_server.errors import RunRefused
from agent_server.evaluation import results, variants
from agent_server.evaluation.gate import fallen
from agent_server.evaluation.runs import SEED
from agent_server.ingest.steps import IngestOptions
from agent_server.retrieval import lexical
from tests.evaluation import gate_bank

RUNS = list[dict[str, Any]]
#: What the questions of another family of models begin with.
PREFIX = "Represent this sentence for searching relevant passages: "


@pytest.fixture(scope="module")
def recorded() -> RUNS:
    return results.read(gate_bank.RECORDED)


class Wrong:
    """The local model with something done to the questions' texts or vectors; its name and digest stay."""

    def __init__(self, inner: LocalEmbedder, text: Callable[[str], str], vector: Callable[[Vectors], Vectors]) -> None:
        self._inner, self._text, self._vector = inner, text, vector

    def identity(self) -> EmbedderIdentity:
        return self._inner.identity()

    def embed_passages(self, texts: Sequence[str]) -> Embedded:
        return self._inner.embed_passages(texts)

    def embed_query(self, text: str) -> Vectors:
        return self._vector(self._inner.embed_query(self._text(text)))

    def close(self) -> None:
        pass


def _of(recorded: RUNS, *sets: str) -> RUNS:
    return [r for r in recorded if r["dataset"]["name"] in sets]


def test_search_is_as_good_as_recorded_and_planted_regressions_are_noticed(
    database: Database, recorded: RUNS, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One test, since the bank is embedded for it: parts of it on several workers would each embed it again."""
    embedder = LocalEmbedder()
    gate_bank.build(database, embedder)
    now = gate_bank.measure(database, embedder)
    assert fallen(recorded, now, seed=SEED) == (), "if it was meant, `make gate` records the new figures"

    with database.owner() as connection:
        collection = get_collection(connection, gate_bank.NAME)
    with variants.made(database, collection, "no-context", embedder, IngestOptions()) as (made, searched_with):
        now = gate_bank.measure(database, searched_with, made, ["places"])
    assert fallen(_of(recorded, "places"), now, seed=SEED), "a lost context line went unnoticed"

    another_models_prefix = Wrong(embedder, lambda text: f"{PREFIX}{text}", lambda vector: vector)
    another_models_vector = Wrong(embedder, lambda text: text, lambda vector: vector[::-1].copy())
    now = gate_bank.measure(database, another_models_prefix)
    assert fallen(recorded, now, seed=SEED), "a wrong prefix of the questions went unnoticed"
    now = gate_bank.measure(database, another_models_vector, sets=["places"])
    assert fallen(_of(recorded, "places"), now, seed=SEED), "vectors of another model went unnoticed"

    monkeypatch.setattr(lexical, "idf", lambda total, ndoc: math.log(1 + ndoc))  # common words weigh most
    now = gate_bank.measure(database, embedder, sets=["places"])
    assert fallen(_of(recorded, "places"), now, seed=SEED), "a broken IDF went unnoticed"


def _worse(runs: RUNS, questions: int) -> RUNS:
    """The runs where the first `questions` answered questions of each found nothing."""
    out = copy.deepcopy(runs)
    for run in out:
        for row in [r for r in run["questions"] if r.get("ndcg@10")][:questions]:
            row["ndcg@10"] = 0.0
    return out


def test_noise_is_no_fall_and_a_rise_is_none(recorded: RUNS) -> None:
    assert fallen(recorded, recorded, seed=SEED) == ()
    assert fallen(recorded, _worse(recorded, 1), seed=SEED) == ()
    assert fallen(_worse(recorded, 20), recorded, seed=SEED) == ()


def test_a_fall_names_its_set_its_figures_and_questions(recorded: RUNS) -> None:
    faults = fallen(recorded, _worse(recorded, 10), seed=SEED)
    assert [f.split(":")[0] for f in faults] == ["gold, no-edges", "places, no-edges"]
    assert "ndcg@10 fell from" in faults[1]
    assert "place-01" in faults[1]


def test_a_run_that_asks_less_is_a_fault(recorded: RUNS) -> None:
    fewer = copy.deepcopy(recorded)
    del fewer[0]["questions"][0]
    assert fallen(recorded, fewer, seed=SEED) == ("gold, no-edges: 1 of the recorded questions were not asked",)
    assert fallen(recorded, recorded[:1], seed=SEED) == ("places, no-edges: not measured",)


def test_nothing_to_compare_with_is_refused(recorded: RUNS, tmp_path: Path) -> None:
    with pytest.raises(RunRefused):
        fallen([], recorded, seed=SEED)
