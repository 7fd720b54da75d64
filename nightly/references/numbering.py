"""Numbers of headings and paragraphs: what "§ 12.4(a)", "IV", "(x)" and "4.2.1" can mean.

A sign can be read in several ways: "(i)" is the ninth letter or the first Roman numeral. Which it is follows from what
stands before and after it, and is decided in `paragraphs`.
"""

import re
from dataclasses import dataclass
from typing import NamedTuple

from agent_server.ingest.chunk_label import number_of

#: Words for the same kind of place, and the word that stands for them.
_SAME_WORDS = {
    "section": ("§", "§§", "sec", "sect", "section", "sections", "secs", "subsection", "subsections"),
    "article": ("article", "articles", "art", "arts"),
    "paragraph": (
        "paragraph",
        "paragraphs",
        "para",
        "paras",
        "subparagraph",
        "subparagraphs",
        "subclause",
        "subclauses",
    ),
    "point": ("point", "points", "item", "items", "subpoint", "subpoints"),
    "clause": ("clause", "clauses"),
    "appendix": ("appendix", "appendices", "appendixes", "app"),
    "annex": ("annex", "annexes", "annexe"),
    "schedule": ("schedule", "schedules"),
    "exhibit": ("exhibit", "exhibits"),
    "attachment": ("attachment", "attachments"),
    "supplement": ("supplement", "supplements"),
    "part": ("part", "parts"),
    "subpart": ("subpart", "subparts"),
    "chapter": ("chapter", "chapters"),
    "title": ("title", "titles"),
    "book": ("book", "books"),
    "rule": ("rule", "rules"),
    "recital": ("recital", "recitals"),
    "form": ("form", "forms"),
    "table": ("table", "tables"),
    "figure": ("figure", "figures", "fig", "figs"),
    "step": ("step", "steps"),
    "policy": ("policy",),
    "comment": ("comment", "comments"),
}
WORDS = {word: canonical for canonical, words in _SAME_WORDS.items() for word in words}
#: Stand beside the body of a document, each with a numbering of its own.
APPENDED = frozenset({"appendix", "annex", "schedule", "exhibit", "attachment", "supplement"})
#: Which kinds of places lie in which: smaller numbers are larger places.
RANKS = {
    "book": 1,
    "title": 2,
    "part": 3,
    "subpart": 4,
    "chapter": 5,
    "section": 7,
    "article": 7,
    "rule": 7,
    "policy": 7,
}
#: May stand for one another before a plain number: a contract says "clause 4.2" of what is headed "4.2".
LOOSE = frozenset(
    {"section", "paragraph", "clause", "point", "article", "rule", "part", "chapter", "step", "", "policy"}
)

_ROMAN = re.compile(r"(?=[ivxl])(xl|l?x{0,3})(ix|iv|v?i{0,3})")
_ROMAN_VALUES = {"i": 1, "v": 5, "x": 10, "l": 50}
_LABEL = re.compile(r"(?:(?P<word>[A-Za-z§]+)\s+)?(?P<number>[^\s()]*)(?P<path>(?:\([^()]{1,6}\))*)")
_PATH_HEADING = re.compile(
    r"(?:paragraphs?\s+)?(?P<number>\d+(?:\.\d+)*)?(?P<path>(?:\([0-9A-Za-z]{1,5}\))+)(?=[\s.:,;–—-]|\Z)", re.I
)
_TOKEN = re.compile(r"\(([0-9A-Za-z]{1,6})\)")
_ITEM_OF_APPENDIX = re.compile(r"(?P<number>[A-Z]{1,2}-\d{1,3})(?P<path>(?:\([0-9A-Za-z]{1,5}\))*)(?=[\s.:,;–—(-]|\Z)")


class Reading(NamedTuple):
    """One way to read a sign: its style, and its place in that style's order (from 1)."""

    style: str
    ordinal: int


@dataclass(frozen=True, slots=True)
class Label:
    """The numbering of a heading: "§ 12.4(a)" is the word "section", the number "12.4" and the path ("a",)."""

    word: str  #: canonical, "" without one
    number: str  #: as it is compared: small letters, no dot at the end
    path: tuple[str, ...] = ()


def roman(text: str) -> int:
    """The value of a Roman numeral in small letters up to 89; 0 if it is none."""
    if not _ROMAN.fullmatch(text):
        return 0
    values = [_ROMAN_VALUES[letter] for letter in text]
    return sum(-v if any(v < later for later in values[n + 1 : n + 2]) else v for n, v in enumerate(values))


def readings(value: str, brackets: str) -> tuple[Reading, ...]:
    """The ways to read `value`, which stands in `brackets` ("()", ")" or ".")."""
    if value.isdigit():
        return (Reading(f"{brackets}1", int(value)),) if len(value) <= 4 else ()
    case = "a" if value.islower() else "A" if value.isupper() else ""
    small = value.lower()
    if not case or not small.isascii() or not small.isalpha():
        return ()
    found: list[Reading] = []
    if len(set(small)) == 1 and len(small) <= 3:  # a ... z, aa ... zz
        found.append(Reading(brackets + case, ord(small[0]) - 96 + 26 * (len(small) - 1)))
    if number := roman(small):
        found.append(Reading(brackets + ("i" if case == "a" else "I"), number))
    return tuple(found)


def kinds(value: str) -> set[str]:
    """The kinds of numbering a value may belong to: "1", "a", "A", "i", "I"."""
    return {reading.style[-1] for reading in readings(value, "")}


def tokens(path: str) -> tuple[str, ...]:
    """ "(a)(1)" as ("a", "1")."""
    return tuple(_TOKEN.findall(path))


def normal(number: str) -> str:
    """A number as it is compared: "IV." and "iv" are one, and so are all dashes."""
    return re.sub(r"[–—‑]", "-", number).rstrip(".").lower()


def heading_label(title: str) -> Label | None:
    """The numbering at the beginning of a heading, None without one."""
    title = " ".join(title.split())
    if found := _PATH_HEADING.match(title):
        return Label("", found["number"] or "", tokens(found["path"]))
    if found := _ITEM_OF_APPENDIX.match(title):
        return Label("", normal(found["number"]), tokens(found["path"]))
    number = number_of(title)
    if not number:
        return None
    parsed = _LABEL.fullmatch(number)
    if parsed is None:
        return None
    word = (parsed["word"] or "").lower()
    if word and word not in WORDS:
        return Label(word, normal(parsed["number"]), tokens(parsed["path"]))
    return Label(WORDS.get(word, ""), normal(parsed["number"]), tokens(parsed["path"]))


def is_within(number: str, outer: str) -> bool:
    """Whether "4.2.1" lies in "4.2", "b-1" in "b", "4.2a" not in "4.2"."""
    return bool(outer) and len(number) > len(outer) and number.startswith(outer) and number[len(outer)] in ".-"
