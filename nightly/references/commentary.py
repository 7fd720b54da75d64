"""Comments of a commentary by their count: "comment 2(c)-1.ii" is a part of the first comment on paragraph 2(c).

Where comments are numbered in the text, the numbers are followed. Where extraction or an editor lost them, comments are
counted: by the headings below the place that they comment on, else by paragraphs that begin with a title of their own.
"""

import re
from dataclasses import dataclass

from nightly.references.numbering import APPENDED, roman
from nightly.references.outline import Outline, Place

_BLOCK = re.compile(r"[^\n](?:[^\n]|\n(?![ \t]*\n))*")
_RUN_IN = re.compile(r"[*_]{1,2}[^*_\n]{2,100}[*_]{1,2}|[A-Z“\"][^.\n]{1,100}(?<!www)\.(?=[A-Za-z“\"(])")


@dataclass(frozen=True, slots=True)
class Entry:
    """A comment: a stretch of the text."""

    start: int
    end: int


def commented(outline: Outline, number: str, path: tuple[str, ...]) -> Place | None:
    """The place of the commentary on "2(c)": its section is the one that ends in that number."""
    for place in outline.places:
        if place.level and place.word in {"section", "article", "rule"} and _in_commentary(place):
            tail = place.number.rpartition(".")[2]
            if number in {place.number, tail} and (found := _below(place, path)) is not None:
                return found
    return None


def _in_commentary(place: Place) -> bool:
    return any(p.word in APPENDED for p in place.ancestors())


def _below(place: Place, path: tuple[str, ...]) -> Place | None:
    for value in path:
        child = place.child(value)
        if child is None:
            return None
        place = child
    return place


def entry(outline: Outline, place: Place, counts: tuple[str, ...]) -> Entry | None:
    """The comment with these counts below `place`: ("1",) or ("1", "ii")."""
    numbered = place.child(counts[0])
    if numbered is not None and not numbered.level:
        for count in counts[1:]:
            numbered = numbered.child(count) if numbered is not None else None
        return Entry(numbered.start, numbered.end) if numbered is not None else None
    known = _entries(outline, place)
    number = int(counts[0]) if counts[0].isdigit() else 0
    if not 0 < number <= len(known):
        return None
    found = known[number - 1]
    if len(counts) == 1:
        return found
    return _part(outline, found, counts[1]) or _at(known, number - 1 + roman(counts[1]), roman(counts[1]) > 0)


def _at(known: list[Entry], index: int, counted: bool) -> Entry | None:
    return known[index] if counted and index < len(known) else None


def _entries(outline: Outline, place: Place) -> list[Entry]:
    text = outline.manuscript.text
    inner = [c for c in place.children if c.level]
    ends = [c.start for c in inner] + [place.end]
    starts = [h.start for h in outline.headings if place.body <= h.start < place.end and not _inside(inner, h.start)]
    repeated = [h for h in outline.headings if h.end in place.again]
    heads = {h.start: h.end for h in outline.headings}
    for heading in repeated:  # a repeated heading is a comment itself when words stand right below it
        following = next((s for s in starts if s > heading.start), place.end)
        if not text[heading.end : following].strip():
            starts.remove(heading.start)
    starts = [s for s in starts if s in heads]
    if not starts:
        starts = [
            found.start()
            for found in _BLOCK.finditer(text, place.body, place.end)
            if not _inside(inner, found.start()) and _RUN_IN.match(text, found.start())
        ]
    bounds = sorted({*starts, *ends})
    return [Entry(s, next((b for b in bounds if b > s), place.end)) for s in sorted(starts)]


def _inside(places: list[Place], at: int) -> bool:
    return any(place.start <= at < place.end for place in places)


def _part(outline: Outline, found: Entry, count: str) -> Entry | None:
    """The part "ii" of a comment: its second paragraph below the first."""
    text = outline.manuscript.text
    heads = {h.start for h in outline.headings}
    blocks = [b for b in _BLOCK.finditer(text, found.start, found.end) if b.start() not in heads]
    number = roman(count.lower())
    if not 0 < number < len(blocks):
        return None
    return Entry(blocks[number].start(), blocks[number].end())
