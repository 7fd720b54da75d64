"""Candidates for a question: what one search knows while it runs, and the hybrid statement with its variables."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

from agent_server.catalog import Collection, Fusion
from agent_server.db import Conn, fetch_all, fetch_one
from agent_server.embedding import Vectors
from agent_server.errors import CollectionBusy
from agent_server.lexemes import LexicalText
from agent_server.models import Degraded
from agent_server.retrieval.filters import NO_FILTERS, Filters
from agent_server.retrieval.lexical import NO_QUERY, LexicalQuery, fetch_terms, plan
from agent_server.retrieval.weigh import Candidate
from agent_server.settings import Settings

#: What the rank among passages that hold a code of the question counts, against 1 for each arm's rank, times the share
#: of the question that the code makes up: all of it in "NW-4021", little in a sentence that mentions a year.
CODE_WEIGHT = 3.0
#: What of it a passage gets that mentions a code which has an entry elsewhere (a row, a heading, a definition). One
#: that holds much more of the question's other words than the entry does gets all of it, the entry half the difference.
MENTION_WEIGHT = 0.5
#: How much of the fused list a reranker reads.
RERANK_DEPTH = 30
#: Without a valid HNSW index (first load, rebuild) vectors are compared one by one, for no longer than this.
EXACT_SCAN_TIMEOUT_S = 2.0
MAX_EF_SEARCH = 1000  # pgvector's limit
LEAST_EF_SEARCH = 40  # pgvector's default


_LIMITS = ("statement_timeout_s", "max_query_chars", "reranker")


@dataclass(frozen=True, slots=True)
class Reranker:
    """Where a reranker answers (the address before /v1/rerank), which of its models is asked, and for how long."""

    url: str
    model: str = ""
    timeout_s: float = 2.0


def reranker_of(settings: Settings) -> Reranker | None:
    """The reranker that the settings name, None without KB_RERANK_URL."""
    if settings.rerank_url is None:
        return None
    return Reranker(settings.rerank_url, settings.rerank_model, settings.rerank_timeout_s)


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
    filters: Filters = NO_FILTERS
    expand: tuple[str, ...] | None = None  #: relations whose edges are followed: 'cites', 'defines'; () for none
    hops: int = 1  #: 2: also what a cited passage cites
    rerank: bool = True  #: False: without the reranker, where there is one
    reranker: Reranker | None = None
    statement_timeout_s: float = 10.0
    max_query_chars: int = 4000

    def to_json(self) -> dict[str, Any]:
        """What is asked for, by name; limits, which say nothing of the result, are left out."""
        out = {f.name: getattr(self, f.name) for f in fields(self) if f.name not in _LIMITS}
        with_model = {"reranker": self.reranker.model} if self.reranker is not None and self.rerank else {}
        return {**out, "filters": self.filters.to_json(), **with_model}

    @classmethod
    def from_json(cls, asked: Mapping[str, Any]) -> "SearchOptions":
        """The options that `to_json` wrote; what is not among them is as by default, and other keys are passed over."""
        names = {f.name for f in fields(cls)} - {*_LIMITS, "filters"}
        given: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in asked.items() if k in names}
        return cls(filters=Filters.from_json(asked.get("filters", {})), **given)


class VectorsReplaced(CollectionBusy):
    """`kb reembed` switched the model after this search had read the contract."""


@dataclass(slots=True)
class Run:
    """What one search has learned so far. `lexical` is the question as the lexical arm asks it, `filters` are the
    variables of the conditions in use; `exact` compares vectors one by one instead of asking the dense index."""

    collection: Collection
    options: SearchOptions
    vector: str = ""
    lexical: LexicalQuery = NO_QUERY
    filters: Mapping[str, Any] = field(default_factory=dict)
    exact: bool = False
    #: paragraphs folded in earlier rounds, and how many candidates those rounds brought: ranks go on behind them
    excluded: list[int] = field(default_factory=list)
    dense_before: int = 0
    lexical_before: int = 0
    rounds: list[dict[str, Any]] = field(default_factory=list)  #: what hybrid.sql was run with, round by round
    degraded: list[Degraded] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)
    timings_ms: dict[str, float] = field(default_factory=dict)


def reranks(options: SearchOptions) -> bool:
    """Whether a reranker is asked."""
    return options.rerank and options.reranker is not None


def fusion_of(run: Run) -> Fusion:
    """How this search fuses its lists."""
    return run.options.fusion or run.collection.fusion


def resolved(run: Run) -> SearchOptions:
    """The options with the collection's settings where none were given."""
    options, collection = run.options, run.collection
    return replace(
        options,
        fusion=fusion_of(run),
        fusion_weight=collection.fusion_weight if options.fusion_weight is None else options.fusion_weight,
        authority_weight=collection.authority_weight if options.authority_weight is None else options.authority_weight,
        lexical_ranker=options.lexical_ranker or collection.lexical_ranker,
        rerank=reranks(options),
    )


def vector_text(vector: Vectors) -> str:
    """pgvector's text form of a vector."""
    return "[" + ",".join(f"{x:.7g}" for x in vector.tolist()) + "]"


def plan_lexical(connection: Conn, run: Run, text: LexicalText) -> LexicalQuery:
    """The lexical arm's query, exact for every candidate that it brings in this round."""
    terms = run.lexical.terms or fetch_terms(connection, run.collection.text_search_config, text)
    # Every candidate's rank counts in the fusion: the whole list is exact, not only what is shown.
    depth = wanted_rows(run.options)

    def probe(tsquery: str, bm25: str) -> float | None:
        values = {"tsquery": tsquery, "bm25": bm25, "depth": depth, "excluded": run.excluded, **_filtering(run)}
        row = fetch_one(connection, "lexical_probe", values)
        return None if row is None else float(row["score"])

    return plan(terms, probe)


