"""Tables and code that do not fit into one chunk: cut between rows and lines, with what each part needs repeated."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from agent_server.ingest.chunk_cut import Cut, trim, words

_FENCE = re.compile(r"((?:[ \t]|>|[-*+][ \t]|\d{1,9}[.)][ \t])*)(`{3,}|~{3,})")
_ESCAPE_OR_PIPE = re.compile(r"\\.|\|", re.DOTALL)  # a pipe behind a backslash is a letter of the cell
_DELIMITER = re.compile(r":?-+:?")
_PLAIN_RULE = re.compile(r"[-=]{2,}(?:[ \t]+[-=]{2,})*")
_SIMPLE_BORDER = re.compile(r"[ \t]*=+(?:[ \t]+=+)*[ \t]*")

Line = tuple[int, int]  #: offsets of a line or row


@dataclass(frozen=True, slots=True)
class Parts:
    """The stretches of a long block, what to repeat before and what to close after a part in the middle."""

    cuts: tuple[Cut, ...]
    prelude: str = ""  #: ends with a line feed, or is empty
    closing: str = ""  #: a line without line feed, or empty
    closed: bool = True  #: whether the last stretch holds the closing line itself


def _lines(text: str, start: int, end: int) -> list[Line]:
    """The lines that are not blank, indentation kept, blanks at their ends left out."""
    found: list[Line] = []
    at = start
    while at < end:
        stop = text.find("\n", at, end)
        stop = end if stop < 0 else stop
        _, high = trim(text, at, stop)
        if high > at:
            found.append((at, high))
        at = stop + 1
    return found


def _cell_edges(text: str, start: int, end: int) -> list[int]:
    """Offsets after every pipe that separates cells."""
    return [found.end() for found in _ESCAPE_OR_PIPE.finditer(text, start, end) if found[0] == "|"]


def _is_rule(line: str) -> bool:
    """Whether a line is the rule below a header: `|:---|---:|`, or `-----  ----` in plain text."""
    line = line.strip(" \t>")
    if _PLAIN_RULE.fullmatch(line):
        return True
    edges = _cell_edges(line, 0, len(line))
    cells = [line[lo:hi].strip(" \t|") for lo, hi in zip([0, *edges], [*edges, len(line)], strict=True)]
    marked = [cell for cell in cells if cell]
    return bool(marked) and all(_DELIMITER.fullmatch(cell) for cell in marked)


def _row_cuts(text: str, lo: int, hi: int, size: int) -> Iterator[Cut]:
    """One row or line: whole where it fits, else at cell edges, else at words."""
    if hi - lo <= size:
        yield Cut(lo, hi, True)
        return
    at = lo
    for edge in (*_cell_edges(text, lo, hi), hi):
        low, high = trim(text, at, edge)
        if high - low > size // 4:
            yield from (Cut(a, b, a == lo) for a, b in words(text, low, high, size))
        elif low < high:
            yield Cut(low, high, low == lo)
        at = edge


def _with_edges(text: str, units: Iterable[tuple[int, int]], head: int, tail: int, size: int) -> tuple[Cut, ...]:
    """Cuts of `units`, the first `head` + 1 of them kept together and the last `tail` + 1 too, where that fits."""
    rows = list(units)
    if head and len(rows) > head and rows[head][1] - rows[0][0] <= size:
        rows = [(rows[0][0], rows[head][1]), *rows[head + 1 :]]
    if tail and len(rows) > tail and rows[-1][1] - rows[-1 - tail][0] <= size:
        rows = [*rows[: -1 - tail], (rows[-1 - tail][0], rows[-1][1])]
    return tuple(cut for lo, hi in rows for cut in _row_cuts(text, lo, hi, size))


def cut_code(text: str, start: int, end: int, size: int) -> Parts:
    """Lines. A fence's opening line stays with the first line and its closing line with the last."""
    lines = _lines(text, start, end)
    first_line = text[lines[0][0] : lines[0][1]] if lines else ""
    opening = _FENCE.match(first_line)
    if opening is None:
        return Parts(_with_edges(text, lines, 0, 0, size))
    mark = opening[2]
    last = text[lines[-1][0] : lines[-1][1]].lstrip(" \t>")
    closed = len(lines) > 1 and len(last) >= len(mark) and not last.strip(mark[0])
    closing = text[lines[-1][0] : lines[-1][1]] if closed else re.sub(r"[^>\s]", " ", opening[1]) + mark
    cuts = _with_edges(text, lines, 1, int(closed), size)
    return Parts(cuts, first_line + "\n" if len(first_line) <= size else "", closing, closed)


