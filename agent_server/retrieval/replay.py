"""A recorded search run again on the bank of today: what changed, and why as far as the bank can tell."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from typing import Any

from agent_server.db import Database, fetch_all, translated
from agent_server.embedding import Embedder
from agent_server.models import Passage
from agent_server.retrieval.candidates import SearchOptions
from agent_server.retrieval.explain import explain
from agent_server.retrieval.explanation import Explained, Explanation
from agent_server.retrieval.search import NO_EMBEDDER
from agent_server.retrieval.trace import text_sha256

#: Variables of hybrid.sql that set something, where others hold the question itself.
_SET = (
    *("candidates", "keep", "fusion", "fusion_weight", "rrf_k", "ranker", "authority_weight"),
    *("code_weight", "mention_weight", "exact"),
)
_FIGURES = ("score", "dense_rank", "dense_score", "lexical_rank", "lexical_score", "via")


@dataclass(frozen=True, slots=True)
class Change:
    """A value then and now; None where there was or is none."""

    name: str
    then: Any
    now: Any


@dataclass(frozen=True, slots=True)
class PassageChange:
    """A passage of the result then or now: its ranks in it, what else differs, and why."""

    chunk_id: str
    then: int | None
    now: int | None
    figures: tuple[Change, ...]
    why: str

    @property
    def kind(self) -> str:
        if self.then is None or self.now is None:
            return "new" if self.then is None else "gone"
        return "same" if self.then == self.now and not self.figures and not self.why else "changed"


@dataclass(frozen=True, slots=True)
class Replay:
    """What differs between a recorded search and the same search now; nothing on an unchanged bank."""

    trace_id: str
    at: datetime
    query: str
    passages: tuple[PassageChange, ...]  #: all of today's, then those that are gone
    terms: tuple[Change, ...]  #: passages that hold them and their weight
    candidates: tuple[Change, ...]
    settings: tuple[Change, ...]
    degraded: tuple[Change, ...]
    diagnostic: Change | None

    @property
    def is_changed(self) -> bool:
        others = (*self.terms, *self.candidates, *self.settings, *self.degraded)
        return bool(others) or self.diagnostic is not None or any(p.kind != "same" for p in self.passages)

    def to_json(self) -> dict[str, Any]:
        out = asdict(self)
        for written, passage in zip(out["passages"], self.passages, strict=True):
            written["change"] = passage.kind
        return {**out, "changed": self.is_changed}


def replay(
    database: Database,
    collection_name: str,
    schema: str,
    recorded: Mapping[str, Any],
    embedder: Embedder | None,
    limits: SearchOptions = SearchOptions(),  # noqa: B008  frozen
) -> Replay:
    """Ask what the trace `recorded` (trace.get_trace) asked, with the settings it was asked with.

    `limits` holds the time limit and the longest question. Nothing is recorded. Raises what `search` raises.
    """
    asked = replace(
        SearchOptions.from_json(recorded["request"]),
        statement_timeout_s=limits.statement_timeout_s,
        max_query_chars=limits.max_query_chars,
        reranker=limits.reranker,
    )
    names = [p["chunk_id"] for p in recorded["passages"]]
    now = explain(
        database,
        collection_name,
        recorded["query"],
        embedder if wants_embedder(recorded) else None,
        asked,
        names,
        next_few=0,
        must_exist=False,
    )
    everything = list(dict.fromkeys([*names, *(p.chunk_id for p in now.shown)]))
    values = {"chunk_ids": everything, "sources": sorted({_source(name) for name in everything})}
    with translated(), database.owner(schema) as connection:
        rows = fetch_all(connection, "replay_passages", values)
    request, variables = recorded["request"], recorded["variables"]
    return Replay(
        trace_id=str(recorded["trace_id"]),
        at=recorded["at"],
        query=recorded["query"],
        passages=_passages(recorded, now, rows),
        terms=_differences(
            {t[0]: {"passages": t[2], "weight": t[3]} for t in recorded["terms"]},
            {t.term: {"passages": t.ndoc, "weight": round(t.idf * t.qtf, 5)} for t in now.terms},
        ),
        candidates=_differences(recorded["candidates"], now.candidates),
        settings=_differences(
            {**request["collection"], **request["session"], **_picked(variables)},
            {**now.request["collection"], **now.request["session"], **_picked(now.variables)},
        ),
        degraded=_differences(
            {d["arm"]: d["reason"] for d in recorded["degraded"] if d["arm"] != "trace"},
            {d.arm: d.reason for d in now.degraded},
        ),
        diagnostic=_changed("diagnostic", recorded["diagnostic"], now.diagnostic),
    )


def wants_embedder(recorded: Mapping[str, Any]) -> bool:
    """Whether the recorded search asked for a vector of its question, got or not."""
    without = any(d["arm"] == "dense" and d["reason"] == NO_EMBEDDER for d in recorded["degraded"])
    return recorded["request"]["fusion"] != "lexical" and not without


def _passages(
    recorded: Mapping[str, Any], now: Explanation, rows: Sequence[Mapping[str, Any]]
) -> tuple[PassageChange, ...]:
    """Today's passages in their order, then those that are gone in theirs."""
    then = {p["chunk_id"]: {**p, "rank": rank} for rank, p in enumerate(recorded["passages"], 1)}
    shown = {p.chunk_id: p for p in now.shown}
    explained = {p.chunk_id: p for p in now.passages}
    files = {row["source"]: row for row in rows}
    texts = {row["chunk_id"]: row["text_sha256"] for row in rows}
    held_by = {text_sha256(p.text): p.chunk_id for p in now.shown if p.chunk_id not in then}
    out = []
    for name in [*shown, *(n for n in then if n not in shown)]:
        was, is_ = then.get(name), shown.get(name)
        file = files.get(_source(name))
        if was is None:
            why = f"its file was read at {_time(file)}, since the search" if _is_later(file, recorded) else ""
        elif name not in texts:
            why = _why_lost(file, held_by.get(was["text_sha256"]))
        else:
            why = "its text is another" if texts[name] != was["text_sha256"] else ""
            if is_ is None and name in explained:
                why = "; ".join(filter(None, [why, _step(explained[name])]))
        figures = _figures(was, is_) if was and is_ else ()
        out.append(PassageChange(name, was["rank"] if was else None, is_.rank if is_ else None, figures, why))
    return tuple(out)


