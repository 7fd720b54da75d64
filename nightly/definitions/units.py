"""Where the entries of a text begin: paragraphs, list items, table rows, headings; code is left out.

A text is read once, line by line; all kinds of documents come down to the same few shapes: Markdown, reStructuredText,
plain text, and what extraction makes of PDF, HTML and DOCX.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

#: "(a)", "(1).", "2.", "1.4.2", "iv)", "-": at most two of them, as in "(b)(1)" or "1. (a)".
_ENUMERATOR = re.compile(
    r"[ \t>]*(?:(?:[-*+•–·▪◦‣]|\(?(?:\d{1,3}|[A-Za-z]{1,2}|[ivxlcIVXLC]{1,6})[.)]\.?|\d{1,3}(?:\.\d{1,3}){1,4}\.?)"
    r"[ \t]+|(?:\((?:\d{1,3}|[A-Za-z]{1,2}|[ivxlc]{1,6})\)){1,3}\.?[ \t]+){1,2}"
)
_HASHES = re.compile(r"#{1,6}[ \t]+")
_UNDERLINE = re.compile(r"([=\-~^\"'`#*+.:_])\1{2,}[ \t]*$")
_GRID = re.compile(r"\+[-=+]+\+")
_FENCE = re.compile(r"[ \t]*(```|~~~)")
_DIRECTIVE = re.compile(r"[ \t]*(?:\.\. [\w:-]+::|:\w[\w -]*:(?:[ \t]|$)|>>>|\$ )")
_MAX_HEADING = 100

Line = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Unit:
    """A stretch `text[start:end]`: `body` is where its words begin, behind a numbering or a bullet."""

    kind: str  #: "text", "item", "heading" or "row"
    start: int
    body: int
    end: int
    numbering: str = ""


def units(text: str) -> Iterator[Unit]:
    """All units of `text` in order, without code and directives."""
    begun: list[Line] = []  # lines of the unit that is being read
    lines = list(_prose(text))
    for number, line in enumerate(lines):
        start, end = line
        words = text[start:end].strip()
        underline = _UNDERLINE.match(words)
        row = ("|" in words and _is_row(text, lines, number)) or _GRID.fullmatch(words) is not None
        heading = not underline and _HASHES.match(text, start, end) is not None
        alone = not words or underline or row or heading or _DIRECTIVE.match(text, start, end)
        if begun and (alone or _begins_another(text, begun, line)):
            yield from [_heading(text, *begun[0])] if underline and len(begun) == 1 else _unit(text, begun)
            begun = []
        if row:
            yield Unit("row", start, start, end)
        elif heading:
            yield _heading(text, start, end)
        elif not alone:
            begun.append(line)
    yield from _unit(text, begun)


def is_title(text: str, unit: Unit) -> bool:
    """Whether a unit reads like a heading: one short line that ends without a mark."""
    words = text[unit.body : unit.end].strip()
    if unit.kind == "heading":
        return True
    return (
        0 < len(words) <= _MAX_HEADING and "\n" not in words and words[-1] not in ".:;,?!|" and words[0] not in "*_|`"
    )


def _prose(text: str) -> Iterator[Line]:
    """Spans of the lines, those of fenced and of indented code left out; a blank line parts what stood around it."""
    fence = ""
    literal = -1  # deeper than this is a literal block
    at = 0
    for whole in text.splitlines(keepends=True):
        start, at = at, at + len(whole)
        line = whole.rstrip()
        if found := _FENCE.match(line):
            if not fence or found.group(1) == fence:
                fence = "" if fence else found.group(1)
                yield start, start
            continue
        if fence or (literal >= 0 and line and _indent(line) > literal):
            continue
        if line:
            literal = _indent(line) if line.endswith("::") else -1
        yield start, start + len(line)


def _begins_another(text: str, begun: list[Line], line: Line) -> bool:
    """Whether a line belongs to a unit of its own and not to the one that is being read."""
    indent, first, last = (_indent(text[start:end]) for start, end in (line, begun[0], begun[-1]))
    if len(begun) > 1 and indent <= first and indent < last:
        return True  # the next entry of a definition list
    if _ENUMERATOR.match(text, *line) is None:
        return False
    # The text of a definition list may be numbered itself: deeper than the term, it stays with it.
    return not (len(begun) == 1 and indent > first and _ENUMERATOR.match(text, *begun[0]) is None)


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _is_row(text: str, lines: list[Line], number: int) -> bool:
    """Whether a line is a row of a table: it has a bar, and so has a neighbour (or it begins and ends with one)."""
    line = text[slice(*lines[number])]
    if not re.search(r"\s\|(?:\s|$)|^\s*\|", line):
        return False
    if line.lstrip().startswith("|") and line.rstrip().endswith("|"):
        return True
    near = (lines[n] for n in (number - 1, number + 1) if 0 <= n < len(lines))
    return any("|" in text[start:end] for start, end in near)


def _heading(text: str, start: int, end: int) -> Unit:
    found = _HASHES.match(text, start, end)
    body = found.end() if found else start
    numbering = _ENUMERATOR.match(text, body, end)
    return Unit("heading", start, numbering.end() if numbering else body, end)


def _unit(text: str, lines: list[Line]) -> Iterator[Unit]:
    """The lines of a unit as one."""
    if not lines:
        return
    start, end = lines[0][0], lines[-1][1]
    found = _ENUMERATOR.match(text, start, end)
    if found and found.end() < end:
        yield Unit("item", start, found.end(), end, found.group().strip())
    else:
        yield Unit("text", start, start + _indent(text[start:end]), end)
