"""Where a source uses the terms that it defines: what a definition edge starts from.

Pure, one pass over the words, whatever the number of terms.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from agent_server.terms import fold_term, term_words
from nightly.definitions.model import PARTIAL
from nightly.definitions.passages import Located, Passage

#: A term that more passages of its source use is common speech there: an edge from each of them would say nothing.
HUB = 100


@dataclass(frozen=True, slots=True)
class Use:
    """A passage that uses a term, `text[start:end]`, and the definition that holds there."""

    passage: Passage
    start: int
    end: int
    key: str
    defined: Located


def uses_of(passages: Iterable[Passage], defined: Sequence[Located], *, hub: int = HUB) -> list[Use]:
    """The first use of each term in each passage but the one that defines it; none of a term that is used all over.

    Longer terms go before the shorter ones that they hold: "business credit" is no use of "credit".
    """
    by_key: dict[str, list[Located]] = defaultdict(list)
    for one in defined:
        by_key[fold_term(one.definition.term)].append(one)
    by_first: dict[str, list[tuple[str, ...]]] = defaultdict(list)
    for key in by_key:
        words = tuple(key.split())
        by_first[words[0]].append(words)
    for lengths in by_first.values():
        lengths.sort(key=len, reverse=True)
    found: dict[str, list[Use]] = defaultdict(list)
    for passage in passages:
        for key, start, end in _first_uses(passage.text, by_first):
            target = _holding(by_key[key], passage)
            if target is not None and len(found[key]) <= hub:
                found[key].append(Use(passage, start, end, key, target))
    return [use for uses in found.values() if len(uses) <= hub for use in uses]


def _first_uses(text: str, by_first: dict[str, list[tuple[str, ...]]]) -> list[tuple[str, int, int]]:
    """Keys of the terms in a text, each with its first place."""
    words = term_words(text)
    out: dict[str, tuple[str, int, int]] = {}
    at = 0
    while at < len(words):
        for candidate in by_first.get(words[at][0], ()):
            if tuple(word for word, _, _ in words[at : at + len(candidate)]) == candidate:
                last = at + len(candidate) - 1
                key = " ".join(candidate)
                out.setdefault(key, (key, words[at][1], words[last][2]))
                at = last
                break
        at += 1
    return list(out.values())


def _holding(definitions: Sequence[Located], passage: Passage) -> Located | None:
    """The definition that holds in a passage: the one of narrowest scope, a whole one before a part of one. None where
    the passage defines the term itself, or none holds there."""
    if any(one.passage.id == passage.id for one in definitions):
        return None
    ranked = [(rank, one) for one in definitions if (rank := _reach(one, passage)) is not None]
    if not ranked:
        return None
    return min(ranked, key=lambda pair: (pair[0], pair[1].definition.form in PARTIAL))[1]


def _reach(one: Located, passage: Passage) -> int | None:
    """How near a definition's scope is to a passage, None where it does not hold."""
    scope = one.definition.scope
    if scope in ("section", "paragraph"):
        return 0 if passage.label == one.passage.label and passage.heading_path == one.passage.heading_path else None
    if scope == "part":
        return 1 if passage.heading_path[:1] == one.passage.heading_path[:1] else None
    if scope == "document":
        return 2
    return 0 if passage.label and scope.startswith(passage.label) else None
