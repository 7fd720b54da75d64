"""A document ready to be cited: its places by number, its spots by name, and what it is called."""

import re
from collections.abc import Sequence
from functools import cached_property
from typing import Protocol

from nightly.references.commentary import Commentary
from nightly.references.manuscript import Manuscript
from nightly.references.markup import spots
from nightly.references.names import names_of, titles_of
from nightly.references.outline import build
from nightly.references.places import Outline, Place

#: A table as extraction leaves it: rows of cells between bars, a grid, columns ruled with "===", a directive.
_TABLE = re.compile(
    r"(?:^[ \t]*(?:\|[^\n]*\||\+[-=+]{2,}\+|={2,}(?: +=+)+|\.\. (?:list-|csv-)?table::)[^\n]*(?:\n(?=[^\n]*\S)[^\n]*)*"
    r"|(?:^[^\n|]+ \| [^\n]+(?:\n|\Z)){2,})",
    re.MULTILINE,
)


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
    def titles(self) -> frozenset[tuple[str, str]]:
        """Words and numbers that its title gives the document: ("policy", "12") for "Policy 12 Boats"."""
        return frozenset(titles_of(self.outline))

    @cached_property
    def tails(self) -> dict[str, list[Place]]:
        """Sections by the last part of their number: "4" for "§ 12.4", and for "12.4" in a document numbered 12."""
        tails = {tail: list(places) for tail, places in self.own_tails.items()}
        for (word, number), places in self.index.items():
            if word == "section" and "." in number:
                tails.setdefault(number.rpartition(".")[2], []).extend(places)
        return tails

    @cached_property
    def own_tails(self) -> dict[str, list[Place]]:
        """The same of sections that are headed by the document's own number, without a word or sign before it."""
        tails: dict[str, list[Place]] = {}
        own = {number for _, number in self.titles}
        for (word, number), places in self.index.items():
            stem, _, tail = number.rpartition(".")
            if not word and stem in own:
                tails.setdefault(tail, []).extend(places)
        return tails

    @cached_property
    def commentary(self) -> Commentary:
        """Its comments on sections, if it holds any."""
        return Commentary(self.outline)

    @cached_property
    def tables(self) -> list[tuple[int, int]]:
        """Tables and their captions, in order."""
        found = [(m.start(), m.end()) for m in _TABLE.finditer(self.manuscript.text)]
        return sorted([*found, *self._captioned("table")])

    @cached_property
    def figures(self) -> list[tuple[int, int]]:
        """Captions of figures, in order."""
        return self._captioned("figure")

    def _captioned(self, word: str) -> list[tuple[int, int]]:
        return [(p.start, p.end) for p in self.outline.places if p.word == word]

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
