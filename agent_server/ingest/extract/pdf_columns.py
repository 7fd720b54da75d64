"""Pages in columns whose file draws them row by row: put in the order in which they are read.

Most files draw one column after the other, and nothing is to be done. Tables too are drawn across, but their cells
leave most of their columns empty.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

from agent_server.ingest.extract.pdf_text import Fragment

_FEWEST_LINES = 15  #: of a column
_NARROWEST = 90.0  #: points between the beginnings of two columns
_FILLED = (0.55, 1.15)  #: of a column's width: what half of its lines have, by the guessed width of letters
_FOOT_GAP = 1.6  #: times the letter size, above a line at the foot of the page
_JUMPS = 0.4  #: from one column to another, for every line of a column

Spot = tuple[float, float]  #: x and y of what is drawn


def mixed_columns(spots: Sequence[Spot]) -> list[float]:
    """Where the columns of a page begin on which text is drawn at `spots`, if it jumps from one to another line by
    line; [] for any other page. A table may look like this too: `in_columns` tells it apart."""
    lines: dict[int, set[int]] = defaultdict(set)
    for x, y in spots:
        lines[round(x)].add(round(y))
    starts: list[int] = []
    for x, count in sorted(((x, len(ys | lines.get(x + 1, set()))) for x, ys in lines.items()), key=lambda p: -p[1]):
        if count >= _FEWEST_LINES and all(abs(x - other) >= _NARROWEST for other in starts):
            starts.append(x)
    if len(starts) < 2:
        return []
    columns = sorted(map(float, starts))
    places = [(_column(x, columns), round(y)) for x, y in spots]
    jumps = sum(a[0] != b[0] for a, b in pairwise(places))
    return columns if jumps > _JUMPS * len(set(places)) else []


def _column(x: float, starts: Sequence[float]) -> int:
    return max(sum(x >= start - 2 for start in starts) - 1, 0)


@dataclass(eq=False, slots=True)
class Row:
    """The pieces on one height of a column, from left to right, with their places in the file."""

    y: float
    pieces: list[tuple[int, Fragment]]

    @property
    def ends(self) -> float:
        return max(f.x + f.width for _, f in self.pieces)


def in_columns(fragments: Sequence[Fragment]) -> list[list[Fragment]]:
    """The lines of a page that was drawn across its columns, column by column, each as pieces from left to right; []
    for any other page. `fragments` are those of `draw(fine=True)`.

    What goes over several columns parts those above it from those below.
    """
    shown = [(n, f.part(f.text.replace("\n", " "))) for n, f in enumerate(fragments) if f.text.strip()]
    starts = mixed_columns([(f.x, f.y) for _, f in shown])
    if not starts:
        return []
    pitch = min(b - a for a, b in pairwise(starts))
    wide = [(n, f) for n, f in shown if f.x + f.width > starts[_column(f.x, starts)] + 1.35 * pitch]
    bars = sorted({f.y for _, f in wide}, reverse=True)
    bands: dict[int, list[list[tuple[int, Fragment]]]] = defaultdict(lambda: [[] for _ in starts])
    for n, fragment in shown:
        half = 0.5 * fragment.size
        above = sum(fragment.y < bar - half for bar in bars)
        beside = any(abs(fragment.y - bar) <= half for bar in bars)
        bands[2 * above + beside][_column(fragment.x, starts)].append((n, fragment))
    lines: list[Row] = []
    filled: list[list[float]] = [[] for _ in starts]
    for _, band in sorted(bands.items()):
        columns = [_rows(pieces) for pieces in band]
        foot = _foot(columns)
        for place, rows in enumerate(columns):
            filled[place] += [(row.ends - starts[place]) / pitch for row in rows]
            lines += rows
        lines += foot
    if any(len(shares) < _FEWEST_LINES or not _FILLED[0] <= median(shares) <= _FILLED[1] for shares in filled):
        return []
    return [_spaced(row) for row in lines]


def _foot(columns: Sequence[list[Row]]) -> list[Row]:
    """What stands apart below all columns, a page number as a rule, taken out of the columns that it is in."""
    low = min((rows[-1].y for rows in columns if rows), default=0.0)
    found: list[Row] = []
    for rows in columns:
        gap = _FOOT_GAP * rows[-1].pieces[0][1].size if rows else 0.0
        lowest = bool(rows) and rows[-1].y < low + gap / 2
        if lowest and (len(rows) == 1 or rows[-2].y < rows[-1].y + gap):
            return []
        if lowest:
            found.append(rows[-1])
    for rows in columns:
        rows[:] = [row for row in rows if row not in found]
    return found


def _rows(pieces: Sequence[tuple[int, Fragment]]) -> list[Row]:
    rows: list[Row] = []
    for n, fragment in sorted(pieces, key=lambda p: (-p[1].y, p[1].x)):
        if rows and rows[-1].y - fragment.y <= 0.4 * max(fragment.size, 1.0):
            rows[-1].pieces.append((n, fragment))
        else:
            rows.append(Row(fragment.y, [(n, fragment)]))
    for row in rows:
        row.pieces.sort(key=lambda p: (p[1].x, p[0]))
    return rows


def _spaced(row: Row) -> list[Fragment]:
    """Pieces that did not follow each other in the file were never parted by it: a blank does."""
    out: list[Fragment] = []
    last = -2
    for n, fragment in row.pieces:
        text = fragment.text
        if out and n != last + 1 and not text.startswith(" "):
            text = " " + text
        out.append(fragment.part(text if out else text.lstrip()))
        last = n
    return out
