"""Claims about one thing that do not agree: the same words with other numbers, or a no where another says yes."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

from nightly.claims_rules.wording import content

#: Share of their content words that two claims must have in common to be about the same.
SAME = 0.7
#: Claims of one subject that are compared with each other; more of them are no contradiction but a topic.
MAX_RIVALS = 200
_NEGATION = frozenset({"not", "no", "never", "without", "neither", "nor", "none"})
_NUMBER = re.compile(r"\d")
#: Numbers that name a place or a thing and are no amounts.
_REFERENCE = re.compile(
    r"§+\s*[\d.]+(?:\(\w+\))*|\b(?:sections?|articles?|policy|regulation|part|chapter|code|form|circular|appendix|pep|rfc)\s+[\w.-]*\d[\w.-]*"
    r"|\b[A-Z]{1,5}-\d[\w-]*|\([^()]*\)",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Rival:
    """A verified claim with what decides whether it contradicts another."""

    id: int
    subject_keys: tuple[str, ...]
    statement: str
    source: str
    authority: float
    touched: bool


def conflicts(rivals: Sequence[Rival]) -> list[tuple[int, int, str]]:
    """Pairs (smaller id, greater id, reason) of claims from sources of different authority that contradict each other.

    Only pairs of which one is `touched` are looked at.
    """
    found: dict[tuple[int, int], str] = {}
    for group in _by_key(rivals):
        for one, other in combinations(group, 2):
            pair = (min(one.id, other.id), max(one.id, other.id))
            if pair in found or one.id == other.id or not (one.touched or other.touched):
                continue
            if one.source == other.source or abs(one.authority - other.authority) < 1e-6:
                continue
            if reason := disagreement(one.statement, other.statement):
                found[pair] = reason
    return [(low, high, reason) for (low, high), reason in sorted(found.items())]


def disagreement(one: str, other: str) -> str:
    """What two statements about one thing differ in: "30 against 45", "one says not"; '' when they may both hold."""
    left, right = (content(_REFERENCE.sub(" ", _without_heading(side))) for side in (one, other))
    words = [frozenset(w for w in side if not _NUMBER.search(w) and w not in _NEGATION) for side in (left, right)]
    if not words[0] or not words[1]:
        return ""
    if len(words[0] & words[1]) / len(words[0] | words[1]) < SAME:
        return ""
    numbers = [tuple(w for w in side if _NUMBER.search(w)) for side in (left, right)]
    if numbers[0] and numbers[1] and set(numbers[0]) != set(numbers[1]):
        only = [[n for n in mine if n not in theirs] for mine, theirs in (numbers, numbers[::-1])]
        if only[0] and only[1]:
            return f"{', '.join(only[0])} against {', '.join(only[1])}"
    if bool(_NEGATION & set(left)) != bool(_NEGATION & set(right)):
        return "one denies what the other says"
    return ""


def _without_heading(statement: str) -> str:
    heading, colon, rest = statement.partition(": ")
    return rest if colon and len(rest.split()) > 4 and len(heading.split()) < 15 else statement


def _by_key(rivals: Iterable[Rival]) -> Iterator[list[Rival]]:
    groups: dict[str, list[Rival]] = {}
    for rival in rivals:
        for key in rival.subject_keys:
            groups.setdefault(key, []).append(rival)
    for group in groups.values():
        if 1 < len(group) <= MAX_RIVALS and any(r.touched for r in group):
            yield group