def _why_lost(file: Mapping[str, Any] | None, held_by: str | None) -> str:
    """Why a passage is not in the bank any more."""
    if held_by is not None:
        return f"its text stands in {held_by} now"
    if file is None:
        return "its file is not in the collection any more"
    if file["status"] in ("indexed", "partial"):
        return f"its file was read again at {_time(file)} and holds no such passage"
    return f"its file is {file['status']} since {_time(file)}" + (f": {file['reason']}" if file["reason"] else "")


def _step(explained: Explained) -> str:
    return f"{explained.outcome}: {explained.reason}"


def _figures(was: Mapping[str, Any], now: Passage) -> tuple[Change, ...]:
    return tuple(change for name in _FIGURES if (change := _changed(name, was[name], getattr(now, name))) is not None)


def _differences(then: Mapping[str, Any], now: Mapping[str, Any]) -> tuple[Change, ...]:
    """What differs between two mappings, by name."""
    changes = (_changed(name, then.get(name), now.get(name)) for name in sorted({*then, *now}))
    return tuple(change for change in changes if change is not None)


def _changed(name: str, then: Any, now: Any) -> Change | None:
    return None if then == now else Change(name, then, now)


def _picked(variables: Mapping[str, Any]) -> dict[str, Any]:
    return {name: variables[name] for name in _SET if name in variables}


def _is_later(file: Mapping[str, Any] | None, recorded: Mapping[str, Any]) -> bool:
    return file is not None and bool(file["indexed_at"] > recorded["at"])


def _time(file: Mapping[str, Any] | None) -> str:
    return "" if file is None else f"{file['indexed_at']:%Y-%m-%d %H:%M}"


def _source(chunk_id: str) -> str:
    return chunk_id.rpartition("::")[0]