def _grid_rows(text: str, lines: list[Line]) -> tuple[list[Line], int]:
    """Rows of a grid (`+---+` between rows), each with the border below it; how many make the header."""
    rows: list[Line] = []
    head = 0
    begun = lines[0][0]
    for lo, hi in lines[1:]:
        begun = lo if begun < 0 else begun
        if text[lo:hi].lstrip().startswith("+"):
            rows.append((begun, hi))
            begun = -1
            if text[lo:hi].lstrip().startswith("+="):
                head = len(rows)
    if begun >= 0:
        rows.append((begun, lines[-1][1]))
    return rows, head


def _simple_rows(text: str, lines: list[Line]) -> tuple[list[Line], int]:
    """Rows of a table ruled by `===  ===`: a line whose first column is blank continues the row above it."""
    indent = len(text[lines[0][0] : lines[0][1]]) - len(text[lines[0][0] : lines[0][1]].lstrip())
    rows: list[Line] = []
    borders: list[int] = []
    for lo, hi in lines:
        if _SIMPLE_BORDER.fullmatch(text, lo, hi):
            borders.append(len(rows))
        elif rows and text[lo + indent : lo + indent + 1].isspace() and len(rows) - 1 not in borders:
            rows[-1] = (rows[-1][0], hi)
            continue
        rows.append((lo, hi))
    head = borders[1] + 1 if len(borders) > 1 and borders[1] < len(rows) - 1 else 1
    return rows, head


def _directive_rows(text: str, lines: list[Line]) -> tuple[list[Line], int]:
    """Rows of `.. list-table::` and its like; the header is the directive, its options and what they name."""
    options = 1
    while options < len(lines) and text[lines[options][0] : lines[options][1]].lstrip().startswith(":"):
        options += 1
    top, rest = [(lines[0][0], lines[options - 1][1])], lines[options:]
    if not rest:
        return top, 0
    if not text[rest[0][0] : rest[0][1]].lstrip().startswith("* -"):
        bare = text[rest[0][0] : rest[0][1]].lstrip()
        if bare.startswith(("+-", "+=")) or _SIMPLE_BORDER.fullmatch(bare):
            rows, head = _rows(text, rest)
            return top + rows, head + 1
        return top + rest, 1
    items: list[Line] = []
    for lo, hi in rest:
        if text[lo:hi].lstrip().startswith("* -") or not items:
            items.append((lo, hi))
        else:
            items[-1] = (items[-1][0], hi)
    headed = ":header-rows:" in text[top[0][0] : top[0][1]] and len(items) > 1
    return top + items, 1 + headed


def _rows(text: str, lines: list[Line]) -> tuple[list[Line], int]:
    """The rows of a table in whatever notation, rules with the rows they belong to, and how many are header."""
    first = text[lines[0][0] : lines[0][1]].lstrip()
    if first.startswith(".. "):
        return _directive_rows(text, lines)
    if first.startswith(("+-", "+=")):
        return _grid_rows(text, lines)
    if _SIMPLE_BORDER.fullmatch(first):
        return _simple_rows(text, lines)
    ruled = len(lines) > 1 and _is_rule(text[lines[1][0] : lines[1][1]])
    return lines, 2 if ruled else 1


def cut_table(text: str, start: int, end: int, size: int) -> Parts:
    """Rows, each whole where it fits. The prelude is the header: up to the rule below it, or the first row."""
    lines = _lines(text, start, end)
    if not lines:
        return Parts(())
    rows, head = _rows(text, lines)
    border = bool(_SIMPLE_BORDER.fullmatch(text, *rows[-1]))
    prelude = text[rows[0][0] : rows[head - 1][1]] + "\n" if 0 < head < len(rows) else ""
    cuts = _with_edges(text, rows, head, int(border), size)
    return Parts(cuts, prelude if len(prelude) <= size else "")