def hybrid(connection: Conn, run: Run) -> list[Candidate]:
    """This round's candidates of both arms, fused, best first.

    Where the dense index brings fewer than asked for while more passages could be found (a filter, many deleted rows),
    vectors are compared one by one from then on.
    """
    rows = fetch_all(connection, "hybrid", variables(run))
    if _starved(connection, run, rows[0]["dense_found"] if rows else 0):
        run.exact = True
        rows = fetch_all(connection, "hybrid", variables(run))
    run.rounds.append(variables(run))
    for arm in ("dense", "lexical"):
        run.counts[arm] = run.counts.get(arm, 0) + (rows[0][f"{arm}_found"] if rows else 0)
    return [_candidate(row) for row in rows]


def _starved(connection: Conn, run: Run, found: int) -> bool:
    """Whether the dense index brought too few candidates although there are more.

    Without a filter it brings as many as asked for, if they are there. With one it is one wide scan: the fitting ones
    among the nearest rows, rank for rank, and as many as are shown and folded will do. Too few of them mean that the
    filter follows the content and leaves what is far from the question (or that many rows were deleted).
    """
    if run.exact or not run.vector or not run.collection.has_hnsw:
        return False
    if run.filters:  # which leaves more than are searched exactly
        return found < min(wanted_rows(run.options), keep(run.options))
    if found >= wanted_rows(run.options) or run.excluded:  # a scan that goes on passes over what was folded
        return False
    row = fetch_one(connection, "searchable", {"limit": found + 1}) or {}
    return bool(row["searchable"] > found)


def wanted_rows(options: SearchOptions) -> int:
    """How many candidates each arm is asked for."""
    return max(options.candidates, options.top_k)


def keep(options: SearchOptions) -> int:
    """How many fused candidates come back: room for folding before the next round trip, and enough to rerank."""
    return max(3 * options.top_k, RERANK_DEPTH if reranks(options) else 0) + 10


def _filtering(run: Run) -> dict[str, Any]:
    """The variables of the filter, and the flag of exact search where that is on."""
    return {**run.filters, "exact": "on"} if run.exact else dict(run.filters)


def variables(run: Run) -> dict[str, Any]:
    """What hybrid.sql is run with in this round."""
    options = resolved(run)
    return {
        "vector": run.vector,
        "tsquery": run.lexical.tsquery,
        "bm25": run.lexical.bm25,
        "codes": run.lexical.codes,
        "entries": run.lexical.entries,
        "others": run.lexical.others,
        "others_margin": run.lexical.others_margin,
        "candidates": wanted_rows(options),
        "keep": keep(options),
        "fusion": "score" if options.fusion == "score" else "rrf",
        "rrf_k": options.rrf_k,
        "fusion_weight": options.fusion_weight,
        "ranker": options.lexical_ranker,
        "authority_weight": options.authority_weight,
        "code_weight": CODE_WEIGHT * run.lexical.code_share,
        "mention_weight": MENTION_WEIGHT,
        "excluded": list(run.excluded),
        "dense_before": run.dense_before,
        "lexical_before": run.lexical_before,
        **_filtering(run),
    }


def ef_search(collection: Collection, candidates: int) -> int:
    """How many candidates a walk through the HNSW graph keeps: twice those asked for, or what the collection is set to
    where that is more, within pgvector's limits."""
    return min(MAX_EF_SEARCH, max(LEAST_EF_SEARCH, 2 * candidates, collection.ef_search or 0))


def session(run: Run) -> dict[str, str]:
    """Settings of the search's transaction, by their names in Postgres."""
    exact = bool(run.vector) and not run.collection.has_hnsw
    # Under a filter an iterative scan would go on through rows that are ever farther away, and come to fitting ones of
    # far regions before those of near ones. So one wide scan: what it brings are the nearest, or too few (`_starved`).
    filtered = bool(run.filters)
    timeout_s = min(run.options.statement_timeout_s, EXACT_SCAN_TIMEOUT_S if exact else 1e9)
    return {
        "hnsw.ef_search": str(MAX_EF_SEARCH if filtered else ef_search(run.collection, run.options.candidates)),
        "hnsw.iterative_scan": "off" if filtered else "relaxed_order",
        "statement_timeout": str(int(timeout_s * 1000)),
        "enable_seqscan": "off" if run.collection.has_hnsw else "on",
    }


def set_session(connection: Conn, run: Run) -> None:
    """Apply `session` to this transaction alone. Raises VectorsReplaced when the question's vector does not belong
    among those that stand there now, and will until the end of the transaction."""
    settings = session(run)
    values = {
        "ef_search": settings["hnsw.ef_search"],
        "iterative_scan": settings["hnsw.iterative_scan"],
        "timeout_ms": settings["statement_timeout"],
        "seqscan": settings["enable_seqscan"],
    }
    row = fetch_one(connection, "session", values) or {}
    if run.vector and row["vector_column"] != run.collection.vector_column:
        raise VectorsReplaced(
            f"collection {run.collection.name} was re-embedded with another model during the search",
            hint="Search again.",
        )


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
        passage_hash=bytes(row["passage_hash"]),
    )


def _float(value: Any) -> float | None:
    return None if value is None else float(value)
