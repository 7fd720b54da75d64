"""The lexical arm: BM25 over a GIN index, exact in two phases.

Ranking every passage that holds any word of a question is slow, and most of them cannot be among the best: a
term adds at most (k1 + 1) times its weight to a score. So a cheap first query finds good passages through the
rare terms, the score of the n-th of them is a threshold, and the final query names only those combinations of
terms that can reach it (the idea of MaxScore, Turtle and Flood, 1995, in tsquery form).
"""

import json
import math
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from agent_server.db import Conn, fetch_all
from agent_server.lexemes import LexicalText, quote_lexeme

K1 = 1.2
#: The first phase may touch about this many passages through rare terms alone.
BUDGET_PASSAGES = 2000
#: An identifier names something when at most so many passages hold it, or this share of all.
MAX_CODE_PASSAGES = 50
MAX_CODE_SHARE = 0.01
#: By how much of the weight of a question's other words a passage that mentions its code must have more of them than
#: the code's own entry to come before it, and by how much at least: 2 is the IDF of a word in every seventh passage.
OTHERS_SHARE = 1 / 3
OTHERS_LEAST = 2.0
#: Combinations of this many terms are spelled out in the final query; deeper ones are covered by their beginning.
MAX_DEPTH = 3
MAX_ALTERNATIVES = 400
_PART = re.compile(r"\d+|[^\W\d_]+")  #: of an identifier: its digits and letters, words of their own in a text
_EPSILON = 1e-4  # sparsevec holds 4-byte floats: a bound must not miss by rounding


@dataclass(frozen=True, slots=True)
class Term:
    """A lexeme of the question: `weight` = query count * IDF, `ndoc` = passages that hold it (never 0)."""

    lexeme: str
    qtf: int
    ndoc: int
    dim: int
    weight: float
    known: bool = True  #: False: never seen in this collection (it may not be merged yet)
    total: int = 0  #: passages searched in this collection

    @property
    def is_code(self) -> bool:
        """Whether it is an identifier rather than a word or a bigram."""
        return self.lexeme.startswith("#")

    @property
    def bound(self) -> float:
        """The most that this term adds to any passage's score."""
        return (K1 + 1) * self.weight


@dataclass(frozen=True, slots=True)
class LexicalQuery:
    """What hybrid.sql needs: candidates by `tsquery`, scores by `bm25`; both empty when there are no terms."""

    terms: tuple[Term, ...]
    tsquery: str
    bm25: str
    phases: int = 1
    #: the question's identifiers, as far as they are rare in the collection; '' without any
    codes: str = ""
    entries: str = ""  #: those of them that some passage has an entry for
    code_share: float = 0.0  #: share of the question's weight that these identifiers have
    others: str = "{}"  #: where there are entries: what else the question says, a JSON object of lexemes with weights
    others_margin: float = 0.0  #: how much more of it than an entry a passage must hold to come before the entry


class _TooMany(Exception):
    """A long question has more combinations than are worth spelling out."""


EMPTY_BM25 = "{}/1000000000"
NO_QUERY = LexicalQuery((), "", EMPTY_BM25, 0)


def idf(total: int, ndoc: int) -> float:
    """Inverse document frequency of BM25, never negative: ln(1 + (N - df + .5) / (df + .5))."""
    return math.log(1 + max(total - ndoc + 0.5, 0.0) / (ndoc + 0.5))


def fetch_terms(connection: Conn, config: str, text: LexicalText) -> tuple[Term, ...]:
    """The question's terms, rarest first. A lexeme never seen counts as seen once: it may not be merged yet."""
    rows = fetch_all(
        connection, "lexical_terms", {"config": config, "words": text.words, "extras": text.extras_tsvector}
    )
    return make_terms(rows)


def make_terms(rows: Sequence[dict[str, Any]]) -> tuple[Term, ...]:
    """Terms with weights from rows of lexical_terms.sql, rarest first."""
    terms = []
    for row in rows:
        ndoc = max(row["ndoc"] or 1, 1)
        weight = row["qtf"] * idf(row["total"], ndoc)
        terms.append(Term(row["lexeme"], row["qtf"], ndoc, row["dim"], weight, bool(row["ndoc"]), row["total"]))
    return tuple(sorted(terms, key=lambda t: (t.ndoc, t.lexeme)))


def plan(terms: Sequence[Term], probe: Callable[[str, str], float | None]) -> LexicalQuery:
    """The query whose best passages are the best of all that hold any of `terms`.

    `probe(tsquery, bm25)` answers the score of the n-th best passage that `tsquery` finds, None when it finds
    fewer; it is asked only when there are too many passages to rank them all.
    """
    if not terms:
        return NO_QUERY
    bm25 = query_vector(terms)
    codes = (*codes_of(terms), *others_of(terms))
    if sum(t.ndoc for t in terms) <= BUDGET_PASSAGES:
        return LexicalQuery(tuple(terms), any_of(terms), bm25, 1, *codes)
    first, rest = first_phase(terms)
    threshold = probe(first, bm25)
    if threshold is None:
        # Fewer passages than asked for: everything that holds any term may belong to the answer.
        return LexicalQuery(tuple(terms), any_of(terms), bm25, 2, *codes)
    if not rest:
        return LexicalQuery(tuple(terms), first, bm25, 1, *codes)
    return LexicalQuery(tuple(terms), combinations(terms, threshold - _EPSILON), bm25, 2, *codes)


