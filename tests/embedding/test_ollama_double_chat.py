"""The double's `/api/chat`, over real HTTP: what a client meets there, and each fault that can be switched on."""

import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.ollama_double import OllamaDouble
from tests.ollama_double.vectors import count_tokens

ASKED = [{"role": "user", "content": "when are mooring fees due"}]
SEARCH = {
    "type": "function",
    "function": {
        "name": "search",
        "description": "Searches.",
        "parameters": {
            "type": "object",
            "properties": {"query": {"type": "string"}, "top_k": {"type": ["integer", "null"]}},
            "required": ["query"],
        },
    },
}
SCHEMA = {"type": "object", "properties": {"answer": {"type": "string"}, "sure": {"type": "boolean"}}}


@pytest.fixture
def double() -> Iterator[OllamaDouble]:
    with OllamaDouble() as server:
        yield server


@pytest.fixture
def http(double: OllamaDouble) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=double.url, timeout=10, trust_env=False) as client:
        yield client


def post(http: httpx.Client, **body: Any) -> httpx.Response:
    return http.post("/api/chat", json={"model": "llama3.2", "messages": ASKED, **body})


def stream(http: httpx.Client, **body: Any) -> list[dict[str, Any]]:
    answer = post(http, **body)
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "application/x-ndjson"
    return [json.loads(line) for line in answer.text.splitlines()]


def whole(http: httpx.Client, **body: Any) -> dict[str, Any]:
    answer = post(http, stream=False, **body)
    assert answer.status_code == 200, answer.text
    return answer.json()  # type: ignore[no-any-return]


def joined(lines: list[dict[str, Any]], part: str = "content") -> str:
    return "".join(line["message"].get(part, "") for line in lines)


def calls(lines: list[dict[str, Any]]) -> list[tuple[int, Any]]:
    """(line, function) of each call, the line counted from the end."""
    return [
        (n - len(lines), call["function"])
        for n, line in enumerate(lines)
        for call in line.get("message", {}).get("tool_calls", [])
    ]


def test_a_stream_joins_to_what_an_answer_at_once_says_and_ends_with_counts(http: httpx.Client) -> None:
    lines = stream(http)
    once = whole(http)
    assert joined(lines) == once["message"]["content"] == "The double heard: when are mooring fees due"
    assert [line["done"] for line in lines] == [False] * (len(lines) - 1) + [True]
    counts = {"prompt_eval_count", "eval_count", "total_duration", "load_duration", "eval_duration"}
    assert counts <= lines[-1].keys() & once.keys()
    assert (lines[-1]["done_reason"], once["done_reason"]) == ("stop", "stop")
    assert not counts & set().union(*lines[:-1])


def test_chunks_of_the_stream_do_not_end_where_lines_do(http: httpx.Client) -> None:
    body = {"model": "llama3.2", "messages": ASKED}
    with http.stream("POST", "/api/chat", json=body) as answer:
        pieces = list(answer.iter_raw())
    assert len(pieces) > 3
    assert any(not piece.endswith(b"\n") for piece in pieces[:-1])


def test_no_messages_load_or_unload_and_answer_one_object(double: OllamaDouble, http: httpx.Client) -> None:
    loaded = post(http, messages=[])
    assert loaded.headers["content-type"].startswith("application/json")
    assert (loaded.json()["done"], loaded.json()["done_reason"]) == (True, "load")
    assert list(double.state.loaded()) == ["llama3.2:latest"]
    assert post(http, messages=[], keep_alive=0).json()["done_reason"] == "unload"
    assert double.state.loaded() == {}


