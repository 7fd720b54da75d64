"""Definitions by their place: entries of glossaries and definition lists, and rows of tables of terms."""

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

from nightly.definitions.model import Definition
from nightly.definitions.terms import MARKED, bare, is_term
from nightly.definitions.units import Unit

MAX_ENTRY_WORDS = 8
_SEPARATOR = re.compile(r"[ \t]*(?::(?=\s)|\s[–—-]\s|[–—]\s|\s=\s)\s*")
_BEHIND_MARK = re.compile(r"[ \t]*(?:\([^()\n]{1,40}\))?[ \t]*(?::|\s[–—-]\s|[–—]\s|\.(?=\s)|\n)\s*")
_LIST = re.compile(r"(?P<term>[^\n]{1,90})\n(?::[ \t]+|[ \t]{2,})(?=\S)")
_SECOND = re.compile(
    r"\A\W*(?:definitions?|meanings?|explanations?|descriptions?|what it means|means|stands for|explained|long form|"
    r"in full)\W*\Z",
    re.I,
)
_FIRST = re.compile(
    r"\A\W*(?:(?:defined\s+)?terms?|words?|expressions?|phrases?|abbreviations?|acronyms?|concepts?|codes?)\W*\Z", re.I
)
_TERMS_ONLY = re.compile(r"\A\W*(?:(?:defined\s+)?terms?|words?|expressions?|abbreviations?|acronyms?)\W*\Z", re.I)
_SEE = re.compile(r"\W*see\b", re.IGNORECASE)  # the definition stands elsewhere
_RULE = re.compile(r"[\s|:+=-]+")


def in_entry(text: str, unit: Unit, scope: str) -> Iterator[Definition]:
    """The definition that a unit in a place of definitions is, if it is one: "X: …", "**X** – …", X above a text."""
    marked = MARKED.match(text, unit.body, unit.end)
    if marked and (behind := _behind(text, marked, unit)):
        term, start = bare(text, *marked.span()), behind
        fine = is_term(term.text, marked=True)
    elif (listed := _LIST.match(text, unit.body, unit.end)) and _is_head(listed["term"]):
        term, start = bare(text, *listed.span("term")), listed.end()
        fine = True
    else:
        separator = _SEPARATOR.search(text, unit.body, min(unit.end, unit.body + 100))
        if separator is None or "\n" in text[unit.body : separator.start()]:
            return
        term, start = bare(text, unit.body, separator.start()), separator.end()
        fine = is_term(term.text, most_words=MAX_ENTRY_WORDS) and "," not in term.text
        fine = fine and (":" in separator.group() or not term.text.startswith("The "))
    if fine and len(text[start : unit.end].split()) > 1 and not _SEE.match(text, start, unit.end):
        yield Definition(term.text, "entry", scope, term.start, term.end, start, unit.end)


def _is_head(line: str) -> bool:
    """Whether a line above an indented text is a term."""
    return "," not in line and is_term(line.strip()) and not re.search(r"[.;?!]\Z", line.rstrip())


def _behind(text: str, marked: re.Match[str], unit: Unit) -> int:
    """Where the definition begins behind a marked term, 0 when what follows is no separator."""
    inside = marked.group().rstrip("*_ ")
    at = marked.end()
    if inside.endswith((":", ".")) and at < unit.end and text[at].isspace():
        return at + 1
    found = _BEHIND_MARK.match(text, at, unit.end)
    return found.end() if found else 0


class TermTable:
    """Reads the rows of a text's tables; those under "Term | Meaning" are definitions."""

    def __init__(self) -> None:
        self._columns: tuple[int, int] | None = None
        self._end = -1
        self._at_head = True

    def read(self, text: str, unit: Unit, scope: str, *, place: bool) -> Iterator[Definition]:
        """The definition in a row, if its table is one of terms. Rows come in order."""
        between = text[max(self._end, 0) : unit.start]
        if self._end < 0 or between.strip() or "\n\n" in between:
            self._at_head, self._columns = True, None
        self._end = unit.end
        if _RULE.fullmatch(text[unit.start : unit.end]):
            return
        cells = list(_cells(text, unit))
        if self._at_head:
            self._at_head = False
            self._columns = _columns([text[start:end] for start, end in cells], place=place)
            return
        if self._columns is None or max(self._columns) >= len(cells):
            return
        (start, end), (low, high) = (cells[n] for n in self._columns)
        high = cells[-1][1] if self._columns[1] == 1 and place else high
        term = bare(text, start, end)
        if is_term(term.text, marked=True) and low < high and _FIRST.match(term.text) is None:
            yield Definition(term.text, "table", scope, term.start, term.end, low, high)


def _cells(text: str, unit: Unit) -> Iterator[tuple[int, int]]:
    """Spans of a row's cells, trimmed; the bars at its ends are no cells."""
    line = text[unit.start : unit.end]
    edges = [-1] if not line.lstrip().startswith("|") else []
    edges += [m.start() for m in re.finditer(r"(?<!\\)\|", line)]
    if not line.rstrip().endswith("|"):
        edges.append(len(line))
    for low, high in pairwise(edges):
        inner = line[low + 1 : high]
        lead = len(inner) - len(inner.lstrip())
        yield (
            unit.start + low + 1 + lead,
            unit.start + low + 1 + len(inner.rstrip()) if inner.strip() else unit.start + low + 1 + lead,
        )


def _columns(head: Sequence[str], *, place: bool) -> tuple[int, int] | None:
    """Which columns hold terms and their meanings, None where the table is another one."""
    if len(head) < 2:
        return None
    first = next((n for n, cell in enumerate(head) if _FIRST.match(cell)), None)
    second = next((n for n, cell in enumerate(head) if n != first and _SECOND.match(cell)), None)
    if first is None:
        return None
    if second is not None:
        return first, second
    return (first, first + 1) if place and _TERMS_ONLY.match(head[first]) and first + 1 < len(head) else None
