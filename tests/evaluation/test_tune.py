"""Tuning chooses what a search would show, on questions that had no say in it, and refuses a hybrid that loses."""

import json
import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from agent_server.catalog import Collection, get_collection, tuning_of
from agent_server.db import Database
from agent_server.errors import BadQuestions, ContractMismatch, RunRefused
from agent_server.evaluation import runs, tune, tune_results
from agent_server.evaluation.arms import ARMS
from agent_server.evaluation.dataset import gold_dataset
from agent_server.evaluation.folds import divided, out_of_fold
from agent_server.evaluation.fuse import Asked, Member, Setting, fused
from agent_server.evaluation.pool import gather
from agent_server.evaluation.runs import Given
from agent_server.evaluation.tune import Measured
from agent_server.retrieval.candidates import SearchOptions
from agent_server.retrieval.search import search
from agent_server.retrieval.weigh import Candidate
from tests.corpus import File, fill
from tests.evaluation.conftest import Write, question
from tests.hash_embedder import HashEmbedder

SETTINGS = (*tune.HYBRIDS, *tune.ARMS)
PLAIN = SearchOptions(top_k=10, expand=())
GIVEN = Given("2026-01-01", "kb tune HARBOUR")
WORDS = (  # noqa: SIM905  a paragraph of words
    "harbour pilot tide anchor mooring ballast crane quay ferry cargo manifest lantern signal breakwater dredger "
    "towing berth customs invoice storm permit rope winch hull keel rudder beacon buoy channel depth"
).split()
SHARED = "Every vessel that is longer than forty metres must take a pilot on board before it enters the inner channel."


def _files(count: int = 150) -> list[File]:
    """Passages of words in every frequency, some with codes, some repeated, of sources of several authorities."""
    rng = random.Random(7)
    texts = []
    for n in range(count):
        words = rng.choices(WORDS, weights=[1 / (k + 1) for k in range(len(WORDS))], k=rng.randint(4, 14))
        code = f"HB-{n % 9 + 100}" if n % 11 == 0 else ""
        entry = f"{code}: " if n % 2 else ""  # what the code stands for, where others mention it
        texts.append(f"{entry}Rule {n} {' '.join(words)} {code}.")
    parts = [texts[at::6] for at in range(6)]
    parts[5] = [*parts[5], parts[0][0], parts[1][3]]
    return [
        File(f"part{n}.md", tuple(part), authority=authority)
        for n, (part, authority) in enumerate(zip(parts, (1.0, 0.1, 0.7, 0.0, 0.3, 0.9), strict=True))
    ]


@pytest.fixture
def harbour(database: Database, hash_embedder: HashEmbedder) -> Collection:
    """A bank of more passages than an arm brings, one in twenty without a vector."""
    made = fill(database, "HARBOUR", _files(), hash_embedder)
    with database.owner(made.schema_name) as connection:
        connection.execute("UPDATE chunks SET embedding = NULL WHERE id % 20 = 0")
    return made


QUERIES = (
    "What does the pilot do at high tide?",
    "HB-104",
    "mooring of a ferry under HB-101 and HB-103",
    "the and of is",
    "zeppelin",
    "depth channel buoy beacon rudder keel hull winch rope permit",
    "anchor",
)


def test_the_fusion_in_python_shows_what_a_search_shows_under_every_setting(
    database: Database, hash_embedder: HashEmbedder, harbour: Collection
) -> None:
    rankings = set()
    for query in QUERIES:
        options = replace(PLAIN, top_k=40, authority_weight=0.0 if query == QUERIES[1] else 0.1)
        pool = gather(database, harbour, query, hash_embedder, options)
        assert pool is not None
        for setting in SETTINGS:
            asked = replace(options, fusion=setting.fusion, fusion_weight=setting.weight)
            found = search(database, "HARBOUR", query, hash_embedder, asked).passages
            shown = [(s.chunk_id, s.text, s.also_in) for s in pool.shown(setting)]
            assert shown == [(p.chunk_id, p.text, p.also_in) for p in found], (query, setting)
            rankings.add(tuple(p.chunk_id for p in found))
    assert len(rankings) > 40  # the settings do differ


