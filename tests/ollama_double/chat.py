"""`/api/chat`: enough to test how a client reads answers and what it sends; what is said means nothing.

An answer repeats the last message, calls the first tool offered until a tool has answered, or fills in the schema asked
for. Thinking models think first.
"""

import json
import socket
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tests.ollama_double import embed
from tests.ollama_double.models import Model, full_name
from tests.ollama_double.state import Refused, State
from tests.ollama_double.vectors import count_tokens, cut_tokens

PATH = "/api/chat"
_AT = "2026-08-21T10:00:00.123456789Z"
_THOUGHT = "The double looks at the question and thinks that it has one."
_EFFORTS = ("low", "medium", "high", "max")
_DEAD = "an error was encountered while running the model: unexpected EOF"
_GO_FIELD = "into Go struct field ChatRequest."
Message = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Answer:
    """The objects of an answer: NDJSON lines when streamed, else one."""

    lines: list[dict[str, Any]]
    streamed: bool


@dataclass(frozen=True, slots=True)
class _Said:
    """What the model says before it is put into lines."""

    thinking: str
    content: str
    calls: list[dict[str, Any]]
    reason: str


def chat(state: State, body: dict[str, Any], connection: socket.socket, send: Callable[[Answer], None]) -> None:
    """POST /api/chat."""
    _check_types(body)
    name = body.get("model") or ""
    if not name:
        raise Refused(400, "model is required")
    model = embed.find(state, name, "model '{}' not found")
    streamed = body.get("stream") is not False
    _check(name, model, body)
    keep, options = embed.keep_alive(body.get("keep_alive")), body.get("options") or {}
    size = embed.num_ctx(options)
    state.runner(model.name, size, connection)
    state.keep(model.name, keep)
    head = {"model": name, "created_at": _AT}
    messages = [{**m, "role": str(m.get("role", "")).lower()} for m in body.get("messages") or []]
    if not messages:
        reason = "unload" if keep == 0 else "load"
        said = {"role": "assistant", "content": ""}
        send(Answer([{**head, "message": said, "done_reason": reason, "done": True}], streamed=False))
        return
    low = state.take("cuts_prompt", PATH)
    read = _fitting(messages, min(size, low or size))
    answer = _say(state, model, body, read)
    counts = {
        "total_duration": 40_000_000,
        "load_duration": 1_000_000,
        "prompt_eval_count": sum(count_tokens(str(m.get("content") or "")) for m in read),
        "prompt_eval_duration": 9_000_000,
        "eval_count": count_tokens(answer.thinking) + count_tokens(answer.content),
        "eval_duration": 30_000_000,
    }
    last = {**head, "done": True, "done_reason": answer.reason, **{k: n for k, n in counts.items() if n}}
    if not streamed:
        if state.take("mid_stream_error", PATH):
            raise Refused(500, _DEAD)
        send(Answer([{**last, "message": _message(answer.thinking, answer.content, answer.calls)}], streamed=False))
        return
    send(Answer(_stream(state, head, answer, last), streamed=True))


def _check_types(body: dict[str, Any]) -> None:
    """What Go's decoder refuses before anything is looked at."""
    for tool in body.get("tools") or []:
        if isinstance(((tool.get("function") or {}).get("parameters") or {}).get("properties"), list):
            raise Refused(400, f"json: cannot unmarshal array {_GO_FIELD}tools.function.parameters.properties")
    for message in body.get("messages") or []:
        for call in message.get("tool_calls") or []:
            if isinstance(call.get("function", {}).get("arguments"), str):
                field = "messages.tool_calls.function.arguments of type api.ToolCallFunctionArguments"
                raise Refused(400, f"json: cannot unmarshal string {_GO_FIELD}{field}")


def _check(name: str, model: Model, body: dict[str, Any]) -> None:
    """What is refused before the model is loaded."""
    think = body.get("think")
    if think is not None and not isinstance(think, bool) and think not in _EFFORTS:
        raise Refused(400, f'invalid think value: "{think}" (must be "high", "medium", "low", "max", true, or false)')
    logprobs = body.get("top_logprobs") or 0
    if not isinstance(logprobs, int) or not 0 <= logprobs <= 20:
        raise Refused(400, "top_logprobs must be between 0 and 20")
    if "completion" not in model.capabilities:
        raise Refused(400, f'"{name}" does not support chat')
    if body.get("tools") and "tools" not in model.capabilities:
        raise Refused(400, f"registry.ollama.ai/library/{full_name(name)} does not support tools")
    if think and "thinking" not in model.capabilities:
        raise Refused(400, f'"{name}" does not support thinking')
    form = body.get("format")
    if form not in (None, "", "json") and not isinstance(form, dict):
        raise Refused(500, f'invalid format: {json.dumps(form)}; expected "json" or a valid JSON Schema object')


