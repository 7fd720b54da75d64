"""A small `/api/chat`: enough to test how a client reads answers; what is said means nothing."""

import socket
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tests.ollama_double import embed
from tests.ollama_double.state import Refused, State
from tests.ollama_double.vectors import count_tokens

_AT = "2026-08-21T10:00:00.123456789Z"


@dataclass(frozen=True, slots=True)
class Answer:
    """The objects of an answer: NDJSON lines when streamed, else one."""

    lines: list[dict[str, Any]]
    streamed: bool


def chat(state: State, body: dict[str, Any], connection: socket.socket, send: Callable[[Answer], None]) -> None:
    """Answer with the last message's text, or with a call of the first tool offered until a tool has answered."""
    name = body.get("model") or ""
    if not name:
        raise Refused(400, "model is required")
    model = embed.find(state, name, "model '{}' not found")
    if "completion" not in model.capabilities:
        raise Refused(400, f'"{name}" does not support chat')
    tools = body.get("tools") or []
    if tools and "tools" not in model.capabilities:
        raise Refused(400, f"{model.name} does not support tools")
    if body.get("think") and "thinking" not in model.capabilities:
        raise Refused(400, f'"{name}" does not support thinking')
    messages = body.get("messages") or []
    for message in messages:
        for call in message.get("tool_calls") or []:
            if isinstance(call.get("function", {}).get("arguments"), str):
                raise Refused(
                    400,
                    "json: cannot unmarshal string into Go struct field ChatRequest.messages.tool_calls.function."
                    "arguments of type api.ToolCallFunctionArguments",
                )
    keep = embed.keep_alive(body.get("keep_alive"))
    state.runner(model.name, embed.num_ctx(body.get("options")), connection)
    state.keep(model.name, keep)
    head = {"model": name, "created_at": _AT}
    if not messages:
        reason = "unload" if keep == 0 else "load"
        said: dict[str, Any] = {"role": "assistant", "content": ""}
        send(Answer([{**head, "message": said, "done_reason": reason, "done": True}], streamed=False))
        return
    message = _say(state, messages, tools)
    counts = {
        "total_duration": 40_000_000,
        "prompt_eval_count": sum(count_tokens(str(m.get("content") or "")) for m in messages),
        "eval_count": max(1, count_tokens(message["content"])),
    }
    last = {**head, "done_reason": "stop", "done": True, **counts}
    if body.get("stream") is False:
        send(Answer([{**last, "message": message}], streamed=False))
        return
    send(Answer(_stream(state, head, message, last), streamed=True))


def _say(state: State, messages: list[dict[str, Any]], tools: list[dict[str, Any]]) -> dict[str, Any]:
    newest = messages[-1]
    if not tools or str(newest.get("role")).lower() == "tool":
        return {"role": "assistant", "content": f"The double heard: {newest.get('content') or ''}"}
    function = tools[0].get("function", {})
    wanted = (function.get("parameters") or {}).get("required") or []
    arguments: Any = {key: newest.get("content") or "" for key in wanted}
    if state.take("args_as_text", "/api/chat"):
        arguments = str(arguments).replace("'", '"')
    call = {
        "id": "call_d0ub1e00",
        "function": {"index": 0, "name": function.get("name"), "arguments": arguments},
    }
    return {"role": "assistant", "content": "", "tool_calls": [call]}


def _stream(state: State, head: dict[str, Any], message: dict[str, Any], last: dict[str, Any]) -> list[dict[str, Any]]:
    words = message["content"].split(" ") if message["content"] else []
    lines: list[dict[str, Any]] = [
        {**head, "message": {"role": "assistant", "content": word if n == 0 else f" {word}"}, "done": False}
        for n, word in enumerate(words)
    ]
    if state.take("mid_stream_error", "/api/chat"):
        return [*lines[:2], {"error": "an error was encountered while running the model: unexpected EOF"}]
    if state.take("no_done", "/api/chat"):
        return lines
    return [*lines, {**last, "message": {**message, "content": ""}}]
