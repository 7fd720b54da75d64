"""What a chunk says of its place: the context line and the numbering of its heading."""

import re
from collections.abc import Sequence

CONTEXT_CHARS = 200
_SEPARATOR = " > "
_SUB = r"(?:\([0-9A-Za-z]{1,5}\))*"
_BREAK = r"(?=[\s.:,;)\]–—]|\Z)"
_CODE_OF_LAW = re.compile(
    r"\A\d+\s+(?:C\.?F\.?R\.?|U\.?S\.?C\.?)(?:\s+|\Z)"
)  # "12 CFR Part 1002": the 12 names the book
_PARAGRAPH = re.compile(rf"§{{1,2}}\s*(?P<number>\d[\w.\-–]*\w|\d)(?P<sub>{_SUB})")
_NAMED = re.compile(
    r"(?P<word>article|art\.|section|sec\.|part|subpart|chapter|appendix|annex|schedule|policy|rule|regulation|"
    r"title|recital|clause|paragraph|exhibit|form|circular|pep|rfc|supplement)\s+"
    rf"(?P<number>\d+(?:[.\-–]\d+)*[a-z]?{_SUB}|[A-Z]{{1,5}}-?\d+(?:\.\d+)*|[IVXLCDM]+|[A-Z]{{1,2}}){_BREAK}",
    re.IGNORECASE,
)
_FULL_WORDS = {"art.": "Article", "sec.": "Section", "pep": "PEP", "rfc": "RFC"}
_DOTTED = re.compile(
    rf"(?P<number>(?:[A-Z]\.\d+(?:\.\d+)*|\d+(?:\.\d+)+[a-z]?|[A-Z]{{1,3}}-\d+|\d+[a-z]?(?=\(\w)){_SUB}){_BREAK}"
)
_PLAIN = re.compile(r"(?P<number>\d{1,5})(?:[.):]|\s*[–—-](?=\s)|(?=\s))(?=\s|\Z)")
_ROMAN = re.compile(r"(?P<number>[IVX]{1,7}|[A-H])\.(?=\s)")
_YEAR = re.compile(r"(?:19|20)\d\d")


def number_of(heading: str) -> str:
    """The numbering at the beginning of a heading: "4.2", "§ 1002.9", "Article 6", "Appendix B"; "" without."""
    heading = _CODE_OF_LAW.sub("", " ".join(heading.split()), count=1)
    if found := _PARAGRAPH.match(heading):
        return f"§ {found['number']}{found['sub']}"
    if found := _NAMED.match(heading):
        word, number = found["word"].lower(), found["number"]
        if not number.isdigit() and number[:1].islower():
            return ""  # "Part of", "Title in": words, not numbers
        return f"{_FULL_WORDS.get(word, word.capitalize())} {number}"
    if found := _DOTTED.match(heading):
        return found["number"]
    if found := _PLAIN.match(heading):
        year = _YEAR.fullmatch(found["number"]) and found[0] == found["number"]
        return "" if year or not heading[found.end() :].strip() else found["number"]
    if found := _ROMAN.match(heading):
        return found["number"]
    return ""


def label(path: Sequence[str]) -> str:
    """The numbering of the innermost heading that has one, else ""."""
    return next((number for heading in reversed(path) if (number := number_of(heading))), "")


def _short(part: str, most: int) -> str:
    return part if len(part) <= most else part[: most - 1].rstrip() + "…"


def context(title: str, path: Sequence[str]) -> str:
    """ "Title > Section > Subsection" in at most `CONTEXT_CHARS` characters.

    Repeated neighbours are named once (title and first heading also where only their case differs). Where it is
    too long, middle parts go first, the outermost of them first; then the two that are left are shortened.
    """
    parts: list[str] = []
    for number, raw in enumerate((title, *path)):
        part = " ".join(raw.split())
        if not part or (parts and (part == parts[-1] or (number == 1 and part.casefold() == parts[-1].casefold()))):
            continue
        parts.append(part)
    while len(parts) > 2 and len(_SEPARATOR.join(parts)) > CONTEXT_CHARS:
        del parts[1]
    if len(_SEPARATOR.join(parts)) > CONTEXT_CHARS and len(parts) > 1:
        room = CONTEXT_CHARS - len(_SEPARATOR)
        last = _short(parts[1], max(room - len(parts[0]), room * 3 // 5))
        parts = [_short(parts[0], room - len(last)), last]
    return _short(_SEPARATOR.join(parts), CONTEXT_CHARS)
