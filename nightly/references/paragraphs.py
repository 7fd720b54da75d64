"""Signs before paragraphs become places: "(a)", "(1)", "(i)" within one another as their order says.

A sign goes on with an open list, begins one, or is none. "(i)" is a letter or a numeral by what comes next.
"""

from collections.abc import Sequence

from nightly.references.markers import Marker, Sign
from nightly.references.numbering import Reading, is_within, normal, readings
from nightly.references.places import MAX_DEPTH, Place, Stack

_LOOK_AHEAD = 60  #: markers that are looked at to tell the letter (i) from the numeral
_JUMP = 6  #: numbers that may be missing from a list


class Paragraphs:
    """Takes in the signs of a text, in order, where the headings are taken in too."""

    def __init__(self, stack: Stack, text: str, markers: Sequence[Marker]) -> None:
        self.stack = stack
        self._text = text
        self._markers = markers
        self._next = 0

    def upcoming(self, end: int) -> Marker | None:
        """The next sign, if it stands before `end` at the beginning of a line."""
        marker = self._markers[self._next] if self._next < len(self._markers) else None
        if marker is None or marker.start >= end or marker.inline or marker.caption:
            return None
        return marker

    def before(self, end: int) -> None:
        """Take in the signs that stand before `end`."""
        while self._next < len(self._markers) and self._markers[self._next].start < end:
            self._marker(self._markers[self._next])
            self._next += 1

    def _marker(self, marker: Marker) -> None:
        if marker.caption:
            place = Place(marker.caption, normal(marker.signs[0][0]), marker.start, marker.end)
            self.stack.root.adopt(place)
            place.end = marker.end
            self.stack.places.append(place)
            return
        if marker.signs[0][1] == "":
            self._dotted(marker, marker.signs[0][0])
            return
        signs = marker.signs
        if len(signs) > 1:
            again = self._open_with(signs[0])
            if again:
                self.stack.close(again + 1, marker.start)
                signs = signs[1:]
        for number, sign in enumerate(signs):
            if not self._sign(marker, sign, follows=number > 0 or len(signs) < len(marker.signs)):
                return

    def _open_with(self, sign: Sign) -> int:
        """Depth of the open paragraph with this very sign."""
        for depth in range(len(self.stack.open) - 1, self.stack.headed(), -1):
            if self.stack.open[depth].number == sign[0]:
                return depth
        return 0

    def _sign(self, marker: Marker, sign: Sign, *, follows: bool) -> bool:
        """Take in one sign as a paragraph; False when it is none."""
        chosen = self._choose(marker, sign, follows=follows)
        if chosen is None:
            return False
        reading, depth = chosen
        before = self.stack.open[depth + 1] if depth + 1 < len(self.stack.open) else None
        # Where a sentence was cut, the next item of its list begins a line.
        in_sentence = marker.inline or (before is not None and before.paragraph == marker.paragraph)
        self.stack.close(depth + 1, marker.start)
        if depth >= MAX_DEPTH + self.stack.headed():
            return False
        place = Place("", sign[0], marker.start, marker.end, 0, reading)
        place.paragraph = marker.paragraph if in_sentence else -1
        self.stack.push(place)
        return True

    def _choose(self, marker: Marker, sign: Sign, *, follows: bool) -> tuple[Reading, int] | None:
        """How a sign is read, and the depth of the open place it lies in."""
        options = readings(*sign)
        base = self.stack.headed()
        exact: list[tuple[Reading, int]] = []
        styles = {p.reading.style for p in self.stack.open[base + 1 :] if p.reading is not None}
        for depth in range(len(self.stack.open) - 1, base, -1):
            place = self.stack.open[depth]
            if marker.inline and place.paragraph != marker.paragraph:
                continue
            exact += [(r, depth - 1) for r in options if place.reading == (r.style, r.ordinal - 1)]
        announced = not marker.inline and self._announced(marker)
        innermost = self.stack.open[-1].reading
        first = [
            (r, len(self.stack.open) - 1)
            for r in options
            if r.ordinal == 1 and (r.style not in styles or (announced and innermost and innermost.style != r.style))
        ]
        if follows and not exact:
            below = first or [(r, len(self.stack.open) - 1) for r in options if r.style not in styles]
            return below[0] if below else None
        if marker.inline:
            found = exact or (first if marker.opens else [])
            return found[0] if found else None
        if exact and (first or len(exact) > 1):
            return self._look_ahead(sign, exact + first)
        return next(iter(exact or first or self._otherwise(options, base, styles)), None)

    def _announced(self, marker: Marker) -> bool:
        """Whether the words before a sign announce a list: they end with a colon or a dash."""
        return self._text[max(marker.start - 20, 0) : marker.start].rstrip().endswith((":", "—", "–"))

    def _otherwise(self, options: tuple[Reading, ...], base: int, styles: set[str]) -> list[tuple[Reading, int]]:
        """A list with numbers missing, one that begins anew, or one that lost its beginning."""
        found: list[tuple[Reading, int]] = []
        for depth in range(len(self.stack.open) - 1, base, -1):  # "4." behind "(3)"
            known = self.stack.open[depth].reading
            for reading in options:
                if known is not None and (known.style[-1], known.ordinal + 1) == (reading.style[-1], reading.ordinal):
                    return [(Reading(known.style, reading.ordinal), depth - 1)]
        for depth in range(len(self.stack.open) - 1, base, -1):
            known = self.stack.open[depth].reading
            for reading in options:
                same = known is not None and known.style == reading.style
                if same and known is not None and 0 < reading.ordinal - known.ordinal <= _JUMP:
                    found.append((reading, depth - 1))
        if found:
            return found
        for depth in range(len(self.stack.open) - 1, base, -1):
            known = self.stack.open[depth].reading
            for reading in options:
                if known is not None and known.style == reading.style and reading.ordinal == 1:
                    return [(reading, depth - 1)]
        return [(r, len(self.stack.open) - 1) for r in options if r.style not in styles and r.ordinal <= 3]

    def _look_ahead(self, sign: Sign, options: list[tuple[Reading, int]]) -> tuple[Reading, int]:
        """Of several ways to read a sign the one whose next number comes first."""
        for marker in self._markers[self._next + 1 : self._next + 1 + _LOOK_AHEAD]:
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

    def continues(self, marker: Marker) -> bool:
        """Whether the sign goes on with a list that is open, or begins one below an open paragraph."""
        if marker.signs[0][1] == "":
            return True
        options = readings(*marker.signs[0])
        base = self.stack.headed()
        open_ones = [p.reading for p in self.stack.open[base + 1 :] if p.reading is not None]
        if any((r.style, r.ordinal - 1) in open_ones for r in options):
            return True
        styles = {r.style for r in open_ones}
        return bool(open_ones) and any(r.ordinal == 1 and r.style not in styles for r in options)

    def restarts(self, marker: Marker) -> bool:
        """Whether the sign begins the outermost list of the open section anew."""
        base = self.stack.headed()
        if base + 1 >= len(self.stack.open) or marker.signs[0][1] == "":
            return False
        known = self.stack.open[base + 1].reading
        return known is not None and any(r.ordinal == 1 and r.style == known.style for r in readings(*marker.signs[0]))

    def _dotted(self, marker: Marker, number: str) -> None:
        """ "2.14" before a paragraph: a clause of the section "2", or of what clause 2.13 lies in."""
        last = int(number.rpartition(".")[2])
        for depth in range(len(self.stack.open) - 1, 0, -1):
            if is_within(number, self.stack.open[depth].number):
                self.stack.close(depth + 1, marker.start)
                self.stack.push(Place("", number, marker.start, marker.end))
                return
        for depth in range(len(self.stack.open) - 1, -1, -1):
            before = self.stack.open[depth].children[-1:]
            if before and before[0].number.rpartition(".")[0] == number.rpartition(".")[0] and "." in before[0].number:
                break
        else:
            depth = self.stack.headed()
            if last > 1:
                return
        self.stack.close(depth + 1, marker.start)
        self.stack.push(Place("", number, marker.start, marker.end))
