"""Comments of a commentary by their count: "comment 2(c)-1.ii" is a part of the first comment on paragraph 2(c).

Where comments are numbered in the text, the numbers are followed. Where extraction or an editor lost them, comments are
counted: by the headings below the place that they comment on, else by paragraphs that begin with a title of their own.
"""

import re
from bisect import bisect_left
from dataclasses import dataclass

from nightly.references.numbering import APPENDED, roman
from nightly.references.places import Outline, Place

_BLOCK = re.compile(r"[^\n](?:[^\n]|\n(?![ \t]*\n))*")
_RUN_IN = re.compile(r"[*_]{1,2}[^*_\n]{2,100}[*_]{1,2}|[A-Z“\"][^.\n]{1,100}(?<!www)\.(?=[A-Za-z“\"(])")


@dataclass(frozen=True, slots=True)
class Entry:
    """A comment: a stretch of the text."""

    start: int
    end: int


class Commentary:
    """The comments of a document, if its appendices hold any; found once and looked up often."""

    def __init__(self, outline: Outline) -> None:
        self._outline = outline
        self._heads = [h.start for h in outline.headings]
        self._sections: dict[str, list[Place]] = {}
        self._known: dict[int, list[Entry]] = {}
        for place in outline.places:
            worded = place.level and place.word in {"section", "article", "rule"}
            if worded and any(p.word in APPENDED for p in place.ancestors()):
                for number in {place.number, place.number.rpartition(".")[2]}:
                    self._sections.setdefault(number, []).append(place)

    def place(self, number: str, path: tuple[str, ...]) -> Place | None:
        """The place of the comments on "2(c)": its section is the one that ends in that number."""
        for section in self._sections.get(number, []):
            place: Place | None = section
            for value in path:
                place = place.child(value) if place is not None else None
            if place is not None:
                return place
        return None

    def entry(self, place: Place, counts: tuple[str, ...]) -> "Entry | Place | None":
        """The comment with these counts below `place`: ("1",) or ("1", "ii")."""
        numbered = place.child(counts[0])
        if numbered is not None and not numbered.level:
            for count in counts[1:]:
                numbered = numbered.child(count) if numbered is not None else None
            return numbered
        known = self._entries(place)
        number = int(counts[0]) if counts[0].isdigit() else 0
        if not 0 < number <= len(known):
            return None
        if len(counts) == 1:
            return known[number - 1]
        part = roman(counts[1].lower())
        after = number - 1 + part
        return self._part(known[number - 1], part) or (known[after] if part and after < len(known) else None)

    def _entries(self, place: Place) -> list[Entry]:
        found = self._known.get(id(place))
        if found is None:
            found = self._known[id(place)] = self._counted(place)
        return found

    def _counted(self, place: Place) -> list[Entry]:
        """Comments right below a place, in order: headings, or paragraphs that begin with a title."""
        text = self._outline.manuscript.text
        inner = [c for c in place.children if c.level]
        inner_starts = [c.start for c in inner]

        def own(at: int) -> bool:
            index = bisect_left(inner_starts, at + 1) - 1
            return index < 0 or at >= inner[index].end

        low, high = bisect_left(self._heads, place.body), bisect_left(self._heads, place.end)
        starts = []
        for index in range(low, high):
            heading = self._outline.headings[index]
            following = self._heads[index + 1] if index + 1 < len(self._heads) else place.end
            # A repeated heading is a comment itself only when words stand right below it.
            bare = heading.end in place.again and not text[heading.end : following].strip()
            if own(heading.start) and not bare:
                starts.append(heading.start)
        if not starts:
            blocks = (m.start() for m in _BLOCK.finditer(text, place.body, place.end))
            starts = [at for at in blocks if own(at) and _RUN_IN.match(text, at)]
        bounds = sorted({*starts, *inner_starts, place.end})
        return [Entry(at, bounds[bisect_left(bounds, at + 1)]) for at in starts]

    def _part(self, found: Entry, number: int) -> Entry | None:
        """The part "ii" of a comment: its second paragraph below the first."""
        text = self._outline.manuscript.text
        blocks = [
            Entry(m.start(), m.end())
            for m in _BLOCK.finditer(text, found.start, found.end)
            if not self._is_heading(m.start())
        ]
        return blocks[number] if 0 < number < len(blocks) else None

    def _is_heading(self, at: int) -> bool:
        index = bisect_left(self._heads, at)
        return index < len(self._heads) and self._heads[index] == at
