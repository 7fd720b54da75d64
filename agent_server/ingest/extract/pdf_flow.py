"""Lines of a PDF into headings, paragraphs, list items and table rows."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from agent_server.ingest.extract.headings import (
    MAX_CHARS,
    LineHeading,
    is_list_item,
    levels,
    looks_like_title,
    read_heading,
)
from agent_server.ingest.extract.pdf_lines import PdfLine
from agent_server.ingest.extract.pdf_marks import HEADING_LINES, Bookmark, find_bookmarks, measure
from agent_server.models import BlockKind

_NUMBER = re.compile(r"(?P<number>\d{1,3}(?:\.\d{1,3}){0,4})\.?\s+\S")
_END = re.compile(r"[.:;!?][\"'”’)\]]*$")
_HYPHEN = re.compile(r"[^\W\d_]-$")
_HEADING_CHARS = 200


@dataclass(slots=True)
class Piece:
    """Lines that belong together."""

    kind: BlockKind
    lines: list[PdfLine]
    level: int = 0
    heading: LineHeading | None = None


class Flow:
    """Turns the lines of a document into pieces; `pieces` is the result."""

    def __init__(self, lines: list[PdfLine], bookmarks: list[Bookmark]) -> None:
        self.lines = lines
        self.usual = measure(lines)
        self.marked = find_bookmarks(lines, bookmarks)
        named = {lines[index].page for index in self.marked}
        #: Pages on which something begins that the outline names with other words than the page.
        self.begun = {mark.page for mark in bookmarks} - named
        self.pieces: list[Piece] = []
        index = 0
        while index < len(lines):
            index += self._take(index)
        self._set_levels()

    def _take(self, index: int) -> int:
        if index in self.marked:
            length, depth = self.marked[index]
            self.pieces.append(Piece("heading", self.lines[index : index + length], depth))
            return length
        rows = self._rows(index)
        if rows:
            self.pieces.append(Piece("table", self.lines[index : index + rows]))
            return rows
        length, heading = self._looks(index)
        if heading is not None:
            self.pieces.append(Piece("heading", self.lines[index : index + length], 0, heading))
            return length
        self._flow(index)
        return 1

    def _rows(self, index: int) -> int:
        """How many rows of a table begin here: lines with cells, at least two of them."""
        length = 0
        while index + length < len(self.lines) and index + length not in self.marked:
            line = self.lines[index + length]
            if len(line.cells) < 2 or is_list_item(line.cells[0] + " ") or line.page != self.lines[index].page:
                break
            if length and self._gap(index + length) > 2.5:
                break
            length += 1
        return length if length >= 2 else 0

    def _gap(self, index: int) -> float:
        """The distance to the line above, in usual distances; 0 where it is unknown or above is another page."""
        if not index or not self.usual.leading:
            return 0.0
        above, line = self.lines[index - 1], self.lines[index]
        bottom = above.bottom if above.bottom is not None else above.y
        if bottom is None or line.y is None or above.page != line.page:
            return 0.0
        return (bottom - line.y) / self.usual.leading

    def _distinct(self, line: PdfLine) -> bool:
        """Whether the line is set larger or, unlike the text, in bold."""
        return bool(self.usual.size) and (
            line.size >= self.usual.size * 1.08
            or (line.bold and not self.usual.bold and line.size >= self.usual.size * 0.95)
        )

    def _looks(self, index: int) -> tuple[int, LineHeading | None]:
        """The heading that starts on this line by its looks, and how many lines it has."""
        line = self.lines[index]
        if len(line.cells) > 1:
            return 0, None
        if self._distinct(line):
            length = 1
            while length < HEADING_LINES and self._continues(index, length):
                length += 1
            text = " ".join(part.text for part in self.lines[index : index + length])
            number = _NUMBER.match(text)
            listed = number is None and is_list_item(text)
            whole = len(text) <= _HEADING_CHARS and not listed and not _END.search(text.rstrip("?!"))
            if whole and looks_like_title(text[-MAX_CHARS:].title() if len(text) > MAX_CHARS else text):
                rank = f"num:{number['number'].count('.') + 1}" if number else f"size:{line.size:.0f}{'b' * line.bold}"
                named = read_heading(text)
                return length, named or LineHeading(rank, text)
            return 0, None
        if self.marked and len(self.marked) > 3:
            return 0, None  # the outline knows better
        heading = read_heading(line.text)
        if heading is None or not self._stands_alone(index, heading):
            return 0, None
        if heading.needs_title:
            below = self.lines[index + 1] if index + 1 < len(self.lines) else None
            titled = below is not None and looks_like_title(below.text) and not is_list_item(below.text)
            titled = titled and len(below.text) < 0.8 * self.usual.width if below else False
            return 1 + titled, heading
        return self._wrapped(index), heading

    def _continues(self, index: int, length: int) -> bool:
        """Whether the next line goes on with a heading in large or bold letters."""
        at = index + length
        if at >= len(self.lines) or at in self.marked:
            return False
        first, line = self.lines[index], self.lines[at]
        same = abs(line.size - first.size) < 0.3 and line.bold == first.bold and line.page == first.page
        if (
            not same
            or len(line.cells) > 1
            or _NUMBER.match(line.text)
            or self._gap(at) > max(1.8, 1.6 * first.size / 10)
        ):
            return False
        return len(self.lines[at - 1].text) > 25  # a short first line has been ended on purpose

    def _stands_alone(self, index: int, heading: LineHeading) -> bool:
        """Whether nothing runs into or out of a line in ordinary letters that could be a heading."""
        line = self.lines[index]
        above = self.lines[index - 1] if index else None
        if above is not None and not _END.search(above.text) and self._gap(index) < 1.3 and above.page == line.page:
            above_is_heading = bool(self.pieces) and self.pieces[-1].kind == "heading"
            if not above_is_heading and len(above.text) > 0.8 * self.usual.width:
                return False
        if heading.strong:
            return True
        if heading.rank == "num:1" and self._in_list(index):
            return False
        below = self.lines[index + 1] if index + 1 < len(self.lines) else None
        wraps = below is not None and below.text[:1].islower()
        return (len(line.text) < 0.85 * max(self.usual.width, 40) and not wraps) or self._wrapped(index) > 1

    def _in_list(self, index: int) -> bool:
        """Whether "2. Title" has "1. ..." or "3. ..." close by."""
        own = _NUMBER.match(self.lines[index].text)
        if own is None:
            return False
        for other in self.lines[max(0, index - 4) : index + 5]:
            number = _NUMBER.match(other.text)
            if number and number["number"].isdigit() and abs(int(number["number"]) - int(own["number"])) == 1:
                return True
        return False

    def _wrapped(self, index: int) -> int:
        """1, or 2 where the heading goes over two lines: a full one, a short one, and then text that begins anew."""
        if index + 2 >= len(self.lines):
            return 1
        first, second, third = self.lines[index : index + 3]
        full = len(first.text) >= 0.75 * self.usual.width
        short = len(second.text) < 0.6 * self.usual.width and not _END.search(second.text)
        anew = third.text[:1].isupper() or third.text[:1].isdigit() or is_list_item(third.text)
        whole = len(first.text) + len(second.text) <= _HEADING_CHARS
        if full and short and anew and whole and first.page == second.page and not is_list_item(second.text):
            return 2
        return 1

    def _flow(self, index: int) -> None:
        """Add a line to the paragraph or item above it, or begin a new one."""
        line = self.lines[index]
        if is_list_item(line.text):
            self.pieces.append(Piece("list_item", [line]))
        elif self._joins(index):
            self.pieces[-1].lines.append(line)
        else:
            self.pieces.append(Piece("paragraph", [line]))

    def _joins(self, index: int) -> bool:
        if not self.pieces or self.pieces[-1].kind not in {"paragraph", "list_item"}:
            return False
        line, above = self.lines[index], self.lines[index - 1]
        if self.pieces[-1].lines[-1] is not above:
            return False
        ended = _END.search(above.text) is not None
        if above.page != line.page:
            full = len(above.text) >= 0.75 * self.usual.width
            if line.page in self.begun and not line.text[:1].islower():
                return False
            return line.text[:1].islower() or (not ended and full)
        if abs(above.size - line.size) > 0.15 * max(above.size, line.size, 1.0) and ended:
            return False
        if self._gap(index) > 1.45:
            return line.text[:1].islower() and not ended
        short = len(above.text) < 0.8 * self.usual.width
        return not (short and ended and not line.text[:1].islower())

    def _set_levels(self) -> None:
        """Levels of headings by looks, below those of the outline where there is one."""
        by_looks = [piece for piece in self.pieces if piece.kind == "heading" and piece.heading is not None]
        ranked = [piece.heading for piece in by_looks if piece.heading is not None]
        depths = {depth for _, depth in self.marked.values()}
        by_number: dict[int, int] = {}
        for piece in self.pieces:
            number = _NUMBER.match(piece.lines[0].text)
            if piece.kind == "heading" and piece.level and number:
                by_number.setdefault(number["number"].count(".") + 1, piece.level)
        for piece, level in zip(by_looks, levels(ranked), strict=True):
            if not depths:
                piece.level = level
                continue
            number = _NUMBER.match(piece.lines[0].text)
            parts = number["number"].count(".") + 1 if number else 0
            known = max((n for n in by_number if n <= parts), default=0)
            piece.level = by_number[known] + parts - known if known else max(depths) + 1

    def joined(self, piece: Piece) -> Iterator[tuple[PdfLine, str]]:
        """Each line of a piece with what is to stand before it: nothing, a blank or a line end.

        A hyphen at a line end goes where the word goes on small, unless the document writes the word with it.
        """
        before: PdfLine | None = None
        for line in piece.lines:
            gap = ""
            if before is not None and piece.kind == "table":
                gap = "\n"
            elif before is not None:
                gap = "-" if self._hyphenated(before.text, line.text) else "" if _HYPHEN.search(before.text) else " "
                if gap == "" and not line.text[:1].islower():
                    gap = "" if line.text[:1].isalpha() else " "
            yield line, gap
            before = line

    def _hyphenated(self, above: str, below: str) -> bool:
        """Whether the hyphen between the lines is to be taken out."""
        if not _HYPHEN.search(above) or not below[:1].islower():
            return False
        first = re.search(r"[^\W\d_]+(?:-[^\W\d_]+)*-$", above)
        rest = re.match(r"[^\W\d_]+", below)
        if first is None or rest is None:
            return False
        whole = (first[0][:-1] + rest[0]).casefold()
        kept = (first[0] + rest[0]).casefold()
        return not (self.usual.words[kept] and not self.usual.words[whole])
