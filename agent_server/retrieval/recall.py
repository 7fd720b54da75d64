"""Recall: verified claims for a question, by words and names alone. No embedder is made, loaded or asked.

A question that asks what something is gets claims about just that, or none: a statement about something else is no
answer to it. Any other question gets the claims whose words make up enough of it. Each comes with its passage, which is
the authority. What a question asks for is read in `recall_question`, what answers it is told in `recall_place`.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from agent_server.catalog import Collection
from agent_server.db import Conn, Database, execute, fetch_all, fetch_one, translated
from agent_server.errors import InvalidArgument
from agent_server.lexemes import quote_lexeme
from agent_server.retrieval.lexical import K1, Term, combinations, make_terms, plan, query_vector
from agent_server.retrieval.recall_place import MIN_COVERAGE, defines, place, words_of
from agent_server.retrieval.recall_question import Asked, checked, read_asked
from agent_server.retrieval.recalled import RecallResult, recalled

MAX_LIMIT = 50
DEFAULT_LIMIT = 5
#: Claims looked at.
CANDIDATES = 40
#: So many claims are ranked without looking for a bound first.
BUDGET_CLAIMS = 500
_EPSILON = 1e-6


@dataclass(frozen=True, slots=True)
class _Candidate:
    collection: Collection
    row: Mapping[str, Any]
    place: tuple[Any, ...]
    passage: Mapping[str, Any]


@dataclass(slots=True)
class _Look:
    """What was seen in one collection."""

    candidates: list[_Candidate] = field(default_factory=list)
    reason: Mapping[str, Any] = field(default_factory=dict)
    terms: tuple[Term, ...] = ()
    near: int = 0  #: claims that hold words of the question, and were not taken


def recall_claims(
    database: Database,
    collections: Sequence[Collection],
    query: str,
    limit: int = DEFAULT_LIMIT,
    *,
    max_query_chars: int = 4000,
    statement_timeout_s: float = 10.0,
    clock: Callable[[], float] = time.perf_counter,
) -> RecallResult:
    """The verified claims of some collections that answer `query`, best first.

    Raises InvalidArgument, DatabaseUnavailable, ReaderLoginFailed.
    """
    started = clock()
    if not 1 <= limit <= MAX_LIMIT:
        raise InvalidArgument("limit", f"is {limit}; expected 1 to {MAX_LIMIT}")
    asked = read_asked(checked(query, max_query_chars))
    looks: list[_Look] = []
    timeout = {"timeout_ms": str(int(statement_timeout_s * 1000))}
    with translated():
        for collection in collections:
            with database.reader(collection.reader_role, collection.schema_name) as connection:
                execute(connection, "recall_session", timeout)
                looks.append(_look(connection, collection, asked, limit))
    best = sorted((c for look in looks for c in look.candidates), key=lambda c: c.place)[:limit]
    shown = tuple(recalled(rank, one.collection.name, one.row, one.passage) for rank, one in enumerate(best, 1))
    diagnostic = None if shown else _why_empty(collections, looks, asked)
    total = round((clock() - started) * 1000, 2)
    return RecallResult(query, tuple(c.name for c in collections), shown, diagnostic, {"total": total})


# -- one collection ---------------------------------------------------------------------------------------------


def _look(connection: Conn, collection: Collection, asked: Asked, limit: int) -> _Look:
    """The best `limit` claims of a collection that are an answer, each with its passage."""
    config = collection.text_search_config
    values = {"config": config, "words": asked.text.words, "extras": asked.text.extras_tsvector}
    terms = make_terms(fetch_all(connection, "claim_terms", values))
    look = _Look(terms=terms)
    for rows in _candidates(connection, config, asked, terms):
        taken = []
        for row in rows:
            where = place(row, asked, terms)
            if where is None:
                look.near += 1
            else:
                taken.append(_Candidate(collection, row, (*where, -row["score"], collection.name, row["id"]), {}))
        if asked.names and not any(defines(c.row, asked) for c in taken):
            look.near += len(taken)
            continue
        best = sorted(taken, key=lambda c: c.place)[:limit]
        # One that is not among these has lost its passage meanwhile: it is stale by now.
        found = fetch_all(connection, "recall_passages", {"ids": [c.row["id"] for c in best]}) if best else []
        passages = {row["id"]: row for row in found}
        look.candidates = [replace(c, passage=passages[c.row["id"]]) for c in best if c.row["id"] in passages]
        if look.candidates:
            return look
    look.reason = fetch_one(connection, "recall_reason") or {}
    return look


def _candidates(connection: Conn, config: str, asked: Asked, terms: tuple[Term, ...]) -> Iterator[list[dict[str, Any]]]:
    """Claims that may be an answer, likeliest kind first: by what the question names, by the end of that name among
    those that hold all of it, and, when it names nothing, by its words."""
    weights = query_vector(terms)
    common = {"bm25": weights, "lexemes": [quote_lexeme(t.lexeme) for t in terms], "candidates": CANDIDATES}
    if sure := [*(n for n in asked.names if n in asked.sure), *asked.codes]:
        yield fetch_all(connection, "recall", {**common, "keys": sure})
    if ends := [n for n in asked.names if n not in asked.sure]:
        holding = {"holding": " ".join(sorted(asked.whole)), "config": config}
        yield fetch_all(connection, "recall", {**common, **holding, "keys": ends})
    if not asked.names and (tsquery := _by_words(connection, terms)):
        yield fetch_all(connection, "recall", {**common, "tsquery": tsquery})


def _by_words(connection: Conn, terms: tuple[Term, ...]) -> str:
    """Claims that hold words of MIN_COVERAGE of the question's weight, the best of them at least; '' without words.

    A claim without any of the rarest words cannot reach that share when the others weigh less. Where even so too many
    hold them, the best CANDIDATES are found as the best passages are (`lexical.plan`).
    """
    words = [t for _, t in words_of(terms)]
    need = MIN_COVERAGE * sum(t.weight for t in words)
    left, reached = sum(t.weight for t in words), 0
    for term in words:
        if left < need:
            break
        left, reached = left - term.weight, reached + term.ndoc
    enough = combinations(words, (K1 + 1) * need - _EPSILON) if words else ""
    if reached <= BUDGET_CLAIMS:
        return enough

    def probe(tsquery: str, bm25: str) -> float | None:
        row = fetch_one(connection, "claim_probe", {"tsquery": tsquery, "bm25": bm25, "depth": CANDIDATES})
        return None if row is None else float(row["score"])

    return f"({plan(words, probe).tsquery}) & ({enough})"


# -- result -----------------------------------------------------------------------------------------------------


def _why_empty(collections: Sequence[Collection], looks: Sequence[_Look], asked: Asked) -> str:
    """What emptied the answer, in a sentence or two."""
    if not collections:
        return "There is no collection that you may search."
    names = ", ".join(c.name for c in collections)
    counts = [look.reason for look in looks]
    verified = sum(r.get("verified", 0) for r in counts)
    if not any(r.get("claims") for r in counts):
        return f"{names} has no claims yet: an ingestion reads them. search_knowledge_base searches passages."
    if not any(r.get("any_verified") for r in counts):
        waiting = sum(r.get("proposed", 0) for r in counts)
        proposed = f"No claim of {names} is verified; {waiting} are proposed: `kb claims list`."
        return f"{proposed} search_knowledge_base searches passages."
    if not any(look.terms for look in looks):
        return "The question holds only stop words or symbols."
    near = sum(look.near for look in looks)
    what = f"says what {asked.names[0]!r} is" if asked.names else "answers the question"
    other = f" ({near} hold words of the question and are about something else)" if near else ""
    return f"None of the {verified} verified claims of {names} {what}{other}. search_knowledge_base searches passages."
