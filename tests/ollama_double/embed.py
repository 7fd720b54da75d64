"""`/api/embed`, `/api/embeddings` and `/v1/embeddings`: the order of checks decides which error wins."""

import base64
import math
import socket
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tests.ollama_double.models import Model, full_name
from tests.ollama_double.state import Refused, State
from tests.ollama_double.vectors import count_tokens, cut_tokens, hashed_vector

#: Seconds the server keeps a model when nobody says; `num_ctx` when nobody says, on a machine without a GPU.
DEFAULT_KEEP_S = 300.0
DEFAULT_NUM_CTX = 4096
_UNITS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}

EmbedWith = Callable[[Sequence[str]], ArrayLike]


def keep_alive(value: Any) -> float:
    """Seconds, negative for ever. Raises Refused 400 as Go's decoder does."""
    if value is None:
        return DEFAULT_KEEP_S
    if isinstance(value, bool):
        raise Refused(400, "Unsupported type: 'bool'")
    if isinstance(value, int | float):
        return float(value)
    if not isinstance(value, str):
        raise Refused(400, "Unsupported type")
    text, sign = (value[1:], -1.0) if value.startswith("-") else (value, 1.0)
    if text == "0":
        return 0.0
    total, number, rest = 0.0, "", text
    if not text:
        raise Refused(400, f'time: invalid duration "{value}"')
    while rest:
        number = ""
        while rest and (rest[0].isdigit() or rest[0] == "."):
            number, rest = number + rest[0], rest[1:]
        unit = next((u for u in sorted(_UNITS, key=len, reverse=True) if rest.startswith(u)), None)
        if not number:
            raise Refused(400, f'time: invalid duration "{value}"')
        if unit is None:
            raise Refused(400, f'time: missing unit in duration "{value}"')
        total, rest = total + float(number) * _UNITS[unit], rest[len(unit) :]
    return sign * total


def num_ctx(options: Any) -> int:
    value = (options or {}).get("num_ctx")
    if value is None:
        return DEFAULT_NUM_CTX
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise Refused(500, 'option "num_ctx" must be of type integer')
    return int(value)


def find(state: State, name: Any, not_found: str) -> Model:
    if not isinstance(name, str) or any(c.isspace() for c in name):
        raise Refused(400, "invalid model name")
    if name.endswith((":cloud", "-cloud")):
        raise Refused(403, "ollama cloud is disabled: remote inference is unavailable")
    model = state.models.get(full_name(name)) if name else None
    if model is None:
        raise Refused(404, not_found.format(name))
    return model


def embed(state: State, body: dict[str, Any], connection: socket.socket, with_: EmbedWith | None) -> dict[str, Any]:
    """POST /api/embed."""
    old = str(state.peek("old") or "")
    name, given = body.get("model", ""), body.get("input")
    keep = keep_alive(body.get("keep_alive"))
    dimensions = body.get("dimensions") or 0
    if not isinstance(dimensions, int):
        raise Refused(400, "json: cannot unmarshal string into Go struct field EmbedRequest.dimensions of type int")
    if old == "0.3" and not given:
        raise Refused(400, "missing input")
    inputs = [given] if isinstance(given, str) and given else given or []
    if not isinstance(inputs, list) or not all(isinstance(x, str) for x in inputs):
        raise Refused(400, "invalid input type")
    model = find(state, name, 'model "{}" not found, try pulling it first' if name else "model '{}' not found")
    size = num_ctx(body.get("options"))
    slot, waited = state.runner(model.name, size, connection)
    head: dict[str, Any] = {"model": name, "embeddings": []}
    try:
        if not inputs:
            return {**head, "total_duration": 14_000_000, **({"load_duration": 12_000_000} if waited else {})}
        if not model.embeds:
            raise Refused(501, "This server does not support embeddings. Start it with `--embeddings`")
        texts = [_fit(text, model, size, body.get("truncate") is not False, old) for text in inputs]
        with_lock = state.use(slot, connection)
        try:
            for text in texts:
                _runner_faults(state, model, text, old)
            rows = vectors(model, texts, with_)
        finally:
            with_lock.release()
        if 0 < dimensions < model.dimensions and not old:
            rows = unit(rows[:, :dimensions])
        counted = sum(count_tokens(t) + model.special_tokens for t in texts)
        return {
            **head,
            "embeddings": _shape_faults(state, as_json(rows)),
            "total_duration": 20_000_000,
            "load_duration": 12_000_000 if waited else 1_000_000,
            "prompt_eval_count": counted,
        }
    finally:
        state.keep(model.name, keep)


