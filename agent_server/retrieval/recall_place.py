"""Which claims answer a question, and in which order: by what they are about, then by their words. Pure."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from agent_server.retrieval.lexical import Term
from agent_server.retrieval.recall_question import Asked
from agent_server.terms import term_words

#: When a question does not name what it is about, a claim's words must make up more than this share of its weight.
MIN_COVERAGE = 0.5
#: A subject of that share of the question's weight is what the question is about.
SUBJECT_SHARE = 0.4
_FIGURE = re.compile(
    r"\b(?:is|are|costs?|lasts?)\s+(?:from\s+|at\s+(?:most|least)\s+|up\s+to\s+|between\s+|the\s+first\s+)?"
    r"(?:[$€£]|\d|one\b|two\b|three\b|four\b|five\b|six\b|seven\b|eight\b|nine\b|ten\b)",
    re.IGNORECASE,
)


def defines(row: Mapping[str, Any], asked: Asked) -> bool:
    """Whether a claim says what its subject is: a definition, or the figure that the question asks for."""
    figure = asked.the_one and row["kind"] == "limit" and _FIGURE.search(row["statement"]) is not None
    return row["kind"] == "definition" or figure or bool(asked.codes)


def place(row: Mapping[str, Any], asked: Asked, terms: Sequence[Term]) -> tuple[Any, ...] | None:
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
    if coverage <= MIN_COVERAGE:
        return None
    about = any(name in keys and _share(name, terms) >= SUBJECT_SHARE for name in asked.used)
    return (2, not about, 0, -round(coverage, 1), -row["authority"])


def _holds(statement: str, words: frozenset[str]) -> bool:
    return words <= {word for word, _, _ in term_words(statement)}


def words_of(terms: Sequence[Term]) -> list[tuple[int, Term]]:
    """The terms that are words, with their places: identifiers repeat what the words say."""
    return [(n, t) for n, t in enumerate(terms, 1) if not t.is_code]


def _coverage(held: Iterable[int], terms: Sequence[Term]) -> float:
    """The share of the question's weight that a claim's words make up."""
    there = set(held)
    weights = [(t.weight, n in there) for n, t in words_of(terms)]
    total = sum(weight for weight, _ in weights)
    return sum(weight for weight, held_here in weights if held_here) / total if total > 0 else 0.0


def _share(name: str, terms: Sequence[Term]) -> float:
    """The share of the question's weight that the words of a name make up. Lexemes are stems: beginnings of words."""
    words = name.split()
    weights = [
        (t.weight, any(w.startswith(t.lexeme[: max(len(t.lexeme) - 1, 3)]) for w in words)) for _, t in words_of(terms)
    ]
    total = sum(weight for weight, _ in weights)
    return sum(weight for weight, named in weights if named) / total if total > 0 else 0.0
