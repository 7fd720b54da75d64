"""A run measures what was asked for, or nothing; result files hold all it takes to repeat it."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agent_server.catalog import Collection, list_collections
from agent_server.db import Database
from agent_server.embedding import EmbedderIdentity, Vectors
from agent_server.errors import ContractMismatch, InvalidArgument, RunRefused
from agent_server.evaluation import ablate, arms, results
from agent_server.evaluation.arms import ARMS, Arm
from agent_server.evaluation.dataset import Dataset, gold_dataset
from agent_server.evaluation.runs import Given, run
from agent_server.retrieval.candidates import SearchOptions
from tests.evaluation.conftest import QUESTIONS, Write, question
from tests.hash_embedder import HashEmbedder

GIVEN = Given("2026-01-01", "kb eval FLATS")
BASE = SearchOptions(top_k=10)


@pytest.fixture
def questions(database: Database, flats: Collection, gold: Path) -> Dataset:
    return gold_dataset(database, flats, gold)


def _run(database: Database, embedder: HashEmbedder | None, questions: Dataset, arm: str = "rrf") -> dict[str, Any]:
    return run(database, embedder, questions, ARMS[arm], GIVEN, BASE)


def test_a_run_says_what_came_back_and_what_it_was_worth(
    database: Database, hash_embedder: HashEmbedder, questions: Dataset
) -> None:
    found = _run(database, hash_embedder, questions)
    rows = {row["id"]: row for row in found["questions"]}
    assert rows["q1"]["hit@1"] == 1.0
    assert rows["q3"]["ranked"][0] == "rules.md::2"
    assert "hit@1" not in rows["q4"]  # nothing is relevant: it is for refusals alone
    assert found["metrics"]["hit@1"] == {"mean": 1.0, "low": 1.0, "high": 1.0}
    assert {k: v["questions"] for k, v in found["kinds"].items()} == {"factual": 1, "paraphrase": 1, "identifier": 1}
    assert found["refusals"] is None  # not calibrated


def test_a_run_holds_all_it_takes_to_repeat_it(
    database: Database, hash_embedder: HashEmbedder, questions: Dataset, tmp_path: Path
) -> None:
    found = _run(database, hash_embedder, questions)
    assert found["settings"]["fusion"] == "rrf"
    assert found["settings"]["rrf_k"] == 60.0
    assert found["settings"]["expand"] == []
    assert found["embedder"]["model"] == "hash"
    assert (found["embedder"]["digest"], found["embedder"]["dimensions"]) == ("hash-1", 64)
    assert found["collection"]["passages"] == 6
    assert found["collection"]["text_search_config"] == "english"
    assert found["collection"]["chunk_size"] == 800
    assert set(found["software"]) == {"knowledge_bank", "code_sha256", "python", "postgres", "pgvector"}
    assert (found["date"], found["command"], found["seed"]) == ("2026-01-01", "kb eval FLATS", 20_000)
    assert {"embed", "sql", "total"} <= set(found["ms"])
    results.write(tmp_path / "a" / "FLATS.json", [found])
    assert results.read(tmp_path / "a" / "FLATS.json") == [json.loads(json.dumps(found))]


def test_the_same_run_twice_gives_the_same_figures_and_leaves_no_trace(
    database: Database, hash_embedder: HashEmbedder, flats: Collection, questions: Dataset
) -> None:
    first, second = (_run(database, hash_embedder, questions) for _ in range(2))
    assert first["questions"] == second["questions"]
    assert first["metrics"] == second["metrics"]
    with database.owner(flats.schema_name) as connection:
        assert connection.execute("SELECT count(*) FROM searches").fetchone() == (0,)


def test_a_question_that_the_search_does_not_accept_counts_as_zero(
    database: Database, hash_embedder: HashEmbedder, flats: Collection, write_gold: Write
) -> None:
    long = question("q9", "late payment " * 400, ("rules.md", "costs twelve dollars"))
    gold = write_gold([QUESTIONS[0], long])
    found = _run(database, hash_embedder, gold_dataset(database, flats, gold))
    assert found["not_accepted"] == ["q9"]
    assert found["questions"][1]["ranked"] == []
    assert found["metrics"]["hit@10"]["mean"] == 0.5


class Liar(HashEmbedder):
    """Another model under the old one's name would be found by its digest; this one changes while it is asked."""

    def identity(self) -> EmbedderIdentity:
        return replace(super().identity(), digest="hash-2" if self.calls else "hash-1")

    def embed_query(self, text: str) -> Vectors:
        self.calls.append([text])
        return super().embed_query(text)


def test_a_run_with_another_model_fails_instead_of_reporting(database: Database, questions: Dataset) -> None:
    with pytest.raises(ContractMismatch, match="digest"):
        _run(database, HashEmbedder(digest="other"), questions)
    with pytest.raises(ContractMismatch, match="digest"):
        _run(database, Liar(), questions)
    with pytest.raises(RunRefused, match="needs an embedder"):
        _run(database, None, questions)
    assert _run(database, None, questions, "bm25")["metrics"]["hit@10"]["mean"] == 1.0


def test_a_run_whose_dense_arm_did_not_answer_fails_instead_of_reporting(
    database: Database, hash_embedder: HashEmbedder, flats: Collection, questions: Dataset
) -> None:
    hash_embedder.lost_after = 0
    with pytest.raises(RunRefused, match="dense arm did not run for 4 of 4 questions"):
        _run(database, hash_embedder, questions)
    with database.owner(flats.schema_name) as connection:
        assert connection.execute("SELECT count(*) FROM searches").fetchone() == (0,)


