"""The second check: whether a statement that no rule has made says what its quote says.

It compares words alone, and says no when in doubt: a statement passes that is made of the quote's own words in their
own order, with the same numbers, dates and negations, and about a subject that the quote names.
"""

import re
from collections import Counter
from collections.abc import Callable

from nightly.claims_rules.alone import doubts_about
from nightly.claims_rules.wording import content, plain

_NEGATIONS = frozenset(
    [
        "not",
        "no",
        "never",
        "none",
        "nor",
        "neither",
        "without",
        "except",
        "unless",
        "only",
        "but",
        "however",
        "fail",
        "fails",
        "refuse",
        "refuses",
        "prohibited",
        "cannot",
    ]
)
_MODALS = frozenset(["must", "may", "should", "can", "will", "might"])
_NUMBER = re.compile(r"\d")


def objections(statement: str, subject: str, quote: str) -> list[str]:
    """What keeps `statement` from passing as what `quote` says; empty when nothing does."""
    said, there = content(plain(statement)), content(plain(quote))
    found: list[str] = []
    kinds: dict[str, Callable[[str], bool]] = {
        "numbers": lambda word: _NUMBER.search(word) is not None,
        "negation": _NEGATIONS.__contains__,
        "duty or permission": _MODALS.__contains__,
    }
    for what, fits in kinds.items():
        if Counter(filter(fits, said)) != Counter(filter(fits, there)):
            found.append(f"{what}: {_listed(said, fits)} against {_listed(there, fits)} in the quote")
    names = content(subject)
    if not names or not _is_part(names, there):
        found.append("subject: not named in the quote")
    elif not _is_part(names, said):
        found.append("subject: not named in the statement")
    if not _in_order(said, there):
        found.append("words: not those of the quote in their order")
    return found + doubts_about(plain(statement))


def _listed(words: tuple[str, ...], fits: Callable[[str], bool]) -> str:
    return ", ".join(w for w in words if fits(w)) or "none"


def _is_part(words: tuple[str, ...], of: tuple[str, ...]) -> bool:
    return any(of[n : n + len(words)] == words for n in range(len(of) - len(words) + 1))


def _in_order(words: tuple[str, ...], of: tuple[str, ...]) -> bool:
    there = iter(of)
    return all(word in there for word in words)
