"""The main job over real HTTP to the Ollama double, through the program's own commands."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent_server.settings import Settings
from tests.doors.conftest import Kb, environment
from tests.doors.conftest import plain_kb as _plain_kb
from tests.ollama_double import OllamaDouble

plain_kb = _plain_kb


@pytest.fixture
def double() -> Iterator[OllamaDouble]:
    with OllamaDouble() as running:
        yield running


@pytest.fixture
def kb(plain_kb: Kb, settings: Settings, double: OllamaDouble, monkeypatch: pytest.MonkeyPatch) -> Kb:
    for key, value in environment(settings).items():
        monkeypatch.setenv(key, value)
    monkeypatch.setenv("KB_EMBEDDER", "ollama")
    monkeypatch.setenv("KB_OLLAMA_URL", double.url)
    return plain_kb


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    root = tmp_path / "docs"
    root.mkdir()
    (root / "rule.md").write_text("# Refunds\n\nRefunds for NW-4021 are accepted within 30 days of the letter.\n")
    (root / "bus.md").write_text("# Buses\n\nThe bus leaves the depot before sunrise on school days.\n")
    return root


def _embedded(double: OllamaDouble) -> list[str]:
    sent: list[str] = []
    for request in double.requests:
        if request.path == "/api/embed":
            inputs = (request.body or {}).get("input") or []
            sent += [inputs] if isinstance(inputs, str) else inputs
    return sent


def test_documents_become_answers_through_ollama(kb: Kb, double: OllamaDouble, folder: Path) -> None:
    assert kb("collection", "create", "SHOP").code == 0
    assert kb("collection", "show", "SHOP", "--json").json["dimensions"] == 768
    assert kb("ingest", "SHOP", str(folder)).code == 0
    texts = _embedded(double)
    assert len(texts) == 2
    assert all(text.startswith("search_document: ") for text in texts)
    found = kb("search", "SHOP", "refund for NW-4021", "--json").json
    assert _embedded(double)[-1] == "search_query: refund for NW-4021"
    assert found["passages"][0]["source"] == "rule.md"
    assert found["passages"][0]["dense_rank"] is not None
    assert found["degraded"] == []


def test_a_second_run_asks_ollama_for_no_vector_and_a_changed_line_for_one(
    kb: Kb, double: OllamaDouble, folder: Path
) -> None:
    kb("collection", "create", "SHOP")
    kb("ingest", "SHOP", str(folder))
    before = len(_embedded(double))
    again = kb("ingest", "SHOP", str(folder), "--json").json
    assert again["counts"]["unchanged"] == 2
    assert len(_embedded(double)) == before
    (folder / "rule.md").write_text("# Refunds\n\nRefunds for NW-4021 are accepted within 45 days of the letter.\n")
    kb("ingest", "SHOP", str(folder))
    assert [t for t in _embedded(double)[before:] if "45 days" in t] == _embedded(double)[before:]
    assert len(_embedded(double)) == before + 1
    assert not [p for p in kb("search", "SHOP", "refund 30 days", "--json").json["passages"] if "30" in p["text"]]


def test_with_ollama_stopped_words_answer_in_time_and_say_so(kb: Kb, double: OllamaDouble, folder: Path) -> None:
    kb("collection", "create", "SHOP")
    kb("ingest", "SHOP", str(folder))
    double.close()
    started = time.monotonic()
    said = kb("search", "SHOP", "refund NW-4021", "--json")
    # The bound is the product's promise to a person who waits, not a measurement of this machine.
    assert time.monotonic() - started < 2.0
    assert said.code == 0
    assert said.json["passages"][0]["source"] == "rule.md"
    assert [d["arm"] for d in said.json["degraded"]] == ["dense"]


def test_while_ollama_loads_for_a_minute_words_answer_in_time_and_say_so(
    kb: Kb, double: OllamaDouble, folder: Path
) -> None:
    kb("collection", "create", "SHOP")
    kb("ingest", "SHOP", str(folder))
    double.fault(path="*", evict=True, cold=60)
    started = time.monotonic()
    said = kb("search", "SHOP", "refund NW-4021", "--json")
    assert time.monotonic() - started < 2.0
    assert said.code == 0
    assert said.json["passages"][0]["source"] == "rule.md"
    assert [d["arm"] for d in said.json["degraded"]] == ["dense"]
    double.finish_loads()


def test_a_collection_of_another_model_is_refused_with_the_cure(
    kb: Kb, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kb("collection", "create", "SHOP")
    kb("ingest", "SHOP", str(folder))
    monkeypatch.setenv("KB_EMBED_MODEL", "mxbai-embed-large")
    for command in (("search", "SHOP", "refund"), ("ingest", "SHOP", str(folder))):
        said = kb(*command, "--json")
        assert (said.code, said.out, said.error["code"]) == (1, "", "contract_mismatch")
        assert "mxbai-embed-large" in said.error["message"]


def test_text_poisonous_to_the_model_costs_one_passage(kb: Kb, double: OllamaDouble, folder: Path) -> None:
    (folder / "long.md").write_text(
        "# Long\n\n" + "Ordinary words. " * 60 + "\n\n## Bad\n\n" + "POISON stands here. " * 30
    )
    double.fault(nan_text="POISON")
    kb("collection", "create", "SHOP")
    said = kb("ingest", "SHOP", str(folder), "--json")
    assert said.code == 3
    states = {f["source"]: f["status"] for f in said.json["files"]}
    assert states == {"bus.md": "indexed", "long.md": "partial", "rule.md": "indexed"}
    assert kb("search", "SHOP", "POISON", "--lexical", "--json").json["passages"][0]["source"] == "long.md"
