"""Headings that nothing marks but their looks: numbers, "Article 6", capitals, a line drawn under them.

Conservative on purpose: a heading that is missed costs context, a sentence taken for a heading puts everything below
it under a wrong name.
"""

import re
from dataclasses import dataclass

MAX_CHARS = 120
#: "Article 89 - Safeguards and derogations relating to …": what a dash follows is a title however long it is.
DASHED_MAX_CHARS = 300
_DASHED = re.compile(
    r"(?:part|title|chapter|section|article|appendix|annex)\s+[\divxlcdm]+[a-z]?\s+[–—-]\s", re.IGNORECASE
)
_CAPS_CHARS = 90

_NAMED = re.compile(
    r"(?P<word>part|title|book|chapter|section|article|appendix|annex|schedule)"
    r"(?:\s+(?P<number>\d+[a-z]?(?:[.-]\d+)*|[ivxlcdm]+|[a-z])(?![\w(])\s*(?P<mark>[.:)–—-]*)"
    r"|\s+(?P<dash>[–—-]))(?:\s+(?P<rest>\S.*))?",
    re.IGNORECASE,
)
_SIGN = re.compile(r"§+\s*[\d.]+[a-z]?(?:-\d+)?\.?\s+(?P<rest>\S.*)")
_NUMBERED = re.compile(r"(?P<number>\d{1,3}(?:\.\d{1,3}){0,4}|[A-Z](?:\.\d{1,3}){1,4})(?P<dot>[.)]?)\s+(?P<rest>\S.*)")
_GAP = re.compile(r"\S(?:\t| {3,})\S")
_LIST_MARK = re.compile(
    r"\s*(?:[-*+•◦▪‣·–—o] |\((?:\d{1,3}|[a-z]{1,2}|[ivxl]{1,5}|[A-Z])\)\.?\s"
    r"|(?:\d{1,3}|[a-zA-Z]|[ivxl]{1,5})[.)]\s)"
)
_WORD = re.compile(r"[^\W\d_]{3,}")
_BESIDE = frozenset({"caps", "named:appendix"})
_APPENDED = frozenset({"appendix", "annex", "schedule"})
_ENDS_BADLY = re.compile(
    r"(?:[.;:,]|\b(?:the|a|an|of|and|or|to|in|for|with|by|on|at|from|as|is|are|be|under|that|which))$"
)


@dataclass(frozen=True, slots=True)
class LineHeading:
    """A line that looks like a heading. `rank` names its kind; ranks become levels when all are known."""

    rank: str
    text: str
    needs_title: bool = False  #: "Article 6" alone: the next line may be its title
    strong: bool = False  #: even with text right below it this is a heading (capitals)


def is_list_item(line: str) -> bool:
    """Whether the line starts with a bullet, "(a)", "1." or the like."""
    return _LIST_MARK.match(line) is not None


def is_caps(line: str) -> bool:
    """Whether every letter is a capital one and there is at least one real word."""
    letters = [letter for letter in line if letter.isalpha()]
    return len(letters) >= 4 and all(letter.isupper() for letter in letters) and bool(_WORD.search(line))


def looks_like_title(line: str, max_chars: int = MAX_CHARS) -> bool:
    """Whether a line could be the name of something: short, starts large, does not end like a sentence."""
    line = line.strip()
    if not line or len(line) > max_chars or _GAP.search(line) or _ENDS_BADLY.search(line):
        return False
    first = line.lstrip("\"'“‘([¿¡")[:1]
    return bool(first) and (first.isupper() or first.isdigit() or not first.isascii()) and any(map(str.isalpha, line))


def read_heading(line: str) -> LineHeading | None:
    """The heading that the line by itself would be, or None. Says nothing about the lines around it."""
    text = " ".join(line.split())
    if not text or len(text) > _limit(text) or _GAP.search(line.strip()):
        return None
    return _named(text) or _numbered(text) or _capitals(text)


def _limit(text: str) -> int:
    return DASHED_MAX_CHARS if _DASHED.match(text) else MAX_CHARS


def _named(text: str) -> LineHeading | None:
    sign = _SIGN.fullmatch(text)
    if sign and looks_like_title(sign["rest"].rstrip(".")):
        return LineHeading("named:§", text)
    found = _NAMED.fullmatch(text)
    if found is None or not text[0].isupper():
        return None
    rest = found["rest"]
    word = found["word"].lower()
    if found["number"] and found["number"].islower() and found["number"].isalpha() and len(found["number"]) > 1:
        return None  # "Section di ...": letters that happen to be Roman numerals
    rank = f"named:{'appendix' if word in _APPENDED else word}"
    if rest is None:
        return None if found["dash"] else LineHeading(rank, text, needs_title=True)
    if not looks_like_title(rest, _limit(text)):
        return None
    return LineHeading(rank, text, strong=is_caps(text))


def _numbered(text: str) -> LineHeading | None:
    found = _NUMBERED.fullmatch(text)
    if found is None or not looks_like_title(found["rest"]) or found["rest"][0].isdigit():
        return None
    depth = found["number"].count(".") + 1
    caps = is_caps(found["rest"])
    if depth == 1 and not found["dot"] and not caps:
        return None  # "1 July 2024", "40 Percent of ..."
    if found["dot"] == ")":
        return None
    return LineHeading(f"num:{depth}", text, strong=caps)


def _capitals(text: str) -> LineHeading | None:
    if len(text) > _CAPS_CHARS or not is_caps(text) or is_list_item(text) or text[-1] in ".,;:":
        return None
    if not any(len(word) >= 4 for word in re.findall(r"(?<![\w-])[^\W\d_]+(?![\w-])", text)):
        return None  # codes and abbreviations
    return LineHeading("caps", text, strong=True)


def levels(headings: list[LineHeading]) -> list[int]:
    """The level, from 1, of every heading, given all of them in the order of the document.

    What comes first is outermost, except that "4.2" lies below "4" whatever comes first. Appendices and unnumbered
    capitals stand beside the outermost kind that is numbered or named, unless such capitals frame small-lettered
    headings ("GENERAL RULES" above "1.1 Scope").
    """
    order: list[str] = []
    for heading in headings:
        if heading.rank not in order:
            order.append(heading.rank)
    outer = next((h for h in headings if h.rank not in _BESIDE and h.rank != "title"), None)
    if outer is not None:
        first = order.index(outer.rank)
        frame = {rank for rank in order[:first] if rank in _BESIDE and not outer.strong}
        order = [rank for rank in order if rank not in _BESIDE or rank in frame]
    place = {rank: index + 1 for index, rank in enumerate(sorted(order, key=lambda r: _floor(r, order)))}
    beside = place[outer.rank] if outer is not None else 1
    return [place.get(heading.rank, beside) for heading in headings]


def _floor(rank: str, order: list[str]) -> float:
    """Where a rank belongs: at its first appearance, but never above a shallower number."""
    at = float(order.index(rank))
    if not rank.startswith("num:"):
        return at
    depth = int(rank[4:])
    above = [order.index(other) for other in order if other.startswith("num:") and int(other[4:]) < depth]
    return max(at, max(above) + depth / 10) if above else at
