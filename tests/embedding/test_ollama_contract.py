"""What this program relies on in Ollama's API: run against the double, and a real server at KB_TEST_OLLAMA_URL.

A difference is a fault of the double. A real server needs `ollama pull nomic-embed-text` beforehand.
"""

import json
import os
from collections.abc import Iterator
from typing import Any

import httpx
import numpy as np
import pytest

from agent_server.embedding.ollama import OllamaEmbedder
from agent_server.embedding.ollama_host import parse_host
from tests.ollama_double import OllamaDouble

MODEL = "nomic-embed-text"
CHAT = "llama3.2"  #: a real server without it skips what is about chat
REAL = os.environ.get("KB_TEST_OLLAMA_URL", "")
SERVERS = [
    "double",
    pytest.param("real", marks=pytest.mark.skipif(not REAL, reason="KB_TEST_OLLAMA_URL is not set")),
]


@pytest.fixture(params=SERVERS, scope="module")
def server(request: pytest.FixtureRequest) -> Iterator[str]:
    if request.param == "real":
        yield parse_host(REAL)
        return
    with OllamaDouble() as double:
        yield double.url


@pytest.fixture(scope="module")
def http(server: str) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=server, timeout=300, trust_env=False) as client:
        yield client


def ask(http: httpx.Client, **body: Any) -> httpx.Response:
    return http.post("/api/embed", json={"model": MODEL, **body})


def test_rows_come_in_order_and_at_length_one(http: httpx.Client) -> None:
    both = ask(http, input=["search_document: tides", "search_document: wheat"]).json()["embeddings"]
    alone = ask(http, input="search_document: wheat").json()["embeddings"]
    assert np.linalg.norm(both, axis=1) == pytest.approx([1, 1], abs=1e-4)
    assert np.dot(both[1], alone[0]) == pytest.approx(1, abs=1e-3)
    assert np.dot(both[0], alone[0]) < 0.99


def test_empty_input_loads_and_answers_no_rows(http: httpx.Client) -> None:
    for given in ([], "", None):
        answer = ask(http, input=given)
        assert (answer.status_code, answer.json()["embeddings"]) == (200, [])


def test_the_old_field_name_looks_like_success_without_rows(http: httpx.Client) -> None:
    answer = ask(http, prompt="tides")
    assert (answer.status_code, answer.json()["embeddings"]) == (200, [])


def test_too_long_a_text_is_refused_by_its_length_only_without_truncate(http: httpx.Client) -> None:
    long = "harbour " * 6000
    refused = ask(http, input=long, truncate=False, options={"num_ctx": 2048})
    assert refused.status_code == 400
    assert "context length" in refused.json()["error"]
    assert ask(http, input=long, options={"num_ctx": 2048}).status_code == 200


def test_an_unknown_model_is_404_in_json_and_an_unknown_path_404_in_text(http: httpx.Client) -> None:
    unknown = http.post("/api/embed", json={"model": "no-such-model-here", "input": "x"})
    assert unknown.status_code == 404
    assert "not found" in unknown.json()["error"]
    path = http.post("/api/nothing", json={})
    assert path.status_code == 404
    assert "json" not in path.headers.get("content-type", "")


def test_input_of_another_type_is_400(http: httpx.Client) -> None:
    assert ask(http, input=[1, 2]).status_code == 400
    assert ask(http, input={"a": 1}).status_code == 400


def test_keep_alive_is_a_number_or_has_a_unit(http: httpx.Client) -> None:
    assert ask(http, input="x", keep_alive="-1").status_code == 400
    assert ask(http, input="x", keep_alive=True).status_code == 400
    assert ask(http, input="x", keep_alive="5m").status_code == 200
    assert ask(http, input="x", keep_alive=300).status_code == 200