@pytest.mark.parametrize(("dense_rank", "first"), [(11, "agreed"), (10, "official")])
def test_the_bonus_lifts_nothing_from_outside_both_arms_first_ten_over_what_both_rank_first(
    dense_rank: int, first: str
) -> None:
    def member(id_: int, name: str, ranks: tuple[int, int], scores: tuple[float, float], authority: float) -> Member:
        return Member(Candidate(id_, name, 0.0, ranks[0], scores[0], ranks[1], scores[1], authority, "", "", {}))

    members = (
        member(1, "agreed", (2, 2), (0.90, 5.0), 0.0),
        member(2, "official", (dense_rank, 12), (0.89, 4.9), 1.0),
        member(3, "far", (40, 40), (0.10, 0.1), 0.0),
    )
    asked = Asked(has_words=True, code_weight=0.0, rrf_k=60.0, authority_weight=0.08, keep=40)
    assert fused(members, asked, Setting("score", 0.5))[0].chunk_id == first


def test_where_near_copies_would_be_folded_or_edges_followed_the_search_itself_is_asked(
    database: Database, hash_embedder: HashEmbedder
) -> None:
    copies = [File("a.md", (f"{SHARED}\n\nIn winter.",)), File("b.md", (f"{SHARED}\n\nIn summer.", "Ropes are wet."))]
    made = fill(database, "COPIES", copies, hash_embedder)
    assert gather(database, made, "pilot on board", hash_embedder, PLAIN) is None
    unfolded = replace(PLAIN, fold_near_copies=False)
    assert gather(database, made, "pilot on board", hash_embedder, unfolded) is not None
    assert gather(database, made, "pilot", hash_embedder, replace(unfolded, expand=("cites",))) is None
    assert gather(database, made, "pilot " * 900, hash_embedder, unfolded) is None
    hash_embedder.lost_after = 0
    assert gather(database, made, "pilot on board", hash_embedder, unfolded) is None


# -- folds ------------------------------------------------------------------------------------------------------


def test_folds_are_as_large_as_each_other_and_hold_every_kind() -> None:
    kinds = ["factual"] * 21 + ["identifier"] * 10 + ["paraphrase"] * 6
    fold = divided(kinds, 5, np.random.default_rng(1))
    assert sorted(np.bincount(fold)) == [7, 7, 7, 8, 8]
    for kind, at_least in (("factual", 4), ("identifier", 2), ("paraphrase", 1)):
        assert min(np.bincount(fold[[k == kind for k in kinds]], minlength=5)) >= at_least
    assert (fold != divided(kinds, 5, np.random.default_rng(2))).any()


def test_a_question_has_no_say_in_the_choice_that_it_is_scored_by() -> None:
    # Each row is perfect for one question and useless for all others: chosen with it, it would always win.
    scores = np.eye(10)
    found = out_of_fold(scores, ["q"] * 10, folds=5, rounds=3, seed=1)
    assert found.scores.max() == 0.0
    always = np.vstack([scores, np.full(10, 0.4)])
    found = out_of_fold(always, ["q"] * 10, folds=5, rounds=3, seed=1)
    assert found.scores.tolist() == pytest.approx([0.4] * 10)
    assert found.picks == {10: 15}
    with pytest.raises(ValueError, match="5 folds of 3 questions"):
        out_of_fold(scores[:, :3], ["q"] * 3, folds=5, rounds=1, seed=1)


# -- choice -----------------------------------------------------------------------------------------------------


def _measured(count: int = 40, **means: float) -> Measured:
    """Scores around a mean for each setting (`lexical`, `rrf`, `score5` …), those not named around .3."""
    rng = np.random.default_rng(3)
    noise = rng.uniform(-0.05, 0.05, count)
    noise -= noise.mean()
    names = {s: s.name.replace("score 0.", "score") for s in SETTINGS}
    rows = [means.get(names[s], 0.3) + noise for s in SETTINGS]
    return Measured(SETTINGS, tuple(map(str, range(count))), ("q",) * count, np.array(rows))


def test_a_hybrid_that_beats_its_better_arm_out_of_fold_is_chosen() -> None:
    choice = tune.choose(_measured(score7=0.6, dense=0.5, rrf=0.55), Setting("rrf"), seed=1)
    assert (choice.verdict, choice.setting, choice.arm) == ("tuned", Setting("score", 0.7), Setting("dense"))


