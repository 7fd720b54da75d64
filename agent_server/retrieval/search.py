"""The read path, top to bottom: question -> vector and terms -> one hybrid statement -> near copies folded ->
reranked, where a reranker is set -> expanded by edges -> passages with everything needed to cite them -> a trace of how
it came about.

An arm that cannot run makes the answer degraded, never an empty list: the result says which and why.
"""

import time
import unicodedata
import uuid
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from agent_server.catalog import Collection, get_collection
from agent_server.db import Conn, Database, execute, translated
from agent_server.embedding import Embedder, check_contract, storable
from agent_server.errors import ContractMismatch, EmbedderUnavailable, EmbeddingRefused, InvalidArgument
from agent_server.lexemes import lexical_text
from agent_server.models import Degraded, Passage, SearchResult
from agent_server.retrieval import filters, trace
from agent_server.retrieval.candidates import (
    Run,
    SearchOptions,
    VectorsReplaced,
    fusion_of,
    resolved,
    session,
    variables,
    vector_text,
)
from agent_server.retrieval.empty import why_empty
from agent_server.retrieval.expand import RELATIONS, Placed, expanded, followed
from agent_server.retrieval.rerank import reranked
from agent_server.retrieval.retrieve import retrieve
from agent_server.retrieval.shown import shown, with_anchors
from agent_server.retrieval.weigh import Group

MAX_TOP_K = 100
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
    groups = retrieve(connection, run, text, use_lexical=fusion_of(run) != "dense" or not run.vector)
    groups = reranked(run, query, groups)
    before_edges = clock()
    placed = expanded(connection, run, query, with_anchors(groups, run.options.top_k), groups)
    run.timings_ms["expand"] = _ms(clock() - before_edges)
    return Found(groups, placed, shown(connection, run, placed))


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


# -- trace ------------------------------------------------------------------------------------------------------


def request_of(run: Run) -> dict[str, Any]:
    """What was asked, with the collection's settings where none were given, and those settings: a replay asks the same
    and tells what is set otherwise by then."""
    asked = replace(resolved(run), expand=followed(run))
    collection = {name: getattr(run.collection, name) for name in _SETTINGS}
    return {**asked.to_json(), "collection": collection, "session": session(run)}


def _ms(seconds: float) -> float:
    return round(seconds * 1000, 2)