def test_tags_and_show_tell_digest_width_and_ability(http: httpx.Client) -> None:
    names = {m["name"]: m["digest"] for m in http.get("/api/tags").json()["models"]}
    assert len(names[f"{MODEL}:latest"]) == 64
    show = http.post("/api/show", json={"model": MODEL}).json()
    family = show["model_info"]["general.architecture"]
    assert show["model_info"][f"{family}.embedding_length"] == 768
    assert show["model_info"][f"{family}.context_length"] >= 2048
    assert "embedding" in show["capabilities"]


def test_unknown_fields_content_type_and_trailing_text_are_ignored(http: httpx.Client) -> None:
    raw = b'{"MODEL":"nomic-embed-text","input":"tides","colour":"red"} trailing'
    answer = http.post("/api/embed", content=raw, headers={"content-type": "text/plain"})
    assert answer.status_code == 200
    assert len(answer.json()["embeddings"]) == 1


def test_a_lone_surrogate_is_read_as_a_replacement_character(http: httpx.Client) -> None:
    raw = b'{"model":"nomic-embed-text","input":"tide \\ud800 table"}'
    assert http.post("/api/embed", content=raw).status_code == 200


def test_a_wrong_option_type_is_500(http: httpx.Client) -> None:
    answer = ask(http, input="x", options={"num_ctx": "2048"})
    assert answer.status_code == 500
    assert "num_ctx" in answer.json()["error"]


def test_the_embedder_works_against_it(server: str) -> None:
    embedder = OllamaEmbedder(server, MODEL, query_timeout_s=30)
    try:
        assert embedder.identity().dimensions == 768
        embedder.warm_up()
        done = embedder.embed_passages(["mooring fees are due in spring", " ", "wheat prices fell. " * 2000])
        assert dict(done.failures) == {1: "blank"}
        assert done.split == {2}
        question = embedder.embed_query("when are mooring fees due?")
        assert done.vectors[0] @ question > done.vectors[2] @ question
    finally:
        embedder.close()


@pytest.fixture
def chat(http: httpx.Client) -> httpx.Client:
    if f"{CHAT}:latest" not in {m["name"] for m in http.get("/api/tags").json()["models"]}:
        pytest.skip(f"the server has no {CHAT}")
    return http


def say(http: httpx.Client, **body: Any) -> httpx.Response:
    asked = [{"role": "user", "content": "Say the word tide."}]
    return http.post("/api/chat", json={"model": CHAT, "messages": asked, "options": {"num_predict": 8}, **body})


def test_chat_streams_objects_line_by_line_and_the_last_is_done(chat: httpx.Client) -> None:
    answer = say(chat)
    assert answer.headers["content-type"].startswith("application/x-ndjson")
    lines = [json.loads(line) for line in answer.text.splitlines()]
    assert [line["done"] for line in lines] == [False] * (len(lines) - 1) + [True]
    assert lines[-1]["done_reason"] in ("stop", "length")
    assert lines[-1]["prompt_eval_count"] > 0
    assert all(line["message"]["role"] == "assistant" for line in lines)


def test_chat_at_once_is_one_object_and_no_messages_only_load(chat: httpx.Client) -> None:
    once = say(chat, stream=False).json()
    assert (once["done"], isinstance(once["message"]["content"], str)) == (True, True)
    loaded = say(chat, messages=[])
    assert loaded.headers["content-type"].startswith("application/json")
    assert (loaded.json()["done"], loaded.json()["done_reason"]) == (True, "load")


def test_chat_refuses_with_a_status_and_words(chat: httpx.Client) -> None:
    assert say(chat, model="").status_code == 400
    unknown = say(chat, model="no-such-model-here")
    assert (unknown.status_code, "not found" in unknown.json()["error"]) == (404, True)
    assert say(chat, model=MODEL).status_code == 400
    as_text = [{"role": "assistant", "content": "", "tool_calls": [{"function": {"name": "x", "arguments": "{}"}}]}]
    assert say(chat, messages=as_text).status_code == 400
    assert say(chat, options={"num_ctx": "2048"}).status_code == 500
