"""A document put together from its passages: text, headings, links and anchors, with the way back to the passages."""

import re
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from agent_server.models import Mark

_HASHES = re.compile(r"#{1,6}[ ](.*?)(?:[ ]#+)?")


@dataclass(frozen=True, slots=True)
class Passage:
    """A stored passage: `text[offset:offset + end - start]` is the stretch `start:end` of its document."""

    id: int
    start: int
    end: int
    text: str
    marks: tuple[Mark, ...] = ()

    @property
    def offset(self) -> int:
        """Where its own text begins, behind what it repeats."""
        return next((m.end for m in self.marks if m.kind == "repeated"), 0)


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading `text[start:end]`; `title` is on one line and without the signs that mark it as a heading."""

    start: int
    end: int
    level: int
    title: str


@dataclass(frozen=True, slots=True)
class Link:
    """The words `text[start:end]` of a link that the text does not show, and its address."""

    start: int
    end: int
    target: str


@dataclass(frozen=True, slots=True)
class Spot:
    """A stretch of a passage's text."""

    passage: int  #: its id
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Manuscript:
    """A document as its passages hold it; offsets are those of the extracted document."""

    source: str
    title: str
    media_type: str
    text: str
    headings: tuple[Heading, ...] = ()
    links: tuple[Link, ...] = ()
    anchors: dict[str, tuple[int, int]] = field(default_factory=dict)
    passages: tuple[Passage, ...] = ()
    _starts: tuple[int, ...] = ()

    def holding(self, start: int, end: int) -> list[Spot]:
        """The stretch `start:end` in every passage that holds all of it: two, where passages overlap."""
        found: list[Spot] = []
        for passage in self._near(start):
            if passage.start <= start and end <= passage.end:
                shift = passage.offset - passage.start
                found.append(Spot(passage.id, start + shift, end + shift))
        return found

    def landing(self, start: int, end: int) -> Spot | None:
        """Where the stretch `start:end` begins: in the passage that holds most of it, cut at that passage's end."""
        best: Passage | None = None
        for passage in self._near(start):
            inside = passage.start <= start < passage.end
            if inside and (best is None or min(end, passage.end) > min(end, best.end)):
                best = passage
        if best is None:
            return None
        shift = best.offset - best.start
        return Spot(best.id, start + shift, min(max(end, start), best.end) + shift)

    def _near(self, at: int) -> Iterable[Passage]:
        """Passages that may hold the offset, in order. Passages overlap with their neighbours alone."""
        last = bisect_right(self._starts, at)
        return self.passages[max(last - 3, 0) : last]


def assemble(source: str, title: str, media_type: str, passages: Sequence[Passage]) -> Manuscript:
    """The document of `passages` (in order). What lies between two of them is blank and becomes line ends."""
    parts: list[str] = []
    at = 0
    headings: dict[int, tuple[int, int]] = {}
    links: set[tuple[int, int, str]] = set()
    anchors: dict[str, tuple[int, int]] = {}
    for passage in passages:
        offset = passage.offset
        own = passage.text[offset : offset + passage.end - passage.start]
        if passage.start > at:
            parts.append("\n" * (passage.start - at))
            at = passage.start
        if passage.end > at:
            parts.append(own[at - passage.start :])
            at = passage.end
        for mark in passage.marks:
            lo, hi = mark.start - offset + passage.start, mark.end - offset + passage.start
            if mark.kind == "heading":
                headings[lo] = max(headings.get(lo, (0, 0)), (hi, int(mark.value)))
            elif mark.kind == "link":
                links.add((lo, hi, mark.value))
            elif mark.kind == "anchor":
                anchors.setdefault(mark.value, (lo, hi))
    text = "".join(parts)
    return Manuscript(
        source,
        title,
        media_type,
        text,
        tuple(Heading(lo, hi, level, shown(text[lo:hi])) for lo, (hi, level) in sorted(headings.items())),
        tuple(Link(*link) for link in sorted(links)),
        anchors,
        tuple(passages),
        tuple(passage.start for passage in passages),
    )


def shown(heading: str) -> str:
    """A heading's words: without Markdown's signs, and without lines that only underline or frame it."""
    lines = [line.strip() for line in heading.split("\n")]
    words = [line for line in lines if any(map(str.isalnum, line))] or lines
    line = " ".join(" ".join(words).split())
    if found := _HASHES.fullmatch(line):
        line = found[1]
    return line.strip("*_ ") if line.startswith(("*", "_")) else line
