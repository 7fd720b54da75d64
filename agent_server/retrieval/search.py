"""The read path, top to bottom: question -> vector and terms -> one hybrid statement -> near copies folded ->
passages with everything needed to cite them -> a trace of how it came about.

An arm that cannot run makes the answer degraded, never an empty list: the result says which and why.
"""

import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import psycopg

from agent_server.catalog import Collection, Fusion, get_collection
from agent_server.db import Conn, Database, fetch_all, fetch_one, translated
from agent_server.embedding import Embedder, check_contract
from agent_server.errors import ContractMismatch, EmbedderUnavailable, EmbeddingRefused, InvalidArgument
from agent_server.lexemes import LexicalText, lexical_text
from agent_server.models import Degraded, Passage, SearchResult
from agent_server.retrieval import lexical, trace, weigh
from agent_server.retrieval.lexical import LexicalQuery
from agent_server.retrieval.weigh import Candidate, Found, Group

MAX_TOP_K = 100
MAX_REFILLS = 3
#: Without a valid HNSW index (first load, rebuild) vectors are compared one by one, for no longer than this.
EXACT_SCAN_TIMEOUT_S = 2.0
#: Copies listed under `also_in`.
MAX_COPIES = 1000


@dataclass(frozen=True, slots=True)
class SearchOptions:
    """What a search can be told. None: as the collection is set."""

    top_k: int = 6
    candidates: int = 100  #: rows that each arm brings
    fusion: Fusion | None = None
    fusion_weight: float | None = None
    authority_weight: float | None = None
    lexical_ranker: str | None = None
    rrf_k: float = 60.0
    fold_near_copies: bool = True
    statement_timeout_s: float = 10.0
    max_query_chars: int = 4000


@dataclass(slots=True)
class _Run:
    """What one search has learned so far."""

    collection: Collection
    options: SearchOptions
    vector: str = ""
    question: LexicalQuery = lexical.NO_QUERY
    degraded: list[Degraded] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)
    timings_ms: dict[str, float] = field(default_factory=dict)


def search(
    database: Database,
    collection_name: str,
    query: str,
    embedder: Embedder | None,
    options: SearchOptions = SearchOptions(),  # noqa: B008  frozen
    *,
    clock: Callable[[], float] = time.perf_counter,
) -> SearchResult:
    """The passages of a collection that answer `query`, best first.

    `embedder` None searches by words alone. Raises InvalidArgument, UnknownCollection, ContractMismatch (the
    embedder is not the one the collection was made with), DatabaseUnavailable, ReaderLoginFailed.
    """
    started = clock()
    query = _checked(query, options)
    with translated(), database.owner() as connection:
        collection = get_collection(connection, collection_name)
    run = _Run(collection, options)
    fusion = options.fusion or collection.fusion
    if fusion != "lexical":
        run.vector = _embed(run, query, embedder, clock)
    text = lexical_text(query, question=True)
    before_sql = clock()
    with translated(), database.reader(collection.reader_role, collection.schema_name) as connection:
        groups = _retrieve(connection, run, text, use_lexical=fusion != "dense" or not run.vector)
        passages = _show(connection, run, groups)
        diagnostic = None if passages else _why_empty(connection, run)
    now = clock()
    run.timings_ms |= {"sql": _ms(now - before_sql), "total": _ms(now - started)}
    result = SearchResult(
        query=query,
        collection=collection.name,
        passages=passages,
        trace_id=str(uuid.uuid4()),
        timings_ms=run.timings_ms,
        degraded=tuple(run.degraded),
        diagnostic=diagnostic,
    )
    untraced = trace.write(
        database,
        collection.schema_name,
        result,
        request={"top_k": options.top_k, "fusion": fusion, "session": _session(run)},
        terms=run.question.terms,
        variables=_variables(run, excluded=[]),
        candidates=run.counts,
    )
    return result if untraced is None else replace(result, degraded=(*result.degraded, untraced))


# -- question ---------------------------------------------------------------------------------------------------


def _checked(query: str, options: SearchOptions) -> str:
    """The question without control characters; raises InvalidArgument when it cannot be searched for."""
    cleaned = "".join(c for c in query if c.isprintable() or c in "\n\t ").strip()
    if not cleaned:
        raise InvalidArgument("query", "is blank; expected a question or some words")
    if len(cleaned) > options.max_query_chars:
        raise InvalidArgument(
            "query",
            f"has {len(cleaned)} characters; at most {options.max_query_chars} are accepted",
            hint="Ask a shorter question, or raise KB_MAX_QUERY_CHARS.",
        )
    if not 1 <= options.top_k <= MAX_TOP_K:
        raise InvalidArgument("top_k", f"is {options.top_k}; expected 1 to {MAX_TOP_K}")
    return cleaned