def test_a_hybrid_that_loses_to_its_better_arm_is_refused() -> None:
    choice = tune.choose(_measured(score3=0.58, lexical=0.6, rrf=0.5), Setting("rrf"), seed=1)
    assert (choice.verdict, choice.setting) == ("arm", Setting("lexical"))
    assert "every hybrid is refused" in choice.reason
    assert "0.580 out of fold, lexical alone 0.600" in choice.reason


def test_what_is_set_stays_when_tuning_is_worth_less_and_it_does_not_lose_to_the_better_arm() -> None:
    # Every weight answers another half of the questions: which one is best on some of them says nothing of the others.
    measured = _measured(rrf=0.49, dense=0.4)
    scores, rng = measured.scores.copy(), np.random.default_rng(5)
    for row in range(1, len(tune.HYBRIDS)):
        scores[row] = rng.permutation([0.0, 1.0] * 20)
    choice = tune.choose(replace(measured, scores=scores), Setting("rrf"), seed=1)
    assert (choice.verdict, choice.setting) == ("kept", Setting("rrf"))
    assert "rrf stays" in choice.reason


def test_of_equal_hybrids_the_plainest_is_chosen() -> None:
    assert tune.choose(_measured(), Setting("dense"), seed=1).setting == Setting("rrf")


# -- a whole run ------------------------------------------------------------------------------------------------


