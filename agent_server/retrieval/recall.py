"""Recall: verified claims for a question, by words and names alone. No embedder is made, loaded or asked.

A question that asks what something is gets claims about just that, or none: a statement about something else is no
answer to it. Any other question gets the claims whose words make up enough of it. Each comes with its passage, which is
the authority.
"""

import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from agent_server.catalog import Collection
from agent_server.db import Conn, Database, execute, fetch_all, fetch_one, translated
from agent_server.errors import InvalidArgument
from agent_server.lexemes import LexicalText, lexical_text, quote_lexeme
from agent_server.retrieval.intent import read_intent
from agent_server.retrieval.lexical import K1, Term, combinations, make_terms, plan, query_vector
from agent_server.terms import fold_term, term_words

MAX_LIMIT = 50
DEFAULT_LIMIT = 5
#: Claims looked at.
CANDIDATES = 40
#: So many claims are ranked without looking for a bound first.
BUDGET_CLAIMS = 500
_EPSILON = 1e-6
#: The share of a question's weight that a claim's words must make up, when the question does not name what it is about.
MIN_COVERAGE = 0.5
#: A subject of that share of the question's weight is what the question is about.
SUBJECT_SHARE = 0.4
SHOWN_COPIES = 5
_WHAT_IS = re.compile(
    r"\W*(?:(?:what|who)(?:['’]s|\s+is|\s+are)\s+(?:an?\s+|meant\s+by\s+)(?P<term>.+)\Z"
    r"|what\s+(?:does|do)\s+(?P<verb>.+?)\s+(?:mean|stand\s+for)\b|define\s+(?P<order>.+)\Z)",
    re.IGNORECASE,
)
_FIGURE = re.compile(
    r"\b(?:is|are|costs?|lasts?)\s+(?:from\s+|at\s+(?:most|least)\s+|up\s+to\s+|between\s+|the\s+first\s+)?"
    r"(?:[$€£]|\d|one\b|two\b|three\b|four\b|five\b|six\b|seven\b|eight\b|nine\b|ten\b)",
    re.IGNORECASE,
)
_QUALIFIES = frozenset(
    [
        "in",
        "for",
        "on",
        "at",
        "to",
        "from",
        "with",
        "under",
        "when",
        "if",
        "after",
        "before",
        "during",
        "according",
        "within",
    ]
)
#: Questions that a figure answers: "what is the grace period", not "what is a grace period".
_THE_ONE = re.compile(r"\A\W*(?:what|which)\s+(?:is|are|'s|’s)\s+the\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Recalled:
    """A verified claim with the passage it rests on."""

    rank: int  #: from 1
    id: int
    collection: str
    kind: str
    subject: str
    statement: str
    score: float  #: BM25 over claims, comparable within one collection
    confidence: float
    verified_by: str
    quote: str
    chunk_id: str
    source: str
    title: str
    page: int | None
    heading: tuple[str, ...]
    context: str
    text: str  #: of the passage, verbatim
    authority: float
    also_in: tuple[str, ...]  #: other passages that say the same
    contradicted_by: tuple[Mapping[str, Any], ...]  #: claims from sources of another authority

    def to_json(self) -> dict[str, Any]:
        return {
            "rank": self.rank,
            "id": self.id,
            "collection": self.collection,
            "kind": self.kind,
            "subject": self.subject,
            "statement": self.statement,
            "score": self.score,
            "confidence": self.confidence,
            "verified_by": self.verified_by,
            "quote": self.quote,
            "chunk_id": self.chunk_id,
            "source": self.source,
            "title": self.title,
            "page": self.page,
            "heading": list(self.heading),
            "context": self.context,
            "text": self.text,
            "authority": self.authority,
            "also_in": list(self.also_in),
            "contradicted_by": [dict(c) for c in self.contradicted_by],
        }


@dataclass(frozen=True, slots=True)
class RecallResult:
    """The claims for one question, best first; without any, `diagnostic` says why."""

    query: str
    collections: tuple[str, ...]
    claims: tuple[Recalled, ...]
    diagnostic: str | None
    timings_ms: Mapping[str, float]

    def to_json(self) -> dict[str, Any]:
        return {
            "query": self.query,
            "collections": list(self.collections),
            "claims": [c.to_json() for c in self.claims],
            "diagnostic": self.diagnostic,
            "timings_ms": dict(self.timings_ms),
        }


@dataclass(frozen=True, slots=True)
class _Asked:
    """What a question asks for: `names` are keys of what it may be about, likeliest first; `whole` are the words of the
    whole name, which a claim found by the end of it alone must hold."""

    text: LexicalText
    the_one: bool
    names: tuple[str, ...]
    sure: frozenset[str]  #: names that are no mere end of another
    whole: frozenset[str]
    codes: tuple[str, ...]
    used: tuple[str, ...]


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
    asked = _asked(_checked(query, max_query_chars))
    looks: list[_Look] = []
    timeout = {"timeout_ms": str(int(statement_timeout_s * 1000))}
    with translated():
        for collection in collections:
            with database.reader(collection.reader_role, collection.schema_name) as connection:
                execute(connection, "recall_session", timeout)
                looks.append(_look(connection, collection, asked, limit))
    best = sorted((c for look in looks for c in look.candidates), key=lambda c: c.place)[:limit]
    shown = tuple(_recalled(rank, one) for rank, one in enumerate(best, 1))
    diagnostic = None if shown else _why_empty(collections, looks, asked)
    total = round((clock() - started) * 1000, 2)
    return RecallResult(query, tuple(c.name for c in collections), shown, diagnostic, {"total": total})


# -- question ---------------------------------------------------------------------------------------------------


def _checked(query: str, max_chars: int) -> str:
    text = " ".join("".join(c for c in query if c.isprintable() or c.isspace()).split())
    if not text:
        raise InvalidArgument("query", "is blank; expected a question or some words")
    if len(text) > max_chars:
        raise InvalidArgument("query", f"has {len(text)} characters; expected at most {max_chars}")
    return text.encode("utf-8", "replace").decode()


def _asked(query: str) -> _Asked:
    intent = read_intent(query)
    text = lexical_text(query, question=True)
    codes = tuple(dict.fromkeys(e for e in text.extras if e.startswith("#=")))
    asked = intent.asked
    if not asked and (found := _WHAT_IS.match(query)):  # "what is a new car": no measure, whatever its first word
        asked = (key,) if (key := fold_term(next(filter(None, found.groups()), ""))) else ()
    names = tuple(dict.fromkeys((*asked[:1], *_shortened(asked), *asked)))
    whole = names[0].split() if names else []
    # Names come from the whole to its beginnings; what does not begin like the whole is an end of it.
    sure = frozenset(n for n in names if whole[: len(n.split())] == n.split() and not _cuts_of(whole, len(n.split())))
    shortest = min((n.split() for n in sure), key=len, default=whole)
    return _Asked(text, _THE_ONE.match(query) is not None, names, sure, frozenset(shortest), codes, intent.used)


def _shortened(names: Sequence[str]) -> list[str]:
    """The name without what says where or for whom it is asked: "eligible student in the record policy"."""
    words = names[0].split() if names else []
    at = next((n for n, word in enumerate(words) if n and word in _QUALIFIES), None)
    return [" ".join(words[:at])] if at is not None else []


def _cuts_of(whole: Sequence[str], length: int) -> bool:
    """Whether a beginning of a name leaves out what it is of: "cost" of "cost of attendance" is something else."""
    return length < len(whole) and whole[length] == "of"


# -- one collection ---------------------------------------------------------------------------------------------


def _look(connection: Conn, collection: Collection, asked: _Asked, limit: int) -> _Look:
    """The best `limit` claims of a collection that are an answer, each with its passage."""
    config = collection.text_search_config
    values = {"config": config, "words": asked.text.words, "extras": asked.text.extras_tsvector}
    terms = make_terms(fetch_all(connection, "claim_terms", values))
    look = _Look(terms=terms)
    for rows in _candidates(connection, config, asked, terms):
        taken = []
        for row in rows:
            place = _place(row, asked, terms)
            if place is None:
                look.near += 1
            else:
                taken.append(_Candidate(collection, row, (*place, -row["score"], collection.name, row["id"]), {}))
        if asked.names and not any(_defines(c.row, asked) for c in taken):
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


def _candidates(
    connection: Conn, config: str, asked: _Asked, terms: tuple[Term, ...]
) -> Iterator[list[dict[str, Any]]]:
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
    words = [t for _, t in _words(terms)]
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


def _defines(row: Mapping[str, Any], asked: _Asked) -> bool:
    """Whether a claim says what its subject is: a definition, or the figure that the question asks for."""
    figure = asked.the_one and row["kind"] == "limit" and _FIGURE.search(row["statement"]) is not None
    return row["kind"] == "definition" or figure or bool(asked.codes)


def _place(row: Mapping[str, Any], asked: _Asked, terms: Sequence[Term]) -> tuple[Any, ...] | None:
    """Where a claim comes in the answer (less is better), None when it is no answer."""
    keys = set(row["subject_keys"])
    coverage = _coverage(row["held"], terms)
    if keys.intersection(asked.codes):
        return (0, 0, row["kind"] != "definition", -row["authority"], -coverage)
    if asked.names:
        at = next((n for n, name in enumerate(asked.names) if name in keys), None)
        if at is None:
            return None
        if asked.names[at] not in asked.sure and not _holds(row["statement"], asked.whole):
            return None
        return (
            1,
            row["kind"] != "definition",
            asked.names[at] not in asked.sure,
            -round(coverage, 1),
            -row["authority"],
        )
    if coverage < MIN_COVERAGE:
        return None
    about = any(name in keys and _share(name, terms) >= SUBJECT_SHARE for name in asked.used)
    return (2, not about, 0, -round(coverage, 1), -row["authority"])


def _holds(statement: str, words: frozenset[str]) -> bool:
    return words <= {word for word, _, _ in term_words(statement)}


def _words(terms: Sequence[Term]) -> list[tuple[int, Term]]:
    """The terms that are words, with their places: identifiers repeat what the words say."""
    return [(n, t) for n, t in enumerate(terms, 1) if not t.is_code]


def _coverage(held: Iterable[int], terms: Sequence[Term]) -> float:
    """The share of the question's weight that a claim's words make up."""
    there = set(held)
    weights = [(t.weight, n in there) for n, t in _words(terms)]
    total = sum(weight for weight, _ in weights)
    return sum(weight for weight, held_here in weights if held_here) / total if total > 0 else 0.0


def _share(name: str, terms: Sequence[Term]) -> float:
    """The share of the question's weight that the words of a name make up. Lexemes are stems: beginnings of words."""
    words = name.split()
    weights = [
        (t.weight, any(w.startswith(t.lexeme[: max(len(t.lexeme) - 1, 3)]) for w in words)) for _, t in _words(terms)
    ]
    total = sum(weight for weight, _ in weights)
    return sum(weight for weight, named in weights if named) / total if total > 0 else 0.0


# -- result -----------------------------------------------------------------------------------------------------


def _recalled(rank: int, one: _Candidate) -> Recalled:
    row = one.passage
    return Recalled(
        rank=rank,
        id=row["id"],
        collection=one.collection.name,
        kind=one.row["kind"],
        subject=one.row["subject"],
        statement=one.row["statement"],
        score=round(one.row["score"], 4),
        confidence=round(row["confidence"], 2),
        verified_by=row["verified_by"],
        quote=row["quote"],
        chunk_id=row["chunk_id"],
        source=row["source"],
        title=row["title"],
        page=row["page_first"],
        heading=tuple(row["heading_path"]),
        context=row["context"],
        text=row["text"],
        authority=round(row["authority"], 4),
        also_in=tuple(dict.fromkeys(row["also_in"]))[:SHOWN_COPIES],
        contradicted_by=tuple(row["contradicted_by"] or ()),
    )


def _why_empty(collections: Sequence[Collection], looks: Sequence[_Look], asked: _Asked) -> str:
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