def _embed(run: _Run, query: str, embedder: Embedder | None, clock: Callable[[], float]) -> str:
    """The question's vector as text, '' when there is none, with the reason noted."""
    started = clock()
    if embedder is None:
        run.degraded.append(Degraded("dense", "no embedder was asked for"))
        return ""
    try:
        check_contract(run.collection.contract, embedder.identity())
        vector = embedder.embed_query(query)
    except (EmbedderUnavailable, EmbeddingRefused) as error:
        run.degraded.append(Degraded("dense", error.message))
        return ""
    except ContractMismatch as error:
        raise ContractMismatch(
            f"collection {run.collection.name}: {error.message}", hint=error.hint, details=error.details
        ) from None
    finally:
        run.timings_ms["embed"] = _ms(clock() - started)
    return vector_text(vector)


def vector_text(vector: "np.ndarray[Any, np.dtype[np.float32]]") -> str:
    """pgvector's text form of a vector."""
    return "[" + ",".join(f"{x:.7g}" for x in vector.tolist()) + "]"


# -- candidates -------------------------------------------------------------------------------------------------


def _retrieve(connection: Conn, run: _Run, text: LexicalText, *, use_lexical: bool) -> list[Group]:
    """Both arms, fused and folded; an arm that Postgres refuses is left out and named."""
    connection.execute("SAVEPOINT arms")
    while True:
        try:
            return _fold_and_refill(connection, run, text, use_lexical=use_lexical)
        except psycopg.errors.QueryCanceled:
            connection.execute("ROLLBACK TO SAVEPOINT arms")
            if run.vector and not run.collection.has_hnsw and use_lexical:
                reason = f"no HNSW index stands, and comparing all vectors took over {EXACT_SCAN_TIMEOUT_S:g} s"
                run.degraded.append(Degraded("dense", reason))
                run.vector = ""
                continue
            raise
        except psycopg.DataError as error:
            connection.execute("ROLLBACK TO SAVEPOINT arms")
            if not (run.vector and use_lexical):
                raise
            run.degraded.append(Degraded("lexical", str(error).splitlines()[0]))
            run.question, use_lexical = lexical.NO_QUERY, False


def _fold_and_refill(connection: Conn, run: _Run, text: LexicalText, *, use_lexical: bool) -> list[Group]:
    """Fold near copies; while that leaves fewer than top_k, look past the paragraphs folded so far."""
    _set_session(connection, run)
    candidates: dict[int, Candidate] = {}
    groups: list[Group] = []
    excluded: set[int] = set()
    for round_number in range(MAX_REFILLS + 1):
        if use_lexical:
            run.question = _plan_lexical(connection, run, text, sorted(excluded))
            if not run.question.terms and round_number == 0:
                run.degraded.append(Degraded("lexical", "the question holds only stop words or symbols"))
        rows = _hybrid(connection, run, sorted(excluded))
        new = [c for c in rows if c.id not in candidates]
        candidates |= {c.id: c for c in new}
        ranked = sorted(candidates.values(), key=lambda c: (-c.score, c.chunk_id))
        groups = _folded(connection, run, ranked)
        hashes = {h for g in groups for h in g.hashes}
        if len(groups) >= run.options.top_k or not new or hashes <= excluded:
            break
        excluded |= hashes
        run.counts["refills"] = round_number + 1
    run.counts["folded"] = sum(len(g.folded) for g in groups)
    return groups


def _plan_lexical(connection: Conn, run: _Run, text: LexicalText, excluded: Sequence[int]) -> LexicalQuery:
    terms = run.question.terms or lexical.fetch_terms(connection, run.collection.text_search_config, text)
    # Every candidate's rank counts in the fusion: the whole list is exact, not only what is shown.
    depth = max(run.options.candidates, run.options.top_k)

    def probe(tsquery: str, bm25: str) -> float | None:
        values = {"tsquery": tsquery, "bm25": bm25, "depth": depth, "excluded": list(excluded)}
        row = fetch_one(connection, "lexical_probe", values)
        return None if row is None else float(row["score"])

    return lexical.plan(terms, probe)


def _hybrid(connection: Conn, run: _Run, excluded: Sequence[int]) -> list[Candidate]:
    rows = fetch_all(connection, "hybrid", _variables(run, excluded))
    if "dense" not in run.counts:
        run.counts["dense"] = rows[0]["dense_found"] if rows else 0
        run.counts["lexical"] = rows[0]["lexical_found"] if rows else 0
    return [_candidate(row) for row in rows]


