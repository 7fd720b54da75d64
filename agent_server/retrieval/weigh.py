"""Folds near copies among candidates: one passage for a paragraph that many documents repeat.

Exact copies never get here (the query sees one canonical row). Near copies are passages that share whole paragraphs
between different neighbours. Pure: what needs Postgres (stemming) comes in as `found` sets of lexemes.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

#: Shared paragraphs covering this share of the shorter passage make two passages near copies.
COVERAGE = 0.8
#: So does sharing all but this share of the weight of what the question matched.
NOVELTY = 0.2


@dataclass(frozen=True, slots=True)
class Candidate:
    """A row of hybrid.sql."""

    id: int
    chunk_id: str
    score: float
    dense_rank: int | None
    dense_score: float | None
    lexical_rank: int | None
    lexical_score: float | None
    authority: float
    text: str
    context: str
    #: hash of a whole paragraph -> its stretch (start, end) in `text`
    paragraphs: Mapping[int, tuple[int, int]]
    passage_hash: bytes = b""  #: equal for equal texts; empty where it is not known


@dataclass(slots=True)
class Group:
    """A candidate that stays, and what was folded into it through which paragraphs."""

    head: Candidate
    folded: list[Candidate] = field(default_factory=list)
    hashes: set[int] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class Found:
    """Lexemes of the question in a candidate's shared paragraphs and in the rest of it, context included."""

    shared: frozenset[str]
    rest: frozenset[str]


def shared_paragraphs(candidates: Sequence[Candidate]) -> dict[int, frozenset[int]]:
    """For each candidate (by id) that has some, its paragraphs that other candidates hold too."""
    counts = Counter(h for c in candidates for h in c.paragraphs)
    out = {c.id: frozenset(h for h in c.paragraphs if counts[h] > 1) for c in candidates}
    return {id_: hashes for id_, hashes in out.items() if hashes}


def split_text(candidate: Candidate, hashes: frozenset[int]) -> tuple[str, str]:
    """The stretches of `hashes`, and all other text with the context line."""
    inside: list[str] = []
    outside: list[str] = [candidate.context]
    at = 0
    for start, end in sorted(candidate.paragraphs[h] for h in hashes):
        outside.append(candidate.text[at:start])
        inside.append(candidate.text[start:end])
        at = max(at, end)
    outside.append(candidate.text[at:])
    return "\n".join(inside), "\n".join(outside)


def fold(candidates: Sequence[Candidate], found: Mapping[int, Found], weights: Mapping[str, float]) -> list[Group]:
    """Groups in the order of their heads. `found` is keyed by candidate id, `weights` by lexeme."""
    groups: list[Group] = []
    owner: dict[int, Group] = {}  # paragraph hash -> first group that holds it
    for candidate in candidates:
        group = _home(candidate, owner, found.get(candidate.id), weights)
        if group is None:
            group = Group(candidate)
            groups.append(group)
        else:
            group.folded.append(candidate)
            group.hashes |= {h for h in candidate.paragraphs if owner.get(h) is group}
        for h in candidate.paragraphs:
            owner.setdefault(h, group)
    return groups


def novelty(found: Found, weights: Mapping[str, float]) -> float:
    """Share of the matched weight that stands outside the shared paragraphs alone; 1 when nothing matched."""
    total = sum(weights.get(lexeme, 0.0) for lexeme in found.shared | found.rest)
    if total <= 0:
        return 1.0
    return sum(weights.get(lexeme, 0.0) for lexeme in found.rest - found.shared) / total


def _home(
    candidate: Candidate, owner: Mapping[int, Group], found: Found | None, weights: Mapping[str, float]
) -> Group | None:
    """The group that shows already what this candidate has to show, if there is one."""
    holders: dict[int, tuple[Group, int]] = {}
    for h, (start, end) in candidate.paragraphs.items():
        if (group := owner.get(h)) is not None:
            holders[id(group)] = (group, holders.get(id(group), (group, 0))[1] + end - start)
    if not holders:
        return None
    group, shared_chars = max(holders.values(), key=lambda pair: pair[1])
    shorter = min(len(candidate.text), len(group.head.text))
    if shared_chars >= COVERAGE * shorter:
        return group
    if found is not None and novelty(found, weights) <= NOVELTY:
        return group
    return None
