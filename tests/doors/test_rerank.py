"""The reranker through the program: asked where KB_RERANK_URL names one, left out by --no-rerank."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent_server.db import Database
from agent_server.settings import Settings, load_settings
from agent_server.tools import Toolbox, dispatch
from tests.doors.conftest import Kb
from tests.evaluation.conftest import question
from tests.hash_embedder import HashEmbedder
from tests.rerank_double import RerankDouble, rerank_double

QUESTION = "income for a loan"
SHOWN = ("search", "FINANCE", QUESTION, "--top-k", "3", "--no-expand", "--json")


@pytest.fixture
def double(monkeypatch: pytest.MonkeyPatch) -> Iterator[RerankDouble]:
    with rerank_double() as made:
        made.favours = "valuation of a house"
        monkeypatch.setenv("KB_RERANK_URL", f"{made.url}/")
        monkeypatch.setenv("KB_RERANK_MODEL", "tiny")
        monkeypatch.setenv("KB_RERANK_TIMEOUT_S", "5")
        yield made


def _first(kb: Kb, *options: str) -> str:
    source: str = kb(*SHOWN, *options).json["passages"][0]["source"]
    return source


def test_a_search_is_reranked_unless_it_is_told_otherwise(bank: Kb, double: RerankDouble) -> None:
    assert _first(bank, "--no-rerank") == "rules.md"
    assert double.seen == []
    assert _first(bank) == "one.txt"
    assert double.seen[0]["model"] == "tiny"
    assert bank("trace", "show", "FINANCE", "--json").json["request"]["reranker"] == "tiny"
    assert "nothing changed" in bank("trace", "replay", "FINANCE").out
    assert len(double.seen) == 2


def test_an_explanation_asks_the_reranker_unless_it_is_told_otherwise(bank: Kb, double: RerankDouble) -> None:
    explained = ("explain", "FINANCE", QUESTION, "--top-k", "3", "--no-expand", "--json")
    assert bank(*explained, "--no-rerank").json["passages"][0]["chunk_id"].startswith("rules.md")
    assert bank(*explained).json["passages"][0]["chunk_id"].startswith("one.txt")


def test_a_reranker_that_fails_is_named_under_the_passages(bank: Kb, double: RerankDouble) -> None:
    double.status = 503
    said = bank("search", "FINANCE", QUESTION)
    assert said.code == 0
    assert f"without rerank: {double.url}/v1/rerank answered 503" in said.out


def test_the_tool_is_reranked_too(bank: Kb, database: Database, settings: Settings, double: RerankDouble) -> None:
    box = Toolbox(database, HashEmbedder(), settings.model_copy(update={"rerank_url": double.url}))
    found = dispatch(box, "search_knowledge_base", {"collection": "FINANCE", "query": QUESTION})
    assert "rerank" in found["timings_ms"]
    assert found["passages"][0]["source"] == "one.txt"


@pytest.fixture
def gold(tmp_path: Path) -> Path:
    path = tmp_path / "gold.jsonl"
    path.write_text(json.dumps(question("q1", QUESTION, ("two.txt", "at most 120 days old"))) + "\n")
    return path


def test_the_reranked_arm_is_measured_where_there_is_a_reranker(bank: Kb, double: RerankDouble, gold: Path) -> None:
    found = bank("eval", "FINANCE", "--gold", str(gold), "--arms", "no-edges,reranked", "--json").json["runs"]
    assert [r["settings"]["rerank"] for r in found] == [False, True]
    assert found[1]["settings"]["reranker"] == "tiny"
    assert [r["metrics"]["hit@1"]["mean"] for r in found] == [0.0, 1.0]


def test_the_reranked_arm_is_refused_without_a_reranker_and_with_one_that_fails(
    bank: Kb, gold: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    measured = ("eval", "FINANCE", "--gold", str(gold), "--arms", "reranked", "--json")
    said = bank(*measured)
    assert (said.code, said.out, said.error["code"]) == (1, "", "run_refused")
    assert "KB_RERANK_URL" in said.error["hint"]
    monkeypatch.setenv("KB_RERANK_URL", "http://127.0.0.1:9")
    said = bank(*measured)
    assert (said.code, said.out) == (1, "")
    assert "the reranker failed for 1 of 1 questions" in said.error["message"]


def test_an_address_that_is_none_is_refused_by_name() -> None:
    assert load_settings({"KB_RERANK_URL": "http://h:1/"}).rerank_url == "http://h:1"
    with pytest.raises(Exception, match="KB_RERANK_URL"):
        load_settings({"KB_RERANK_URL": "h:1"})
