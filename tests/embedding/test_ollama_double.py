"""The double itself, where no test of the embedder would notice that it strays from the specification."""

import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import numpy as np
import pytest

from tests.ollama_double import OllamaDouble
from tests.ollama_double.embed import keep_alive
from tests.ollama_double.state import Refused
from tests.ollama_double.vectors import count_tokens, cut_tokens

MODEL = "nomic-embed-text"


@pytest.fixture
def double() -> Iterator[OllamaDouble]:
    with OllamaDouble() as server:
        yield server


@pytest.fixture
def http(double: OllamaDouble) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=double.url, timeout=10, trust_env=False) as client:
        yield client


def ask(http: httpx.Client, **body: Any) -> httpx.Response:
    return http.post("/api/embed", json={"model": MODEL, "input": "tides", **body})


def test_vectors_follow_shared_words_and_hang_on_weights_and_prefix(double: OllamaDouble, http: httpx.Client) -> None:
    texts = [
        "mooring fees in spring",
        "spring mooring fee",
        "wheat prices fell",
        "query: mooring fees in spring",
    ]
    a, b, c, prefixed = np.array(ask(http, input=texts).json()["embeddings"])
    assert a @ b > 0.4 > 0.2 > a @ c
    assert a @ prefixed < 0.99
    double.fault(digest_change=True)
    assert abs(a @ np.array(ask(http, input=texts[0]).json()["embeddings"][0])) < 0.3


def test_tokens_are_counted_and_cut_by_started_fours() -> None:
    assert count_tokens("a abcd abcde") == 4
    assert [cut_tokens("a abcd abcde", n) for n in range(5)] == [
        "",
        "a",
        "a abcd",
        "a abcd abcd",
        "a abcd abcde",
    ]


def test_a_cut_text_has_the_vector_of_its_head_and_the_count_shows_it(http: httpx.Client) -> None:
    cut = ask(http, input="tide " * 9, options={"num_ctx": 7}).json()
    head = ask(http, input="tide " * 5, options={"num_ctx": 7}).json()
    assert cut["embeddings"] == head["embeddings"]
    assert cut["prompt_eval_count"] == 7


def test_dimensions_cut_and_renormalise_except_in_old_dialects(double: OllamaDouble, http: httpx.Client) -> None:
    row = ask(http, dimensions=64).json()["embeddings"][0]
    assert (len(row), np.linalg.norm(row)) == (64, pytest.approx(1, abs=1e-6))
    double.fault(old="0.11")
    assert len(ask(http, dimensions=64).json()["embeddings"][0]) == 768


def test_the_type_of_the_input_is_checked_before_the_model_is_looked_up(http: httpx.Client) -> None:
    assert ask(http, model="nope", input=[1]).status_code == 400
    assert ask(http, model="nope").json()["error"] == 'model "nope" not found, try pulling it first'
    assert http.post("/api/show", json={"model": "nope"}).json()["error"] == "model 'nope:latest' not found"
    assert ask(http, model="").json()["error"] == "model '' not found"


def test_the_legacy_path_is_not_at_length_one_and_takes_its_own_field(http: httpx.Client) -> None:
    row = http.post("/api/embeddings", json={"model": MODEL, "prompt": "tides"}).json()["embedding"]
    assert np.linalg.norm(row) == pytest.approx(20, abs=1e-3)
    assert http.post("/api/embeddings", json={"model": MODEL, "input": "tides"}).json() == {"embedding": []}


def test_the_openai_path_has_its_own_shape_of_rows_and_errors(http: httpx.Client) -> None:
    good = http.post("/v1/embeddings", json={"model": MODEL, "input": ["a", "b"]}).json()
    assert [row["index"] for row in good["data"]] == [0, 1]
    short = http.post("/v1/embeddings", json={"model": MODEL, "input": "a", "dimensions": 64}).json()
    assert len(short["data"][0]["embedding"]) == 64
    bad = http.post("/v1/embeddings", json={"model": "nope", "input": "a"})
    assert (bad.status_code, bad.json()["error"]["type"]) == (404, "not_found_error")


def test_a_chat_model_is_loaded_before_it_answers_501(double: OllamaDouble, http: httpx.Client) -> None:
    assert ask(http, model="llama3.2").status_code == 501
    assert double.state.loads == ["llama3.2:latest"]


def test_503_comes_only_for_those_who_wait_for_a_load(double: OllamaDouble, http: httpx.Client) -> None:
    double.fault(cold=30, queue=1)
    with ThreadPoolExecutor(3) as pool:
        first = pool.submit(ask, http)
        double.wait_until(lambda: double.state.loading)
        assert [ask(http).status_code for _ in range(2)] == [503, 503]
        double.finish_loads()
        assert first.result().status_code == 200
    assert [ask(http).status_code for _ in range(2)] == [200, 200]