@pytest.mark.parametrize(
    ("body", "status", "words"),
    [
        ({"model": ""}, 400, "model is required"),
        ({"model": "nope"}, 404, "model 'nope' not found"),
        ({"model": "nomic-embed-text"}, 400, '"nomic-embed-text" does not support chat'),
        (
            {"model": "gemma2", "tools": [SEARCH]},
            400,
            "registry.ollama.ai/library/gemma2:latest does not support tools",
        ),
        ({"think": True}, 400, '"llama3.2" does not support thinking'),
        ({"think": "very"}, 400, "invalid think value"),
        ({"top_logprobs": 21}, 400, "top_logprobs"),
        ({"format": "xml"}, 500, 'invalid format: "xml"; expected "json" or a valid JSON Schema object'),
        ({"tools": [{"function": {"parameters": {"properties": []}}}]}, 400, "cannot unmarshal array"),
        (
            {"messages": [{"role": "assistant", "tool_calls": [{"function": {"arguments": "{}"}}]}]},
            400,
            "cannot unmarshal string into Go struct field ChatRequest.messages",
        ),
        ({"options": {"num_ctx": "4096"}}, 500, "num_ctx"),
        ({"keep_alive": "-1"}, 400, "missing unit"),
        ({"model": "glm:cloud"}, 403, "cloud"),
    ],
)
def test_what_is_refused_is_refused_before_the_first_byte(
    double: OllamaDouble, http: httpx.Client, body: dict[str, Any], status: int, words: str
) -> None:
    answer = post(http, **body)
    assert (answer.status_code, words in answer.json()["error"]) == (status, True)
    assert double.state.loads == []


def test_a_tool_is_called_with_an_object_in_the_last_line_and_the_reason_stays_stop(http: httpx.Client) -> None:
    lines = stream(http, tools=[SEARCH])
    assert calls(lines) == [
        (-1, {"index": 0, "name": "search", "arguments": {"query": "when are mooring fees due", "top_k": 5}})
    ]
    assert lines[-1]["done_reason"] == "stop"
    told = [*ASKED, {"role": "tool", "content": "In spring.", "tool_name": "search"}]
    assert joined(stream(http, tools=[SEARCH], messages=told)) == "The double heard: In spring."


def test_tools_in_middle_puts_the_call_before_the_end_with_words_behind_it(
    double: OllamaDouble, http: httpx.Client
) -> None:
    double.fault(tools_in_middle=True)
    lines = stream(http, tools=[SEARCH])
    assert [line for line, _ in calls(lines)] == [-3]
    assert (joined(lines), lines[-1]["done"], lines[-3]["done"]) == ("One moment.", True, False)


def test_args_as_text_sends_a_string_where_an_object_belongs(double: OllamaDouble, http: httpx.Client) -> None:
    double.fault(args_as_text=True)
    arguments = whole(http, tools=[SEARCH])["message"]["tool_calls"][0]["function"]["arguments"]
    assert isinstance(arguments, str)
    assert json.loads(arguments) == {"query": "when are mooring fees due", "top_k": 5}


def test_unknown_tool_names_one_that_was_never_offered(double: OllamaDouble, http: httpx.Client) -> None:
    double.fault(unknown_tool=True)
    assert calls(stream(http, tools=[SEARCH]))[0][1]["name"] == "tool_that_nobody_offered"


def test_string_numbers_puts_numbers_in_quotes(double: OllamaDouble, http: httpx.Client) -> None:
    double.fault(string_numbers=True)
    assert calls(stream(http, tools=[SEARCH]))[0][1]["arguments"]["top_k"] == "5"


def test_a_thinking_model_thinks_first_unless_told_not_to(http: httpx.Client) -> None:
    lines = stream(http, model="qwen3")
    thought = joined(lines, "thinking")
    assert thought
    assert "thinking" in lines[0]["message"]
    assert joined(lines) == "The double heard: when are mooring fees due"
    assert lines[-1]["eval_count"] == count_tokens(thought) + count_tokens(joined(lines))
    assert "thinking" not in whole(http, model="qwen3", think=False)["message"]


def test_thinking_uses_up_the_tokens_of_the_answer(http: httpx.Client) -> None:
    short = whole(http, model="qwen3", options={"num_predict": 4})
    assert (short["message"]["content"], short["done_reason"]) == ("", "length")
    cut = whole(http, options={"num_predict": 2})
    assert (count_tokens(cut["message"]["content"]), cut["done_reason"]) == (2, "length")


