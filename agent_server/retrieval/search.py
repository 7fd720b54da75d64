"""The read path, top to bottom: question -> vector and terms -> one hybrid statement -> near copies folded ->
reranked, where a reranker is set -> expanded by edges -> passages with everything needed to cite them -> a trace of how
it came about.

An arm that cannot run makes the answer degraded, never an empty list: the result says which and why.
"""

import time
import unicodedata
import uuid
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import psycopg

from agent_server.catalog import Collection, get_collection
from agent_server.db import Conn, Database, execute, fetch_all, fetch_one, translated
from agent_server.embedding import Embedder, check_contract, storable
from agent_server.errors import ContractMismatch, EmbedderUnavailable, EmbeddingRefused, InvalidArgument
from agent_server.lexemes import LexicalText, lexical_text
from agent_server.models import Degraded, Passage, SearchResult
from agent_server.retrieval import filters, lexical, near, trace
from agent_server.retrieval.candidates import (
    Run,
    SearchOptions,
    VectorsReplaced,
    fusion_of,
    hybrid,
    plan_lexical,
    resolved,
    session,
    set_session,
    variables,
    vector_text,
)
from agent_server.retrieval.expand import RELATIONS, Placed, expanded, followed
from agent_server.retrieval.rerank import reranked
from agent_server.retrieval.weigh import Candidate, Group

MAX_TOP_K = 100
MAX_REFILLS = 3
NO_EMBEDDER = "no embedder was asked for"
#: What a collection is set to that decides which passages a question brings: kept with the trace.
_SETTINGS = (
    *("text_search_config", "avg_length", "has_hnsw", "model", "model_digest"),
    *("fusion", "fusion_weight", "authority_weight", "lexical_ranker", "expand_cites", "expand_defines"),
)


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
    query = checked(query, options)
    with suppress(VectorsReplaced):
        return _search(database, collection_name, query, embedder, options, clock)
    return _search(database, collection_name, query, embedder, options, clock)  # with the contract of now


def _search(
    database: Database,
    collection_name: str,
    query: str,
    embedder: Embedder | None,
    options: SearchOptions,
    clock: Callable[[], float],
) -> SearchResult:
    started = clock()
    with translated(), database.owner() as connection:
        collection = get_collection(connection, collection_name)
    run = begun(collection, query, embedder, options, clock)
    before_sql = clock()
    with translated(), database.reader(collection.reader_role, collection.schema_name) as connection:
        passages = found(connection, run, query, clock).passages
        diagnostic = None if passages else why_empty(connection, run)
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
        request=request_of(run),
        terms=run.lexical.terms,
        variables=variables(run),
        candidates=run.counts,
    )
    return result if untraced is None else replace(result, degraded=(*result.degraded, untraced))


@dataclass(frozen=True, slots=True)
class Found:
    """What a search found: every group of candidates best first, the merged list, and that list as passages."""

    groups: list[Group]
    placed: list[Placed]
    passages: tuple[Passage, ...]


def begun(
    collection: Collection,
    query: str,
    embedder: Embedder | None,
    options: SearchOptions,
    clock: Callable[[], float] = time.perf_counter,
) -> Run:
    """A search that has its question's vector, as far as it wants and gets one; raises ContractMismatch."""
    run = Run(collection, options)
    if fusion_of(run) != "lexical":
        run.vector = _embed(run, query, embedder, clock)
    return run


def found(connection: Conn, run: Run, query: str, clock: Callable[[], float] = time.perf_counter) -> Found:
    """All that happens in the database, at the beginning of a reader's transaction."""
    execute(connection, "steady")
    text = lexical_text(query, question=True)
    groups = _retrieve(connection, run, text, use_lexical=fusion_of(run) != "dense" or not run.vector)
    groups = reranked(run, query, groups)
    before_edges = clock()
    placed = expanded(connection, run, query, with_anchors(groups, run.options.top_k), groups)
    run.timings_ms["expand"] = _ms(clock() - before_edges)
    return Found(groups, placed, _show(connection, run, placed))


# -- question ---------------------------------------------------------------------------------------------------


def checked(query: str, options: SearchOptions) -> str:
    """The question without control characters; raises InvalidArgument when it cannot be searched for."""
    # Spaces of every kind part words; what has no width at all (a soft hyphen) does not.
    cleaned = "".join(
        c if c.isprintable() or c == "\n" else "" if unicodedata.category(c) == "Cf" else " " for c in query
    ).strip()
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
    if options.hops not in (1, 2):
        raise InvalidArgument("hops", f"is {options.hops}; expected 1 or 2")
    if unknown := set(options.expand or ()) - set(RELATIONS):
        raise InvalidArgument("expand", f"names {sorted(unknown)}; expected some of {list(RELATIONS)}")
    filters.checked(options.filters)
    return cleaned


