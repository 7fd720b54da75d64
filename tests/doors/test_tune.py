"""`kb tune` through the program."""

import json
from pathlib import Path

import pytest

from tests.doors.conftest import Kb
from tests.evaluation.conftest import question

COUNT = 24
PLACES = ("quay", "ferry", "crane", "berth", "lighthouse", "dock")


@pytest.fixture
def boats(tmp_path: Path) -> Path:
    """A BEIR folder where the words of a question are those of its document."""
    folder = tmp_path / "boats"
    (folder / "qrels").mkdir(parents=True)
    documents, questions, judged = [], [], []
    for n in range(COUNT):
        place = PLACES[n % len(PLACES)]
        text = f"Boat number {n + 40} lies at the {place} and carries cargo {'xyz'[n % 3]}{n}."
        documents.append({"_id": f"d{n}", "title": "", "text": text})
        questions.append({"_id": f"q{n}", "text": f"which boat at the {place} carries {'xyz'[n % 3]}{n}"})
        judged.append(f"q{n}\td{n}\t1")
    for name, rows in (("corpus", documents), ("queries", questions)):
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "qrels" / "test.tsv").write_text("\n".join(judged) + "\n")
    return folder


def test_a_dry_run_tells_and_a_run_stores_what_the_collection_shows(kb: Kb, boats: Path, tmp_path: Path) -> None:
    out = tmp_path / "results" / "tune-boats.json"
    said = kb("tune", "--beir", str(boats), "--dry-run", "--out", str(out))
    assert said.code == 0, said.err
    assert "beir-boats: 24 questions, 5 folds, hash" in said.out
    assert "tuned, out of fold" in said.out
    assert "not stored (--dry-run)" in said.out
    record = json.loads(out.read_text())["tuning"]
    assert record["command"] == "kb tune --beir boats"
    assert len(record["questions"]) == COUNT
    before = kb("collection", "show", "beir-boats", "--json").json
    assert (before["fusion"], before["tuning"]) == ("rrf", None)
    stored = kb("tune", "--beir", str(boats), "--json").json
    assert stored["stored"]
    after = kb("collection", "show", "beir-boats", "--json").json
    assert after["fusion"] == stored["chosen"]["fusion"]
    assert after["fusion_weight"] == stored["chosen"]["fusion_weight"] or stored["chosen"]["fusion"] != "score"
    for key in ("date", "seed", "folds", "figures", "command", "reason"):
        assert after["tuning"][key] == stored[key]
    assert after["tuning"]["dataset"]["sha256"] == stored["dataset"]["sha256"]
    assert after["tuning"]["embedder"]["digest"] == "hash-1"
    assert "questions" not in after["tuning"]
    line = next(row for row in kb("collection", "show", "beir-boats").out.splitlines() if row.startswith("tuning "))
    assert "24 questions" in line
    assert f"{stored['figures']['tuned']['mean']:.3f} out of fold" in line
    assert "another model" not in line


def test_too_few_gold_questions_are_refused_and_nothing_is_stored(bank: Kb, tmp_path: Path) -> None:
    gold = tmp_path / "knowledge-bank" / "gold" / "FINANCE.jsonl"
    gold.parent.mkdir(parents=True)
    gold.write_text(json.dumps(question("q1", "NW-4021", ("rules.md", "the income is too low for the loan"))) + "\n")
    for arguments in (("finance",), ("finance", "--gold", str(gold))):
        said = bank("tune", *arguments, "--json")
        assert (said.code, said.out, said.error["code"]) == (1, "", "bad_questions")
        assert "has 1 answerable questions; a choice needs at least 20" in said.error["message"]
    assert bank("collection", "show", "finance", "--json").json["tuning"] is None


def test_a_collection_or_a_folder_must_be_named_and_not_both(plain_kb: Kb, tmp_path: Path) -> None:
    assert plain_kb("tune").code == 2
    assert plain_kb("tune", "FINANCE", "--beir", str(tmp_path)).code == 2
    assert plain_kb("tune", "--beir", str(tmp_path), "--gold", str(tmp_path / "g.jsonl")).code == 2