def _variables(run: _Run, excluded: Sequence[int]) -> dict[str, Any]:
    """What hybrid.sql is run with."""
    options, collection = run.options, run.collection
    fusion = options.fusion or collection.fusion
    authority = collection.authority_weight if options.authority_weight is None else options.authority_weight
    weight = collection.fusion_weight if options.fusion_weight is None else options.fusion_weight
    return {
        "vector": run.vector,
        "tsquery": run.question.tsquery,
        "bm25": run.question.bm25,
        "candidates": max(options.candidates, options.top_k),
        "keep": 3 * options.top_k + 10,  # room for folding before the next round trip
        "fusion": "score" if fusion == "score" else "rrf",
        "rrf_k": options.rrf_k,
        "fusion_weight": weight,
        "ranker": options.lexical_ranker or collection.lexical_ranker,
        "authority_weight": authority,
        "excluded": list(excluded),
    }


def _session(run: _Run) -> dict[str, str]:
    exact = bool(run.vector) and not run.collection.has_hnsw
    timeout_s = min(run.options.statement_timeout_s, EXACT_SCAN_TIMEOUT_S if exact else 1e9)
    return {
        "hnsw.ef_search": str(min(1000, max(40, 2 * run.options.candidates))),
        "hnsw.iterative_scan": "relaxed_order",
        "statement_timeout": str(int(timeout_s * 1000)),
        "enable_seqscan": "off" if run.collection.has_hnsw else "on",
    }


def _set_session(connection: Conn, run: _Run) -> None:
    settings = _session(run)
    values = {
        "ef_search": settings["hnsw.ef_search"],
        "timeout_ms": settings["statement_timeout"],
        "seqscan": settings["enable_seqscan"],
    }
    fetch_one(connection, "session", values)


def _candidate(row: Mapping[str, Any]) -> Candidate:
    spans = row["paragraph_spans"]
    pairs = zip(spans[0::2], spans[1::2], strict=True)
    return Candidate(
        id=row["id"],
        chunk_id=row["chunk_id"],
        score=float(row["score"]),
        dense_rank=row["dense_rank"],
        dense_score=_float(row["dense_score"]),
        lexical_rank=row["lexical_rank"],
        lexical_score=_float(row["lexical_score"]),
        authority=row["authority"],
        text=row["text"],
        context=row["context"],
        paragraphs=dict(zip(row["paragraph_hashes"], pairs, strict=True)),
    )


# -- near copies ------------------------------------------------------------------------------------------------


def _folded(connection: Conn, run: _Run, ranked: Sequence[Candidate]) -> list[Group]:
    shared = weigh.shared_paragraphs(ranked) if run.options.fold_near_copies else {}
    if not shared:
        return [Group(c) for c in ranked]
    weights = {t.lexeme: t.weight for t in run.question.terms}
    found = _found(connection, run, [c for c in ranked if c.id in shared], shared, list(weights))
    groups = weigh.fold(ranked, found, weights)
    for group in groups:
        _promote(connection, run, group, found, weights)
    return groups


def _found(
    connection: Conn,
    run: _Run,
    candidates: Sequence[Candidate],
    shared: Mapping[int, frozenset[int]],
    lexemes: Sequence[str],
) -> dict[int, Found]:
    """Where the question's lexemes stand in each candidate: in shared paragraphs, or in the rest."""
    if not lexemes:
        return {}
    texts = [lexical_text(part) for c in candidates for part in weigh.split_text(c, shared[c.id])]
    values = {
        "config": run.collection.text_search_config,
        "words": [t.words for t in texts],
        "extras": [t.extras_tsvector for t in texts],
        "lexemes": list(lexemes),
    }
    by_position = {r["position"]: frozenset(r["found"]) for r in fetch_all(connection, "novelty", values)}
    empty: frozenset[str] = frozenset()
    return {
        c.id: Found(by_position.get(2 * n + 1, empty), by_position.get(2 * n + 2, empty))
        for n, c in enumerate(candidates)
    }


def _promote(
    connection: Conn, run: _Run, group: Group, found: Mapping[int, Found], weights: Mapping[str, float]
) -> None:
    """Let the copy of highest authority stand for a folded group, where the paragraph is all that matched."""
    head = group.head
    if not group.hashes or head.id not in found or weigh.novelty(found[head.id], weights) > weigh.NOVELTY:
        return
    holders = _near_copies(connection, group)
    best = next((h for h in holders if h["canonical"]), None)
    if best is None or best["authority"] <= head.authority:
        return
    authority_weight = float(_variables(run, [])["authority_weight"])
    folded = next((c for c in group.folded if c.id == best["id"]), None)
    group.folded.append(head)
    if folded is not None:
        group.folded.remove(folded)
        group.head = replace(folded, score=max(folded.score, head.score))
        return
    # Neither arm brought it among its candidates: it has no rank of its own, and takes the group's place.
    group.head = replace(
        head,
        id=best["id"],
        chunk_id=best["chunk_id"],
        score=head.score + authority_weight * (best["authority"] - head.authority),
        dense_rank=None,
        lexical_rank=None,
        dense_score=None,
        lexical_score=None,
        authority=best["authority"],
    )