def _embed(run: Run, query: str, embedder: Embedder | None, clock: Callable[[], float]) -> str:
    """The question's vector as text, '' when there is none, with the reason noted."""
    started = clock()
    if embedder is None:
        run.degraded.append(Degraded("dense", NO_EMBEDDER))
        return ""
    try:
        vector = embedder.embed_query(query)  # first: it keeps to the search's time limit and learns the identity
        check_contract(run.collection.contract, embedder.identity())
    except (EmbedderUnavailable, EmbeddingRefused) as error:
        run.degraded.append(Degraded("dense", error.message))
        return ""
    except ContractMismatch as error:
        raise ContractMismatch(
            f"collection {run.collection.name}: {error.message}", hint=error.hint, details=error.details
        ) from None
    finally:
        run.timings_ms["embed"] = _ms(clock() - started)
    if not storable(vector[None])[0]:  # to it every passage would be as near as any other, or nearer than all
        run.degraded.append(Degraded("dense", "the embedder gave a vector without direction, or with numbers missing"))
        return ""
    return vector_text(vector)


# -- candidates -------------------------------------------------------------------------------------------------


def _retrieve(connection: Conn, run: Run, text: LexicalText, *, use_lexical: bool) -> list[Group]:
    """Both arms, fused and folded; an arm that Postgres refuses is left out and named."""
    connection.execute("SAVEPOINT arms")
    while True:
        try:
            return _fold_and_refill(connection, run, text, use_lexical=use_lexical)
        except psycopg.errors.QueryCanceled:
            connection.execute("ROLLBACK TO SAVEPOINT arms")
            if run.vector and (run.exact or not run.collection.has_hnsw) and use_lexical:
                run.degraded.append(Degraded("dense", _too_slow(run)))
                run.vector = ""
                continue
            raise
        except (psycopg.DataError, psycopg.InternalError, psycopg.errors.ProgramLimitExceeded) as error:
            connection.execute("ROLLBACK TO SAVEPOINT arms")
            if not (run.vector and use_lexical):
                raise
            run.degraded.append(Degraded("lexical", str(error).splitlines()[0]))
            run.lexical, use_lexical = lexical.NO_QUERY, False


def _fold_and_refill(connection: Conn, run: Run, text: LexicalText, *, use_lexical: bool) -> list[Group]:
    """Fold near copies; while that leaves fewer than top_k, look past the paragraphs folded so far.

    Each round's statement passes over them and ranks what it finds behind what earlier rounds found.
    """
    run.counts, run.excluded, run.rounds = {}, [], []  # nothing of an attempt that was given up
    run.dense_before = run.lexical_before = 0
    set_session(connection, run)
    _apply_filters(connection, run)
    candidates: dict[int, Candidate] = {}
    groups: list[Group] = []
    for round_number in range(MAX_REFILLS + 1):
        if use_lexical:
            run.lexical = plan_lexical(connection, run, text)
            if not run.lexical.terms and round_number == 0:
                run.degraded.append(Degraded("lexical", "the question holds only stop words or symbols"))
        new = [c for c in hybrid(connection, run) if c.id not in candidates]
        candidates |= {c.id: c for c in new}
        ranked = sorted(candidates.values(), key=lambda c: (-c.score, c.chunk_id))
        groups = near.folded(connection, run, ranked)
        folded = sorted({h for g in groups for h in g.hashes})
        if len(groups) >= run.options.top_k or not new or set(folded) <= set(run.excluded):
            break
        if round_number < MAX_REFILLS:
            run.excluded = folded
            run.dense_before, run.lexical_before = run.counts["dense"], run.counts["lexical"]
            run.counts["refills"] = round_number + 1
    run.counts["folded"] = sum(len(g.folded) for g in groups)
    return groups


def _too_slow(run: Run) -> str:
    limit_s = int(session(run)["statement_timeout"]) / 1000
    why = "the filter leaves few" if run.collection.has_hnsw else "no HNSW index stands"
    return f"{why}, and comparing their vectors one by one took over {limit_s:g} s"


def _apply_filters(connection: Conn, run: Run) -> None:
    """Know what the filter leaves: few passages are searched exactly."""
    run.filters = filters.variables(connection, run.collection.text_search_config, run.options.filters)
    if run.filters:
        run.exact, run.counts["filter"] = filters.leaves_few(connection, run.filters)
        set_session(connection, run)


