"""Passages of a source put together again, so that a definition cut by a passage's end is read whole.

Pure. Passages overlap, and repeat table heads; both are left out, and every offset leads back into one passage.
"""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from nightly.definitions.find import find_definitions
from nightly.definitions.model import Definition

#: A section is read in pieces of about this many characters.
MAX_SECTION = 100_000
_MARKS = "*_“”„«»\"‘’'"


@dataclass(frozen=True, slots=True)
class Passage:
    """A stored passage; `lead` characters at its beginning are repeated from elsewhere and no part of the slice
    `char_start:char_end` of the document."""

    id: int
    text: str
    heading_path: tuple[str, ...]
    label: str
    char_start: int
    char_end: int
    lead: int = 0


@dataclass(frozen=True, slots=True)
class Located:
    """A definition in a passage: `start:end` in the passage's text, term and definition as far as it holds them."""

    definition: Definition
    passage: Passage
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class _Piece:
    at: int  #: in the section's text
    end: int
    passage: Passage
    offset: int  #: of the piece in the passage's text


def definitions_of(passages: Iterable[Passage]) -> Iterator[Located]:
    """All definitions of a source, whose passages are given in order."""
    section: list[Passage] = []
    length = 0
    for passage in passages:
        if section and (passage.heading_path != section[0].heading_path or length > MAX_SECTION):
            yield from _in_section(section)
            section, length = [], 0
        section.append(passage)
        length += len(passage.text)
    if section:
        yield from _in_section(section)


def _in_section(passages: Sequence[Passage]) -> Iterator[Located]:
    text, pieces = _joined(passages)
    starts = [piece.at for piece in pieces]
    for found in find_definitions(text, passages[0].heading_path):
        # What defines decides where a definition stands: its title may have ended the passage before.
        anchor = (
            max(found.start, found.definition_start) if found.form in ("means", "elsewhere", "refers") else found.start
        )
        piece = pieces[bisect_right(starts, anchor) - 1]
        span = _with_marks(text, *found.span)
        low, high = (min(max(at, piece.at), piece.end) - piece.at + piece.offset for at in span)
        if low < high:
            yield Located(found, piece.passage, low, high)


def _with_marks(text: str, start: int, end: int) -> tuple[int, int]:
    """A stretch with the quotes or stars around the term that it begins or ends with."""
    while start > 0 and text[start - 1] in _MARKS:
        start -= 1
    while end < len(text) and text[end] in _MARKS:
        end += 1
    return start, end


def _joined(passages: Sequence[Passage]) -> tuple[str, list[_Piece]]:
    """The text of a section, and where its parts stand in the passages."""
    parts: list[str] = []
    pieces: list[_Piece] = []
    length, end = 0, passages[0].char_start
    for passage in passages:
        overlap = min(max(end - passage.char_start, 0), passage.char_end - passage.char_start)
        offset = passage.lead + overlap
        part = passage.text[offset : passage.lead + passage.char_end - passage.char_start]
        if parts and part:  # only blanks stood between passages
            gap = "\n\n" if passage.char_start - end > 1 else "\n" if passage.char_start > end else ""
            parts.append(gap)
            length += len(gap)
        pieces.append(_Piece(length, length + len(part), passage, offset))
        parts.append(part)
        length += len(part)
        end = max(end, passage.char_end)
    return "".join(parts), pieces
