"""Where prose may be cut: after sentences, else after clauses, else between words, else inside a word.

All positions are offsets of the whole text; stretches come back in order, without blanks at their ends, and hold
every non-blank character between `start` and `end`. Time is linear in the stretch.
"""

import re
import unicodedata
from collections.abc import Iterator
from typing import NamedTuple

# The mark comes first in the pattern, so that a search stops at marks alone.
_SENTENCE_END = re.compile(
    r"[.!?…。！？\n](?:(?<=[.!?…])[.!?…]*+[\"'”’»)\]*_`]*+"
    r"|(?<=[。！？])[。！？]*+[」』）”’]*+"
    # a blank line, or a line that begins like a list item: (a), 1., -
    r"|(?<=\n)(?=[ \t]*+(?:\n|[-*•‣][ \t]|\(?(?:[A-Za-z]{1,4}|\d{1,3})[.)][ \t])))"
)
_STRONG_CLAUSE = re.compile(r"[;:](?=\s)|[；：]|\n(?=\s*\()")
_CLAUSE = re.compile(r"[,;:—–](?=\s)|[、，；：]")
_WORD = re.compile(r"\S+")
_ABBREVIATION = re.compile(
    r"arts?|al|approx|app|cf|ch|cl|corp?|co|dept|dr|eds?|eg|eq|est|etc|figs?|ff|ie|inc|jr|ltd|mrs?|ms|nos?|nr|op|"
    r"paras?|pp?|prof|ref|regs?|resp|sect?|sr|st|subds?|supp|usc|vol|vs?|viz|bzw|ca|ggf",
    re.IGNORECASE,
)
_DOTTED = re.compile(r"(?:[A-Za-z]\.)*[A-Za-z]")
_LAST_WORD = re.compile(r"[\w.]+\Z")
_JOINER = "\u200d"
_VIRAMA = 9  #: canonical combining class of marks that join two consonants
_LOOK_AHEAD = 64  #: characters searched for the edge of a grapheme; no honest one is longer


class Cut(NamedTuple):
    """A stretch; `fresh` says that a sentence (or row, or line) begins here, not its continuation."""

    start: int
    end: int
    fresh: bool


def trim(text: str, start: int, end: int) -> tuple[int, int]:
    """The stretch without blanks at both ends; start == end where nothing is left."""
    while end > start and text[end - 1].isspace():
        end -= 1
    while start < end and text[start].isspace():
        start += 1
    return start, end


def _split(text: str, start: int, end: int, edges: Iterator[int]) -> Iterator[tuple[int, int]]:
    """Stretches between `edges`, trimmed, blank ones left out."""
    at = start
    for edge in (*edges, end):
        lo, hi = trim(text, at, edge)
        if lo < hi:
            yield lo, hi
        at = edge


def _ends_sentence(text: str, sentence: int, mark: int, after: int, end: int) -> bool:
    """Whether punctuation `text[mark:after]` ends the sentence that began at `sentence`."""
    if after >= end or text[mark] in "\n。！？":
        return True
    if not text[after].isspace():
        return False
    following = after
    while following < end and text[following].isspace():
        following += 1
    if following < end and text[following].islower():
        return False
    if text[mark] != "." or after - mark > 1:
        return True
    found = _LAST_WORD.search(text, max(sentence, mark - 16), mark)
    if found is None:
        return True
    word = found[0]
    if word.isdigit():
        return bool(text[sentence : found.start()].strip())  # "1. Pay" is a number, "in 2020. Then" an end
    return not (_DOTTED.fullmatch(word) or _ABBREVIATION.fullmatch(word))


def sentences(text: str, start: int, end: int) -> list[tuple[int, int]]:
    """The sentences of `text[start:end]`. Abbreviations, initials and list numbers do not end one."""
    edges: list[int] = []
    begun = start
    for found in _SENTENCE_END.finditer(text, start, end):
        if _ends_sentence(text, begun, found.start(), found.end(), end):
            begun = found.end()
            edges.append(begun)
    return list(_split(text, start, end, iter(edges)))


def grapheme_edge(text: str, at: int) -> bool:
    """Whether a cut before `text[at]` leaves accents, joined emoji, skin tones and flags whole."""
    letter = text[at]
    if letter == _JOINER or text[at - 1] == _JOINER or "\U0001f3fb" <= letter <= "\U0001f3ff":
        return False
    if unicodedata.category(letter).startswith("M") or unicodedata.combining(text[at - 1]) == _VIRAMA:
        return False
    if "\U0001f1e6" <= letter <= "\U0001f1ff":  # flags are pairs of regional indicators
        before = at
        while before and at - before < _LOOK_AHEAD and "\U0001f1e6" <= text[before - 1] <= "\U0001f1ff":
            before -= 1
        return (at - before) % 2 == 0
    return True


def _hard(text: str, start: int, end: int, size: int) -> Iterator[tuple[int, int]]:
    """A word in stretches of `size` // 8 characters or a little more, graphemes whole."""
    step = max(1, size // 8)
    while end - start > step:
        at = start + step
        limit = min(end, at + min(_LOOK_AHEAD, max(1, size // 4)))
        while at < limit and not grapheme_edge(text, at):
            at += 1
        if at == limit < end:
            at = start + step  # a pile of marks without an edge: nothing there to spare
        yield start, at
        start = at
    if start < end:
        yield start, end


def words(text: str, start: int, end: int, size: int) -> Iterator[tuple[int, int]]:
    """Runs of words of about `size` // 8 characters, so that packing them fills a chunk; longer words are cut."""
    step = max(1, size // 8)
    lo = hi = -1
    for found in _WORD.finditer(text, start, end):
        if hi >= 0 and found.end() - lo > step:
            yield lo, hi
            lo = -1
        if found.end() - found.start() > size:
            if lo >= 0:
                yield lo, hi
            yield from _hard(text, found.start(), found.end(), size)
            lo = hi = -1
            continue
        lo, hi = (found.start() if lo < 0 else lo), found.end()
    if lo >= 0:
        yield lo, hi


def _matches(pattern: re.Pattern[str], text: str, start: int, end: int) -> Iterator[int]:
    return (found.end() for found in pattern.finditer(text, start, end))


def _clauses(text: str, start: int, end: int, size: int) -> Iterator[tuple[int, int]]:
    """A sentence longer than `size`: at semicolons, their parts at commas, and what is still long at words."""
    for lo, hi in _split(text, start, end, _matches(_STRONG_CLAUSE, text, start, end)):
        if hi - lo <= size // 2:
            yield lo, hi
            continue
        for low, high in _split(text, lo, hi, _matches(_CLAUSE, text, lo, hi)):
            if high - low <= size // 4:
                yield low, high
            else:
                yield from words(text, low, high, size)


def cut_prose(text: str, start: int, end: int, size: int) -> list[Cut]:
    """Sentences; one longer than `size` in its parts, of which only the first is `fresh`."""
    cuts: list[Cut] = []
    for lo, hi in sentences(text, start, end):
        if hi - lo <= size:
            cuts.append(Cut(lo, hi, True))
        else:
            cuts += [Cut(a, b, a == lo) for a, b in _clauses(text, lo, hi, size)]
    return cuts
