"""Signs that number paragraphs, where they stand: "(a)(1)" and "2." before a line, "(b)" within a list in a sentence.

Whether a sign really numbers something is decided when the order of all of them is known, in `outline`.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

Sign = tuple[str, str]  #: what is said, and its brackets: ("a", "()"), ("2", "."), ("4.2.1", "")

_FENCE = re.compile(r"[ \t>]*(`{3,}|~{3,})")
_LEAD = r"[ \t>]*(?:[-*+•][ \t]+)?(?:[*_]{1,2})?"
_LINE = re.compile(
    _LEAD
    + r"(?:(?P<path>\([0-9A-Za-z]{1,5}\)(?:[ ]?\([0-9A-Za-z]{1,5}\)){0,5})\.?(?=[\s*_A-Z“\"'‘\[]|\Z)"
    + r"|(?P<dotted>\d{1,3}(?:\.\d{1,3}){1,5})[.)]?(?=[*_]{0,2}[ \t]+[*_“\"'‘(\[]{0,2}[^\W\d_])"
    + r"|(?P<plain>\d{1,3}|[ivxIVX]{1,6}|[A-Za-z])(?P<bracket>[.)])(?=\s|[*_]|\Z))"
)
_INLINE = re.compile(
    r"(?:(?P<lead>[:;,—–])|\b(?P<word>and|or|either|both))[ \t\n]{1,20}\((?P<value>[0-9A-Za-z]{1,4})\)(?=[ \t\n][^\s(])"
)
_VALUE = re.compile(r"\(([0-9A-Za-z]{1,5})\)")
_CAPTION = re.compile(
    _LEAD
    + r"(?P<word>table|figure|exhibit|box)[ \t]+"
    + r"(?P<number>[A-Z]?[-.]?\d{1,3}(?:[.-]\d{1,3})*)[*_]{0,2}[ \t]*[.:—–-]",
    re.I,
)


@dataclass(frozen=True, slots=True)
class Marker:
    """Signs at `start`; the paragraph's words begin at `end`. `paragraph` counts paragraphs."""

    start: int
    end: int
    signs: tuple[Sign, ...]
    paragraph: int
    opens: bool = True  #: may be the first of its list: it begins a line, or stands behind a colon
    inline: bool = False
    caption: str = ""  #: the word of a caption: "table"


def markers(text: str, skip: Sequence[tuple[int, int]]) -> Iterator[Marker]:
    """All signs of `text` in order, outside of the stretches `skip` (headings, in order) and of fences."""
    left_out = iter(skip)
    gap = next(left_out, None)
    fence = ""
    paragraph = at = 0
    for line in text.splitlines(keepends=True):
        start, at = at, at + len(line)
        while gap is not None and gap[1] <= start:
            gap = next(left_out, None)
        if gap is not None and gap[0] < at:
            paragraph += 1
            continue
        if found := _FENCE.match(line):
            fence = "" if fence and found[1].startswith(fence) else fence or found[1]
            continue
        if fence:
            continue
        if not line.strip():
            paragraph += 1
            continue
        yield from chain(_at_line(line, start, paragraph), _within(text, start, at, paragraph))


def _at_line(line: str, start: int, paragraph: int) -> Iterator[Marker]:
    if caption := _CAPTION.match(line):
        sign = (caption["number"], "")
        yield Marker(start, start + caption.end(), (sign,), paragraph, caption=caption["word"].lower())
        return
    found = _LINE.match(line)
    if found is None:
        return
    if found["path"]:
        signs: tuple[Sign, ...] = tuple((value, "()") for value in _VALUE.findall(found["path"]))
    elif found["dotted"]:
        signs = ((found["dotted"], ""),)
    else:
        signs = ((found["plain"], found["bracket"]),)
    yield Marker(start, start + found.end(), signs, paragraph)


def _within(text: str, start: int, end: int, paragraph: int) -> Iterator[Marker]:
    for found in _INLINE.finditer(text, start, end):
        sign = (found["value"], "()")
        opens = found["lead"] in {":", "—", "–"} or found["word"] in {"either", "both"}
        yield Marker(found.start("value") - 1, found.end(), (sign,), paragraph, opens, True)