def _gold(count: int) -> list[dict[str, object]]:
    """Questions that repeat words of a passage; every third asks for what stands in several sources."""
    files = _files()
    rows = []
    for n in range(count):
        source, text = files[n % 6].source, files[n % 6].passages[n // 6 + 1]
        rows.append(
            question(f"q{n}", " ".join(text.split()[2:5]), (source, text), kind=("factual", "paraphrase")[n % 2])
        )
    return [*rows, question("none", "Is there a swimming pool?")]


def test_a_run_says_what_every_setting_is_worth_and_all_it_takes_to_repeat_it(
    database: Database, hash_embedder: HashEmbedder, harbour: Collection, write_gold: Write, tmp_path: Path
) -> None:
    questions = gold_dataset(database, harbour, write_gold(_gold(24)))
    record = tune.tune(database, hash_embedder, questions, GIVEN, PLAIN)
    assert record["dataset"]["questions"] == 24
    assert record["before"] == {"fusion": "rrf", "fusion_weight": None}
    assert set(record["figures"]) == {"tuned", *(s.name for s in SETTINGS)}
    assert sum(record["picks"].values()) == tune.FOLDS * tune.ROUNDS
    assert record["kinds"]["factual"]["questions"] == record["kinds"]["paraphrase"]["questions"] == 12
    assert record["spread"][0] <= record["figures"]["tuned"]["mean"] <= record["spread"][1]
    assert record["embedder"]["digest"] == "hash-1"
    assert (record["folds"], record["seed"], record["command"]) == (5, 20_000, "kb tune HARBOUR")
    run = runs.run(database, hash_embedder, questions, ARMS["score"], GIVEN, PLAIN)
    assert record["figures"]["score 0.5"]["mean"] == pytest.approx(run["metrics"]["ndcg@10"]["mean"], abs=1e-4)
    tune_results.write(tmp_path / "tune-HARBOUR.json", record)
    assert tune_results.read(tmp_path / "tune-HARBOUR.json") == json.loads(json.dumps(record))
    with database.owner() as connection:  # a run alone changes nothing
        assert get_collection(connection, "HARBOUR") == harbour
        assert tuning_of(connection, "HARBOUR") is None


def test_questions_without_a_pool_are_measured_by_the_search_and_leave_no_trace(
    database: Database, hash_embedder: HashEmbedder, write_gold: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tune, "HYBRIDS", tune.HYBRIDS[:2])
    files = [*_files(60), File("a.md", (f"{SHARED}\n\nIn winter.",)), File("b.md", (f"{SHARED}\n\nIn summer.",))]
    made = fill(database, "BERTHS", files, hash_embedder)
    rows = [question(f"q{n}", f"{WORDS[n]} {WORDS[n + 3]}", ("a.md", "In winter.")) for n in range(20)]
    questions = gold_dataset(database, made, write_gold(rows))
    assert gather(database, made, rows[0]["question"], hash_embedder, PLAIN) is None
    record = tune.tune(database, hash_embedder, questions, GIVEN, PLAIN)
    run = runs.run(database, hash_embedder, questions, ARMS["rrf"], GIVEN, PLAIN)
    assert [q["rrf"] for q in record["questions"]] == [q["ndcg@10"] for q in run["questions"]]
    with database.owner(made.schema_name) as connection:
        assert connection.execute("SELECT count(*) FROM searches").fetchone() == (0,)


def test_too_few_questions_another_model_or_a_collection_that_changes_end_without_a_choice(
    database: Database, hash_embedder: HashEmbedder, harbour: Collection, write_gold: Write
) -> None:
    few = gold_dataset(database, harbour, write_gold(_gold(19)))
    with pytest.raises(BadQuestions, match="has 19 answerable questions; a choice needs at least 20"):
        tune.tune(database, hash_embedder, few, GIVEN, PLAIN)
    enough = gold_dataset(database, harbour, write_gold(_gold(20)))
    with pytest.raises(ContractMismatch):
        tune.tune(database, HashEmbedder(digest="other"), enough, GIVEN, PLAIN)

    def meddle(*_: object) -> None:
        with database.owner() as connection:
            connection.execute("UPDATE kb.collections SET fusion = 'score'")

    with pytest.raises(RunRefused, match="was changed during the run"):
        tune.tune(database, hash_embedder, enough, replace(GIVEN, watch=meddle), PLAIN)


# -- tables -----------------------------------------------------------------------------------------------------


def _record(count: int = 4, **changes: object) -> dict[str, object]:
    columns = {"tuned": 0.6, "rrf": 0.55, "dense": 0.4, "lexical": 0.5, "score 0.4": 0.6}
    figure = {name: {"mean": v, "low": v - 0.1, "high": v + 0.1, "p": 0.01} for name, v in columns.items()}
    return {
        "dataset": {"name": "boats", "sha256": "q", "corpus_sha256": "c"},
        "embedder": {"model": "m"},
        "metric": "ndcg@10",
        "seed": 1,
        "figures": figure,
        "chosen": {"fusion": "score", "fusion_weight": 0.4},
        "better_arm": "lexical",
        "questions": [{"id": str(n), **columns} for n in range(count)],
        **changes,
    }


def _reference(ndcg: Sequence[float] = (0.5, 0.5, 0.5, 0.5)) -> dict[str, dict[str, object]]:
    run = {
        "dataset": {"name": "boats", "sha256": "q", "corpus_sha256": "c"},
        "embedder": {"model": "m"},
        "metrics": {"ndcg@10": {"mean": sum(ndcg) / len(ndcg)}},
        "questions": [{"id": str(n), "ndcg@10": v} for n, v in enumerate(ndcg)],
    }
    return {"rrf-ts-and": run}


def test_the_table_shows_what_tuning_brought_over_plain_postgres(tmp_path: Path) -> None:
    tune_results.write(tmp_path / "tune-boats.json", _record())
    found = tune_results.load(tmp_path, {"boats": _reference()})
    lines = tune_results.table(found, {"boats": _reference()}).splitlines()
    row = r"| boats | .600 (.50–.70) | lexical .500\* | .550\* | .500 | +20% | score, .4 dense |"
    assert lines[2:] == [row, "| mean | | | | | +20% | |"]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"dataset": {"name": "ships", "sha256": "q", "corpus_sha256": "c"}}, "its dataset is 'ships'"),
        ({"dataset": {"name": "boats", "sha256": "x", "corpus_sha256": "c"}}, "not measured on the questions"),
        ({"embedder": {"model": "n"}}, "its model is 'n'"),
        ({"questions": [{"id": "0", "tuned": 0.1, "rrf": 0.5, "dense": 0.4, "lexical": 0.5, "score 0.4": 1}]}, "mean"),
    ],
)
def test_the_table_refuses_a_file_that_says_something_else(
    changes: dict[str, object], said: str, tmp_path: Path
) -> None:
    tune_results.write(tmp_path / "tune-boats.json", _record(**changes))
    with pytest.raises(RunRefused, match=said):
        tune_results.load(tmp_path, {"boats": _reference()})


def test_a_file_that_is_no_tuning_is_said_to_be_none(tmp_path: Path) -> None:
    path = tmp_path / "tune-x.json"
    for text in ("{", "[]", '{"format": 1}', '{"format": 1, "tuning": {"dataset": 1}}'):
        path.write_text(text)
        with pytest.raises(RunRefused, match="is no tuning"):
            tune_results.read(path)