def test_a_model_leaves_when_its_time_is_over_and_ps_agrees() -> None:
    now = [0.0]
    with (
        OllamaDouble(clock=lambda: now[0]) as double,
        httpx.Client(base_url=double.url, trust_env=False) as http,
    ):
        ask(http, keep_alive=60)
        assert [m["name"] for m in http.get("/api/ps").json()["models"]] == ["nomic-embed-text:latest"]
        now[0] = 61
        assert http.get("/api/ps").json()["models"] == []
        ask(http, keep_alive=-1)
        now[0] = 1e8
        assert len(http.get("/api/ps").json()["models"]) == 1
        ask(http, keep_alive=0)
        assert http.get("/api/ps").json()["models"] == []
        assert len(double.state.loads) == 2


def test_another_num_ctx_loads_again(double: OllamaDouble, http: httpx.Client) -> None:
    for size in (512, 512, 1024):
        ask(http, options={"num_ctx": size})
    assert len(double.state.loads) == 2


@pytest.mark.parametrize(
    ("value", "seconds"),
    [(None, 300), (5, 5), (-1, -1), ("0", 0), ("1h30m", 5400), ("-1m", -60), ("1.5s", 1.5)],
)
def test_durations_are_read_as_go_does(value: object, seconds: float) -> None:
    assert keep_alive(value) == seconds


@pytest.mark.parametrize("value", ["-1", "5", "", True, "1x", []])
def test_durations_without_a_unit_and_other_types_are_refused(value: object) -> None:
    with pytest.raises(Refused) as caught:
        keep_alive(value)
    assert caught.value.status == 400


def test_bodies_that_are_no_json_are_400_and_wrong_methods_405(http: httpx.Client) -> None:
    assert http.post("/api/embed").json()["error"] == "missing request body"
    assert http.post("/api/embed", content=b'{"model": "x').json()["error"] == "unexpected EOF"
    assert "invalid character" in http.post("/api/embed", content=b"x").json()["error"]
    assert http.get("/api/embed").status_code == 405


def test_a_foreign_host_name_is_403_with_nothing(http: httpx.Client) -> None:
    answer = http.get("/api/version", headers={"host": "kb.example.com"})
    assert (answer.status_code, answer.content) == (403, b"")


def test_a_page_of_another_origin_is_403_and_programs_say_no_origin(http: httpx.Client) -> None:
    assert http.get("/api/version", headers={"origin": "https://kb.example.com"}).status_code == 403
    assert http.get("/api/version", headers={"origin": "http://localhost:3000"}).status_code == 200


def test_heads_are_answered_and_everything_else_of_its_paths_is_served(http: httpx.Client) -> None:
    assert http.get("/").text == "Ollama is running"
    assert [http.head(path).status_code for path in ("/", "/api/version", "/api/tags")] == [200] * 3
    assert http.get("/api/ps").json() == {"models": []}


def test_an_unknown_field_name_looks_like_success_on_both_paths(http: httpx.Client) -> None:
    assert http.post("/api/embed", json={"model": MODEL, "prompt": "x"}).json()["embeddings"] == []
    assert http.post("/api/embeddings", json={"model": MODEL, "input": "x"}).json() == {"embedding": []}


def test_a_batch_over_the_openai_path_may_come_back_empty_with_200(double: OllamaDouble, http: httpx.Client) -> None:
    double.fault(empty_vectors=True)
    answer = http.post("/v1/embeddings", json={"model": MODEL, "input": ["a", "b"]})
    assert (answer.status_code, [row["embedding"] for row in answer.json()["data"]]) == (200, [[], []])


@pytest.mark.parametrize(
    ("old", "status", "words"),
    [("0.3", 500, "failed to generate embedding"), ("0.5", 500, {}), ("0.11", 500, "do embedding request")],
)
def test_old_dialects_have_their_own_words(
    double: OllamaDouble, http: httpx.Client, old: str, status: int, words: object
) -> None:
    double.fault(old=old, eof_over=0)
    answer = ask(http)
    found = answer.json()["error"]
    assert answer.status_code == status
    assert found == words if isinstance(words, dict) else str(words) in found


def test_the_oldest_dialect_has_no_such_path(double: OllamaDouble, http: httpx.Client) -> None:
    double.fault(old="0.2")
    assert (ask(http).status_code, ask(http).text) == (404, "404 page not found")


def test_switches_can_be_set_over_the_wire(double: OllamaDouble, http: httpx.Client) -> None:
    assert http.post("/__double/faults", json={"status": 503, "times": 1}).status_code == 200
    assert [ask(http).status_code for _ in range(2)] == [503, 200]
    assert http.post("/__double/faults", json={"colour": 1}).status_code == 400
    http.post("/__double/faults", json={"status": 503})
    http.delete("/__double/faults")
    assert ask(http).status_code == 200
    assert "/__double/faults" not in double.paths()


def test_it_runs_as_a_process_of_its_own() -> None:
    command = [sys.executable, "-m", "tests.ollama_double"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            url = process.stdout.readline().split()[-1]
            assert httpx.get(f"{url}/api/version", trust_env=False).json() == {"version": "0.32.1"}
        finally:
            process.terminate()