def legacy(state: State, body: dict[str, Any], connection: socket.socket, with_: EmbedWith | None) -> dict[str, Any]:
    """POST /api/embeddings: one text, and vectors that are not of length 1."""
    if not body.get("model"):
        raise Refused(400, "model is required")
    model = find(state, body["model"], 'model "{}" not found, try pulling it first')
    keep, size = keep_alive(body.get("keep_alive")), num_ctx(body.get("options"))
    state.runner(model.name, size, connection)
    state.keep(model.name, keep)
    prompt = body.get("prompt") or ""
    if not prompt:
        return {"embedding": []}
    if not model.embeds:
        raise Refused(500, "this model does not support embeddings")
    text = _fit(prompt, model, size, True, "")
    return {"embedding": as_json(vectors(model, [text], with_) * 20)[0]}


def openai(state: State, body: dict[str, Any], connection: socket.socket, with_: EmbedWith | None) -> dict[str, Any]:
    """POST /v1/embeddings."""
    given = body.get("input")
    if given is None or given == []:
        raise Refused(400, "invalid input")
    form = body.get("encoding_format") or "float"
    if form not in ("float", "base64"):
        raise Refused(400, "invalid encoding_format")
    inputs = [given] if isinstance(given, str) else given
    asked = {"model": body.get("model", ""), "input": inputs, "dimensions": body.get("dimensions")}
    inner = embed(state, asked, connection, with_)
    data = [
        {
            "object": "embedding",
            "embedding": row if form == "float" else base64.b64encode(np.array(row, "<f4").tobytes()).decode("ascii"),
            "index": n,
        }
        for n, row in enumerate(inner["embeddings"])
    ]
    count = inner.get("prompt_eval_count", 0)
    usage = {"prompt_tokens": count, "total_tokens": count}
    return {"object": "list", "data": data, "model": body.get("model"), "usage": usage}


def vectors(model: Model, texts: Sequence[str], with_: EmbedWith | None) -> NDArray[np.float32]:
    """Unit rows (n, d)."""
    if with_ is not None:
        return unit(np.asarray(with_(texts), np.float32))
    return np.stack([hashed_vector(model.digest, text, model.dimensions) for text in texts])


def unit(rows: NDArray[np.float32]) -> NDArray[np.float32]:
    scaled: NDArray[np.float32] = rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)
    return scaled.astype(np.float32)


def as_json(rows: NDArray[np.float32]) -> list[list[Any]]:
    """float32 as the server writes it: up to nine significant digits."""
    return [[float(f"{x:.9g}") for x in row] for row in rows]


def _fit(text: str, model: Model, size: int, truncate: bool, old: str) -> str:
    limit = min(size, model.context) - model.special_tokens
    if not text and model.special_tokens == 0:
        raise Refused(400, "input exceeds maximum context length and cannot be truncated further")
    if count_tokens(text) <= limit:
        return text
    if not truncate:
        raise Refused(
            400,
            "input length exceeds maximum context length" if old else "the input length exceeds the context length",
        )
    if limit <= 0:
        raise Refused(400, "input after truncation exceeds maximum context length")
    return cut_tokens(text, limit)


def _runner_faults(state: State, model: Model, text: str, old: str) -> None:
    over = state.peek("eof_over")
    if (over is not None and count_tokens(text) > over) or state.take("crash_once", "/api/embed"):
        state.unload(model.name)
        raise Refused(
            500,
            _in_words_of(old, "EOF", 'do embedding request: Post "http://127.0.0.1:41235/embedding": EOF'),
        )
    marker = state.peek("nan_text")
    if marker is not None and marker in text:
        if old:
            words = "failed to encode response: json: unsupported value: NaN"
            raise Refused(500, _in_words_of(old, words, words))
        raise Refused(400, "embedding contains NaN or Inf values")


def _in_words_of(old: str, now: str, then: str) -> str:
    """The error text of the dialect; an empty one becomes `{"error":{}}`."""
    return {"": now, "0.5": "", "0.3": "failed to generate embedding"}.get(old, then)


def _shape_faults(state: State, rows: list[list[Any]]) -> list[list[Any]]:
    """Answers with 200 that hold something else than was asked."""
    path = "/api/embed"
    if state.take("short_batch", path):
        rows = rows[:-1]
    if state.take("empty_vectors", path):
        rows = [[] for _ in rows]
    if state.take("swap_order", path):
        rows = rows[::-1]
    if wrong := state.take("wrong_dim", path):
        rows = [row[: wrong if wrong > 1 else len(row) // 2] for row in rows]
    if (value := state.take("zero_vector", path)) is not None:
        # A number names the row, True means all.
        rows = [[0.0] * len(r) if value is True or n == value else r for n, r in enumerate(rows)]
    if (value := state.take("null_vector", path)) is not None:
        rows = [[None, *r[1:]] if value is True or n == value else r for n, r in enumerate(rows)]
    assert all(x is None or math.isfinite(x) for row in rows for x in row)
    return rows
