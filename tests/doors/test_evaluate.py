"""`kb eval` through the program."""

import json
from pathlib import Path

import pytest

from tests.doors.conftest import Kb
from tests.evaluation.conftest import question

QUESTIONS = (
    question("q1", "What income does a loan need?", ("rules.md", "an income of at least 1,100 dollars")),
    question("q2", "NW-4021", ("rules.md", "the income is too low for the loan"), kind="identifier"),
    question("q3", "How old may a valuation be?", ("two.txt", "at most 120 days old"), kind="paraphrase"),
    question("q4", "Who is the president?"),
)


@pytest.fixture
def asked(bank: Kb, tmp_path: Path) -> Kb:
    """`kb` with a collection and its gold file in the default bank."""
    gold = tmp_path / "knowledge-bank" / "gold" / "FINANCE.jsonl"
    gold.parent.mkdir(parents=True)
    gold.write_text("".join(json.dumps(q) + "\n" for q in QUESTIONS))
    return bank


def test_the_gold_questions_of_every_collection_are_asked(asked: Kb) -> None:
    said = asked("eval")
    assert said.code == 0, said.err
    assert "FINANCE: 3 questions" in said.out
    assert "identifier" in said.out
    found = asked("eval", "finance", "--arms", "rrf,bm25", "--top-k", "20", "--limit", "2", "--json").json
    assert [r["arm"] for r in found["runs"]] == ["rrf", "bm25"]
    assert found["runs"][0]["command"] == "kb eval finance --arms rrf,bm25 --top-k 20 --limit 2"
    assert found["runs"][0]["settings"]["top_k"] == 20
    assert len(found["runs"][0]["questions"]) == 2


def test_an_ablation_measures_every_arm_and_is_compared_with_an_earlier_file(asked: Kb, tmp_path: Path) -> None:
    out = tmp_path / "results" / "FINANCE.json"
    assert asked("eval", "FINANCE", "--ablate", "--out", str(out)).code == 0
    arms = [r["arm"] for r in json.loads(out.read_text())["runs"]]
    assert {"hybrid", "dense", "bm25", "no-context", "weak", "size-400", "size-1600"} <= set(arms)
    compared = asked("eval", "FINANCE", "--arms", "dense", "--compare", str(out))
    assert "0 questions fell, 0 rose" in compared.out
    found = asked("eval", "FINANCE", "--arms", "dense", "--compare", str(out), "--json").json
    assert found["comparisons"][0]["metrics"][0]["p"] == 1.0
    assert [c["name"] for c in asked("collection", "list", "--json").json["collections"]] == ["FINANCE"]


def test_a_gold_file_can_be_named_and_a_faulty_one_is_an_error(asked: Kb, tmp_path: Path) -> None:
    gold = tmp_path / "mine.jsonl"
    gold.write_text(json.dumps(QUESTIONS[0]) + "\n")
    assert "FINANCE: 1 questions" in asked("eval", "FINANCE", "--gold", str(gold)).out
    gold.write_text(json.dumps({**QUESTIONS[0], "kind": "riddle"}) + "\n")
    out = tmp_path / "out.json"
    said = asked("eval", "FINANCE", "--gold", str(gold), "--out", str(out), "--json")
    assert (said.code, said.out, said.error["code"]) == (1, "", "bad_questions")
    assert not out.exists()
    assert asked("eval", "--gold", str(gold)).code == 2


def test_a_beir_folder_is_measured_in_a_collection_of_its_own(kb: Kb, tmp_path: Path) -> None:
    folder = tmp_path / "boats"
    (folder / "qrels").mkdir(parents=True)
    (folder / "corpus.jsonl").write_text('{"_id": "d1", "title": "", "text": "Boats lie in the harbour."}\n')
    (folder / "queries.jsonl").write_text('{"_id": "1", "text": "boats"}\n')
    (folder / "qrels" / "dev.tsv").write_text("1\td1\t1\n")
    out = tmp_path / "boats.json"
    arguments = ("--beir", str(folder), "--split", "dev", "--config", "simple", "--ablate", "--scores-only")
    said = kb("eval", *arguments, "--out", str(out))
    assert said.code == 0, said.err
    runs = json.loads(out.read_text())["runs"]
    assert runs[0]["collection"]["name"] == "beir-boats-simple"
    assert runs[0]["command"] == "kb eval --beir boats --split dev --config simple --ablate"
    assert "ranked" not in runs[0]["questions"][0]
    assert "no-context" not in {r["arm"] for r in runs}
    assert kb("collection", "drop", "beir-boats-simple", "--yes").code == 0
    assert kb("eval", "--beir", str(folder)).code == 1


def test_what_cannot_be_measured_is_said(asked: Kb, tmp_path: Path) -> None:
    assert asked("eval", "FINANCE", "--arms", "").code == 1
    assert asked("eval", "FINANCE", "--arms", "dense", "--ablate").code == 2
    unknown = asked("eval", "FINANCE", "--arms", "magic", "--json")
    assert "rrf" in unknown.error["hint"]
    assert asked("eval", "NONE", "--json").error["code"] == "unknown_collection"
    (tmp_path / "knowledge-bank" / "gold" / "FINANCE.jsonl").unlink()
    nothing = asked("eval", "--json")
    assert (nothing.code, nothing.error["code"]) == (1, "bad_questions")
