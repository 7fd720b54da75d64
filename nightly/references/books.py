"""A document ready to be cited: its places by number, its spots by name, and what it is called."""

from collections.abc import Sequence
from functools import cached_property
from typing import Protocol

from nightly.references.manuscript import Manuscript
from nightly.references.markup import spots
from nightly.references.names import names_of
from nightly.references.outline import Outline, Place, build


class Book:
    """A document with its outline; what is derived from it is made when it is first asked for."""

    def __init__(self, manuscript: Manuscript) -> None:
        self.manuscript = manuscript

    @property
    def source(self) -> str:
        return self.manuscript.source

    @cached_property
    def outline(self) -> Outline:
        return build(self.manuscript)

    @cached_property
    def names(self) -> frozenset[str]:
        """The keys that it is known by."""
        return frozenset(names_of(self.outline))

    @cached_property
    def spots(self) -> dict[str, tuple[int, int]]:
        """Stretches that links can name."""
        return spots(self.manuscript)

    @cached_property
    def index(self) -> dict[tuple[str, str], list[Place]]:
        """Headed and captioned places by word and number, in order."""
        index: dict[tuple[str, str], list[Place]] = {}
        for place in self.outline.places[1:]:
            if not place.is_path and (place.word or place.level or "." in place.number):
                index.setdefault((place.word, place.number), []).append(place)
        return index

    @cached_property
    def words(self) -> dict[str, int]:
        """How many places there are of each word."""
        counts: dict[str, int] = {}
        for (word, _), places in self.index.items():
            counts[word] = counts.get(word, 0) + len(places)
        return counts


class Library(Protocol):
    """The documents of a collection."""

    def called(self, key: str) -> Sequence[str]:
        """Sources known by that key, in order."""
        ...

    def book(self, source: str) -> Book | None:
        """A document; None when it has gone or is too large to be cited."""
        ...
