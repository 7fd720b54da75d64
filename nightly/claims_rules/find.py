"""Finds the claims in a passage: the way into this package."""

from collections.abc import Iterable

from nightly.claims_rules.definitions import in_definitions
from nightly.claims_rules.model import Found, Surroundings
from nightly.claims_rules.rules import in_rules
from nightly.claims_rules.wording import content

#: Raise it when the rules change what comes out: all sources are then read again.
VERSION = 2
#: What has more against it is not worth a person's time.
MAX_DOUBTS = 2


def find_claims(text: str, around: Surroundings) -> list[Found]:
    """The claims in a passage, by the place of their quotes; of two over the same words the one with fewer doubts.

    Offsets count characters of `text`. Nothing is raised, whatever the text.
    """
    best: dict[tuple[str, ...], Found] = {}
    for one in _without_overlap([*in_definitions(text, around), *in_rules(text, around)]):
        key = content(one.statement)
        if (
            len(key) > 1
            and len(one.doubts) <= MAX_DOUBTS
            and (key not in best or len(one.doubts) < len(best[key].doubts))
        ):
            best[key] = one
    return sorted(best.values(), key=lambda f: (f.quote_start, f.quote_end))


def _without_overlap(found: Iterable[Found]) -> list[Found]:
    """A definition speaks for its sentence; what else was read from the same words is left out."""
    kept: list[Found] = []
    for one in found:
        if not any(
            k.quote_start < one.quote_end and one.quote_start < k.quote_end and k.rule not in ("abbreviation", "alias")
            for k in kept
        ):
            kept.append(one)
    return kept
