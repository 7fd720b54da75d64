"""Recall of the dense arm: questions asked through the HNSW index, and by comparing every vector."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from statistics import median

import psycopg

from agent_server.catalog import Collection
from agent_server.db import Database, execute, fetch_one, translated
from agent_server.retrieval import filters
from agent_server.retrieval.candidates import Run, SearchOptions, hybrid, session, set_session
from agent_server.retrieval.filters import NO_FILTERS, Filters

K = 10
#: Longest that comparing all vectors may take; a search has less time.
EXACT_TIMEOUT_S = 60.0
#: Similarities of one pair of vectors are the same number whichever way they were found.
_SAME = 1e-9


@dataclass(frozen=True, slots=True)
class Question:
    """The vector of a question (pgvector's text) and the filter it is asked with."""

    vector: str
    filters: Filters = NO_FILTERS


@dataclass(frozen=True, slots=True)
class Exact:
    """What is true of a question: how many of the K nearest there are, how similar the last is, and milliseconds."""

    question: Question
    count: int
    least: float
    ms: float


@dataclass(frozen=True, slots=True)
class Measured:
    """Recall@K over some questions: the mean share of the K nearest that the index brought among its first K.

    A passage as similar as the last of the nearest counts as one of them (as ann-benchmarks judges). `starved` counts
    questions that the index brought too little for, so that vectors were compared one by one after all. Times are
    medians in milliseconds.
    """

    searches: int
    ef_search: int
    recall: float
    index_ms: float
    exact_ms: float
    starved: int


@dataclass(frozen=True, slots=True)
class _Found:
    similarities: tuple[float, ...]  #: best first, at most K
    ms: float
    ef_search: int  #: in force; says nothing where vectors were compared one by one
    was_exact: bool


def truth(
    database: Database,
    collection: Collection,
    questions: Sequence[Question],
    *,
    limit_s: float,
    clock: Callable[[], float] = time.perf_counter,
) -> tuple[list[Exact], int]:
    """The truth about each question, and how many questions the index has no part in: their filter leaves so little
    that searches compare vectors one by one.

    Stops after `limit_s` seconds, or at a question that takes over EXACT_TIMEOUT_S, with what it has. Raises what a
    search raises when the database does not answer.
    """
    known: list[Exact] = []
    without_index = 0
    ends = clock() + limit_s
    for question in questions:
        if clock() > ends:
            break
        try:
            found = _ask(database, collection, question, clock, exact=True)
        except psycopg.errors.QueryCanceled:  # so many vectors that none can be compared one by one
            break
        if found is None or not found.similarities:
            without_index += 1
        else:
            known.append(Exact(question, len(found.similarities), found.similarities[-1], found.ms))
    return known, without_index


def measure(
    database: Database,
    collection: Collection,
    known: Sequence[Exact],
    *,
    clock: Callable[[], float] = time.perf_counter,
) -> Measured | None:
    """Ask the questions of `known` (all with a filter, or all without) as a search with the settings of `collection`
    asks them. None where the index has no part in any of them."""
    found = [_ask(database, collection, exact.question, clock, exact=False) for exact in known]
    asked = [(exact, f) for exact, f in zip(known, found, strict=True) if f is not None]
    if not asked:
        return None
    shares = [sum(s >= exact.least - _SAME for s in f.similarities) / exact.count for exact, f in asked]
    return Measured(
        searches=len(asked),
        ef_search=max(f.ef_search for _, f in asked),
        recall=sum(shares) / len(shares),
        index_ms=round(median(f.ms for _, f in asked), 2),
        exact_ms=round(median(exact.ms for exact, _ in asked), 2),
        starved=sum(f.was_exact for _, f in asked),
    )


def _ask(
    database: Database, collection: Collection, question: Question, clock: Callable[[], float], *, exact: bool
) -> _Found | None:
    """The dense arm's first K, as a search brings them; None where its filter has the search compare vectors one by
    one, so that there is no index to be judged."""
    # Authority would change the order in which few candidates are kept.
    options = SearchOptions(top_k=K, fusion="dense", authority_weight=0.0, filters=question.filters)
    if exact:
        options = replace(options, statement_timeout_s=EXACT_TIMEOUT_S)
    run = Run(collection, options, vector=question.vector)
    with translated(), database.reader(collection.reader_role, collection.schema_name) as connection:
        execute(connection, "steady")
        set_session(connection, run)
        run.filters = filters.variables(connection, collection.text_search_config, question.filters)
        if run.filters:
            if filters.leaves_few(connection, run.filters)[0]:
                return None
            set_session(connection, run)
        settings = session(run)
        if exact:  # without the limits that keep a search on its indexes
            run.exact = True
            fetch_one(connection, "session", {
                "ef_search": settings["hnsw.ef_search"],
                "iterative_scan": settings["hnsw.iterative_scan"],
                "timeout_ms": settings["statement_timeout"],
                "seqscan": "on",
            })  # fmt: skip
        started = clock()
        candidates = hybrid(connection, run)
        ms = (clock() - started) * 1000
    near = sorted((c.dense_rank, c.dense_score) for c in candidates if c.dense_rank and c.dense_score is not None)
    return _Found(tuple(s for _, s in near[:K]), ms, int(settings["hnsw.ef_search"]), run.exact)