def codes_of(terms: Sequence[Term]) -> tuple[str, str, float]:
    """Passages that hold an identifier of the question, those with an entry for it, and the share of the question's
    weight that these identifiers have.

    ('', '', 0) when there is none that is known and rare.
    """
    rare = _rare_codes(terms)
    known = sum(t.weight for t in terms if t.known)
    if not rare or known <= 0:
        return "", "", 0.0
    return any_of(rare), any_of(_entries(rare)), sum(t.weight for t in rare) / known


def others_of(terms: Sequence[Term]) -> tuple[str, float]:
    """What a question says besides the identifiers that have an entry: its other known words with their weights, as
    hybrid.sql wants them, and the margin by which they bring a passage before the entry. ('{}', 0) without entries."""
    entries = _entries(_rare_codes(terms))
    if not entries:
        return "{}", 0.0
    parts = {part for t in entries for part in _PART.findall(t.lexeme)}
    others = {quote_lexeme(t.lexeme): t.weight for t in terms if t.known and not t.is_code and t.lexeme not in parts}
    return json.dumps(others), max(OTHERS_SHARE * sum(others.values()), OTHERS_LEAST)


def _rare_codes(terms: Sequence[Term]) -> list[Term]:
    return [t for t in terms if t.is_code and t.known and t.ndoc <= max(MAX_CODE_PASSAGES, t.total * MAX_CODE_SHARE)]


def _entries(codes: Sequence[Term]) -> list[Term]:
    return [t for t in codes if t.lexeme.startswith("#=")]


def first_phase(terms: Sequence[Term]) -> tuple[str, tuple[Term, ...]]:
    """A cheap query likely to find the best passages, and the terms it does not cover.

    Rare terms alone while they fit the budget; pairs of the others that are rare together; all others at once.
    """
    total = 0
    rare: list[Term] = []
    for term in terms:
        if total + term.ndoc > BUDGET_PASSAGES:
            break
        total += term.ndoc
        rare.append(term)
    rest = tuple(terms[len(rare) :])
    alternatives = [quote_lexeme(t.lexeme) for t in rare]
    passages = max((t.ndoc for t in terms), default=1) * 2
    spent = 0.0
    for i, left in enumerate(rest):
        for right in rest[i + 1 :]:
            cost = left.ndoc * right.ndoc / passages * 4
            if spent + cost <= 1.5 * BUDGET_PASSAGES:
                spent += cost
                alternatives.append(f"({quote_lexeme(left.lexeme)} & {quote_lexeme(right.lexeme)})")
    if len(rest) > 1:
        alternatives.append("(" + " & ".join(quote_lexeme(t.lexeme) for t in rest) + ")")
    if not alternatives:
        # One very common term alone: nothing is left out.
        return quote_lexeme(rest[0].lexeme), ()
    return " | ".join(alternatives), rest


def any_of(terms: Sequence[Term]) -> str:
    """Passages that hold any of the terms."""
    return " | ".join(quote_lexeme(t.lexeme) for t in terms)


def combinations(terms: Sequence[Term], threshold: float) -> str:
    """Passages that can score `threshold`: every combination of terms whose bounds reach it is covered.

    Strongest terms first; a combination is named by at most MAX_DEPTH of its terms, which covers all that
    contain these.
    """
    strongest = sorted(terms, key=lambda t: (-t.bound, t.lexeme))
    remaining = [0.0] * (len(strongest) + 1)
    for i in range(len(strongest) - 1, -1, -1):
        remaining[i] = remaining[i + 1] + strongest[i].bound

    spent = 0

    def alternatives(start: int, need: float, depth: int) -> list[str] | None:
        """Ways to reach `need` with terms from `start` on; None when anything will do. Raises _TooMany."""
        nonlocal spent
        if need <= 0 or depth == 0:
            return None
        out: list[str] = []
        for k in range(start, len(strongest)):
            if remaining[k] < need:
                break
            spent += 1
            if spent > MAX_ALTERNATIVES:
                raise _TooMany
            further = alternatives(k + 1, need - strongest[k].bound, depth - 1)
            name = quote_lexeme(strongest[k].lexeme)
            if further is None:
                out.append(name)
            elif further:
                out.append(f"{name} & ({' | '.join(further)})")
        return out

    for depth in range(MAX_DEPTH, 0, -1):
        spent = 0
        with suppress(_TooMany):
            found = alternatives(0, threshold, depth)
            if found:
                return " | ".join(found)
    return any_of(terms)


def query_vector(terms: Sequence[Term]) -> str:
    """The terms' weights as a sparsevec; two lexemes that share a dimension keep the greater weight."""
    weights: dict[int, float] = {}
    for term in terms:
        weights[term.dim] = max(term.weight, weights.get(term.dim, 0.0))
    inner = ",".join(f"{dim}:{weight:.7g}" for dim, weight in sorted(weights.items()) if weight > 0)
    return "{" + inner + "}/1000000000"
