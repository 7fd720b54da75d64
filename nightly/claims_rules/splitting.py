"""Sentences of a text, with their offsets."""

import re
from collections.abc import Iterator

_END = re.compile(r"[.!?](?:[\"”’')\]]|\*\*|\*)*(?=\s+[\"“‘'(\[*_`]*[A-Z0-9§]|[A-Z][a-z]*\s|\s*\Z)")
#: "Appendix A.": a letter that names a part ends a sentence.
_LETTERED = re.compile(
    r"\b(?:appendix|annex|part|band|form|level|class|schedule|grade|exhibit|table|type|option|plan|step|unit|group|section|or|and)"
    r"\s+[A-Z]\.\Z",
    re.IGNORECASE,
)
_ENUMERATOR = re.compile(r"\(?(?:\d{1,3}|[a-z]|[ivx]+)\)?\.", re.IGNORECASE)
_ABBREVIATED = re.compile(
    r"(?:\b(?:e\.g|i\.e|cf|no|nos|art|arts|sec|secs|para|paras|vs|approx|inc|co|corp|ltd|st|mr|mrs|ms|dr|a\.m|p\.m|al|fig|pub|stat|seq)"
    r"|\b[A-Z]|\b[A-Z]\.[A-Z])\.\Z",
    re.IGNORECASE,
)


def sentences(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Spans of the sentences in `text[start:end]`, trimmed, in order; the last one may lack its full stop."""
    at = start
    for mark in _END.finditer(text, start, end):
        if mark.group()[0] == "." and _is_abbreviation(text, at, mark, end):
            continue
        yield from _trimmed(text, at, mark.end())
        at = mark.end()
    yield from _trimmed(text, at, end)


def _is_abbreviation(text: str, start: int, mark: re.Match[str], end: int) -> bool:
    if mark.end() >= end or not text[mark.end() :].strip():
        return False
    if _ENUMERATOR.fullmatch(text[start : mark.start() + 1].strip()):
        return True
    found = _ABBREVIATED.search(text, max(start, mark.start() - 8), mark.start() + 1)
    if found and _LETTERED.search(text[max(start, mark.start() - 24) : mark.start() + 1]):
        return False
    # "5 p.m. The office": a time may end a sentence.
    return found is not None and not (
        re.search(r"[ap]\.m\.\Z", text[: mark.start() + 1]) and re.match(r"\s+[A-Z]", text[mark.end() :])
    )


def _trimmed(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    while start < end and text[start].isspace():
        start += 1
    while end > start and text[end - 1].isspace():
        end -= 1
    if start < end:
        yield start, end