# -- result -----------------------------------------------------------------------------------------------------


def _show(connection: Conn, run: Run, placed: Sequence[Placed]) -> tuple[Passage, ...]:
    """Hits and what edges added, as passages."""
    if not placed:
        return ()
    ids = [p.id for p in placed]
    values = {"ids": ids, "vector": run.vector, "bm25": run.lexical.bm25}
    rows = {row["id"]: row for row in fetch_all(connection, "passages", values)}
    also: dict[int, list[str]] = {}
    for row in fetch_all(connection, "copies", {"ids": ids}):
        also.setdefault(row["id"], []).append(row["chunk_id"])
    for group in (p.group for p in placed if p.group is not None):
        if group.hashes:
            also.setdefault(group.head.id, []).extend(r["chunk_id"] for r in near.near_copies(connection, group))
    return tuple(_passage(rank, p, rows[p.id], also.get(p.id, []), run) for rank, p in enumerate(placed, 1))


def with_anchors(groups: Sequence[Group], top_k: int) -> list[Group]:
    """The best `top_k`, where each arm's first hit replaces the last ones if it would fall out."""
    shown, left = list(groups[:top_k]), groups[top_k:]
    if top_k < 2:
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


def _passage(rank: int, placed: Placed, row: Mapping[str, Any], also_in: Sequence[str], run: Run) -> Passage:
    head = placed.group.head if placed.group else placed.candidate  # None: an edge led to what no arm found
    others = tuple(dict.fromkeys(c for c in also_in if c != row["chunk_id"]))[: near.MAX_COPIES]
    lexical_score = row["lexical_score"] if run.lexical.terms else None
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
        score=round(head.score, 6) if head else 0.0,
        dense_rank=head.dense_rank if head else None,
        dense_score=_rounded(row["dense_score"]),
        lexical_rank=head.lexical_rank if head else None,
        lexical_score=_rounded(lexical_score),
        authority=round(row["authority"], 4),
        also_in=others,
        via=placed.via,
        edge=placed.edge,
    )


def why_empty(connection: Conn, run: Run) -> str:
    """What emptied the result, in one sentence."""
    row = fetch_one(connection, "empty_reason") or {}
    name = run.collection.name
    if not row["chunks"]:
        return f"Collection {name} is empty: `kb ingest {name} PATH` fills it."
    if not row["searched"]:
        return f"All {row['retired']} passages of {name} are retired."
    missing = {d.arm: d.reason for d in run.degraded}
    reasons = []
    if run.filters:
        left = filters.count_left(connection, run.filters)
        share = f"{left or 'none'} of {row['chunks'] - row['retired']} passages"
        reasons.append(f"the filter ({run.options.filters}) leaves {share}{_each_alone(connection, run)}")
        if not left:
            return f"Nothing found in {name}: {reasons[0]}."
    if run.lexical.terms:
        where = "them" if run.filters else f"the {row['searched']} passages"
        reasons.append(f"none of its {len(run.lexical.terms)} terms stands in {where}")
    elif "lexical" in missing:
        reasons.append(missing["lexical"])
    if not run.vector:
        reasons.append(f"the dense arm did not run ({missing.get('dense', 'the search is by words alone')})")
    elif not row["with_vector"]:
        reasons.append("no passage has a vector")
    return f"Nothing found in {name}: " + "; ".join(reasons or ["no passage is near the question"]) + "."


def _each_alone(connection: Conn, run: Run) -> str:
    """What each of several conditions leaves by itself: ` (source x/*: none, heading fees: 3)`."""
    conditions = run.options.filters.each()
    if len(conditions) < 2:
        return ""
    config = run.collection.text_search_config
    told = []
    for condition in conditions:
        left = filters.count_left(connection, filters.variables(connection, config, condition))
        told.append(f"{condition}: {left or 'none'}")
    return f" (alone: {', '.join(told)})"


def request_of(run: Run) -> dict[str, Any]:
    """What was asked, with the collection's settings where none were given, and those settings: a replay asks the same
    and tells what is set otherwise by then."""
    asked = replace(resolved(run), expand=followed(run))
    collection = {name: getattr(run.collection, name) for name in _SETTINGS}
    return {**asked.to_json(), "collection": collection, "session": session(run)}


def _ms(seconds: float) -> float:
    return round(seconds * 1000, 2)


def _rounded(value: Any) -> float | None:
    return None if value is None else round(float(value), 5)
