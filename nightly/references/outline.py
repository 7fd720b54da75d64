"""The numbered places of a document: sections with their paragraphs, appendices, captions, as one tree.

Levels of headings and the order of numbers decide together what lies in what; where levels say nothing (all headings
alike), the order does. Time is linear in the text.
"""

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field

from nightly.references.manuscript import Heading, Manuscript
from nightly.references.markers import Marker, Sign, markers
from nightly.references.missing import name_missing
from nightly.references.numbering import (
    APPENDED,
    RANKS,
    Label,
    Reading,
    heading_label,
    is_within,
    normal,
    readings,
)

_LOOK_AHEAD = 60  #: markers that are looked at to tell the letter (i) from the numeral
_JUMP = 6  #: numbers that may be missing from a list
_MAX_DEPTH = 12


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
    _first: dict[tuple[str, str], "Place"] = field(default_factory=dict)

    def child(self, number: str, word: str = "") -> "Place | None":
        """The first child of that word and number."""
        return self._first.get((word, number))

    def adopt(self, child: "Place") -> None:
        child.parent = self
        self.children.append(child)
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

    @property
    def is_paragraph(self) -> bool:
        return self.level == 0 and self.parent is not None


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


def build(manuscript: Manuscript) -> Outline:
    """The outline of a document."""
    return _Builder(manuscript).build()


