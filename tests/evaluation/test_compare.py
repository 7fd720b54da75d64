"""Differences of two runs; tables and plots that say only what their files say."""

import copy
import json
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest

from agent_server.errors import RunRefused
from agent_server.evaluation import report, results
from agent_server.evaluation.arms import ARMS
from agent_server.evaluation.compare import compare, matching

KINDS = ("factual", "identifier")


def _run(arm: str, scores: list[float], dataset: str = "FLATS", **changes: Any) -> dict[str, Any]:
    rows = [
        {"id": f"q{n}", "kind": KINDS[n % 2], "ranked": ["a::1"], **dict.fromkeys(results.METRICS, score)}
        for n, score in enumerate(scores)
    ]
    options = {k: list(v) if isinstance(v, tuple) else v for k, v in ARMS[arm].options.items()}
    return {
        "dataset": {"name": dataset, "kind": "gold", "sha256": "s", "questions": len(rows)},
        "arm": arm,
        "label": ARMS[arm].label,
        "settings": {"fusion": "rrf", **options},
        "embedder": {"model": "mini", "digest": "d", "dimensions": 384},
        "collection": {"name": dataset, "chunk_size": 800, "text_search_config": "english"},
        "date": "2026-01-01",
        "seed": 1,
        "metrics": results.summary(rows, 1),
        "questions": rows,
        **changes,
    }


def test_a_comparison_says_what_fell_and_how_likely_chance_is() -> None:
    before = _run("rrf", [1.0] * 10)
    after = _run("rrf", [0.5, 1.0, 0.0] + [1.0] * 7)
    found = compare(before, after, seed=1)
    main = found.metrics[0]
    assert (main.metric, main.before, main.after) == ("ndcg@10", 1.0, pytest.approx(0.85))
    assert main.change == pytest.approx(-0.15)
    assert main.p == 0.5  # two differences: -1.5 and +1.5 are two of four ways
    assert found.fell == {"q2": (1.0, 0.0), "q0": (1.0, 0.5)}
    assert found.rose == {}
    assert found.kinds["factual"].after == pytest.approx(0.7)
    assert found.kinds["identifier"].change == 0
    assert json.loads(json.dumps(found.to_json()))["fell"]["q2"] == [1.0, 0.0]


def test_only_questions_that_both_runs_asked_are_compared() -> None:
    found = compare(_run("rrf", [1.0, 0.5]), _run("rrf", [1.0, 1.0, 0.0]), seed=1)
    assert (found.shared, found.only_before, found.only_after) == (2, 0, 1)
    assert found.metrics[0].after == 1.0
    with pytest.raises(RunRefused, match="share no question"):
        compare(_run("rrf", []), _run("rrf", [1.0]), seed=1)
    with pytest.raises(RunRefused, match="cannot be compared"):
        compare(_run("rrf", [1.0], "OTHER"), _run("rrf", [1.0]), seed=1)


def test_runs_are_matched_by_arm_or_where_there_is_only_one_by_dataset() -> None:
    rrf, dense, score = _run("rrf", [1.0]), _run("dense", [1.0]), _run("score", [1.0])
    assert matching([rrf, dense], [dense, rrf]) == [(dense, dense), (rrf, rrf)]
    assert matching([dense], [rrf]) == [(dense, rrf)]
    with pytest.raises(RunRefused, match="no run to compare"):
        matching([rrf, dense], [score])
    with pytest.raises(RunRefused, match="no run to compare"):
        matching([_run("rrf", [1.0], "OTHER")], [rrf])


def _write(folder: Path, *runs: dict[str, Any], name: str = "FLATS") -> Path:
    results.write(folder / f"{name}.json", runs)
    return folder


def test_a_table_has_a_row_for_each_arm_and_marks_what_differs(tmp_path: Path) -> None:
    runs = [_run("no-edges", [1.0] * 12), _run("dense", [0.0] * 6 + [1.0] * 6), _run("bm25", [0.0] + [1.0] * 11)]
    text = report.table(report.load(_write(tmp_path, *runs)), ["no-edges", "bm25", "dense"], ("ndcg@10", "hit@1"))
    lines = text.splitlines()
    assert lines[0] == "| | FLATS ndcg@10 | FLATS hit@1 |"
    assert lines[2].startswith(f"| {ARMS['no-edges'].label} | 1.000 (1.00–1.00) | 1.000 |")
    assert "| .917 (" in lines[3]  # one question of twelve may be chance
    assert "| .500\\* (" in lines[4]
    assert "12" in report.source_line(report.load(tmp_path))


