"""What a PDF says about itself before its lines are read: where the outline points, and what is usual in it."""

import re
from collections import Counter
from dataclasses import dataclass, field
from itertools import pairwise

from agent_server.ingest.extract.pdf_lines import PdfLine

HEADING_LINES = 3  #: lines that a heading may have


@dataclass(frozen=True, slots=True)
class Bookmark:
    """An entry of the outline: its title, the page it points to (from 1) and its depth (from 1)."""

    title: str
    page: int
    depth: int


@dataclass(slots=True)
class Measures:
    """What is usual in this document: letter size, width of a line in letters, distance of lines."""

    size: float = 0.0
    bold: bool = False
    width: int = 0
    leading: float = 0.0
    words: Counter[str] = field(default_factory=Counter)


def measure(lines: list[PdfLine]) -> Measures:
    """The usual values, by number of letters."""
    sizes: Counter[tuple[float, bool]] = Counter()
    for line in [line for line in lines if len(line.cells) < 2] or lines:
        sizes[(round(line.size, 1), line.bold)] += len(line.text)
    (size, bold), _ = sizes.most_common(1)[0] if sizes else ((0.0, False), 0)
    prose = sorted(len(line.text) for line in lines if len(line.cells) < 2)
    gaps: Counter[float] = Counter()
    for above, below in pairwise(lines):
        if above.y is not None and below.y is not None and above.page == below.page and above.y > below.y:
            gaps[round(above.y - below.y, 0)] += 1
    words = Counter(re.findall(r"[^\W\d_]+(?:-[^\W\d_]+)*", " ".join(line.text for line in lines).casefold()))
    return Measures(
        size,
        bold,
        prose[int(len(prose) * 0.8)] if prose else 0,
        gaps.most_common(1)[0][0] if gaps else 0.0,
        words,
    )


def _key(text: str) -> str:
    return "".join(letter for letter in text.casefold() if letter.isalnum())


def find_bookmarks(lines: list[PdfLine], bookmarks: list[Bookmark]) -> dict[int, tuple[int, int]]:
    """Where the titles of the outline stand: index of the first line -> (number of lines, depth)."""
    found: dict[int, tuple[int, int]] = {}
    taken: set[int] = set()
    for mark in bookmarks:
        title = _key(mark.title)
        if not title:
            continue
        here = [i for i, line in enumerate(lines) if line.page == mark.page]
        for index in here:
            if index in taken:
                continue
            length = _matches(lines, index, title)
            if length:
                found[index] = (length, mark.depth)
                taken.update(range(index, index + length))
                break
    return found


def keep_marked(
    kept: list[list[PdfLine]], pages: list[list[PdfLine]], bookmarks: list[Bookmark]
) -> list[list[PdfLine]]:
    """`kept`, page by page, with those lines of `pages` put back that the outline names and that are missing.

    A chapter title at the top of its page looks like a running title; the outline knows better.
    """
    out = list(kept)
    for mark in bookmarks:
        at = mark.page - 1
        if at >= len(pages) or find_bookmarks(out[at], [mark]):
            continue
        for index, (length, _) in find_bookmarks(pages[at], [mark]).items():
            wanted = {id(line) for line in (*out[at], *pages[at][index : index + length])}
            out[at] = [line for line in pages[at] if id(line) in wanted]
    return out


def _matches(lines: list[PdfLine], index: int, title: str) -> int:
    """How many lines from `index` on spell the title (the page may number it, the outline not); 0 if they do not."""
    text = ""
    for length in range(1, HEADING_LINES + 1):
        if index + length > len(lines) or lines[index + length - 1].page != lines[index].page:
            return 0
        text += _key(lines[index + length - 1].text)
        bare = text.lstrip("0123456789")
        if title in (text, bare) or (title.lstrip("0123456789") == text and len(text) > 3):
            return length
        if not (title.startswith((text, bare)) or text.startswith(title)):
            return 0
    return 0