class Meddler(HashEmbedder):
    """Changes the collection while it is asked for a question's vector."""

    def __init__(self, database: Database, statement: str) -> None:
        super().__init__()
        self._database, self._statement = database, statement

    def embed_query(self, text: str) -> Vectors:
        with self._database.owner("kb_flats") as connection:
            connection.execute(self._statement)  # type: ignore[arg-type]
        return super().embed_query(text)


@pytest.mark.parametrize(
    ("arm", "statement", "said"),
    [
        ("no-edges", "UPDATE kb.collections SET authority_weight = 0.01", "had authority_weight 0.01, 0.08 was asked"),
        ("no-edges", "UPDATE kb.collections SET fusion = 'score'", "had fusion 'score', 'rrf' was asked"),
        ("rrf", "UPDATE kb.collections SET chunk_size = 900", "was changed during the run"),
        ("rrf", "DELETE FROM chunks WHERE source = 'old.md'", "was changed during the run"),
    ],
)
def test_a_collection_that_changes_during_a_run_fails_it(
    database: Database, flats: Collection, questions: Dataset, arm: str, statement: str, said: str
) -> None:
    with pytest.raises(RunRefused, match=said):
        run(database, Meddler(database, statement), questions, ARMS[arm], GIVEN, BASE)


def test_an_ablation_without_any_arm_is_refused() -> None:
    for names in ([], [""], [" ", ""]):
        with pytest.raises(InvalidArgument, match="names no arm"):
            arms.chosen(names)
    with pytest.raises(InvalidArgument, match="no arm is called 'magic'"):
        arms.chosen(["rrf", "magic"])
    assert [a.name for a in arms.chosen(["rrf", "dense", "rrf"])] == ["rrf", "dense"]


def test_an_empty_collection_is_not_measured(database: Database, flats: Collection, questions: Dataset) -> None:
    with database.owner(flats.schema_name) as connection:
        connection.execute("DELETE FROM chunks")
    with pytest.raises(RunRefused, match="is empty"):
        _run(database, HashEmbedder(), questions)


MADE_HERE = ("hybrid", "no-edges", "ts-and", "ts-or", "rrf-ts-and", "no-context", "no-folding", "no-stemming", "weak")


def test_an_ablation_measures_each_arm_and_drops_what_it_made(
    database: Database, flats: Collection, gold: Path
) -> None:
    embedder = HashEmbedder()
    found = ablate.measure(database, flats, gold, embedder, arms.chosen(MADE_HERE), GIVEN, BASE)
    by_arm = {r["arm"]: r for r in found}
    assert tuple(by_arm) == MADE_HERE
    assert {r["dataset"]["name"] for r in found} == {"FLATS"}
    assert by_arm["no-stemming"]["collection"]["text_search_config"] == "simple"
    assert by_arm["weak"]["embedder"]["dimensions"] == 48
    # The rules' copy of the leaflet's passage is searched for itself.
    assert by_arm["no-folding"]["collection"]["searched"] == by_arm["no-edges"]["collection"]["searched"] + 1
    assert by_arm["no-folding"]["collection"]["name"] == "eval-FLATS-no-folding"
    assert by_arm["no-context"]["metrics"]["hit@10"]["mean"] == 1.0
    assert by_arm["ts-and"]["settings"] == {"reference": "and", "candidates": 100, "top_k": 10}
    with database.owner() as connection:
        assert [c.name for c in list_collections(connection)] == ["FLATS"]


def test_a_variant_without_its_files_is_refused_and_dropped(database: Database, flats: Collection, gold: Path) -> None:
    with pytest.raises(RunRefused, match="/r is not there"):
        ablate.measure(database, flats, gold, HashEmbedder(), arms.chosen(["size-400"]), GIVEN, BASE)
    with database.owner() as connection:
        assert [c.name for c in list_collections(connection)] == ["FLATS"]


def test_the_size_that_a_collection_has_is_measured_where_it_is(
    database: Database, flats: Collection, gold: Path
) -> None:
    (found,) = ablate.measure(database, flats, gold, HashEmbedder(), arms.chosen(["size-800"]), GIVEN, BASE)
    assert found["collection"]["name"] == "FLATS"


def test_reference_rankers_rank_by_all_words_by_any_and_with_vectors(
    database: Database, hash_embedder: HashEmbedder, flats: Collection, write_gold: Write
) -> None:
    asked = "late payment of dogs"  # no passage holds all three
    gold = write_gold([question("q1", asked, ("rules.md", "costs twelve dollars"))])
    dataset = gold_dataset(database, flats, gold)

    def ranked(arm: str) -> Sequence[str]:
        return list(_run(database, hash_embedder, dataset, arm)["questions"][0]["ranked"])

    assert ranked("ts-and") == []
    assert set(ranked("ts-or")) == {"rules.md::0", "leaflet.md::0"}
    assert len(ranked("rrf-ts-and")) == 4  # every passage has a vector


def test_refusals_are_scored_where_the_search_says_whether_it_can_answer() -> None:
    assert results.refusals([None, None], [True, False]) is None
    found = results.refusals([True, True, False], [True, False, True])
    assert found == {"questions": 3, "unanswerable": 2, "precision": 0.5, "recall": 0.5}


def test_what_is_no_result_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    for text in ("{", "[]", '{"format": 2, "runs": []}', '{"format": 1, "runs": [{"arm": "rrf"}]}'):
        path.write_text(text)
        with pytest.raises(RunRefused):
            results.read(path)
    with pytest.raises(RunRefused, match="no result file"):
        results.read(tmp_path / "none.json")


def test_every_arm_promises_something_of_its_own() -> None:
    promises = {(json.dumps(dict(a.options), default=list), a.reference, a.variant) for a in ARMS.values()}
    assert len(promises) == len(ARMS)
    assert len({a.label for a in ARMS.values()}) == len(ARMS)
    assert all(isinstance(a, Arm) and a.name == name for name, a in ARMS.items())
