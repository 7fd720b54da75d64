"""Numbered places of a text as a tree, and the ones that are open while it is read."""

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field

from nightly.references.manuscript import Heading, Manuscript
from nightly.references.numbering import Reading

MAX_DEPTH = 12  #: of headings in one another, and of paragraphs below them


@dataclass(slots=True, eq=False)
class Place:
    """A numbered stretch `start:end` of the text; `body` is where its words begin."""

    word: str  #: "section", "appendix", ...; "" for paragraphs and bare numbers
    number: str  #: of a heading in small letters ("12.4"), of a paragraph as it is written ("a", "IV"); "" unknown
    start: int
    body: int
    level: int = 0  #: of its heading; 0 for a paragraph
    reading: Reading | None = None  #: of a paragraph or a lettered heading: its place in the order
    parent: "Place | None" = None
    end: int = 0
    children: list["Place"] = field(default_factory=list)
    paragraph: int = -1  #: the paragraph that it is a part of, of a list in a sentence
    title: str = ""
    is_path: bool = False  #: a paragraph whose marker is a heading: "2(b) Application"
    again: list[int] = field(default_factory=list)  #: where its heading is repeated
    kinds: set[str] = field(default_factory=set)  #: how its paragraphs are numbered: "1", "a", "A", "i", "I"
    _first: dict[tuple[str, str], "Place"] = field(default_factory=dict)

    def child(self, number: str, word: str = "") -> "Place | None":
        """The first child of that word and number."""
        return self._first.get((word, number))

    def adopt(self, child: "Place") -> None:
        child.parent = self
        self.children.append(child)
        if child.reading is not None:
            self.kinds.add(child.reading.style[-1])
        self.name(child)

    def name(self, child: "Place") -> None:
        """Let a child be found by its number."""
        if child.number:
            self._first.setdefault((child.word, child.number), child)

    def ancestors(self) -> Iterator["Place"]:
        """This place, then what it lies in, innermost first."""
        place: Place | None = self
        while place is not None:
            yield place
            place = place.parent


@dataclass(slots=True)
class Outline:
    """The places of a manuscript, in order, below `root`."""

    manuscript: Manuscript
    root: Place
    places: list[Place]
    headings: list[Heading]
    _starts: list[int] = field(default_factory=list)

    def at(self, offset: int) -> Place:
        """The innermost place that holds the offset."""
        index = bisect_right(self._starts, offset) - 1
        place = self.places[max(index, 0)]
        while place.parent is not None and not place.start <= offset < place.end:
            place = place.parent
        return place


class Stack:
    """The places that are open at some point of a text, outermost first, and all places so far."""

    def __init__(self, length: int) -> None:
        self.root = Place("", "", 0, 0, end=length)
        self.places: list[Place] = [self.root]
        self.open: list[Place] = [self.root]

    def close(self, depth: int, at: int) -> None:
        """Close all open places from `depth` on."""
        for place in self.open[depth:]:
            place.end = at
        del self.open[depth:]

    def push(self, place: Place) -> None:
        """Open a place within the innermost open one."""
        self.open[-1].adopt(place)
        self.open.append(place)
        self.places.append(place)

    def headed(self) -> int:
        """Depth of the innermost open place that a heading began; 0 for the document."""
        return next((d for d in range(len(self.open) - 1, 0, -1) if self.open[d].level), 0)