def _near_copies(connection: Conn, group: Group) -> list[dict[str, Any]]:
    """All passages that hold a folded paragraph whole (not just its last sentence), best authority first."""
    values = {"hashes": sorted(group.hashes), "limit": MAX_COPIES}
    rows = fetch_all(connection, "near_copies", values)
    longest: dict[int, int] = {}
    for row in rows:
        longest[row["hash"]] = max(longest.get(row["hash"], 0), row["span"])
    whole = [r for r in rows if r["span"] >= weigh.COVERAGE * longest[r["hash"]]]
    return sorted(whole, key=lambda r: -r["authority"])


# -- result -----------------------------------------------------------------------------------------------------


def _show(connection: Conn, run: _Run, groups: Sequence[Group]) -> tuple[Passage, ...]:
    """The first top_k groups as passages, each arm's first hit among them."""
    shown = _with_anchors(groups, run.options.top_k)
    if not shown:
        return ()
    ids = [g.head.id for g in shown]
    values = {"ids": ids, "vector": run.vector, "bm25": run.question.bm25}
    rows = {row["id"]: row for row in fetch_all(connection, "passages", values)}
    also: dict[int, list[str]] = {}
    for row in fetch_all(connection, "copies", {"ids": ids}):
        also.setdefault(row["id"], []).append(row["chunk_id"])
    for group in shown:
        if group.hashes:
            near = [r["chunk_id"] for r in _near_copies(connection, group)]
            also.setdefault(group.head.id, []).extend(near)
    return tuple(
        _passage(rank, group.head, rows[group.head.id], also.get(group.head.id, []), run)
        for rank, group in enumerate(shown, 1)
    )


def _with_anchors(groups: Sequence[Group], top_k: int) -> list[Group]:
    """The best `top_k`, where each arm's first hit replaces the last ones if it would fall out."""
    shown, left = list(groups[:top_k]), groups[top_k:]
    if top_k < 2:  # noqa: PLR2004  one place cannot hold two anchors
        return shown
    for outsider in (g for g in left if _is_anchor(g)):
        for at in range(len(shown) - 1, -1, -1):
            if not _is_anchor(shown[at]):
                del shown[at]
                shown.append(outsider)
                break
    return shown


def _is_anchor(group: Group) -> bool:
    return any(1 in (c.dense_rank, c.lexical_rank) for c in (group.head, *group.folded))


def _passage(rank: int, head: Candidate, row: Mapping[str, Any], also_in: Sequence[str], run: _Run) -> Passage:
    others = tuple(dict.fromkeys(c for c in also_in if c != row["chunk_id"]))[:MAX_COPIES]
    lexical_score = _float(row["lexical_score"]) if run.question.terms else None
    return Passage(
        rank=rank,
        chunk_id=row["chunk_id"],
        source=row["source"],
        title=row["title"],
        chunk_index=row["chunk_index"],
        page=row["page_first"],
        heading=tuple(row["heading_path"]),
        text=row["text"],
        context=row["context"],
        score=round(head.score, 6),
        dense_rank=head.dense_rank,
        dense_score=_rounded(row["dense_score"]),
        lexical_rank=head.lexical_rank,
        lexical_score=_rounded(lexical_score),
        authority=round(row["authority"], 4),
        also_in=others,
    )


def _why_empty(connection: Conn, run: _Run) -> str:
    """What emptied the result, in one sentence."""
    row = fetch_one(connection, "empty_reason") or {}
    name = run.collection.name
    if not row["chunks"]:
        return f"Collection {name} is empty: `kb ingest {name} PATH` fills it."
    if not row["searched"]:
        return f"All {row['retired']} passages of {name} are retired."
    reasons = []
    if not run.question.terms:
        reasons.append("the question holds only stop words or symbols")
    elif run.counts.get("lexical", 0) == 0:
        reasons.append(f"none of its {len(run.question.terms)} terms stands in the {row['searched']} passages")
    if not run.vector:
        reasons.append("the dense arm did not run")
    elif not row["with_vector"]:
        reasons.append("no passage has a vector")
    return f"Nothing found in {name}: " + "; ".join(reasons or ["no passage is near the question"]) + "."


def _ms(seconds: float) -> float:
    return round(seconds * 1000, 2)


def _float(value: Any) -> float | None:
    return None if value is None else float(value)


def _rounded(value: Any) -> float | None:
    return None if value is None else round(float(value), 5)