def _fitting(messages: list[Message], size: int) -> list[Message]:
    """The messages that the model sees: the oldest go first, but neither the system's nor the last, which is cut to
    half the window when it is too long alone. Nobody is told."""
    kept = list(messages)
    while sum(count_tokens(str(m.get("content") or "")) for m in kept) > size:
        at = next((n for n, m in enumerate(kept[:-1]) if m["role"] != "system"), None)
        if at is None:
            return [*kept[:-1], {**kept[-1], "content": cut_tokens(str(kept[-1].get("content") or ""), size // 2)}]
        del kept[at]
    return kept


def _say(state: State, model: Model, body: dict[str, Any], messages: list[Message]) -> _Said:
    thinks = "thinking" in model.capabilities and body.get("think") is not False
    thinking = _THOUGHT if thinks else ""
    room = (body.get("options") or {}).get("num_predict")
    if state.take("empty_after_thinking", PATH):
        return _Said(_THOUGHT, "", [], "length")
    newest = messages[-1]
    heard = str(newest.get("content") or "")
    calls: list[dict[str, Any]] = []
    if body.get("tools") and newest["role"] != "tool":
        calls, content = [_call(state, body["tools"][0].get("function") or {}, heard)], ""
    elif body.get("format"):
        form = body["format"]
        content = json.dumps(_fill(form, heard) if isinstance(form, dict) else {"heard": heard}, ensure_ascii=False)
        if state.take("not_json_despite_format", PATH):
            content = f"Here is what you asked for: {content[:-1]}"
    else:
        content = f"The double heard: {heard}"
    if isinstance(room, int) and room > 0 and count_tokens(thinking) + count_tokens(content) > room:
        # Thinking counts too, and comes first.
        left = max(room - count_tokens(thinking), 0)
        return _Said(cut_tokens(thinking, room), cut_tokens(content, left) if left else "", calls, "length")
    return _Said(thinking, content, calls, "stop")


def _call(state: State, function: dict[str, Any], heard: str) -> dict[str, Any]:
    schema = function.get("parameters") or {}
    known = {**{key: {"type": "string"} for key in schema.get("required") or []}, **(schema.get("properties") or {})}
    arguments: Any = {key: _fill(about, heard) for key, about in known.items()}
    if state.take("string_numbers", PATH):
        numbers = {k: str(v) for k, v in arguments.items() if isinstance(v, int | float) and not isinstance(v, bool)}
        arguments = {**arguments, **numbers}
    if state.take("args_as_text", PATH):
        arguments = json.dumps(arguments, ensure_ascii=False)
    name = "tool_that_nobody_offered" if state.take("unknown_tool", PATH) else function.get("name")
    return {"id": "call_d0ub1e00", "function": {"index": 0, "name": name, "arguments": arguments}}


def _fill(schema: Any, heard: str) -> Any:
    """A value that fits a JSON schema."""
    about = schema if isinstance(schema, dict) else {}
    if about.get("enum"):
        return about["enum"][0]
    kind = about.get("type")
    kind = kind[0] if isinstance(kind, list) and kind else kind
    if kind == "object" or "properties" in about:
        return {key: _fill(inner, heard) for key, inner in (about.get("properties") or {}).items()}
    simple: dict[Any, Any] = {"integer": 5, "number": 5, "boolean": True, "null": None}
    if kind == "array":
        return [_fill(about.get("items"), heard)]
    return simple.get(kind, heard)


def _message(thinking: str, content: str, calls: list[dict[str, Any]]) -> Message:
    """An assistant's message; what is empty is left out, but not `content`."""
    message: Message = {"role": "assistant", "content": content}
    if thinking:
        message["thinking"] = thinking
    if calls:
        message["tool_calls"] = calls
    return message


def _stream(state: State, head: dict[str, Any], answer: _Said, last: dict[str, Any]) -> list[dict[str, Any]]:
    lines = [{**head, "message": _message(word, "", []), "done": False} for word in _words(answer.thinking)]
    lines += [{**head, "message": _message("", word, []), "done": False} for word in _words(answer.content)]
    at_the_end = answer.calls
    if answer.calls and state.take("tools_in_middle", PATH):
        lines.append({**head, "message": _message("", "", answer.calls), "done": False})
        lines.append({**head, "message": _message("", "One moment.", []), "done": False})
        at_the_end = []
    if state.take("mid_stream_error", PATH):
        return [*lines[:2], {"error": _DEAD}]
    if state.take("no_done", PATH):
        return lines
    return [*lines, {**last, "message": _message("", "", at_the_end)}]


def _words(text: str) -> list[str]:
    """The text in pieces that join to it."""
    return [word if n == 0 else f" {word}" for n, word in enumerate(text.split(" "))] if text else []