class _Builder:
    def __init__(self, manuscript: Manuscript) -> None:
        self.manuscript = manuscript
        self.root = Place("", "", 0, 0, level=0, end=len(manuscript.text))
        self.places: list[Place] = [self.root]
        self.open: list[Place] = [self.root]
        stretches = [(h.start, h.end) for h in manuscript.headings]
        self.markers = list(markers(manuscript.text, stretches))
        self.next_marker = 0
        used = {h.level for h in manuscript.headings[1:]}
        self.levels_tell = len(used) > 1  #: whether levels of headings differ, and so say something

    def build(self) -> Outline:
        headings = self.manuscript.headings
        for number, heading in enumerate(headings):
            self._markers_before(heading.start)
            following = headings[number + 1].start if number + 1 < len(headings) else len(self.manuscript.text)
            self._heading(heading, following)
        end = len(self.manuscript.text)
        self._markers_before(end + 1)
        self._close(1, end)
        name_missing(self.root)
        starts = [place.start for place in self.places]
        return Outline(self.manuscript, self.root, self.places, list(headings), starts)

    # -- the open places ---------------------------------------------------------------------------------------

    def _close(self, depth: int, at: int) -> None:
        """Close all open places from `depth` on."""
        for place in self.open[depth:]:
            place.end = at
        del self.open[depth:]

    def _push(self, place: Place) -> None:
        self.open[-1].adopt(place)
        self.open.append(place)
        self.places.append(place)

    def _headed(self) -> int:
        """Depth of the innermost open place that a heading began; 0 for the document."""
        return next((d for d in range(len(self.open) - 1, 0, -1) if self.open[d].level), 0)

    # -- headings ----------------------------------------------------------------------------------------------

    def _heading(self, heading: Heading, following: int) -> None:
        label = heading_label(heading.title)
        if label is None:
            self._unnumbered(heading, following)
        elif label.path:
            self._path(heading, label)
        else:
            self._numbered(heading, label)

    def _numbered(self, heading: Heading, label: Label) -> None:
        found = self._same_again(label)
        if found:
            self._close(found + 1, heading.start)
            self.open[-1].again.append(heading.end)
            return
        reading, depth = self._where(heading, label)
        self._close(depth + 1, heading.start)
        place = Place(label.word, label.number, heading.start, heading.end, heading.level, reading, title=heading.title)
        self._push(place)

    def _same_again(self, label: Label) -> int:
        """Depth of the open place with this very number, when a heading is only repeated; 0 without one."""
        for depth in range(len(self.open) - 1, 0, -1):
            place = self.open[depth]
            if (
                place.level
                and (place.word, place.number) == (label.word, label.number)
                and (label.word or "." in label.number)
            ):
                return depth
        return 0

    def _where(self, heading: Heading, label: Label) -> tuple[Reading | None, int]:
        """How a heading's number is read, and the depth of the open place that it lies in."""
        if label.word in APPENDED:
            # In a commentary such a heading says what is commented on, when the appendix itself stood before.
            known = self.root.child(label.number, label.word) is not None
            return None, next((d for d, p in enumerate(self.open) if p.word == "supplement" and known), 0)
        for depth in range(len(self.open) - 1, 0, -1):
            if self.open[depth].level and is_within(label.number, self.open[depth].number):
                return None, depth
        options = readings(label.number, ".") if not label.word else ()
        if not self.levels_tell or not self._deeper(heading):
            for depth in range(len(self.open) - 1, -1, -1):
                for reading in options:
                    if any(self._goes_on(c, reading) for c in self.open[depth].children[-1:]):
                        return reading, depth
        return next((r for r in options if r.ordinal == 1), options[0] if options else None), self._by_rank(
            heading, label
        )

    def _deeper(self, heading: Heading) -> bool:
        depth = self._headed()
        return depth > 0 and heading.level > self.open[depth].level

    @staticmethod
    def _goes_on(place: Place, reading: Reading) -> bool:
        known = place.reading
        return bool(place.level) and known is not None and (known.style, known.ordinal + 1) == reading

    def _by_rank(self, heading: Heading, label: Label) -> int:
        """Depth of the place that a heading lies in by its level, its word and the words around it."""
        depth = self._headed()
        rank = RANKS.get(label.word, 0)
        while depth > 0:
            place = self.open[depth]
            if place.level:
                if place.word == label.word and label.word:
                    return depth - 1
                beside = self.levels_tell and place.level >= heading.level
                dots = label.number.count(".")
                flat = not label.word and not place.word and place.number[:1].isdigit() and label.number[:1].isdigit()
                outranked = rank and (place.word not in APPENDED) and RANKS.get(place.word, 9) >= rank
                if not (beside or outranked or (flat and place.number.count(".") >= dots)):
                    return self._within_limits(depth)
            depth -= 1
        return 0

    def _within_limits(self, depth: int) -> int:
        return min(depth, _MAX_DEPTH)

    def _path(self, heading: Heading, label: Label) -> None:
        """ "2(b) Application", "(a)(1) Opening": paragraphs of the open section, as headings."""
        depth = self._section_for(label.number)
        if depth < 0:
            word = label.word or "section"
            self._numbered(heading, Label(word, label.number))
            depth = len(self.open) - 1
        if self._closes_again(heading, label, depth):
            return
        for number, value in enumerate(label.path):
            known = self.open[depth + 1] if depth + 1 < len(self.open) else None
            last = number == len(label.path) - 1
            if known is not None and known.level and known.number == value and not last:
                depth += 1
                continue
            self._close(depth + 1, heading.start)
            options = readings(value, "()")
            reading = options[0] if options else None
            body = heading.end if last else heading.start
            title = heading.title if last else ""
            self._push(Place("", value, heading.start, body, heading.level, reading, title=title, is_path=True))
            depth += 1

    def _closes_again(self, heading: Heading, label: Label, depth: int) -> bool:
        """Whether the open place has this very path already: its heading is only repeated."""
        end = depth + len(label.path)
        same = len(self.open) > end and tuple(p.number for p in self.open[depth + 1 : end + 1]) == label.path
        if same and self.open[end].level:
            self._close(end + 1, heading.start)
            self.open[end].again.append(heading.end)
            return True
        return False

    def _section_for(self, number: str) -> int:
        """Depth of the open section that a path heading belongs to; -1 when it names another."""
        for depth in range(len(self.open) - 1, 0, -1):
            place = self.open[depth]
            if place.level and place.word and (not number or number in {place.number, place.number.rpartition(".")[2]}):
                return depth
        return 0 if not number else -1

    def _unnumbered(self, heading: Heading, following: int) -> None:
        """A heading without number: part of what is open, its end, or a section whose number was lost."""
        depth = self._headed()
        upcoming = self.markers[self.next_marker] if self.next_marker < len(self.markers) else None
        if upcoming is not None and upcoming.start < following and not upcoming.inline and not upcoming.caption:
            if self._continues(upcoming):
                return
            if depth and self._restarts(upcoming):
                self._anonymous(heading, depth)
                return
        if self.levels_tell:
            while depth > 0 and self.open[depth].level >= heading.level:
                depth -= 1
                while depth > 0 and not self.open[depth].level:
                    depth -= 1
            if depth < self._headed():
                self._close(depth + 1, heading.start)

    def _anonymous(self, heading: Heading, depth: int) -> None:
        """A section without number, beside the open one where it could be one that lost it."""
        container = self.open[depth]
        beside = container.word in {"section", "article", "rule"} and not any(p.word in APPENDED for p in self.open)
        if beside and not (self.levels_tell and heading.level > container.level):
            self._close(depth, heading.start)
            self._push(Place(container.word, "", heading.start, heading.end, heading.level, title=heading.title))
        else:
            self._close(depth + 1, heading.start)

    # -- paragraphs --------------------------------------------------------------------------------------------

    def _markers_before(self, end: int) -> None:
        while self.next_marker < len(self.markers) and self.markers[self.next_marker].start < end:
            self._marker(self.markers[self.next_marker])
            self.next_marker += 1

    def _marker(self, marker: Marker) -> None:
        if marker.caption:
            place = Place(marker.caption, normal(marker.signs[0][0]), marker.start, marker.end)
            self.root.adopt(place)
            place.end = marker.end
            self.places.append(place)
            return
        if marker.signs[0][1] == "":
            self._dotted(marker, marker.signs[0][0])
            return
        signs = marker.signs
        if len(signs) > 1:
            again = self._open_with(signs[0])
            if again:
                self._close(again + 1, marker.start)
                signs = signs[1:]
        for number, sign in enumerate(signs):
            if not self._sign(marker, sign, follows=number > 0 or len(signs) < len(marker.signs)):
                return

    def _open_with(self, sign: Sign) -> int:
        """Depth of the open paragraph with this very sign."""
        for depth in range(len(self.open) - 1, self._headed(), -1):
            if self.open[depth].number == sign[0]:
                return depth
        return 0

    def _sign(self, marker: Marker, sign: Sign, *, follows: bool) -> bool:
        """Take in one sign as a paragraph; False when it is none."""
        chosen = self._choose(marker, sign, follows=follows)
        if chosen is None:
            return False
        reading, depth = chosen
        self._close(depth + 1, marker.start)
        if depth >= _MAX_DEPTH + self._headed():
            return False
        place = Place("", sign[0], marker.start, marker.end, 0, reading)
        place.paragraph = marker.paragraph if marker.inline else -1
        self._push(place)
        return True

    def _choose(self, marker: Marker, sign: Sign, *, follows: bool) -> tuple[Reading, int] | None:
        """How a sign is read, and the depth of the open place it lies in."""
        options = readings(*sign)
        base = self._headed()
        exact: list[tuple[Reading, int]] = []
        styles = {p.reading.style for p in self.open[base + 1 :] if p.reading is not None}
        for depth in range(len(self.open) - 1, base, -1):
            place = self.open[depth]
            if marker.inline and place.paragraph != marker.paragraph:
                continue
            exact += [(r, depth - 1) for r in options if place.reading == (r.style, r.ordinal - 1)]
        announced = not marker.inline and self._announced(marker)
        innermost = self.open[-1].reading
        first = [
            (r, len(self.open) - 1)
            for r in options
            if r.ordinal == 1 and (r.style not in styles or (announced and innermost and innermost.style != r.style))
        ]
        if follows and not exact:
            below = first or [(r, len(self.open) - 1) for r in options if r.style not in styles]
            return below[0] if below else None
        if marker.inline:
            found = exact or (first if marker.opens else [])
            return found[0] if found else None
        if exact and (first or len(exact) > 1):
            return self._look_ahead(sign, exact + first)
        return next(iter(exact or first or self._otherwise(options, base, styles)), None)

    def _announced(self, marker: Marker) -> bool:
        """Whether the words before a sign announce a list: they end with a colon or a dash."""
        return self.manuscript.text[max(marker.start - 20, 0) : marker.start].rstrip().endswith((":", "—", "–"))

    def _otherwise(self, options: tuple[Reading, ...], base: int, styles: set[str]) -> list[tuple[Reading, int]]:
        """A list with numbers missing, one that begins anew, or one that lost its beginning."""
        found: list[tuple[Reading, int]] = []
        for depth in range(len(self.open) - 1, base, -1):  # "4." behind "(3)"
            known = self.open[depth].reading
            for reading in options:
                if known is not None and (known.style[-1], known.ordinal + 1) == (reading.style[-1], reading.ordinal):
                    return [(Reading(known.style, reading.ordinal), depth - 1)]
        for depth in range(len(self.open) - 1, base, -1):
            known = self.open[depth].reading
            for reading in options:
                same = known is not None and known.style == reading.style
                if same and known is not None and 0 < reading.ordinal - known.ordinal <= _JUMP:
                    found.append((reading, depth - 1))
        if found:
            return found
        for depth in range(len(self.open) - 1, base, -1):
            known = self.open[depth].reading
            for reading in options:
                if known is not None and known.style == reading.style and reading.ordinal == 1:
                    return [(reading, depth - 1)]
        return [(r, len(self.open) - 1) for r in options if r.style not in styles and r.ordinal <= 3]

    def _look_ahead(self, sign: Sign, options: list[tuple[Reading, int]]) -> tuple[Reading, int]:
        """Of several ways to read a sign the one whose next number comes first."""
        for marker in self.markers[self.next_marker + 1 : self.next_marker + 1 + _LOOK_AHEAD]:
            for said, brackets in marker.signs:
                if brackets != sign[1]:
                    continue
                if said == sign[0]:
                    return options[0]
                coming = readings(said, brackets)
                for reading, depth in options:
                    if (reading.style, reading.ordinal + 1) in coming:
                        return reading, depth
        return options[0]

    def _continues(self, marker: Marker) -> bool:
        """Whether the sign goes on with a list that is open, or begins one below an open paragraph."""
        if marker.signs[0][1] == "":
            return True
        options = readings(*marker.signs[0])
        base = self._headed()
        open_ones = [p.reading for p in self.open[base + 1 :] if p.reading is not None]
        if any((r.style, r.ordinal - 1) in open_ones for r in options):
            return True
        styles = {r.style for r in open_ones}
        return bool(open_ones) and any(r.ordinal == 1 and r.style not in styles for r in options)

    def _restarts(self, marker: Marker) -> bool:
        """Whether the sign begins the outermost list of the open section anew."""
        base = self._headed()
        if base + 1 >= len(self.open) or marker.signs[0][1] == "":
            return False
        known = self.open[base + 1].reading
        return known is not None and any(r.ordinal == 1 and r.style == known.style for r in readings(*marker.signs[0]))

    def _dotted(self, marker: Marker, number: str) -> None:
        """ "2.14" before a paragraph: a clause of the section "2", or of what clause 2.13 lies in."""
        last = int(number.rpartition(".")[2])
        for depth in range(len(self.open) - 1, 0, -1):
            if is_within(number, self.open[depth].number):
                self._close(depth + 1, marker.start)
                self._push(Place("", number, marker.start, marker.end))
                return
        for depth in range(len(self.open) - 1, -1, -1):
            before = self.open[depth].children[-1:]
            if before and before[0].number.rpartition(".")[0] == number.rpartition(".")[0] and "." in before[0].number:
                break
        else:
            depth = self._headed()
            if last > 1:
                return
        self._close(depth + 1, marker.start)
        self._push(Place("", number, marker.start, marker.end))
