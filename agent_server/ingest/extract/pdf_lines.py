"""Pages of a PDF as lines with a place on the page, a size and a weight: the raw material for paragraphs.

Lengths are in points (1/72 inch) from the lower left corner, as PDF counts them.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import groupby, pairwise

from agent_server.ingest.extract.headings import read_heading
from agent_server.ingest.extract.pdf_text import Drawn, Fragment
from agent_server.ingest.hygiene import clean

_SOFT_HYPHEN = "\u00ad"
_LONG_WORD = re.compile(r"[^\W\d_]{23,}")
_LATIN_WORD = re.compile(r"[A-Za-z\u00c0-\u024f\u0370-\u04ff]+")
_BROKEN_CODE = re.compile(r"(?:^|\s)[A-Z]{1,6}-\d+\s*$")
_CELL_GAP = 1.3  #: times the letter size between two cells of a row
_EDGE_LINES = 2  #: lines at the top and at the foot of a page among which running titles are looked for
_MAX_ROW_LINES = 8
_FEWEST_PAGES = 3  #: with text, below which a line that repeats may as well be content


@dataclass(slots=True)
class PdfLine:
    """One line; `cells` has more than one entry where wide gaps part it. `y` is None where the place is unknown."""

    page: int
    text: str
    x: float = 0.0
    y: float | None = None
    size: float = 0.0
    bold: bool = False
    cells: list[str] = field(default_factory=list)
    bottom: float | None = None  #: of a row whose cells have several lines
    last_x: float = 0.0  #: where its last cell begins
    pieces: list[tuple[float, str]] = field(default_factory=list)  #: what was drawn at one go, and where
    columns: list[float] = field(default_factory=list)  #: where the cells begin


def _clean_text(raw: str) -> str:
    raw = raw.rstrip()
    if raw.endswith(_SOFT_HYPHEN):  # it is printed only at a line end, and there it is a hyphen
        raw = raw[:-1] + "-"
    return " ".join(clean(raw)[0].split())


def _line(page: int, fragments: Sequence[Fragment]) -> PdfLine | None:
    fragments = _reading_order(fragments)
    raw = "".join(fragment.text for fragment in fragments)
    text = _clean_text(raw)
    shown = [fragment for fragment in fragments if fragment.text.strip()]
    if not text or not shown:
        return None
    first = shown[0]
    cells = [first.text]
    columns = [first.x]
    for before, after in pairwise(shown):
        if after.x - (before.x + before.width) > _CELL_GAP * after.size and after.size > 0:
            cells.append(after.text)
            columns.append(after.x)
        else:
            parted = after.x <= columns[-1] + 1 or before.text + after.text not in raw
            cells[-1] = _glue(cells[-1], after.text) if parted else cells[-1] + after.text
    weight = sum(len(f.text) for f in shown)
    return PdfLine(
        page,
        text,
        first.x,
        first.y,
        max(Counter({f.size: 0 for f in shown} | _sizes(shown)).items(), key=lambda item: item[1])[0],
        sum(len(f.text) for f in shown if f.bold) > 0.9 * weight,
        [cell for cell in map(_clean_text, cells) if cell],
        first.y,
        columns[-1],
        [(f.x, f.text) for f in shown],
        columns,
    )


def _reading_order(fragments: Sequence[Fragment]) -> Sequence[Fragment]:
    """Words from right to left in the order in which they are read, where a file draws them from left to right."""
    shown = [f for f in fragments if f.text.strip()]
    leftward = [any(unicodedata.bidirectional(c) in ("R", "AL") for c in f.text) for f in shown]
    if sum(leftward) < 2 or any(a.x >= b.x for a, b in pairwise(shown)):
        return fragments
    ordered: list[Fragment] = []
    for is_leftward, run in groupby(reversed(list(zip(shown, leftward, strict=True))), key=lambda pair: pair[1]):
        words = [fragment for fragment, _ in run]
        ordered += words if is_leftward else reversed(words)
    return [f.part(f" {f.text.strip()}") for f in ordered]


def _sizes(fragments: list[Fragment]) -> dict[float, int]:
    sizes: Counter[float] = Counter()
    for fragment in fragments:
        sizes[fragment.size] += len(fragment.text)
    return dict(sizes)


def _glue(above: str, below: str) -> str:
    """Two lines of one cell: a code that a narrow column broke in the middle is put together again."""
    if _BROKEN_CODE.search(above) and re.fullmatch(r"\s*\d{1,3}\s*", below):
        return above.rstrip() + below.lstrip()
    return f"{above} {below}"


def page_lines(drawn: Drawn, number: int) -> list[PdfLine]:
    """The lines of a page in the order of the file."""
    lines: list[PdfLine] = []
    current: list[Fragment] = []
    for fragment in drawn.fragments:
        for index, part in enumerate(fragment.text.split("\n")):
            if index:
                lines.extend(filter(None, [_line(number, current)]))
                current = []
            if part:
                current.append(fragment.part(part))
    lines.extend(filter(None, [_line(number, current)]))
    return _join_rows(_recut(lines))


def column_lines(rows: Sequence[Sequence[Fragment]], number: int) -> list[PdfLine]:
    """The lines of a page whose pieces have been put in their order."""
    return list(filter(None, (_line(number, row) for row in rows)))


def plain_lines(text: str, number: int) -> list[PdfLine]:
    """Lines of a text without places (layout mode): runs of three blanks part cells."""
    lines: list[PdfLine] = []
    for raw in text.split("\n"):
        shown = _clean_text(raw)
        if shown:
            cells = [_clean_text(cell) for cell in re.split(r"\s{3,}", raw.strip())]
            lines.append(PdfLine(number, shown, cells=[cell for cell in cells if cell]))
    return lines


def _recut(lines: list[PdfLine]) -> list[PdfLine]:
    """Rows whose cells nearly touch, cut where the rows around them have their columns."""
    for index, line in enumerate(lines):
        near = lines[max(0, index - 5) : index + 6]
        columns = [x for other in near if len(other.columns) > 1 for x in other.columns[1:]]
        if len(line.pieces) < 2 or not columns:
            continue
        cells, starts = [line.pieces[0][1]], [line.pieces[0][0]]
        for x, text in line.pieces[1:]:
            if x <= starts[-1] + 1:  # the next line of the same cell
                cells[-1] = _glue(cells[-1], text)
            elif any(abs(x - known) < 1 for known in line.columns) or sum(abs(x - c) < 1 for c in columns) > 1:
                cells.append(text)
                starts.append(x)
            else:
                cells[-1] += text
        if len(cells) > len(line.cells):
            line.cells = [cell for cell in map(_clean_text, cells) if cell]
            line.columns, line.last_x = starts, starts[-1]
    return lines


def _join_rows(lines: list[PdfLine]) -> list[PdfLine]:
    """Puts together table rows whose cells wrap: the text goes down the first cell, jumps up, goes down the next."""
    rows: list[PdfLine] = []
    for line in lines:
        row = rows[-1] if rows else None
        if row is None or row.y is None or line.y is None or row.bottom is None:
            rows.append(line)
            continue
        if line.y > row.bottom + 0.3 * line.size and line.x > row.last_x + 1.5 * line.size:
            start = _row_start(rows, line)
            if start is not None:
                first = _merged(rows[start:])
                del rows[start:]
                first.cells += line.cells
                first.text += " " + line.text
                first.last_x = line.last_x
                first.bottom = min(first.bottom or line.y, line.y)
                rows.append(first)
                continue
        inside = len(row.cells) > 1 and line.y >= (row.y - _MAX_ROW_LINES * line.size * 1.5)
        if inside and abs(line.x - row.last_x) < 1 and line.x > row.x + 1 and len(line.cells) == 1:
            row.cells[-1] = _glue(row.cells[-1], line.text)
            row.text += " " + line.text
            row.bottom = min(row.bottom, line.y)
            continue
        rows.append(line)
    return rows


def _row_start(rows: list[PdfLine], line: PdfLine) -> int | None:
    """The first of the last lines that stand beside `line` as a cell of the same row."""
    for index in range(len(rows) - 1, max(-1, len(rows) - 1 - _MAX_ROW_LINES), -1):
        row = rows[index]
        if row.y is None or line.y is None or row.x >= line.x or row.last_x >= line.x:
            return None
        if index == len(rows) - 1 and len(row.cells) > 1 and _beside(rows, line):
            return index
        if row.y >= line.y - 0.6 * line.size:
            return index if row.y <= line.y + 1.5 * line.size else None
    return None


def _beside(rows: list[PdfLine], line: PdfLine) -> bool:
    """Whether `line` begins a tall cell of the last row, whose other cells stand half way down."""
    row = rows[-1]
    above = rows[-2].bottom if len(rows) > 1 else None
    if row.y is None or line.y is None or line.y - row.y > _MAX_ROW_LINES / 2 * line.size:
        return False
    return above is None or above > line.y


def _merged(rows: list[PdfLine]) -> PdfLine:
    first = rows[0]
    for row in rows[1:]:
        first.cells[-1] += " " + row.text
        first.text += " " + row.text
        if row.bottom is not None:
            first.bottom = min(first.bottom or row.bottom, row.bottom)
    return first


def letters_run_together(text: str) -> float:
    """How much a text looks as if its blanks were lost: share of letters in words no language has (0..1).

    Scripts that are written without blanks do not count.
    """
    words = _LATIN_WORD.findall(text)
    letters = sum(map(len, words))
    if letters < 12:
        return 0.0
    long = sum(len(word) for word in words if _LONG_WORD.fullmatch(word))
    # Words of ordinary length, but no blank between them: "ThisChapterDealsWith".
    humps = sum(len(w) for w in words if len(w) > 12 and len(re.findall(r"[a-z][A-Z]", w)) > 1)
    return (long + humps) / letters


def drop_running_lines(pages: list[list[PdfLine]]) -> list[list[PdfLine]]:
    """Pages without the titles and page numbers that stand at the same edge of most of them.

    Digits do not count, but "Chapter 3" that stands on one page only opens a chapter and stays.
    """
    filled = sum(1 for lines in pages if lines)
    if filled < _FEWEST_PAGES:
        return pages
    seen: Counter[tuple[str, str, int]] = Counter()
    spelled: Counter[str] = Counter()
    for lines in pages:
        seen.update({key for _, key in _edges(lines)})
        spelled.update({lines[index].text for index, _ in _edges(lines)})
    running = {
        key for key, count in seen.items() if count >= max(2, 0.6 * filled) or (count >= 4 and count >= 0.35 * filled)
    }
    kept: list[list[PdfLine]] = []
    for lines in pages:
        drop = {
            index
            for index, key in _edges(lines)
            if key in running and not (spelled[lines[index].text] == 1 and _opens_part(lines[index].text))
        }
        kept.append([line for index, line in enumerate(lines) if index not in drop])
    return kept


def _opens_part(line: str) -> bool:
    """Whether the line is a bare "Chapter 3" or "ARTICLE IV"."""
    heading = read_heading(line)
    return heading is not None and heading.needs_title


def _edges(lines: list[PdfLine]) -> list[tuple[int, tuple[str, str, int]]]:
    """Index and key of the lines at the top and at the foot: digits do not count, the size does."""
    top = [(index, "top") for index in range(min(_EDGE_LINES, len(lines)))]
    foot = [(index, "foot") for index in range(max(0, len(lines) - _EDGE_LINES), len(lines))]
    return [
        (
            index,
            (edge, re.sub(r"[\divxl]+\b|\d+", "#", lines[index].text.casefold()), round(lines[index].size)),
        )
        for index, edge in top + foot
    ]