BASE = _run("no-edges", [1.0, 0.5])


@pytest.mark.parametrize(
    ("arm", "changes", "said"),
    [
        ("dense", {"settings": {"fusion": "rrf", "expand": []}}, "fusion is 'rrf', expected 'dense'"),
        ("dense", {"settings": {"fusion": "dense", "expand": ["cites"]}}, "expand is"),
        ("rrf-10", {"settings": {**_run("rrf", [1.0])["settings"]}}, "rrf_k is 60.0, expected 10.0"),
        ("ts-or", {"settings": {"reference": "and"}}, "reference is 'and', expected 'or'"),
        ("dense", {"settings": {"reference": "and"}}, "reference is 'and', expected None"),
        ("dense", {"label": "BM25 alone"}, "its label is"),
        ("dense", {"arm": "magic"}, "no arm has this name"),
        ("dense", {"embedder": {"model": "hash", "digest": "d", "dimensions": 384}}, "hash is no embedder"),
        ("dense", {"embedder": {"model": "other", "digest": "d", "dimensions": 384}}, "its model is 'other'"),
        ("weak", {}, "its model is not the weak one"),
        ("dense", {"dataset": {"name": "OTHER", "kind": "gold", "sha256": "s"}}, "its dataset is 'OTHER'"),
        ("dense", {"dataset": {"name": "FLATS", "kind": "gold", "sha256": "t"}}, "not asked the questions of"),
        ("dense", {"dataset": {"name": "FLATS", "kind": "gold", "sha256": "s", "limit": 5}}, "the first 5 questions"),
        ("no-stemming", {}, "text search configuration is 'english'"),
        ("no-context", {}, "measured on collection 'FLATS'"),
        ("size-400", {}, "its chunks are of 800 characters"),
    ],
)
def test_a_table_refuses_a_file_that_disagrees_with_its_label(
    tmp_path: Path, arm: str, changes: dict[str, Any], said: str
) -> None:
    with pytest.raises(RunRefused, match=said):
        report.load(_write(tmp_path, BASE, {**copy.deepcopy(_run(arm, [1.0, 0.5])), **changes}))


def test_a_table_takes_variants_that_are_what_they_say(tmp_path: Path) -> None:
    stemless = {"name": "eval-FLATS-no-stemming", "chunk_size": 800, "text_search_config": "simple"}
    weak = {"name": "eval-FLATS-weak", "chunk_size": 800, "text_search_config": "english"}
    runs = [
        BASE,
        _run("no-stemming", [1.0, 0.0], collection=stemless),
        _run("weak", [1.0, 0.0], collection=weak, embedder={"model": "m, first 48", "digest": "e", "dimensions": 48}),
        _run("size-800", [1.0, 0.5]),
    ]
    assert list(report.load(_write(tmp_path, *runs))["FLATS"]) == ["no-edges", "no-stemming", "weak", "size-800"]


def test_a_plot_is_well_formed_and_has_a_point_for_each_measured_arm(tmp_path: Path) -> None:
    _write(tmp_path, _run("no-edges", [1.0, 0.5]), _run("dense", [0.5, 0.5]))
    _write(tmp_path, _run("no-edges", [1.0, 0.0], "<OTHER>"), name="<OTHER>")
    root = ET.fromstring(report.plot(report.load(tmp_path), ["no-edges", "dense"], "A & B"))
    assert len(root.findall(".//{http://www.w3.org/2000/svg}circle")) == 3
    assert root.findtext("{http://www.w3.org/2000/svg}title") == "A & B"


def test_a_table_is_put_between_its_markers_and_nowhere_else() -> None:
    text = "a\n<!-- t -->\nold\n<!-- /t -->\nb\n"
    assert report.between_markers(text, "t", "new \\1") == "a\n<!-- t -->\nnew \\1\n<!-- /t -->\nb\n"
    with pytest.raises(ValueError, match="expected one stretch"):
        report.between_markers(text, "other", "new")


def test_a_result_file_has_a_line_for_each_question() -> None:
    text = results.dumps([_run("rrf", [1.0, 0.5, 0.25])])
    assert sum('"id":' in line for line in text.splitlines()) == 3
    assert json.loads(text)["runs"][0]["arm"] == "rrf"
    assert "ranked" not in results.dumps([results.without_rankings(_run("rrf", [1.0]))])