def test_empty_after_thinking_says_nothing_after_all(double: OllamaDouble, http: httpx.Client) -> None:
    double.fault(empty_after_thinking=True)
    lines = stream(http, model="qwen3")
    assert (joined(lines), lines[-1]["done_reason"]) == ("", "length")
    assert joined(lines, "thinking")


def test_a_format_is_kept_to_and_not_json_despite_format_breaks_it(double: OllamaDouble, http: httpx.Client) -> None:
    kept = json.loads(whole(http, format=SCHEMA)["message"]["content"])
    assert kept == {"answer": "when are mooring fees due", "sure": True}
    assert isinstance(json.loads(joined(stream(http, format="json"))), dict)
    double.fault(not_json_despite_format=True)
    for broken in (joined(stream(http, format="json")), whole(http, format=SCHEMA)["message"]["content"]):
        with pytest.raises(ValueError, match="Expecting value"):
            json.loads(broken)


def test_a_long_history_loses_its_oldest_messages_without_a_word(http: httpx.Client) -> None:
    history = [
        {"role": "system", "content": "be brief"},
        {"role": "user", "content": "tide " * 30},
        {"role": "assistant", "content": "noted"},
        {"role": "user", "content": "what did I say"},
    ]
    full = whole(http, messages=history)["prompt_eval_count"]
    cut = whole(http, messages=history, options={"num_ctx": 12})["prompt_eval_count"]
    assert full == sum(count_tokens(m["content"]) for m in history)
    assert cut == full - count_tokens(history[1]["content"])


def test_cuts_prompt_reads_less_than_the_window_asked_for_and_the_count_shows_it(
    double: OllamaDouble, http: httpx.Client
) -> None:
    long = [{"role": "user", "content": "tide " * 3000}]
    assert whole(http, messages=long, options={"num_ctx": 8192})["prompt_eval_count"] == 3000
    double.fault(cuts_prompt=2048)
    assert whole(http, messages=long, options={"num_ctx": 8192})["prompt_eval_count"] == 1024


def test_mid_stream_error_is_a_line_under_200_and_a_status_at_once(double: OllamaDouble, http: httpx.Client) -> None:
    double.fault(mid_stream_error=True)
    lines = stream(http)
    assert "error" in lines[-1]
    assert not any(line.get("done") for line in lines)
    assert post(http, stream=False).status_code == 500


def test_no_done_ends_before_it_is_done(double: OllamaDouble, http: httpx.Client) -> None:
    double.fault(no_done=True)
    lines = stream(http)
    assert lines
    assert not any(line["done"] for line in lines)


@pytest.mark.parametrize(
    "switch", ["tools_in_middle", "args_as_text", "unknown_tool", "string_numbers", "mid_stream_error", "no_done"]
)
def test_a_switch_for_one_time_is_off_again_after_it(double: OllamaDouble, http: httpx.Client, switch: str) -> None:
    plain = stream(http, tools=[SEARCH])
    double.fault(times=1, **{switch: True})
    assert stream(http, tools=[SEARCH]) != plain
    assert stream(http, tools=[SEARCH]) == plain


def test_faults_below_the_answer_reach_chat_too(double: OllamaDouble, http: httpx.Client) -> None:
    double.fault(times=1, path="/api/chat", html_502=True)
    assert post(http).status_code == 502
    double.fault(times=1, path="/api/chat", reset=True)
    with pytest.raises(httpx.TransportError):
        post(http)
    double.fault(times=1, path="*", truncate_body="json")
    with pytest.raises(ValueError, match=r"Expecting|Unterminated"):
        post(http, stream=False).json()


def test_a_client_that_leaves_during_the_load_is_recorded_with_the_time(
    double: OllamaDouble, http: httpx.Client
) -> None:
    double.fault(cold=30)
    with pytest.raises(httpx.ReadTimeout):
        http.post("/api/chat", json={"model": "llama3.2", "messages": ASKED}, timeout=0.1)
    double.wait_until(lambda: double.requests[-1].gone)
    assert double.state.aborted == ["llama3.2:latest"]
    gone_at = double.requests[-1].gone_at
    assert gone_at is not None and gone_at >= double.requests[-1].at
