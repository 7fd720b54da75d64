"""The numbered places of a document: sections with their paragraphs, appendices, captions, as one tree.

Levels of headings and the order of numbers decide together what lies in what; where levels say nothing (all headings
alike), the order does. Time is linear in the text.
"""

from nightly.references.manuscript import Heading, Manuscript
from nightly.references.markers import markers
from nightly.references.missing import name_missing
from nightly.references.numbering import APPENDED, RANKS, Label, Reading, heading_label, is_within, readings
from nightly.references.paragraphs import Paragraphs
from nightly.references.places import MAX_DEPTH, Outline, Place, Stack


def build(manuscript: Manuscript) -> Outline:
    """The outline of a document."""
    return _Builder(manuscript).build()


class _Builder:
    """Takes in headings and, between them, the signs of paragraphs."""

    def __init__(self, manuscript: Manuscript) -> None:
        self.manuscript = manuscript
        self.stack = Stack(len(manuscript.text))
        stretches = [(h.start, h.end) for h in manuscript.headings]
        self.paragraphs = Paragraphs(self.stack, manuscript.text, list(markers(manuscript.text, stretches)))
        used = {h.level for h in manuscript.headings[1:]}
        self.levels_tell = len(used) > 1  #: whether levels of headings differ, and so say something

    def build(self) -> Outline:
        headings = self.manuscript.headings
        end = len(self.manuscript.text)
        for number, heading in enumerate(headings):
            self.paragraphs.before(heading.start)
            self._heading(heading, headings[number + 1].start if number + 1 < len(headings) else end)
        self.paragraphs.before(end + 1)
        self.stack.close(1, end)
        name_missing(self.stack.root)
        places = self.stack.places
        return Outline(self.manuscript, self.stack.root, places, list(headings), [place.start for place in places])

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
            self.stack.close(found + 1, heading.start)
            self.stack.open[-1].again.append(heading.end)
            return
        reading, depth = self._where(heading, label)
        self.stack.close(depth + 1, heading.start)
        place = Place(label.word, label.number, heading.start, heading.end, heading.level, reading, title=heading.title)
        self.stack.push(place)

    def _same_again(self, label: Label) -> int:
        """Depth of the open place with this very number, when a heading is only repeated; 0 without one."""
        for depth in range(len(self.stack.open) - 1, 0, -1):
            place = self.stack.open[depth]
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
            known = self.stack.root.child(label.number, label.word) is not None
            return None, next((d for d, p in enumerate(self.stack.open) if p.word == "supplement" and known), 0)
        for depth in range(len(self.stack.open) - 1, 0, -1):
            if self.stack.open[depth].level and is_within(label.number, self.stack.open[depth].number):
                return None, depth
        options = readings(label.number, ".") if not label.word else ()
        if not self.levels_tell or not self._deeper(heading):
            for depth in range(len(self.stack.open) - 1, -1, -1):
                for reading in options:
                    if any(self._goes_on(c, reading) for c in self.stack.open[depth].children[-1:]):
                        return reading, depth
        first = next((r for r in options if r.ordinal == 1), options[0] if options else None)
        return first, self._by_rank(heading, label)

    def _deeper(self, heading: Heading) -> bool:
        depth = self.stack.headed()
        return depth > 0 and heading.level > self.stack.open[depth].level

    @staticmethod
    def _goes_on(place: Place, reading: Reading) -> bool:
        known = place.reading
        return bool(place.level) and known is not None and (known.style, known.ordinal + 1) == reading

    def _by_rank(self, heading: Heading, label: Label) -> int:
        """Depth of the place that a heading lies in by its level, its word and the words around it."""
        depth = self.stack.headed()
        rank = RANKS.get(label.word, 0)
        while depth > 0:
            place = self.stack.open[depth]
            if place.level:
                if place.word == label.word and label.word:
                    return depth - 1
                beside = self.levels_tell and place.level >= heading.level
                dots = label.number.count(".")
                flat = not label.word and not place.word and place.number[:1].isdigit() and label.number[:1].isdigit()
                outranked = rank and (place.word not in APPENDED) and RANKS.get(place.word, 9) >= rank
                if not (beside or outranked or (flat and place.number.count(".") >= dots)):
                    return min(depth, MAX_DEPTH)
            depth -= 1
        return 0

    def _path(self, heading: Heading, label: Label) -> None:
        """ "2(b) Application", "(a)(1) Opening": paragraphs of the open section, as headings."""
        depth = self._section_for(label.number)
        if depth < 0:
            word = label.word or "section"
            self._numbered(heading, Label(word, label.number))
            depth = len(self.stack.open) - 1
        if self._closes_again(heading, label, depth):
            return
        for number, value in enumerate(label.path):
            known = self.stack.open[depth + 1] if depth + 1 < len(self.stack.open) else None
            last = number == len(label.path) - 1
            if known is not None and known.level and known.number == value and not last:
                depth += 1
                continue
            self.stack.close(depth + 1, heading.start)
            options = readings(value, "()")
            reading = options[0] if options else None
            body = heading.end if last else heading.start
            title = heading.title if last else ""
            self.stack.push(Place("", value, heading.start, body, heading.level, reading, title=title, is_path=True))
            depth += 1

    def _closes_again(self, heading: Heading, label: Label, depth: int) -> bool:
        """Whether the open place has this very path already: its heading is only repeated."""
        end = depth + len(label.path)
        known = tuple(place.number for place in self.stack.open[depth + 1 : end + 1])
        if known == label.path and self.stack.open[end].level:
            self.stack.close(end + 1, heading.start)
            self.stack.open[end].again.append(heading.end)
            return True
        return False

    def _section_for(self, number: str) -> int:
        """Depth of the open section that a path heading belongs to; -1 when it names another."""
        for depth in range(len(self.stack.open) - 1, 0, -1):
            place = self.stack.open[depth]
            if place.level and place.word and (not number or number in {place.number, place.number.rpartition(".")[2]}):
                return depth
        return 0 if not number else -1

    def _unnumbered(self, heading: Heading, following: int) -> None:
        """A heading without number: part of what is open, its end, or a section whose number was lost."""
        depth = self.stack.headed()
        upcoming = self.paragraphs.upcoming(following)
        if upcoming is not None:
            if self.paragraphs.continues(upcoming):
                return
            if depth and self.paragraphs.restarts(upcoming):
                self._anonymous(heading, depth)
                return
        if self.levels_tell:
            while depth > 0 and self.stack.open[depth].level >= heading.level:
                depth -= 1
                while depth > 0 and not self.stack.open[depth].level:
                    depth -= 1
            if depth < self.stack.headed():
                self.stack.close(depth + 1, heading.start)

    def _anonymous(self, heading: Heading, depth: int) -> None:
        """A section without number, beside the open one where it could be one that lost it."""
        container = self.stack.open[depth]
        appended = any(place.word in APPENDED for place in self.stack.open)
        beside = container.word in {"section", "article", "rule"} and not appended
        if beside and not (self.levels_tell and heading.level > container.level):
            self.stack.close(depth, heading.start)
            self.stack.push(Place(container.word, "", heading.start, heading.end, heading.level, title=heading.title))
        else:
            self.stack.close(depth + 1, heading.start)
