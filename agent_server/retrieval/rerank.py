"""The optional reranker: a model that reads question and passage together orders the best of the fused list anew.

`POST {url}/v1/rerank` with `{model, query, documents, top_n}`, as Jina, Cohere and llama.cpp have it; the answer is
`{"results": [{"index", "relevance_score"}]}`, or, as TEI has it, a bare list of `{"index", "score"}`. Whatever goes
wrong leaves the fused order as it is, and the result says so.
"""

import json
import math
import time
from collections.abc import Callable, Sequence
from typing import Any

from agent_server.models import Degraded
from agent_server.retrieval.candidates import RERANK_DEPTH, Reranker, Run, reranks
from agent_server.retrieval.weigh import Group

PATH = "/v1/rerank"
CONNECT_TIMEOUT_S = 1.0
MAX_ANSWER_BYTES = 1_000_000
_SHOWN_CHARS = 200


class RerankFailed(Exception):
    """The reranker did not answer, or not with one score for each passage. Never leaves this module."""


def reranked(run: Run, query: str, groups: Sequence[Group], clock: Callable[[], float] = time.monotonic) -> list[Group]:
    """The first RERANK_DEPTH groups in the reranker's order, those of equal scores in theirs, then all others.

    Without a reranker, or when it fails, the order stays; a failure is noted in `run.degraded`.
    """
    reranker = run.options.reranker
    read = groups[:RERANK_DEPTH]
    if reranker is None or not reranks(run.options) or len(read) < 2:
        return list(groups)
    started = clock()
    try:
        scores = ask(reranker, query, [f"{g.head.context}\n\n{g.head.text}" for g in read], clock)
    except RerankFailed as failure:
        run.degraded.append(Degraded("rerank", str(failure)))
        return list(groups)
    finally:
        run.timings_ms["rerank"] = round((clock() - started) * 1000, 2)
    run.counts["reranked"] = len(read)
    best_first = sorted(range(len(read)), key=lambda n: -scores[n])
    return [*(read[n] for n in best_first), *groups[RERANK_DEPTH:]]


def ask(
    reranker: Reranker, query: str, documents: Sequence[str], clock: Callable[[], float] = time.monotonic
) -> list[float]:
    """How relevant each document is to the query, in their order, greater is better. Raises RerankFailed."""
    url = reranker.url.rstrip("/") + PATH
    body = {"model": reranker.model, "query": query, "documents": list(documents), "top_n": len(documents)}
    text = _post(url, body, reranker.timeout_s, clock)
    try:
        answer = json.loads(text)
    except ValueError:
        raise RerankFailed(f"{url} answered with something that is no JSON") from None
    return scores_of(answer, len(documents))


def scores_of(answer: Any, count: int) -> list[float]:
    """The scores of an answer in the order of its documents; pure. Raises RerankFailed unless each of `count` documents
    has one finite score."""
    results = answer.get("results") if isinstance(answer, dict) else answer
    if not isinstance(results, list):
        raise RerankFailed("the reranker's answer holds no list of results")
    scores: dict[int, float] = {}
    for result in results:
        index, score = _pair(result)
        if not 0 <= index < count or index in scores:
            fault = "twice" if index in scores else f"and there are {count}"
            raise RerankFailed(f"the reranker's answer names document {index} {fault}")
        if not math.isfinite(score):
            raise RerankFailed(f"the reranker gave document {index} the score {score}")
        scores[index] = score
    if len(scores) != count:
        raise RerankFailed(f"the reranker scored {len(scores)} of {count} passages")
    return [scores[n] for n in range(count)]


def _pair(result: Any) -> tuple[int, float]:
    """Index and score of one result."""
    if isinstance(result, dict):
        index, score = result.get("index"), result.get("relevance_score", result.get("score"))
        if isinstance(index, int) and isinstance(score, int | float) and bool not in (type(index), type(score)):
            return index, float(score)
    raise RerankFailed(f"the reranker's answer holds {str(result)[:_SHOWN_CHARS]!r}, not an index with a score")


def _post(url: str, body: dict[str, Any], timeout_s: float, clock: Callable[[], float]) -> bytes:
    """The answer's body; the whole exchange takes `timeout_s` at most, also where it comes in drops."""
    # Searches without a reranker do not wait for it to load.
    import httpx  # noqa: PLC0415

    from agent_server.embedding.ollama_host import is_loopback  # noqa: PLC0415

    ends = clock() + timeout_s
    limits = httpx.Timeout(timeout_s, connect=min(CONNECT_TIMEOUT_S, timeout_s))
    late = f"{url} did not answer within {timeout_s:g} s"
    out = bytearray()
    try:
        # A proxy cannot reach this machine's loopback in our place.
        with (
            httpx.Client(timeout=limits, trust_env=not is_loopback(url)) as client,
            client.stream("POST", url, json=body) as answer,
        ):
            for piece in answer.iter_bytes():
                out += piece
                if clock() > ends:
                    raise RerankFailed(late)
                if len(out) > MAX_ANSWER_BYTES:
                    raise RerankFailed(f"{url} answered with more than {MAX_ANSWER_BYTES} bytes")
            status = answer.status_code
    except httpx.TimeoutException:
        raise RerankFailed(late) from None
    except (httpx.HTTPError, httpx.InvalidURL, ImportError, OSError, ValueError) as error:
        raise RerankFailed(f"{url}: {str(error) or type(error).__name__}") from None
    if not 200 <= status < 300:
        reason = " ".join(out.decode("utf-8", "replace").split())[:_SHOWN_CHARS]
        raise RerankFailed(f"{url} answered {status}: {reason or 'no reason given'}")
    return bytes(out)
